package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/networks"
)

// asBuilt runs the gateway as it is built, in a process and a folder of its own, until it
// serves or has ended. It says what it printed, and where it serves.
type asBuilt struct {
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	out    []string
	errors bytes.Buffer
	base   string // "" = it has ended
}

func start(t *testing.T, dir string, env []string, args ...string) *asBuilt {
	t.Helper()
	g := &asBuilt{cmd: exec.CommandContext(t.Context(), os.Args[0], args...)}
	g.cmd.Dir = dir
	g.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, settingPrefix) }), program+"=1")
	g.cmd.Env = append(g.cmd.Env, env...)
	g.cmd.Stderr = &g.errors
	out, err := g.cmd.StdoutPipe()
	require.NoError(t, err)
	_, err = g.cmd.StdinPipe() // it ends when we are gone
	require.NoError(t, err)
	require.NoError(t, g.cmd.Start())
	for g.lines = bufio.NewScanner(out); g.lines.Scan(); {
		g.out = append(g.out, g.lines.Text())
		if at, ok := strings.CutPrefix(g.lines.Text(), "cryptopay is at "); ok {
			g.base, _, _ = strings.Cut(at, ",")
			return g
		}
	}
	_ = g.cmd.Wait()
	return g
}

// stop ends it as an operator does, and reads what it still printed.
func (g *asBuilt) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, g.cmd.Process.Signal(syscall.SIGTERM))
	for g.lines.Scan() {
		g.out = append(g.out, g.lines.Text())
	}
	require.NoError(t, g.cmd.Wait(), g.errors.String())
}

func (g *asBuilt) code() int { return g.cmd.ProcessState.ExitCode() }

// Every setting that the program reads has a known name.
func TestFS09_EverySettingIsKnown(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	read := regexp.MustCompile(`(?:env|or)\("(CRYPTOPAY_[A-Z_]*[A-Z])"`)
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range read.FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, knownNames(networks.Shipped()), m[1], file)
			n++
		}
	}
	require.Greater(t, n, 15)
}

// A name that is no setting is refused, with the nearest that is one: a node that is
// misspelt would be a network that is simulated.
func TestFS09_MisspeltSettingIsRefused(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"CRYPTOPAY_RPC_POLYGN=http://127.0.0.1:1":   "CRYPTOPAY_RPC_POLYGON",
		"CRYPTOPAY_RATE_LIMIT=off":                  "CRYPTOPAY_RATE_LIMITS",
		"CRYPTOPAY_CLIENTSECRET=a-secret-of-mine-7": "CRYPTOPAY_CLIENT_SECRET",
		"CRYPTOPAY_CONTRACT_USDTERC2=0x1":           "CRYPTOPAY_CONTRACT_USDTERC20",
		"CRYPTOPAY_DEV=":                            "CRYPTOPAY_",
	} {
		name, value, _ := strings.Cut(variable, "=")
		g := start(t, t.TempDir(), []string{variable}, "-addr", "127.0.0.1:0", "-store", "memory")
		require.Empty(t, g.base, name)
		require.Equal(t, 2, g.code())
		require.Contains(t, g.errors.String(), name)
		require.Contains(t, g.errors.String(), "nearest is "+want)
		if value != "" {
			require.NotContains(t, g.errors.String(), value, "it may be a secret")
		}
	}
}

// Simulated chains, where whoever asks makes money, are served to this machine alone
// unless the operator says otherwise.
func TestFS09_SimulationIsServedOnLoopback(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.7:0", "shop.example:0"} {
		g := start(t, t.TempDir(), nil, "-addr", addr, "-store", "memory", "-networks", "BTC")
		require.Empty(t, g.base, addr)
		require.Equal(t, 2, g.code())
		require.Contains(t, g.errors.String(), "-expose-simulation")
	}
	g := start(t, t.TempDir(), nil, "-addr", "0.0.0.0:0", "-store", "memory", "-networks", "BTC", "-expose-simulation")
	require.NotEmpty(t, g.base, g.errors.String())
	g.stop(t)
}

// The first secret is printed once, and what holds secrets is its owner's alone.
func TestFS10_SecretsDoNotLieAround(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := start(t, dir, nil, "-addr", "127.0.0.1:0", "-store", "sqlite:shop.db", "-networks", "BTC")
	require.NotEmpty(t, g.base, g.errors.String())
	g.stop(t)
	var secret string
	for _, line := range g.out {
		if s, ok := strings.CutPrefix(line, "CRYPTOPAY_CLIENT_SECRET="); ok {
			secret = s
		}
	}
	require.NotEmpty(t, secret)
	require.Equal(t, 1, strings.Count(strings.Join(g.out, "\n"), secret))
	require.NotContains(t, g.errors.String(), secret)
	for _, name := range []string{"shop.db", "shop.db.key"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	g = start(t, dir, nil, "-addr", "127.0.0.1:0", "-store", "sqlite:shop.db", "-networks", "BTC")
	require.NotEmpty(t, g.base, g.errors.String())
	g.stop(t)
	require.NotContains(t, strings.Join(g.out, "\n"), secret, "and never again")

	require.NoError(t, os.Chmod(filepath.Join(dir, "shop.db.key"), 0o644)) //nolint:gosec // that is what is refused
	g = start(t, dir, nil, "-addr", "127.0.0.1:0", "-store", "sqlite:shop.db", "-networks", "BTC")
	require.Empty(t, g.base)
	require.Contains(t, g.errors.String(), "chmod 600")

	ignored, err := os.ReadFile("../../.gitignore")
	require.NoError(t, err)
	for _, pattern := range []string{"*.key", "*.seed", "*.db"} {
		require.Contains(t, strings.Split(string(ignored), "\n"), pattern)
	}
}

// A secret or API key that could be guessed is refused at the start, by the setting's name.
func TestFS05_WeakSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for variable, rest := range map[string][]string{
		"CRYPTOPAY_CLIENT_SECRET=secret":         {"CRYPTOPAY_CLIENT_ID=shop"},
		"CRYPTOPAY_API_KEY=12345678":             nil,
		"CRYPTOPAY_API_KEY=keykeykeykeykeykeyke": nil,
	} {
		g := start(t, t.TempDir(), append(rest, variable), "-addr", "127.0.0.1:0", "-store", "memory", "-networks", "BTC")
		name, value, _ := strings.Cut(variable, "=")
		require.Empty(t, g.base)
		require.Equal(t, 2, g.code())
		require.Contains(t, g.errors.String(), name)
		require.NotContains(t, g.errors.String(), value)
	}
}

// Figures may be served apart from the interface, whose links never name a host that a
// request does.
func TestFS12_MetricsApart(t *testing.T) {
	t.Parallel()
	g := start(t, t.TempDir(), nil, "-addr", "127.0.0.1:0", "-store", "memory", "-networks", "BTC", "-metrics-addr", "127.0.0.1:0")
	require.NotEmpty(t, g.base, g.errors.String())
	require.Equal(t, http.StatusNotFound, fetch(t, g.base+"/metrics", nil))
	at, ok := strings.CutPrefix(g.out[0], "metrics are at ")
	require.True(t, ok, g.out[0])
	var text bytes.Buffer
	require.Equal(t, http.StatusOK, fetch(t, at, &text))
	require.Contains(t, text.String(), "cryptopay_requests_total")
	require.Equal(t, http.StatusNotFound, fetch(t, strings.Replace(at, "/metrics", "/status/", 1), nil))
	g.stop(t)

	together := start(t, t.TempDir(), nil, "-addr", "127.0.0.1:0", "-store", "memory", "-networks", "BTC")
	require.Equal(t, http.StatusOK, fetch(t, together.base+"/metrics", nil))
	together.stop(t)
	live := start(t, t.TempDir(), []string{"CRYPTOPAY_RPC_ETH=http://127.0.0.1:1"}, "-addr", "127.0.0.1:0", "-store", "memory")
	require.Equal(t, http.StatusNotFound, fetch(t, live.base+"/metrics", nil), "what is held, owed and earned is nobody's who can only reach the interface")
	head, err := http.Head(live.base + "/readyz") //nolint:noctx // as balancers ask
	require.NoError(t, err)
	require.NoError(t, head.Body.Close())
	require.Equal(t, http.StatusOK, head.StatusCode)
	live.stop(t)
	wrong := start(t, t.TempDir(), []string{"CRYPTOPAY_BASE_URL=pay.example.com"}, "-addr", "127.0.0.1:0", "-store", "memory", "-networks", "BTC")
	require.Equal(t, 2, wrong.code())
	require.Contains(t, fmt.Sprint(wrong.errors.String()), "CRYPTOPAY_BASE_URL")
}

// Whoever may ask hears in a word whether the process can serve; operators see each part, and
// nobody a secret, also where a node's address has one.
func TestE10_ReadyInAWordAndForOperatorsInParts(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-of-the-node"
	g := start(t, t.TempDir(), []string{"CRYPTOPAY_RPC_ETH=http://127.0.0.1:1/" + secret}, "-addr", "127.0.0.1:0", "-store", "memory", "-metrics-addr", "127.0.0.1:0")
	require.NotEmpty(t, g.base, g.errors.String())
	var said bytes.Buffer
	for _, path := range []string{"/readyz", "/livez", "/healthz"} {
		said.Reset()
		require.Equal(t, http.StatusOK, fetch(t, g.base+path, &said))
		require.Equal(t, "ok\n", said.String())
	}
	at, ok := strings.CutPrefix(g.out[0], "metrics are at ")
	require.True(t, ok, g.out[0])
	operators := strings.TrimSuffix(at, "/metrics")
	require.Equal(t, http.StatusOK, fetch(t, operators+"/livez", nil))
	said.Reset()
	require.Equal(t, http.StatusOK, fetch(t, operators+"/readyz", &said), "a node that is down takes nothing out of service")
	var v struct {
		Ready bool
		State string
		Parts []struct{ Name, State, Reason string }
	}
	require.NoError(t, json.Unmarshal(said.Bytes(), &v))
	require.True(t, v.Ready)
	require.Equal(t, "down", v.State)
	found := false
	for _, p := range v.Parts {
		if p.Name == "node/ETH" {
			found = true
			require.Equal(t, "down", p.State)
			require.NotEmpty(t, p.Reason)
		}
	}
	require.True(t, found)
	require.NotContains(t, said.String(), secret)
	said.Reset()
	require.Equal(t, http.StatusOK, fetch(t, at, &said))
	require.Contains(t, said.String(), `cryptopay_part_status{part="node/ETH"} 2`)
	require.NotContains(t, said.String(), secret)
	g.stop(t)
}

func fetch(t *testing.T, url string, into io.Writer) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	a, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer a.Body.Close() //nolint:errcheck // it was read
	if into == nil {
		into = io.Discard
	}
	_, err = io.Copy(into, a.Body)
	require.NoError(t, err)
	return a.StatusCode
}

// Without a public address links of paged answers name where the gateway listens, where that is
// loopback: a URL, as the interface says. They never name a host that a request does.
func TestFA08_LinksNameWhereTheGatewayListens(t *testing.T) {
	t.Parallel()
	shop := []string{"CRYPTOPAY_CLIENT_ID=shop", "CRYPTOPAY_CLIENT_SECRET=a-secret-of-the-shop-7"}
	for name, c := range map[string]struct {
		env  []string
		args []string
		want string // "" = where it listens
	}{
		"loopback":  {},
		"IPv6":      {args: []string{"-addr", "[::1]:0"}},
		"set":       {env: []string{"CRYPTOPAY_BASE_URL=https://pay.example.com/v1"}, want: "https://pay.example.com/v1"},
		"all hosts": {args: []string{"-addr", "0.0.0.0:0", "-expose-simulation"}, want: "path"},
	} {
		g := start(t, t.TempDir(), append(c.env, shop...), append([]string{"-addr", "127.0.0.1:0", "-store", "memory", "-networks", "BTC"}, c.args...)...)
		require.NotEmpty(t, g.base, g.errors.String())
		who, status := login(t, g.base, "shop", "a-secret-of-the-shop-7")
		require.Equal(t, http.StatusOK, status, name)
		for range 3 {
			who.ok("POST", "/payments/", body{"amount": "30", "currency": "BTC"})
		}
		if c.want == "" {
			c.want = g.base
		}
		if c.want == "path" {
			c.want = ""
		}
		page := who.ok("GET", "/transactions/transactions/?page_size=1&page=2", nil)
		require.Equal(t, c.want+"/transactions/transactions/?page=3&page_size=1", page["next"], name)
		require.Equal(t, c.want+"/transactions/transactions/?page=1&page_size=1", page["previous"], name)
		g.stop(t)
	}
}
