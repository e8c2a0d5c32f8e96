package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// raw is what one would write at the driver itself, without database/sql: the
// tables of onePerCommit, kept statements, and one transaction per group.
type raw struct {
	conn                 *sqlite.Conn
	begin, commit, abort *sqlite.Stmt
	insert, move, entry  *sqlite.Stmt
}

func newRaw(b *testing.B) *raw {
	b.Helper()
	conn, err := sqlite.OpenConn(filepath.Join(b.TempDir(), "raw.db"), sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	r := &raw{conn: conn}
	for _, q := range []string{
		`PRAGMA journal_mode=WAL`, `PRAGMA synchronous=FULL`, `PRAGMA cache_size=-32768`,
		`CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, seq INTEGER NOT NULL)`,
		`CREATE TABLE transfers (id TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID`,
		`CREATE TABLE entries (account INTEGER, seq INTEGER, transfer TEXT, delta INTEGER, after INTEGER, PRIMARY KEY (account, seq)) WITHOUT ROWID`,
		`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) INSERT INTO accounts SELECT i, 1000000000000000, 0 FROM n`,
	} {
		if err := run(conn.Prep(q)); err != nil {
			b.Fatal(err)
		}
	}
	r.begin, r.commit, r.abort = conn.Prep(`BEGIN IMMEDIATE`), conn.Prep(`COMMIT`), conn.Prep(`ROLLBACK`)
	r.insert = conn.Prep(`INSERT INTO transfers VALUES (?, ?)`)
	r.move = conn.Prep(`UPDATE accounts SET balance = balance + ?1, seq = seq + 1 WHERE id = ?2 AND balance + ?1 >= 0`)
	r.entry = conn.Prep(`INSERT INTO entries SELECT id, seq, ?, ?, balance FROM accounts WHERE id = ?`)
	return r
}

func run(st *sqlite.Stmt) error {
	for {
		if more, err := st.Step(); err != nil || !more {
			_ = st.Reset()
			return err
		}
	}
}

type rawTransfer struct {
	id       string
	from, to int
	n        int64
	done     chan error
}

// group makes all of them true at once.
func (r *raw) group(list []rawTransfer) error {
	if err := run(r.begin); err != nil {
		return err
	}
	for i := range list {
		if err := r.one(&list[i]); err != nil {
			_ = run(r.abort)
			return err
		}
	}
	return run(r.commit)
}

func (r *raw) one(t *rawTransfer) error {
	r.insert.BindText(1, t.id)
	r.insert.BindInt64(2, t.n)
	if err := run(r.insert); err != nil {
		return err
	}
	for _, leg := range [2]struct {
		account int
		delta   int64
	}{{t.from, -t.n}, {t.to, t.n}} {
		r.move.BindInt64(1, leg.delta)
		r.move.BindInt64(2, int64(leg.account))
		if err := run(r.move); err != nil {
			return err
		}
		if r.conn.Changes() != 1 {
			return fmt.Errorf("insufficient funds on %d", leg.account)
		}
		r.entry.BindText(1, t.id)
		r.entry.BindInt64(2, leg.delta)
		r.entry.BindInt64(3, int64(leg.account))
		if err := run(r.entry); err != nil {
			return err
		}
	}
	return nil
}

// rawGroups commits what has queued while the last group was committed.
func rawGroups(b *testing.B) func(id string, from, to int, n int64) error {
	b.Helper()
	r := newRaw(b)
	queue := make(chan rawTransfer, 1000)
	b.Cleanup(func() { close(queue) }) // before the connection is closed
	go func() {
		for first := range queue {
			list := []rawTransfer{first}
			for more := true; more; {
				select {
				case t, ok := <-queue:
					if more = ok; ok {
						list = append(list, t)
					}
				default:
					more = false
				}
			}
			err := r.group(list)
			for i := range list {
				list[i].done <- err
			}
		}
	}()
	return func(id string, from, to int, n int64) error {
		done := make(chan error, 1)
		queue <- rawTransfer{id, from, to, n, done}
		return <-done
	}
}

// BenchmarkThousand commits a thousand transfers at a time.
func BenchmarkThousand(b *testing.B) {
	const size = 1000
	from, to := func(i int) int { return i % 1000 }, func(i int) int { return (i*7 + 1) % 1000 }
	b.Run("store", func(b *testing.B) {
		ctx, s := b.Context(), harness().Open(b)
		if err := s.Open(ctx, storagetest.Tables()...); err != nil {
			b.Fatal(err)
		}
		account := func(i int) ledger.Account { return ledger.Account(fmt.Sprintf("float/%04d", i)) }
		commit := func(n int, prefix string) {
			changes := make([]storage.Change, n)
			for i := range changes {
				id := fmt.Sprintf("%s%08d", prefix, i)
				changes[i] = storage.Change{ID: id, Partition: "tenant/here", Post: []ledger.Tx{{
					ID: id, Kind: ledger.KindTransfer, At: time.Unix(1e9, 0),
					Legs: []ledger.Leg{{Account: account(from(i)), Asset: "COIN", Delta: -1}, {Account: account(to(i) + 1000), Asset: "COIN", Delta: 1}},
				}}}
			}
			for _, err := range s.Commit(context.Background(), changes...) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		commit(size, "first-")
		b.ResetTimer()
		for at := 0; at < b.N; at += size {
			commit(min(size, b.N-at), fmt.Sprintf("%08d-", at))
		}
	})
	b.Run("raw", func(b *testing.B) {
		r := newRaw(b)
		b.ResetTimer()
		for at := 0; at < b.N; at += size {
			list := make([]rawTransfer, min(size, b.N-at))
			for i := range list {
				list[i] = rawTransfer{id: fmt.Sprintf("%08d-%08d", at, i), from: from(i), to: to(i), n: 1}
			}
			if err := r.group(list); err != nil {
				b.Fatal(err)
			}
		}
	})
}
