package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/httpapi"
)

// operationOf is what the document says of one operation's input.
type operationOf struct {
	method, path string
	query, body  []string
}

// operationsOf lists the operations of a handler's document, in a fixed order.
func operationsOf(t *testing.T, api http.Handler) (out []operationOf) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
			Body       struct {
				Content map[string]struct {
					Schema struct{ Properties map[string]any }
				}
			} `json:"requestBody"`
		}
	}
	require.NoError(t, json.Unmarshal(documentOf(api), &doc))
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			op := operationOf{method: strings.ToUpper(method), path: path}
			said := doc.Paths[path][method]
			for _, p := range said.Parameters {
				if p.In == "query" {
					op.query = append(op.query, p.Name)
				}
			}
			op.body = slices.Sorted(maps.Keys(said.Body.Content["application/json"].Schema.Properties))
			out = append(out, op)
		}
	}
	return out
}

// Whatever is asked of whichever operation, the answer is one that the document
// promises (do holds each to it), and never our own fault.
func TestI08_AnyRequestKeepsToTheDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.options = func(o *httpapi.Options) { o.Limits = &httpapi.Limits{} } })
	w.fund(w.tenant)
	payment := w.earn("USDTERC20", "50", "")
	wallet := w.ok(http.StatusCreated, "POST", "/wallets/", map[string]any{"name": "n", "external_id": "savings"})
	known := map[string][]any{
		"amount": {"1", "2.5", 3, "0", "-1", "1e9", "99999999999"}, "price_amount": {"5", 7.25}, "currency": {"USDTERC20", "ETH", "BTC", "NOPE"},
		"pay_currency": {"USDTERC20"}, "blockchain": {"ETH", "BTC", "TRON"}, "token": {"USDT", "ETH"}, "price_currency": {"USD", "EUR", "XXX"},
		"address": {string(w.chains["ETH"].Customer("c")), string(w.chains["BTC"].Customer("c")), "nowhere"}, "type": {"EVM", "payment", "withdrawal"},
		"transaction_id": {payment.Body["transaction_id"]}, "wallet_id": {wallet.Body["wallet_id"], "savings"}, "external_id": {"savings", "new"},
		"currency_from": {"USD", "ETH"}, "currency_to": {"ETH", "USDTERC20", "EUR"}, "callback_url": {"https://example.com/hook", "http://127.0.0.1/", "x"},
		"event_type": {"payment_status_update"}, "status": {"completed", "waiting", "pending"}, "date_from": {"2026-01-01"}, "format": {"csv", "json"},
		"name": {"a name"}, "limit": {1, 100}, "page": {1, 2}, "sort": {"amount_asc"}, "full": {true}, "min_max": {true}, "webhook_secret": {"a secret of some length"},
	}
	odd := []any{nil, "", 0, -1, 1.5, true, "x", "true", []any{}, map[string]any{}, strings.Repeat("y", 300), "2026-01-01T00:00:00Z", "01a1fb99-0844-736a-bf88-f09f296a42fd"}
	operations := operationsOf(t, w.api)
	kept := map[string]bool{"POST /o/revoke_token/": true, "DELETE /o/apps/{id}/": true}
	rapid.Check(t, func(rt *rapid.T) {
		op := operations[rapid.IntRange(0, len(operations)-1).Draw(rt, "operation")]
		if kept[op.method+" "+op.path] {
			return // would end the session that asks
		}
		value := func(name string) any {
			pool := known[name]
			if len(pool) == 0 || rapid.IntRange(0, 3).Draw(rt, "odd "+name) == 0 {
				pool = odd
			}
			return pool[rapid.IntRange(0, len(pool)-1).Draw(rt, name)]
		}
		path := strings.NewReplacer("{transaction_id}", payment.Body["transaction_id"].(string), "{wallet_id}", wallet.Body["wallet_id"].(string)).Replace(op.path)
		for strings.Contains(path, "{") {
			before, rest, _ := strings.Cut(path, "{")
			_, after, _ := strings.Cut(rest, "}")
			path = before + rapid.SampledFrom([]string{"1", "x", "ETH", wallet.Body["wallet_id"].(string)}).Draw(rt, "segment") + after
		}
		query := url.Values{}
		for _, name := range op.query {
			if rapid.Bool().Draw(rt, "with "+name) {
				raw, err := json.Marshal(value(name))
				require.NoError(rt, err)
				query.Set(name, strings.Trim(string(raw), `"`))
			}
		}
		if len(query) > 0 {
			path += "?" + query.Encode()
		}
		body := map[string]any{}
		for _, name := range op.body {
			if rapid.Bool().Draw(rt, "with "+name) {
				body[name] = value(name)
			}
		}
		var send any
		if op.method != http.MethodGet && len(op.body) > 0 {
			send = body
		}
		a := w.do(op.method, path, send)
		if a.Status == http.StatusServiceUnavailable {
			return // there is no price of EUR here
		}
		require.Less(rt, a.Status, http.StatusInternalServerError, "%s %s %v: %s", op.method, path, body, a.Raw)
	})
	reports, err := w.app.Verify(t.Context())
	require.NoError(t, err)
	for i := range reports {
		require.True(t, reports[i].Sound(), "%+v", reports[i])
	}
}
