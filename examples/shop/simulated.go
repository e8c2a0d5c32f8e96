package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// simulation is a world for trying the shop: networks without money, whose blocks come while
// somebody waits for one. They and the clock are kept in the shop's database.
type simulation struct {
	registry *chain.Registry
	chains   []*sim.Chain
	prices   *rates.Fixed
	clock    *clock
	d        *database
	log      *slog.Logger

	mu    sync.Mutex // one thing happens at a time
	saved map[string]string
	idle  map[chain.Network]int // blocks since a network's last transaction
}

// clock is the wall's, plus what was skipped.
type clock struct {
	cryptopay.SystemClock
	mu      sync.Mutex
	skipped time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.SystemClock.Now().Add(c.skipped)
}

func (c *clock) skip(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skipped += max(d, 0)
	return c.skipped
}

// realistic writes a simulated network's addresses as the real one does.
type realistic struct{ address.Format }

func (f realistic) Parse(s string) (chain.Address, error) {
	info, err := f.Format.Parse(s)
	return info.Canonical, err
}

// simulate makes the networks, or finds them in the database.
func simulate(ctx context.Context, d *database, log *slog.Logger) (*simulation, error) {
	s := &simulation{registry: chain.MainnetRegistry(), clock: &clock{}, d: d, log: log, saved: map[string]string{}, idle: map[chain.Network]int{}}
	s.prices = rates.NewFixed(s.clock.Now, "USD", map[string]string{"BTC": "60000", "ETH": "2000", "XRP": "2", "USDT": "1", "USDC": "1", "DAI": "1"})
	if state, err := s.load(ctx, "clock"); err != nil {
		return nil, err
	} else if state != nil {
		skipped, err := time.ParseDuration(string(state))
		if err != nil {
			return nil, err
		}
		s.clock.skip(skipped)
	}
	for i, n := range []chain.Network{"ETH", "BTC", "XRP"} {
		format, _ := address.For(n)
		c, err := sim.New(sim.Options{Network: n, Registry: s.registry, Addresses: realistic{format}, Seed: uint64(i) + 1, Now: s.clock.Now, Finality: 20})
		if err != nil {
			return nil, err
		}
		state, err := s.load(ctx, string(n))
		if err == nil && state != nil {
			err = c.Restore(state)
		}
		if err != nil {
			return nil, fmt.Errorf("the stored network %s: %w", n, err)
		}
		s.chains = append(s.chains, c)
	}
	return s, nil
}

func (s *simulation) on(n string) *sim.Chain {
	for _, c := range s.chains {
		if string(c.Network()) == n {
			return c
		}
	}
	return nil
}

// fund gives the shop's hot addresses coins for network fees: customers' money never pays them.
func (s *simulation) fund(ctx context.Context, app *cryptopay.App) error {
	if s == nil {
		return nil // on a real network that is yours to do
	}
	for _, c := range s.chains {
		if c.Height() > 1 {
			continue // it was done at the first start
		}
		hot, err := app.Hot(ctx, c.Network(), tenant)
		if err != nil {
			return err
		}
		gas, err := s.registry.Gas(c.Network())
		if err != nil {
			return err
		}
		if _, err := c.Fund(hot, gas.Code, decimal.NewFromInt(100)); err != nil {
			return err
		}
		c.Mine(40)
	}
	return s.act(ctx, app, func(func() error) error { return nil })
}

// patience is for how many blocks a network goes on after its last transaction.
const patience = 40

// run makes blocks, and has the App do what is due, until ctx ends.
func (s *simulation) run(ctx context.Context, app *cryptopay.App, every time.Duration) error {
	whole := context.WithoutCancel(ctx) // a step that has begun is not cut short
	for s.clock.Wait(ctx, every) == nil {
		err := s.act(whole, app, func(func() error) error {
			for _, c := range s.chains {
				if s.idle[c.Network()]++; len(c.Mempool()) > 0 {
					s.idle[c.Network()] = 0
				}
				if s.idle[c.Network()] < patience {
					c.Mine(1)
				}
			}
			return nil
		})
		if err != nil {
			s.log.ErrorContext(ctx, "work_failed", slog.Any("error", err))
		}
	}
	return nil
}

// act does something to the networks, and then what that makes due. do gets a function that
// has the App work in between.
func (s *simulation) act(ctx context.Context, app *cryptopay.App, do func(work func() error) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	work := func() error {
		// The App must never know a block that a restart would forget.
		if err := s.save(ctx); err != nil {
			return err
		}
		err := app.Step(ctx)
		if errors.Is(err, incoming.ErrHalted) { // the others go on
			err = nil
		}
		return errors.Join(err, s.save(ctx))
	}
	return errors.Join(do(work), work())
}

// save writes down what has changed.
func (s *simulation) save(ctx context.Context) error {
	for _, c := range s.chains {
		mark := c.Head().Hash + strings.Join(c.Mempool(), "")
		if s.saved[string(c.Network())] == mark {
			continue
		}
		state, err := c.Snapshot()
		if err == nil {
			err = s.store(ctx, string(c.Network()), state)
		}
		if err != nil {
			return err
		}
		s.saved[string(c.Network())] = mark
	}
	return nil
}

func (s *simulation) store(ctx context.Context, name string, state []byte) error {
	return s.d.exec(ctx, "INSERT INTO simulated (name, state) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET state = excluded.state",
		name, base64.StdEncoding.EncodeToString(state))
}

func (s *simulation) load(ctx context.Context, name string) ([]byte, error) {
	var text string
	if found, err := s.d.get(ctx, &text, "SELECT state FROM simulated WHERE name = ?", name); !found || err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// skip lets time pass.
func (s *simulation) skip(ctx context.Context, d time.Duration) error {
	return s.store(ctx, "clock", []byte(s.clock.skip(d).String()))
}
