package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
)

// running is a shop that serves until stop.
type running struct {
	t        *testing.T
	base     string
	password string // of the owner, where the start made it
	stop     func()
}

// start runs the program as main does, and reads the links that it prints.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith starts it with an environment.
func startWith(t *testing.T, env map[string]string, args ...string) *running {
	t.Helper()
	s, err := readSettings(append([]string{"-addr", "127.0.0.1:0", "-block", "50ms"}, args...), func(name string) string { return env[name] })
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, s, in, slog.New(slog.NewTextHandler(t.Output(), nil)))
		_ = in.Close()
	}()
	r := &running{t: t}
	r.stop = func() {
		r.stop = func() {}
		end()
		require.NoError(t, <-done)
	}
	t.Cleanup(func() { r.stop() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		if at, ok := strings.CutPrefix(line, "shop       "); ok {
			r.base = strings.TrimSuffix(at, "/")
		}
		if _, words, ok := strings.Cut(line, "the password "); ok {
			r.password, _, _ = strings.Cut(words, ",")
		}
		if strings.HasPrefix(line, "network") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return r
		}
	}
	require.NoError(t, <-done)
	return nil
}

// visitor is a browser without a screen.
type visitor struct {
	r *running
	c *http.Client
}

func (r *running) visitor() *visitor {
	jar, err := cookiejar.New(nil)
	require.NoError(r.t, err)
	return &visitor{r, &http.Client{Jar: jar}}
}

// get is the page of a path, and where it was found.
func (v *visitor) get(path string) (body string, status int, at string) {
	return v.send(http.MethodGet, path, nil)
}

func (v *visitor) post(path string, form ...string) (body string, status int, at string) {
	values := url.Values{}
	for i := 0; i+1 < len(form); i += 2 {
		values.Set(form[i], form[i+1])
	}
	return v.send(http.MethodPost, path, strings.NewReader(values.Encode()))
}

func (v *visitor) send(method, path string, form io.Reader, headers ...string) (body string, status int, at string) {
	v.r.t.Helper()
	req, err := http.NewRequestWithContext(v.r.t.Context(), method, v.r.base+path, form)
	require.NoError(v.r.t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := v.c.Do(req)
	require.NoError(v.r.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(v.r.t, err)
	return string(b), resp.StatusCode, resp.Request.URL.Path
}

var numberField = regexp.MustCompile(`name="number" value="([A-Z2-7]+)"`)

// orders one product, and returns the path of the order.
func (v *visitor) orders(product, coin string) string {
	v.r.t.Helper()
	page, _, _ := v.post("/cart", "product", product, "do", "add")
	number := numberField.FindStringSubmatch(page)
	require.NotNil(v.r.t, number, page)
	page, status, at := v.post("/orders", "number", number[1], "coin", coin)
	require.Equal(v.r.t, http.StatusOK, status, page)
	require.Equal(v.r.t, "/orders/"+number[1], at)
	require.Contains(v.r.t, page, "waits for its payment")
	return at
}

// sees asks for a page until it has a text: blocks come by themselves.
func (v *visitor) sees(path, text string) string {
	v.r.t.Helper()
	var page string
	require.Eventually(v.r.t, func() bool {
		page, _, _ = v.get(path)
		return strings.Contains(page, text)
	}, time.Minute, 50*time.Millisecond, text)
	return page
}

var addressField = regexp.MustCompile(`id="address-claim"[^>]* value="([^"]+)"`)

// claims names the address that a refund of an order waits for.
func (v *visitor) claims(order string) {
	v.r.t.Helper()
	suggested := addressField.FindStringSubmatch(v.sees(order, "Your refund"))
	require.NotNil(v.r.t, suggested)
	page, status, _ := v.post(order+"/claim", "address", suggested[1])
	require.Equal(v.r.t, http.StatusOK, status, page)
}

// TestX01_TheShopKeepsItsOrdersOverARestart: an order that was half paid when the program stopped
// goes on on the same networks when it is started again, on either database; sending a form twice
// orders once; what another site has a browser send is refused.
func TestX01_TheShopKeepsItsOrdersOverARestart(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func(t *testing.T) []string{
		"SQLite": func(t *testing.T) []string { return []string{"-dir", t.TempDir()} },
		"Postgres": func(t *testing.T) []string {
			if testing.Short() {
				t.Skip("a server of its own takes seconds")
			}
			return []string{"-dir", t.TempDir(), "-postgres", testenv.Postgres(t).DSN("postgres")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Who asks for any port does not get this one while the program is away.
			with := append(args(t), "-addr", net.JoinHostPort("127.0.0.1", strconv.Itoa(testenv.FreePort(t))))
			r := start(t, with...)
			require.NotEmpty(t, r.password)
			v := r.visitor()
			order := v.orders("lamp", "USDTERC20")
			number := strings.TrimPrefix(order, "/orders/")
			_, status, at := v.post("/orders", "number", number, "coin", "USDTERC20")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, order, at)
			_, status, _ = v.send(http.MethodPost, order+"/customer", strings.NewReader("who=pays"), "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site")
			require.Equal(t, http.StatusForbidden, status)
			_, status, _ = r.visitor().get(order)
			require.Equal(t, http.StatusNotFound, status, "it is another's")
			_, status, _ = r.visitor().post(order+"/customer", "who", "pays")
			require.Equal(t, http.StatusNotFound, status, "it is another's")

			_, status, _ = v.post(order+"/customer", "who", "short")
			require.Equal(t, http.StatusOK, status)
			r.stop()
			again := start(t, with...)
			require.Empty(t, again.password, "it is shown once")
			v.r = again
			_, status, _ = v.post(order+"/customer", "who", "pays")
			require.Equal(t, http.StatusOK, status)
			page := v.sees(order, `class="state paid"`)
			require.Contains(t, page, "Desk lamp")

			// The desk's login is that of the interface.
			_, status, _ = v.get("/pay/payments/")
			require.Equal(t, http.StatusUnauthorized, status)
			_, _, at = v.get("/desk")
			require.Equal(t, "/login", at)
			_, status, _ = v.post("/login", "email", owner, "password", "guessed")
			require.Equal(t, http.StatusUnauthorized, status)
			_, status, at = v.post("/login", "email", "Owner@shop.example ", "password", r.password)
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "/desk", at)
			list, status, _ := v.get("/pay/payments/")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, 1, strings.Count(list, `"transaction_id"`), "a form that is sent twice orders once: %s", list)
			require.Contains(t, list, again.base+"/checkout/")

			// A part is given back by the interface: the rest is still to be delivered.
			payment := regexp.MustCompile(`"transaction_id": ?"([^"]+)"`).FindStringSubmatch(list)[1]
			made, status, _ := v.send(http.MethodPost, "/pay/payments/"+payment+"/refunds/", strings.NewReader(`{"amount":"10"}`), "Content-Type", "application/json")
			require.Equal(t, http.StatusCreated, status, made)
			v.claims(order)
			v.sees("/pay/refunds/?status=completed", payment)
			next := v.orders("mug", "USDTERC20")
			v.post(next+"/customer", "who", "pays")
			v.sees(next, `class="state paid"`) // its event came after that of the refund
			page, _, _ = v.get(order)
			require.Contains(t, page, `class="state paid"`)
			v.post("/desk/" + number + "/refund")
			v.claims(order)
			v.sees(order, `class="state refunded"`)
			v.post("/logout")
			_, status, _ = v.get("/pay/payments/")
			require.Equal(t, http.StatusUnauthorized, status)
		})
	}
}

// TestX01_WhatCannotBeOrderedIsRefusedInWords: an empty cart, a coin that there is none of, an
// order that is too small for its coin.
func TestX01_WhatCannotBeOrderedIsRefusedInWords(t *testing.T) {
	t.Parallel()
	r := start(t, "-dir", t.TempDir())
	v := r.visitor()
	page, status, _ := v.post("/orders", "number", newNumber(), "coin", "ETH")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, page, "nothing to order")
	v.post("/cart", "product", "mug", "do", "add")
	for _, coin := range []string{"", "EUR", "<script>"} {
		page, status, _ = v.post("/orders", "number", newNumber(), "coin", coin)
		require.Equal(t, http.StatusBadRequest, status, coin)
		require.Contains(t, page, "cannot be paid in that coin", coin)
		require.NotContains(t, page, "<script>")
	}
	page, status, _ = v.post("/orders", "number", "../../x", "coin", "ETH")
	require.Equal(t, http.StatusBadRequest, status, page)
	page, _, _ = v.get("/cart")
	require.Contains(t, page, "Enamel mug", "what was refused is still in the cart")
	for _, bad := range [][]string{{"-addr", "0.0.0.0:0"}, {"-postgres", "nonsense://"}} {
		s, err := readSettings(append([]string{"-dir", t.TempDir()}, bad...), func(string) string { return "" })
		require.NoError(t, err)
		require.Error(t, run(t.Context(), s, io.Discard, slog.New(slog.DiscardHandler)), bad)
	}
	_, err := readSettings(nil, func(name string) string { return map[string]string{"CRYPTOPAY_CHAIN_ETH": "11155111"}[name] })
	require.ErrorContains(t, err, "CRYPTOPAY_RPC_ETH")
}

// TestX01_TheWayBackLeadsToTheShop: whatever somebody writes for the order of a payment, the way
// back from its page is the order's page or the shop's first one.
func TestX01_TheWayBackLeadsToTheShop(t *testing.T) {
	t.Parallel()
	for order, want := range map[string]string{
		"K7Q2M4XABC": "/orders/K7Q2M4XABC",
		"":           "/", "1": "/", "../desk/logout": "/", "..": "/", ".": "/", "%2e%2e/desk": "/", "x?y=z#w": "/", "//evil.example": "/", `\\evil.example`: "/",
		"K7Q2M4XABC/claim": "/", "K7Q2M4XABC\n": "/", `"><script>alert(1)</script>`: "/", "javascript:alert(1)": "/",
	} {
		m, err := merchant(t.Context(), tenant, &payment.Payment{OrderID: order})
		require.NoError(t, err)
		require.NoError(t, m.Check(), order)
		to, err := url.Parse("https://shop.example/checkout/x")
		require.NoError(t, err)
		to, err = to.Parse(m.ReturnURL)
		require.NoError(t, err)
		require.Equal(t, "https://shop.example"+want, to.String(), order)
	}
}
