package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/networks"
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
	servers := []string{testenv.Postgres(t).DSN("postgres"), "mysql://root@" + maria.Address() + "/test"}
	for _, dsn := range servers {
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

	// What a signer has signed moves from one server to the other.
	app, err := connectStore(servers[0])
	require.NoError(t, err)
	defer func() { require.NoError(t, app.Close()) }()
	require.NoError(t, app.Open(t.Context(), tables()...))
	many := make([]keys.Binding, copyLot+1)
	for i := range many {
		id := fmt.Sprint([]string{"w", "W", "wä"}[i%3], i)
		many[i] = keys.Binding{Network: "ETH", Intent: id, Attempt: id + "/1", Slots: []string{id}, Orders: []string{id}}
	}
	require.NoError(t, errors.Join(keys.StoreRegistry{Store: app}.BindMany(t.Context(), many)...))
	g := &gateway{store: app, log: slog.New(slog.DiscardHandler), s: settings{all: networks.Shipped(), signerStore: servers[1]}}
	_, err = g.registry(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, g.signerStore.Close()) }()
	for _, table := range keys.Tables() {
		n, err := g.signerStore.Count(t.Context(), storage.Query{Table: table, Partition: storage.Network("ETH")})
		require.NoError(t, err)
		require.EqualValues(t, len(many), n, table.Name)
	}
	// The database of the App is known, whatever it is called.
	same := &gateway{store: app, log: g.log, s: g.s}
	same.s.signerStore = servers[0] // as the settings would not take it
	_, err = same.registry(t.Context())
	require.ErrorContains(t, err, "it is the database of CRYPTOPAY_STORE")
	require.NoError(t, same.signerStore.Close())
}
