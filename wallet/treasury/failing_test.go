package treasury_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// TestL02_QuestionFailsOnce: whichever question about sweeps, gas or reservations fails, the
// payment is swept once in the end, each cost is booked once, and nothing is left set aside.
func TestL02_QuestionFailsOnce(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 40
	}
	const currency = "USDTERC20"
	for n := 1; ; n += every {
		w := newWorld(t, "ETH")
		w.fund("1")
		f := &failing.Store{Store: w.store.Store, Counts: func(c failing.Call) bool { return slices.Contains(treasury.Tables(), c.Table) }}
		w.store.Store = f
		w.restart()
		p := w.pay(currency, "300")
		f.Calls, f.FailAt = 0, n
		failed := 0 // blocks ago
		for i := range 60 {
			w.clock.Advance(15 * time.Second)
			w.chain.Mine(1)
			if f.Calls >= n {
				if failed++; !seldom(failed) && i < 59 {
					continue // it has failed, and time goes by
				}
			}
			if err := w.app.Step(t.Context()); err != nil {
				require.ErrorIs(t, err, failing.ErrGone, "question %d", n)
			}
		}
		asked := f.Calls
		f.FailAt = 0
		require.Equal(t, payment.Completed, w.payment(p.ID).Status, "question %d", n)
		require.Equal(t, 1, w.landed(w.hot, currency), "one sweep, question %d", n)
		w.conserved("ETH", currency)
		w.released()
		if asked < n {
			require.Greater(t, n, 50)
			return
		}
	}
}

// fails lets the n-th question about deposits fail from now on.
func (w *world) fails(n int) *failing.Store {
	f := &failing.Store{Store: w.store.Store, FailAt: n, Counts: func(c failing.Call) bool { return c.Table == incoming.Sightings.Table }}
	w.store.Store = f
	return f
}

// A sweep has moved half of what came, and the question what came fails: the outcome is told
// again, and the rest gets a sweep of its own.
func TestL02_RestOfASweepIsFoundAfterAQuestionFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("ETH", "300")
	w.until(w.signed)
	swept := w.intents(chain.ForSweep)[0]
	o := outgoing.Outcome{
		Intent: w.sweepIDs()[0], Purpose: chain.ForSweep, Tenant: w.tenant, Network: "ETH", Currency: "ETH",
		State: outgoing.Executed, Tx: swept.Tx, Confirmations: 1, Amount: 1000, At: w.clock.Now(),
	}
	w.fails(1)
	require.ErrorIs(t, w.app.Treasury.HandleOutcome(t.Context(), o), failing.ErrGone)
	require.Equal(t, treasury.SweepMoving, w.sweeps()[0].State)
	require.NoError(t, w.app.Treasury.HandleOutcome(t.Context(), o))
	require.Len(t, w.sweeps(), 2)
}

// Another sweep took the deposit of one that is looked at. Whichever question about deposits
// fails at the look, the deposit is told to be forwarded by the one that took it.
func TestL02_LookAtATakenDepositFailsOnce(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for n := 1; ; n++ {
		w := newWorld(t, "ETH")
		w.fund("1")
		p := w.pay("ETH", "300")
		w.mine(10)
		w.send(p, "ETH", dec("0.1"))
		w.until(func() bool { return len(w.sweeps()) > 0 && w.sweeps()[0].State == treasury.SweepDone })
		first := w.sweeps()[0].Tx
		w.until(func() bool { return len(w.sweeps()) > 1 })
		f := w.fails(n)
		for range 60 {
			w.clock.Advance(time.Minute)
			w.chain.Mine(1)
			for _, k := range w.app.Workers() {
				if k.Name == "treasury/ETH" {
					_, _ = k.Step(t.Context())
				}
			}
		}
		asked := f.Calls
		f.FailAt = 0
		for _, s := range w.deposits() {
			require.Equal(t, []any{incoming.Forwarded, first}, []any{s.Forward, s.ForwardTx}, "question %d", n)
		}
		if asked < n {
			require.Greater(t, n, 3)
			return
		}
	}
}
