package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// readCounting counts the whole rows that are read of the outbox.
type readCounting struct {
	storage.Store
	whole atomic.Int64
}

func (c *readCounting) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	rows, err := c.Store.Find(ctx, q)
	if q.Table == webhook.Events.Table && !q.IDs {
		c.whole.Add(int64(len(rows)))
	}
	return rows, err
}

// The log has every delivery once, newest first, whatever their statuses. Its total is how many
// match, with counters and without, however many there are, and a page reads few of them.
func TestFA07_LogByPages(t *testing.T) {
	t.Parallel()
	for name, marked := range map[string]bool{"counted": true, "rows": false} {
		t.Run(name, func(t *testing.T) { t.Parallel(); logByPages(t, marked) })
	}
}

func logByPages(t *testing.T, marked bool) {
	store := &readCounting{Store: memory.New()}
	w := newWorld(t, store, func() storage.Store { return store })
	if marked {
		require.NoError(t, storage.CommitOne(t.Context(), store, storage.Change{ID: "mark", Partition: storage.Tenant("shop"), Put: tally.Mark(webhook.Tally)}))
	}
	const n = 6000
	statuses, types := webhook.Statuses(), webhook.EventTypes()[:3]
	var want []string
	var changes []storage.Change
	for i := range n {
		row, err := webhook.NewEvent(types[i%3], fmt.Sprintf("p%04d", i), 1, "", i, start.Add(time.Duration(i)*time.Minute))
		require.NoError(t, err)
		e := webhook.Events.Value(row)
		e.Status = statuses[i%len(statuses)]
		c := storage.Change{ID: row.ID, Partition: storage.Tenant("shop")}
		webhook.Put(&c, webhook.Events.Row(row.ID, 0, time.Time{}, e))
		changes = append(changes, c)
		want = append(want, row.ID)
	}
	require.NoError(t, errors.Join(store.Commit(t.Context(), changes...)...))
	slices.Reverse(want)
	pages := func(f webhook.LogFilter, total int) (ids []string) {
		for f.Limit = 100; ; f.Offset += f.Limit {
			page, got, err := w.svc.Log(t.Context(), "shop", f)
			require.NoError(t, err)
			require.Equal(t, total, got, f)
			for _, l := range page {
				ids = append(ids, l.ID)
			}
			if len(page) < f.Limit {
				return ids
			}
		}
	}
	every := func(step, from int) (ids []string) {
		for i := from; i < n; i += step {
			ids = append(ids, want[n-1-i])
		}
		slices.Reverse(ids)
		return ids
	}
	require.Equal(t, want, pages(webhook.LogFilter{}, n))
	require.Equal(t, every(4, 2), pages(webhook.LogFilter{Status: statuses[2]}, n/4))
	require.Equal(t, every(3, 1), pages(webhook.LogFilter{Type: types[1]}, n/3))
	require.Equal(t, every(12, 4), pages(webhook.LogFilter{Type: types[1], Status: statuses[0]}, n/12))
	require.Empty(t, pages(webhook.LogFilter{Type: webhook.EventTypes()[4]}, 0))
	require.Equal(t, []string{want[0]}, pages(webhook.LogFilter{Object: "p5999"}, 1))
	require.Empty(t, pages(webhook.LogFilter{Object: "p5999", Status: webhook.StatusPending}, 0))

	before := store.whole.Load()
	_, _, err := w.svc.Log(t.Context(), "shop", webhook.LogFilter{Limit: 20})
	require.NoError(t, err)
	require.LessOrEqual(t, store.whole.Load()-before, int64(20))
}

// What becomes of deliveries is counted in the Change that says so: delivered, failed, held
// back, given up, resent and dropped.
func TestFA07_OutcomesAreCounted(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		shop := storage.Tenant("shop")
		require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{ID: "mark", Partition: shop, Put: tally.Mark(webhook.Tally)}))
		w.setup("shop")
		w.bounds.MaxUndelivered = 30
		w.serve(w.store)
		for i := range 40 {
			row, err := webhook.NewEvent(webhook.EventTypes()[i%2], fmt.Sprint("p", i), 1, "", i, w.now.Add(time.Duration(i)*time.Millisecond))
			require.NoError(t, err)
			c := storage.Change{ID: row.ID, Partition: shop}
			webhook.Put(&c, row)
			require.NoError(t, storage.CommitOne(t.Context(), w.store, c))
		}
		w.answer = func(d webhook.Delivery) webhook.Result {
			if d.Type == webhook.EventTypes()[0] {
				return fails(d)
			}
			return webhook.Result{Status: 200}
		}
		for range 12 {
			w.now = w.now.Add(time.Hour)
			for w.step() > 0 {
			}
			differ, err := webhook.Tally.Check(t.Context(), w.store, shop)
			require.NoError(t, err)
			require.Empty(t, differ)
		}
		totals := func() (out []int) {
			for _, status := range webhook.Statuses() {
				_, n, err := w.svc.Log(t.Context(), "shop", webhook.LogFilter{Status: status})
				require.NoError(t, err)
				out = append(out, n)
			}
			return out
		}
		require.Equal(t, []int{0, 15, 25, 0}, totals()) // pending, delivered, failed (10 of them given up), skipped
		page, _, err := w.svc.Log(t.Context(), "shop", webhook.LogFilter{Status: webhook.StatusFailed, Limit: 1})
		require.NoError(t, err)
		_, err = w.svc.Replay(t.Context(), "shop", page[0].ID)
		require.NoError(t, err)
		require.Equal(t, []int{1, 15, 24, 0}, totals())
	})
}
