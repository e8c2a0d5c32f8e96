package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// otherwise is a payment that expired with 10 of 25 USDT, to whose address came 25 USDC, and
// then 25 USDT when it was too late. It returns the payment's id.
func (w *world) otherwise() string {
	w.t.Helper()
	w.fund(w.tenant)
	made := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "USDTERC20", "expiry_minutes": 5}).Body
	address := made["address"].(string)
	w.transfer("USDTERC20", address, "10")
	w.transfer("USDCERC20", address, "25.5")
	w.mine(30)
	w.transfer("USDTERC20", address, "25")
	w.mine(30)
	return made["transaction_id"].(string)
}

// sound holds what is stored to App.Verify.
func (w *world) sound() {
	w.t.Helper()
	reports, err := w.app.Verify(w.t.Context())
	require.NoError(w.t, err)
	for _, r := range reports {
		require.True(w.t, r.Sound(), "%+v", r)
	}
}

func list(t *testing.T, a answer, name string) (out []map[string]any) {
	t.Helper()
	for _, v := range a.Body[name].([]any) {
		out = append(out, v.(map[string]any))
	}
	return out
}

// available is what the master account has of a currency.
func (w *world) available(currency string) string {
	w.t.Helper()
	v, _ := w.ok(http.StatusOK, "GET", "/user/balances/", nil).at("account", currency, "available_balance").(string)
	if v == "" {
		v, _ = w.ok(http.StatusOK, "GET", "/user/balances/", nil).at("account", currency, "amount").(string)
	}
	return v
}

// TestFM04_EveryDepositIsListed: what counts, what came late, and the wrong asset; in pages.
func TestFM04_EveryDepositIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	id := w.otherwise()
	a := w.ok(http.StatusOK, "GET", "/payments/"+id+"/deposits/?limit=10", nil)
	require.Equal(t, json.Number("3"), a.Body["total"])
	var got [][]any
	for _, d := range list(t, a, "deposits") {
		got = append(got, []any{d["amount"], d["currency"], d["status"], d["role"], d["required_confirmations"]})
		require.NotEmpty(t, d["transaction_hash"])
	}
	require.ElementsMatch(t, [][]any{
		{"10.00000000", "USDTERC20", "final", "counted", json.Number("12")},
		{"25.50000000", "USDCERC20", "final", "unmatched", json.Number("12")},
		{"25.00000000", "USDTERC20", "final", "late", json.Number("12")},
	}, got)
	page := list(t, w.ok(http.StatusOK, "GET", "/payments/"+id+"/deposits/?limit=1&offset=2", nil), "deposits")
	require.Len(t, page, 1)
	require.Equal(t, "late", page[0]["role"], "oldest first")
	require.Equal(t, json.Number("30"), page[0]["confirmations"])
	require.Equal(t, http.StatusNotFound, w.do("GET", "/payments/"+nothing+"/deposits/", nil).Status)
}

// TestFM04_SuspenseIsListedAndCredited: late money and the wrong asset are listed with their
// reasons; one is credited, in full, once; who decided and why is recorded in the same commit.
func TestFM04_SuspenseIsListedAndCredited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	id := w.otherwise()
	before := w.available("USDTERC20")
	a := w.ok(http.StatusOK, "GET", "/suspense/", nil)
	require.Equal(t, []any{json.Number("2"), json.Number("20"), json.Number("0")}, []any{a.Body["total"], a.Body["limit"], a.Body["offset"]})
	entries := list(t, a, "suspense")
	require.Len(t, entries, 2)
	late, wrong := entries[0], entries[1]
	require.Equal(t, []any{"25.00000000", "USDTERC20", "late", "open", id}, []any{late["amount"], late["currency"], late["reason"], late["status"], late["transaction_id"]})
	require.Equal(t, []any{"25.50000000", "USDCERC20", "wrong_asset", "open"}, []any{wrong["amount"], wrong["currency"], wrong["reason"], wrong["status"]})
	require.NotContains(t, late["suspense_id"], "/")
	total := func(query string) any { return w.ok(http.StatusOK, "GET", "/suspense/"+query, nil).Body["total"] }
	require.Equal(t, json.Number("1"), total("?reason=late"))
	require.Equal(t, json.Number("0"), total("?reason=wrong_network"))
	require.Equal(t, json.Number("0"), total("?status=credited"))
	require.Equal(t, "wrong_asset", list(t, w.ok(http.StatusOK, "GET", "/suspense/?limit=1&offset=1", nil), "suspense")[0]["reason"])
	require.Equal(t, http.StatusBadRequest, w.do("GET", "/suspense/?status=lost", nil).Status)
	require.Equal(t, http.StatusForbidden, w.do("GET", "/suspense/", nil, bearer(w.newToken(w.newApp(w.tenant, auth.NoRole), ""))).Status)

	resolve := func(id any, body map[string]any, refine ...with) answer {
		return w.do("POST", "/suspense/"+id.(string)+"/resolve/", body, refine...)
	}
	lateID := late["suspense_id"]
	for field, body := range map[string]map[string]any{
		"reason":    {"action": "credit"},
		"address":   {"action": "refund", "reason": "he asked"},
		"memo":      {"action": "credit", "reason": "he asked", "memo": "7"},
		"wallet_id": {"action": "ignore", "reason": "small", "wallet_id": "x"},
	} {
		a := resolve(lateID, body)
		require.Equal(t, http.StatusBadRequest, a.Status)
		require.NotNil(t, a.at("error", "details", field), "%s: %s", field, a.Raw)
	}
	require.Equal(t, http.StatusNotFound, resolve(lateID, map[string]any{"action": "credit", "reason": "r", "wallet_id": "nobody's"}).Status)
	require.Equal(t, http.StatusForbidden, resolve(lateID, map[string]any{"action": "credit", "reason": "r"}, bearer(w.newToken(w.newApp(w.tenant, auth.TenantAdmin), ""))).Status)
	require.Equal(t, json.Number("2"), total("?status=open"), "nothing of that changed anything")

	credited := resolve(lateID, map[string]any{"action": "credit", "reason": "the customer paid late"})
	require.Equal(t, http.StatusOK, credited.Status, credited.Raw)
	require.Equal(t, "credited", credited.Body["status"])
	require.NotEqual(t, before, w.available("USDTERC20"))
	again := resolve(lateID, map[string]any{"action": "credit", "reason": "the customer paid late"})
	require.Equal(t, http.StatusConflict, again.Status)
	require.Equal(t, "credited", again.at("error", "details", "current_status"))
	ignored := resolve(strings.ReplaceAll(wrong["suspense_id"].(string), "~", "%2F"), map[string]any{"action": "ignore", "reason": "test coins"})
	require.Equal(t, "ignored", ignored.Body["status"], ignored.Raw)
	require.Equal(t, []any{json.Number("0"), json.Number("1"), json.Number("1")}, []any{total("?status=open"), total("?status=credited"), total("?status=ignored")})
	require.Empty(t, w.paid(id)["suspense"])

	recorded, err := w.app.Operate.List(t.Context(), "ETH", 10, 0)
	require.NoError(t, err)
	require.Len(t, recorded, 2)
	for _, r := range recorded {
		require.Equal(t, w.admin.id, r.By)
		require.Contains(t, []string{"the customer paid late", "test coins"}, r.Reason)
		require.Equal(t, w.tenant, r.Tenant)
		require.Contains(t, r.Before, `"suspense"`)
	}
	w.sound()
}

// TestFM04_OfTwoWhoDecideOneWins: the other gets 409, and the money moves once.
func TestFM04_OfTwoWhoDecideOneWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.otherwise()
	id := list(t, w.ok(http.StatusOK, "GET", "/suspense/?reason=late", nil), "suspense")[0]["suspense_id"].(string)
	answers := make([]answer, 8)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			action := []string{"credit", "ignore"}[i%2]
			answers[i] = w.do("POST", "/suspense/"+id+"/resolve/", map[string]any{"action": action, "reason": "a race"})
		})
	}
	all.Wait()
	won := map[int]int{}
	for _, a := range answers {
		won[a.Status]++
	}
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusConflict: 7}, won)
	recorded, err := w.app.Operate.List(t.Context(), "ETH", 10, 0)
	require.NoError(t, err)
	require.Len(t, recorded, 1, "who lost is not recorded")
	w.sound()
}

// TestFA06_PaymentsAreFoundByWhatTheMerchantCallsThem: order_id, custom_id and dates.
func TestFA06_PaymentsAreFoundByWhatTheMerchantCallsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	start := w.clock.Now()
	for i := range 4 {
		w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{
			"amount": "25", "currency": "USDTERC20", "order_id": []string{"cart-1", "cart-2"}[i%2], "custom_id": []string{"a", "b", "c"}[i%3],
		})
		w.clock.Advance(24 * time.Hour)
		w.token = w.newToken(w.admin, "")
	}
	find := func(query string) (orders []any, count any) {
		a := w.ok(http.StatusOK, "GET", "/payments/?"+query, nil)
		require.Equal(t, json.Number("4"), a.Body["total"])
		for _, p := range list(t, a, "results") {
			orders = append(orders, p["order_id"].(string)+p["custom_id"].(string))
		}
		return orders, a.Body["count"]
	}
	day := func(n int) string { return start.AddDate(0, 0, n).Format(time.DateOnly) }
	for query, want := range map[string][]any{
		"order_id=cart-1":                            {"cart-1c", "cart-1a"},
		"custom_id=a":                                {"cart-2a", "cart-1a"},
		"order_id=cart-1&custom_id=a":                {"cart-1a"},
		"order_id=CART-1":                            nil,
		"date_from=" + day(2):                        {"cart-2a", "cart-1c"},
		"date_to=" + day(1):                          {"cart-2b", "cart-1a"},
		"date_from=" + day(1) + "&date_to=" + day(2): {"cart-1c", "cart-2b"},
		"order_id=cart-2&date_from=" + day(2):        {"cart-2a"},
		"status=waiting&date_from=" + day(3):         {"cart-2a"},
		"date_from=" + day(9):                        nil,
	} {
		orders, count := find(query)
		require.Equal(t, want, orders, query)
		require.Equal(t, json.Number(string(rune('0'+len(want)))), count, query)
	}
	bad := w.do("GET", "/payments/?date_from=soon&order_id="+strings.Repeat("x", 101), nil)
	require.Equal(t, http.StatusBadRequest, bad.Status)
	require.NotNil(t, bad.at("error", "details", "date_from"))
	require.NotNil(t, bad.at("error", "details", "order_id"))
}

// TestFA07_DeliveriesAreListedAndResent: with what the receiver answered; the same event goes
// out again under its id; and not without end.
func TestFA07_DeliveriesAreListedAndResent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limits(func(l *httpapi.Limits) { l.ResendsPerHour = 2 }))
	w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": "https://shop.example/in"})
	w.fund(w.tenant)
	id := w.earn("USDTERC20", "25", "").Body["transaction_id"].(string)
	a := w.ok(http.StatusOK, "GET", "/webhooks/deliveries/?object_id="+id, nil)
	all := list(t, a, "deliveries")
	require.Equal(t, json.Number(string(rune('0'+len(all)))), a.Body["total"])
	require.Equal(t, "payment_status_update", all[len(all)-2]["event"].(string))
	last := all[0]
	require.Equal(t, []any{"delivered", json.Number("1"), json.Number("200"), nil, nil, "https://shop.example/in", id},
		[]any{last["status"], last["attempts"], last["response_status"], last["next_attempt_at"], last["error"], last["url"], last["object_id"]})
	count := func(query string) any {
		return w.ok(http.StatusOK, "GET", "/webhooks/deliveries/?"+query, nil).Body["total"]
	}
	require.Equal(t, json.Number("1"), count("event=deposit_received"))
	require.Equal(t, json.Number("0"), count("event=deposit_received&status=failed"))
	require.Equal(t, json.Number("2"), count("event=payment_deposit&status=skipped"), "enabled_events do not name it, but the host has a Notifier of its own")
	require.Equal(t, http.StatusBadRequest, w.do("GET", "/webhooks/deliveries/?event=lost", nil).Status)

	w.inbox.got = nil
	resend := "/webhooks/deliveries/" + last["delivery_id"].(string) + "/resend/"
	sent := w.ok(http.StatusAccepted, "POST", resend, nil)
	require.Equal(t, map[string]any{"delivery_id": last["delivery_id"], "status": "pending"}, sent.Body)
	w.step()
	require.Len(t, w.inbox.got, 1)
	require.Equal(t, strings.ReplaceAll(last["delivery_id"].(string), "~", "/"), w.inbox.got[0].Header.Get(webhook.HeaderID))
	require.Equal(t, http.StatusNotFound, w.do("POST", "/webhooks/deliveries/nobody~000001/resend/", nil).Status)
	require.Equal(t, http.StatusTooManyRequests, w.do("POST", resend, nil).Status)
}

// TestFA07_TheLogDoesNotSayThatANewURLGotOldWebhooks: what was delivered to a URL that was
// replaced since is not said to have reached the new one, whose receiver never saw it.
func TestFA07_TheLogDoesNotSayThatANewURLGotOldWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	urls := func(status string) (out []any) {
		for _, d := range list(t, w.ok(http.StatusOK, "GET", "/webhooks/deliveries/?status="+status, nil), "deliveries") {
			out = append(out, d["url"])
		}
		return out
	}
	w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": "https://old.example/in"})
	w.earn("USDTERC20", "25", "")
	require.Contains(t, urls("delivered"), "https://old.example/in")
	require.NotContains(t, urls("skipped"), "https://old.example/in", "it went nowhere")
	w.clock.Advance(time.Minute)
	w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": "https://new.example/in"})
	require.NotContains(t, urls("delivered"), "https://new.example/in")
	id := list(t, w.ok(http.StatusOK, "GET", "/webhooks/deliveries/?status=delivered", nil), "deliveries")[0]["delivery_id"].(string)
	w.ok(http.StatusAccepted, "POST", "/webhooks/deliveries/"+id+"/resend/", nil)
	require.Equal(t, []any{"https://new.example/in"}, urls("pending"))
	w.step()
	require.Contains(t, urls("delivered"), "https://new.example/in")
}

// TestFS12_TheLogOfDeliveriesNamesNoAddress: whoever may set a callback URL learns from the log
// neither whether a name exists that our resolver alone knows, nor where it leads.
func TestFS12_TheLogOfDeliveriesNamesNoAddress(t *testing.T) {
	t.Parallel()
	shown := map[string]string{}
	for name, failed := range map[string]webhook.Result{
		"secret":  {Err: fmt.Errorf("webhook: not delivered: dial tcp 10.1.2.3:443: %w: 10.1.2.3", webhook.ErrForbiddenAddress)},
		"unknown": {Err: fmt.Errorf("webhook: not delivered: %w", &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "db.internal", Server: "10.0.0.2:53", IsNotFound: true}})},
		"closed":  {Err: errors.New("webhook: not delivered: dial tcp 203.0.113.9:443: connect: connection refused")},
		"answers": {Status: http.StatusTeapot, Err: errors.New("webhook: the receiver answered 418")},
	} {
		w := newWorld(t, unlimited, func(s *setup) {
			s.config = func(c *cryptopay.Config) { c.Notifier = always(failed) }
		})
		w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": "https://db.internal/in"})
		w.earn("USDTERC20", "25", "") // its host is paused meanwhile
		a := w.ok(http.StatusOK, "GET", "/webhooks/deliveries/?status=pending&limit=100", nil)
		require.NotContains(t, a.Raw, "10.")
		require.NotContains(t, a.Raw, "203.")
		for _, d := range list(t, a, "deliveries") {
			why, _ := d["error"].(string)
			require.NotEmpty(t, why)
			shown[name] += why + "\n"
		}
	}
	require.Equal(t, shown["secret"], shown["unknown"])
	require.NotEqual(t, shown["closed"], shown["unknown"])
	require.Contains(t, shown["answers"], "200 to 299")
}

// always is a Notifier of one result.
type always webhook.Result

func (r always) Notify(_ context.Context, deliveries []webhook.Delivery) []webhook.Result {
	out := make([]webhook.Result, len(deliveries))
	for i := range out {
		out[i] = webhook.Result(r)
	}
	return out
}

// TestFM04_AMerchantDoesNotOverruleTheScreening: what the host's screening holds or refuses is
// shown with that, without its words, and the operator alone decides about it.
func TestFM04_AMerchantDoesNotOverruleTheScreening(t *testing.T) {
	t.Parallel()
	verdict := payment.AskReview
	w := newWorld(t, unlimited, func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			c.Payments.Screen = func(context.Context, payment.Subject) (payment.Verdict, string, error) {
				return verdict, "secret-words-of-the-screening", nil
			}
		}
	})
	w.fund(w.tenant)
	for v, shown := range map[payment.Verdict]string{payment.AskReview: "held", payment.Refuse: "refused"} {
		verdict = v
		made := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "USDTERC20"}).Body
		w.transfer("USDTERC20", made["address"].(string), "25")
		w.mine(30)
		a := w.ok(http.StatusOK, "GET", "/suspense/?status=open", nil)
		require.NotContains(t, a.Raw, "secret-words")
		entry := list(t, a, "suspense")[0]
		require.Equal(t, []any{shown, "unmatched", made["transaction_id"]}, []any{entry["screening"], entry["reason"], entry["transaction_id"]})
		detail := w.ok(http.StatusOK, "POST", "/payments/status/", map[string]any{"transaction_id": made["transaction_id"]})
		require.Equal(t, "waiting", detail.Body["status"])
		require.NotContains(t, detail.Raw, "secret-words")
		id := entry["suspense_id"].(string)
		for _, body := range []map[string]any{
			{"action": "credit", "reason": "r"},
			{"action": "ignore", "reason": "r"},
			{"action": "refund", "reason": "r", "address": string(w.chains["ETH"].Customer("x"))},
		} {
			refused := w.do("POST", "/suspense/"+id+"/resolve/", body)
			require.Equal(t, http.StatusConflict, refused.Status, refused.Raw)
			require.Equal(t, "open", refused.at("error", "details", "current_status"))
		}
		d, err := w.app.Payments.SuspendedDeposit(t.Context(), w.tenant, strings.ReplaceAll(id, "~", "/"))
		require.NoError(t, err)
		by := cryptopay.Call{By: "ann", Reason: "ticket 42"}
		if shown == "held" {
			_, _, err = w.app.Operate.ReleaseSuspense(t.Context(), w.tenant, d.ID, by)
		} else {
			_, _, err = w.app.Operate.IgnoreSuspense(t.Context(), w.tenant, d.ID, by)
		}
		require.NoError(t, err)
	}
	w.sound()
}
