package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// inbox is a merchant's receiver of webhooks: it keeps bodies that its own secret signed.
type inbox struct {
	secret string
	mu     sync.Mutex
	bodies []string
	forged int
}

func (b *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	if webhook.VerifyBody(r.Header, text, b.secret) != nil {
		b.forged++
		return
	}
	b.bodies = append(b.bodies, string(text))
}

// tells reports whether a webhook has named a text.
func (b *inbox) tells(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(strings.Join(b.bodies, "\n"), text)
}

// caller is a merchant's program with a token.
type caller struct {
	t           *testing.T
	base, token string
}

// login gets a token for an application; the answer's status says whether there is one.
func login(t *testing.T, base, id, secret string) (c caller, status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/o/token/", strings.NewReader("grant_type=client_credentials"))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(id, secret)
	answer, err := http.DefaultClient.Do(r) //nolint:forbidigo // a merchant's program
	require.NoError(t, err)
	defer answer.Body.Close()
	var out struct {
		Token string `json:"access_token"`
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&out))
	return caller{t, base, out.Token}, answer.StatusCode
}

func (c caller) do(method, path string, in any) (int, map[string]any) {
	c.t.Helper()
	text, err := json.Marshal(in)
	require.NoError(c.t, err)
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, bytes.NewReader(text))
	require.NoError(c.t, err)
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := http.DefaultClient.Do(r) //nolint:forbidigo // a merchant's program
	require.NoError(c.t, err)
	defer answer.Body.Close()
	out := map[string]any{}
	_ = json.NewDecoder(answer.Body).Decode(&out)
	return answer.StatusCode, out
}

func (c caller) ok(method, path string, in any) map[string]any {
	c.t.Helper()
	status, out := c.do(method, path, in)
	require.Less(c.t, status, 300, "%s %s: %v", method, path, out)
	return out
}

// buy has a customer pay a new payment in full.
func (c caller) buy(amount string) (id string) {
	c.t.Helper()
	p := c.ok("POST", "/payments/", body{"amount": amount, "currency": "BTC"})
	anybody := caller{c.t, c.base, ""}
	anybody.ok("POST", "/dev/pay", body{"address": p["address"], "currency": "BTC", "amount": p["amount_crypto"]})
	anybody.ok("POST", "/dev/mine", body{"blockchain": "BTC", "blocks": 8})
	return p["transaction_id"].(string)
}

// owns is what the master account has of bitcoins, "" = nothing.
func (c caller) owns() string {
	c.t.Helper()
	text, err := json.Marshal(c.ok("GET", "/user/balances/", nil))
	require.NoError(c.t, err)
	return string(text)
}

const twoTenants = `
listen: 127.0.0.1:0
store: env:STORE
key_file: pay.key
simulated: [BTC]
allow_private_callbacks: true
rate_limits: false
fees: {transaction: 0}
tenants:
  - id: bakery
    name: Bakery
    webhook: {url: "env:BAKERY_HOOK", secret: "env:BAKERY_SECRET"}
    applications:
      - {name: office, client_id: bakery-office, client_secret: "env:BAKERY_KEY"}
  - id: florist
    name: Florist
    webhook: {url: "env:FLORIST_HOOK", secret: "env:FLORIST_SECRET"}
    applications:
      - {name: office, client_id: florist-office, client_secret: "file:florist.key"}
`

// TestA08_TenantsOfTheFileAreApart: two merchants of one gateway, in a process as it is built,
// see, are told and own nothing of each other. One that the operator's command makes beside
// it is served at once.
func TestA08_TenantsOfTheFileAreApart(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(*testing.T) string{
		"sqlite":   func(*testing.T) string { return "sqlite:pay.db" },
		"postgres": func(t *testing.T) string { return testenv.Postgres(t).DSN("postgres") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name == "postgres" {
				t.Skip("a server of its own takes seconds")
			}
			dir := t.TempDir()
			boxes := map[string]*inbox{"bakery": {secret: "bakery-webhooks-secret-1"}, "florist": {secret: "florist-webhooks-secret-1"}}
			env := []string{"STORE=" + dsn(t), "BAKERY_KEY=bakery-key-0123456789", "BAKERY_SECRET=bakery-webhooks-secret-1", "FLORIST_SECRET=florist-webhooks-secret-1"}
			for tenant, box := range boxes {
				receiver := httptest.NewServer(box)
				t.Cleanup(receiver.Close)
				env = append(env, strings.ToUpper(tenant)+"_HOOK="+receiver.URL)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "pay.yaml"), []byte(twoTenants), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "florist.key"), []byte("florist-key-0123456789\n"), 0o600))

			g := start(t, dir, env, "-config", "pay.yaml")
			require.NotEmpty(t, g.base, g.errors.String())
			bakery, _ := login(t, g.base, "bakery-office", "bakery-key-0123456789")
			florist, _ := login(t, g.base, "florist-office", "florist-key-0123456789")
			empty := florist.owns()
			bread := bakery.buy("30")
			status, answer := florist.do("POST", "/payments/status/", body{"transaction_id": bread})
			require.Equal(t, http.StatusNotFound, status, answer)
			status, _ = florist.do("GET", "/payments/"+bread+"/deposits/", nil)
			require.Equal(t, http.StatusNotFound, status)
			require.Equal(t, "sending", early(bakery.ok("POST", "/payments/status/", body{"transaction_id": bread})["status"]))
			require.EqualValues(t, 0, florist.ok("GET", "/payments/", nil)["count"])
			require.Equal(t, empty, florist.owns())
			require.NotEqual(t, empty, bakery.owns())
			before := bakery.owns()
			roses := florist.buy("60")
			require.Equal(t, before, bakery.owns())
			require.NotEqual(t, before, florist.owns())
			require.Eventually(t, func() bool { return boxes["bakery"].tells(bread) && boxes["florist"].tells(roses) }, 20*time.Second, 50*time.Millisecond)
			require.False(t, boxes["bakery"].tells(roses) || boxes["florist"].tells(bread))
			require.Zero(t, boxes["bakery"].forged+boxes["florist"].forged)

			operate := func(args ...string) map[string]any {
				o := start(t, dir, env, append([]string{"-config", "pay.yaml", "operator"}, args...)...)
				require.Zero(t, o.code(), o.errors.String())
				out := map[string]any{}
				require.NoError(t, json.Unmarshal([]byte(strings.Join(o.out, "\n")), &out), o.out)
				return out
			}
			operate("tenants", "create", "-id", "grocer", "-name", "Grocer", "-reason", "a contract", "-json")
			made := operate("applications", "create", "-tenant", "grocer", "-name", "till", "-reason", "a contract", "-json")
			grocer, _ := login(t, g.base, made["client_id"].(string), made["client_secret"].(string))
			apples := grocer.buy("90")
			status, _ = bakery.do("POST", "/payments/status/", body{"transaction_id": apples})
			require.Equal(t, http.StatusNotFound, status)
			require.NotEqual(t, empty, grocer.owns())
			require.Equal(t, before, bakery.owns())

			next := operate("applications", "create", "-tenant", "grocer", "-name", "till 2", "-reason", "once a year", "-json")
			operate("applications", "delete", "-tenant", "grocer", fmt.Sprint(made["id"]), "-reason", "once a year", "-json")
			status, _ = grocer.do("GET", "/payments/", nil)
			require.Equal(t, http.StatusUnauthorized, status, "the old one is void at once")
			_, status = login(t, g.base, next["client_id"].(string), next["client_secret"].(string))
			require.Equal(t, http.StatusOK, status)
			g.stop(t)

			again := start(t, dir, env, "-config", "pay.yaml")
			require.NotEmpty(t, again.base, again.errors.String())
			bakery, _ = login(t, again.base, "bakery-office", "bakery-key-0123456789")
			require.Equal(t, before, bakery.owns())
			again.stop(t)
			for _, said := range []string{strings.Join(g.out, "\n"), g.errors.String(), strings.Join(again.out, "\n"), again.errors.String()} {
				for _, secret := range []string{"bakery-key-", "florist-key-", "-webhooks-secret-"} {
					require.NotContains(t, said, secret)
				}
			}
		})
	}
}

// early takes what may come after sending for it.
func early(status any) string {
	if status == "completed" || status == "confirmed" {
		return "sending"
	}
	return status.(string)
}

// TestA08_WrongFileOpensNothing: a process refuses a wrong file with its line, and makes neither
// a store nor a key.
func TestA08_WrongFileOpensNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pay.yaml"), []byte("store: sqlite:pay.db\nlistn: 127.0.0.1:0\n"), 0o600))
	g := start(t, dir, nil, "-config", "pay.yaml")
	require.Empty(t, g.base)
	require.Equal(t, 2, g.code())
	require.Contains(t, g.errors.String(), "pay.yaml:2:1: listn is no setting; the nearest is listen")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
}
