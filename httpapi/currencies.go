package httpapi

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/shopspring/decimal"
	"golang.org/x/sync/errgroup"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
)

type currenciesInput struct {
	Full       bool `query:"full" default:"false"`
	MinMax     bool `query:"min_max" default:"false"`
	IncludeUSD bool `query:"include_usd" default:"false" about:"Needs min_max=true."`
	Withdrawal bool `query:"withdrawal" default:"false" about:"Only currencies of which the master account has an available balance, with the limits of withdrawals."`
}

// currencyEntry is one currency in full. A member that was not asked for is left
// out; null is a price that there is not now.
type currencyEntry struct {
	Currency     string   `json:"currency"`
	Name         string   `json:"name,omitempty"`
	Token        string   `json:"token,omitempty" about:"In lower case."`
	Blockchain   string   `json:"blockchain,omitempty" about:"In lower case."`
	IsPopular    *bool    `json:"is_popular,omitempty"`
	IsStable     *bool    `json:"is_stable,omitempty"`
	MinAmount    string   `json:"min_amount,omitempty" format:"decimal"`
	MaxAmount    string   `json:"max_amount,omitempty" format:"decimal"`
	MinAmountUSD **string `json:"min_amount_usd,omitempty" format:"decimal" about:"Rounded up to 2 places; null where there is no price now."`
	MaxAmountUSD **string `json:"max_amount_usd,omitempty" format:"decimal" about:"Rounded down to 2 places; null where there is no price now."`
}

type currenciesView struct {
	Currencies any `json:"currencies" about:"Codes, or with full or min_max objects of currency; with full also name, token, blockchain (both in lower case), is_popular, is_stable; with min_max also min_amount, max_amount; with include_usd also min_amount_usd, max_amount_usd."`
}

// bounded is a currency with the limits that a list shows.
type bounded struct {
	*chain.Currency
	least, most decimal.Decimal
}

func (h *Handler) listCurrencies(ctx context.Context, c *Call, in currenciesInput) (currenciesView, error) {
	if in.IncludeUSD && !in.MinMax {
		return currenciesView{}, bad("include_usd", "needs min_max=true")
	}
	list, err := h.currencies(ctx, c.Tenant(), in.Withdrawal)
	if err != nil {
		return currenciesView{}, err
	}
	if !in.Full && !in.MinMax {
		codes := make([]string, len(list))
		for i, b := range list {
			codes[i] = b.Code
		}
		return currenciesView{codes}, nil
	}
	var usd map[pair]rates.Rate
	if in.IncludeUSD {
		if usd, err = h.prices(ctx, tokensOf(list), []string{"USD"}); err != nil {
			return currenciesView{}, err
		}
	}
	entries := make([]currencyEntry, len(list))
	for i, b := range list {
		entries[i] = b.entry(in, usd)
	}
	return currenciesView{entries}, nil
}

// currencies lists what payments can be made in, or what can be paid out now.
func (h *Handler) currencies(ctx context.Context, tenant string, spendable bool) ([]bounded, error) {
	var out []bounded
	if spendable {
		list, err := h.app.Withdrawals.AvailableCurrencies(ctx, tenant)
		for _, s := range list {
			if s.Max <= 0 {
				s.Max = ledger.MaxCredit
			}
			out = append(out, bounded{s.Currency, s.Currency.Decimal(s.Min), s.Currency.Decimal(s.Max)})
		}
		return out, err
	}
	var all []*chain.Currency
	for _, code := range h.cfg.Registry.Codes() {
		c, err := h.cfg.Registry.Currency(code)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	least, err := h.app.Payments.Minimums(ctx, all...)
	for _, c := range all {
		out = append(out, bounded{c, least[c.Code], c.Most()})
	}
	return out, err
}

func (b *bounded) entry(in currenciesInput, usd map[pair]rates.Rate) currencyEntry {
	e := currencyEntry{Currency: b.Code}
	if in.Full {
		e.Name, e.Token, e.Blockchain = b.Name, strings.ToLower(b.Token), strings.ToLower(string(b.Network))
		e.IsPopular, e.IsStable = &b.Popular, &b.Stable
	}
	if !in.MinMax {
		return e
	}
	var leastUSD, mostUSD *string
	e.MinAmount, e.MaxAmount = ledger.FixedString(b.least, cryptoPlaces), ledger.FixedString(b.most, cryptoPlaces)
	if !in.IncludeUSD {
		return e
	}
	e.MinAmountUSD, e.MaxAmountUSD = &leastUSD, &mostUSD
	if r, ok := usd[pair{b.Token, "USD"}]; ok {
		leastUSD = orNull(ledger.FixedString(b.least.Mul(r.Price).RoundUp(fiatPlaces), fiatPlaces))
		mostUSD = orNull(ledger.FixedString(b.most.Mul(r.Price), fiatPlaces))
	}
	return e
}

func tokensOf(list []bounded) []string {
	var out []string
	for _, b := range list {
		out = append(out, b.Token)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pair is a token and a fiat currency.
type pair struct{ token, fiat string }

// pricesAtOnce bounds how many prices are asked for at the same time.
const pricesAtOnce = 8

// prices asks for every pair at once. One that nobody can tell now is left out.
func (h *Handler) prices(ctx context.Context, tokens, fiats []string) (map[pair]rates.Rate, error) {
	var (
		mu    sync.Mutex
		group errgroup.Group
		out   = map[pair]rates.Rate{}
	)
	group.SetLimit(pricesAtOnce)
	for _, token := range tokens {
		for _, fiat := range fiats {
			group.Go(func() error {
				r, err := h.cfg.Rates.Rate(ctx, token, fiat)
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					out[pair{token, fiat}] = r
				}
				return nil
			})
		}
	}
	_ = group.Wait() // none of them has an error
	return out, ctx.Err()
}
