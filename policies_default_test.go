package cryptopay_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// Where a host sets no rules, a payout above 100,000 USD waits for one approval. Rules of the
// host's own replace that, and so does the wish for none.
func TestPolicy_TheDefaultBoundsOnePayout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set    func(*cryptopay.Config)
		status withdrawal.Status
		rule   string
	}{
		"no rules are set": {func(*cryptopay.Config) {}, withdrawal.Pending, "default-amount"},
		"other settings of a policy": {func(c *cryptopay.Config) {
			c.Policy.Sweeps = []policy.Sweep{{Currency: "ETH", Multiple: 3, Wait: policy.Duration(time.Minute)}}
		}, withdrawal.Pending, "default-amount"},
		"none are wanted": {func(c *cryptopay.Config) { c.Policy.Rules = []policy.Rule{} }, withdrawal.Completed, ""},
		"rules of the host's own": {func(c *cryptopay.Config) {
			c.Policy.Rules = []policy.Rule{{Name: "large", Of: policy.KindAmount, Over: dec("500000")}}
		}, withdrawal.Completed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := cryptopaytest.Open(t, cryptopaytest.Options{Configure: c.set})
			h.Customer.Pays(h.Payment("300000", "USDTERC20"))
			require.Equal(t, withdrawal.Completed, h.Withdraw("99000", "USDTERC20").Status, "with its fees that is less")
			w := h.Withdraw("100000.01", "USDTERC20")
			require.Equal(t, []any{c.status, c.rule}, []any{w.Status, w.Rule()})
			if c.rule == "" {
				return
			}
			require.Equal(t, 1, w.ApprovalsRequired())
			require.Equal(t, withdrawal.ShownApproval, w.WaitingReason())
			_, err := h.App.Withdrawals.Approve(t.Context(), h.ID, w.ID, "ann", "invoice 7")
			require.NoError(t, err)
			h.Settle()
			require.Equal(t, withdrawal.Completed, h.WithdrawalNow(w.ID).Status)

			wait := policy.Policy{Sweeps: []policy.Sweep{{Currency: "ETH", Multiple: 3, Wait: policy.Duration(time.Minute)}}}
			_, _, err = h.App.Operate.SetPolicy(t.Context(), h.ID, 0, wait, because("it says nothing of rules"))
			require.NoError(t, err)
			h.Customer.Pays(h.Payment("300000", "USDTERC20"))
			w = h.Withdraw("120000", "USDTERC20")
			require.Equal(t, "default-amount", w.Rule())
			wait.Rules = []policy.Rule{}
			_, _, err = h.App.Operate.SetPolicy(t.Context(), h.ID, 1, wait, because("this merchant has none"))
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, h.Withdraw("120001", "USDTERC20").Status, "a tenant's own rules replace it")
			h.Verify()
		})
	}
}

// Where a host sets no rules, what would go beyond 500,000 USD in 24 hours waits for one approval,
// in payouts of any size. What was approved counts, too; a day later there is room again.
func TestPolicy_TheDefaultBoundsADay(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.Open(t, cryptopaytest.Options{})
	for range 2 {
		h.Customer.Pays(h.Payment("400000", "USDTERC20"))
	}
	for range 5 {
		require.Equal(t, withdrawal.Completed, h.Withdraw("99000", "USDTERC20").Status)
	}
	require.Equal(t, withdrawal.Completed, h.Withdraw("3000", "USDTERC20").Status)
	w := h.Withdraw("2500", "USDTERC20")
	require.Equal(t, []any{withdrawal.Pending, "default-day", withdrawal.ShownApproval}, []any{w.Status, w.Rule(), w.WaitingReason()})
	_, err := h.App.Withdrawals.Approve(t.Context(), h.ID, w.ID, "ann", "invoice 7")
	require.NoError(t, err)
	h.Settle()
	require.Equal(t, withdrawal.Completed, h.WithdrawalNow(w.ID).Status)
	w = h.Withdraw("10", "USDTERC20")
	require.Equal(t, "default-day", w.Rule())
	h.Clock.Advance(25 * time.Hour)
	require.Equal(t, withdrawal.Completed, h.Withdraw("11", "USDTERC20").Status)
	h.Verify()
}

// While there is no price a payout waits under the default rule: it shows that, the operator is
// told once, and it goes out when there is a price again, or when its tenant has rules of his own.
func TestPolicy_TheDefaultWithoutAPrice(t *testing.T) {
	t.Parallel()
	var told atomic.Int64
	h := cryptopaytest.Open(t, cryptopaytest.Options{Configure: func(c *cryptopay.Config) {
		c.Withdrawals.Notify = func(_ context.Context, n withdrawal.Notice) {
			if n.Kind == withdrawal.NoticeWaiting {
				told.Add(1)
			}
		}
	}})
	h.Customer.Pays(h.Payment("1000", "USDTERC20"))
	works := func() {
		h.Clock.Advance(time.Hour)
		for range 60 {
			h.Clock.Advance(12 * time.Second)
			h.Chains["ETH"].Mine(1)
			_ = h.App.Step(t.Context()) // it says that there is no price
		}
	}
	for _, end := range []func(){
		func() { h.Rates.Set("USDT", "USD", dec("1")) },
		func() {
			_, _, err := h.App.Operate.SetPolicy(t.Context(), h.ID, 0, policy.Policy{Rules: []policy.Rule{}}, because("no price will come"))
			require.NoError(t, err)
		},
	} {
		before := told.Load()
		w, err := h.App.Withdrawals.Create(t.Context(), h.ID, withdrawal.CreateInput{Terms: withdrawal.Terms{
			Amount: ptr(dec("10")), Currency: "USDTERC20", Address: string(h.Chains["ETH"].Customer("supplier")),
		}})
		require.NoError(t, err)
		h.Rates.Set("USDT", "USD", dec("0.01")) // which cannot be true: it is refused
		works()
		works() // it has waited for long
		w = h.WithdrawalNow(w.ID)
		require.Equal(t, []any{withdrawal.Pending, withdrawal.WaitingPolicy, withdrawal.ShownReview}, []any{w.Status, w.Waiting, w.WaitingReason()})
		require.Equal(t, before+1, told.Load())
		end()
		works()
		require.Equal(t, withdrawal.Completed, h.WithdrawalNow(w.ID).Status)
	}
}

// Operate.SetPolicy returns what is in force: a policy that says nothing of rules keeps those of the host.
func TestPolicy_SettingOneReturnsTheRulesInForce(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.Open(t, cryptopaytest.Options{})
	for _, dry := range []bool{true, false} {
		v, _, err := h.App.Operate.SetPolicy(t.Context(), h.ID, 0, policy.Policy{}, cryptopay.Call{By: "ann", Reason: "cold addresses", DryRun: dry})
		require.NoError(t, err)
		require.Equal(t, policy.Default().Rules, v.Rules, "dry run: %v", dry)
	}
	v, err := h.App.Policies.Get(t.Context(), h.ID)
	require.NoError(t, err)
	require.Equal(t, policy.Default().Rules, v.Rules)
}

// An App without a source of prices values nothing, so it has no default rule.
func TestPolicy_NoDefaultWithoutRates(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	rules := func(set func(*cryptopay.Config)) []policy.Rule {
		cfg := h.App.Config()
		cfg.Key, cfg.Policy = cryptopaytest.Key(), policy.Policy{}
		set(&cfg)
		app, err := cryptopay.New(cfg)
		require.NoError(t, err)
		v, err := app.Policies.Get(t.Context(), h.ID)
		require.NoError(t, err)
		return v.Rules
	}
	require.Equal(t, policy.Default().Rules, rules(func(*cryptopay.Config) {}))
	require.Empty(t, rules(func(c *cryptopay.Config) { c.Rates = nil }))
}
