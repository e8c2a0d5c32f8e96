package treasury_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// TestL02_QuestionFailsOnce: whichever question about sweeps, gas or reservations fails, the
// payment is swept once in the end, each cost is booked once, and nothing is left set aside.
func TestL02_QuestionFailsOnce(t *testing.T) {
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
		for range 60 {
			w.clock.Advance(15 * time.Second)
			w.chain.Mine(1)
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
