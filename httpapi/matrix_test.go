package httpapi_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// caller is one way to show up at a route.
type caller struct {
	name   string
	refine []with
	way    string // "" nothing, "bad", "token", "key", "basic", "twice"
	scopes []auth.Scope
	role   auth.Role
}

// callers are all of them, made of fresh tokens.
func (w *world) callers() []caller {
	w.t.Helper()
	expired := w.token // its time comes with the clock
	w.clock.Advance(time.Hour)
	full := w.newApp(w.tenant, auth.NoRole, auth.Read, auth.Write, auth.Admin)
	revoked := w.newToken(full, "")
	require.NoError(w.t, w.auth.Revoke(w.t.Context(), full.id, full.secret, revoked))
	gone := w.newApp(w.tenant, auth.NoRole)
	orphan := w.newToken(gone, "")
	app, _, err := w.auth.AppByClient(w.t.Context(), gone.id)
	require.NoError(w.t, err)
	require.NoError(w.t, w.auth.DeleteApp(w.t.Context(), w.tenant, app.ID, auth.By{}))
	good := w.newToken(full, "")
	out := []caller{
		{name: "nobody", refine: []with{nobody()}},
		{name: "malformed token", refine: []with{bearer("x")}, way: "bad"},
		{name: "empty token", refine: []with{bearer("")}, way: "bad"},
		{name: "unknown token", refine: []with{bearer(good[:len(good)-1] + flip(good[len(good)-1:]))}, way: "bad"},
		{name: "expired token", refine: []with{bearer(expired)}, way: "bad"},
		{name: "revoked token", refine: []with{bearer(revoked)}, way: "bad"},
		{name: "token of a deleted application", refine: []with{bearer(orphan)}, way: "bad"},
		{name: "token in the query", refine: []with{nobody(), func(r *http.Request) { r.URL.RawQuery += "&access_token=" + good }}},
		{name: "two tokens", refine: []with{bearer(good), func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+good) }}, way: "twice"},
		{name: "client credentials", refine: []with{basic(full)}, way: "basic"},
		{name: "unknown API key", refine: []with{nobody(), apiKey("nonsense-key")}, way: "badkey"},
	}
	for mask := 1; mask < 8; mask++ {
		var scopes []auth.Scope
		for i, s := range []auth.Scope{auth.Read, auth.Write, auth.Admin} {
			if mask&(1<<i) != 0 {
				scopes = append(scopes, s)
			}
		}
		names := strings.Join(scopes, " ")
		out = append(out, caller{name: "scopes " + names, refine: []with{bearer(w.newToken(full, names))}, way: "token", scopes: scopes})
		_, key, err := w.auth.CreateKey(w.t.Context(), auth.NewKey{Tenant: w.tenant, Name: "k", Scopes: scopes})
		require.NoError(w.t, err)
		out = append(out, caller{name: "API key " + names, refine: []with{nobody(), apiKey(key)}, way: "key", scopes: scopes})
	}
	for _, role := range []auth.Role{auth.TenantAdmin, auth.GlobalAdmin, auth.Approver} {
		all := []auth.Scope{auth.Read, auth.Write, auth.Admin}
		token := w.newToken(w.newApp(w.tenant, role, all...), "")
		out = append(out, caller{name: string(role), refine: []with{bearer(token)}, way: "token", scopes: all, role: role})
	}
	return out
}

func flip(s string) string {
	if s == "A" {
		return "B"
	}
	return "A"
}

// verdict is what a policy makes of a caller: the status of the refusal, 0 =
// he is let in.
func verdict(p httpapi.Policy, c caller) int {
	switch {
	case p.Access == httpapi.Public:
		return 0
	case p.Access == httpapi.Client:
		switch c.way {
		case "basic":
			return 0
		case "twice":
			return http.StatusBadRequest
		}
		return http.StatusUnauthorized
	case c.way == "twice":
		return http.StatusBadRequest
	case c.way != "token" && (c.way != "key" || p.Access != httpapi.BearerOrKey):
		return http.StatusUnauthorized
	}
	for _, s := range p.Scopes {
		if !slices.Contains(c.scopes, s) {
			return http.StatusForbidden
		}
	}
	if len(p.Roles) > 0 && !slices.Contains(p.Roles, c.role) || slices.Contains(p.Except, c.role) {
		return http.StatusForbidden
	}
	return 0
}

// TestO02_AuthorisationMatrix asks every route as everybody, and holds the
// answer to the route's policy: status, challenge and form.
func TestO02_AuthorisationMatrix(t *testing.T) {
	t.Parallel()
	base := newWorld(t, unlimited)
	callers := base.callers()
	for i, r := range base.routes() {
		elsewhere := from(fmt.Sprintf("192.0.2.%d:1", i)) // wrong credentials are counted by address
		t.Run(r.Name, func(t *testing.T) {
			w := *base
			w.t = t
			for _, c := range callers {
				what := fmt.Sprintf("%s %s as %s", r.Method, r.Path, c.name)
				path := place(r.Path, map[string]string{})
				if r.Method == http.MethodDelete {
					path = place(r.Path, map[string]string{"id": "999", "wallet_id": "999"})
				}
				var body any
				switch {
				case r.Style == httpapi.OAuth:
					body = url.Values{"grant_type": {"client_credentials"}, "token": {"x"}}
				case r.Method != http.MethodGet:
					body = "{}"
				}
				a := w.do(r.Method, path, body, append(slices.Clone(c.refine), elsewhere)...)
				want := verdict(r.Policy, c)
				if want == 0 {
					require.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, a.Status, "%s: %s", what, a.Raw)
					require.Less(t, a.Status, 500, "%s: %s", what, a.Raw)
					continue
				}
				require.Equal(t, want, a.Status, "%s: %s", what, a.Raw)
				requireRefusal(t, r, c, a, what)
			}
		})
	}
}

// requireRefusal checks the form of a refusal.
func requireRefusal(t *testing.T, r httpapi.Route, c caller, a answer, what string) {
	t.Helper()
	challenge := a.Header.Get("WWW-Authenticate")
	switch {
	case r.Access == httpapi.Client && a.Status == http.StatusUnauthorized:
		require.True(t, strings.HasPrefix(challenge, "Basic "), what)
	case a.Status == http.StatusUnauthorized:
		require.True(t, strings.HasPrefix(challenge, "Bearer "), what)
		require.Equal(t, c.way == "bad" || c.way == "badkey" && r.Access == httpapi.BearerOrKey, strings.Contains(challenge, `error="invalid_token"`), "%s: %s", what, challenge)
	case a.Status == http.StatusForbidden && missing(r, c):
		require.Contains(t, challenge, `error="insufficient_scope"`, what)
		require.Contains(t, challenge, `scope="`+strings.Join(r.Scopes, " ")+`"`, what)
	}
	switch r.Style {
	case httpapi.OAuth:
		require.IsType(t, "", a.Body["error"], what)
		require.IsType(t, "", a.Body["error_description"], what)
		return
	case httpapi.Detail:
		require.Len(t, a.Body, 1, what)
		require.IsType(t, "", a.Body["detail"], what)
		return
	}
	code := map[int]string{http.StatusBadRequest: "invalid_request", http.StatusUnauthorized: "authentication_failed", http.StatusForbidden: "permission_denied"}[a.Status]
	if r.Style == httpapi.Classic {
		code = map[int]string{http.StatusBadRequest: "invalid_request", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden"}[a.Status]
	}
	require.Equal(t, code, a.code(), what)
	if a.Status == http.StatusForbidden && missing(r, c) {
		require.Len(t, a.at("error", "details", "required_scopes"), len(r.Scopes), what)
		require.Len(t, a.at("error", "details", "token_scopes"), len(c.scopes), what)
	}
}

func missing(r httpapi.Route, c caller) bool {
	return slices.ContainsFunc(r.Scopes, func(s auth.Scope) bool { return !slices.Contains(c.scopes, s) })
}

// unlimited switches the rate limits off.
func unlimited(s *setup) {
	inner := s.options
	s.options = func(o *httpapi.Options) {
		if inner != nil {
			inner(o)
		}
		o.Limits = &httpapi.Limits{}
	}
}

// nothing is an id that no object has.
const nothing = "00000000-0000-7000-8000-000000000000"

// place fills the parameters of a path.
func place(path string, values map[string]string) string {
	for _, seg := range split(path) {
		if name, ok := strings.CutPrefix(seg, "{"); ok {
			value, given := values[strings.TrimSuffix(name, "}")]
			if !given {
				value = nothing
			}
			path = strings.Replace(path, seg, value, 1)
		}
	}
	return path
}

// foreign are another tenant's objects.
type foreign struct {
	tenant string
	ids    map[string][]string // by the name that a path or body has for them
	secret []string            // what no answer to somebody else may hold
}

// stranger makes a tenant with one object of every kind.
func (w *world) stranger() foreign {
	w.t.Helper()
	ctx := w.t.Context()
	f := foreign{tenant: w.newTenant("canary-tenant"), ids: map[string][]string{}}
	theirs := bearer(w.newToken(w.newApp(f.tenant, auth.NoRole), ""))
	w.fund(f.tenant)
	sub, err := w.app.Wallets.Create(ctx, f.tenant, wallet.CreateInput{Name: "canary-wallet", ExternalID: "canary-external"})
	require.NoError(w.t, err)
	w.earn("USDTERC20", "100", "", theirs)
	p, err := w.app.Payments.Create(ctx, f.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: "7", Currency: "USDTERC20"}, OrderID: "canary-order", WalletID: sub.ID,
	})
	require.NoError(w.t, err)
	fifty := decimal.NewFromInt(50)
	v, err := w.app.Withdrawals.Create(ctx, f.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: &fifty, Currency: "USDTERC20", Address: w.elsewhere()}, CustomID: "canary-custom",
	})
	require.NoError(w.t, err)
	address, _, err := w.app.Payments.PermanentAddress(ctx, f.tenant, payment.AddressInput{Currency: "USDTERC20", ExternalID: "canary-customer"})
	require.NoError(w.t, err)
	five := decimal.NewFromInt(5)
	page, _, _, err := w.app.Payments.List(ctx, f.tenant, payment.Filter{Status: payment.Completed})
	require.NoError(w.t, err)
	refunded, err := w.app.Refunds.Create(ctx, f.tenant, refund.CreateInput{Payment: page[0].ID, Amount: &five})
	require.NoError(w.t, err)
	f.ids["refund_id"], f.ids["address_id"] = []string{refunded.ID}, []string{address.ID}
	app, secret, err := w.auth.CreateApp(ctx, auth.NewApp{Tenant: f.tenant, Name: "canary-app"})
	require.NoError(w.t, err)
	w.transfer("USDCERC20", p.Address, "3")
	w.mine(30)
	lost, err := w.app.Payments.Suspense(ctx, f.tenant, 10, 0)
	require.NoError(w.t, err)
	require.Len(w.t, lost, 1)
	told, _, err := w.app.Webhooks.Log(ctx, f.tenant, webhook.LogFilter{})
	require.NoError(w.t, err)
	require.NotEmpty(w.t, told)
	f.ids["suspense_id"] = []string{strings.ReplaceAll(lost[0].ID, "/", "~"), strings.ReplaceAll(lost[0].ID, "/", "%2F")}
	f.ids["delivery_id"] = []string{strings.ReplaceAll(told[0].ID, "/", "~")}
	ten := decimal.NewFromInt(10)
	paid, err := w.app.Withdrawals.CreatePayout(ctx, f.tenant, "", []withdrawal.CreateInput{{
		Terms: withdrawal.Terms{Amount: &ten, Currency: "USDTERC20", Address: w.elsewhere()}, CustomID: "canary-payout",
	}})
	require.NoError(w.t, err)
	f.ids["payout_id"] = []string{paid.ID}
	f.ids["transaction_id"] = []string{p.ID}
	f.ids["withdrawal_id"] = []string{v.ID}
	f.ids["wallet_id"] = []string{sub.ID, "canary-external", fmt.Sprint(sub.Number)}
	f.ids["account_id"] = []string{sub.ID, "canary-external"}
	f.ids["external_id"] = []string{"canary-external"}
	f.ids["app"], f.ids["id"] = []string{fmt.Sprint(app.ID)}, f.ids["wallet_id"]
	f.secret = []string{"canary-", w.app.Refunds.Token(&refunded), refunded.ID, p.ID, v.ID, paid.ID, sub.ID, app.ClientID, secret, f.tenant, p.Address, address.Address}
	return f
}

// elsewhere is an address of the simulated ETH that is nobody's of ours: of the
// key 1.
func (w *world) elsewhere() string {
	w.t.Helper()
	point, err := hex.DecodeString("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
	require.NoError(w.t, err)
	a, err := w.chains["ETH"].Client().AddressOf(point)
	require.NoError(w.t, err)
	return string(a)
}

// TestO01_OtherTenantsObjectsDoNotExist puts every id of another tenant into
// every place that takes one, and reads every list: 404, and not a byte of his.
func TestO01_OtherTenantsObjectsDoNotExist(t *testing.T) {
	t.Parallel()
	base := newWorld(t, unlimited)
	f := base.stranger()
	base.token = base.newToken(base.admin, "") // the clock has moved
	before := base.belongings(f)
	for _, r := range base.routes() {
		if r.Access == httpapi.Public || r.Access == httpapi.Client {
			continue
		}
		if slices.Equal(r.Roles, []auth.Role{auth.GlobalAdmin}) {
			continue // of all tenants: nobody else gets as far as an id
		}
		t.Run(r.Name, func(t *testing.T) {
			w := *base
			w.t = t
			if slices.Contains(r.Roles, auth.Approver) {
				w.token = base.newToken(base.newApp(base.tenant, auth.Approver), "")
			}
			for _, name := range w.takes(r) {
				kind := name
				if strings.HasPrefix(r.Path, "/o/apps/") {
					kind = "app"
				}
				require.NotEmpty(t, f.ids[kind], "whose %s?", kind)
				for _, id := range f.ids[kind] {
					path, body := r.Path, w.sample(r)
					if strings.Contains(path, "{"+name+"}") {
						path = place(path, map[string]string{name: id})
					} else {
						body[name] = id
					}
					a := w.do(r.Method, place(path, nil)+w.contract.sampleQuery(r), payload(r, body))
					require.Equal(t, http.StatusNotFound, a.Status, "%s %s with %s=%s: %s", r.Method, path, name, id, a.Raw)
					require.NotEqual(t, http.StatusForbidden, a.Status)
					f.requireAbsent(t, a, id)
				}
			}
			if r.Method == http.MethodGet {
				f.requireAbsent(t, w.do(r.Method, place(r.Path, nil)+w.contract.sampleQuery(r), nil), "")
			}
		})
	}
	require.Equal(t, before, base.belongings(f), "nothing of the stranger's was touched")
}

// TestO01_OtherTenantsIdsInQueries puts every id of another tenant into every parameter of a query that takes any
// text, as the served document lists them: the answer is that of an id which nobody has, to the byte.
func TestO01_OtherTenantsIdsInQueries(t *testing.T) {
	t.Parallel()
	base := newWorld(t, unlimited)
	f := base.stranger()
	base.token = base.newToken(base.admin, "") // the clock has moved
	base.fund(base.tenant)
	base.earn("USDTERC20", "1000", "")
	base.salaryOf("5")
	before, asked := base.belongings(f), 0
	for _, r := range base.routes() {
		if r.Access == httpapi.Public || r.Access == httpapi.Client || slices.Equal(r.Roles, []auth.Role{auth.GlobalAdmin}) {
			continue
		}
		names := base.contract.freeQuery(r)
		if asked += len(names); len(names) == 0 {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			w := *base
			w.t = t
			if slices.Contains(r.Roles, auth.Approver) {
				w.token = base.newToken(base.newApp(base.tenant, auth.Approver), "")
			}
			q, err := url.ParseQuery(strings.TrimPrefix(w.contract.sampleQuery(r), "?"))
			require.NoError(t, err)
			ask := func(name, id string) answer {
				q := maps.Clone(q)
				q[name] = []string{id}
				return w.do(r.Method, place(r.Path, nil)+"?"+q.Encode(), payload(r, w.sample(r)))
			}
			for _, name := range names {
				for _, id := range f.all() {
					theirs, nobodys := ask(name, id), ask(name, strange(id))
					what := fmt.Sprintf("%s %s with %s=%s", r.Method, r.Path, name, id)
					require.Less(t, theirs.Status, 500, what)
					require.Equal(t, nobodys.Status, theirs.Status, "%s: %s", what, theirs.Raw)
					require.Equal(t, without(nobodys.Raw, strange(id)), without(theirs.Raw, id), what)
					f.requireAbsent(t, theirs, id)
				}
			}
		})
	}
	require.Greater(t, asked, 15, "the document lists them")
	require.Equal(t, before, base.belongings(f), "nothing of the stranger's was touched")
}

// salaryOf makes a payout of the world's own tenant, so that lists have something to show.
func (w *world) salaryOf(amount string) {
	w.t.Helper()
	w.ok(http.StatusCreated, "POST", "/payouts/", w.salaries(1, amount))
}

// all are the stranger's ids, whatever they are of, and the names that he has given.
func (f foreign) all() []string {
	out := []string{f.tenant, "canary-order", "canary-custom", "canary-payout", "canary-customer"}
	for _, ids := range f.ids {
		out = append(out, ids...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// strange is an id of the same form that nobody has.
func strange(id string) string {
	if len(id) < 4 { // a number
		return "987"
	}
	at := len(id) - 1
	if id[at] == '0' {
		return id[:at] + "1"
	}
	return id[:at] + "0"
}

// without takes an id out of a text, however a URL in it writes the id. A number could be any number of the text.
func without(text, id string) string {
	if len(id) < 4 {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, url.QueryEscape(id), ""), id, "")
}

// freeQuery are the parameters of a route's query that take any text: no list of values, number, amount or time.
func (c *contract) freeQuery(r httpapi.Route) (names []string) {
	op := c.paths[r.Path][strings.ToLower(r.Method)].(map[string]any)
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		p := p.(map[string]any)
		s, _ := p["schema"].(map[string]any)
		if p["in"] == "query" && s["type"] == "string" && s["enum"] == nil && (s["format"] == nil || s["format"] == "uuid") {
			names = append(names, p["name"].(string))
		}
	}
	return names
}

func payload(r httpapi.Route, body map[string]any) any {
	if r.Method == http.MethodGet {
		return nil
	}
	return body
}

// requireAbsent: only what the request itself said may stand in the answer.
func (f foreign) requireAbsent(t *testing.T, a answer, said string) {
	t.Helper()
	text := a.Raw
	if said != "" {
		text = strings.ReplaceAll(text, said, "")
	}
	for _, s := range f.secret {
		require.NotContains(t, text, s)
	}
}

// belongings is what a stranger has, to see that nothing of it changed.
func (w *world) belongings(f foreign) string {
	w.t.Helper()
	ctx := w.t.Context()
	p, err := w.app.Payments.Get(ctx, f.tenant, f.ids["transaction_id"][0])
	require.NoError(w.t, err)
	v, err := w.app.Withdrawals.Get(ctx, f.tenant, f.ids["withdrawal_id"][0])
	require.NoError(w.t, err)
	l, err := w.app.Wallets.Get(ctx, f.tenant, f.ids["wallet_id"][0])
	require.NoError(w.t, err)
	b, err := w.app.Wallets.Balances(ctx, f.tenant, "master", l.ID)
	require.NoError(w.t, err)
	apps, err := w.auth.Apps(ctx, f.tenant)
	require.NoError(w.t, err)
	r, err := w.app.Refunds.Get(ctx, f.tenant, f.ids["refund_id"][0])
	require.NoError(w.t, err)
	addresses, _, err := w.app.Payments.PermanentAddresses(ctx, f.tenant, payment.AddressFilter{})
	require.NoError(w.t, err)
	return fmt.Sprintf("%+v\n%+v\n%+v\n%+v\n%+v\n%+v\n%+v", p, v, l, b, apps, r, addresses)
}

// takes lists the names of other objects' ids that a route takes.
func (w *world) takes(r httpapi.Route) []string {
	var out []string
	for _, seg := range split(r.Path) {
		if strings.HasPrefix(seg, "{") && seg != "{currency}" && seg != "{blockchain}" {
			out = append(out, strings.Trim(seg, "{}"))
		}
	}
	properties := w.contract.properties(r)
	for _, name := range []string{"transaction_id", "withdrawal_id", "wallet_id", "account_id", "external_id"} {
		// An external_id alone is a name that is being given, not one that is looked up.
		// So is that of a permanent address, beside the wallet that it credits.
		if _, ok := properties[name]; ok && (name != "external_id" || properties["wallet_id"] != nil && r.Name != "createAddress") {
			out = append(out, name)
		}
	}
	return out
}

// properties are the members of a route's JSON body.
func (c *contract) properties(r httpapi.Route) map[string]any {
	op, _ := c.paths[r.Path][strings.ToLower(r.Method)].(map[string]any)
	body, _ := op["requestBody"].(map[string]any)
	contents, _ := body["content"].(map[string]any)
	media, _ := contents["application/json"].(map[string]any)
	s, _ := media["schema"].(map[string]any)
	return c.resolve(s)["properties"].(map[string]any)
}

// resolve follows a reference; nil is an object without members.
func (c *contract) resolve(s map[string]any) map[string]any {
	if ref, ok := s["$ref"].(string); ok {
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		s = c.raw["components"].(map[string]any)["schemas"].(map[string]any)[name].(map[string]any)
	}
	if s["properties"] == nil {
		return map[string]any{"properties": map[string]any{}}
	}
	return s
}

// sample is a plausible body of a route: what its members are usually given.
func (w *world) sample(r httpapi.Route) map[string]any {
	out := map[string]any{}
	for name := range w.contract.properties(r) {
		if v, ok := usual[name]; ok {
			out[name] = v
		}
		if name == "address" && r.Name != "resolveSuspense" {
			out[name] = w.elsewhere()
		}
		if name == "external_id" && r.Name == "createAddress" {
			out[name] = "somebody"
		}
	}
	return out
}

// sampleQuery is what a route's query needs.
func (c *contract) sampleQuery(r httpapi.Route) string {
	op := c.paths[r.Path][strings.ToLower(r.Method)].(map[string]any)
	parameters, _ := op["parameters"].([]any)
	q := url.Values{}
	for _, p := range parameters {
		if p := p.(map[string]any); p["in"] == "query" && p["required"] == true {
			q.Set(p["name"].(string), fmt.Sprint(usual[p["name"].(string)]))
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

var usual = map[string]any{
	"amount": "5", "currency": "USDTERC20", "name": "name", "event_type": "payment_status_update",
	"currency_from": "USD", "currency_to": "USDTERC20",
	"action": "credit", "reason": "a reason",
}
