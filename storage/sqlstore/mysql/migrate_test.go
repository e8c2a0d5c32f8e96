package mysql_test

import (
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/internal/sqltest"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// declared is every table that this library stores, by whichever package.
func declared() []*storage.Table {
	return slices.Concat(cryptopay.Tables(), keys.Tables(), auth.Tables())
}

// script runs statements that end with a semicolon and a line's end.
func script(t *testing.T, db *sqlx.DB, text string) {
	t.Helper()
	for q := range strings.SplitSeq(text, ";\n") {
		if q = strings.TrimSpace(q); q != "" {
			_, err := db.Exec(q)
			require.NoError(t, err, q)
		}
	}
}

// The hand-written migrations make what the declarations say, and nothing else but
// the kernel's tables.
func TestMigrationsMatchDeclarations(t *testing.T) {
	t.Parallel()
	byHand := emptyDatabase(t)
	require.NoError(t, migrate(byHand)) // no table is made from its declaration
	made := schemaOf(t, hostPool(t, byHand))
	for _, kernel := range []string{"migrations", "parts", "ledger_txs", "balances", "entries", "levels"} {
		require.Contains(t, made, "cryptopay_"+kernel)
		delete(made, "cryptopay_"+kernel)
	}
	db := hostPool(t, emptyDatabase(t))
	script(t, db, mysql.Declared(declared()...))
	want := schemaOf(t, db)
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(made)))
	// A declaration says nothing of sums: that one a migration makes alone.
	sum := slices.IndexFunc(made["cryptopay_withdrawals"], func(line string) bool { return strings.Contains(line, "CHECK (") })
	require.GreaterOrEqual(t, sum, 0)
	made["cryptopay_withdrawals"] = slices.Delete(made["cryptopay_withdrawals"], sum, sum+1)
	for table, lines := range want {
		for i, line := range made[table] { // a column that was added has one for older processes, which do not write it
			made[table][i] = strings.TrimSuffix(line, " DEFAULT 0")
		}
		require.Equal(t, lines, made[table],
			"%s: its declaration changed: say the same in a migration, a new one if the last was released; mysql.Declared prints what it comes to", table)
	}
	s := at(t, byHand, mysql.Options{})
	require.NoError(t, s.Open(ctx, declared()...))
}

// What the comparison above stands on sees every kind of difference.
func TestSchemaOfSeesDifferences(t *testing.T) {
	t.Parallel()
	place := emptyDatabase(t)
	require.NoError(t, migrate(place))
	db := hostPool(t, place)
	last := schemaOf(t, db)
	for _, change := range []string{
		"ALTER TABLE cryptopay_payments DROP COLUMN order_description",
		"ALTER TABLE cryptopay_payments ADD COLUMN more longblob NOT NULL",
		"ALTER TABLE cryptopay_payments MODIFY wallet_ref longblob NULL",
		"ALTER TABLE cryptopay_payments MODIFY tx_hash longtext NOT NULL",
		"DROP INDEX cryptopay_payments_i1 ON cryptopay_payments",
		"DROP INDEX cryptopay_payments_u0 ON cryptopay_payments",
		"CREATE INDEX cryptopay_payments_u0 ON cryptopay_payments (part, network, address)",
		"DROP TABLE cryptopay_coins",
	} {
		_, err := db.Exec(change)
		require.NoError(t, err, change)
		now := schemaOf(t, db)
		require.False(t, reflect.DeepEqual(last, now), change)
		last = now
	}
	require.ErrorIs(t, at(t, place, mysql.Options{}).Open(ctx, declared()...), storage.ErrSchema)
}

// schemaOf is what a database consists of: per table what the server says of it.
func schemaOf(t *testing.T, db *sqlx.DB) map[string][]string {
	t.Helper()
	var tables []string
	require.NoError(t, db.Select(&tables, "SELECT table_name FROM information_schema.tables WHERE table_schema = database() ORDER BY 1"))
	out := map[string][]string{}
	for _, table := range tables {
		var name, text string
		require.NoError(t, db.QueryRow("SHOW CREATE TABLE "+table).Scan(&name, &text))
		lines := strings.Split(strings.ReplaceAll(text, ",\n", "\n"), "\n")
		for i, line := range lines { // a column that was added later has a default
			if strings.HasPrefix(line, "  `") {
				lines[i], _, _ = strings.Cut(line, " DEFAULT ")
			}
		}
		slices.Sort(lines)
		out[table] = lines
	}
	return out
}

// The tables live beside others' under the operator's prefix, and what is printed
// for a host's own tool comes to the same.
func TestPrefix(t *testing.T) {
	t.Parallel()
	place, other := emptyDatabase(t), emptyDatabase(t)
	db := hostPool(t, place)
	db.MustExec("CREATE TABLE cryptopay_payments (theirs int)")
	o := mysql.Options{Prefix: "pay_"}
	require.NoError(t, mysql.Migrate(ctx, place, o, storagetest.Tables()...))
	require.NoError(t, mysql.Migrate(ctx, place, o, storagetest.Tables()...))
	text, err := mysql.Schema(o, storagetest.Tables()...)
	require.NoError(t, err)
	script(t, hostPool(t, other), text)
	for _, dsn := range []string{place, other} {
		s, err := mysql.Open(dsn, o)
		require.NoError(t, err)
		require.NoError(t, s.Open(ctx, append(declared(), storagetest.Tables()...)...))
		row := storagetest.Notes.Row("a", 0, storage.FromMicros(5), storagetest.Note{Text: "x"})
		require.NoError(t, s.Commit(ctx, storage.Change{ID: "c", Partition: "p", Put: []storage.Row{row}})[0])
		rows, err := s.Claim(ctx, storage.Claim{Table: storagetest.Notes.Table, Now: storage.FromMicros(6), Until: storage.FromMicros(9), Max: 5})
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.NoError(t, s.Close())
	}
	want := schemaOf(t, db)
	require.Len(t, want["cryptopay_payments"], 3, "theirs is as it was")
	delete(want, "cryptopay_payments")
	require.Equal(t, want, schemaOf(t, hostPool(t, other)))
}

// U02: see sqltest.OneVersionBehind.
func TestU02_OneVersionBehind(t *testing.T) {
	t.Parallel()
	place := emptyDatabase(t)
	sqltest.OneVersionBehind(t, mysql.Dialect(), hostPool(t, place),
		func() storage.Store { return at(t, place, mysql.Options{}) },
		func(tables ...*storage.Table) error { return migrate(place, tables...) })
}

// U01: see sqltest.FailingMigration.
func TestU01_FailingMigration(t *testing.T) {
	t.Parallel()
	sqltest.FailingMigration(t, mysql.Dialect(), hostPool(t, emptyDatabase(t)))
}

func TestU02_MigrationsOnlyAdd(t *testing.T) {
	t.Parallel()
	sqltest.Additive(t, mysql.Dialect())
}

// U01: a change of a schema is committed by itself, so a migrator can end between it and the
// row that records the migration. MySQL does not read what stands in /*M! */.
func TestU01_MigrationsCanBeRepeated(t *testing.T) {
	t.Parallel()
	sqltest.Repeated(t, mysql.Dialect(), hostPool(t, emptyDatabase(t)))
	d := mysql.Dialect()
	files := fstest.MapFS{}
	require.NoError(t, fs.WalkDir(d.Migrations, "migrations", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(d.Migrations, name)
		text = regexp.MustCompile(`/\*M!.*?\*/`).ReplaceAll(text, nil)
		require.NotRegexp(t, `(INDEX|COLUMN|CONSTRAINT)\s+IF NOT EXISTS`, string(text), "MySQL does not know this: %s", name)
		files[name] = &fstest.MapFile{Data: text}
		return err
	}))
	d.Migrations = files
	sqltest.Repeated(t, d, hostPool(t, emptyDatabase(t)))
}

// U01: rows that break a check keep it from being added, and the error says which.
func TestU01_BrokenRowsAreNamed(t *testing.T) {
	t.Parallel()
	sqltest.BrokenRows(t, mysql.Dialect(), hostPool(t, emptyDatabase(t)))
	place := emptyDatabase(t)
	require.NoError(t, migrate(place))
	db := hostPool(t, place)
	db.SetMaxOpenConns(1)
	script(t, db, `ALTER TABLE cryptopay_withdrawals DROP CONSTRAINT cryptopay_withdrawals_sum;
DELETE FROM cryptopay_migrations WHERE version >= 12;
SET SESSION sql_mode = '';
INSERT INTO cryptopay_withdrawals (part, id, amount, requested) VALUES ('t/shop', 'whole', 5, 5), ('t/shop', 'edited', 6, 5);
`)
	err := migrate(place)
	require.ErrorContains(t, err, `table cryptopay_withdrawals: row "edited" of partition "t/shop"`)
	require.ErrorContains(t, err, "cryptopay_withdrawals_sum")
	script(t, db, "UPDATE cryptopay_withdrawals SET amount = 5;\n")
	require.NoError(t, migrate(place))
}
