package payment

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// TestFP01_ManyExpireAsOne: the store is asked as often for forty payments as for one. A
// claimed payment is not read again, and only rows that changed are written.
func TestFP01_ManyExpireAsOne(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 40} {
		h := newShop(t)
		for range n {
			h.create("100", "ETH")
		}
		var reads, commits int
		var written map[*storage.Table]int
		h.store.Counts = func(c failing.Call) bool {
			if c.Changes == nil {
				reads++
				return true
			}
			commits++
			for _, change := range c.Changes {
				for i := range change.Put {
					written[change.Put[i].Table]++
				}
			}
			return true
		}
		step := func(later time.Duration, tables int) {
			h.now = h.now.Add(later)
			reads, commits, written = 0, 0, map[*storage.Table]int{}
			worked, err := h.s.Step(ctx)
			require.NoError(t, err)
			require.Equal(t, n, worked)
			claims := 2 + len(h.s.networks) // the second: permanent addresses
			require.Equal(t, claims+tables, reads)
			require.Equal(t, 1, commits)
		}
		step(2*time.Hour, 2) // deposits, lines of the history
		require.Equal(t, map[*storage.Table]int{Payments.Table: n, webhook.Events.Table: n, storage.Activities.Table: n}, written)
		step(24*time.Hour, 3) // the end of the watch: addresses besides, nothing that the history shows
		require.Equal(t, map[*storage.Table]int{Payments.Table: n}, written)
	}
}

// TestFP01_ClaimedAndWrittenMeanwhile: somebody writes a payment between its claim and
// the decision. It is decided again on what is stored, and expires once.
func TestFP01_ClaimedAndWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", "ETH")
	wrote := false
	h.store.Counts = func(c failing.Call) bool {
		if c.Table == Deposits.Table && !wrote {
			wrote = true
			stored, row, ok, err := Payments.One(ctx, h.store.Store.Store, storage.Tenant(tenant), p.ID)
			require.NoError(t, err)
			require.True(t, ok)
			stored.Description = "written meanwhile"
			require.NoError(t, h.store.Store.Store.Commit(ctx, storage.Change{
				ID: "meanwhile", Partition: storage.Tenant(tenant), Put: []storage.Row{Payments.Row(p.ID, row.Version, row.Due, stored)},
			})[0])
		}
		return false
	}
	h.now = h.now.Add(2 * time.Hour)
	h.step()
	require.True(t, wrote)
	got := h.get(p)
	require.Equal(t, Expired, got.Status)
	require.Equal(t, "written meanwhile", got.Description)
	require.EqualValues(t, 1, got.Events)
}
