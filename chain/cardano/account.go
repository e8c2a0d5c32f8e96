package cardano

import (
	"context"
	"errors"
	"fmt"

	"github.com/btcsuite/btcd/address/v2/bech32"
	"github.com/tyler-smith/go-bip39"
	"golang.org/x/crypto/blake2b"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/bip32ed"
)

// Account is an account's public key with its chain code: enough for all of its
// addresses, and for nothing that spends. Safe for concurrent use.
type Account struct {
	number uint32
	key    bip32ed.Public
	stake  [28]byte // hash of the key of role 2
}

// Roles of CIP-1852: what is behind the account in a path.
const (
	RoleExternal uint32 = 0 // to be paid at
	RoleInternal uint32 = 1 // for change
	roleStake    uint32 = 2
)

// ErrMnemonic says that words are no BIP39 phrase. It never repeats them.
var ErrMnemonic = errors.New("cardano: not a BIP39 mnemonic: check words, order and checksum")

// FromMnemonic derives the public key of m/1852'/1815'/account' from a BIP39 phrase,
// as Icarus wallets do, and forgets what was secret.
func FromMnemonic(mnemonic, passphrase string, account uint32) (*Account, error) {
	entropy, err := bip39.EntropyFromMnemonic(mnemonic)
	if err != nil {
		return nil, ErrMnemonic
	}
	defer clear(entropy)
	k, err := bip32ed.Icarus(entropy, passphrase)
	if err != nil {
		return nil, fmt.Errorf("cardano: %w", err)
	}
	defer k.Clear()
	if account >= bip32ed.Hardened {
		return nil, fmt.Errorf("cardano: there is no account %d", account)
	}
	if err := k.Derive(1852+bip32ed.Hardened, 1815+bip32ed.Hardened, account+bip32ed.Hardened); err != nil {
		return nil, fmt.Errorf("cardano: %w", err)
	}
	pub, err := k.Public()
	if err != nil {
		return nil, err
	}
	return newAccount(pub, account)
}

// ParseAccount reads an account's extended public key: the bech32 of 64 bytes that
// wallets show as acct_xvk1… or xpub1….
func ParseAccount(text string, account uint32) (*Account, error) {
	hrp, data, version, err := bech32.DecodeNoLimitWithVersion(text)
	if err != nil || version != bech32.Version0 || hrp != "acct_xvk" && hrp != "xpub" {
		return nil, errors.New("cardano: not an account's extended public key: acct_xvk1… or xpub1…")
	}
	raw, err := bech32.ConvertBits(data, 5, 8, false)
	if err != nil || len(raw) != 64 {
		return nil, errors.New("cardano: an extended public key has 64 bytes")
	}
	return newAccount(bip32ed.Public{Key: [32]byte(raw[:32]), Code: [32]byte(raw[32:])}, account)
}

func newAccount(key bip32ed.Public, number uint32) (*Account, error) {
	a := &Account{number: number, key: key}
	stake, err := a.child(roleStake, 0)
	if err != nil {
		return nil, err
	}
	a.stake = hash(stake)
	return a, nil
}

// String is the key as bech32: public, but all of the account's addresses follow
// from it.
func (a *Account) String() string {
	return encode("acct_xvk", append(append([]byte{}, a.key.Key[:]...), a.key.Code[:]...))
}

// PublicKey is the Ed25519 key of an address.
func (a *Account) PublicKey(role, index uint32) (chain.PublicKey, error) {
	k, err := a.child(role, index)
	return chain.PublicKey(k[:]), err
}

// Headers of mainnet addresses (CIP-19).
const (
	headerBase       = 0b0000_0001
	headerBaseScript = 0b0010_0001 // staked by a script
	headerEnterprise = 0b0110_0001
	headerByron      = 0b1000_0010
	headerStake      = 0b1110_0001
)

// Address is a base address of the account: paid to the key of role and index,
// staked by the account's own stake key.
func (a *Account) Address(role, index uint32) (chain.Address, error) {
	k, err := a.child(role, index)
	if err != nil {
		return "", err
	}
	h := hash(k)
	return chain.Address(encode("addr", append(append([]byte{headerBase}, h[:]...), a.stake[:]...))), nil
}

// StakeAddress is the account's reward address, which cannot be paid.
func (a *Account) StakeAddress() string {
	return encode("stake", append([]byte{headerStake}, a.stake[:]...))
}

// Derive is chain.AddressSource: external addresses from index on. A keys.Seed does not have
// these keys, but those of a Ledger; a Holder that has them names them so.
func (a *Account) Derive(ctx context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	if n != "ADA" || count < 0 || int64(from)+int64(count) > bip32ed.Hardened {
		return nil, fmt.Errorf("cardano: %d addresses of %s from %d cannot be derived", count, n, from)
	}
	out := make([]chain.Derived, 0, count)
	for i := from; len(out) < count; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		address, err := a.Address(RoleExternal, i)
		if err != nil {
			return nil, err
		}
		out = append(out, chain.Derived{Address: address, Index: i, Key: chain.KeyRef(fmt.Sprintf("bip32-ed25519/m/1852'/1815'/%d'/0/%d", a.number, i))})
	}
	return out, nil
}

func (a *Account) child(role, index uint32) (key [32]byte, err error) {
	if role > roleStake || index >= bip32ed.Hardened {
		return key, fmt.Errorf("cardano: there is no role %d or no index %d", role, index)
	}
	k := a.key
	for _, i := range []uint32{role, index} {
		if k, err = k.Child(i); err != nil {
			return key, err
		}
	}
	return k.Key, nil
}

// hash is BLAKE2b of 224 bits, by which addresses name keys.
func hash(key [32]byte) (out [28]byte) {
	h, err := blake2b.New(len(out), nil)
	if err != nil {
		panic(err) // the size is a constant
	}
	h.Write(key[:])
	h.Sum(out[:0])
	return out
}

func encode(hrp string, raw []byte) string {
	data, err := bech32.ConvertBits(raw, 8, 5, true)
	if err != nil {
		panic(err) // bytes always convert
	}
	s, err := bech32.Encode(hrp, data)
	if err != nil {
		panic(err)
	}
	return s
}
