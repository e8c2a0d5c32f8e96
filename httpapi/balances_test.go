package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/wallet"
)

func TestBalances(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	empty := w.ok(http.StatusOK, "GET", "/user/balances", nil)
	require.JSONEq(t, `{"account":{},"sub_accounts":{},"statistics":{"currencies_count":0,"subaccounts_count":0,"total_deposits":0,"total_withdrawals":0}}`, empty.Raw)

	w.fund(w.tenant)
	first, second := w.newWallet("a"), w.newWallet("b")
	w.earn("ETH", "200", "")
	w.earn("USDTERC20", "25", first)
	w.earn("USDTERC20", "5.5", "b")
	w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "9", "currency": "USDTERC20"}) // nothing comes
	w.hold(first, "USDTERC20", "20")
	w.hold(wallet.Master, "ETH", "0.01")

	b := w.ok(http.StatusOK, "GET", "/user/balances/", nil)
	require.JSONEq(t, `{"account":{"ETH":{"amount":"0.10000000","pending_amount":"0.01000000"}},
		"sub_accounts":{"USDTERC20":{"total_amount":"30.50000000","total_pending":"20.00000000","accounts":[
			{"account_name":"Wallet a","account_id":"`+first+`","amount":"25.00000000","pending_amount":"20.00000000","available_balance":"5.00000000"},
			{"account_name":"Wallet b","account_id":"`+second+`","amount":"5.50000000","pending_amount":"0.00000000","available_balance":"5.50000000"}]}},
		"statistics":{"currencies_count":2,"subaccounts_count":2,"total_deposits":3,"total_withdrawals":0}}`, b.Raw)
	require.Equal(t, "account object, sub_accounts object, statistics object", members(t, b.Raw))
	require.Equal(t, "amount string, pending_amount string", members(t, inside(t, b.Raw, "account", "ETH")))
	require.Equal(t, "total_amount string, total_pending string, accounts array", members(t, inside(t, b.Raw, "sub_accounts", "USDTERC20")))
	require.Equal(t, "account_name string, account_id string, amount string, pending_amount string, available_balance string", members(t, inside(t, b.Raw, "sub_accounts", "USDTERC20", "accounts", "0")))
	require.Equal(t, "currencies_count number, subaccounts_count number, total_deposits number, total_withdrawals number", members(t, inside(t, b.Raw, "statistics")))

	require.JSONEq(t, empty.Raw, w.ok(http.StatusOK, "GET", "/user/balances/", nil, w.anotherTenant()).Raw)
	reading := w.newToken(w.newApp(w.tenant, "", auth.Read), "")
	require.Equal(t, "permission_denied", w.ok(http.StatusForbidden, "GET", "/user/balances/", nil, bearer(reading)).code())
}

// movements are the lines of a history.
func movements(t *testing.T, a answer) []string {
	t.Helper()
	out := []string{}
	for _, v := range a.Body["history"].([]any) {
		m := v.(map[string]any)
		_, err := time.Parse("2006-01-02T15:04:05.000Z", m["timestamp"].(string))
		require.NoError(t, err)
		out = append(out, fmt.Sprint(m["currency"], " ", m["type"], " ", m["amount"], " ", m["balance_after"]))
	}
	return out
}

func TestBalanceHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.newWallet("a")
	none := w.ok(http.StatusOK, "GET", "/user/balances/history/", nil)
	require.JSONEq(t, `{"history":[],"total":0,"limit":50,"offset":0}`, none.Raw)
	w.earn("ETH", "200", "")
	w.earn("USDTERC20", "25", "")
	w.earn("USDTERC20", "100", id) // another account's
	transfer := func(path, currency, amount string) {
		w.clock.Advance(time.Second)
		w.ok(http.StatusAccepted, "POST", "/wallets/"+path+"/", map[string]any{"wallet_id": id, "currency": currency, "amount": amount})
		w.step()
	}
	transfer("transfer-to-user", "USDTERC20", "5")
	transfer("withdraw-to-master", "USDTERC20", "50")
	transfer("transfer-to-user", "ETH", "0.025")
	w.clock.Advance(time.Second)
	w.hold(wallet.Master, "ETH", "0.001")

	all := w.ok(http.StatusOK, "GET", "/user/balances/history", nil)
	require.Equal(t, "history array, total number, limit number, offset number", members(t, all.Raw))
	require.Equal(t, "timestamp string, currency string, type string, amount string, balance_after string", members(t, inside(t, all.Raw, "history", "0")))
	lines := func(a answer) []string { return movements(t, a) }
	want := []string{
		"ETH transfer_out -0.02500000 0.07500000", "USDTERC20 transfer_in 50.00000000 70.00000000", "USDTERC20 transfer_out -5.00000000 20.00000000",
		"USDTERC20 deposit 25.00000000 25.00000000", "ETH deposit 0.10000000 0.10000000",
	}
	require.Equal(t, want, lines(all))
	require.Equal(t, "5", all.Body["total"].(json.Number).String())

	reading := bearer(w.newToken(w.newApp(w.tenant, "", auth.Read), ""))
	for query, row := range map[string]struct {
		total string
		lines []string
	}{
		"currency=ETH":                        {"2", []string{want[0], want[4]}},
		"currency=USDTERC20&type=deposit":     {"1", want[3:4]},
		"type=deposit":                        {"2", want[3:]},
		"type=transfer_in":                    {"1", want[1:2]},
		"type=transfer_out":                   {"2", []string{want[0], want[2]}},
		"type=withdrawal":                     {"0", []string{}},
		"type=fee":                            {"0", []string{}},
		"type=refund":                         {"0", []string{}},
		"type=adjustment":                     {"0", []string{}},
		"limit=1":                             {"5", want[:1]},
		"limit=100":                           {"5", want},
		"limit=2&offset=1":                    {"5", want[1:3]},
		"offset=5":                            {"5", []string{}},
		"currency=USDTERC20&limit=1&offset=1": {"3", want[2:3]},
		"currency=":                           {"5", want},
		"unknown=1":                           {"5", want},
	} {
		a := w.ok(http.StatusOK, "GET", "/user/balances/history/?"+query, nil, reading)
		require.Equal(t, row.lines, lines(a), query)
		require.Equal(t, row.total, a.Body["total"].(json.Number).String(), query)
	}
	for query, blamed := range map[string][]string{
		"limit=0": {"limit"}, "limit=101": {"limit"}, "limit=x": {"limit"}, "limit=5.0": {"limit"}, "offset=-1": {"offset"},
		"type=hold": {"type"}, "type=transfer": {"type"}, "currency=eth": {"currency"}, "limit=1&limit=2": {"limit"},
		"limit=0&offset=-1&type=x&currency=y": {"limit", "offset", "type", "currency"},
	} {
		a := w.ok(http.StatusBadRequest, "GET", "/user/balances/history/?"+query, nil)
		require.Equal(t, "invalid_request", a.code())
		require.ElementsMatch(t, blamed, a.blamed(), query)
	}
	require.JSONEq(t, none.Raw, w.ok(http.StatusOK, "GET", "/user/balances/history/", nil, w.anotherTenant()).Raw)
	require.True(t, strings.HasPrefix(all.Header.Get("Content-Type"), "application/json"))
}

// TestFA06_HistoryOfAWallet: each wallet's movements are listed and counted by themselves, also
// after it was deleted, and only by its tenant.
func TestFA06_HistoryOfAWallet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.newWallet("a"), w.newWallet("b")
	w.earn("ETH", "200", "")
	for _, amount := range []string{"100", "50", "25"} {
		w.clock.Advance(time.Second)
		w.earn("USDTERC20", amount, a)
	}
	w.clock.Advance(time.Second)
	w.earn("ETH", "200", a)
	w.clock.Advance(time.Second)
	w.ok(http.StatusAccepted, "POST", "/wallets/withdraw-to-master/", map[string]any{"wallet_id": a, "currency": "USDTERC20", "amount": "5"})
	w.step()

	master := []string{"USDTERC20 transfer_in 5.00000000 5.00000000", "ETH deposit 0.10000000 0.10000000"}
	want := []string{
		"USDTERC20 transfer_out -5.00000000 170.00000000", "ETH deposit 0.10000000 0.10000000",
		"USDTERC20 deposit 25.00000000 175.00000000", "USDTERC20 deposit 50.00000000 150.00000000", "USDTERC20 deposit 100.00000000 100.00000000",
	}
	for query, row := range map[string]struct {
		total string
		lines []string
	}{
		"":                                {"2", master},
		"wallet_id=":                      {"2", master},
		"wallet_id=" + a:                  {"5", want},
		"wallet_id=a":                     {"5", want},
		"wallet_id=" + b:                  {"0", []string{}},
		"currency=ETH&wallet_id=" + a:     {"1", want[1:2]},
		"type=deposit&wallet_id=" + a:     {"4", want[1:]},
		"type=transfer_in&wallet_id=" + a: {"0", []string{}},
		"limit=2&wallet_id=" + a:          {"5", want[:2]},
		"limit=2&offset=3&wallet_id=" + a: {"5", want[3:]},
		"offset=5&wallet_id=" + a:         {"5", []string{}},
		"limit=1&offset=1&wallet_id=a&type=deposit&currency=USDTERC20": {"3", want[3:4]},
	} {
		got := w.ok(http.StatusOK, "GET", "/user/balances/history/?"+query, nil)
		require.Equal(t, row.lines, movements(t, got), query)
		require.Equal(t, row.total, got.Body["total"].(json.Number).String(), query)
	}

	// Nobody learns of another tenant's wallet, and the master account has no name.
	other := w.anotherTenant()
	unknown := w.ok(http.StatusNotFound, "GET", "/user/balances/history/?wallet_id="+wallet.Master, nil, other)
	require.Equal(t, "not_found", unknown.code())
	for _, id := range []string{a, "a", "nobody", strings.Repeat("w", 64)} {
		theirs := w.ok(http.StatusNotFound, "GET", "/user/balances/history/?wallet_id="+id, nil, other)
		require.JSONEq(t, unknown.Raw, theirs.Raw, id)
	}
	long := w.ok(http.StatusBadRequest, "GET", "/user/balances/history/?type=x&wallet_id="+strings.Repeat("w", 65), nil)
	require.ElementsMatch(t, []string{"wallet_id", "type"}, long.blamed())

	w.ok(http.StatusNoContent, "DELETE", "/wallets/"+b+"/", nil)
	w.ok(http.StatusOK, "GET", "/user/balances/history/?wallet_id="+b, nil)
	w.ok(http.StatusNotFound, "GET", "/user/balances/history/?wallet_id=b", nil)
}
