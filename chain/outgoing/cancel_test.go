package outgoing_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
)

func TestW17_CancelOnlyBeforeSigning(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		a := w.submit(w.intent("a", coin))
		for range 2 {
			ok, err := w.Net.Cancel(w.ctx, "a")
			require.NoError(t, err)
			require.True(t, ok)
		}
		refused, err := w.Net.Refusals(w.ctx, "a")
		require.NoError(t, err)
		require.Empty(t, refused, "its owner is about to hear it")
		b := w.submit(w.intent("b", coin))
		require.NoError(t, w.step())
		ok, err := w.Net.Cancel(w.ctx, "b")
		require.NoError(t, err)
		require.False(t, ok)
		_, err = w.Net.Cancel(w.ctx, "none")
		require.ErrorIs(t, err, outgoing.ErrNoIntent)
		w.run(12)
		w.unpaid(a)
		w.paid(b)
		require.Equal(t, []outgoing.State{outgoing.Cancelled}, w.states("a"))
		w.sound()
	})
}

// cancelDuring cancels from within the signer or the client, where a worker is
// in the middle of an intent.
type cancelDuring struct {
	chain.Signer
	do func()
}

func (c cancelDuring) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	c.do()
	return c.Signer.Sign(ctx, r)
}

type cancelBuild struct {
	*fragileClient
	do func()
}

func (c cancelBuild) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	c.do()
	return c.fragileClient.Build(ctx, o)
}

func TestW17_CancelRacesTheWorker(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"build", "sign"} {
		for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
			w := funded(t, setup{family: family})
			var cancelled bool
			do := func() {
				ok, err := w.Net.Cancel(w.ctx, "a")
				require.NoError(t, err)
				cancelled = cancelled || ok
			}
			w.set.change = func(c *outgoing.Config) {
				if where == "build" {
					c.Client = cancelBuild{w.client, do}
				} else {
					c.Signer = cancelDuring{w.signer, do}
				}
			}
			w.restart()
			in := w.submit(w.intent("a", coin))
			w.run(14)
			require.Equal(t, where == "build", cancelled)
			if cancelled {
				w.unpaid(in)
				require.Equal(t, outgoing.Cancelled, w.last("a").State)
			} else {
				w.paid(in)
			}
			w.sound()
		}
	}
}

func TestW17_ConcurrentCancelHasOneWinner(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	const many = 40
	won := make([]bool, many)
	var wg sync.WaitGroup
	for i := range many {
		w.submit(w.intent(fmt.Sprint("c", i), coin/100))
	}
	wg.Go(func() {
		for range 5 {
			_, _ = w.Net.Step(w.ctx)
		}
	})
	wg.Go(func() {
		for i := many - 1; i >= 0; i-- {
			ok, err := w.Net.Cancel(w.ctx, fmt.Sprint("c", i))
			won[i] = ok && err == nil
		}
	})
	wg.Wait()
	w.run(20)
	for i := range many {
		in := w.intent(fmt.Sprint("c", i), coin/100)
		if won[i] {
			w.unpaid(in)
			require.Equal(t, outgoing.Cancelled, w.state(in.ID))
		} else {
			w.paid(in)
		}
	}
	w.sound()
}

// A replacement is planned, and its signer away, when an operator cancels the order: the
// signer is then asked for what pays nobody.
func TestFT06_CancelledWhileAReplacementIsPlanned(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.stickAll()
		w.signer.fail = []error{errAway}
		for i := 0; i < 30 && !w.get("a").Signing; i++ {
			w.signer.fail = []error{errAway}
			w.run(1)
		}
		require.True(t, w.get("a").Signing)
		by := &outgoing.Recorded{ID: "cancel", Op: outgoing.Operation{At: w.Net.Now(), Kind: outgoing.OpCancel, By: "ann", Reason: "a mistake"}}
		_, _, err := w.Net.CancelTransaction(w.ctx, "a", by)
		require.NoError(t, err)
		w.signer.fail = nil
		w.run(3)
		atts := w.attempts("a")
		require.Greater(t, len(atts), 1)
		for _, a := range atts[1:] {
			require.Equal(t, chain.ForCancel, a.Purpose)
		}
		for _, a := range atts[:1] {
			w.chain.Drop(a.Tx)
		}
		w.client.fee = nil
		w.chain.SetFeeLevel(0)
		w.chain.MineOnly(atts[len(atts)-1].Tx)
		w.run(12)
		w.unpaid(in)
		require.Equal(t, outgoing.Failed, w.last("a").State)
		w.sound()
	})
}
