package evm

import (
	"fmt"
	"sync"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// ParseAddress accepts 0x and 40 hex digits: with a right EIP-55 checksum, or
// all in one case. It returns the checksummed form. A wrong checksum, a missing
// 0x, space, names and ICAP are refused. The zero address is an address; that
// nobody should be paid there is for withdrawals to say.
func (c *Client) ParseAddress(s string) (chain.Address, error) {
	a, err := parseAddress(c.o.Network, s)
	if err != nil {
		return "", err
	}
	return checksum(a), nil
}

// AddressOf is the address of a compressed secp256k1 key.
func (c *Client) AddressOf(pub chain.PublicKey) (chain.Address, error) {
	k, err := crypto.DecompressPubkey(pub)
	if err != nil {
		return "", fmt.Errorf("evm: not a compressed secp256k1 public key: %w", err)
	}
	return checksum(crypto.PubkeyToAddress(*k)), nil
}

func parseAddress(n chain.Network, s string) (common.Address, error) {
	refuse := func(reason string) (common.Address, error) {
		return common.Address{}, &chain.AddressError{Network: n, Address: s, Reason: reason}
	}
	if len(s) != 42 || s[0] != '0' || s[1] != 'x' {
		return refuse("must be 0x and 40 hex digits")
	}
	var a common.Address
	if !transport.Unhex(a[:], []byte(s[2:])) {
		return refuse("must be 0x and 40 hex digits")
	}
	var lower, upper bool
	for _, d := range []byte(s[2:]) {
		lower = lower || d >= 'a'
		upper = upper || d >= 'A' && d <= 'F'
	}
	if lower && upper && string(checksum(a)) != s {
		return refuse("wrong EIP-55 checksum: a letter is mistyped")
	}
	return a, nil
}

// hasher holds what a checksum needs besides its result.
type hasher struct {
	state crypto.KeccakState
	out   [42]byte
	sum   [32]byte
}

var hashers = sync.Pool{New: func() any { return &hasher{state: crypto.NewKeccakState()} }}

// checksum is the EIP-55 form. It runs for every log of a block, so it takes
// one allocation.
func checksum(a common.Address) chain.Address {
	const digits = "0123456789abcdef"
	h := hashers.Get().(*hasher)
	defer hashers.Put(h)
	out, sum := &h.out, &h.sum
	out[0], out[1] = '0', 'x'
	for i, b := range a {
		out[2+2*i], out[3+2*i] = digits[b>>4], digits[b&15]
	}
	h.state.Reset()
	_, _ = h.state.Write(out[2:])
	_, _ = h.state.Read(sum[:])
	for i := range 40 {
		nibble := sum[i/2] >> 4
		if i%2 == 1 {
			nibble = sum[i/2] & 15
		}
		if out[2+i] >= 'a' && nibble >= 8 {
			out[2+i] -= 'a' - 'A'
		}
	}
	return chain.Address(out[:])
}

// own turns an address that this client wrote back into bytes.
func (c *Client) own(a chain.Address) (common.Address, error) {
	return parseAddress(c.o.Network, string(a))
}
