package cryptopay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// ruled sets the tenant's policy.
func (i *insider) ruled(rules ...policy.Rule) policy.Version {
	i.t.Helper()
	now, err := i.app.Policies.Get(i.t.Context(), i.tenant)
	require.NoError(i.t, err)
	v, record, err := i.app.Operate.SetPolicy(i.t.Context(), i.tenant, now.Number, policy.Policy{Rules: rules}, cryptopay.Call{By: "ann", Reason: "ticket 7"})
	require.NoError(i.t, err)
	require.NotEmpty(i.t, record)
	return v
}

// states counts withdrawals by status, reason to wait and rule.
func (i *insider) states(ids []string) map[string]int {
	i.t.Helper()
	out := map[string]int{}
	for _, id := range ids {
		w := i.withdrawalOf(id)
		out[fmt.Sprintf("%s %s %s", w.Status, w.WaitingReason(), w.Rule())]++
	}
	return out
}

// Twenty payouts of 10 USD at once, in two processes: no more than 100 USD go out in a day by the
// rule, the others say which rule they wait for, and a day later there is room again.
func TestPolicy_ASumIsNeverExceededByPayoutsAtOnce(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		i.ruled(policy.Rule{Name: "daily", Of: policy.KindSum, Over: dec("100"), Per: policy.Duration(24 * time.Hour)})
		var ids []string
		for n := range 20 {
			w, err := i.app.Withdrawals.Create(t.Context(), i.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{Amount: ptr(dec("10")), Currency: "USDTERC20", Address: string(i.chains["ETH"].Customer(fmt.Sprint("supplier", n)))}, By: "alice",
			})
			require.NoError(t, err)
			ids = append(ids, w.ID)
		}
		other := i.compose(i.configure)
		require.NoError(t, other.Open(t.Context(), cryptopay.Tables()...))
		failed := make(chan error)
		for _, app := range []*cryptopay.App{i.app, other} {
			go func() {
				_, err := app.Withdrawals.Step(t.Context())
				failed <- err
			}()
		}
		require.NoError(t, <-failed)
		require.NoError(t, <-failed)
		i.clock.Advance(2 * time.Minute) // a lease, for what conflicted
		i.work(60)
		require.Equal(t, map[string]int{"completed  ": 10, "pending approval daily": 10}, i.states(ids))
		for _, id := range ids {
			w := i.withdrawalOf(id)
			require.Equal(t, w.Status == withdrawal.Pending, w.ApprovalsRequired() == 1)
		}

		i.clock.Advance(25 * time.Hour)
		later := i.asked("95", i.chains["ETH"].Customer("later"))
		i.work(60)
		require.Equal(t, withdrawal.Completed, i.withdrawalOf(later.ID).Status, "yesterday does not count")
		again := i.asked("10", i.chains["ETH"].Customer("again"))
		require.Equal(t, []any{"approval", "daily"}, []any{again.WaitingReason(), again.Rule()})
		i.nothingFound()
	})
}

// Rules count a hundred payouts that go out together in one write, whatever their number: one
// Step hands all of them over, and each of them is counted.
func TestPolicy_AHundredCountedPayoutsGoOutInOneStep(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		day := policy.Duration(24 * time.Hour)
		i.ruled(
			policy.Rule{Name: "daily", Of: policy.KindSum, Over: dec("250"), Per: day},
			policy.Rule{Name: "many", Of: policy.KindCount, Over: dec("140"), Per: day},
			policy.Rule{Name: "same", Of: policy.KindCount, Over: dec("60"), Per: day, EachDestination: true},
		)
		var ids []string
		for n := range 100 {
			w, err := i.app.Withdrawals.Create(t.Context(), i.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{Amount: ptr(dec("2")), Currency: "USDTERC20", Address: string(i.chains["ETH"].Customer(fmt.Sprint("supplier", n%2)))}, By: "alice",
			})
			require.NoError(t, err)
			ids = append(ids, w.ID)
		}
		n, err := i.app.Withdrawals.Step(t.Context())
		require.NoError(t, err)
		require.Equal(t, 100, n)
		for _, id := range ids {
			require.Equal(t, withdrawal.Handed, i.withdrawalOf(id).Stage)
		}
		over := i.asked("51", i.chains["ETH"].Customer("another"))
		require.Equal(t, []any{"approval", "daily"}, []any{over.WaitingReason(), over.Rule()})
		require.Contains(t, over.Reason, "with 200 USD that went out")
	})
}

// One that does not go out after all, as somebody else keeps it back, is not counted, and takes
// the room of none that comes after it.
func TestPolicy_OneThatIsKeptBackTakesNoRoom(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		kept, configure := "", i.configure
		i.configure = func(c *cryptopay.Config) {
			configure(c)
			c.Withdrawals.Policy = func(_ context.Context, w withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
				if w.ID == kept {
					return withdrawal.AskReview, "large", nil
				}
				return withdrawal.Allow, "", nil
			}
		}
		i.restart()
		i.ruled(policy.Rule{Name: "daily", Of: policy.KindSum, Over: dec("30"), Per: policy.Duration(24 * time.Hour)})
		var ids []string
		for range 6 {
			w, err := i.app.Withdrawals.Create(t.Context(), i.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{Amount: ptr(dec("10")), Currency: "USDTERC20", Address: string(i.chains["ETH"].Customer("supplier"))}, By: "alice",
			})
			require.NoError(t, err)
			ids = append(ids, w.ID)
			i.clock.Advance(time.Second)
		}
		kept = ids[1]
		_, err := i.app.Withdrawals.Step(t.Context())
		require.NoError(t, err)
		var out []string
		for n, id := range ids {
			if i.withdrawalOf(id).Stage == withdrawal.Handed {
				out = append(out, fmt.Sprint(n))
			}
		}
		require.Equal(t, []string{"0", "2", "3"}, out)
		require.Equal(t, map[string]int{"pending  ": 3, "pending review ": 1, "pending approval daily": 2}, i.states(ids))
	})
}

// Who approves counts once, for one of his roles, and never for what he asked for; what needs
// finance does not go out by anybody else's word.
func TestPolicy_NOfMWithARogueApprover(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		ctx, app := t.Context(), i.app.Withdrawals
		i.ruled(policy.Rule{
			Name: "large", Of: policy.KindAmount, Over: dec("100"), Needs: []withdrawal.Need{{Role: "finance", Count: 2}, {Count: 1}},
		})
		to := i.chains["ETH"].Customer("supplier")
		approve := func(id, by string, roles ...string) withdrawal.Withdrawal {
			t.Helper()
			w, err := app.Approve(ctx, i.tenant, id, by, "", roles...)
			require.NoError(t, err)
			i.work(2)
			return i.withdrawalOf(w.ID)
		}
		small := i.asked("90", to)
		require.NotEqual(t, "approval", small.WaitingReason())
		w := i.asked("150", to)
		require.Equal(t, []any{3, "approval", "large"}, []any{w.ApprovalsRequired(), w.WaitingReason(), w.Rule()})
		require.Contains(t, w.Reason, "above 100")

		for range 3 {
			approve(w.ID, "rogue")
		}
		_, err := app.Approve(ctx, i.tenant, w.ID, "alice", "", "finance")
		require.ErrorIs(t, err, withdrawal.ErrOwnRequest)
		_, err = app.Approve(ctx, i.tenant, w.ID, " Alice", "", "finance")
		require.ErrorIs(t, err, withdrawal.ErrOwnRequest, "in another spelling")
		approve(w.ID, "mallory")
		approve(w.ID, "MALLORY ")
		approve(w.ID, "rogue ")
		approve(w.ID, "bob", "finance")
		require.Equal(t, withdrawal.Pending, approve(w.ID, "bob", "finance", "cfo").Status, "bob counts once")
		i.work(40)
		require.Equal(t, withdrawal.Pending, i.withdrawalOf(w.ID).Status, "three have approved it, and one of finance is missing")
		approve(w.ID, "carol")
		i.work(40)
		require.Equal(t, withdrawal.Pending, i.withdrawalOf(w.ID).Status, "she did not say that she is of finance")
		approve(w.ID, "carol", "finance")
		i.work(60)
		require.Equal(t, withdrawal.Completed, i.withdrawalOf(w.ID).Status)

		// Nobody is quicker than the rules: before they were asked, one approval lets nothing go.
		early, err := app.Create(ctx, i.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{Amount: ptr(dec("150")), Currency: "USDTERC20", Address: string(to)}, By: "alice",
		})
		require.NoError(t, err)
		got, err := app.Approve(ctx, i.tenant, early.ID, "rogue", "")
		require.NoError(t, err)
		require.Equal(t, []any{3, withdrawal.Pending}, []any{got.ApprovalsRequired(), got.Status})
		i.work(40)
		require.Equal(t, withdrawal.Pending, i.withdrawalOf(early.ID).Status)
		refused, err := app.Refuse(ctx, i.tenant, early.ID, "bob", "who is that?")
		require.NoError(t, err)
		require.Equal(t, withdrawal.Failed, refused.Status)
		i.nothingFound()
	})
}

// A rule that refuses frees the money and is named; one about destinations has a new one wait
// until it has been on the list for long enough.
func TestPolicy_RefusalsAndDestinations(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	ctx := t.Context()
	i.ruled(
		policy.Rule{Name: "known", Of: policy.KindDestination, Per: policy.Duration(24 * time.Hour), Then: policy.Refuse},
		policy.Rule{Name: "often", Of: policy.KindCount, Over: dec("1"), Per: policy.Duration(time.Hour), EachDestination: true, Then: policy.Refuse},
	)
	to, call := i.chains["ETH"].Customer("supplier"), cryptopay.Call{By: "ann", Reason: "contract 12"}
	stranger := i.asked("10", i.chains["ETH"].Customer("stranger"))
	require.Equal(t, []any{withdrawal.Failed, "known", "rule known: the destination is not on the list"}, []any{stranger.Status, stranger.Rule(), stranger.Reason})

	_, record, err := i.app.Operate.AllowDestination(ctx, i.tenant, "ETH", string(to), "", call)
	require.NoError(t, err)
	require.NotEmpty(t, record)
	early := i.asked("10", to)
	require.Equal(t, []any{withdrawal.Pending, "approval", "known"}, []any{early.Status, early.WaitingReason(), early.Rule()})
	_, err = i.app.Withdrawals.Approve(ctx, i.tenant, early.ID, "bob", "")
	var state *withdrawal.StateError
	require.ErrorAs(t, err, &state, "nobody shortens the time on the list")
	require.Contains(t, err.Error(), "may be paid from")
	i.clock.Advance(24 * time.Hour)
	i.work(60)
	w := i.withdrawalOf(early.ID)
	require.Equal(t, []any{withdrawal.Completed, ""}, []any{w.Status, w.Reason})
	i.asked("10", to)
	third := i.asked("10", to)
	require.Equal(t, []any{withdrawal.Failed, "often"}, []any{third.Status, third.Rule()})

	_, err = i.app.Operate.RemoveDestination(ctx, i.tenant, "ETH", string(to), "", call)
	require.NoError(t, err)
	i.clock.Advance(2 * time.Hour)
	gone := i.asked("10", to)
	require.Equal(t, []any{withdrawal.Failed, "known"}, []any{gone.Status, gone.Rule()})
	_, err = i.app.Operate.RemoveDestination(ctx, i.tenant, "ETH", string(to), "", call)
	require.ErrorIs(t, err, policy.ErrUnknown)
	i.nothingFound()

	var kinds []outgoing.OperationKind
	rows, err := i.store.Find(ctx, storage.Query{Table: outgoing.Operations.Table, Partition: storage.Tenant(i.tenant)})
	require.NoError(t, err)
	for _, r := range rows {
		kinds = append(kinds, outgoing.Operations.Value(r).Kind)
	}
	require.ElementsMatch(t, []outgoing.OperationKind{outgoing.OpSetPolicy, outgoing.OpAllowDestination, outgoing.OpRemoveDestination}, kinds)
}

// Somebody who edits a policy, or an entry of a list, in the database lets nothing out.
func TestFS02_AnEditedPolicyLetsNothingOut(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		i.ruled(policy.Rule{Name: "daily", Of: policy.KindAmount, Over: dec("5000"), Then: policy.Refuse})
		i.ruled(policy.Rule{Name: "daily", Of: policy.KindAmount, Over: dec("50"), Then: policy.Refuse})
		to := i.chains["ETH"].Customer("supplier")
		const back = `update cryptopay_policies set (number, rules, actor, reason, at, seal) = (select number, rules, actor, reason, at, seal from cryptopay_policies where id = '%s') where id = 'current'`
		for name, edit := range map[string]string{
			"earlier":  fmt.Sprintf(back, "v1"),
			"raised":   `update cryptopay_policies set rules = replace(rules, '50', '5000') where id = 'current'`,
			"other":    `update cryptopay_policies set rules = '{"rules":[]}', seal = '' where id = 'current'`,
			"numbered": `update cryptopay_policies set number = 7 where id = 'current'`,
			"deleted":  `delete from cryptopay_policies where id = 'current'`,
		} {
			require.True(t, i.edit(edit), name)
			w, err := i.app.Withdrawals.Create(t.Context(), i.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{Amount: ptr(dec("60")), Currency: "USDTERC20", Address: string(to)},
			})
			require.NoError(t, err)
			_, err = i.app.Withdrawals.Step(t.Context())
			require.ErrorIs(t, err, policy.ErrAltered, name)
			w = i.withdrawalOf(w.ID)
			require.Equal(t, []any{withdrawal.Pending, "review"}, []any{w.Status, w.WaitingReason()}, name)
			_, err = i.app.Policies.Get(t.Context(), i.tenant)
			require.ErrorIs(t, err, policy.ErrAltered, name)
			i.named("policy")
			_, err = i.app.Withdrawals.Cancel(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			if name == "deleted" {
				require.True(t, i.edit(`insert into cryptopay_policies select part, 'current', version, change_id, due, lease, claims, number, rules, actor, reason, at, seal from cryptopay_policies where id = 'v2'`))
				continue
			}
			require.True(t, i.edit(fmt.Sprintf(back, "v2")))
		}
		r, err := i.app.VerifyTenant(t.Context(), i.tenant)
		require.NoError(t, err)
		require.True(t, r.Sound(), "%+v", r)
		i.sound()
		refused := i.asked("60", to)
		require.Equal(t, []any{withdrawal.Failed, "daily"}, []any{refused.Status, refused.Rule()})
		require.Zero(t, i.chains["ETH"].Balance(to, "USDTERC20").Sign())

		// All versions that are newer than an earlier one are gone, or all there are: the audit log
		// tells Verify.
		require.True(t, i.edit(fmt.Sprintf(back, "v1")))
		require.True(t, i.edit(`delete from cryptopay_policies where id = 'v2'`))
		i.named("version 1, and the audit log has 2")
		require.True(t, i.edit(`delete from cryptopay_policies where id = 'current'`))
		require.True(t, i.edit(`delete from cryptopay_policies where id = 'v1'`))
		i.named("version 0, and the audit log has 2")
	})
}

// What one person approved before the rules had anything against it does not go out beyond them:
// each payout alone is within the day's sum, all of them are not.
func TestPolicy_EarlyApprovalsDoNotExceedASum(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	for then, want := range map[policy.Action]withdrawal.Status{policy.Refuse: withdrawal.Failed, policy.Review: withdrawal.Pending} {
		i.ruled(policy.Rule{Name: "daily-" + string(then), Of: policy.KindSum, Over: dec("100"), Per: policy.Duration(24 * time.Hour), Then: then})
		var ids []string
		for range 3 {
			w, err := i.app.Withdrawals.Create(t.Context(), i.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{Amount: ptr(dec("90")), Currency: "USDTERC20", Address: string(i.chains["ETH"].Customer("accomplice"))}, By: "alice",
			})
			require.NoError(t, err)
			_, err = i.app.Withdrawals.Approve(t.Context(), i.tenant, w.ID, "rogue", "")
			require.NoError(t, err)
			ids = append(ids, w.ID)
		}
		i.work(60)
		got := map[withdrawal.Status]int{}
		for _, id := range ids {
			got[i.withdrawalOf(id).Status]++
		}
		require.Equal(t, map[withdrawal.Status]int{withdrawal.Completed: 1, want: 2}, got, then)
		if then == policy.Review {
			for _, id := range ids {
				if i.withdrawalOf(id).Status == withdrawal.Pending {
					_, err := i.app.Withdrawals.Approve(t.Context(), i.tenant, id, "bob", "")
					require.NoError(t, err)
				}
			}
			i.work(60)
			for _, id := range ids {
				require.Equal(t, withdrawal.Completed, i.withdrawalOf(id).Status)
			}
		}
	}
	i.nothingFound()
}

// One person may approve each large payout, and nothing goes beyond the day's sum: what he approved
// as large does not make room in the sum.
func TestPolicy_AnApprovalIsForTheRuleThatAsked(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	i.ruled(
		policy.Rule{Name: "large", Of: policy.KindAmount, Over: dec("50")},
		policy.Rule{Name: "daily", Of: policy.KindSum, Over: dec("200"), Per: policy.Duration(24 * time.Hour), Needs: []withdrawal.Need{{Count: 2}}},
		policy.Rule{Name: "never", Of: policy.KindSum, Over: dec("300"), Per: policy.Duration(24 * time.Hour), Then: policy.Refuse},
	)
	var ids []string
	for range 4 {
		ids = append(ids, i.asked("90", i.chains["ETH"].Customer("accomplice")).ID)
	}
	for _, id := range ids {
		_, err := i.app.Withdrawals.Approve(t.Context(), i.tenant, id, "rogue", "")
		require.NoError(t, err)
	}
	i.work(60)
	require.Equal(t, map[string]int{"completed  large": 2, "pending approval large,daily": 2}, i.states(ids))
	for _, by := range []string{"rogue", "bob"} {
		for _, id := range ids {
			if i.withdrawalOf(id).Status == withdrawal.Pending {
				_, err := i.app.Withdrawals.Approve(t.Context(), i.tenant, id, by, "")
				require.NoError(t, err)
			}
		}
		if by == "rogue" {
			i.work(60)
			require.Equal(t, map[string]int{"completed  large": 2, "pending approval large,daily": 2}, i.states(ids), "he counts once")
		}
	}
	i.work(60)
	require.Equal(t, map[string]int{"completed  large": 2, "completed  large,daily": 1, "failed  never": 1}, i.states(ids))
	i.nothingFound()
}
