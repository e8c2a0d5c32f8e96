package report

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
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// statsPeriod is how far back statistics reach where no beginning is asked for.
const statsPeriod = 30 * 24 * time.Hour

// StatsFilter selects what statistics are about: what was created in
// From ≤ t < Before. Before defaults to now, From to the whole second that is
// 30 days before it.
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

// Stats adds whole days up from their counters, and reads the payments and withdrawals of
// the smaller parts of the days at both ends. Of a tenant whose counters do not hold yet it
// reads all of the period, a page at a time. Errors: *InvalidError.
func (s *Service) Stats(ctx context.Context, tenant string, f StatsFilter) (Stats, error) {
	if f.Before.IsZero() {
		f.Before = s.cfg.Now().UTC().Truncate(time.Millisecond).Add(time.Millisecond)
	}
	if f.From.IsZero() {
		f.From = f.Before.Add(-statsPeriod).Truncate(time.Second)
	}
	if err := s.Check(Filter{Currency: f.Currency}); err != nil {
		return Stats{}, err
	}
	t := summing{of: s, cells: map[cellKey]*cell{}}
	for _, side := range sides("", nil, f.Currency) {
		if err := t.add(ctx, storage.Tenant(tenant), side, &f); err != nil {
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

// summing adds counters and rows up.
type summing struct {
	of    *Service
	cells map[cellKey]*cell
}

// add adds one kind up.
func (t *summing) add(ctx context.Context, p storage.Partition, s side, f *StatsFilter) error {
	store, created := t.of.cfg.Store, tally.Range{From: f.From, Before: f.Before}
	cells, edges, counted, err := s.Cells(ctx, store, p, created, t.of.cfg.Now())
	if err != nil {
		return err
	}
	if !counted {
		cells, edges = map[[2]string]*tally.Cell{}, []tally.Edge{{Range: created}}
	}
	var of []storage.Cond
	if f.Currency != "" {
		of = []storage.Cond{{Column: "currency", Op: storage.Eq, Value: f.Currency}}
	}
	for _, e := range edges {
		for rows, err := range pages(ctx, store, s.Table, p, e.Where("created_at", of)) {
			if err != nil {
				return err
			}
			for _, r := range rows {
				i := s.Of(r)
				k := [2]string(i.Key[:2])
				if cells[k] == nil {
					cells[k] = &tally.Cell{Sums: map[string]decimal.Decimal{}}
				}
				cells[k].Add(&i, e.Less)
			}
		}
	}
	for k, c := range cells {
		if c.Count == 0 || f.Currency != "" && k[1] != f.Currency {
			continue
		}
		units, usd := c.Sums["a"], c.Sums["u"]
		if !units.BigInt().IsInt64() {
			return ledger.ErrOverflow
		}
		t.cells[cellKey{s.kind, k[0], k[1]}] = &cell{count: c.Count, amount: ledger.Amount(units.IntPart()), usd: &usd}
	}
	return nil
}

// price values withdrawals, asking for each currency's price once.
func (t *summing) price(ctx context.Context) error {
	known := map[string]*decimal.Decimal{}
	for k, c := range t.cells {
		if k.kind != storage.ActivityWithdrawal || c.amount == 0 {
			continue
		}
		if _, ok := known[k.currency]; !ok {
			price, err := t.of.presentPrice(ctx, k.currency)
			if err != nil {
				return err
			}
			known[k.currency] = price
		}
		scale, err := t.of.cfg.Scale(k.currency)
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
func (s *Service) presentPrice(ctx context.Context, currency string) (*decimal.Decimal, error) {
	c, err := s.cfg.Registry.Currency(currency)
	var price decimal.Decimal
	if err == nil {
		price, err = s.cfg.Price(ctx, c.Token)
	}
	if errors.Is(err, rates.ErrUnavailable) || errors.Is(err, chain.ErrCurrency) {
		return nil, nil
	}
	return &price, err
}

// sum makes the coarser sums of the cells.
func (t *summing) sum(out *Stats) error {
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
			scale, err := t.of.cfg.Scale(k.currency)
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
