package sqlite_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/internal/sqltest"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// U01: many migrators of a new file at once, and again.
func TestU01_ManyMigrators(t *testing.T) {
	t.Parallel()
	rounds := 20 // SQLite locks some of them out of a new file, not each time
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
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
}

// U01: a file that has something of ours, and not what the migrations begin with, is not
// taken for one that has all.
func TestU01_TableInTheWay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db := host(t, path, safe...)
	_, err := db.Exec("CREATE TABLE cryptopay_levels (theirs TEXT)")
	require.NoError(t, err)
	require.ErrorContains(t, sqlite.Migrate(ctx, path), "cryptopay_levels")
	require.ErrorIs(t, at(t, path).Open(ctx), storage.ErrSchema)
	_, err = db.Exec("DROP TABLE cryptopay_levels")
	require.NoError(t, err)
	require.NoError(t, sqlite.Migrate(ctx, path))
	require.NoError(t, at(t, path).Open(ctx))
}

// declared is every table that this library stores, by whichever package.
func declared() []*storage.Table {
	return slices.Concat(cryptopay.Tables(), keys.Tables(), auth.Tables())
}

// The hand-written migrations make what the declarations say, and nothing else
// but the kernel's tables.
func TestMigrationsMatchDeclarations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	byHand := filepath.Join(dir, "by hand.db")
	require.NoError(t, sqlite.Migrate(ctx, byHand)) // no table is made from its declaration
	made := schemaOf(t, host(t, byHand, safe...))
	for _, kernel := range []string{"migrations", "parts", "ledger_txs", "balances", "entries", "levels"} {
		require.Contains(t, made, "cryptopay_"+kernel)
		delete(made, "cryptopay_"+kernel)
	}
	db := host(t, filepath.Join(dir, "declared.db"), safe...)
	_, err := db.Exec(sqlite.Schema(declared()...))
	require.NoError(t, err)
	want := schemaOf(t, db)
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(made)))
	for table, lines := range want {
		require.Equal(t, lines, made[table],
			"%s: its declaration changed: say the same in a migration, a new one if the last was released; sqlite.Schema prints what it comes to", table)
	}
	require.NoError(t, at(t, byHand).Open(ctx, declared()...))
}

var update = flag.Bool("update", false, "write schema.sql anew")

// schema.sql makes what the migrations make, to the letter: go test -run TestWholeSchema -update writes it.
func TestWholeSchema(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := sqlite.Dialect()
	names, err := fs.Glob(d.Migrations, "migrations/*.sql")
	require.NoError(t, err)
	steps := fstest.MapFS{} // without schema.sql
	for _, name := range names {
		text, err := fs.ReadFile(d.Migrations, name)
		require.NoError(t, err)
		steps[name] = &fstest.MapFile{Data: text}
	}
	d.Migrations = steps
	byStep := hostPool(t, filepath.Join(dir, "steps.db"))
	require.NoError(t, sqlstore.Migrate(ctx, byStep, &d))
	last := strings.TrimSuffix(strings.TrimPrefix(slices.Max(names), "migrations/"), ".sql")
	want := sqlstore.WholeUpTo(last) + "\n"
	for _, q := range objectsOf(t, byStep) {
		if !strings.HasPrefix(q, "CREATE TABLE cryptopay_migrations ") {
			want += q + ";\n"
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("schema.sql", []byte(want), 0o644))
		t.Skip("written")
	}
	have, err := os.ReadFile("schema.sql")
	require.NoError(t, err)
	require.Equal(t, want, string(have), "go test ./storage/sqlstore/sqlite -run TestWholeSchema -update")

	path := filepath.Join(dir, "whole.db")
	require.NoError(t, sqlite.Migrate(ctx, path))
	whole := hostPool(t, path)
	require.Equal(t, objectsOf(t, byStep), objectsOf(t, whole))
	rows := func(db *sqlx.DB) (out []string) {
		require.NoError(t, db.Select(&out, "SELECT version || ' ' || name FROM cryptopay_migrations ORDER BY version"))
		return out
	}
	require.Equal(t, rows(byStep), rows(whole))
}

// objectsOf is the statement of each object of a database's schema, in the order in which they were made.
func objectsOf(t *testing.T, db *sqlx.DB) (out []string) {
	t.Helper()
	require.NoError(t, db.Select(&out, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"))
	return out
}

// What the comparison above stands on sees every kind of difference.
func TestSchemaOfSeesDifferences(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, sqlite.Migrate(ctx, path))
	db := host(t, path, safe...)
	last := schemaOf(t, db)
	for _, change := range []string{
		"ALTER TABLE cryptopay_payments DROP COLUMN order_description",
		"ALTER TABLE cryptopay_payments ADD COLUMN more TEXT NOT NULL DEFAULT ''",
		"DROP INDEX cryptopay_payments_i1",
		"DROP INDEX cryptopay_payments_u0",
		"CREATE INDEX cryptopay_payments_u0 ON cryptopay_payments (part, network, address)",
		"DROP TABLE cryptopay_coins",
	} {
		_, err := db.Exec(change)
		require.NoError(t, err, change)
		now := schemaOf(t, db)
		require.False(t, reflect.DeepEqual(last, now), change)
		last = now
	}
	require.ErrorIs(t, at(t, path).Open(ctx, declared()...), storage.ErrSchema)
}

// schemaOf is what a database consists of: per table its columns, keys and
// indexes, in SQLite's own words. The order of columns and their defaults, which
// a later ALTER TABLE cannot have otherwise, make no difference to anybody.
func schemaOf(t *testing.T, db *sqlx.DB) map[string][]string {
	t.Helper()
	var rows []struct {
		Table string `db:"tab"`
		Line  string `db:"line"`
	}
	const own = "l.type = 'table' AND l.name NOT LIKE 'sqlite%'"
	require.NoError(t, db.Select(&rows, `
		SELECT l.name AS tab, concat_ws(' ', 'strict', l.strict) AS line FROM pragma_table_list l WHERE `+own+`
		UNION ALL SELECT l.name, concat_ws(' ', 'column', c.name, c.type, c."notnull", c.pk, c.hidden)
		FROM pragma_table_list l, pragma_table_xinfo(l.name) c WHERE `+own+`
		UNION ALL SELECT l.name, concat_ws(' ', 'index', CASE i.origin WHEN 'c' THEN i.name ELSE 'of the key' END, i."unique", i.partial, group_concat(concat_ws(' ', x.name, x."desc", x.coll), ', ' ORDER BY x.seqno))
		FROM pragma_table_list l, pragma_index_list(l.name) i, pragma_index_xinfo(i.name) x WHERE `+own+` AND x.key = 1 GROUP BY l.name, i.name
		ORDER BY 1, 2`))
	out := map[string][]string{}
	for _, r := range rows {
		out[r.Table] = append(out[r.Table], r.Line)
	}
	return out
}

// U01: a file whose domain tables were made from their declarations, before
// there was a migration for them, is brought up with what is in it.
func TestU01_FileFromBeforeTheDomainMigration(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, many statements")
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "old.db")
	require.NoError(t, sqlite.Migrate(ctx, path, storagetest.Tables()...))
	store := at(t, path)
	require.NoError(t, store.Open(ctx, storagetest.Tables()...))
	require.NoError(t, storage.CommitOne(ctx, store, deposit("old")))
	require.NoError(t, store.Close())
	db := host(t, path, safe...)
	undo := func(tables ...*storage.Table) {
		for _, table := range tables {
			_, err := db.Exec("DROP TABLE " + sqlstore.TableName(table))
			require.NoError(t, err)
		}
		for i := 1; i <= 3; i++ { // a later migration dropped them
			_, err := db.Exec(fmt.Sprintf("CREATE INDEX cryptopay_activity_i%d ON cryptopay_activity (part)", i))
			require.NoError(t, err)
		}
		_, err := db.Exec("DELETE FROM cryptopay_migrations WHERE version > 1")
		require.NoError(t, err)
	}
	domain := declared()[len(storage.Tables()):]
	undo(domain...)
	require.ErrorIs(t, at(t, path).Open(ctx, storagetest.Tables()...), storage.ErrSchema, "it is an old one")
	_, err := db.Exec(sqlite.Schema(domain...))
	require.NoError(t, err)
	_, err = db.Exec("DROP INDEX cryptopay_withdrawals_i6")
	require.NoError(t, err)
	for _, added := range []string{"outcomes DROP COLUMN batch", "withdrawals DROP COLUMN waiting_since", "gas_reservations DROP COLUMN counted"} { // by later migrations
		_, err = db.Exec("ALTER TABLE cryptopay_" + added)
		require.NoError(t, err)
	}
	for _, table := range domain { // the same
		for _, column := range []string{"lease", "claims"} {
			_, err = db.Exec("ALTER TABLE " + sqlstore.TableName(table) + " DROP COLUMN " + column)
			require.NoError(t, err)
		}
	}
	_, err = db.Exec("INSERT INTO cryptopay_wallet_sequences VALUES ('tenant/t', 'x', 1, 'c', 0, 7)")
	require.NoError(t, err)

	require.NoError(t, sqlite.Migrate(ctx, path, append(declared(), storagetest.Tables()...)...))
	store = at(t, path)
	require.NoError(t, store.Open(ctx, append(declared(), storagetest.Tables()...)...))
	storagetest.Audit(t, store, here)
	_, _, ok, err := storagetest.Notes.One(ctx, store, here, "old")
	require.NoError(t, err)
	require.True(t, ok)
	var last int64
	require.NoError(t, db.Get(&last, "SELECT last_number FROM cryptopay_wallet_sequences"))
	require.EqualValues(t, 7, last)

	// One of them is of another shape: the migration leaves it, and says so.
	undo(domain...)
	_, err = db.Exec("CREATE TABLE cryptopay_coins (part TEXT NOT NULL, id TEXT NOT NULL, due INTEGER NOT NULL, tenant TEXT, state TEXT, amount INTEGER, PRIMARY KEY (part, id)) STRICT")
	require.NoError(t, err)
	require.ErrorIs(t, sqlite.Migrate(ctx, path, declared()...), storage.ErrSchema)
	require.ErrorIs(t, at(t, path).Open(ctx, declared()...), storage.ErrSchema)
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
		"one of all":   storage.NewTable[storagetest.Note](storagetest.Notes.Name, storage.Index("n"), storage.Across("n")).Table,
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

// U02: a host's own table, made before tables had the columns of leases.
func TestU02_HostsTableGetsColumns(t *testing.T) {
	t.Parallel()
	path := migrated(t)
	s := at(t, path)
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	due := storagetest.Notes.Row("a", 0, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), storagetest.Note{N: 1})
	require.NoError(t, storage.CommitOne(ctx, s, storage.Change{ID: "a", Partition: here, Put: []storage.Row{due}}))
	require.NoError(t, s.Close())
	db := host(t, path, safe...)
	for _, column := range []string{"lease", "claims"} {
		_, err := db.Exec("ALTER TABLE cryptopay_suite_notes DROP COLUMN " + column)
		require.NoError(t, err)
	}
	require.ErrorIs(t, at(t, path).Open(ctx, storagetest.Tables()...), storage.ErrSchema)
	require.NoError(t, sqlite.Migrate(ctx, path, storagetest.Tables()...))
	s = at(t, path)
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	rows, err := s.Claim(ctx, storage.Claim{Table: storagetest.Notes.Table, Now: due.Due, Until: due.Due.Add(time.Minute), Max: 9})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.EqualValues(t, 2, rows[0].Version)
}

func TestSchemaPrints(t *testing.T) {
	t.Parallel()
	require.Contains(t, sqlite.Schema(storagetest.Things.Table), `CREATE UNIQUE INDEX cryptopay_suite_things_u1 ON cryptopay_suite_things (part, "group", "order");`)
}

// U02: see sqltest.OneVersionBehind.
func TestU02_OneVersionBehind(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	sqltest.OneVersionBehind(t, sqlite.Dialect(), hostPool(t, path),
		func() storage.Store { return at(t, path) },
		func(tables ...*storage.Table) error { return sqlite.Migrate(ctx, path, tables...) })
}

// U01: see sqltest.FailingMigration.
func TestU01_FailingMigration(t *testing.T) {
	t.Parallel()
	sqltest.FailingMigration(t, sqlite.Dialect(), hostPool(t, filepath.Join(t.TempDir(), "x.db")))
}

func TestU02_MigrationsOnlyAdd(t *testing.T) {
	t.Parallel()
	sqltest.Additive(t, sqlite.Dialect())
}
