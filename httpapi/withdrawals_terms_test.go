package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

var estimateFields = []string{
	"requested_amount", aDecimal, "fee", aDecimal, "amount", aDecimal, "currency", aText, "blockchain", aText, "token", aText,
	"platform_fee", aDecimal, "network_fee", aDecimal,
}

func TestEstimateWithdrawal(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	for name, change := range map[string]map[string]any{
		"as created":      {},
		"without address": {"address": nil},
		"pair":            {"currency": nil, "blockchain": "ETH", "token": "USDT"},
		"both forms":      {"blockchain": "ETH", "token": "USDT"},
		"fiat":            {"amount": nil, "price_amount": "100"},
		"final null":      {"amount": 100, "custom_id": 5},
	} {
		a := w.ok(http.StatusOK, "POST", "/withdrawal/estimate/", w.wd(change))
		hasExactly(t, a.Raw, a.Body, estimateFields...)
		require.Equal(t, "100.00000000", a.Body["requested_amount"], name)
		require.Equal(t, "0.60000000", a.Body["platform_fee"], name)
		requireSumOf(t, a.Body["requested_amount"], a.Body["amount"], a.Body["fee"])
		requireSumOf(t, a.Body["fee"], a.Body["platform_fee"], a.Body["network_fee"])
	}
	a := w.ok(http.StatusOK, "POST", "/withdrawal/estimate", w.wd(map[string]any{"final_amount": true}))
	require.Equal(t, "100.00000000", a.Body["amount"])
	requireSumOf(t, a.Body["requested_amount"], a.Body["amount"], a.Body["fee"])
	made := w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(map[string]any{"final_amount": true}))
	require.Equal(t, a.Body["requested_amount"], made.Body["requested_amount"], "what was estimated is what it costs")
	w.ok(http.StatusOK, "POST", "/withdrawal/estimate", w.wd(map[string]any{"amount": "1000000"})) // whatever the balance is

	for name, c := range map[string]struct {
		change  map[string]any
		code    string
		details []string
	}{
		"unknown code":    {map[string]any{"currency": "NOPE"}, "invalid_currency", []string{"currency"}},
		"unknown pair":    {map[string]any{"currency": nil, "blockchain": "ETH", "token": "NOPE"}, "invalid_currency", []string{"currency"}},
		"no such network": {map[string]any{"currency": "USDTTRC20", "address": nil}, "invalid_currency", []string{"currency"}},
		"address":         {map[string]any{"address": "x"}, "invalid_address", []string{"address"}},
		"nothing":         {map[string]any{"amount": nil, "currency": nil}, "invalid_request", []string{"amount", "currency"}},
		"both figures":    {map[string]any{"price_amount": "1"}, "invalid_request", []string{"amount"}},
		"disagreeing":     {map[string]any{"blockchain": "BTC"}, "invalid_request", []string{"blockchain"}},
		"below fees":      {map[string]any{"amount": "0.1"}, "invalid_request", []string{"amount"}},
		"below minimum":   {map[string]any{"amount": "1.1"}, "invalid_request", []string{"amount"}},
		"long address":    {map[string]any{"address": strings.Repeat("x", 256), "amount": "x"}, "invalid_request", []string{"address", "amount"}},
		"all at once": {
			map[string]any{"amount": false, "currency": "NOPE", "price_currency": "XXX", "final_amount": 1},
			"invalid_request",
			[]string{"amount", "currency", "final_amount", "price_currency"},
		},
	} {
		a := w.ok(http.StatusBadRequest, "POST", "/withdrawal/estimate/", w.wd(c.change))
		require.Equal(t, c.code, a.code(), "%s: %s", name, a.Raw)
		require.Equal(t, c.details, fieldsOf(a.at("error", "details")), name)
	}
	require.Equal(t, "1", fmt.Sprint(w.ok(http.StatusOK, "GET", "/withdrawal/", nil).Body["total"]))
}

func TestFeeEstimate(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	_, key, err := w.auth.CreateKey(t.Context(), auth.NewKey{Tenant: w.tenant, Name: "k", Scopes: []auth.Scope{auth.Read, auth.Write}})
	require.NoError(t, err)
	e := w.ok(http.StatusOK, "POST", "/withdrawal/estimate/", w.wd(nil))
	for name, body := range map[string]string{
		"token by default": `{"amount":100,"blockchain":"ETH"}`,
		"token":            `{"amount":"100.0","blockchain":"ETH","token":"USDT","address":"` + w.recipient("ETH") + `"}`,
		"currency":         `{"amount":100,"currency":"USDTERC20"}`,
		"both":             `{"amount":100,"currency":"USDTERC20","blockchain":"ETH"}`,
	} {
		a := w.ok(http.StatusOK, "POST", "/withdrawal/fee-estimate/", body, nobody(), apiKey(key))
		hasExactly(t, a.Raw, a.Body, "currency", aText, "fee", aNumber)
		require.Equal(t, "USDTERC20", a.Body["currency"], name)
		require.True(t, decimal.RequireFromString(fmt.Sprint(a.Body["fee"])).Equal(decimal.RequireFromString(e.Body["fee"].(string))), name)
	}
	w.ok(http.StatusOK, "POST", "/withdrawal/fee-estimate/", `{"amount":"0.000001","blockchain":"ETH"}`) // whatever the minimum is
	a := w.ok(http.StatusOK, "POST", "/withdrawal/fee-estimate/", `{"amount":1,"blockchain":"BTC","token":"BTC"}`)
	require.Equal(t, "BTC", a.Body["currency"])
	for body, want := range map[string]string{
		`{"amount":0,"blockchain":"ETH"}`:                        "422 invalid_amount [amount]",
		`{"amount":-0.1,"blockchain":"ETH"}`:                     "422 invalid_amount [amount]",
		`{"blockchain":"ETH"}`:                                   "400 invalid_request [amount]",
		`{"amount":null,"blockchain":"NOPE"}`:                    "400 invalid_request [amount blockchain]",
		`{"amount":"x","blockchain":"ETH"}`:                      "400 invalid_request [amount]",
		`{"amount":1.0000001,"blockchain":"ETH"}`:                "400 invalid_request [amount]",
		`{"amount":1,"blockchain":5}`:                            "400 invalid_request [blockchain]",
		`{"amount":1,"blockchain":"NOPE"}`:                       "400 invalid_request [blockchain]",
		`{"amount":1}`:                                           "400 invalid_request [currency]",
		`{"amount":1,"token":"USDT"}`:                            "400 invalid_request [currency]",
		`{"amount":1,"currency":"USDTERC20","blockchain":"BTC"}`: "400 invalid_request [blockchain]",
		`{"amount":1,"blockchain":"BTC","token":"USDT"}`:         "400 invalid_currency [currency]",
		`{"amount":1,"blockchain":"TRON"}`:                       "400 invalid_request [blockchain]",
		`{"amount":1,"currency":"NOPE"}`:                         "400 invalid_currency [currency]",
		`{"amount":1,"blockchain":"ETH","token":"NOPE"}`:         "400 invalid_currency [currency]",
		`{"amount":1,"blockchain":"ETH","address":"x"}`:          "400 invalid_address [address]",
	} {
		a := w.do("POST", "/withdrawal/fee-estimate/", body)
		require.Equal(t, want, fmt.Sprint(a.Status, " ", a.code(), " ", fieldsOf(a.at("error", "details"))), body)
	}
	a = w.ok(http.StatusUnauthorized, "POST", "/withdrawal/fee-estimate/", `{"amount":1}`, nobody())
	require.Equal(t, "unauthorized", a.code())
	a = w.ok(http.StatusForbidden, "POST", "/withdrawal/fee-estimate/", `{"amount":1}`, bearer(w.newToken(w.admin, "read")))
	require.Equal(t, "forbidden", a.code())
}

func TestWithdrawalMinimum(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for body, want := range map[string]string{
		`{"currency":"USDTERC20"}`:                                   `{"min_amount":1,"currency":"USDTERC20","blockchain":"ETH","token":"USDT"}`,
		`{"blockchain":"BTC","token":"BTC"}`:                         `{"min_amount":0.0001,"currency":"BTC","blockchain":"BTC","token":"BTC"}`,
		`{"currency":"BTC","blockchain":"BTC","token":"BTC","x":[]}`: `{"min_amount":0.0001,"currency":"BTC","blockchain":"BTC","token":"BTC"}`,
	} {
		a := w.ok(http.StatusOK, "POST", "/withdrawal/min-amount/", body)
		isText(t, want, a)
		hasExactly(t, a.Raw, a.Body, "min_amount", aNumber, "currency", aText, "blockchain", aText, "token", aText)
	}
	for body, field := range map[string]string{
		`{}`:                                    "currency",
		`{"blockchain":"ETH"}`:                  "currency",
		`{"currency":"NOPE"}`:                   "currency",
		`{"currency":"USDTTRC20"}`:              "currency",
		`{"currency":7}`:                        "currency",
		`{"blockchain":"NOPE","token":"USDT"}`:  "blockchain",
		`{"blockchain":"TRX","token":"USDT"}`:   "blockchain",
		`{"blockchain":"ETH","token":"NOPE"}`:   "token",
		`{"currency":"BTC","blockchain":"ETH"}`: "blockchain",
		`{"currency":"BTC","token":"ETH"}`:      "token",
	} {
		a := w.ok(http.StatusBadRequest, "POST", "/withdrawal/min-amount/", body)
		require.Equal(t, "invalid_request", a.code(), body)
		require.Equal(t, []string{field}, fieldsOf(a.at("error", "details")), body)
	}
}

func TestAvailableCurrencies(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	w.earn("BTC", "600.00", "")
	w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(map[string]any{"amount": "999.5"}))
	a := w.ok(http.StatusOK, "GET", "/withdrawal/available-currencies/", nil)
	list := a.Body["currencies"].([]any)
	require.Len(t, list, 2)
	hasExactly(t, a.Raw, list[0], "currency", aText, "blockchain", aText, "token", aText, "available_balance", aDecimal, "min_amount", aDecimal)
	isText(t, `{"currencies":[{"currency":"BTC","blockchain":"BTC","token":"BTC","available_balance":"0.01000000","min_amount":"0.00010000"},`+
		`{"currency":"USDTERC20","blockchain":"ETH","token":"USDT","available_balance":"0.50000000","min_amount":"1.00000000"}]}`, a)
	w.ok(http.StatusBadRequest, "POST", "/withdrawal/", w.wd(map[string]any{"amount": "0.5"}))
	w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(map[string]any{"amount": "0.01", "currency": "BTC", "address": w.recipient("BTC")}))
	a = w.ok(http.StatusOK, "GET", "/withdrawal/available-currencies/", nil)
	require.Len(t, a.Body["currencies"], 1, "all of it is held")
	a = w.ok(http.StatusOK, "GET", "/withdrawal/available-currencies/", nil, w.otherShop())
	isText(t, `{"currencies":[]}`, a)
}

func TestWithdrawalLimits(t *testing.T) {
	t.Parallel()
	w := newPayer(t, func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			c.Withdrawals.Ceilings = func(_ context.Context, _, currency string) (withdrawal.Ceiling, error) {
				if currency == "USDTERC20" {
					return withdrawal.Ceiling{Max: 300_000000, Daily: 500_000000}, nil
				}
				return withdrawal.Ceiling{}, nil
			}
		}
	})
	limit := func() map[string]any {
		a := w.ok(http.StatusOK, "GET", "/withdrawal/limits/?currency=USDTERC20", nil)
		list := a.Body["limits"].([]any)
		require.Len(t, list, 1)
		hasExactly(t, a.Raw, list[0], "currency", aText, "min_amount", aDecimal, "max_amount", aDecimal, "daily_limit", aDecimal, "daily_used", aDecimal, "daily_remaining", aDecimal)
		return list[0].(map[string]any)
	}
	require.Equal(t, map[string]any{
		"currency": "USDTERC20", "min_amount": "1.00000000", "max_amount": "300.00000000", "daily_limit": "500.00000000",
		"daily_used": "0.00000000", "daily_remaining": "500.00000000",
	}, limit())
	w.ok(http.StatusBadRequest, "POST", "/withdrawal/", w.wd(map[string]any{"amount": "300.000001"}))
	first := w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(map[string]any{"amount": "300"}))
	require.Equal(t, "200.00000000", limit()["daily_remaining"])
	a := w.ok(http.StatusBadRequest, "POST", "/withdrawal/", w.wd(map[string]any{"amount": "200.000001"}))
	require.Equal(t, []string{"amount"}, fieldsOf(a.at("error", "details")))
	w.ok(http.StatusOK, "POST", "/withdrawal/"+first.Body["withdrawal_id"].(string)+"/cancel/", nil)
	require.Equal(t, "0.00000000", limit()["daily_used"], "what is cancelled does not count")

	a = w.ok(http.StatusOK, "GET", "/withdrawal/limits/?currency=BTC", nil)
	isText(t, `{"limits":[{"currency":"BTC","min_amount":"0.00010000","max_amount":null,"daily_limit":null,"daily_used":null,"daily_remaining":null}]}`, a)
	a = w.ok(http.StatusOK, "GET", "/withdrawal/limits/", nil)
	require.Len(t, a.Body["limits"], 1+1+3, "BTC, ETH and three tokens: what this service has chains for")
	for _, code := range []string{"NOPE", "usdterc20", "USDTTRC20"} {
		a = w.ok(http.StatusBadRequest, "GET", "/withdrawal/limits/?currency="+code, nil)
		require.Equal(t, "invalid_currency", a.code())
	}
}
