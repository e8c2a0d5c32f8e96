package stellartest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/nodes/stellartest"
)

// get asks the node for a path.
func get(t *testing.T, n *stellartest.Node, path string) (status int, answer map[string]any, header http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	n.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), path)
	return w.Code, answer, w.Header()
}

func records(answer map[string]any) []any {
	return answer["_embedded"].(map[string]any)["records"].([]any)
}

func TestProblemsAreHorizons(t *testing.T) {
	n := stellartest.New(t.Name(), "a network")
	n.Mine(3)
	n.Set(func(f *stellartest.Fault) { f.Earliest = 50_000_004 })
	for path, want := range map[string]string{
		"/ledgers/50000003":                          "410 before_history",
		"/ledgers/50000003/operations":               "404 not_found",
		"/ledgers/60000000":                          "404 not_found",
		"/ledgers/x":                                 "400 bad_request",
		"/ledgers?limit=201":                         "400 bad_request",
		"/ledgers?limit=0":                           "400 bad_request",
		"/ledgers?order=up":                          "400 bad_request",
		"/ledgers?cursor=-1":                         "400 bad_request",
		"/ledgers?order=desc&cursor=7":               "410 before_history",
		"/transactions/77":                           "400 bad_request",
		"/transactions/" + strings.Repeat("7", 64):   "404 not_found",
		"/accounts/G":                                "400 bad_request",
		"/accounts/" + stellartest.Address("nobody"): "404 not_found",
		"/accounts/" + stellartest.Address("nobody") + "/operations": "404 not_found",
		"/nothing": "404 not_found",
	} {
		status, answer, header := get(t, n, path)
		kind := answer["type"].(string)
		require.Equal(t, want, fmt.Sprint(status, " ", kind[strings.LastIndex(kind, "/")+1:]), path)
		require.Equal(t, "application/problem+json; charset=utf-8", header.Get("Content-Type"))
	}
	n.Set(func(f *stellartest.Fault) { f.Problem = "rate_limit_exceeded" })
	status, _, header := get(t, n, "/")
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, "36", header.Get("Retry-After"))
}

func TestListsAreHorizons(t *testing.T) {
	n := stellartest.New(t.Name(), "a network")
	bob := stellartest.Address("bob")
	for i := range 12 {
		n.Send(stellartest.Pay{To: bob, Stroops: 50_000_000, Fails: i == 5})
		n.Mine(1)
	}
	all := "/accounts/" + bob + "/transactions"
	for path, want := range map[string]int{
		all:                                    10,
		all + "?limit=200":                     11,
		all + "?limit=200&include_failed=true": 12,
		all + "?cursor=now":                    0,
		all + "?cursor=now&order=desc&limit=3": 3,
		"/accounts/" + bob + "/operations":     10,
		"/ledgers?limit=200&cursor=now":        0,
		"/ledgers?order=desc&limit=1":          1,
		"/operations/1/effects":                0,
		"/ledgers/50000007/operations":         1,
		"/ledgers/50000012/operations":         0,
		"/ledgers/50000012/operations?limit=1&include_failed=true&join=transactions": 1,
	} {
		status, answer, _ := get(t, n, path)
		require.Equal(t, http.StatusOK, status, path)
		require.Len(t, records(answer), want, path)
	}
	_, answer, _ := get(t, n, "/ledgers?order=desc&limit=1")
	require.EqualValues(t, 50_000_018, records(answer)[0].(map[string]any)["sequence"])
}
