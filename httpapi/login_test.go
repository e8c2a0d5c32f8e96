package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// sessions is a host's login by cookie.
type sessions map[string]auth.Identity

var errSessions = errors.New("the table of sessions is away")

func (s sessions) Identify(r *http.Request) (auth.Identity, bool, error) {
	cookie, err := r.Cookie("session")
	if err != nil {
		return auth.Identity{}, false, nil //nolint:nilerr // there is no cookie
	}
	who, ok := s[cookie.Value]
	switch {
	case cookie.Value == "broken":
		return auth.Identity{}, false, errSessions
	case !ok:
		return auth.Identity{}, false, fmt.Errorf("session: %w", auth.ErrToken)
	}
	return who, true, nil
}

// loggedIn asks with a session's cookie.
func loggedIn(api http.Handler, session, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if session != "" {
		r.AddCookie(&http.Cookie{Name: "session", Value: session})
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w
}

// E02: a host's own login is enough on every route, alone or beside tokens.
func TestFE02_HostsOwnLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := []auth.Scope{auth.Read, auth.Write, auth.Admin}
	host := sessions{
		"owner":  {Tenant: w.tenant, Client: "user 1", Scopes: all, Role: auth.GlobalAdmin},
		"signs":  {Tenant: w.tenant, Client: "user 3", Scopes: all, Role: auth.Approver},
		"reader": {Tenant: w.tenant, Client: "user 2", Scopes: []auth.Scope{auth.Read}},
		"nobody": {Scopes: all},
	}
	alone, err := httpapi.New(w.app, httpapi.Options{Login: host})
	require.NoError(t, err)
	both, err := httpapi.New(w.app, httpapi.Options{Login: host, Auth: w.auth})
	require.NoError(t, err)
	_, err = httpapi.New(w.app, httpapi.Options{})
	require.ErrorContains(t, err, "Options.Login")

	for _, api := range []*httpapi.Handler{alone, both} {
		routes := 0
		for _, r := range api.Routes() {
			if r.Access != httpapi.Bearer && r.Access != httpapi.BearerOrKey {
				continue
			}
			routes++
			path := r.Path
			for strings.Contains(path, "{") {
				path = path[:strings.Index(path, "{")] + "1" + path[strings.Index(path, "}")+1:]
			}
			require.Equal(t, http.StatusUnauthorized, loggedIn(api, "", r.Method, path, "").Code, r.Name)
			require.Equal(t, http.StatusUnauthorized, loggedIn(api, "ended", r.Method, path, "").Code, r.Name)
			require.Equal(t, http.StatusInternalServerError, loggedIn(api, "broken", r.Method, path, "").Code, r.Name)
			require.Equal(t, http.StatusInternalServerError, loggedIn(api, "nobody", r.Method, path, "").Code, r.Name)
			if r.Method != http.MethodGet {
				require.Equal(t, http.StatusForbidden, loggedIn(api, "owner", r.Method, path, "", "Sec-Fetch-Site", "cross-site").Code, "%s: another site's page sends it", r.Name)
				require.Equal(t, http.StatusForbidden, loggedIn(api, "reader", r.Method, path, "").Code, r.Name)
			}
			as := "owner"
			if slices.Contains(r.Roles, auth.Approver) {
				as = "signs"
			}
			if r.Name != "deleteApp" {
				require.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, loggedIn(api, as, r.Method, path, "").Code, r.Name)
			}
		}
		require.Greater(t, routes, 30)
	}

	made := func(api http.Handler, session, key string) (id string, replayed bool) {
		a := loggedIn(api, session, http.MethodPost, "/payments/", `{"amount":"25","currency":"USDTERC20"}`, "Idempotency-Key", key)
		require.Equal(t, http.StatusCreated, a.Code, a.Body.String())
		var out struct {
			ID string `json:"transaction_id"`
		}
		require.NoError(t, json.Unmarshal(a.Body.Bytes(), &out))
		return out.ID, a.Header().Get("Idempotent-Replayed") == "true"
	}
	first, replayed := made(alone, "owner", "k")
	require.False(t, replayed)
	again, replayed := made(both, "owner", "k")
	require.True(t, replayed)
	require.Equal(t, first, again)

	// Beside a login, tokens work as ever; without Auth there are none.
	bearer := []string{"Authorization", "Bearer " + w.token}
	require.Equal(t, http.StatusOK, loggedIn(both, "", http.MethodGet, "/payments/", "", bearer...).Code)
	require.Equal(t, http.StatusUnauthorized, loggedIn(alone, "", http.MethodGet, "/payments/", "", bearer...).Code)
	require.Equal(t, http.StatusNotFound, loggedIn(alone, "", http.MethodPost, "/o/token/", "").Code)
	document := loggedIn(alone, "", http.MethodGet, "/openapi.json", "").Body.String()
	require.NotContains(t, document, "/o/token/")
	require.NotContains(t, document, "clientCredentials")
	require.Contains(t, document, "/payments/")
}

// TestFE02_LimitsOfTwoMerchantsUsers: hosts name their users as they like, and two merchants
// may each have an "admin". The requests of one do not use up the other's limit.
func TestFE02_LimitsOfTwoMerchantsUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	both := []auth.Scope{auth.Read, auth.Write}
	host := sessions{
		"shop":   {Tenant: w.tenant, Client: "admin", Scopes: both},
		"other":  {Tenant: w.newTenant("other"), Client: "admin", Scopes: both},
		"barred": {Tenant: w.tenant, Client: "barred"},
	}
	api, err := httpapi.New(w.app, httpapi.Options{Login: host, Limits: &httpapi.Limits{PerHour: 2}})
	require.NoError(t, err)
	for _, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		require.Equal(t, want, loggedIn(api, "shop", http.MethodGet, "/payments/", "").Code)
	}
	require.Equal(t, http.StatusOK, loggedIn(api, "other", http.MethodGet, "/payments/", "").Code)

	a := loggedIn(api, "barred", http.MethodGet, "/payments/", "")
	require.Equal(t, http.StatusForbidden, a.Code)
	require.Contains(t, a.Body.String(), `"token_scopes":[]`, "an array, as the contract says")
}
