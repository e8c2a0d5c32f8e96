package mysql_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqltest"
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

// clean are databases with the suite's tables and nothing in them: making one
// takes longer than most cases.
var clean struct {
	sync.Mutex
	free []string
}

// migrated gives the DSN of a database that is the test's own until it ends.
func migrated(t testing.TB) string {
	t.Helper()
	clean.Lock()
	var at string
	if n := len(clean.free); n > 0 {
		at = clean.free[n-1]
		clean.free = clean.free[:n-1]
	}
	clean.Unlock()
	if at == "" {
		at = emptyDatabase(t)
		require.NoError(t, mysql.Migrate(ctx, at, mysql.Options{}, storagetest.Tables()...))
	}
	db := hostPool(t, at)
	t.Cleanup(func() {
		var err error
		for _, table := range []string{"parts", "ledger_txs", "balances", "entries", "levels", "idempotency", "activity", "suite_things", "suite_notes"} {
			if err == nil {
				_, err = db.Exec("DELETE FROM cryptopay_" + table)
			}
		}
		if err == nil && !t.Failed() {
			clean.Lock()
			clean.free = append(clean.free, at)
			clean.Unlock()
		}
	})
	return at
}

// places remembers what a store stands on.
var places sync.Map

func at(t testing.TB, dsn string, o mysql.Options) storage.Store {
	t.Helper()
	s, err := mysql.Open(dsn, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	places.Store(storage.Store(s), dsn)
	return s
}

func placeOf(t testing.TB, s storage.Store) string {
	t.Helper()
	dsn, ok := places.Load(s)
	require.True(t, ok)
	return dsn.(string)
}

func harness(o mysql.Options) storagetest.Harness {
	return storagetest.Harness{
		Open:   func(t testing.TB) storage.Store { return at(t, migrated(t), o) },
		Second: func(t testing.TB, s storage.Store) storage.Store { return at(t, placeOf(t, s), o) },
		Reopen: func(t testing.TB, s storage.Store) storage.Store {
			require.NoError(t, s.Close())
			return at(t, placeOf(t, s), o)
		},
		Begin: func(t testing.TB, s storage.Store) (storage.Tx, func(bool) error) {
			return sqltest.Begin(t, hostPool(t, placeOf(t, s)), s.(*mysql.Store).WithTx)
		},
		Rounds: 25,
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, harness(mysql.Options{}))
}

// The host's pool: no round trips are spared, and a transaction sets for itself
// what it needs. Its connections are as unfit as is allowed.
func TestConformanceOnAHostsPool(t *testing.T) {
	t.Parallel()
	on := func(t testing.TB, at string) storage.Store {
		db := hostPool(t, at+"?tx_isolation=%27SERIALIZABLE%27")
		db.SetMaxOpenConns(4)
		s, err := mysql.OpenDB(db, mysql.Options{})
		require.NoError(t, err)
		places.Store(storage.Store(s), at)
		return s
	}
	storagetest.Run(t, storagetest.Harness{
		Open:   func(t testing.TB) storage.Store { return on(t, migrated(t)) },
		Second: func(t testing.TB, s storage.Store) storage.Store { return on(t, placeOf(t, s)) },
		Reopen: func(t testing.TB, s storage.Store) storage.Store {
			require.NoError(t, s.Close())
			return on(t, placeOf(t, s))
		},
		Rounds: 10,
	})
}

func TestSameVerdictsAsMemory(t *testing.T) {
	t.Parallel()
	storagetest.Compare(t, at(t, migrated(t), mysql.Options{}), memory.New(), 25)
}
