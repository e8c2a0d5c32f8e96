package treasury

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// rowCount is a store that counts the rows it gives.
type rowCount struct {
	storage.Store
	rows int
}

func (s *rowCount) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	rows, err := s.Store.Find(ctx, q)
	s.rows += len(rows)
	return rows, err
}

// A permanent address has had thousands of sweeps: those that are to come read the ones that have
// not ended, the newest that landed, and ids.
func TestFA04_WhatHasEndedIsNotRead(t *testing.T) {
	t.Parallel()
	s := &rowCount{Store: memory.New()}
	require.NoError(t, s.Open(t.Context(), append(Tables(), storage.Tables()...)...))
	tr := &Treasury{cfg: Config{Store: s}}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	k := spot{"a", "USDT"}
	c := storage.Change{ID: "made", Partition: storage.Network("ETH")}
	for i := range 2500 {
		v := Sweep{Tenant: "shop", Network: "ETH", Address: k.address, Currency: k.currency, State: SweepDone, Tx: fmt.Sprint("t", i), Created: began.Add(time.Duration(i) * time.Hour)}
		if i%5 == 0 {
			v.State = SweepReplaced
		}
		c.Put = append(c.Put, Sweeps.Row(fmt.Sprintf("sweep/a%05d", 9000-i), 0, time.Time{}, v))
	}
	for i := range 30 {
		c.Put = append(c.Put, Sweeps.Row(fmt.Sprintf("sweep/z/again/%d", i), 0, time.Time{}, Sweep{Address: k.address, Currency: k.currency, State: SweepReplaced}))
	}
	waiting := Sweep{Tenant: "shop", Network: "ETH", Address: k.address, Currency: k.currency, State: SweepDeferred, Created: began}
	c.Put = append(c.Put, Sweeps.Row("sweep/z", 0, time.Time{}, waiting))
	require.NoError(t, storage.CommitOne(t.Context(), s, c))

	j, err := tr.waitingAt(t.Context(), "ETH", k, 1)
	require.NoError(t, err)
	require.Equal(t, "sweep/z", j.row.ID)
	last, err := tr.lastDone(t.Context(), "ETH", k)
	require.NoError(t, err)
	require.Equal(t, "t2499", last.Tx)
	swept, err := tr.swept(t.Context(), "ETH", k)
	require.NoError(t, err)
	require.True(t, swept)
	swept, err = tr.swept(t.Context(), "ETH", spot{"a", "USDC"})
	require.NoError(t, err)
	require.False(t, swept)
	require.Equal(t, 53, s.rows)
	for id, want := range map[string]string{"sweep/y": "sweep/y", "sweep/z": "sweep/z/again/30", "sweep/a06501": "sweep/a06501/again/1"} {
		free, err := tr.freeID(t.Context(), "ETH", id)
		require.NoError(t, err)
		require.Equal(t, want, free)
	}
	all, err := tr.sweepsAt(t.Context(), "ETH", k, SweepDone)
	require.NoError(t, err)
	require.Len(t, all, 2000)
}
