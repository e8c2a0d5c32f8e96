package cryptopay_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// host is a program that embeds the library, on simulated chains, with a clock
// of its own and a receiver that takes every webhook.
type host struct {
	t      testing.TB
	clock  *cryptopay.ManualClock
	store  storage.Store
	seed   *keys.Seed
	rates  *rates.Fixed
	quoted func(rates.Rate) rates.Rate // what the source of prices says instead; nil = the rates
	chains map[chain.Network]*sim.Chain
	app    *cryptopay.App
	inbox  *inbox
	random *shared
	tenant string

	configure func(*cryptopay.Config) // at each restart, nil = nothing
	mandates  mandate.Keys            // of the Signer
}

// shared is randomness that several processes of a test read at once.
type shared struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

func (s *shared) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Read(p)
}

func (s *shared) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Uint64()
}

// inbox is the receivers' side.
type inbox struct {
	mu   sync.Mutex
	got  []webhook.Delivery
	fail func(webhook.Delivery) bool
}

func (i *inbox) Notify(_ context.Context, deliveries []webhook.Delivery) []webhook.Result {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]webhook.Result, len(deliveries))
	for k, d := range deliveries {
		if i.fail != nil && i.fail(d) {
			out[k] = webhook.Result{Status: 500, Err: webhook.ErrURL}
			continue
		}
		i.got = append(i.got, d)
		out[k] = webhook.Result{Status: 200}
	}
	return out
}

// prices is the host's source of prices.
type prices struct{ h *host }

func (p prices) Rate(ctx context.Context, token, fiat string) (rates.Rate, error) {
	r, err := p.h.rates.Rate(ctx, token, fiat)
	if err == nil && p.h.quoted != nil {
		r = p.h.quoted(r)
	}
	return r, err
}

// hostKey is the Config.Key of a host.
var hostKey = cryptopaytest.Key()

const mnemonic = cryptopaytest.Words

func newHost(t testing.TB, seed uint64, networks ...chain.Network) *host {
	t.Helper()
	return newHostOn(t, memory.New(), seed, networks...)
}

func newHostOn(t testing.TB, store storage.Store, seed uint64, networks ...chain.Network) *host {
	t.Helper()
	var key [32]byte
	key[0] = byte(seed)
	h := &host{
		t: t, clock: cryptopay.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		store: store, chains: map[chain.Network]*sim.Chain{}, inbox: &inbox{}, random: &shared{source: rand.NewChaCha8(key)},
	}
	var err error
	h.seed, err = keys.FromMnemonic(mnemonic, "")
	require.NoError(t, err)
	h.rates = rates.NewFixed(h.clock.Now, "USD", map[string]string{"ETH": "2000", "BTC": "60000", "USDT": "1", "USDC": "1", "XRP": "2"})
	for _, n := range networks {
		h.chains[n] = sim.MustNew(sim.Options{Network: n, Registry: chain.MainnetRegistry(), Seed: seed, Now: h.clock.Now, Finality: 20})
	}
	h.mandates = cryptopay.MandateKeys(hostKey)
	h.restart()
	name := "shop"
	tenant, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	h.tenant = tenant.ID
	return h
}

// restart makes a new App over the same store and chains: all that a process
// kept in memory is gone.
func (h *host) restart() {
	h.t.Helper()
	h.app = h.compose(h.configure)
	require.NoError(h.t, h.app.Open(h.t.Context(), keys.Tables()...))
}

// beside is another process on the same store, configured in another way.
func (h *host) beside(configure func(*cryptopay.Config)) *cryptopay.App {
	h.t.Helper()
	app := h.compose(configure)
	require.NoError(h.t, app.Open(h.t.Context(), keys.Tables()...))
	return app
}

// compose makes an App that is not open yet.
func (h *host) compose(configure func(*cryptopay.Config)) *cryptopay.App {
	h.t.Helper()
	cfg, err := cryptopaytest.Parts{
		Store: h.store, Clock: h.clock, Chains: h.chains, App: func() *cryptopay.App { return h.app }, Mandates: h.mandates,
	}.Config()
	require.NoError(h.t, err)
	cfg.Rates, cfg.Random, cfg.Notifier, cfg.Log = prices{h}, h.random, h.inbox, slog.New(slog.NewTextHandler(h.t.Output(), nil))
	if configure != nil {
		configure(&cfg)
	}
	app, err := cryptopay.New(cfg)
	require.NoError(h.t, err)
	return app
}

func (h *host) step() {
	h.t.Helper()
	require.NoError(h.t, h.app.Step(h.t.Context()))
}

// mine grows every chain by n blocks. After each of the first eight the library acts, and then, when
// mostly time goes by, after every fourth and after the last.
func (h *host) mine(n int) {
	h.t.Helper()
	for i := range n {
		h.clock.Advance(15 * time.Second)
		for _, c := range h.chains {
			c.Mine(1)
		}
		if i < 8 || i%4 == 3 || i == n-1 {
			h.step()
		}
	}
}

// sound is true of every state that was ever committed.
func (h *host) sound() {
	h.t.Helper()
	reports, err := h.app.Verify(h.t.Context())
	require.NoError(h.t, err)
	for _, r := range reports {
		require.Empty(h.t, r.Ledger.Findings)
		require.Empty(h.t, r.Holds)
		require.Empty(h.t, r.Unexplained)
		require.Empty(h.t, r.Gas)
		require.Empty(h.t, r.Counters)
		require.Empty(h.t, r.Seals.Findings)
	}
}

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }
