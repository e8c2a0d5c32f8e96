package withdrawal_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

func TestT02_HandOverAfterItsDelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *withdrawal.Config) { c.PickupDelay = time.Minute })
	w.fund("master", "XRP", "1000")
	v := w.create(withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: dec("10"), Currency: "XRP", Address: "rX"}, Memo: "7"})
	w.advance(time.Minute - time.Microsecond)
	w.step()
	require.Empty(t, w.payouts.intents, "T02: a delay is over at its end, not before")
	w.advance(time.Microsecond)
	w.step()
	require.Equal(t, chain.Intent{
		ID: v.ID, Purpose: chain.ForWithdrawal, Tenant: tenant, Network: "XRP", Currency: "XRP", To: "rX", Memo: "7",
		Amount: 9_950000, MaxCost: 1000, Confirmations: 1,
	}, w.payouts.intents[v.ID])
	w.advance(time.Hour)
	n, err := w.Step(w.ctx)
	require.NoError(t, err)
	require.Zero(t, n, "what was handed over is not due any more")
}

// W17: the cancel comes while the worker is between noting and submitting, and
// between submitting and noting. One of them wins, never both.
func TestW17_CancelRacesHandOver(t *testing.T) {
	t.Parallel()
	for name, moment := range map[string]string{"before": "before", "after": "after", "after, signed": "signed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fund("master", "USDTTRC20", "1000")
			v := w.create(usdt("100"))
			var cancelErr error
			met := false
			hook := func(in chain.Intent) error {
				if met {
					return nil // the cancel's own
				}
				met = true
				if moment == "signed" {
					require.True(t, w.payouts.sign(v.ID))
				}
				_, cancelErr = w.Cancel(w.ctx, tenant, v.ID)
				return nil
			}
			if moment == "before" {
				w.payouts.before = hook
			} else {
				w.payouts.after = hook
			}
			w.step()
			signed := w.payouts.sign(v.ID)
			if moment == "signed" {
				var state *withdrawal.StateError
				require.ErrorAs(t, cancelErr, &state)
				require.Equal(t, withdrawal.Processing, state.Current)
				require.Equal(t, withdrawal.Pending, w.get(v.ID).Status)
				w.tell(v.ID, withdrawal.OutcomeSigned, "aa", 0)
				require.Equal(t, withdrawal.Processing, w.get(v.ID).Status)
				return
			}
			require.NoError(t, cancelErr)
			require.False(t, signed, "cancelled and signed")
			require.Equal(t, withdrawal.Cancelled, w.get(v.ID).Status)
			require.Equal(t, []string{"pending>cancelled"}, w.events(v.ID))
			w.sound()
		})
	}
}

// W17: many cancels against a worker and a signer, all at once.
func TestW17_OneWinner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "100000")
	var ids []string
	for range 60 {
		ids = append(ids, w.create(usdt("100")).ID)
	}
	var wg sync.WaitGroup
	cancelled := make([]bool, len(ids))
	for i, id := range ids {
		wg.Go(func() {
			_, err := w.Cancel(w.ctx, tenant, id)
			cancelled[i] = err == nil
		})
		wg.Go(func() {
			if w.payouts.sign(id) {
				w.tell(id, withdrawal.OutcomeSigned, "tx", 0)
			}
		})
		wg.Go(func() { _, _ = w.Step(w.ctx) })
	}
	wg.Wait()
	w.step()
	for i, id := range ids {
		signed := w.payouts.sign(id)
		require.NotEqual(t, cancelled[i], signed, "withdrawal %s", id)
		if cancelled[i] {
			require.Equal(t, withdrawal.Cancelled, w.get(id).Status)
			require.Len(t, w.events(id), 1)
		}
	}
	w.sound()
}

func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	kept, handed, done := w.create(usdt("100")), w.create(usdt("100")), w.create(usdt("100"))
	v, err := w.Cancel(w.ctx, tenant, kept.ID)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Cancelled, v.Status)
	w.step()
	executed(w, done.ID)
	v, err = w.Cancel(w.ctx, tenant, handed.ID)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Cancelled, v.Status)
	v, err = w.Cancel(w.ctx, tenant, handed.ID)
	require.NoError(t, err, "again")
	require.Equal(t, withdrawal.Cancelled, v.Status)
	w.tell(handed.ID, withdrawal.OutcomeCancelled, "", 0)
	require.Len(t, w.events(handed.ID), 1)

	_, err = w.Cancel(w.ctx, tenant, done.ID)
	var state *withdrawal.StateError
	require.ErrorAs(t, err, &state)
	require.Equal(t, withdrawal.Completed, state.Current)
	_, err = w.Cancel(w.ctx, tenant, "nobody")
	require.ErrorIs(t, err, withdrawal.ErrNotFound)
	_, err = w.Cancel(w.ctx, "t2", done.ID)
	require.ErrorIs(t, err, withdrawal.ErrNotFound)
	w.sound()
}

// What cannot be handed over yet stays pending, says why, and is tried again.
func TestW14_WaitsForThePayoutSide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	v, another := w.create(usdt("100")), w.create(usdt("10"))
	w.halted = "the money is gone"
	w.step()
	halted := w.get(v.ID)
	require.Equal(t, []string{"halted", withdrawal.ShownHalted, "the money is gone"}, []string{halted.Waiting, halted.WaitingReason(), halted.Reason})
	require.Empty(t, w.payouts.intents)
	off, err := w.Cancel(w.ctx, tenant, another.ID)
	require.NoError(t, err)
	require.Equal(t, []any{withdrawal.Cancelled, ""}, []any{off.Status, off.Reason})
	w.advance(30 * time.Second)
	w.step() // it still is, so that the next look is a delay from now

	w.halted = ""
	w.payouts.before = func(chain.Intent) error { return &withdrawal.WaitError{Reason: "gas_float_short"} }
	w.advance(30 * time.Second)
	w.step()
	require.Equal(t, []string{"gas_float_short", ""}, []string{w.get(v.ID).Waiting, w.get(v.ID).Reason})

	down := errors.New("connection reset")
	w.payouts.before, w.payouts.after = nil, func(chain.Intent) error { return down } // taken, and the answer lost
	w.advance(30 * time.Second)
	_, err = w.Step(w.ctx)
	require.ErrorIs(t, err, down)
	require.Equal(t, []any{withdrawal.Pending, withdrawal.Handing, "payouts"},
		[]any{w.get(v.ID).Status, w.get(v.ID).Stage, w.get(v.ID).Waiting})

	w.payouts.after = nil
	w.step()
	require.Equal(t, withdrawal.Handing, w.get(v.ID).Stage, "not before its time")
	w.advance(30 * time.Second)
	w.step()
	v = w.get(v.ID)
	require.Equal(t, []any{withdrawal.Handed, "", ""}, []any{v.Stage, v.Waiting, v.WaitingReason()})
	require.Len(t, w.payouts.intents, 1)
	w.sound()
}

// While nothing was handed over a cancel always wins, whatever the worker met.
func TestCancelWhileWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	w.payouts.after = func(chain.Intent) error { return errors.New("timeout") }
	_, err := w.Step(w.ctx)
	require.Error(t, err)
	_, err = w.Cancel(w.ctx, tenant, v.ID)
	require.Error(t, err, "the payout side gives no word")
	require.Equal(t, withdrawal.Pending, w.get(v.ID).Status)
	w.payouts.after = nil
	_, err = w.Cancel(w.ctx, tenant, v.ID)
	require.NoError(t, err)
	w.advance(time.Hour)
	w.step()
	require.False(t, w.payouts.sign(v.ID))
	w.sound()
}

// What waits because nothing can be taken over can be cancelled; and a worker
// that slept meanwhile sends nothing.
func TestW17_CancelWhileNothingCanBeTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	short := func(chain.Intent) error { return &withdrawal.WaitError{Reason: "gas_float_short"} }
	slept := false
	w.payouts.before = func(chain.Intent) error { // the first worker falls asleep here
		slept = true
		w.payouts.before = short
		_, err := w.Cancel(w.ctx, tenant, v.ID)
		require.ErrorIs(t, err, withdrawal.ErrHandingOver)
		w.advance(time.Minute)
		w.step()
		require.Equal(t, "gas_float_short", w.get(v.ID).Waiting)
		got, err := w.Cancel(w.ctx, tenant, v.ID)
		require.NoError(t, err)
		require.Equal(t, withdrawal.Cancelled, got.Status)
		w.payouts.before = nil
		return nil
	}
	w.step()
	require.True(t, slept)
	require.Len(t, w.payouts.intents, 1)
	require.False(t, w.payouts.sign(v.ID))
	require.Empty(t, w.notices)
	w.sound()
}

// TestW17_CancelThatSleptMeetsAWorker: the payout side takes nothing, and says so to a cancel,
// which then sleeps. Before it goes on, a worker hands the withdrawal over. What the cancel was
// told does not hold any more: it ends nothing, whether the worker has noted what it did, or
// the answer was lost, or another has found the payment.
func TestW17_CancelThatSleptMeetsAWorker(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]error{"noted": nil, "lost": errors.New("connection reset")} {
		for what, end := range map[string]func(w *world, id string) error{
			"cancel": func(w *world, id string) error {
				_, err := w.Cancel(w.ctx, tenant, id)
				return err
			},
			"found": func(w *world, id string) error {
				_, err := w.Found(w.ctx, tenant, id, "aa", func(_, _ withdrawal.Withdrawal) ([]storage.Row, []storage.Event, error) { return nil, nil, nil })
				return err
			},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.fund("master", "USDTTRC20", "1000")
				v := w.create(usdt("100"))
				w.payouts.before = func(chain.Intent) error { return &withdrawal.WaitError{Reason: "gas_float_short"} }
				w.step()
				require.Equal(t, "gas_float_short", w.get(v.ID).Waiting)
				w.payouts.unknown = func() { // the cancel falls asleep here
					w.payouts.before, w.payouts.unknown = nil, nil
					w.payouts.after = func(chain.Intent) error { return lost }
					w.advance(time.Minute)
					_, err := w.Step(w.ctx)
					require.ErrorIs(t, err, lost)
					w.payouts.after = nil
				}
				require.ErrorIs(t, end(w, v.ID), withdrawal.ErrHandingOver)
				require.Equal(t, withdrawal.Pending, w.get(v.ID).Status)
				require.NoError(t, end(w, v.ID), "the payout side knows it now, and can end it")
				require.False(t, w.payouts.sign(v.ID), "nothing pays what has ended")
				w.sound()
			})
		}
	}
}

// The worker that slept was too late, and the payout side signed what it submitted at
// once: that may pay a withdrawal which is cancelled, so the host is told.
func TestW17_SignedAfterItWasCancelledIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	w.payouts.before = func(chain.Intent) error { // the first worker falls asleep here
		w.payouts.before = func(chain.Intent) error { return &withdrawal.WaitError{Reason: "gas_float_short"} }
		w.advance(time.Minute)
		w.step()
		got, err := w.Cancel(w.ctx, tenant, v.ID)
		require.NoError(t, err)
		require.Equal(t, withdrawal.Cancelled, got.Status)
		w.payouts.before = nil
		return nil
	}
	w.payouts.after = func(in chain.Intent) error {
		require.True(t, w.payouts.sign(in.ID))
		return nil
	}
	w.step()
	require.Len(t, w.notices, 1)
	require.Equal(t, withdrawal.NoticeConflict, w.notices[0].Kind)
	require.Equal(t, v.ID, w.notices[0].Withdrawal)
}

func TestRejectedBeforeBroadcast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	w.payouts.before = func(chain.Intent) error { return chain.ErrRejected }
	w.step()
	require.Equal(t, withdrawal.Failed, w.get(v.ID).Status)
	require.Equal(t, withdrawal.NoticeFailed, w.notices[0].Kind)
	w.sound()
}

// A worker that dies anywhere leaves what the next one finishes.
func TestWorkerDies(t *testing.T) {
	t.Parallel()
	for _, commits := range []int{0, 1, 2} {
		store := &dying{Store: memory.New()}
		w := newWorldOn(t, store)
		w.fund("master", "USDTTRC20", "1000")
		v := w.create(usdt("100"))
		store.left, store.dies = commits, true
		_, err := w.Step(w.ctx)
		if commits < 2 {
			require.Error(t, err)
		}
		store.dies = false
		w.advance(time.Minute)
		w.step()
		require.Equal(t, withdrawal.Handed, w.get(v.ID).Stage)
		require.True(t, w.payouts.sign(v.ID))
		w.tell(v.ID, withdrawal.OutcomeExecuted, "aa", 1)
		w.sound()
	}
}

// TestWorkerDiesAndThePayoutSideTells: a worker died after it had handed a withdrawal over and
// before it could note that. What the payout side tells of it says so.
func TestWorkerDiesAndThePayoutSideTells(t *testing.T) {
	t.Parallel()
	store := &dying{Store: memory.New()}
	w := newWorldOn(t, store)
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	store.left, store.dies = 1, true
	_, _ = w.Step(w.ctx)
	store.dies = false
	require.Equal(t, withdrawal.Handing, w.get(v.ID).Stage)
	require.Len(t, w.payouts.intents, 1)
	require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{
		Intent: v.ID, State: withdrawal.OutcomeWaiting, Reason: "hot_short", At: w.clock(),
	}))
	v = w.get(v.ID)
	require.Equal(t, []any{withdrawal.Handed, "hot_short"}, []any{v.Stage, v.Waiting})
	w.sound()
}

// dying refuses commits when a number of them was made.
type dying struct {
	storage.Store
	left int
	dies bool
}

func (d *dying) Commit(ctx context.Context, changes ...storage.Change) []error {
	if d.dies && d.left <= 0 {
		out := make([]error, len(changes))
		for i := range out {
			out[i] = errors.New("gone")
		}
		return out
	}
	d.left--
	return d.Store.Commit(ctx, changes...)
}

// Every answer of the store is lost once: nothing happens twice.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	store := &forgetful{Store: memory.New()}
	w := newWorldOn(t, store)
	w.fund("master", "USDTTRC20", "1000")
	before := w.books("USDTTRC20")
	store.forgets = true
	v := w.create(usdt("100"))
	executed(w, v.ID)
	require.Equal(t, "w -100, c +97.5, P +0.5, N +2", w.books("USDTTRC20").since(before, "USDTTRC20"))
	require.Len(t, w.events(v.ID), 2)
	w.sound()
}

type forgetful struct {
	storage.Store
	forgets bool
	last    string
}

func (f *forgetful) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := f.Store.Commit(ctx, changes...)
	if f.forgets && errs[0] == nil && f.last != changes[0].ID {
		f.last = changes[0].ID
		errs[0] = errors.New("connection reset")
	}
	return errs
}

func TestOperators(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	w.verdict = withdrawal.AskReview
	v := w.create(usdt("100"))
	w.step()
	require.Equal(t, []any{withdrawal.ReviewWanted, withdrawal.WaitingReview}, []any{w.get(v.ID).Review, w.get(v.ID).Waiting})
	require.Equal(t, withdrawal.NoticeReview, w.notices[0].Kind)
	w.advance(time.Hour)
	w.step()
	require.Len(t, w.notices, 1)

	_, err := w.Hold(w.ctx, tenant, v.ID, "ann", "strange")
	require.NoError(t, err)
	_, err = w.Approve(w.ctx, tenant, v.ID, "approver", "")
	require.NoError(t, err)
	w.step()
	require.Empty(t, w.payouts.intents, "a hold stays in force")
	_, err = w.Release(w.ctx, tenant, v.ID, "ann", "")
	require.NoError(t, err)
	w.step()
	require.Len(t, w.payouts.intents, 1, "approved: what policy asks again is answered")

	var state *withdrawal.StateError
	_, err = w.Hold(w.ctx, tenant, v.ID, "ann", "too late")
	require.ErrorAs(t, err, &state)
	_, err = w.Refuse(w.ctx, tenant, v.ID, "approver", "too late")
	require.ErrorAs(t, err, &state)

	w.verdict = withdrawal.Refuse
	refused := w.create(usdt("100"))
	w.step()
	require.Equal(t, []any{withdrawal.Failed, "because"}, []any{w.get(refused.ID).Status, w.get(refused.ID).Reason})
	require.Equal(t, []string{"pending>failed"}, w.events(refused.ID))

	w.verdErr = errors.New("policy is down")
	waiting := w.create(usdt("100"))
	_, err = w.Step(w.ctx)
	require.ErrorIs(t, err, w.verdErr)
	require.Equal(t, withdrawal.WaitingPolicy, w.get(waiting.ID).Waiting)
	w.verdErr, w.verdict = nil, withdrawal.Allow
	w.advance(time.Minute)
	w.step()
	require.Equal(t, withdrawal.Handed, w.get(waiting.ID).Stage)
	w.sound()
}

// What a person approves goes out at once; what a person releases waits for the review that
// it waited for before.
func TestApproveAndRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	w.verdict = withdrawal.AskReview
	v := w.create(usdt("100"))
	w.step()
	_, err := w.Hold(w.ctx, tenant, v.ID, "ann", "strange")
	require.NoError(t, err)
	require.Equal(t, withdrawal.WaitingFrozen, w.get(v.ID).Waiting)
	released, err := w.Release(w.ctx, tenant, v.ID, "ann", "")
	require.NoError(t, err)
	require.Equal(t, withdrawal.WaitingReview, released.Waiting)
	w.advance(time.Hour)
	w.step()
	require.Equal(t, withdrawal.WaitingReview, w.get(v.ID).Waiting)
	require.Empty(t, w.payouts.intents)
	approved, err := w.Approve(w.ctx, tenant, v.ID, "approver", "")
	require.NoError(t, err)
	require.Equal(t, []any{"", "", time.Time{}}, []any{approved.Waiting, approved.Reason, approved.WaitingSince})
	w.step()
	require.Contains(t, w.payouts.intents, v.ID)
	w.sound()
}

// A reason that stays the same from try to try has one beginning.
func TestWaitingSinceTheFirstTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	w.payouts.before = func(chain.Intent) error { return &withdrawal.WaitError{Reason: "hot_short"} }
	began := w.clock()
	for range 3 {
		w.step()
		require.Equal(t, []any{"hot_short", began}, []any{w.get(v.ID).Waiting, w.get(v.ID).WaitingSince})
		w.advance(time.Hour)
	}
	w.payouts.before = func(chain.Intent) error { return &withdrawal.WaitError{Reason: "halted"} }
	changed := w.clock()
	w.step()
	require.Equal(t, []any{"halted", changed}, []any{w.get(v.ID).Waiting, w.get(v.ID).WaitingSince})
}

// TestFT06_WaitEndsWhereTheOutcomeIsFaster: a withdrawal waited, is submitted, and is signed
// or cancelled before that is noted. The merchant is told that it waits no more.
func TestFT06_WaitEndsWhereTheOutcomeIsFaster(t *testing.T) {
	t.Parallel()
	for _, outcome := range []string{withdrawal.OutcomeSigned, withdrawal.OutcomeExecuted, withdrawal.OutcomeFailed, withdrawal.OutcomeCancelled} {
		w := newWorld(t)
		w.fund("master", "USDTTRC20", "1000")
		v := w.create(usdt("100"))
		w.payouts.before = func(chain.Intent) error { return &withdrawal.WaitError{Reason: "halted"} }
		w.step()
		require.Equal(t, []string{"halted"}, w.reasonsTold(v.ID))
		w.advance(time.Hour) // the operator was told, too
		w.payouts.before = nil
		w.payouts.after = func(in chain.Intent) error {
			w.tell(in.ID, outcome, "tx", 1)
			return nil
		}
		w.step()
		require.Equal(t, []string{"halted", ""}, w.reasonsTold(v.ID), outcome)
	}
}

// A withdrawal that ended while it was submitted is taken back; where the payout side
// cannot, the host hears of it.
func TestW17_TakenBackTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	w.payouts.after = func(in chain.Intent) error {
		w.tell(in.ID, withdrawal.OutcomeCancelled, "", 0)
		require.True(t, w.payouts.sign(in.ID))
		return nil
	}
	w.step()
	require.Equal(t, withdrawal.Cancelled, w.get(v.ID).Status)
	require.Len(t, w.notices, 1)
	require.Equal(t, []string{tenant, v.ID, withdrawal.NoticeConflict}, []string{w.notices[0].Tenant, w.notices[0].Withdrawal, w.notices[0].Kind})
	require.Contains(t, w.notices[0].Detail, "cancelled")
}

// A cancel that is decided on a stale read is decided again.
func TestTwoCancels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			got, err := w.Cancel(w.ctx, tenant, v.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Cancelled, got.Status)
		})
	}
	wg.Wait()
	require.Len(t, w.events(v.ID), 1)
	w.sound()
}

func TestNewNeedsItsParts(t *testing.T) {
	t.Parallel()
	whole := withdrawal.Config{
		Store: memory.New(), Registry: registry, Parse: parse, Now: time.Now, NewID: func() string { return "" },
	}
	_, err := withdrawal.New(whole)
	require.ErrorContains(t, err, "MaxCost")
	for name, without := range map[string]func(c *withdrawal.Config){
		"Store":    func(c *withdrawal.Config) { c.Store = nil },
		"Registry": func(c *withdrawal.Config) { c.Registry = nil },
		"Parse":    func(c *withdrawal.Config) { c.Parse = nil },
		"Now":      func(c *withdrawal.Config) { c.Now = nil },
		"NewID":    func(c *withdrawal.Config) { c.NewID = nil },
	} {
		c := whole
		without(&c)
		_, err := withdrawal.New(c)
		require.ErrorContains(t, err, "Config needs Store", name)
	}
}

// TestFT06_WhyAHaltedOneWaits: its operator reads why, whatever comes between two looks, and does not when it has
// gone on or was cancelled. The text of a host that no store takes is stored as it can be.
func TestFT06_WhyAHaltedOneWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	goes, ends := w.create(usdt("100")), w.create(usdt("10"))
	look := func() {
		w.step()
		w.advance(30 * time.Second)
	}
	w.halted = "an incident\x00"
	look()
	require.Equal(t, []string{"halted", "an incident�"}, []string{w.get(goes.ID).Waiting, w.get(goes.ID).Reason})
	w.advance(time.Hour)
	_, err := w.StepWaits(w.ctx)
	require.NoError(t, err)
	require.Contains(t, w.notices[len(w.notices)-1].Detail, "halted (an incident�)")
	w.haltsDown = errors.New("connection reset")
	_, err = w.Step(w.ctx)
	require.ErrorIs(t, err, w.haltsDown)
	require.Equal(t, []string{withdrawal.WaitingPayout, ""}, []string{w.get(goes.ID).Waiting, w.get(goes.ID).Reason})
	w.advance(30 * time.Second)
	w.haltsDown = nil
	look()
	off, err := w.Cancel(w.ctx, tenant, ends.ID)
	require.NoError(t, err)
	require.Equal(t, []any{withdrawal.Cancelled, ""}, []any{off.Status, off.Reason})
	w.halted = ""
	look()
	require.Empty(t, w.get(goes.ID).Reason)
	w.tell(goes.ID, withdrawal.OutcomeSigned, "aa", 0)
	require.Equal(t, []any{withdrawal.Processing, ""}, []any{w.get(goes.ID).Status, w.get(goes.ID).Reason})
}

// TestFT06_CompletedWithoutConfirmationsTellsWhyNoBlockHasIt: at once, in the order in which it was so, and until a
// block has it. One that was completed with confirmations shows a fork alone, and one that another program has paid
// shows nothing.
func TestFT06_CompletedWithoutConfirmationsTellsWhyNoBlockHasIt(t *testing.T) {
	t.Parallel()
	say := func(w *world, id, state, why string, at time.Time, confirmations int64) {
		w.Helper()
		require.NoError(w, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{Intent: id, State: state, Reason: why, Tx: "aa", Confirmations: confirmations, At: at}))
	}
	for required, shows := range map[int64]string{0: withdrawal.ShownStuck, 1: ""} {
		w := newWorld(t)
		w.required = required
		w.fund("master", "USDTTRC20", "1000")
		id := w.create(usdt("100")).ID
		w.step()
		say(w, id, withdrawal.OutcomeSigned, "", w.clock(), 0)
		say(w, id, withdrawal.OutcomeExecuted, "", w.clock(), required)
		require.Equal(t, withdrawal.Completed, w.get(id).Status)
		w.advance(time.Hour)
		say(w, id, withdrawal.OutcomeSigned, withdrawal.WaitingStuck, w.clock(), 0)
		require.Equal(t, shows, w.get(id).WaitingReason())
		_, err := w.StepWaits(w.ctx)
		require.NoError(t, err)
		if required > 0 {
			require.Zero(t, w.count(withdrawal.NoticeWaiting))
			continue
		}
		require.Equal(t, 1, w.count(withdrawal.NoticeWaiting), "it was long in no block before it was told")
		before := w.clock()
		w.advance(time.Hour)
		say(w, id, withdrawal.OutcomeWaiting, "hot_short", w.clock(), 0) // it starts again
		require.Equal(t, withdrawal.ShownHotShort, w.get(id).WaitingReason())
		say(w, id, withdrawal.OutcomeWaiting, "node", w.clock(), 0)
		require.Equal(t, withdrawal.ShownHotShort, w.get(id).WaitingReason())
		say(w, id, withdrawal.OutcomeSigned, "", w.clock(), 0)
		say(w, id, withdrawal.OutcomeSigned, withdrawal.WaitingHalted, before, 0) // told late
		require.Empty(t, w.get(id).WaitingReason())
		say(w, id, withdrawal.OutcomeSigned, withdrawal.WaitingFeeTooHigh, w.clock(), 0)
		require.Equal(t, withdrawal.ShownFeeTooHigh, w.get(id).WaitingReason())
		say(w, id, withdrawal.OutcomeExecuted, "", w.clock(), 1)
		require.Empty(t, w.get(id).WaitingReason())
		require.Equal(t, []string{"stuck", "hot_short", "", "fee_too_high", ""}, w.reasonsTold(id))
		say(w, id, withdrawal.OutcomeWaiting, "altered", w.clock(), 0)
		require.Equal(t, withdrawal.WaitingAltered, w.get(id).Waiting)
		require.Equal(t, 1, w.count(withdrawal.NoticeAltered))
		say(w, id, withdrawal.OutcomeFailed, "x", w.clock(), 0)
		require.Empty(t, w.get(id).WaitingReason(), "an operator hears of it")
		require.Equal(t, 1, w.count(withdrawal.NoticeConflict))
		w.sound()
	}
}
