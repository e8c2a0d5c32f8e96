package simulation

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
	case "absurd":
		out.Price = price.Mul(r.wild)
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

// wilder lets the source of prices be far off, for every token at once: below or above
// all that the operator has bounded. Nothing may be priced, quoted, moved or paid out by it.
func (r *run) wilder() string {
	if r.quote != "" {
		r.quote = ""
		return "prices are true again"
	}
	r.quote, r.wild = "absurd", decimal.New(1, pick(r.rng, []int32{-4, -3, -2, 2, 3, 4}))
	return "prices times " + r.wild.String()
}

// bounds are those of every token in a world with absurd prices: wider than prices move.
func (r *run) bounds() map[string]rates.Bound {
	if r.rate[Absurd] == 0 {
		return nil
	}
	out := map[string]rates.Bound{}
	for token, price := range quiet {
		p := dec(price)
		out[token] = rates.Bound{Min: p.Div(decimal.New(5, 0)), Max: p.Mul(decimal.New(5, 0))}
	}
	return out
}
