package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

func BenchmarkTransfers(b *testing.B) {
	storagetest.Bench(b, harness(postgres.Options{}), storagetest.Baseline{Name: "one per commit", Open: onePerCommit})
}

func BenchmarkDueRows(b *testing.B) {
	storagetest.BenchDue(b, harness(postgres.Options{}), 20_000)
}

// onePerCommit is what one writes first: a transaction per transfer, through the
// same driver and sqlx, as durable as the store, its statements prepared once.
func onePerCommit(b *testing.B) func(id string, from, to int, n int64) error {
	b.Helper()
	db := hostPool(b, emptyDatabase(b))
	db.SetMaxOpenConns(32)
	db.SetMaxIdleConns(32)
	db.MustExec(`CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0), seq bigint NOT NULL)`)
	db.MustExec(`CREATE TABLE transfers (id text PRIMARY KEY, n bigint NOT NULL)`)
	db.MustExec(`CREATE TABLE entries (account bigint, seq bigint, transfer text, delta bigint, after bigint, PRIMARY KEY (account, seq))`)
	db.MustExec(`INSERT INTO accounts SELECT i, 1000000000000000, 0 FROM generate_series(0, 999) i`)
	return func(id string, from, to int, n int64) error {
		tx, err := db.Beginx()
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
		if _, err := tx.Exec(`INSERT INTO transfers VALUES ($1, $2)`, id, n); err != nil {
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
			var seq, after int64
			err := tx.QueryRowx(`UPDATE accounts SET balance = balance + $1, seq = seq + 1 WHERE id = $2 RETURNING seq, balance`, leg.delta, leg.account).Scan(&seq, &after)
			if err != nil {
				return errors.Join(err, fmt.Errorf("insufficient funds on %d", leg.account))
			}
			if _, err := tx.Exec(`INSERT INTO entries VALUES ($1, $2, $3, $4, $5)`, leg.account, seq, id, leg.delta, after); err != nil {
				return err
			}
		}
		return tx.Commit()
	}
}
