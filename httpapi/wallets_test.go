package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// members lists the fields of a JSON object in their order, each with its type:
// "id number, name string".
func members(t testing.TB, raw string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(raw))
	_, err := d.Token()
	require.NoError(t, err, "%s", raw)
	var out []string
	for d.More() {
		name, err := d.Token()
		require.NoError(t, err)
		var v json.RawMessage
		require.NoError(t, d.Decode(&v))
		kind := "number"
		switch v[0] {
		case '"':
			kind = "string"
		case '{':
			kind = "object"
		case '[':
			kind = "array"
		case 'n':
			kind = "null"
		case 't', 'f':
			kind = "boolean"
		}
		out = append(out, fmt.Sprintf("%s %s", name, kind))
	}
	return strings.Join(out, ", ")
}

// inside is the raw JSON at a path of names; "0" is the first of an array.
func inside(t testing.TB, raw string, path ...string) string {
	t.Helper()
	for _, name := range path {
		if name == "0" {
			var list []json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(raw), &list), "%s", raw)
			require.NotEmpty(t, list)
			raw = string(list[0])
			continue
		}
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(raw), &m), "%s", raw)
		require.Contains(t, m, name)
		raw = string(m[name])
	}
	return raw
}

// blamed are the fields that an error names.
func (a answer) blamed() []string {
	details, _ := a.at("error", "details").(map[string]any)
	out := []string{}
	for name := range details {
		out = append(out, name)
	}
	return out
}

func (w *world) newWallet(external string, refine ...with) string {
	w.t.Helper()
	a := w.ok(http.StatusCreated, "POST", "/wallets/", map[string]any{"name": "Wallet " + external, "external_id": external}, refine...)
	return a.Body["wallet_id"].(string)
}

// anotherTenant is the token of another tenant.
func (w *world) anotherTenant() with {
	w.t.Helper()
	return bearer(w.newToken(w.newApp(w.newTenant("other"), "", auth.Read, auth.Write), ""))
}

const walletFields = "id number, name string, external_id string, wallet_id string, created string, updated string, balances array"

const entryFields = "currency string, amount string, pending_amount string, available_balance string"

func TestWalletLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.ok(http.StatusCreated, "POST", "/wallets/", map[string]any{"name": "Äpfel & Birnen", "external_id": "a1", "unknown": true})
	require.Equal(t, walletFields, members(t, made.Raw))
	id := made.Body["wallet_id"].(string)
	require.JSONEq(t, `{"id":1,"name":"Äpfel & Birnen","external_id":"a1","wallet_id":"`+id+`","created":"2026-01-02T03:04:05.000Z","updated":"2026-01-02T03:04:05.000Z","balances":[]}`, made.Raw)
	require.Equal(t, "2", w.ok(http.StatusCreated, "POST", "/wallets", map[string]any{"name": "b", "external_id": "a2"}).Body["id"].(json.Number).String())
	w.earn("USDTERC20", "25", id)

	list := w.ok(http.StatusOK, "GET", "/wallets/", nil)
	require.Equal(t, "accounts array, total number", members(t, list.Raw))
	require.Equal(t, "2", list.Body["total"].(json.Number).String())
	require.Equal(t, walletFields, members(t, inside(t, list.Raw, "accounts", "0")))
	require.JSONEq(t, `[{"currency":"USDTERC20","amount":"25.00000000","pending_amount":"0.00000000","available_balance":"25.00000000"}]`, inside(t, list.Raw, "accounts", "0", "balances"))
	require.Equal(t, entryFields, members(t, inside(t, list.Raw, "accounts", "0", "balances", "0")))
	require.Equal(t, []any{}, list.Body["accounts"].([]any)[1].(map[string]any)["balances"])

	for _, path := range []string{"/wallets/1/", "/wallets/1", "/wallets/" + id + "/"} {
		require.JSONEq(t, inside(t, list.Raw, "accounts", "0"), w.ok(http.StatusOK, "GET", path, nil).Raw)
	}
	renamed := w.ok(http.StatusOK, "PATCH", "/wallets/1/", map[string]any{"name": "new"})
	require.Equal(t, walletFields, members(t, renamed.Raw))
	require.Equal(t, "new", renamed.Body["name"])
	require.Len(t, renamed.Body["balances"], 1)
	require.Equal(t, "new", w.ok(http.StatusOK, "PATCH", "/wallets/"+id+"/", `{}`).Body["name"], "nothing asked, nothing changed")

	require.Equal(t, "wallet_not_empty", w.ok(http.StatusConflict, "DELETE", "/wallets/1/", nil).code())
	require.Empty(t, w.ok(http.StatusNoContent, "DELETE", "/wallets/2/", nil).Raw)
	require.Equal(t, "not_found", w.ok(http.StatusNotFound, "DELETE", "/wallets/2/", nil).code())
	require.Equal(t, "1", w.ok(http.StatusOK, "GET", "/wallets/", nil).Body["total"].(json.Number).String())
	again := w.ok(http.StatusCreated, "POST", "/wallets/", map[string]any{"name": "c", "external_id": "a2"})
	require.Equal(t, "3", again.Body["id"].(json.Number).String(), "numbers are not given twice")
}

func TestWalletErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.newWallet("taken")
	ü := func(n int) string { return strings.Repeat("ü", n) }
	for _, row := range []struct {
		method, path, body string
		status             int
		code               string
		fields             []string
	}{
		{"POST", "/wallets/", `{}`, 400, "invalid_request", []string{"name", "external_id"}},
		{"POST", "/wallets/", `{"name":null,"external_id":""}`, 400, "invalid_request", []string{"name", "external_id"}},
		{"POST", "/wallets/", `{"name":5,"external_id":["a"]}`, 400, "invalid_request", []string{"name", "external_id"}},
		{"POST", "/wallets/", `{"name":true,"external_id":"master"}`, 400, "invalid_request", []string{"name", "external_id"}},
		{"POST", "/wallets/", `{"name":"` + ü(256) + `","external_id":"` + ü(65) + `"}`, 400, "invalid_request", []string{"name", "external_id"}},
		{"POST", "/wallets/", `{"name":"` + ü(255) + `","external_id":"` + ü(64) + `"}`, 201, "", nil},
		{"POST", "/wallets/", `{"name":"x","external_id":"taken"}`, 400, "duplicate_external_id", []string{"external_id"}},
		{"POST", "/wallets/", `{"name":"x","name":"y","external_id":"z"}`, 400, "invalid_request", []string{"name"}},
		{"POST", "/wallets/", `[]`, 400, "invalid_request", []string{"body"}},
		{"POST", "/wallets/", ``, 400, "invalid_request", []string{"body"}},
		{"PATCH", "/wallets/1/", `{"external_id":"other"}`, 400, "invalid_request", []string{"external_id"}},
		{"PATCH", "/wallets/1/", `{"external_id":"taken","name":""}`, 400, "invalid_request", []string{"external_id", "name"}},
		{"PATCH", "/wallets/1/", `{"external_id":7,"name":"` + ü(256) + `"}`, 400, "invalid_request", []string{"external_id", "name"}},
		{"PATCH", "/wallets/1/", `{"name":"` + ü(255) + `"}`, 200, "", nil},
		{"PATCH", "/wallets/9/", `{"name":"x"}`, 404, "not_found", nil},
		{"POST", "/wallets/balances/", `{}`, 400, "invalid_request", []string{"wallet_id"}},
		{"POST", "/wallets/balances/", `{"wallet_id":1}`, 400, "invalid_request", []string{"wallet_id"}},
		{"POST", "/wallets/balances/", `{"wallet_id":"none"}`, 404, "not_found", nil},
		{"POST", "/wallets/balances/", `{"external_id":"none"}`, 404, "not_found", nil},
		{"POST", "/wallets/balances/", `{"wallet_id":"none","external_id":"taken"}`, 404, "not_found", nil},
		{"POST", "/wallets/balances/", `{"wallet_id":"master"}`, 404, "not_found", nil},
		{"POST", "/wallets/transfer-history/", `{"wallet_id":"none"}`, 404, "not_found", nil},
	} {
		a := w.do(row.method, row.path, row.body)
		require.Equal(t, row.status, a.Status, "%s %s: %s", row.path, row.body, a.Raw)
		require.Equal(t, row.code, a.code(), row.body)
		if row.fields != nil {
			require.ElementsMatch(t, row.fields, a.blamed(), "%s: %s", row.body, a.Raw)
		}
	}
	// What is no sub-account of the tenant is not there, whatever is asked of it.
	id, other := w.ok(http.StatusOK, "GET", "/wallets/1/", nil).Body["wallet_id"].(string), w.anotherTenant()
	for _, ref := range []string{"0", "master", "01", "+1", "-1", "9", "1.0", "taken", strings.Repeat("9", 30), "00000000-0000-7000-8000-000000000000"} {
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			require.Equal(t, "not_found", w.ok(http.StatusNotFound, method, "/wallets/"+ref+"/", `{}`).code(), "%s %s", method, ref)
		}
		require.Equal(t, "not_found", w.ok(http.StatusNotFound, "GET", "/wallets/"+ref+"/balance/", nil).code(), ref)
	}
	for _, ref := range []string{"1", id} {
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			w.ok(http.StatusNotFound, method, "/wallets/"+ref+"/", `{"name":"stolen"}`, other)
		}
		w.ok(http.StatusNotFound, "GET", "/wallets/"+ref+"/balance/", nil, other)
	}
	for _, path := range []string{"balances", "transfer-to-user", "withdraw-to-master", "transfer-history"} {
		for _, field := range []string{"wallet_id", "external_id"} {
			ref := map[string]string{"wallet_id": id, "external_id": "taken"}[field]
			w.ok(http.StatusNotFound, "POST", "/wallets/"+path+"/", fmt.Sprintf(`{%q:%q,"currency":"ETH","amount":"1"}`, field, ref), other)
		}
	}
	require.NotEqual(t, "stolen", w.ok(http.StatusOK, "GET", "/wallets/1/", nil).Body["name"])
}

func TestWalletBalanceLookup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, second := w.newWallet("a"), w.newWallet("b")
	w.earn("USDTERC20", "25", id)
	w.earn("ETH", "20", id)
	w.hold(id, "ETH", "0.004")
	want := `{"account":{"id":"` + id + `","name":"Wallet a","external_id":"a","wallet_id":"` + id + `"},"balances":[
		{"currency":"ETH","amount":"0.01000000","pending_amount":"0.00400000","available_balance":"0.00600000"},
		{"currency":"USDTERC20","amount":"25.00000000","pending_amount":"0.00000000","available_balance":"25.00000000"}]}`
	for name, a := range map[string]answer{
		"wallet_id":         w.ok(http.StatusOK, "POST", "/wallets/balances/", map[string]any{"wallet_id": id}),
		"external_id":       w.ok(http.StatusOK, "POST", "/wallets/balances", map[string]any{"external_id": "a"}),
		"wallet_id wins":    w.ok(http.StatusOK, "POST", "/wallets/balances/", map[string]any{"wallet_id": id, "external_id": "b"}),
		"by number":         w.ok(http.StatusOK, "GET", "/wallets/1/balance/", nil),
		"by id, no slash":   w.ok(http.StatusOK, "GET", "/wallets/"+id+"/balance", nil),
		"null is not given": w.ok(http.StatusOK, "POST", "/wallets/balances/", `{"wallet_id":null,"external_id":"a"}`),
	} {
		require.JSONEq(t, want, a.Raw, name)
		require.Equal(t, "account object, balances array", members(t, a.Raw))
		require.Equal(t, "id string, name string, external_id string, wallet_id string", members(t, inside(t, a.Raw, "account")))
		require.Equal(t, entryFields, members(t, inside(t, a.Raw, "balances", "0")))
	}
	require.Equal(t, "[]", inside(t, w.ok(http.StatusOK, "GET", "/wallets/"+second+"/balance/", nil).Raw, "balances"))
}

// TestWalletAccess: an API key opens every wallet endpoint, and the two pages of
// balances alone have error codes of their own.
func TestWalletAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	id := w.newWallet("a")
	_, full, err := w.auth.CreateKey(t.Context(), auth.NewKey{Tenant: w.tenant, Name: "full"})
	require.NoError(t, err)
	_, reading, err := w.auth.CreateKey(t.Context(), auth.NewKey{Tenant: w.tenant, Name: "reading", Scopes: []auth.Scope{auth.Read}})
	require.NoError(t, err)
	for _, r := range []struct {
		method, path, body string
		status             int
		classic            bool
	}{
		{"GET", "/wallets/", "", 200, false},
		{"POST", "/wallets/", `{"name":"x","external_id":"x"}`, 201, false},
		{"GET", "/wallets/1/", "", 200, false},
		{"PATCH", "/wallets/1/", `{"name":"y"}`, 200, false},
		{"DELETE", "/wallets/2/", "", 204, false},
		{"POST", "/wallets/balances/", `{"wallet_id":"` + id + `"}`, 200, true},
		{"GET", "/wallets/1/balance/", "", 200, true},
		{"POST", "/wallets/transfer-to-user/", `{"wallet_id":"` + id + `","currency":"ETH","amount":"1"}`, 400, false},
		{"POST", "/wallets/withdraw-to-master/", `{"wallet_id":"` + id + `","currency":"ETH","amount":"1"}`, 400, false},
		{"POST", "/wallets/transfer-history/", `{}`, 200, false},
	} {
		codes := []string{"authentication_failed", "permission_denied"}
		if r.classic {
			codes = []string{"unauthorized", "forbidden"}
		}
		a := w.ok(http.StatusUnauthorized, r.method, r.path, r.body, nobody())
		require.Equal(t, codes[0], a.code(), r.path)
		require.Equal(t, codes[0], w.ok(http.StatusUnauthorized, r.method, r.path, r.body, nobody(), apiKey("wrong-key")).code())
		a = w.ok(http.StatusForbidden, r.method, r.path, r.body, nobody(), apiKey(reading))
		require.Equal(t, codes[1], a.code(), r.path)
		require.Equal(t, []any{"read", "write"}, a.at("error", "details", "required_scopes"))
		require.Equal(t, []any{"read"}, a.at("error", "details", "token_scopes"))
		a = w.ok(r.status, r.method, r.path, r.body, nobody(), apiKey(full))
		if r.status == http.StatusBadRequest {
			require.Equal(t, "insufficient_balance", a.code())
		}
	}
}

func TestTransfers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.newWallet("a")
	w.earn("USDTERC20", "25", "")
	money := func() string {
		t.Helper()
		o := w.ok(http.StatusOK, "GET", "/user/balances/", nil)
		sub, _ := o.at("sub_accounts", "USDTERC20").(map[string]any)
		master := o.at("account", "USDTERC20").(map[string]any)
		return fmt.Sprint(master["amount"], " ", master["pending_amount"], " | ", sub["total_amount"], " ", sub["total_pending"])
	}
	require.Equal(t, "25.00000000 0.00000000 | <nil> <nil>", money())

	a := w.ok(http.StatusAccepted, "POST", "/wallets/transfer-to-user/", map[string]any{"wallet_id": id, "currency": "USDTERC20", "amount": "10.5", "callback_url": "https://shop.example/moved"})
	require.Equal(t, "status string, transfer_id string, message string", members(t, a.Raw))
	require.Equal(t, "accepted", a.Body["status"])
	require.Equal(t, "14.50000000 0.00000000 | 10.50000000 0.00000000", money(), "settled at once")

	w.clock.Advance(time.Second) // what is of one moment comes in any order
	b := w.ok(http.StatusAccepted, "POST", "/wallets/withdraw-to-master", `{"external_id":"a","blockchain":"ETH","token":"USDT","amount":0.500000}`)
	require.Equal(t, "status string, transfer_id string, message string", members(t, b.Raw))
	require.Equal(t, "15.00000000 0.00000000 | 10.00000000 0.00000000", money())

	const record = "transfer_id string, wallet_id string, external_id string, transfer_type string, currency string, amount string, status string, error null, callback_url %s, created_at string, updated_at string, completed_at string"
	all := w.ok(http.StatusOK, "POST", "/wallets/transfer-history/", `{}`)
	require.Equal(t, "account null, transfers array, pagination object", members(t, all.Raw))
	require.JSONEq(t, `{"total":2,"limit":20,"offset":0}`, inside(t, all.Raw, "pagination"))
	require.Equal(t, "total number, limit number, offset number", members(t, inside(t, all.Raw, "pagination")))
	require.Equal(t, fmt.Sprintf(record, "null"), members(t, inside(t, all.Raw, "transfers", "0")))
	newest := all.Body["transfers"].([]any)[0].(map[string]any)
	require.Equal(t, b.Body["transfer_id"], newest["transfer_id"])
	require.Equal(t, []any{"to_master", "0.50000000", "completed", "a", id}, []any{newest["transfer_type"], newest["amount"], newest["status"], newest["external_id"], newest["wallet_id"]})

	second := w.newWallet("b")
	for body, want := range map[string]int{
		`{"wallet_id":"` + id + `"}`:     2,
		`{"external_id":"a"}`:            2,
		`{"wallet_id":"` + second + `"}`: 0,
		`{"transfer_type":"to_sub"}`:     1,
		`{"transfer_type":"to_master"}`:  1,
		`{"status":"pending"}`:           0,
		`{"status":"completed"}`:         2,
		`{"status":"failed"}`:            0,
		`{"currency":"USDTERC20"}`:       2,
		`{"currency":"ETH"}`:             0,
		`{"limit":1}`:                    1,
		`{"limit":100}`:                  2,
		`{"limit":1,"offset":1}`:         1,
		`{"offset":2}`:                   0,
	} {
		got := w.ok(http.StatusOK, "POST", "/wallets/transfer-history/", body)
		require.Len(t, got.Body["transfers"], want, body)
	}
	one := w.ok(http.StatusOK, "POST", "/wallets/transfer-history/", `{"wallet_id":"`+id+`","limit":1,"offset":1}`)
	require.JSONEq(t, `{"id":"`+id+`","name":"Wallet a","external_id":"a","wallet_id":"`+id+`"}`, inside(t, one.Raw, "account"))
	require.JSONEq(t, `{"total":2,"limit":1,"offset":1}`, inside(t, one.Raw, "pagination"))
	require.Equal(t, fmt.Sprintf(record, "string"), members(t, inside(t, one.Raw, "transfers", "0")))
	require.Equal(t, a.Body["transfer_id"], one.Body["transfers"].([]any)[0].(map[string]any)["transfer_id"])
	for _, body := range []string{`{"limit":0}`, `{"limit":101}`, `{"limit":"5"}`, `{"offset":-1}`, `{"status":"accepted"}`, `{"transfer_type":"to"}`, `{"currency":"usdt"}`, `{"wallet_id":5}`} {
		require.Len(t, w.ok(http.StatusBadRequest, "POST", "/wallets/transfer-history/", body).blamed(), 1, body)
	}
	a = w.ok(http.StatusBadRequest, "POST", "/wallets/transfer-history/", `{"limit":0,"offset":-1,"status":"x","transfer_type":"y","currency":"Z"}`)
	require.ElementsMatch(t, []string{"limit", "offset", "status", "transfer_type", "currency"}, a.blamed())

	// A wallet that is gone keeps its history, under its own id alone.
	w.ok(http.StatusAccepted, "POST", "/wallets/withdraw-to-master/", map[string]any{"wallet_id": id, "currency": "USDTERC20", "amount": "10"})
	w.step()
	w.ok(http.StatusNoContent, "DELETE", "/wallets/1/", nil)
	past := w.ok(http.StatusOK, "POST", "/wallets/transfer-history/", `{"wallet_id":"`+id+`"}`)
	require.Len(t, past.Body["transfers"], 3)
	require.Equal(t, id, past.at("account", "id"))
	w.ok(http.StatusNotFound, "POST", "/wallets/transfer-history/", `{"external_id":"a"}`)
	w.ok(http.StatusNotFound, "POST", "/wallets/transfer-history/", `{"wallet_id":"`+id+`"}`, w.anotherTenant())
	w.ok(http.StatusNotFound, "POST", "/wallets/transfer-history/", `{"wallet_id":"master"}`)
	w.ok(http.StatusNotFound, "POST", "/wallets/transfer-to-user/", map[string]any{"wallet_id": id, "currency": "USDTERC20", "amount": "1"})

	told := 0
	for _, d := range w.inbox.got {
		if d.URL == "https://shop.example/moved" {
			told++
			require.Equal(t, "transfer_status_update", inside(t, string(d.Body), "event")[1:23])
		}
	}
	require.Equal(t, 1, told)
}

func TestTransferErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	id := w.newWallet("a")
	w.earn("USDTERC20", "25", "")
	w.earn("USDTERC20", "7", id)
	valid := map[string]any{"wallet_id": id, "currency": "USDTERC20", "amount": "1"}
	for _, row := range []struct {
		change map[string]any // of valid; nil takes away
		status int
		code   string
		fields []string
	}{
		{map[string]any{"wallet_id": nil}, 400, "invalid_request", []string{"wallet_id"}},
		{map[string]any{"wallet_id": 1}, 400, "invalid_request", []string{"wallet_id"}},
		{map[string]any{"wallet_id": "none"}, 404, "not_found", nil},
		{map[string]any{"wallet_id": "master"}, 404, "not_found", nil},
		{map[string]any{"wallet_id": nil, "external_id": "none"}, 404, "not_found", nil},
		{map[string]any{"wallet_id": "none", "external_id": "a"}, 404, "not_found", nil},
		{map[string]any{"currency": nil}, 400, "invalid_request", []string{"currency"}},
		{map[string]any{"currency": ""}, 400, "invalid_request", []string{"currency"}},
		{map[string]any{"currency": 5}, 400, "invalid_request", []string{"currency"}},
		{map[string]any{"currency": "usdterc20"}, 400, "invalid_currency", []string{"currency"}},
		{map[string]any{"currency": nil, "blockchain": "ETH", "token": "XYZ"}, 400, "invalid_currency", []string{"currency"}},
		{map[string]any{"currency": nil, "blockchain": "ETH"}, 400, "invalid_request", []string{"token", "currency"}},
		{map[string]any{"currency": nil, "token": "USDT"}, 400, "invalid_request", []string{"blockchain", "currency"}},
		{map[string]any{"blockchain": "ETH", "token": "USDC"}, 400, "invalid_request", []string{"currency"}},
		{map[string]any{"amount": nil}, 400, "invalid_request", []string{"amount"}},
		{map[string]any{"amount": "0"}, 400, "invalid_request", []string{"amount"}},
		{map[string]any{"amount": "-1"}, 400, "invalid_request", []string{"amount"}},
		{map[string]any{"amount": "1e1"}, 400, "invalid_request", []string{"amount"}},
		{map[string]any{"amount": true}, 400, "invalid_request", []string{"amount"}},
		{map[string]any{"amount": "0.0000001"}, 400, "invalid_request", []string{"amount"}},
		{map[string]any{"amount": strings.Repeat("9", 41)}, 400, "invalid_request", []string{"amount"}},
		{map[string]any{"amount": strings.Repeat("9", 40)}, 400, "invalid_request", []string{"amount"}},
		{map[string]any{"callback_url": "ftp://shop.example/"}, 400, "invalid_request", []string{"callback_url"}},
		{map[string]any{"callback_url": "https://shop.example/" + strings.Repeat("x", 2048)}, 400, "invalid_request", []string{"callback_url"}},
		{map[string]any{"wallet_id": nil, "currency": nil, "amount": "x", "callback_url": "nowhere"}, 400, "invalid_request", []string{"wallet_id", "currency", "amount", "callback_url"}},
		{map[string]any{"currency": "XYZ", "amount": "0", "callback_url": "nowhere"}, 400, "invalid_request", []string{"amount", "callback_url"}},
		{map[string]any{"currency": nil, "blockchain": "ETH", "token": "XYZ", "amount": "0"}, 400, "invalid_request", []string{"amount"}},
		{map[string]any{"currency": "ETH"}, 400, "insufficient_balance", []string{"available", "requested", "currency"}},
		{map[string]any{"amount": "25.000001"}, 400, "insufficient_balance", []string{"available", "requested", "currency"}},
	} {
		body := map[string]any{}
		for _, from := range []map[string]any{valid, row.change} {
			for k, v := range from {
				if body[k] = v; v == nil {
					delete(body, k)
				}
			}
		}
		for _, path := range []string{"/wallets/transfer-to-user/", "/wallets/withdraw-to-master/"} {
			a := w.do("POST", path, body)
			require.Equal(t, row.status, a.Status, "%v: %s", body, a.Raw)
			require.Equal(t, row.code, a.code(), "%v", body)
			if row.fields != nil {
				require.ElementsMatch(t, row.fields, a.blamed(), "%v: %s", body, a.Raw)
			}
		}
	}
	valid["amount"] = "7.000001"
	a := w.ok(http.StatusBadRequest, "POST", "/wallets/withdraw-to-master/", valid)
	require.Equal(t, map[string]any{"available": "7.00000000", "requested": "7.00000100", "currency": "USDTERC20"}, a.at("error", "details"))
	require.Equal(t, "0", w.ok(http.StatusOK, "POST", "/wallets/transfer-history/", `{}`).at("pagination", "total").(json.Number).String(), "nothing was done")
}

// TestWalletsOnce: the same key, and the same effect once.
func TestWalletsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.newWallet("a")
	w.earn("USDTERC20", "25", "")
	w.earn("ETH", "20", id)
	for path, body := range map[string]string{
		"/wallets/":                    `{"name":"x","external_id":"once"}`,
		"/wallets/transfer-to-user/":   `{"wallet_id":"` + id + `","currency":"USDTERC20","amount":"20"}`,
		"/wallets/withdraw-to-master/": `{"wallet_id":"` + id + `","currency":"ETH","amount":"0.008"}`,
	} {
		key := header("Idempotency-Key", "same-key")
		first := w.do("POST", path, body, key)
		require.Less(t, first.Status, 300, first.Raw)
		require.Empty(t, first.Header.Get("Idempotent-Replayed"))
		again := w.ok(first.Status, "POST", path, body, key)
		require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		require.Equal(t, first.Raw, again.Raw)
		require.Equal(t, "idempotency_mismatch", w.ok(http.StatusUnprocessableEntity, "POST", path, `{}`, key).code(), "told before the body is judged")
		require.Equal(t, http.StatusBadRequest, w.do("POST", path, body, header("Idempotency-Key", "other")).Status, "without the key it is another request: taken, or too much")
	}
	require.Equal(t, "2", w.ok(http.StatusOK, "GET", "/wallets/", nil).Body["total"].(json.Number).String())
	require.Equal(t, "2", w.ok(http.StatusOK, "POST", "/wallets/transfer-history/", `{}`).at("pagination", "total").(json.Number).String())
	b := w.ok(http.StatusOK, "GET", "/wallets/1/balance/", nil)
	require.JSONEq(t, `[{"currency":"ETH","amount":"0.00200000","pending_amount":"0.00000000","available_balance":"0.00200000"},
		{"currency":"USDTERC20","amount":"20.00000000","pending_amount":"0.00000000","available_balance":"20.00000000"}]`, inside(t, b.Raw, "balances"))
	// A failure is not kept: the same key may succeed later.
	key := header("Idempotency-Key", "poor")
	body := `{"wallet_id":"` + id + `","currency":"ETH","amount":"0.01"}`
	w.ok(http.StatusBadRequest, "POST", "/wallets/withdraw-to-master/", body, key)
	w.earn("ETH", "100", id)
	w.ok(http.StatusAccepted, "POST", "/wallets/withdraw-to-master/", body, key)
}
