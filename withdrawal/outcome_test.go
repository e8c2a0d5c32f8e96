package withdrawal_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// handed is a world with one withdrawal of 100 USDT that was handed over.
func handed(t tb) (*world, string) {
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	w.step()
	require.Equal(w, withdrawal.Handed, w.get(v.ID).Stage)
	return w, v.ID
}

func TestTheWayToCompleted(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	w.advance(time.Second)
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	v := w.get(id)
	require.Equal(t, []any{withdrawal.Processing, "aa", w.clock()}, []any{v.Status, v.Tx, v.ProcessedAt})
	w.advance(time.Second)
	w.tell(id, withdrawal.OutcomeSigned, "bb", 0) // a replacement
	require.Equal(t, "bb", w.get(id).Tx)
	w.advance(time.Second)
	w.tell(id, withdrawal.OutcomeExecuted, "aa", 1) // the first one landed
	v = w.get(id)
	require.Equal(t, []any{withdrawal.Completed, "aa", int64(1), w.clock()}, []any{v.Status, v.Tx, v.Confirmations, v.CompletedAt})
	w.tell(id, withdrawal.OutcomeSettled, "aa", 30)
	require.EqualValues(t, 30, w.get(id).Confirmations)
	require.Equal(t, []string{"pending>processing", "processing>completed"}, w.events(id))
	done := w.get(id)
	w.advance(time.Minute)
	w.tell(id, withdrawal.OutcomeSettled, "aa", 30)
	require.Equal(t, done.UpdatedAt, w.get(id).UpdatedAt, "that is known")
	require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{
		Intent: id, State: withdrawal.OutcomeExecuted, Tx: "bb", Confirmations: 31, At: done.CreatedAt,
	}))
	late := w.get(id)
	require.Equal(t, []any{"aa", int64(30), done.UpdatedAt}, []any{late.Tx, late.Confirmations, late.UpdatedAt}, "that is old")
	w.sound()
}

func TestEventBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	in := usdt("100")
	in.CustomID, in.CallbackURL = "mine", "https://example.com/hook"
	v := w.create(in)
	require.Empty(t, w.events(v.ID), "creation is told by its response")
	executed(w, v.ID)
	e, row, ok, err := webhook.Events.One(w.ctx, w.store, storage.Tenant(tenant), v.ID+"/000002")
	require.NoError(t, err)
	require.True(t, ok)
	line, _, ok, err := storage.Activities.One(w.ctx, w.store, storage.Tenant(tenant), v.ID)
	require.NoError(t, err)
	require.True(t, ok)
	require.JSONEq(t, `{"custom_id":"mine","network_fee":"2.00000000"}`, string(line.Metadata))
	require.Equal(t, in.CallbackURL, e.URL)
	require.Equal(t, w.clock(), row.Due)
	require.JSONEq(t, `{"event":"withdrawal_status_update","timestamp":"2026-11-20T10:00:00.000Z","data":{
		"withdrawal_id":"`+v.ID+`","status":"completed","previous_status":"processing","amount":"97.50000000",
		"currency":"USDTTRC20","address":"Tdest","transaction_hash":"tx","network_fee":"2.00000000","custom_id":"mine",
		"metadata":{"processed_at":"2026-11-20T10:00:00.000Z"}}}`, e.Body)
}

// What was signed before the order was ended is old news; what was signed later contradicts.
func TestSignedBeforeItWasEnded(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	signed := func(at time.Time) {
		require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{Intent: id, State: withdrawal.OutcomeSigned, Tx: "aa", At: at}))
	}
	before := w.clock().Add(time.Minute)
	w.advance(time.Hour)
	w.tell(id, withdrawal.OutcomeCancelled, "", 0)
	require.Equal(t, withdrawal.Cancelled, w.get(id).Status)
	signed(before)
	require.Zero(t, w.count(withdrawal.NoticeConflict))
	w.advance(time.Hour)
	signed(w.clock())
	require.Equal(t, 1, w.count(withdrawal.NoticeConflict))
	w.sound()
}

// What was signed before all of it was dead is old news, too. A host that gives no Notify
// hears nothing of what contradicts.
func TestSignedBeforeItWasDead(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		w := newWorld(t, func(c *withdrawal.Config) {
			if deaf {
				c.Notify = nil
			}
		})
		w.fund("master", "USDTTRC20", "1000")
		id := w.create(usdt("100")).ID
		w.step()
		w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
		before := w.clock().Add(time.Minute)
		w.advance(time.Hour)
		w.tell(id, withdrawal.OutcomeFailed, "", 0)
		require.Equal(t, withdrawal.Failed, w.get(id).Status)
		for _, at := range []time.Time{before, w.clock().Add(time.Minute)} {
			require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{Intent: id, State: withdrawal.OutcomeSigned, Tx: "bb", At: at}))
			if !deaf && at.Equal(before) {
				require.Zero(t, w.count(withdrawal.NoticeConflict))
			} else if !deaf {
				require.Equal(t, 1, w.count(withdrawal.NoticeConflict))
			}
		}
		w.sound()
	}
}

// What is told again changes nothing; the batch of a payment is kept when it is told.
func TestToldAgainIsNoUpdate(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	first := w.get(id)
	w.advance(time.Minute)
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	require.Equal(t, first.UpdatedAt, w.get(id).UpdatedAt)
	w.advance(time.Minute)
	require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{Intent: id, State: withdrawal.OutcomeSigned, Tx: "aa", Batch: "b", At: w.clock()}))
	require.Equal(t, []any{"b", w.clock()}, []any{w.get(id).BatchID, w.get(id).UpdatedAt})
	w.sound()
}

// W14: whatever is missing on the payout side, the withdrawal waits, visibly.
func TestW14_WaitsQueued(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{
		Intent: id, State: withdrawal.OutcomeWaiting, Reason: "hot_short", At: w.clock(),
	}))
	v := w.get(id)
	require.Equal(t, []any{withdrawal.Pending, "hot_short"}, []any{v.Status, v.Waiting})
	w.advance(24 * time.Hour)
	w.step()
	require.Len(t, w.payouts.intents, 1)
	require.EqualValues(t, 100_000000, w.books("USDTTRC20")["H"], "no clock ends a hold")
	w.tell(id, withdrawal.OutcomeQueued, "", 0)
	require.Empty(t, w.get(id).Waiting)
	require.Empty(t, w.events(id))
	require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{
		Intent: id, State: withdrawal.OutcomeWaiting, Reason: "gas_short", At: w.clock(),
	}))
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	v = w.get(id)
	require.Equal(t, []any{withdrawal.Processing, "", true}, []any{v.Status, v.Waiting, v.WaitingSince.IsZero()}, "it waits no more")
}

// W14: two attempts race; whichever lands settles once, with the fee quoted.
func TestW14_ReplacementRaceSettlesOnce(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	before := w.books("USDTTRC20")
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	w.tell(id, withdrawal.OutcomeSigned, "bb", 0)
	for range 2 {
		for _, tx := range []string{"aa", "bb"} {
			w.tell(id, withdrawal.OutcomeExecuted, tx, 1)
			w.tell(id, withdrawal.OutcomeSettled, tx, 40)
		}
	}
	require.Equal(t, "H -100, w -100, c +97.5, P +0.5, N +2", w.books("USDTTRC20").since(before, "USDTTRC20"))
	require.Len(t, w.events(id), 2)
	w.sound()
}

// W10: after a refund with proof, news that it landed pays nobody twice and is
// loud; and without proof there is no refund.
func TestW10_FailedThenConfirms(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	w.advance(1000 * time.Hour)
	w.step()
	require.Equal(t, withdrawal.Processing, w.get(id).Status, "time proves nothing")
	w.tell(id, withdrawal.OutcomeFailed, "aa", 0)
	before := w.books("USDTTRC20")
	require.Zero(t, before["H"])
	w.notices = nil
	w.advance(time.Second)
	w.tell(id, withdrawal.OutcomeExecuted, "aa", 1)
	w.tell(id, withdrawal.OutcomeSettled, "aa", 50)
	require.Empty(t, w.books("USDTTRC20").since(before, "USDTTRC20"))
	require.Equal(t, withdrawal.Failed, w.get(id).Status)
	require.Equal(t, []string{"pending>processing", "processing>failed"}, w.events(id))
	require.Len(t, w.notices, 2)
	require.Equal(t, withdrawal.NoticeConflict, w.notices[0].Kind)
	w.sound()
}

// TestFN08_PaidAfterItHadEnded: the recipient of a withdrawal that is failed, or cancelled, was paid. It waits for an
// operator, who ends that by TakeDelivered: no money moves, and what is told again later does not bring it back.
func TestFN08_PaidAfterItHadEnded(t *testing.T) {
	t.Parallel()
	for state, status := range map[string]withdrawal.Status{withdrawal.OutcomeFailed: withdrawal.Failed, withdrawal.OutcomeCancelled: withdrawal.Cancelled} {
		w, id := handed(t)
		_, err := w.TakeDelivered(w.ctx, tenant, id, "ann", "looked")
		require.ErrorIs(t, err, withdrawal.ErrNotShort)
		w.tell(id, state, "", 0)
		_, err = w.TakeDelivered(w.ctx, tenant, id, "ann", "looked")
		require.ErrorIs(t, err, withdrawal.ErrNotShort, "it was paid by nobody")
		before := w.books("USDTTRC20")
		w.advance(time.Second)
		w.tell(id, withdrawal.OutcomeExecuted, "aa", 1)
		v := w.get(id)
		require.Equal(t, []any{status, withdrawal.WaitingAltered, "", "aa", v.Amount}, []any{v.Status, v.Waiting, v.WaitingReason(), v.Tx, v.Delivered})
		require.Equal(t, "it is "+string(status)+", and its transaction aa has paid its recipient", v.PaidAfterEnd())
		_, err = w.PayMissing(w.ctx, tenant, id, "ann", "looked")
		require.ErrorIs(t, err, withdrawal.ErrNotShort)
		v, err = w.TakeDelivered(w.ctx, tenant, id, "ann", "looked")
		require.NoError(t, err)
		require.Equal(t, []any{status, "", "looked", ""}, []any{v.Status, v.Waiting, v.Reason, v.PaidAfterEnd()})
		w.advance(time.Second)
		w.tell(id, withdrawal.OutcomeSettled, "aa", 50)
		require.Empty(t, w.get(id).PaidAfterEnd(), "it is decided")
		require.Empty(t, w.books("USDTTRC20").since(before, "USDTTRC20"))
		w.sound()
	}
}

// A completed withdrawal stays completed: sent again it shows the new hash, and
// it is never refunded.
func TestW10_CompletedIsNeverRefunded(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	w.tell(id, withdrawal.OutcomeExecuted, "aa", 1)
	before := w.books("USDTTRC20")
	w.advance(time.Second)
	w.tell(id, withdrawal.OutcomeSigned, "cc", 0)
	require.Equal(t, "cc", w.get(id).Tx)
	require.Equal(t, withdrawal.NoticeResent, w.notices[0].Kind)
	w.tell(id, withdrawal.OutcomeFailed, "cc", 0)
	w.tell(id, withdrawal.OutcomeCancelled, "", 0)
	require.Equal(t, withdrawal.Completed, w.get(id).Status)
	require.Empty(t, w.books("USDTTRC20").since(before, "USDTTRC20"))
	require.Equal(t, []string{"pending>processing", "processing>completed"}, w.events(id))
	w.sound()
}

// TestFT06_StuckIsShownThoughNobodyHeardThatItWasSigned: the outcomes before were lost, so
// the first that a pending withdrawal hears of its transaction is why that is in no block.
func TestFT06_StuckIsShownThoughNobodyHeardThatItWasSigned(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{withdrawal.WaitingStuck, withdrawal.WaitingOccupied} {
		w, id := handed(t)
		w.advance(6 * time.Hour)
		require.Equal(t, withdrawal.Pending, w.get(id).Status)
		o := withdrawal.Outcome{Intent: id, State: withdrawal.OutcomeSigned, Reason: reason, Tx: "aa", At: w.clock()}
		require.NoError(t, w.HandleOutcome(w.ctx, tenant, o))
		v := w.get(id)
		require.Equal(t, []any{withdrawal.Processing, "aa", reason, w.clock()}, []any{v.Status, v.Tx, v.Waiting, v.WaitingSince})
		require.Equal(t, withdrawal.ShownStuck, v.WaitingReason())
		require.Equal(t, []string{"pending>processing"}, w.events(id))
		w.advance(time.Hour)
		w.tell(id, withdrawal.OutcomeExecuted, "aa", 1)
		v = w.get(id)
		require.Equal(t, []any{withdrawal.Completed, ""}, []any{v.Status, v.Waiting})
		w.sound()
	}
}

// TestFT06_WhatStartsAgainShowsWhyItWaits: nodes have refused a signed transaction for good,
// so that the payout starts again, and waits. The withdrawal is processing, and shows why it
// waits and since when, until a transaction is signed again.
func TestFT06_WhatStartsAgainShowsWhyItWaits(t *testing.T) {
	t.Parallel()
	for stored, shown := range map[string]string{
		"hot_short": withdrawal.ShownHotShort, "gas_float_short": withdrawal.ShownGasShort, "signer": withdrawal.ShownStuck,
		"altered": withdrawal.ShownStuck, "below_cost": withdrawal.ShownBelowCost, "halted": withdrawal.ShownHalted,
	} {
		w, id := handed(t)
		reason := func() string { v := w.get(id); return v.WaitingReason() }
		w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
		late := withdrawal.Outcome{Intent: id, State: withdrawal.OutcomeSigned, Tx: "aa", At: w.clock()}
		w.advance(time.Minute)
		waits := withdrawal.Outcome{Intent: id, State: withdrawal.OutcomeWaiting, Reason: stored, At: w.clock()}
		require.NoError(t, w.HandleOutcome(w.ctx, tenant, waits))
		since := w.clock()
		w.advance(time.Minute)
		require.NoError(t, w.HandleOutcome(w.ctx, tenant, waits))
		require.NoError(t, w.HandleOutcome(w.ctx, tenant, late))
		v := w.get(id)
		require.Equal(t, []any{withdrawal.Processing, shown, since}, []any{v.Status, v.WaitingReason(), v.WaitingSince}, stored)
		w.tell(id, withdrawal.OutcomeQueued, "", 0)
		require.Empty(t, reason(), "its turn is all that it waits for")
		require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{Intent: id, State: withdrawal.OutcomeWaiting, Reason: stored, At: w.clock()}))
		require.Equal(t, shown, reason())
		w.advance(time.Minute)
		w.tell(id, withdrawal.OutcomeSigned, "bb", 0)
		v = w.get(id)
		require.Equal(t, []any{"", "bb"}, []any{v.Waiting, v.Tx}, stored)
		w.sound()
	}
}

// A node that does not answer while a payout fails alarms nobody before StuckAfter, and hides no sign that its
// rows were edited. Of these its owner hears once, also where its time was edited.
func TestFS02_NodeThatDoesNotAnswerHidesNoEdit(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	signed := w.clock()
	waits := func(reason string, at time.Time) {
		t.Helper()
		require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{Intent: id, State: withdrawal.OutcomeWaiting, Reason: reason, At: at}))
	}
	w.advance(time.Minute)
	waits("node", w.clock())
	require.Equal(t, "node", w.get(id).Waiting)
	_, row, _, err := withdrawal.Waits.One(w.ctx, w.store, storage.Tenant(tenant), id)
	require.NoError(t, err)
	require.Equal(t, w.clock().Add(15*time.Minute), row.Due, "when the operator is told")
	for range 3 {
		waits("altered", signed.Add(-time.Hour))
		require.Equal(t, withdrawal.WaitingAltered, w.get(id).Waiting)
		waits("node", w.clock())
		require.Equal(t, withdrawal.WaitingAltered, w.get(id).Waiting)
	}
	told := 0
	for _, n := range w.notices {
		if n.Kind == withdrawal.NoticeAltered {
			told++
		}
	}
	require.Equal(t, 1, told)
	w.tell(id, withdrawal.OutcomeFailed, "", 0)
	require.Equal(t, []any{withdrawal.Failed, ""}, []any{w.get(id).Status, w.get(id).Waiting})
	w.sound()
}

// Facts of one landing in any order, any number of times, with any of them
// missing: one settlement, the same end.
func TestOutcomesInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, id := handed(t)
		before := w.books("USDTTRC20")
		at := w.clock()
		facts := []withdrawal.Outcome{
			{Intent: id, State: withdrawal.OutcomeQueued, At: at},
			{Intent: id, State: withdrawal.OutcomeWaiting, Reason: "node", At: at.Add(1e6)},
			{Intent: id, State: withdrawal.OutcomeSigned, Tx: "aa", At: at.Add(2e6)},
			{Intent: id, State: withdrawal.OutcomeSigned, Tx: "bb", At: at.Add(3e6)},
			{Intent: id, State: withdrawal.OutcomeExecuted, Tx: "aa", Confirmations: 1, Amount: 97_500000, At: at.Add(4e6)},
			{Intent: id, State: withdrawal.OutcomeSettled, Tx: "aa", Confirmations: 20, Amount: 97_500000, At: at.Add(5e6)},
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(facts)-1), 0, 15).Draw(t, "order") {
			require.NoError(t, w.HandleOutcome(w.ctx, tenant, facts[i]))
		}
		require.NoError(t, w.HandleOutcome(w.ctx, tenant, facts[5]))
		v := w.get(id)
		require.Equal(t, []any{withdrawal.Completed, "aa", int64(20)}, []any{v.Status, v.Tx, v.Confirmations})
		require.Equal(t, "H -100, w -100, c +97.5, P +0.5, N +2", w.books("USDTTRC20").since(before, "USDTTRC20"))
		require.Equal(t, []string{"pending>processing", "processing>completed"}, w.events(id))
		require.Empty(t, w.notices)
		w.sound()
	})
}

func TestRequiredConfirmations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.required = 3
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	w.step()
	require.EqualValues(t, 3, w.payouts.intents[v.ID].Confirmations)
	w.tell(v.ID, withdrawal.OutcomeExecuted, "aa", 2)
	require.Equal(t, withdrawal.Processing, w.get(v.ID).Status)
	w.tell(v.ID, withdrawal.OutcomeExecuted, "aa", 3)
	require.Equal(t, withdrawal.Completed, w.get(v.ID).Status)
}

func TestStrangeOutcomes(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	require.ErrorIs(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{Intent: "nobody", State: withdrawal.OutcomeSigned}), withdrawal.ErrNotFound)
	require.Error(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{Intent: id, State: "melted"}))
	require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{
		Intent: id, State: withdrawal.OutcomeExecuted, Tx: "aa", Confirmations: 1, Amount: 1, At: w.clock(),
	}))
	require.Equal(t, withdrawal.NoticeConflict, w.notices[0].Kind, "the recipient got another amount")
	w.sound()
}

// L13: whatever happens in whatever order, a hold has a live owner and a live
// owner has its hold.
func TestL13_HoldsHaveLiveOwners(t *testing.T) {
	t.Parallel()
	rapid.Check(t, holdsHaveOwners)
}

func holdsHaveOwners(t *rapid.T) {
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "500")
	var ids []string
	pick := func(t *rapid.T) string {
		if len(ids) == 0 {
			t.Skip("none yet")
		}
		return rapid.SampledFrom(ids).Draw(t, "id")
	}
	states := []string{
		withdrawal.OutcomeQueued, withdrawal.OutcomeWaiting, withdrawal.OutcomeSigned, withdrawal.OutcomeExecuted,
		withdrawal.OutcomeSettled, withdrawal.OutcomeFailed, withdrawal.OutcomeCancelled,
	}
	steps := map[string]func(*rapid.T){
		"create": func(t *rapid.T) {
			in := usdt(fmt.Sprint(rapid.IntRange(4, 300).Draw(t, "amount")))
			in.FinalAmount = rapid.Bool().Draw(t, "final")
			if v, err := w.Create(w.ctx, tenant, in); err == nil {
				ids = append(ids, v.ID)
			}
		},
		"step":    func(*rapid.T) { w.advance(time.Minute); w.step() },
		"cancel":  func(t *rapid.T) { _, _ = w.Cancel(w.ctx, tenant, pick(t)) },
		"hold":    func(t *rapid.T) { _, _ = w.Hold(w.ctx, tenant, pick(t), "ann", "") },
		"release": func(t *rapid.T) { _, _ = w.Release(w.ctx, tenant, pick(t), "ann", "") },
		"approve": func(t *rapid.T) { _, _ = w.Approve(w.ctx, tenant, pick(t), "approver", "") },
		"refuse":  func(t *rapid.T) { _, _ = w.Refuse(w.ctx, tenant, pick(t), "approver", "no") },
		"verdict": func(t *rapid.T) {
			w.verdict = rapid.SampledFrom([]withdrawal.Verdict{withdrawal.Allow, withdrawal.AskReview, withdrawal.Refuse}).Draw(t, "verdict")
		},
		"tell": func(t *rapid.T) {
			w.tell(pick(t), rapid.SampledFrom(states).Draw(t, "state"), "tx", rapid.Int64Range(0, 3).Draw(t, "confirmations"))
		},
		"": func(*rapid.T) { w.sound() },
	}
	t.Repeat(steps)
}

// FuzzWithdrawal plays the same with a fuzzer's choices.
func FuzzWithdrawal(f *testing.F) {
	for seed := range uint64(4) {
		choices := make([]byte, 4096)
		_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(choices)
		f.Add(choices)
	}
	f.Fuzz(rapid.MakeFuzz(holdsHaveOwners))
}
