package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// U01: many migrators at once, and again.
func TestU01_ManyMigrators(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if err := sqlite.Migrate(ctx, path, storagetest.Tables()...); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, sqlite.Migrate(ctx, path, storagetest.Tables()...))
	require.NoError(t, at(t, path).Open(ctx, storagetest.Tables()...))
}

// The hand-written migrations make what the declarations say.
func TestMigrationsMatchDeclarations(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, sqlite.Migrate(ctx, path)) // no table is made from its declaration
	require.NoError(t, at(t, path).Open(ctx, storage.Tables()...))
}

func TestU02_OtherSchemas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := at(t, filepath.Join(dir, "empty.db"))
	require.ErrorIs(t, empty.Open(ctx), storage.ErrSchema)
	require.ErrorIs(t, empty.Commit(ctx, deposit("x"))[0], storage.ErrClosed)

	path := filepath.Join(dir, "x.db")
	require.NoError(t, sqlite.Migrate(ctx, path))
	require.ErrorIs(t, at(t, path).Open(ctx, storagetest.Tables()...), storage.ErrSchema, "a table is missing")

	type grown struct {
		Text string `db:"text"`
		N    int64  `db:"n"`
		More string `db:"more"`
	}
	require.NoError(t, sqlite.Migrate(ctx, path, storagetest.Tables()...))
	for name, table := range map[string]*storage.Table{
		"a column":     storage.NewTable[grown](storagetest.Notes.Name, storage.Index("n")).Table,
		"an index":     storage.NewTable[storagetest.Note](storagetest.Notes.Name, storage.Index("text")).Table,
		"a unique key": storage.NewTable[storagetest.Note](storagetest.Notes.Name, storage.Unique("text")).Table,
		"a key more":   storage.NewTable[storagetest.Thing](storagetest.Things.Name, storage.Unique("name"), storage.Index("group", "at")).Table,
	} {
		require.ErrorIs(t, at(t, path).Open(ctx, table), storage.ErrSchema, name)
		require.ErrorIs(t, sqlite.Migrate(ctx, path, table), storage.ErrSchema, name)
	}

	db := host(t, path, safe...)
	_, err := db.Exec("UPDATE cryptopay_migrations SET version = version + 1000")
	require.NoError(t, err)
	require.ErrorIs(t, at(t, path).Open(ctx, storagetest.Tables()...), storage.ErrSchema, "from a newer library")
	require.ErrorIs(t, sqlite.Migrate(ctx, path), storage.ErrSchema)
	_, err = db.Exec("DELETE FROM cryptopay_migrations")
	require.NoError(t, err)
	require.ErrorIs(t, at(t, path).Open(ctx, storagetest.Tables()...), storage.ErrSchema, "an old one")
}

func TestSchemaPrints(t *testing.T) {
	t.Parallel()
	require.Contains(t, sqlite.Schema(storagetest.Things.Table), `CREATE UNIQUE INDEX cryptopay_suite_things_u1 ON cryptopay_suite_things (part, "group", "order");`)
}
