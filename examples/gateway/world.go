package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// saved is a simulated chain as it is stored, and under clockID the clock and
// the prices that were set.
type saved struct {
	State  []byte            `db:"state"`  // of a chain, compressed
	Offset int64             `db:"offset"` // of the clock, in nanoseconds
	Prices map[string]string `db:"prices,json"`
}

var worlds = storage.NewTable[saved]("gateway_worlds")

const clockID = "clock"

// world is the networks and the prices: simulated ones that live in the store,
// or real nodes and live prices.
type world struct {
	registry *chain.Registry
	clients  []chain.Client
	rates    rates.Rates
	// public names public keys that go into transactions, once the App is composed.
	public func(chain.Network, chain.KeyRef) (chain.PublicKey, error)

	store  storage.Store
	clock  *clock
	fixed  *rates.Fixed // of a simulated world
	prices map[string]string
	sims   []*sim.Chain
	last   map[chain.Network]string // mark of what was saved last
}

// Prices in USD that a simulated world begins with.
var firstPrices = map[string]string{
	"BTC": "60000", "ETH": "2500", "MATIC": "0.50", "BNB": "600", "AVAX": "25", "SOL": "150", "TRX": "0.25", "LTC": "80",
	"DOGE": "0.15", "XRP": "2", "ADA": "0.50", "XLM": "0.30", "USDT": "1", "USDC": "1", "DAI": "1",
}

// fiatPrices are what one USD is in other price currencies, in a simulated world.
var fiatPrices = map[string]string{"EUR": "0.90", "GBP": "0.80"}

func openWorld(ctx context.Context, s settings, store storage.Store, c *clock, log *slog.Logger) (*world, error) {
	w := &world{registry: s.all.Registry(), store: store, clock: c, last: map[chain.Network]string{}, prices: map[string]string{}}
	if s.real() {
		return w, w.connect(s, log)
	}
	return w, w.simulate(ctx, s)
}

// connect uses real nodes, and live prices where none were set.
func (w *world) connect(s settings, log *slog.Logger) (err error) {
	if w.registry, err = s.nodes.Registry(); err != nil {
		return err
	}
	public := func(n chain.Network, k chain.KeyRef) (chain.PublicKey, error) { return w.public(n, k) }
	if w.clients, err = s.nodes.Clients(w.registry, public, log); err != nil {
		return err
	}
	w.rates, err = s.nodes.Rates(s.prices, w.clock.Now, log)
	return err
}

// realistic writes addresses of a simulated network as the real one does.
type realistic struct{ address.Format }

func (f realistic) Parse(s string) (chain.Address, error) {
	info, err := f.Format.Parse(s)
	return info.Canonical, err
}

// finality is how many blocks the final height of a simulated network is behind
// its head: where crediting waits for it no more than it takes, elsewhere far
// behind what is credited, so that a credited deposit can be taken away.
func (w *world) finality(n chain.Network) int64 {
	gas, err := w.registry.Gas(n)
	if err != nil || gas.WaitFinal {
		return 20
	}
	return gas.Confirmations + 60
}

// simulate makes the chains, or finds them in the store.
func (w *world) simulate(ctx context.Context, s settings) error {
	w.fixed = rates.NewFixed(w.clock.Now, "USD", firstPrices)
	w.rates = w.fixed
	for fiat, price := range fiatPrices {
		for token, usd := range firstPrices {
			w.fixed.Set(token, fiat, decimal.RequireFromString(usd).Mul(decimal.RequireFromString(price)))
		}
	}
	if err := w.loadClock(ctx); err != nil {
		return err
	}
	for i, n := range s.networks {
		format, ok := s.all.Format(n)
		if !ok {
			return fmt.Errorf("network %s cannot be simulated: its addresses are unknown", n)
		}
		c, err := sim.New(sim.Options{Network: n, Registry: w.registry, Addresses: realistic{format}, Seed: uint64(i) + 1, Now: w.clock.Now, Finality: w.finality(n)})
		if err != nil {
			return err
		}
		v, _, found, err := worlds.One(ctx, w.store, storage.System, string(n))
		if err != nil {
			return err
		}
		if found {
			state, err := unzip(v.State)
			if err != nil {
				return fmt.Errorf("the stored chain of %s: %w", n, err)
			}
			if err := c.Restore(state); err != nil {
				return fmt.Errorf("the stored chain of %s: %w", n, err)
			}
			w.last[n] = mark(c)
		}
		w.sims = append(w.sims, c)
		w.clients = append(w.clients, c.Client())
	}
	return nil
}

func (w *world) loadClock(ctx context.Context) error {
	v, _, found, err := worlds.One(ctx, w.store, storage.System, clockID)
	if err != nil || !found {
		return err
	}
	w.clock.restore(time.Duration(v.Offset))
	for pair, price := range v.Prices {
		d, err := ledger.ParsePlain(price)
		if err != nil {
			return err
		}
		w.set(pair, d)
	}
	return nil
}

// set fixes one price: the pair is "TOKEN/FIAT".
func (w *world) set(pair string, price decimal.Decimal) {
	token, fiat := splitPair(pair)
	w.fixed.Set(token, fiat, price)
	w.prices[pair] = ledger.PlainString(price)
}

// save writes down what changed since the last time. The chains are written
// before the library looks at them: it must never know a block that a restart
// would forget.
func (w *world) save(ctx context.Context) error {
	for _, c := range w.sims {
		now := mark(c)
		if w.last[c.Network()] == now {
			continue
		}
		state, err := c.Snapshot()
		if err != nil {
			return err
		}
		packed, err := zip(state)
		if err != nil {
			return err
		}
		if err := w.put(ctx, string(c.Network()), saved{State: packed}); err != nil {
			return err
		}
		w.last[c.Network()] = now
	}
	return nil
}

// mark tells two states of a chain apart: its head and who waits for the next
// block.
func mark(c *sim.Chain) string {
	return c.Head().Hash + strings.Join(c.Mempool(), "")
}

// saveClock writes down the clock and the prices.
func (w *world) saveClock(ctx context.Context) error {
	return w.put(ctx, clockID, saved{Offset: int64(w.clock.skipped()), Prices: w.prices})
}

func (w *world) put(ctx context.Context, id string, v saved) error {
	return storage.Decide(ctx, w.store, func(ctx context.Context) (storage.Change, error) {
		_, row, _, err := worlds.One(ctx, w.store, storage.System, id)
		return storage.Change{
			ID: fmt.Sprintf("gateway/world/%s/%d", id, row.Version), Partition: storage.System,
			Put: []storage.Row{worlds.Row(id, row.Version, time.Time{}, v)},
		}, err
	})
}

// on is the simulated chain of a network, by code or alias.
func (w *world) on(network string) (*sim.Chain, error) {
	n, err := w.registry.Network(network)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(w.sims, func(c *sim.Chain) bool { return c.Network() == n.Code })
	if i < 0 {
		return nil, errors.New("is not simulated here")
	}
	return w.sims[i], nil
}

func zip(b []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(b)
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

func unzip(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
