package client_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/client"
)

// TestCall: any operation can be called. One that reads is sent again after a failure, one that
// changes something is not.
func TestCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.newClient()
	var app struct {
		ID int64 `json:"id"`
	}
	require.NoError(t, c.Call(t.Context(), http.MethodPost, "/o/apps/", map[string]any{"name": "till"}, &app))
	require.Positive(t, app.ID)
	w.faults.plan(answerWith(http.StatusServiceUnavailable, nil, `{}`))
	var list []map[string]any
	require.NoError(t, c.Call(t.Context(), http.MethodGet, "/o/apps/", nil, &list))
	require.Len(t, list, 2)
	var whole []byte
	require.NoError(t, c.Call(t.Context(), http.MethodPost, "/transactions/export/", map[string]any{"format": "json"}, &whole))
	require.JSONEq(t, "[]", string(whole))
	w.faults.plan(answerWith(http.StatusServiceUnavailable, nil, `{}`))
	var refused *client.Error
	require.ErrorAs(t, c.Call(t.Context(), http.MethodPost, "/o/apps/", map[string]any{"name": "another"}, nil), &refused)
	require.NoError(t, c.Call(t.Context(), http.MethodGet, "/o/apps/?x=1", nil, &list))
	require.Len(t, list, 2, "it was sent once")
	require.ErrorContains(t, c.Call(t.Context(), http.MethodGet, "o/apps/", nil, nil), "slash")
}
