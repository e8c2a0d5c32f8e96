package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// TestO02_RouteWithoutPolicyIsRefused: a line of the table that leaves open who
// may call it, how often, or how he is refused, fails New.
func TestO02_RouteWithoutPolicyIsRefused(t *testing.T) {
	t.Parallel()
	good := Route{
		Method: http.MethodGet, Path: "/x/", Name: "x", Group: "g", About: "a", Status: http.StatusOK,
		Policy: Policy{Access: Bearer, Scopes: []auth.Scope{auth.Read}, Limit: LimitAPI, Style: Standard},
		do:     endpoint(func(context.Context, *Call, none) (none, error) { return none{}, nil }),
	}
	require.NoError(t, good.check())
	for name, spoil := range map[string]func(*Route){
		"no policy":          func(r *Route) { r.Policy = Policy{} },
		"no access":          func(r *Route) { r.Access = "" },
		"no limit":           func(r *Route) { r.Limit = "" },
		"no style":           func(r *Route) { r.Style = "" },
		"no scope":           func(r *Route) { r.Scopes = nil },
		"key without scope":  func(r *Route) { r.Access, r.Scopes = BearerOrKey, nil },
		"scopes of nobody":   func(r *Route) { r.Access = Public },
		"roles of nobody":    func(r *Route) { r.Access, r.Scopes, r.Roles = Client, nil, []auth.Role{auth.TenantAdmin} },
		"role without scope": func(r *Route) { r.Scopes, r.Roles = nil, []auth.Role{auth.TenantAdmin} },
		"no method":          func(r *Route) { r.Method = "" },
		"no path":            func(r *Route) { r.Path = "" },
		"relative path":      func(r *Route) { r.Path = "x/" },
		"no name":            func(r *Route) { r.Name = "" },
		"no group":           func(r *Route) { r.Group = "" },
		"no about":           func(r *Route) { r.About = "" },
		"no status":          func(r *Route) { r.Status = 0 },
		"no endpoint":        func(r *Route) { r.do = operation{} },
	} {
		r := good
		spoil(&r)
		require.Error(t, r.check(), name)
	}
	var tree node
	require.NoError(t, tree.add(&good))
	again := good
	again.Path = "/x"
	require.Error(t, tree.add(&again), "the same path, written otherwise")
}

// TestDocumentRefusesOtherParameters: an input that names what its path does not
// have is a mistake of the table.
func TestDocumentRefusesOtherParameters(t *testing.T) {
	t.Parallel()
	type input struct {
		ID string `path:"id"`
	}
	do := endpoint(func(context.Context, *Call, input) (none, error) { return none{}, nil })
	require.NoError(t, matches(&Route{Path: "/x/{id}/", do: do}))
	require.Error(t, matches(&Route{Path: "/x/{wallet_id}/", do: do}))
	require.Error(t, matches(&Route{Path: "/x/", do: do}))
}

// TestHandingOverCanBeAskedAgain: a cancellation that comes at the wrong moment is
// no error of ours and no verdict either.
func TestHandingOverCanBeAskedAgain(t *testing.T) {
	t.Parallel()
	a, known := toAnswer(fmt.Errorf("cancel: %w", withdrawal.ErrHandingOver))
	require.True(t, known)
	require.Equal(t, http.StatusServiceUnavailable, a.Status)
	require.Equal(t, "service_unavailable", a.Code)
}

// A withdrawal whose rows were edited cannot be cancelled, and the answer says so: it is no
// internal error.
func TestFS02_AlteredWithdrawalIsAConflict(t *testing.T) {
	t.Parallel()
	a, known := toAnswer(fmt.Errorf("%w: it names another tenant", withdrawal.ErrAltered))
	require.True(t, known)
	require.Equal(t, []any{http.StatusConflict, "invalid_state"}, []any{a.Status, a.Code})
	require.NotContains(t, a.Message, "tenant", "the difference is for the operator")
}
