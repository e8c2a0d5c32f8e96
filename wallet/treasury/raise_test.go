package treasury_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// What a raised bound adds is set aside of the house's own coins, once however often it is
// asked for, and not where those do not bear it, or where a
// payout or a sweep is not worth it.
func TestFN03_RaisedBoundIsSetAsideOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	in := chain.Intent{
		ID: "p", Purpose: chain.ForWithdrawal, Tenant: w.tenant, Network: "ETH", Currency: "USDTERC20",
		To: w.chain.Customer("payee"), Amount: 100_000000, MaxCost: 40_000, Confirmations: 1,
	}
	require.NoError(t, w.app.Treasury.Submit(t.Context(), in))
	aside := func() (reserved, of int64) {
		g := w.gas(w.tenant, "ETH")
		r, _, _, err := treasury.Reservations.One(t.Context(), w.store, storage.Tenant(w.tenant), "p")
		require.NoError(t, err)
		return int64(g.Reserved), int64(r.Amount)
	}
	is := func(want int64) {
		t.Helper()
		all, of := aside()
		require.Equal(t, []int64{want, want}, []int64{all, of})
	}
	is(40_000)
	for range 3 { // as after a crash between the two commits
		got, err := w.app.Treasury.Grant(t.Context(), in, 100_000)
		require.NoError(t, err)
		require.EqualValues(t, 100_000, got)
		is(100_000)
	}
	in.MaxCost = 100_000
	got, err := w.app.Treasury.Grant(t.Context(), in, 1e8) // 1 ETH for 100 USDT
	require.NoError(t, err)
	require.EqualValues(t, 2_500_000, got, "half of it")
	is(2_500_000)
	in.MaxCost = 2_500_000
	got, err = w.app.Treasury.Grant(t.Context(), in, 3_000_000)
	require.NoError(t, err)
	require.EqualValues(t, 2_500_000, got)

	cancel := in
	cancel.Purpose = chain.ForCancel
	_, err = w.app.Treasury.Grant(t.Context(), cancel, 2e8) // the house has 1 ETH
	short := (*treasury.WaitError)(nil)
	require.ErrorAs(t, err, &short)
	require.ErrorIs(t, err, treasury.ErrGasShort)
	is(2_500_000)

	w.unpriced = true
	w.clock.Advance(time.Hour)
	_, err = w.app.Treasury.Grant(t.Context(), in, 3_000_000)
	require.ErrorAs(t, err, &short)
	require.EqualValues(t, treasury.WaitNoPrice, short.Reason)
	w.unpriced = false

	sweep := in
	sweep.Purpose = chain.ForSweep
	got, err = w.app.Treasury.Grant(t.Context(), sweep, 1e7)
	require.NoError(t, err)
	require.Equal(t, in.MaxCost, got, "of nothing")

	require.ErrorIs(t, w.app.Treasury.Raise(t.Context(), w.tenant, "p", 1e9), treasury.ErrGasShort)
	is(2_500_000)
}

// Fees rise after a sweep was signed, and stay. It is sent again within its share of what it
// moves and within the day's limit, else it waits, and shows why.
func TestFN03_SignedSweepIsRaisedWithinItsShareAndTheDay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ currency, usd, day, waits string }{
		"Worth":            {"ETH", "300", "500", ""},
		"NotWorth":         {"ETH", "4", "500", treasury.WaitBelowCost},
		"DayIsUsedUp":      {"ETH", "300", "3", treasury.WaitBelowCost},
		"TokenWorth":       {"USDTERC20", "300", "500", ""},
		"TokenNotWorth":    {"USDTERC20", "20", "500", treasury.WaitBelowCost},
		"TokenDayIsUsedUp": {"USDTERC20", "300", "3", treasury.WaitDailyCap}, // which its gas is part of
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldAs(t, "ETH", func(w *world) { w.treasury.DailyCost = dec(c.day) })
			w.fund("1")
			w.pay(c.currency, c.usd)
			w.until(w.signed)
			bound := w.intents(chain.ForSweep)[0].MaxCost
			calm := w.chain.FeeLevel()
			w.chain.SetFeeLevel(30 * calm)
			w.hours(12)
			in := w.intents(chain.ForSweep)[0]
			if c.waits != "" {
				require.Equal(t, outgoing.Signed, in.State)
				waiting := w.waiting()
				require.Len(t, waiting, 1)
				require.Equal(t, c.waits, waiting[0].Reason)
				require.False(t, waiting[0].Next.IsZero())
				w.chain.SetFeeLevel(calm)
				w.hours(3)
				w.mine(30)
				in = w.intents(chain.ForSweep)[0]
			}
			require.Equal(t, outgoing.Final, in.State)
			require.Equal(t, c.waits != treasury.WaitBelowCost, in.MaxCost > bound)
			require.Zero(t, w.waits())
			w.conserved("ETH", c.currency)
			w.released()
		})
	}
}

// Gas is on its way to an address when fees rise thirty times, and a payout waits behind its
// nonce: that goes back to ourselves at the new price, as more than the coins there allow is
// not paid for gas to them. It is not the cost of the coins: when fees have fallen they are
// moved, and do not wait for ever.
func TestFN03_FreeingANonceIsNotTheCostOfTheCoins(t *testing.T) {
	t.Parallel()
	w, p, calm := gasUnderWay(t)
	w.withdraw("USDTERC20", "150")
	late := func() (v outgoing.IntentRow) { return w.intents(chain.ForGas)[1] }
	if w.intents(chain.ForGas)[0].State != outgoing.Final {
		late = func() outgoing.IntentRow { return w.intents(chain.ForGas)[0] }
	}
	w.until(func() bool { w.clock.Advance(time.Minute); return late().State != outgoing.Signed })
	require.Equal(t, outgoing.Failed, late().State)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "ETH").IsZero())
	w.hours(12)
	require.Equal(t, treasury.WaitBelowCost, w.waiting()[0].Reason)
	w.chain.SetFeeLevel(calm)
	w.hours(3)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "USDTERC20").IsZero())
	w.mine(14)
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// The same, and nobody waits behind it: nothing is paid at the new price.
func TestFT02_GasOnItsWayCostsNoMoreThanItsCoinsAllow(t *testing.T) {
	t.Parallel()
	w, p, calm := gasUnderWay(t)
	for range 12 {
		w.hours(1)
		for _, v := range w.intents(chain.ForGas) {
			require.LessOrEqual(t, v.MaxCost, ledger.Amount(55_000), "half of 2.20 USD")
		}
	}
	w.chain.SetFeeLevel(calm)
	w.hours(3)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "USDTERC20").IsZero())
	w.mine(14)
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// gasUnderWay has coins worth 2.20 USD at an address, gas for them signed, and then fees that
// are thirty times those before.
func gasUnderWay(t *testing.T) (w *world, p payment.Payment, calm int64) {
	t.Helper()
	w = newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "200")
	w.until(func() bool {
		return len(w.intents(chain.ForSweep)) == 1 && w.intents(chain.ForSweep)[0].State == outgoing.Final
	})
	p = w.pay("USDTERC20", "2.2")
	w.until(func() bool {
		return slices.ContainsFunc(w.intents(chain.ForGas), func(v outgoing.IntentRow) bool { return v.State == outgoing.Signed })
	})
	calm = w.chain.FeeLevel()
	w.chain.SetFeeLevel(30 * calm)
	return w, p, calm
}
