package storagetest

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

func testOpen(t testing.TB, e *env) {
	require.NoError(t, e.s.Open(e.ctx, Tables()...), "again, with the same tables")
	stranger := storage.NewTable[Note]("suite_strangers")
	_, err := e.s.Rows(e.ctx, stranger.Table, storage.Keys(here, "a")...)
	require.ErrorIs(t, err, storage.ErrMalformed)
	require.ErrorIs(t, e.one(e.put(stranger.Row("a", 0, time.Time{}, Note{}))), storage.ErrMalformed)
	require.Empty(t, e.s.Commit(e.ctx))
}

func testRoundTrip(t testing.TB, e *env) {
	full := Thing{
		Name: "Naïve 金 \u202e ", Group: "g ", Order: math.MinInt64, Flag: true, At: epoch,
		Price: decimal.RequireFromString("-123456789012345678901234567890.000000000000000001"),
		Blob:  []byte{0, 1, 255}, Notes: []string{"a", "\"'`"},
	}
	due := epoch.Add(time.Hour)
	c := e.put(Things.Row("full", 0, due, full), Things.Row("zero", 0, time.Time{}, Thing{Order: math.MaxInt64}))
	e.commit(t, c)
	row, ok := e.row(t, Things.Table, "full")
	require.True(t, ok)
	require.Equal(t, storage.Row{Table: Things.Table, Partition: here, ID: "full", Version: 1, Change: c.ID, Due: due, Value: full}, row)
	row, _ = e.row(t, Things.Table, "zero")
	zero := Things.Value(row)
	require.True(t, zero.Price.IsZero())
	zero.Price = decimal.Decimal{} // there are two zeros
	require.Equal(t, Thing{Order: math.MaxInt64}, zero)
	require.True(t, row.Due.IsZero())

	nano := Notes.Row("nano", 0, epoch.Add(789*time.Nanosecond), Note{})
	e.commit(t, e.put(nano))
	row, _ = e.row(t, Notes.Table, "nano")
	require.Equal(t, epoch, row.Due, "times are kept in microseconds")
}

func testRows(t testing.TB, e *env) {
	e.commit(t, e.put(note("a", 0, 1), note("b", 0, 2), note("c", 0, 3)))
	rows, err := e.s.Rows(e.ctx, Notes.Table, storage.Keys(here, "c", "none", "a", "c", "no\x00text", "A")...)
	require.NoError(t, err)
	require.Equal(t, "c a c", ids(rows))
	rows, err = e.s.Rows(e.ctx, Notes.Table)
	require.NoError(t, err)
	require.Empty(t, rows)
	rows, err = e.s.Rows(e.ctx, Notes.Table, storage.Keys(away, "a")...)
	require.NoError(t, err)
	require.Empty(t, rows, "another partition")
}

// Rows of several partitions are read together, by ids and by what is unique.
func testRowsByKeys(t testing.TB, e *env) {
	other := e.put(named("1", 0, "a"), named("9", 0, "z"))
	other.Partition = away
	e.commit(t, e.put(named("1", 0, "a"), named("2", 0, "b"), named("3", 0, "a:")), other)
	name := func(p storage.Partition, v any) storage.Key {
		return storage.Key{Partition: p, Unique: []string{"name"}, Values: []any{v}}
	}
	place := func(p storage.Partition, of Thing) storage.Key {
		return storage.Key{Partition: p, Unique: []string{"group", "order"}, Values: []any{of.Group, of.Order}}
	}
	read := func(keys ...storage.Key) (out []string) {
		rows, err := e.s.Rows(e.ctx, Things.Table, keys...)
		require.NoError(t, err)
		for _, r := range rows {
			require.Equal(t, int64(1), r.Version)
			out = append(out, string(r.Partition)+" "+r.ID+" "+Things.Value(r).Name)
		}
		return out
	}
	require.Equal(t, []string{
		"tenant/away 9 z", "tenant/here 2 b", "tenant/here 1 a", "tenant/away 1 a", "tenant/here 2 b", "tenant/here 3 a:", "tenant/away 1 a", "tenant/here 1 a",
	}, read(
		storage.Key{Partition: away, ID: "9"}, name(here, "b"), place(here, thing("a")), name(here, "none"), name(away, "a"), storage.Key{Partition: here, ID: "2"},
		name(here, "a:"), place(away, thing("b")), storage.Key{Partition: away, ID: "1"}, name(here, "z"), name(here, "A"), name(here, "a\x00"),
		name("tenant/none", "a"), name(here, "a"),
	))
	e.commit(t, e.put(named("1", 1, "c"), named("4", 0, "a"))) // what is unique is handed on
	rows, err := e.s.Rows(e.ctx, Things.Table, name(here, "a"), name(here, "c"))
	require.NoError(t, err)
	require.Equal(t, "4 1", ids(rows))
	var many []storage.Key
	for i := range 1200 {
		many = append(many, name(here, e.id("none")), storage.Key{Partition: away, ID: e.id("none")})
		if i%300 == 0 {
			many = append(many, name(away, "z"))
		}
	}
	require.Len(t, read(many...), 4)
	for what, k := range map[string]storage.Key{
		"not unique":   {Partition: here, Unique: []string{"group"}, Values: []any{"g"}},
		"other order":  {Partition: here, Unique: []string{"order", "group"}, Values: []any{int64(1), "g"}},
		"no values":    {Partition: here, Unique: []string{"name"}},
		"no columns":   {Partition: here, Values: []any{"a"}},
		"another type": name(here, 1),
	} {
		_, err := e.s.Rows(e.ctx, Things.Table, k)
		require.ErrorIs(t, err, storage.ErrMalformed, what)
	}
}

// What the caller holds and what the store holds share nothing.
func testNoAliasing(t testing.TB, e *env) {
	v := thing("x")
	v.Blob, v.Notes = []byte("blob"), []string{"note"}
	e.commit(t, e.put(Things.Row("x", 0, time.Time{}, v)))
	v.Blob[0], v.Notes[0] = 'X', "X"
	for range 2 {
		rows, err := e.s.Rows(e.ctx, Things.Table, storage.Keys(here, "x", "x")...)
		require.NoError(t, err)
		got := Things.Value(rows[0])
		require.Equal(t, []byte("blob"), got.Blob)
		require.Equal(t, []string{"note"}, got.Notes)
		got.Blob[0], got.Notes[0] = 'X', "X"
		require.Equal(t, []byte("blob"), Things.Value(rows[1]).Blob)
	}
}

func testVersions(t testing.TB, e *env) {
	e.commit(t, e.put(note("a", 0, 1)))
	require.ErrorIs(t, e.one(e.put(note("a", 0, 2))), storage.ErrConflict, "inserting what exists")
	require.ErrorIs(t, e.one(e.put(note("a", 2, 2))), storage.ErrConflict, "a version to come")
	require.ErrorIs(t, e.one(e.put(note("b", 1, 2))), storage.ErrConflict, "updating what does not exist")
	e.commit(t, e.put(note("a", 1, 2)))
	require.ErrorIs(t, e.one(e.put(note("a", 1, 3))), storage.ErrConflict, "an old version")
	row, _ := e.row(t, Notes.Table, "a")
	require.Equal(t, int64(2), row.Version)
	require.Equal(t, int64(2), Notes.Value(row).N)
}

func testGuards(t testing.TB, e *env) {
	e.commit(t, e.put(note("a", 0, 1)))
	with := func(g ...storage.Guard) storage.Change {
		c := e.put(note(e.id("row"), 0, 1))
		c.Require = g
		return c
	}
	e.commit(t, with(Notes.Guard("a", 1), Notes.Guard("none", 0)))
	require.ErrorIs(t, e.one(with(Notes.Guard("a", 0))), storage.ErrConflict)
	require.ErrorIs(t, e.one(with(Notes.Guard("a", 2))), storage.ErrConflict)
	require.ErrorIs(t, e.one(with(Notes.Guard("none", 1))), storage.ErrConflict)
	require.ErrorIs(t, e.one(with(Notes.Guard("a", 1), Things.Guard("a", 1))), storage.ErrConflict, "another table")
}

func testDrop(t testing.TB, e *env) {
	drop := func(id string, version int64) storage.Change {
		return storage.Change{ID: e.id("drop"), Partition: here, Drop: []storage.Row{note(id, version, 0)}}
	}
	e.commit(t, e.put(note("a", 0, 1), note("b", 0, 1)))
	require.ErrorIs(t, e.one(drop("a", 2)), storage.ErrConflict)
	e.commit(t, drop("a", 1))
	_, ok := e.row(t, Notes.Table, "a")
	require.False(t, ok)
	e.commit(t, drop("a", 1)) // gone: there already
	c := drop("a", 1)
	c.Drop = append(c.Drop, note("b", 1, 0))
	require.ErrorIs(t, e.one(c), storage.ErrConflict, "one of two is gone")
	e.commit(t, e.put(note("a", 0, 5)))
	row, _ := e.row(t, Notes.Table, "a")
	require.Equal(t, int64(1), row.Version, "versions start again")
}

func testThereAlready(t testing.TB, e *env) {
	c := e.put(note("a", 0, 1))
	e.commit(t, c, c)
	e.commit(t, c)
	row, _ := e.row(t, Notes.Table, "a")
	require.Equal(t, int64(1), row.Version)

	next := e.put(note("a", 1, 2))
	e.commit(t, next)
	require.ErrorIs(t, e.one(c), storage.ErrConflict, "the row has moved on")
	e.commit(t, next)

	pay := e.post(fund(ledger.Wallet("w"), 5)...)
	pay.Level = []storage.Level{{Name: "l", Delta: 1, Max: 1}}
	e.commit(t, pay)
	e.commit(t, pay, pay)
	require.Equal(t, ledger.Amount(5), e.balance(t, ledger.Wallet("w")).Posted, "posted once")

	both := e.post(move(ledger.Wallet("w"), ledger.Wallet("v"), 5)...)
	both.Put = []storage.Row{note("b", 0, 1)}
	e.commit(t, both)
	e.commit(t, e.put(note("b", 1, 2)))
	e.commit(t, both) // the row has moved on, but the transaction tells
	require.Equal(t, ledger.Amount(5), e.balance(t, ledger.Wallet("v")).Posted)
}

func testMalformed(t testing.TB, e *env) {
	long := strings.Repeat("x", 201)
	for name, c := range map[string]storage.Change{
		"no id":             {Partition: here, Put: []storage.Row{note("a", 0, 1)}},
		"long id":           {ID: long, Partition: here, Put: []storage.Row{note("a", 0, 1)}},
		"id is no text":     {ID: "a\x00", Partition: here, Put: []storage.Row{note("a", 0, 1)}},
		"no partition":      {ID: "1", Put: []storage.Row{note("a", 0, 1)}},
		"nothing":           {ID: "2", Partition: here},
		"only a guard":      {ID: "3", Partition: here, Require: []storage.Guard{Notes.Guard("a", 0)}},
		"only a level":      {ID: "4", Partition: here, Level: []storage.Level{{Name: "l", Delta: 1, Max: 9}}},
		"row without id":    {ID: "5", Partition: here, Put: []storage.Row{note("", 0, 1)}},
		"long row id":       {ID: "6", Partition: here, Put: []storage.Row{note(long, 0, 1)}},
		"version below 0":   {ID: "7", Partition: here, Put: []storage.Row{note("a", -1, 1)}},
		"row twice":         {ID: "8", Partition: here, Put: []storage.Row{note("a", 0, 1), note("a", 0, 1)}},
		"put and drop":      {ID: "9", Partition: here, Put: []storage.Row{note("a", 1, 1)}, Drop: []storage.Row{note("a", 1, 1)}},
		"drop of nothing":   {ID: "10", Partition: here, Drop: []storage.Row{note("a", 0, 1)}},
		"other type":        {ID: "11", Partition: here, Put: []storage.Row{{Table: Notes.Table, ID: "a", Value: Thing{}}}},
		"pointer":           {ID: "12", Partition: here, Put: []storage.Row{{Table: Notes.Table, ID: "a", Value: &Note{}}}},
		"no table":          {ID: "13", Partition: here, Put: []storage.Row{{ID: "a", Value: Note{}}}},
		"level has no name": {ID: "14", Partition: here, Put: []storage.Row{note("a", 0, 1)}, Level: []storage.Level{{Delta: 1, Max: 1}}},
		"transaction twice": {ID: "15", Partition: here, Post: []ledger.Tx{{ID: "t", Legs: fund("a", 1)}, {ID: "t", Legs: fund("a", 1)}}},
		"long indexed text": {ID: "16", Partition: here, Put: []storage.Row{Things.Row("a", 0, time.Time{}, thing(strings.Repeat(long, 5)))}},
	} {
		require.ErrorIs(t, e.one(c), storage.ErrMalformed, name)
		require.True(t, storage.Final(e.one(c)), name)
	}
	_, ok := e.row(t, Notes.Table, "a")
	require.False(t, ok)
}

// A Change that is wrong in every way is judged in the order that storage.Change
// states; each round takes the first reason away.
func testJudgedOrder(t testing.TB, e *env) {
	w := ledger.Wallet("w")
	e.commit(t, e.put(Things.Row("taken", 0, time.Time{}, thing("name"))))
	e.commit(t, e.post(fund("full", 1)...))
	e.commit(t, e.post(fund(w, 1)...))
	raise := e.put(note("n", 0, 1))
	raise.Level = []storage.Level{{Name: "l", Delta: 10, Max: 10}}
	e.commit(t, raise)
	old := e.post(fund("x", 1)...)
	e.commit(t, old)

	c := storage.Change{
		ID: "all", Partition: here,
		Require: []storage.Guard{Notes.Guard("none", 1)},
		Put:     []storage.Row{Things.Row("new", 0, time.Time{}, thing("name"))},
		Empty:   []ledger.Account{"full"},
		Level:   []storage.Level{{Name: "l", Delta: 1, Max: 10}},
		Post:    []ledger.Tx{{ID: "big", At: epoch, Legs: move(w, "x", 2)}, {ID: old.Post[0].ID, At: epoch, Legs: move(w, "x", 1)}},
	}
	require.ErrorIs(t, e.one(c), storage.ErrConflict)
	c.Require = nil
	var dup *storage.DuplicateError
	require.ErrorAs(t, e.one(c), &dup)
	require.Equal(t, storage.DuplicateError{Table: "suite_things", Key: "name", Value: "name"}, *dup)
	c.Put = []storage.Row{Things.Row("new", 0, time.Time{}, thing("other"))}
	var full *storage.NotEmptyError
	require.ErrorAs(t, e.one(c), &full)
	require.Equal(t, storage.NotEmptyError{Account: "full", Asset: coin}, *full)
	c.Empty = nil
	var level *storage.LevelError
	require.ErrorAs(t, e.one(c), &level)
	require.Equal(t, storage.LevelError{Name: "l", Value: 10, Delta: 1, Max: 10}, *level)
	c.Level = nil
	require.ErrorAs(t, e.one(c), &dup)
	require.Equal(t, storage.DuplicateError{Table: "ledger", Key: "id", Value: old.Post[0].ID}, *dup)
	c.Post = c.Post[:1]
	var funds *ledger.InsufficientFundsError
	require.ErrorAs(t, e.one(c), &funds)
	require.Equal(t, ledger.InsufficientFundsError{Account: w, Asset: coin, Available: 1, Requested: 2}, *funds)
	c.Post[0].Legs = move(w, "x", 1)
	e.commit(t, c)
}

func testAllOrNothing(t testing.TB, e *env) {
	c := e.post(move(ledger.Wallet("poor"), "x", 1)...)
	c.Put = []storage.Row{note("a", 0, 1)}
	c.Level = []storage.Level{{Name: "l", Delta: 1, Max: 1}}
	require.Error(t, e.one(c))
	_, ok := e.row(t, Notes.Table, "a")
	require.False(t, ok)
	require.Zero(t, e.balance(t, "x"))
	d := e.put(note("b", 0, 1))
	d.Level = c.Level
	e.commit(t, d) // the counter has not moved
	two := e.post(fund(ledger.Wallet("w"), 1)...)
	two.Post = append(two.Post, ledger.Tx{ID: e.id("tx"), Legs: move(ledger.Wallet("w"), "x", 2)})
	require.Error(t, e.one(two))
	require.Zero(t, e.balance(t, ledger.Wallet("w")), "not even the first transaction")
}

func testSlice(t testing.TB, e *env) {
	errs := e.s.Commit(e.ctx, e.put(note("a", 0, 1)), e.put(note("b", 3, 1)), e.put(note("a", 1, 2)), storage.Change{ID: "bad"},
		e.put(note("a", 1, 3)))
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], storage.ErrConflict)
	require.NoError(t, errs[2], "it sees what those before it did")
	require.ErrorIs(t, errs[3], storage.ErrMalformed)
	require.ErrorIs(t, errs[4], storage.ErrConflict)
	row, _ := e.row(t, Notes.Table, "a")
	require.Equal(t, int64(2), row.Version)
	require.Equal(t, int64(2), Notes.Value(row).N)
}
