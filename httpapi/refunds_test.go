package httpapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
)

// TestRefundsOverREST: in parts and all, never more than came; once under a key; its withdrawal
// is an ordinary one.
func TestRefundsOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.fund(w.tenant)
	w.earn("USDTERC20", "50", "")
	other := w.earned
	id := w.earn("USDTERC20", "100", "").Body["transaction_id"].(string)
	path := "/payments/" + id + "/refunds/"
	w.ok(http.StatusOK, "PATCH", "/user/webhooks/", map[string]any{"webhook_url": "https://shop.example/hook", "enabled_events": []string{"refund_update"}})

	body := map[string]any{"amount": 30.5, "address": w.elsewhere(), "reason": "too large", "callback_url": "https://shop.example/refund"}
	first := w.ok(http.StatusCreated, "POST", path, body, header("Idempotency-Key", "k")).Body
	require.Equal(t, []any{id, nil, "pending", "30.50000000", "USDTERC20", w.elsewhere(), nil, nil, "too large", nil},
		[]any{first["transaction_id"], first["suspense_id"], first["status"], first["amount"], first["currency"], first["address"], first["memo"], first["claim_url"], first["reason"], first["waiting_reason"]})
	again := w.ok(http.StatusCreated, "POST", path, body, header("Idempotency-Key", "k"))
	require.Equal(t, []any{first, "true"}, []any{again.Body, again.Header.Get("Idempotent-Replayed")})
	require.Equal(t, "idempotency_mismatch", w.do("POST", "/payments/"+other+"/refunds/", body, header("Idempotency-Key", "k")).code(), "of another payment")
	body["amount"] = "30.6"
	require.Equal(t, "idempotency_mismatch", w.do("POST", path, body, header("Idempotency-Key", "k")).code())
	require.Equal(t, first, w.ok(http.StatusOK, "GET", "/refunds/"+first["refund_id"].(string), nil).Body)
	pays := w.ok(http.StatusOK, "GET", "/withdrawal/"+first["withdrawal_id"].(string)+"/", nil).Body
	require.Equal(t, []any{"30.50000000", "pending", w.admin.id}, []any{pays["requested_amount"], pays["status"], pays["requested_by"]})

	for what, of := range map[string]struct {
		amount any
		with   map[string]any
		field  string
	}{
		"more than is left":   {amount: "69.500001", field: "amount"},
		"no amount":           {field: "amount"},
		"another word":        {amount: "ALL", field: "amount"},
		"nothing":             {amount: "0", field: "amount"},
		"less than the fee":   {amount: "0.01", field: "amount"},
		"too many places":     {amount: "1.0000001", field: "amount"},
		"an exponent":         {amount: "1e1", field: "amount"},
		"a memo alone":        {amount: "5", field: "memo", with: map[string]any{"memo": "7", "address": nil}},
		"a URL that is none":  {amount: "5", field: "callback_url", with: map[string]any{"callback_url": "ftp://x"}},
		"an address of bytes": {amount: "5", field: "address", with: map[string]any{"address": "0x1"}},
	} {
		body := map[string]any{"amount": of.amount, "address": w.elsewhere()}
		for k, v := range of.with {
			body[k] = v
		}
		a := w.do("POST", path, body)
		require.Equal(t, http.StatusBadRequest, a.Status, what)
		require.NotNil(t, a.at("error", "details", of.field), "%s: %s", what, a.Raw)
	}
	require.Equal(t, http.StatusNotFound, w.do("POST", "/payments/"+nothing+"/refunds/", body).Status)
	open := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "USDTERC20"}).Body["transaction_id"].(string)
	a := w.do("POST", "/payments/"+open+"/refunds/", body)
	require.Equal(t, []any{http.StatusConflict, "invalid_state", "waiting"}, []any{a.Status, a.code(), a.at("error", "details", "current_status")})

	rest := w.ok(http.StatusCreated, "POST", path, map[string]any{"amount": "all", "address": w.elsewhere()}).Body
	require.Equal(t, "69.50000000", rest["amount"])
	cancelled := w.ok(http.StatusOK, "POST", "/refunds/"+rest["refund_id"].(string)+"/cancel/", nil).Body
	require.Equal(t, "cancelled", cancelled["status"])
	require.Equal(t, "cancelled", w.ok(http.StatusOK, "POST", "/refunds/"+rest["refund_id"].(string)+"/cancel/", nil).Body["status"])
	w.mine(30)
	a = w.do("POST", "/refunds/"+first["refund_id"].(string)+"/cancel/", nil)
	require.Equal(t, []any{http.StatusConflict, "completed"}, []any{a.Status, a.at("error", "details", "current_status")})

	to := map[string][]string{}
	for _, d := range w.inbox.got {
		var body struct {
			Event string
			Data  refund.Update
		}
		require.NoError(t, json.Unmarshal(d.Body, &body))
		require.Equal(t, "refund_update", body.Event)
		to[d.URL] = append(to[d.URL], string(body.Data.PreviousStatus)+">"+string(body.Data.Status))
	}
	require.Equal(t, map[string][]string{
		"https://shop.example/refund": {"pending>processing", "processing>completed"}, "https://shop.example/hook": {"pending>cancelled"},
	}, to)
	w.sound()
}

// TestRefundsAreListedOverREST: by payment, state and time, page by page, newest first, with the
// claim link while it can be used.
func TestRefundsAreListedOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.fund(w.tenant)
	id := w.earn("USDTERC20", "100", "").Body["transaction_id"].(string)
	other := w.earn("USDTERC20", "50", "").Body["transaction_id"].(string)
	ask := func(of, amount string, named bool) map[string]any {
		w.clock.Advance(time.Hour)
		w.token = w.newToken(w.admin, "")
		body := map[string]any{"amount": amount}
		if named {
			body["address"] = w.elsewhere()
		}
		return w.ok(http.StatusCreated, "POST", "/payments/"+of+"/refunds/", body).Body
	}
	a, b, c := ask(id, "10", false), ask(id, "20", true), ask(other, "30", false)
	listed := func(query string) (refunds []any, total any) {
		got := w.ok(http.StatusOK, "GET", "/refunds/?"+query, nil)
		for _, r := range list(t, got, "refunds") {
			refunds = append(refunds, r)
		}
		return refunds, got.Body["total"]
	}
	for query, want := range map[string][]any{
		"":                                   {c, b, a},
		"limit=2":                            {c, b},
		"limit=2&offset=2":                   {a},
		"transaction_id=" + id:               {b, a},
		"transaction_id=" + nothing:          {},
		"status=awaiting_address":            {c, a},
		"status=pending":                     {b},
		"status=completed":                   {},
		"date_from=" + text(b, "created_at"): {c, b},
		"date_to=" + text(b, "created_at"):   {b, a},
		"date_to=2020-01-01":                 {},
		"transaction_id=" + id + "&status=pending&date_from=" + text(a, "created_at"): {b},
	} {
		got, total := listed(query)
		require.ElementsMatch(t, want, got, query)
		if !strings.Contains(query, "limit") {
			require.Equal(t, json.Number(fmt.Sprint(len(want))), total, query)
		} else {
			require.Equal(t, json.Number("3"), total, query)
		}
	}
	all, _ := listed("")
	require.Equal(t, []any{c, b, a}, all, "newest first")
	w.ok(http.StatusOK, "POST", "/refunds/"+a["refund_id"].(string)+"/cancel/", nil)
	got, total := listed("status=cancelled")
	require.Equal(t, json.Number("1"), total)
	require.Equal(t, []any{a["refund_id"], nil}, []any{got[0].(map[string]any)["refund_id"], got[0].(map[string]any)["claim_url"]})
	for _, bad := range []string{"status=lost", "limit=101", "offset=-1", "date_from=yesterday"} {
		require.Equal(t, http.StatusBadRequest, w.do("GET", "/refunds/?"+bad, nil).Status, bad)
	}
	require.NotNil(t, w.do("GET", "/refunds/?status=lost&date_to=x", nil).at("error", "details", "date_to"))
	w.sound()
}

func text(of map[string]any, field string) string { return url.QueryEscape(of[field].(string)) }

// TestClaimLinkOverREST: whoever has the link names the address, once and in time, sees nothing
// of the merchant, and cannot guess.
func TestClaimLinkOverREST(t *testing.T) {
	t.Parallel()
	var paths []string
	w := newWorld(t, func(s *setup) {
		s.options = func(o *httpapi.Options) {
			o.BaseURL, o.Observe = "https://pay.example", func(seen httpapi.Observation) { paths = append(paths, seen.Path) }
		}
	})
	w.fund(w.tenant)
	id := w.earn("USDTERC20", "100", "").Body["transaction_id"].(string)
	made := w.ok(http.StatusCreated, "POST", "/payments/"+id+"/refunds/", map[string]any{"amount": "40", "reason": "a secret reason"}, header("Idempotency-Key", "k")).Body
	require.Equal(t, []any{"awaiting_address", nil, "address"}, []any{made["status"], made["withdrawal_id"], made["waiting_reason"]})
	link, ok := strings.CutPrefix(made["claim_url"].(string), "https://pay.example")
	require.True(t, ok)
	token := strings.Split(link, "/")[2]
	require.Equal(t, made, w.ok(http.StatusCreated, "POST", "/payments/"+id+"/refunds/", map[string]any{"amount": "40", "reason": "a secret reason"}, header("Idempotency-Key", "k")).Body)
	require.Equal(t, made["claim_url"], w.ok(http.StatusOK, "GET", "/refunds/"+made["refund_id"].(string)+"/", nil).Body["claim_url"])

	shown := map[string]any{"amount": "40.00000000", "currency": "USDTERC20", "status": "awaiting_address"}
	require.Equal(t, shown, w.ok(http.StatusOK, "GET", link, nil, nobody()).Body)
	for _, wrong := range []string{"x", nothing, strings.ToUpper(token), token[:42] + flip(token[42:]), strings.Repeat("a", 2000)} {
		a := w.do("GET", "/claim/"+wrong+"/", nil, nobody(), from("192.0.2.7:1"))
		require.Equal(t, []any{http.StatusNotFound, "not_found"}, []any{a.Status, a.code()})
	}
	guest := []with{nobody(), from("192.0.2.8:1")}
	a := w.do("POST", link, map[string]any{"address": "0x1"}, guest...)
	require.Equal(t, []any{http.StatusBadRequest, "invalid_address"}, []any{a.Status, a.code()})
	require.NotNil(t, w.do("POST", link, map[string]any{}, guest...).at("error", "details", "address"))
	w.ok(http.StatusCreated, "POST", "/withdrawal/", map[string]any{"amount": "90", "currency": "USDTERC20", "address": w.elsewhere()})
	a = w.do("POST", link, map[string]any{"address": w.elsewhere()}, guest...)
	require.Equal(t, []any{http.StatusConflict, "invalid_state"}, []any{a.Status, a.code()})
	require.NotContains(t, a.Raw, "balance", "what the merchant has is not the customer's to know")
	require.Equal(t, "insufficient_balance", w.ok(http.StatusOK, "GET", "/refunds/"+made["refund_id"].(string)+"/", nil).Body["waiting_reason"])
	w.earn("USDTERC20", "100", "")
	shown["status"] = "pending"
	require.Equal(t, shown, w.ok(http.StatusOK, "POST", link, map[string]any{"address": w.elsewhere()}, guest...).Body)
	require.Equal(t, http.StatusNotFound, w.do("POST", link, map[string]any{"address": w.elsewhere()}, guest...).Status, "one use")
	require.Equal(t, http.StatusNotFound, w.do("GET", link, nil, guest...).Status)
	w.mine(30)
	done := w.ok(http.StatusOK, "GET", "/refunds/"+made["refund_id"].(string)+"/", nil).Body
	require.Equal(t, []any{"completed", nil, w.elsewhere()}, []any{done["status"], done["claim_url"], done["address"]})

	made = w.ok(http.StatusCreated, "POST", "/payments/"+id+"/refunds/", map[string]any{"amount": "10"}).Body
	link = strings.TrimPrefix(made["claim_url"].(string), "https://pay.example")
	flood := []with{nobody(), from("192.0.2.9:1")}
	for range 10 {
		require.Equal(t, http.StatusNotFound, w.do("GET", "/claim/"+nothing+"/", nil, flood...).Status)
	}
	a = w.do("POST", link, map[string]any{"address": w.elsewhere()}, flood...)
	require.Equal(t, http.StatusTooManyRequests, a.Status)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	w.ok(http.StatusOK, "GET", link, nil, nobody(), from("192.0.2.10:1"))
	w.clock.Advance(refund.ClaimFor)
	w.step()
	require.Equal(t, http.StatusNotFound, w.do("POST", link, map[string]any{"address": w.elsewhere()}, guest...).Status, "an old one")
	w.token = w.newToken(w.admin, "")
	ended := w.ok(http.StatusOK, "GET", "/refunds/"+made["refund_id"].(string)+"/", nil).Body
	require.Equal(t, []any{"cancelled", "expired", nil}, []any{ended["status"], ended["failure_reason"], ended["claim_url"]})
	for _, mistyped := range []string{"/claim//" + token + "/", "//claim/" + token, "/Claim/" + token + "/", "/v1/claim/" + token + "/", "/claim%2F" + token} {
		require.Equal(t, http.StatusNotFound, w.do("GET", mistyped, nil, nobody(), from("192.0.2.9:1")).Status, mistyped)
	}
	require.NotContains(t, strings.Join(paths, " "), token, "a log has no token")
	require.Contains(t, paths, "/claim/{token}/")
	w.sound()
}

// TestRefundOfSuspenseOverREST: the entry says which refund it was; one that ends unpaid is open
// again.
func TestRefundOfSuspenseOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.otherwise()
	entry := func() map[string]any {
		return list(t, w.ok(http.StatusOK, "GET", "/suspense/?reason=late", nil), "suspense")[0]
	}
	id := entry()["suspense_id"].(string)
	body := map[string]any{"action": "refund", "address": w.elsewhere(), "reason": "came too late"}
	a := w.do("POST", "/suspense/"+id+"/resolve/", map[string]any{"action": "refund", "address": "0x1", "reason": "r"})
	require.Equal(t, "invalid_address", a.code())
	got := w.ok(http.StatusOK, "POST", "/suspense/"+id+"/resolve/", body).Body
	require.Equal(t, "refunded", got["status"])
	require.Equal(t, got, entry())
	a = w.do("POST", "/suspense/"+id+"/resolve/", body)
	require.Equal(t, []any{http.StatusConflict, "refunded"}, []any{a.Status, a.at("error", "details", "current_status")})
	of := "/refunds/" + got["refund_id"].(string) + "/"
	made := w.ok(http.StatusOK, "GET", of, nil).Body
	require.Equal(t, []any{nil, id, "pending", "25.00000000", "came too late"}, []any{made["transaction_id"], made["suspense_id"], made["status"], made["amount"], made["reason"]})
	require.Equal(t, "cancelled", w.ok(http.StatusOK, "POST", of+"cancel/", nil).Body["status"])
	require.Equal(t, []any{"open", nil}, []any{entry()["status"], entry()["refund_id"]})
	w.ok(http.StatusOK, "POST", "/suspense/"+id+"/resolve/", body)
	w.mine(30)
	require.Equal(t, "completed", w.ok(http.StatusOK, "GET", "/refunds/"+entry()["refund_id"].(string)+"/", nil).Body["status"])
	w.sound()
}

// TestFS02_NoTenantIsShownTheClaimLinkOfAnother: whoever writes to the database and copies the row
// of another tenant's refund to his own partition, or writes that refund into the first answer to
// a request of his own, is not shown its link, which is as good as the money.
func TestFS02_NoTenantIsShownTheClaimLinkOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.fund(w.tenant)
	id := w.earn("USDTERC20", "100", "").Body["transaction_id"].(string)
	theirs := w.ok(http.StatusCreated, "POST", "/payments/"+id+"/refunds/", map[string]any{"amount": "40"}).Body
	link := theirs["claim_url"].(string)
	stolen, _, ok, err := refund.Refunds.One(t.Context(), w.store, storage.Tenant(w.tenant), theirs["refund_id"].(string))
	require.NoError(t, err)
	require.True(t, ok)
	stolen.ID = theirs["refund_id"].(string)

	thief := w.newTenant("thief")
	w.fund(thief)
	w.token = w.newToken(w.newApp(thief, auth.NoRole), "")
	p := storage.Tenant(thief)
	edit := func(rows ...storage.Row) {
		require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{ID: "edit/" + rows[0].ID, Partition: p, Put: rows}))
	}
	edit(refund.Refunds.Row(stolen.ID, 0, stolen.ExpiresAt, stolen))
	w.sees(link, "GET", "/refunds/"+stolen.ID+"/", nil)
	w.sees(link, "GET", "/refunds/", nil)

	body := map[string]any{"amount": "40"}
	path := "/payments/" + id + "/refunds/"
	raw, err := json.Marshal(body)
	require.NoError(t, err)
	said, err := json.Marshal(stolen)
	require.NoError(t, err)
	sum := sha256.Sum256([]byte(id + "/" + string(raw)))
	edit(storage.OnceTable.Row("createRefund/k", 0, w.clock.Now().Add(storage.OnceFor), storage.OnceRow{
		Fingerprint: hex.EncodeToString(sum[:]), Response: said, CreatedAt: w.clock.Now(),
	}))
	w.sees(link, "POST", path, body, onceKey("k"))
}

// TestFS02_AClaimLinkIsSealedInAnUpgradeToo: no claim link was ever made without a seal. While rows
// without one are accepted, as those of earlier versions, a refund's is not.
func TestFS02_AClaimLinkIsSealedInAnUpgradeToo(t *testing.T) {
	t.Parallel()
	edited(t, func(string) string { return "" })
}

// TestFS02_AnInventedKeySealsNoClaimLink: nor one whose seal names a key that nobody has.
func TestFS02_AnInventedKeySealsNoClaimLink(t *testing.T) {
	t.Parallel()
	edited(t, func(seal string) string {
		parts := strings.Split(seal, "/")
		parts[1] = "00000000"
		return strings.Join(parts, "/")
	})
}

// edited requires that a refund whose amount and seal were edited in an upgrade pays nobody.
func edited(t *testing.T, seal func(string) string) {
	t.Helper()
	w := newWorld(t, unlimited, func(s *setup) {
		s.config = func(c *cryptopay.Config) { c.UnsealedUntil = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) }
	})
	w.fund(w.tenant)
	w.earn("USDTERC20", "100", "")
	id := w.earn("USDTERC20", "50", "").Body["transaction_id"].(string)
	made := w.ok(http.StatusCreated, "POST", "/payments/"+id+"/refunds/", map[string]any{"amount": "5"}).Body
	p := storage.Tenant(w.tenant)
	v, row, _, err := refund.Refunds.One(t.Context(), w.store, p, made["refund_id"].(string))
	require.NoError(t, err)
	v.Amount, v.Seal = 8*v.Amount, seal(v.Seal)
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "edit", Partition: p, Put: []storage.Row{refund.Refunds.Row(row.ID, row.Version, row.Due, v)},
	}))
	a := w.do("POST", made["claim_url"].(string), map[string]any{"address": w.elsewhere()}, nobody())
	require.Equal(t, []any{http.StatusConflict, "invalid_state"}, []any{a.Status, a.code()}, a.Raw)
}

// sees requires that an answer names a refund, and has no claim link.
func (w *world) sees(link, method, path string, body any, with ...with) {
	w.t.Helper()
	a := w.do(method, path, body, with...)
	require.Contains(w.t, a.Raw, `"awaiting_address"`)
	require.NotContains(w.t, a.Raw, strings.Split(link, "/claim/")[1])
}
