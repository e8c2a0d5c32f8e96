package cryptopay

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// StatsPeriod is how far back statistics reach where no beginning is asked for.
const StatsPeriod = 30 * 24 * time.Hour

// StatsFilter selects what statistics are about: what was created in
// From ≤ t < Before. Before defaults to now, From to the whole second that is
// StatsPeriod before it.
type StatsFilter struct {
	From     time.Time
	Before   time.Time
	Currency string // combined code, "" = all
}

// Stats are counts and volumes of a tenant's payments and withdrawals.
//
// A volume is money that moved or is on its way: what was received for a
// payment and is still there, and the requested amount of a withdrawal that did
// not fail and was not cancelled. What was only asked for has none. So the
// volumes of statuses, and of currencies, add up to the whole.
type Stats struct {
	From        time.Time
	Before      time.Time
	Payments    StatsSide
	Withdrawals StatsSide
	Currencies  []CurrencyStats // by code; those that something was created in
}

// Volume is how many, and what they come to in USD, exactly: payments at the
// rate that was locked when each was created, withdrawals at the present rate.
// Nil where something in it has no rate now.
type Volume struct {
	Count int64
	USD   *decimal.Decimal
}

// StatsSide is one side of Stats.
type StatsSide struct {
	Volume
	ByStatus map[string]Volume // as shown; statuses that none has are left out
}

// CurrencyStats are those of one currency. Amounts are units of 10^-Scale.
type CurrencyStats struct {
	Currency    string
	Scale       uint8
	Payments    CoinVolume
	Withdrawals CoinVolume
}

// CoinVolume is a Volume with its coins.
type CoinVolume struct {
	Volume
	Amount ledger.Amount
}

// Stats reads every payment and withdrawal of the period, a page at a time: its
// cost is that of the rows in the period, its memory that of a page. Errors:
// *InvalidError.
func (a *App) Stats(ctx context.Context, tenant string, f StatsFilter) (Stats, error) {
	if f.Before.IsZero() {
		f.Before = a.cfg.Clock.Now().UTC().Truncate(time.Millisecond).Add(time.Millisecond)
	}
	if f.From.IsZero() {
		f.From = f.Before.Add(-StatsPeriod).Truncate(time.Second)
	}
	where, err := a.conditions(&TransactionFilter{Currency: f.Currency, From: f.From, Before: f.Before})
	if err != nil {
		return Stats{}, err
	}
	t := tally{app: a, cells: map[cellKey]*cell{}}
	for rows, err := range a.pages(ctx, tenant, where) {
		if err == nil {
			err = t.add(ctx, tenant, rows)
		}
		if err != nil {
			return Stats{}, err
		}
	}
	if err := t.price(ctx); err != nil {
		return Stats{}, err
	}
	out := Stats{From: f.From, Before: f.Before}
	return out, t.sum(&out)
}

// cellKey is the finest kind of sum.
type cellKey struct{ kind, status, currency string }

type cell struct {
	count  int64
	amount ledger.Amount
	usd    *decimal.Decimal // nil = no price
}

// tally adds rows up.
type tally struct {
	app   *App
	cells map[cellKey]*cell
}

func (t *tally) cell(kind, status, currency string) *cell {
	k := cellKey{kind, status, currency}
	if t.cells[k] == nil {
		t.cells[k] = &cell{usd: &decimal.Decimal{}}
	}
	return t.cells[k]
}

// add takes in one page: payments are read whole, as the history's line does not
// say what was received and at which rate.
func (t *tally) add(ctx context.Context, tenant string, rows []storage.Row) error {
	var ids []string
	for _, r := range rows {
		v := storage.Activities.Value(r)
		if v.Kind == storage.ActivityPayment {
			ids = append(ids, r.ID)
			continue
		}
		c := t.cell(v.Kind, v.Status, string(v.Currency))
		c.count++
		if v.Status == string(withdrawal.Failed) || v.Status == string(withdrawal.Cancelled) {
			continue
		}
		var err error
		if c.amount, err = c.amount.Add(v.Amount); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	payments, err := t.app.cfg.Store.Rows(ctx, payment.Payments.Table, storage.Keys(storage.Tenant(tenant), ids...)...)
	if err != nil {
		return err
	}
	for _, r := range payments {
		p := payment.Payments.Value(r)
		c := t.cell(storage.ActivityPayment, string(p.Shown()), p.Currency)
		c.count++
		if p.Live == 0 {
			continue
		}
		if c.amount, err = c.amount.Add(p.Live); err != nil {
			return err
		}
		*c.usd = c.usd.Add(p.Live.Decimal(uint8(p.Scale)).Mul(p.USDRate))
	}
	return nil
}

// price values withdrawals, asking for each currency's price once.
func (t *tally) price(ctx context.Context) error {
	known := map[string]*decimal.Decimal{}
	for k, c := range t.cells {
		if k.kind != storage.ActivityWithdrawal || c.amount == 0 {
			continue
		}
		if _, ok := known[k.currency]; !ok {
			price, err := t.app.presentPrice(ctx, k.currency)
			if err != nil {
				return err
			}
			known[k.currency] = price
		}
		scale, err := t.app.Scale(k.currency)
		if err != nil {
			return err
		}
		if c.usd = nil; known[k.currency] != nil {
			value := c.amount.Decimal(scale).Mul(*known[k.currency])
			c.usd = &value
		}
	}
	return nil
}

// presentPrice is the price of one coin in USD, nil where there is none now.
func (a *App) presentPrice(ctx context.Context, currency string) (*decimal.Decimal, error) {
	c, err := a.cfg.Registry.Currency(currency)
	var price decimal.Decimal
	if err == nil {
		price, err = fees{a}.price(ctx, c.Token)
	}
	if errors.Is(err, rates.ErrUnavailable) || errors.Is(err, chain.ErrCurrency) {
		return nil, nil
	}
	return &price, err
}

// sum makes the coarser sums of the cells.
func (t *tally) sum(out *Stats) error {
	sides := map[string]*StatsSide{storage.ActivityPayment: &out.Payments, storage.ActivityWithdrawal: &out.Withdrawals}
	currencies := map[string]*CurrencyStats{}
	for _, s := range sides {
		s.USD, s.ByStatus = &decimal.Decimal{}, map[string]Volume{}
	}
	for k, c := range t.cells {
		side := sides[k.kind]
		side.add(c)
		status, ok := side.ByStatus[k.status]
		if !ok {
			status.USD = &decimal.Decimal{}
		}
		status.add(c)
		side.ByStatus[k.status] = status
		of := currencies[k.currency]
		if of == nil {
			scale, err := t.app.Scale(k.currency)
			if err != nil {
				return err
			}
			of = &CurrencyStats{Currency: k.currency, Scale: scale}
			of.Payments.USD, of.Withdrawals.USD = &decimal.Decimal{}, &decimal.Decimal{}
			currencies[k.currency] = of
		}
		coins := &of.Payments
		if k.kind == storage.ActivityWithdrawal {
			coins = &of.Withdrawals
		}
		coins.add(c)
		var err error
		if coins.Amount, err = coins.Amount.Add(c.amount); err != nil {
			return err
		}
	}
	out.Currencies = make([]CurrencyStats, 0, len(currencies))
	for _, code := range slices.SortedFunc(maps.Keys(currencies), cmp.Compare[string]) {
		out.Currencies = append(out.Currencies, *currencies[code])
	}
	return nil
}

func (v *Volume) add(c *cell) {
	v.Count += c.count
	if v.USD == nil || c.usd == nil {
		v.USD = nil
		return
	}
	sum := v.USD.Add(*c.usd)
	v.USD = &sum
}
