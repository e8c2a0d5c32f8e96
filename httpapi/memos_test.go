package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

// On XRP and XLM a payment shows the account and the memo beside the address that carries
// both, in every view; elsewhere both are null. A withdrawal takes either form, and refuses an
// address with another memo beside it, by the field's name.
func TestA09_MemosBesideTheAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited, func(s *setup) { s.networks = []chain.Network{"ETH", "XRP", "XLM"} })
	for _, c := range []string{"XRP", "XLM", "ETH"} {
		made := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "50", "currency": c})
		id := made.Body["transaction_id"].(string)
		views := []map[string]any{
			made.Body, w.ok(http.StatusOK, "POST", "/payments/status/", map[string]any{"transaction_id": id}).Body,
			w.ok(http.StatusOK, "GET", "/payments/", nil).at("results").([]any)[0].(map[string]any),
		}
		for _, v := range views {
			account, memo, tagged := w.app.Untag(chain.Network(c), chain.Address(v["address"].(string)))
			require.Equal(t, c != "ETH", tagged)
			if !tagged {
				require.Equal(t, []any{nil, nil}, []any{v["memo"], v["memo_address"]})
				continue
			}
			require.Equal(t, []any{memo, string(account)}, []any{v["memo"], v["memo_address"]})
			require.NotEmpty(t, memo)
			require.NotEqual(t, v["address"], v["memo_address"])
		}
		if c == "ETH" {
			continue
		}
		network := w.chains[chain.Network(c)]
		m, _ := network.Client().(chain.Multiplexer)
		to := network.Customer("exchange")
		both, err := m.Multiplex(to, 77)
		require.NoError(t, err)
		withdraw := func(address chain.Address, memo string) answer {
			return w.do("POST", "/withdrawal/", map[string]any{"amount": "40", "currency": c, "address": address, "memo": memo})
		}
		w.fund(w.tenant)
		w.earn(c, "300", "")
		for _, a := range []answer{withdraw(both, ""), withdraw(both, "77"), withdraw(to, "77")} {
			require.Equal(t, http.StatusCreated, a.Status, a.Raw)
			require.Equal(t, []any{string(to), "77"}, []any{a.Body["address"], a.Body["memo"]})
		}
		wrong := withdraw(both, "78")
		require.Equal(t, http.StatusBadRequest, wrong.Status, wrong.Raw)
		require.Equal(t, "invalid_request", wrong.code())
		require.Contains(t, strings.ToLower(wrong.Raw), "differs from the one that the address carries")
		require.Contains(t, wrong.at("error", "details"), "memo")
		w.mine(60)
		arrived := network.Transfers(to)
		require.Len(t, arrived, 3)
		for _, x := range arrived {
			require.Equal(t, "77", x.Memo)
		}
	}
}
