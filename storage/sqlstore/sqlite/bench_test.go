package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

func BenchmarkTransfers(b *testing.B) {
	storagetest.Bench(b, harness(),
		storagetest.Baseline{Name: "one per commit", Open: onePerCommit},
		storagetest.Baseline{Name: "raw groups", Open: rawGroups})
}

func BenchmarkDisk(b *testing.B) { storagetest.BenchDisk(b) }

func BenchmarkProcesses(b *testing.B) {
	storagetest.BenchProcesses(b, func(b testing.TB) string { return pathOf(b, fresh(b)) }, func(b testing.TB, place string) storage.Store { return at(b, place) })
}

func BenchmarkDueRows(b *testing.B) { storagetest.BenchDue(b, harness(), 20_000) }

// onePerCommit is one transaction per transfer with prepared statements, as
// durable as the store.
func onePerCommit(b *testing.B) func(id string, from, to int, n int64) error {
	b.Helper()
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "naive.db")+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	b.Cleanup(func() { _ = db.Close() })
	db.MustExec(`CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, seq INTEGER NOT NULL)`)
	db.MustExec(`CREATE TABLE transfers (id TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID`)
	db.MustExec(`CREATE TABLE entries (account INTEGER, seq INTEGER, transfer TEXT, delta INTEGER, after INTEGER, PRIMARY KEY (account, seq)) WITHOUT ROWID`)
	for i := range 1000 {
		db.MustExec(`INSERT INTO accounts VALUES (?, 1000000000000000, 0)`, i)
	}
	prepare := func(q string) *sqlx.Stmt {
		st, err := db.Preparex(q)
		if err != nil {
			b.Fatal(err)
		}
		return st
	}
	move := prepare(`UPDATE accounts SET balance = balance + ?, seq = seq + 1 WHERE id = ? AND balance + ? >= 0`)
	insert := prepare(`INSERT INTO transfers VALUES (?, ?)`)
	entry := prepare(`INSERT INTO entries SELECT id, seq, ?, ?, balance FROM accounts WHERE id = ?`)
	return func(id string, from, to int, n int64) error {
		tx, err := db.Beginx()
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
		if _, err := tx.Stmtx(insert).Exec(id, n); err != nil {
			return err
		}
		for _, leg := range []struct {
			account int
			delta   int64
		}{{from, -n}, {to, n}} {
			res, err := tx.Stmtx(move).Exec(leg.delta, leg.account, leg.delta)
			if err != nil {
				return err
			}
			if moved, err := res.RowsAffected(); err != nil || moved != 1 {
				return errors.Join(err, fmt.Errorf("insufficient funds on %d", leg.account))
			}
			if _, err := tx.Stmtx(entry).Exec(id, leg.delta, leg.account); err != nil {
				return err
			}
		}
		return tx.Commit()
	}
}
