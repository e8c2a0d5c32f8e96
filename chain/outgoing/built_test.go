package outgoing_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// crookedClient builds something else than what was ordered.
type crookedClient struct {
	*fragileClient
	bend func(*chain.Order)
}

func (c crookedClient) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	if c.bend != nil {
		c.bend(&o)
	}
	return c.fragileClient.Build(ctx, o)
}

func bent(t *testing.T, family chain.Family, bend func(*chain.Order)) *world {
	w := funded(t, setup{family: family})
	w.set.change = func(c *outgoing.Config) { c.Client = crookedClient{w.client, bend} }
	w.restart()
	return w
}

func TestW14_BuiltTransactionAboveTheCapIsNotSigned(t *testing.T) {
	t.Parallel()
	w := bent(t, chain.AccountFamily, func(o *chain.Order) { o.Intent.MaxCost = 0 }) // the client forgets the cap
	fee, err := w.client.EstimateFee(w.ctx, w.intent("a", coin))
	require.NoError(t, err)
	w.client.fee = func(f chain.Fee) chain.Fee { f.Max, f.Cost = 1, 1; return f } // and the estimate lies low
	in := w.intent("a", coin)
	in.MaxCost = fee.Max - 1
	w.submit(in)
	w.run(3)
	require.Equal(t, outgoing.ReasonFeeTooHigh, w.last("a").Reason)
	require.Zero(t, w.signer.calls)
	require.Empty(t, w.rows(outgoing.InputReservations.Table))
}

func TestW15_BuiltOtherwiseThanOrderedIsNotSigned(t *testing.T) {
	t.Parallel()
	for name, bend := range map[string]func(*chain.Order){
		"amount":    func(o *chain.Order) { o.Intent.Amount++ },
		"recipient": func(o *chain.Order) { o.Intent.To = o.Intent.From },
		"nonce":     func(o *chain.Order) { o.Nonce++ },
		"currency":  func(o *chain.Order) { o.Intent.Currency, o.Intent.Amount = "USDT", 1_000_000 },
	} {
		w := bent(t, chain.AccountFamily, bend)
		in := w.submit(w.intent("a", coin))
		w.run(3)
		require.Zero(t, w.signer.calls, name)
		require.Equal(t, outgoing.Waiting, w.state("a"), name)
		w.unpaid(in)
	}
	for name, bend := range map[string]func(*chain.Order){
		"change": func(o *chain.Order) { o.Change = o.Intent.To },
		"inputs": func(o *chain.Order) { o.Coins[0].Outpoint = "00:0" },
	} {
		w := bent(t, chain.UTXOFamily, func(o *chain.Order) {
			o.Coins = append([]chain.Coin{}, o.Coins...)
			bend(o)
		})
		in := w.submit(w.intent("a", coin))
		w.run(3)
		require.Zero(t, w.signer.calls, name)
		w.unpaid(in)
	}
}

func TestRejectedByBuildFailsWithoutAnythingSigned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{family: chain.UTXOFamily})
	w.fund(w.key(), "BTC", coin)
	in := w.submit(w.intent("a", 100)) // below the network's dust limit
	w.run(2)
	require.Equal(t, outgoing.Failed, w.last("a").State)
	require.Empty(t, w.last("a").CostTx)
	require.Zero(t, w.signer.calls)
	w.unpaid(in)
	w.sound()
}

// TestK05_RefusedAfterALostAnswerIsUsedUp: a signer has seen the transaction of a payout, does not answer, and
// refuses it when it is back, because its limit is used up or its keys are not those of today. What it has
// seen goes back to ourselves, so that others are paid, and the payout waits until the signer takes
// it: it fails only where an operator has cancelled it.
func TestK05_RefusedAfterALostAnswerIsUsedUp(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		families(t, func(t *testing.T, w *world) {
			in := w.seenAndRefused()
			w.run(14)
			// Nobody else ever gets what the signer knows as a's.
			other := w.submit(w.intent("b", coin))
			w.run(14)
			w.paid(other)
			w.unpaid(in)
			v := w.get("a")
			require.Equal(t, []any{outgoing.Waiting, outgoing.ReasonSigner, -1}, []any{v.State, v.Reason, w.nonceOf("a")})
			require.Equal(t, []outgoing.State{outgoing.Waiting, outgoing.Waiting}, w.states("a"), "and what it has cost")
			require.Positive(t, w.last("a").Cost)
			if cancelled {
				_, _, err := w.Net.CancelTransaction(w.ctx, "a", w.word("a"))
				require.NoError(t, err)
				w.run(3)
				require.Equal(t, outgoing.Failed, w.last("a").State)
			}
			w.signer.refuses = ""
			w.run(60)
			if cancelled {
				w.unpaid(in)
			} else {
				w.paid(in)
			}
			w.sound()
		})
	}
}

// TestK05_RefusedAfterAHalt: a payout whose transaction a signer has seen was halted, and the signer refuses it
// after that. It waits as any that a signer refuses.
func TestK05_RefusedAfterAHalt(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.signer.lose = 1
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.halt(outgoing.Scope{})
		w.run(20)
		require.Equal(t, outgoing.ReasonHalted, w.get("a").Reason)
		w.signer.refuses = "a"
		w.lift(outgoing.Scope{})
		w.run(40)
		require.Equal(t, []any{outgoing.Waiting, outgoing.ReasonSigner}, []any{w.get("a").State, w.get("a").Reason})
		w.signer.refuses = ""
		w.run(60)
		w.paid(in)
		require.NotContains(t, w.states("a"), outgoing.Failed)
		w.sound()
	})
}

// TestK05_EarlierOfTwoThatUseItUpLands: what uses up the coins of such a payout is replaced, and the cheaper one of
// the two is mined. The payout starts again all the same.
func TestK05_EarlierOfTwoThatUseItUpLands(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.seenAndRefused()
		level := w.chain.FeeLevel()
		for n := 0; len(w.attempts("a")) == 0; n++ {
			require.Less(t, n, 100)
			w.advance(poll)
			require.NoError(t, w.step())
		}
		w.chain.SetFeeLevel(2 * level)
		for n := 0; len(w.attempts("a")) == 1; n++ {
			require.Less(t, n, 100)
			w.advance(stuck)
			require.NoError(t, w.step())
		}
		first := w.attempts("a")[0].Tx
		w.chain.SetFeeLevel(0)
		w.chain.Drop(w.chain.Mempool()...)
		require.NoError(t, w.chain.Resend(first))
		w.chain.MineOnly(first)
		require.NoError(t, w.step())
		require.Equal(t, outgoing.ReasonSigner, w.get("a").Reason)
		w.run(20)
		w.signer.refuses = ""
		w.run(60)
		w.paid(in)
		require.NotContains(t, w.states("a"), outgoing.Failed)
		w.sound()
	})
}

// seenAndRefused is an order "a" whose transaction the signer has seen: its answer was lost, and from now on it refuses it.
func (w *world) seenAndRefused() chain.Intent {
	w.t.Helper()
	w.signer.lose = 1
	in := w.submit(w.intent("a", coin))
	require.NoError(w.t, w.step())
	w.signer.refuses = "a"
	return in
}

// word is an operator's, that an order is cancelled.
func (w *world) word(order string) *outgoing.Recorded {
	return &outgoing.Recorded{ID: "cancels " + order, Op: outgoing.Operation{At: w.Net.Now(), Kind: outgoing.OpCancel, Object: order, By: "ann", Reason: "a mistake"}}
}

// nonceOf is the nonce that an order has, −1 = none.
func (w *world) nonceOf(order string) int {
	w.t.Helper()
	v, _, _, err := outgoing.Intents.One(w.ctx, w.store, storage.Network(w.gas), order)
	require.NoError(w.t, err)
	return int(v.Nonce)
}

// TestK05_RefusedOnceIsAskedForAgain: a signer that is back refuses what it has seen for a moment. Nothing
// is used up for that: the same transaction is sent when it signs it.
func TestK05_RefusedOnceIsAskedForAgain(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.signer.lose = 1
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.signer.fail = []error{fmt.Errorf("%w: above its limit", chain.ErrRefused)}
		w.run(14)
		w.paid(in)
		require.Len(t, w.attempts("a"), 1)
		w.sound()
	})
}

// TestK05_CancelledWhileTheSignerRefuses: an operator cancels a payout whose transaction a signer has seen
// and refuses: it fails, whatever the signer says meanwhile.
func TestK05_CancelledWhileTheSignerRefuses(t *testing.T) {
	t.Parallel()
	for after := range 6 {
		families(t, func(t *testing.T, w *world) {
			in := w.seenAndRefused()
			w.run(after)
			_, _, err := w.Net.CancelTransaction(w.ctx, "a", w.word("a"))
			require.NoError(t, err)
			w.signer.fail = []error{errAway, errAway}
			w.run(30)
			w.signer.refuses = ""
			w.run(30)
			w.unpaid(in)
			require.Equal(t, outgoing.Failed, w.last("a").State, "after %d", after)
			w.sound()
		})
	}
}

// What uses up a nonce for what was set aside before asks the operator's float for no more,
// which may be empty by then.
func TestK05_UsedUpWithinWhatWasSetAside(t *testing.T) {
	t.Parallel()
	asked := 0
	w := funded(t, setup{change: func(c *outgoing.Config) {
		c.CheckGasBudget = func(context.Context, chain.Intent, ledger.Amount) (bool, error) { asked++; return asked == 1, nil }
	}})
	in := w.seenAndRefused()
	used := func() bool { return slices.ContainsFunc(w.heard, func(o outgoing.Outcome) bool { return o.Cost > 0 }) }
	for n := 0; !used(); n++ {
		require.Less(t, n, 30)
		w.run(1)
	}
	require.Equal(t, 1, asked, "once, until the payout starts again")
	w.unpaid(in)
	w.sound()
}

// An order that needs no confirmations is not executed by the transaction that uses up what
// a signer may have signed for it, once a node has that one.
func TestK05_UsedUpIsNotExecutedWithoutConfirmations(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.intent("a", coin)
		in.Confirmations = 0
		w.submit(in)
		w.signer.lose = 1
		require.NoError(t, w.step())
		w.signer.refuses = "a"
		for range 10 {
			w.advance(poll)
			require.NoError(t, w.step())
		}
		w.run(14)
		w.unpaid(in)
		require.NotContains(t, w.states("a"), outgoing.Executed)
		require.Positive(t, w.last("a").Cost)
		w.sound()
	})
}

func TestK05_ReplacementThatIsNotSignedChangesNothing(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.stick()
		refused := fmt.Errorf("%w: limit", chain.ErrRefused)
		w.signer.fail = []error{errAway, errAway, refused, refused}
		w.run(13)
		require.Len(t, w.attempts("a"), 1)
		w.chain.SetFeeLevel(0) // the first is mined while the signer is away
		w.run(14)
		w.paid(in)
		require.Len(t, w.attempts("a"), 1)
		require.False(t, w.get("a").Signing)
		w.sound()
	})
}

func TestW04_MalleatedTransactionSettles(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		tx, err := w.chain.Malleate(w.last("a").Tx)
		require.NoError(t, err)
		w.alien[tx] = true
		w.run(12)
		w.paid(in)
		require.Equal(t, outgoing.Final, w.last("a").State)
		require.Equal(t, tx, w.last("a").CostTx)
		// The change is a coin under the hash that was mined.
		b := w.submit(w.intent("b", 4*coin))
		w.run(14)
		w.paid(b)
		w.sound()
	})
}

func TestR05_ExecutedThenRevertedIsSentAnewAfterItsCostWasTold(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	in := w.intent("a", 2_000_000)
	in.Currency = "USDT"
	w.submit(in)
	w.run(3)
	require.Equal(t, outgoing.Executed, w.state("a"))
	first := w.last("a").Tx
	// After a reorg the token is paused, and the same bytes revert for good.
	_, err := w.chain.Reorg(3)
	require.NoError(t, err)
	w.chain.SetBehaviour("0xusdt", sim.Behaviour{Paused: true})
	w.run(4)
	w.refuse = context.Canceled // the owner cannot book the cost now
	w.run(8)
	require.Equal(t, outgoing.Queued, w.state("a"))
	ok, err := w.Net.Cancel(w.ctx, "a")
	require.NoError(t, err)
	require.False(t, ok, "it was executed once: it is never given up")
	w.chain.SetBehaviour("0xusdt", sim.Behaviour{})
	w.refuse = nil
	w.run(20)
	w.paid(in)
	require.NotContains(t, w.states("a"), outgoing.Failed)
	var costs []string
	for _, o := range w.heard {
		if o.CostTx != "" {
			costs = append(costs, o.CostTx)
			require.Positive(t, o.Cost)
		}
	}
	require.Len(t, costs, 2)
	require.Equal(t, first, costs[0])
	w.sound()
}

func TestInFlightSumsWhatMayStillBeTaken(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	w.submit(w.intent("a", coin))
	w.submit(w.intent("b", coin))
	other := w.intent("c", coin)
	other.Tenant = "t2"
	w.submit(other)
	require.NoError(t, w.step())
	var one ledger.Amount
	for _, a := range w.rows(outgoing.Attempts.Table) {
		one = outgoing.Attempts.Value(a).MaxCost
	}
	all, err := w.Net.InFlight(w.ctx, "")
	require.NoError(t, err)
	require.Equal(t, 3*one, all)
	mine, err := w.Net.InFlight(w.ctx, "t2")
	require.NoError(t, err)
	require.Equal(t, one, mine)
}
