package storagetest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
)

// testUnreadable is that a row which somebody has edited so that it cannot be read is in
// nobody's way: Claim takes the others, Find returns them, and an item of Work that reads it fails alone.
func testUnreadable(t testing.TB, e *env, edit func(testing.TB, storage.Store, storage.Partition, string)) {
	s, ctx := e.s, e.ctx
	keys := []storage.Key{{Partition: here, ID: "a"}, {Partition: here, ID: "b"}, {Partition: away, ID: "c"}}
	for i, k := range keys {
		require.NoError(t, storage.CommitOne(ctx, s, storage.Change{ID: "put/" + k.ID, Partition: k.Partition, Put: []storage.Row{
			Things.Row(k.ID, 0, epoch, Thing{Name: k.ID, Group: "g", Order: int64(i), At: epoch, Notes: []string{"x"}}),
		}}))
	}
	edit(t, s, here, "a")
	ids := func(rows []storage.Row) (out []string) {
		for _, r := range rows {
			out = append(out, r.ID)
		}
		return out
	}
	claim := func(now time.Time) ([]storage.Row, error) {
		return s.Claim(ctx, storage.Claim{Table: Things.Table, Now: now, Until: now.Add(time.Minute), Max: 10})
	}
	broken := func(err error) {
		t.Helper()
		var r *storage.RowError
		require.ErrorAs(t, err, &r)
		require.Equal(t, []string{Things.Table.Name, string(here), "a"}, []string{r.Table, string(r.Partition), r.ID})
	}

	rows, err := claim(epoch)
	require.ElementsMatch(t, []string{"b", "c"}, ids(rows))
	broken(err)
	rows, err = claim(epoch)
	require.NoError(t, err, "it is taken, too")
	require.Empty(t, rows)
	rows, err = claim(epoch.Add(time.Minute))
	require.ElementsMatch(t, []string{"b", "c"}, ids(rows))
	broken(err)

	var text strings.Builder
	log, heard := slog.New(slog.NewTextHandler(&text, nil)), []string(nil)
	lines := func() int {
		defer text.Reset()
		require.Equal(t, strings.Count(text.String(), "\n"), strings.Count(text.String(), "msg=row_unreadable table="+Things.Table.Name+" partition="+string(here)+" id=a "))
		return strings.Count(text.String(), "\n")
	}
	var worker storage.Unreadable
	for minute := 2; minute < 6; minute++ {
		c := storage.Claim{Table: Things.Table, Now: epoch.Add(time.Duration(minute) * time.Minute), Until: epoch.Add(time.Duration(minute+1) * time.Minute), Max: 10}
		claimed := func() ([]storage.Row, error) { return storage.Claimed(ctx, s, c, log) }
		if minute > 2 {
			claimed = func() ([]storage.Row, error) {
				return worker.Claimed(ctx, s, c, log, func(r *storage.RowError) { heard = append(heard, r.ID) })
			}
		}
		rows, err := claimed()
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"b", "c"}, ids(rows))
		require.Equal(t, 1, lines(), "once a lease")
		rows, err = claimed()
		require.NoError(t, err)
		require.Empty(t, rows)
		require.Zero(t, lines())
	}
	require.Equal(t, []string{"a"}, heard, "the host hears of it once")
	var finder storage.Unreadable
	for _, at := range []time.Duration{0, time.Second, 59 * time.Second, time.Minute, 2 * time.Minute} {
		rows, err := finder.Found(ctx, s, storage.Query{Table: Things.Table, Limit: 2}, epoch.Add(at), log)
		require.NoError(t, err)
		require.Equal(t, []string{"b", "c"}, ids(rows), "it takes no place from another")
		require.Equal(t, map[bool]int{true: 1}[at%time.Minute == 0], lines(), at)
	}

	_, err = s.Rows(ctx, Things.Table, keys...)
	broken(err)
	for _, limit := range []int{1, 2, 10} {
		q := storage.Query{Table: Things.Table, Partition: here, Limit: limit}
		rows, unread, err := storage.Others(ctx, s, q)
		require.NoError(t, err)
		require.Equal(t, []string{"b"}, ids(rows), "it takes no place from another")
		require.Len(t, unread, 1)
		broken(unread[0])
		var all []string
		err = storage.Pages(ctx, s, q, func(rows []storage.Row) error {
			all = append(all, ids(rows)...)
			return nil
		})
		require.Equal(t, []string{"b"}, all)
		unread = nil
		require.NoError(t, unread.Take(err))
		require.Len(t, unread, 1)
		broken(unread[0])
	}
	rows, err = s.Find(ctx, storage.Query{Table: Things.Table, Partition: here})
	require.Equal(t, []string{"b"}, ids(rows))
	broken(err)

	j := storage.Joined(s)
	read := map[string]string{}
	for _, ask := range []func(ctx context.Context, k storage.Key) ([]storage.Row, error){
		func(ctx context.Context, k storage.Key) ([]storage.Row, error) {
			_, err := j.Rows(ctx, Notes.Table, k) // there is none
			require.NoError(t, err)
			return j.Rows(ctx, Things.Table, k)
		},
		func(ctx context.Context, k storage.Key) ([]storage.Row, error) {
			return j.Find(ctx, storage.Query{Table: Things.Table, Partition: k.Partition, Where: []storage.Cond{{Column: "name", Op: storage.Eq, Value: k.ID}}})
		},
	} {
		errs := storage.Work(ctx, j, keys, func(k storage.Key) string { return k.ID }, func(ctx context.Context, k storage.Key) error {
			rows, err := ask(ctx, k)
			read[k.ID] = fmt.Sprint(ids(rows))
			return err
		})
		broken(errs[0])
		require.NoError(t, errs[1])
		require.NoError(t, errs[2])
		require.Equal(t, map[string]string{"a": "[]", "b": "[b]", "c": "[c]"}, read)
	}
}
