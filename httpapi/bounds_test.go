package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
)

// TestFS06_WalletsAreBounded: a tenant has no more wallets than is configured, and a list
// of them no more than it is asked for. One that is deleted makes room.
func TestFS06_WalletsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited, func(s *setup) { s.config = func(c *cryptopay.Config) { c.MaxWallets = 7 } })
	create := func(i int) answer {
		return w.do("POST", "/wallets/", map[string]any{"name": "w", "external_id": fmt.Sprint("w", i)})
	}
	var first answer
	for i := range 7 {
		a := create(i)
		require.Equal(t, http.StatusCreated, a.Status, a.Raw)
		if i == 0 {
			first = a
		}
	}
	for i := range 3 {
		a := create(100 + i)
		require.Equal(t, http.StatusBadRequest, a.Status, a.Raw)
		require.Equal(t, []string{"external_id"}, a.blamed())
		require.Contains(t, a.Raw, "7 wallets")
	}
	w.ok(http.StatusNoContent, "DELETE", fmt.Sprintf("/wallets/%s/", first.Body["wallet_id"]), nil)
	require.Equal(t, http.StatusCreated, create(200).Status)
	require.Equal(t, http.StatusBadRequest, create(201).Status)

	names := func(query string) (out []string) {
		a := w.ok(http.StatusOK, "GET", "/wallets/"+query, nil)
		require.Equal(t, "7", fmt.Sprint(a.Body["total"]))
		for _, v := range a.Body["accounts"].([]any) {
			out = append(out, v.(map[string]any)["external_id"].(string))
		}
		return out
	}
	all := names("")
	require.Equal(t, []string{"w1", "w2", "w3", "w4", "w5", "w6", "w200"}, all)
	require.Equal(t, all[:3], names("?limit=3"))
	require.Equal(t, all[3:6], names("?limit=3&offset=3"))
	require.Empty(t, names("?limit=3&offset=7"))
	for _, bad := range []string{"?limit=0", "?limit=1001", "?limit=x", "?offset=-1"} {
		w.ok(http.StatusBadRequest, "GET", "/wallets/"+bad, nil)
	}
}

// TestFA08_ApplicationsAreBounded: a merchant makes no more applications than is configured, and
// hears why. One that is deleted makes room.
func TestFA08_ApplicationsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	for range 98 {
		w.newApp(w.tenant, "")
	}
	last := w.ok(http.StatusCreated, "POST", "/o/apps/", map[string]any{"name": "the hundredth"})
	a := w.ok(http.StatusBadRequest, "POST", "/o/apps/", map[string]any{"name": "one more"})
	require.Equal(t, "invalid_request", a.code())
	require.Equal(t, []string{"name"}, a.blamed())
	require.Contains(t, a.Raw, "an account may have 100")
	w.ok(http.StatusNoContent, "DELETE", fmt.Sprintf("/o/apps/%s/", last.Body["id"]), nil)
	w.ok(http.StatusCreated, "POST", "/o/apps/", map[string]any{"name": "one more"})
	w.ok(http.StatusBadRequest, "POST", "/o/apps/", map[string]any{"name": "and another"})
}

// stuck is a receiver that does not take an answer until it is let go.
type stuck struct {
	*httptest.ResponseRecorder
	once sync.Once
	at   chan struct{}
	goOn chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.at) })
	<-s.goOn
	return s.ResponseRecorder.Write(b)
}

// TestFS06_OneReportAtATime: while a report of a tenant is made, another of it is refused
// with Retry-After, and nothing else is; other tenants have their own.
func TestFS06_OneReportAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.lines("aaaa", 7, nil)
	other := w.newToken(w.newApp(w.newTenant("other"), auth.TenantAdmin, auth.Read, auth.Write), "")
	s := &stuck{ResponseRecorder: httptest.NewRecorder(), at: make(chan struct{}), goOn: make(chan struct{})}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/transactions/export/", strings.NewReader(`{"format":"csv"}`))
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set("Content-Type", "application/json")
	var done sync.WaitGroup
	done.Go(func() { w.api.ServeHTTP(s, r) })
	<-s.at
	for range 5 {
		for _, again := range []answer{
			w.do("GET", "/transactions/stats/", nil), w.do("POST", "/transactions/export/", map[string]any{"format": "json"}),
		} {
			require.Equal(t, http.StatusTooManyRequests, again.Status, again.Raw)
			require.Equal(t, "rate_limit_exceeded", again.code())
			require.Positive(t, number(t, again.Header, "Retry-After"))
		}
	}
	w.ok(http.StatusOK, "GET", "/transactions/transactions/", nil)
	w.ok(http.StatusOK, "GET", "/transactions/stats/", nil, header("Authorization", "Bearer "+other))
	close(s.goOn)
	done.Wait()
	require.Equal(t, http.StatusOK, s.Code)
	for range 3 {
		w.ok(http.StatusOK, "GET", "/transactions/stats/", nil)
		w.ok(http.StatusBadRequest, "GET", "/transactions/stats/?date_from=x", nil) // nor does one that fails stay
	}
}
