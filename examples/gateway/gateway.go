package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/httpapi/checkout"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// gateway is the program's parts.
type gateway struct {
	s       settings
	log     *slog.Logger
	store   storage.Store
	world   *world
	app     *cryptopay.App
	auth    *auth.Service
	api     *httpapi.Handler
	metrics *metrics
	// signerStore remembers what the signer in this program has signed, nil = store does.
	signerStore storage.Store
	pages       atomic.Pointer[checkout.Handler] // of customers, once the address is known
	shown       credentials                      // for the greeting

	// busy is held while background work is done in development, so that a
	// /dev/ request returns when there is none left.
	busy sync.Mutex

	told map[hotOf]bool // whose hot address was told, or given coins

	unsealed time.Time // until when rows that nobody sealed are taken
}

// hotOf is a tenant's hot address on a network.
type hotOf struct {
	network chain.Network
	tenant  string
}

type credentials struct {
	id, secret string
	fresh      bool // made now: the secret is shown once
}

func open(ctx context.Context, s settings, log *slog.Logger) (*gateway, error) {
	g := &gateway{s: s, log: log, metrics: newMetrics(), told: map[hotOf]bool{}}
	c := &clock{Clock: cryptopay.SystemClock{}}
	ring, made, err := loadKeys(s.keyFile)
	if err != nil {
		return nil, err
	}
	if g.unsealed, err = g.unsealedUntil(made); err != nil {
		return nil, err
	}
	if len(s.command) > 0 {
		if g.store, err = findStore(s.store); err != nil {
			err = fmt.Errorf("-store: %w", err)
		}
	} else {
		g.store, err = openStore(ctx, s.store, s.migrate)
	}
	if err != nil {
		return nil, err
	}
	ready := false
	defer func() {
		if !ready {
			_ = g.closeStores()
		}
	}()
	if err := g.store.Open(ctx, tables()...); err != nil {
		if errors.Is(err, storage.ErrSchema) && !s.migrate && strings.HasPrefix(s.store, "redis") {
			err = fmt.Errorf("%w: stop every process on this store, then start one with -migrate", err)
		}
		return nil, err
	}
	if g.world, err = openWorld(ctx, s, g.store, c, log); err != nil {
		return nil, err
	}
	steps := []func(context.Context, keyring) error{g.compose, g.accounts, g.serve, g.float}
	if len(s.command) > 0 {
		steps = []func(context.Context, keyring) error{g.compose, g.authenticate}
	}
	for _, build := range steps {
		if err := build(ctx, ring); err != nil {
			return nil, err
		}
	}
	ready = true
	return g, nil
}

func tables() []*storage.Table {
	return slices.Concat(cryptopay.Tables(), keys.Tables(), auth.Tables(), []*storage.Table{worlds.Table, seeds.Table})
}

// openStore opens a store that it has brought to this version's schema. On Redis that
// takes the operator's word that no other process runs: migrate. It has the gateway's tables
// and more.
func openStore(ctx context.Context, dsn string, migrate bool, more ...*storage.Table) (storage.Store, error) {
	return makeStore(ctx, dsn, migrate, slices.Concat(tables(), more))
}

func makeStore(ctx context.Context, dsn string, migrate bool, tables []*storage.Table) (storage.Store, error) {
	kind, rest, _ := strings.Cut(dsn, ":")
	switch kind {
	case "memory":
		return memory.New(), nil
	case "sqlite":
		if err := sqlite.Migrate(ctx, rest, tables...); err != nil {
			return nil, err
		}
	case "postgres", "postgresql":
		if err := postgres.Migrate(ctx, dsn, postgres.Options{}, tables...); err != nil {
			return nil, err
		}
	case "mysql":
		if err := mysql.Migrate(ctx, dsn, mysql.Options{}, tables...); err != nil {
			return nil, err
		}
	case "redis", "rediss":
		if !migrate {
			break
		}
		client, err := redisClient(dsn)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(redisstore.Migrate(ctx, client, redisstore.Options{}, tables...), client.Close()); err != nil {
			return nil, err
		}
	}
	return connectStore(dsn)
}

// connectStore connects to a store as it is.
func connectStore(dsn string) (storage.Store, error) {
	switch kind, rest, _ := strings.Cut(dsn, ":"); kind {
	case "sqlite":
		return sqlite.Open(rest, sqlite.Options{})
	case "postgres", "postgresql":
		return postgres.Open(dsn, postgres.Options{})
	case "mysql":
		return mysql.Open(dsn, mysql.Options{})
	case "redis", "rediss":
		client, err := redisClient(dsn)
		if err != nil {
			return nil, err
		}
		return redisstore.New(client, redisstore.Options{}).Own(), nil
	default:
		return nil, fmt.Errorf("%s: … is not in this version; memory, sqlite:FILE, postgres://…, mysql://… and redis://… are", kind)
	}
}

func redisClient(dsn string) (*redis.Client, error) {
	o, err := redis.ParseURL(dsn)
	if err != nil {
		return nil, errors.New("redis://…: must be redis://USER:PASSWORD@HOST:PORT/0") // the cause may repeat the password
	}
	return redis.NewClient(o), nil
}

// compose is the embedding of the library.
func (g *gateway) compose(ctx context.Context, ring keyring) error {
	encode, chains := map[chain.Network]keys.Encode{}, map[chain.Network]keys.Chain{}
	for _, c := range g.world.clients {
		encode[c.Network()], chains[c.Network()] = c.AddressOf, c
	}
	source, signer, err := g.custody(ctx, ring, encode, chains)
	if err != nil {
		return err
	}
	cfg := cryptopay.Config{
		Store: g.store, Chains: g.world.clients, Registry: g.world.registry, Addresses: source, Signer: signer,
		Rates: g.world.rates, Keys: ring.of(forLibrary), Clock: g.world.clock, Log: g.log, Callbacks: g.callbacks(),
	}
	cfg.Payments.NetworkFee = g.networkFee()
	cfg.Reconcile.Halt = g.s.reconcileHalt
	cfg.Grace = g.s.patience
	cfg.Retire, cfg.Elsewhere, cfg.UnsealedUntil, cfg.HouseAddresses = g.s.retire, g.s.elsewhere, g.unsealed, g.s.house
	cfg.Poll, cfg.Outgoing.Poll, cfg.Outgoing.Backoff = g.s.poll, 2*g.s.poll, g.s.poll
	cfg.PollOn = g.s.nodes.Polls()
	cfg.Workers = []cryptopay.Worker{{Name: "tokens", Every: time.Minute, Step: func(ctx context.Context) (int, error) { return g.auth.Purge(ctx, purgeBatch) }}}
	cfg.Verify, cfg.Observer = g.alteredCredentials, g.metrics.app
	if g.s.real() {
		cfg.Workers = append(cfg.Workers, cryptopay.Worker{Name: "hot addresses", Every: hotEvery, Step: g.tellHot})
	}
	if g.s.dev {
		impatient(&cfg)
		cfg.Notifier = webhook.NewHTTP(webhook.HTTPOptions{Guard: cfg.Callbacks, Timeout: devTimeout})
	}
	if g.app, err = cryptopay.New(cfg); err != nil {
		return err
	}
	g.metrics.app.Watch(g.app)
	err = g.app.Open(ctx, tables()...)
	if errors.Is(err, cryptopay.ErrUnsealed) {
		err = fmt.Errorf("CRYPTOPAY_UNSEALED_UNTIL: %w", err)
	}
	if err != nil || !g.s.upgraded {
		return err
	}
	return g.app.Upgraded(ctx)
}

// impatient makes what is looked at again after a while due at the next /dev/
// request, for which the clock moves a tick: nothing else moves time there. One
// process does all work, one piece at a time, so that leases guard nothing.
func impatient(cfg *cryptopay.Config) {
	soon := tick / 2
	cfg.Outgoing.Poll, cfg.Outgoing.Backoff, cfg.Outgoing.Lease = soon, soon/64, soon
	cfg.Withdrawals.RetryDelay, cfg.Withdrawals.Lease = soon, soon
	cfg.Treasury.Lease, cfg.Payments.Lease = soon, soon
}

// devTimeout is how long a receiver may hold up a /dev/ request.
const devTimeout = 5 * time.Second

func (g *gateway) callbacks() webhook.Guard {
	if !g.s.private {
		return webhook.Guard{}
	}
	var all []netip.Prefix
	for _, p := range []string{"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7"} {
		all = append(all, netip.MustParsePrefix(p))
	}
	return webhook.Guard{AllowHTTP: true, Allow: all}
}

// networkFee is what a payment is charged for the network.
func (g *gateway) networkFee() func(context.Context, *chain.Currency) (ledger.Amount, error) {
	switch g.s.networkFee {
	case "none":
		return nil
	case "estimate":
		return func(ctx context.Context, c *chain.Currency) (ledger.Amount, error) { return g.app.NetworkFee(ctx, c) }
	}
	fixed, err := ledger.ParseDecimal(g.s.networkFee)
	if err != nil {
		panic(err) // was checked when it was read
	}
	return func(_ context.Context, c *chain.Currency) (ledger.Amount, error) { return c.Units(fixed, ledger.Up) }
}

// serve builds the interface.
func (g *gateway) serve(context.Context, keyring) error { return g.serveAs(g.s.base) }

// serveAs builds the interface with the public address that its links name.
func (g *gateway) serveAs(base string) (err error) {
	o := httpapi.Options{Auth: g.auth, Log: g.log, Observe: g.observe, BaseURL: base, TrustedProxies: g.s.proxies}
	o.CheckoutURL = func(tenant, payment string) string {
		if p := g.pages.Load(); p != nil {
			return p.URL(tenant, payment)
		}
		return ""
	}
	if !g.s.limits {
		o.Limits = &httpapi.Limits{}
	}
	if g.s.dev {
		o.More = g.devRoutes()
	}
	g.api, err = httpapi.New(g.app, o)
	return err
}

// hasOrigin reports whether a URL has a host and no path.
func hasOrigin(base string) bool {
	u, err := url.Parse(base)
	return err == nil && u.Host != "" && strings.Trim(u.Path, "/") == ""
}

// baseURL is the public address: that of the settings, else what this process listens on where
// that is loopback and no proxy stands before it, "" = none.
func (g *gateway) baseURL(listening net.Addr) string {
	if at, ok := listening.(*net.TCPAddr); g.s.base == "" && len(g.s.proxies) == 0 && ok && at.IP.IsLoopback() {
		return "http://" + listening.String()
	}
	return g.s.base
}

// serveAt has the links of all that is served name the public address.
func (g *gateway) serveAt(listening net.Addr) error {
	if base := g.baseURL(listening); base != g.s.base {
		if err := g.serveAs(base); err != nil {
			return err
		}
	}
	return g.serveCheckout(listening)
}

// serveCheckout serves the pages that customers pay on, below /checkout/, where their links have a
// public address.
func (g *gateway) serveCheckout(listening net.Addr) error {
	base := g.baseURL(listening)
	if !hasOrigin(base) {
		return nil
	}
	p, err := checkout.New(g.app, checkout.Options{BaseURL: base, Log: g.log})
	if err == nil {
		g.pages.Store(p)
	}
	return err
}

// observe counts a request and writes its line, unless a limit refused it: never a
// header, a query or a body.
func (g *gateway) observe(o httpapi.Observation) {
	g.metrics.observe(o)
	if o.Limited {
		return // a line for each would let anybody fill the log
	}
	g.log.Info("request", "method", o.Method, "path", o.Path, "status", o.Status, "duration_ms", o.Duration.Milliseconds(), "request_id", o.RequestID)
}

// handler is the interface, with health in a word, and metrics of simulated chains where they
// have no address of their own: of real ones they say what is held, owed and earned.
func (g *gateway) handler() http.Handler {
	shown := g.metrics.handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A ServeMux would redirect paths that are not clean.
		switch get := r.Method == http.MethodGet || r.Method == http.MethodHead; {
		case get && r.URL.Path == "/metrics" && g.s.metrics == "" && !g.s.real():
			shown.ServeHTTP(w, r)
		case get && (r.URL.Path == "/readyz" || r.URL.Path == "/healthz"):
			g.ready(w, r)
		case get && r.URL.Path == "/livez":
			_, _ = w.Write([]byte("ok\n"))
		case strings.HasPrefix(r.URL.Path, "/checkout/") && g.pages.Load() != nil:
			g.pages.Load().ServeHTTP(w, r)
		default:
			g.api.ServeHTTP(w, r)
		}
	})
}

// ready says whether this process can serve, and nothing more: anybody may ask.
func (g *gateway) ready(w http.ResponseWriter, r *http.Request) {
	if err := g.app.Ready(r.Context()); err != nil {
		g.log.ErrorContext(r.Context(), "not_ready", "error", err)
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// partView is a part of the App's health, as operators see it.
type partView struct {
	Name   string    `json:"name"`
	State  string    `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
}

// health is ready for operators: with each part, and why it is not well.
func (g *gateway) health(w http.ResponseWriter, r *http.Request) {
	h := g.app.Health(r.Context())
	view := struct {
		Ready bool       `json:"ready"`
		State string     `json:"state"`
		Parts []partView `json:"parts"`
	}{Ready: h.Ready(), State: string(h.State())}
	for _, p := range h.Parts() {
		view.Parts = append(view.Parts, partView{p.Name, string(p.State), p.Reason, p.Since})
	}
	w.Header().Set("Content-Type", "application/json")
	if !view.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(view)
}

// work does what is due until ctx ends.
func (g *gateway) work(ctx context.Context) {
	var beside sync.WaitGroup
	beside.Go(func() { g.verify(ctx) })
	if !g.s.dev {
		if err := g.app.Run(ctx); err != nil {
			g.log.Error("work_ended", "error", err)
		}
		beside.Wait()
		return
	}
	// Chains grow only by /dev/mine, and withdrawals are picked up only by the
	// /dev/ endpoints: all else goes on by itself.
	workers := slices.DeleteFunc(g.app.Workers(), func(w cryptopay.Worker) bool { return w.Name == "withdrawals" })
	due := map[string]time.Time{}
	for g.world.clock.Wait(ctx, pause) == nil {
		g.busy.Lock()
		for _, w := range workers {
			now := g.world.clock.Now()
			if now.Before(due[w.Name]) {
				continue
			}
			due[w.Name] = now.Add(w.Every)
			if _, err := w.Step(ctx); err != nil && ctx.Err() == nil {
				g.log.Error("work_failed", "worker", w.Name, "error", err)
			}
		}
		g.busy.Unlock()
	}
	beside.Wait()
}

// close ends everything; chains are written down once more.
func (g *gateway) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(g.world.save(ctx), g.closeStores())
}

func (g *gateway) closeStores() error {
	if g.signerStore == nil {
		return g.store.Close()
	}
	return errors.Join(g.store.Close(), g.signerStore.Close())
}

// floatCoins is what every simulated hot address gets for gas, in the network's
// own coin.
const floatCoins = 1000

// float gives hot addresses coins of the operator's own in development: they
// pay the networks, merchants' coins never do.
func (g *gateway) float(ctx context.Context, _ keyring) error {
	if !g.s.dev {
		return nil
	}
	given := false
	for _, c := range g.world.sims {
		if c.Height() > 1 {
			continue // it was given at the first start
		}
		for _, id := range g.s.ids() {
			if err := g.fund(ctx, c, id); err != nil {
				return err
			}
		}
		if err := g.bury(c); err != nil {
			return err
		}
		given = true
	}
	if !given {
		return nil
	}
	return g.settle(ctx)
}

// fund gives a hot address its float.
func (g *gateway) fund(ctx context.Context, c *sim.Chain, tenant string) error {
	hot, err := g.app.Hot(ctx, c.Network(), tenant)
	if err != nil {
		return err
	}
	gas, err := g.world.registry.Gas(c.Network())
	if err == nil {
		_, err = c.Fund(hot, gas.Code, decimal.NewFromInt(floatCoins))
	}
	g.told[hotOf{c.Network(), tenant}] = err == nil
	return err
}

// bury mines until what was funded is final.
func (g *gateway) bury(c *sim.Chain) error {
	gas, err := g.world.registry.Gas(c.Network())
	if err == nil {
		c.Mine(int(gas.Confirmations) + 20)
	}
	return err
}

// newcomers gives the float to tenants that the operator's command has made since.
func (g *gateway) newcomers(ctx context.Context) error {
	funded := map[chain.Network]bool{}
	err := g.everyTenant(ctx, func(id string) error {
		for _, c := range g.world.sims {
			of := hotOf{c.Network(), id}
			if g.told[of] {
				continue
			}
			gas, err := g.world.registry.Gas(of.network)
			if err != nil {
				return err
			}
			hot, err := g.app.Hot(ctx, of.network, id)
			if errors.Is(err, cryptopay.ErrNotReady) {
				continue // its first block is read in a moment
			}
			if err != nil {
				return err
			}
			held, err := c.Client().(chain.Balancer).Balance(ctx, gas.Code, hot) //nolint:errcheck,forcetypeassert // a simulated chain tells balances
			if err != nil {
				return err
			}
			if g.told[of] = true; !held.IsZero() || slices.Contains(g.s.ids(), id) {
				continue
			}
			if err := g.fund(ctx, c, id); err != nil {
				return err
			}
			funded[of.network] = true
		}
		return nil
	})
	for _, c := range g.world.sims {
		if funded[c.Network()] {
			err = errors.Join(err, g.bury(c))
		}
	}
	return err
}

// purgeBatch is how many outlived tokens are forgotten at a time.
const purgeBatch = 500

// random is the source of everything secret.
var random = rand.Reader
