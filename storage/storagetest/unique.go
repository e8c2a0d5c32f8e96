package storagetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

func named(id string, version int64, name string) storage.Row {
	return Things.Row(id, version, time.Time{}, thing(name))
}

func testUnique(t testing.TB, e *env) {
	e.commit(t, e.put(named("1", 0, "a")))
	var dup *storage.DuplicateError
	require.ErrorAs(t, e.one(e.put(named("2", 0, "a"))), &dup)
	require.Equal(t, storage.DuplicateError{Table: "suite_things", Key: "name", Value: "a"}, *dup)
	same := thing("a")
	same.Name = "b"
	require.ErrorAs(t, e.one(e.put(Things.Row("2", 0, time.Time{}, same))), &dup)
	require.Equal(t, "group,order", dup.Key)

	e.commit(t, e.put(named("1", 1, "a")), e.put(named("1", 2, "b"))) // keeping and changing its own
	e.commit(t, e.put(named("2", 0, "a")))
	require.ErrorAs(t, e.one(e.put(named("2", 1, "b"))), &dup, "an update")
	require.ErrorAs(t, e.one(e.put(named("3", 0, "c"), named("4", 0, "c"))), &dup, "two rows of one change")

	e.commit(t, e.put(named("1", 3, "a"), named("2", 1, "b"))) // swapped in one change
	drop := storage.Change{ID: e.id("drop"), Partition: here, Drop: []storage.Row{named("1", 4, "a")}, Put: []storage.Row{named("3", 0, "a")}}
	e.commit(t, drop)
	row, _ := e.row(t, Things.Table, "3")
	require.Equal(t, "a", Things.Value(row).Name)
}

// Many Changes of one batch fight for keys and hand them on.
func testUniqueBatch(t testing.TB, e *env) {
	errs := e.s.Commit(e.ctx,
		e.put(named("1", 0, "a")),
		e.put(named("2", 0, "a")),                     // taken
		e.put(named("1", 1, "b")),                     // gives a up
		e.put(named("2", 0, "a")),                     // now free
		e.put(named("1", 2, "c"), named("3", 0, "b")), // handed on at once
		storage.Change{ID: e.id("drop"), Partition: here, Drop: []storage.Row{named("2", 1, "a")}},
		e.put(named("4", 0, "a")),
		e.put(named("2", 0, "d")), // dropped and made again
	)
	var dup *storage.DuplicateError
	require.ErrorAs(t, errs[1], &dup)
	errs[1] = nil
	for i, err := range errs {
		require.NoError(t, err, i)
	}
	rows, err := e.s.Find(e.ctx, storage.Query{Table: Things.Table, Partition: here})
	require.NoError(t, err)
	got := map[string]string{}
	for _, r := range rows {
		got[r.ID] = Things.Value(r).Name
	}
	require.Equal(t, map[string]string{"1": "c", "2": "d", "3": "b", "4": "a"}, got)
}

func testUniquePerPartition(t testing.TB, e *env) {
	for _, p := range []storage.Partition{here, away} {
		c := e.put(named("1", 0, "a"))
		c.Partition = p
		c.Post = []ledger.Tx{{ID: "same", At: epoch, Legs: fund("x", 1)}}
		c.Level = []storage.Level{{Name: "l", Delta: 1, Max: 1}}
		e.commit(t, c)
	}
}

// Texts that look or sort alike somewhere, and are different here (I03).
var alike = []string{
	"abc", "ABC", "Abc", "abc ", " abc", "abc\t", "ábc", "a\u0301bc", "ａｂｃ", "ß", "ss", "ı", "i", "I", "İ",
	"abc\u200b", "\u202eabc", "%", "_", "a%", "\\", "'", "\"", "`", "?", ":a", "$1", "--", ";", "0", "00", "0.0", "1e0", "null", "NULL",
	"\U0001F4B0", "\U0001F4B1", "\ufeffabc", "\uffff", "é", "e\u0301", "ſ", "K", "k", "\u212a", "ﬁ", "fi", "\n", "\r\n", "\u0001",
}

func testTextIsBytes(t testing.TB, e *env) {
	for i, s := range alike {
		v := thing(s)
		v.Order = int64(i)
		e.commit(t, e.put(Things.Row("id "+s, 0, time.Time{}, v)))
		c := e.post(fund(ledger.Account("house "+s), 1)...)
		c.Level = []storage.Level{{Name: s, Delta: 1, Max: 1}}
		c.Post[0].ID = "tx " + s
		e.commit(t, c)
	}
	for _, s := range alike {
		rows, err := e.s.Find(e.ctx, storage.Query{Table: Things.Table, Partition: here, Where: []storage.Cond{{Column: "name", Op: storage.Eq, Value: s}}})
		require.NoError(t, err)
		require.Equal(t, "id "+s, ids(rows), "%q", s)
		b, err := e.s.Balances(e.ctx, here, ledger.Account("house "+s))
		require.NoError(t, err)
		require.Len(t, b, 1, "%q", s)
		var dup *storage.DuplicateError
		v := thing(s)
		v.Order = -1
		require.ErrorAs(t, e.one(e.put(Things.Row("other", 0, time.Time{}, v))), &dup, "%q", s)
	}
	rows, err := e.s.Find(e.ctx, storage.Query{Table: Things.Table, Partition: here, Order: []storage.Order{{Column: "name"}}})
	require.NoError(t, err)
	require.Len(t, rows, len(alike))
	for i := 1; i < len(rows); i++ {
		require.Less(t, Things.Value(rows[i-1]).Name, Things.Value(rows[i]).Name, "ordered by bytes")
	}
	for _, bad := range []string{"a\x00b", "\x00", "\xff", "a\xc3", "\xed\xa0\x80"} {
		require.ErrorIs(t, e.one(e.put(named("bad", 0, bad))), storage.ErrMalformed, "%q", bad)
		require.ErrorIs(t, e.one(e.put(named(bad, 0, "bad"))), storage.ErrMalformed, "%q", bad)
		require.ErrorIs(t, e.one(e.post(fund(ledger.Account(bad), 1)...)), storage.ErrMalformed, "%q", bad)
		_, err := e.s.Find(e.ctx, storage.Query{Table: Things.Table, Where: []storage.Cond{{Column: "name", Op: storage.Eq, Value: bad}}})
		require.ErrorIs(t, err, storage.ErrMalformed, "%q", bad)
	}
}
