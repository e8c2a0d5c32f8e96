package xrp

import (
	"errors"
	"fmt"
	"strconv"

	btcaddr "github.com/btcsuite/btcd/address/v2"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
)

// account is an AccountID.
type account [20]byte

var format, _ = address.For("XRP")

// ParseAddress accepts classic addresses and X-addresses of the main network, as
// chain/address does. An X-address without a tag becomes the classic address.
func (c *Client) ParseAddress(s string) (chain.Address, error) {
	info, err := c.parse(s)
	return info.Canonical, err
}

func (c *Client) parse(s string) (address.Info, error) {
	info, err := format.Parse(s)
	var bad *chain.AddressError
	if errors.As(err, &bad) {
		return info, &chain.AddressError{Network: c.o.Network, Address: bad.Address, Reason: bad.Reason}
	}
	return info, err
}

// ed25519Prefix makes 33 bytes of an Ed25519 key, as the ledger writes it.
const ed25519Prefix = 0xed

// signingKey is how the ledger writes a key of 33 bytes (secp256k1) or 32
// (Ed25519).
func signingKey(pub chain.PublicKey) ([]byte, error) {
	if len(pub) == 32 {
		return append([]byte{ed25519Prefix}, pub...), nil
	}
	if _, err := secp256k1.ParsePubKey(pub); err != nil || len(pub) != 33 {
		return nil, errors.New("xrp: not a compressed secp256k1 or Ed25519 public key")
	}
	return pub, nil
}

// AddressOf is the classic address of a key: 33 bytes of secp256k1, or 32 of
// Ed25519.
func (c *Client) AddressOf(pub chain.PublicKey) (chain.Address, error) {
	key, err := signingKey(pub)
	if err != nil {
		return "", err
	}
	return accountOf(key).text(), nil
}

func accountOf(signingKey []byte) account { return account(btcaddr.Hash160(signingKey)) }

// text writes the classic address. chain/address makes it of the first 20 bytes.
func (a account) text() chain.Address {
	var body [32]byte
	copy(body[:], a[:])
	return format.Make(body)
}

// own reads a classic address, or an X-address for its account.
func (c *Client) own(a chain.Address) (account, *uint64, error) {
	info, err := c.parse(string(a))
	if err != nil {
		return account{}, nil, err
	}
	id, ok := address.XRPAccount(info.Base)
	if !ok {
		return account{}, nil, fmt.Errorf("xrp: %s is no classic address", info.Base)
	}
	return id, info.Tag, nil
}

// Untag takes an X-address apart: the account, and its tag in digits.
func (c *Client) Untag(a chain.Address) (account chain.Address, memo string, ok bool) {
	info, err := c.parse(string(a))
	if err != nil || info.Tag == nil {
		return "", "", false
	}
	return info.Base, strconv.FormatUint(*info.Tag, 10), true
}

// Multiplex is the X-address of an account and a destination tag.
func (c *Client) Multiplex(a chain.Address, id uint32) (chain.Address, error) {
	who, tag, err := c.own(a)
	if err != nil || tag != nil {
		return "", fmt.Errorf("xrp: %s is no classic address: %w", a, err)
	}
	return tagged(who, id), nil
}

func tagged(a account, tag uint32) chain.Address { return address.XAddress(a, tag) }
