package mysql_test

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

func BenchmarkTransfers(b *testing.B) {
	storagetest.Bench(b, harness(mysql.Options{}), storagetest.Baseline{Name: "one per commit", Open: onePerCommit})
}

func BenchmarkDisk(b *testing.B) { storagetest.BenchDisk(b) }

func BenchmarkProcesses(b *testing.B) {
	storagetest.BenchProcesses(b, migrated, func(b testing.TB, place string) storage.Store { return at(b, place, mysql.Options{}) })
}

func BenchmarkDueRows(b *testing.B) {
	storagetest.BenchDue(b, harness(mysql.Options{}), 20_000)
}

// onePerCommit is what one writes first: a transaction per transfer, through the
// same driver and sqlx, as durable as the store, its statements prepared once.
func onePerCommit(b *testing.B) func(id string, from, to int, n int64) error {
	b.Helper()
	db := hostPool(b, emptyDatabase(b)+"?interpolateParams=true&tx_isolation=%27READ-COMMITTED%27")
	db.SetMaxOpenConns(32)
	db.SetMaxIdleConns(32)
	db.MustExec(`CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0), seq bigint NOT NULL)`)
	db.MustExec(`CREATE TABLE transfers (id varbinary(200) PRIMARY KEY, n bigint NOT NULL)`)
	db.MustExec(`CREATE TABLE entries (account bigint, seq bigint, transfer varbinary(200), delta bigint, after bigint, PRIMARY KEY (account, seq))`)
	db.MustExec(`INSERT INTO accounts SELECT seq, 1000000000000000, 0 FROM seq_0_to_999`)
	return func(id string, from, to int, n int64) error {
		tx, err := db.Beginx()
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
		if _, err := tx.Exec(`INSERT INTO transfers VALUES (?, ?)`, id, n); err != nil {
			return err
		}
		legs := []struct {
			account int
			delta   int64
		}{{from, -n}, {to, n}}
		if from > to { // else two of them wait for each other
			legs[0], legs[1] = legs[1], legs[0]
		}
		for _, leg := range legs {
			if _, err := tx.Exec(`UPDATE accounts SET balance = balance + ?, seq = seq + 1 WHERE id = ?`, leg.delta, leg.account); err != nil {
				return err
			}
			_, err := tx.Exec(`INSERT INTO entries SELECT id, seq, ?, ?, balance FROM accounts WHERE id = ?`, id, leg.delta, leg.account)
			if err != nil {
				return err
			}
		}
		return tx.Commit()
	}
}
