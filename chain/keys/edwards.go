package keys

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"

	"github.com/cryptopay-go/cryptopay/chain"
)

// edwards begins a KeyRef whose path is derived by SLIP-10 on ed25519.
const edwards = "ed25519/"

// deriveEdwards walks a path of hardened steps by SLIP-10, the only ones that
// ed25519 has; the caller clears the key.
func (s *Seed) deriveEdwards(path string) (ed25519.PrivateKey, error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	node := slip10(s.raw.Reveal())
	defer node.clear()
	for _, i := range steps {
		if i < hdkeychain.HardenedKeyStart {
			return nil, errors.New("keys: ed25519 has no derivation without a ' behind each step")
		}
		node.child(i)
	}
	return ed25519.NewKeyFromSeed(node[:32]), nil
}

// node is a SLIP-10 node: 32 bytes of key, 32 of chain code.
type node [64]byte

func slip10(seed []byte) node {
	h := hmac.New(sha512.New, []byte("ed25519 seed"))
	_, _ = h.Write(seed)
	var n node
	h.Sum(n[:0])
	return n
}

// child becomes its own child of a hardened index.
func (n *node) child(i uint32) {
	var data [37]byte
	copy(data[1:], n[:32])
	binary.BigEndian.PutUint32(data[33:], i)
	h := hmac.New(sha512.New, n[32:])
	_, _ = h.Write(data[:])
	h.Sum(n[:0])
	clear(data[:])
}

func (n *node) clear() { clear(n[:]) }

// signEdwards makes one ed25519 signature (RFC 8032: deterministic) and verifies it.
func (s *Signer) signEdwards(c Chain, path string, d chain.Digest, payload []byte) (chain.Signature, error) {
	k, err := s.cfg.Seed.deriveEdwards(path)
	if err != nil {
		return nil, refuse("a key reference is unusable: %v", err)
	}
	defer clear(k)
	pub := k.Public().(ed25519.PublicKey)
	if a, err := c.AddressOf(chain.PublicKey(pub)); err != nil || a != d.From {
		return nil, refuse("a key is not the sender's")
	}
	message := d.Signed(payload)
	sig := ed25519.Sign(k, message)
	if !ed25519.Verify(pub, message, sig) {
		return nil, refuse("the signature does not verify")
	}
	return sig, nil
}

// edwardsPaths are where the networks on ed25519 have their accounts, of which
// each is one address: <path>/<index>'/0', as wallets of Solana number them, and
// <path>/<index>' on Stellar (SEP-5).
var edwardsPaths = map[chain.Network]struct {
	path string
	tail []uint32 // hardened
}{
	"SOL": {"m/44'/501'", []uint32{0}},
	"XLM": {"m/44'/148'", nil},
}

// Hardened derives addresses of the networks on ed25519, which has no public
// derivation: this takes the seed. A process without one lets another, that has
// it, fill the directory of addresses ahead, or is given a List. Safe for
// concurrent use.
type Hardened struct {
	seed     *Seed
	branches map[chain.Network]hardened
}

type hardened struct {
	at     node // of the path
	prefix string
	tail   []uint32
	encode Encode
}

// Hardened is the AddressSource of the ed25519 networks that encode has.
func (s *Seed) Hardened(encode map[chain.Network]Encode) *Hardened {
	h := &Hardened{seed: s, branches: map[chain.Network]hardened{}}
	for n, place := range edwardsPaths {
		e, ok := encode[n]
		if !ok {
			continue
		}
		at := slip10(s.raw.Reveal())
		steps, err := parsePath(place.path)
		if err != nil {
			panic(err) // a constant
		}
		for _, i := range steps {
			at.child(i)
		}
		h.branches[n] = hardened{at, edwards + place.path, place.tail, e}
	}
	return h
}

// Derive implements chain.AddressSource.
func (h *Hardened) Derive(ctx context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	b, ok := h.branches[n]
	if !ok {
		return nil, fmt.Errorf("%w %s: it is no network on ed25519 with an encoder", chain.ErrNoSource, n)
	}
	if count < 0 || int64(from)+int64(count) > hdkeychain.HardenedKeyStart {
		return nil, fmt.Errorf("keys: %d addresses of %s from %d cannot be derived", count, n, from)
	}
	out := make([]chain.Derived, 0, count)
	for i := from; len(out) < count; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at := b.at
		ref := fmt.Sprintf("%s/%d'", b.prefix, i)
		at.child(i + hdkeychain.HardenedKeyStart)
		for _, step := range b.tail {
			at.child(step + hdkeychain.HardenedKeyStart)
			ref += fmt.Sprintf("/%d'", step)
		}
		k := ed25519.NewKeyFromSeed(at[:32])
		a, err := b.encode(chain.PublicKey(k.Public().(ed25519.PublicKey)))
		clear(k)
		at.clear()
		if err != nil {
			return nil, err
		}
		out = append(out, chain.Derived{Address: a, Index: i, Key: chain.KeyRef(ref)})
	}
	return out, nil
}

// List is an AddressSource that has its addresses from elsewhere: the machine of the seed
// derived them, or a hardware module made their keys. It holds addresses and names of keys,
// nothing secret. Those of a network are on one curve. Index i is List[n][i].
type List map[chain.Network][]chain.Derived

// Derive implements chain.AddressSource.
func (l List) Derive(_ context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	all := l[n]
	if count < 0 || int64(from)+int64(count) > int64(len(all)) {
		return nil, fmt.Errorf("keys: of %s %d addresses were derived ahead, asked are %d from %d: derive more where the seed is, or the module", n, len(all), count, from)
	}
	part := all[from:][:count:count]
	for i := range part {
		onEdwards, err := CheckRef(part[i].Key)
		if first, _ := CheckRef(all[0].Key); err != nil || onEdwards != first || part[i].Index != from+uint32(i) {
			return nil, fmt.Errorf("keys: the list of %s is out of order at index %d", n, from+uint32(i))
		}
	}
	return part, nil
}

// Sources asks for each network the source that has it.
type Sources map[chain.Network]chain.AddressSource

// Derive implements chain.AddressSource.
func (s Sources) Derive(ctx context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	source, ok := s[n]
	if !ok {
		return nil, fmt.Errorf("%w %s: keys.Sources names none", chain.ErrNoSource, n)
	}
	return source.Derive(ctx, n, from, count)
}
