package postgres_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/internal/sqltest"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// declared is every table that this library stores, by whichever package.
func declared() []*storage.Table {
	return slices.Concat(cryptopay.Tables(), keys.Tables(), auth.Tables())
}

// The hand-written migrations make what the declarations say, and nothing else but
// the kernel's tables.
func TestMigrationsMatchDeclarations(t *testing.T) {
	t.Parallel()
	byHand := emptyDatabase(t)
	require.NoError(t, migrate(byHand)) // no table is made from its declaration
	made := schemaOf(t, hostPool(t, byHand), "public")
	for _, kernel := range []string{"migrations", "parts", "ledger_txs", "balances", "entries", "levels"} {
		require.Contains(t, made, "cryptopay_"+kernel)
		delete(made, "cryptopay_"+kernel)
	}
	db := hostPool(t, emptyDatabase(t))
	_, err := db.Exec(postgres.Declared(declared()...))
	require.NoError(t, err)
	want := schemaOf(t, db, "public")
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(made)))
	// A declaration says nothing of sums: that one a migration makes alone.
	sum := slices.IndexFunc(made["cryptopay_withdrawals"], func(line string) bool { return strings.Contains(line, "CHECK (") })
	require.GreaterOrEqual(t, sum, 0)
	made["cryptopay_withdrawals"] = slices.Delete(made["cryptopay_withdrawals"], sum, sum+1)
	for table, lines := range want {
		require.Equal(t, lines, made[table],
			"%s: its declaration changed: say the same in a migration, a new one if the last was released; postgres.Declared prints what it comes to", table)
	}
	s := at(t, byHand, postgres.Options{})
	require.NoError(t, s.Open(ctx, declared()...))
}

// What the comparison above stands on sees every kind of difference.
func TestSchemaOfSeesDifferences(t *testing.T) {
	t.Parallel()
	place := emptyDatabase(t)
	require.NoError(t, migrate(place))
	db := hostPool(t, place)
	last := schemaOf(t, db, "public")
	for _, change := range []string{
		"ALTER TABLE cryptopay_payments DROP COLUMN order_description",
		"ALTER TABLE cryptopay_payments ADD COLUMN more text NOT NULL DEFAULT ''",
		"ALTER TABLE cryptopay_payments ALTER COLUMN memo_off DROP NOT NULL",
		"ALTER TABLE cryptopay_payments ALTER COLUMN tx_hash TYPE text COLLATE \"POSIX\"",
		"DROP INDEX cryptopay_payments_i1",
		"DROP INDEX cryptopay_payments_u0",
		"CREATE INDEX cryptopay_payments_u0 ON cryptopay_payments (part, network, address)",
		"DROP TABLE cryptopay_coins",
	} {
		change = strings.Replace(change, "memo_off", "wallet_ref", 1)
		_, err := db.Exec(change)
		require.NoError(t, err, change)
		now := schemaOf(t, db, "public")
		require.False(t, reflect.DeepEqual(last, now), change)
		last = now
	}
	require.ErrorIs(t, at(t, place, postgres.Options{}).Open(ctx, declared()...), storage.ErrSchema)
}

// schemaOf is what a schema consists of: per table its columns, checks and
// indexes, in the server's own words.
func schemaOf(t *testing.T, db *sqlx.DB, schema string) map[string][]string {
	t.Helper()
	var rows []struct {
		Table string `db:"tab"`
		Line  string `db:"line"`
	}
	require.NoError(t, db.Select(&rows, `
		SELECT c.relname AS tab, concat_ws(' ', 'column', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, l.collname, c.relpersistence) AS line
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_collation l ON l.oid = a.attcollation
		WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
		UNION ALL SELECT c.relname, pg_get_indexdef(i.indexrelid) FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid WHERE c.relnamespace = $1::regnamespace
		UNION ALL SELECT c.relname, pg_get_constraintdef(k.oid) FROM pg_class c JOIN pg_constraint k ON k.conrelid = c.oid WHERE c.relnamespace = $1::regnamespace
		ORDER BY 1, 2`, schema))
	out := map[string][]string{}
	for _, r := range rows {
		out[r.Table] = append(out[r.Table], strings.ReplaceAll(r.Line, schema+".", ""))
	}
	return out
}

// The tables live where the operator says, beside others' of the same names, and
// what is printed for a host's own tool comes to the same.
func TestSchemaAndPrefix(t *testing.T) {
	t.Parallel()
	place := emptyDatabase(t)
	db := hostPool(t, place)
	db.MustExec("CREATE TABLE cryptopay_payments (theirs int)")
	for _, o := range []postgres.Options{{Schema: "pay"}, {Prefix: "pay_"}, {Schema: "more", Prefix: "m_"}} {
		require.NoError(t, postgres.Migrate(ctx, place, o, storagetest.Tables()...))
		require.NoError(t, postgres.Migrate(ctx, place, o, storagetest.Tables()...))
		s, err := postgres.Open(place, o)
		require.NoError(t, err)
		require.NoError(t, s.Open(ctx, append(declared(), storagetest.Tables()...)...))
		row := storagetest.Notes.Row("a", 0, storage.FromMicros(5), storagetest.Note{Text: o.Schema + o.Prefix})
		require.NoError(t, s.Commit(ctx, storage.Change{ID: "c", Partition: "p", Put: []storage.Row{row}})[0])
		rows, err := s.Claim(ctx, storage.Claim{Table: storagetest.Notes.Table, Now: storage.FromMicros(6), Until: storage.FromMicros(9), Max: 5})
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, o.Schema+o.Prefix, storagetest.Notes.Value(rows[0]).Text)
		require.NoError(t, s.Close())

		script, err := postgres.Schema(o, storagetest.Tables()...)
		require.NoError(t, err)
		other := emptyDatabase(t)
		_, err = hostPool(t, other).Exec(script)
		require.NoError(t, err)
		schema := o.Schema
		if schema == "" {
			schema = "public"
		}
		want := schemaOf(t, db, schema)
		delete(want, "cryptopay_payments")
		if o.Prefix == "" {
			want = schemaOf(t, db, schema)
		}
		require.Equal(t, want, schemaOf(t, hostPool(t, other), schema))
		s, err = postgres.Open(other, o)
		require.NoError(t, err)
		require.NoError(t, s.Open(ctx, append(declared(), storagetest.Tables()...)...))
		require.NoError(t, s.Close())
	}
	require.Equal(t, []string{"theirs"}, columnsOf(t, db))
}

func columnsOf(t *testing.T, db *sqlx.DB) (out []string) {
	t.Helper()
	require.NoError(t, db.Select(&out, "SELECT column_name FROM information_schema.columns WHERE table_name = 'cryptopay_payments' AND table_schema = 'public'"))
	return out
}

// U02: see sqltest.OneVersionBehind.
func TestU02_OneVersionBehind(t *testing.T) {
	t.Parallel()
	place := emptyDatabase(t)
	sqltest.OneVersionBehind(t, postgres.Dialect(), hostPool(t, place),
		func() storage.Store { return at(t, place, postgres.Options{}) },
		func(tables ...*storage.Table) error { return migrate(place, tables...) })
}

// U01: see sqltest.FailingMigration.
func TestU01_FailingMigration(t *testing.T) {
	t.Parallel()
	sqltest.FailingMigration(t, postgres.Dialect(), hostPool(t, emptyDatabase(t)))
}

func TestU02_MigrationsOnlyAdd(t *testing.T) {
	t.Parallel()
	sqltest.Additive(t, postgres.Dialect())
}

// U01: rows that break a check keep it from being added, and the error says which.
func TestU01_BrokenRowsAreNamed(t *testing.T) {
	t.Parallel()
	sqltest.BrokenRows(t, postgres.Dialect(), hostPool(t, emptyDatabase(t)))
}
