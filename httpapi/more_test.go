package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
)

type teaInput struct {
	Pot  string         `path:"pot"`
	Cups httpapi.Number `json:"cups" rule:"required"`
}

type teaView struct {
	Pot  string `json:"pot"`
	Cups string `json:"cups"`
}

// A host's own route is held to the same rules as the interface's.
func TestRoutesOfAHost(t *testing.T) {
	t.Parallel()
	tea := httpapi.Endpoint(httpapi.Route{
		Method: http.MethodPost, Path: "/tea/{pot}/", Name: "pourTea", Group: "Kitchen", About: "Pours tea.",
		Policy: httpapi.Policy{Access: httpapi.Bearer, Scopes: []string{"read"}, Limit: httpapi.LimitAPI, Style: httpapi.Standard},
		Status: http.StatusOK, Errors: []httpapi.Failure{{Status: http.StatusTeapot, Code: "teapot"}, {Status: http.StatusBadRequest, Code: "invalid_request"}},
	}, func(_ context.Context, c *httpapi.Call, in teaInput) (teaView, error) {
		switch {
		case in.Pot == "coffee":
			return teaView{}, httpapi.Fail(http.StatusTeapot, "teapot", "No coffee here.", nil)
		case in.Pot == "broken":
			return teaView{}, errors.New("shards: canary")
		case in.Cups.Decimal().Sign() <= 0:
			return teaView{}, httpapi.Invalid("cups", "must be greater than 0")
		}
		return teaView{in.Pot + " of " + c.Tenant(), in.Cups.Text}, nil
	})
	w := newWorld(t, func(s *setup) { s.options = func(o *httpapi.Options) { o.More = []httpapi.Route{tea} } })
	a := w.ok(http.StatusOK, "POST", "/tea/green", `{"cups": 2.50}`)
	require.Equal(t, map[string]any{"pot": "green of " + w.tenant, "cups": "2.50"}, a.Body)
	require.Equal(t, "teapot", w.ok(http.StatusTeapot, "POST", "/tea/coffee/", `{"cups": 1}`).code())
	require.NotContains(t, w.ok(http.StatusInternalServerError, "POST", "/tea/broken/", `{"cups": 1}`).Raw, "canary")
	a = w.ok(http.StatusBadRequest, "POST", "/tea/green/", `{"cups": "-1"}`)
	require.Contains(t, a.at("error", "details"), "cups")
	w.ok(http.StatusUnauthorized, "POST", "/tea/green/", `{"cups": 1}`, nobody())
	w.ok(http.StatusMethodNotAllowed, "GET", "/tea/green/", nil)

	_, err := httpapi.New(w.app, httpapi.Options{Auth: w.auth, More: []httpapi.Route{tea, tea}})
	require.ErrorContains(t, err, "twice")
	free := tea
	free.Policy = httpapi.Policy{}
	_, err = httpapi.New(w.app, httpapi.Options{Auth: w.auth, More: []httpapi.Route{free}})
	require.ErrorContains(t, err, "no policy")
}

// A route of a host that asks nobody who he is has the caller's idempotency key, too.
func TestPublicRouteOfAHostTakesAKey(t *testing.T) {
	t.Parallel()
	kettle := httpapi.Endpoint(httpapi.Route{
		Method: http.MethodPost, Path: "/kettle/{pot}/", Name: "boil", Group: "Kitchen", About: "Boils water.",
		Policy: httpapi.Policy{Access: httpapi.Public, Limit: httpapi.LimitNone, Style: httpapi.Standard},
		Status: http.StatusOK, Once: true,
	}, func(_ context.Context, c *httpapi.Call, in teaInput) (teaView, error) {
		return teaView{in.Pot, c.Key}, nil
	})
	w := newWorld(t, func(s *setup) { s.options = func(o *httpapi.Options) { o.More = []httpapi.Route{kettle} } })
	a := w.ok(http.StatusOK, "POST", "/kettle/green/", `{"cups": 1}`, nobody(), onceKey("k"))
	require.Equal(t, map[string]any{"pot": "green", "cups": "boil/k"}, a.Body)
}
