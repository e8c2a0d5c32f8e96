package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
)

const hook = "https://merchant.example/hook"

// scoped is a token of the shop with no more than these scopes.
func (w *world) scoped(scopes ...string) with {
	w.t.Helper()
	return bearer(w.newToken(w.admin, strings.Join(scopes, " ")))
}

// feesOf changes what the shop's payments cost.
func (w *world) feesOf(percent string) {
	w.t.Helper()
	d := decimal.RequireFromString(percent)
	_, err := w.app.Wallets.UpdateTenant(w.t.Context(), w.tenant, wallet.Settings{TransactionFee: &d})
	require.NoError(w.t, err)
}

func TestAccountMe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ok(http.StatusOK, "GET", "/user/me/", nil)
	require.JSONEq(t, `{"name":"shop","transaction_fee":"0.00","is_fee_paid_by_user":false,"webhook_callback_url":null,"webhook_secret_masked":null}`, a.Raw)
	require.Equal(t, "name string, transaction_fee string, is_fee_paid_by_user boolean, webhook_callback_url null, webhook_secret_masked null", members(t, a.Raw))
	for set, want := range map[string]string{"0.5": "0.50", "1": "1.00", "0.125": "0.125", "100": "100.00"} {
		w.feesOf(set)
		require.Equal(t, want, w.ok(http.StatusOK, "GET", "/user/me", nil).Body["transaction_fee"])
	}
	full := w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": hook}).Body["secret"].(string)
	a = w.ok(http.StatusOK, "GET", "/user/me/", nil)
	require.Equal(t, hook, a.Body["webhook_callback_url"])
	require.Equal(t, "****"+full[len(full)-4:], a.Body["webhook_secret_masked"])
	require.NotContains(t, a.Raw, full)
	other := w.ok(http.StatusOK, "GET", "/user/me/", nil, w.anotherTenant())
	require.Equal(t, "other", other.Body["name"])
	require.Nil(t, other.Body["webhook_callback_url"])
}

func TestWebhookSetupShowsTheSecretOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	empty := w.ok(http.StatusOK, "GET", "/user/webhooks/", nil)
	require.JSONEq(t, `{"callback_url":null,"masked_secret":null,"enabled_events":[],"created_at":null,"updated_at":null}`, empty.Raw)
	first := w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": hook}, w.scoped("write"))
	require.Equal(t, "callback_url string, secret string, message string", members(t, first.Raw))
	secret := first.Body["secret"].(string)
	require.GreaterOrEqual(t, len(secret), 32)
	masked := "****" + secret[len(secret)-4:]
	at := w.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	w.clock.Advance(time.Minute)
	again := w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": hook + "2"}, w.scoped("write"))
	require.Equal(t, "callback_url string, masked_secret string, message string", members(t, again.Raw))
	require.Equal(t, hook+"2", again.Body["callback_url"])
	require.Equal(t, masked, again.Body["masked_secret"])
	got := w.ok(http.StatusOK, "GET", "/user/webhooks/", nil)
	require.Equal(t, "callback_url string, masked_secret string, enabled_events array, created_at string, updated_at string", members(t, got.Raw))
	require.Equal(t, []any{hook + "2", masked, []any{}, at, "2026-01-02T03:05:05.000Z"},
		[]any{got.Body["callback_url"], got.Body["masked_secret"], got.Body["enabled_events"], got.Body["created_at"], got.Body["updated_at"]})
	for _, a := range []answer{again, got, w.do("PATCH", "/user/webhooks/", map[string]any{"enabled_events": []string{"deposit_received"}})} {
		require.NotContains(t, a.Raw, secret)
	}
	theirs := w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": hook}, w.anotherTenant())
	require.NotEqual(t, secret, theirs.Body["secret"])
}

func TestWebhookSetupRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.config = func(c *cryptopay.Config) { c.Callbacks = webhook.Guard{} } })
	for _, c := range []struct {
		body any
		code string
	}{
		{`{}`, "invalid_request"},
		{`{"callback_url":null}`, "invalid_request"},
		{`{"callback_url":5}`, "invalid_request"},
		{`{"callback_url":["https://a.example"]}`, "invalid_request"},
		{`{"callback_url":"https://a.example","callback_url":"https://b.example"}`, "invalid_request"},
		{map[string]any{"callback_url": "nonsense"}, "invalid_url"},
		{map[string]any{"callback_url": "ftp://a.example/x"}, "invalid_url"},
		{map[string]any{"callback_url": "http://a.example/x"}, "invalid_url"},
		{map[string]any{"callback_url": "https://user:pw@a.example/"}, "invalid_url"},
		{map[string]any{"callback_url": "https://127.0.0.1/"}, "invalid_url"},
		{map[string]any{"callback_url": "https://169.254.169.254/latest"}, "invalid_url"},
		{map[string]any{"callback_url": "https://[::1]/"}, "invalid_url"},
		{map[string]any{"callback_url": "https://a.example/" + strings.Repeat("x", 2048)}, "invalid_url"},
	} {
		a := w.ok(http.StatusBadRequest, "POST", "/user/webhooks/", c.body)
		require.Equal(t, c.code, a.code(), "%v: %s", c.body, a.Raw)
		require.Len(t, a.blamed(), 1, a.Raw)
	}
	require.ElementsMatch(t, []string{"callback_url", "Callback_url"}, w.do("POST", "/user/webhooks/", `{"Callback_url":"https://a.example"}`).blamed())
	require.Equal(t, []string{"callback_url"}, w.do("POST", "/user/webhooks/", `{"callback_url":"x"}`).blamed())
	require.Nil(t, w.ok(http.StatusOK, "GET", "/user/webhooks/", nil).Body["callback_url"], "nothing was changed")
	w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": "https://a.example/" + strings.Repeat("x", 2048-len("https://a.example/"))})
	w.ok(http.StatusForbidden, "POST", "/user/webhooks/", map[string]any{"callback_url": hook}, w.scoped("read"))
}

func TestWebhookEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret := strings.Repeat("s", 12) + "tail"
	a := w.ok(http.StatusOK, "PATCH", "/user/webhooks/", map[string]any{"webhook_secret": secret, "enabled_events": []string{"deposit_received", "payment_status_update"}})
	require.Equal(t, "callback_url null, masked_secret string, enabled_events array, created_at string, updated_at string", members(t, a.Raw))
	require.Equal(t, "****tail", a.Body["masked_secret"])
	require.Equal(t, []any{"deposit_received", "payment_status_update"}, a.Body["enabled_events"])
	require.JSONEq(t, a.Raw, w.ok(http.StatusOK, "GET", "/user/webhooks/", nil).Raw)
	for _, body := range []map[string]any{
		{"webhook_url": hook}, {"callback_url": hook + "/2"}, {"webhook_url": hook + "/3", "callback_url": hook + "/3"},
	} {
		want := body["callback_url"]
		if want == nil {
			want = body["webhook_url"]
		}
		a = w.ok(http.StatusOK, "PATCH", "/user/webhooks", body)
		require.Equal(t, want, a.Body["callback_url"])
		require.Equal(t, "****tail", a.Body["masked_secret"], "an edit of the URL keeps the secret")
		require.Len(t, a.Body["enabled_events"], 2)
	}
	a = w.ok(http.StatusOK, "PATCH", "/user/webhooks/", `{"enabled_events":[],"webhook_url":null,"more":1}`)
	require.Equal(t, []any{}, a.Body["enabled_events"])
	require.Equal(t, hook+"/3", a.Body["callback_url"])
	before := w.ok(http.StatusOK, "GET", "/user/webhooks/", nil).Raw
	w.clock.Advance(time.Minute)
	require.JSONEq(t, before, w.ok(http.StatusOK, "PATCH", "/user/webhooks/", `{}`).Raw, "nothing is no edit")
	set := w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": hook})
	require.NotContains(t, set.Body, "secret", "a secret that the merchant chose is never shown")
}

func TestWebhookEditNamesEveryField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": hook})
	before := w.ok(http.StatusOK, "GET", "/user/webhooks/", nil).Raw
	for _, c := range []struct {
		body   string
		code   string
		blamed []string
	}{
		{`{"webhook_url":"x"}`, "invalid_url", []string{"webhook_url"}},
		{`{"webhook_url":""}`, "invalid_url", []string{"webhook_url"}},
		{`{"callback_url":"x"}`, "invalid_url", []string{"callback_url"}},
		{`{"webhook_url":"https://a.example/1","callback_url":"https://a.example/2"}`, "invalid_request", []string{"callback_url"}},
		{`{"webhook_url":"x","webhook_secret":"short","enabled_events":["nothing"]}`, "invalid_request", []string{"webhook_url", "webhook_secret", "enabled_events"}},
		{`{"webhook_url":5,"webhook_secret":"short","enabled_events":["nothing"]}`, "invalid_request", []string{"webhook_url", "webhook_secret", "enabled_events"}},
		{`{"webhook_secret":"fifteen-letters"}`, "invalid_request", []string{"webhook_secret"}},
		{`{"webhook_secret":"` + strings.Repeat("x", 129) + `"}`, "invalid_request", []string{"webhook_secret"}},
		{`{"webhook_secret":"with a space in the middle"}`, "invalid_request", []string{"webhook_secret"}},
		{`{"webhook_secret":"sixteen-letters-é"}`, "invalid_request", []string{"webhook_secret"}},
		{`{"webhook_secret":true}`, "invalid_request", []string{"webhook_secret"}},
		{`{"enabled_events":["payment_status_update","Payment_status_update"]}`, "invalid_request", []string{"enabled_events"}},
		{`{"enabled_events":"payment_status_update"}`, "invalid_request", []string{"enabled_events"}},
		{`{"enabled_events":[1]}`, "invalid_request", []string{"enabled_events"}},
		{`[]`, "invalid_request", []string{"body"}},
	} {
		a := w.ok(http.StatusBadRequest, "PATCH", "/user/webhooks/", c.body)
		require.Equal(t, c.code, a.code(), a.Raw)
		require.ElementsMatch(t, c.blamed, a.blamed(), a.Raw)
		require.NotContains(t, a.Raw, "fifteen-letters")
	}
	require.JSONEq(t, before, w.ok(http.StatusOK, "GET", "/user/webhooks/", nil).Raw, "nothing was changed")
	for _, secret := range []string{strings.Repeat("x", 16), strings.Repeat("x", 128)} {
		w.ok(http.StatusOK, "PATCH", "/user/webhooks/", map[string]any{"webhook_secret": secret})
	}
	w.ok(http.StatusForbidden, "PATCH", "/user/webhooks/", `{}`, w.scoped("write"))
}

// deliveries are the webhooks that came since the last call.
func (w *world) deliveries() []webhook.Delivery {
	w.t.Helper()
	w.step()
	w.inbox.mu.Lock()
	defer w.inbox.mu.Unlock()
	out := w.inbox.got
	w.inbox.got = nil
	return out
}

// event makes something happen that a webhook tells.
func (w *world) event() webhook.Delivery {
	w.t.Helper()
	p := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "5", "currency": "USDTERC20"})
	w.ok(http.StatusOK, "POST", "/payments/"+p.Body["transaction_id"].(string)+"/cancel/", nil)
	got := w.deliveries()
	require.Len(w.t, got, 1)
	return got[0]
}

func TestH07_RotationOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": hook}).Body["secret"].(string)
	d := w.event()
	require.Equal(t, hook, d.URL)
	require.NoError(t, webhook.VerifyBody(d.Header, d.Body, old))
	require.Empty(t, d.Header.Get("X-Signature-Previous"))
	fresh := "a-secret-of-the-merchants-own"
	for range 2 { // the second is the same call repeated
		w.ok(http.StatusOK, "PATCH", "/user/webhooks/", map[string]any{"webhook_secret": fresh})
	}
	signedBy := func(d webhook.Delivery, name, secret string) bool {
		return d.Header.Get(name) == webhook.NewSigner([]byte(secret)).Body(d.Body)
	}
	w.clock.Advance(24*time.Hour - time.Second)
	w.token = w.newToken(w.admin, "")
	d = w.event()
	require.True(t, signedBy(d, "X-Signature", fresh))
	require.True(t, signedBy(d, "X-Signature-Previous", old))
	w.clock.Advance(time.Second)
	d = w.event()
	require.True(t, signedBy(d, "X-Signature", fresh))
	require.Empty(t, d.Header.Get("X-Signature-Previous"), "after 24 hours the old one is void")
	require.NoError(t, webhook.Verify(d.Header, d.Body, w.clock.Now(), 0, fresh))
	require.ErrorIs(t, webhook.VerifyBody(d.Header, d.Body, old), webhook.ErrSignature)
}

// TestFS08_ALeakedSecretIsEndedOverHTTP: with the rotation or after it. The tenant's audit log says which
// client did it.
func TestFS08_ALeakedSecretIsEndedOverHTTP(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"with the rotation", "after it"} {
		w := newWorld(t)
		leaked := w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": hook}).Body["secret"].(string)
		fresh := "a-secret-of-the-merchants-own"
		rotation := map[string]any{"webhook_secret": fresh}
		if at == "after it" {
			w.ok(http.StatusOK, "PATCH", "/user/webhooks/", rotation)
			d := w.event()
			require.NoError(t, webhook.VerifyBody(d.Header, d.Body, leaked))
			rotation = map[string]any{"end_previous": true}
		} else {
			rotation["end_previous"] = true
		}
		w.ok(http.StatusOK, "PATCH", "/user/webhooks/", rotation)
		for range 2 {
			d := w.event()
			require.NoError(t, webhook.Verify(d.Header, d.Body, w.clock.Now(), 0, fresh), at)
			require.ErrorIs(t, webhook.VerifyBody(d.Header, d.Body, leaked), webhook.ErrSignature, at)
			require.ErrorIs(t, webhook.Verify(d.Header, d.Body, w.clock.Now(), 0, leaked), webhook.ErrSignature, at)
			require.Empty(t, d.Header.Get("X-Signature-Previous"), at)
			w.ok(http.StatusOK, "PATCH", "/user/webhooks/", map[string]any{"end_previous": false})
		}
		log, err := w.app.Operate.AuditLog(t.Context(), storage.Tenant(w.tenant), 0, 10)
		require.NoError(t, err)
		require.Len(t, log, map[string]int{"with the rotation": 2, "after it": 3}[at])
		for _, op := range log {
			require.Equal(t, []string{"set_webhooks", w.admin.id, w.tenant}, []string{string(op.Kind), op.By, op.Tenant})
			require.NotContains(t, op.Before+op.After, fresh)
			require.NotContains(t, op.Before+op.After, leaked)
		}
	}
}

func TestWebhookEventsAreChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": hook})
	w.ok(http.StatusOK, "PATCH", "/user/webhooks/", map[string]any{"enabled_events": []string{"deposit_received"}})
	w.earn("BTC", "100.00", "")
	got := w.deliveries()
	require.Len(t, got, 1)
	require.Equal(t, "deposit_received", inside(t, string(got[0].Body), "event")[1:len("deposit_received")+1])
	w.ok(http.StatusOK, "PATCH", "/user/webhooks/", map[string]any{"enabled_events": []string{}})
	w.earn("BTC", "100.00", "")
	require.Greater(t, len(w.deliveries()), 1)
	// A payment's own callback wins over the configured URL, and is signed alike.
	p := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "50", "currency": "BTC", "callback_url": "https://own.example/x"})
	w.ok(http.StatusOK, "POST", "/payments/"+p.Body["transaction_id"].(string)+"/cancel/", nil)
	got = w.deliveries()
	require.Len(t, got, 1)
	require.Equal(t, "https://own.example/x", got[0].URL)
	require.NotEmpty(t, got[0].Header.Get("X-Signature"))
}

// receiver is a merchant's server.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	body   []byte
	header http.Header
}

// received is what the server got last.
func (r *receiver) received() (http.Header, []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.header, r.body
}

// answer is the status that the server answers with from now on.
func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusNoContent}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.body, r.header = body, q.Header.Clone()
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

// delivering is a world whose webhooks go out over the network, to this machine
// alone where that is allowed.
func delivering(local bool) func(*setup) {
	return func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			guard := webhook.Guard{AllowHTTP: true}
			if local {
				guard.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
			tick, step := time.Unix(0, 0), 7*time.Millisecond
			c.Callbacks, c.Notifier = guard, webhook.NewHTTP(webhook.HTTPOptions{Guard: guard, Timeout: 2 * time.Second, Now: func() time.Time {
				if !local { // no attempt takes as long as the one before
					step *= 2
				}
				tick = tick.Add(step)
				return tick
			}})
		}
	}
}

// sampleFields are the fields of each event's data, as the interface lists them.
var sampleFields = map[string]string{
	"payment_status_update": "transaction_id string, status string, previous_status string, payment_type string, order_id string, price_amount string, " +
		"price_currency string, pay_amount string, pay_currency string, blockchain_address string, transaction_hash string, confirmations number, " +
		"merchant_received_usd string, payment_history array, metadata object",
	"deposit_received": "transaction_id string, deposit_id string, amount string, transaction_hash string, confirmations number, blockchain_network string, " +
		"token string, timestamp string, metadata object",
	"deposit_merged": "deposit_id string, transaction_id string, wallet_id string, amount string, currency string, token string, blockchain_network string, " +
		"from_address string, to_address string, transaction_hash string, merge_transaction_hash string, network_fee string, timestamp string, metadata object",
	"withdrawal_status_update": "withdrawal_id string, status string, previous_status string, amount string, currency string, address string, " +
		"transaction_hash string, network_fee string, custom_id string, metadata object",
	"withdrawal_waiting": "withdrawal_id string, waiting_reason string, waiting_since string, currency string, amount string, metadata object",
	"payment_deposit": "deposit_id string, transaction_id string, amount string, currency string, transaction_hash string, status string, previous_status string, " +
		"role string, confirmations number, required_confirmations number, timestamp string, metadata object",
	"refund_update": "refund_id string, transaction_id string, suspense_id null, withdrawal_id string, status string, amount string, currency string, address string, memo null, " +
		"reason null, failure_reason null, waiting_reason null, waiting_since null, expires_at null, callback_url null, created_at string, updated_at string, previous_status string, metadata object",
	"transfer_status_update": "transfer_id string, wallet_id string, external_id string, transfer_type string, currency string, amount string, status string, " +
		"error null, callback_url null, created_at string, updated_at string, completed_at string, previous_status string, metadata object",
}

func TestWebhookTestDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delivering(true))
	shop := newReceiver(t)
	secret := w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": shop.URL + "/in"}).Body["secret"].(string)
	require.Len(t, sampleFields, len(webhook.EventTypes()))
	w.ok(http.StatusOK, "PATCH", "/user/webhooks/", map[string]any{"enabled_events": []string{"deposit_merged"}})
	for event, fields := range sampleFields {
		a := w.ok(http.StatusOK, "POST", "/user/webhooks/test/", map[string]any{"event_type": event})
		require.Equal(t, "delivery_id string, event_type string, status string, response_status number, duration_ms number, error null", members(t, a.Raw))
		require.Equal(t, []any{event, "delivered", json.Number("204"), json.Number("7")},
			[]any{a.Body["event_type"], a.Body["status"], a.Body["response_status"], a.Body["duration_ms"]})
		h, body := shop.received()
		require.Equal(t, a.Body["delivery_id"], h.Get("X-Webhook-Id"))
		require.Equal(t, "1", h.Get("X-Webhook-Attempt"))
		require.NoError(t, webhook.VerifyBody(h, body, secret))
		require.NoError(t, webhook.Verify(h, body, w.clock.Now(), 0, secret))
		require.Equal(t, "event string, data object, timestamp string", members(t, string(body)))
		require.Equal(t, strconv.Quote(event), inside(t, string(body), "event"))
		require.Equal(t, "true", inside(t, string(body), "data", "metadata", "test"))
		require.Equal(t, fields, members(t, inside(t, string(body), "data")))
	}
	// What the receiver says is told; nothing is tried again.
	shop.answer(http.StatusTeapot)
	a := w.ok(http.StatusOK, "POST", "/user/webhooks/test/", map[string]any{"event_type": "deposit_received"})
	require.Equal(t, []any{"failed", json.Number("418"), "The receiver did not answer with a status of 200 to 299."},
		[]any{a.Body["status"], a.Body["response_status"], a.Body["error"]})
	shop.Close()
	a = w.ok(http.StatusOK, "POST", "/user/webhooks/test/", map[string]any{"event_type": "deposit_received"})
	require.Equal(t, "delivery_id string, event_type string, status string, response_status null, duration_ms number, error string", members(t, a.Raw))
	require.Equal(t, []any{"failed", "The receiver could not be reached."}, []any{a.Body["status"], a.Body["error"]})
	host := strings.TrimPrefix(shop.URL, "http://")
	require.NotContains(t, a.Raw, host)
	w.clock.Advance(time.Hour)
	w.step()
}

func TestWebhookTestRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ok(http.StatusBadRequest, "POST", "/user/webhooks/test/", map[string]any{"event_type": "deposit_received"})
	require.Equal(t, "invalid_url", a.code(), "no URL is set")
	w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": hook})
	for _, body := range []string{`{}`, `{"event_type":""}`, `{"event_type":"payment"}`, `{"event_type":"Deposit_received"}`, `{"event_type":7}`, `{"event_type":null}`} {
		a = w.ok(http.StatusBadRequest, "POST", "/user/webhooks/test/", body)
		require.Equal(t, "invalid_request", a.code(), body)
		require.Equal(t, []string{"event_type"}, a.blamed(), body)
	}
	require.Empty(t, w.deliveries())
	w.ok(http.StatusForbidden, "POST", "/user/webhooks/test/", map[string]any{"event_type": "deposit_received"}, w.scoped("write"))
	w.ok(http.StatusUnauthorized, "POST", "/user/webhooks/test/", map[string]any{"event_type": "deposit_received"}, nobody())
}

func TestH02_FS12_WebhookTestIsNoProbeOfPrivateNetworks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, delivering(false))
	shop := newReceiver(t)
	// A name says nothing until it is connected to.
	_, port, _ := strings.Cut(strings.TrimPrefix(shop.URL, "http://"), ":")
	a := w.do("POST", "/user/webhooks/", map[string]any{"callback_url": "http://localhost:" + port + "/"})
	require.Equal(t, http.StatusOK, a.Status, a.Raw)
	a = w.ok(http.StatusBadRequest, "POST", "/user/webhooks/", map[string]any{"callback_url": shop.URL})
	require.Equal(t, "invalid_url", a.code())
	a = w.ok(http.StatusOK, "POST", "/user/webhooks/test/", map[string]any{"event_type": "deposit_received"})
	const why = "The URL does not lead to a public address."
	require.Equal(t, []any{"failed", nil, why}, []any{a.Body["status"], a.Body["response_status"], a.Body["error"]})
	h, _ := shop.received()
	require.Nil(t, h)
	// FS12: a name that does not exist looks the same as one inside.
	w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": "http://no-such-name.invalid/"})
	b := w.ok(http.StatusOK, "POST", "/user/webhooks/test/", map[string]any{"event_type": "deposit_received"})
	for _, field := range []string{"status", "response_status", "error", "duration_ms"} {
		require.Equal(t, a.Body[field], b.Body[field], field)
	}
}

func TestWebhookTestsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limits(func(l *httpapi.Limits) { l.WebhookTestsPerHour = 2 }))
	w.ok(http.StatusOK, "POST", "/user/webhooks/", map[string]any{"callback_url": hook})
	test := func(refine ...with) answer {
		return w.do("POST", "/user/webhooks/test/", map[string]any{"event_type": "deposit_received"}, refine...)
	}
	require.Equal(t, http.StatusOK, test().Status)
	require.Equal(t, http.StatusOK, test(w.scoped("read", "write")).Status)
	requireLimited(t, w, test(), 2, time.Hour)
	require.Equal(t, http.StatusBadRequest, test(w.anotherTenant()).Status, "each tenant has its own")
	w.ok(http.StatusOK, "GET", "/user/webhooks/", nil)
}

func TestFees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.JSONEq(t, `{"fees":[]}`, w.ok(http.StatusOK, "GET", "/user/fees/", nil, w.scoped("admin")).Raw)
	w.feesOf("1")
	w.earn("BTC", "600.00", "")
	w.earn("USDTERC20", "100.00", w.newWallet("x"))
	a := w.ok(http.StatusOK, "GET", "/user/fees", nil, bearer(w.newToken(w.admin, "admin")))
	require.JSONEq(t, `{"fees":[{"currency":"BTC","amount":"0.00010000"},{"currency":"USDTERC20","amount":"1.00000000"}]}`, a.Raw)
	require.Equal(t, "currency string, amount string", members(t, inside(t, a.Raw, "fees", "0")))
	for _, c := range [][]string{{"read"}, {"write"}, {"read", "write"}} {
		refused := w.ok(http.StatusForbidden, "GET", "/user/fees/", nil, bearer(w.newToken(w.admin, strings.Join(c, " "))))
		require.Equal(t, "permission_denied", refused.code())
		require.Equal(t, []any{"admin"}, refused.at("error", "details", "required_scopes"))
	}
	theirs := w.newToken(w.newApp(w.newTenant("other"), auth.NoRole, auth.Admin), "")
	require.JSONEq(t, `{"fees":[]}`, w.ok(http.StatusOK, "GET", "/user/fees/", nil, bearer(theirs)).Raw)
}
