package cardano

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"filippo.io/edwards25519"
	"github.com/btcsuite/btcd/address/v2/bech32"
	"github.com/tyler-smith/go-bip39"
	"golang.org/x/crypto/blake2b"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Account is an account's public key with its chain code: enough for all of its
// addresses, and for nothing that spends. Safe for concurrent use.
type Account struct {
	number uint32
	key    extended
	stake  [28]byte // hash of the key of role 2
}

// Roles of CIP-1852: what is behind the account in a path.
const (
	RoleExternal uint32 = 0 // to be paid at
	RoleInternal uint32 = 1 // for change
	roleStake    uint32 = 2
)

// extended is a public key and its chain code (BIP32-Ed25519).
type extended struct{ key, code [32]byte }

const hardened = 1 << 31

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
	raw, err := pbkdf2.Key(sha512.New, passphrase, entropy, 4096, 96)
	if err != nil {
		return nil, fmt.Errorf("cardano: %w", err)
	}
	defer clear(raw)
	k := private{left: [32]byte(raw[:32]), right: [32]byte(raw[32:64]), code: [32]byte(raw[64:])}
	defer k.clear()
	k.left[0] &= 0b1111_1000
	k.left[31] = k.left[31]&0b0001_1111 | 0b0100_0000
	if account >= hardened {
		return nil, fmt.Errorf("cardano: there is no account %d", account)
	}
	for _, i := range []uint32{1852, 1815, account} {
		k.harden(i)
	}
	pub, err := k.public()
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
	return newAccount(extended{[32]byte(raw[:32]), [32]byte(raw[32:])}, account)
}

func newAccount(key extended, number uint32) (*Account, error) {
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
	return encode("acct_xvk", append(append([]byte{}, a.key.key[:]...), a.key.code[:]...))
}

// PublicKey is the Ed25519 key of an address.
func (a *Account) PublicKey(role, index uint32) (chain.PublicKey, error) {
	k, err := a.child(role, index)
	return chain.PublicKey(k[:]), err
}

// Headers of mainnet addresses (CIP-19).
const (
	headerBase  = 0b0000_0001
	headerStake = 0b1110_0001
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

// Derive is chain.AddressSource: external addresses from index on.
func (a *Account) Derive(ctx context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	if n != "ADA" || count < 0 || int64(from)+int64(count) > hardened {
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
		out = append(out, chain.Derived{Address: address, Index: i, Key: chain.KeyRef(fmt.Sprintf("m/1852'/1815'/%d'/0/%d", a.number, i))})
	}
	return out, nil
}

func (a *Account) child(role, index uint32) (key [32]byte, err error) {
	if role > roleStake || index >= hardened {
		return key, fmt.Errorf("cardano: there is no role %d or no index %d", role, index)
	}
	k := a.key
	for _, i := range []uint32{role, index} {
		if k, err = k.child(i); err != nil {
			return key, err
		}
	}
	return k.key, nil
}

// child derives a soft index from public material: A + 8·Z·B.
func (k extended) child(i uint32) (extended, error) {
	at, err := new(edwards25519.Point).SetBytes(k.key[:])
	if err != nil {
		return extended{}, errors.New("cardano: a public key is no point of the curve")
	}
	data := binary.LittleEndian.AppendUint32(k.key[:len(k.key):len(k.key)], i)
	z, code := mac(k.code, 2, data), mac(k.code, 3, data)
	var step [64]byte
	copy(step[:], times8(z[:28]))
	s, err := new(edwards25519.Scalar).SetUniformBytes(step[:])
	if err != nil {
		return extended{}, err
	}
	at.Add(at, new(edwards25519.Point).ScalarBaseMult(s))
	return extended{[32]byte(at.Bytes()), [32]byte(code[32:])}, nil
}

// private is a key of BIP32-Ed25519: two halves and the chain code.
type private struct{ left, right, code [32]byte }

func (k *private) clear() { *k = private{} }

func (k *private) public() (extended, error) {
	var wide [64]byte
	copy(wide[:], k.left[:])
	defer clear(wide[:])
	s, err := new(edwards25519.Scalar).SetUniformBytes(wide[:])
	if err != nil {
		return extended{}, err
	}
	return extended{[32]byte(new(edwards25519.Point).ScalarBaseMult(s).Bytes()), k.code}, nil
}

// harden becomes its own child of a hardened index.
func (k *private) harden(i uint32) {
	data := append(append(make([]byte, 0, 68), k.left[:]...), k.right[:]...)
	data = binary.LittleEndian.AppendUint32(data, i|hardened)
	defer clear(data)
	z, code := mac(k.code, 0, data), mac(k.code, 1, data)
	defer clear(z[:])
	add(&k.left, times8(z[:28]))
	add(&k.right, z[32:])
	copy(k.code[:], code[32:])
}

func mac(code [32]byte, tag byte, data []byte) (out [64]byte) {
	h := hmac.New(sha512.New, code[:])
	h.Write([]byte{tag})
	h.Write(data)
	h.Sum(out[:0])
	return out
}

// times8 multiplies a number in little-endian bytes; it has room for it.
func times8(z []byte) []byte {
	out := make([]byte, 32)
	var carry byte
	for i, b := range z {
		out[i] = b<<3 | carry
		carry = b >> 5
	}
	out[len(z)] = carry
	return out
}

// add adds a number in little-endian bytes, modulo 2^256.
func add(to *[32]byte, b []byte) {
	var carry uint64
	for i := 0; i < 32; i += 8 {
		var sum uint64
		sum, carry = bits.Add64(binary.LittleEndian.Uint64(to[i:]), binary.LittleEndian.Uint64(b[i:]), carry)
		binary.LittleEndian.PutUint64(to[i:], sum)
	}
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
