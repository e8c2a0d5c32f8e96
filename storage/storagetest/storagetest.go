// Package storagetest is what a storage backend has to pass: a suite of cases,
// a model to compare with, and benchmarks.
//
// A backend's test is short:
//
//	func TestConformance(t *testing.T) {
//		storagetest.Run(t, storagetest.Harness{
//			Open: func(t testing.TB) storage.Store { … a fresh, empty store with storagetest.Tables() migrated … },
//		})
//	}
//
// Every case gets a store of its own, pages have size 3, and money is audited
// after each case: legs sum to zero, histories have no gap, and no floor is
// broken.
package storagetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Harness is how the suite gets at a backend.
type Harness struct {
	// Open makes a fresh, empty store whose schema has Tables. The suite calls
	// the store's own Open. Clean up with t.Cleanup.
	Open func(t testing.TB) storage.Store

	// Second is another handle on what s stands on, as another process has it.
	// nil where a store has only one.
	Second func(t testing.TB, s storage.Store) storage.Store

	// Reopen closes s and opens what it stood on again. nil where nothing
	// outlives the handle.
	Reopen func(t testing.TB, s storage.Store) storage.Store

	// Begin begins a transaction of the host's on what s stands on, by a pool of
	// the host's own at READ COMMITTED. end ends it; cleaning up rolls it back.
	// nil where the store cannot be in one.
	Begin func(t testing.TB, s storage.Store) (tx storage.Tx, end func(commit bool) error)

	// Spoil puts "{" in the place of the first byte of a Thing's notes, past the store.
	// nil where nobody can.
	Spoil func(t testing.TB, s storage.Store, p storage.Partition, id string)

	// Wreck cuts a Thing short, past the store, so that no column of it is left. nil where
	// nobody can.
	Wreck func(t testing.TB, s storage.Store, p storage.Partition, id string)

	// Rounds is how many random histories the model is compared on. Defaults
	// to 100; a backend that syncs to disk takes fewer.
	Rounds int
}

// Thing is a row with a column of every kind. Two of its names are words of SQL.
type Thing struct {
	Name  string          `db:"name"`
	Group string          `db:"group"`
	Order int64           `db:"order"`
	Flag  bool            `db:"flag"`
	At    time.Time       `db:"at"`
	Price decimal.Decimal `db:"price"`
	Blob  []byte          `db:"blob"`
	Notes []string        `db:"notes,json"`
}

// Note is a row with nothing unique.
type Note struct {
	Text string `db:"text"`
	N    int64  `db:"n"`
}

// The suite's tables.
var (
	Things = storage.NewTable[Thing]("suite_things", storage.Unique("name"), storage.Unique("group", "order"), storage.Index("group", "at"))
	Notes  = storage.NewTable[Note]("suite_notes", storage.Index("n"))
)

// Tables lists what a harness's schema must hold.
func Tables() []*storage.Table {
	return append([]*storage.Table{Things.Table, Notes.Table}, storage.Tables()...)
}

const (
	page = 3
	here = storage.Partition("tenant/here")
	away = storage.Partition("tenant/away")
	coin = ledger.Asset("COIN")
)

// epoch is when the suite's clock stands.
var epoch = time.Date(2026, 11, 20, 12, 0, 0, 123456000, time.UTC)

type testCase struct {
	name string
	run  func(t testing.TB, e *env)
	skip func(h Harness) bool
}

func cases() []testCase {
	second := func(h Harness) bool { return h.Second == nil }
	reopen := func(h Harness) bool { return h.Reopen == nil }
	host := func(h Harness) bool { return h.Begin == nil }
	return []testCase{
		{name: "Open", run: testOpen},
		{name: "RoundTrip", run: testRoundTrip},
		{name: "Rows", run: testRows},
		{name: "RowsByKeys", run: testRowsByKeys},
		{name: "FP04_ManyAskAtOnce", run: testManyAsk},
		{name: "FS02_RowThatCannotBeRead", run: func(t testing.TB, e *env) { testUnreadable(t, e, e.h.Spoil) }, skip: func(h Harness) bool { return h.Spoil == nil }},
		{name: "FS02_RowThatIsNone", run: func(t testing.TB, e *env) { testUnreadable(t, e, e.h.Wreck) }, skip: func(h Harness) bool { return h.Wreck == nil }},
		{name: "NoAliasing", run: testNoAliasing},
		{name: "Versions", run: testVersions},
		{name: "Guards", run: testGuards},
		{name: "Drop", run: testDrop},
		{name: "ThereAlready", run: testThereAlready},
		{name: "Malformed", run: testMalformed},
		{name: "JudgedOrder", run: testJudgedOrder},
		{name: "AllOrNothing", run: testAllOrNothing},
		{name: "SliceIsNotAtomic", run: testSlice},
		{name: "Unique", run: testUnique},
		{name: "D08_UniqueInABatch", run: testUniqueBatch},
		{name: "UniquePerPartition", run: testUniquePerPartition},
		{name: "I03_TextIsBytes", run: testTextIsBytes},
		{name: "Find", run: testFind},
		{name: "FindPages", run: testFindPages},
		{name: "FindInPartitions", run: testFindInPartitions},
		{name: "FindEverywhere", run: testFindEverywhere},
		{name: "FindRefuses", run: testFindRefuses},
		{name: "Claim", run: testClaim},
		{name: "ClaimFences", run: testClaimFences},
		{name: "FP10_UnfinishedRowsGiveWay", run: testUnfinishedRowsGiveWay},
		{name: "ClaimsNeverOverlap", run: testClaimsNeverOverlap},
		{name: "FQ08_ClaimsAcrossPartitions", run: testClaimsAcrossPartitions},
		{name: "FQ08_Closed", run: testClosed},
		{name: "FQ08_OpenAgain", run: testOpenAgain},
		{name: "Balances", run: testBalances},
		{name: "Entries", run: testEntries},
		{name: "Floors", run: testFloors},
		{name: "L10_BadPostings", run: testBadPostings},
		{name: "Level", run: testLevel},
		{name: "FP05_Count", run: testCount},
		{name: "FP05_CountTogether", run: testCountTogether},
		{name: "FE01_Tell", run: testTell},
		{name: "FE01_TellIsDue", run: testTellIsDue},
		{name: "FE01_TellTogether", run: testTellTogether},
		{name: "Empty", run: testEmpty},
		{name: "Once", run: testOnce},
		{name: "Activity", run: testActivity},
		{name: "W11_DrainToTheFloor", run: testDrain},
		{name: "D08_SameChangeTwice", run: testSameChangeTwice},
		{name: "L02_LostAnswers", run: testLostAnswers},
		{name: "EndedContext", run: testEndedContext},
		{name: "ManyPartitions", run: testManyPartitions},
		{name: "BigBatch", run: testBigBatch},
		{name: "C05_Linearizable", run: testLinearizable},
		{name: "L03_L04_Bank", run: testBank},
		{name: "Model", run: testModel},
		{name: "TwoHandles", run: testTwoHandles, skip: second},
		{name: "TwoHandlesClaim", run: testTwoHandlesClaim, skip: second},
		{name: "C04_ClaimThenCrash", run: testClaimThenCrash, skip: second},
		{name: "L01_Reopen", run: testReopen, skip: reopen},
		{name: "HostCommits", run: testHostCommits, skip: host},
		{name: "HostRollsBack", run: testHostRollsBack, skip: host},
		{name: "HostVerdicts", run: testHostVerdicts, skip: host},
		{name: "HostEndedContext", run: testHostEndedContext, skip: host},
		{name: "FQ08_HostClosed", run: testHostClosed, skip: host},
		{name: "L05_HostHoldsItsTenant", run: testHostHoldsItsTenant, skip: host},
		{name: "FP01_HostHoldsUpNoWorker", run: testHostHoldsUpNoWorker, skip: host},
		{name: "FE01_HostTells", run: testHostTells, skip: host},
		{name: "L05_HostOrder", run: testHostOrder, skip: host},
		{name: "L05_HostInserts", run: testHostInserts, skip: host},
	}
}

// Run runs the suite.
func Run(t *testing.T, h Harness) { run(t, h, cases()) }

// RunHosts runs the cases of a host's transaction alone, for another kind of one on a
// backend that passes Run.
func RunHosts(t *testing.T, h Harness) {
	run(t, h, slices.DeleteFunc(cases(), func(c testCase) bool { return !strings.Contains(c.name, "Host") }))
}

func run(t *testing.T, h Harness, list []testCase) {
	if h.Rounds == 0 {
		h.Rounds = 100
	}
	for _, c := range list {
		if c.skip != nil && c.skip(h) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			runCase(t, h, c)
		})
	}
}

func runCase(t testing.TB, h Harness, c testCase) {
	e := &env{h: h, ctx: context.Background(), s: h.Open(t)}
	require.NoError(t, e.s.Open(e.ctx, Tables()...))
	c.run(t, e)
	Audit(t, e.s, here)
	Audit(t, e.s, away)
	AuditStream(t, e.s, here)
	AuditStream(t, e.s, away)
}

// env is one case's store.
type env struct {
	h   Harness
	ctx context.Context
	s   storage.Store
	n   atomic.Int64
}

// id makes ids that are unique in the case.
func (e *env) id(prefix string) string { return fmt.Sprintf("%s-%05d", prefix, e.n.Add(1)) }

// put is a Change that puts rows here.
func (e *env) put(rows ...storage.Row) storage.Change {
	return storage.Change{ID: e.id("put"), Partition: here, Put: rows}
}

// post is a Change that posts one transaction here.
func (e *env) post(legs ...ledger.Leg) storage.Change {
	id := e.id("tx")
	return storage.Change{ID: id, Partition: here, Post: []ledger.Tx{{ID: id, Kind: ledger.KindTransfer, At: epoch, Legs: legs}}}
}

// fund is legs that bring coins in from outside.
func fund(a ledger.Account, n ledger.Amount) []ledger.Leg {
	return []ledger.Leg{{Account: ledger.Chain("net"), Asset: coin, Delta: -n}, {Account: a, Asset: coin, Delta: n}}
}

func move(from, to ledger.Account, n ledger.Amount) []ledger.Leg {
	return []ledger.Leg{{Account: from, Asset: coin, Delta: -n}, {Account: to, Asset: coin, Delta: n}}
}

func (e *env) commit(t testing.TB, changes ...storage.Change) {
	t.Helper()
	for i, err := range e.s.Commit(e.ctx, changes...) {
		require.NoError(t, err, "change %d: %s", i, changes[i].ID)
	}
}

func (e *env) one(c storage.Change) error { return e.s.Commit(e.ctx, c)[0] }

func (e *env) row(t testing.TB, table *storage.Table, id string) (storage.Row, bool) {
	t.Helper()
	rows, err := e.s.Rows(e.ctx, table, storage.Keys(here, id)...)
	require.NoError(t, err)
	if len(rows) == 0 {
		return storage.Row{}, false
	}
	return rows[0], true
}

func (e *env) balance(t testing.TB, a ledger.Account) ledger.Balance {
	t.Helper()
	all, err := e.s.Balances(e.ctx, here, a)
	require.NoError(t, err)
	for _, b := range all {
		if b.Asset == coin {
			return b
		}
	}
	return ledger.Balance{}
}

func thing(name string) Thing {
	return Thing{Name: name, Group: "g", Order: int64(len(name))<<32 + hash(name), At: epoch}
}

// hash gives test rows different orders.
func hash(s string) int64 {
	var h int64
	for _, b := range []byte(s) {
		h = (h*131 + int64(b)) % 1000003
	}
	return h
}

func note(id string, version, n int64) storage.Row {
	return Notes.Row(id, version, time.Time{}, Note{Text: "text of " + id, N: n})
}

func ids(rows []storage.Row) string {
	out := make([]string, len(rows))
	for i := range rows {
		out[i] = rows[i].ID
	}
	return strings.Join(out, " ")
}

// Audit proves the ledger of one partition: each asset sums to zero, each
// balance is what its history says, histories have no gap, and, apart from all
// sums, no floor is broken (L11).
func Audit(t testing.TB, s storage.Store, p storage.Partition) {
	t.Helper()
	ctx := context.Background()
	balances, err := s.Balances(ctx, p)
	require.NoError(t, err)
	sums := map[ledger.Asset]ledger.Amount{}
	for _, b := range balances {
		sums[b.Asset], err = sums[b.Asset].Add(b.Posted)
		require.NoError(t, err)
		if b.Account.Floored() {
			require.GreaterOrEqual(t, b.Held, ledger.Amount(0), "held on %s", b.Account)
			require.GreaterOrEqual(t, b.Posted, b.Held, "available on %s", b.Account)
		}
		auditHistory(t, s, p, b)
	}
	for asset, sum := range sums {
		require.Zero(t, sum, "sum of %s", asset)
	}
}

func auditHistory(t testing.TB, s storage.Store, p storage.Partition, b ledger.Balance) {
	t.Helper()
	next, after := b.Seq, b.Posted
	for next > 0 {
		entries, err := s.Entries(context.Background(), p, b.Account, b.Asset, next+1, 500)
		require.NoError(t, err)
		require.NotEmpty(t, entries, "history of %s ends at %d", b.Account, next)
		for _, e := range entries {
			if e.Seq != next || e.After != after || e.Delta == 0 { // require is slow, and a benchmark makes millions
				require.Equal(t, next, e.Seq, "gap in %s", b.Account)
				require.Equal(t, after, e.After, "balance after entry %d of %s", e.Seq, b.Account)
				require.NotZero(t, e.Delta)
			}
			after -= e.Delta
			next--
		}
	}
	require.Zero(t, after, "%s does not start at zero", b.Account)
}
