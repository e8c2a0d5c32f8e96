package cryptopay_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
)

// The servers that tests of this package share. Each test has a database of its own.
var (
	postgresServer, mariaDBServer, redisServer testenv.Shared
	databases                                  atomic.Int64
	postgresMigrated                           sync.Mutex // the database that others are copies of is made once
)

func TestMain(m *testing.M) {
	code := m.Run()
	postgresServer.Close()
	mariaDBServer.Close()
	redisServer.Close()
	os.Exit(code)
}

// onPostgres returns the DSN of a database that is migrated and empty.
func onPostgres(t testing.TB) string {
	t.Helper()
	const whole = "migrated"
	server := postgresServer.Get(t, func(t testing.TB) *testenv.Process { return testenv.Postgres(t) })
	db := sqlx.MustOpen("pgx", server.DSN("postgres"))
	defer db.Close() //nolint:errcheck // a test's end
	postgresMigrated.Lock()
	defer postgresMigrated.Unlock()
	var made bool
	require.NoError(t, db.Get(&made, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", whole))
	if !made {
		_, err := db.Exec("CREATE DATABASE " + whole)
		require.NoError(t, err)
		require.NoError(t, postgres.Migrate(t.Context(), server.DSN(whole), postgres.Options{}))
	}
	return newPostgres(t, server, " TEMPLATE "+whole)
}

// emptyPostgres returns the DSN of a database without a table.
func emptyPostgres(t testing.TB) string {
	t.Helper()
	return newPostgres(t, postgresServer.Get(t, func(t testing.TB) *testenv.Process { return testenv.Postgres(t) }), "")
}

func newPostgres(t testing.TB, server *testenv.Process, like string) string {
	t.Helper()
	db := sqlx.MustOpen("pgx", server.DSN("postgres"))
	defer db.Close() //nolint:errcheck // a test's end
	name := fmt.Sprint("test_", databases.Add(1))
	_, err := db.Exec("CREATE DATABASE " + name + like)
	require.NoError(t, err)
	return server.DSN(name)
}

// onMariaDB returns the DSN of a database that is migrated and empty.
func onMariaDB(t testing.TB) string {
	t.Helper()
	dsn := emptyMariaDB(t)
	require.NoError(t, mysql.Migrate(t.Context(), dsn, mysql.Options{}))
	return dsn
}

// emptyMariaDB returns the DSN of a database without a table.
func emptyMariaDB(t testing.TB) string {
	t.Helper()
	server := mariaDBServer.Get(t, func(t testing.TB) *testenv.Process { return testenv.MariaDB(t) })
	db := sqlx.MustOpen("mysql", server.MySQLDSN("test"))
	defer db.Close() //nolint:errcheck // a test's end
	name := fmt.Sprint("test_", databases.Add(1))
	_, err := db.Exec("CREATE DATABASE " + name)
	require.NoError(t, err)
	return server.MySQLDSN(name)
}

// onRedis returns a store that is empty, on a server that several tests share.
func onRedis(t testing.TB) *redisstore.Store {
	t.Helper()
	server := redisServer.Get(t, func(t testing.TB) *testenv.Process {
		return testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
	})
	client := redis.NewClient(&redis.Options{Addr: server.Address()})
	t.Cleanup(func() { _ = client.Close() })
	return redisstore.New(client, redisstore.Options{Prefix: fmt.Sprint("test_", databases.Add(1))})
}
