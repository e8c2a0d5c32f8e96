package world

import (
	"context"
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain/rates"
)

// prices is a process's source of prices.
type prices struct{ p *process }

// Rate implements rates.Rates: honest, or as the nemesis has it.
func (x prices) Rate(_ context.Context, token, fiat string) (rates.Rate, error) {
	r := x.p.r
	price, ok := r.prices[token]
	if r.quote != "" && x.p.now != nil {
		x.p.now.struck = true
	}
	if typed, wrong := r.typed[token]; wrong && ok {
		price = typed
		if x.p.now != nil {
			x.p.now.struck = true
		}
	}
	if !ok || fiat != "USD" || r.quote == "silent" {
		return rates.Rate{}, fmt.Errorf("%w: %s in %s", rates.ErrUnavailable, token, fiat)
	}
	out := rates.Rate{Token: token, Fiat: fiat, Price: price, At: clock(x).Now()}
	switch r.quote {
	case "stale":
		out.At = out.At.Add(-2 * time.Hour)
	case "early":
		out.At = out.At.Add(2 * time.Hour)
	case "zero":
		out.Price = decimal.Decimal{}
	case "negative":
		out.Price = price.Neg()
	}
	return out, nil
}

func (r *run) misprice() string {
	r.quote = pick(r.rng, []string{"", "", "silent", "stale", "early", "zero", "negative"})
	return r.quote
}

// moved lets a price move by a little.
func (r *run) moved() {
	for _, token := range []string{"ETH", "BTC", "BNB", "AVAX", "TRX", "LTC", "DOGE"} {
		if p, ok := r.prices[token]; ok && r.rng.IntN(4) == 0 {
			r.setPrice(token, p.Mul(decimal.New(int64(970+r.rng.IntN(61)), -3)).Round(6))
		}
	}
}

func (r *run) setPrice(token string, p decimal.Decimal) {
	r.prices[token] = p
	r.quoted[token] = append(r.quoted[token], p)
}
