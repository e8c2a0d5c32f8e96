package xrp

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// price is what Fee.Params holds: drops.
type price struct {
	Fee int64 `json:"fee"`
}

// raised is the bid of an attempt: a quarter more than the one before.
func (p *price) raised(attempt int) int64 {
	fee := p.Fee
	for range min(attempt-1, 100) {
		if fee > maxDrops {
			break
		}
		fee += fee/4 + 1
	}
	return fee
}

// EstimateFee asks the node what opens the current ledger now, which rises with
// load, and adds Options.FeeMargin. The network takes just what is bid, so Max is
// Cost. The fee is the same whoever pays whom. The error wraps ErrTooDear above
// Options.MaxFee.
func (c *Client) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	if in.Network != c.o.Network || in.Currency != c.native.Code {
		return chain.Fee{}, rejected("%q on %q is not of %s", in.Currency, in.Network, c.o.Network)
	}
	if err := c.rightChain(ctx); err != nil {
		return chain.Fee{}, err
	}
	var answer struct {
		Drops struct {
			Base string `json:"base_fee"`
			Open string `json:"open_ledger_fee"`
		} `json:"drops"`
	}
	if err := c.node.ask(ctx, "fee", nil, &answer); err != nil {
		return chain.Fee{}, err
	}
	most := int64(0)
	for _, s := range []string{answer.Drops.Base, answer.Drops.Open} {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n <= 0 || n > maxDrops {
			return chain.Fee{}, fmt.Errorf("%w: its fees are missing or absurd", chain.ErrNode)
		}
		most = max(most, n)
	}
	p := price{Fee: most + (most*c.o.FeeMargin+99)/100}
	if err := c.affordable(p.Fee, 0); err != nil {
		return chain.Fee{}, err
	}
	cost, err := c.units(uint64(p.Fee), ledger.Up) //nolint:gosec // positive
	if err != nil {
		return chain.Fee{}, err
	}
	raw, err := json.Marshal(p)
	return chain.Fee{Currency: c.native.Code, Cost: cost, Max: cost, Params: raw}, err
}

// affordable holds a fee against Options.MaxFee and what an intent allows, 0 =
// no bound of its own.
func (c *Client) affordable(fee int64, limit ledger.Amount) error {
	if fee > c.o.MaxFee {
		return fmt.Errorf("%w: %d drops, Options.MaxFee is %d", chain.ErrTooDear, fee, c.o.MaxFee)
	}
	cost, err := c.units(uint64(fee), ledger.Up) //nolint:gosec // positive
	if err != nil {
		return err
	}
	if limit > 0 && cost > limit {
		return &chain.DearError{Need: cost, Most: limit}
	}
	return nil
}
