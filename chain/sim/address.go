package sim

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Format is how a simulated network writes addresses.
type Format interface {
	// Parse reads an address into its canonical form; the error is a
	// *chain.AddressError.
	Parse(s string) (chain.Address, error)
	// Make writes the address of an owner's hash. Its result parses.
	Make(owner [32]byte) chain.Address
	// A Format that is a chain.Multiplexer as well gives the accounts of a network that needs
	// memos many addresses, as the clients of XRP and Stellar do.
}

// Untag implements chain.Tagger for formats that have such addresses.
func (k *client) Untag(a chain.Address) (chain.Address, string, bool) { return k.c().untag(a) }

func (c *Chain) untag(a chain.Address) (account chain.Address, memo string, ok bool) {
	if f, able := c.opt.Addresses.(chain.Tagger); able {
		return f.Untag(a)
	}
	return "", "", false
}

// account is who holds what was sent to an address.
func (c *Chain) account(a chain.Address) chain.Address {
	if account, _, tagged := c.untag(a); tagged {
		return account
	}
	return a
}

// sharing is a client of a network on which many addresses share an account, as the real one
// does it: it needs memos, and its format of addresses is a chain.Multiplexer.
type sharing struct{ *client }

var _ chain.Multiplexer = sharing{}

// shares is what makes addresses of accounts, nil where each has its own.
func (c *Chain) shares() chain.Multiplexer {
	m, able := c.opt.Addresses.(chain.Multiplexer)
	n, err := c.opt.Registry.Network(string(c.opt.Network))
	if !able || err != nil || !n.NeedsMemo {
		return nil
	}
	return m
}

// Multiplex implements chain.Multiplexer.
func (s sharing) Multiplex(account chain.Address, id uint32) (chain.Address, error) {
	return s.c().opt.Addresses.(chain.Multiplexer).Multiplex(account, id) //nolint:forcetypeassert // see shares
}

// Arrived is a transfer to an account as a watch sees it. Where the watch contains the address
// that m makes of the account and the memo, it went there. ok is false where the account is
// not watched. m may be nil.
func Arrived(m chain.Multiplexer, w chain.Watch, t chain.Transfer) (arrived chain.Transfer, ok bool) {
	if !w.Contains(t.To) {
		return t, false
	}
	id, err := strconv.ParseUint(t.Memo, 10, 32)
	if m == nil || err != nil || strconv.FormatUint(id, 10) != t.Memo {
		return t, true
	}
	if a, err := m.Multiplex(t.To, uint32(id)); err == nil && w.Contains(a) {
		t.To = a
	}
	return t, true
}

// plain is the simulation's own format: "sim", the network's code in lower
// case, 40 hex digits of the owner's hash, and 8 of a checksum over all before
// it. There is one writing of it: upper case is refused, not folded. On a network that needs
// memos one account has many addresses: behind its own come a hyphen and the memo.
type plain struct {
	network chain.Network
	shared  bool
}

const (
	bodyDigits = 40
	sumDigits  = 8
	memoMark   = "-"
)

// Untag implements chain.Tagger.
func (f plain) Untag(a chain.Address) (account chain.Address, memo string, ok bool) {
	if _, err := f.Parse(string(a)); err != nil {
		return "", "", false
	}
	of, memo, ok := strings.Cut(string(a), memoMark)
	return chain.Address(of), memo, ok
}

// Multiplex implements chain.Multiplexer.
func (f plain) Multiplex(account chain.Address, id uint32) (chain.Address, error) {
	return f.Parse(string(account) + memoMark + strconv.FormatUint(uint64(id), 10))
}

func (f plain) prefix() string { return "sim" + strings.ToLower(string(f.network)) }

func (f plain) Make(owner [32]byte) chain.Address {
	s := f.prefix() + hex.EncodeToString(owner[:])[:bodyDigits]
	return chain.Address(s + checksum(s))
}

func checksum(s string) string { return digestHex("checksum", s)[:sumDigits] }

func (f plain) Parse(address string) (chain.Address, error) {
	bad := func(why string) error {
		return &chain.AddressError{Network: f.network, Address: address, Reason: why}
	}
	s, memo, tagged := strings.Cut(address, memoMark)
	if id, err := strconv.ParseUint(memo, 10, 32); tagged && (!f.shared || err != nil || strconv.FormatUint(id, 10) != memo) {
		return "", bad("what follows the hyphen is no memo")
	}
	p := f.prefix()
	switch {
	case !strings.HasPrefix(s, p):
		return "", bad("it does not begin with " + p)
	case len(s) != len(p)+bodyDigits+sumDigits:
		return "", bad("it has the wrong length")
	}
	for _, r := range s[len(p):] {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return "", bad("it has other characters than 0-9 and a-f")
		}
	}
	if cut := len(s) - sumDigits; s[cut:] != checksum(s[:cut]) {
		return "", bad("its checksum is wrong")
	}
	return chain.Address(address), nil
}

// addressOf makes the address of any text that stands for an owner.
func (o *Options) addressOf(owner string) chain.Address {
	return o.Addresses.Make(digest("owner", owner))
}

func (o *Options) addressOfKey(pub []byte) (chain.Address, error) {
	key, err := secp256k1.ParsePubKey(pub)
	if err != nil || len(pub) != secp256k1.PubKeyBytesLenCompressed {
		return "", &chain.AddressError{Network: o.Network, Address: hex.EncodeToString(pub), Reason: "the key is no compressed secp256k1 key of 33 bytes"}
	}
	return o.addressOf(string(key.SerializeCompressed())), nil
}

// signedBy returns the address whose key made a signature r‖s‖v.
func (o *Options) signedBy(sig chain.Signature, digest [32]byte) (chain.Address, bool) {
	if len(sig) != 65 || sig[64] > 3 {
		return "", false
	}
	compact := append([]byte{27 + 4 + sig[64]}, sig[:64]...)
	pub, _, err := ecdsa.RecoverCompact(compact, digest[:])
	if err != nil {
		return "", false
	}
	return o.addressOf(string(pub.SerializeCompressed())), true
}

// lowS reports whether a signature is the one of the two that nodes relay.
func lowS(sig chain.Signature) bool {
	var s secp256k1.ModNScalar
	return len(sig) == 65 && !s.SetByteSlice(sig[32:64]) && !s.IsOverHalfOrder()
}
