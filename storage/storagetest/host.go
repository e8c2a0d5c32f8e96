package storagetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// hostDeposit is a Change that would be seen if half of it were there.
func hostDeposit(p storage.Partition, id string) storage.Change {
	return storage.Change{
		ID: id, Partition: p,
		Put:   []storage.Row{Notes.Row(id, 0, epoch, Note{Text: id})},
		Post:  []ledger.Tx{{ID: id, Kind: ledger.KindDeposit, At: epoch, Legs: fund(ledger.Wallet("w"), 1)}},
		Level: []storage.Level{{Name: "deposits", Delta: 1, Max: 1000}},
	}
}

// standing is how many deposits a store shows, which must be there whole.
func standing(t testing.TB, e *env, s storage.Store, p storage.Partition) int {
	t.Helper()
	n, err := s.Count(e.ctx, storage.Query{Table: Notes.Table, Partition: p})
	require.NoError(t, err)
	b, err := s.Balances(e.ctx, p, ledger.Wallet("w"))
	require.NoError(t, err)
	var posted ledger.Amount
	if len(b) > 0 {
		posted = b[0].Posted
	}
	require.Equal(t, ledger.Amount(n), posted, "a change is there by half")
	return int(n)
}

func testHostCommits(t testing.TB, e *env) {
	e.commit(t, hostDeposit(here, "before"))
	tx, end := e.h.Begin(t, e.s)
	require.NoError(t, tx.Open(e.ctx, Tables()...))
	for i, err := range tx.Commit(e.ctx, hostDeposit(here, "a"), hostDeposit(here, "b")) {
		require.NoError(t, err, i)
	}
	require.NoError(t, tx.Commit(e.ctx, hostDeposit(here, "c"))[0])
	require.NoError(t, tx.Commit(e.ctx, hostDeposit(here, "c"))[0], "it is there already")
	require.Equal(t, 4, standing(t, e, tx, here), "the transaction sees its own")
	require.Equal(t, 1, standing(t, e, e.s, here), "and nobody else does")
	due, err := e.s.Claim(e.ctx, storage.Claim{Table: Notes.Table, Partition: here, Where: []storage.Cond{{Column: "id", Op: storage.Ne, Value: "before"}}, Now: epoch, Until: epoch.Add(time.Second), Max: 9})
	require.NoError(t, err)
	require.Empty(t, due, "nothing of it is due yet")
	require.NoError(t, end(true))
	require.Equal(t, 4, standing(t, e, e.s, here))
	e.commit(t, hostDeposit(here, "a")) // there already
	require.Len(t, e.claim(t, claim(9)), 4, "workers find it")
	require.Error(t, tx.Commit(e.ctx, hostDeposit(here, "late"))[0], "the transaction is over")
	require.Equal(t, 4, standing(t, e, e.s, here))
}

func testHostRollsBack(t testing.TB, e *env) {
	tx, end := e.h.Begin(t, e.s)
	require.NoError(t, tx.Commit(e.ctx, hostDeposit(here, "a"))[0])
	require.Equal(t, 1, standing(t, e, tx, here))
	require.NoError(t, end(false))
	require.Zero(t, standing(t, e, e.s, here))
	rows, err := e.s.Rows(e.ctx, Notes.Table, storage.Keys(here, "a")...)
	require.NoError(t, err)
	require.Empty(t, rows)
	e.commit(t, hostDeposit(here, "a"))
	require.Equal(t, 1, standing(t, e, e.s, here))
}

// A verdict leaves the transaction as it was.
func testHostVerdicts(t testing.TB, e *env) {
	e.commit(t, hostDeposit(here, "before"), storage.Change{ID: "key", Partition: here, Put: []storage.Row{named("taken", 0, "name")}})
	tx, end := e.h.Begin(t, e.s)
	require.NoError(t, tx.Commit(e.ctx, hostDeposit(here, "a"))[0])
	pay := storage.Change{ID: "pay", Partition: here, Post: []ledger.Tx{{ID: "pay", At: epoch, Legs: move(ledger.Wallet("w"), "x", 3)}}}
	errs := tx.Commit(e.ctx,
		storage.Change{ID: "stale", Partition: here, Put: []storage.Row{note("before", 7, 1)}},
		storage.Change{ID: "dup", Partition: here, Put: []storage.Row{named("other", 0, "name")}},
		pay,
		hostDeposit(here, "b"))
	require.ErrorIs(t, errs[0], storage.ErrConflict)
	var dup *storage.DuplicateError
	require.ErrorAs(t, errs[1], &dup)
	var short *ledger.InsufficientFundsError
	require.ErrorAs(t, errs[2], &short)
	require.Equal(t, ledger.Amount(2), short.Available)
	require.NoError(t, errs[3])
	require.ErrorIs(t, tx.Commit(e.ctx, storage.Change{ID: "nothing", Partition: here})[0], storage.ErrMalformed)
	pay.ID, pay.Post[0].ID = "pay again", "pay again"
	require.NoError(t, tx.Commit(e.ctx, pay)[0])
	require.NoError(t, storage.Decide(e.ctx, tx, func(ctx context.Context) (storage.Change, error) {
		v, row, _, err := Notes.One(ctx, tx, here, "before")
		v.N++
		return storage.Change{ID: "decided", Partition: here, Put: []storage.Row{Notes.Row("before", row.Version, row.Due, v)}}, err
	}))
	require.NoError(t, end(true))
	require.Zero(t, e.balance(t, ledger.Wallet("w")).Posted)
	row, ok := e.row(t, Notes.Table, "before")
	require.True(t, ok)
	require.Equal(t, int64(2), row.Version)
}

// testHostEndedContext: a Commit whose context has ended does nothing, and the
// transaction goes on.
func testHostEndedContext(t testing.TB, e *env) {
	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	tx, end := e.h.Begin(t, e.s)
	require.NoError(t, tx.Commit(e.ctx, hostDeposit(here, "before"))[0])
	err := tx.Commit(ended, hostDeposit(here, "ended"))[0]
	require.Error(t, err)
	require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict), "%v", err)
	require.NoError(t, tx.Commit(e.ctx, hostDeposit(here, "after"))[0])
	require.NoError(t, end(true))
	rows, err := e.s.Rows(e.ctx, Notes.Table, storage.Keys(here, "before", "ended", "after")...)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, ledger.Amount(2), e.balance(t, ledger.Wallet("w")).Posted)
}

// testHostClosed: a transaction takes nothing by a store that is closed.
func testHostClosed(t testing.TB, e *env) {
	s := e.h.Open(t)
	require.NoError(t, s.Open(e.ctx, Tables()...))
	require.NoError(t, storage.CommitOne(e.ctx, s, hostDeposit(here, "before")))
	tx, _ := e.h.Begin(t, s)
	require.NoError(t, s.Close())
	for name, call := range calls(e, tx) {
		if name != "Claim" || tx.Alone() {
			require.ErrorIs(t, call(e.ctx), storage.ErrClosed, name)
		}
	}
	require.ErrorIs(t, tx.Open(e.ctx), storage.ErrClosed)
}

// testHostHoldsItsTenant: everybody else goes on, and those of the same tenant
// wait, and are in nobody's way.
func testHostHoldsItsTenant(t testing.TB, e *env) {
	tx, end := e.h.Begin(t, e.s)
	require.NoError(t, tx.Commit(e.ctx, hostDeposit(here, "host"))[0])
	waits := make(chan error, 1)
	go func() { waits <- storage.CommitOne(e.ctx, e.s, hostDeposit(here, "waits")) }()
	if !tx.Alone() {
		for i := range 30 {
			p := storage.Tenant(fmt.Sprint(i % 7)) // new ones, below and above it in order
			if i%2 == 0 {
				p = storage.Tenant(fmt.Sprint("zz", i%6))
			}
			require.NoError(t, storage.CommitOne(e.ctx, e.s, hostDeposit(p, fmt.Sprint("free", i))))
		}
		errs := e.s.Commit(e.ctx, hostDeposit(away, "free"), hostDeposit(storage.Network("net"), "free"), hostDeposit(storage.System, "free"))
		require.NoError(t, errors.Join(errs...))
		require.Empty(t, waits, "it still waits, and nobody waited for it")
	}
	require.NoError(t, end(true))
	require.NoError(t, <-waits)
	require.Equal(t, 2, standing(t, e, e.s, here))
}

// A worker does not wait for a partition that a host's transaction holds, and gets its
// other Changes stored.
func testHostHoldsUpNoWorker(t testing.TB, e *env) {
	hasty := func(p storage.Partition, id string) storage.Change {
		c := hostDeposit(p, id)
		c.NoWait = true
		return c
	}
	e.commit(t, hasty(here, "before"), hasty(away, "before"))
	tx, end := e.h.Begin(t, e.s)
	require.NoError(t, tx.Commit(e.ctx, hostDeposit(here, "host"))[0])
	if !tx.Alone() { // else the database is what is locked, for everybody
		for i := range 3 {
			id := fmt.Sprint("worker", i)
			errs := e.s.Commit(e.ctx, hasty(away, id), hasty(here, id), hasty(storage.Network("net"), id))
			require.NoError(t, errs[0])
			require.ErrorIs(t, errs[1], storage.ErrBusy)
			require.NoError(t, errs[2])
			require.ErrorIs(t, storage.CommitOne(e.ctx, e.s, hasty(here, id)), storage.ErrBusy, "alone")
		}
		require.Equal(t, 4, standing(t, e, e.s, away))
		require.Equal(t, 1, standing(t, e, e.s, here), "what is busy did not happen")
	}
	require.NoError(t, end(true))
	e.commit(t, hasty(here, "worker0"), hasty(here, "after"))
	require.Equal(t, 4, standing(t, e, e.s, here))
}

// What a host's transaction tells of is numbered when it is written, and nobody else's
// numbers come between: a transaction that is rolled back leaves no gap.
func testHostTells(t testing.TB, e *env) {
	e.commit(t, e.told("a"))
	for _, ends := range []bool{false, true} {
		tx, end := e.h.Begin(t, e.s)
		mine := e.told("host", "host")
		require.NoError(t, tx.Commit(e.ctx, mine)[0])
		require.NoError(t, tx.Commit(e.ctx, e.told("host"), mine)[0])
		require.Len(t, events(t, tx, here, 0), 4)
		if !tx.Alone() {
			other := e.told("other")
			other.NoWait = true
			require.ErrorIs(t, e.one(other), storage.ErrBusy)
			require.Equal(t, []string{"a"}, objects(t, e.s, here), "nobody follows what may never be")
		}
		require.NoError(t, end(ends))
	}
	e.commit(t, e.told("b"))
	require.Equal(t, []string{"a", "host", "host", "host", "b"}, objects(t, e.s, here))
}

func testHostOrder(t testing.TB, e *env) {
	tx, end := e.h.Begin(t, e.s)
	defer end(false) //nolint:errcheck // a test's end
	if tx.Alone() {
		require.NoError(t, tx.Commit(e.ctx, hostDeposit(storage.Network("net"), "x"))[0])
		rows, err := tx.Claim(e.ctx, storage.Claim{Table: Notes.Table, Now: epoch, Until: epoch.Add(time.Second), Max: 1})
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.NoError(t, end(true))
		rows, err = e.s.Claim(e.ctx, storage.Claim{Table: Notes.Table, Now: epoch, Until: epoch.Add(time.Second), Max: 1})
		require.NoError(t, err)
		require.Empty(t, rows, "it is leased")
		return
	}
	for _, p := range []storage.Partition{storage.System, storage.Network("net")} {
		require.ErrorIs(t, tx.Commit(e.ctx, hostDeposit(p, "x"))[0], storage.ErrMalformed)
	}
	_, err := tx.Claim(e.ctx, storage.Claim{Table: Notes.Table, Now: epoch, Until: epoch.Add(time.Second), Max: 1})
	require.ErrorIs(t, err, storage.ErrMalformed)
	require.NoError(t, tx.Commit(e.ctx, hostDeposit("tenant/b", "x"))[0])
	require.ErrorIs(t, tx.Commit(e.ctx, hostDeposit("tenant/a", "x"))[0], storage.ErrMalformed)
	require.NoError(t, tx.Commit(e.ctx, hostDeposit("tenant/c", "x"))[0])
	require.NoError(t, tx.Commit(e.ctx, hostDeposit("tenant/b", "y"))[0])
	require.NoError(t, end(true))
	require.Equal(t, 2, standing(t, e, e.s, "tenant/b"))
	require.Zero(t, standing(t, e, e.s, "tenant/a"))
}

// A host's transaction may insert rows that are no tenant's, such as a new tenant's in the
// directory: with the tenant's own or not at all. Nobody waits for it meanwhile, and what is
// there already is not overwritten.
func testHostInserts(t testing.TB, e *env) {
	insert := func(id string) storage.Change {
		return storage.Change{ID: "insert " + id, Partition: storage.System, Put: []storage.Row{note(id, 0, 1)}}
	}
	there := func(s storage.Store, id string) bool {
		rows, err := s.Rows(e.ctx, Notes.Table, storage.Keys(storage.System, id)...)
		require.NoError(t, err)
		return len(rows) == 1
	}
	e.commit(t, insert("before"))
	for _, ends := range []bool{false, true} {
		id := fmt.Sprint("new ", ends)
		tx, end := e.h.Begin(t, e.s)
		require.NoError(t, tx.Commit(e.ctx, hostDeposit("tenant/new", id))[0])
		require.NoError(t, tx.Commit(e.ctx, insert(id))[0])
		require.NoError(t, tx.Commit(e.ctx, insert(id))[0], "it is there already")
		require.True(t, there(tx, id))
		require.False(t, there(e.s, id))
		again := insert("before")
		again.ID = "another"
		require.ErrorIs(t, tx.Commit(e.ctx, again)[0], storage.ErrConflict)
		if !tx.Alone() {
			other := hostDeposit(storage.System, fmt.Sprint("other ", ends))
			other.NoWait = true
			require.NoError(t, e.one(other), "nobody waits")
			e.commit(t, insert(fmt.Sprint("beside ", ends)))
			changed := storage.Change{ID: "changed", Partition: storage.System, Put: []storage.Row{note("before", 1, 2)}}
			require.ErrorIs(t, tx.Commit(e.ctx, changed)[0], storage.ErrMalformed, "more than an insert")
		}
		require.NoError(t, end(ends))
		require.Equal(t, ends, there(e.s, id))
		require.Equal(t, map[bool]int{true: 1}[ends], standing(t, e, e.s, "tenant/new"))
	}
}
