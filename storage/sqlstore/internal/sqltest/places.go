package sqltest

import (
	"database/sql"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// Places are the databases of a server that all tests of a dialect share, and what
// each store stands on.
type Places struct {
	Empty   func(t testing.TB) string // see Env
	Migrate func(dsn string, tables ...*storage.Table) error
	Pool    func(t testing.TB, dsn string) *sqlx.DB

	of   sync.Map // store → DSN
	mu   sync.Mutex
	free []string // with the suite's tables and nothing in them: making one takes longer than most cases
}

// Migrated gives the DSN of a database with the suite's tables that is the test's
// own until it ends.
func (p *Places) Migrated(t testing.TB) string {
	t.Helper()
	var dsn string
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		dsn, p.free = p.free[n-1], p.free[:n-1]
	}
	p.mu.Unlock()
	if dsn == "" {
		dsn = p.Empty(t)
		require.NoError(t, p.Migrate(dsn, storagetest.Tables()...))
	}
	db := p.Pool(t, dsn)
	t.Cleanup(func() {
		names := []string{"parts", "ledger_txs", "balances", "entries", "levels"}
		for _, table := range storagetest.Tables() {
			names = append(names, table.Name)
		}
		for _, table := range names {
			if _, err := db.Exec("DELETE FROM cryptopay_" + table); err != nil {
				return
			}
		}
		if !t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.free = append(p.free, dsn)
		}
	})
	return dsn
}

// Opened remembers what a store stands on, and closes it with the test.
func (p *Places) Opened(t testing.TB, dsn string, s storage.Store, err error) storage.Store {
	t.Helper()
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	p.of.Store(s, dsn)
	return s
}

// Of is the DSN of what a store stands on.
func (p *Places) Of(t testing.TB, s storage.Store) string {
	t.Helper()
	dsn, ok := p.of.Load(s)
	require.True(t, ok)
	return dsn.(string)
}

// Harness is the dialect for the suite of storagetest, by stores that open opens.
func (p *Places) Harness(rounds int, open func(t testing.TB, dsn string) (storage.Store, error)) storagetest.Harness {
	on := func(t testing.TB, dsn string) storage.Store {
		t.Helper()
		s, err := open(t, dsn)
		return p.Opened(t, dsn, s, err)
	}
	return storagetest.Harness{
		Open:   func(t testing.TB) storage.Store { return on(t, p.Migrated(t)) },
		Second: func(t testing.TB, s storage.Store) storage.Store { return on(t, p.Of(t, s)) },
		Reopen: func(t testing.TB, s storage.Store) storage.Store {
			require.NoError(t, s.Close())
			return on(t, p.Of(t, s))
		},
		Begin: func(t testing.TB, s storage.Store) (storage.Tx, func(bool) error) {
			return Begin(t, p.Pool(t, p.Of(t, s)), s.(interface{ WithTx(tx *sql.Tx) *sqlstore.Tx }).WithTx)
		},
		Spoil: func(t testing.TB, s storage.Store, part storage.Partition, id string) {
			Spoil(t, p.Pool(t, p.Of(t, s)), part, id)
		},
		Rounds: rounds,
	}
}

// Spoil makes the notes of a Thing unreadable, as storagetest.Harness says.
func Spoil(t testing.TB, db *sqlx.DB, p storage.Partition, id string) {
	t.Helper()
	r, err := db.Exec(db.Rebind("UPDATE cryptopay_suite_things SET notes = '{\"x\"]' WHERE part = ? AND id = ?"), string(p), id)
	require.NoError(t, err)
	n, err := r.RowsAffected()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}
