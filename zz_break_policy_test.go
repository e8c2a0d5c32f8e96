package cryptopay_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// A host's own check of recipients refuses, whatever the amount: an approval that a rule of
// amounts asked for does not switch it off.
func TestBreak_TheHostsPolicyIsNotAskedAboutLargePayouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules  []policy.Rule
		early  bool
		amount string
	}{
		"no rules, a small one":                       {rules: []policy.Rule{}, amount: "50000"},
		"no rules, a large one":                       {rules: []policy.Rule{}, amount: "120000"},
		"the default rule, a large one":               {amount: "120000"},
		"no rules, approved before it is handed over": {rules: []policy.Rule{}, amount: "50000", early: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			h := cryptopaytest.Open(t, cryptopaytest.Options{Configure: func(cfg *cryptopay.Config) {
				cfg.Policy.Rules = c.rules
				cfg.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
					asked.Add(1)
					return withdrawal.Refuse, "the recipient is sanctioned", nil
				}
			}})
			h.Customer.Pays(h.Payment("300000", "USDTERC20"))
			to := h.Chains["ETH"].Customer("sanctioned")
			w, err := h.App.Withdrawals.Create(t.Context(), h.ID, withdrawal.CreateInput{
				Terms: withdrawal.Terms{Amount: ptr(dec(c.amount)), Currency: "USDTERC20", Address: string(to)}, By: "alice",
			})
			require.NoError(t, err)
			if c.early {
				_, err = h.App.Withdrawals.Approve(t.Context(), h.ID, w.ID, "bob", "fine")
				require.NoError(t, err)
			}
			h.Settle()
			if w = h.WithdrawalNow(w.ID); w.Status == withdrawal.Pending {
				require.Equal(t, withdrawal.ShownApproval, w.WaitingReason())
				_, err = h.App.Withdrawals.Approve(t.Context(), h.ID, w.ID, "bob", "the amount is fine")
				require.NoError(t, err)
				h.Settle()
			}
			w = h.WithdrawalNow(w.ID)
			t.Log(w.Status, "asked", asked.Load(), "the recipient has", h.Chains["ETH"].Balance(to, "USDTERC20"))
			require.Equal(t, withdrawal.Failed, w.Status, "the host refuses this recipient")
		})
	}
}
