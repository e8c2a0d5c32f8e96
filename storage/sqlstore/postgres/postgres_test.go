package postgres_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/internal/sqltest"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

var ctx = context.Background()

// server is one for all tests of this package, with every durable setting on.
var server testenv.Shared

func TestMain(m *testing.M) {
	sqltest.Child(open)
	storagetest.BenchChild(func(place string) (storage.Store, error) { return postgres.Open(place, postgres.Options{}) })
	code := m.Run()
	server.Close()
	os.Exit(code)
}

// admin is a pool of the shared server, as a host has one.
func admin(t testing.TB, database string) *sqlx.DB {
	t.Helper()
	return hostPool(t, dsn(t, database))
}

func dsn(t testing.TB, database string) string {
	t.Helper()
	return server.Get(t, func(t testing.TB) *testenv.Process { return testenv.Postgres(t) }).DSN(database)
}

func hostPool(t testing.TB, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var databases atomic.Int64

// emptyDatabase makes one and gives its DSN.
func emptyDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprint("t", databases.Add(1))
	for _, q := range []string{"CREATE DATABASE " + name, "ALTER DATABASE " + name + " SET timezone = 'Asia/Kathmandu'"} { // no zone of ours
		_, err := admin(t, "postgres").Exec(q)
		require.NoError(t, err)
	}
	return dsn(t, name)
}

var places = sqltest.Places{Empty: emptyDatabase, Migrate: migrate, Pool: hostPool}

func migrated(t testing.TB) string { t.Helper(); return places.Migrated(t) }

func at(t testing.TB, dsn string, o postgres.Options) storage.Store {
	t.Helper()
	s, err := postgres.Open(dsn, o)
	return places.Opened(t, dsn, s, err)
}

func harness(o postgres.Options) storagetest.Harness {
	return places.Harness(25, func(_ testing.TB, dsn string) (storage.Store, error) { return postgres.Open(dsn, o) })
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, harness(postgres.Options{}))
}

// A host that uses pgx itself.
func TestConformanceInPgx(t *testing.T) {
	t.Parallel()
	h := harness(postgres.Options{})
	h.Begin = func(t testing.TB, s storage.Store) (storage.Tx, func(bool) error) {
		conn, err := pgx.Connect(ctx, places.Of(t, s))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(ctx) })
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		require.NoError(t, err)
		return s.(*postgres.Store).WithPgx(tx), func(commit bool) error {
			if commit {
				return tx.Commit(ctx)
			}
			return tx.Rollback(ctx)
		}
	}
	storagetest.RunHosts(t, h)
}

// What a host's transaction must be is looked at however it was begun.
func TestPgxTransactionIsChecked(t *testing.T) {
	t.Parallel()
	place := migrated(t)
	s := at(t, place, postgres.Options{}).(*postgres.Store)
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	conn, err := pgx.Connect(ctx, place)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(ctx) })
	for want, o := range map[string]pgx.TxOptions{
		"REPEATABLE READ": {IsoLevel: pgx.RepeatableRead},
		"read-only":       {IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly},
	} {
		tx, err := conn.BeginTx(ctx, o)
		require.NoError(t, err)
		_, err = s.WithPgx(tx).Count(ctx, storage.Query{Table: storagetest.Notes.Table})
		require.ErrorIs(t, err, postgres.ErrUnsafe)
		require.ErrorContains(t, err, want)
		require.NoError(t, tx.Rollback(ctx))
	}
}

// The host's pool: no round trips are spared, and a transaction sets for itself
// what it needs. Its connections are as unfit as is allowed.
func TestConformanceOnAHostsPool(t *testing.T) {
	t.Parallel()
	testenv.Draw(t, 3)
	h := places.Harness(10, func(t testing.TB, dsn string) (storage.Store, error) {
		db := hostPool(t, dsn+"&default_transaction_isolation=serializable")
		db.SetMaxOpenConns(4)
		return postgres.OpenDB(db, postgres.Options{})
	})
	h.Begin = nil // as above
	storagetest.Run(t, h)
}

func TestSameVerdictsAsMemory(t *testing.T) {
	t.Parallel()
	storagetest.Compare(t, at(t, migrated(t), postgres.Options{}), memory.New(), 25)
}
