package httpapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
)

// TestMount serves the interface inside the routers that hosts use, beside a
// page of the host, and makes a round trip in each.
func TestMount(t *testing.T) {
	t.Parallel()
	hosts := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("the host's")) })
	for name, c := range map[string]struct {
		prefix string // of the handler's options
		base   string // where it is for clients
		mount  func(api http.Handler) http.Handler
	}{
		"alone": {"", "", func(api http.Handler) http.Handler { return api }},
		"ServeMux with Prefix": {"/pay", "/pay", func(api http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/pay/", api)
			m.Handle("/", hosts)
			return m
		}},
		"ServeMux, deep Prefix": {"/a/b", "/a/b", func(api http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/a/b/", api)
			return m
		}},
		"StripPrefix": {"", "/pay", func(api http.Handler) http.Handler {
			m := http.NewServeMux()
			m.Handle("/pay/", http.StripPrefix("/pay", api))
			m.Handle("/", hosts)
			return m
		}},
		"chi": {"/pay", "/pay", func(api http.Handler) http.Handler {
			m := chi.NewRouter()
			m.Handle("/pay/*", api)
			m.Handle("/*", hosts)
			return m
		}},
		"chi, mounted": {"/pay", "/pay", func(api http.Handler) http.Handler {
			m := chi.NewRouter()
			m.Mount("/pay", api)
			return m
		}},
		"gorilla": {"/pay", "/pay", func(api http.Handler) http.Handler {
			m := mux.NewRouter()
			m.PathPrefix("/pay/").Handler(api)
			m.PathPrefix("/").Handler(hosts)
			return m
		}},
		"echo": {"/pay", "/pay", func(api http.Handler) http.Handler {
			m := echo.New()
			m.Any("/pay/*", echo.WrapHandler(api))
			m.Any("/*", echo.WrapHandler(hosts))
			return m
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *setup) {
				s.options = func(o *httpapi.Options) { o.Prefix = c.prefix }
			})
			server := httptest.NewServer(c.mount(w.api))
			defer server.Close()
			w.roundTrip(server, c.base)
			if strings.HasPrefix(name, "ServeMux with") || name == "chi" || name == "gorilla" || name == "echo" || name == "StripPrefix" {
				res, err := server.Client().Get(server.URL + "/elsewhere")
				require.NoError(t, err)
				defer res.Body.Close()
				var page bytes.Buffer
				_, err = page.ReadFrom(res.Body)
				require.NoError(t, err)
				require.Equal(t, "the host's", page.String())
			}
		})
	}
}

// roundTrip gets a token, makes three payments and pages through the history by
// its absolute links.
func (w *world) roundTrip(server *httptest.Server, base string) {
	w.t.Helper()
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ask := func(method, address, token, media, body string) (int, map[string]any) {
		w.t.Helper()
		r, err := http.NewRequestWithContext(w.t.Context(), method, address, strings.NewReader(body))
		require.NoError(w.t, err)
		r.Header.Set("Content-Type", media)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := client.Do(r)
		require.NoError(w.t, err)
		defer res.Body.Close()
		var out map[string]any
		require.NoError(w.t, json.NewDecoder(res.Body).Decode(&out), "%s %s → %d", method, address, res.StatusCode)
		return res.StatusCode, out
	}
	at := server.URL + base
	status, token := ask("POST", at+"/o/token/", "", "application/x-www-form-urlencoded", tokenFor(w.admin).Encode())
	require.Equal(w.t, http.StatusOK, status)
	access := token["access_token"].(string)
	for _, path := range []string{"/payments/", "/payments", "/payments/"} {
		status, p := ask("POST", at+path, access, "application/json", `{"amount":"5","currency":"USDTERC20"}`)
		require.Equal(w.t, http.StatusCreated, status, "%v", p)
	}
	status, _ = ask("GET", at+"/payments/"+nothing+"/", access, "application/json", "")
	require.Equal(w.t, http.StatusMethodNotAllowed, status)
	status, _ = ask("GET", at+"/nothing/", access, "application/json", "")
	require.Equal(w.t, http.StatusNotFound, status)
	next, seen := at+"/transactions/transactions/?page_size=2", 0
	for pages := 0; next != ""; pages++ {
		require.Less(w.t, pages, 3)
		status, list := ask("GET", next, access, "application/json", "")
		require.Equal(w.t, http.StatusOK, status, "%v", list)
		seen += len(list["results"].([]any))
		if next, _ = list["next"].(string); next == "" {
			break
		}
		link, err := url.Parse(next)
		require.NoError(w.t, err)
		require.Equal(w.t, base+"/transactions/transactions/", link.Path, "%s: a link to the same place", next)
		require.Empty(w.t, link.Host)
		next = server.URL + next
	}
	require.Equal(w.t, 3, seen)
}
