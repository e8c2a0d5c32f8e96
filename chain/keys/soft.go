package keys

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"

	"github.com/btcsuite/btcd/address/v2/bech32"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/bip32ed"
)

// softEdwards begins a KeyRef whose path is derived by BIP32-Ed25519, which unlike SLIP-10
// derives public keys of public keys. Cardano has it.
const softEdwards = "bip32-ed25519/"

// softAccounts are where the networks on BIP32-Ed25519 have their accounts (CIP-1852), of
// which each index of branch 0 is an address.
var softAccounts = map[chain.Network]string{"ADA": "m/1852'/1815'/0'"}

// onSoft is the path of a KeyRef that is derived by BIP32-Ed25519.
func onSoft(ref chain.KeyRef) (path string, ok bool) {
	return strings.CutPrefix(string(ref), softEdwards)
}

// deriveSoft walks a path from the master key that a Ledger has of the seed; the caller
// clears the key.
func (s *Seed) deriveSoft(path string) (*bip32ed.Private, error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	k := bip32ed.Ledger(s.raw.Reveal())
	if err := k.Derive(steps...); err != nil {
		k.Clear()
		return nil, err
	}
	return k, nil
}

func (s *Seed) publicSoft(path string) (bip32ed.Public, error) {
	k, err := s.deriveSoft(path)
	if err != nil {
		return bip32ed.Public{}, err
	}
	defer k.Clear()
	return k.Public()
}

// signSoft makes one ed25519 signature, which is deterministic, and verifies it.
func (s *Signer) signSoft(c Chain, path string, d chain.Digest, payload []byte) (chain.Signature, error) {
	k, err := s.cfg.Seed.deriveSoft(path)
	if err != nil {
		return nil, refuse("a key reference is unusable: %v", err)
	}
	defer k.Clear()
	pub, err := k.Public()
	if err != nil {
		return nil, refuse("a key reference is unusable: %v", err)
	}
	if a, err := c.AddressOf(pub.Key[:]); err != nil || a != d.From {
		return nil, refuse("a key is not the sender's")
	}
	message := d.Signed(payload)
	sig, err := k.Sign(message)
	if err != nil || !ed25519.Verify(pub.Key[:], message, sig) {
		return nil, refuse("the signature does not verify")
	}
	return sig, nil
}

// accountKey is how wallets of Cardano write an account's public key and chain code.
const accountKey = "acct_xvk"

// softXPub writes an account's public key.
func softXPub(p bip32ed.Public) (string, error) {
	data, err := bech32.ConvertBits(append(append([]byte{}, p.Key[:]...), p.Code[:]...), 8, 5, true)
	if err != nil {
		return "", err
	}
	return bech32.Encode(accountKey, data)
}

// softBranch reads an account's public key and derives its branch.
func softBranch(a Account) (bip32ed.Public, error) {
	wrong := fmt.Errorf("keys: account of %s: an account's extended public key is needed: %s1…", a.Network, accountKey)
	hrp, data, version, err := bech32.DecodeNoLimitWithVersion(a.XPub)
	if err != nil || version != bech32.Version0 || hrp != accountKey {
		return bip32ed.Public{}, wrong
	}
	raw, err := bech32.ConvertBits(data, 5, 8, false)
	if err != nil || len(raw) != 64 {
		return bip32ed.Public{}, wrong
	}
	return bip32ed.Public{Key: [32]byte(raw[:32]), Code: [32]byte(raw[32:])}.Child(a.Branch)
}

// softPublic derives children of a branch. Safe for concurrent use.
type softPublic struct{ branch bip32ed.Public }

func (p softPublic) child(i uint32) (chain.PublicKey, error) {
	k, err := p.branch.Child(i)
	if err != nil {
		return nil, errors.Join(errNoKey, err)
	}
	return k.Key[:], nil
}
