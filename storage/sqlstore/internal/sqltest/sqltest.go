// Package sqltest is what the dialects of SQL servers have to pass besides the
// suite of storagetest: faults of servers, connections, processes and hosts. It is
// for tests.
package sqltest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// Env is one dialect on a real server.
type Env struct {
	Migrated  func(t testing.TB) string                        // DSN of an empty database with storagetest.Tables()
	Empty     func(t testing.TB) string                        // DSN of a database with nothing in it
	Open      func(dsn string) (storage.Store, error)          // waits a second for locks
	OpenDB    func(*sqlx.DB) (storage.Store, error)            // the same on a host's pool
	Pool      func(t testing.TB, dsn string) *sqlx.DB          // as a host opens it
	Migrate   func(dsn string, tables ...*storage.Table) error // see the dialect
	Plain     func(dsn string) string                          // the same, where each statement is sent as text
	Commit    string                                           // how COMMIT then looks on the wire
	Address   func(t testing.TB) string                        // of the server, as it stands in the DSNs
	Server    func(t testing.TB) *testenv.Process              // one of the test's own
	Again     func(t testing.TB, dir string) *testenv.Process  // on what the killed one left
	Database  func(t testing.TB, p *testenv.Process) string    // a migrated database on it
	Lock      string                                           // locks the partition ? in a host's transaction
	Impatient string                                           // makes a host's transaction wait for locks but shortly
	Schema    string                                           // where its tables are, in SQL
	Migrating string                                           // takes the lock of migrators until its connection ends
	Waiting   string                                           // how many of the database's migrators wait for it
	Ends      func(t testing.TB, admin *sqlx.DB, dsn string)   // ends all other connections of the database
}

const (
	here  = storage.Partition("tenant/here")
	there = storage.Partition("tenant/there")
	child = "CRYPTOPAY_TEST_CHILD" // the DSN that a child process writes to
)

var ctx = context.Background()

// Child makes this process the one that is killed, where it was started as that.
// A dialect's TestMain calls it first.
func Child(open func(dsn string) (storage.Store, error)) {
	dsn := os.Getenv(child)
	if dsn == "" {
		return
	}
	s, err := open(dsn)
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
				if err := s.Commit(ctx, storagetest.Telling(deposit(here, id)))[0]; err != nil {
					fmt.Println("error", err)
					continue
				}
				fmt.Println("ok", id)
			}
		})
	}
	wg.Wait()
}

// deposit is a Change with a row and a posting: half of it would be seen.
func deposit(p storage.Partition, id string) storage.Change {
	return storage.Change{
		ID: id, Partition: p,
		Put:  []storage.Row{storagetest.Notes.Row(id, 0, time.Time{}, storagetest.Note{Text: id})},
		Post: []ledger.Tx{{ID: id, Kind: ledger.KindDeposit, Legs: []ledger.Leg{{Account: "chain/net", Asset: "COIN", Delta: -1}, {Account: "wallet/w", Asset: "COIN", Delta: 1}}}},
	}
}

// Run runs the cases.
func Run(t *testing.T, e Env) {
	for name, run := range map[string]func(*testing.T, Env){
		"L01_KilledProcess":        killedProcess,
		"L01_KilledServer":         killedServer,
		"L02_LostAnswerToCommit":   lostAnswer,
		"L02_EndedConnections":     endedConnections,
		"C04_StoppedHolder":        stoppedHolder,
		"L05_HostHoldsATenant":     hostHoldsATenant,
		"L05_Storm":                storm,
		"L05_LockedRow":            lockedRow,
		"L05_LockedPartition":      lockedPartition,
		"L05_NewPartition":         newPartition,
		"L05_HostsDeadlock":        hostsDeadlock,
		"L05_HostGivesUpWaiting":   hostGivesUp,
		"L05_HostsFillThePool":     hostsFillThePool,
		"L05_HostGoesOnAfterEnd":   hostGoesOnAfterTheEnd,
		"L03_HostSeesAnOlderState": olderState,
		"L04_TwoProcesses":         func(t *testing.T, e Env) { dsn := e.Migrated(t); WriteSkew(t, e.store(t, dsn), e.store(t, dsn)) },
		"C05_ReadsAreCurrent":      func(t *testing.T, e Env) { dsn := e.Migrated(t); ReadsAreCurrent(t, e.store(t, dsn), e.store(t, dsn)) },
		"C01_ClaimAgainstPut":      claimAgainstPut,
		"CancelledCommits":         cancelled,
		"X02_HostsPool":            hostsPool,
		"U01_ManyMigrators":        manyMigrators,
		"U01_InterruptedMigrators": interruptedMigrators,
		"U01_MigratorsTakeTurns":   migratorsTakeTurns,
		"U02_OtherSchemas":         otherSchemas,
		"C02_Clock":                clock,
		"L09_MissingTables":        missingTables,
		"L09_MissingTablesOfAPool": missingTablesOnAHostsPool,
		"L10_DatabaseRefuses":      refuses,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, e)
		})
	}
}

func (e Env) store(t testing.TB, dsn string) storage.Store {
	t.Helper()
	s, err := e.Open(dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	require.NoError(t, s.Open(ctx, storagetest.Tables()...))
	return s
}

// whole checks that each of these is there, that what is there is there whole, and
// gives the number of all.
func whole(t testing.TB, s storage.Store, p storage.Partition, acked []string) int {
	t.Helper()
	rows, err := s.Rows(ctx, storagetest.Notes.Table, storage.Keys(p, acked...)...)
	require.NoError(t, err)
	require.Len(t, rows, len(acked), "an acknowledged change is gone")
	storagetest.Audit(t, s, p)
	n, err := s.Count(ctx, storage.Query{Table: storagetest.Notes.Table, Partition: p})
	require.NoError(t, err)
	b, err := s.Balances(ctx, p, "wallet/w")
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(n), b[0].Posted, "a change is there by half")
	return int(n)
}

// start starts a child that writes, and gives what it acknowledges.
func start(t testing.TB, dsn string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec // this test itself
	cmd.Env = append(os.Environ(), child+"="+dsn)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewScanner(out)
}

// kill -9 in the middle of writing. What was acknowledged is there; what was not is
// there whole or not at all.
func killedProcess(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	var acked []string
	for round := range 10 {
		cmd, lines := start(t, dsn)
		for n := 0; lines.Scan(); n++ {
			id, ok := strings.CutPrefix(lines.Text(), "ok ")
			require.True(t, ok, lines.Text())
			acked = append(acked, id)
			if n == 30+7*round {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait(), "it was killed")
	}
	s := e.store(t, dsn)
	require.EqualValues(t, whole(t, s, here, acked), storagetest.AuditStream(t, s, here))
}

// The server is killed in the middle of writing, and comes back. What it
// acknowledged is there, and the same store goes on.
func killedServer(t *testing.T, e Env) {
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	first := e.Server(t)
	dsn := e.Database(t, first)
	for round := range 2 {
		s := e.store(t, dsn)
		var mu sync.Mutex
		var acked []string
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprint(round, "-", w, "-", i)
					if err := s.Commit(ctx, storagetest.Telling(deposit(here, id)))[0]; err != nil {
						return // it is gone
					}
					mu.Lock()
					acked = append(acked, id)
					n := len(acked)
					mu.Unlock()
					if n == 150 {
						first.Kill()
					}
				}
			})
		}
		wg.Wait()
		require.GreaterOrEqual(t, len(acked), 150)
		_ = s.Close()
		next := e.Again(t, first.Dir)
		dsn = strings.Replace(dsn, first.Address(), next.Address(), 1)
		first = next
		again := e.store(t, dsn)
		n := whole(t, again, here, acked)
		require.NoError(t, storage.CommitOne(ctx, again, storagetest.Telling(deposit(here, fmt.Sprint("after ", round)))))
		require.Equal(t, n+1, whole(t, again, here, acked))
		require.EqualValues(t, n+1, storagetest.AuditStream(t, again, here))
	}
}

// The answer to COMMIT is lost: an unknown outcome. Sending the same again settles
// it, and it has one effect.
func lostAnswer(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	p := testenv.NewProxy(t, e.Address(t))
	s := e.store(t, strings.Replace(e.Plain(dsn), e.Address(t), p.Address, 1))
	var acked []string
	committed := 0
	for i := range 10 {
		c := storagetest.Telling(deposit(here, fmt.Sprint("cut ", i)))
		p.CutAfter(e.Commit)
		err := s.Commit(ctx, c)[0]
		require.Error(t, err)
		require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict), "%v", err)
		require.Equal(t, i+1, p.Cuts())
		n, err := s.Count(ctx, storage.Query{Table: storagetest.Notes.Table, Partition: here})
		require.NoError(t, err)
		committed += int(n) - i
		require.NoError(t, storage.CommitOne(ctx, s, c))
		acked = append(acked, c.ID)
	}
	require.Equal(t, 10, whole(t, s, here, acked))
	require.EqualValues(t, 10, storagetest.AuditStream(t, s, here))
	require.Positive(t, committed, "no server did commit: this shows nothing")
}

// A process that is stopped in the middle of a transaction, with a partition
// locked, holds up the others no longer than the lock timeout: the server ends it.
func stoppedHolder(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	p := testenv.NewProxy(t, e.Address(t))
	stopped := e.store(t, strings.Replace(e.Plain(dsn), e.Address(t), p.Address, 1))
	other := e.store(t, dsn)
	require.NoError(t, storage.CommitOne(ctx, stopped, deposit(here, "before")))
	p.HoldAt(e.Commit)
	c := deposit(here, "stopped")
	gone := make(chan error, 1)
	go func() { gone <- stopped.Commit(ctx, c)[0] }()
	var err error
	for tries := 0; tries < 30; tries++ { // each waits a second at the most
		if err = other.Commit(ctx, deposit(here, fmt.Sprint("other ", tries)))[0]; err != nil {
			require.False(t, storage.Final(err), "%v", err)
		} else if p.Cuts() == 1 {
			break
		}
	}
	require.NoError(t, err, "a stopped process keeps everybody out")
	err = <-gone
	require.Error(t, err, "it was ended")
	require.False(t, storage.Final(err), "%v", err)
	require.NoError(t, storage.CommitOne(ctx, stopped, c), "it goes on")
}

// Somebody ends all connections again and again. Everyone who sends again gets
// through, once.
func endedConnections(t *testing.T, e Env) {
	dsn := e.Migrated(t)
	s := e.store(t, dsn)
	admin := e.Pool(t, dsn)
	admin.SetMaxOpenConns(1)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var acked []string
	for w := range 4 {
		wg.Go(func() {
			for i := range 25 {
				c := deposit(here, fmt.Sprint(w, "-", i))
				for try := 0; ; try++ {
					err := s.Commit(ctx, c)[0]
					if err == nil {
						break
					}
					if storage.Final(err) || try == 100 {
						t.Errorf("%s: %v", c.ID, err)
						return
					}
				}
				mu.Lock()
				acked = append(acked, c.ID)
				n := len(acked)
				mu.Unlock()
				if n%10 == 5 {
					e.Ends(t, admin, dsn)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 100, whole(t, s, here, acked))
}
