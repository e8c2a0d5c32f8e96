package stellar

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// price is what Fee.Params holds: stroops.
type price struct {
	Fee int64 `json:"fee"`
}

// maxFee is the most that a transaction can name.
const maxFee = 1<<32 - 1

// raised is the bid of an attempt: a quarter more than the one before. Nodes that
// still have the one before take no other in its place, whatever it pays; by then its
// time is over.
func (p *price) raised(attempt int) int64 {
	fee := p.Fee
	for range min(attempt-1, 100) {
		if fee > maxFee {
			break
		}
		fee += fee/4 + 1
	}
	return fee
}

// EstimateFee asks the node what was paid in the last ledgers: Cost is what most
// did, Max the bid, above what all but one in a hundred did, with
// Options.FeeMargin. The network takes what the cheapest of a full ledger bids. The
// error wraps ErrTooDear above Options.MaxFee.
func (c *Client) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	if in.Network != c.o.Network || in.Currency != c.native.Code {
		return chain.Fee{}, rejected("%q on %q is not of %s", in.Currency, in.Network, c.o.Network)
	}
	if err := c.rightChain(ctx); err != nil {
		return chain.Fee{}, err
	}
	var answer struct {
		Base    string `json:"last_ledger_base_fee"`
		Charged struct {
			Mode string `json:"mode"`
			P99  string `json:"p99"`
		} `json:"fee_charged"`
	}
	if err := c.node.ask(ctx, "/fee_stats", &answer); err != nil {
		return chain.Fee{}, err
	}
	var all [3]int64
	for i, s := range []string{answer.Base, answer.Charged.Mode, answer.Charged.P99} {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n <= 0 || n > maxFee {
			return chain.Fee{}, fmt.Errorf("%w: its fees are missing or absurd", chain.ErrNode)
		}
		all[i] = n
	}
	most := max(all[0], all[1], all[2])
	p := price{Fee: most + (most*c.o.FeeMargin+99)/100}
	if err := c.affordable(p.Fee, 0); err != nil {
		return chain.Fee{}, err
	}
	cost, err := c.units(max(all[0], all[1]), ledger.Up)
	if err != nil {
		return chain.Fee{}, err
	}
	bid, err := c.units(p.Fee, ledger.Up)
	if err != nil {
		return chain.Fee{}, err
	}
	raw, err := json.Marshal(p)
	return chain.Fee{Currency: c.native.Code, Cost: cost, Max: bid, Params: raw}, err
}

// affordable holds a fee against Options.MaxFee and what an intent allows, 0 = no
// bound of its own.
func (c *Client) affordable(fee int64, limit ledger.Amount) error {
	if fee > c.o.MaxFee || fee > maxFee {
		return fmt.Errorf("%w: %d stroops, Options.MaxFee is %d", chain.ErrTooDear, fee, c.o.MaxFee)
	}
	cost, err := c.units(fee, ledger.Up)
	if err == nil && limit > 0 && cost > limit {
		err = &chain.DearError{Need: cost, Most: limit}
	}
	return err
}
