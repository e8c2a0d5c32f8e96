package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/chain/sim/remote"
	"github.com/cryptopay-go/cryptopay/storage"
)

// child makes this test's own program run the gateway instead: the program as
// it is, on chains that live in the test's process, with a clock that runs fast
// and a place at which it dies or stands still.
const child = "CRYPTOPAY_TEST_CHILD"

// program makes it be the gateway as it is built, settings and all.
const program = "CRYPTOPAY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(program) != "" {
		dieWithTheTest()
		main()
		return
	}
	if text := os.Getenv(child); text != "" {
		if err := live(text); err != nil {
			fmt.Fprintln(os.Stderr, "gateway:", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	_ = os.Remove(builtSigner)
	os.Exit(code)
}

const (
	testClient = "test-client"
	testSecret = "test-secret-of-some-length"
)

// order is what such a gateway has to know.
type order struct {
	Store  string
	Key    string // file
	Chains map[chain.Network]string
	Clock  fast
	Hot    bool              // say where the hot addresses are
	Env    map[string]string // settings beside those of every child
	Point  point
}

// fast is a clock that makes a minute of every second, so that the leases and
// schedules are those of production and a test need not sit them out.
type fast struct {
	Epoch   time.Time // of the wall: here all clocks agree
	Skipped time.Duration
	Slow    bool // it runs as the wall does
}

const speed = 60

func (f fast) at(wall time.Time) time.Time {
	return f.Epoch.Add(f.Skipped + time.Duration(f.speed())*wall.Sub(f.Epoch))
}

func (f fast) speed() int64 {
	if f.Slow {
		return 1
	}
	return speed
}

// Now implements cryptopay.Clock.
func (f fast) Now() time.Time { return f.at(time.Now()).UTC() }

// Wait implements cryptopay.Clock.
func (f fast) Wait(ctx context.Context, d time.Duration) error {
	return cryptopay.SystemClock{}.Wait(ctx, d/time.Duration(f.speed()))
}

// point is where a process ends, or stands still until it is told to go on: at
// the nth time that it gets to a place. A place is "before" or "after" a commit
// that puts a table's row, "claimed" and a table, or one of those below.
type point struct {
	At   string
	Nth  int
	Stop bool
}

// The places between the decision to pay and the record of it.
const (
	signed  = "signed, not stored"
	stored  = "stored, not sent"
	sent    = "sent, not recorded"
	reached = "stands at " // what it says then
)

// points counts down to a point.
type points struct {
	mu sync.Mutex
	point
}

func (p *points) hit(place string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.At != place {
		return
	}
	if p.Nth--; p.Nth != 0 {
		return
	}
	fmt.Println(reached + place)
	sig := syscall.SIGKILL
	if p.Stop {
		sig = syscall.SIGSTOP
	}
	_ = syscall.Kill(os.Getpid(), sig)
	if !p.Stop {
		select {} // it takes a moment
	}
}

// pointedStore knows the places around commits.
type pointedStore struct {
	storage.Store
	points *points
}

func (s pointedStore) Commit(ctx context.Context, changes ...storage.Change) []error {
	var names []string
	for _, c := range changes {
		for _, r := range c.Put {
			if !slices.Contains(names, r.Table.Name) {
				names = append(names, r.Table.Name)
			}
		}
	}
	for _, n := range names {
		s.points.hit("before " + n)
	}
	errs := s.Store.Commit(ctx, changes...)
	for _, n := range names {
		s.points.hit("after " + n)
	}
	return errs
}

func (s pointedStore) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	rows, err := s.Store.Claim(ctx, c)
	if len(rows) > 0 {
		s.points.hit("claimed " + c.Table.Name)
	}
	return rows, err
}

// clockedStore tells the time as fast as the processes' clocks run.
type clockedStore struct {
	pointedStore
	wall storage.Clock
	fast fast
}

func (s clockedStore) Now(ctx context.Context) (time.Time, error) {
	t, err := s.wall.Now(ctx)
	return s.fast.at(t), err
}

// fullClient is a client with every ability that a simulated chain has.
type fullClient interface {
	chain.Client
	chain.Mempool
	chain.Balancer
	chain.Noncer
	chain.Historian
	chain.Locator
	chain.ParentPayer
	chain.Tagger
}

// pointedClient knows the places around signing and sending.
type pointedClient struct {
	fullClient
	points *points
}

func (c pointedClient) Assemble(u chain.Unsigned, sigs []chain.Signature) (chain.Signed, error) {
	s, err := c.fullClient.Assemble(u, sigs)
	c.points.hit(signed)
	return s, err
}

func (c pointedClient) Broadcast(ctx context.Context, s chain.Stored) error {
	c.points.hit(stored)
	err := c.fullClient.Broadcast(ctx, s)
	c.points.hit(sent)
	return err
}

// simulated is the chain of a network as every process of a test makes it.
func simulated(n chain.Network, now func() time.Time) (*sim.Chain, error) {
	format, ok := address.For(n)
	if !ok {
		return nil, fmt.Errorf("addresses of %s are unknown", n)
	}
	return sim.New(sim.Options{
		Network: n, Registry: chain.MainnetRegistry(), Addresses: realistic{format}, Now: now, Finality: 6,
		Seed: uint64(max(0, slices.Index(townNetworks, n)) + 1), // as the signer program simulates them
	})
}

// open composes the gateway of an order.
func (o order) open(ctx context.Context, log *slog.Logger) (*gateway, error) {
	env := map[string]string{
		"CRYPTOPAY_CLIENT_ID": testClient, "CRYPTOPAY_CLIENT_SECRET": testSecret, "CRYPTOPAY_ALLOW_PRIVATE_CALLBACKS": "1",
		"CRYPTOPAY_RATE_LIMITS": "off", "CRYPTOPAY_TRANSACTION_FEE": "0",
	}
	maps.Copy(env, o.Env)
	args := []string{"-addr", "127.0.0.1:0", "-store", o.Store, "-key-file", o.Key, "-dev=false"}
	s, err := readSettings(args, func(name string) string { return env[name] })
	if err != nil {
		return nil, err
	}
	g := &gateway{s: s, log: log, metrics: newMetrics(), told: map[hotOf]bool{}}
	ring, _, err := loadKeys(s.keyFile)
	if err != nil {
		return nil, err
	}
	if g.store, err = openStore(ctx, s.store, s.migrate); err != nil {
		return nil, err
	}
	at := &points{point: o.Point}
	pointed := pointedStore{g.store, at}
	if wall, shared := g.store.(storage.Clock); shared {
		g.store = clockedStore{pointed, wall, o.Clock}
	} else {
		g.store = pointed
	}
	if err := g.store.Open(ctx, tables()...); err != nil {
		return nil, err
	}
	if g.world, err = o.world(g.store, at); err != nil {
		return nil, err
	}
	for _, build := range []func(context.Context, keyring) error{g.compose, g.accounts, g.serve} {
		if err := build(ctx, ring); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (o order) world(store storage.Store, at *points) (*world, error) {
	w := &world{registry: chain.MainnetRegistry(), store: store, clock: &clock{Clock: o.Clock}}
	fixed := rates.NewFixed(w.clock.Now, "USD", firstPrices)
	for token, usd := range firstPrices {
		fixed.Set(token, "EUR", decimal.RequireFromString(usd))
	}
	w.rates = fixed
	for n, url := range o.Chains {
		local, err := simulated(n, w.clock.Now)
		if err != nil {
			return nil, err
		}
		full, ok := remote.Dial(url, local).(fullClient)
		if !ok {
			return nil, fmt.Errorf("the client of %s lacks abilities", n)
		}
		w.clients = append(w.clients, pointedClient{full, at})
	}
	slices.SortFunc(w.clients, func(a, b chain.Client) int { return cmp.Compare(a.Network(), b.Network()) })
	return w, nil
}

// dieWithTheTest: nobody is to live on when the test has died.
func dieWithTheTest() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

// live is the process.
func live(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	dieWithTheTest()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	g, err := o.open(ctx, slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return err
	}
	if o.Hot {
		if _, err := g.tellHot(ctx); err != nil {
			return err
		}
	}
	return g.run(ctx)
}
