package utxo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// Balance is what an address holds at the head. Core reads its whole set of
// unspent outputs for it (scantxoutset: minutes on a main network, one at a
// time); btcd needs --addrindex. A node that offers neither is
// errors.ErrUnsupported: Dogecoin Core does not.
func (c *Client) Balance(ctx context.Context, currency string, a chain.Address) (decimal.Decimal, error) {
	if currency != c.native.Code {
		return decimal.Zero, fmt.Errorf("utxo: %w: %q on %s", chain.ErrCurrency, currency, c.o.Network)
	}
	if _, err := c.ParseAddress(string(a)); err != nil {
		return decimal.Zero, err
	}
	if _, err := c.height(ctx); err != nil {
		return decimal.Zero, err
	}
	if c.o.Dialect == Btcd {
		return c.indexed(ctx, a)
	}
	k := transport.NewCall("scantxoutset", "start", []string{"addr(" + string(a) + ")"})
	if err := c.node.Do(ctx, k); err != nil {
		return decimal.Zero, err
	}
	if unsupported(k.Err) {
		return decimal.Zero, fmt.Errorf("utxo: %s: the node cannot tell balances: %w", c.o.Network, errors.ErrUnsupported)
	}
	var got struct {
		Success bool        `json:"success"`
		Total   json.Number `json:"total_amount"`
	}
	if err := k.Into(&got); err != nil {
		return decimal.Zero, err
	}
	units, err := units(string(got.Total))
	if err != nil || !got.Success {
		return decimal.Zero, fmt.Errorf("%w: scantxoutset did not end well", chain.ErrNode)
	}
	return decimal.New(units, -8), nil
}

// indexed sums what btcd's index of addresses says was paid to one in blocks,
// less what was spent of it there.
func (c *Client) indexed(ctx context.Context, a chain.Address) (decimal.Decimal, error) {
	const page = 100
	got, spent := map[string]int64{}, map[string]bool{}
	for skip := 0; ; skip += page {
		k := transport.NewCall("searchrawtransactions", string(a), 1, skip, page, 0, false)
		if err := c.node.Do(ctx, k); err != nil {
			return decimal.Zero, err
		}
		if unsupported(k.Err) || transport.Replied(k.Err, "address index") {
			return decimal.Zero, fmt.Errorf("utxo: %s: the node keeps no index of addresses (--addrindex): %w", c.o.Network, errors.ErrUnsupported)
		}
		if transport.Replied(k.Err, "no txns available", "no information available") {
			break
		}
		var list []txInfo
		if err := k.Into(&list); err != nil {
			return decimal.Zero, err
		}
		for _, i := range list {
			if i.Confirmations < 1 {
				continue
			}
			t, err := c.decode(&i)
			if err != nil {
				return decimal.Zero, err
			}
			c.tally(&t, a, got, spent)
		}
		if len(list) < page {
			break
		}
	}
	var sum int64
	for o, v := range got {
		if !spent[o] {
			sum += v
		}
	}
	return decimal.New(sum, -8), nil
}

func (c *Client) tally(t *tx, a chain.Address, got map[string]int64, spent map[string]bool) {
	for _, o := range t.spends() {
		spent[o] = true
	}
	r := cursor{b: t.outs}
	for i := range t.nOut {
		value, script := r.output()
		if to, ok := c.address(script); ok && to == a {
			got[fmt.Sprintf("%s:%d", hexHash(t.id), i)] = value
		}
	}
}

// units reads a JSON number of coins as units of 10⁻⁸, exactly.
func units(s string) (int64, error) {
	if len(s) == 0 || len(s) > 40 {
		return 0, errors.New("not an amount")
	}
	d, err := decimal.NewFromString(s)
	if err != nil || d.Exponent() < -30 || d.Exponent() > 30 {
		return 0, errors.New("not an amount")
	}
	d = d.Shift(8)
	if !d.IsInteger() || d.Abs().GreaterThan(decimal.New(1, 19-1)) {
		return 0, errors.New("not an amount")
	}
	return d.IntPart(), nil
}
