package keys

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Holder has private keys and uses them without giving them away: a hardware module, see
// hsm.Module. It knows each key by the KeyRef that a Seed derives the key of this place
// under, and derives none. Safe for concurrent use. Its errors are unknown outcomes.
type Holder interface {
	// Public is a key's public part: 33 bytes on secp256k1, 32 bytes on ed25519.
	Public(ctx context.Context, ref chain.KeyRef) (chain.PublicKey, error)
	// Sign signs a message on ed25519, and a hash of 32 bytes on secp256k1, where it gives
	// r and s of 32 bytes each. Two signatures of one hash may differ.
	Sign(ctx context.Context, ref chain.KeyRef, message []byte) ([]byte, error)
}

// Maker is a Holder that can make a key. Make returns the public part of the key that was
// made under a name before, or else of a new one. No address of a key may be shown to
// anybody before the key has signed: Make proves it.
type Maker interface {
	Holder
	Make(ctx context.Context, ref chain.KeyRef) (chain.PublicKey, error)
}

// CheckRef reports on which curve the key of a KeyRef is: ed25519, or else secp256k1. The error
// wraps ErrPath where it is no KeyRef of this package.
func CheckRef(ref chain.KeyRef) (onEdwards bool, err error) {
	path, onEdwards := strings.CutPrefix(string(ref), edwards)
	if soft, ok := onSoft(ref); ok {
		path, onEdwards = soft, true
	}
	_, err = parsePath(path)
	return onEdwards, err
}

// Names are how the keys of networks are named, by index: as a Seed derives them.
type Names map[chain.Network]func(index uint32) chain.KeyRef

// NamesOf are the names for networks that this package knows the accounts of. more are
// accounts in place of those; they need no XPub.
func NamesOf(networks []chain.NetworkInfo, more ...Account) (Names, error) {
	accounts, err := accountsOf(networks)
	if err != nil {
		return nil, err
	}
	out := Names{}
	for n, place := range edwardsPaths {
		out[n] = func(i uint32) chain.KeyRef {
			ref := fmt.Sprintf("%s%s/%d'", edwards, place.path, i)
			for _, step := range place.tail {
				ref += fmt.Sprintf("/%d'", step)
			}
			return chain.KeyRef(ref)
		}
	}
	for _, a := range append(accounts, more...) {
		out[a.Network] = func(i uint32) chain.KeyRef { return chain.KeyRef(fmt.Sprintf("%s/%d/%d", a.Path, a.Branch, i)) }
	}
	return out, nil
}

// signHeld makes one signature with a key of a Holder, low-S, and verifies it.
func (s *Signer) signHeld(ctx context.Context, c Chain, ref chain.KeyRef, d chain.Digest, payload []byte) (chain.Signature, error) {
	onEdwards, err := CheckRef(ref)
	if err != nil {
		return nil, refuse("a key reference is unusable: %v", err)
	}
	if d.Whole && !onEdwards {
		return nil, refuse("a key reference is of the wrong curve")
	}
	pub, err := s.cfg.Keys.Public(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("keys: public key: %w", err)
	}
	if a, err := c.AddressOf(pub); err != nil || a != d.From {
		return nil, refuse("a key is not the sender's")
	}
	message := d.Hash[:]
	if onEdwards {
		message = d.Signed(payload)
	}
	raw, err := s.cfg.Keys.Sign(ctx, ref, message)
	if err != nil {
		return nil, fmt.Errorf("keys: signature: %w", err)
	}
	return Finish(pub, message, raw)
}

var errFaulty = errors.New("keys: the signature does not verify")

// Finish verifies what a Holder gave for a message, and makes it what chain.Signer gives:
// on secp256k1 with a low S, and behind it which of the possible keys it is of.
func Finish(pub chain.PublicKey, message, raw []byte) (chain.Signature, error) {
	if len(raw) != 64 {
		return nil, errFaulty
	}
	if len(pub) == ed25519.PublicKeySize {
		if !ed25519.Verify(ed25519.PublicKey(pub), message, raw) {
			return nil, errFaulty
		}
		return raw, nil
	}
	var low secp256k1.ModNScalar
	if overflow := low.SetByteSlice(raw[32:]); overflow {
		return nil, errFaulty
	}
	if low.IsOverHalfOrder() {
		low.Negate()
	}
	s := low.Bytes()
	const header = 27 + 4 // compact format, compressed key
	compact := append(append([]byte{header}, raw[:32]...), s[:]...)
	for id := range byte(4) {
		compact[0] = header + id
		// A key comes back only where the signature is valid for it.
		if back, _, err := ecdsa.RecoverCompact(compact, message); err == nil && bytes.Equal(back.SerializeCompressed(), pub) {
			return append(compact[1:], id), nil
		}
	}
	return nil, errFaulty
}
