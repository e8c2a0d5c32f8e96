package treasury_test

import (
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// patient is a world whose tenant has USDT wait for a tenth as cost, three days at most, and
// which got six times the cost of a sweep: it may be forwarded, and waits.
func patient(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.chain.SetFeeLevel(4 * w.chain.FeeLevel())
	w.mine(1)
	w.clock.Advance(2 * time.Minute)
	_, err := w.app.Policies.Set(t.Context(), w.tenant, 0, policy.Policy{
		Sweeps: []policy.Sweep{{Currency: "USDTERC20", Multiple: 10, Wait: policy.Duration(72 * time.Hour)}},
	}, "ann", "small shops wait")
	require.NoError(t, err)
	p := w.pay("USDTERC20", w.sweepCost().Mul(dec("6")).StringFixed(2))
	w.mine(30)
	require.Equal(t, []string{treasury.WaitForMore}, w.reasons())
	require.Equal(t, "completed", string(w.payment(p.ID).Status), "a payment does not wait for its sweep")
	return w
}

// sweepCost is what forwarding USDT costs now, in USD.
func (w *world) sweepCost() decimal.Decimal {
	w.t.Helper()
	c, _, err := w.app.Treasury.ForwardCost(w.t.Context(), "USDTERC20")
	require.NoError(w.t, err)
	return w.currency("ETH").Decimal(c).Mul(dec("2000"))
}

// moved is how much USDT the hot address holds.
func (w *world) moved() decimal.Decimal {
	w.t.Helper()
	held, err := w.app.Treasury.Held(w.t.Context(), "ETH", "USDTERC20", w.hot)
	require.NoError(w.t, err)
	return held
}

// TestFT03_CoinsWaitAsTheirPolicySays: no longer than that, and a wait like any other: with its
// reason, and until when. It pages nobody.
func TestFT03_CoinsWaitAsTheirPolicySays(t *testing.T) {
	t.Parallel()
	w := patient(t)
	shown := w.waiting()[0]
	require.Contains(t, shown.Detail, "one part in 10")
	require.False(t, shown.Next.IsZero())
	for range 68 {
		w.hours(1)
		require.Equal(t, []string{treasury.WaitForMore}, w.reasons())
	}
	require.True(t, w.moved().IsZero())
	w.hours(6)
	w.mine(60)
	require.Zero(t, w.waits())
	require.True(t, w.moved().IsPositive())
	w.conserved("USDTERC20", "ETH")
}

func TestFT03_CoinsThatWaitGoWhenFeesFall(t *testing.T) {
	t.Parallel()
	w := patient(t)
	w.chain.SetFeeLevel(w.chain.FeeLevel() / 2)
	w.hours(1)
	w.mine(60)
	require.Zero(t, w.waits())
	require.True(t, w.moved().IsPositive())
}

// A payout that lacks coins has them brought, whatever they wait for, and they are judged by
// their own worth: they would have gone without the policy.
func TestFT03_CoinsThatWaitGoForAPayout(t *testing.T) {
	t.Parallel()
	w := patient(t)
	amount := dec("1.2")
	require.True(t, amount.LessThan(w.sweepCost().Mul(dec("2"))), "a sweep that waits for lower costs would not go for it")
	v, err := w.app.Withdrawals.Create(t.Context(), w.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: &amount, FinalAmount: true, Currency: "USDTERC20", Address: string(w.chain.Customer("supplier"))},
	})
	require.NoError(t, err)
	w.mine(80)
	w.paidOut(v.ID)
	require.Zero(t, w.waits())
}

// Dear coins of a tenant without a policy, and other currencies, are as before.
func TestFT03_PolicyOfSweepsIsOfOneCurrency(t *testing.T) {
	t.Parallel()
	w := patient(t)
	c, _, err := w.app.Treasury.ForwardCost(t.Context(), "ETH")
	require.NoError(t, err)
	w.send(w.open("ETH", "5"), "ETH", w.currency("ETH").Decimal(c).Mul(dec("6")))
	w.mine(30)
	require.Len(t, w.waiting(), 1)
	require.Equal(t, "USDTERC20", w.waiting()[0].Currency.Code)
	for _, wrong := range []policy.Sweep{
		{Currency: "NOPE", Multiple: 10, Wait: policy.Duration(time.Hour)},
		{Currency: "ETH", Multiple: 2, Wait: policy.Duration(time.Hour)},
		{Currency: "ETH", Multiple: 10, Wait: policy.Duration(time.Second)},
		{Currency: "ETH", Multiple: 10, Wait: policy.Duration(800 * time.Hour)},
	} {
		_, err := w.app.Policies.Set(t.Context(), w.tenant, 1, policy.Policy{Sweeps: []policy.Sweep{wrong}}, "ann", "x")
		require.ErrorContains(t, err, "sweeps[0]")
	}
}

// TestFT03_CoinsWaitNoLongerThanTheirPolicy: once the policy says otherwise, coins that wait already
// go by it.
func TestFT03_CoinsWaitNoLongerThanTheirPolicy(t *testing.T) {
	t.Parallel()
	for name, sweeps := range map[string][]policy.Sweep{
		"none":    nil,
		"less":    {{Currency: "USDTERC20", Multiple: 4, Wait: policy.Duration(72 * time.Hour)}},
		"shorter": {{Currency: "USDTERC20", Multiple: 10, Wait: policy.Duration(time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patient(t)
			_, err := w.app.Policies.Set(t.Context(), w.tenant, 1, policy.Policy{Sweeps: sweeps}, "ann", "not any more")
			require.NoError(t, err)
			w.hours(2)
			w.mine(60)
			require.Zero(t, w.waits())
			require.True(t, w.moved().IsPositive())
		})
	}
}
