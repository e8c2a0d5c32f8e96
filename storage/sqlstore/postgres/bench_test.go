package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

func BenchmarkTransfers(b *testing.B) {
	storagetest.Bench(b, harness(postgres.Options{}), storagetest.Baseline{Name: "one per commit", Open: onePerCommit})
}

func BenchmarkDisk(b *testing.B) { storagetest.BenchDisk(b) }

func BenchmarkProcesses(b *testing.B) {
	storagetest.BenchProcesses(b, migrated, func(b testing.TB, place string) storage.Store { return at(b, place, postgres.Options{}) })
}

func BenchmarkDueRows(b *testing.B) {
	storagetest.BenchDue(b, harness(postgres.Options{}), 20_000)
}

// BenchmarkCopyJournal is the limit: the rows of the journal alone, without
// balances or verdicts, a thousand transfers per transaction, by COPY.
func BenchmarkCopyJournal(b *testing.B) {
	place := migrated(b)
	c, err := pgx.Connect(b.Context(), place)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(b.Context()) //nolint:errcheck // a benchmark's end
	copied := func(tx pgx.Tx, table string, columns []string, n int, row func(i int) []any) {
		_, err := tx.CopyFrom(b.Context(), pgx.Identifier{table}, columns, pgx.CopyFromSlice(n, func(i int) ([]any, error) { return row(i), nil }))
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for from := 0; from < b.N; from += 1000 {
		n := min(1000, b.N-from)
		tx, err := c.Begin(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		id := func(i int) string { return fmt.Sprintf("0190a1b2-%016x-8000-000000", from+i) }
		copied(tx, "cryptopay_ledger_txs", []string{"part", "id", "change_id", "kind", "ref", "at"}, n, func(i int) []any {
			return []any{"tenant/here", id(i), id(i), "transfer", "", int64(1)}
		})
		copied(tx, "cryptopay_entries", []string{"part", "account", "asset", "seq", "tx", "delta", "balance_after"}, 2*n, func(i int) []any {
			return []any{"tenant/here", fmt.Sprintf("wallet/bench-%04d", i*7%1000), "COIN", int64(2*from + i + 1), id(i / 2), int64(1), int64(1)}
		})
		if err := tx.Commit(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "transfers/s")
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
