package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/report"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Where coins are outputs, many small ones make a payout dear, or have it wait for merges.
// While the network's fees are below their average they are merged beforehand. A worker
// samples the fee of each such network each hour, and then comes by the tenants.

const (
	feesEvery  = time.Hour          // between two samples, and two looks at a tenant
	feesOver   = 7 * 24 * time.Hour // that the average is of: the median
	feesEnough = 24                 // samples that there must be
)

// feesRow is where the samples of a network's fees are, among Minimums.
func feesRow(n chain.Network) string { return "fees/" + string(n) }

// merger merges coins of one network early.
type merger struct {
	a     *App
	n     *network
	round *round

	mu   sync.Mutex
	next time.Time     // when a sample is due, as far as this process knows
	half ledger.Amount // the average, 0 = not known
	busy bool          // merges were to be made that wait for other orders
}

// mergeWorkers are the mergers of the networks on which coins are outputs.
func (a *App) mergeWorkers() []Worker {
	var out []Worker
	for _, n := range a.networks {
		info, err := a.cfg.Registry.Network(string(n.name))
		if err != nil || info.Family != chain.UTXOFamily || !a.cfg.derives() {
			continue
		}
		m := &merger{a: a, n: n}
		m.round = &round{a: a, every: feesEvery, batch: roundTenants, tenant: m.tenant}
		out = append(out, Worker{Name: "merges/" + string(n.name), Every: time.Minute, Step: m.step})
	}
	return out
}

// step takes a sample where one is due, and looks at tenants where it knows the average.
func (m *merger) step(ctx context.Context) (int, error) {
	sampled, average, err := m.sample(ctx)
	if err != nil || average <= 0 {
		return sampled, err
	}
	worked, err := m.round.step(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy {
		worked, m.busy = 0, false // the round goes on there in a minute
	}
	return sampled + worked, err
}

// sample brings the average up to date.
func (m *merger) sample(ctx context.Context) (sampled int, average ledger.Amount, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.a.cfg.Clock.Now().UTC().Truncate(time.Microsecond)
	if now.Before(m.next) {
		return 0, m.half, nil
	}
	was, row, _, err := Minimums.One(ctx, m.a.cfg.Store, storage.System, feesRow(m.n.name))
	if err != nil {
		return 0, 0, err
	}
	gas, err := m.a.cfg.Registry.Gas(m.n.name)
	if err != nil {
		return 0, 0, err
	}
	if m.next = was.At.Add(feesEvery); now.Before(m.next) {
		m.half = averageFee(was.Samples[gas.Code], now)
		return 0, m.half, nil // another process was here
	}
	cost, err := m.n.out.Typical(ctx)
	if err != nil || cost <= 0 {
		m.next, m.half = now.Add(10*time.Minute), 0
		m.a.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "fee_unavailable", slog.String("network", string(m.n.name)), slog.Any("error", err))
		return 0, 0, nil
	}
	m.next = now.Add(feesEvery)
	samples := append(within(was.Samples[gas.Code], now, feesOver), CostSample{At: now, Cost: cost})
	m.half = averageFee(samples, now)
	err = storage.CommitOne(ctx, m.a.cfg.Store, storage.Change{
		ID:        feesRow(m.n.name) + "/" + strconv.FormatInt(row.Version, 10) + "/" + strconv.FormatInt(now.UnixMicro(), 36),
		Partition: storage.System, Put: []storage.Row{Minimums.Row(feesRow(m.n.name), row.Version, time.Time{}, Minimum{
			At: now, Samples: map[string][]CostSample{gas.Code: samples}, Least: map[string]ledger.Amount{},
		})},
	})
	if errors.Is(err, storage.ErrConflict) {
		err = nil // another process was quicker
	}
	return 1, m.half, err
}

// averageFee is the median of the samples of the last days, 0 where they are too few.
func averageFee(samples []CostSample, now time.Time) ledger.Amount {
	if samples = within(samples, now, feesOver); len(samples) < feesEnough {
		return 0
	}
	return median(samples)
}

// tenant makes an early merge of a tenant's coins where one is due.
func (m *merger) tenant(ctx context.Context, _ storage.Store, p storage.Partition, _ time.Time) (int, error) {
	m.mu.Lock()
	average := m.half
	m.mu.Unlock()
	got, err := m.n.out.MergeEarly(ctx, strings.TrimPrefix(string(p), string(storage.Tenant(""))), average, false)
	switch {
	case err != nil:
		return 0, err
	case got.Later:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.busy = true
		return m.round.batch, nil
	case got.Order == "":
		return 0, nil
	}
	return 1, nil
}

// EarlyMerge is the merge that would be made of a tenant's small coins on a network now, or why
// none is. It writes nothing. The error wraps chain.ErrCurrency for a network that the App
// does not send on.
func (a *App) EarlyMerge(ctx context.Context, tenant string, network chain.Network) (outgoing.Early, error) {
	for _, n := range a.networks {
		if n.name != network {
			continue
		}
		gas, err := a.cfg.Registry.Gas(network)
		if err != nil {
			return outgoing.Early{}, err
		}
		row, _, _, err := Minimums.One(ctx, a.cfg.Store, storage.System, feesRow(network))
		if err != nil {
			return outgoing.Early{}, err
		}
		return n.out.MergeEarly(ctx, tenant, averageFee(row.Samples[gas.Code], a.cfg.Clock.Now()), true)
	}
	return outgoing.Early{}, fmt.Errorf("%w: network %q", chain.ErrCurrency, network)
}

// paidOut is what a tenant has ordered to be paid out of a network's own coin in the last day.
func (a *App) paidOut(ctx context.Context, tenant string, n chain.Network) (ledger.Amount, error) {
	gas, err := a.cfg.Registry.Gas(n)
	if err != nil {
		return 0, err
	}
	now := a.cfg.Clock.Now()
	s, err := a.Reports.Stats(ctx, tenant, report.StatsFilter{From: now.Add(-24 * time.Hour), Currency: gas.Code})
	if err != nil {
		return 0, err
	}
	for _, c := range s.Currencies {
		if c.Currency == gas.Code {
			return c.Withdrawals.Amount, nil
		}
	}
	return 0, nil
}
