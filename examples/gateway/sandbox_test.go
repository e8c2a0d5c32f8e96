package main

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSandboxGuideIsTrue: what the guide to sandbox outcomes shows is run from its page as it
// is shown, and each payment ends as the guide says.
func TestSandboxGuideIsTrue(t *testing.T) {
	t.Parallel()
	i := newInside(t, "ETH")
	server := httptest.NewServer(i.api)
	t.Cleanup(server.Close)
	rec := httptest.NewRecorder()
	i.api.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/docs/sandbox/", nil))
	page, err := io.ReadAll(rec.Body)
	require.NoError(t, err)
	run := map[string]bool{}
	listing := regexp.MustCompile(`(?s)<code id="code-([a-z]+)">(.*?)</code>`)
	steps := map[string]string{}
	for _, m := range listing.FindAllStringSubmatch(string(page), -1) {
		steps[m[1]] = html.UnescapeString(m[2])
	}
	require.Contains(t, string(page), "simulates its networks")
	for _, outcome := range []struct{ steps, status, suspense string }{
		{"pays", "confirming", ""},
		{"pays mine", "completed", ""},
		{"short", "waiting", ""},
		{"short mine expired", "expired", ""},
		{"over mine", "completed", ""},
		{"expired", "expired", ""},
		{"expired pays mine", "expired", "late"},
		{"wrong mine", "waiting", "wrong_asset"},
		{"pays reorg", "confirming", ""},
	} {
		p := i.ok("POST", "/payments/", map[string]any{"amount": "25", "currency": "USDTERC20", "order_id": outcome.steps})
		for _, step := range strings.Fields(outcome.steps) {
			require.NotEmpty(t, steps[step], "the guide does not show %q", step)
			cmd := exec.CommandContext(t.Context(), "bash", "-euc", steps[step])
			cmd.Env = append(os.Environ(), "BASE="+server.URL, "ADDRESS="+p["address"].(string), "DUE="+p["amount_crypto"].(string))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", step, out)
			run[step] = true
		}
		token, err := i.g.auth.Token(t.Context(), testClient, testSecret, "") // time has passed
		require.NoError(t, err)
		i.token = token.AccessToken
		now := i.ok("POST", "/payments/status/", map[string]any{"transaction_id": p["transaction_id"]})
		require.Equal(t, outcome.status, now["status"], outcome.steps)
		var reason any
		if all := now["suspense"].([]any); len(all) > 0 {
			reason = all[0].(map[string]any)["reason"]
		}
		if outcome.suspense != "" {
			require.Equal(t, outcome.suspense, reason, outcome.steps)
		}
	}
	for step := range steps {
		require.True(t, run[step], "%s is not run", step)
	}
}
