package sim

import (
	"encoding/hex"
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
}

// Untag implements chain.Tagger for formats that have such addresses.
func (k *client) Untag(a chain.Address) (chain.Address, string, bool) {
	if f, ok := k.c().opt.Addresses.(chain.Tagger); ok {
		return f.Untag(a)
	}
	return "", "", false
}

// plain is the simulation's own format: "sim", the network's code in lower
// case, 40 hex digits of the owner's hash, and 8 of a checksum over all before
// it. There is one writing of it: upper case is refused, not folded.
type plain struct{ network chain.Network }

const (
	bodyDigits = 40
	sumDigits  = 8
)

func (f plain) prefix() string { return "sim" + strings.ToLower(string(f.network)) }

func (f plain) Make(owner [32]byte) chain.Address {
	s := f.prefix() + hex.EncodeToString(owner[:])[:bodyDigits]
	return chain.Address(s + checksum(s))
}

func checksum(s string) string { return digestHex("checksum", s)[:sumDigits] }

func (f plain) Parse(s string) (chain.Address, error) {
	bad := func(why string) error { return &chain.AddressError{Network: f.network, Address: s, Reason: why} }
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
	return chain.Address(s), nil
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
