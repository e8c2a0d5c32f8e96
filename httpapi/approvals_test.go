package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// asking has the policy ask for approval while *on.
func asking(on *bool) func(*setup) {
	return func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			c.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
				if *on {
					return withdrawal.AskReview, "large", nil
				}
				return withdrawal.Allow, "", nil
			}
		}
	}
}

// A withdrawal that the policy asks about waits for an approver, who is not the one that
// asked for it. Everybody sees who decided, when and why.
func TestApprovals(t *testing.T) {
	t.Parallel()
	on := true
	w := rich(t, asking(&on))
	asker, approver, second := w.admin, w.newApp(w.tenant, auth.Approver), w.newApp(w.tenant, auth.Approver)
	as := func(c credentials) with { return bearer(w.newToken(c, "")) }
	onHold := func() string { _, held := w.held("USDTERC20"); return held }
	order := func(refine ...with) string {
		a := w.ok(http.StatusCreated, "POST", "/withdrawal/", w.filled(`{"amount":"20","currency":"USDTERC20","address":"ELSEWHERE"}`), refine...)
		require.Equal(t, []any{}, a.Body["approvals"])
		require.Equal(t, "0", a.at("approvals_required").(interface{ String() string }).String(), "the policy was not asked yet")
		return a.Body["withdrawal_id"].(string)
	}
	path := func(id, verb string) string { return "/withdrawal/" + id + "/" + verb + "/" }
	reason := map[string]any{"reason": "an invoice"}

	id := order()
	early := w.ok(http.StatusConflict, "POST", path(id, "approve"), reason, as(approver))
	require.Equal(t, "invalid_state", early.code(), "before the policy has asked")
	w.ok(http.StatusConflict, "POST", path(id, "refuse"), reason, as(approver))
	w.mine(1)
	seen := w.ok(http.StatusOK, "GET", path(id, "")[:len(path(id, ""))-1], nil)
	require.Equal(t, []any{"review", "pending", asker.id}, []any{seen.Body["waiting_reason"], seen.Body["status"], seen.Body["requested_by"]})
	require.Equal(t, "1", seen.at("approvals_required").(interface{ String() string }).String())

	for _, verb := range []string{"approve", "refuse"} {
		for name, refused := range map[string]with{
			"tenant admin": as(asker), "global admin": as(w.newApp(w.tenant, auth.GlobalAdmin)), "no role": as(w.newApp(w.tenant, auth.NoRole)),
		} {
			a := w.ok(http.StatusForbidden, "POST", path(id, verb), reason, refused)
			require.Equal(t, "permission_denied", a.code(), name)
		}
		w.ok(http.StatusUnauthorized, "POST", path(id, verb), reason, nobody())
		for _, unknown := range []string{"00000000-0000-7000-8000-000000000000", "x"} {
			require.Equal(t, "not_found", w.ok(http.StatusNotFound, "POST", path(unknown, verb), reason, as(approver)).code())
		}
		theirs := w.newApp(w.newTenant("other-"+verb), auth.Approver)
		require.Equal(t, "not_found", w.ok(http.StatusNotFound, "POST", path(id, verb), reason, as(theirs)).code())
		long := w.ok(http.StatusBadRequest, "POST", path(id, verb), map[string]any{"reason": strings.Repeat("x", 1001)}, as(approver))
		require.Contains(t, long.at("error", "details"), "reason")
	}
	for _, body := range []any{"{}", `{"reason":""}`} {
		require.Contains(t, w.ok(http.StatusBadRequest, "POST", path(id, "refuse"), body, as(approver)).at("error", "details"), "reason")
	}
	w.ok(http.StatusForbidden, "POST", "/o/apps/", map[string]any{"name": "another self"}, as(approver))
	mine := order(as(approver))
	w.mine(1)
	for _, verb := range []string{"approve", "refuse"} {
		require.Equal(t, "permission_denied", w.ok(http.StatusForbidden, "POST", path(mine, verb), reason, as(approver)).code(), "his own")
	}
	require.Equal(t, "40.000000", onHold(), "nothing has moved")

	approved := w.ok(http.StatusOK, "POST", path(id, "approve"), reason, as(approver))
	require.Len(t, approved.at("approvals"), 1)
	said := approved.at("approvals").([]any)[0].(map[string]any)
	require.Equal(t, map[string]any{"by": approver.id, "at": approved.Body["updated_at"], "decision": "approved", "reason": "an invoice"}, said)
	require.Nil(t, approved.Body["waiting_reason"])
	again := w.ok(http.StatusOK, "POST", path(id, "approve"), "{}", as(approver))
	require.Equal(t, approved.Raw, again.Raw, "the same answer again")
	require.Equal(t, "invalid_state", w.ok(http.StatusConflict, "POST", path(id, "refuse"), reason, as(second)).code())
	require.Equal(t, "invalid_state", w.ok(http.StatusConflict, "POST", path(id, "approve"), reason, as(second)).code())

	refused := w.ok(http.StatusOK, "POST", path(mine, "refuse"), map[string]any{"reason": "whose is it?"}, as(second))
	require.Equal(t, "failed", refused.Body["status"])
	require.Equal(t, "refused", refused.at("approvals").([]any)[0].(map[string]any)["decision"])
	require.Equal(t, "20.000000", onHold())
	w.ok(http.StatusOK, "POST", path(mine, "refuse"), map[string]any{"reason": "again"}, as(second))
	require.Equal(t, "invalid_state", w.ok(http.StatusConflict, "POST", path(mine, "approve"), reason, as(second)).code())
	require.Equal(t, "20.000000", onHold())

	without := order()
	w.mine(1)
	require.Nil(t, w.ok(http.StatusOK, "POST", path(without, "approve"), "{}", as(second)).at("approvals").([]any)[0].(map[string]any)["reason"])
	on = false
	free := order()
	w.mine(60)
	for at, want := range map[string]int{id: 1, without: 1, free: 0} {
		got := w.ok(http.StatusOK, "GET", "/withdrawal/"+at+"/", nil, as(asker))
		require.Equal(t, "completed", got.Body["status"])
		require.Len(t, got.at("approvals"), want)
	}
	require.Equal(t, "invalid_state", w.ok(http.StatusConflict, "POST", path(free, "approve"), reason, as(approver)).code())
	require.Equal(t, "0.000000", onHold())
	list := w.ok(http.StatusOK, "GET", "/withdrawal/?status=failed", nil, as(asker))
	require.Len(t, list.at("withdrawals").([]any)[0].(map[string]any)["approvals"], 1)
}

// A merchant's approver does not spare the host's policy: what it would refuse is not let out
// by an approval that comes before it was asked.
func TestApprovalsDoNotOvertakeThePolicy(t *testing.T) {
	t.Parallel()
	asked := 0
	w := rich(t, func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			c.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
				asked++
				return withdrawal.Refuse, "sanctioned", nil
			}
		}
	})
	id := w.ok(http.StatusCreated, "POST", "/withdrawal/", w.filled(`{"amount":"20","currency":"USDTERC20","address":"ELSEWHERE"}`)).Body["withdrawal_id"].(string)
	w.ok(http.StatusConflict, "POST", "/withdrawal/"+id+"/approve/", "{}", bearer(w.newToken(w.newApp(w.tenant, auth.Approver), "")))
	w.mine(40)
	require.Equal(t, 1, asked)
	require.Equal(t, "failed", w.ok(http.StatusOK, "GET", "/withdrawal/"+id+"/", nil, bearer(w.newToken(w.admin, ""))).Body["status"])
}
