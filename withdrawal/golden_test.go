package withdrawal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/withdrawal"
)

func executed(w *world, id string) {
	w.step()
	w.tell(id, withdrawal.OutcomeSigned, "tx", 0)
	w.tell(id, withdrawal.OutcomeExecuted, "tx", 1)
}

// TestGoldenMoneyOut has the figures of the ledger's scenarios: platform 0.5 %,
// quoted network fee 2 USDT.
func TestGoldenMoneyOut(t *testing.T) {
	t.Parallel()
	const code = "USDTTRC20"
	final := usdt("100")
	final.FinalAmount = true
	dead := func(w *world, id string) {
		w.step()
		w.tell(id, withdrawal.OutcomeSigned, "tx", 0)
		w.tell(id, withdrawal.OutcomeFailed, "tx", 0)
	}
	for name, c := range map[string]struct {
		in      withdrawal.CreateInput
		created string
		then    func(w *world, id string)
		ended   string
		status  withdrawal.Status
	}{
		"completed, false": {usdt("100"), "H +100", executed, "H -100, w -100, c +97.5, P +0.5, N +2", withdrawal.Completed},
		"completed, true":  {final, "H +102.5", executed, "H -102.5, w -102.5, c +100, P +0.5, N +2", withdrawal.Completed},
		"cancelled": {usdt("100"), "H +100", func(w *world, id string) {
			_, err := w.Cancel(w.ctx, tenant, id)
			require.NoError(w, err)
		}, "H -100", withdrawal.Cancelled},
		"refused": {usdt("100"), "H +100", func(w *world, id string) {
			_, err := w.Refuse(w.ctx, tenant, id, "approver", "no")
			require.NoError(w, err)
		}, "H -100", withdrawal.Failed},
		"never broadcast": {usdt("100"), "H +100", func(w *world, id string) {
			w.step()
			w.tell(id, withdrawal.OutcomeFailed, "", 0)
		}, "H -100", withdrawal.Failed},
		"reverted and final, or our cancel landed": {usdt("100"), "H +100", dead, "H -100", withdrawal.Failed},
		"cancelled by the payout side": {usdt("100"), "H +100", func(w *world, id string) {
			w.step()
			w.tell(id, withdrawal.OutcomeCancelled, "", 0)
		}, "H -100", withdrawal.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fund("master", code, "1000")
			start := w.books(code)
			v := w.create(c.in)
			created := w.books(code)
			require.Equal(t, c.created, created.since(start, code))
			c.then(w, v.ID)
			require.Equal(t, c.ended, w.books(code).since(created, code))
			require.Equal(t, c.status, w.get(v.ID).Status)
			w.sound()
		})
	}
}

// 100 USD at 60000: converted once, down.
func TestGoldenPriceAmount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fee["BTC"] = "0.00002"
	w.fund("master", "BTC", "1")
	start := w.books("BTC")
	v := w.create(withdrawal.CreateInput{Terms: withdrawal.Terms{PriceAmount: dec("100"), Currency: "BTC", Address: "bc1"}})
	created := w.books("BTC")
	require.Equal(t, "H +0.00166666", created.since(start, "BTC"))
	executed(w, v.ID)
	require.Equal(t, "H -0.00166666, w -0.00166666, c +0.00163833, P +0.00000833, N +0.00002", w.books("BTC").since(created, "BTC"))
}

// The real fee of a batch is one Tx of treasury's; each withdrawal posts its own.
func TestGoldenBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.percent, w.fee["BTC"] = "0", "0.00002"
	w.fund("master", "BTC", "1")
	for amount, legs := range map[string]string{
		"0.01": "H -0.01002, w -0.01002, c +0.01, N +0.00002",
		"0.02": "H -0.02002, w -0.02002, c +0.02, N +0.00002",
		"0.03": "H -0.03002, w -0.03002, c +0.03, N +0.00002",
	} {
		v := w.create(withdrawal.CreateInput{
			Terms: withdrawal.Terms{Amount: dec(amount), FinalAmount: true, Currency: "BTC", Address: "bc1"},
		})
		before := w.books("BTC")
		executed(w, v.ID)
		require.Equal(t, legs, w.books("BTC").since(before, "BTC"))
	}
	w.sound()
}

// A payment address of ours is paid like any other; the deposit is found there.
func TestGoldenToOurOwnAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "100")
	w.own["Tpay"], w.own["Thot"] = "payment", "hot"
	in := usdt("100")
	in.Address = "Tpay"
	v := w.create(in)
	before := w.books("USDTTRC20")
	executed(w, v.ID)
	require.Equal(t, "H -100, w -100, c +97.5, P +0.5, N +2", w.books("USDTTRC20").since(before, "USDTTRC20"))
}
