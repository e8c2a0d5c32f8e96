package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// A deposit at a permanent address is a payment with the value that it had when it was seen, without
// window: it ends 24 hours after it was made by its word, and neither time nor the price changes it.
func TestDecision_APaymentOfAPermanentAddressKeepsItsValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.fund(w.tenant)
	address := w.ok(http.StatusCreated, "POST", "/addresses/", map[string]any{"currency": "ETH", "external_id": "ann"}).Body["address"].(string)
	w.transfer("ETH", address, "0.05")
	w.step()
	p := list(t, w.ok(http.StatusOK, "GET", "/payments/", nil), "results")[0]
	expires := func() time.Duration {
		stored, err := w.app.Payments.Get(t.Context(), w.tenant, p["transaction_id"].(string))
		require.NoError(t, err)
		return stored.ExpiresAt.Sub(stored.CreatedAt)
	}
	require.Equal(t, 24*time.Hour, expires())
	require.Equal(t, "100.00", p["amount_usd"])
	w.rates.Set("ETH", "USD", decimal.RequireFromString("1000"))
	w.clock.Advance(30 * time.Hour)
	w.token = w.newToken(w.admin, "")
	w.mine(30)
	done := w.paid(p["transaction_id"])
	require.Equal(t, []any{"completed", "100.00"}, []any{done["status"], done["amount_usd"]})
	require.Equal(t, 24*time.Hour, expires())
	w.sound()
}

// A permanent address is one for each tenant, external_id and network.
func TestDecision_APermanentAddressIsOfOneTenantIDAndNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	other := w.anotherTenant()
	seen := map[any]bool{}
	for _, currency := range []string{"ETH", "BTC"} {
		for _, as := range [][]with{nil, {other}} {
			for _, id := range []string{"ann", "bob"} {
				a := w.ok(http.StatusCreated, "POST", "/addresses/", map[string]any{"currency": currency, "external_id": id}, as...)
				require.False(t, seen[a.Body["address"]])
				seen[a.Body["address"]] = true
				again := w.ok(http.StatusOK, "POST", "/addresses/", map[string]any{"currency": currency, "external_id": id}, as...)
				require.Equal(t, a.Body, again.Body)
			}
		}
	}
	require.Len(t, seen, 8)
}

// Bidirectional overrides are refused in every text, and the refusal names the character.
func TestDecision_EveryTextRefusesOverrides(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.fund(w.tenant)
	id := w.earn("USDTERC20", "50", "").Body["transaction_id"].(string)
	const text = "a\u202eb"
	for path, body := range map[string]map[string]any{
		"/payments/":                         {"amount": "5", "currency": "USDTERC20", "custom_id": text},
		"/payments/" + id + "/refunds/":      {"amount": "5", "reason": text},
		"/addresses/":                        {"currency": "ETH", "external_id": text},
		"/wallets/":                          {"name": text, "external_id": "x"},
		"/withdrawal/":                       {"amount": "5", "currency": "USDTERC20", "address": w.elsewhere(), "custom_id": text},
		"/suspense/" + nothing + "/resolve/": {"action": "ignore", "reason": text},
		"/payouts/":                          {"withdrawals": []map[string]any{{"amount": "5", "currency": "USDTERC20", "address": w.elsewhere(), "custom_id": text}}},
	} {
		a := w.do("POST", path, body)
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", path, a.Raw)
		require.Contains(t, a.Raw, "U+202E", path)
	}
}

// A transfer to a wallet that was closed is refused before it is accepted: no history has it, and no
// balance changes.
func TestDecision_ATransferToAClosedWalletIsNotAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.fund(w.tenant)
	w.earn("USDTERC20", "50", "")
	id := w.newWallet("gone")
	require.Less(t, w.do("DELETE", "/wallets/"+id+"/", nil).Status, 300)
	w.inbox.got = nil
	a := w.do("POST", "/wallets/transfer-to-user/", map[string]any{"wallet_id": id, "currency": "USDTERC20", "amount": "1"})
	require.Contains(t, []int{http.StatusNotFound, http.StatusConflict}, a.Status, a.Raw)
	w.step()
	require.Empty(t, w.inbox.got)
	require.Equal(t, "0", w.ok(http.StatusOK, "POST", "/wallets/transfer-history/", `{}`).at("pagination", "total").(json.Number).String())
	w.sound()
}

// A refund can be cancelled while it waits for an address or is pending, and not afterwards.
func TestDecision_ARefundIsCancelledUntilItIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.fund(w.tenant)
	id := w.earn("USDTERC20", "50", "").Body["transaction_id"].(string)
	refund := func(body map[string]any) string {
		return "/refunds/" + w.ok(http.StatusCreated, "POST", "/payments/"+id+"/refunds/", body).Body["refund_id"].(string) + "/"
	}
	for _, body := range []map[string]any{{"amount": "all"}, {"amount": "all", "address": w.elsewhere()}} {
		of := refund(body)
		require.Equal(t, "cancelled", w.ok(http.StatusOK, "POST", of+"cancel/", nil).Body["status"])
		require.Equal(t, "cancelled", w.ok(http.StatusOK, "POST", of+"cancel/", nil).Body["status"], "asked again")
	}
	of := refund(map[string]any{"amount": "all", "address": w.elsewhere()})
	w.mine(30)
	a := w.do("POST", of+"cancel/", nil)
	require.Equal(t, []any{http.StatusConflict, "invalid_state"}, []any{a.Status, a.code()})
	require.Equal(t, "completed", w.ok(http.StatusOK, "GET", of, nil).Body["status"])
	a = w.do("POST", "/payments/"+id+"/refunds/", map[string]any{"amount": "0.5", "address": w.elsewhere()})
	require.Equal(t, []any{http.StatusBadRequest, "invalid_request"}, []any{a.Status, a.code()}, "nothing is left: %s", a.Raw)
	require.Contains(t, details(a), "amount")
	w.sound()
}

// What was in suspense is resolved once, with a reason, by the scope admin, and by its own tenant alone.
func TestDecision_SuspenseIsResolvedOnceWithAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.otherwise()
	id := list(t, w.ok(http.StatusOK, "GET", "/suspense/?reason=late", nil), "suspense")[0]["suspense_id"].(string)
	path := "/suspense/" + id + "/resolve/"
	for _, body := range []map[string]any{{"action": "ignore"}, {"action": "ignore", "reason": ""}, {"reason": "x"}, {"action": "keep", "reason": "x"}, {"action": "refund", "reason": "x"}} {
		a := w.do("POST", path, body)
		require.Equal(t, []any{http.StatusBadRequest, "invalid_request"}, []any{a.Status, a.code()}, "%v: %s", body, a.Raw)
	}
	ignore := map[string]any{"action": "ignore", "reason": "ours"}
	writer := bearer(w.newToken(w.newApp(w.tenant, auth.TenantAdmin, auth.Read, auth.Write), ""))
	require.Equal(t, http.StatusForbidden, w.do("POST", path, ignore, writer).Status)
	stranger := bearer(w.newToken(w.newApp(w.newTenant("other"), auth.TenantAdmin, auth.Read, auth.Write, auth.Admin), ""))
	require.Equal(t, http.StatusNotFound, w.do("POST", path, ignore, stranger).Status)
	require.Equal(t, "ignored", w.ok(http.StatusOK, "POST", path, ignore).Body["status"])
	for _, action := range []string{"ignore", "credit"} {
		a := w.do("POST", path, map[string]any{"action": action, "reason": "again"})
		require.Equal(t, http.StatusConflict, a.Status, a.Raw)
	}
	w.sound()
}

// Lists take a limit of 1 to 100, 20 where none is named, and an offset of 0 or more, and say so.
func TestDecision_ListsTakeLimitAndOffset(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	for _, path := range []string{"/suspense/", "/webhooks/deliveries/", "/addresses/", "/refunds/"} {
		a := w.ok(http.StatusOK, "GET", path, nil)
		require.Equal(t, []any{json.Number("0"), json.Number("20"), json.Number("0")}, []any{a.Body["total"], a.Body["limit"], a.Body["offset"]}, path)
		a = w.ok(http.StatusOK, "GET", path+"?limit=100&offset=7", nil)
		require.Equal(t, []any{json.Number("100"), json.Number("7")}, []any{a.Body["limit"], a.Body["offset"]}, path)
		for query, field := range map[string]string{"limit=0": "limit", "limit=101": "limit", "limit=-1": "limit", "offset=-1": "offset", "limit=x": "limit", "offset=1.5": "offset"} {
			a := w.do("GET", path+"?"+query, nil)
			require.Equal(t, []any{http.StatusBadRequest, "invalid_request"}, []any{a.Status, a.code()}, path+query)
			require.Contains(t, details(a), field, path+query)
		}
	}
}

// The webhook of a withdrawal that waits reaches an endpoint that asked for it, with the reason, and null
// when it waits no more.
func TestDecision_AWithdrawalThatWaitsIsToldToWhoAsked(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{true, false} {
		on := true
		w := rich(t, asking(&on))
		names := []string{"withdrawal_status_update"}
		if asked {
			names = append(names, "withdrawal_waiting")
		}
		w.ok(http.StatusOK, "PATCH", "/user/webhooks/", map[string]any{"webhook_url": "https://shop.example/hook", "enabled_events": names})
		w.inbox.got = nil
		id := w.ok(http.StatusCreated, "POST", "/withdrawal/", w.filled(`{"amount":"20","currency":"USDTERC20","address":"ELSEWHERE"}`)).Body["withdrawal_id"].(string)
		w.mine(1)
		w.ok(http.StatusOK, "POST", "/withdrawal/"+id+"/approve/", map[string]any{"reason": "fine"}, bearer(w.newToken(w.newApp(w.tenant, auth.Approver), "")))
		w.mine(30)
		var told []any
		for _, d := range w.inbox.got {
			var event struct {
				Event string
				Data  map[string]any
			}
			require.NoError(t, json.Unmarshal(d.Body, &event))
			if event.Event == "withdrawal_waiting" {
				require.Equal(t, []any{id, "USDTERC20"}, []any{event.Data["withdrawal_id"], event.Data["currency"]})
				require.Contains(t, event.Data, "amount")
				require.Contains(t, event.Data, "waiting_since")
				told = append(told, event.Data["waiting_reason"])
			}
		}
		if !asked {
			require.Empty(t, told)
			continue
		}
		require.NotEmpty(t, told)
		require.Equal(t, "review", told[0])
		require.Nil(t, told[len(told)-1])
	}
}
