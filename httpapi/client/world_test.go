package client_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/httpapi/client"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// world is a real service on a simulated chain behind a real server, and a
// client of it. Faults are put in between.
type world struct {
	t      *testing.T
	clock  *cryptopay.ManualClock
	chain  *sim.Chain
	app    *cryptopay.App
	auth   *auth.Service
	tenant string
	server *httptest.Server
	faults *faults
	waits  []time.Duration
	mu     sync.Mutex
	client *client.Client
	id     string
	secret string
	hook   *receiver
}

// faults stands between client and service.
type faults struct {
	mu   sync.Mutex
	api  http.Handler
	next []func(w http.ResponseWriter, r *http.Request, api http.Handler) // one per request; nil or none = as it should be
	seen []string
	keys []string
}

func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, r.Method+" "+r.URL.Path)
	f.keys = append(f.keys, r.Header.Get("Idempotency-Key"))
	var do func(http.ResponseWriter, *http.Request, http.Handler)
	if len(f.next) > 0 && r.URL.Path != "/o/token/" {
		do, f.next = f.next[0], f.next[1:]
	}
	f.mu.Unlock()
	if do != nil {
		do(w, r, f.api)
		return
	}
	f.api.ServeHTTP(w, r)
}

func (f *faults) plan(next ...func(http.ResponseWriter, *http.Request, http.Handler)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next, f.seen, f.keys = next, nil, nil
}

func (f *faults) requests() (seen, keys []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen, f.keys
}

const words = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

func newWorld(t *testing.T, options ...func(*httpapi.Options)) *world {
	t.Helper()
	w := &world{t: t, clock: cryptopay.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), hook: &receiver{}}
	registry, store, random := chain.MainnetRegistry(), memory.New(), &locked{r: rand.NewChaCha8([32]byte{2})}
	w.chain = sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Seed: 1, Now: w.clock.Now, Finality: 20})
	seed, err := keys.FromMnemonic(words, "")
	require.NoError(t, err)
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(t, err)
	c := w.chain.Client()
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": c.AddressOf})
	require.NoError(t, err)
	w.app, err = cryptopay.New(cryptopay.Config{
		Store: store, Chains: []chain.Client{c}, Registry: registry, Addresses: source, Clock: w.clock, Random: random,
		Rates:    rates.NewFixed(w.clock.Now, "USD", map[string]string{"ETH": "2000", "USDT": "1"}),
		Key:      bytes.Repeat([]byte{7}, 32),
		Notifier: w.hook, Callbacks: webhook.Guard{AllowHTTP: true},
		Withdrawals: withdrawal.Config{Policy: func(_ context.Context, w withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
			if strings.HasPrefix(w.CustomID, "ask-") {
				return withdrawal.AskReview, "it says so", nil
			}
			return withdrawal.Allow, "", nil
		}},
	})
	require.NoError(t, err)
	w.auth, err = auth.New(auth.Config{Store: store, Key: bytes.Repeat([]byte{9}, 32), Now: w.clock.Now, NewID: w.app.Config().NewID, Random: random})
	require.NoError(t, err)
	require.NoError(t, w.app.Open(t.Context(), append(keys.Tables(), auth.Tables()...)...))
	o := httpapi.Options{Auth: w.auth, Limits: &httpapi.Limits{}}
	for _, f := range options {
		f(&o)
	}
	api, err := httpapi.New(w.app, o)
	require.NoError(t, err)
	w.faults = &faults{api: api}
	w.server = httptest.NewServer(w.faults)
	t.Cleanup(w.server.Close)
	name := "shop"
	tenant, err := w.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	w.tenant = tenant.ID
	app, secret, err := w.auth.CreateApp(t.Context(), auth.NewApp{Tenant: w.tenant, Name: "client"})
	require.NoError(t, err)
	w.id, w.secret = app.ClientID, secret
	w.client = w.newClient()
	return w
}

func (w *world) newClient(refine ...func(*client.Options)) *client.Client {
	w.t.Helper()
	o := client.Options{
		BaseURL: w.server.URL, ClientID: w.id, ClientSecret: w.secret, HTTP: w.server.Client(), Now: w.clock.Now,
		Wait: func(ctx context.Context, d time.Duration) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.waits = append(w.waits, d)
			w.clock.Advance(d)
			return ctx.Err()
		},
	}
	for _, f := range refine {
		f(&o)
	}
	c, err := client.New(o)
	require.NoError(w.t, err)
	return c
}

// pay sends a customer's money and lets the chain grow until it is final.
func (w *world) pay(address, currency, amount string) {
	w.t.Helper()
	_, err := w.chain.Pay(chain.Address(address), currency, decimal.RequireFromString(amount))
	require.NoError(w.t, err)
	w.mine(30)
}

func (w *world) mine(n int) {
	w.t.Helper()
	for range n {
		w.clock.Advance(15 * time.Second)
		w.chain.Mine(1)
		require.NoError(w.t, w.app.Step(w.t.Context()))
	}
}

// receiver takes webhooks as the client's side would.
type receiver struct {
	mu  sync.Mutex
	got []webhook.Delivery
}

func (r *receiver) Notify(_ context.Context, deliveries []webhook.Delivery) []webhook.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]webhook.Result, len(deliveries))
	for i, d := range deliveries {
		r.got = append(r.got, d)
		out[i] = webhook.Result{Status: http.StatusOK}
	}
	return out
}

type locked struct {
	mu sync.Mutex
	r  *rand.ChaCha8
}

func (l *locked) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(p)
}
