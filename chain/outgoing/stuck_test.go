package outgoing_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// past lets rounds go by until a time.
func (w *world) past(at time.Time) {
	w.t.Helper()
	for w.clock().Before(at) {
		w.run(10)
	}
}

// late is when an owner hears that no block has his payment.
func (w *world) late() time.Duration {
	if w.chain.Family() == chain.UTXOFamily {
		return 6 * time.Hour
	}
	return time.Hour
}

// TestFT06_StuckIsShown: fees rise and stay. An owner hears an hour after the first attempt was signed
// that it is stuck, six hours where coins are outputs, once, however often it is replaced, and that it is no longer so
// when it lands.
func TestFT06_StuckIsShown(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.stickAll()
		signed := w.attempts("a")[0].Stored
		late := w.late()
		w.past(signed.Add(late * 5 / 6))
		require.Empty(t, w.last("a").Reason)
		w.past(signed.Add(2 * late))
		require.Equal(t, outgoing.Signed, w.last("a").State)
		require.Equal(t, outgoing.ReasonStuck, w.last("a").Reason)
		told := 0
		for i, o := range w.heard {
			if o.Reason == outgoing.ReasonStuck && (i == 0 || w.heard[i-1].Reason != o.Reason) {
				told++
			}
		}
		require.Equal(t, 1, told)
		w.chain.SetFeeLevel(0)
		w.run(60)
		w.paid(in)
		require.Empty(t, w.last("a").Reason)
		w.sound()
	})
}

// executedInNoBlock is an order without confirmations that a node has, and that no block takes as fees have risen.
func (w *world) executedInNoBlock(id string) chain.Intent {
	w.t.Helper()
	in := w.intent(id, coin)
	in.Confirmations = 0
	w.submit(in)
	w.stickAll()
	w.chain.SetFeeLevel(100 * w.chain.FeeLevel())
	require.NoError(w.t, w.step())
	w.advance(poll)
	require.NoError(w.t, w.step())
	require.Equal(w.t, []any{outgoing.Executed, outgoing.Reason("")}, []any{w.last(id).State, w.last(id).Reason})
	return in
}

// TestFT06_StuckWithoutConfirmationsIsShown: an owner asked for no confirmations, and was told that his payment is
// executed when a node had it. Fees rise before a block takes it. He hears that it is stuck, an operator can help it,
// and no node's word that it has it still makes it executed again.
func TestFT06_StuckWithoutConfirmationsIsShown(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.executedInNoBlock("a")
		speedUp := func(id string) error {
			_, _, err := w.Net.SpeedUp(w.ctx, "a", 0, &outgoing.Recorded{ID: id, Op: outgoing.Operation{At: w.Net.Now()}})
			return err
		}
		was := len(w.attempts("a"))
		require.NoError(t, speedUp("sooner"), "no block has it")
		require.NoError(t, w.step())
		require.Len(t, w.attempts("a"), was+1, "replaced at once")
		w.past(w.attempts("a")[0].Stored.Add(w.late() * 13 / 12))
		for range 4 { // also while nodes have it
			require.Equal(t, outgoing.Signed, w.state("a"))
			w.advance(poll)
			require.NoError(t, w.step())
		}
		require.Contains(t, []outgoing.Reason{outgoing.ReasonStuck, outgoing.ReasonFeeTooHigh}, w.last("a").Reason)
		_, _, err := w.Net.CancelTransaction(w.ctx, "a", &outgoing.Recorded{ID: "cancel", Op: outgoing.Operation{At: w.Net.Now()}})
		require.ErrorIs(t, err, outgoing.ErrHelp, "its owner was told that it is executed")
		w.chain.SetFeeLevel(0)
		w.run(1)
		require.Equal(t, []any{outgoing.Executed, outgoing.Reason("")}, []any{w.last("a").State, w.last("a").Reason})
		require.ErrorContains(t, speedUp("late"), "it is in a block")
		w.run(60)
		w.paid(in)
		require.Equal(t, outgoing.Final, w.state("a"))
		w.sound()
	})
}

// A host may want to hear sooner.
func TestFT06_StuckIsShownWhenTheHostWants(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	w := funded(t, setup{family: chain.AccountFamily, change: func(c *outgoing.Config) { c.TellAfter = 20 * time.Minute }})
	w.submit(w.intent("a", coin))
	require.NoError(t, w.step())
	w.stickAll()
	signed := w.attempts("a")[0].Stored
	w.past(signed.Add(10 * time.Minute))
	require.Empty(t, w.last("a").Reason)
	w.past(signed.Add(45 * time.Minute))
	require.Equal(t, outgoing.ReasonStuck, w.last("a").Reason)
}

// A call that would do nothing says so, and names the order that helps: the one with the
// lowest nonce of the address. A higher bound is taken at any time, for when its turn comes.
func TestFT06_SpeedUpBehindAnotherNamesThatOne(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.AccountFamily})
	for _, id := range []string{"a", "b", "c"} {
		w.submit(w.intent(id, coin))
		require.NoError(t, w.step())
		require.Equal(t, outgoing.Signed, w.state(id))
	}
	w.stick()
	for _, id := range []string{"b", "c"} {
		_, _, err := w.Net.SpeedUp(w.ctx, id, 0, &outgoing.Recorded{ID: id, Op: outgoing.Operation{At: w.Net.Now()}})
		require.ErrorIs(t, err, outgoing.ErrHelp)
		require.ErrorContains(t, err, "intent a ")
	}
	_, after, err := w.Net.SpeedUp(w.ctx, "c", coin/5, &outgoing.Recorded{ID: "higher", Op: outgoing.Operation{At: w.Net.Now()}})
	require.NoError(t, err)
	require.Equal(t, coin/5, after.MaxCost)
	_, _, err = w.Net.SpeedUp(w.ctx, "a", 0, &outgoing.Recorded{ID: "now", Op: outgoing.Operation{At: w.Net.Now()}})
	require.NoError(t, err)
	require.NoError(t, w.step())
	require.Len(t, w.attempts("a"), 2, "replaced at once")
}

// While a process of an earlier version may run, no owner is told that no block has a payment that he takes for
// executed. The payment is sent again and replaced as ever.
func TestFT06_StuckWithoutConfirmationsBesideAProcessOfBefore(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	w := funded(t, setup{change: func(c *outgoing.Config) {
		c.Able = func(_ context.Context, a outgoing.Ability) (bool, error) { return a != outgoing.AbilityUnmined, nil }
	}})
	in := w.executedInNoBlock("a")
	w.past(w.attempts("a")[0].Stored.Add(w.late() * 13 / 12))
	was := len(w.attempts("a"))
	w.past(w.attempts("a")[0].Stored.Add(w.late() * 2))
	require.Greater(t, len(w.attempts("a")), was, "it is replaced")
	require.Equal(t, []any{outgoing.Executed, outgoing.Reason("")}, []any{w.last("a").State, w.last("a").Reason})
	w.chain.SetFeeLevel(0)
	w.run(60)
	w.paid(in)
	w.sound()
}
