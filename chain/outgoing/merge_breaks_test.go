package outgoing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// TestAMergeThatAnOperatorSpedUpCountsWithWhatItCost: an operator raises the bound of one of a
// payout's merges. Once they have landed, what they count towards what all of the payout's may cost is
// what they cost: else those that follow could cost more together than the payout allows.
func TestAMergeThatAnOperatorSpedUpCountsWithWhatItCost(t *testing.T) {
	t.Parallel()
	w := crowded(t, narrow(3), 25)
	w.submit(w.intent("a", 6*coin-coin/2))
	for range 20 {
		if w.merges()[outgoing.Signed] == 2 {
			break
		}
		_ = w.step()
		w.advance(poll)
	}
	require.Equal(t, 2, w.merges()[outgoing.Signed])
	const id = "merge/a/1"
	_, after, err := w.Net.SpeedUp(w.ctx, id, 50*w.get(id).Intent.MaxCost, &outgoing.Recorded{ID: "op-speed", Op: outgoing.Operation{
		Kind: outgoing.OpSpeedUp, By: "ann", Reason: "x", Object: id, At: w.clock(),
	}})
	require.NoError(t, err)
	require.Positive(t, after.MaxCost)
	w.comesTo("a", outgoing.Final)
	w.run(10)
	var cost ledger.Amount
	for _, r := range w.rows(outgoing.Intents.Table) {
		if outgoing.ParseID(r.ID).Kind == outgoing.OrderMerge {
			require.Equal(t, outgoing.Final, outgoing.Intents.Value(r).State)
			cost += outgoing.Intents.Value(r).MaxCost
		}
	}
	var full *storage.LevelError
	require.ErrorAs(t, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: "read", Partition: storage.Network(w.gas),
		Put:   []storage.Row{outgoing.CoinRow("t1", chain.Coin{Outpoint: "read:0", Amount: 1})},
		Level: []storage.Level{{Name: "merged-for/a", Delta: 1, Max: -1}},
	}), &full)
	require.EqualValues(t, cost, full.Value)
}
