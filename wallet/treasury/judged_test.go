package treasury_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// What an address holds is worth more than moving it costs, and less than twice that: it
// waits, nothing is spent, and it goes when fees have fallen.
func TestFT02_MovingCostsAtMostHalf(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	cost, _, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
	require.NoError(t, err)
	amount := w.currency("ETH").Decimal(cost).Mul(dec("2000")).Mul(dec("1.5")).Truncate(6)
	w.send(w.open("USDTERC20", "5"), "USDTERC20", amount)
	w.mine(60)
	w.hours(2)
	require.Equal(t, treasury.WaitBelowCost, w.waiting()[0].Reason)
	require.Equal(t, "1", w.chain.Balance(w.hot, "ETH").String())
	w.chain.SetFeeLevel(w.chain.FeeLevel() / 2)
	w.hours(1)
	w.mine(60)
	require.Equal(t, amount.String(), w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A payout lacks little, which lies at addresses that are not worth their cost alone: it
// is brought for the payout, at no more than half of what is paid out.
func TestFT02_CoinsThatAPayoutNeedsAreJudgedAgainstThePayout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "100")
	w.crumbs(4)
	require.Equal(t, 4, w.waits())
	before := w.chain.Balance(w.hot, "ETH")
	id := w.withdraw("USDTERC20", "101.5")
	w.mine(80)
	w.paidOut(id)
	require.Equal(t, 2, w.waits(), "no more than it needs")
	cost := before.Sub(w.chain.Balance(w.hot, "ETH")).Mul(dec("2000"))
	require.True(t, cost.LessThan(dec("50")), cost)
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A payout that is worth less than the moves that it needs does not cause them.
func TestFT02_SmallPayoutDoesNotCauseDearMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.crumbs(4)
	before := w.chain.Balance(w.hot, "ETH")
	w.withdraw("USDTERC20", "1.5")
	w.mine(60)
	require.Equal(t, outgoing.ReasonBelowCost, w.intents(chain.ForWithdrawal)[0].Reason)
	require.Equal(t, before.String(), w.chain.Balance(w.hot, "ETH").String())

	w.chain.SetFeeLevel(w.chain.FeeLevel() / 4)
	w.hours(3)
	w.mine(30)
	require.Equal(t, outgoing.Final, w.intents(chain.ForWithdrawal)[0].State, "fees have fallen")
	w.conserved("ETH", "USDTERC20")
}

// Forwarding costs at most so much a day; the rest waits for the next one.
func TestFT02_ForwardingHasADailyLimit(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	w := newWorldAs(t, "ETH", func(w *world) { w.treasury.DailyCost = dec("3") })
	w.fund("1")
	for range 12 {
		w.pay("USDTERC20", "50")
	}
	w.mine(80)
	waiting := w.waiting()
	require.NotEmpty(t, waiting)
	require.Less(t, len(waiting), 12)
	for _, x := range waiting {
		require.Equal(t, treasury.WaitDailyCap, x.Reason)
		require.True(t, x.Next.After(w.clock.Now()))
	}
	spent := dec("1").Sub(w.chain.Balance(w.hot, "ETH")).Mul(dec("2000"))
	require.True(t, spent.LessThanOrEqual(dec("3")), "with the gas that lies at addresses: %s USD", spent)
	w.restart()
	w.hours(4 * 24)
	w.mine(30)
	require.Zero(t, w.waits())
	require.Equal(t, "600", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// Without a price nothing is forwarded, and that is shown.
func TestFT02_WithoutAPriceASweepWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "300")
	w.unpriced = true
	w.mine(40)
	require.Equal(t, treasury.WaitNoPrice, w.waiting()[0].Reason)
	require.Empty(t, w.intents(chain.ForGas))
	w.unpriced = false
	w.hours(2)
	w.mine(40)
	require.Zero(t, w.waits())
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
}

// Config.RateAge alone says which price is too old, for forwarding as for payments.
func TestFM02_ForwardingTakesThePricesThatTheAppTakes(t *testing.T) {
	t.Parallel()
	w := newWorldAs(t, "ETH", func(w *world) { w.rateAge, w.priceAge = time.Hour, 20*time.Minute })
	w.fund("1")
	w.pay("USDTERC20", "300")
	w.mine(60)
	require.Zero(t, w.waits())
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
}

// gasTo is an order of a gas transfer.
func (w *world) gasTo(id, amount string) error {
	units, err := w.currency("ETH").Units(dec(amount), ledger.Down)
	require.NoError(w.t, err)
	return w.app.Treasury.Submit(w.t.Context(), chain.Intent{
		ID: "gas/1/" + id, Purpose: chain.ForGas, Tenant: w.tenant, Network: w.n, Currency: "ETH",
		To: chain.Address(w.open("USDTERC20", "5").Address), Amount: units, Confirmations: 1,
	})
}

// A gas transfer that was called off takes nothing of the day's limit.
func TestFT02_GasThatWasCalledOffIsNotOfTheDay(t *testing.T) {
	t.Parallel()
	w := newWorldAs(t, "ETH", func(w *world) { w.treasury.DailyCost = dec("3") })
	w.fund("1")
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, w.gasTo(id, "0.0008"))
		off, err := w.app.Treasury.Cancel(t.Context(), w.n, "gas/1/"+id)
		require.NoError(t, err)
		require.True(t, off)
		w.mine(1)
	}
	w.released()
	require.NoError(t, w.gasTo("d", "0.0008"))
	w.mine(60)
	w.released()
	require.Error(t, w.gasTo("e", "0.0008"), "the one that landed counts")
}

// The day changes while a gas transfer is decided: it is of the day on which it was.
func TestFT02_GasCountsOnTheDayOfItsReservation(t *testing.T) {
	t.Parallel()
	w := newWorldAs(t, "ETH", func(w *world) { w.treasury.DailyCost = dec("3") })
	w.fund("1")
	now := w.clock.Now()
	w.clock.Advance(now.Truncate(24 * time.Hour).Add(24*time.Hour - time.Second).Sub(now))
	w.at("reserve/", func() {
		w.clock.Advance(2 * time.Second)
		require.NoError(t, w.gasTo("first", "0.0008"))
	})
	require.NoError(t, w.gasTo("second", "0.0003"))
	var wait *treasury.WaitError
	require.ErrorAs(t, w.gasTo("third", "0.0003"), &wait)
	require.EqualValues(t, treasury.WaitDailyCap, wait.Reason)
}

// TestFT02_WhatAnOlderVersionSetAsideIsNotGivenBackToTheDay: it took nothing of the day's
// limit, so its end leaves what others took.
func TestFT02_WhatAnOlderVersionSetAsideIsNotGivenBackToTheDay(t *testing.T) {
	t.Parallel()
	w := newWorldAs(t, "ETH", func(w *world) { w.treasury.DailyCost = dec("3") })
	w.fund("1")
	require.NoError(t, w.gasTo("old", "0.0008"))
	// As a version without the limit left it.
	p := storage.Tenant(w.tenant)
	r, row, ok, err := treasury.Reservations.One(t.Context(), w.store, p, "gas/1/old")
	require.NoError(t, err)
	require.True(t, ok)
	r.Counted = 0
	day := "forwarding/ETH/" + w.clock.Now().UTC().Format(time.DateOnly)
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "older", Partition: p, Level: []storage.Level{{Name: day, Delta: -1 << 40}},
		Put: []storage.Row{treasury.Reservations.Row(row.ID, row.Version, row.Due, r)},
	}))
	require.NoError(t, w.gasTo("new", "0.0008"), "nothing is counted yet")
	off, err := w.app.Treasury.Cancel(t.Context(), w.n, "gas/1/old")
	require.NoError(t, err)
	require.True(t, off)
	w.mine(1)
	r, _, _, err = treasury.Reservations.One(t.Context(), w.store, p, "gas/1/old")
	require.NoError(t, err)
	require.False(t, r.Open)
	var wait *treasury.WaitError
	require.ErrorAs(t, w.gasTo("more", "0.0008"), &wait)
	require.EqualValues(t, treasury.WaitDailyCap, wait.Reason)
	w.mine(60)
	w.released()
}

// Gas that was set aside before midnight is called off after it: the day that counted it
// gets it back, and the new day nothing.
func TestFT02_CalledOffGasIsGivenBackToItsDay(t *testing.T) {
	t.Parallel()
	w := newWorldAs(t, "ETH", func(w *world) { w.treasury.DailyCost = dec("3") })
	w.fund("1")
	now := w.clock.Now()
	w.clock.Advance(now.Truncate(24 * time.Hour).Add(24*time.Hour - time.Second).Sub(now))
	require.NoError(t, w.gasTo("before", "0.0008"))
	w.clock.Advance(2 * time.Second)
	off, err := w.app.Treasury.Cancel(t.Context(), w.n, "gas/1/before")
	require.NoError(t, err)
	require.True(t, off)
	require.NoError(t, w.gasTo("after", "0.0008"))
	w.mine(1)
	var wait *treasury.WaitError
	require.ErrorAs(t, w.gasTo("more", "0.0008"), &wait)
	require.EqualValues(t, treasury.WaitDailyCap, wait.Reason)
}
