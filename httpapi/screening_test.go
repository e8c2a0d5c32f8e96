package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// releasedPart is a payment of 25 to which 10 came that a person has released.
func releasedPart(t *testing.T) (w *world, made map[string]any, suspense string) {
	t.Helper()
	verdict := payment.AskReview
	w = newWorld(t, unlimited, func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			c.Payments.Screen = func(context.Context, payment.Subject) (payment.Verdict, string, error) {
				return verdict, "", nil
			}
		}
	})
	w.fund(w.tenant)
	made = w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "USDTERC20"}).Body
	w.transfer("USDTERC20", made["address"].(string), "10")
	w.mine(30)
	suspense = list(t, w.ok(http.StatusOK, "GET", "/suspense/?status=open", nil), "suspense")[0]["suspense_id"].(string)
	_, _, err := w.app.Operate.ReleaseSuspense(t.Context(), w.tenant, strings.ReplaceAll(suspense, "~", "/"), cryptopay.Call{By: "ann", Reason: "known"})
	require.NoError(t, err)
	verdict = payment.Allow
	w.step()
	return w, made, suspense
}

// A released part counts for its payment, so its money cannot be credited a second time.
func TestScreening_AReleasedPartIsNotInSuspense(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"credit", "refund"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			w, made, id := releasedPart(t)
			body := map[string]any{"action": action, "reason": "r"}
			if action == "refund" {
				body["address"] = string(w.chains["ETH"].Customer("x"))
			}
			a := w.do("POST", "/suspense/"+id+"/resolve/", body)
			w.mine(30)
			w.transfer("USDTERC20", made["address"].(string), "15")
			w.mine(30)
			detail := w.paid(made["transaction_id"])
			assert.Equal(t, "25.00000000", w.available("USDTERC20"), "what came, and once")
			w.sound()
			assert.Equal(t, "completed", detail["status"], "all of it was paid")
			require.Equal(t, http.StatusNotFound, a.Status, "it counts for the payment: %s", a.Raw)
		})
	}
}

// What counts for its payment is not shown as open in suspense, and lists agree with their totals.
func TestScreening_AReleasedPartIsNoOpenSuspense(t *testing.T) {
	t.Parallel()
	w, _, _ := releasedPart(t)
	for _, path := range []string{"/suspense/?status=open", "/suspense/?status=open&reason=unmatched", "/suspense/"} {
		a := w.ok(http.StatusOK, "GET", path, nil)
		require.Equal(t, fmt.Sprint(len(list(t, a, "suspense"))), fmt.Sprint(a.Body["total"]), path)
	}
	require.Empty(t, list(t, w.ok(http.StatusOK, "GET", "/suspense/?status=open", nil), "suspense"), "it counts for its payment")
}

// meanwhile does something once, after the next look at deposits.
type meanwhile struct {
	storage.Store
	do atomic.Pointer[func()]
}

func (m *meanwhile) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	rows, err := m.Store.Rows(ctx, t, keys...)
	if t.Name == payment.Deposits.Name {
		if do := m.do.Swap(nil); do != nil {
			(*do)()
		}
	}
	return rows, err
}

// Where the operator cancels his refund of refused money at the moment in which the merchant
// asks for a credit, the merchant does not get it.
func TestScreening_IsNotOverruledByARace(t *testing.T) {
	t.Parallel()
	store := &meanwhile{Store: memory.New()}
	w := newWorld(t, unlimited, func(s *setup) {
		s.store = store
		s.config = func(c *cryptopay.Config) {
			c.Payments.Screen = func(context.Context, payment.Subject) (payment.Verdict, string, error) {
				return payment.Refuse, "sanctioned", nil
			}
			c.Withdrawals.PickupDelay = time.Hour
		}
	})
	w.fund(w.tenant)
	made := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "USDTERC20"}).Body
	w.transfer("USDTERC20", made["address"].(string), "25")
	w.mine(30)
	id := list(t, w.ok(http.StatusOK, "GET", "/suspense/?status=open", nil), "suspense")[0]["suspense_id"].(string)
	r, _, err := w.app.Operate.PayOutSuspense(t.Context(), w.tenant, strings.ReplaceAll(id, "~", "/"), string(w.chains["ETH"].Customer("x")), "", cryptopay.Call{By: "ann", Reason: "back to the sender"})
	require.NoError(t, err)
	cancel := func() {
		assert.Equal(t, http.StatusConflict, w.do("POST", "/refunds/"+r.ID+"/cancel/", nil).Status)
		_, err := w.app.Refunds.Cancel(t.Context(), w.tenant, r.ID) // the operator does
		assert.NoError(t, err)
	}
	store.do.Store(&cancel)
	a := w.do("POST", "/suspense/"+id+"/resolve/", map[string]any{"action": "credit", "reason": "r"})
	require.Equal(t, http.StatusConflict, a.Status, "the operator alone decides about it")
}

// What the operator has decided about refused money stands: a merchant does not undo it.
func TestScreening_TheOperatorsRefundStands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited, func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			c.Payments.Screen = func(context.Context, payment.Subject) (payment.Verdict, string, error) {
				return payment.Refuse, "sanctioned", nil
			}
			c.Withdrawals.PickupDelay = time.Hour
		}
	})
	w.fund(w.tenant)
	made := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "USDTERC20"}).Body
	w.transfer("USDTERC20", made["address"].(string), "25")
	w.mine(30)
	id := list(t, w.ok(http.StatusOK, "GET", "/suspense/?status=open", nil), "suspense")[0]["suspense_id"].(string)
	r, _, err := w.app.Operate.PayOutSuspense(t.Context(), w.tenant, strings.ReplaceAll(id, "~", "/"), string(w.chains["ETH"].Customer("x")), "",
		cryptopay.Call{By: "ann", Reason: "secret-words of the investigation"})
	require.NoError(t, err)
	a := w.ok(http.StatusOK, "GET", "/refunds/"+r.ID+"/", nil)
	assert.NotContains(t, a.Raw, "secret-words", "why the operator decides is not for the merchant")
	a = w.do("POST", "/refunds/"+r.ID+"/cancel/", nil)
	assert.Equal(t, http.StatusConflict, a.Status, a.Raw)
	b := w.do("POST", "/withdrawal/"+r.Withdrawal+"/cancel/", nil)
	assert.Equal(t, http.StatusConflict, b.Status, b.Raw)
}

// Nor does a merchant's approver undo it, where a rule asks for an approval of the operator's
// refund: his approval counts, and his refusal does not.
func TestScreening_AnApproverDoesNotUndoTheOperatorsRefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited, func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			c.Policy.Rules = []policy.Rule{{Name: "all", Of: policy.KindAmount, Over: decimal.NewFromInt(1)}}
			c.Payments.Screen = func(context.Context, payment.Subject) (payment.Verdict, string, error) {
				return payment.Refuse, "sanctioned", nil
			}
		}
	})
	w.fund(w.tenant)
	made := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "USDTERC20"}).Body
	w.transfer("USDTERC20", made["address"].(string), "25")
	w.mine(30)
	id := list(t, w.ok(http.StatusOK, "GET", "/suspense/?status=open", nil), "suspense")[0]["suspense_id"].(string)
	r, _, err := w.app.Operate.PayOutSuspense(t.Context(), w.tenant, strings.ReplaceAll(id, "~", "/"), string(w.chains["ETH"].Customer("x")), "",
		cryptopay.Call{By: "ann", Reason: "back to the sender"})
	require.NoError(t, err)
	w.mine(5)
	approver := bearer(w.newToken(w.newApp(w.tenant, auth.Approver), ""))
	require.Equal(t, "pending", w.ok(http.StatusOK, "GET", "/refunds/"+r.ID+"/", nil).Body["status"])
	a := w.do("POST", "/withdrawal/"+r.Withdrawal+"/refuse/", map[string]any{"reason": "we want it"}, approver)
	require.Equal(t, http.StatusConflict, a.Status, a.Raw)
	require.Equal(t, "pending", w.ok(http.StatusOK, "GET", "/refunds/"+r.ID+"/", nil).Body["status"])
	w.ok(http.StatusOK, "POST", "/withdrawal/"+r.Withdrawal+"/approve/", `{}`, approver)
	w.mine(60)
	require.Equal(t, "completed", w.ok(http.StatusOK, "GET", "/refunds/"+r.ID+"/", nil).Body["status"])
}
