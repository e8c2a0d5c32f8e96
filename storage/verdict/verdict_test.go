package verdict_test

import (
	"fmt"
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
	seen := map[string][]any{}
	for _, k := range [][]any{
		{"a", "b"}, {"ab", ""}, {"", "ab"}, {"a", "", "b"}, {"1:a", "b"}, {"a1:b"}, {int64(1), int64(2)}, {int64(12), ""}, {int64(1), "2"}, {"1", int64(2)},
	} {
		key := verdict.Key(k)
		require.NotContains(t, seen, key, "%v", k)
		seen[key] = k
	}
}
