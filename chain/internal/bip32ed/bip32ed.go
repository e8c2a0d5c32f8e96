// Package bip32ed derives and uses keys of BIP32-Ed25519, which Cardano's wallets have:
// ed25519 keys of which public keys derive public keys.
//
// What it promises:
//   - Derivation and signatures are those of the reference library, byte for byte, and
//     signatures are deterministic and verify as ed25519.
//   - A Public derives what its Private derives, for every index without a ' behind it.
//   - Clear leaves nothing of a Private. It has no method that prints it.
package bip32ed

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"filippo.io/edwards25519"
)

// Hardened is added to an index that has a ' behind it: only private keys derive it.
const Hardened = 1 << 31

// Public is a public key and its chain code.
type Public struct{ Key, Code [32]byte }

// Private is a private key of two halves and its chain code.
type Private struct{ left, right, code [32]byte }

// Icarus is the master key of the entropy that a BIP39 phrase stands for, as most wallets
// make it (CIP-3, Icarus).
func Icarus(entropy []byte, passphrase string) (*Private, error) {
	raw, err := pbkdf2.Key(sha512.New, passphrase, entropy, 4096, 96)
	if err != nil {
		return nil, fmt.Errorf("bip32ed: %w", err)
	}
	defer clear(raw)
	k := &Private{left: [32]byte(raw[:32]), right: [32]byte(raw[32:64]), code: [32]byte(raw[64:])}
	k.left[0] &= 0b1111_1000
	k.left[31] = k.left[31]&0b0001_1111 | 0b0100_0000
	return k, nil
}

// Ledger is the master key of a BIP39 seed, as Ledger's hardware wallets make it (CIP-3,
// Ledger): for who has the seed of a phrase and not its entropy.
func Ledger(seed []byte) *Private {
	key := []byte("ed25519 seed")
	code := hmac.New(sha256.New, key)
	code.Write([]byte{1})
	code.Write(seed)
	k := &Private{}
	code.Sum(k.code[:0])
	var sum [64]byte
	defer clear(sum[:])
	for message := seed; ; message = sum[:] {
		h := hmac.New(sha512.New, key)
		h.Write(message)
		h.Sum(sum[:0])
		if sum[31]&0b0010_0000 == 0 {
			break
		}
	}
	copy(k.left[:], sum[:32])
	copy(k.right[:], sum[32:])
	k.left[0] &= 0b1111_1000
	k.left[31] = k.left[31]&0b0111_1111 | 0b0100_0000
	return k
}

// Clear overwrites the key.
func (k *Private) Clear() { *k = Private{} }

func (k *Private) scalar() (*edwards25519.Scalar, error) {
	var wide [64]byte
	copy(wide[:], k.left[:])
	defer clear(wide[:])
	return new(edwards25519.Scalar).SetUniformBytes(wide[:])
}

// Public is the public key.
func (k *Private) Public() (Public, error) {
	s, err := k.scalar()
	if err != nil {
		return Public{}, err
	}
	return Public{[32]byte(new(edwards25519.Point).ScalarBaseMult(s).Bytes()), k.code}, nil
}

// Derive becomes its own child, index by index.
func (k *Private) Derive(path ...uint32) error {
	for _, i := range path {
		if err := k.child(i); err != nil {
			return err
		}
	}
	return nil
}

func (k *Private) child(i uint32) error {
	tag := byte(2)
	var data []byte
	if i >= Hardened {
		tag = 0
		data = append(append(make([]byte, 0, 68), k.left[:]...), k.right[:]...)
		defer clear(data[:64])
	} else {
		pub, err := k.Public()
		if err != nil {
			return err
		}
		data = pub.Key[:]
	}
	data = binary.LittleEndian.AppendUint32(data, i)
	z, code := mac(k.code, tag, data), mac(k.code, tag+1, data)
	defer clear(z[:])
	add(&k.left, times8(z[:28]))
	add(&k.right, z[32:])
	copy(k.code[:], code[32:])
	return nil
}

// Sign makes an ed25519 signature. The same message has the same signature.
func (k *Private) Sign(message []byte) ([]byte, error) {
	s, err := k.scalar()
	if err != nil {
		return nil, err
	}
	pub := new(edwards25519.Point).ScalarBaseMult(s).Bytes()
	r, err := challenge(k.right[:], message)
	if err != nil {
		return nil, err
	}
	point := new(edwards25519.Point).ScalarBaseMult(r).Bytes()
	h, err := challenge(point, pub, message)
	if err != nil {
		return nil, err
	}
	return append(point, h.MultiplyAdd(h, s, r).Bytes()...), nil
}

func challenge(parts ...[]byte) (*edwards25519.Scalar, error) {
	h := sha512.New()
	for _, p := range parts {
		h.Write(p)
	}
	var sum [64]byte
	defer clear(sum[:])
	return new(edwards25519.Scalar).SetUniformBytes(h.Sum(sum[:0]))
}

// Child derives an index below Hardened from public material: A + 8·Z·B.
func (k Public) Child(i uint32) (Public, error) {
	if i >= Hardened {
		return Public{}, errors.New("bip32ed: no public key derives an index with a '")
	}
	at, err := new(edwards25519.Point).SetBytes(k.Key[:])
	if err != nil {
		return Public{}, errors.New("bip32ed: a public key is no point of the curve")
	}
	data := binary.LittleEndian.AppendUint32(k.Key[:len(k.Key):len(k.Key)], i)
	z, code := mac(k.Code, 2, data), mac(k.Code, 3, data)
	var step [64]byte
	copy(step[:], times8(z[:28]))
	s, err := new(edwards25519.Scalar).SetUniformBytes(step[:])
	if err != nil {
		return Public{}, err
	}
	at.Add(at, new(edwards25519.Point).ScalarBaseMult(s))
	return Public{[32]byte(at.Bytes()), [32]byte(code[32:])}, nil
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
