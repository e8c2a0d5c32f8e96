package outgoing_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// TestFN08_SettledPaymentThatAReorgUndoesIsSentAgain: on both families the owner is told, and
// it is sent until it lands, once. Also over a crash at any place, also where
// nodes forget it again and again, and while it is halted it is not sent.
func TestFN08_SettledPaymentThatAReorgUndoesIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at += stride() {
				w := funded(t, setup{family: family, noFinality: true})
				in := w.submit(w.intent("a", coin))
				start := w.clock()
				w.run(12)
				require.Equal(t, outgoing.Final, w.state("a"))
				tx, cost := w.last("a").Tx, w.last("a").Cost
				w.points.seen, w.points.dieAt = nil, at
				w.evict(tx)
				w.unpaid(in)
				w.halt(outgoing.Scope{})
				for w.die(func() { require.NoError(t, w.Net.Recheck(w.ctx, start)) }) {
					continue // it is done anew
				}
				for range 4 {
					w.die(func() { w.run(1) })
				}
				v := w.get("a")
				require.Equal(t, []any{outgoing.Signed, outgoing.ReasonReorged, tx}, []any{v.State, v.Reason, v.Tx}, "place %d", at)
				require.Equal(t, outgoing.ReasonReorged, w.last("a").Reason, "its owner is told")
				w.unpaid(in)
				require.Empty(t, w.chain.Mempool(), "halted")
				w.lift(outgoing.Scope{})
				w.die(func() { _ = w.step() })
				w.forget()
				for range 30 {
					w.die(func() { w.run(1) })
				}
				w.paid(in)
				require.Equal(t, outgoing.Final, w.last("a").State)
				require.Empty(t, w.last("a").Reason)
				require.Equal(t, []outgoing.Landing{{Tx: tx, Cost: cost}}, w.last("a").Undone, "what it cost before is to be taken back")
				if at > 0 && !w.died {
					require.Greater(t, at, 10)
					return
				}
			}
		})
	}
}

// TestFN08_SettledPaymentThatIsMinedAgainAsRevertedIsSentAnew: a reorg past finality puts
// the transaction into a block in which it does nothing. The payment is sent anew once that
// is final, and lands once.
func TestFN08_SettledPaymentThatIsMinedAgainAsRevertedIsSentAnew(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{noFinality: true})
	in := w.intent("a", 2_000_000)
	in.Currency = "USDT"
	w.submit(in)
	start := w.clock()
	w.run(12)
	require.Equal(t, outgoing.Final, w.state("a"))
	first := w.last("a").Tx
	w.chain.SetBehaviour("0xusdt", sim.Behaviour{Paused: true})
	_, err := w.chain.Reorg(int(w.chain.Height()-w.chain.Transfers(in.To)[0].Block.Height) + 1)
	require.NoError(t, err)
	w.run(1)
	w.unpaid(in)
	require.NoError(t, w.Net.Recheck(w.ctx, start))
	w.run(3)
	w.chain.SetBehaviour("0xusdt", sim.Behaviour{})
	w.run(40)
	w.paid(in)
	require.Equal(t, outgoing.Final, w.state("a"))
	require.NotEqual(t, first, w.last("a").Tx)
	require.Len(t, w.attempts("a"), 2)
	require.NotContains(t, w.states("a"), outgoing.Failed)
	w.sound()
}

// TestFN08_SettledPaymentThatIsStillThereStaysSettled: a fork that did not touch it costs a
// look, and nobody is told.
func TestFN08_SettledPaymentThatIsStillThereStaysSettled(t *testing.T) {
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		w := funded(t, setup{family: family, noFinality: true})
		start := w.clock()
		in := w.submit(w.intent("a", coin))
		w.run(12)
		heard := len(w.heard)
		require.NoError(t, w.Net.Recheck(w.ctx, w.clock().Add(time.Hour)))
		require.True(t, w.get("a").Due.IsZero(), "it was settled before")
		require.NoError(t, w.Net.Recheck(w.ctx, start))
		require.False(t, w.get("a").Due.IsZero())
		w.run(3)
		require.True(t, w.get("a").Due.IsZero())
		require.Equal(t, outgoing.Final, w.state("a"))
		require.Len(t, w.heard, heard)
		w.paid(in)
		w.sound()
	}
}

// TestFN08_AllThatATransactionPaidAreToldTogether: each of the orders that one transaction
// paid hears that it was undone, and that it landed again.
func TestFN08_AllThatATransactionPaidAreToldTogether(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily, noFinality: true})
	var all []chain.Intent
	start := w.clock()
	for _, id := range []string{"a", "b", "c"} {
		all = append(all, w.submit(w.intent(id, coin)))
	}
	w.run(12)
	w.evict(w.last("a").Tx)
	require.NoError(t, w.Net.Recheck(w.ctx, start))
	w.run(30)
	for _, in := range all {
		w.paid(in)
		states := w.states(in.ID)
		require.Equal(t, outgoing.Final, states[len(states)-1])
		require.Len(t, slices.DeleteFunc(states, func(s outgoing.State) bool { return s != outgoing.Final }), 2, in.ID)
		require.Len(t, w.last(in.ID).Undone, 1, "what may be spent on each is set aside again")
	}
}

// TestFN08_SettledPaymentIsNeverTakenBack: whoever was told that it is settled, also at the first look, is paid. A
// fork undoes it, its fee is far above its bound, and others wait behind its nonce: it keeps that, and no
// operator can cancel it.
func TestFN08_SettledPaymentIsNeverTakenBack(t *testing.T) {
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		w := funded(t, setup{family: family, noFinality: true})
		in := w.intent("a", coin)
		in.MaxCost = 10_000
		w.submit(in)
		start := w.clock()
		require.NoError(t, w.step())
		w.chain.Mine(12) // nobody looks meanwhile
		w.run(1)
		require.Equal(t, []outgoing.State{outgoing.Signed, outgoing.Final}, w.states("a"))
		level := w.chain.FeeLevel()
		w.chain.SetFeeLevel(1000 * level)
		w.evict(w.last("a").Tx)
		require.NoError(t, w.Net.Recheck(w.ctx, start))
		behind := w.submit(w.intent("b", coin))
		w.run(20)
		require.False(t, w.get("a").Cancelling)
		_, _, err := w.Net.CancelTransaction(w.ctx, "a", w.word("a"))
		require.ErrorIs(t, err, outgoing.ErrHelp)
		w.run(20)
		w.chain.SetFeeLevel(level)
		w.run(40)
		w.paid(in)
		w.paid(behind)
		require.NotContains(t, w.states("a"), outgoing.Failed)
		w.sound()
	}
}

// TestFN08_CostInTheOtherBranch: a settled transaction is mined again by itself, in a block in which it costs
// another price. What it cost before is taken back, and what it costs now is told.
func TestFN08_CostInTheOtherBranch(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{noFinality: true})
	in := w.submit(w.intent("a", coin))
	start := w.clock()
	w.run(12)
	before := w.last("a")
	require.Equal(t, outgoing.Final, before.State)
	w.chain.SetFeeLevel(w.chain.FeeLevel() * 3 / 2)
	_, err := w.chain.Reorg(int(w.chain.Height()-w.chain.Transfers(in.To)[0].Block.Height) + 1)
	require.NoError(t, err)
	w.chain.Mine(1) // before anybody looks
	require.NoError(t, w.Net.Recheck(w.ctx, start))
	w.run(20)
	now := w.last("a")
	st, err := w.chain.Outcome(before.Tx)
	require.NoError(t, err)
	require.NotEqual(t, before.Cost, st.Cost)
	require.Equal(t, []any{outgoing.Final, st.Cost, before.Tx, []outgoing.Landing{{Tx: before.Tx, Cost: before.Cost}}}, []any{now.State, now.Cost, now.CostTx, now.Undone})
	require.NotContains(t, w.states("a")[2:], outgoing.Signed, "it was settled all the time")
	w.paid(in)
	w.sound()
}

// TestFN08_ReopenedBeforeEveryProcessKnewHow: an older process does not know how to take back what a landing cost. Until
// every one does, the same bytes are sent again, and what they cost stays booked. From then on it is as if it had been reopened so.
func TestFN08_ReopenedBeforeEveryProcessKnewHow(t *testing.T) {
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		for _, landsBefore := range []bool{false, true} {
			knows := false
			w := funded(t, setup{family: family, noFinality: true, change: func(c *outgoing.Config) {
				c.Able = func(_ context.Context, a outgoing.Ability) (bool, error) {
					return knows || a != outgoing.AbilityUndone, nil
				}
			}})
			in := w.submit(w.intent("a", coin))
			start := w.clock()
			w.run(12)
			first := w.last("a")
			w.evict(first.Tx)
			if !landsBefore {
				w.chain.SetFeeLevel(3 * w.chain.FeeLevel())
			}
			require.NoError(t, w.Net.Recheck(w.ctx, start))
			w.run(30)
			require.Empty(t, w.last("a").Undone)
			require.Len(t, w.attempts("a"), 1, "nothing dearer is signed")
			require.Equal(t, landsBefore, w.state("a") == outgoing.Final)
			knows = true
			if landsBefore {
				w.evict(first.Tx)
				require.NoError(t, w.Net.Recheck(w.ctx, start))
			}
			w.run(40)
			w.paid(in)
			require.Equal(t, outgoing.Final, w.state("a"))
			require.Equal(t, []outgoing.Landing{{Tx: first.Tx, Cost: first.Cost}}, w.last("a").Undone)
			w.sound()
		}
	}
}

// TestFN08_LessInTheOtherBranch: a settled transaction is mined again by itself, and brings less there. Its owner hears of it.
func TestFN08_LessInTheOtherBranch(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{noFinality: true})
	in := w.intent("a", 2_000_000)
	in.Currency = "USDT"
	w.submit(in)
	start := w.clock()
	w.run(12)
	require.Equal(t, outgoing.Final, w.state("a"))
	w.client.short = 500_000
	require.NoError(t, w.Net.Recheck(w.ctx, start))
	w.run(3)
	require.Equal(t, []any{outgoing.Final, outgoing.ReasonDeliveredLess, ledger.Amount(1_500_000)}, []any{w.last("a").State, w.last("a").Reason, w.last("a").Amount})
	w.client.short = 0
	require.NoError(t, w.Net.Recheck(w.ctx, start))
	w.run(3)
	require.Equal(t, []any{outgoing.Final, outgoing.Reason(""), ledger.Amount(2_000_000)}, []any{w.last("a").State, w.last("a").Reason, w.last("a").Amount})
}

// TestFN08_CancelledPaymentStaysCancelled: an operator has cancelled a payment, and its owner has the amount back. A
// fork takes the transaction out that took its nonce or coins back: that one is sent again, and the payment does not land.
func TestFN08_CancelledPaymentStaysCancelled(t *testing.T) {
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		for _, paid := range []bool{false, true} {
			var log strings.Builder
			w := funded(t, setup{family: family, noFinality: true, change: func(c *outgoing.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }})
			in := w.submit(w.intent("a", coin))
			start := w.clock()
			require.NoError(t, w.step())
			first := w.last("a").Tx
			w.stick()
			_, _, err := w.Net.CancelTransaction(w.ctx, "a", w.word("a"))
			require.NoError(t, err)
			w.run(3)
			w.chain.SetFeeLevel(1)
			w.run(20)
			require.Equal(t, outgoing.Failed, w.state("a"))
			back := w.last("a").CostTx
			w.evict(back)
			if paid {
				require.NoError(t, w.chain.Resend(first))
				w.chain.Mine(1)
			}
			require.NoError(t, w.Net.Recheck(w.ctx, start))
			w.run(20)
			if paid {
				require.Contains(t, log.String(), "failed_order_paid")
				heard := w.last("a")
				require.Equal(t, []any{outgoing.Executed, first, in.Amount}, []any{heard.State, heard.Tx, heard.Amount}, "its owner hears of it")
				require.Equal(t, outgoing.Failed, w.state("a"), "and the order stays what it is")
				continue
			}
			w.unpaid(in)
			st, err := w.chain.Outcome(back)
			require.NoError(t, err)
			require.True(t, st.Final || st.Confirmations > 10, "it has landed again")
		}
	}
}
