package outgoing_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// block mines one block and lets the worker look at it.
func (w *world) block() {
	w.t.Helper()
	w.chain.Mine(1)
	w.advance(time.Minute)
	require.NoError(w.t, w.step())
}

// An order that wants three confirmations is executed at the third, not before.
func TestFQ09_ExecutedAtItsConfirmations(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.intent("a", coin)
		in.Confirmations = 3
		w.submit(in)
		require.NoError(t, w.step())
		for range 2 {
			w.block()
			require.Equal(t, outgoing.Signed, w.state("a"))
		}
		require.NotContains(t, w.states("a"), outgoing.Executed)
		w.block()
		require.Equal(t, outgoing.Executed, w.state("a"))
		require.EqualValues(t, 3, w.last("a").Confirmations)
	})
}

// No depth makes a transaction final where the currency waits for the finality that
// its network declares.
func TestFQ09_DepthIsNotFinalWhereFinalityIsAwaited(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{noFinality: true})
	cur, err := w.reg.Currency("ETH")
	require.NoError(t, err)
	cur.WaitFinal = true
	w.submit(w.intent("a", coin))
	w.run(30)
	require.Equal(t, outgoing.Executed, w.state("a"))
	require.NotContains(t, w.states("a"), outgoing.Final)
}

// A node may name blocks final that the network has not made so. What a common reorg
// takes back was not settled by such a word.
func TestFQ09_NodeThatNamesAllFinalSettlesNothingBeforeItsDepth(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		node := w.chain.NewNode().LieFinal(1 << 40)
		w.client.fullClient = node.Client().(fullClient)
		w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		for range 5 {
			w.block()
			require.NotEqual(t, outgoing.Final, w.state("a"), "the coin asks for six confirmations")
		}
		w.block()
		require.Equal(t, outgoing.Final, w.state("a"))
	})
}

// Fees fall while a transaction is stuck. Its replacement has no lower bound than the
// one that it replaces, as nodes would refuse it.
func TestFQ09_ReplacementHasNoLowerBound(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		fee, err := w.client.EstimateFee(w.ctx, in)
		require.NoError(t, err)
		require.NoError(t, w.step())
		w.stick()
		w.client.fee = func(chain.Fee) chain.Fee {
			low := fee
			low.Max, low.Cost = fee.Max/2, fee.Cost/2
			return low
		}
		w.run(15)
		atts := w.attempts("a")
		require.Greater(t, len(atts), 1)
		for i := range atts[1:] {
			require.GreaterOrEqual(t, atts[i+1].Fee.Max, atts[i].Fee.Max)
		}
		w.chain.SetFeeLevel(0)
		w.run(12)
		w.paid(in)
	})
}

// Two members of a batch have one address and other amounts. A transaction of an
// older process paid only one of them: the other one starts again.
func TestFQ09_OneAddressTwoAmounts(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"b", "c"} {
		t.Run(left, func(t *testing.T) {
			t.Parallel()
			w := funded(t, setup{family: chain.UTXOFamily})
			w.submit(w.intent("a", coin))
			orders := map[string]chain.Intent{"b": w.intent("b", coin), "c": w.intent("c", 2*coin)}
			for _, id := range []string{"b", "c"} {
				in := orders[id]
				in.To = w.to("both")
				orders[id] = w.submit(in)
			}
			require.NoError(t, w.step())
			row := w.rows(outgoing.Attempts.Table)[0]
			v := outgoing.Attempts.Value(row)
			outputs := len(v.Outputs)
			v.Outputs = slices.DeleteFunc(v.Outputs, func(o chain.Output) bool {
				return o.To == w.to("both") && o.Amount == orders[left].Amount
			})
			require.Len(t, v.Outputs, outputs-1)
			require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
				ID: "older", Partition: storage.Network(w.gas), Put: []storage.Row{outgoing.Attempts.Row(row.ID, row.Version, time.Time{}, v)},
			}))
			for w.state("a") != outgoing.Final {
				w.run(1)
			}
			other := map[string]string{"b": "c", "c": "b"}[left]
			require.Equal(t, outgoing.Final, w.state(other))
			require.Equal(t, orders[other].Amount, w.last(other).Amount)
			require.NotContains(t, w.states(left), outgoing.Final)
			require.Empty(t, w.get(left).BatchLeader)
		})
	}
}

// What is left beside a payout under way covers the next one's amount, but not what
// both may cost: it waits, and no nonce is used.
func TestFQ09_GasIsCountedWithNativeCoins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.fund(w.hot, "ETH", 10*coin)
	a := w.submit(w.intent("a", 6*coin))
	require.NoError(t, w.step())
	require.Equal(t, outgoing.Signed, w.state("a"))
	b := w.intent("b", 4*coin)
	fee, err := w.client.EstimateFee(w.ctx, b)
	require.NoError(t, err)
	b.Amount -= fee.Max
	w.submit(b)
	_ = w.step()
	require.Equal(t, outgoing.ReasonOperatorFunds, w.last("b").Reason)
	require.Equal(t, 1, w.signer.calls)
	w.fund(w.hot, "ETH", coin)
	w.run(20)
	w.paid(a)
	w.paid(b)
	w.sound()
}
