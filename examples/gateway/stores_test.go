package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
)

// -store takes servers too, with an empty database and one that is there already.
func TestServersAsStores(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("servers of its own take seconds")
	}
	maria := testenv.MariaDB(t)
	for _, dsn := range []string{testenv.Postgres(t).DSN("postgres"), "mysql://root@" + maria.Address() + "/test"} {
		for round := range 2 {
			store, err := openStore(t.Context(), dsn, false)
			require.NoError(t, err, dsn)
			require.NoError(t, store.Open(t.Context(), tables()...), dsn)
			_, ok := store.(storage.Clock)
			require.True(t, ok, "machines share it: clocks are compared")
			err = storage.Decide(context.Background(), store, func(context.Context) (storage.Change, error) {
				_, row, found, err := worlds.One(t.Context(), store, storage.System, "x")
				if err != nil || found {
					return storage.Change{}, err
				}
				return storage.Change{ID: "x", Partition: storage.System, Put: []storage.Row{worlds.Row("x", 0, row.Due, saved{})}}, nil
			})
			require.NoError(t, err)
			n, err := store.Count(t.Context(), storage.Query{Table: worlds.Table})
			require.NoError(t, err)
			require.EqualValues(t, 1, n, "round %d", round)
			require.NoError(t, store.Close())
		}
	}
	_, err := openStore(t.Context(), "oracle://x", false)
	require.ErrorContains(t, err, "postgres://")
}
