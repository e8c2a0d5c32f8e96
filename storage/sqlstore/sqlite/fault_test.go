package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/internal/sqltest"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

const (
	here  = storage.Partition("tenant/here")
	child = "CRYPTOPAY_TEST_CHILD" // the file that a child process writes to
)

func TestMain(m *testing.M) {
	if path := os.Getenv(child); path != "" {
		writeForEver(path)
	}
	storagetest.BenchChild(func(place string) (storage.Store, error) { return sqlite.Open(place, sqlite.Options{}) })
	os.Exit(m.Run())
}

// deposit is a Change with a row and a posting: half of it would be seen.
func deposit(id string) storage.Change {
	return storage.Change{
		ID: id, Partition: here,
		Put:  []storage.Row{storagetest.Notes.Row(id, 0, time.Time{}, storagetest.Note{Text: id})},
		Post: []ledger.Tx{{ID: id, Kind: ledger.KindDeposit, Legs: []ledger.Leg{{Account: "chain/net", Asset: "COIN", Delta: -1}, {Account: "wallet/w", Asset: "COIN", Delta: 1}}}},
	}
}

// writeForEver commits from four callers and says which Changes were
// acknowledged, until it is killed.
func writeForEver(path string) {
	s, err := sqlite.Open(path, sqlite.Options{})
	if err == nil {
		err = s.Open(ctx, storagetest.Tables()...)
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if err := s.Commit(ctx, storagetest.Telling(deposit(id)))[0]; err != nil {
					fmt.Println("error", err)
					continue
				}
				fmt.Println("ok", id)
			}
		})
	}
	wg.Wait()
}

// L01: kill -9 in the middle of writing. What was acknowledged is there; what
// was not is there whole or not at all.
func TestL01_KilledProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "killed.db")
	require.NoError(t, sqlite.Migrate(ctx, path, storagetest.Tables()...))
	var acked []string
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec // this test itself
		cmd.Env = append(os.Environ(), child+"="+path)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			id, ok := strings.CutPrefix(lines.Text(), "ok ")
			require.True(t, ok, lines.Text())
			acked = append(acked, id)
			if n == 100+37*round {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait(), "it was killed")
	}
	s := at(t, path)
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	rows, err := s.Rows(ctx, storagetest.Notes.Table, storage.Keys(here, acked...)...)
	require.NoError(t, err)
	require.Len(t, rows, len(acked), "an acknowledged change is gone")
	storagetest.Audit(t, s, here)
	n, err := s.Count(ctx, storage.Query{Table: storagetest.Notes.Table, Partition: here})
	require.NoError(t, err)
	b, err := s.Balances(ctx, here, "wallet/w")
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(n), b[0].Posted, "a change is there by half")
	require.Equal(t, n, storagetest.AuditStream(t, s, here))
}

// host opens a pool as a host program does.
func host(t *testing.T, path string, pragmas ...string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite", "file:"+path+"?_pragma="+strings.Join(pragmas, "&_pragma="))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var safe = []string{"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(5000)"}

func migrated(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, sqlite.Migrate(ctx, path, storagetest.Tables()...))
	return path
}

// L05: other processes write all the time, and read before they write. Nothing
// is lost, nothing happens twice, nobody gives up.
func TestL05_BusyStorm(t *testing.T) {
	t.Parallel()
	path := migrated(t)
	db := host(t, path, safe...)
	_, err := db.Exec("CREATE TABLE theirs (n INTEGER)")
	require.NoError(t, err)
	stop := make(chan bool)
	var storm, wg sync.WaitGroup
	storm.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = db.Exec("INSERT INTO theirs VALUES (1)")
			}
		}
	})
	for h := range 3 {
		s := at(t, path)
		require.NoError(t, s.Open(ctx, storagetest.Tables()...))
		for w := range 2 {
			wg.Go(func() {
				for i := range 15 {
					if err := storage.CommitOne(ctx, s, deposit(fmt.Sprint(h, "-", w, "-", i))); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	close(stop)
	storm.Wait()
	s := at(t, path)
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	b, err := s.Balances(ctx, here, "wallet/w")
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(90), b[0].Posted)
	storagetest.Audit(t, s, here)
}

// L05: a database that stays locked is an error, not a verdict, and nothing
// happened.
func TestL05_LockedDatabase(t *testing.T) {
	t.Parallel()
	path := migrated(t)
	s, err := sqlite.Open(path, sqlite.Options{BusyTimeout: time.Millisecond})
	require.NoError(t, err)
	defer s.Close() //nolint:errcheck // a test's end
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	require.NoError(t, s.Commit(ctx, deposit("before"))[0])
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	due := storage.Change{ID: "due", Partition: here, Put: []storage.Row{storagetest.Notes.Row("due", 0, now, storagetest.Note{Text: "due"})}}
	require.NoError(t, s.Commit(ctx, due)[0])
	claim := func() ([]storage.Row, error) {
		return s.Claim(ctx, storage.Claim{Table: storagetest.Notes.Table, Now: now, Until: now.Add(time.Minute), Max: 10})
	}

	db := host(t, path, safe...)
	conn, err := db.Conn(ctx)
	require.NoError(t, err)
	_, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	require.NoError(t, err)
	for _, err := range s.Commit(ctx, deposit("a"), deposit("b")) {
		require.Error(t, err)
		require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict), err)
	}
	_, err = claim()
	require.Error(t, err, "and not that nothing is due")
	_, err = s.Rows(ctx, storagetest.Notes.Table, storage.Keys(here, "a")...)
	require.NoError(t, err, "readers do not wait")
	_, err = conn.ExecContext(ctx, "ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	for _, err := range s.Commit(ctx, deposit("a"), deposit("b")) {
		require.NoError(t, err)
	}
	rows, err := claim()
	require.NoError(t, err)
	require.Len(t, rows, 1)
	storagetest.Audit(t, s, here)
}

// L09: the disk is full. The caller gets an error, nothing is there by half,
// and once there is room again everything goes on.
func TestL09_DiskFull(t *testing.T) {
	t.Parallel()
	path := migrated(t)
	db := host(t, path, safe...)
	db.SetMaxOpenConns(1) // its settings are this test's
	s := sqlite.OpenDB(db, sqlite.Options{})
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	require.NoError(t, s.Commit(ctx, deposit("before"))[0])
	var pages int
	require.NoError(t, db.Get(&pages, "PRAGMA page_count"))
	_, err := db.Exec(fmt.Sprint("PRAGMA max_page_count = ", pages+2))
	require.NoError(t, err)

	big := deposit("big")
	big.Put = append(big.Put, storagetest.Notes.Row("blob", 0, time.Time{}, storagetest.Note{Text: strings.Repeat("x", 100_000)}))
	errs := s.Commit(ctx, deposit("with it"), big)
	for _, err := range errs {
		require.ErrorContains(t, err, "full")
		require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict), err)
	}
	rows, err := s.Rows(ctx, storagetest.Notes.Table, storage.Keys(here, "big", "blob", "with it")...)
	require.NoError(t, err)
	require.Empty(t, rows)
	storagetest.Audit(t, s, here)

	_, err = db.Exec("PRAGMA max_page_count = 100000")
	require.NoError(t, err)
	for _, err := range s.Commit(ctx, deposit("with it"), big) {
		require.NoError(t, err)
	}
	b, err := s.Balances(ctx, here, "wallet/w")
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(3), b[0].Posted)
	storagetest.Audit(t, s, here)
}

// L10: rows that no Change could have made are refused by the database itself.
func TestL10_DatabaseRefuses(t *testing.T) {
	t.Parallel()
	db := host(t, migrated(t), safe...)
	for _, values := range []string{
		"'p', 'wallet/w', 'C', -1, 0, 1", "'p', 'wallet/w', 'C', 5, 6, 1", "'p', 'wallet/w', 'C', 5, -1, 1",
		"'p', 'house', 'C', 1.5, 0, 1", "'p', 'house', 'C', '10000000000000000001', 0, 1", "'p', 'house', 'C', NULL, 0, 1", "'p', 'house', 'C', 1, 0, -1",
	} {
		_, err := db.Exec("INSERT INTO cryptopay_balances (part, account, asset, posted, held, seq) VALUES (" + values + ")")
		require.Error(t, err, values)
	}
	_, err := db.Exec("INSERT INTO cryptopay_entries (part, account, asset, seq, tx, delta, balance_after) VALUES ('p', 'a', 'C', 1, 't', 0, 0)")
	require.Error(t, err)
	_, err = db.Exec("INSERT INTO cryptopay_balances (part, account, asset, posted, held, seq) VALUES ('p', 'house', 'C', -5, 0, 1)")
	require.NoError(t, err, "a house account has no floor")
}

// L06: settings that would lose money are refused, with advice.
func TestL06_UnsafeSettings(t *testing.T) {
	t.Parallel()
	path := migrated(t)
	for name, c := range map[string]struct {
		pragmas []string
		advice  string
	}{
		"synchronous": {[]string{"journal_mode(WAL)", "synchronous(NORMAL)", "busy_timeout(5000)"}, "synchronous=FULL"},
		"off":         {[]string{"journal_mode(WAL)", "synchronous(OFF)", "busy_timeout(5000)"}, "synchronous=FULL"},
		"no waiting":  {[]string{"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(0)"}, "busy_timeout"},
		"checks":      {append([]string{"ignore_check_constraints(1)"}, safe...), "ignore_check_constraints"},
		"read-only":   {append([]string{"query_only(1)"}, safe...), "query_only"},
	} {
		err := sqlite.OpenDB(host(t, path, c.pragmas...), sqlite.Options{}).Open(ctx, storagetest.Tables()...)
		require.ErrorIs(t, err, sqlite.ErrUnsafe, name)
		require.ErrorContains(t, err, c.advice, name)

		s := at(t, path).(*sqlite.Store) // is safe, and a transaction on the host's own connection is not
		require.NoError(t, s.Open(ctx, storagetest.Tables()...))
		tx, err := host(t, path, c.pragmas...).BeginTxx(ctx, nil)
		require.NoError(t, err)
		in := s.WithTx(tx.Tx)
		require.ErrorIs(t, in.Commit(ctx, deposit(name))[0], sqlite.ErrUnsafe, name)
		_, err = in.Claim(ctx, storage.Claim{Table: storagetest.Notes.Table, Now: time.Unix(9, 0), Until: time.Unix(10, 0), Max: 1})
		require.ErrorIs(t, err, sqlite.ErrUnsafe, name)
		require.NoError(t, tx.Rollback())
	}
	for _, mode := range []string{"DELETE", "MEMORY", "OFF"} {
		other := filepath.Join(t.TempDir(), "other.db")
		db := host(t, other, "journal_mode("+mode+")", "synchronous(FULL)", "busy_timeout(5000)")
		require.ErrorIs(t, sqlite.OpenDB(db, sqlite.Options{}).Open(ctx), sqlite.ErrUnsafe, mode)
	}
	_, err := sqlite.Open(":memory:", sqlite.Options{})
	require.Error(t, err)
	require.NoError(t, sqlite.OpenDB(host(t, path, "journal_mode(WAL)", "synchronous(EXTRA)", "busy_timeout(5000)"), sqlite.Options{}).Open(ctx, storagetest.Tables()...))
}

// The host's pool stays the host's, also where it has one connection.
func TestHostsPool(t *testing.T) {
	t.Parallel()
	db := host(t, migrated(t), safe...)
	db.SetMaxOpenConns(1)
	s := sqlite.OpenDB(db, sqlite.Options{})
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	for i := range 5 {
		require.NoError(t, s.Commit(ctx, deposit(fmt.Sprint(i)))[0])
		require.NoError(t, db.PingContext(ctx), "its last connection is free")
	}
	_, err := s.Claim(ctx, storage.Claim{Table: storagetest.Notes.Table, Now: time.Unix(9, 0), Until: time.Unix(10, 0), Max: 1})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Commit(ctx, deposit("x"))[0], storage.ErrClosed)
	require.NoError(t, db.PingContext(ctx))
	require.NoError(t, db.Close())
	require.ErrorContains(t, sqlite.OpenDB(db, sqlite.Options{}).Open(ctx), "closed")
}

// A commit whose context ends in the middle leaves the connection usable.
func TestCancelledCommits(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 10 {
				id := fmt.Sprint(w, "-", i)
				short, cancel := context.WithTimeout(ctx, time.Duration(i)*200*time.Microsecond)
				_ = s.Commit(short, deposit(id))
				cancel()
				if err := storage.CommitOne(ctx, s, deposit(id)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b, err := s.Balances(ctx, here, "wallet/w")
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(40), b[0].Posted)
}

// L09: a table that is not there is an error, not an empty one.
func TestL09_MissingTables(t *testing.T) {
	t.Parallel()
	path := migrated(t)
	s := at(t, path)
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	sqltest.MissingTables(t, host(t, path, safe...), s)
}
