package sqlite_test

import (
	"context"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/internal/sqltest"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

var ctx = context.Background()

// paths remembers which file a store stands on.
var paths sync.Map

func at(t testing.TB, path string) storage.Store {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	paths.Store(storage.Store(s), path)
	return s
}

func pathOf(t testing.TB, s storage.Store) string {
	t.Helper()
	path, ok := paths.Load(s)
	require.True(t, ok)
	return path.(string)
}

func fresh(t testing.TB) storage.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store with blanks?.db")
	require.NoError(t, sqlite.Migrate(ctx, path, storagetest.Tables()...))
	return at(t, path)
}

func harness() storagetest.Harness {
	return storagetest.Harness{
		Open:   fresh,
		Second: func(t testing.TB, s storage.Store) storage.Store { return at(t, pathOf(t, s)) },
		Reopen: func(t testing.TB, s storage.Store) storage.Store {
			require.NoError(t, s.Close())
			return at(t, pathOf(t, s))
		},
		Begin: func(t testing.TB, s storage.Store) (storage.Tx, func(bool) error) {
			return sqltest.Begin(t, hostPool(t, pathOf(t, s)), s.(*sqlite.Store).WithTx)
		},
		Spoil: func(t testing.TB, s storage.Store, p storage.Partition, id string) {
			sqltest.Spoil(t, hostPool(t, pathOf(t, s)), p, id)
		},
		Rounds: 25,
	}
}

// hostPool is the file as a host opens it for its own tables.
func hostPool(t testing.TB, path string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(60000)")
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, harness())
}

func TestSameVerdictsAsMemory(t *testing.T) {
	t.Parallel()
	storagetest.Compare(t, fresh(t), memory.New(), 25)
}

// A host that goes on after SQLite ended its transaction is told before anything of
// ours is written: it would stand there alone.
func TestL05_HostGoesOnAfterEnd(t *testing.T) {
	t.Parallel()
	s := fresh(t).(*sqlite.Store)
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	db := hostPool(t, pathOf(t, s))
	tx, err := db.BeginTxx(ctx, nil)
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // a test's end
	in := s.WithTx(tx.Tx)
	put := func(id string) storage.Change {
		return storage.Change{ID: id, Partition: storage.Tenant("a"), Put: []storage.Row{storagetest.Notes.Row(id, 0, time.Time{}, storagetest.Note{})}}
	}
	require.NoError(t, in.Commit(ctx, put("before"))[0])
	_, err = tx.Exec("ROLLBACK")
	require.NoError(t, err)
	require.ErrorIs(t, in.Commit(ctx, put("after"))[0], sqlstore.ErrOver)
	require.ErrorIs(t, in.Commit(ctx, put("again"))[0], sqlstore.ErrOver)
	n, err := s.Count(ctx, storage.Query{Table: storagetest.Notes.Table})
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, s.Commit(ctx, put("free"))[0])
}
