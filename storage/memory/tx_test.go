package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// A host's transaction writes to copies: what it does shows nowhere until it commits, not in
// an index, a balance, an entry or what is due; and what was rolled back leaves nothing that a
// later one could meet. Transactions that commit and those that do not take turns.
func TestTxIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	ctx, s, p := t.Context(), memory.New(), storage.Tenant("t")
	require.NoError(t, s.Open(ctx, things.Table))
	due := time.Unix(1000, 0)
	change := func(id string) storage.Change {
		return storage.Change{
			ID: id, Partition: p, Put: []storage.Row{things.Row(id, 0, due, thing{[]byte(id), "kind"})},
			Post: []ledger.Tx{{ID: id, At: due, Kind: ledger.KindDeposit, Legs: []ledger.Leg{
				{Account: ledger.Chain("ETH"), Asset: "ETH", Delta: -1}, {Account: ledger.Wallet("w"), Asset: "ETH", Delta: 1},
			}}},
		}
	}
	state := func(s storage.Store) string {
		t.Helper()
		rows, err := s.Find(ctx, storage.Query{Table: things.Table, Partition: p, Limit: 1000, Where: []storage.Cond{{Column: "kind", Op: storage.Eq, Value: "kind"}}})
		require.NoError(t, err)
		balances, err := s.Balances(ctx, p)
		require.NoError(t, err)
		entries, err := s.Entries(ctx, p, ledger.Wallet("w"), "ETH", 0, 1000)
		require.NoError(t, err)
		require.Len(t, entries, len(rows))
		var ids []string
		for i, r := range rows {
			require.EqualValues(t, len(rows)-i, entries[i].After)
			ids = append(ids, fmt.Sprint(r.ID, " ", r.Version))
		}
		return fmt.Sprint(ids, balances)
	}
	require.NoError(t, s.Commit(ctx, change("0"))[0])
	for i := range 200 {
		before := state(s)
		tx, err := s.Begin(ctx)
		require.NoError(t, err)
		in := s.WithTx(tx)
		for k := range 1 + i%3 {
			require.NoError(t, in.Commit(ctx, change(fmt.Sprint(i, " ", k)))[0])
		}
		inside := state(in)
		require.NotEqual(t, before, inside)
		require.Equal(t, before, state(s))
		if i%2 == 0 {
			taken, err := in.Claim(ctx, storage.Claim{Table: things.Table, Now: due, Until: due.Add(time.Hour), Max: 1000})
			require.NoError(t, err)
			require.NotEmpty(t, taken)
			inside = state(in)
		}
		if i%4 < 2 {
			require.NoError(t, tx.Commit())
			require.Equal(t, inside, state(s))
			require.ErrorIs(t, tx.Rollback(), memory.ErrOver)
		} else {
			require.NoError(t, tx.Rollback())
			require.Equal(t, before, state(s))
		}
		require.ErrorIs(t, in.Commit(ctx, change("late"))[0], memory.ErrOver)
	}
	again, err := s.Claim(ctx, storage.Claim{Table: things.Table, Now: due, Until: due.Add(time.Hour), Max: 1000})
	require.NoError(t, err)
	left := map[string]bool{}
	for _, r := range again {
		require.False(t, left[r.ID], "taken once")
		left[r.ID] = true
	}
	require.NotEmpty(t, left)
	require.NotContains(t, left, "0", "a transaction that committed has taken it")
}
