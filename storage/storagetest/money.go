package storagetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

func sorted(rows []storage.Row) string {
	list := strings.Fields(ids(rows))
	slices.Sort(list)
	return strings.Join(list, " ")
}

func testBalances(t testing.TB, e *env) {
	all, err := e.s.Balances(e.ctx, here)
	require.NoError(t, err)
	require.Empty(t, all)
	w, v := ledger.Wallet("w"), ledger.Wallet("v")
	e.commit(t, e.post(fund(w, 10)...), e.post(fund(v, 1)...))
	other := fund(w, 7)
	other[0].Asset, other[1].Asset = "coin", "coin" // codes are case-sensitive
	e.commit(t, e.post(other...), e.post(ledger.Leg{Account: w, Asset: coin, Hold: 4}))
	want := []ledger.Balance{
		{Account: ledger.Chain("net"), Asset: coin, Posted: -11, Seq: 2},
		{Account: ledger.Chain("net"), Asset: "coin", Posted: -7, Seq: 1},
		{Account: v, Asset: coin, Posted: 1, Seq: 1},
		{Account: w, Asset: coin, Posted: 10, Held: 4, Seq: 1},
		{Account: w, Asset: "coin", Posted: 7, Seq: 1},
	}
	all, err = e.s.Balances(e.ctx, here)
	require.NoError(t, err)
	require.Equal(t, want, all)
	some, err := e.s.Balances(e.ctx, here, w, "none", v, w)
	require.NoError(t, err)
	require.Equal(t, want[2:], some)
	none, err := e.s.Balances(e.ctx, away, w)
	require.NoError(t, err)
	require.Empty(t, none)

	own, err := here.HouseBalances(e.ctx, e.s)
	require.NoError(t, err)
	require.Empty(t, own)
	for i, a := range []ledger.Account{
		ledger.FeesPlatform, ledger.FeesNetwork, ledger.Float, ledger.Adjustment, ledger.Suspense,
		ledger.Receivable("w"), ledger.Receivable("v"), ledger.Receivable(""), ledger.Receivable("é/1"),
	} {
		e.commit(t, e.post(ledger.Leg{Account: a, Asset: coin, Delta: ledger.Amount(i + 1)}, ledger.Leg{Account: ledger.Chain("net"), Asset: coin, Delta: -ledger.Amount(i + 1)}))
	}
	all, err = e.s.Balances(e.ctx, here)
	require.NoError(t, err)
	own, err = here.HouseBalances(e.ctx, e.s)
	require.NoError(t, err)
	require.Equal(t, slices.DeleteFunc(all, func(b ledger.Balance) bool { return !b.Account.House() }), own)
	require.Len(t, own, 8)
	own, err = away.HouseBalances(e.ctx, e.s)
	require.NoError(t, err)
	require.Empty(t, own)
}

func testEntries(t testing.TB, e *env) {
	w := ledger.Wallet("w")
	var want []ledger.Entry
	var after ledger.Amount
	for i := range 8 {
		c := e.post(fund(w, ledger.Amount(i+1))...)
		c.Post[0].Ref, c.Post[0].Kind = fmt.Sprint("ref", i), ledger.KindDeposit
		e.commit(t, c, e.post(ledger.Leg{Account: w, Asset: coin, Hold: 1})) // a hold makes no entry
		after += ledger.Amount(i + 1)
		want = append([]ledger.Entry{{
			Account: w, Asset: coin, Seq: int64(i + 1), Tx: c.ID, Kind: ledger.KindDeposit, Ref: fmt.Sprint("ref", i),
			Delta: ledger.Amount(i + 1), After: after, At: epoch,
		}}, want...)
	}
	var got []ledger.Entry
	for before := int64(0); ; {
		list, err := e.s.Entries(e.ctx, here, w, coin, before, page)
		require.NoError(t, err)
		require.LessOrEqual(t, len(list), page)
		got = append(got, list...)
		if len(list) == 0 || list[len(list)-1].Seq == 1 {
			break
		}
		before = list[len(list)-1].Seq
	}
	require.Equal(t, want, got)
	first, err := e.s.Entries(e.ctx, here, w, coin, 1, page)
	require.NoError(t, err)
	require.Empty(t, first)
	list, err := e.s.Entries(e.ctx, here, w, "coin", 0, page)
	require.NoError(t, err)
	require.Empty(t, list)
}

func testFloors(t testing.TB, e *env) {
	w := ledger.Wallet("w")
	leg := func(delta, hold ledger.Amount) storage.Change {
		legs := []ledger.Leg{{Account: w, Asset: coin, Delta: delta, Hold: hold}}
		if delta != 0 {
			legs = append(legs, ledger.Leg{Account: "house", Asset: coin, Delta: -delta})
		}
		return e.post(legs...)
	}
	short := func(c storage.Change, available, requested ledger.Amount) {
		t.Helper()
		var funds *ledger.InsufficientFundsError
		require.ErrorAs(t, e.one(c), &funds)
		require.Equal(t, ledger.InsufficientFundsError{Account: w, Asset: coin, Available: available, Requested: requested}, *funds)
	}
	short(leg(-1, 0), 0, 1)
	e.commit(t, leg(10, 0))
	short(leg(-11, 0), 10, 11)
	e.commit(t, leg(0, 6))
	short(leg(-5, 0), 4, 5)
	short(leg(0, 5), 4, 5)
	short(leg(0, -7), 6, 7)
	e.commit(t, leg(-6, -6), leg(-4, 0))
	require.Equal(t, ledger.Balance{Account: w, Asset: coin, Seq: 3}, e.balance(t, w))
	require.Equal(t, ledger.Amount(0), e.balance(t, "house").Posted)
	e.commit(t, e.post(ledger.Leg{Account: "house", Asset: coin, Delta: -9}, ledger.Leg{Account: "other house", Asset: coin, Delta: 9}))

	// Transactions of one Change count on one another, in their order.
	c := leg(5, 0)
	c.Post = append(c.Post, leg(-5, 0).Post...)
	e.commit(t, c)
	d := leg(-5, 0)
	d.Post = append(d.Post, leg(5, 0).Post...)
	short(d, 0, 5)
}

func testBadPostings(t testing.TB, e *env) {
	a, b := ledger.Account("a"), ledger.Account("b")
	leg := func(acc ledger.Account, asset ledger.Asset, delta, hold ledger.Amount) ledger.Leg {
		return ledger.Leg{Account: acc, Asset: asset, Delta: delta, Hold: hold}
	}
	for name, c := range map[string]struct {
		legs []ledger.Leg
		want error
	}{
		"none":          {nil, ledger.ErrMalformed},
		"one-sided":     {[]ledger.Leg{leg(a, coin, 1, 0)}, ledger.ErrUnbalanced},
		"unbalanced":    {[]ledger.Leg{leg(a, coin, 1, 0), leg(b, coin, -2, 0)}, ledger.ErrUnbalanced},
		"mixed":         {[]ledger.Leg{leg(a, coin, 1, 0), leg(b, "coin", -1, 0)}, ledger.ErrUnbalanced},
		"wraps to zero": {[]ledger.Leg{leg(a, coin, math.MinInt64, 0), leg(b, coin, math.MinInt64, 0)}, ledger.ErrUnbalanced},
		"zero":          {[]ledger.Leg{leg(a, coin, 0, 0)}, ledger.ErrMalformed},
		"account twice": {[]ledger.Leg{leg(a, coin, 1, 0), leg(a, coin, -1, 0)}, ledger.ErrMalformed},
		"no account":    {[]ledger.Leg{leg("", coin, 1, 0), leg(a, coin, -1, 0)}, ledger.ErrMalformed},
		"no asset":      {[]ledger.Leg{leg(a, "", 1, 0), leg(b, "", -1, 0)}, ledger.ErrMalformed},
		"long account":  {[]ledger.Leg{leg(ledger.Account(strings.Repeat("x", 201)), coin, 1, 0), leg(b, coin, -1, 0)}, storage.ErrMalformed},
		"not text":      {[]ledger.Leg{leg(a, "c\x00", 1, 0), leg(b, "c\x00", -1, 0)}, storage.ErrMalformed},
	} {
		err := e.one(e.post(c.legs...))
		require.ErrorIs(t, err, c.want, name)
		require.True(t, storage.Final(err), name)
	}
	e.commit(t, e.post(leg(a, coin, math.MaxInt64, 0), leg(b, coin, -math.MaxInt64, 0)))
	for name, legs := range map[string][]ledger.Leg{
		"over":  {leg(a, coin, 1, 0), leg("x", coin, -1, 0)},
		"under": {leg(b, coin, -2, 0), leg("x", coin, 2, 0)},
	} {
		err := e.one(e.post(legs...))
		require.ErrorIs(t, err, ledger.ErrOverflow, name)
		require.True(t, storage.Final(err), name)
	}
	e.commit(t, e.post(leg(b, coin, -1, 0), leg("x", coin, 1, 0)))
	require.Equal(t, ledger.Amount(math.MinInt64), e.balance(t, b).Posted)
	require.Equal(t, ledger.Amount(math.MaxInt64), e.balance(t, a).Posted)
}

func testLevel(t testing.TB, e *env) {
	level := func(l ...storage.Level) storage.Change {
		c := e.put(note(e.id("row"), 0, 1))
		c.Level = l
		return c
	}
	refused := func(c storage.Change, value, delta, ceiling int64) {
		t.Helper()
		var le *storage.LevelError
		require.ErrorAs(t, e.one(c), &le)
		require.Equal(t, storage.LevelError{Name: "l", Value: value, Delta: delta, Max: ceiling}, *le)
	}
	e.commit(t, level(storage.Level{Name: "l", Delta: 6, Max: 10}), level(storage.Level{Name: "l", Delta: 4, Max: 10}))
	refused(level(storage.Level{Name: "l", Delta: 1, Max: 10}), 10, 1, 10)
	e.commit(t, level(storage.Level{Name: "l", Delta: -3, Max: 0})) // down needs no room
	refused(level(storage.Level{Name: "l", Delta: 2, Max: 8}), 7, 2, 8)
	refused(level(storage.Level{Name: "l", Delta: math.MaxInt64, Max: math.MaxInt64}), 7, math.MaxInt64, math.MaxInt64)
	e.commit(t, level(storage.Level{Name: "l", Delta: -100}), level(storage.Level{Name: "l", Delta: 1, Max: 1})) // never below zero
	refused(level(storage.Level{Name: "m", Delta: 1, Max: 9}, storage.Level{Name: "l", Delta: 1, Max: 1}), 1, 1, 1)
	refused(level(storage.Level{Name: "l", Delta: 5, Max: 9}, storage.Level{Name: "l", Delta: 5, Max: 9}), 6, 5, 9)
	e.commit(t, level(storage.Level{Name: "m", Delta: 9, Max: 9}), level(storage.Level{Name: "L", Delta: 9, Max: 9}))
}

// counted is a Change that counts, beside a row.
func (e *env) counted(n ...storage.Count) storage.Change {
	c := e.put(note(e.id("row"), 0, 1))
	c.Count = n
	return c
}

// counters are all that stand in a partition.
func (e *env) counters(t testing.TB, p storage.Partition) map[string]int64 {
	t.Helper()
	rows, err := e.s.Find(e.ctx, storage.Query{Table: storage.Counters.Table, Partition: p, Limit: 1000})
	require.NoError(t, err)
	out := map[string]int64{}
	for _, r := range rows {
		out[r.ID] = storage.Counters.Value(r).Value
		require.Positive(t, r.Version)
		require.True(t, r.Due.IsZero())
	}
	return out
}

func testCount(t testing.TB, e *env) {
	first := e.counted(storage.Count{Name: "a", Delta: 2}, storage.Count{Name: "b", Delta: -3}, storage.Count{Name: "a", Delta: 5})
	e.commit(t, first, e.counted(storage.Count{Name: "a", Delta: 1}, storage.Count{Name: "A", Delta: 9}))
	e.commit(t, first) // there already
	require.Equal(t, map[string]int64{"a": 8, "A": 9, "b": -3}, e.counters(t, here))
	require.Empty(t, e.counters(t, away))
	rows, err := e.s.Rows(e.ctx, storage.Counters.Table, storage.Keys(here, "b", "none", "a")...)
	require.NoError(t, err)
	require.Equal(t, "b a", ids(rows))

	stale := e.counted(storage.Count{Name: "a", Delta: 100})
	stale.Require = []storage.Guard{Notes.Guard("none", 1)}
	require.ErrorIs(t, e.one(stale), storage.ErrConflict)
	poor := e.post(move(ledger.Wallet("poor"), "x", 1)...)
	poor.Count = []storage.Count{{Name: "a", Delta: 100}}
	require.Error(t, e.one(poor))
	require.Equal(t, map[string]int64{"a": 8, "A": 9, "b": -3}, e.counters(t, here), "what did not happen counts for nothing")

	paid := e.post(fund(ledger.Wallet("w"), 1)...)
	paid.Count = []storage.Count{{Name: "paid", Delta: 1}}
	e.commit(t, paid, paid)
	e.commit(t, paid)
	drop := storage.Change{ID: e.id("drop"), Partition: here, Drop: []storage.Row{note(first.Put[0].ID, 1, 0)}, Count: []storage.Count{{Name: "paid", Delta: 10}}}
	e.commit(t, drop)
	require.ErrorIs(t, e.one(drop), storage.ErrConflict, "as with a level")
	require.Equal(t, int64(11), e.counters(t, here)["paid"])

	// The edges of 64 bits, above and below.
	e.commit(t, e.counted(storage.Count{Name: "top", Delta: math.MaxInt64}, storage.Count{Name: "low", Delta: math.MinInt64}))
	for _, n := range []storage.Count{{Name: "top", Delta: 1}, {Name: "low", Delta: -1}} {
		err := e.one(e.counted(storage.Count{Name: "a", Delta: 1}, n))
		require.ErrorIs(t, err, ledger.ErrOverflow)
		require.True(t, storage.Final(err))
		require.ErrorContains(t, err, n.Name)
	}
	for _, n := range []int64{0, 1, -1, 255, 256, -256, 999_999_999, 1_000_000_000, -1_000_000_000, -999_999_999, 1 << 53, 1<<53 + 1, -1<<53 - 1, math.MaxInt64 - 1, math.MinInt64 + 1} {
		name := fmt.Sprint("n", n)
		e.commit(t, e.counted(storage.Count{Name: name, Delta: n}))
		e.commit(t, e.counted(storage.Count{Name: name, Delta: 0}))
		require.Equal(t, n, e.counters(t, here)[name])
	}
	e.commit(t, e.counted(storage.Count{Name: "top", Delta: math.MinInt64}, storage.Count{Name: "low", Delta: math.MaxInt64}))
	now := e.counters(t, here)
	require.Equal(t, []int64{8, -1, -1}, []int64{now["a"], now["top"], now["low"]})

	// Whoever counts everything again puts the row; what is counted meanwhile is not lost.
	put := func(version, value int64, n ...storage.Count) storage.Change {
		return storage.Change{ID: e.id("put"), Partition: here, Put: []storage.Row{storage.Counters.Row("a", version, time.Time{}, storage.Counter{Value: value})}, Count: n}
	}
	row, ok := e.row(t, storage.Counters.Table, "a")
	require.True(t, ok)
	e.commit(t, e.counted(storage.Count{Name: "a", Delta: 1}))
	require.ErrorIs(t, e.one(put(row.Version, 50)), storage.ErrConflict, "it was counted meanwhile")
	e.commit(t, put(row.Version+1, 50, storage.Count{Name: "a", Delta: 1}), e.counted(storage.Count{Name: "a", Delta: 1}))
	require.Equal(t, int64(52), e.counters(t, here)["a"])
	row, _ = e.row(t, storage.Counters.Table, "a")
	e.commit(t, storage.Change{ID: e.id("drop"), Partition: here, Drop: []storage.Row{storage.Counters.Row("a", row.Version, time.Time{}, storage.Counter{})}})
	e.commit(t, e.counted(storage.Count{Name: "a", Delta: 4}))
	require.Equal(t, int64(4), e.counters(t, here)["a"])

	bad := e.counted(storage.Count{Delta: 1})
	require.ErrorIs(t, e.one(bad), storage.ErrMalformed, "without a name")
	require.ErrorIs(t, e.one(storage.Change{ID: e.id("only"), Partition: here, Count: []storage.Count{{Name: "a", Delta: 1}}}), storage.ErrMalformed, "nothing but a count")
}

// Many count at once, and nothing is lost or counted twice.
func testCountTogether(t testing.TB, e *env) {
	var wg sync.WaitGroup
	const callers, each = 8, 25
	for n := range callers {
		wg.Go(func() {
			for i := range each {
				c := e.counted(storage.Count{Name: "all", Delta: 1}, storage.Count{Name: fmt.Sprint("of ", n), Delta: int64(i)})
				if i%3 == 0 {
					c.Partition = away
				}
				for _, err := range e.s.Commit(e.ctx, c, c) {
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	h, a := e.counters(t, here), e.counters(t, away)
	require.Equal(t, int64(callers*each), h["all"]+a["all"])
	for n := range callers {
		require.Equal(t, int64(each*(each-1)/2), h[fmt.Sprint("of ", n)]+a[fmt.Sprint("of ", n)])
	}
}

func testEmpty(t testing.TB, e *env) {
	w := ledger.Wallet("w")
	need := func() storage.Change {
		c := e.put(note(e.id("row"), 0, 1))
		c.Empty = []ledger.Account{w}
		return c
	}
	full := func(errs ...error) {
		t.Helper()
		var ne *storage.NotEmptyError
		require.ErrorAs(t, errs[len(errs)-1], &ne)
		require.Equal(t, w, ne.Account)
	}
	e.commit(t, need()) // never touched
	e.commit(t, e.post(fund(w, 5)...))
	full(e.one(need()))
	e.commit(t, e.post(move(w, "x", 5)...), need())
	full(e.s.Commit(e.ctx, e.post(fund(w, 5)...), need())...)
	e.commit(t, e.post(move(w, "x", 5)...))
	other := fund(w, 1)
	other[0].Asset, other[1].Asset = "other", "other"
	full(e.s.Commit(e.ctx, e.post(other...), need())...)
}
