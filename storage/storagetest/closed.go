package storagetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// calls lists every method that needs an open store.
func calls(e *env, s storage.Store) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"Rows": func(ctx context.Context) error {
			_, err := s.Rows(ctx, Notes.Table, storage.Keys(here, "a")...)
			return err
		},
		"Find":   func(ctx context.Context) error { _, err := s.Find(ctx, storage.Query{Table: Notes.Table}); return err },
		"Count":  func(ctx context.Context) error { _, err := s.Count(ctx, storage.Query{Table: Notes.Table}); return err },
		"Claim":  func(ctx context.Context) error { _, err := s.Claim(ctx, claim(1)); return err },
		"Commit": func(ctx context.Context) error { return s.Commit(ctx, e.put(note("a", 0, 1)))[0] },
		"Balances": func(ctx context.Context) error {
			_, err := s.Balances(ctx, here)
			return err
		},
		"Entries": func(ctx context.Context) error {
			_, err := s.Entries(ctx, here, ledger.Wallet("w"), coin, 0, 1)
			return err
		},
	}
}

// testClosed: before Open and after Close every method returns ErrClosed, and nothing
// is written.
func testClosed(t testing.TB, e *env) {
	s := e.h.Open(t)
	for name, call := range calls(e, s) {
		require.ErrorIs(t, call(e.ctx), storage.ErrClosed, "%s before Open", name)
	}
	require.NoError(t, s.Open(e.ctx, Tables()...))
	n, err := s.Count(e.ctx, storage.Query{Table: Notes.Table})
	require.NoError(t, err)
	require.Zero(t, n)
	for name, call := range calls(e, s) {
		require.NoError(t, call(e.ctx), "%s of an open store", name)
	}
	require.NoError(t, s.Close())
	for name, call := range calls(e, s) {
		require.ErrorIs(t, call(e.ctx), storage.ErrClosed, "%s after Close", name)
	}
}

// testOpenAgain: a second Open of an open store keeps all that was stored.
func testOpenAgain(t testing.TB, e *env) {
	c := e.post(fund(ledger.Wallet("w"), 5)...)
	c.Put = []storage.Row{named("a", 0, "name"), dueNote("due", epoch, 1)}
	c.Level = []storage.Level{{Name: "l", Delta: 1, Max: 1}}
	e.commit(t, c)
	require.NoError(t, e.s.Open(e.ctx, Tables()...))
	row, ok := e.row(t, Things.Table, "a")
	require.True(t, ok)
	require.Equal(t, int64(1), row.Version)
	require.Equal(t, ledger.Amount(5), e.balance(t, ledger.Wallet("w")).Posted)
	require.Equal(t, "due", ids(e.claim(t, claim(page))))
	var dup *storage.DuplicateError
	require.ErrorAs(t, e.one(e.put(named("b", 0, "name"))), &dup)
	e.commit(t, c) // there already
	require.Equal(t, ledger.Amount(5), e.balance(t, ledger.Wallet("w")).Posted)
}

// testClaimsAcrossPartitions: one claim of all partitions leases each row that it
// returns, whichever partition the row is in: rows of one id, too.
func testClaimsAcrossPartitions(t testing.TB, e *env) {
	partitions := []storage.Partition{here, away, "tenant/third"}
	for _, p := range partitions {
		c := e.put(dueNote("a", epoch, 1), dueNote("b", epoch, 2))
		c.Partition = p
		e.commit(t, c)
	}
	c := claim(10)
	first := e.claim(t, c)
	require.Len(t, first, 6)
	require.Empty(t, e.claim(t, c), "every row is leased")
	for _, r := range first {
		require.Equal(t, int64(2), r.Version)
		stored, err := e.s.Rows(e.ctx, Notes.Table, storage.Keys(r.Partition, r.ID)...)
		require.NoError(t, err)
		require.Equal(t, []storage.Row{r}, stored, "what is stored is what was returned")
	}
	c.Now, c.Until = c.Until, c.Until.Add(c.Until.Sub(c.Now))
	require.Len(t, e.claim(t, c), 6, "all leases end")
	for _, r := range first {
		late := e.put(note(r.ID, r.Version, 9))
		late.Partition = r.Partition
		require.ErrorIs(t, e.one(late), storage.ErrConflict, "a holder whose lease was lost")
	}
}
