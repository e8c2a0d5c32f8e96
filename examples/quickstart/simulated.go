package main

import (
	"context"
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
)

// savedWorld keeps the simulated chains in the shop's own file.
type savedWorld struct {
	State  []byte `db:"state"`
	Offset int64  `db:"clock_offset"` // of the shop's clock, in nanoseconds
}

var worlds = storage.NewTable[savedWorld]("quickstart_worlds")

func newWorld(ctx context.Context, s storage.Store, c *clock, kind, rpc string) (world, error) {
	switch {
	case rpc != "":
		return dialNode(ctx, rpc, nil)
	case kind == "anvil":
		return startAnvil(ctx)
	case kind == "sim":
		return loadSimulated(ctx, s, c)
	}
	return nil, fmt.Errorf("-chain %q: sim or anvil is known", kind)
}

// simulated is a world of chains in memory.
type simulated struct {
	chains []*sim.Chain
	reg    *chain.Registry
	clock  *clock
}

func loadSimulated(ctx context.Context, s storage.Store, c *clock) (*simulated, error) {
	w := &simulated{reg: chain.MainnetRegistry(), clock: c}
	for i, n := range []chain.Network{"ETH", "BTC"} {
		ch, err := sim.New(sim.Options{Network: n, Registry: w.reg, Seed: uint64(i) + 1, Now: c.Now, Finality: 20})
		if err != nil {
			return nil, err
		}
		v, _, found, err := worlds.One(ctx, s, storage.System, string(n))
		if err != nil {
			return nil, err
		}
		if found {
			if err := ch.Restore(v.State); err != nil {
				return nil, err
			}
			c.offset = time.Duration(v.Offset)
		}
		w.chains = append(w.chains, ch)
	}
	return w, nil
}

func (w *simulated) save(ctx context.Context, s storage.Store) error {
	for _, ch := range w.chains {
		state, err := ch.Snapshot()
		if err != nil {
			return err
		}
		_, row, _, err := worlds.One(ctx, s, storage.System, string(ch.Network()))
		if err != nil {
			return err
		}
		err = storage.CommitOne(ctx, s, storage.Change{
			ID: fmt.Sprintf("world/%s/%d", ch.Network(), row.Version), Partition: storage.System,
			Put: []storage.Row{worlds.Row(string(ch.Network()), row.Version, time.Time{}, savedWorld{State: state, Offset: int64(w.clock.offset)})},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *simulated) on(n chain.Network) *sim.Chain {
	for _, c := range w.chains {
		if c.Network() == n {
			return c
		}
	}
	return nil
}

func (w *simulated) of(currency string) (*sim.Chain, error) {
	c, err := w.reg.Currency(currency)
	if err != nil {
		return nil, err
	}
	return w.on(c.Network), nil
}

func (w *simulated) clients() (out []chain.Client) {
	for _, c := range w.chains {
		out = append(out, c.Client())
	}
	return out
}

func (w *simulated) networks() []chain.Network { return []chain.Network{"ETH", "BTC"} }
func (w *simulated) currencies() []string      { return []string{"USDTERC20", "ETH", "BTC"} }
func (w *simulated) registry() *chain.Registry { return w.reg }
func (w *simulated) supplier() string          { return string(w.on("ETH").Customer("supplier")) }
func (w *simulated) close() error              { return nil }

func (w *simulated) fund(_ context.Context, to chain.Address, currency string, amount decimal.Decimal) error {
	c, err := w.of(currency)
	if err != nil {
		return err
	}
	_, err = c.Fund(to, currency, amount)
	return err
}

func (w *simulated) pay(_ context.Context, to chain.Address, currency string, amount decimal.Decimal) (string, error) {
	c, err := w.of(currency)
	if err != nil {
		return "", err
	}
	return c.Pay(to, currency, amount)
}

func (w *simulated) mine(context.Context) error {
	for _, c := range w.chains {
		c.Mine(1)
	}
	return nil
}
