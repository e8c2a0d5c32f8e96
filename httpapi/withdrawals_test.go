package httpapi_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// newPayer is a world whose shop has 1000 USDTERC20, and whose house has gas. The
// platform takes 0.5 % of a withdrawal, and 0.1 USDTERC20.
func newPayer(t testing.TB, with ...func(*setup)) *world {
	t.Helper()
	w := newWorld(t, with...)
	w.charge(w.tenant, "0.5", "0.1")
	w.fund(w.tenant)
	w.earn("USDTERC20", "1000.00", "")
	return w
}

func (w *world) charge(tenant, percent, flat string) {
	w.t.Helper()
	p, f := decimal.RequireFromString(percent), decimal.RequireFromString(flat)
	_, err := w.app.Wallets.UpdateTenant(w.t.Context(), tenant, wallet.Settings{
		WithdrawalPercent: &p, WithdrawalFlats: map[string]decimal.Decimal{"USDTERC20": f},
	})
	require.NoError(w.t, err)
}

// recipient is somebody else's address.
func (w *world) recipient(n chain.Network) string { return string(w.chains[n].Customer("recipient")) }

// wd is a request for a withdrawal, with changes: a nil value takes a field away.
func (w *world) wd(change map[string]any) map[string]any {
	body := map[string]any{"amount": "100", "currency": "USDTERC20", "address": w.recipient("ETH")}
	for k, v := range change {
		if v == nil {
			delete(body, k)
		} else {
			body[k] = v
		}
	}
	return body
}

// held is what the master account has, and holds.
func (w *world) held(currency string) (total, held string) {
	w.t.Helper()
	all, err := w.app.Wallets.Balances(w.t.Context(), w.tenant, wallet.Master)
	require.NoError(w.t, err)
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(w.t, err)
	for _, b := range all[wallet.Master] {
		if b.Currency == currency {
			return b.Amount.Format(c.Scale, c.Scale), b.Pending.Format(c.Scale, c.Scale)
		}
	}
	return "none", "none"
}

// stranger is another tenant's access token.
func (w *world) otherShop() with {
	return bearer(w.newToken(w.newApp(w.newTenant("other"), "", auth.Read, auth.Write), ""))
}

// Kinds of JSON values, for hasExactly.
const (
	aDecimal = "decimal string with 8 places"
	aNumber  = "number"
	aText    = "string"
	aNull    = "null"
	aBool    = "boolean"
	aUUID    = "uuid"
	aTime    = "time"
)

var (
	eightPlaces  = regexp.MustCompile(`^(0|[1-9][0-9]*)\.[0-9]{8}$`)
	milliseconds = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// hasExactly holds a JSON object to its fields, in their order, and their kinds.
func hasExactly(t testing.TB, raw string, v any, fields ...string) {
	t.Helper()
	m, ok := v.(map[string]any)
	require.True(t, ok, "%v", v)
	require.Len(t, m, len(fields)/2, "%v", m)
	at := -1
	for pair := range slices.Chunk(fields, 2) {
		name, kind := pair[0], pair[1]
		value, given := m[name]
		require.True(t, given, name)
		require.Equal(t, kind, kindOfValue(value, kind), "%s: %v", name, value)
		next := strings.Index(raw, `"`+name+`":`)
		require.Positive(t, next, name)
		require.Greater(t, next, at, "%s stands in another order", name)
		at = next
	}
}

// isText holds an answer to its every character.
func isText(t testing.TB, want string, a answer) {
	t.Helper()
	require.Equal(t, want+"\n", a.Raw)
}

func kindOfValue(v any, want string) string {
	switch v := v.(type) {
	case nil:
		return aNull
	case bool:
		return aBool
	case string:
		switch {
		case want == aDecimal && eightPlaces.MatchString(v), want == aTime && milliseconds.MatchString(v), want == aUUID && uuid.Validate(v) == nil:
			return want
		}
		return aText
	case interface{ Float64() (float64, error) }:
		return aNumber
	}
	return fmt.Sprintf("%T", v)
}

var withdrawalFields = []string{
	"withdrawal_id", aUUID, "custom_id", aText, "amount", aDecimal, "requested_amount", aDecimal, "fee", aDecimal, "platform_fee", aDecimal,
	"network_fee", aDecimal, "blockchain", aText, "token", aText, "currency", aText, "address", aText, "memo", aText, "status", aText,
	"transaction_hash", aNull, "confirmations", aNumber, "required_confirmations", aNumber, "batch_id", aNull, "callback_url", aText,
	"created_at", aTime, "updated_at", aTime, "completed_at", aNull, "waiting_reason", aNull, "waiting_since", aNull,
	"requested_by", aText, "rule", aNull, "approvals_required", aNumber, "approvals", "[]interface {}",
}

// withKinds is fields with other kinds for some.
func withKinds(fields []string, kinds ...string) []string {
	fields = slices.Clone(fields)
	for pair := range slices.Chunk(kinds, 2) {
		fields[slices.Index(fields, pair[0])+1] = pair[1]
	}
	return fields
}

func TestWithdrawalFromCreationToCompletion(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	a := w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(map[string]any{
		"custom_id": "c-1", "memo": "rent", "callback_url": "https://shop.example/hook", "status": "completed", "fee": "0", "tenant": "x",
	}))
	hasExactly(t, a.Raw, a.Body, withdrawalFields...)
	require.Equal(t, "pending", a.Body["status"])
	require.Equal(t, "0 1", fmt.Sprint(a.Body["confirmations"], " ", a.Body["required_confirmations"]))
	require.Equal(t, "100.00000000", a.Body["requested_amount"])
	require.Equal(t, "0.60000000", a.Body["platform_fee"])
	requireSumOf(t, a.Body["requested_amount"], a.Body["amount"], a.Body["fee"])
	requireSumOf(t, a.Body["fee"], a.Body["platform_fee"], a.Body["network_fee"])
	require.Equal(t, "USDTERC20 ETH USDT", fmt.Sprint(a.Body["currency"], " ", a.Body["blockchain"], " ", a.Body["token"]))
	total, held := w.held("USDTERC20")
	require.Equal(t, "1000.000000 100.000000", total+" "+held)

	w.mine(30)
	path := "/withdrawal/" + a.Body["withdrawal_id"].(string)
	done := w.ok(http.StatusOK, "GET", path, nil)
	hasExactly(t, done.Raw, done.Body, withKinds(withdrawalFields, "transaction_hash", aText, "completed_at", aTime)...)
	require.Equal(t, "completed", done.Body["status"])
	same := w.ok(http.StatusOK, "POST", "/withdrawal/status/", map[string]any{"withdrawal_id": a.Body["withdrawal_id"]})
	require.Equal(t, done.Raw, same.Raw)
	total, held = w.held("USDTERC20")
	require.Equal(t, "900.000000 0.000000", total+" "+held)
	landed := w.chains["ETH"].Balance(chain.Address(w.recipient("ETH")), "USDTERC20")
	require.Equal(t, a.Body["amount"], ledger.FixedString(landed, 8))
	require.Equal(t, "invalid_state", w.ok(http.StatusConflict, "POST", path+"/cancel/", nil).code())
}

func requireSumOf(t testing.TB, sum any, parts ...any) {
	t.Helper()
	total := decimal.RequireFromString(sum.(string))
	for _, p := range parts {
		total = total.Sub(decimal.RequireFromString(p.(string)))
	}
	require.True(t, total.IsZero(), "%v is not the sum of %v", sum, parts)
}

// W15: the figure is what leaves the wallet, or with final_amount what arrives.
func TestW15_WithdrawalFigures(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	minimal := withKinds(withdrawalFields, "custom_id", aNull, "memo", aNull, "callback_url", aNull)
	a := w.ok(http.StatusCreated, "POST", "/withdrawal", `{"amount":100.000001,"final_amount":true,"blockchain":"ETH","token":"USDT","address":"`+w.recipient("ETH")+`"}`)
	hasExactly(t, a.Raw, a.Body, minimal...)
	require.Equal(t, "100.00000100", a.Body["amount"])
	require.Equal(t, "0.60000000", a.Body["platform_fee"]) // of the figure asked, rounded down
	requireSumOf(t, a.Body["requested_amount"], a.Body["amount"], a.Body["fee"])

	w.rates.Set("USDT", "EUR", decimal.RequireFromString("0.9"))
	a = w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(map[string]any{"amount": nil, "price_amount": "10.00", "price_currency": "EUR"}))
	require.Equal(t, "11.11111100", a.Body["requested_amount"], "converted once, rounded down to the token's places")
	a = w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(map[string]any{"amount": nil, "price_amount": 10, "final_amount": true}))
	require.Equal(t, "10.00000000", a.Body["amount"])
	w.booksHold()
}

func TestWithdrawalErrors(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	hot, err := w.app.Hot(t.Context(), "ETH", w.tenant)
	require.NoError(t, err)
	long := strings.Repeat("é", 256)
	for name, c := range map[string]struct {
		change  map[string]any
		code    string
		details []string
	}{
		"both figures":           {map[string]any{"price_amount": "5"}, "invalid_request", []string{"amount"}},
		"no figure":              {map[string]any{"amount": nil}, "invalid_request", []string{"amount"}},
		"null figure":            {map[string]any{"amount": nil, "price_amount": nil}, "invalid_request", []string{"amount"}},
		"figure of another type": {map[string]any{"amount": true}, "invalid_request", []string{"amount"}},
		"price of another type":  {map[string]any{"amount": nil, "price_amount": "abc"}, "invalid_request", []string{"price_amount"}},
		"exponent":               {map[string]any{"amount": "1e2"}, "invalid_request", []string{"amount"}},
		"digits":                 {map[string]any{"amount": strings.Repeat("1", 41)}, "invalid_request", []string{"amount"}},
		"too large":              {map[string]any{"amount": strings.Repeat("1", 20)}, "invalid_request", []string{"amount"}},
		"zero":                   {map[string]any{"amount": 0}, "invalid_request", []string{"amount"}},
		"below zero":             {map[string]any{"amount": "-5"}, "invalid_request", []string{"amount"}},
		"places":                 {map[string]any{"amount": "1.0000001"}, "invalid_request", []string{"amount"}},
		"fiat places":            {map[string]any{"amount": nil, "price_amount": "1.001"}, "invalid_request", []string{"price_amount"}},
		"price too small":        {map[string]any{"amount": nil, "price_amount": "0.01", "currency": "BTC", "address": w.recipient("BTC")}, "invalid_request", []string{"amount"}},
		"below the minimum":      {map[string]any{"amount": "1"}, "invalid_request", []string{"amount"}},
		"far below the minimum":  {map[string]any{"amount": "0.000001"}, "invalid_request", []string{"amount"}},
		"final below minimum":    {map[string]any{"amount": "0.999999", "final_amount": true}, "invalid_request", []string{"amount"}},
		"no address":             {map[string]any{"address": nil}, "invalid_request", []string{"address"}},
		"empty address":          {map[string]any{"address": ""}, "invalid_request", []string{"address"}},
		"address of no text":     {map[string]any{"address": 5}, "invalid_request", []string{"address"}},
		"fiat unknown":           {map[string]any{"amount": nil, "price_amount": "5", "price_currency": "XXX"}, "invalid_request", []string{"price_currency"}},
		"final of another type":  {map[string]any{"final_amount": "true"}, "invalid_request", []string{"final_amount"}},
		"no currency":            {map[string]any{"currency": nil}, "invalid_request", []string{"currency"}},
		"half a pair":            {map[string]any{"currency": nil, "token": "USDT"}, "invalid_request", []string{"currency"}},
		"both forms":             {map[string]any{"blockchain": "ETH", "token": "USDT"}, "invalid_request", []string{"currency"}},
		"form and half":          {map[string]any{"blockchain": "ETH"}, "invalid_request", []string{"currency"}},
		"callback":               {map[string]any{"callback_url": "ftp://x"}, "invalid_request", []string{"callback_url"}},
		"callback of no URL":     {map[string]any{"callback_url": "nonsense"}, "invalid_request", []string{"callback_url"}},
		"too long": {
			map[string]any{"address": long, "memo": long, "custom_id": long[:130], "account_id": long},
			"invalid_request",
			[]string{"account_id", "address", "custom_id", "memo"},
		},
		"all at once": {
			map[string]any{"amount": "x", "address": 1, "custom_id": 2, "currency": "NOPE", "callback_url": "nonsense", "price_currency": "XXX"},
			"invalid_request",
			[]string{"address", "amount", "callback_url", "currency", "custom_id", "price_currency"},
		},
		"unknown code":      {map[string]any{"currency": "NOPE"}, "invalid_currency", []string{"currency"}},
		"code in lower":     {map[string]any{"currency": "usdterc20"}, "invalid_currency", []string{"currency"}},
		"unknown pair":      {map[string]any{"currency": nil, "blockchain": "BTC", "token": "USDT"}, "invalid_currency", []string{"currency"}},
		"no such network":   {map[string]any{"currency": "USDTTRC20"}, "invalid_currency", []string{"currency"}},
		"bad address":       {map[string]any{"address": "0x12"}, "invalid_address", []string{"address"}},
		"another network's": {map[string]any{"address": w.recipient("BTC")}, "invalid_address", []string{"address"}},
		"checksum":          {map[string]any{"address": spoiled(w.recipient("ETH"))}, "invalid_address", []string{"address"}},
		"our own":           {map[string]any{"address": string(hot)}, "invalid_address", []string{"address"}},
		"insufficient":      {map[string]any{"amount": "1000.000001"}, "insufficient_balance", []string{"available", "currency", "requested"}},
		"never had":         {map[string]any{"currency": "DAIERC20"}, "insufficient_balance", []string{"available", "currency", "requested"}},
	} {
		a := w.ok(http.StatusBadRequest, "POST", "/withdrawal/", w.wd(c.change))
		require.Equal(t, c.code, a.code(), "%s: %s", name, a.Raw)
		require.Equal(t, c.details, fieldsOf(a.at("error", "details")), "%s: %s", name, a.Raw)
	}
	a := w.ok(http.StatusNotFound, "POST", "/withdrawal/", w.wd(map[string]any{"account_id": "nobody"}))
	require.Equal(t, "not_found", a.code())
	require.Equal(t, "0", fmt.Sprint(w.ok(http.StatusOK, "GET", "/withdrawal/", nil).Body["total"]), "nothing was created")
	_, held := w.held("USDTERC20")
	require.Equal(t, "0.000000", held)
}

// Lengths count characters, and the longest is taken.
func TestWithdrawalTextsAtTheirLimits(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	letters := func(n int) string { return strings.Repeat("é", n) }
	url := "https://shop.example/" + strings.Repeat("x", 2048-21)
	a := w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(map[string]any{"custom_id": letters(64), "memo": letters(255), "callback_url": url}))
	require.Equal(t, letters(64)+letters(255)+url, fmt.Sprint(a.Body["custom_id"], a.Body["memo"], a.Body["callback_url"]))
	require.Equal(t, "invalid_address", w.ok(http.StatusBadRequest, "POST", "/withdrawal/", w.wd(map[string]any{"address": letters(255)})).code())
	require.Equal(t, "not_found", w.ok(http.StatusNotFound, "POST", "/withdrawal/", w.wd(map[string]any{"account_id": letters(255)})).code())
	for field, longest := range map[string]string{"custom_id": letters(64), "memo": letters(255), "address": letters(255), "account_id": letters(255), "callback_url": url} {
		a := w.ok(http.StatusBadRequest, "POST", "/withdrawal/", w.wd(map[string]any{field: longest + "é"}))
		require.Equal(t, []string{field}, fieldsOf(a.at("error", "details")))
		a = w.ok(http.StatusBadRequest, "POST", "/withdrawal/", w.wd(map[string]any{field: "a\u202eb"}))
		require.Equal(t, []string{field}, fieldsOf(a.at("error", "details")), "a mark that turns writing around")
	}
}

// spoiled changes the last character of an address.
func spoiled(s string) string {
	last := "0"
	if s[len(s)-1] == '0' {
		last = "1"
	}
	return s[:len(s)-1] + last
}

func fieldsOf(v any) []string {
	m, _ := v.(map[string]any)
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// What is requested includes the fees; figures are strings.
func TestInsufficientBalanceDetails(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	for amount, requested := range map[string]string{"1000.5": "1000.50000000", "1000000": "1000000.00000000"} {
		a := w.ok(http.StatusBadRequest, "POST", "/withdrawal/", w.wd(map[string]any{"amount": amount}))
		require.Equal(t, map[string]any{"available": "1000.00000000", "requested": requested, "currency": "USDTERC20"}, a.at("error", "details"))
	}
	e := w.ok(http.StatusOK, "POST", "/withdrawal/estimate/", w.wd(map[string]any{"amount": "1000", "final_amount": true}))
	a := w.ok(http.StatusBadRequest, "POST", "/withdrawal/", w.wd(map[string]any{"amount": "1000", "final_amount": true}))
	require.Equal(t, e.Body["requested_amount"], a.at("error", "details", "requested"))
	require.NotEqual(t, "1000.00000000", e.Body["requested_amount"])
}

func TestWithdrawalWithoutFeeOrPrice(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	w.chains["ETH"].Front().FailRate(1000)
	for _, path := range []string{"/withdrawal/", "/withdrawal/estimate/", "/withdrawal/fee-estimate/"} {
		a := w.ok(http.StatusInternalServerError, "POST", path, w.wd(nil))
		require.Equal(t, "service_unavailable", a.code())
		require.NotContains(t, a.Raw, "sim:")
	}
	w.chains["ETH"].Front().FailRate(0)
	a := w.ok(http.StatusServiceUnavailable, "POST", "/withdrawal/", w.wd(map[string]any{"amount": nil, "price_amount": "10", "price_currency": "GBP"}))
	require.Equal(t, "server_error", a.code())
}

func TestWithdrawalFromASubAccount(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	sub, err := w.app.Wallets.Create(t.Context(), w.tenant, wallet.CreateInput{Name: "sub", ExternalID: "their-7"})
	require.NoError(t, err)
	w.earn("USDTERC20", "50.00", "their-7")
	a := w.ok(http.StatusBadRequest, "POST", "/withdrawal/", w.wd(map[string]any{"amount": "51", "account_id": "their-7"}))
	require.Equal(t, "50.00000000", a.at("error", "details", "available"), "the master account does not help out")
	w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(map[string]any{"amount": "20", "account_id": "their-7"}))
	w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(map[string]any{"amount": "30", "account_id": sub.ID}))
	w.ok(http.StatusNotFound, "POST", "/withdrawal/", w.wd(map[string]any{"account_id": sub.ID}), w.otherShop())
	_, held := w.held("USDTERC20")
	require.Equal(t, "0.000000", held)
	w.mine(30)
	total, _ := w.held("USDTERC20")
	require.Equal(t, "1000.000000", total)
	w.booksHold()
}

// Memos: a destination tag on XRP, a text on XLM, the merchant's own note
// elsewhere.
func TestWithdrawalMemos(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.networks = []chain.Network{"ETH", "XRP", "XLM"} })
	for _, c := range []struct{ currency, memo, message string }{
		{"XRP", "", "is required on XRP"},
		{"XRP", "007", "must be a destination tag: a whole number of 0 to 4294967295"},
		{"XRP", "-1", "must be a destination tag: a whole number of 0 to 4294967295"},
		{"XRP", "4294967296", "must be a destination tag: a whole number of 0 to 4294967295"},
		{"XRP", "0", ""},
		{"XRP", "4294967295", ""},
		{"XLM", "", "is required on XLM"},
		{"XLM", strings.Repeat("x", 29), "must have at most 28 bytes"},
		{"XLM", strings.Repeat("é", 15), "must have at most 28 bytes"},
		{"XLM", strings.Repeat("é", 14), ""},
		{"ETH", "", ""},
		{"ETH", strings.Repeat("é", 255), ""},
		{"ETH", strings.Repeat("é", 256), "has more than 255 characters"},
	} {
		c2, err := chain.MainnetRegistry().Currency(c.currency)
		require.NoError(t, err)
		body := w.wd(map[string]any{"currency": c.currency, "address": w.recipient(c2.Network), "memo": c.memo})
		a := w.ok(http.StatusBadRequest, "POST", "/withdrawal/", body)
		if c.message == "" {
			require.Equal(t, "insufficient_balance", a.code(), "%v: %s", c, a.Raw)
			continue
		}
		require.Equal(t, map[string]any{"memo": []any{c.message}}, a.at("error", "details"), "%v", c)
	}
}

func TestGetWithdrawal(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	a := w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(nil))
	mine, other := a.Body["withdrawal_id"].(string), w.otherShop()
	require.Equal(t, a.Raw, w.ok(http.StatusOK, "GET", "/withdrawal/"+mine+"/", nil).Raw)
	for _, missing := range []string{uuid.Nil.String(), "x", "%20", strings.Repeat("x", 300)} {
		require.Equal(t, "not_found", w.ok(http.StatusNotFound, "GET", "/withdrawal/"+missing, nil).code())
		require.Equal(t, "not_found", w.ok(http.StatusNotFound, "POST", "/withdrawal/"+missing+"/cancel/", nil).code())
	}
	require.Equal(t, "not_found", w.ok(http.StatusNotFound, "GET", "/withdrawal/"+mine, nil, other).code())
	require.Equal(t, "not_found", w.ok(http.StatusNotFound, "POST", "/withdrawal/"+mine+"/cancel", nil, other).code())
	require.Equal(t, "not_found", w.ok(http.StatusNotFound, "POST", "/withdrawal/status/", map[string]any{"withdrawal_id": mine}, other).code())
	require.Equal(t, "not_found", w.ok(http.StatusNotFound, "POST", "/withdrawal/status/", map[string]any{"withdrawal_id": uuid.Nil.String()}).code())
	for _, body := range []any{nil, `{}`, `{"withdrawal_id":null}`, `{"withdrawal_id":5}`, `{"withdrawal_id":""}`, `{"withdrawal_id":"x"}`} {
		b := w.ok(http.StatusBadRequest, "POST", "/withdrawal/status/", body)
		require.Equal(t, "invalid_request", b.code(), "%v", body)
	}
	require.Contains(t, w.ok(http.StatusBadRequest, "POST", "/withdrawal/status/", `{}`).at("error", "details"), "withdrawal_id")
	require.Equal(t, "POST", w.ok(http.StatusMethodNotAllowed, "GET", "/withdrawal/status/", nil).Header.Get("Allow"))
}

func TestCancelWithdrawal(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	a := w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(nil))
	path := "/withdrawal/" + a.Body["withdrawal_id"].(string) + "/cancel/"
	first := w.ok(http.StatusOK, "POST", path, nil)
	hasExactly(t, first.Raw, first.Body, withKinds(withdrawalFields, "custom_id", aNull, "memo", aNull, "callback_url", aNull)...)
	require.Equal(t, "cancelled", first.Body["status"])
	total, held := w.held("USDTERC20")
	require.Equal(t, "1000.000000 0.000000", total+" "+held)
	require.Equal(t, first.Raw, w.ok(http.StatusOK, "POST", path, `{}`).Raw, "again changes nothing")

	a = w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(nil))
	path = "/withdrawal/" + a.Body["withdrawal_id"].(string) + "/cancel/"
	w.step() // signed and sent
	late := w.ok(http.StatusConflict, "POST", path, nil)
	require.Equal(t, "invalid_state", late.code())
	require.Equal(t, map[string]any{"current_status": "processing"}, late.at("error", "details"))
	w.mine(30)
	require.Equal(t, "completed", w.ok(http.StatusConflict, "POST", path, nil).at("error", "details", "current_status"))
	w.booksHold()
}

func TestWithdrawalsNeedBothScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.options = func(o *httpapi.Options) { o.Limits = &httpapi.Limits{} } })
	for _, scope := range []string{"read", "write"} {
		token := bearer(w.newToken(w.admin, scope))
		for _, r := range w.routes() {
			if r.Group != "Withdrawals" || r.Style == httpapi.Classic {
				continue
			}
			a := w.ok(http.StatusForbidden, r.Method, strings.ReplaceAll(r.Path, "{withdrawal_id}", uuid.Nil.String()), nil, token)
			require.Equal(t, "permission_denied", a.code(), r.Name)
		}
	}
}

// booksHold proves the whole store.
func (w *world) booksHold() {
	w.t.Helper()
	reports, err := w.app.Verify(w.t.Context())
	require.NoError(w.t, err)
	for _, r := range reports {
		require.True(w.t, r.Sound(), "%+v", r)
	}
}
