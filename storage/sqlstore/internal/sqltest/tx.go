package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// withTx is what the dialects' stores are, beside a storage.Store.
type withTx interface {
	storage.Store
	WithTx(tx *sql.Tx) *sqlstore.Tx
}

// A host's transaction that shows what was when it began is refused, or decides on
// what is: nothing that others committed meanwhile is overwritten.
func olderState(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	s := e.store(t, dsn).(withTx)
	require.NoError(t, s.Commit(ctx, deposit(here, "before"))[0])
	n := 1
	for i, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		tx, err := e.Pool(t, dsn).BeginTxx(ctx, &sql.TxOptions{Isolation: level})
		require.NoError(t, err)
		var seq int64
		if level == sql.LevelRepeatableRead { // the other one would hold us up
			require.NoError(t, tx.Get(&seq, "SELECT max(seq) FROM cryptopay_balances"))
			require.NoError(t, s.Commit(ctx, deposit(here, "meanwhile"))[0])
			n++
		}
		err = s.WithTx(tx.Tx).Commit(ctx, deposit(here, fmt.Sprint("host ", i)))[0]
		if err != nil {
			require.ErrorContains(t, err, "LevelReadCommitted")
			require.NoError(t, tx.Rollback())
			continue
		}
		require.NoError(t, tx.Commit())
		n++
	}
	require.Equal(t, n, whole(t, s, here, []string{"before", "meanwhile"}))
}

// A host's transaction that waits for a tenant in vain goes on without it.
func hostGivesUp(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	s := e.store(t, dsn).(withTx)
	db := e.orders(t, dsn)
	require.NoError(t, s.Commit(ctx, deposit(here, "before"))[0])
	other, err := db.Beginx()
	require.NoError(t, err)
	defer other.Rollback() //nolint:errcheck // a test's end
	_, err = other.Exec(other.Rebind(e.Lock), string(here))
	require.NoError(t, err)

	tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // where the test fails
	for _, q := range []string{e.Impatient, "INSERT INTO orders (id) VALUES ('before it')"} {
		_, err = tx.Exec(q)
		require.NoError(t, err)
	}
	in := s.WithTx(tx.Tx)
	err = in.Commit(ctx, deposit(here, "in vain"))[0]
	require.ErrorIs(t, err, storage.ErrBusy)
	_, err = tx.Exec("INSERT INTO orders (id) VALUES ('after it')")
	require.NoError(t, err)
	require.NoError(t, in.Commit(ctx, deposit(there, "free"))[0])
	require.NoError(t, tx.Commit())
	require.NoError(t, other.Rollback())
	var orders int
	require.NoError(t, db.Get(&orders, "SELECT count(*) FROM orders"))
	require.Equal(t, 2, orders)
	require.Equal(t, 1, whole(t, s, here, nil))
	require.Equal(t, 1, whole(t, s, there, nil))
}

// Hosts' transactions that have taken all of a pool do not wait for one connection
// more, which none of them would give back.
func hostsFillThePool(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	db := e.Pool(t, dsn)
	db.SetMaxOpenConns(2)
	s, err := e.OpenDB(db)
	require.NoError(t, err)
	defer s.Close() //nolint:errcheck // a test's end
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	parts := []storage.Partition{here, there}
	var open []*sqlx.Tx
	for _, p := range parts {
		require.NoError(t, s.Commit(ctx, deposit(p, "before"))[0])
	}
	for range parts {
		tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		require.NoError(t, err)
		defer tx.Rollback() //nolint:errcheck // where the test fails
		open = append(open, tx)
	}
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for i, tx := range open {
		require.NoError(t, s.(withTx).WithTx(tx.Tx).Commit(short, deposit(parts[i], "host"))[0])
	}
	for i, tx := range open {
		require.NoError(t, tx.Commit())
		require.Equal(t, 2, whole(t, s, parts[i], nil))
	}
}

// A host that goes on after the database ended its transaction, by a deadlock of its
// own statements or a statement that commits, is told before anything of ours is
// written: it would stand there alone.
func hostGoesOnAfterTheEnd(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	s := e.store(t, dsn).(withTx)
	require.NoError(t, s.Commit(ctx, deposit(here, "before"))[0])
	db := e.orders(t, dsn)
	for _, q := range []string{"ROLLBACK", "COMMIT"} {
		tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		require.NoError(t, err)
		defer tx.Rollback() //nolint:errcheck // where the test fails
		in := s.WithTx(tx.Tx)
		_, err = tx.Exec(q)
		require.NoError(t, err)
		require.Error(t, in.Commit(ctx, deposit(here, "host"))[0])
		require.ErrorIs(t, in.Commit(ctx, deposit(here, "host"))[0], sqlstore.ErrOver)
		_ = tx.Rollback()
		require.Equal(t, 1, whole(t, s, here, nil))
	}
}

// orders is a host's pool, with a table of its own.
func (e Env) orders(t *testing.T, dsn string) *sqlx.DB {
	t.Helper()
	db := e.Pool(t, dsn)
	for _, q := range []string{"CREATE TABLE IF NOT EXISTS orders (id varchar(40) PRIMARY KEY)", "DELETE FROM orders"} {
		_, err := db.Exec(q)
		require.NoError(t, err)
	}
	return db
}

// Two hosts wait for each other, and the database ends it. Nothing of the one that
// lost is there, not even what its host does afterwards without looking.
func hostsDeadlock(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	s := e.store(t, dsn).(withTx)
	db := e.orders(t, dsn)
	for _, p := range []storage.Partition{here, there} {
		require.NoError(t, s.Commit(ctx, deposit(p, "before"))[0])
	}
	committed := &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	heavy, err := db.BeginTxx(ctx, committed)
	require.NoError(t, err)
	defer heavy.Rollback() //nolint:errcheck // where the test fails
	for i := range 20 {    // the database ends who did less
		require.NoError(t, s.WithTx(heavy.Tx).Commit(ctx, deposit(there, fmt.Sprint("heavy ", i)))[0])
	}
	light, err := db.BeginTxx(ctx, committed)
	require.NoError(t, err)
	defer light.Rollback() //nolint:errcheck // where the test fails
	_, err = light.Exec("INSERT INTO orders (id) VALUES ('with it')")
	require.NoError(t, err)
	_, err = light.Exec(light.Rebind(e.Lock), string(here))
	require.NoError(t, err)
	in := s.WithTx(light.Tx)
	lost := make(chan error, 1)
	go func() { lost <- in.Commit(ctx, deposit(there, "light"))[0] }()
	locked := make(chan error, 1)
	go func() {
		_, err := heavy.Exec(heavy.Rebind(e.Lock), string(here))
		locked <- err
	}()
	err = <-lost
	if err == nil { // the database chose the other one
		require.Error(t, <-locked)
		require.NoError(t, heavy.Rollback())
		require.NoError(t, light.Commit())
		require.Equal(t, 2, whole(t, s, there, nil))
		return
	}
	require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict), "%v", err)
	_, _ = light.Exec("INSERT INTO orders (id) VALUES ('after it')")
	_ = light.Rollback()
	require.NoError(t, <-locked)
	require.NoError(t, heavy.Commit())
	require.Equal(t, 21, whole(t, s, there, nil))
	require.Equal(t, 1, whole(t, s, here, nil))
	var orders int
	require.NoError(t, db.Get(&orders, "SELECT count(*) FROM orders"))
	require.Zero(t, orders, "nothing of it, nor what came after it")
}
