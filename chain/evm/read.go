package evm

import (
	"context"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/shopspring/decimal"
)

// The selectors of the calls that we make or sign.
var (
	selTransfer  = [4]byte{0xa9, 0x05, 0x9c, 0xbb} // transfer(address,uint256)
	selBalanceOf = [4]byte{0x70, 0xa0, 0x82, 0x31} // balanceOf(address)
	selDecimals  = [4]byte{0x31, 0x3c, 0xe5, 0x67} // decimals()
	selL1Fee     = [4]byte{0x49, 0x94, 0x8e, 0x0e} // getL1Fee(bytes)

	selOperatorFee = [4]byte{0x27, 0x5a, 0xed, 0xd2} // getOperatorFee(uint256)
)

func balanceOf(contract, owner common.Address, block any) *transport.Call {
	data := make([]byte, 36)
	copy(data, selBalanceOf[:])
	copy(data[16:], owner[:])
	return transport.NewCall("eth_call", map[string]any{"to": contract, "data": hexutil.Bytes(data)}, block)
}

// Balance reads what an address holds at the head, exactly, in whole coins.
func (c *Client) Balance(ctx context.Context, currency string, a chain.Address) (decimal.Decimal, error) {
	cur, owner, err := c.holding(currency, a)
	if err != nil {
		return decimal.Zero, err
	}
	id, k := transport.NewCall("eth_chainId"), transport.NewCall("eth_getBalance", owner, "latest")
	if !cur.Native() {
		k = balanceOf(common.HexToAddress(cur.Contract), owner, "latest")
	}
	if err := c.node.Do(ctx, id, k); err != nil {
		return decimal.Zero, err
	}
	if err := c.rightChain(id); err != nil {
		return decimal.Zero, err
	}
	v, err := quantityOf(k)
	if !cur.Native() {
		v, err = wordOf(k)
	}
	if err != nil {
		return decimal.Zero, err
	}
	return coins(v, cur.Decimals), nil
}

// Balances implements chain.ManyBalancer. It never asks for an address alone.
func (c *Client) Balances(ctx context.Context, currency string, list []chain.Address) ([]*decimal.Decimal, error) {
	owners := make([]common.Address, len(list))
	var cur *chain.Currency
	for i, a := range list {
		var err error
		if cur, owners[i], err = c.holding(currency, a); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	id := transport.NewCall("eth_chainId")
	if err := c.node.Do(ctx, id); err != nil {
		return nil, err
	}
	if err := c.rightChain(id); err != nil {
		return nil, err
	}
	out := make([]*decimal.Decimal, len(list))
	if cur.Native() {
		got, err := c.manyCoins(ctx, owners)
		if err != nil {
			return nil, err
		}
		for i, v := range got {
			d := coins(v, cur.Decimals)
			out[i] = &d
		}
		return out, nil
	}
	all := []asked{{block: "latest", said: map[holder]said{}}}
	token := common.HexToAddress(cur.Contract)
	for _, o := range owners {
		all[0].holders = append(all[0].holders, holder{token, o})
	}
	if err := c.manyHeld(ctx, all, []int{0}); err != nil {
		return nil, err
	}
	for i, h := range all[0].holders {
		if v := all[0].said[h].n; v != nil {
			d := coins(v, cur.Decimals)
			out[i] = &d
		}
	}
	return out, nil
}

func (c *Client) holding(currency string, a chain.Address) (*chain.Currency, common.Address, error) {
	cur, err := c.o.Registry.Currency(currency)
	if err != nil {
		return nil, common.Address{}, err
	}
	if cur.Network != c.o.Network {
		return nil, common.Address{}, fmt.Errorf("%w: %s is on %s, not on %s", chain.ErrCurrency, currency, cur.Network, c.o.Network)
	}
	owner, err := c.own(a)
	return cur, owner, err
}

// Nonce reads the next nonce of an address at the head, pending not counted.
func (c *Client) Nonce(ctx context.Context, a chain.Address) (uint64, error) {
	owner, err := c.own(a)
	if err != nil {
		return 0, err
	}
	id, k := transport.NewCall("eth_chainId"), transport.NewCall("eth_getTransactionCount", owner, "latest")
	if err := c.node.Do(ctx, id, k); err != nil {
		return 0, err
	}
	if err := c.rightChain(id); err != nil {
		return 0, err
	}
	v, err := quantityOf(k)
	if err != nil {
		return 0, err
	}
	if !v.IsInt64() {
		return 0, fmt.Errorf("%w: a nonce of %s", chain.ErrNode, v)
	}
	return v.Uint64(), nil
}
