package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// grant is a token request's form.
func grant(more ...string) url.Values {
	f := url.Values{"grant_type": {"client_credentials"}}
	for i := 0; i < len(more); i += 2 {
		f.Add(more[i], more[i+1])
	}
	return f
}

// serve puts the interface behind a real server.
func (w *world) serve() *httptest.Server {
	w.t.Helper()
	s := httptest.NewServer(w.api)
	w.t.Cleanup(s.Close)
	return s
}

// ask sends a request to an OAuth endpoint without the shop's token.
func (w *world) ask(path string, body any, refine ...with) answer {
	w.t.Helper()
	return w.do("POST", path, body, append([]with{nobody()}, refine...)...)
}

// TestOAuthWithTheUsualClient: golang.org/x/oauth2 gets tokens in both ways that
// RFC 6749 §2.3.1 has, finds out which by itself, and calls the API with them.
func TestOAuthWithTheUsualClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	for name, style := range map[string]oauth2.AuthStyle{"basic": oauth2.AuthStyleInHeader, "form": oauth2.AuthStyleInParams, "either": oauth2.AuthStyleAutoDetect} {
		c := clientcredentials.Config{ClientID: w.admin.id, ClientSecret: w.admin.secret, TokenURL: s.URL + "/o/token/", Scopes: []string{"read", "write"}, AuthStyle: style}
		token, err := c.Token(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, "Bearer", token.TokenType)
		require.InDelta(t, time.Hour.Seconds(), time.Until(token.Expiry).Seconds(), 60)
		require.Equal(t, "read write", token.Extra("scope"))
		answer, err := c.Client(t.Context()).Get(s.URL + "/user/me/")
		require.NoError(t, err, name)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.NoError(t, answer.Body.Close())
	}
	for want, c := range map[string]clientcredentials.Config{
		"invalid_grant":  {ClientID: w.admin.id, ClientSecret: "wrong"},
		"invalid_client": {ClientID: "nobody", ClientSecret: "wrong"},
		"invalid_scope":  {ClientID: w.admin.id, ClientSecret: w.admin.secret, Scopes: []string{"everything"}},
	} {
		c.TokenURL, c.AuthStyle = s.URL+"/o/token", oauth2.AuthStyleInHeader
		_, err := c.Token(t.Context())
		var refused *oauth2.RetrieveError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, want, refused.ErrorCode)
		require.NotEmpty(t, refused.ErrorDescription)
	}
}

// TestOAuthOddSecrets: what an operator chose may hold any printable character;
// clients form-encode it in the header, or leave that out.
func TestOAuthOddSecrets(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"plain", "a+b/c==", "with a space", "100%", "50%25", "a:b", "a b+c%d", "x%41y", "+", `q"\&=;`} {
		t.Run(odd, func(t *testing.T) {
			t.Parallel()
			secret := odd + " of the operator " + odd
			w := newWorld(t)
			s := w.serve()
			app, _, err := w.auth.CreateApp(t.Context(), auth.NewApp{Tenant: w.tenant, Name: "odd", ClientID: "odd+id%20", ClientSecret: secret})
			require.NoError(t, err)
			for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams} {
				c := clientcredentials.Config{ClientID: app.ClientID, ClientSecret: secret, TokenURL: s.URL + "/o/token/", AuthStyle: style}
				_, err = c.Token(t.Context())
				require.NoError(t, err)
			}
			raw := "Basic " + base64.StdEncoding.EncodeToString([]byte(app.ClientID+":"+secret))
			require.Equal(t, http.StatusOK, w.ask("/o/token/", grant(), header("Authorization", raw)).Status, "as curl does")
			raw = "Basic " + base64.StdEncoding.EncodeToString([]byte(app.ClientID+":"+secret+"x"))
			require.Equal(t, "invalid_grant", w.ask("/o/token/", grant(), header("Authorization", raw)).Body["error"])
		})
	}
}

// TestO07_TokenRequests are vectors of RFC 6749 §2.3, §3.2, §4.4 and §5.2.
func TestO07_TokenRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	id, secret := w.admin.id, w.admin.secret
	form := grant("client_id", id, "client_secret", secret)
	other := w.newApp(w.tenant, auth.NoRole, auth.Read)
	encoded := "grant_type=client_credentials&client_id=" + id + "&client_secret=" + secret
	media := header("Content-Type", "application/x-www-form-urlencoded")
	for name, c := range map[string]struct {
		body   any
		refine []with
		status int
		code   string
	}{
		"basic":                         {grant(), []with{basic(w.admin)}, 200, ""},
		"form":                          {form, nil, 200, ""},
		"basic, and its id again":       {grant("client_id", id), []with{basic(w.admin)}, 200, ""},
		"an empty value is left out":    {grant("client_id", "", "scope", ""), []with{basic(w.admin)}, 200, ""},
		"unknown parameters":            {grant("audience", "x", "resource", "y"), []with{basic(w.admin)}, 200, ""},
		"scheme in another case":        {grant(), []with{header("Authorization", "bASIC "+base64.StdEncoding.EncodeToString([]byte(id+":"+secret)))}, 200, ""},
		"charset":                       {encoded, []with{header("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")}, 200, ""},
		"no grant":                      {url.Values{"client_id": {id}, "client_secret": {secret}}, nil, 400, "invalid_request"},
		"empty grant":                   {url.Values{"grant_type": {""}, "client_id": {id}, "client_secret": {secret}}, nil, 400, "invalid_request"},
		"another grant":                 {url.Values{"grant_type": {"password"}, "client_id": {id}, "client_secret": {secret}}, nil, 400, "unsupported_grant_type"},
		"grant in capitals":             {url.Values{"grant_type": {"CLIENT_CREDENTIALS"}, "client_id": {id}, "client_secret": {secret}}, nil, 400, "unsupported_grant_type"},
		"both ways":                     {form, []with{basic(w.admin)}, 400, "invalid_request"},
		"two clients":                   {grant("client_id", other.id), []with{basic(w.admin)}, 400, "invalid_request"},
		"grant twice":                   {encoded + "&grant_type=client_credentials", []with{media}, 400, "invalid_request"},
		"scope twice":                   {encoded + "&scope=read&scope=write", []with{media}, 400, "invalid_request"},
		"secret twice":                  {encoded + "&client_secret=" + secret, []with{media}, 400, "invalid_request"},
		"an unknown parameter twice":    {encoded + "&x=1&x=2", []with{media}, 400, "invalid_request"},
		"no form":                       {"%zz", []with{media}, 400, "invalid_request"},
		"semicolons":                    {encoded + ";x=1", []with{media}, 400, "invalid_request"},
		"a NUL":                         {encoded + "&scope=read%00", []with{media}, 400, "invalid_request"},
		"a line break":                  {encoded + "&scope=read%0awrite", []with{media}, 400, "invalid_request"},
		"JSON":                          {`{"grant_type":"client_credentials"}`, []with{header("Content-Type", "application/json")}, 415, "invalid_request"},
		"another charset":               {encoded, []with{header("Content-Type", "application/x-www-form-urlencoded; charset=utf-16")}, 415, "invalid_request"},
		"too large":                     {encoded + "&x=" + strings.Repeat("x", 1<<20), []with{media}, 413, "invalid_request"},
		"no credentials":                {grant(), nil, 401, "invalid_client"},
		"no secret":                     {grant("client_id", id), nil, 401, "invalid_client"},
		"no id":                         {grant("client_secret", secret), nil, 401, "invalid_client"},
		"bearer":                        {grant(), []with{bearer(w.token)}, 401, "invalid_client"},
		"basic that is not base64":      {grant(), []with{header("Authorization", "Basic !!!")}, 401, "invalid_client"},
		"basic without a colon":         {grant(), []with{header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(id)))}, 401, "invalid_client"},
		"unknown client":                {grant("client_id", "nobody", "client_secret", secret), nil, 401, "invalid_client"},
		"another client's secret":       {grant("client_id", id, "client_secret", other.secret), nil, 401, "invalid_grant"},
		"wrong secret":                  {grant("client_id", id, "client_secret", secret+"x"), nil, 401, "invalid_grant"},
		"secret in capitals":            {grant("client_id", id, "client_secret", strings.ToUpper(secret)), nil, 401, "invalid_grant"},
		"masked secret":                 {grant("client_id", id, "client_secret", "********"+secret[len(secret)-4:]), nil, 401, "invalid_grant"},
		"a scope that nobody has":       {grant("client_id", id, "client_secret", secret, "scope", "everything"), nil, 400, "invalid_scope"},
		"a scope that is another's":     {grant("client_id", other.id, "client_secret", other.secret, "scope", "read write"), nil, 400, "invalid_scope"},
		"escalation":                    {grant("client_id", other.id, "client_secret", other.secret, "scope", "admin"), nil, 400, "invalid_scope"},
		"scopes with a comma":           {grant("client_id", id, "client_secret", secret, "scope", "read,write"), nil, 400, "invalid_scope"},
		"scopes in capitals":            {grant("client_id", id, "client_secret", secret, "scope", "READ"), nil, 400, "invalid_scope"},
		"two spaces":                    {grant("client_id", id, "client_secret", secret, "scope", "read  write"), nil, 400, "invalid_scope"},
		"two headers":                   {grant(), []with{basic(w.admin), func(r *http.Request) { r.Header.Add("Authorization", r.Header.Get("Authorization")) }}, 400, "invalid_request"},
		"credentials in the query only": {grant(), []with{func(r *http.Request) { r.URL.RawQuery = "client_id=" + id + "&client_secret=" + secret }}, 401, "invalid_client"},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.ask("/o/token/", c.body, c.refine...)
			require.Equal(t, c.status, a.Status, a.Raw)
			require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
			require.Equal(t, "no-cache", a.Header.Get("Pragma"))
			require.Equal(t, "application/json", a.Header.Get("Content-Type"))
			require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"))
			if c.code == "" {
				require.Equal(t, "access_token string, token_type string, expires_in number, scope string", members(t, a.Raw))
				require.Equal(t, []any{"Bearer", json.Number("3600")}, []any{a.Body["token_type"], a.Body["expires_in"]})
				return
			}
			require.Equal(t, "error string, error_description string", members(t, a.Raw))
			require.Equal(t, c.code, a.Body["error"])
			require.NotContains(t, a.Raw, secret)
			require.Equal(t, c.status == http.StatusUnauthorized, strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Basic "))
		})
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS"} {
		r := httptest.NewRequestWithContext(t.Context(), method, "/o/token/?"+encoded, nil)
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, r)
		require.Equal(t, http.StatusMethodNotAllowed, rec.Code, method)
		require.Equal(t, "POST", rec.Header().Get("Allow"))
		require.Empty(t, rec.Header().Get("Access-Control-Allow-Origin"), "no cross-origin calls")
	}
}

func TestO07_ScopesOfTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	for asked, want := range map[string]string{
		"": "read write admin", "read": "read", "write read": "read write", "read read": "read", "admin": "admin", "admin write read": "read write admin",
	} {
		a := w.ask("/o/token/", grant("scope", asked), basic(w.admin))
		require.Equal(t, want, a.Body["scope"], asked)
	}
	read := bearer(w.newToken(w.admin, "read"))
	a := w.ok(http.StatusForbidden, "GET", "/user/me/", nil, read)
	require.Equal(t, "permission_denied", a.code())
	require.Equal(t, []any{[]any{"read", "write"}, []any{"read"}}, []any{a.at("error", "details", "required_scopes"), a.at("error", "details", "token_scopes")})
	w.ok(http.StatusOK, "GET", "/user/me/", nil)
	w.clock.Advance(time.Hour - time.Second)
	w.ok(http.StatusOK, "GET", "/user/me/", nil)
	w.clock.Advance(time.Second)
	a = w.ok(http.StatusUnauthorized, "GET", "/user/me/", nil)
	require.Equal(t, "authentication_failed", a.code())
	require.NotEmpty(t, a.at("error", "details", "hint"))
	require.Contains(t, a.Header.Get("WWW-Authenticate"), `error="invalid_token"`)
}

// TestO08_Revocation is RFC 7009.
func TestO08_Revocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	other := w.newApp(w.tenant, auth.NoRole, auth.Read, auth.Write)
	theirs := w.newToken(other, "")
	revoke := func(by credentials, token string, more ...string) answer {
		f := url.Values{"token": {token}}
		for i := 0; i < len(more); i += 2 {
			f.Add(more[i], more[i+1])
		}
		return w.ask("/o/revoke_token/", f, basic(by))
	}
	mine := w.newToken(w.admin, "")
	for _, token := range []string{"unknown", theirs, mine[:len(mine)-1], " "} {
		a := revoke(w.admin, token)
		require.Equal(t, http.StatusOK, a.Status, a.Raw)
		require.Empty(t, a.Raw)
	}
	w.ok(http.StatusOK, "GET", "/user/me/", nil, bearer(theirs))
	w.ok(http.StatusOK, "GET", "/user/me/", nil, bearer(mine))
	for range 2 {
		a := revoke(w.admin, mine, "token_type_hint", "access_token")
		require.Equal(t, http.StatusOK, a.Status)
		require.Empty(t, a.Raw)
		require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		w.ok(http.StatusUnauthorized, "GET", "/user/me/", nil, bearer(mine))
	}
	w.ok(http.StatusOK, "GET", "/user/me/", nil) // the application's other tokens stay
	hinted := w.newToken(w.admin, "")
	require.Equal(t, http.StatusOK, revoke(w.admin, hinted, "token_type_hint", "refresh_token").Status, "a hint is no more than that")
	w.ok(http.StatusUnauthorized, "GET", "/user/me/", nil, bearer(hinted))

	require.Equal(t, []any{400, "invalid_request"}, refusal(revoke(w.admin, "")))
	require.Equal(t, []any{400, "invalid_request"}, refusal(revoke(w.admin, "x", "token", "y")))
	require.Equal(t, []any{401, "invalid_grant"}, refusal(revoke(credentials{other.id, "wrong"}, theirs)))
	require.Equal(t, []any{401, "invalid_client"}, refusal(revoke(credentials{"nobody", "wrong"}, theirs)))
	require.Equal(t, []any{401, "invalid_client"}, refusal(w.ask("/o/revoke_token", url.Values{"token": {theirs}})))
	require.Equal(t, []any{401, "invalid_client"}, refusal(w.ask("/o/revoke_token", url.Values{"token": {theirs}}, bearer(theirs))))
	w.ok(http.StatusOK, "GET", "/user/me/", nil, bearer(theirs))
	form := url.Values{"token": {theirs}, "client_id": {other.id}, "client_secret": {other.secret}}
	require.Equal(t, http.StatusOK, w.ask("/o/revoke_token", form).Status, "credentials as form fields")
	w.ok(http.StatusUnauthorized, "GET", "/user/me/", nil, bearer(theirs))
}

func refusal(a answer) []any { return []any{a.Status, a.Body["error"]} }

func TestO04_ApplicationsShowTheirSecretOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ok(http.StatusCreated, "POST", "/o/apps/", map[string]any{"name": "Zweite – №2"})
	require.Equal(t, "id number, client_id string, client_secret string", members(t, a.Raw))
	id, secret := a.Body["client_id"].(string), a.Body["client_secret"].(string)
	number := a.Body["id"].(json.Number).String()
	list := w.ok(http.StatusOK, "GET", "/o/apps", nil)
	require.NotContains(t, list.Raw, secret)
	require.NotContains(t, list.Raw, w.admin.secret)
	var apps []map[string]any
	require.NoError(t, json.Unmarshal([]byte(list.Raw), &apps))
	require.Len(t, apps, 2)
	require.Equal(t, "********"+secret[len(secret)-4:], apps[1]["client_secret"])
	require.Equal(t, []any{"Zweite – №2", id, "confidential"}, []any{apps[1]["name"], apps[1]["client_id"], apps[1]["client_type"]})
	require.Equal(t, "id number, name string, client_id string, client_secret string, client_type string", members(t, inside(t, list.Raw, "0")))
	require.NotContains(t, w.do("GET", "/o/apps/", nil, w.anotherTenant()).Raw, id)

	// It has the scopes read and write and no role, whoever made it.
	token := w.ask("/o/token/", grant(), basic(credentials{id, secret}))
	require.Equal(t, "read write", token.Body["scope"])
	access := bearer(token.Body["access_token"].(string))
	w.ok(http.StatusOK, "GET", "/user/me/", nil, access)
	w.ok(http.StatusForbidden, "GET", "/user/fees/", nil, access)
	w.ok(http.StatusForbidden, "GET", "/manage/users/balances", nil, access)
	require.Equal(t, "invalid_scope", w.ask("/o/token/", grant("scope", "admin"), basic(credentials{id, secret})).Body["error"])

	// Deleting it voids its tokens; nobody else can.
	w.ok(http.StatusNotFound, "DELETE", "/o/apps/"+number, nil, w.anotherTenant())
	w.ok(http.StatusOK, "GET", "/user/me/", nil, access)
	gone := w.ok(http.StatusNoContent, "DELETE", "/o/apps/"+number+"/", nil)
	require.Empty(t, gone.Raw)
	w.ok(http.StatusUnauthorized, "GET", "/user/me/", nil, access)
	require.Equal(t, []any{401, "invalid_client"}, refusal(w.ask("/o/token/", grant(), basic(credentials{id, secret}))))
	w.ok(http.StatusNotFound, "DELETE", "/o/apps/"+number, nil)
	w.ok(http.StatusOK, "GET", "/user/me/", nil)
}

func TestApplicationsRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, body := range []string{`{}`, `{"name":""}`, `{"name":"   "}`, `{"name":7}`, `{"name":null}`, `{"name":["x"]}`, `{"name":"a\nb"}`, `{"name":"` + strings.Repeat("é", 256) + `"}`} {
		a := w.ok(http.StatusBadRequest, "POST", "/o/apps/", body)
		require.Equal(t, "invalid_request", a.code(), body)
		require.Equal(t, []string{"name"}, a.blamed(), body)
	}
	w.ok(http.StatusCreated, "POST", "/o/apps/", map[string]any{"name": strings.Repeat("é", 255), "scopes": "admin", "role": "global_admin", "tenant": "x"})
	for _, id := range []string{"0", "-1", "999", "x", "1.0", "+1", "01", "99999999999999999999", "%2e"} {
		a := w.ok(http.StatusNotFound, "DELETE", "/o/apps/"+id+"/", nil)
		require.Equal(t, "not_found", a.code(), id)
	}
	for _, r := range [][2]string{{"GET", "/o/apps/"}, {"POST", "/o/apps/"}, {"DELETE", "/o/apps/1/"}} {
		w.ok(http.StatusUnauthorized, r[0], r[1], nil, nobody())
		w.ok(http.StatusUnauthorized, r[0], r[1], nil, basic(w.admin))
		w.ok(http.StatusForbidden, r[0], r[1], nil, w.scoped("read"))
		w.ok(http.StatusForbidden, r[0], r[1], nil, w.scoped("write"))
	}
	w.ok(http.StatusOK, "GET", "/user/me/", nil) // the caller's own application is still there
}

// TestO05_GuessingIsSlowed: by address, and by client from any number of them.
func TestO05_GuessingIsSlowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 20 {
		a := w.ask("/o/token/", grant(), basic(w.admin), from("203.0.113.1:1"))
		require.Equal(t, http.StatusOK, a.Status)
		require.Equal(t, []string{"20"}, a.Header.Values("X-RateLimit-Limit"))
		require.Equal(t, 19-i, number(t, a.Header, "X-RateLimit-Remaining"))
	}
	a := w.ask("/o/token/", grant(), basic(w.admin), from("203.0.113.1:2"))
	requireLimited(t, w, a, 20, time.Minute)
	require.Equal(t, "error string, error_description string", members(t, a.Raw))
	require.Equal(t, "rate_limit_exceeded", a.Body["error"])
	require.Equal(t, "60", a.Header.Get("Retry-After"))
	require.Equal(t, http.StatusOK, w.ask("/o/revoke_token/", url.Values{"token": {"x"}}, basic(w.admin), from("203.0.113.1:2")).Status, "it has its own count")
	w.clock.Advance(time.Minute)
	require.Equal(t, http.StatusOK, w.ask("/o/token/", grant(), basic(w.admin), from("203.0.113.1:2")).Status)

	// One client's secret, guessed.
	free := newWorld(t, unlimited)
	app, _, err := free.auth.CreateApp(t.Context(), auth.NewApp{Tenant: free.tenant, Name: "chosen", ClientID: "chosen", ClientSecret: "hunter2-and-his-dog"})
	require.NoError(t, err)
	var last answer
	for i := range 15 {
		last = free.ask("/o/token/", grant(), basic(credentials{app.ClientID, "wrong"}))
		require.Equal(t, i >= 10, last.Status == http.StatusTooManyRequests, last.Raw)
	}
	require.Equal(t, "rate_limit_exceeded", last.Body["error"])
	require.Positive(t, number(t, last.Header, "Retry-After"))
	require.Equal(t, http.StatusTooManyRequests, free.ask("/o/revoke_token/", url.Values{"token": {"x"}}, basic(credentials{app.ClientID, "wrong"})).Status)
	require.Equal(t, http.StatusOK, free.ask("/o/token/", grant(), basic(free.admin)).Status, "others are not slowed")
	free.clock.Advance(time.Minute)
	require.Equal(t, http.StatusOK, free.ask("/o/token/", grant(), basic(credentials{app.ClientID, "hunter2-and-his-dog"})).Status)
}

// TestFS04_OwnerLogsInWhileOthersGuess: over HTTP, one guess in 3 s from an address
// elsewhere, at the default limits: every login of the owner is let in. An IPv6 provider's
// customer is one address.
func TestFS04_OwnerLogsInWhileOthersGuess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, _, err := w.auth.CreateApp(t.Context(), auth.NewApp{Tenant: w.tenant, Name: "chosen", ClientID: "chosen", ClientSecret: "hunter2-and-his-dog"})
	require.NoError(t, err)
	slowed := 0
	for i := range 40 {
		guess := w.ask("/o/token/", grant(), basic(credentials{app.ClientID, "wrong"}), from(fmt.Sprintf("[2001:db8::%d]:1", i)))
		if guess.Status == http.StatusTooManyRequests {
			slowed++
		}
		right := w.ask("/o/token/", grant(), basic(credentials{app.ClientID, "hunter2-and-his-dog"}), from("203.0.113.9:1"))
		require.Equal(t, http.StatusOK, right.Status, "%d: %s", i, right.Raw)
		w.clock.Advance(3100 * time.Millisecond)
	}
	require.Greater(t, slowed, 15, "one address is made to wait")
}

// TestFS05_BadTokensAreRefusedUnread: over HTTP, tokens and keys that were never issued are
// refused with 429 after some, marked so that no line is logged for each; a good token from
// the same address goes on.
func TestFS05_BadTokensAreRefusedUnread(t *testing.T) {
	t.Parallel()
	var limited atomic.Int64
	w := newWorld(t, func(s *setup) {
		unlimited(s)
		inner := s.options
		s.options = func(o *httpapi.Options) {
			inner(o)
			o.Observe = func(o httpapi.Observation) {
				if o.Limited {
					limited.Add(1)
				}
			}
		}
	})
	w.ok(http.StatusOK, "GET", "/user/me/", nil)
	for name, credential := range map[string]func(i int) with{
		"token": func(i int) with { return header("Authorization", fmt.Sprintf("Bearer cpt_%042dA", i)) },
		"key":   func(i int) with { return header("X-Api-Key", fmt.Sprint("a guess at a key ", i)) },
	} {
		before := limited.Load()
		for i := range 200 {
			a := w.do("GET", "/wallets/", nil, nobody(), credential(i))
			require.Equal(t, i >= 60, a.Status == http.StatusTooManyRequests, "%s %d: %s", name, i, a.Raw)
			if i >= 60 {
				require.Equal(t, "rate_limit_exceeded", a.code())
				require.Positive(t, number(t, a.Header, "Retry-After"))
			}
		}
		require.EqualValues(t, 140, limited.Load()-before, name)
	}
	w.ok(http.StatusOK, "GET", "/user/me/", nil)
}

// TestFS08_NobodyDeletesAnApplicationThatMayMore: a token deletes only applications whose scopes
// and role it has. What it may not is 403, and the application goes on.
func TestFS08_NobodyDeletesAnApplicationThatMayMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	type of struct {
		role   auth.Role
		scopes []auth.Scope
	}
	rw, all := []auth.Scope{auth.Read, auth.Write}, []auth.Scope{auth.Read, auth.Write, auth.Admin}
	plain, admin, tenant, global, approver, finance := of{"", rw}, of{"", all}, of{auth.TenantAdmin, rw}, of{auth.GlobalAdmin, rw}, of{auth.Approver, rw}, of{"approver:finance", rw}
	everything := []of{plain, admin, tenant, global, approver, finance, {auth.TenantAdmin, all}, {auth.GlobalAdmin, all}, {"", []auth.Scope{auth.Admin}}}
	for _, c := range []struct {
		caller of
		may    []of
	}{
		{plain, []of{plain}},
		{admin, []of{plain, admin, {"", []auth.Scope{auth.Admin}}}},
		{tenant, []of{plain, tenant}},
		{global, []of{plain, tenant, global}},
		{approver, []of{plain, approver}},
		{finance, []of{plain, approver, finance}},
	} {
		token := bearer(w.newToken(w.newApp(w.tenant, c.caller.role, c.caller.scopes...), ""))
		for _, target := range everything {
			what := fmt.Sprintf("%v deletes %v", c.caller, target)
			app, secret, err := w.auth.CreateApp(t.Context(), auth.NewApp{Tenant: w.tenant, Name: "target", Role: target.role, Scopes: target.scopes})
			require.NoError(t, err)
			a := w.do("DELETE", fmt.Sprintf("/o/apps/%d/", app.ID), nil, token)
			_, err = w.auth.Token(t.Context(), app.ClientID, secret, "")
			if slices.ContainsFunc(c.may, func(o of) bool { return o.role == target.role && slices.Equal(o.scopes, target.scopes) }) {
				require.Equal(t, http.StatusNoContent, a.Status, "%s: %s", what, a.Raw)
				require.ErrorIs(t, err, auth.ErrUnknownClient, what)
				continue
			}
			require.Equal(t, []any{http.StatusForbidden, "permission_denied"}, []any{a.Status, a.code()}, "%s: %s", what, a.Raw)
			require.NotEmpty(t, a.at("error", "details"), what)
			require.NoError(t, err, "%s: it goes on", what)
		}
	}
	narrow := w.newApp(w.tenant, "", all...)
	app, _, err := w.auth.CreateApp(t.Context(), auth.NewApp{Tenant: w.tenant, Name: "target", Scopes: all})
	require.NoError(t, err)
	path := fmt.Sprintf("/o/apps/%d/", app.ID)
	a := w.ok(http.StatusForbidden, "DELETE", path, nil, bearer(w.newToken(narrow, "read write")))
	require.Equal(t, []any{"read", "write", "admin"}, a.at("error", "details", "required_scopes"))
	require.Equal(t, []any{"read", "write"}, a.at("error", "details", "token_scopes"))
	w.ok(http.StatusNotFound, "DELETE", path, nil, w.anotherTenant())
	w.ok(http.StatusNoContent, "DELETE", path, nil, bearer(w.newToken(narrow, "")))
}

// TestO06_TokenLimitBehindProxies: over a real connection, with proxies that
// write the port and in more than one header.
func TestO06_TokenLimitBehindProxies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) {
		s.options = func(o *httpapi.Options) {
			o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
			l := httpapi.Limits{TokenPerMinute: 1}
			o.Limits = &l
		}
	})
	s := w.serve()
	ask := func(forwarded ...string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/o/token/", strings.NewReader(tokenFor(w.admin).Encode()))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header["X-Forwarded-For"] = forwarded
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, errors.Join(err, answer.Body.Close()))
		return answer.StatusCode
	}
	for _, c := range []struct {
		forwarded []string
		status    int
	}{
		{[]string{"203.0.113.1"}, 200},
		{[]string{"203.0.113.1:4711"}, 429},
		{[]string{"9.9.9.9", "203.0.113.1"}, 429},
		{[]string{"9.9.9.9, 203.0.113.1, 127.0.0.1"}, 429},
		{[]string{"203.0.113.2:80"}, 200},
		{[]string{"[2001:db8::1]:443"}, 200},
		{[]string{"2001:db8::2"}, 429},
		{[]string{"::ffff:203.0.113.2"}, 429},
		{nil, 200},
		{[]string{"nonsense"}, 429}, // what cannot be read counts as the proxy's own
		{[]string{""}, 429},
	} {
		require.Equal(t, c.status, ask(c.forwarded...), "%v", c.forwarded)
	}
}
