package stellar

import (
	"errors"
	"fmt"
	"strconv"

	"filippo.io/edwards25519"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
)

// account is the key that an account's address is.
type account [32]byte

func (a account) text() chain.Address { return address.StellarAccount(a) }

var format, _ = address.For("XLM")

// ParseAddress accepts accounts G… and muxed accounts M…, as chain/address does.
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

// AddressOf is the account of an Ed25519 key of 32 bytes.
func (c *Client) AddressOf(pub chain.PublicKey) (chain.Address, error) {
	if len(pub) != 32 {
		return "", errors.New("stellar: not an Ed25519 public key")
	}
	if _, err := new(edwards25519.Point).SetBytes(pub); err != nil {
		return "", errors.New("stellar: not an Ed25519 public key")
	}
	return account(pub).text(), nil
}

// own reads an account, or a muxed one for its account and id.
func (c *Client) own(a chain.Address) (account, *uint64, error) {
	info, err := c.parse(string(a))
	if err != nil {
		return account{}, nil, err
	}
	key, ok := address.StellarKey(info.Base)
	if !ok {
		return account{}, nil, fmt.Errorf("stellar: %s is no account", info.Base)
	}
	return key, info.Tag, nil
}

// Untag takes a muxed account apart: the account, and its id in digits.
func (c *Client) Untag(a chain.Address) (account chain.Address, memo string, ok bool) {
	info, err := c.parse(string(a))
	if err != nil || info.Tag == nil {
		return "", "", false
	}
	return info.Base, strconv.FormatUint(*info.Tag, 10), true
}

// Multiplex is the muxed account of an account and an id.
func (c *Client) Multiplex(a chain.Address, id uint32) (chain.Address, error) {
	who, tag, err := c.own(a)
	if err != nil || tag != nil {
		return "", fmt.Errorf("stellar: %s is no account G…: %w", a, err)
	}
	return address.StellarMuxed(who, uint64(id)), nil
}

// number reads an id as it is written: no second writing of it.
func number(memo string) (uint64, bool) {
	n, err := strconv.ParseUint(memo, 10, 64)
	return n, err == nil && strconv.FormatUint(n, 10) == memo
}
