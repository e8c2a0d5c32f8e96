package storage_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	broken "github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

type leaf struct {
	N int64 `db:"n"`
}

var leaves = storage.NewTable[leaf]("leaves")

// Rows that others write and take away meanwhile shift no page: each row that stays is yielded
// once.
func TestAll_RowsThatComeAndGo(t *testing.T) {
	t.Parallel()
	s := memory.New()
	require.NoError(t, s.Open(t.Context(), leaves.Table))
	put := func(n int, id string, c storage.Change) {
		c.ID, c.Partition = fmt.Sprint(id, n), storage.System
		require.NoError(t, storage.CommitOne(t.Context(), s, c))
	}
	for n := range 10 {
		put(n, "put", storage.Change{Put: []storage.Row{leaves.Row(fmt.Sprintf("r%d", n), 0, time.Time{}, leaf{int64(n % 5)})}})
	}
	q := storage.Query{Table: leaves.Table, Partition: storage.System, Limit: 3, Where: []storage.Cond{{Column: "n", Op: storage.Lt, Value: int64(4)}}}
	var seen []string
	for r, err := range storage.All(t.Context(), s, q) {
		require.NoError(t, err)
		seen = append(seen, r.ID)
		put(len(seen), "drop", storage.Change{Drop: []storage.Row{leaves.Row(r.ID, r.Version, time.Time{}, leaf{})}})
		put(len(seen), "early", storage.Change{Put: []storage.Row{leaves.Row(fmt.Sprintf("a%d", len(seen)), 0, time.Time{}, leaf{})}})
	}
	require.Equal(t, []string{"r0", "r1", "r2", "r3", "r5", "r6", "r7", "r8"}, seen)
	require.Len(t, q.Where, 1, "the caller's query stays as it is")

	for r, err := range storage.All(t.Context(), s, q) { // it may be left
		require.NoError(t, err)
		require.Equal(t, "a1", r.ID)
		break
	}
	var errs []error
	for _, err := range storage.All(t.Context(), &broken.Store{Store: s, FailAt: 2}, q) {
		errs = append(errs, err)
	}
	require.Len(t, errs, 4, "three of the first page")
	require.ErrorIs(t, errs[3], broken.ErrGone)
}

// By a column, too, each row that stays is yielded once: also where many have one value, and whoever
// reads takes rows out of the query meanwhile.
func TestFR05_AllByAColumnAsRowsGo(t *testing.T) {
	t.Parallel()
	for _, desc := range []bool{false, true} {
		s := memory.New()
		require.NoError(t, s.Open(t.Context(), leaves.Table))
		var want []string
		c := storage.Change{ID: "put", Partition: storage.System}
		for n := range 40 {
			id, value := fmt.Sprintf("r%02d", n), int64(n/4)
			if n >= 12 && n < 24 {
				value = 3 // more than pages have
			}
			c.Put = append(c.Put, leaves.Row(id, 0, time.Time{}, leaf{value}))
			want = append(want, id)
		}
		require.NoError(t, storage.CommitOne(t.Context(), s, c))
		if desc {
			slices.Reverse(want)
		}
		q := storage.Query{Table: leaves.Table, Partition: storage.System, Limit: 5, Order: []storage.Order{{Column: "n", Desc: desc}}}
		var seen []string
		for r, err := range storage.All(t.Context(), s, q) {
			require.NoError(t, err)
			seen = append(seen, r.ID)
			require.NoError(t, storage.CommitOne(t.Context(), s, storage.Change{
				ID: "drop" + r.ID, Partition: storage.System, Drop: []storage.Row{leaves.Row(r.ID, r.Version, time.Time{}, leaf{})},
			}))
		}
		require.Equal(t, want, seen)
		require.Empty(t, q.Where, "the caller's query stays as it is")
	}
}

// What All cannot walk along is an error, and not a part of the rows.
func TestFR05_AllByAnotherOrderIsRefused(t *testing.T) {
	t.Parallel()
	s := memory.New()
	require.NoError(t, s.Open(t.Context(), leaves.Table))
	for name, q := range map[string]storage.Query{
		"two columns": {Table: leaves.Table, Order: []storage.Order{{Column: "n"}, {Column: storage.ColDue}}},
		"no column":   {Table: leaves.Table, Order: []storage.Order{{Column: "m"}}},
		"due":         {Table: leaves.Table, Order: []storage.Order{{Column: storage.ColDue}}},
		"ids alone":   {Table: leaves.Table, Order: []storage.Order{{Column: "n"}}, IDs: true},
		"an offset":   {Table: leaves.Table, Offset: 1},
	} {
		q.Partition = storage.System
		var errs []error
		for _, err := range storage.All(t.Context(), s, q) {
			errs = append(errs, err)
		}
		require.Len(t, errs, 1, name)
		require.ErrorIs(t, errs[0], storage.ErrMalformed, name)
	}
}
