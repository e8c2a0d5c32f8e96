package mysql_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/internal/sqltest"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

var ctx = context.Background()

// server is one for all tests of this package, with every durable setting on.
var server testenv.Shared

func TestMain(m *testing.M) {
	sqltest.Child(open)
	storagetest.BenchChild(func(place string) (storage.Store, error) { return mysql.Open(place, mysql.Options{}) })
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
	return server.Get(t, func(t testing.TB) *testenv.Process { return testenv.MariaDB(t, "--default-time-zone=+05:45") }).MySQLDSN(database)
}

func hostPool(t testing.TB, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("mysql", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var databases atomic.Int64

// emptyDatabase makes one and gives its DSN.
func emptyDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprint("t", databases.Add(1))
	_, err := admin(t, "test").Exec("CREATE DATABASE " + name)
	require.NoError(t, err)
	return dsn(t, name)
}

var places = sqltest.Places{Empty: emptyDatabase, Migrate: migrate, Pool: hostPool}

func migrated(t testing.TB) string { t.Helper(); return places.Migrated(t) }

func at(t testing.TB, dsn string, o mysql.Options) storage.Store {
	t.Helper()
	s, err := mysql.Open(dsn, o)
	return places.Opened(t, dsn, s, err)
}

func harness(o mysql.Options) storagetest.Harness {
	return places.Harness(25, func(_ testing.TB, dsn string) (storage.Store, error) { return mysql.Open(dsn, o) })
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, harness(mysql.Options{}))
}

// The host's pool: no round trips are spared, and a transaction sets for itself
// what it needs. Its connections are as unfit as is allowed.
func TestConformanceOnAHostsPool(t *testing.T) {
	t.Parallel()
	testenv.Draw(t, 3)
	h := places.Harness(10, func(t testing.TB, dsn string) (storage.Store, error) {
		db := hostPool(t, dsn+"?tx_isolation=%27SERIALIZABLE%27")
		db.SetMaxOpenConns(4)
		return mysql.OpenDB(db, mysql.Options{})
	})
	h.Begin = nil // as above
	storagetest.Run(t, h)
}

func TestSameVerdictsAsMemory(t *testing.T) {
	t.Parallel()
	storagetest.Compare(t, at(t, migrated(t), mysql.Options{}), memory.New(), 25)
}
