package webhook_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
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

// The log has every delivery once, newest first, whatever their statuses, and a page reads few
// of them.
func TestFA07_LogByPages(t *testing.T) {
	t.Parallel()
	store := &readCounting{Store: memory.New()}
	w := newWorld(t, store, func() storage.Store { return store })
	const n = 300
	statuses := webhook.Statuses()
	var want []string
	for i := range n {
		row, err := webhook.NewEvent(webhook.EventTypes()[i%2], fmt.Sprintf("p%03d", i), 1, "", i, start.Add(time.Duration(i)*time.Minute))
		require.NoError(t, err)
		e := webhook.Events.Value(row)
		e.Status = statuses[i%len(statuses)]
		row = webhook.Events.Row(row.ID, 0, time.Time{}, e)
		require.NoError(t, storage.CommitOne(t.Context(), store, storage.Change{ID: row.ID, Partition: storage.Tenant("shop"), Put: []storage.Row{row}}))
		want = append(want, row.ID)
	}
	slices.Reverse(want)
	pages := func(f webhook.LogFilter, total int) (ids []string) {
		for f.Limit = 20; ; f.Offset += f.Limit {
			page, got, err := w.svc.Log(t.Context(), "shop", f)
			require.NoError(t, err)
			require.Equal(t, total, got)
			for _, l := range page {
				ids = append(ids, l.ID)
			}
			if len(page) < f.Limit {
				return ids
			}
		}
	}
	require.Equal(t, want, pages(webhook.LogFilter{}, n))
	require.Len(t, pages(webhook.LogFilter{Status: webhook.StatusFailed}, n/4), n/4)
	require.Len(t, pages(webhook.LogFilter{Type: webhook.EventTypes()[1]}, n/2), n/2)
	require.Empty(t, pages(webhook.LogFilter{Type: webhook.EventTypes()[1], Status: webhook.StatusPending}, 0))
	require.Equal(t, []string{want[0]}, pages(webhook.LogFilter{Object: "p299"}, 1))
	require.Empty(t, pages(webhook.LogFilter{Object: "p299", Status: webhook.StatusPending}, 0))

	before := store.whole.Load()
	_, _, err := w.svc.Log(t.Context(), "shop", webhook.LogFilter{Limit: 20})
	require.NoError(t, err)
	require.LessOrEqual(t, store.whole.Load()-before, int64(4*20))
}
