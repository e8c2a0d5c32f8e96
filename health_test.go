package cryptopay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// partOf finds a part by its name.
func partOf(t *testing.T, h cryptopay.Health, name string) cryptopay.Part {
	t.Helper()
	for _, p := range h.Parts() {
		if p.Name == name {
			return p
		}
	}
	require.Fail(t, "no such part", name)
	return cryptopay.Part{}
}

// wrong lists the names of parts that are not OK.
func wrong(h cryptopay.Health) (out []string) {
	for _, p := range h.Parts() {
		if p.State != cryptopay.OK {
			out = append(out, p.Name)
		}
	}
	return out
}

// sick is what can be made to hang or fail, outside of the App.
type sick struct {
	storage.Store
	chain.Client
	chain.Signer
	rates.Rates
	asks atomic.Int64
	hang atomic.Bool
	slow chan struct{} // where there is one, nothing answers before it is closed
	fail atomic.Bool
	off  time.Duration
	now  func() time.Time
}

var errSick = errors.New("it is sick")

// ill hangs for ever, whatever the context says, or fails.
func (s *sick) ill() error {
	s.asks.Add(1)
	if s.hang.Load() {
		select {}
	}
	if s.slow != nil {
		<-s.slow
	}
	if s.fail.Load() {
		return errSick
	}
	return nil
}

type sickStore struct{ *sick }

func (s sickStore) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if err := s.ill(); err != nil {
		return nil, err
	}
	return s.Store.Rows(ctx, t, keys...)
}

func (s sickStore) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if err := s.ill(); err != nil {
		return nil, err
	}
	return s.Store.Find(ctx, q)
}

func (s sickStore) Open(ctx context.Context, t ...*storage.Table) error {
	return s.Store.Open(ctx, t...)
}
func (s sickStore) Close() error                           { return s.Store.Close() }
func (s sickStore) Now(context.Context) (time.Time, error) { return s.now().Add(s.off), s.ill() }

type sickNode struct{ *sick }

func (s sickNode) Tip(ctx context.Context) (chain.Tip, error) {
	if err := s.ill(); err != nil {
		return chain.Tip{}, err
	}
	return s.Client.Tip(ctx)
}

type sickSigner struct{ *sick }

func (s sickSigner) Ping(context.Context) error { return s.ill() }

type sickRates struct{ *sick }

func (s sickRates) Rate(ctx context.Context, token, fiat string) (rates.Rate, error) {
	if err := s.ill(); err != nil {
		return rates.Rate{}, err
	}
	return s.Rates.Rate(ctx, token, fiat)
}

// Health tells what is down, why, and since when; it is ready as long as it can serve.
func TestE10_HealthTellsWhatIsDown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		part  string
		ready bool
		make  func(*cryptopay.Config, *sick)
	}{
		"node":   {"node/ETH", true, func(c *cryptopay.Config, s *sick) { s.Client = c.Chains[0]; c.Chains[0] = sickNode{s} }},
		"signer": {"signer", true, func(c *cryptopay.Config, s *sick) { s.Signer = c.Signer; c.Signer = sickSigner{s} }},
		"rates":  {"rates", true, func(c *cryptopay.Config, s *sick) { s.Rates = c.Rates; c.Rates = sickRates{s} }},
		"store":  {"store", false, func(c *cryptopay.Config, s *sick) { s.Store = c.Store; c.Store = sickStore{s} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := newHost(t, 1, "ETH"), &sick{}
			s.now = h.clock.Now
			h.rates.Set("DAI", "USD", dec("1"))
			h.mine(2)
			app := h.beside(func(cfg *cryptopay.Config) { c.make(cfg, s) })
			before := app.Health(t.Context())
			require.Empty(t, wrong(before))
			require.True(t, before.Ready())
			require.Equal(t, cryptopay.OK, before.State())

			h.clock.Advance(time.Second)
			began := h.clock.Now()
			s.fail.Store(true)
			first := app.Health(t.Context())
			p := partOf(t, first, c.part)
			require.Equal(t, cryptopay.Down, p.State)
			require.Contains(t, p.Reason, errSick.Error())
			require.Equal(t, began, p.Since)
			require.Equal(t, c.ready, first.Ready())
			require.Equal(t, cryptopay.Down, first.State())

			h.clock.Advance(time.Minute)
			require.Equal(t, began, partOf(t, app.Health(t.Context()), c.part).Since, "it is still the same trouble")
			s.fail.Store(false)
			after := app.Health(t.Context())
			require.Equal(t, cryptopay.OK, partOf(t, after, c.part).State)
			require.Equal(t, h.clock.Now(), partOf(t, after, c.part).Since)
		})
	}
}

// crowdedNode is a node whose calls wait for room in a minute.
type crowdedNode struct {
	chain.Client
	waits *atomic.Bool
}

func (c crowdedNode) Tip(ctx context.Context) (chain.Tip, error) {
	if c.waits.Load() {
		return chain.Tip{}, fmt.Errorf("%w: no room", chain.ErrNode)
	}
	return c.Client.Tip(ctx)
}

func (c crowdedNode) Usage() []chain.Usage {
	if c.waits.Load() {
		return []chain.Usage{{Node: "a"}, {Node: "b", Total: 100, Minute: 60, Most: 60, Waiting: 3, Waited: 61 * time.Second}}
	}
	return []chain.Usage{{Total: 1}}
}

// TestFN16_HealthTellsThatCallsWait: a node that may not be asked more is not down, and the reason says what
// to change.
func TestFN16_HealthTellsThatCallsWait(t *testing.T) {
	t.Parallel()
	h, waits := newHost(t, 1, "ETH"), &atomic.Bool{}
	h.mine(2)
	app := h.beside(func(c *cryptopay.Config) { c.Chains[0] = crowdedNode{c.Chains[0], waits} })
	require.Equal(t, cryptopay.OK, partOf(t, app.Health(t.Context()), "node/ETH").State)
	waits.Store(true)
	p := partOf(t, app.Health(t.Context()), "node/ETH")
	require.Equal(t, cryptopay.Degraded, p.State)
	require.Equal(t, "calls to b have waited for 1m1s: 60 a minute are allowed (CallsPerMinute), ask less or allow more", p.Reason)
	f, err := app.Figures(t.Context())
	require.NoError(t, err)
	require.Equal(t, 60, f.Networks[0].Usage[1].Most)
}

// TestFN16_StatusTellsThatANodeIsNotAsked, before that calls wait: those fail meanwhile.
func TestFN16_StatusTellsThatANodeIsNotAsked(t *testing.T) {
	t.Parallel()
	crowd := chain.Usage{Node: "b", Most: 60, Waiting: 3, Waited: 61 * time.Second}
	for want, usage := range map[string][]chain.Usage{
		"": {{Node: "a"}},
		"a says that it was asked too often, and is not asked for 1m30s: ask less (CallsPerMinute), or another":     {{Node: "a", Resting: 90 * time.Second}, crowd},
		"the node says that it was asked too often, and is not asked for 2s: ask less (CallsPerMinute), or another": {{Resting: 2 * time.Second, Waiting: 1}},
	} {
		require.Equal(t, want, (&incoming.Status{Usage: usage}).Waits())
	}
}

// Whatever hangs, and does not even heed its context, Health answers in seconds, says which
// part it is, and does not ask it again while it hangs.
func TestE10_HealthNeverHangs(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{"node": "node/ETH", "signer": "signer", "rates": "rates", "store": "store"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := newHost(t, 1, "ETH"), &sick{}
			s.now = h.clock.Now
			h.rates.Set("DAI", "USD", dec("1"))
			h.mine(2)
			app := h.beside(func(cfg *cryptopay.Config) {
				s.Client, s.Signer, s.Rates, s.Store = cfg.Chains[0], cfg.Signer, cfg.Rates, cfg.Store
				switch name {
				case "node":
					cfg.Chains[0] = sickNode{s}
				case "signer":
					cfg.Signer = sickSigner{s}
				case "rates":
					cfg.Rates = sickRates{s}
				case "store":
					cfg.Store = sickStore{s}
				}
			})
			s.hang.Store(true)
			for range 2 {
				p := partOf(t, app.Health(t.Context()), part)
				require.Equal(t, cryptopay.Down, p.State)
				require.Contains(t, p.Reason, "has not answered since")
			}
		})
	}
}

// Two who ask at the same moment hear the same: a store that is being asked is not down.
func TestE10_TwoAskAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(t, 1, "ETH"), &sick{}
		s.now = h.clock.Now
		app := h.beside(func(cfg *cryptopay.Config) {
			s.Store = cfg.Store
			cfg.Store = sickStore{s}
		})
		s.slow = make(chan struct{})
		heard := make(chan cryptopay.Health, 2)
		for range 2 {
			go func() { heard <- app.Health(t.Context()) }()
		}
		synctest.Wait()
		require.Empty(t, heard, "both wait for the store")
		close(s.slow)
		for range 2 {
			got := <-heard
			require.True(t, got.Ready(), "%+v", got.Store)
		}
	})
}

// Whoever may ask whether a process is ready has no node, signer or source of prices asked.
func TestE10_ReadyAsksTheStoreAlone(t *testing.T) {
	t.Parallel()
	h, s, store := newHost(t, 1, "ETH"), &sick{}, &sick{}
	s.now, store.now = h.clock.Now, h.clock.Now
	app := h.beside(func(cfg *cryptopay.Config) {
		s.Client, s.Signer, s.Rates, store.Store = cfg.Chains[0], cfg.Signer, cfg.Rates, cfg.Store
		cfg.Chains[0], cfg.Signer, cfg.Rates, cfg.Store = sickNode{s}, sickSigner{s}, sickRates{s}, sickStore{store}
	})
	before := s.asks.Load()
	require.NoError(t, app.Ready(t.Context()))
	require.Equal(t, before, s.asks.Load())
	health := app.Health(t.Context())
	require.True(t, health.Ready())
	require.Greater(t, s.asks.Load(), before)
	store.fail.Store(true)
	require.ErrorContains(t, app.Ready(t.Context()), errSick.Error())
	store.fail.Store(false)
	store.off = time.Hour
	require.ErrorContains(t, app.Ready(t.Context()), "clock")
}

// A consumer that was retired while a process lists it hears nothing, so Health says so.
func TestE10_RetiredConsumerIsShown(t *testing.T) {
	t.Parallel()
	h := newHost(t, 6, "ETH")
	h.configure = func(c *cryptopay.Config) {
		c.Consumers = []stream.Consumer{{Name: "books", Handle: func(context.Context, stream.Tx, stream.Event) error { return nil }}}
	}
	h.restart()
	require.Equal(t, cryptopay.OK, partOf(t, h.app.Health(t.Context()), "consumer/books").State)
	operator := h.beside(func(*cryptopay.Config) {})
	require.NoError(t, operator.Events.Retire(t.Context(), "books"))
	p := partOf(t, h.app.Health(t.Context()), "consumer/books")
	require.Equal(t, cryptopay.Down, p.State)
	require.Contains(t, p.Reason, "it hears nothing")
	h.restart()
	require.Equal(t, cryptopay.OK, partOf(t, h.app.Health(t.Context()), "consumer/books").State)
}
