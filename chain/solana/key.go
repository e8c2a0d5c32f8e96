package solana

import (
	"encoding/binary"
	"fmt"

	sdk "github.com/gagliardetto/solana-go"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
)

// key is an account's address: a public key, or a program's own account.
type key [32]byte

// The programs whose instructions are read or made, and what else is fixed.
var (
	systemProgram  = mustKey("11111111111111111111111111111111")
	tokenProgram   = mustKey("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
	token2022      = mustKey("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
	ataProgram     = mustKey("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")
	budgetProgram  = mustKey("ComputeBudget111111111111111111111111111111")
	memoProgram    = mustKey("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")
	memoProgramOld = mustKey("Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo")
)

func mustKey(s string) key {
	k, ok := parseKey(s)
	if !ok {
		panic(s)
	}
	return k
}

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

var digits = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i := range len(alphabet) {
		t[alphabet[i]] = byte(i)
	}
	return t
}()

// maxText is the length of the longest base58 of 32 bytes.
const maxText = 44

// parseKey reads base58 of exactly 32 bytes in its one canonical form.
func parseKey(s string) (k key, ok bool) {
	if len(s) < 32 || len(s) > maxText {
		return k, false
	}
	var limbs [8]uint32
	ones := 0
	for i := range len(s) {
		d := uint64(digits[s[i]])
		if d == 0xff {
			return k, false
		}
		if d == 0 && ones == i {
			ones++
		}
		for j := len(limbs) - 1; j >= 0; j-- {
			d += uint64(limbs[j]) * 58
			limbs[j], d = uint32(d), d>>32
		}
		if d != 0 {
			return k, false
		}
	}
	for i, l := range limbs {
		binary.BigEndian.PutUint32(k[4*i:], l)
	}
	zeros := 0
	for zeros < len(k) && k[zeros] == 0 {
		zeros++
	}
	return k, zeros == ones
}

// text is the base58 form. It runs for every account that gained in a block, so the
// number is divided by five digits at a time: 58⁵ fits 32 bits.
func (k key) text() chain.Address {
	var out [50]byte
	at := encode58(out[:], k[:])
	return chain.Address(out[at:])
}

// encode58 writes base58 of a multiple of 4 bytes, at most 64, to the end of out and
// returns where it begins.
func encode58(out, b []byte) int {
	var room [16]uint32
	limbs := room[:len(b)/4]
	for i := range limbs {
		limbs[i] = binary.BigEndian.Uint32(b[4*i:])
	}
	const step = 58 * 58 * 58 * 58 * 58
	at := len(out)
	for len(limbs) > 0 {
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
		for len(limbs) > 0 && limbs[0] == 0 {
			limbs = limbs[1:]
		}
	}
	for at < len(out) && out[at] == alphabet[0] {
		at++
	}
	for i := 0; i < len(b) && b[i] == 0; i++ {
		at--
		out[at] = alphabet[0]
	}
	return at
}

// signatureText is a transaction's id.
func signatureText(s []byte) string {
	var out [95]byte
	at := encode58(out[:], s)
	return string(out[at:])
}

var format, _ = address.For("SOL")

// ParseAddress accepts base58 of a key that is on the curve, as chain/address does: an
// address off it is a token account or a program's, which no key signs for.
func (c *Client) ParseAddress(s string) (chain.Address, error) {
	k, err := c.own(chain.Address(s))
	return k.text(), err
}

func (c *Client) own(a chain.Address) (key, error) {
	_, err := format.Parse(string(a))
	k, ok := parseKey(string(a))
	if err != nil || !ok {
		return key{}, &chain.AddressError{Network: c.o.Network, Address: string(a), Reason: reason(err)}
	}
	return k, nil
}

// ParseVault accepts base58 of 32 bytes that are off the curve: the address of a program's account.
func (c *Client) ParseVault(s string) (chain.Address, error) {
	k, ok := parseKey(s)
	if _, err := format.Parse(s); err == nil || !ok {
		return "", &chain.AddressError{Network: c.o.Network, Address: s, Reason: "is no address of 32 bytes off the curve"}
	}
	return k.text(), nil
}

// anyKey is the key of anybody's address, which may be a vault's.
func (c *Client) anyKey(a chain.Address) (key, error) {
	k, err := c.own(a)
	if err == nil {
		return k, nil
	}
	if k, ok := parseKey(string(a)); ok {
		return k, nil
	}
	return k, err
}

func reason(err error) string {
	if e, ok := err.(*chain.AddressError); ok { //nolint:errorlint // Parse returns it bare
		return e.Reason
	}
	return "not base58 of 32 bytes"
}

// AddressOf is the address of an ed25519 key.
func (c *Client) AddressOf(pub chain.PublicKey) (chain.Address, error) {
	if len(pub) != len(key{}) {
		return "", fmt.Errorf("solana: not an ed25519 public key of 32 bytes")
	}
	return c.ParseAddress(string(key(pub).text()))
}

// associated is the owner's own token account of a mint.
func associated(owner, program, mint key) key {
	a, _, err := sdk.FindProgramAddress([][]byte{owner[:], program[:], mint[:]}, sdk.PublicKey(ataProgram))
	if err != nil {
		return key{} // one in 2^255 owners has none
	}
	return key(a)
}
