package sqltest

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// OneVersionBehind runs this library and the one before its last migration on one
// database: d over a host's pool db, without that migration, beside open and
// migrate. Each refuses to start on the other's schema; one that runs when the
// schema is raised goes on beside the new one.
func OneVersionBehind(t *testing.T, d sqlstore.Dialect, db *sqlx.DB, open func() storage.Store, migrate func(...*storage.Table) error) {
	d.Migrations = first(t, d.Migrations, count(t, d.Migrations)-1)
	// Tables that no migration makes: the last one may have changed any other.
	tables := []*storage.Table{storagetest.Things.Table, storagetest.Notes.Table}
	older := func() *sqlstore.Store {
		return sqlstore.New(&d, db, db, sqlstore.Options{BusyTimeout: 5 * time.Second})
	}
	require.NoError(t, sqlstore.Migrate(ctx, db, &d, tables...))
	before := older()
	require.NoError(t, before.Open(ctx, tables...))
	early := open()
	err := early.Open(ctx, tables...)
	require.ErrorIs(t, err, storage.ErrSchema, "the new one does not start on the old schema")
	require.ErrorContains(t, err, "run Migrate")
	require.ErrorIs(t, early.Commit(ctx, deposit(here, "too early"))[0], storage.ErrClosed)

	var acked struct {
		sync.Mutex
		ids []string
	}
	var over atomic.Bool
	var done sync.WaitGroup
	write := func(who string, s storage.Store) {
		for w := range 3 {
			done.Go(func() {
				for i := 0; i < 10 || !over.Load(); i++ {
					id := fmt.Sprint(who, w, "/", i)
					if err := storage.CommitOne(ctx, s, deposit(here, id)); err != nil {
						t.Error(who, err)
						return
					}
					acked.Lock()
					acked.ids = append(acked.ids, id)
					acked.Unlock()
				}
			})
		}
	}
	write("old ", before)
	require.NoError(t, migrate(tables...))
	after := open()
	require.NoError(t, after.Open(ctx, tables...))
	write("new ", after)

	err = older().Open(ctx, tables...)
	require.ErrorIs(t, err, storage.ErrSchema, "the old one does not start on the new schema")
	require.ErrorContains(t, err, "update the library")
	require.ErrorIs(t, sqlstore.Migrate(ctx, db, &d, tables...), storage.ErrSchema)
	over.Store(true)
	done.Wait()
	require.Equal(t, len(acked.ids), whole(t, after, here, acked.ids))
	require.Equal(t, len(acked.ids), whole(t, before, here, acked.ids))
	leasesBesideOlder(t, db, after)
}

// leasesBesideOlder: a process of a version that keeps leases in the column due, and knows no
// other version of a row than the column's, works on rows beside s. Whatever the two did, one
// of them writes the row and the other has a conflict.
func leasesBesideOlder(t *testing.T, db *sqlx.DB, s storage.Store) {
	t.Helper()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	claim := storage.Claim{Table: storagetest.Notes.Table, Partition: here, Now: now, Until: now.Add(time.Minute), Max: 1}
	add := func(id string) {
		c := storage.Change{ID: "add " + id, Partition: here, Put: []storage.Row{storagetest.Notes.Row(id, 0, now, storagetest.Note{})}}
		require.NoError(t, storage.CommitOne(ctx, s, c))
	}
	claims := func(c storage.Claim) storage.Row {
		rows, err := s.Claim(ctx, c)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		return rows[0]
	}
	put := func(r storage.Row) error {
		return storage.CommitOne(ctx, s, storage.Change{ID: "put " + r.ID, Partition: here, Put: []storage.Row{storagetest.Notes.Row(r.ID, r.Version, time.Time{}, storagetest.Note{N: 1})}})
	}
	// older writes as the other process does, where it last saw this version.
	older := func(set, id string, version int64) bool {
		res, err := db.Exec(db.Rebind("UPDATE cryptopay_suite_notes SET version = version + 1, "+set+" WHERE part = ? AND id = ? AND version = ?"), string(here), id, version)
		require.NoError(t, err)
		n, err := res.RowsAffected()
		require.NoError(t, err)
		return n == 1
	}
	done := "change_id = 'older', due = 0"
	lease := fmt.Sprint("due = ", storage.Micros(claim.Until))

	add("a") // it was read there before it was claimed here, and is written there
	mine := claims(claim)
	require.True(t, older(done, "a", 1))
	require.ErrorIs(t, put(mine), storage.ErrConflict)

	add("b") // the same, written here first
	mine = claims(claim)
	require.NoError(t, put(mine))
	require.False(t, older(done, "b", 1))

	add("c") // it was claimed here, and there too
	mine = claims(claim)
	require.True(t, older(lease, "c", 1))
	require.ErrorIs(t, put(mine), storage.ErrConflict)
	require.True(t, older(done, "c", 2))

	add("d") // a lease that ended there
	require.True(t, older(lease, "d", 1))
	rows, err := s.Claim(ctx, claim)
	require.NoError(t, err)
	require.Empty(t, rows, "it stands here, too")
	claim.Now, claim.Until = claim.Until, claim.Until.Add(time.Minute)
	mine = claims(claim)
	require.NoError(t, put(mine))
	require.False(t, older(done, "d", 2))
}

// count is how many migrations a dialect has.
func count(t *testing.T, from fs.FS) int {
	names, err := fs.Glob(from, "migrations/*.sql")
	require.NoError(t, err)
	return len(names)
}

// first are the first migrations of a dialect.
func first(t *testing.T, from fs.FS, count int) fstest.MapFS {
	names, err := fs.Glob(from, "migrations/*.sql")
	require.NoError(t, err)
	slices.Sort(names)
	out := fstest.MapFS{}
	for _, name := range names[:count] {
		text, err := fs.ReadFile(from, name)
		require.NoError(t, err)
		out[name] = &fstest.MapFile{Data: text}
	}
	return out
}

// Repeated ends a migrator after the statements of each migration and before the row that
// records it: the next one does the migration again. It is for servers that commit each
// change of a schema by itself.
func Repeated(t *testing.T, d sqlstore.Dialect, db *sqlx.DB) {
	all := d.Migrations
	for i := range count(t, all) {
		d.Migrations = first(t, all, i+1)
		for range 2 {
			require.NoError(t, sqlstore.Migrate(ctx, db, &d))
			_, err := db.Exec(fmt.Sprint("DELETE FROM cryptopay_migrations WHERE version = ", i+1))
			require.NoError(t, err)
		}
		require.NoError(t, sqlstore.Migrate(ctx, db, &d))
	}
}

// FailingMigration runs a migration with a statement that fails. That is an error, and
// nobody takes the migration for done.
func FailingMigration(t *testing.T, d sqlstore.Dialect, db *sqlx.DB) {
	good := d.Migrations
	files := first(t, good, count(t, good))
	files[fmt.Sprintf("migrations/%04d_failing.sql", len(files)+1)] = &fstest.MapFile{
		Data: []byte("CREATE TABLE cryptopay_more (n bigint);\nALTER TABLE cryptopay_never ADD COLUMN n bigint;\n"),
	}
	d.Migrations = files
	for range 2 {
		require.ErrorContains(t, sqlstore.Migrate(ctx, db, &d), "failing")
	}
	d.Migrations = good
	require.NoError(t, sqlstore.Migrate(ctx, db, &d), "nothing newer is there")
}

// BrokenRows adds a check to a table with rows that break it: the error names them.
func BrokenRows(t *testing.T, d sqlstore.Dialect, db *sqlx.DB) {
	table := storagetest.Notes
	require.NoError(t, sqlstore.Migrate(ctx, db, &d, table.Table))
	s := sqlstore.New(&d, db, db, sqlstore.Options{})
	require.NoError(t, s.Open(ctx, table.Table))
	for i, n := range []int64{5, -3, -4} {
		row := table.Row(fmt.Sprint("row", i), 0, time.Time{}, storagetest.Note{N: n})
		require.NoError(t, storage.CommitOne(ctx, s, storage.Change{ID: row.ID, Partition: here, Put: []storage.Row{row}}))
	}
	files := first(t, d.Migrations, count(t, d.Migrations))
	files[fmt.Sprintf("migrations/%04d_sign.sql", len(files)+1)] = &fstest.MapFile{
		Data: []byte("ALTER TABLE cryptopay_" + table.Name + " ADD CONSTRAINT cryptopay_notes_sign\n  CHECK (n >= 0 AND (n < 100 OR n = 500));\n"),
	}
	d.Migrations = files
	err := sqlstore.Migrate(ctx, db, &d, table.Table)
	require.ErrorContains(t, err, "table cryptopay_"+table.Name)
	require.ErrorContains(t, err, "cryptopay_notes_sign")
	require.ErrorContains(t, err, fmt.Sprintf("row %q of partition %q, row %q of", "row1", here, "row2"))
	require.ErrorContains(t, err, "run Migrate again")
	require.NotContains(t, err.Error(), "row0")

	for i := 1; i <= 2; i++ { // as the error says
		_, err = db.Exec(fmt.Sprintf("UPDATE cryptopay_%s SET n = 1 WHERE n = %d", table.Name, -2-i))
		require.NoError(t, err)
		if err = sqlstore.Migrate(ctx, db, &d, table.Table); i == 1 {
			require.ErrorContains(t, err, fmt.Sprintf("row %q", "row2"))
		}
	}
	require.NoError(t, err)
}

// What an older library is not disturbed by: tables and indexes, columns that it need
// not know of, and what the server keeps of a column's values. A unique index only on a
// table of the same migration, or where it gains a column that the older library leaves at its
// default: what that writes is as unique as before. An index that is no unique one may go, or give way to one of
// the same name: that changes how fast the older library finds rows, and not what it finds.
// Where statements name an index (Dialect.UseIndex), it stays for as long as a process may
// run that names it: without it their statements fail. A column that is to have an index
// becomes as short as indexed ones are, where no version writes longer values. A check of withdrawals' sums, as every
// version writes rows that pass it.
var (
	adds = regexp.MustCompile(`(?is)^(CREATE TABLE|CREATE INDEX|ALTER TABLE \S+ ADD COLUMN .* NOT NULL DEFAULT |ALTER TABLE \S+ ALTER COLUMN \S+ SET STATISTICS |ALTER TABLE \S+ SET \(` +
		"|ALTER TABLE cryptopay_payments MODIFY `custom_id` varbinary\\(500\\) NOT NULL$" +
		"|ALTER TABLE cryptopay_events MODIFY `type` varbinary\\(500\\) NOT NULL$" +
		"|ALTER TABLE cryptopay_refunds MODIFY `status` varbinary\\(500\\) NOT NULL$" +
		`|ALTER TABLE cryptopay_withdrawals ADD CONSTRAINT \S* ?(IF NOT EXISTS \*/ )?cryptopay_withdrawals_sum\s+CHECK ` +
		`|DROP INDEX cryptopay_payments_u0$|CREATE UNIQUE INDEX cryptopay_payments_(new|u0) ON cryptopay_payments \(part, "network", "address", "slot"\)$` +
		"|ALTER TABLE cryptopay_payments DROP INDEX cryptopay_payments_u0, ADD UNIQUE INDEX cryptopay_payments_u0 \\(part, `network`, `address`, `slot`\\)$" +
		`|CREATE TRIGGER IF NOT EXISTS cryptopay_withdrawals_(made|kept) BEFORE )`)
	goes    = regexp.MustCompile(`(?is)^DROP INDEX (?:/\*M! IF EXISTS \*/ )?(cryptopay_\w+_[ia]\d+)(?: ON \S+)?$`)
	again   = regexp.MustCompile(`(?is)^(?:ALTER TABLE \S+ DROP INDEX (\S+), ADD INDEX (\S+) |ALTER INDEX (cryptopay_\w+)_new RENAME TO (cryptopay_\w+)_[iau]\d+$)`)
	uniques = regexp.MustCompile(`(?is)^CREATE UNIQUE INDEX (IF NOT EXISTS )?\S+ ON (\S+) `)
)

// Additive holds a dialect's migrations to what a process of the version before, that goes
// on, can live with.
func Additive(t *testing.T, d sqlstore.Dialect) {
	from := d.Migrations
	names, err := fs.Glob(from, "migrations/*.sql")
	require.NoError(t, err)
	for _, name := range names {
		text, err := fs.ReadFile(from, name)
		require.NoError(t, err)
		for q := range strings.SplitSeq(plain(string(text)), ";\n") {
			if q = strings.TrimSpace(q); q == "" || adds.MatchString(q) {
				continue
			}
			if m := again.FindStringSubmatch(q); m != nil && m[1] == m[2] && m[3] == m[4] {
				continue
			}
			if m := goes.FindStringSubmatch(q); m != nil && (d.UseIndex == "" || slices.Contains(unnamed, m[1])) {
				continue
			}
			unique := uniques.FindStringSubmatch(q)
			require.NotNil(t, unique, "%s: an older process may not live with this: %s", name, q)
			require.Regexp(t, `CREATE TABLE (IF NOT EXISTS )?`+unique[2]+` \(`, string(text), "%s: unique in an older table: %s", name, q)
		}
	}
}

// unnamed are indexes that went, and that no statement of the version before named.
var unnamed = []string{
	"cryptopay_sightings_i2", "cryptopay_sightings_i3", "cryptopay_payments_i3",
	"cryptopay_activity_i1", "cryptopay_activity_i2", "cryptopay_activity_i3", // it named their first one
}

// plain is SQL without the lines that are comments.
func plain(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
