package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// Begin begins a host's transaction for storagetest.Harness.Begin, on a pool that
// it closes in the end.
func Begin(t testing.TB, db *sqlx.DB, with func(*sql.Tx) *sqlstore.Tx) (storage.Tx, func(commit bool) error) {
	t.Helper()
	tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return with(tx.Tx), func(commit bool) error {
		defer db.Close() //nolint:errcheck // a test's end
		if commit {
			return tx.Commit()
		}
		return tx.Rollback()
	}
}

// A host's transaction that holds one tenant stalls no other. Those who want that
// one get an error in time, not a verdict, and nothing has happened.
func hostHoldsATenant(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	s := e.store(t, dsn)
	for _, p := range []storage.Partition{here, there} {
		require.NoError(t, s.Commit(ctx, deposit(p, "before"))[0])
	}
	tx, err := e.Pool(t, dsn).Beginx()
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() }) // else nobody could empty the tables
	_, err = tx.Exec(tx.Rebind(e.Lock), string(here))
	require.NoError(t, err)
	held := make(chan error, 1)
	go func() { held <- s.Commit(ctx, deposit(here, "held"))[0] }()
	for i := range 20 {
		require.NoError(t, storage.CommitOne(ctx, s, deposit(there, fmt.Sprint("free ", i))))
	}
	require.Empty(t, held, "it still waits, and nobody waited for it")
	err = <-held
	require.Error(t, err)
	require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict), "%v", err)
	rows, err := s.Rows(ctx, storagetest.Notes.Table, storage.Keys(here, "held")...)
	require.NoError(t, err, "readers do not wait")
	require.Empty(t, rows)

	// Both at once, one of them is free: it need not wait for the other.
	errs := s.Commit(ctx, deposit(there, "with"), deposit(here, "held"))
	require.NoError(t, errs[0])
	require.Error(t, errs[1])
	require.NoError(t, tx.Rollback())
	require.NoError(t, storage.CommitOne(ctx, s, deposit(here, "held")))
	require.Equal(t, 2, whole(t, s, here, []string{"before", "held"}))
	require.Equal(t, 22, whole(t, s, there, nil))
}

// Several processes commit for the same tenants in different orders while hosts
// lock them in others. Nothing is lost, nothing happens twice, nobody gives up.
func storm(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	parts := []storage.Partition{"tenant/a", "tenant/b", "tenant/c", "tenant/d"}
	first := e.store(t, dsn)
	for _, p := range parts {
		require.NoError(t, first.Commit(ctx, deposit(p, "before"))[0])
	}
	stop := make(chan bool)
	var hosts, wg sync.WaitGroup
	hosts.Go(func() {
		db := e.Pool(t, dsn)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			tx, err := db.Beginx()
			if err != nil {
				t.Error(err)
				return
			}
			for k := range 2 { // in the order that is not ours
				if _, err := tx.Exec(tx.Rebind(e.Lock), string(parts[(i+len(parts)-k)%len(parts)])); err != nil {
					break // it was the victim of a deadlock
				}
			}
			_ = tx.Rollback()
		}
	})
	for h := range 3 {
		s := e.store(t, dsn)
		for w := range 2 {
			wg.Go(func() {
				for i := range 12 {
					var list []storage.Change
					for k := range parts {
						list = append(list, deposit(parts[(h+w+k)%len(parts)], fmt.Sprint(h, "-", w, "-", i)))
					}
					left := list
					for try := 0; len(left) > 0; try++ {
						var again []storage.Change
						for k, err := range s.Commit(ctx, left...) {
							if storage.Final(err) || errors.Is(err, storage.ErrConflict) || err != nil && try == 20 {
								t.Error(err)
								return
							}
							if err != nil {
								again = append(again, left[k])
							}
						}
						left = again
					}
				}
			})
		}
	}
	wg.Wait()
	close(stop)
	hosts.Wait()
	for _, p := range parts {
		require.Equal(t, 1+3*2*12, whole(t, first, p, nil))
	}
}

// A commit whose context ends in the middle leaves everything usable.
func cancelled(t *testing.T, e Env) {
	s := e.store(t, e.Migrated(t))
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 10 {
				id := fmt.Sprint(w, "-", i)
				short, cancel := context.WithTimeout(ctx, time.Duration(i)*300*time.Microsecond)
				_ = s.Commit(short, deposit(here, id))
				_, _ = s.Find(short, storage.Query{Table: storagetest.Notes.Table, Partition: here})
				_, _ = s.Claim(short, storage.Claim{Table: storagetest.Notes.Table, Now: time.Unix(9, 0), Until: time.Unix(10, 0), Max: 1})
				cancel()
				if err := storage.CommitOne(ctx, s, deposit(here, id)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 40, whole(t, s, here, nil))
}

// The host's pool stays the host's, and it always has a connection left.
func hostsPool(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	db := e.Pool(t, dsn)
	db.SetMaxOpenConns(1)
	_, err := e.OpenDB(db)
	require.ErrorContains(t, err, "SetMaxOpenConns")
	db.SetMaxOpenConns(2)
	s, err := e.OpenDB(db)
	require.NoError(t, err)
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	require.NoError(t, s.Commit(ctx, deposit(here, "before"))[0])

	// Somebody keeps the partitions, so that everything of ours waits; and the host
	// still gets its connection.
	other, err := e.Pool(t, dsn).Beginx()
	require.NoError(t, err)
	parts := []storage.Partition{here, "tenant/2", "tenant/3", "tenant/4"}
	for _, p := range parts {
		require.NoError(t, storage.CommitOne(ctx, s, deposit(p, "first")))
		_, err = other.Exec(other.Rebind(e.Lock), string(p))
		require.NoError(t, err)
	}
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { _ = s.Commit(ctx, deposit(p, fmt.Sprint(i))) })
		wg.Go(func() {
			_, _ = s.Count(ctx, storage.Query{Table: storagetest.Notes.Table})
			_, _ = s.Claim(ctx, storage.Claim{Table: storagetest.Notes.Table, Now: time.Unix(9, 0), Until: time.Unix(10, 0), Max: 1})
		})
	}
	for range 20 {
		short, cancel := context.WithTimeout(ctx, time.Second/2)
		require.NoError(t, db.PingContext(short), "its last connection is free")
		cancel()
	}
	require.NoError(t, other.Rollback())
	wg.Wait()
	for i := range 4 {
		require.NoError(t, storage.CommitOne(ctx, s, deposit(here, fmt.Sprint(i))))
	}
	require.Equal(t, 6, whole(t, s, here, nil))
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Commit(ctx, deposit(here, "x"))[0], storage.ErrClosed)
	require.NoError(t, db.PingContext(ctx))
	require.LessOrEqual(t, db.Stats().InUse, 0)
}

// Many migrators at once, and again.
func manyMigrators(t *testing.T, e Env) {
	dsn := e.Empty(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := e.Migrate(dsn, storagetest.Tables()...); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, e.Migrate(dsn, storagetest.Tables()...))
	e.store(t, dsn)
}

// While one migrates the others wait: nothing is made until it is their turn.
func migratorsTakeTurns(t *testing.T, e Env) {
	dsn := e.Empty(t)
	first, admin := e.Pool(t, dsn), e.Pool(t, dsn)
	first.SetMaxOpenConns(1)
	_, err := first.Exec(e.Migrating)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- e.Migrate(dsn, storagetest.Tables()...) }()
	for waiting := 0; waiting == 0 && len(done) == 0; {
		require.NoError(t, admin.Get(&waiting, e.Waiting))
	}
	require.Empty(t, done, "it did not wait for its turn")
	var made int
	require.NoError(t, admin.Get(&made, "SELECT count(*) FROM information_schema.tables WHERE table_schema = "+e.Schema))
	require.Zero(t, made)
	require.NoError(t, first.Close())
	require.NoError(t, <-done)
	e.store(t, dsn)
}

// A migrator is interrupted, after more and more tables; another one finishes.
func interruptedMigrators(t *testing.T, e Env) {
	interrupted := 0
	for i := range 8 {
		dsn := e.Empty(t)
		admin := e.Pool(t, dsn)
		admin.SetMaxOpenConns(1)
		done := make(chan error, 1)
		go func() { done <- e.Migrate(dsn, storagetest.Tables()...) }()
		for tables := 0; tables <= 3*i && len(done) == 0; {
			require.NoError(t, admin.Get(&tables, "SELECT count(*) FROM information_schema.tables WHERE table_schema = "+e.Schema))
		}
		e.Ends(t, admin, dsn)
		if <-done != nil {
			interrupted++
		}
		require.NoError(t, e.Migrate(dsn, storagetest.Tables()...))
		s := e.store(t, dsn)
		require.NoError(t, s.Commit(ctx, deposit(here, "x"))[0])
		require.Equal(t, 1, whole(t, s, here, []string{"x"}))
	}
	require.Positive(t, interrupted, "this shows nothing")
}

// otherSchemas: what is not this library's schema is refused.
func otherSchemas(t *testing.T, e Env) {
	dsn := e.Empty(t)
	refused := func(why string, tables ...*storage.Table) {
		t.Helper()
		s, err := e.Open(dsn)
		require.NoError(t, err)
		defer s.Close() //nolint:errcheck // a test's end
		require.ErrorIs(t, s.Open(ctx, tables...), storage.ErrSchema, why)
		require.ErrorIs(t, s.Commit(ctx, deposit(here, "x"))[0], storage.ErrClosed)
	}
	refused("it is empty")
	require.NoError(t, e.Migrate(dsn))
	refused("a table is missing", storagetest.Tables()...)
	type grown struct {
		Text string `db:"text"`
		N    int64  `db:"n"`
		More string `db:"more"`
	}
	require.NoError(t, e.Migrate(dsn, storagetest.Tables()...))
	for name, table := range map[string]*storage.Table{
		"a column":     storage.NewTable[grown](storagetest.Notes.Name, storage.Index("n")).Table,
		"an index":     storage.NewTable[storagetest.Note](storagetest.Notes.Name, storage.Index("text")).Table,
		"one of all":   storage.NewTable[storagetest.Note](storagetest.Notes.Name, storage.Index("n"), storage.Across("n")).Table,
		"a unique key": storage.NewTable[storagetest.Note](storagetest.Notes.Name, storage.Unique("text")).Table,
		"a key more":   storage.NewTable[storagetest.Thing](storagetest.Things.Name, storage.Unique("name"), storage.Index("group", "at")).Table,
	} {
		refused(name, table)
		require.ErrorIs(t, e.Migrate(dsn, table), storage.ErrSchema, name)
	}
	db := e.Pool(t, dsn)
	_, err := db.Exec("UPDATE cryptopay_migrations SET version = version + 1000 ORDER BY version DESC")
	if err != nil { // an order is for those who check keys row by row
		_, err = db.Exec("UPDATE cryptopay_migrations SET version = version + 1000")
	}
	require.NoError(t, err)
	refused("from a newer library", storagetest.Tables()...)
	require.ErrorIs(t, e.Migrate(dsn), storage.ErrSchema)
	_, err = db.Exec("DELETE FROM cryptopay_migrations")
	require.NoError(t, err)
	refused("an old one", storagetest.Tables()...)
}

// The server's clock is read as UTC, whatever zone it shows to people.
func clock(t *testing.T, e Env) {
	s, ok := e.store(t, e.Migrated(t)).(storage.Clock)
	require.True(t, ok)
	before := time.Now()
	now, err := s.Now(ctx)
	require.NoError(t, err)
	require.WithinRange(t, now, before.Add(-time.Second), time.Now().Add(time.Second))
}

// Rows that no Change could have made are refused by the database itself.
func refuses(t *testing.T, e Env) {
	db := e.Pool(t, e.Migrated(t))
	for _, values := range []string{
		"'p', 'wallet/w', 'C', -1, 0, 1", "'p', 'wallet/w', 'C', 5, 6, 1", "'p', 'wallet/w', 'C', 5, -1, 1",
		"'p', 'house', 'C', 'NaN', 0, 1", "'p', 'house', 'C', '10000000000000000001', 0, 1", "'p', 'house', 'C', NULL, 0, 1", "'p', 'house', 'C', 1, 0, -1",
	} {
		_, err := db.Exec("INSERT INTO cryptopay_balances (part, account, asset, posted, held, seq) VALUES (" + values + ")")
		require.Error(t, err, values)
	}
	for _, q := range []string{
		"INSERT INTO cryptopay_entries (part, account, asset, seq, tx, delta, balance_after) VALUES ('p', 'a', 'C', 1, 't', 0, 0)",
		"INSERT INTO cryptopay_entries (part, account, asset, seq, tx, delta, balance_after) VALUES ('p', 'a', 'C', 0, 't', 1, 1)",
		"INSERT INTO cryptopay_levels (part, name, value) VALUES ('p', 'l', -1)",
	} {
		_, err := db.Exec(q)
		require.Error(t, err, q)
	}
	_, err := db.Exec("INSERT INTO cryptopay_balances (part, account, asset, posted, held, seq) VALUES ('p', 'house', 'C', -5, 0, 1)")
	require.NoError(t, err, "a house account has no floor")
	var n ledger.Amount
	require.NoError(t, db.Get(&n, "SELECT posted FROM cryptopay_balances WHERE part = 'p'"))
	require.Equal(t, ledger.Amount(-5), n)
}
