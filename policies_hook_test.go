package cryptopay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// A host's own check of recipients refuses, whatever the amount: neither an approval that a rule
// asked for, nor one that nobody asked for, switches it off.
func TestPolicy_TheHostsHookIsAskedWhateverRulesAsked(t *testing.T) {
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
			h := cryptopaytest.Open(t, cryptopaytest.Options{Configure: func(cfg *cryptopay.Config) {
				cfg.Policy.Rules = c.rules
				cfg.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
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
			require.Equal(t, []any{withdrawal.Failed, "the recipient is sanctioned"}, []any{w.Status, w.Reason})
			require.Zero(t, h.Chains["ETH"].Balance(to, "USDTERC20").Sign())
			h.Verify()
		})
	}
}

// hooked has the host's hook answer what verdict says at the time. It returns how often a person was
// asked for.
func (i *insider) hooked(verdict *withdrawal.Verdict) (reviews *int) {
	i.t.Helper()
	reviews = new(int)
	configure := i.configure
	i.configure = func(c *cryptopay.Config) {
		configure(c)
		c.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
			return *verdict, "the recipient is new", nil
		}
		c.Withdrawals.Notify = func(_ context.Context, n withdrawal.Notice) {
			if n.Kind == withdrawal.NoticeReview {
				*reviews++
			}
		}
	}
	i.restart()
	return reviews
}

// waits is why a withdrawal waits, and how many people have to approve it.
func (i *insider) waits(id string) string {
	i.t.Helper()
	i.work(3)
	w := i.withdrawalOf(id)
	if w.Stage != withdrawal.Kept && w.Live() { // nobody is asked any more
		i.work(40)
		w = i.withdrawalOf(id)
	}
	return fmt.Sprint(w.Status, " ", w.WaitingReason(), " ", w.ApprovalsRequired())
}

// says has people approve a withdrawal.
func (i *insider) says(id string, people ...string) {
	i.t.Helper()
	for _, by := range people {
		_, err := i.app.Withdrawals.Approve(i.t.Context(), i.tenant, id, by, "")
		require.NoError(i.t, err)
	}
}

// What the host's hook asks, people answer once, whoever asks beside it and in whatever order. It is
// not asked for again, and an approval from before the hook asked is no answer.
func TestPolicy_AnApprovalAnswersTheHostsHookOnce(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	verdict := withdrawal.AskReview
	reviews := i.hooked(&verdict)
	to := i.chains["ETH"].Customer("supplier")
	two := []withdrawal.Need{{Count: 2}}

	// It asks after a rule.
	i.ruled(policy.Rule{Name: "large", Of: policy.KindAmount, Over: dec("50"), Needs: two})
	w := i.asked("60", to)
	require.Equal(t, "pending approval 2", i.waits(w.ID))
	i.says(w.ID, "bob", "BOB")
	require.Equal(t, "pending approval 2", i.waits(w.ID))
	i.says(w.ID, "carol")
	require.Equal(t, "pending review 3", i.waits(w.ID))
	require.Equal(t, "the recipient is new", i.withdrawalOf(w.ID).Reason)
	i.says(w.ID, "bob")
	require.Equal(t, "completed  3", i.waits(w.ID))
	require.Equal(t, 2, *reviews)

	// It asks before a rule, whose sum was used up meanwhile.
	i.ruled(policy.Rule{Name: "daily", Of: policy.KindSum, Over: dec("100"), Per: policy.Duration(24 * time.Hour), Needs: two})
	*reviews = 0
	first, second := i.asked("60", to), i.asked("60", to)
	require.Equal(t, "pending review 1", i.waits(first.ID))
	require.Equal(t, "pending review 1", i.waits(second.ID))
	for _, id := range []string{first.ID, second.ID} {
		_, err := i.app.Withdrawals.Hold(t.Context(), i.tenant, id, "ann", "a look at it")
		require.NoError(t, err)
		i.says(id, "bob")
	}
	for _, id := range []string{first.ID, second.ID} {
		_, err := i.app.Withdrawals.Release(t.Context(), i.tenant, id, "ann", "")
		require.NoError(t, err)
		i.work(3)
	}
	require.Equal(t, "completed  1", i.waits(first.ID))
	require.Equal(t, "pending approval 2", i.waits(second.ID))
	i.says(second.ID, "bob")
	require.Equal(t, "pending approval 2", i.waits(second.ID))
	i.says(second.ID, "carol")
	require.Equal(t, "completed  2", i.waits(second.ID))
	require.Equal(t, 3, *reviews)

	// Nobody has asked for an approval that was given before the hook was asked.
	i.ruled()
	w, err := i.app.Withdrawals.Create(t.Context(), i.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: ptr(dec("20")), Currency: "USDTERC20", Address: string(to)}, By: "alice",
	})
	require.NoError(t, err)
	i.says(w.ID, "bob")
	require.Equal(t, "pending review 1", i.waits(w.ID))
	i.says(w.ID, "bob")
	require.Equal(t, "completed  1", i.waits(w.ID))

	// The hook allows what it has asked about, or refuses it: both count at once.
	for now, want := range map[withdrawal.Verdict]string{withdrawal.Allow: "completed  1", withdrawal.Refuse: "failed  1"} {
		verdict = withdrawal.AskReview
		w = i.asked("20", to)
		require.Equal(t, "pending review 1", i.waits(w.ID))
		i.says(w.ID, "bob")
		verdict = now
		require.Equal(t, want, i.waits(w.ID))
	}
	i.nothingFound()
}

// What an earlier version noted of approvals does not say that the host's hook had asked for them.
// One that no rule asked for goes on to answer the hook, and does not outweigh its refusal. One that
// a rule asked for does not answer it.
func TestPolicy_AnApprovalOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ruled bool
		says  withdrawal.Verdict
		want  string
	}{
		"of the hook's question":             {false, withdrawal.AskReview, "completed  1"},
		"of the hook's question, it refuses": {false, withdrawal.Refuse, "failed  1"},
		"of a rule's question":               {true, withdrawal.AskReview, "pending review 2"},
		"of a rule's question, it refuses":   {true, withdrawal.Refuse, "failed  1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			verdict := withdrawal.AskReview
			i.hooked(&verdict)
			if c.ruled {
				i.ruled(policy.Rule{Name: "large", Of: policy.KindAmount, Over: dec("50")})
			}
			w := i.asked("60", i.chains["ETH"].Customer("supplier"))
			_, err := i.app.Withdrawals.Hold(t.Context(), i.tenant, w.ID, "ann", "a look at it")
			require.NoError(t, err)
			i.says(w.ID, "bob")

			// An earlier version had not noted that the hook asked.
			part := storage.Tenant(i.tenant)
			old, row, _, err := withdrawal.Withdrawals.One(t.Context(), i.store, part, w.ID)
			require.NoError(t, err)
			old.ID = w.ID
			require.Equal(t, withdrawal.ReviewApproved, old.Review)
			if !c.ruled {
				require.Len(t, old.Decisions, 2)
				old.Decisions = old.Decisions[1:]
			}
			require.NoError(t, i.app.Withdrawals.Authorize(&old))
			require.NoError(t, storage.CommitOne(t.Context(), i.store, storage.Change{
				ID: "earlier", Partition: part, Put: []storage.Row{withdrawal.Withdrawals.Row(w.ID, row.Version, row.Due, old)},
			}))
			i.nothingFound()

			verdict = c.says
			_, err = i.app.Withdrawals.Release(t.Context(), i.tenant, w.ID, "ann", "")
			require.NoError(t, err)
			require.Equal(t, c.want, i.waits(w.ID))
			i.nothingFound()
		})
	}
}
