package httpapi_test

import (
	"encoding/json"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/httpapi/internal/manual"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// manualPages are the paths of all pages of the manual.
func (w *world) manualPages() []string {
	out := []string{"/docs/", "/docs/search/"}
	for _, r := range w.routes() {
		out = append(out, "/docs/"+r.Name+"/")
	}
	for _, g := range manual.Guides {
		out = append(out, "/docs/"+g.Name+"/")
	}
	return append(out, "/docs/"+webhook.PaymentStatusUpdate+"/", "/docs/"+webhook.WithdrawalStatusUpdate+"/")
}

var (
	hrefs = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
	ids   = regexp.MustCompile(`id="([^"]*)"`)
)

// TestManual_PagesStandAlone: each page is small, has all that it links to, runs and fetches
// nothing of others, and is served under a policy that would not let it.
func TestManual_PagesStandAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited, func(s *setup) {
		inner := s.options
		s.options = func(o *httpapi.Options) {
			inner(o)
			o.Prefix, o.BaseURL = "/pay", "https://pay.example.com"
		}
	})
	got := map[string]string{}
	fetch := func(path string) string {
		if got[path] == "" {
			a := w.ok(http.StatusOK, http.MethodGet, path, nil, nobody())
			require.Equal(t, manual.Policy, a.Header.Get("Content-Security-Policy"), path)
			got[path] = a.Raw
		}
		return got[path]
	}
	for _, path := range w.manualPages() {
		path = "/pay" + path
		text := fetch(path)
		weight := len(text)
		for _, never := range []string{"<script>", "<style", "style=", "javascript:", " onclick", "//cdn", "@import"} {
			require.NotContains(t, text, never, path)
		}
		shown := map[string]bool{}
		for _, id := range ids.FindAllStringSubmatch(text, -1) {
			require.False(t, shown[id[1]], "%s: #%s is there twice", path, id[1])
			shown[id[1]] = true
		}
		for _, h := range hrefs.FindAllStringSubmatch(text, -1) {
			to, err := url.Parse(html.UnescapeString(h[1]))
			require.NoError(t, err)
			require.Empty(t, to.Host, "%s: %s", path, to)
			at := (&url.URL{Path: path}).ResolveReference(to)
			switch {
			case at.Path == "/pay/openapi.json":
			case strings.HasSuffix(at.Path, ".css"), strings.HasSuffix(at.Path, ".js"), strings.HasSuffix(at.Path, ".svg"):
				weight += len(fetch(at.Path))
			case at.Path == path:
				require.True(t, at.Fragment == "" || shown[at.Fragment], "%s: %s leads nowhere", path, to)
			default:
				there := fetch(at.Path)
				require.True(t, at.Fragment == "" || strings.Contains(there, `id="`+at.Fragment+`"`), "%s: %s leads nowhere", path, to)
			}
		}
		require.Less(t, weight, 60_000, path)
		// The same page without its last slash has the same links, from one step further up.
		bare := strings.TrimSuffix(path, "/")
		for _, h := range hrefs.FindAllStringSubmatch(fetch(bare), -1) {
			to, err := url.Parse(html.UnescapeString(h[1]))
			require.NoError(t, err)
			at := (&url.URL{Path: bare}).ResolveReference(to).Path
			require.True(t, strings.HasPrefix(at, "/pay/docs") || at == "/pay/openapi.json", "%s: %s leads to %s", bare, to, at)
		}
	}
	for _, r := range w.routes() {
		page := fetch("/pay/docs/" + r.Name + "/")
		require.Contains(t, page, html.EscapeString(r.About))
		for _, scope := range r.Scopes {
			require.Contains(t, page, scope, r.Name)
		}
		for _, f := range r.Errors {
			if r.Style == httpapi.Standard {
				require.Contains(t, page, "#code-"+f.Code, r.Name)
			}
		}
	}
	codes := fetch("/pay/docs/errors/")
	require.NotContains(t, codes, "<p></p>", "a code has no meaning")
	require.NotContains(t, codes, "What to do:</strong> </p>", "a code has no advice")
	require.Equal(t, "not_found", w.ok(http.StatusNotFound, http.MethodGet, "/pay/docs/nothing/", nil, nobody()).code())

	// A host that knows callers by a login of its own has no tokens, and the same pages.
	own, err := httpapi.New(w.app, httpapi.Options{Login: nobodyKnown{}})
	require.NoError(t, err)
	for _, name := range append([]manual.Guide{{}, {Name: "createPayment"}}, manual.Guides...) {
		rec := httptest.NewRecorder()
		own.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace("/docs/"+name.Name+"/", "//", "/", 1), nil))
		require.Equal(t, http.StatusOK, rec.Code, name.Name)
		require.NotContains(t, rec.Body.String(), "/o/token/", name.Name)
	}
}

// nobodyKnown is a login that knows nobody.
type nobodyKnown struct{}

func (nobodyKnown) Identify(*http.Request) (auth.Identity, bool, error) {
	return auth.Identity{}, false, nil
}

// TestManual_Search: operations, fields, events and codes are found; what a reader types is
// shown as text, whatever it is.
func TestManual_Search(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	search := func(q string) string {
		return w.ok(http.StatusOK, http.MethodGet, "/docs/search/?"+url.Values{"q": {q}}.Encode(), nil, nobody()).Raw
	}
	for q, page := range map[string]string{
		"refund payment": "createRefund/", "amount_missing": "createPayment/", "idempotency_mismatch": "errors/#code-idempotency_mismatch",
		"POST /withdrawal/": "createWithdrawal/", "deposit_merged": "deposit_merged/", "going live": "going-live/", "createwallet": "createWallet/",
	} {
		require.Contains(t, strings.Split(search(q), "<nav")[0], `href="../`+page+`"`, q)
	}
	require.Contains(t, search("nothing has this word"), "Nothing has all of")
	require.NotContains(t, strings.Split(search("  "), "<nav")[0], `class="found"`)
	require.Contains(t, search("<b>"), "Nothing has all of <q>&lt;b&gt;</q>")
	long := search(strings.Repeat("ä", 5000))
	require.Equal(t, 200, strings.Count(long, "ä"), "100 characters, in the field and in the text")
	refused := w.ok(http.StatusBadRequest, http.MethodGet, "/docs/search/?"+url.Values{"q": {"\u202eevil"}}.Encode(), nil, nobody())
	require.Equal(t, "invalid_request", refused.code(), "it would turn the direction of writing")
	for _, hostile := range hostileQueries {
		text := search(hostile)
		// It stands in the field's value and in the text, and as nothing else.
		main := strings.Split(text, "<nav")[0]
		for _, tag := range []string{"<script>", "<img", "<svg onload", "<iframe", `" autofocus`, "' onfocus", "javascript:alert"} {
			if tag != "javascript:alert" {
				require.NotContains(t, main, tag, hostile)
			} else {
				require.NotContains(t, main, `href="`+tag, hostile)
			}
		}
	}
}

var hostileQueries = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `" autofocus onfocus="alert(1)`, `' onfocus='alert(1)`, `</q></p><iframe src="//evil.example"></iframe>`,
	`javascript:alert(1)`, `{{.}}{{template "page"}}`, "</title><svg onload=alert(1)>", "%3Cscript%3E", "&lt;script&gt;", "</textarea><script>alert(1)</script>",
}

// TestManual_VerifiersAgree: the code that receivers copy takes and refuses what webhook.Verify
// does, in each language.
func TestManual_VerifiersAgree(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	now := time.Unix(1_790_000_000, 0)
	type delivery struct {
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
		name    string
	}
	var all []delivery
	add := func(name, by, previous string, at time.Time, edit func(h http.Header, body *string)) {
		body := `{"event":"payment_status_update","data":{"order_id":"Zwölf 🎟"},"timestamp":"2026-09-21T14:13:20.000Z"}`
		h := http.Header{}
		var before *webhook.Signer
		if previous != "" {
			before = webhook.NewSigner([]byte(previous))
		}
		webhook.Headers(h, webhook.NewSigner([]byte(by)), before, "01890a5d-ac96-774b-bcce-b302099a8057/000002", 1, at, []byte(body))
		if edit != nil {
			edit(h, &body)
		}
		d := delivery{map[string]string{}, body, name}
		for k := range h {
			d.Headers[k] = h.Get(k)
		}
		all = append(all, d)
	}
	set := func(name, value string) func(http.Header, *string) {
		return func(h http.Header, _ *string) { h.Set(name, value) }
	}
	const id, timestamp, signature = webhook.HeaderStandardID, webhook.HeaderStandardTimestamp, webhook.HeaderStandardSignature
	add("good", secret, "", now, nil)
	add("in the overlap of a rotation", "the-new-secret-of-today", secret, now, nil)
	add("at the bound", secret, "", now.Add(-5*time.Minute), nil)
	add("ahead, at the bound", secret, "", now.Add(5*time.Minute), nil)
	add("too old", secret, "", now.Add(-301*time.Second), nil)
	add("of the future", secret, "", now.Add(301*time.Second), nil)
	add("another secret", secret+"x", "", now, nil)
	add("another body", secret, "", now, func(_ http.Header, body *string) { *body = strings.Replace(*body, "Zwölf", "Zwolf", 1) })
	add("another id", secret, "", now, set(id, "another"))
	add("another time", secret, "", now, set(timestamp, "1790000001"))
	add("no time", secret, "", now, set(timestamp, ""))
	add("a strange time", secret, "", now, set(timestamp, "1790000000\n"))
	add("a time in words", secret, "", now, set(timestamp, "soon"))
	add("no signature", secret, "", now, set(signature, ""))
	add("no version", secret, "", now, func(h http.Header, _ *string) { h.Set(signature, strings.TrimPrefix(h.Get(signature), "v1,")) })
	add("another version", secret, "", now, func(h http.Header, _ *string) { h.Set(signature, "v2"+strings.TrimPrefix(h.Get(signature), "v1")) })
	add("others beside it", secret, "", now, func(h http.Header, _ *string) { h.Set(signature, "v1a,xxxx v1, "+h.Get(signature)) })
	add("cut off", secret, "", now, func(h http.Header, _ *string) { h.Set(signature, h.Get(signature)[:40]) })
	add("no headers at all", secret, "", now, func(h http.Header, _ *string) { clear(h) })

	want := make([]bool, len(all))
	for i, d := range all {
		h := http.Header{}
		for k, v := range d.Headers {
			h.Set(k, v)
		}
		want[i] = webhook.Verify(h, []byte(d.Body), now, 0, secret) == nil
	}
	require.Equal(t, []bool{true, true, true, true, false}, want[:5])
	dir := t.TempDir()
	raw, err := json.Marshal(all)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cases.json"), raw, 0o600))
	for _, p := range []struct{ file, as, before, after, run string }{
		{"verify.go.txt", "main.go", `package main
import ("crypto/hmac"; "crypto/sha256"; "encoding/base64"; "encoding/json"; "fmt"; "net/http"; "os"; "strconv"; "strings"; "time")
`, `
func main() {
	var cases []struct { Headers map[string]string; Body string }
	raw, _ := os.ReadFile("cases.json")
	if err := json.Unmarshal(raw, &cases); err != nil { panic(err) }
	out := []bool{}
	for _, c := range cases {
		h := http.Header{}
		for k, v := range c.Headers { h.Set(k, v) }
		out = append(out, verify(h, []byte(c.Body), "` + secret + `", time.Unix(1790000000, 0)))
	}
	_ = json.NewEncoder(os.Stdout).Encode(out)
	fmt.Print()
}`, "go run main.go"},
		{"verify.js", "main.mjs", "", `
import { readFileSync } from "node:fs";
const cases = JSON.parse(readFileSync("cases.json", "utf8"));
console.log(JSON.stringify(cases.map((c) => verify(Object.fromEntries(Object.entries(c.headers).map(([k, v]) => [k.toLowerCase(), v])), Buffer.from(c.body), "` + secret + `", 1790000000))));`, "node main.mjs"},
		{"verify.py", "main.py", "", `
import json
print(json.dumps([verify(c["headers"], c["body"].encode(), "` + secret + `", 1790000000) for c in json.load(open("cases.json", encoding="utf-8"))]))`, "python3 main.py"},
		{"verify.php", "main.php", "", `
$out = [];
foreach (json_decode(file_get_contents("cases.json"), true) as $c) {
    $server = [];
    foreach ($c["headers"] as $k => $v) { $server["HTTP_" . strtoupper(str_replace("-", "_", $k))] = $v; }
    $out[] = verify($server, $c["body"], "` + secret + `", 1790000000);
}
echo json_encode($out);`, "php main.php"},
	} {
		t.Run(p.file, func(t *testing.T) {
			t.Parallel()
			words := strings.Fields(p.run)
			if _, err := exec.LookPath(words[0]); err != nil && os.Getenv("CRYPTOPAY_TEST_FULL") == "" {
				t.Skip("SKIPPED: ./test.sh tools installs " + words[0])
			}
			text, err := manual.Program(p.file)
			require.NoError(t, err)
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "cases.json"), raw, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, p.as), []byte(p.before+text+p.after), 0o600))
			cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			var got []bool
			require.NoError(t, json.Unmarshal(out, &got), "%s", out)
			require.Len(t, got, len(all))
			for i, d := range all {
				require.Equal(t, want[i], got[i], d.name)
			}
		})
	}
}

// TestManual_InABrowser: people read, search and copy on a phone and at a desk, with script and
// without, and axe finds nothing.
func TestManual_InABrowser(t *testing.T) {
	b := testenv.Chromium(t)
	w := newWorld(t, unlimited)
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close)
	folder := os.Getenv("CRYPTOPAY_SCREENSHOTS")
	if folder == "" {
		folder = t.ArtifactDir()
	}
	open := func(path string, with map[string]any) map[string]any {
		with["url"] = server.URL + path
		var id int
		b.Do("open", with, &id)
		return map[string]any{"page": id}
	}
	run := func(page map[string]any, expression string) (out any) {
		b.Do("run", map[string]any{"page": page["page"], "expression": expression}, &out)
		return out
	}
	closed := func(page map[string]any, path string) {
		var end struct {
			Problems []string
			Bytes    int
		}
		b.Do("close", page, &end)
		require.Empty(t, end.Problems, path)
		require.Less(t, end.Bytes, 60_000, path)
	}
	const wider = `document.documentElement.scrollWidth == document.documentElement.clientWidth ? "" : [...document.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth).map((e) => e.outerHTML.slice(0, 200)).join("\n")`
	// As on a phone in daylight with script, and at a desk in the dark without it. Script of
	// the browser's is on in both, as axe needs it.
	ways := map[string]map[string]any{
		"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 800, "dark": true, "noOwnScript": true},
	}
	for name, path := range map[string]string{
		"home": "/docs/", "operation": "/docs/createPayment/", "event": "/docs/payment_status_update/", "guide": "/docs/webhooks/", "errors": "/docs/errors/", "search": "/docs/search/?q=refund",
	} {
		for _, way := range testenv.Drawn(t, 1, []string{"phone", "desktop"}) {
			page := open(path, maps.Clone(ways[way]))
			var found []string
			b.Do("axe", page, &found)
			require.Empty(t, found, "%s, %s", path, way)
			require.Empty(t, run(page, wider), "%s scrolls to the side, %s", path, way)
			b.Do("shot", map[string]any{"page": page["page"], "file": filepath.Join(folder, "manual-"+name+"-"+way+".png")}, nil)
			closed(page, path)
		}
	}
	for _, path := range []string{"/docs/getTransactionStats", "/docs/first-payment", "/docs/sandbox/", "/docs/going-live/", "/docs/search/?q=zzz"} {
		page := open(path, map[string]any{"width": 320, "height": 600})
		require.Empty(t, run(page, wider), "%s scrolls to the side", path)
		closed(page, path)
	}

	// A language is chosen, is remembered, and its example is copied.
	page := open("/docs/createPayment/", map[string]any{})
	shown := `[...document.querySelectorAll(".listing")].filter((l) => l.checkVisibility()).map((l) => l.querySelector("code").id).join(" ")`
	require.Equal(t, "code-curl code-answer", run(page, shown))
	b.Do("click", map[string]any{"page": page["page"], "selector": "label[for=in-go]"}, nil)
	require.Equal(t, "code-go code-answer", run(page, shown))
	b.Do("click", map[string]any{"page": page["page"], "selector": "[data-copy=code-go]"}, nil)
	b.Do("see", map[string]any{"page": page["page"], "text": "Copied"}, nil)
	require.Contains(t, run(page, "navigator.clipboard.readText()"), "c.CreatePayment(ctx")
	run(page, `location.href = "../getPayment/"`)
	b.Do("see", map[string]any{"page": page["page"], "text": "c.Payment(ctx"}, nil)
	closed(page, "the language")

	// Without script: choosing and searching work, nothing offers to copy.
	page = open("/docs/createWithdrawal/", map[string]any{"noScript": true})
	b.Do("click", map[string]any{"page": page["page"], "selector": "label[for=in-typescript]"}, nil)
	b.Do("see", map[string]any{"page": page["page"], "text": `await api.POST("/withdrawal/"`}, nil)
	b.Do("send", map[string]any{"page": page["page"], "selector": "#q", "text": "invalid_state"}, nil)
	b.Do("see", map[string]any{"page": page["page"], "text": "result for"}, nil)
	closed(page, "without script")

	// Hostile words are text.
	for _, hostile := range hostileQueries {
		page := open("/docs/search/?"+url.Values{"q": {hostile}}.Encode(), map[string]any{})
		require.Equal(t, true, run(page, `document.scripts.length == 1`), hostile)
		require.Equal(t, []any{0.0, 0.0}, run(page, `[document.querySelectorAll("iframe, img, textarea").length, [...document.querySelectorAll("*")].filter((e) => e.getAttributeNames().some((n) => n.startsWith("on"))).length]`), hostile)
		closed(page, hostile)
	}
}
