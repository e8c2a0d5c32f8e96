package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// documented is one line of the interface's tables: an endpoint, who may call it
// and what it answers when all is well. who is "" for nobody asked, "client" for
// client credentials, else scopes; +key: an API key will do; +admin: a role is
// needed.
type documented struct {
	method, path, who string
	status            int
}

const rw = "read write"

// endpoints are those of both documents, in their order.
var endpoints = []documented{
	{"POST", "/o/token/", "client", 200},
	{"POST", "/o/revoke_token/", "client", 200},
	{"GET", "/o/apps/", rw, 200},
	{"POST", "/o/apps/", rw, 201},
	{"DELETE", "/o/apps/{id}/", rw, 204},

	{"POST", "/payments/", rw, 201},
	{"GET", "/payments/", rw, 200},
	{"POST", "/payments/status/", rw, 200},
	{"GET", "/payments/min-amount/", rw, 200},
	{"POST", "/payments/estimate/", rw, 200},
	{"PATCH", "/payments/{transaction_id}/", rw, 200},
	{"POST", "/payments/{transaction_id}/cancel/", rw, 200},

	{"POST", "/withdrawal/", rw, 201},
	{"GET", "/withdrawal/", rw, 200},
	{"GET", "/withdrawal/{withdrawal_id}/", rw, 200},
	{"POST", "/withdrawal/status/", rw, 200},
	{"POST", "/withdrawal/validate-address/", rw, 200},
	{"POST", "/withdrawal/fee-estimate/", rw + "+key", 200},
	{"POST", "/withdrawal/estimate/", rw, 200},
	{"POST", "/withdrawal/min-amount/", rw, 200},
	{"GET", "/withdrawal/available-currencies/", rw, 200},
	{"POST", "/withdrawal/{withdrawal_id}/cancel/", rw, 200},
	{"GET", "/withdrawal/limits/", rw, 200},

	{"GET", "/currencies/", rw, 200},
	{"GET", "/rates/", "read", 200},
	{"GET", "/rates/{currency}/", "*", 200},
	{"POST", "/rates/calculate/", "*", 200},

	{"GET", "/user/balances/", rw, 200},
	{"GET", "/user/balances/history/", "read", 200},
	{"GET", "/manage/users/balances", rw + "+admin", 200},
	{"GET", "/manage/users/balances/{blockchain}", rw + "+admin", 200},
	{"POST", "/manage/users/balances/sync", rw + "+admin", 200},
	{"GET", "/manage/operations/halts/", rw + "+admin", 200},
	{"POST", "/manage/operations/halts/", rw + "+admin", 200},
	{"GET", "/manage/operations/audit/", rw + "+admin", 200},
	{"POST", "/manage/operations/transactions/{id}/speed-up/", rw + "+admin", 200},
	{"POST", "/manage/operations/transactions/{id}/cancel/", rw + "+admin", 200},
	{"POST", "/manage/operations/nonces/fill/", rw + "+admin", 200},
	{"POST", "/manage/operations/nonces/adopt/", rw + "+admin", 200},
	{"POST", "/manage/operations/sweeps/{id}/retry/", rw + "+admin", 200},
	{"POST", "/manage/operations/networks/resume/", rw + "+admin", 200},
	{"POST", "/manage/operations/deposits/recover/", rw + "+admin", 200},
	{"GET", "/manage/operations/refills/", rw + "+admin", 200},
	{"GET", "/manage/operations/refills/{id}/", rw + "+admin", 200},
	{"POST", "/manage/operations/refills/", rw + "+admin", 200},
	{"POST", "/manage/operations/refills/{id}/take/", rw + "+admin", 200},
	{"POST", "/manage/operations/refills/{id}/cancel/", rw + "+admin", 200},

	{"GET", "/wallets/", rw + "+key", 200},
	{"POST", "/wallets/", rw + "+key", 201},
	{"GET", "/wallets/{id}/", rw + "+key", 200},
	{"PATCH", "/wallets/{id}/", rw + "+key", 200},
	{"DELETE", "/wallets/{id}/", rw + "+key", 204},
	{"GET", "/wallets/{id}/balance/", rw + "+key", 200},
	{"GET", "/wallets/{id}/proof/", rw + "+key", 200},
	{"POST", "/wallets/balances/", rw + "+key", 200},
	{"POST", "/wallets/transfer-to-user/", rw + "+key", 202},
	{"POST", "/wallets/withdraw-to-master/", rw + "+key", 202},
	{"POST", "/wallets/transfer-history/", rw + "+key", 200},

	{"GET", "/transactions/transactions/", "read", 200},
	{"POST", "/transactions/export/", "*", 200},
	{"GET", "/transactions/stats/", "*", 200},

	{"GET", "/user/me/", rw, 200},
	{"POST", "/user/webhooks/", "write", 200},
	{"PATCH", "/user/webhooks/", rw, 200},
	{"GET", "/user/webhooks/", rw, 200},
	{"POST", "/user/webhooks/test/", rw, 200},
	{"GET", "/user/fees/", "admin", 200},
	{"GET", "/payments/{id}/deposits/", rw, 200},
	{"POST", "/withdrawal/{id}/approve/", rw + "+approver", 200},
	{"POST", "/withdrawal/{id}/refuse/", rw + "+approver", 200},
	{"POST", "/addresses/", rw, 201},
	{"GET", "/addresses/", rw, 200},
	{"POST", "/addresses/{id}/retire/", rw, 200},
	{"POST", "/payouts/", rw, 201},
	{"GET", "/payouts/{id}/", rw, 200},
	{"POST", "/payments/{id}/refunds/", rw, 201},
	{"GET", "/refunds/", rw, 200},
	{"GET", "/refunds/{id}/", rw, 200},
	{"POST", "/refunds/{id}/cancel/", rw, 200},
	{"GET", "/claim/{token}/", "", 200},
	{"POST", "/claim/{token}/", "", 200},
	{"GET", "/suspense/", rw + "+admin", 200},
	{"POST", "/suspense/{id}/resolve/", "admin", 200},
	{"GET", "/webhooks/deliveries/", rw, 200},
	{"POST", "/webhooks/deliveries/{id}/resend/", rw, 202},
	{"GET", "/status/", "", 200},
	{"GET", "/maintenance/", "", 200},
}

// TestContractEveryDocumentedEndpointIsServed: with the documented scopes, with
// and without its slash, and without a redirect.
func TestContractEveryDocumentedEndpointIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	table := map[string]httpapi.Route{}
	for _, r := range w.routes() {
		table[r.Method+" "+strings.TrimSuffix(r.Path, "/")] = r
	}
	for _, e := range endpoints {
		key := e.method + " " + strings.TrimSuffix(e.path, "/")
		r, ok := table[key]
		if !ok {
			// Parameters may be called otherwise.
			for k, candidate := range table {
				if shape(k) == shape(key) {
					r, ok, key = candidate, true, k
				}
			}
		}
		require.True(t, ok, "%s %s is not served", e.method, e.path)
		delete(table, key)
		require.Equal(t, e.status, r.Status, e.path)
		require.Equal(t, e.who, says(r, e.who), "%s %s", e.method, e.path)
		path := strings.TrimSuffix(place(e.path, nil), "/")
		for _, p := range []string{path, path + "/"} {
			a := w.do(e.method, p, nil)
			require.NotContains(t, a.Raw, "no such path", p)
			require.NotEqual(t, http.StatusMethodNotAllowed, a.Status, p)
			require.True(t, a.Status < 300 || a.Status >= 400, "%s redirects", p)
			require.Empty(t, a.Header.Get("Location"), p)
		}
	}
	delete(table, "GET /openapi.json")
	delete(table, "GET /docs")
	delete(table, "GET /docs/{page}")
	require.Empty(t, table, "served, but in neither document")
}

func shape(path string) string {
	segs := strings.Split(path, "/")
	for i, s := range segs {
		if strings.HasPrefix(s, "{") {
			segs[i] = "{}"
		}
	}
	return strings.Join(segs, "/")
}

// says writes a policy as the table above does.
func says(r httpapi.Route, want string) string {
	if want == "*" { // neither document says
		return want
	}
	switch r.Access {
	case httpapi.Public:
		return ""
	case httpapi.Client:
		return "client"
	}
	out := strings.Join(r.Scopes, " ")
	if r.Access == httpapi.BearerOrKey {
		out += "+key"
	}
	switch {
	case slices.Contains(r.Roles, auth.Approver):
		out += "+approver"
	case len(r.Roles) > 0:
		out += "+admin"
	}
	return out
}

// TestContractUnknownPathsAndMethods: 404 and 405 with Allow, in the standard
// form, whoever asks.
func TestContractUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	for _, path := range []string{
		"/", "/nothing/", "/payments/a/b/", "/payments//", "//payments/", "/payments/x/cancel/y", "/PAYMENTS/", "/Payments/", "/payments/../status/",
		"/status/x", "/o/", "/o/apps/1/2/", "/payments/%2f%2f/%zz", "/manage/", "/openapi.json/x",
	} {
		if _, err := url.ParseRequestURI(path); err != nil {
			continue
		}
		for _, refine := range [][]with{nil, {nobody()}} {
			a := w.do(http.MethodGet, path, nil, refine...)
			require.Equal(t, http.StatusNotFound, a.Status, path)
			require.Equal(t, "not_found", a.code(), path)
		}
	}
	allowed := map[string][]string{}
	for _, r := range w.routes() {
		allowed[shape(r.Path)] = append(allowed[shape(r.Path)], r.Method)
		if r.Method == http.MethodGet {
			allowed[shape(r.Path)] = append(allowed[shape(r.Path)], http.MethodHead)
		}
	}
	for _, r := range w.routes() {
		methods := allowed[shape(r.Path)]
		slices.Sort(methods)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
			if slices.Contains(methods, method) {
				continue
			}
			a := w.do(method, place(r.Path, nil), nil, nobody())
			require.Equal(t, http.StatusMethodNotAllowed, a.Status, "%s %s", method, r.Path)
			require.Equal(t, "method_not_allowed", a.code())
			require.Equal(t, strings.Join(methods, ", "), a.Header.Get("Allow"), r.Path)
		}
	}
	a := w.do(http.MethodGet, "/payments/"+nothing+"/", nil)
	require.Equal(t, "PATCH", a.Header.Get("Allow"), "there is no GET /payments/{id}/")
}

// TestContractHeaders: what every answer carries.
func TestContractHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ok(http.StatusOK, "GET", "/status/", nil, nobody(), header("X-Request-Id", "my-id:7"))
	require.Equal(t, "my-id:7", a.Header.Get("X-Request-Id"))
	require.Empty(t, a.Header.Get("X-RateLimit-Limit"), "nothing is limited there")
	require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"))
	for _, id := range []string{"", "a b", "<script>", strings.Repeat("x", 129), "ü"} {
		a = w.ok(http.StatusOK, "GET", "/status/", nil, nobody(), header("X-Request-Id", id))
		require.Len(t, a.Header.Get("X-Request-Id"), 32, "%q is replaced", id)
	}
	head := w.do(http.MethodHead, "/payments/", nil)
	require.Equal(t, http.StatusOK, head.Status)
	// Browsers are told nothing at the OAuth endpoints.
	a = w.do(http.MethodOptions, "/o/token/", nil, nobody(), header("Origin", "https://example.com"), header("Access-Control-Request-Method", "POST"))
	require.Equal(t, http.StatusMethodNotAllowed, a.Status)
	require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"))
}

func limits(change func(*httpapi.Limits)) func(*setup) {
	return func(s *setup) {
		s.options = func(o *httpapi.Options) {
			l := httpapi.Limits{}
			change(&l)
			o.Limits = &l
		}
	}
}

// TestContractDefaultLimits are the interface's numbers.
func TestContractDefaultLimits(t *testing.T) {
	t.Parallel()
	l := httpapi.DefaultLimits()
	require.Equal(t, []int{20, 1000, 100, 100, 1000}, []int{l.TokenPerMinute, l.PerHour, l.PaymentsPerHour, l.HistoryPerMinute, l.HistoryPerHour})
}

func number(t *testing.T, h http.Header, name string) int {
	t.Helper()
	n, err := strconv.Atoi(h.Get(name))
	require.NoError(t, err, "%s: %q", name, h.Get(name))
	return n
}

// requireLimited is a refusal that says when to come back.
func requireLimited(t *testing.T, w *world, a answer, limit int, window time.Duration) {
	t.Helper()
	require.Equal(t, http.StatusTooManyRequests, a.Status, a.Raw)
	after := number(t, a.Header, "Retry-After")
	require.LessOrEqual(t, after, int(window.Seconds()))
	require.Positive(t, after)
	require.Equal(t, limit, number(t, a.Header, "X-RateLimit-Limit"))
	require.Zero(t, number(t, a.Header, "X-RateLimit-Remaining"))
	require.Equal(t, w.clock.Now().Add(time.Duration(after)*time.Second).Unix(), int64(number(t, a.Header, "X-RateLimit-Reset")))
	if a.at("error", "code") != nil {
		require.Equal(t, "rate_limit_exceeded", a.code())
		require.Equal(t, json.Number(strconv.Itoa(after)), a.at("error", "details", "retry_after"))
	}
}

// TestContractRateLimits: each limit of the table of limits, its headers, and
// that it is over when it says so.
func TestContractRateLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set          func(*httpapi.Limits)
		method, path string
		body         any
		window       time.Duration
		refine       []with
	}{
		"api":             {func(l *httpapi.Limits) { l.PerHour = 3 }, "GET", "/payments/", nil, time.Hour, nil},
		"tenant":          {func(l *httpapi.Limits) { l.TenantPerHour = 3 }, "GET", "/o/apps/", nil, time.Hour, nil},
		"payments":        {func(l *httpapi.Limits) { l.PaymentsPerHour = 3 }, "POST", "/payments/", map[string]any{"amount": "5", "currency": "USDTERC20"}, time.Hour, nil},
		"history, minute": {func(l *httpapi.Limits) { l.HistoryPerMinute, l.HistoryPerHour = 3, 100 }, "GET", "/transactions/transactions/", nil, time.Minute, nil},
		"history, hour":   {func(l *httpapi.Limits) { l.HistoryPerMinute, l.HistoryPerHour = 100, 3 }, "GET", "/transactions/transactions/", nil, time.Hour, nil},
		"token":           {func(l *httpapi.Limits) { l.TokenPerMinute = 3 }, "POST", "/o/token/", url.Values{"grant_type": {"x"}}, time.Minute, []with{nobody()}},
		"revocation":      {func(l *httpapi.Limits) { l.TokenPerMinute = 3 }, "POST", "/o/revoke_token/", url.Values{"token": {"x"}}, time.Minute, []with{nobody()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, limits(c.set))
			w.token = w.newToken(w.admin, "")
			for i := range 3 {
				a := w.do(c.method, c.path, c.body, c.refine...)
				require.NotEqual(t, http.StatusTooManyRequests, a.Status)
				require.Equal(t, 3, number(t, a.Header, "X-RateLimit-Limit"))
				require.Equal(t, 2-i, number(t, a.Header, "X-RateLimit-Remaining"))
				require.Equal(t, w.clock.Now().Add(c.window-time.Duration(i)*time.Second).Unix(), int64(number(t, a.Header, "X-RateLimit-Reset")))
				w.clock.Advance(time.Second)
			}
			a := w.do(c.method, c.path, c.body, c.refine...)
			requireLimited(t, w, a, 3, c.window)
			// The other spelling of the path is the same endpoint.
			a = w.do(c.method, strings.TrimSuffix(c.path, "/"), c.body, c.refine...)
			requireLimited(t, w, a, 3, c.window)
			w.clock.Advance(time.Duration(number(t, a.Header, "Retry-After"))*time.Second - time.Second)
			requireLimited(t, w, w.do(c.method, c.path, c.body, c.refine...), 3, c.window)
			w.clock.Advance(time.Second)
			if c.window == time.Hour {
				w.token = w.newToken(w.admin, "") // an hour is a token's life, too
			}
			a = w.do(c.method, c.path, c.body, c.refine...)
			require.NotEqual(t, http.StatusTooManyRequests, a.Status, "Retry-After was true")
		})
	}
}

// TestO10_LimitsAreNotEvaded: new tokens, API keys, HEAD, other spellings and
// forged headers count where they belong.
func TestO10_LimitsAreNotEvaded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limits(func(l *httpapi.Limits) { l.PerHour, l.TenantPerHour, l.TokenPerMinute = 4, 6, 2 }))
	for i, do := range []func() answer{
		func() answer { return w.do("GET", "/payments/", nil) },
		func() answer { return w.do("HEAD", "/payments/", nil) },
		func() answer { return w.do("GET", "/payments", nil, header("X-Forwarded-For", "9.9.9.9")) },
		func() answer { return w.do("POST", "/payments/status/", "{}") },
	} {
		require.NotEqual(t, http.StatusTooManyRequests, do().Status, "%d", i)
	}
	requireLimited(t, w, w.do("GET", "/payments/", nil), 4, time.Hour)
	second := bearer(w.newToken(w.admin, ""))
	require.Equal(t, http.StatusOK, w.do("GET", "/payments/", nil, second).Status)
	third := bearer(w.newToken(w.newApp(w.tenant, auth.NoRole), ""))
	require.Equal(t, http.StatusOK, w.do("GET", "/payments/", nil, third).Status)
	requireLimited(t, w, w.do("GET", "/payments/", nil, third), 6, time.Hour)
	other := bearer(w.newToken(w.newApp(w.newTenant("other"), auth.NoRole), ""))
	require.Equal(t, http.StatusOK, w.do("GET", "/payments/", nil, other).Status, "another tenant is not hurt")
	// Who lacks the scope uses up his own allowance all the same.
	poor := bearer(w.newToken(w.newApp(w.newTenant("poor"), auth.NoRole, auth.Read), ""))
	for range 4 {
		require.Equal(t, http.StatusForbidden, w.do("GET", "/payments/", nil, poor).Status)
	}
	requireLimited(t, w, w.do("GET", "/payments/", nil, poor), 4, time.Hour)
}

func from(address string) with { return func(r *http.Request) { r.RemoteAddr = address } }

func tokenFor(c credentials) url.Values {
	return url.Values{"grant_type": {"client_credentials"}, "client_id": {c.id}, "client_secret": {c.secret}}
}

// TestO06_ForwardedAddressesAreNotBelieved unless a trusted proxy says them.
func TestO06_ForwardedAddressesAreNotBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limits(func(l *httpapi.Limits) { l.TokenPerMinute = 2 }), func(s *setup) {
		inner := s.options
		s.options = func(o *httpapi.Options) {
			inner(o)
			o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		}
	})
	ask := func(remote, forwarded string) int {
		refine := []with{nobody(), from(remote)}
		if forwarded != "" {
			refine = append(refine, header("X-Forwarded-For", forwarded))
		}
		return w.do("POST", "/o/token/", tokenFor(w.admin), refine...).Status
	}
	require.Equal(t, 200, ask("198.51.100.1:5", "1.1.1.1"))
	require.Equal(t, 200, ask("198.51.100.1:6", "2.2.2.2"))
	require.Equal(t, 429, ask("198.51.100.1:7", "3.3.3.3"), "a stranger's header changes nothing")
	require.Equal(t, 200, ask("198.51.100.2:7", ""), "another client")
	// Through our proxies: the rightmost address that is none of ours.
	require.Equal(t, 200, ask("10.0.0.1:1", "6.6.6.6, 203.0.113.9, 10.2.2.2"))
	require.Equal(t, 200, ask("10.0.0.1:1", "7.7.7.7, 203.0.113.9"))
	require.Equal(t, 429, ask("10.0.0.1:1", "8.8.8.8, 203.0.113.9"), "what the client wrote in front does not count")
	require.Equal(t, 200, ask("10.0.0.1:1", "203.0.113.10"))
	// One customer's IPv6 network is one client.
	require.Equal(t, 200, ask("[2001:db8:1:2::1]:1", ""))
	require.Equal(t, 200, ask("[2001:db8:1:2:ffff::2]:1", ""))
	require.Equal(t, 429, ask("[2001:db8:1:2:abcd::3]:1", ""))
	require.Equal(t, 200, ask("[2001:db8:1:3::1]:1", ""))
}

// TestContractMaintenance: writes are closed, reads go on.
func TestContractMaintenance(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 1, 2, 3, 14, 5, 0, time.UTC) // ten minutes after a world begins
	w := newWorld(t, unlimited, func(s *setup) {
		inner := s.options
		s.options = func(o *httpapi.Options) {
			inner(o)
			o.Maintenance = func(context.Context) httpapi.Maintenance {
				return httpapi.Maintenance{On: true, Message: "soon over", EndsAt: until}
			}
		}
	})
	for _, r := range w.routes() {
		if r.Access != httpapi.Bearer && r.Access != httpapi.BearerOrKey || len(r.Roles) > 0 {
			continue
		}
		var body any
		if r.Method != http.MethodGet {
			body = "{}"
		}
		a := w.do(r.Method, place(r.Path, nil), body)
		if !r.Writes {
			require.NotEqual(t, http.StatusServiceUnavailable, a.Status, r.Name)
			continue
		}
		require.Equal(t, http.StatusServiceUnavailable, a.Status, r.Name)
		require.Equal(t, "maintenance", a.code(), r.Name)
		require.Equal(t, "600", a.Header.Get("Retry-After"))
	}
	a := w.ok(http.StatusOK, "GET", "/maintenance/", nil, nobody())
	require.Equal(t, true, a.Body["maintenance"])
	require.Equal(t, "soon over", a.Body["message"])
	require.Nil(t, a.Body["starts_at"])
	require.Equal(t, "2026-01-02T03:14:05.000Z", a.Body["ends_at"])
	// What is not closed reads, or is how one gets in.
	for _, r := range w.routes() {
		if r.Method != http.MethodGet && !r.Writes {
			require.Contains(t, openInMaintenance, r.Name)
		}
	}
}

var openInMaintenance = []string{
	"createToken", "revokeToken", "getPayment", "estimatePayment", "getWithdrawalStatus", "validateAddress", "estimateWithdrawal",
	"estimateWithdrawalFee", "getWithdrawalMinimum", "calculateRate", "exportTransactions", "lookUpBalances", "listTransfers", "testWebhooks",
}
