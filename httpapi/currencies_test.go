package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
)

// entry finds a currency in an answer of GET /currencies/.
func entry(t testing.TB, a answer, code string) map[string]any {
	t.Helper()
	for _, v := range a.Body["currencies"].([]any) {
		if m := v.(map[string]any); m["currency"] == code {
			return m
		}
	}
	require.Fail(t, "no entry", code)
	return nil
}

// rawOf is a value as JSON with its fields in the order of the interface.
func rawOf(t testing.TB, a answer, code string) string {
	t.Helper()
	var body struct{ Currencies []json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(a.Raw), &body))
	for _, raw := range body.Currencies {
		var e struct{ Currency string }
		require.NoError(t, json.Unmarshal(raw, &e))
		if e.Currency == code {
			return string(raw)
		}
	}
	return ""
}

func TestListCurrencies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			all := chain.Mainnet()
			for i := range all {
				if all[i].Code == "USDTERC20" {
					all[i].Max = decimal.RequireFromString("10000.5")
				}
			}
			var err error
			c.Registry, err = chain.NewRegistry(chain.Networks(), all)
			require.NoError(t, err)
		}
	})
	codes := []any{"BTC", "DAIERC20", "ETH", "USDCERC20", "USDTERC20"}
	for _, query := range []string{"", "?full=false", "?min_max=0&full=", "?withdrawal=false&include_usd=false"} {
		a := w.ok(http.StatusOK, "GET", "/currencies"+query, nil)
		require.Equal(t, map[string]any{"currencies": codes}, a.Body, query)
	}
	for query, want := range map[string][]string{
		"full=true": {"currency", aText, "name", aText, "token", aText, "blockchain", aText, "is_popular", aBool, "is_stable", aBool},
		"min_max=1": {"currency", aText, "min_amount", aDecimal, "max_amount", aDecimal},
		"min_max=true&include_usd=true": {
			"currency", aText, "min_amount", aDecimal, "max_amount", aDecimal, "min_amount_usd", aText, "max_amount_usd", aText,
		},
		"full=true&min_max=true": {
			"currency", aText, "name", aText, "token", aText, "blockchain", aText, "is_popular", aBool, "is_stable", aBool, "min_amount", aDecimal, "max_amount", aDecimal,
		},
		"full=true&min_max=true&include_usd=true": {
			"currency", aText, "name", aText, "token", aText, "blockchain", aText, "is_popular", aBool, "is_stable", aBool,
			"min_amount", aDecimal, "max_amount", aDecimal, "min_amount_usd", aText, "max_amount_usd", aText,
		},
	} {
		a := w.ok(http.StatusOK, "GET", "/currencies/?"+query, nil)
		require.Len(t, a.Body, 1)
		require.Len(t, a.Body["currencies"], len(codes))
		hasExactly(t, rawOf(t, a, "USDTERC20"), entry(t, a, "USDTERC20"), want...)
	}
	w.rates.Set("USDT", "USD", decimal.RequireFromString("0.9991"))
	a := w.ok(http.StatusOK, "GET", "/currencies/?full=true&min_max=true&include_usd=true", nil)
	require.Equal(t, map[string]any{
		"currency": "USDTERC20", "name": "Tether USD", "token": "usdt", "blockchain": "eth", "is_popular": true, "is_stable": true,
		"min_amount": "1.00000000", "max_amount": "10000.50000000", "min_amount_usd": "1.00", "max_amount_usd": "9991.49",
	}, entry(t, a, "USDTERC20"))
	require.Equal(t, map[string]any{
		"currency": "BTC", "name": "Bitcoin", "token": "btc", "blockchain": "btc", "is_popular": true, "is_stable": false,
		"min_amount": "0.00010000", "max_amount": "10.00000000", "min_amount_usd": "6.00", "max_amount_usd": "600000.00",
	}, entry(t, a, "BTC"))
	for query, field := range map[string]string{
		"include_usd=true":               "include_usd",
		"include_usd=true&full=true":     "include_usd",
		"include_usd=true&min_max=false": "include_usd",
		"full=yes":                       "full",
		"min_max=2":                      "min_max",
		"withdrawal=perhaps":             "withdrawal",
		"full=true&full=true":            "full",
		"include_usd=x":                  "include_usd",
	} {
		a := w.ok(http.StatusBadRequest, "GET", "/currencies/?"+query, nil)
		require.Equal(t, "invalid_request", a.code(), query)
		require.Equal(t, []string{field}, fieldsOf(a.at("error", "details")), query)
	}
}

// A price that nobody can tell is null; the list is there all the same.
func TestCurrenciesWithoutAPrice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.networks = []chain.Network{"ETH", "DOGE"} })
	a := w.ok(http.StatusOK, "GET", "/currencies/?min_max=true&include_usd=true", nil)
	require.Equal(t, map[string]any{
		"currency": "DOGE", "min_amount": "5.00000000", "max_amount": "6000000.00000000", "min_amount_usd": nil, "max_amount_usd": nil,
	}, entry(t, a, "DOGE"))
	require.Equal(t, "2.00", entry(t, a, "ETH")["min_amount_usd"])
}

func TestCurrenciesForWithdrawal(t *testing.T) {
	t.Parallel()
	w := newPayer(t)
	a := w.ok(http.StatusOK, "GET", "/currencies/?withdrawal=true", nil)
	isText(t, `{"currencies":["USDTERC20"]}`, a)
	a = w.ok(http.StatusOK, "GET", "/currencies/?withdrawal=true&min_max=true&include_usd=true", nil)
	isText(t, `{"currencies":[{"currency":"USDTERC20","min_amount":"1.00000000","max_amount":"4611686018427.38790400","min_amount_usd":"1.00","max_amount_usd":"4611686018427.38"}]}`, a)
	w.ok(http.StatusCreated, "POST", "/withdrawal/", w.wd(map[string]any{"amount": "1000"}))
	for _, query := range []string{"withdrawal=true", "withdrawal=true&full=true"} {
		a = w.ok(http.StatusOK, "GET", "/currencies/?"+query, nil)
		isText(t, `{"currencies":[]}`, a)
	}
	a = w.ok(http.StatusOK, "GET", "/currencies/?withdrawal=true", nil, w.otherShop())
	isText(t, `{"currencies":[]}`, a)
}
