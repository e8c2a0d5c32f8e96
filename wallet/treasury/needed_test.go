package treasury_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// A tenant has more payouts than one page that nothing can bring coins for. The payout of
// another tenant is brought its coins all the same.
func TestFT02_PayoutsThatStayShortDoNotKeepAnothersBack(t *testing.T) {
	t.Parallel()
	w := newWorldAs(t, "ETH", func(w *world) { w.treasury.Batch = 2 })
	w.fund("1")
	for range 16 {
		w.send(w.open("USDTERC20", "5"), "USDTERC20", dec("1"))
	}
	other, name := w.tenant, "other"
	second, err := w.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	w.tenant = second.ID
	w.hot, err = w.app.Hot(t.Context(), w.n, w.tenant)
	require.NoError(t, err)
	w.fund("1")
	w.pay("USDTERC20", "100")
	w.crumbs(4)
	mine := w.tenant
	w.tenant = other
	for range 8 {
		w.withdraw("USDTERC20", "1.5")
	}
	w.mine(10)
	w.tenant = mine
	id := w.withdraw("USDTERC20", "101.5")
	w.mine(80)
	w.paidOut(id)
	short := 0
	for _, v := range w.intents(chain.ForWithdrawal) {
		if v.Reason == outgoing.ReasonBelowCost {
			short++
		}
	}
	require.Equal(t, 8, short)
}

// What a payout lacks is brought where that costs half of the payout, and not where it costs
// the least bit more.
func TestFT02_PayoutGetsItsCoinsAtHalfOfItAndNotAbove(t *testing.T) {
	t.Parallel()
	for _, short := range []string{"0", "0.00008"} { // a unit of gas is worth 0.00002
		w := newWorld(t, "ETH")
		w.fund("1")
		w.pay("USDTERC20", "28.5")
		w.crumbs(4)
		cost := func() decimal.Decimal { // of one sweep, in USD
			w.clock.Advance(2 * time.Minute)
			c, _, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
			require.NoError(t, err)
			return w.currency("ETH").Decimal(c).Mul(dec("2000"))
		}
		for range 5 { // what is not of the level counts less and less
			level := dec("7.5").Mul(decimal.NewFromInt(w.chain.FeeLevel())).Div(cost())
			w.chain.SetFeeLevel(level.IntPart())
		}
		// Of four times the cost of one sweep, half is what two of them cost.
		amount := cost().Mul(dec("4"))
		require.True(t, amount.GreaterThan(dec("29.6")) && amount.LessThan(dec("30.4")), "%s needs two sweeps", amount)
		amount = amount.Sub(dec(short))
		v, err := w.app.Withdrawals.Create(t.Context(), w.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{Amount: &amount, FinalAmount: true, Currency: "USDTERC20", Address: string(w.chain.Customer("supplier"))},
		})
		require.NoError(t, err)
		w.mine(80)
		if short == "0" {
			w.paidOut(v.ID)
			continue
		}
		require.Equal(t, outgoing.ReasonBelowCost, w.intents(chain.ForWithdrawal)[0].Reason)
		require.Equal(t, 4, w.waits())
	}
}

// Fees rise after the gas for a move was sent, which a payout waits for. The coins come
// at the new cost, as that is still below the allowed share of the payout.
func TestFT02_PayoutGetsItsCoinsWhenFeesRiseMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "100")
	w.crumbs(4)
	before := w.chain.Balance(w.hot, "ETH")
	gas := len(w.intents(chain.ForGas))
	id := w.withdraw("USDTERC20", "101.5")
	w.until(func() bool { return len(w.intents(chain.ForGas)) > gas })
	w.chain.SetFeeLevel(w.chain.FeeLevel() * 2)
	w.mine(120)
	w.paidOut(id)
	cost := before.Sub(w.chain.Balance(w.hot, "ETH")).Mul(dec("2000"))
	require.True(t, cost.LessThan(dec("50")), cost)
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A payout needs the coins of two addresses: both sweeps go in one round, and those that it
// does not need go on waiting.
func TestFT02_PayoutGetsAllThatItNeedsInOneRound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "100")
	w.crumbs(4)
	require.Equal(t, 4, w.waits())
	id := w.withdraw("USDTERC20", "101.5")
	for range 80 {
		w.mine(1)
		require.Contains(t, []int{4, 2}, w.waits())
	}
	require.Equal(t, 2, w.waits())
	w.paidOut(id)
}

// More sweeps than one batch wait for lower fees. When fees have fallen all of them are due
// in that round, not a batch a minute.
func TestFT01_AllThatAreWorthTheirCostAreDueInOneRound(t *testing.T) {
	t.Parallel()
	w := newWorldAs(t, "ETH", func(w *world) { w.treasury.Batch = 2 })
	w.fund("1")
	level := w.chain.FeeLevel()
	w.chain.SetFeeLevel(spike * level)
	for range 9 {
		w.pay("USDTERC20", "20")
	}
	w.mine(60)
	require.Equal(t, 9, w.waits())
	w.chain.SetFeeLevel(level)
	w.clock.Advance(2 * time.Minute)
	for range 20 { // and the clock stands
		w.step()
	}
	require.Zero(t, w.waits())
	w.mine(60)
	require.Equal(t, "180", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A payout lacks coins that would cost too much of it to bring: it says so, and is paid
// when fees have fallen.
func TestFN02_PayoutWhoseCoinsCostTooMuchToBringSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.crumbs(20)
	require.Equal(t, 20, w.waits())
	id := w.withdraw("USDTERC20", "15")
	w.mine(20)
	v, err := w.app.Withdrawals.Get(t.Context(), w.tenant, id)
	require.NoError(t, err)
	require.Equal(t, withdrawal.ShownBelowCost, v.WaitingReason())
	require.False(t, v.WaitingSince.IsZero())
	w.chain.SetFeeLevel(w.chain.FeeLevel() / 20)
	w.mine(200)
	w.paidOut(id)
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// The hot address holds what a payout sends, and not its fee. Coins of deposits that wait
// for lower fees are brought for it, as for a payout that lacks the amount.
func TestFT02_PayoutThatLacksItsFeeGetsCoins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("0.1")
	w.pay("ETH", "2000")
	w.mine(60)
	w.chain.SetFeeLevel(spike / 10 * w.chain.FeeLevel())
	for range 20 {
		w.pay("ETH", "20")
	}
	w.mine(60)
	require.Equal(t, 20, w.waits())
	held := w.chain.Balance(w.hot, "ETH")
	id := w.withdraw("ETH", held.Mul(dec("2000")).Truncate(2).String())
	w.until(func() bool {
		all := w.intents(chain.ForWithdrawal)
		return len(all) > 0 && all[0].Reason == outgoing.ReasonOperatorFunds
	})
	w.mine(120)
	w.paidOut(id)
	require.Less(t, w.waits(), 20)
	w.conserved("ETH")
	w.released()
}

// A payout lacks coins that wait on deposit addresses, and no source has a price: nobody can
// say that bringing them costs too much.
func TestFN02_WithoutAPriceAPayoutIsNotSaidToCostTooMuch(t *testing.T) {
	t.Parallel()
	w := newWorldAs(t, "ETH", func(w *world) { w.policy.Rules = []policy.Rule{} }) // no rule asks for a price
	w.fund("1")
	w.crumbs(4)
	w.withdraw("USDTERC20", "2.5")
	w.unpriced = true
	w.mine(3)
	require.Equal(t, outgoing.ReasonHotBalance, w.intents(chain.ForWithdrawal)[0].Reason)
}

// A token's issuer has taken a tenth of all balances, and fees are high. A payout whose
// amount is there with all that waits on deposit addresses waits for lower fees; where a
// single unit more is missing no fees bring it: it shows hot_short, and the operator's coins
// have it paid.
func TestFN02_PayoutThatAllItsCoinsDoNotCoverIsShort(t *testing.T) {
	t.Parallel()
	for _, more := range []bool{false, true} {
		w := newWorld(t, "ETH")
		w.fund("1")
		w.pay("USDTERC20", "100")
		w.mine(60)
		w.chain.Rebase(w.currency("USDTERC20").Contract, 1000)
		w.crumbs(4)
		level := w.chain.FeeLevel()
		amount := w.chain.Balance(w.hot, "USDTERC20").Add(dec("4"))
		if more {
			amount = amount.Add(dec("0.000001"))
		}
		v, err := w.app.Withdrawals.Create(t.Context(), w.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{Amount: &amount, FinalAmount: true, Currency: "USDTERC20", Address: string(w.chain.Customer("supplier"))},
		})
		require.NoError(t, err)
		w.chain.SetFeeLevel(spike * level)
		w.clock.Advance(2 * time.Minute) // and it is asked again
		w.mine(1)
		reason := w.intents(chain.ForWithdrawal)[0].Reason
		if !more {
			require.Equal(t, outgoing.ReasonBelowCost, reason)
			continue
		}
		require.Equal(t, outgoing.ReasonHotBalance, reason)
		w.chain.SetFeeLevel(level)
		_, err = w.chain.Fund(w.hot, "USDTERC20", dec("4"))
		require.NoError(t, err)
		w.mine(60)
		w.paidOut(v.ID)
	}
}

// More addresses than one page shows hold coins that wait for lower fees: nobody can say that
// they do not cover what a payout lacks.
func TestFN02_PayoutThatLacksMoreThanAPageOfCrumbsWaitsForThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "100")
	w.mine(60)
	w.chain.Rebase(w.currency("USDTERC20").Contract, 1000)
	id := w.withdraw("USDTERC20", "95")
	crumbs := func(from, to int) {
		var rows []storage.Row
		for i := from; i < to; i++ {
			rows = append(rows, treasury.SweepNotes.Row(fmt.Sprint("crumb/", i), 0, time.Time{}, treasury.SweepNote{
				Tenant: w.tenant, Currency: "USDTERC20", Amount: 1, Waiting: treasury.WaitBelowCost, DueBelow: 1,
			}))
		}
		require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
			ID: fmt.Sprint("crumbs/", from), Partition: storage.Network(string(w.n)), Put: rows,
		}))
	}
	shows := func() string {
		w.mine(40)
		v, err := w.app.Withdrawals.Get(t.Context(), w.tenant, id)
		require.NoError(t, err)
		return v.WaitingReason()
	}
	crumbs(0, 999)
	require.Equal(t, withdrawal.ShownHotShort, shows())
	crumbs(999, 1000)
	require.Equal(t, withdrawal.ShownBelowCost, shows())
}
