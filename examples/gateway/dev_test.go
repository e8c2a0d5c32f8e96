package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// inside is a gateway in this process.
type inside struct {
	t     *testing.T
	s     settings
	g     *gateway
	api   http.Handler
	token string
}

func newInside(t *testing.T, networks string) *inside {
	t.Helper()
	env := map[string]string{"CRYPTOPAY_CLIENT_ID": testClient, "CRYPTOPAY_CLIENT_SECRET": testSecret, "CRYPTOPAY_RATE_LIMITS": "off"}
	s, err := readSettings([]string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "dev.db"), "-networks", networks}, func(k string) string { return env[k] })
	require.NoError(t, err)
	i := &inside{t: t, s: s}
	i.open()
	t.Cleanup(func() { require.NoError(t, i.g.close()) })
	return i
}

func (i *inside) open() {
	i.t.Helper()
	var err error
	i.g, err = open(i.t.Context(), i.s, slog.New(slog.DiscardHandler))
	require.NoError(i.t, err)
	i.api = i.g.handler()
	token, err := i.g.auth.Token(i.t.Context(), testClient, testSecret, "")
	require.NoError(i.t, err)
	i.token = token.AccessToken
}

func (i *inside) do(method, path string, body any) (int, map[string]any) {
	i.t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(i.t, err)
	r := httptest.NewRequestWithContext(i.t.Context(), method, path, bytes.NewReader(raw))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+i.token)
	rec := httptest.NewRecorder()
	i.api.ServeHTTP(rec, r)
	var v map[string]any
	require.NoError(i.t, json.Unmarshal(rec.Body.Bytes(), &v), rec.Body.String())
	return rec.Code, v
}

func (i *inside) ok(method, path string, body any) map[string]any {
	i.t.Helper()
	status, v := i.do(method, path, body)
	require.Less(i.t, status, 300, "%s %s: %v", method, path, v)
	return v
}

func (i *inside) status(id any) string {
	i.t.Helper()
	return i.ok("POST", "/payments/status/", map[string]any{"transaction_id": id})["status"].(string)
}

type body = map[string]any

func TestCustomersMinersAndReorgs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ network, currency string }{{"ETH", "USDTERC20"}, {"BTC", "BTC"}, {"SOL", "SOL"}, {"ADA", "ADA"}, {"LTC", "LTC"}} {
		t.Run(c.currency, func(t *testing.T) {
			t.Parallel()
			i := newInside(t, c.network)
			p := i.ok("POST", "/payments/", body{"amount": "30", "currency": c.currency})
			paid := i.ok("POST", "/dev/pay", body{"address": p["address"], "currency": c.currency, "amount": p["amount_crypto"]})
			require.Equal(t, "confirming", i.status(p["transaction_id"]))
			before := i.ok("POST", "/dev/mine", body{"blockchain": c.network, "blocks": 1})["height"]
			// A reorg that drops it, and the customer sends it again.
			after := i.ok("POST", "/dev/reorg", body{"blockchain": c.network, "depth": 1, "drop": []any{paid["transaction_hash"]}})["height"]
			require.Equal(t, before, after)
			i.ok("POST", "/dev/mine", body{"blockchain": c.network, "blocks": 1})
			require.Equal(t, "waiting", i.status(p["transaction_id"]))
			i.ok("POST", "/dev/pay", body{"transaction_hash": paid["transaction_hash"]})
			require.Equal(t, "confirming", i.status(p["transaction_id"]))
			i.ok("POST", "/dev/mine", body{"blockchain": c.network, "blocks": 100})
			require.Equal(t, "completed", i.status(p["transaction_id"]))
		})
	}
}

func TestTimeAndPricesSurviveARestart(t *testing.T) {
	t.Parallel()
	i := newInside(t, "ETH")
	p := i.ok("POST", "/payments/", body{"amount": "30", "currency": "ETH", "expiry_minutes": 60})
	i.ok("POST", "/dev/rate", body{"currency": "ETH", "price_currency": "USD", "rate": "1000"})
	now := i.ok("POST", "/dev/advance", body{"seconds": 59 * 60})["now"].(string)
	require.Equal(t, "waiting", i.status(p["transaction_id"]))
	height := i.ok("POST", "/dev/mine", body{"blockchain": "ETH", "blocks": 3})["height"]
	require.NoError(t, i.g.close())
	i.open()
	at, err := time.Parse(time.RFC3339, now)
	require.NoError(t, err)
	require.False(t, i.g.world.clock.Now().Before(at), "the clock never goes back")
	require.EqualValues(t, height, i.g.world.sims[0].Height())
	require.Equal(t, "0.03000000", i.ok("POST", "/payments/estimate/", body{"amount": "30", "currency": "ETH"})["amount_crypto"])
	i.ok("POST", "/dev/advance", body{"seconds": 61})
	require.Equal(t, "expired", i.status(p["transaction_id"]))
}

func TestWithdrawalsWaitForTheDevEndpoints(t *testing.T) {
	t.Parallel()
	i := newInside(t, "ETH")
	p := i.ok("POST", "/payments/", body{"amount": "30", "currency": "ETH"})
	i.ok("POST", "/dev/pay", body{"address": p["address"], "currency": "ETH", "amount": p["amount_crypto"]})
	i.ok("POST", "/dev/mine", body{"blockchain": "ETH", "blocks": 80})
	w := i.ok("POST", "/withdrawal/", body{"amount": "0.001", "final_amount": true, "currency": "ETH", "address": "0x52908400098527886E0F7030069857D2E4169EE7"})
	path := "/withdrawal/" + w["withdrawal_id"].(string) + "/"
	require.Equal(t, "pending", i.ok("GET", path, nil)["status"])
	i.ok("POST", "/dev/settle", body{})
	require.Equal(t, "processing", i.ok("GET", path, nil)["status"])
	i.ok("POST", "/dev/mine", body{"blockchain": "ETH"})
	require.Equal(t, "completed", i.ok("GET", path, nil)["status"])
}

func TestWrongDevInput(t *testing.T) {
	t.Parallel()
	i := newInside(t, "ETH")
	for field, c := range map[string]struct {
		path string
		body body
	}{
		"currency":         {"/dev/pay", body{"address": "0x52908400098527886E0F7030069857D2E4169EE7", "currency": "NOPE", "amount": "1"}},
		"amount":           {"/dev/pay", body{"address": "0x52908400098527886E0F7030069857D2E4169EE7", "currency": "ETH", "amount": "0"}},
		"address":          {"/dev/pay", body{"address": "nowhere", "currency": "ETH", "amount": "1"}},
		"transaction_hash": {"/dev/pay", body{"transaction_hash": "never"}},
		"blockchain":       {"/dev/mine", body{"blockchain": "BTC", "blocks": 1}},
		"blocks":           {"/dev/mine", body{"blockchain": "ETH", "blocks": 0}},
		"depth":            {"/dev/reorg", body{"blockchain": "ETH", "depth": 9999}},
		"drop":             {"/dev/reorg", body{"blockchain": "ETH", "depth": 1, "drop": []string{"never"}}},
		"rate":             {"/dev/rate", body{"currency": "ETH", "price_currency": "USD", "rate": "0"}},
		"price_currency":   {"/dev/rate", body{"currency": "ETH", "price_currency": "XXX", "rate": "1"}},
		"seconds":          {"/dev/advance", body{"seconds": -1}},
	} {
		status, v := i.do("POST", c.path, c.body)
		require.Equal(t, http.StatusBadRequest, status, field)
		e := v["error"].(map[string]any)
		require.Equal(t, "invalid_request", e["code"])
		require.Contains(t, e["details"], field)
	}
}

// An address that carries its memo is the same destination as the two apart.
func TestW16_TaggedAddressesAreTakenApart(t *testing.T) {
	t.Parallel()
	i := newInside(t, "XRP,XLM")
	for _, c := range []struct{ currency, tagged, account, tag string }{
		{"XRP", "X7C4hfnzhAHsrKxcH8p5TMnjwm9BzykDYvn4fH9zVvZ8KXS", "rhdHkjCDxNYEK91CDkm4ehbsDauFcbv2Xb", "1"},
		{"XLM", "MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLK", "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ", "9223372036854775808"},
	} {
		p := i.ok("POST", "/payments/", body{"amount": "300", "currency": c.currency})
		i.ok("POST", "/dev/pay", body{"address": p["address"], "currency": c.currency, "amount": p["amount_crypto"]})
		i.ok("POST", "/dev/mine", body{"blockchain": c.currency, "blocks": 80})
		send := func(address, memo string) (int, body) {
			return i.do("POST", "/withdrawal/", body{"amount": "20", "currency": c.currency, "address": address, "memo": memo})
		}
		status, v := send(c.tagged, "")
		require.Equal(t, http.StatusCreated, status, v)
		require.Equal(t, c.account, v["address"])
		require.Equal(t, c.tag, v["memo"])
		status, v = send(c.tagged, c.tag)
		require.Equal(t, http.StatusCreated, status, v)
		status, v = send(c.tagged, "7")
		require.Equal(t, http.StatusBadRequest, status, v)
		require.Contains(t, v["error"].(body)["details"], "memo")
		require.Equal(t, true, i.ok("POST", "/withdrawal/validate-address/", body{"address": c.tagged, "blockchain": c.currency})["is_valid"])
		require.Equal(t, false, i.ok("POST", "/withdrawal/validate-address/", body{"address": c.tagged, "blockchain": c.currency, "memo": "7"})["is_valid"])
	}
}

// A reorg below what is final is refused; above it what was credited is taken
// away again, and no other network is held up.
func TestR03_DeepReorgsInDevelopment(t *testing.T) {
	t.Parallel()
	i := newInside(t, "ARB,BTC")
	p := i.ok("POST", "/payments/", body{"amount": "100", "currency": "USDTARB"})
	paid := i.ok("POST", "/dev/pay", body{"address": p["address"], "currency": "USDTARB", "amount": "100"})
	i.ok("POST", "/dev/mine", body{"blockchain": "ARB", "blocks": 30})
	status, v := i.do("POST", "/dev/reorg", body{"blockchain": "ARB", "depth": 90})
	require.Equal(t, http.StatusBadRequest, status, v)
	i.ok("POST", "/dev/reorg", body{"blockchain": "ARB", "depth": 30, "drop": []any{paid["transaction_hash"]}})
	require.Equal(t, "0.00000000", i.ok("GET", "/user/balances/", nil)["account"].(body)["USDTARB"].(body)["amount"])
	i.ok("POST", "/dev/mine", body{"blockchain": "BTC", "blocks": 1})
}

// What a deposit's forwarding took is told as every amount is.
func TestMergedDepositsTellTheirFee(t *testing.T) {
	t.Parallel()
	i := newInside(t, "ETH")
	p := i.ok("POST", "/payments/", body{"amount": "100", "currency": "USDTERC20"})
	i.ok("POST", "/dev/pay", body{"address": p["address"], "currency": "USDTERC20", "amount": "100"})
	i.ok("POST", "/dev/mine", body{"blockchain": "ETH", "blocks": 100})
	require.Equal(t, "completed", i.status(p["transaction_id"]))
	rows, err := i.g.store.Find(t.Context(), storage.Query{
		Table: webhook.Events.Table, Partition: storage.Tenant(tenantID),
		Where: []storage.Cond{{Column: "type", Op: storage.Eq, Value: webhook.DepositMerged}},
	})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Regexp(t, `"network_fee":"0\.\d{8}"`, webhook.Events.Value(rows[0]).Body)
	require.NotContains(t, webhook.Events.Value(rows[0]).Body, `"network_fee":"0.00000000"`)
}

// Paths that are not clean are unknown ones: nothing is redirected.
func TestPathsAreNotCleaned(t *testing.T) {
	t.Parallel()
	i := newInside(t, "BTC")
	for _, path := range []string{"/payments//", "/docs/../docs/", "//status/"} {
		status, _ := i.do("GET", path, nil)
		require.Equal(t, http.StatusNotFound, status, path)
	}
}

// A payment on a network with memos shows the account and the memo beside the address that
// carries both, in the simulation as on the network itself. Who pays by either pays it, and no
// other payment.
func TestA09_PaymentsShowTheirMemoBesideTheAddress(t *testing.T) {
	t.Parallel()
	i := newInside(t, "XRP,XLM")
	network := func(code string) *sim.Chain {
		return i.g.world.sims[slices.IndexFunc(i.g.world.sims, func(c *sim.Chain) bool { return c.Network() == chain.Network(code) })]
	}
	for _, c := range []string{"XRP", "XLM"} {
		form, _ := address.For(chain.Network(c))
		pay := func() (p body, account, memo string) {
			p = i.ok("POST", "/payments/", body{"amount": "300", "currency": c})
			account, memo = p["memo_address"].(string), p["memo"].(string)
			info, err := form.Parse(p["address"].(string))
			require.NoError(t, err)
			require.Equal(t, []any{string(info.Base), fmt.Sprint(*info.Tag)}, []any{account, memo})
			require.NotEqual(t, p["address"], account)
			require.Contains(t, p["payment_uri"], account)
			require.Contains(t, p["payment_uri"], memo)
			return p, account, memo
		}
		first, account, memo := pay()
		second, same, other := pay()
		require.Equal(t, account, same, "one account takes all payments")
		require.NotEqual(t, memo, other)
		read := i.ok("GET", "/payments/", nil)["results"].([]any)
		require.Equal(t, []any{same, other}, []any{read[0].(body)["memo_address"], read[0].(body)["memo"]})

		i.ok("POST", "/dev/pay", body{"address": first["address"], "currency": c, "amount": first["amount_crypto"]})
		_, err := network(c).Send(sim.Tx{ // a wallet that takes the two apart
			Memo:     other,
			Payments: []sim.Payment{{To: chain.Address(account), Currency: c, Amount: decimal.RequireFromString(second["amount_crypto"].(string))}},
		})
		require.NoError(t, err)
		i.ok("POST", "/dev/mine", body{"blockchain": c, "blocks": 80})
		for _, p := range []body{first, second} {
			require.Equal(t, "completed", i.status(p["transaction_id"]), c)
		}
		third, _, _ := pay()
		require.Equal(t, "waiting", i.status(third["transaction_id"]))
		// Paid out again, from the account.
		to := string(form.Make([32]byte{9}))
		v := i.ok("POST", "/withdrawal/", body{"amount": "20", "currency": c, "address": to, "memo": "5"})
		i.ok("POST", "/dev/mine", body{"blockchain": c, "blocks": 80})
		require.Equal(t, "completed", i.ok("GET", "/withdrawal/"+v["withdrawal_id"].(string)+"/", nil)["status"])
		arrived := network(c).Transfers(chain.Address(to))
		require.Len(t, arrived, 1)
		require.Equal(t, []any{"5", chain.Address(account)}, []any{arrived[0].Memo, arrived[0].From})
	}
}

// TestX01_AddressesOfExamplesArePasted: a gateway with default settings takes each address of
// the reference's examples as it stands there.
func TestX01_AddressesOfExamplesArePasted(t *testing.T) {
	t.Parallel()
	i := newInside(t, "")
	address := regexp.MustCompile(`"address": "([^"]*)"`)
	for _, operation := range []string{"createWithdrawal", "createRefund", "useClaim", "validateAddress"} {
		w := httptest.NewRecorder()
		i.api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/docs/"+operation+"/", nil))
		require.Equal(t, http.StatusOK, w.Code, operation)
		page := html.UnescapeString(w.Body.String())
		shown := address.FindStringSubmatch(page) // the first is the request's
		require.NotNil(t, shown, operation)
		checked := i.ok(http.MethodPost, "/withdrawal/validate-address/", map[string]any{"address": shown[1], "currency": "USDTERC20"})
		require.Equal(t, true, checked["is_valid"], "%s: %v", operation, checked)
		require.NotRegexp(t, `\bsim[a-z]+[0-9a-f]{48}`, page, operation)
	}
}
