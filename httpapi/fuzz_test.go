package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi"
)

// quiet writes no log: a fuzzer's worlds outlive the test that made them.
func quiet(s *setup) {
	options, config := s.options, s.config
	s.options = func(o *httpapi.Options) {
		if options != nil {
			options(o)
		}
		o.Log = nil
	}
	s.config = func(c *cryptopay.Config) {
		if config != nil {
			config(c)
		}
		c.Log = nil
	}
}

// harmless are the routes that read a body and change nothing.
var harmless = []string{
	"/payments/estimate/", "/payments/status/", "/withdrawal/estimate/", "/withdrawal/fee-estimate/", "/withdrawal/min-amount/",
	"/withdrawal/validate-address/", "/withdrawal/status/", "/rates/calculate/", "/wallets/balances/", "/wallets/transfer-history/",
	"/transactions/export/",
}

// on is the world, failing the test at hand.
func (w *world) on(t *testing.T) *world {
	here := *w
	here.t = t
	return &here
}

// FuzzBody: whatever the body is, the answer is documented and no fault of ours,
// and what was taken for JSON is JSON.
func FuzzBody(f *testing.F) {
	w := newWorld(f, unlimited, quiet)
	for i, body := range []string{
		`{"amount":"5","currency":"USDTERC20"}`, `{"transaction_id":"00000000-0000-7000-8000-000000000000"}`,
		`{"amount":5.0,"blockchain":"TRON","token":"USDT"}`, `{"a":{"a":[1,"\ud83d\ude00"]}}`, `{"a":1,"a":2}`, `{"amount":1e5}`, `{"x":"\u0000"}`,
		`{"address":"bc1q","currency":"BTC"}`, "[", `{"":{}}`, "{\"a\":\"\xff\"}",
	} {
		f.Add(uint8(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, route uint8, body []byte) {
		path := harmless[int(route)%len(harmless)]
		a := w.on(t).do("POST", path, string(body))
		require.Less(t, a.Status, 500, "%s: %s", path, a.Raw)
		if a.Status == http.StatusOK {
			require.True(t, json.Valid(body) && utf8.Valid(body), "accepted, but no JSON")
		}
	})
}

// FuzzQuery: whatever stands behind the question mark.
func FuzzQuery(f *testing.F) {
	w := newWorld(f, unlimited, quiet)
	var lists []string
	for _, r := range w.routes() {
		if r.Method == http.MethodGet && r.Access != httpapi.Public && !strings.Contains(r.Path, "{") {
			lists = append(lists, r.Path)
		}
	}
	for i, query := range []string{
		"limit=20&offset=0", "limit=101", "status=waiting&currency=BTC", "page=2&page_size=5", "date_from=2026-01-01&date_to=2026-01-01T00:00:00Z",
		"currency_to=BTC&amount=1.5&full=true", "a=1;b", "%zz", "limit=%31", "start_date=9999-12-31&end_date=0000-01-01", "limit=5&limit=5",
	} {
		f.Add(uint8(i), query)
	}
	f.Fuzz(func(t *testing.T, route uint8, query string) {
		path := lists[int(route)%len(lists)]
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.URL.RawQuery = query
		r.Header.Set("Authorization", "Bearer "+w.token)
		a := w.on(t).send(r)
		require.Less(t, a.Status, 500, "%s?%s: %s", path, query, a.Raw)
	})
}

// FuzzToken: whatever is sent as credentials opens nothing.
func FuzzToken(f *testing.F) {
	w := newWorld(f, unlimited, quiet)
	f.Add("grant_type=client_credentials&client_id=x&client_secret=y", "")
	f.Add("grant_type=client_credentials&scope=read+write+admin", "Basic eDp5")
	f.Add("grant_type=client_credentials&grant_type=x", "Basic =")
	f.Add("token=cpt_&token_type_hint=access_token", "Bearer x")
	f.Add("client_id=%00&client_secret=%ff", "basic Og==")
	f.Add(tokenFor(w.admin).Encode()[:40], "")
	f.Fuzz(func(t *testing.T, form, authorization string) {
		for _, path := range []string{"/o/token/", "/o/revoke_token/"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if authorization != "" {
				r.Header["Authorization"] = []string{authorization}
			}
			a := w.on(t).send(r)
			require.Less(t, a.Status, 500, a.Raw)
			require.GreaterOrEqual(t, a.Status, 400, "%s let %q %q in", path, form, authorization)
			require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/payments/", nil)
		r.Header["Authorization"] = []string{authorization}
		// 429: who sends so many wrong ones has to wait.
		require.Contains(t, []int{400, 401, 429}, w.on(t).send(r).Status, authorization)
	})
}

// FuzzPath: whatever stands in the place of an id names nothing.
func FuzzPath(f *testing.F) {
	w := newWorld(f, unlimited, quiet)
	var routes []httpapi.Route
	for _, r := range w.routes() {
		if strings.Contains(r.Path, "{") {
			routes = append(routes, r)
		}
	}
	for i, id := range []string{nothing, "1", "0", "-1", "01", "9223372036854775808", "master", "..", "%2e%2e%2f", "a/b", "\x00", "ü", "' OR 1=1", "%", strings.Repeat("a", 300)} {
		f.Add(uint8(i), id)
	}
	f.Fuzz(func(t *testing.T, route uint8, id string) {
		r := routes[int(route)%len(routes)]
		at := strings.Index(r.Path, "{")
		end := at + strings.Index(r.Path[at:], "}") + 1
		path := r.Path[:at] + url.PathEscape(id) + r.Path[end:]
		if r.Name == "deleteApp" && id == "1" {
			t.Skip("the fuzzer's own application")
		}
		q, err := http.NewRequestWithContext(t.Context(), r.Method, "http://x"+path, strings.NewReader("{}"))
		if err != nil {
			t.Skip()
		}
		q.Header.Set("Authorization", "Bearer "+w.token)
		a := w.on(t).send(q)
		require.Less(t, a.Status, 500, "%s %s: %s", r.Method, path, a.Raw)
		if r.Method == http.MethodDelete {
			require.NotEqual(t, http.StatusNoContent, a.Status, "%q was deleted", id)
		}
	})
}

// send asks the handler and reads the answer, as do does.
func (w *world) send(r *http.Request) answer {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	a := answer{Status: rec.Code, Header: rec.Header(), Raw: rec.Body.String()}
	if strings.HasPrefix(a.Raw, "{") {
		require.NoError(w.t, json.Unmarshal([]byte(a.Raw), &a.Body))
	}
	conform(w.t, w.contract, r, a)
	return a
}

const (
	nasty       = 64 << 10
	nastyBudget = 8 << 20
)

// TestI01_NastyInputsCostLittle: no 64 KiB of input make the interface allocate
// more than 8 MB. How long they take is told, not judged.
func TestI01_NastyInputsCostLittle(t *testing.T) { //nolint:paralleltest // what is allocated is counted for the whole process
	w := newWorld(t, unlimited, quiet)
	fill := func(pattern string) string { return strings.Repeat(pattern, nasty/len(pattern)) }
	bodies := map[string]string{
		"digits":            `{"amount":` + fill("9") + `}`,
		"digits in text":    `{"amount":"` + fill("9") + `"}`,
		"exponent":          `{"amount":"1e1000000000"}`,
		"exponent, number":  `{"amount":1e1000000000}`,
		"fraction":          `{"amount":"0.` + fill("0") + `1"}`,
		"depth, arrays":     fill("["),
		"depth, objects":    fill(`{"a":`),
		"depth, closed":     `{"a":` + strings.Repeat("[", nasty/2) + strings.Repeat("]", nasty/2) + `}`,
		"many names":        `{"a":1` + manyMembers(6000) + `}`,
		"many equal names":  `{` + fill(`"a":1,`) + `"b":2}`,
		"many empty arrays": `{"a":[` + fill(`[],`) + `[]]}`,
		"many entries":      `{"withdrawals":[` + fill(`{},`) + `{}]}`,
		"as many as may be": `{"withdrawals":[` + strings.Repeat(`{},`, 999) + `{}]}`,
		"one long name":     `{"` + fill("a") + `":1}`,
		"long text":         `{"order_id":"` + fill("a") + `"}`,
		"escapes":           `{"order_id":"` + fill(`\u0041`) + `"}`,
		"surrogates":        `{"order_id":"` + fill(`\ud83d\ude00`) + `"}`,
		"NUL escapes":       `{"a":[` + fill(`"\u0000",`) + `1]}`,
		"white space":       fill(" ") + "{}",
		"bad UTF-8":         `{"order_id":"` + fill("\xff") + `"}`,
		"other case":        `{"a":1` + strings.Join(cased("amount", 64), "") + `}`,
	}
	measure := func(name string, ask func() answer) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := time.Now()
		a := ask()
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		spent := after.TotalAlloc - before.TotalAlloc
		t.Logf("%-28s %7d KiB %12s → %d", name, spent>>10, took.Round(time.Microsecond), a.Status)
		require.Less(t, a.Status, 500, "%s: %s", name, cut(a.Raw))
		require.LessOrEqual(t, spent, uint64(nastyBudget), name)
	}
	for name, body := range bodies {
		for _, path := range []string{"/payments/", "/withdrawal/estimate/", "/payouts/"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+w.token)
			measure(name, func() answer { return w.bare(r) })
		}
	}
	for name, query := range map[string]string{
		"parameters": fill("a=1&"), "equal parameters": fill("limit=1&"), "digits in query": "limit=" + fill("9"), "escapes in query": "currency=" + fill("%41"),
		"currency": "currency=" + fill("x"), "semicolons": fill(";"),
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/payments/", nil)
		r.URL.RawQuery = query
		r.Header.Set("Authorization", "Bearer "+w.token)
		measure(name, func() answer { return w.bare(r) })
	}
	for name, form := range map[string]string{"form": fill("a=1&"), "secret": "client_id=x&client_secret=" + fill("s"), "scope": "scope=" + fill("read+")} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/o/token/", strings.NewReader("grant_type=client_credentials&"+form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth("x", strings.Repeat("y", 10_000))
		measure(name, func() answer { return w.bare(r) })
	}
	for name, path := range map[string]string{"long path": "/" + fill("a"), "deep path": fill("/a"), "escaped path": "/wallets/" + fill("%41") + "/", "long id": "/wallets/" + fill("9") + "/"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+w.token)
		measure(name, func() answer { return w.bare(r) })
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/payments/", nil)
	r.Header.Set("Authorization", "Bearer "+fill("t"))
	r.Header.Set("X-Forwarded-For", fill("1.1.1.1,"))
	r.Header.Set("X-Request-Id", fill("i"))
	measure("headers", func() answer { return w.bare(r) })
}

// bare is send without the checks, which cost more than what is measured.
func (w *world) bare(r *http.Request) answer {
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	return answer{Status: rec.Code, Raw: rec.Body.String()}
}

// cased are n members that differ from a name in case.
func cased(name string, n int) []string {
	var out []string
	for i := 1; i <= n && i < 1<<len(name); i++ {
		b := []byte(name)
		for j := range b {
			if i&(1<<j) != 0 {
				b[j] -= 'a' - 'A'
			}
		}
		out = append(out, fmt.Sprintf(`,%q:1`, b))
	}
	return out
}
