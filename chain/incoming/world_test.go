package incoming_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

const (
	btc  chain.Network = "BTC"
	shop string        = "shop"
)

// confs is what ETH and BTC need; the token needs two, and the network's word.
const confs = 6

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

func registry(t testing.TB) *chain.Registry {
	t.Helper()
	r, err := chain.NewRegistry(
		[]chain.NetworkInfo{
			{Code: eth, Family: chain.AccountFamily, Gas: "ETH"},
			{Code: btc, Family: chain.UTXOFamily, Gas: "BTC"},
		},
		[]chain.Currency{
			{Code: "ETH", Network: eth, Token: "ETH", Decimals: 18, Scale: 8, Confirmations: confs, Dust: dec("0.0001")},
			{Code: "USDT", Network: eth, Token: "USDT", Contract: "usdt", Decimals: 6, Scale: 6, Confirmations: 2, WaitFinal: true},
			{Code: "BIG", Network: eth, Token: "BIG", Contract: "big", Decimals: 18, Scale: 8, Confirmations: 1},
			{Code: "BTC", Network: btc, Token: "BTC", Decimals: 8, Scale: 8, Confirmations: confs},
		})
	require.NoError(t, err)
	return r
}

// world is a chain, a store, and the books of a merchant who believes what a
// Handler is told.
type world struct {
	t     testing.TB
	name  chain.Network
	clock *clock
	chain *sim.Chain
	store storage.Store
	pool  *incoming.Pool
	reg   *chain.Registry
	net   *incoming.Network
	mu    sync.Mutex // of what follows: readers may run at once
	facts []incoming.Fact
	books map[string]ledger.Amount // credited, by Generated
}

type option func(*incoming.Config, *sim.Options)

func newWorld(t testing.TB, name chain.Network, seed uint64, options ...option) *world {
	t.Helper()
	w := &world{t: t, name: name, clock: newClock(), store: newStore(t), reg: registry(t), books: map[string]ledger.Amount{}}
	so := sim.Options{Network: name, Registry: w.reg, Seed: seed, Now: w.clock.Now, BlockTime: time.Second}
	for _, o := range options {
		o(&incoming.Config{}, &so)
	}
	w.chain = sim.MustNew(so)
	w.pool = w.newPool(w.store)
	w.net = w.network(w.store, w.chain.Client(), options...)
	require.NoError(t, w.pool.Fill(context.Background(), name))
	return w
}

func (w *world) newPool(s storage.Store) *incoming.Pool {
	src := &source{name: func(_ chain.Network, i uint32) chain.Address { return w.chain.Customer(fmt.Sprint("derived ", i)) }}
	p, err := incoming.NewPool(incoming.PoolConfig{Store: s, Source: src, Now: w.clock.Now, Ahead: 32, Lease: 1})
	require.NoError(w.t, err)
	return p
}

// network is one more reader of the chain.
func (w *world) network(s storage.Store, c chain.Client, options ...option) *incoming.Network {
	cfg := incoming.Config{Store: s, Client: c, Registry: w.reg, Now: w.clock.Now, MaxBlocks: 3, TrailKeep: 64, Handle: w.handle}
	for _, o := range options {
		o(&cfg, &sim.Options{})
	}
	n, err := incoming.New(cfg)
	require.NoError(w.t, err)
	return n
}

// handle books what is proven, and takes back what is gone.
func (w *world) handle(_ context.Context, f incoming.Fact) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.facts = append(w.facts, f)
	s := f.Sighting
	require.Equal(w.t, s.State == incoming.Final, f.Final.Valid())
	require.True(w.t, !f.Final.Valid() || f.Head >= s.FinalAt)
	for g := 1; g < s.Generation; g++ {
		old := s
		old.Generation = g
		require.NotContains(w.t, w.books, old.Generated(), "the generation before was never taken back")
	}
	switch {
	case f.Final.Valid():
		proven := f.Final.Sighting()
		w.books[proven.Generated()] = proven.Amount
	case s.State == incoming.Gone:
		delete(w.books, s.Generated())
	}
	return nil
}

func (w *world) address() chain.Address {
	d, err := w.pool.Take(context.Background(), w.name, shop)
	require.NoError(w.t, err)
	return d.Address
}

func (w *world) pay(to chain.Address, currency, amount string) string {
	tx, err := w.chain.Pay(to, currency, dec(amount))
	require.NoError(w.t, err)
	return tx
}

func (w *world) send(tx sim.Tx) string {
	h, err := w.chain.Send(tx)
	require.NoError(w.t, err)
	return h
}

func (w *world) mine(n int) {
	for range n {
		w.clock.Advance(10 * time.Second)
		w.chain.Mine(1)
	}
}

// step steps the network until nothing is left to do.
func (w *world) step() {
	w.t.Helper()
	w.stepOf(w.net)
}

func (w *world) stepOf(n *incoming.Network) {
	w.t.Helper()
	w.clock.Advance(time.Second)
	for range 100 {
		worked, err := n.Step(context.Background())
		require.NoError(w.t, err)
		if worked == 0 {
			return
		}
	}
	require.Fail(w.t, "never done")
}

func (w *world) cursor(s storage.Store) incoming.Cursor {
	c, _, _, err := incoming.Cursors.One(context.Background(), s, storage.Network(string(w.name)), incoming.CursorID)
	require.NoError(w.t, err)
	return c
}

func (w *world) sightings(s storage.Store) []incoming.Sighting {
	rows, err := s.Find(context.Background(), storage.Query{Table: incoming.Sightings.Table, Partition: storage.Network(string(w.name)), Limit: 1_000_000})
	require.NoError(w.t, err)
	var out []incoming.Sighting
	for _, r := range rows {
		out = append(out, incoming.Sightings.Value(r))
	}
	return out
}

// one is the only sighting of a tx.
func (w *world) one(tx string) incoming.Sighting {
	w.t.Helper()
	all := slices.DeleteFunc(w.sightings(w.store), func(s incoming.Sighting) bool { return s.Tx != tx })
	require.Len(w.t, all, 1)
	return all[0]
}

// truth is what a reader must know of the chain as it is: from a fresh store
// that reads it from its first block.
func (w *world) truth(options ...option) []string {
	w.t.Helper()
	s := newStore(w.t)
	books, facts := w.books, w.facts
	w.books, w.facts = map[string]ledger.Amount{}, nil
	defer func() { w.books, w.facts = books, facts }()
	require.NoError(w.t, w.newPool(s).Fill(context.Background(), w.name))
	addresses, err := w.store.Find(context.Background(), storage.Query{Table: incoming.Addresses.Table, Partition: storage.Network(string(w.name)), Limit: 100_000, Order: []storage.Order{{Column: "seq"}}})
	require.NoError(w.t, err)
	for _, r := range addresses { // the same owners
		rows, err := s.Rows(context.Background(), incoming.Addresses.Table, storage.Keys(storage.Network(string(w.name)), r.ID)...)
		require.NoError(w.t, err)
		version := int64(0)
		if len(rows) > 0 {
			version = rows[0].Version
		}
		c := storage.Change{ID: "copy/" + r.ID, Partition: r.Partition, Put: []storage.Row{incoming.Addresses.Row(r.ID, version, r.Due, incoming.Addresses.Value(r))}}
		require.NoError(w.t, s.Commit(context.Background(), c)[0])
	}
	first, err := w.chain.Client().(chain.Locator).BlockAt(context.Background(), 1)
	require.NoError(w.t, err)
	w.start(s, first)
	w.stepOf(w.network(s, w.chain.Client(), options...))
	return w.summary(s)
}

// start puts a cursor on a block, as if the network had been started there.
func (w *world) start(s storage.Store, b chain.Block) {
	trail, err := incoming.NewTrail([]chain.Block{b})
	require.NoError(w.t, err)
	c := storage.Change{ID: "start", Partition: storage.Network(string(w.name)), Put: []storage.Row{
		incoming.Cursors.Row(incoming.CursorID, 0, time.Time{}, incoming.Cursor{Trail: trail, Head: b.Height, HeadTime: b.Time}),
	}}
	require.NoError(w.t, s.Commit(context.Background(), c)[0])
}

// summary is what is stored of the chain as it is, whatever it once was.
func (w *world) summary(s storage.Store) []string {
	var out []string
	for _, x := range w.sightings(s) {
		if x.State != incoming.Gone {
			out = append(out, fmt.Sprintln(x.Key(), x.State, x.Height, x.BlockHash, x.BlockTime, x.Address, x.Tenant, x.Currency, x.Contract, x.Exact, int64(x.Amount), x.Confirmations(w.cursor(s).Head)))
		}
	}
	slices.Sort(out)
	return out
}

// requireBooks checks that each final transfer is booked once, and nothing else.
func (w *world) requireBooks() {
	w.t.Helper()
	want := map[string]ledger.Amount{}
	for _, s := range w.sightings(w.store) {
		if s.State == incoming.Final {
			want[s.Generated()] = s.Amount
		}
	}
	require.Equal(w.t, want, w.books)
}

// locating hides every ability of a client but one.
type locating struct {
	chain.Client
	chain.Locator
}

func withoutMempool(c chain.Client) chain.Client { return locating{c, c.(chain.Locator)} }
