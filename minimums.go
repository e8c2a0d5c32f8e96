package cryptopay

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
)

// A deposit that costs more to forward than half of its value is not worth taking. On
// account networks the minimum of a payment is therefore at least twice what
// forwarding costs, by the median of the last day. A worker samples the cost; requests
// read the figure that it stored.

const (
	minimumEvery = 10 * time.Minute // between two samples, and between two changes of a minimum
	minimumOver  = 24 * time.Hour   // that the median is of
	minimumTimes = 2                // what forwarding costs
	minimumStep  = 5                // a minimum changes by at least a fifth of itself
)

// Minimum is what the payments of one network are at least, in the system's partition
// by network code.
type Minimum struct {
	At      time.Time                `db:"at"`           // of the newest sample
	Samples map[string][]CostSample  `db:"samples,json"` // by currency, oldest first
	Least   map[string]ledger.Amount `db:"least,json"`   // by currency, in its units
}

// CostSample is what forwarding one deposit would have cost, in units of the network's
// gas currency.
type CostSample struct {
	At   time.Time     `json:"at"`
	Cost ledger.Amount `json:"cost"`
}

// Minimums is the table of Minimum.
var Minimums = storage.NewTable[Minimum]("minimums")

// minimums reads the minimums of some currencies, in units by code. One that is not
// there yet is left out.
func (a *App) minimums(ctx context.Context, currencies ...*chain.Currency) (map[string]ledger.Amount, error) {
	var networks []string
	for _, c := range currencies {
		networks = append(networks, string(c.Network))
	}
	slices.Sort(networks)
	rows, err := storage.Joined(a.cfg.Store).Rows(ctx, Minimums.Table, storage.Keys(storage.System, slices.Compact(networks)...)...)
	if err != nil {
		return nil, err
	}
	out := map[string]ledger.Amount{}
	for _, r := range rows {
		for code, least := range Minimums.Value(r).Least {
			out[code] = least
		}
	}
	return out, nil
}

// forwardCost is what forwarding a deposit of a currency cost at the newest sample of the last
// day, in units of the currency. It is 0 where there is none, or no price to convert it by.
func (a *App) forwardCost(ctx context.Context, c *chain.Currency) (ledger.Amount, error) {
	m, _, _, err := Minimums.One(ctx, storage.Joined(a.cfg.Store), storage.System, string(c.Network))
	if err != nil {
		return 0, err
	}
	samples := within(m.Samples[c.Code], a.cfg.Clock.Now(), minimumOver)
	if len(samples) == 0 {
		return 0, nil
	}
	gas, err := a.cfg.Registry.Gas(c.Network)
	if err != nil {
		return 0, err
	}
	cost, err := fees{a}.inUnitsOf(ctx, samples[len(samples)-1].Cost, gas, c)
	if errors.Is(err, rates.ErrUnavailable) {
		return 0, nil
	}
	return cost, err
}

// greaterMinimums takes the greater of the App's minimums and the host's.
func greaterMinimums(ours, theirs payment.Minimums) payment.Minimums {
	if theirs == nil {
		return ours
	}
	return func(ctx context.Context, currencies ...*chain.Currency) (map[string]ledger.Amount, error) {
		out, err := ours(ctx, currencies...)
		if err != nil {
			return nil, err
		}
		others, err := theirs(storage.Apart(ctx), currencies...)
		for code, least := range others {
			out[code] = max(out[code], least)
		}
		return out, err
	}
}

// sampler keeps the minimums of one network up to date.
type sampler struct {
	a       *App
	network chain.Network

	mu      sync.Mutex
	next    time.Time // when a sample is due, as far as this process knows
	known   Minimum   // as last read or stored: a day of samples is much to read each time
	version int64     // of the row that known is of; 0 = of none
}

// costWorkers are the samplers of the networks on which deposits are forwarded.
func (a *App) costWorkers() []Worker {
	var out []Worker
	for _, n := range a.networks {
		if accounts, err := a.accounts(n.name); err == nil && accounts {
			out = append(out, Worker{Name: "minimums/" + string(n.name), Every: time.Minute, Step: (&sampler{a: a, network: n.name}).step})
		}
	}
	return out
}

// step takes one sample where one is due. A node or price that does not answer leaves
// the minimums as they are: it is asked again at the next one.
func (s *sampler) step(ctx context.Context) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.a.cfg.Clock.Now().UTC().Truncate(time.Microsecond)
	if now.Before(s.next) {
		return 0, nil
	}
	rows, err := s.a.cfg.Store.Find(ctx, storage.Query{Table: Minimums.Table, Partition: storage.System, Where: []storage.Cond{
		{Column: storage.ColID, Op: storage.Eq, Value: string(s.network)}, {Column: storage.ColVersion, Op: storage.Ne, Value: s.version},
	}})
	if err != nil {
		return 0, err
	}
	for _, r := range rows { // another process has written it
		s.known, s.version = Minimums.Value(r), r.Version
	}
	was, version := s.known, s.version
	if s.next = was.At.Add(minimumEvery); now.Before(s.next) {
		return 0, nil // another process was here
	}
	s.next = now.Add(minimumEvery)
	m, sampled := s.sample(ctx, was, now)
	if !sampled {
		return 0, nil
	}
	err = storage.CommitOne(ctx, s.a.cfg.Store, storage.Change{
		ID:        "minimums/" + string(s.network) + "/" + strconv.FormatInt(version, 10) + "/" + strconv.FormatInt(now.UnixMicro(), 36),
		Partition: storage.System, Put: []storage.Row{Minimums.Row(string(s.network), version, time.Time{}, m)},
	})
	if err == nil {
		s.known, s.version = m, version+1
		return 1, nil
	}
	if s.known, s.version = (Minimum{}), 0; errors.Is(err, storage.ErrConflict) {
		return 0, nil // another process was quicker
	}
	return 1, err
}

// sample is the row with one more sample of each currency that this process lists; the
// others are another process's, and stay as they are. sampled is false where there is
// nothing new.
func (s *sampler) sample(ctx context.Context, was Minimum, now time.Time) (m Minimum, sampled bool) {
	m = Minimum{At: now, Samples: map[string][]CostSample{}, Least: map[string]ledger.Amount{}}
	maps.Copy(m.Samples, was.Samples)
	maps.Copy(m.Least, was.Least)
	for _, c := range s.a.cfg.Registry.On(s.network) {
		cost, gas, err := s.a.Treasury.ForwardCost(ctx, c.Code)
		if err != nil {
			s.a.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "forward_cost_unavailable", slog.String("currency", c.Code), slog.Any("error", err))
			continue
		}
		if cost <= 0 {
			continue // nothing is forwarded
		}
		sampled = true
		m.Samples[c.Code] = append(within(was.Samples[c.Code], now, minimumOver), CostSample{At: now, Cost: cost})
		least, err := s.least(ctx, c, gas, median(m.Samples[c.Code]))
		if err != nil {
			s.a.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "minimum_not_priced", slog.String("currency", c.Code), slog.Any("error", err))
			continue
		}
		if moved(was.Least[c.Code], least) {
			m.Least[c.Code] = least
		}
	}
	return m, sampled
}

// least is the minimum that a cost of forwarding makes, in units of c.
func (s *sampler) least(ctx context.Context, c *chain.Currency, gas string, cost ledger.Amount) (ledger.Amount, error) {
	cost, err := cost.MulDiv(minimumTimes, 1, ledger.Up)
	if err != nil || gas == c.Code {
		return cost, err
	}
	paid, err := s.a.cfg.Registry.Currency(gas)
	if err != nil {
		return 0, err
	}
	return fees{s.a}.inUnitsOf(ctx, cost, paid, c)
}

// moved reports whether a minimum is so far from the one in force that it takes its
// place.
func moved(from, to ledger.Amount) bool {
	apart := max(from, to) - min(from, to)
	return from == 0 || apart >= from/minimumStep+min(1, from%minimumStep)
}

// within are the samples of the last time.
func within(samples []CostSample, now time.Time, last time.Duration) []CostSample {
	return slices.DeleteFunc(slices.Clone(samples), func(s CostSample) bool { return !s.At.After(now.Add(-last)) })
}

// median of samples: of an even number the lower one in the middle.
func median(samples []CostSample) ledger.Amount {
	costs := make([]ledger.Amount, len(samples))
	for i, s := range samples {
		costs[i] = s.Cost
	}
	slices.Sort(costs)
	return costs[(len(costs)-1)/2]
}
