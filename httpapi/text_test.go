package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// onBoth runs a test on memory and on SQLite.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, newWorld(t))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newWorld(t, func(s *setup) { s.store = onSQLite(t) }))
	})
}

// What differs by a byte is another reference, whatever folds in a database.
func TestI03_ReferencesAreBytes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		alike := []string{"shop", "Shop", "SHOP", "shop ", " shop", "shöp", "sho\u0308p", "ｓｈｏｐ", "ſhop", "shop\u200b", "straße", "strasse", "0x1", "1", "01"}
		ids := map[string]string{}
		for _, ref := range alike {
			a := w.ok(http.StatusCreated, "POST", "/wallets/", map[string]any{"name": "n", "external_id": ref})
			require.Equal(t, ref, a.Body["external_id"])
			ids[ref] = a.Body["wallet_id"].(string)
		}
		for _, ref := range alike {
			a := w.ok(http.StatusOK, "POST", "/wallets/balances/", map[string]any{"external_id": ref})
			require.Equal(t, ids[ref], a.at("account", "wallet_id"), "%q", ref)
			a = w.ok(http.StatusBadRequest, "POST", "/wallets/", map[string]any{"name": "n", "external_id": ref})
			require.Equal(t, "duplicate_external_id", a.code(), "%q", ref)
		}
		w.ok(http.StatusNotFound, "POST", "/wallets/balances/", map[string]any{"external_id": "sHop"})
	})
}

// Lengths count characters; what could hide or turn text around is refused.
func TestI03_TextOfRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pay := func(order string) answer {
		return w.do("POST", "/payments/", map[string]any{"amount": "5", "currency": "USDTERC20", "order_id": order})
	}
	for _, order := range []string{strings.Repeat("a", 100), strings.Repeat("é", 100), strings.Repeat("😀", 100), "<script>", "名前", "a\tb", "\u2068Größe L\u2069", "\u2066a\u2067b"} {
		a := pay(order)
		require.Equal(t, http.StatusCreated, a.Status, "%q: %s", order, a.Raw)
		require.Equal(t, order, a.Body["order_id"])
	}
	for _, order := range []string{strings.Repeat("a", 101), strings.Repeat("😀", 101), "a\x01b", "a\x7fb", "a\u0085b", "a\u202ab", "a\u202eb"} {
		a := pay(order)
		require.Equal(t, http.StatusBadRequest, a.Status, "%q", order)
		require.Contains(t, a.at("error", "details"), "order_id", "%q", order)
	}
}

// TestFA10_IsolatesAreText: programs are told to use them, and a refusal says which
// character it is about.
func TestFA10_IsolatesAreText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for r := rune(0x2066); r <= 0x2069; r++ {
		text := "Größe " + string(r) + "L\u2069"
		a := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "5", "currency": "USDTERC20", "order_description": text})
		require.Equal(t, text, a.Body["order_description"])
	}
	for text, name := range map[string]string{"a\u202ab": "U+202A", "a\u202bb": "U+202B", "a\u202cb": "U+202C", "a\u202db": "U+202D", "\u202e": "U+202E", "a\x07": "U+0007", "\u0085": "U+0085"} {
		a := w.ok(http.StatusBadRequest, "POST", "/payments/", map[string]any{"amount": "5", "currency": "USDTERC20", "order_description": text})
		require.Equal(t, []any{"contains the character " + name + ", which is not accepted"}, a.at("error", "details", "order_description"))
	}
}

// Hostile filters, sorts, pages and dates select nothing that they should not
// and break nothing.
func TestI04_HostileQueriesAndIDs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		w.fund(w.tenant)
		w.earn("USDTERC20", "50", "")
		hostile := []string{"'", "' OR '1'='1", "'; DROP TABLE payments; --", "%", "_", "\\", "a\\' OR 1=1", "\"", "$1", "?", ":id", "1) UNION SELECT 1--", "a%00b", "*", "\u00a0"}
		for i, ref := range append(hostile, "plain", "Plain") {
			if strings.Contains(ref, "%00") {
				continue
			}
			w.ok(http.StatusCreated, "POST", "/withdrawal/", map[string]any{
				"amount": "1", "final_amount": true, "currency": "USDTERC20", "address": string(w.chains["ETH"].Customer(fmt.Sprint("to", i))), "custom_id": ref,
			})
		}
		for _, ref := range append(hostile, "plain", "Plain") {
			want := 1
			if strings.Contains(ref, "%00") {
				want = 0
			}
			a := w.ok(http.StatusOK, "GET", "/withdrawal/?custom_id="+url.QueryEscape(ref), nil)
			require.Len(t, a.Body["withdrawals"], want, "%q", ref)
		}
		w.ok(http.StatusOK, "GET", "/payments/", nil)
		for _, v := range hostile {
			q := url.QueryEscape(v)
			for _, path := range []string{
				"/withdrawal/?sort=" + q, "/withdrawal/?status=" + q, "/withdrawal/?blockchain=" + q, "/withdrawal/?start_date=" + q,
				"/payments/?currency=" + q, "/payments/?limit=" + q, "/transactions/transactions/?date_from=" + q, "/transactions/transactions/?page=" + q,
				"/user/balances/history/?type=" + q,
			} {
				require.Equal(t, http.StatusBadRequest, w.do("GET", path, nil).Status, path)
			}
			for _, path := range []string{"/withdrawal/" + url.PathEscape(v), "/wallets/" + url.PathEscape(v)} {
				require.Equal(t, http.StatusNotFound, w.do("GET", path, nil).Status, path)
			}
		}
		for _, n := range []string{"-1", "0", "101", "1e2", "0x10", "10.0", " 10", "2147483648", "9223372036854775807", "9223372036854775808", "99999999999999999999"} {
			require.Equal(t, http.StatusBadRequest, w.do("GET", "/payments/?limit="+url.QueryEscape(n), nil).Status, n)
			require.Equal(t, http.StatusBadRequest, w.do("GET", "/transactions/transactions/?page_size="+url.QueryEscape(n), nil).Status, n)
		}
		for _, n := range []string{"100", "2147483648", "999999999999999999"} {
			a := w.ok(http.StatusOK, "GET", "/payments/?offset="+n, nil)
			require.Empty(t, a.Body["results"], n)
		}
		for _, d := range []string{"0001-01-01", "1969-12-31", "9999-12-31", "9999-12-31T23:59:59Z", "2026-02-28T23:59:59.999999999-14:00"} {
			for _, side := range []string{"start_date", "end_date"} {
				w.ok(http.StatusOK, "GET", "/withdrawal/?"+side+"="+url.QueryEscape(d), nil)
			}
		}
		for _, d := range []string{"2026-02-30", "10000-01-01", "2026-13-01", "now", "1767323045", "2026-01-01T25:00:00Z", "-0001-01-01"} {
			for _, side := range []string{"start_date", "end_date"} {
				require.Equal(t, http.StatusBadRequest, w.do("GET", "/withdrawal/?"+side+"="+url.QueryEscape(d), nil).Status, d)
			}
		}
	})
}
