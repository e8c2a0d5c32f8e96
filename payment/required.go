package payment

import (
	"context"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
)

// Required is how many confirmations a payment needs by what is due or has come for it,
// whichever is more, at the price of its creation. 0 for a currency that is not configured any
// more. Progress also knows what each deposit was given when it came.
func (s *Service) Required(p *Payment) int64 {
	c := s.currency(p.Currency)
	if c == nil {
		return 0
	}
	return c.Needs(max(p.Due, p.Live).Decimal(c.Scale).Mul(p.USDRate), p.USDRate.IsPositive()).Confirmations
}

// needed is how many confirmations a deposit needs. given is what incoming has stored for it, 0
// while it is in no block; p may have no id.
func needed(c *chain.Currency, p *Payment, exact decimal.Decimal, given int64) int64 {
	if c == nil || len(c.Steps) == 0 {
		return confirmationsOf(c)
	}
	if given > 0 {
		return given
	}
	known := p.Currency == c.Code && p.USDRate.IsPositive()
	return c.Needs(exact.Mul(p.USDRate), known).Confirmations
}

func confirmationsOf(c *chain.Currency) int64 {
	if c == nil {
		return 0
	}
	return c.Confirmations
}

// given reads what incoming has stored of the deposits in blocks whose currency has steps: how
// many confirmations each needs, by the id of the deposit.
func (s *Service) given(ctx context.Context, deposits []*Deposit) (map[string]int64, error) {
	keys := map[chain.Network][]string{}
	for _, d := range deposits {
		if c := s.currency(d.Currency); c != nil && len(c.Steps) > 0 && d.live() && d.Height > 0 {
			n := chain.Network(d.Network)
			keys[n] = append(keys[n], incoming.Key(d.Tx, d.Ordinal))
		}
	}
	out := map[string]int64{}
	for n, of := range keys {
		found, err := incoming.Required(ctx, s.c.Store, n, of...)
		if err != nil {
			return nil, err
		}
		for key, required := range found {
			out[string(n)+"/"+key] = required
		}
	}
	return out, nil
}

// givenTo is given of the counted deposits of a page of payments.
func (s *Service) givenTo(ctx context.Context, of map[string][]*entry) (map[string]int64, error) {
	var all []*Deposit
	for _, entries := range of {
		for _, e := range entries {
			if e.d.Role.counted() {
				all = append(all, &e.d)
			}
		}
	}
	return s.given(ctx, all)
}
