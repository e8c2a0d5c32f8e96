package tron

import (
	"crypto/sha256"
	"fmt"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"golang.org/x/crypto/sha3"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// prefix is the first byte of every mainnet address.
const prefix = 0x41

// account is an address without its first byte.
type account [20]byte

// ParseAddress accepts the base58 form alone, with a right checksum, as
// chain/address does: no hexadecimal form, which other networks' addresses could
// be taken for.
func (c *Client) ParseAddress(s string) (chain.Address, error) {
	a, err := parseAddress(c.o.Network, s)
	if err != nil {
		return "", err
	}
	return a.text(), nil
}

// AddressOf is the address of a compressed secp256k1 key.
func (c *Client) AddressOf(pub chain.PublicKey) (chain.Address, error) {
	k, err := secp256k1.ParsePubKey(pub)
	if err != nil || len(pub) != 33 {
		return "", fmt.Errorf("tron: not a compressed secp256k1 public key")
	}
	return accountOf(k).text(), nil
}

func accountOf(k *secp256k1.PublicKey) account {
	h := sha3.NewLegacyKeccak256()
	_, _ = h.Write(k.SerializeUncompressed()[1:])
	return account(h.Sum(nil)[12:])
}

var format, _ = address.For("TRX")

func parseAddress(n chain.Network, s string) (account, error) {
	info, err := format.Parse(s)
	if err != nil {
		return account{}, &chain.AddressError{Network: n, Address: s, Reason: reason(err)}
	}
	return decode58(string(info.Canonical)), nil
}

func reason(err error) string {
	if e, ok := err.(*chain.AddressError); ok { //nolint:errorlint // Parse returns it bare
		return e.Reason
	}
	return err.Error()
}

// own turns an address that this client wrote back into bytes.
func (c *Client) own(a chain.Address) (account, error) { return parseAddress(c.o.Network, string(a)) }

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// decode58 reads an address that is known to be well-formed.
func decode58(s string) account {
	var b [25]byte
	for _, r := range []byte(s) {
		var v int
		for v < 57 && alphabet[v] != r {
			v++
		}
		for i := len(b) - 1; i >= 0; i-- {
			v += int(b[i]) * 58
			b[i] = byte(v)
			v >>= 8
		}
	}
	return account(b[1:21])
}

// text is the base58 form. It runs for every transfer of a block, so the number
// is divided by five digits at a time: 58⁵ fits 32 bits.
func (a account) text() chain.Address {
	var b [25]byte
	b[0] = prefix
	copy(b[1:], a[:])
	sum := sha256.Sum256(b[:21])
	sum = sha256.Sum256(sum[:])
	copy(b[21:], sum[:4])
	var limbs [7]uint32 // 28 bytes, three of them zero
	for i, v := range b {
		limbs[(i+3)/4] |= uint32(v) << (8 * (3 - (i+3)%4))
	}
	const step = 58 * 58 * 58 * 58 * 58
	var out [35]byte
	at := len(out)
	for range 7 {
		var rest uint64
		for i, l := range limbs {
			v := rest<<32 | uint64(l)
			limbs[i], rest = uint32(v/step), v%step
		}
		for range 5 {
			at--
			out[at] = alphabet[rest%58]
			rest /= 58
		}
	}
	return chain.Address(out[1:]) // 25 bytes from 0x41 on have 34 digits
}

// full is the address with its first byte, as transactions hold it.
func (a account) full() []byte { return append([]byte{prefix}, a[:]...) }

// hex is the form that the API takes with visible false.
func (a account) hex() string { return fmt.Sprintf("%02x%x", prefix, a[:]) }

// accountFrom reads the 21 bytes of a transaction's field.
func accountFrom(b []byte) (account, bool) {
	if len(b) != 21 || b[0] != prefix {
		return account{}, false
	}
	return account(b[1:]), true
}

// hexAccount reads the API's hex: 21 bytes, or in logs 20.
func hexAccount(s []byte) (a account, ok bool) {
	if len(s) == 42 && s[0] == '4' && s[1] == '1' {
		s = s[2:]
	}
	ok = transport.Unhex(a[:], s)
	return a, ok
}
