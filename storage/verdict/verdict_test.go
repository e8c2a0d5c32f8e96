package verdict_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

type item struct {
	Name string `db:"name"`
	N    int64  `db:"n"`
}

var (
	items = storage.NewTable[item]("items", storage.Unique("name"), storage.Unique("name", "n"))
	open  = verdict.Tables{items.Table: true}
)

const p = storage.Partition("tenant/p")

func row(id string, version int64, name string) storage.Row {
	return items.Row(id, version, time.Time{}, item{Name: name, N: version})
}

func put(id string, rows ...storage.Row) storage.Change {
	return storage.Change{ID: id, Partition: p, Put: rows}
}

func pay(id string, from, to ledger.Account, n ledger.Amount) storage.Change {
	return storage.Change{ID: id, Partition: p, Post: []ledger.Tx{{ID: id, Legs: []ledger.Leg{
		{Account: from, Asset: "C", Delta: -n}, {Account: to, Asset: "C", Delta: n},
	}}}}
}

func TestNeedsNamesEachOnce(t *testing.T) {
	t.Parallel()
	a, b := put("a", row("1", 0, "x")), put("b", row("1", 1, "x"), row("2", 0, "y"))
	a.Require = []storage.Guard{items.Guard("2", 0)}
	a.Level = []storage.Level{{Name: "l", Delta: 1, Max: 1}}
	a.Empty = []ledger.Account{"wallet/w"}
	bad := put("")
	n := verdict.Prepare(open.Has, []storage.Change{a, b, bad, pay("c", "x", "wallet/w", 1), pay("c", "x", "wallet/w", 1)}).Needs()
	require.Equal(t, []verdict.RowKey{{Table: items.Table, Partition: p, ID: "2"}, {Table: items.Table, Partition: p, ID: "1"}}, n.Rows)
	require.Len(t, n.Uniques, 5)
	require.Equal(t, []any{"x"}, n.Values[0])
	require.Len(t, n.Txs, 1)
	require.Len(t, n.Balances, 2)
	require.Len(t, n.Accounts, 1)
	require.Len(t, n.Levels, 1)
}

// However often a batch moves a row or a balance, it is written once.
func TestWritesAreNet(t *testing.T) {
	t.Parallel()
	list := []storage.Change{put("1", row("a", 0, "x")), put("2", row("a", 1, "y")), put("3", row("b", 0, "x"))}
	list = append(list, storage.Change{ID: "4", Partition: p, Drop: []storage.Row{row("b", 1, "")}})
	for i := range 10 {
		list = append(list, pay(fmt.Sprint("pay", i), "house", "wallet/w", 1))
	}
	errs, w := verdict.Prepare(open.Has, list).Judge(verdict.NewLoaded())
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Empty(t, w.Drops, "b came and went")
	require.Len(t, w.Rows, 1)
	require.True(t, w.Rows[0].Insert)
	require.Equal(t, int64(2), w.Rows[0].Version)
	require.Equal(t, "2", w.Rows[0].Change)
	require.Len(t, w.Balances, 2)
	require.Len(t, w.Txs, 10)
	require.Len(t, w.Entries, 20)
	require.Equal(t, ledger.Amount(10), w.Entries[19].After)
	require.Equal(t, int64(10), w.Entries[19].Seq)
}

func TestMovedKeysAreReplaced(t *testing.T) {
	t.Parallel()
	s := verdict.NewLoaded()
	for id, name := range map[string]string{"a": "x", "b": "y"} {
		scalars, err := items.Encode(item{Name: name})
		require.NoError(t, err)
		s.Rows[verdict.RowKey{Table: items.Table, Partition: p, ID: id}] = verdict.Stamp{Version: 1, Change: "old", Keys: verdict.Keys(items.Table, scalars)}
	}
	for k, id := range s.Held() {
		s.Holders[k] = id
	}
	b := verdict.Prepare(open.Has, []storage.Change{put("swap", row("a", 1, "y"), row("b", 1, "x"))})
	errs, w := b.Judge(s)
	require.NoError(t, errs[0])
	require.Len(t, w.Drops, 2)
	require.True(t, w.Rows[0].Insert && w.Rows[1].Insert)
	again, w2 := b.Judge(s)
	require.Equal(t, errs, again, "judging changes neither the batch nor the state")
	require.Equal(t, w, w2)
}

func TestThereAlreadyWritesNothing(t *testing.T) {
	t.Parallel()
	s := verdict.NewLoaded()
	s.Txs[verdict.TxKey{Partition: p, ID: "c"}] = "c"
	errs, w := verdict.Prepare(open.Has, []storage.Change{pay("c", "wallet/poor", "x", 5)}).Judge(s)
	require.NoError(t, errs[0])
	require.True(t, w.Empty())
}

func TestFailLeavesMalformed(t *testing.T) {
	t.Parallel()
	b := verdict.Prepare(open.Has, []storage.Change{put(""), put("a", row("1", 0, "x"))})
	skipped := fmt.Errorf("skipped")
	b.Fail(0, skipped)
	b.Fail(1, skipped)
	errs, w := b.Judge(verdict.NewLoaded())
	require.ErrorIs(t, errs[0], storage.ErrMalformed)
	require.Equal(t, skipped, errs[1])
	require.True(t, w.Empty())
	require.Empty(t, b.Partitions())
}

func TestKeysDoNotMeet(t *testing.T) {
	t.Parallel()
	for _, kind := range [][][]any{
		{
			{"a", "b"},
			{"ab", ""},
			{"", "ab"},
			{"a", "", "b"},
			{"1:a", "b"},
			{"a1:b"},
			{int64(1), int64(2)},
			{int64(12), ""},
			{int64(1), "2"},
			{"1", int64(2)},
			{"a:b", "c"},
			{"a", "b:c"},
			{"13abcdefgh", "ijkl"},
			{"0", "abcdefgh4ijkl"},
		},
		{
			{[]byte("a"), []byte("b")},
			{[]byte("ab"), []byte{}},
			{[]byte{}, []byte("ab")},
			{[]byte("a:b"), []byte("c")},
			{[]byte("a"), []byte("b:c")},
			{[]byte("13abcdefgh"), []byte("ijkl")},
			{[]byte("0"), []byte("abcdefgh4ijkl")},
		},
	} {
		seen := map[string][]any{}
		for _, k := range kind {
			key := verdict.Key(k)
			require.NotContains(t, seen, key, "%v", k)
			seen[key] = k
		}
	}
}

// Two stored rows swap their keys in one Change; to a third row they are taken, and the
// error names the key with its values.
func TestDuplicateNamesTheKey(t *testing.T) {
	t.Parallel()
	s := verdict.NewLoaded()
	scalars, err := items.Encode(item{Name: "x", N: 7})
	require.NoError(t, err)
	keys := verdict.Keys(items.Table, scalars)
	stored := verdict.RowKey{Table: items.Table, Partition: p, ID: "a"}
	s.Rows[stored] = verdict.Stamp{Version: 1, Change: "old", Keys: keys}
	require.Equal(t, map[verdict.UniqueKey]string{
		{Table: items.Table, Partition: p, Unique: 0, Key: keys[0]}: "a",
		{Table: items.Table, Partition: p, Unique: 1, Key: keys[1]}: "a",
	}, s.Held())

	for unique, want := range []storage.DuplicateError{
		{Table: "items", Key: "name", Value: "x"},
		{Table: "items", Key: "name,n", Value: "x,7"},
	} {
		s.Holders = map[verdict.UniqueKey]string{{Table: items.Table, Partition: p, Unique: unique, Key: keys[unique]}: "a"}
		errs, w := verdict.Prepare(open.Has, []storage.Change{put("1", items.Row("b", 0, time.Time{}, item{Name: "x", N: 7}))}).Judge(s)
		var taken *storage.DuplicateError
		require.ErrorAs(t, errs[0], &taken)
		require.Equal(t, want, *taken)
		require.True(t, w.Empty())
	}
}

func TestPartitionsAreSortedAndNamedOnce(t *testing.T) {
	t.Parallel()
	var list []storage.Change
	for i, p := range []storage.Partition{"b", "c", "a", "b"} {
		c := put(fmt.Sprint(i), row(fmt.Sprint(i), 0, "x"))
		c.Partition = p
		list = append(list, c)
	}
	require.Equal(t, []storage.Partition{"a", "b", "c"}, verdict.Prepare(open.Has, append(list, put(""))).Partitions())
}

// Each limit of a size allows its last byte and refuses the next.
func TestSizes(t *testing.T) {
	t.Parallel()
	of := func(n int) string { return strings.Repeat("x", n) }
	leg := func(account, asset int) []ledger.Leg {
		return []ledger.Leg{{Account: ledger.Account(of(account)), Asset: ledger.Asset(of(asset)), Delta: 1}, {Account: "y", Asset: ledger.Asset(of(asset)), Delta: -1}}
	}
	for name, c := range map[string]struct {
		max  int
		with func(n int) storage.Change
	}{
		"change": {verdict.MaxChangeID, func(n int) storage.Change { return put(of(n), row("a", 0, "x")) }},
		"partition": {verdict.MaxID, func(n int) storage.Change {
			return storage.Change{ID: "1", Partition: storage.Partition(of(n)), Put: []storage.Row{row("a", 0, "x")}}
		}},
		"row":     {verdict.MaxID, func(n int) storage.Change { return put("1", row(of(n), 0, "x")) }},
		"indexed": {verdict.MaxIndexed, func(n int) storage.Change { return put("1", row("a", 0, of(n))) }},
		"guard": {verdict.MaxID, func(n int) storage.Change {
			return storage.Change{ID: "1", Partition: p, Put: []storage.Row{row("a", 0, "x")}, Require: []storage.Guard{items.Guard(of(n), 0)}}
		}},
		"level": {verdict.MaxID, func(n int) storage.Change {
			return storage.Change{ID: "1", Partition: p, Put: []storage.Row{row("a", 0, "x")}, Level: []storage.Level{{Name: of(n)}}}
		}},
		"empty account": {verdict.MaxID, func(n int) storage.Change {
			return storage.Change{ID: "1", Partition: p, Put: []storage.Row{row("a", 0, "x")}, Empty: []ledger.Account{ledger.Account(of(n))}}
		}},
		"transaction": {verdict.MaxID, func(n int) storage.Change {
			return storage.Change{ID: "1", Partition: p, Post: []ledger.Tx{{ID: of(n), Legs: leg(1, 1)}}}
		}},
		"kind": {verdict.MaxID, func(n int) storage.Change {
			return storage.Change{ID: "1", Partition: p, Post: []ledger.Tx{{ID: "1", Kind: ledger.Kind(of(n)), Legs: leg(1, 1)}}}
		}},
		"reference": {verdict.MaxID, func(n int) storage.Change {
			return storage.Change{ID: "1", Partition: p, Post: []ledger.Tx{{ID: "1", Ref: of(n), Legs: leg(1, 1)}}}
		}},
		"account": {verdict.MaxID, func(n int) storage.Change {
			return storage.Change{ID: "1", Partition: p, Post: []ledger.Tx{{ID: "1", Legs: leg(n, 1)}}}
		}},
		"asset": {verdict.MaxAsset, func(n int) storage.Change {
			return storage.Change{ID: "1", Partition: p, Post: []ledger.Tx{{ID: "1", Legs: leg(1, n)}}}
		}},
	} {
		errs, _ := verdict.Prepare(open.Has, []storage.Change{c.with(c.max)}).Judge(verdict.NewLoaded())
		require.NoError(t, errs[0], name)
		errs, w := verdict.Prepare(open.Has, []storage.Change{c.with(c.max + 1)}).Judge(verdict.NewLoaded())
		require.ErrorIs(t, errs[0], storage.ErrMalformed, name)
		require.True(t, w.Empty(), name)
	}
}

// However many Changes of a batch count, each counter is read once and written once.
func TestFP05_CountersOfABatchAreWrittenOnce(t *testing.T) {
	t.Parallel()
	open := verdict.Tables{items.Table: true, storage.Counters.Table: true}
	const changes = 50
	list := make([]storage.Change, changes)
	for i := range list {
		list[i] = put(fmt.Sprint(i), row(fmt.Sprint("r", i), 0, fmt.Sprint("n", i)))
		list[i].Count = []storage.Count{{Name: "all", Delta: 1}, {Name: "day", Delta: 2}}
	}
	batch := verdict.Prepare(open.Has, list)
	require.Len(t, batch.Needs().Rows, changes+2)
	errs, w := batch.Judge(verdict.NewLoaded())
	for _, err := range errs {
		require.NoError(t, err)
	}
	counters := map[string]any{}
	for _, r := range w.Rows {
		if r.Table == storage.Counters.Table {
			require.NotContains(t, counters, r.ID)
			counters[r.ID] = r.Scalars[0]
		}
	}
	require.Equal(t, map[string]any{"all": int64(changes), "day": int64(2 * changes)}, counters)
}

// A counter that stands above its ceiling may stay or sink, and never rises.
func TestRaise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ delta, value, want int64 }{{0, 5, 5}, {-1, 5, 4}, {-9, 5, 0}, {1, 2, 3}, {3, 0, 3}} {
		got, err := verdict.Raise(&storage.Level{Name: "l", Delta: c.delta, Max: 3}, c.value)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	got, err := verdict.Raise(&storage.Level{Name: "l", Delta: 2, Max: math.MaxInt64}, math.MaxInt64-2)
	require.NoError(t, err)
	require.Equal(t, int64(math.MaxInt64), got)
	for _, c := range []struct{ delta, value, max int64 }{{1, 3, 3}, {math.MaxInt64, 1, math.MaxInt64}, {2, math.MaxInt64 - 1, math.MaxInt64}} {
		got, err := verdict.Raise(&storage.Level{Name: "l", Delta: c.delta, Max: c.max}, c.value)
		require.Equal(t, &storage.LevelError{Name: "l", Value: c.value, Delta: c.delta, Max: c.max}, err)
		require.Equal(t, c.value, got)
	}
}

func TestGuardsAreChecked(t *testing.T) {
	t.Parallel()
	closed := storage.NewTable[item]("closed")
	for _, g := range []storage.Guard{closed.Guard("a", 0), items.Guard("a", -1), items.Guard("", 0), {ID: "a"}} {
		c := put("1", row("a", 0, "x"))
		c.Require = []storage.Guard{items.Guard("a", 0), g}
		errs, _ := verdict.Prepare(open.Has, []storage.Change{c}).Judge(verdict.NewLoaded())
		require.ErrorIs(t, errs[0], storage.ErrMalformed)
	}
}

// The limit of an indexed column holds of bytes, too; one that is not indexed has none.
func TestIndexedBytes(t *testing.T) {
	t.Parallel()
	type blob struct {
		Hash []byte `db:"hash"`
		Data []byte `db:"data"`
	}
	blobs := storage.NewTable[blob]("blobs", storage.Index("hash"))
	for n, bad := range map[int]bool{verdict.MaxIndexed: false, verdict.MaxIndexed + 1: true} {
		c := put("1", blobs.Row("a", 0, time.Time{}, blob{Hash: make([]byte, n), Data: make([]byte, 2*verdict.MaxIndexed)}))
		errs, _ := verdict.Prepare(verdict.Tables{blobs.Table: true}.Has, []storage.Change{c}).Judge(verdict.NewLoaded())
		require.Equal(t, bad, errors.Is(errs[0], storage.ErrMalformed), errs[0])
	}
}
