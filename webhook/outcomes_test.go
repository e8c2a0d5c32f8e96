package webhook_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// forgetful is a store that fails so many commits of deliveries.
type forgetful struct {
	storage.Store
	left atomic.Int64
}

func (f *forgetful) Commit(ctx context.Context, changes ...storage.Change) []error {
	if strings.HasPrefix(changes[0].ID, "deliver/") && f.left.Add(-1) >= 0 {
		return slices.Repeat([]error{errors.New("no connection")}, len(changes))
	}
	return f.Store.Commit(ctx, changes...)
}

// TestFS03_OutcomesOutliveAStoreThatFails: what was delivered while the store failed is
// stored as soon as it works again, so that no receiver gets it twice.
func TestFS03_OutcomesOutliveAStoreThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &forgetful{}
		h := newHosts(t, func(c *webhook.Config) { store.Store, c.Store = c.Store, store })
		store.left.Store(5)
		h.emit("a", "https://a.example/", 40)
		d := h.svc.Dispatch(t.Context(), 128)
		failed := 0
		for range 600 { // twice the lease
			if _, err := d.Step(t.Context()); err != nil {
				failed++
			}
			time.Sleep(time.Second)
		}
		require.NoError(t, d.Close(t.Context()))
		require.Equal(t, 5, failed)
		require.Len(t, h.leads, 40, "each once")
		left, err := h.store.Count(t.Context(), storage.Query{Table: webhook.Events.Table, Partition: storage.Tenant("a"), Where: []storage.Cond{
			{Column: "status", Op: storage.Ne, Value: webhook.StatusDelivered},
		}})
		require.NoError(t, err)
		require.Zero(t, left)
	})
}
