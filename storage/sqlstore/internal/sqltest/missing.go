package sqltest

import (
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// MissingTables takes one table after the other away from an open store, by db, another
// pool of its database. Whatever needs the table is then an error: a Change is not judged
// as if the table were empty, and a reader is not told that there is nothing. Once the
// table is back the same Change is committed, once.
func MissingTables(t *testing.T, db *sqlx.DB, s storage.Store) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	all := func(p storage.Partition, id string) storage.Change { // needs every table
		c := deposit(p, id)
		c.Put = append(c.Put,
			storagetest.Notes.Row("due "+id, 0, now, storagetest.Note{}),
			storagetest.Things.Row(id, 0, time.Time{}, storagetest.Thing{Name: id, Group: id}))
		c.Level = []storage.Level{{Name: "deposits", Delta: 1, Max: 9}}
		return c
	}
	failed := func(name string, c storage.Change) {
		t.Helper()
		err := s.Commit(ctx, c)[0]
		require.Error(t, err, "%s without %s", c.ID, name)
		require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict), "%s without %s: an error, not %v", c.ID, name, err)
	}
	notes := storage.Query{Table: storagetest.Notes.Table, Partition: here}
	reads := map[string]func() error{
		"Rows": func() error {
			_, err := s.Rows(ctx, storagetest.Notes.Table, storage.Keys(here, "first")...)
			return err
		},
		"Find":  func() error { _, err := s.Find(ctx, notes); return err },
		"Count": func() error { _, err := s.Count(ctx, notes); return err },
		"Claim": func() error {
			_, err := s.Claim(ctx, storage.Claim{Table: storagetest.Notes.Table, Now: now, Until: now.Add(1), Max: 1})
			return err
		},
		"Balances": func() error { _, err := s.Balances(ctx, here); return err },
		"Entries":  func() error { _, err := s.Entries(ctx, here, "wallet/w", "COIN", 0, 10); return err },
	}
	require.NoError(t, storage.CommitOne(ctx, s, all(here, "first")))
	alone := s.(withTx).WithTx(nil).Alone()
	tables := [][]string{ // a table, and the reads that need it
		{"parts"},
		{"levels"},
		{"suite_things"},
		{"balances", "Balances"},
		{"entries", "Entries"},
		{"ledger_txs", "Entries"},
		{"suite_notes", "Rows", "Find", "Count", "Claim"},
	}
	for _, needed := range tables {
		name := needed[0]
		p := storage.Partition("tenant/" + name) // new, so that it has no row in parts
		_, err := db.Exec("ALTER TABLE cryptopay_" + name + " RENAME TO away")
		require.NoError(t, err)
		failed(name, all(p, "x"))
		if name != "parts" || !alone { // which asks for what it does not know yet
			failed(name, all(here, name))
			if name != "entries" {
				failed(name, all(here, "first")) // it is there already, and nobody can say so
			}
		}
		if name == "balances" {
			failed(name, storage.Change{ID: "empty", Partition: here, Empty: []ledger.Account{"wallet/w"}, Put: []storage.Row{storagetest.Notes.Row("empty", 0, now, storagetest.Note{})}})
		}
		for _, read := range needed[1:] {
			require.Error(t, reads[read](), "%s without %s", read, name)
		}
		_, err = db.Exec("ALTER TABLE away RENAME TO cryptopay_" + name)
		require.NoError(t, err)
		for read, f := range reads {
			require.NoError(t, f(), read)
		}
		for range 2 {
			require.NoError(t, s.Commit(ctx, all(p, "x"))[0], name)
			require.NoError(t, s.Commit(ctx, all(here, name))[0], name)
		}
		b, err := s.Balances(ctx, p, "wallet/w")
		require.NoError(t, err)
		require.Equal(t, ledger.Amount(1), b[0].Posted, name)
		storagetest.Audit(t, s, p)
	}
	storagetest.Audit(t, s, here)
	b, err := s.Balances(ctx, here, "wallet/w")
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(1+len(tables)), b[0].Posted, "one of each table, and the first")
}

func missingTables(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	MissingTables(t, e.Pool(t, dsn), e.store(t, dsn))
}

// The same where the store sends one statement after the other.
func missingTablesOnAHostsPool(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	s, err := e.OpenDB(e.Pool(t, dsn))
	require.NoError(t, err)
	defer s.Close() //nolint:errcheck // a test's end
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	MissingTables(t, e.Pool(t, dsn), s)
}
