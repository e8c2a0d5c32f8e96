package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/wallet"
)

var rateFields = []string{"currency_from", aText, "currency_to", aText, "amount", aNumber, "estimated_amount", aNumber, "rate", aNumber}

// Every row is asked as a query and as a body.
func TestRates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.networks = []chain.Network{"ETH", "BTC", "TRX"} })
	fee := decimal.RequireFromString("0.75")
	_, err := w.app.Wallets.UpdateTenant(t.Context(), w.tenant, wallet.Settings{TransactionFee: &fee})
	require.NoError(t, err)
	w.rates.Set("BTC", "EUR", decimal.RequireFromString("54000"))
	w.rates.Set("DAI", "USD", decimal.RequireFromString("0.9997"))
	for name, c := range map[string]struct {
		ask  map[string]string
		want string // amount, estimated_amount, rate
	}{
		"defaults":                {map[string]string{"currency_to": "USDTERC20"}, "1 1 1"},
		"into a coin, rounded up": {map[string]string{"currency_to": "BTC"}, "1 0.00001667 0.000016666666666667"},
		"places of the coin":      {map[string]string{"currency_to": "USDTERC20", "amount": "25.5"}, "25.5 25.5 1"},
		"inexact":                 {map[string]string{"currency_to": "DAIERC20", "amount": "100"}, "100 100.03000901 1.000300090027008102"},
		"from a coin":             {map[string]string{"currency_from": "BTC", "currency_to": "USD", "amount": "0.12345678"}, "0.12345678 7407.4 60000"},
		"fiat is rounded down":    {map[string]string{"currency_from": "DAIERC20", "currency_to": "USD", "amount": "1"}, "1 0.99 0.9997"},
		"another fiat":            {map[string]string{"currency_from": "EUR", "currency_to": "BTC", "amount": "54"}, "54 0.001 0.000018518518518519"},
		"coin to coin":            {map[string]string{"currency_from": "BTC", "currency_to": "ETH", "amount": "2"}, "2 60 30"},
		"coin to coin, inexact":   {map[string]string{"currency_from": "ETH", "currency_to": "BTC"}, "1 0.03333334 0.033333333333333333"},
		"token on two networks":   {map[string]string{"currency_from": "USDTERC20", "currency_to": "USDTTRC20", "amount": "3.000001"}, "3.000001 3.000001 1"},
		"the same":                {map[string]string{"currency_from": "BTC", "currency_to": "BTC"}, "1 1 1"},
		"the same fiat":           {map[string]string{"currency_to": "USD", "amount": "1.10"}, "1.1 1.1 1"},
		"fee by the merchant":     {map[string]string{"currency_to": "USDTERC20", "amount": "100", "fee_percentage": "1.5"}, "100 100 1"},
		"fee by the customer":     {map[string]string{"currency_to": "USDTERC20", "amount": "100", "fee_percentage": "1.5", "is_fee_paid_by_user": "true"}, "100 101.5 1"},
		"the account's fee":       {map[string]string{"currency_to": "USDTERC20", "amount": "100", "is_fee_paid_by_user": "true"}, "100 100.75 1"},
		"no fee":                  {map[string]string{"currency_to": "USDTERC20", "amount": "100", "fee_percentage": "0", "is_fee_paid_by_user": "true"}, "100 100 1"},
		"all of it":               {map[string]string{"currency_to": "USDTERC20", "amount": "100", "fee_percentage": "100", "is_fee_paid_by_user": "true"}, "100 200 1"},
	} {
		for _, a := range askRates(w, http.StatusOK, c.ask) {
			hasExactly(t, a.Raw, a.Body, rateFields...)
			require.Equal(t, c.want, fmt.Sprint(a.Body["amount"], " ", a.Body["estimated_amount"], " ", a.Body["rate"]), name)
			require.Equal(t, c.ask["currency_to"], a.Body["currency_to"])
		}
	}
	for name, c := range map[string]struct {
		ask  map[string]string
		want string // estimated_amount, fee_percentage, fee_amount
	}{
		"the account's": {map[string]string{"currency_to": "USDTERC20", "amount": "100"}, "100 0.75 0.75"},
		"given":         {map[string]string{"currency_to": "USDTERC20", "amount": "100", "fee_percentage": "1.50"}, "100 1.5 1.5"},
		"none":          {map[string]string{"currency_to": "USDTERC20", "amount": "100", "fee_percentage": "0"}, "100 0 0"},
		"by customer":   {map[string]string{"currency_to": "BTC", "amount": "600", "fee_percentage": "2", "is_fee_paid_by_user": "true"}, "0.0102 2 0.0002"},
		"by merchant":   {map[string]string{"currency_to": "BTC", "amount": "600", "fee_percentage": "2", "is_fee_paid_by_user": "false"}, "0.01 2 0.0002"},
	} {
		c.ask["full"] = "true"
		for _, a := range askRates(w, http.StatusOK, c.ask) {
			hasExactly(t, a.Raw, a.Body, append(rateFields, "fee_percentage", aNumber, "fee_amount", aNumber, "timestamp", aTime)...)
			require.Equal(t, c.want, fmt.Sprint(a.Body["estimated_amount"], " ", a.Body["fee_percentage"], " ", a.Body["fee_amount"]), name)
		}
	}
	// As a payment of the same amount would ask for.
	p := w.ok(http.StatusOK, "POST", "/payments/estimate/", map[string]any{"amount": "33.33", "currency": "BTC", "is_fee_paid_by_user": true})
	for _, a := range askRates(w, http.StatusOK, map[string]string{"currency_to": "BTC", "amount": "33.33", "is_fee_paid_by_user": "true"}) {
		require.True(t, decimal.RequireFromString(fmt.Sprint(a.Body["estimated_amount"])).Equal(decimal.RequireFromString(p.Body["amount_crypto"].(string))))
	}
}

// askRates sends one question to GET /rates/ and to POST /rates/calculate/.
func askRates(w *world, status int, ask map[string]string) []answer {
	w.t.Helper()
	var query []string
	body := map[string]any{}
	for k, v := range ask {
		query = append(query, k+"="+v)
		switch {
		case v == "true" || v == "false":
			body[k] = v == "true"
		default:
			body[k] = v
		}
	}
	return []answer{
		w.ok(status, "GET", "/rates/?"+strings.Join(query, "&"), nil, bearer(w.newToken(w.admin, "read"))),
		w.ok(status, "POST", "/rates/calculate/", body),
	}
}

func TestRatesErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.networks = []chain.Network{"ETH", "BTC", "DOGE"} })
	for name, c := range map[string]struct {
		ask  map[string]string
		want string
	}{
		"nothing":          {map[string]string{}, "400 invalid_request [currency_to]"},
		"unknown":          {map[string]string{"currency_to": "NOPE"}, "400 invalid_currency [currency]"},
		"unknown source":   {map[string]string{"currency_to": "BTC", "currency_from": "NOPE"}, "400 invalid_currency [currency]"},
		"in lower":         {map[string]string{"currency_to": "btc", "currency_from": "usd"}, "400 invalid_currency [currency]"},
		"two fiats":        {map[string]string{"currency_to": "EUR"}, "400 invalid_request [currency_to]"},
		"zero":             {map[string]string{"currency_to": "BTC", "amount": "0"}, "400 invalid_request [amount]"},
		"below zero":       {map[string]string{"currency_to": "BTC", "amount": "-1"}, "400 invalid_request [amount]"},
		"no number":        {map[string]string{"currency_to": "BTC", "amount": "1e3"}, "400 invalid_request [amount]"},
		"places of fiat":   {map[string]string{"currency_to": "BTC", "amount": "1.001"}, "400 invalid_request [amount]"},
		"places of a coin": {map[string]string{"currency_to": "USD", "currency_from": "USDTERC20", "amount": "1.0000001"}, "400 invalid_request [amount]"},
		"too large":        {map[string]string{"currency_to": "BTC", "amount": strings.Repeat("9", 40)}, "400 invalid_request [amount]"},
		"fee below 0":      {map[string]string{"currency_to": "BTC", "fee_percentage": "-0.1"}, "400 invalid_request [fee_percentage]"},
		"fee above 100":    {map[string]string{"currency_to": "BTC", "fee_percentage": "100.000001"}, "400 invalid_request [fee_percentage]"},
		"fee of 7 places":  {map[string]string{"currency_to": "BTC", "fee_percentage": "0.1234567"}, "400 invalid_request [fee_percentage]"},
		"all at once":      {map[string]string{"currency_to": "NOPE", "amount": "x", "fee_percentage": "101", "full": "maybe"}, "400 invalid_request [amount currency_to fee_percentage full]"},
		"no price":         {map[string]string{"currency_to": "DOGE"}, "503 server_error [request_id]"},
	} {
		status := http.StatusBadRequest
		if name == "no price" {
			status = http.StatusServiceUnavailable
		}
		for i, a := range askRates(w, status, c.ask) {
			require.Equal(t, c.want, fmt.Sprint(a.Status, " ", a.code(), " ", fieldsOf(a.at("error", "details"))), "%s %d", name, i)
		}
	}
	for _, a := range askRates(w, http.StatusBadRequest, map[string]string{"currency_from": "NO", "currency_to": "NOPE"}) {
		require.Equal(t, []any{"currency_from is not supported", "currency_to is not supported"}, a.at("error", "details", "currency"))
	}
	for _, body := range []string{`{"currency_to":5}`, `{"currency_to":"BTC","full":"true"}`, `{"currency_to":"BTC","amount":[]}`, `{"currency_to":null}`, ``} {
		require.Equal(t, "invalid_request", w.ok(http.StatusBadRequest, "POST", "/rates/calculate/", body).code(), body)
	}
	w.ok(http.StatusBadRequest, "GET", "/rates/?currency_to=BTC&currency_to=ETH", nil)
	a := w.ok(http.StatusOK, "POST", "/rates/calculate/", `{"currency_to":"USDTERC20","amount":2.50,"fee_percentage":1,"is_fee_paid_by_user":true,"full":true}`)
	isText(t, `{"currency_from":"USD","currency_to":"USDTERC20","amount":2.5,"estimated_amount":2.525,"rate":1,`+
		`"fee_percentage":1,"fee_amount":0.025,"timestamp":"2026-01-02T03:04:05.000Z"}`, a)
}

func TestCurrencyRates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.networks = []chain.Network{"ETH", "BTC", "DOGE", "TRX"} })
	w.rates.Set("BTC", "EUR", decimal.RequireFromString("54000.50"))
	a := w.ok(http.StatusOK, "GET", "/rates/BTC/", nil)
	isText(t, `{"currency":"BTC","rates":{"EUR":54000.5,"USD":60000},"timestamp":"2026-01-02T03:04:05.000Z"}`, a)
	a = w.ok(http.StatusOK, "GET", "/rates/USDTTRC20", nil)
	isText(t, `{"currency":"USDTTRC20","rates":{"USD":1},"timestamp":"2026-01-02T03:04:05.000Z"}`, a)
	for _, code := range []string{"NOPE", "btc", "USD", "USDT", "SOL"} {
		a = w.ok(http.StatusBadRequest, "GET", "/rates/"+code+"/", nil)
		require.Equal(t, "invalid_currency", a.code())
		require.Equal(t, []string{"currency"}, fieldsOf(a.at("error", "details")))
	}
	require.Equal(t, "server_error", w.ok(http.StatusServiceUnavailable, "GET", "/rates/DOGE/", nil).code())
	require.Equal(t, "permission_denied", w.ok(http.StatusForbidden, "GET", "/rates/BTC/", nil, bearer(w.newToken(w.admin, "read"))).code())
}

// W18: a price that is old is no price.
func TestW18_OldRatesAreNotShown(t *testing.T) {
	t.Parallel()
	old := rates.NewFixed(func() (never time.Time) { return never }, "USD", map[string]string{"BTC": "60000"})
	w := newWorld(t, func(s *setup) { s.config = func(c *cryptopay.Config) { c.Rates = old } })
	for _, path := range []string{"/rates/?currency_to=BTC", "/rates/BTC/"} {
		require.Equal(t, "server_error", w.ok(http.StatusServiceUnavailable, "GET", path, nil).code())
	}
	a := w.ok(http.StatusOK, "GET", "/currencies/?min_max=true&include_usd=true", nil)
	require.Nil(t, entry(t, a, "BTC")["min_amount_usd"])
}
