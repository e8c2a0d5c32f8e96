package postgres_test

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
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// soon waits a second for what is locked elsewhere.
var soon = postgres.Options{LockTimeout: time.Second}

func open(dsn string) (storage.Store, error) { return postgres.Open(dsn, soon) }

func migrate(dsn string, tables ...*storage.Table) error {
	return postgres.Migrate(ctx, dsn, postgres.Options{}, tables...)
}

func env() sqltest.Env {
	return sqltest.Env{
		Migrated: migrated, Empty: emptyDatabase, Open: open, Migrate: migrate, Pool: hostPool,
		OpenDB:  func(db *sqlx.DB) (storage.Store, error) { return postgres.OpenDB(db, soon) },
		Address: func(t testing.TB) string { return strings.Split(dsn(t, "x"), "@")[1][:len("127.0.0.1:20000")] },
		Server:  func(t testing.TB) *testenv.Process { return testenv.Postgres(t) },
		Again:   func(t testing.TB, dir string) *testenv.Process { return testenv.PostgresAt(t, dir) },
		Database: func(t testing.TB, p *testenv.Process) string {
			require.NoError(t, migrate(p.DSN("postgres"), storagetest.Tables()...))
			return p.DSN("postgres")
		},
		Plain:     func(dsn string) string { return dsn + "&default_query_exec_mode=exec" },
		Commit:    "COMMIT\x00",
		Lock:      "SELECT part FROM cryptopay_parts WHERE part = ? FOR UPDATE",
		Impatient: "SET LOCAL lock_timeout = '100ms'",
		Schema:    "current_schema()",
		Migrating: "SELECT pg_advisory_lock(4846791021)",
		Waiting:   "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
		Ends: func(t testing.TB, admin *sqlx.DB, _ string) {
			_, err := admin.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
			require.NoError(t, err)
		},
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
	try := func(params string, accept postgres.Risks) error {
		s, err := postgres.OpenDB(hostPool(t, at+params), postgres.Options{Accept: accept})
		require.NoError(t, err)
		defer s.Close() //nolint:errcheck // a test's end
		return s.Open(ctx, storagetest.Tables()...)
	}
	require.NoError(t, try("", postgres.Risks{}))
	for params, advice := range map[string]string{
		"&synchronous_commit=off":           "synchronous_commit",
		"&default_transaction_read_only=on": "default_transaction_read_only",
		"&session_replication_role=replica": "session_replication_role",
	} {
		err := try(params, postgres.Risks{})
		require.ErrorIs(t, err, postgres.ErrUnsafe, params)
		require.ErrorContains(t, err, advice)
		owned, err := postgres.Open(at+params, postgres.Options{})
		require.NoError(t, err)
		require.ErrorIs(t, owned.Open(ctx, storagetest.Tables()...), postgres.ErrUnsafe, params)
		require.NoError(t, owned.Close())
	}
	require.NoError(t, try("&synchronous_commit=off", postgres.Risks{AsyncCommit: true}))
	require.NoError(t, try("&synchronous_commit=local", postgres.Risks{}))

	// An unlogged table is empty after a crash.
	db := hostPool(t, at)
	_, err := db.Exec("ALTER TABLE cryptopay_suite_notes SET UNLOGGED")
	require.NoError(t, err)
	require.ErrorIs(t, try("", postgres.Risks{}), postgres.ErrUnsafe)
	_, err = db.Exec("ALTER TABLE cryptopay_suite_notes SET LOGGED")
	require.NoError(t, err)

	// Another encoding would compare text otherwise.
	_, err = admin(t, "postgres").Exec("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	require.NoError(t, err)
	s, err := postgres.Open(dsn(t, "latin"), postgres.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, s.Open(ctx), "UTF8")
	require.NoError(t, s.Close())
}

// L06: a server that does not sync, and one that may tear pages.
func TestL06_UnsafeServer(t *testing.T) {
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	t.Parallel()
	p := testenv.Postgres(t, "fsync=off", "full_page_writes=off")
	at := p.DSN("postgres")
	require.NoError(t, migrate(at))
	for _, accept := range []bool{false, true} {
		s, err := postgres.Open(at, postgres.Options{Accept: postgres.Risks{NoFsync: accept}})
		require.NoError(t, err)
		err = s.Open(ctx)
		if accept {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, postgres.ErrUnsafe)
			require.ErrorContains(t, err, "fsync=on")
		}
		require.NoError(t, s.Close())
	}
}

// L06: what a host changes on its own connections after Open does not make a commit
// less durable.
func TestL06_HostsSessionChangedLater(t *testing.T) {
	t.Parallel()
	at := migrated(t)
	db := hostPool(t, at)
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(2)
	_, err := db.Exec(`CREATE TABLE seen (sync text);
		CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
		CREATE TRIGGER look AFTER INSERT ON cryptopay_suite_notes FOR EACH ROW EXECUTE FUNCTION look()`)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = hostPool(t, at).Exec("DROP TRIGGER look ON cryptopay_suite_notes; DROP FUNCTION look; DROP TABLE seen")
	})
	s, err := postgres.OpenDB(db, soon)
	require.NoError(t, err)
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	for i := range 4 { // whichever connection it is
		_, err := db.Exec("SET synchronous_commit = off")
		require.NoError(t, err)
		row := storagetest.Notes.Row(fmt.Sprint(i), 0, time.Time{}, storagetest.Note{})
		require.NoError(t, s.Commit(ctx, storage.Change{ID: fmt.Sprint(i), Partition: "p", Put: []storage.Row{row}})[0])
	}
	var seen []string
	require.NoError(t, db.Select(&seen, "SELECT DISTINCT sync FROM seen"))
	require.Equal(t, []string{"on"}, seen)
}

// L08: a standby takes no commits and its reads are old.
func TestL08_Standby(t *testing.T) {
	if testing.Short() {
		t.Skip("two servers of its own take seconds")
	}
	t.Parallel()
	primary := testenv.Postgres(t)
	require.NoError(t, migrate(primary.DSN("postgres")))
	standby := testenv.PostgresStandby(t, primary)
	s, err := postgres.Open(standby.DSN("postgres"), postgres.Options{})
	require.NoError(t, err)
	defer s.Close() //nolint:errcheck // a test's end
	err = s.Open(ctx)
	require.ErrorIs(t, err, postgres.ErrUnsafe)
	require.ErrorContains(t, err, "primary")
}

// L06: a pool of another driver would not do what is asked of it.
func TestL06_OtherDrivers(t *testing.T) {
	t.Parallel()
	db, err := sqlx.Open("sqlite", "file:x?mode=memory")
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // a test's end
	_, err = postgres.OpenDB(db, postgres.Options{})
	require.ErrorIs(t, err, postgres.ErrDriver)
	_, err = postgres.Open("postgres://u:secret@h:port/db", postgres.Options{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
	for _, name := range []string{`x"; DROP`, "Upper", "1st", strings.Repeat("x", 30)} {
		_, err = postgres.Open("postgres://h/db", postgres.Options{Schema: name})
		require.Error(t, err, name)
		_, err = postgres.Open("postgres://h/db", postgres.Options{Prefix: name})
		require.Error(t, err, name)
	}
}

// L05: a transaction that the server gave up in favour of another is tried again at once,
// and its caller does not notice. Here a trigger raises what the server does.
func TestL05_DeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	for i, code := range []string{"40001", "40P01"} {
		place, db := things(t)
		_, err := db.Exec(`CREATE SEQUENCE times;
			CREATE FUNCTION once() RETURNS trigger AS $$ BEGIN
				IF nextval('times') = 1 THEN RAISE EXCEPTION 'given up' USING ERRCODE = '` + code + `'; END IF;
				RETURN NEW;
			END $$ LANGUAGE plpgsql;
			CREATE TRIGGER once BEFORE INSERT ON cryptopay_suite_things FOR EACH ROW EXECUTE FUNCTION once()`)
		require.NoError(t, err)
		s := opened(t, place)
		require.NoError(t, s.Commit(t.Context(), thing("tenant/a", i, time.Time{}))[0], code)
		var times int64
		require.NoError(t, db.Get(&times, "SELECT last_value FROM times"))
		require.EqualValues(t, 2, times, code)
	}
}
