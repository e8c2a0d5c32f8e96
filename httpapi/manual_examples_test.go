package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/httpapi/internal/manual"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

var update = flag.Bool("update", false, "write the answers of the manual's examples")

const recordedFile = "internal/manual/answers.json"

// recording is what recordedFile has.
type recording struct {
	Values  map[string]string          `json:"values"`
	Answers map[string]manual.Recorded `json:"answers"`
}

// stage is a service that the examples are sent to, in the manual's order.
type stage struct {
	*world
	manual *manual.Manual
	server *httptest.Server
	values map[string]string      // by name, as this service made them
	who    map[string]credentials // by Example.As

	mu     sync.Mutex
	due    []manual.Example
	wrong  []string // what was not as the manual says
	stable *stable
	got    recording
}

// newStage prepares what the examples speak of.
func newStage(t *testing.T) *stage {
	t.Helper()
	w := newWorld(t, unlimited, func(s *setup) {
		s.networks = []chain.Network{"ETH", "BTC", "ARB", "BASE", "OPTIMISM"}
		s.real = true // what readers paste, gateways take
		inner := s.options
		s.options = func(o *httpapi.Options) {
			inner(o)
			o.BaseURL = "https://pay.example.com"
			o.CheckoutURL = func(string, string) string { return "https://pay.example.com/checkout/the-link-of-this-payment" }
		}
		s.config = func(c *cryptopay.Config) {
			c.SealEvery = 5 * time.Minute
			coldOn(t, "BASE", "OPTIMISM")(c)
			c.Withdrawals.Policy = func(_ context.Context, w withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
				if strings.HasPrefix(w.CustomID, "ask-") {
					return withdrawal.AskReview, "new supplier", nil
				}
				return withdrawal.Allow, "", nil
			}
		}
	})
	s := &stage{world: w, manual: w.api.(*httpapi.Handler).Manual(), values: map[string]string{}, due: manual.Examples(), stable: newStable()}
	s.got = recording{map[string]string{}, map[string]manual.Recorded{}}
	s.who = map[string]credentials{"": w.admin, "public": w.admin, "approver": w.newApp(w.tenant, auth.Approver), "operator": w.newApp(w.tenant, auth.GlobalAdmin, auth.Read, auth.Write)}
	s.prepare()
	for _, name := range slices.Sorted(maps.Keys(s.values)) { // in the same order each time
		s.got.Values[name] = s.stable.text(s.values[name], s.values)
	}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// prepare makes the values.
func (s *stage) prepare() {
	post := func(status int, path string, body map[string]any, field string) string {
		s.clock.Advance(time.Second)
		return fmt.Sprint(s.ok(status, "POST", path, body).Body[field])
	}
	v := s.values
	s.fund(s.tenant)
	v["wallet"] = post(http.StatusCreated, "/wallets/", map[string]any{"name": "Branch Porto", "external_id": "porto"}, "wallet_id")
	v["empty"] = post(http.StatusCreated, "/wallets/", map[string]any{"name": "Stand at the fair", "external_id": "fair"}, "wallet_id")
	v["paid"], _ = s.ordered(map[string]any{"amount": "100", "currency": "USDTERC20", "order_id": "1000", "callback_url": "https://shop.example.com/hook"}, true)
	s.ordered(map[string]any{"amount": "50", "currency": "USDTERC20", "order_id": "998", "wallet_id": "porto"}, true)
	for _, c := range []string{"ETHARB", "ETHBASE"} {
		s.ordered(map[string]any{"amount": "300", "currency": c}, true)
	}
	_, late := s.ordered(map[string]any{"amount": "25", "currency": "USDTERC20", "order_id": "999", "expiry_minutes": 5}, false)
	s.passes(30)
	s.transfer("USDTERC20", late, "25")
	s.passes(15)
	v["suspense"] = list(s.t.(*testing.T), s.ok(http.StatusOK, "GET", "/suspense/", nil), "suspense")[0]["suspense_id"].(string)

	v["customer"] = s.elsewhere()
	out := func(amount, currency, id string, network chain.Network) string {
		return post(http.StatusCreated, "/withdrawal/", map[string]any{
			"amount": amount, "currency": currency, "custom_id": id, "address": string(s.chains[network].Customer("supplier")),
		}, "withdrawal_id")
	}
	v["withdrawal"] = out("15", "USDTERC20", "invoice-7", "ETH")
	s.passes(15)
	v["asked"], v["asked_too"] = out("5", "USDTERC20", "ask-9", "ETH"), out("5", "USDTERC20", "ask-10", "ETH")
	s.step()
	v["stuck"] = out("0.01", "ETHARB", "invoice-8", "ARB")
	s.step()
	s.chains["ARB"].SetFeeLevel(40 * s.chains["ARB"].FeeLevel())
	s.nonceGap()
	s.waitingSweep()
	v["pending"] = out("4", "USDTERC20", "invoice-11", "ETH")

	to := string(s.chains["ETH"].Customer("supplier"))
	v["payout"] = post(http.StatusCreated, "/payouts/", map[string]any{"withdrawals": []map[string]any{
		{"amount": "3", "currency": "USDTERC20", "custom_id": "wages-carl", "address": to}, {"amount": "2", "currency": "USDTERC20", "custom_id": "wages-dora", "address": to},
	}}, "payout_id")

	v["refund"] = post(http.StatusCreated, "/payments/"+v["paid"]+"/refunds/", map[string]any{"amount": "8"}, "refund_id")
	claim := s.ok(http.StatusCreated, "POST", "/payments/"+v["paid"]+"/refunds/", map[string]any{"amount": "9"}).Body["claim_url"].(string)
	v["claim"] = regexp.MustCompile(`/claim/([^/]+)`).FindStringSubmatch(claim)[1]
	v["payment"] = post(http.StatusCreated, "/payments/", map[string]any{"amount": "40", "currency": "BTC", "order_id": "1002"}, "transaction_id")
	v["app"] = fmt.Sprint(s.ok(http.StatusCreated, "POST", "/o/apps/", map[string]any{"name": "An old till"}).Body["id"])
	v["address"] = post(http.StatusCreated, "/addresses/", map[string]any{"external_id": "customer-16", "currency": "USDTERC20"}, "address_id")
	v["delivery"] = list(s.t.(*testing.T), s.ok(http.StatusOK, "GET", "/webhooks/deliveries/?object_id="+v["paid"], nil), "deliveries")[0]["delivery_id"].(string)
	v["old_token"] = s.newToken(s.admin, "")
	s.refills()
}

// refills leaves a proposal of a refill, and what is signed of the next one.
func (s *stage) refills() {
	ctx, v := s.t.Context(), s.values
	v["tenant"] = s.tenant
	s.cooled("ETHBASE", "ETHOPTIMISM")
	why := cryptopay.Call{By: "test", Reason: "payouts wait"}
	const amount = 10_000_000
	_, _, err := s.app.Operate.ProposeRefill(ctx, s.tenant, "ETHOPTIMISM", amount, why)
	require.NoError(s.t, err)
	why.DryRun = true
	next, _, err := s.app.Operate.ProposeRefill(ctx, s.tenant, "ETHBASE", amount, why)
	require.NoError(s.t, err)
	v["signed"] = signCold(s.t, string(next.Payload))
}

// ordered is a payment, and what is due is sent at once where paid says so.
func (s *stage) ordered(body map[string]any, paid bool) (id, address string) {
	s.clock.Advance(time.Second)
	p := s.ok(http.StatusCreated, "POST", "/payments/", body).Body
	if paid {
		s.transfer(p["currency"].(string), p["address"].(string), p["amount_crypto"].(string))
	}
	return p["transaction_id"].(string), p["address"].(string)
}

// passes is time with n blocks, after which there is a new token.
func (s *stage) passes(n int) {
	s.mine(n)
	s.token = s.newToken(s.admin, "")
}

// nonceGap leaves a withdrawal behind a nonce that no transaction has.
func (s *stage) nonceGap() {
	hot, err := s.app.Hot(s.t.Context(), "BASE", s.tenant)
	require.NoError(s.t, err)
	s.values["hot"] = string(hot)
	s.chains["BASE"].Front().LieNonce(1)
	s.ok(http.StatusCreated, "POST", "/withdrawal/", map[string]any{"amount": "0.01", "currency": "ETHBASE", "address": string(s.chains["BASE"].Customer("supplier"))})
	s.step()
	s.chains["BASE"].Front().LieNonce(0)
	s.passes(5)
}

// waitingSweep leaves a deposit that waits to be forwarded.
func (s *stage) waitingSweep() {
	ctx, why := s.t.Context(), cryptopay.Call{By: "test", Reason: "the node is being replaced"}
	_, err := s.app.Operate.Halt(ctx, cryptopay.HaltScope{Network: "OPTIMISM"}, why)
	require.NoError(s.t, err)
	s.ordered(map[string]any{"amount": "100", "currency": "ETHOPTIMISM", "order_id": "1003"}, true)
	s.passes(30)
	waiting, err := s.app.Treasury.Waiting(ctx, s.tenant, "OPTIMISM", 10, 0)
	require.NoError(s.t, err)
	require.Len(s.t, waiting, 1)
	s.values["sweep"] = waiting[0].Sweep
	_, err = s.app.Operate.Lift(ctx, cryptopay.HaltScope{Network: "OPTIMISM"}, why)
	require.NoError(s.t, err)
}

// ServeHTTP answers, and holds each example to what the manual says of it.
func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.complain("%s %s: %v", r.Method, r.URL, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	name := s.next(r, body)
	rec := httptest.NewRecorder()
	s.api.ServeHTTP(rec, r)
	if name != "" {
		s.clock.Advance(time.Second) // lists show what is newer first
		s.due = s.due[1:]
		s.record(name, rec)
	} else if rec.Code >= 400 {
		s.complain("%s %s is not what the manual shows next, and is refused: %s", r.Method, r.URL, rec.Body)
	}
	for k, values := range rec.Header() {
		w.Header()[k] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func (s *stage) complain(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// next is the operation of the next example, if a request is for it.
func (s *stage) next(r *http.Request, body []byte) string {
	if len(s.due) == 0 {
		return ""
	}
	name := s.due[0].Operation
	e, at, err := s.manual.Filled(name, s.values)
	require.NoError(s.t, err)
	want, err := url.Parse(at)
	require.NoError(s.t, err)
	route := s.route(name)
	if r.Method != route.Method || r.URL.Path != want.Path {
		return ""
	}
	if r.URL.Query().Encode() != want.Query().Encode() {
		s.complain("%s: the query is %s, and the manual shows %s", name, r.URL.RawQuery, want.RawQuery)
	}
	if e.Key != r.Header.Get("Idempotency-Key") {
		s.complain("%s: the key is %q", name, r.Header.Get("Idempotency-Key"))
	}
	if e.Body != "" && !sameJSON(e.Body, string(body)) {
		s.complain("%s: the body is %s, and the manual shows %s", name, body, e.Body)
	}
	return name
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

func (s *stage) route(name string) httpapi.Route {
	for _, r := range s.routes() {
		if r.Name == name {
			return r
		}
	}
	require.Fail(s.t, "no such operation", name)
	return httpapi.Route{}
}

// record keeps an answer with everything made stable that is made anew each time.
func (s *stage) record(name string, rec *httptest.ResponseRecorder) {
	if want := s.route(name).Status; rec.Code != want {
		s.complain("%s: %d %s", name, rec.Code, rec.Body)
	}
	got := manual.Recorded{Status: rec.Code}
	switch text := rec.Body.String(); {
	case name == "getOpenAPI" || name == "getDocs" || name == "getDocsPage": // long, and shown elsewhere
		got.Text = "…"
	case strings.HasPrefix(rec.Header().Get("Content-Type"), "application/json"):
		got.JSON = json.RawMessage(strings.TrimSpace(s.stable.text(text, s.values)))
	default:
		got.Text = s.stable.text(text, s.values)
	}
	s.got.Answers[name] = got
}

// done holds what was sent and answered to what is recorded.
func (s *stage) done(t *testing.T, output []byte, err error) recording {
	t.Helper()
	require.NoError(t, err, "%s\n%s", strings.Join(s.wrong, "\n"), output)
	require.Empty(t, s.wrong, "%s", output)
	if len(s.due) > 0 {
		require.Fail(t, "not all were sent", "%s was not, as the manual shows it: %s", s.due[0].Operation, output)
	}
	return s.got
}

// stable makes texts that are the same in every run.
type stable struct {
	seen map[string]string
}

func newStable() *stable { return &stable{map[string]string{}} }

var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[57][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	hashes  = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	secrets = []struct{ field, shown string }{
		{"access_token", "at_the-token-of-this-example"},
		{"client_secret", "cs_the-secret-shown-this-once"},
		{"client_id", "ci_the-client-of-this-example"},
		{"secret", "ws_the-secret-shown-this-once"},
		{"webhook_secret_masked", "ws_…once"},
		{"masked_secret", "ws_…once"},
		{"by", "ci_the-client-of-this-example"},
		{"requested_by", "ci_the-client-of-this-example"},
	}
	claims    = regexp.MustCompile(`/claim/[^/"]+/`)
	durations = regexp.MustCompile(`"duration_ms":\d+`)
	proofs    = regexp.MustCompile(`"(leaf|before|after)":"[0-9a-f]{65,}"`)
)

func (s *stable) text(text string, values map[string]string) string {
	text = strings.NewReplacer(values["claim"], "ct_the-token-of-the-link", values["old_token"], "at_the-token-to-revoke").Replace(text)
	for _, f := range secrets {
		text = regexp.MustCompile(`"`+f.field+`":"[^"]*"`).ReplaceAllStringFunc(text, func(was string) string {
			if strings.Contains(was, "**") {
				return `"` + f.field + `":"********"`
			}
			return `"` + f.field + `":"` + f.shown + `"`
		})
	}
	text = claims.ReplaceAllString(text, "/claim/ct_the-token-of-the-link/")
	text = durations.ReplaceAllString(text, `"duration_ms":12`)
	text = proofs.ReplaceAllString(text, `"$1":"0000000000000010…"`)
	text = uuids.ReplaceAllStringFunc(text, func(id string) string { return s.nth(id, "01890a5d-ac96-774b-bcce-%012d") })
	return hashes.ReplaceAllStringFunc(text, func(id string) string { return s.nth(id, "%064d") })
}

// nth is a made-up text for the nth of its kind.
func (s *stable) nth(id, format string) string {
	if s.seen[id] == "" {
		n := 1
		for _, shown := range s.seen {
			if len(shown) == len(id) {
				n++
			}
		}
		s.seen[id] = fmt.Sprintf(format, n)
	}
	return s.seen[id]
}

// environment is what the programs read.
func (s *stage) environment() []string {
	out := append(os.Environ(), "BASE="+s.server.URL)
	for as, c := range s.who {
		name := strings.ToUpper(as)
		if name != "" {
			name += "_"
		}
		out = append(out, name+"TOKEN="+s.newToken(c, ""), name+"CLIENT_ID="+c.id, name+"CLIENT_SECRET="+c.secret)
	}
	return out
}

// snippet is an example with this service's values.
func (s *stage) snippet(e *manual.Example, in manual.Language) string {
	text, err := s.manual.Snippet(e.Operation, in, s.values)
	require.NoError(s.t, err)
	return text
}

// TestManual_EveryExampleRuns: each operation has an example, and what the pages show in curl,
// Go and TypeScript is sent as it is shown; the three send the same, and get the answer that
// the pages show.
func TestManual_EveryExampleRuns(t *testing.T) {
	t.Parallel()
	kept, err := os.ReadFile(recordedFile)
	require.NoError(t, err)
	var want recording
	require.NoError(t, json.Unmarshal(kept, &want))
	s := newStage(t)
	shown := map[string]bool{}
	for _, e := range manual.Examples() {
		shown[e.Operation] = true
	}
	for _, r := range s.routes() {
		require.True(t, shown[r.Name], "%s has no example", r.Name)
	}
	out, err := s.curl()
	got := s.done(t, out, err)
	if *update {
		var raw bytes.Buffer
		e := json.NewEncoder(&raw)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		require.NoError(t, e.Encode(got))
		require.NoError(t, os.WriteFile(recordedFile, raw.Bytes(), 0o600))
		want = got
	}
	same(t, want, got)
	for name, run := range map[string]func(*stage) ([]byte, error){"Go": (*stage).goProgram, "TypeScript": (*stage).typeScript} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			out, err := run(s)
			same(t, want, s.done(t, out, err))
		})
	}
}

func same(t *testing.T, want, got recording) {
	t.Helper()
	require.Equal(t, want.Values, got.Values, "go test ./httpapi -run TestManual -update writes what the pages show")
	for name, a := range got.Answers {
		require.Equal(t, want.Answers[name].Status, a.Status, name)
		require.Equal(t, want.Answers[name].Text, a.Text, name)
		if a.JSON != nil {
			require.JSONEq(t, string(want.Answers[name].JSON), string(a.JSON), "%s: go test ./httpapi -run TestManual -update writes what the pages show", name)
		}
	}
	require.Len(t, want.Answers, len(got.Answers))
}

// curl sends all examples from one shell.
func (s *stage) curl() ([]byte, error) {
	var script strings.Builder
	script.WriteString("set -euo pipefail\nMERCHANT=$TOKEN\n")
	for _, e := range manual.Examples() {
		token := "$MERCHANT"
		if e.As != "" {
			token = "$" + strings.ToUpper(e.As) + "_TOKEN"
		}
		fmt.Fprintf(&script, "TOKEN=%s\n%s >/dev/null || { echo %q failed; exit 1; }\n", token, s.snippet(&e, manual.Curl), e.Operation)
	}
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", script.String())
	cmd.Env = s.environment()
	return cmd.CombinedOutput()
}

// goProgram sends all examples from one program, which is compiled.
func (s *stage) goProgram() ([]byte, error) {
	var program strings.Builder
	program.WriteString(`package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/cryptopay-go/cryptopay/httpapi/client"
)

var (
	ctx                            = context.Background()
	httpClient                     = http.DefaultClient
	base, clientID, clientSecret   = os.Getenv("BASE"), os.Getenv("CLIENT_ID"), os.Getenv("CLIENT_SECRET")
)

func use(...any) {}

func as(who string) *client.Client {
	c, err := client.New(client.Options{BaseURL: base, ClientID: os.Getenv(who + "CLIENT_ID"), ClientSecret: os.Getenv(who + "CLIENT_SECRET")})
	if err == nil {
		_, err = c.Balances(ctx) // so that it has its token
	}
	must("as "+who, err)
	return c
}

func must(name string, err error) {
	if err != nil {
		fmt.Println(name+":", err)
		os.Exit(1)
	}
}

func main() {
	use(url.Values{}, strings.NewReader)
	clients := map[string]*client.Client{"": as(""), "public": as("PUBLIC_"), "approver": as("APPROVER_"), "operator": as("OPERATOR_")}
`)
	for _, e := range manual.Examples() {
		text := s.snippet(&e, manual.Go)
		names := "err"
		for line := range strings.Lines(text) {
			if left, _, ok := strings.Cut(line, " := "); ok && !strings.HasPrefix(line, "\t") {
				names += ", " + left
			}
		}
		fmt.Fprintf(&program, "\tfunc(c *client.Client) {\n%s\n\tuse(c, %s)\n\tmust(%q, err)\n\t}(clients[%q])\n", text, names, e.Operation, e.As)
	}
	program.WriteString("}\n")
	file := filepath.Join(s.t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program.String()), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(s.t.Context(), "go", "run", file)
	cmd.Env, cmd.Dir = s.environment(), ".."
	return cmd.CombinedOutput()
}

// typeScript sends all examples from one program, whose types are made of this service's
// document.
func (s *stage) typeScript() ([]byte, error) {
	modules, err := filepath.Abs("../.tools/typescript/node_modules")
	if err == nil {
		_, err = os.Stat(modules + "/openapi-fetch")
	}
	if err != nil {
		if os.Getenv("CRYPTOPAY_TEST_FULL") == "" {
			s.t.Skip("SKIPPED: ./test.sh tools installs what examples/typescript needs")
		}
		return nil, err
	}
	var program strings.Builder
	program.WriteString(`import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const base = process.env["BASE"] ?? "";
const clientID = process.env["CLIENT_ID"] ?? "", clientSecret = process.env["CLIENT_SECRET"] ?? "";
const as = (who: string) => createClient<paths>({ baseUrl: base, headers: { Authorization: "Bearer " + process.env[who + "TOKEN"] } });
type Client = ReturnType<typeof as>;
`)
	for _, e := range manual.Examples() {
		who := strings.ToUpper(e.As)
		if who != "" {
			who += "_"
		}
		fmt.Fprintf(&program, "await (async (api: Client) => { {\n%s\n} })(as(%q));\n", s.snippet(&e, manual.TypeScript), who)
	}
	dir := s.t.TempDir()
	files := map[string]string{
		"examples.ts": program.String(), "openapi.json": s.ok(http.StatusOK, "GET", "/openapi.json", nil).Raw,
		"package.json":  `{"type": "module"}`,
		"tsconfig.json": `{"compilerOptions": {"strict": true, "noUncheckedIndexedAccess": true, "exactOptionalPropertyTypes": true, "target": "es2022", "module": "nodenext", "moduleResolution": "nodenext", "types": ["node"], "skipLibCheck": true, "outDir": "out"}, "files": ["examples.ts"]}`,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", "node_modules/.bin/openapi-typescript openapi.json -o schema.d.ts >/dev/null && node_modules/.bin/tsc && node out/examples.js")
	cmd.Env, cmd.Dir = s.environment(), dir
	return cmd.CombinedOutput()
}
