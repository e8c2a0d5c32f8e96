package mysql_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // another driver

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/internal/sqltest"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// soon waits a second for what is locked elsewhere.
var soon = mysql.Options{LockTimeout: time.Second}

func open(dsn string) (storage.Store, error) { return mysql.Open(dsn, soon) }

func migrate(dsn string, tables ...*storage.Table) error {
	return mysql.Migrate(ctx, dsn, mysql.Options{}, tables...)
}

func env() sqltest.Env {
	return sqltest.Env{
		Migrated: migrated, Empty: emptyDatabase, Open: open, Migrate: migrate, Pool: hostPool,
		OpenDB:  func(db *sqlx.DB) (storage.Store, error) { return mysql.OpenDB(db, soon) },
		Plain:   func(dsn string) string { return dsn },
		Commit:  "; COMMIT",
		Address: func(t testing.TB) string { return address(dsn(t, "x")) },
		Server:  func(t testing.TB) *testenv.Process { return testenv.MariaDB(t) },
		Again:   func(t testing.TB, dir string) *testenv.Process { return testenv.MariaDBAt(t, dir) },
		Database: func(t testing.TB, p *testenv.Process) string {
			require.NoError(t, migrate(p.MySQLDSN("test"), storagetest.Tables()...))
			return p.MySQLDSN("test")
		},
		Lock:      "SELECT part FROM cryptopay_parts WHERE part = ? FOR UPDATE",
		Impatient: "SET SESSION innodb_lock_wait_timeout = 1",
		Schema:    "database()",
		Migrating: "DO get_lock(left(concat('cryptopay_migrations.', database()), 64), 600)",
		Waiting:   "SELECT count(*) FROM information_schema.processlist WHERE state = 'User lock' AND db = database()",
		Ends:      ends,
	}
}

func address(dsn string) string {
	_, rest, _ := strings.Cut(dsn, "(")
	at, _, _ := strings.Cut(rest, ")")
	return at
}

// ends ends all other connections of the database.
func ends(t testing.TB, admin *sqlx.DB, dsn string) {
	t.Helper()
	var ids []int64
	err := admin.Select(&ids, "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()")
	require.NoError(t, err)
	for _, id := range ids {
		_, _ = admin.Exec(fmt.Sprint("KILL ", id)) // it may have gone meanwhile
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	sqltest.Run(t, env())
}

// L06: settings that would lose money are refused, with advice, unless the risk is
// accepted by name.
func TestL06_UnsafeSettings(t *testing.T) {
	t.Parallel()
	at := migrated(t)
	try := func(params string, o mysql.Options) error {
		s, err := mysql.OpenDB(hostPool(t, at+params), o)
		require.NoError(t, err)
		defer s.Close() //nolint:errcheck // a test's end
		return s.Open(ctx, storagetest.Tables()...)
	}
	require.NoError(t, try("", mysql.Options{}))
	for params, advice := range map[string]string{
		"?sql_mode=%27%27": "STRICT_TRANS_TABLES",
		"?unique_checks=0": "unique_checks",
		"?tx_read_only=1":  "tx_read_only",
	} {
		err := try(params, mysql.Options{})
		require.ErrorIs(t, err, mysql.ErrUnsafe, params)
		require.ErrorContains(t, err, advice)
	}
	require.NoError(t, try("?sql_mode=%27STRICT_ALL_TABLES%27", mysql.Options{}))

	// Open sets its own connections as they must be.
	s, err := mysql.Open(at+"?sql_mode=%27%27", mysql.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	require.NoError(t, s.Close())

	// An engine without transactions.
	db := hostPool(t, at)
	_, err = db.Exec("ALTER TABLE cryptopay_suite_notes ENGINE=Aria")
	require.NoError(t, err)
	err = try("", mysql.Options{})
	require.ErrorIs(t, err, mysql.ErrUnsafe)
	require.ErrorContains(t, err, "InnoDB")
	_, err = db.Exec("ALTER TABLE cryptopay_suite_notes ENGINE=InnoDB")
	require.NoError(t, err)
}

// L06, L08: servers that flush later, and such that take no writes.
func TestL06_UnsafeServers(t *testing.T) {
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	t.Parallel()
	p := testenv.MariaDB(t, "--log-bin", "--binlog-format=ROW")
	at := p.MySQLDSN("test")
	require.NoError(t, migrate(at))
	db := hostPool(t, at)
	try := func(o mysql.Options) error {
		s, err := mysql.Open(at, o)
		require.NoError(t, err)
		defer s.Close() //nolint:errcheck // a test's end
		return s.Open(ctx)
	}
	require.NoError(t, try(mysql.Options{}))
	for _, c := range []struct {
		set, unset string
		accept     mysql.Risks
	}{
		{"innodb_flush_log_at_trx_commit = 2", "innodb_flush_log_at_trx_commit = 1", mysql.Risks{LazyFlush: true}},
		{"innodb_flush_log_at_trx_commit = 0", "innodb_flush_log_at_trx_commit = 1", mysql.Risks{LazyFlush: true}},
		{"sync_binlog = 0", "sync_binlog = 1", mysql.Risks{LazyBinlog: true}},
	} {
		_, err := db.Exec("SET GLOBAL " + c.set)
		require.NoError(t, err)
		err = try(mysql.Options{})
		require.ErrorIs(t, err, mysql.ErrUnsafe, c.set)
		require.ErrorContains(t, err, "set it to 1")
		require.NoError(t, try(mysql.Options{Accept: c.accept}))
		_, err = db.Exec("SET GLOBAL " + c.unset)
		require.NoError(t, err)
	}
	_, err := db.Exec("SET GLOBAL read_only = ON") // as replicas have it
	require.NoError(t, err)
	err = try(mysql.Options{})
	require.ErrorIs(t, err, mysql.ErrUnsafe)
	require.ErrorContains(t, err, "primary")
	_, err = db.Exec("SET GLOBAL read_only = OFF")
	require.NoError(t, err)
	require.ErrorContains(t, try(mysql.Options{Galera: true}), "no member")
}

// L06: a pool of another driver, and what cannot be read.
func TestL06_OtherDrivers(t *testing.T) {
	t.Parallel()
	db, err := sqlx.Open("sqlite", "file:x?mode=memory")
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // a test's end
	_, err = mysql.OpenDB(db, mysql.Options{})
	require.ErrorContains(t, err, "go-sql-driver")
	for _, dsn := range []string{"mysql://u:secret@", "u:secret@tcp(h:1", "mysql://u:secret@h:1/", "u:secret@tcp(h:1)/"} {
		_, err = mysql.Open(dsn, mysql.Options{})
		require.Error(t, err, dsn)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err = mysql.Open("mysql://u:p%40%2Fss@h/db?timeout=1s", mysql.Options{Prefix: "Upper"})
	require.ErrorContains(t, err, "Upper")
}

// A DSN may be a URL too.
func TestURL(t *testing.T) {
	t.Parallel()
	at := migrated(t)
	_, name, _ := strings.Cut(at, "/")
	s, err := mysql.Open("mysql://root@"+address(at)+"/"+name+"?timeout=5s", mysql.Options{})
	require.NoError(t, err)
	defer s.Close() //nolint:errcheck // a test's end
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
}
