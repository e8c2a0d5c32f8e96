package outgoing

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

func walking(t *testing.T, put ...storage.Row) (*Sender, *failing.Walked, func(row storage.Row)) {
	t.Helper()
	s := &failing.Walked{Store: memory.New()}
	require.NoError(t, s.Open(t.Context(), append(Tables(), storage.Tables()...)...))
	n := &Sender{Config: Config{Store: s, Now: time.Now}, part: storage.Network("BTC")}
	commit := func(rows ...storage.Row) {
		t.Helper()
		require.NoError(t, storage.CommitOne(t.Context(), s.Store, storage.Change{ID: fmt.Sprint(len(rows), rows[0].ID), Partition: n.part, Put: rows}))
	}
	commit(put...)
	return n, s, func(row storage.Row) { commit(row) }
}

// An attempt that is stored while attempts are read is in the way of no other one, and none is
// there twice.
func TestFR05_AttemptsWhileOneIsStored(t *testing.T) {
	t.Parallel()
	attempt := func(tx, intent string, number int) storage.Row {
		return Attempts.Row(tx, 0, time.Time{}, AttemptRow{Intent: intent, Number: number, State: Open})
	}
	put := []storage.Row{attempt("a1", "a", 1)}
	for i := 1200; i >= 1; i-- {
		put = append(put, attempt(fmt.Sprintf("b%05d", 2000-i), "b", i))
	}
	n, s, store := walking(t, put...)
	s.Then = func() { store(attempt("0a2", "a", 2)) }
	got, err := n.attempts(t.Context(), "a", "b")
	require.NoError(t, err)
	require.Len(t, got["b"], 1200)
	for i, a := range got["b"] {
		require.Equal(t, i+1, a.v.Number, "the oldest first, each once")
	}
	require.Equal(t, "a1", got["a"][0].tx)
}

// A coin that another payout takes while free coins are handed out hides none of the others.
func TestFR05_FreeCoinsWhileOneIsTaken(t *testing.T) {
	t.Parallel()
	var put []storage.Row
	for i := range 3 * maxCandidates {
		put = append(put, CoinRow("t1", chain.Coin{Outpoint: fmt.Sprintf("c%05d:0", i), Address: "a", Amount: ledger.Amount(1 + i/7)}))
	}
	n, s, store := walking(t, put...)
	s.Then = func() {
		largest := put[len(put)-1]
		v := Coins.Value(largest)
		v.State = CoinReserved
		store(Coins.Row(largest.ID, 1, time.Time{}, v))
	}
	met, last := map[string]bool{}, ledger.MaxAmount
	require.NoError(t, n.eachFree(t.Context(), &chain.Intent{Tenant: "t1"}, func(c *coin) (bool, error) {
		require.False(t, met[c.outpoint], "%s is there twice", c.outpoint)
		require.LessOrEqual(t, c.Amount, last)
		met[c.outpoint], last = true, c.Amount
		return true, nil
	}))
	require.Len(t, met, len(put))
}
