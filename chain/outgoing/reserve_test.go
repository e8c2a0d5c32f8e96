package outgoing_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

func TestW05_NodeStringsAboutNoncesProveNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"nonce too low", "nonce too high", "nonce gap", "replacement transaction underpriced",
		"already known", "transaction underpriced", "insufficient funds for gas * price + value",
	} {
		t.Run(s, func(t *testing.T) {
			t.Parallel()
			w := funded(t, setup{})
			w.chain.Front().RefuseNext(3, errors.New(s)).LieNonce(-1)
			in := w.submit(w.intent("a", coin))
			in2 := w.submit(w.intent("b", coin))
			w.run(16)
			w.chain.Front().LieNonce(0)
			w.paid(in)
			w.paid(in2)
			require.Len(t, w.attempts("a"), 1)
			require.Len(t, w.attempts("b"), 1)
			w.sound()
		})
	}
}

func TestW05_OwnNoncesAreDense(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	nonces := map[int64]bool{}
	for i := range 12 {
		w.submit(w.intent(fmt.Sprint("n", i), coin/10))
	}
	require.NoError(t, w.step())
	w.chain.Front().LieNonce(5) // what the node says counts no more
	for i := range 4 {
		w.submit(w.intent(fmt.Sprint("m", i), coin/10))
	}
	require.NoError(t, w.step())
	for _, r := range w.rows(outgoing.Attempts.Table) {
		nonces[outgoing.Attempts.Value(r).Nonce] = true
	}
	require.Len(t, nonces, 16)
	for i := range int64(16) {
		require.True(t, nonces[i], "nonce %d", i)
	}
}

func TestW05_RejectedBytesLeaveNoGap(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.client.reject = fmt.Errorf("%w: bad bytes", chain.ErrRejected)
		bad := w.submit(w.intent("bad", coin))
		require.NoError(t, w.step())
		good := w.submit(w.intent("good", coin))
		w.run(4)
		require.NotEqual(t, outgoing.Failed, w.state("bad"), "not before what takes its place is final")
		w.run(12)
		w.paid(good)
		w.unpaid(bad)
		o := w.last("bad")
		require.Equal(t, outgoing.Failed, o.State)
		require.Positive(t, o.Cost)
		atts := w.attempts("bad")
		require.Equal(t, chain.ForCancel, atts[len(atts)-1].Purpose)
		require.Equal(t, atts[len(atts)-1].Tx, o.CostTx)
		w.run(16)
		w.sound()
	})
}

// Bytes that took nearly all that an order may cost were rejected, and the price has fallen
// since: what uses their nonce up need not outbid what no node has.
func TestW05_RejectedBytesAreNotOutbid(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		level := w.chain.FeeLevel()
		w.chain.SetFeeLevel(3 * level)
		in := w.intent("bad", coin)
		fee, err := w.client.EstimateFee(w.ctx, in)
		require.NoError(t, err)
		in.MaxCost = fee.Max + fee.Max/50
		w.client.reject = fmt.Errorf("%w: bad bytes", chain.ErrRejected)
		bad := w.submit(in)
		require.NoError(t, w.step())
		w.chain.SetFeeLevel(level)
		good := w.submit(w.intent("good", coin))
		w.run(20)
		w.paid(good)
		w.unpaid(bad)
		require.Equal(t, outgoing.Failed, w.state("bad"))
		w.sound()
	})
}

// The node rejects what is sent to use a nonce up, too, and takes it later.
func TestW05_RejectedFillingIsSentAgain(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.client.reject = fmt.Errorf("%w: bad bytes", chain.ErrRejected)
		in := w.intent("bad", coin)
		fee, err := w.client.EstimateFee(w.ctx, in)
		require.NoError(t, err)
		in.MaxCost = fee.Max + fee.Max/4 // for one replacement, and no other
		bad := w.submit(in)
		require.NoError(t, w.step())
		w.client.reject = fmt.Errorf("%w: bad node", chain.ErrRejected)
		w.run(2)
		require.NoError(t, w.client.reject, "it was told")
		good := w.submit(w.intent("good", coin))
		w.run(40)
		w.paid(good)
		w.unpaid(bad)
		require.Equal(t, outgoing.Failed, w.state("bad"))
		w.sound()
	})
}

func TestW06_TwoProcessesOneStore(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		if w.gas == "BTC" {
			for range 20 {
				w.fund(w.key(), "BTC", coin)
			}
		}
		var all []chain.Intent
		for i := range 24 {
			all = append(all, w.submit(w.intent(fmt.Sprint("w", i), coin/4)))
		}
		nets := []*outgoing.Sender{w.process(), w.process(), w.process()}
		for range 40 {
			var wg sync.WaitGroup
			for _, n := range nets {
				wg.Go(func() {
					for range 3 {
						_, _ = n.Step(w.ctx)
					}
				})
			}
			wg.Wait()
			w.chain.Mine(1)
			w.advance(time.Minute)
		}
		w.run(10)
		for _, in := range all {
			w.paid(in)
		}
		w.sound()
	})
}

func TestW06_SlotIsBoundToOneIntent(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	w.submit(w.intent("a", coin))
	w.signer.fail = []error{errAway}
	require.NoError(t, w.step())
	// The row is the claim: whoever inserts it again fails.
	row := outgoing.InputReservations.Row(outgoing.Slot(w.hot.Address, 0), 0, time.Time{}, outgoing.InputReservation{Intent: "b"})
	err := storage.CommitOne(w.ctx, w.store, storage.Change{ID: "steal", Partition: storage.Network("ETH"), Put: []storage.Row{row}})
	require.Error(t, err)
	w.submit(w.intent("b", coin))
	require.NoError(t, w.step())
	require.Empty(t, w.attempts("b"), "nothing overtakes a nonce that is being signed")
	w.run(12)
	w.paid(w.intent("a", coin))
	w.paid(w.intent("b", coin))
	w.sound()
}

// Two orders for all that an address holds: the second must not count on what
// the first takes, also where a fork took the first out of its block again, and
// nobody has noticed yet.
func TestR05_OrderForAllWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	for _, forked := range []bool{false, true} {
		t.Run(fmt.Sprint("forked=", forked), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			w.fund(w.hot, "USDT", 1_000_000)
			w.fund(w.hot, "ETH", coin)
			all := func(id, currency string) chain.Intent {
				in := w.intent(id, 0)
				in.Purpose, in.Currency, in.All, in.Confirmations = chain.ForSweep, currency, true, 1
				return in
			}
			native := w.submit(all("native", "ETH"))
			require.NoError(t, w.step())
			if forked {
				w.run(2)
				require.Equal(t, outgoing.Executed, w.state("native"))
				_, err := w.chain.Reorg(2, w.last("native").Tx)
				require.NoError(t, err)
			}
			token := w.submit(all("token", "USDT"))
			require.NoError(t, w.step())
			require.Equal(t, outgoing.Waiting, w.state("token"))
			require.Empty(t, w.attempts("token"))
			w.run(12)
			require.Len(t, w.chain.Transfers(native.To), 1)
			require.Equal(t, outgoing.ReasonOperatorFunds, w.last("token").Reason)
			w.fund(w.hot, "ETH", coin)
			w.run(20)
			require.Len(t, w.chain.Transfers(token.To), 1)
			w.sound()
		})
	}
}

func unknownErrorPaysOnce(t *testing.T, text string) {
	w := funded(t, setup{})
	in := w.submit(w.intent("a", coin))
	w.chain.Front().RefuseNext(1, errors.New(text))
	require.NoError(t, w.step())
	require.Equal(t, outgoing.Signed, w.state("a"))
	require.NotEmpty(t, w.rows(outgoing.InputReservations.Table), "the reservation stays")
	w.run(12)
	w.paid(in)
	require.Len(t, w.attempts("a"), 1)
	w.sound()
}

func TestW07_UnknownErrorIsNoRejection(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "rejected", "invalid transaction", "bad-txns-inputs-missingorspent", "-25", "{}"} {
		unknownErrorPaysOnce(t, s)
	}
}

func FuzzW07_UnknownError(f *testing.F) {
	f.Add("txn-mempool-conflict")
	f.Add("min relay fee not met")
	f.Fuzz(unknownErrorPaysOnce)
}

func TestNodeFailuresOnlyDelay(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.chain.Front().FailRate(300)
		var all []chain.Intent
		for i := range 6 {
			all = append(all, w.submit(w.intent(fmt.Sprint("f", i), coin/4)))
		}
		w.run(60)
		w.chain.Front().Honest()
		w.run(20)
		for _, in := range all {
			w.paid(in)
		}
		w.sound()
	})
}
