package httpapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/httpapi/limit"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// world is a host program that serves the interface: a real App on simulated
// chains, with a clock that stands still. Requests go straight to the handler;
// each answer is held to the OpenAPI document.
type world struct {
	t        testing.TB
	clock    *cryptopay.ManualClock
	store    storage.Store
	rates    *rates.Fixed
	chains   map[chain.Network]*sim.Chain
	app      *cryptopay.App
	auth     *auth.Service
	api      http.Handler
	inbox    *inbox
	contract *contract // what api promises

	tenant string
	admin  credentials // read, write, admin; tenant_admin
	token  string      // of admin
	earned string      // the payment that was earned last: what {transaction_id} of a path is
}

type credentials struct{ id, secret string }

// setup is what a test may have otherwise.
type setup struct {
	store    storage.Store
	networks []chain.Network
	options  func(*httpapi.Options)
	config   func(*cryptopay.Config)
	real     bool // addresses are written as on the real networks
}

// realistic writes addresses of a simulated network as the real one does.
type realistic struct{ address.Format }

func (f realistic) Parse(s string) (chain.Address, error) {
	info, err := f.Format.Parse(s)
	return info.Canonical, err
}

const words = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

func newWorld(t testing.TB, with ...func(*setup)) *world {
	t.Helper()
	s := setup{store: memory.New(), networks: []chain.Network{"ETH", "BTC"}}
	for _, f := range with {
		f(&s)
	}
	w := &world{
		t: t, clock: cryptopay.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), store: s.store,
		chains: map[chain.Network]*sim.Chain{}, inbox: &inbox{},
	}
	w.rates = rates.NewFixed(w.clock.Now, "USD", map[string]string{"ETH": "2000", "BTC": "60000", "USDT": "1", "USDC": "1", "XRP": "2", "XLM": "0.2", "DAI": "1", "TRX": "0.25", "SOL": "150"})
	for _, n := range s.networks {
		o := sim.Options{Network: n, Registry: chain.MainnetRegistry(), Seed: 1, Now: w.clock.Now, Finality: 20}
		if format, ok := address.For(n); s.real && ok {
			o.Addresses = realistic{format}
		}
		w.chains[n] = sim.MustNew(o)
	}
	random := &lockedRandom{r: rand.NewChaCha8([32]byte{1})}
	w.app = w.compose(s, random)
	var err error
	w.auth, err = auth.New(auth.Config{Store: w.store, Key: bytes.Repeat([]byte{9}, 32), Now: w.clock.Now, NewID: w.app.Config().NewID, Random: random})
	require.NoError(t, err)
	require.NoError(t, w.app.Open(t.Context(), append(keys.Tables(), auth.Tables()...)...))
	o := httpapi.Options{Auth: w.auth, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Random: random, Limiter: limit.NewMemory(1000)}
	if s.options != nil {
		s.options(&o)
	}
	w.api, err = httpapi.New(w.app, o)
	require.NoError(t, err)
	w.contract = contractOf(t, w.api)
	w.tenant = w.newTenant("shop")
	w.admin = w.newApp(w.tenant, auth.TenantAdmin, auth.Read, auth.Write, auth.Admin)
	w.token = w.newToken(w.admin, "")
	return w
}

func (w *world) compose(s setup, random io.Reader) *cryptopay.App {
	w.t.Helper()
	registry := chain.MainnetRegistry()
	seed, err := keys.FromMnemonic(words, "")
	require.NoError(w.t, err)
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(w.t, err)
	stellar, err := seed.XPub("m/44'/148'/0'") // a simulated chain takes any key
	require.NoError(w.t, err)
	accounts = append(accounts, keys.Account{Network: "XLM", Path: "m/44'/148'/0'", XPub: stellar})
	var clients []chain.Client
	encode, inspect := map[chain.Network]keys.Encode{}, map[chain.Network]keys.Chain{}
	for n, c := range w.chains {
		client := c.Client()
		clients = append(clients, client)
		encode[n], inspect[n] = client.AddressOf, client
	}
	source, err := keys.NewSource(accounts, encode)
	require.NoError(w.t, err)
	var app *cryptopay.App
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: inspect, Registry: keys.StoreRegistry{Store: w.store},
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return app.KeyOf(ctx, n, a)
		},
	})
	require.NoError(w.t, err)
	cfg := cryptopay.Config{
		Store: w.store, Chains: clients, Registry: registry, Addresses: source, Signer: signer, Rates: w.rates,
		Key: bytes.Repeat([]byte{7}, 32), Clock: w.clock, Random: random, Notifier: w.inbox,
		Callbacks: webhook.Guard{AllowHTTP: true}, Log: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
	}
	if s.config != nil {
		s.config(&cfg)
	}
	app, err = cryptopay.New(cfg)
	require.NoError(w.t, err)
	return app
}

func (w *world) newTenant(name string) string {
	w.t.Helper()
	t, err := w.app.Wallets.CreateTenant(w.t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(w.t, err)
	return t.ID
}

func (w *world) newApp(tenant string, role auth.Role, scopes ...auth.Scope) credentials {
	w.t.Helper()
	app, secret, err := w.auth.CreateApp(w.t.Context(), auth.NewApp{Tenant: tenant, Name: "test", Scopes: scopes, Role: role})
	require.NoError(w.t, err)
	return credentials{app.ClientID, secret}
}

func (w *world) newToken(c credentials, scope string) string {
	w.t.Helper()
	t, err := w.auth.Token(w.t.Context(), c.id, c.secret, scope)
	require.NoError(w.t, err)
	return t.AccessToken
}

// answer is one answer of the interface.
type answer struct {
	Status int
	Header http.Header
	Raw    string
	Body   map[string]any // nil where the body is no JSON object
}

// at walks into the body: at("error", "code").
func (a answer) at(path ...string) any {
	var v any = a.Body
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func (a answer) code() string { s, _ := a.at("error", "code").(string); return s }

// with refines a request.
type with func(*http.Request)

func bearer(token string) with {
	return header("Authorization", "Bearer "+token)
}

func apiKey(key string) with { return header("X-API-Key", key) }

func header(name, value string) with {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func basic(c credentials) with {
	return header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.id+":"+c.secret)))
}

// nobody takes the token away.
func nobody() with { return func(r *http.Request) { r.Header.Del("Authorization") } }

// do sends one request as the shop, unless told otherwise. body is text (sent
// as it is), url.Values (a form), nil, or anything that becomes JSON.
func (w *world) do(method, path string, body any, refine ...with) answer {
	w.t.Helper()
	var reader io.Reader
	media := "application/json"
	switch b := body.(type) {
	case nil:
		media = ""
	case string:
		reader = strings.NewReader(b)
	case url.Values:
		reader, media = strings.NewReader(b.Encode()), "application/x-www-form-urlencoded"
	default:
		raw, err := json.Marshal(b)
		require.NoError(w.t, err)
		reader = bytes.NewReader(raw)
	}
	r := httptest.NewRequestWithContext(w.t.Context(), method, strings.Replace(path, "{transaction_id}", w.earned, 1), reader)
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	for _, f := range refine {
		f(r)
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	a := answer{Status: rec.Code, Header: rec.Header(), Raw: rec.Body.String()}
	if strings.HasPrefix(strings.TrimSpace(a.Raw), "{") {
		d := json.NewDecoder(strings.NewReader(a.Raw))
		d.UseNumber()
		require.NoError(w.t, d.Decode(&a.Body), "%s", a.Raw)
	}
	conform(w.t, w.contract, r, a)
	return a
}

// ok is do for a request that must succeed.
func (w *world) ok(status int, method, path string, body any, refine ...with) answer {
	w.t.Helper()
	a := w.do(method, path, body, refine...)
	require.Equal(w.t, status, a.Status, "%s", a.Raw)
	return a
}

// mine grows every chain by n blocks, with time to work in between.
func (w *world) mine(n int) {
	w.t.Helper()
	for range n {
		w.clock.Advance(15 * time.Second)
		for _, c := range w.chains {
			c.Mine(1)
		}
		w.step()
	}
}

func (w *world) step() {
	w.t.Helper()
	require.NoError(w.t, w.app.Step(w.t.Context()))
}

// fund gives a hot address the operator's own coins, for gas.
func (w *world) fund(tenant string) {
	w.t.Helper()
	for n, c := range w.chains {
		hot, err := w.app.Hot(w.t.Context(), n, tenant)
		require.NoError(w.t, err)
		gas, err := chain.MainnetRegistry().Gas(n)
		require.NoError(w.t, err)
		_, err = c.Fund(hot, gas.Code, decimal.RequireFromString("10"))
		require.NoError(w.t, err)
	}
	w.mine(25)
}

// hold holds so many coins of one of the shop's accounts, as a withdrawal does.
func (w *world) hold(account, currency, amount string) {
	w.t.Helper()
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(w.t, err)
	units, err := c.Units(decimal.RequireFromString(amount), ledger.Down)
	require.NoError(w.t, err)
	id := "hold/" + account + "/" + currency
	require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, storage.Change{ID: id, Partition: storage.Tenant(w.tenant), Post: []ledger.Tx{{
		ID: id, Kind: ledger.KindWithdrawal, At: w.clock.Now(), Legs: []ledger.Leg{{Account: ledger.Wallet(account), Asset: c.Asset(), Hold: units}},
	}}}))
}

// earn takes a payment in a currency and brings it to its end, so that the
// master account, or wallet, has coins.
func (w *world) earn(currency, usd, wallet string, refine ...with) answer {
	w.t.Helper()
	body := map[string]any{"amount": usd, "currency": currency, "order_id": "earned"}
	if wallet != "" {
		body["wallet_id"] = wallet
	}
	p := w.ok(http.StatusCreated, "POST", "/payments/", body, refine...)
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(w.t, err)
	_, err = w.chains[c.Network].Pay(chain.Address(p.Body["address"].(string)), currency, decimal.RequireFromString(p.Body["amount_crypto"].(string)))
	require.NoError(w.t, err)
	w.mine(30)
	w.earned = p.Body["transaction_id"].(string)
	return w.ok(http.StatusOK, "POST", "/payments/status/", map[string]any{"transaction_id": w.earned}, refine...)
}

// inbox takes every webhook.
type inbox struct {
	mu  sync.Mutex
	got []webhook.Delivery
}

func (i *inbox) Notify(_ context.Context, deliveries []webhook.Delivery) []webhook.Result {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]webhook.Result, len(deliveries))
	for k, d := range deliveries {
		if d.URL == "" {
			out[k] = webhook.Result{Err: webhook.ErrNoURL}
			continue
		}
		i.got = append(i.got, d)
		out[k] = webhook.Result{Status: http.StatusOK}
	}
	return out
}

// lockedRandom is one seeded stream for all.
type lockedRandom struct {
	mu sync.Mutex
	r  *rand.ChaCha8
}

func (l *lockedRandom) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(p)
}
