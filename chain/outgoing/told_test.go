package outgoing

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// E01: each move of the table of orders is told, of each kind of order that nobody else
// tells of; so is another reason to wait. Of what does not change nothing is told.
func TestFE01_EveryMoveOfAnOrderIsTold(t *testing.T) {
	t.Parallel()
	n := &Sender{Config: Config{Registry: chain.MainnetRegistry(), Now: func() time.Time { return time.Unix(1767323045, 0) }}}
	var err error
	n.gas, err = n.Registry.Gas("ETH")
	require.NoError(t, err)
	tell := func(id string, p chain.Purpose, from, to State, was, reason Reason) []OrderChanged {
		c := storage.Change{}
		v := IntentRow{Purpose: p, Network: "ETH", Currency: "ETH", Amount: 150_000_000, State: to, Reason: reason}
		require.NoError(t, n.tell(&c, id, from, was, &v, &Outcome{Cost: ledger.Amount(21), CostTx: "0x"}))
		out := make([]OrderChanged, len(c.Tell))
		for i, e := range c.Tell {
			require.Equal(t, []string{out[i].EventKind(), id}, []string{e.Kind, e.Object})
			require.NoError(t, json.Unmarshal(e.Data, &out[i]))
		}
		return out
	}
	moves := 0
	for _, e := range machine.Edges {
		for _, from := range e.From {
			if e.To == "" || e.To == from {
				continue
			}
			moves++
			for id, kind := range map[string]OrderKind{
				"gas/1/sweep/x": OrderGas, ID{OrderMerge, "w", 1}.String(): OrderMerge, ID{Kind: OrderChild, For: "w"}.String(): OrderChild, "fill/a/1": OrderFill,
			} {
				p := chain.ForCancel
				if kind == OrderGas {
					p = chain.ForGas
				}
				got := tell(id, p, from, e.To, "", "")
				require.Len(t, got, 1, "%s from %q to %q", kind, from, e.To)
				require.Equal(t, []any{id, kind, from, e.To, "1.5", "0.00000021", "ETH"}, []any{got[0].OrderID, got[0].Kind, got[0].From, got[0].To, got[0].Amount, got[0].Cost, got[0].Gas})
			}
			require.Empty(t, tell("w", chain.ForWithdrawal, from, e.To, "", ""), "withdrawal.Changed tells")
			require.Empty(t, tell("s", chain.ForSweep, from, e.To, "", ""), "treasury.SweepChanged tells")
		}
	}
	require.Positive(t, moves)
	require.Len(t, tell("gas/1/x", chain.ForGas, Waiting, Waiting, ReasonNode, ReasonHalted), 1)
	require.Empty(t, tell("gas/1/x", chain.ForGas, Waiting, Waiting, ReasonNode, ReasonNode))
}
