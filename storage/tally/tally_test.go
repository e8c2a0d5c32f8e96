package tally_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// order is a row that is counted by status and currency: by day, and by owner.
type order struct {
	Status    string    `db:"status"`
	Currency  string    `db:"currency"`
	Owner     string    `db:"owner"`
	Amount    int64     `db:"amount"`
	CreatedAt time.Time `db:"created_at"`
}

var orders = storage.NewTable[order]("tally_orders", storage.Index("created_at"), storage.Index("owner", "created_at"))

var byDay = &tally.Tally{Name: "orders", Table: orders.Table, Of: func(r storage.Row) tally.Item {
	v := orders.Value(r)
	i := tally.Item{At: v.CreatedAt, Key: []string{v.Status, v.Currency}}
	if v.Status != "open" {
		i.Sums = []tally.Sum{{Name: "a", Value: decimal.NewFromInt(v.Amount)}}
	}
	return i
}}

var byOwner = &tally.Tally{Name: "owned", Table: orders.Table, Column: "owner", Of: func(r storage.Row) tally.Item {
	v := orders.Value(r)
	return tally.Item{At: v.CreatedAt, Group: v.Owner, Key: []string{v.Status, v.Currency}}
}}

// counts is what a write of an order counts.
func counts(was, is *order) []storage.Count {
	var out []storage.Count
	for _, t := range []*tally.Tally{byDay, byOwner} {
		var before *tally.Item
		if was != nil {
			i := t.Of(orders.Row("", 0, time.Time{}, *was))
			before = &i
		}
		after := t.Of(orders.Row("", 0, time.Time{}, *is))
		out = append(out, t.Moved(before, &after)...)
	}
	return out
}

// writer writes orders and posts, as a domain does.
type writer struct {
	t       testing.TB
	store   storage.Store
	random  *rand.Rand
	seed    uint64
	shop    storage.Partition
	n       int
	orders  map[string]order
	version map[string]int64
	posted  map[ledger.Kind]int64
	started time.Time
}

func newWriter(t testing.TB, s storage.Store, seed uint64) *writer {
	return &writer{
		t: t, store: s, random: rand.New(rand.NewPCG(seed, seed)), seed: seed, shop: storage.Tenant(fmt.Sprint(seed)), orders: map[string]order{}, version: map[string]int64{}, posted: map[ledger.Kind]int64{},
		started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
}

// write makes one Change: a new order, or one that moves, and a posting.
func (w *writer) write(counted bool) {
	w.t.Helper()
	w.n++
	id, v := fmt.Sprintf("o-%06d", w.n), order{}
	var was *order
	if len(w.orders) > 0 && w.random.IntN(2) == 0 {
		ids := slices.Sorted(maps.Keys(w.orders))
		id = ids[w.random.IntN(len(ids))]
		v = w.orders[id]
		old := v
		was = &old
		v.Status = []string{"open", "paid", "ended"}[w.random.IntN(3)]
	} else {
		v = order{
			Status: "open", Currency: []string{"ETH", "BTC"}[w.random.IntN(2)], Owner: []string{"ann", "bob", strings.Repeat("long", 20)}[w.random.IntN(3)],
			Amount: w.random.Int64N(5_000_000_000), CreatedAt: w.started.Add(time.Duration(w.random.IntN(72*3600)) * time.Second),
		}
	}
	kind := []ledger.Kind{ledger.KindDeposit, ledger.KindRefund}[w.random.IntN(2)]
	c := storage.Change{
		ID: fmt.Sprint("write/", w.n), Partition: w.shop, Put: []storage.Row{orders.Row(id, w.version[id], time.Time{}, v)},
		Post: []ledger.Tx{{ID: fmt.Sprint("tx/", w.n), Kind: kind, Ref: id, At: w.started, Legs: []ledger.Leg{
			{Account: "chain/ETH", Asset: "ETH", Delta: -1}, {Account: ledger.Wallet("ann"), Asset: "ETH", Delta: 1},
		}}},
	}
	if counted {
		c.Count = append(counts(was, &v), tally.Entries(c.Post)...)
	}
	require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, c), "seed %d", w.seed)
	w.orders[id] = v
	w.version[id]++
	w.posted[kind]++
}

// right requires that the counters are what the orders come to.
func (w *writer) right() {
	w.t.Helper()
	ctx := w.t.Context()
	for _, status := range []string{"", "open", "paid", "ended"} {
		for _, currency := range []string{"", "ETH", "BTC"} {
			match, want := tally.Match{tally.Is(status), tally.Is(currency)}, int64(0)
			owned := map[string]int64{}
			for _, o := range w.orders {
				if (status == "" || o.Status == status) && (currency == "" || o.Currency == currency) {
					want++
					owned[o.Owner]++
				}
			}
			for _, t := range []*tally.Tally{byDay, byOwner} {
				n, ok, err := t.Totals(ctx, w.store, w.shop, match)
				require.NoError(w.t, err)
				require.True(w.t, ok)
				require.Equal(w.t, want, n[0], "seed %d: %s: %s %s", w.seed, t.Name, status, currency)
			}
			for _, owner := range []string{"ann", "bob", strings.Repeat("long", 20)} {
				n, err := byOwner.InGroup(ctx, w.store, w.shop, owner, match)
				require.NoError(w.t, err)
				require.Equal(w.t, owned[owner], n, "seed %d: %s: %s %s", w.seed, owner, status, currency)
			}
		}
	}
	cells, edges, ok, err := byDay.Cells(ctx, w.store, w.shop, tally.Range{}, w.started)
	require.NoError(w.t, err)
	require.True(w.t, ok)
	require.Empty(w.t, edges)
	sums := map[[2]string]decimal.Decimal{}
	for _, o := range w.orders {
		if o.Status != "open" {
			k := [2]string{o.Status, o.Currency}
			sums[k] = sums[k].Add(decimal.NewFromInt(o.Amount))
		}
	}
	for k, c := range cells {
		require.Equal(w.t, sums[k].String(), c.Sums["a"].String(), "seed %d: %v", w.seed, k)
	}
	balances, err := w.store.Balances(ctx, w.shop, ledger.Wallet("ann"))
	require.NoError(w.t, err)
	for kind, want := range w.posted {
		n, ok, err := tally.OfKind(ctx, w.store, w.shop, balances, kind)
		require.NoError(w.t, err)
		require.True(w.t, ok, "seed %d", w.seed)
		require.Equal(w.t, want, n, "seed %d: %s", w.seed, kind)
	}
	for _, t := range []*tally.Tally{byDay, byOwner} {
		found, err := t.Check(ctx, w.store, w.shop)
		require.NoError(w.t, err)
		require.Empty(w.t, found, "seed %d", w.seed)
	}
	found, err := tally.CheckEntries(ctx, w.store, w.shop)
	require.NoError(w.t, err)
	require.Empty(w.t, found, "seed %d", w.seed)
}

// recount makes all counters again, through a Store.
func (w *writer) recount(s storage.Store) []tally.Difference {
	w.t.Helper()
	out, err := w.tryRecount(s)
	require.NoError(w.t, err, "seed %d", w.seed)
	return out
}

func (w *writer) tryRecount(s storage.Store) (out []tally.Difference, err error) {
	newID := func() string { w.n++; return fmt.Sprint("recount/", w.n) }
	for _, of := range []*tally.Tally{byDay, byOwner} {
		found, err := of.Recount(w.t.Context(), s, w.shop, newID)
		if out = append(out, found...); err != nil {
			return out, err
		}
	}
	found, err := tally.RecountEntries(w.t.Context(), s, w.shop, newID)
	return append(out, found...), err
}

func (w *writer) mark() {
	w.t.Helper()
	require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, storage.Change{ID: "marks", Partition: w.shop, Put: tally.Mark(byDay, byOwner)}))
}

// stores are new ones of each kind.
func stores(t *testing.T) map[string]func(t *testing.T) storage.Store {
	t.Helper()
	all := map[string]func(t *testing.T) storage.Store{
		"memory": func(*testing.T) storage.Store { return memory.New() },
		"sqlite": func(t *testing.T) storage.Store {
			file := t.TempDir() + "/x.db"
			require.NoError(t, sqlite.Migrate(t.Context(), file, orders.Table))
			s, err := sqlite.Open(file, sqlite.Options{})
			require.NoError(t, err)
			return s
		},
	}
	if testing.Short() {
		return all
	}
	all["postgres"] = func(t *testing.T) storage.Store {
		dsn := testenv.Postgres(t).DSN("postgres")
		require.NoError(t, postgres.Migrate(t.Context(), dsn, postgres.Options{}, orders.Table))
		s, err := postgres.Open(dsn, postgres.Options{})
		require.NoError(t, err)
		return s
	}
	all["mariadb"] = func(t *testing.T) storage.Store {
		dsn := testenv.MariaDB(t).MySQLDSN("test")
		require.NoError(t, mysql.Migrate(t.Context(), dsn, mysql.Options{}, orders.Table))
		s, err := mysql.Open(dsn, mysql.Options{})
		require.NoError(t, err)
		return s
	}
	return all
}

func each(t *testing.T, test func(t *testing.T, s storage.Store)) {
	t.Helper()
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			require.NoError(t, s.Open(t.Context(), append(storage.Tables(), orders.Table)...))
			test(t, s)
		})
	}
}

// beside is a Store to whose calls somebody else's writes are a step ahead: before each
// read, and before each Commit, act is called.
type beside struct {
	storage.Store
	act func()
}

func (b *beside) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	b.act()
	return b.Store.Find(ctx, q)
}

func (b *beside) Entries(ctx context.Context, p storage.Partition, a ledger.Account, asset ledger.Asset, before int64, most int) ([]ledger.Entry, error) {
	b.act()
	return b.Store.Entries(ctx, p, a, asset, before, most)
}

func (b *beside) Commit(ctx context.Context, changes ...storage.Change) []error {
	b.act()
	return b.Store.Commit(ctx, changes...)
}

// TestFP05_RecountBesideWriters: some rows and postings were written without counting.
// Then others that count are written while Recount works, between any two of its calls.
// What it leaves is what the rows come to.
func TestFP05_RecountBesideWriters(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s storage.Store) {
		recounted := func(seed uint64, before, uncounted, meanwhile int) {
			w := newWriter(t, s, seed)
			for range before {
				w.write(w.random.IntN(uncounted) != 0)
			}
			b := &beside{Store: s, act: func() {
				if meanwhile > 0 && w.random.IntN(3) > 0 {
					meanwhile--
					w.write(true)
				}
			}}
			w.recount(b)
			w.mark()
			w.right()
			require.Empty(t, w.recount(s), "seed %d", seed)
		}
		seeds := uint64(20)
		if _, ok := s.(*memory.Store); ok {
			seeds = 400
		}
		for seed := range seeds {
			recounted(seed, 12, 4, 30)
		}
		recounted(seeds, 1200, 2, 60) // more than a page
	})
}

// A counter of a group that cannot be: somebody wrote it. Check names it, Recount mends
// it, and deep pages are found all the same.
func TestFP05_CountersOfNoDayAreMended(t *testing.T) {
	t.Parallel()
	w := newWriter(t, opened(t), 1)
	for range 50 {
		w.write(true)
	}
	w.mark()
	strays := []string{"orders.by/20269999/open/ETH", "orders.by/zzz/open/ETH", "orders.by//open/ETH", "orders.sum/yesterday/paid/ETH/a0"}
	w.edit(3000, strays...)
	q := storage.Query{Table: orders.Table, Partition: w.shop, Offset: 1000}
	page, err := tally.Page(t.Context(), w.store, q, q, tally.Range{}, tally.Side{Tally: byDay})
	require.NoError(t, err)
	require.Equal(t, q, page)
	found, err := byDay.Check(t.Context(), w.store, w.shop)
	require.NoError(t, err)
	for _, name := range strays {
		require.Contains(t, found, tally.Difference{Counter: name, Have: 3000})
	}
	require.NotEmpty(t, w.recount(w.store))
	w.right()
	w.edit(3, "orders.by/20260302/open", "orders.sum/20260302/paid", "orders.sum/20260302/paid/ETH", "orders.sum/20260302/paid/ETH/")
	_, _, _, err = byDay.Cells(t.Context(), w.store, w.shop, tally.Range{}, w.started)
	require.NoError(t, err)
	require.NotEmpty(t, w.recount(w.store))
	w.right()
}

// A currency whose code is too long for a counter's name is one of statistics all the same.
func TestFP05_LongCodesAreNoHashes(t *testing.T) {
	t.Parallel()
	w := newWriter(t, opened(t), 1)
	w.mark()
	w.write(true)
	_, _, counted, err := byDay.Cells(t.Context(), w.store, w.shop, tally.Range{}, w.started)
	require.NoError(t, err)
	require.True(t, counted)
	long := order{Status: "paid", Currency: strings.Repeat("COIN", 16), Owner: "ann", Amount: 5, CreatedAt: w.started}
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "long", Partition: w.shop, Put: []storage.Row{orders.Row("long", 0, time.Time{}, long)}, Count: counts(nil, &long),
	}))
	cells, _, counted, err := byDay.Cells(t.Context(), w.store, w.shop, tally.Range{}, w.started)
	require.NoError(t, err)
	require.False(t, counted, "%v", cells)
	n, ok, err := byDay.Totals(t.Context(), w.store, w.shop, tally.Match{nil, tally.Is(long.Currency)})
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []int64{1}, n)
}

// A deep page found by days has the rows that it has by counting all newer ones, and fewer
// than a day's are passed over.
func TestFP05_DeepPagesAreThoseOfTheList(t *testing.T) {
	t.Parallel()
	const seed, day = 29, 24 * time.Hour
	w := newWriter(t, opened(t), seed)
	for range 6000 {
		w.write(true)
	}
	w.mark()
	deepest, moved := 0, 0
	for range 300 {
		q := storage.Query{
			Table: orders.Table, Partition: w.shop, Limit: 20, Offset: 1000 + w.random.IntN(2200), Order: []storage.Order{{Column: "created_at", Desc: true}},
		}
		side := tally.Side{Tally: byDay}
		if w.random.IntN(2) == 0 {
			q.Where = []storage.Cond{{Column: "currency", Op: storage.Eq, Value: "ETH"}}
			side.Match = tally.Match{nil, {"ETH"}}
		}
		rows, r := q, tally.Range{}
		if w.random.IntN(2) == 0 {
			r.From = w.started.Add(time.Duration(w.random.Int64N(int64(day))))
		}
		if w.random.IntN(2) == 0 {
			r.Before = w.started.Add(3 * day).Add(-time.Duration(w.random.Int64N(int64(day))))
		}
		q.Where = r.Where("created_at", q.Where)
		want, err := w.store.Find(t.Context(), q)
		require.NoError(t, err)
		page, err := tally.Page(t.Context(), w.store, q, rows, r, side)
		require.NoError(t, err)
		got, err := w.store.Find(t.Context(), page)
		require.NoError(t, err)
		require.Equal(t, want, got, "seed %d: %+v", seed, q)
		if page.Offset < q.Offset {
			moved++
			deepest = max(deepest, page.Offset)
		}
	}
	require.Greater(t, moved, 100, "seed %d", seed)
	require.Less(t, deepest, 1200, "seed %d", seed)
}

// Somebody posts, and counts it, between the look at a balance and that at its counters:
// they are used all the same. Who posts without counting makes them of no use.
func TestFP05_CountersOfAnAccountThatIsBusyAreUsed(t *testing.T) {
	t.Parallel()
	w := newWriter(t, opened(t), 31)
	for range 20 {
		w.write(true)
	}
	ofKind := func() (int64, bool) {
		stale, err := w.store.Balances(t.Context(), w.shop, ledger.Wallet("ann"))
		require.NoError(t, err)
		w.write(true)
		n, ok, err := tally.OfKind(t.Context(), w.store, w.shop, stale, ledger.KindDeposit)
		require.NoError(t, err)
		return n, ok
	}
	n, ok := ofKind()
	require.True(t, ok)
	require.Equal(t, w.posted[ledger.KindDeposit], n)
	w.write(false)
	w.write(false)
	_, ok = ofKind()
	require.False(t, ok)
}

// opened is a store in memory.
func opened(t *testing.T) storage.Store {
	t.Helper()
	s := memory.New()
	require.NoError(t, s.Open(t.Context(), append(storage.Tables(), orders.Table)...))
	return s
}

// edit sets counters, as somebody who can write to the database.
func (w *writer) edit(value int64, names ...string) {
	w.t.Helper()
	for _, name := range names {
		_, r, _, err := storage.Counters.One(w.t.Context(), w.store, w.shop, name)
		require.NoError(w.t, err)
		w.n++
		require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, storage.Change{
			ID: fmt.Sprint("edit/", w.n), Partition: w.shop, Put: []storage.Row{storage.Counters.Row(name, r.Version, time.Time{}, storage.Counter{Value: value})},
		}))
	}
}
