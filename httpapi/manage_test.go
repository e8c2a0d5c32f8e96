package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// blind is a node that can be told to keep balances to itself.
type blind struct {
	chain.Client
	chain.Mempool
	chain.Noncer
	chain.Historian
	chain.Locator
	fails *atomic.Bool
}

func (b blind) Balance(ctx context.Context, currency string, a chain.Address) (decimal.Decimal, error) {
	if b.fails.Load() {
		return decimal.Zero, errors.Join(chain.ErrNode, errors.New("https://rpc.example/v3/SECRET: 502"))
	}
	return b.Client.(chain.Balancer).Balance(ctx, currency, a)
}

// safe is a custodian with one account that answers and one that does not.
type safe struct{}

func (safe) Accounts(context.Context, string) ([]treasury.CustodyAccount, error) {
	return []treasury.CustodyAccount{{ID: "acc-1", Name: "Main", ExternalID: "ext-1", Active: true}, {ID: "acc-2", Name: "Broken", Active: true}}, nil
}

func (safe) Balances(_ context.Context, _, account string) (map[string]decimal.Decimal, error) {
	if account == "acc-2" {
		return nil, errors.New("key SECRET was refused")
	}
	return map[string]decimal.Decimal{"USDTERC20": decimal.RequireFromString("50.5")}, nil
}

// treasured is a world with a cold wallet, a custodian and a node that may fail.
func treasured(fails *atomic.Bool) func(*setup) {
	return func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			for i, client := range c.Chains {
				c.Chains[i] = blind{client, client.(chain.Mempool), client.(chain.Noncer), client.(chain.Historian), client.(chain.Locator), fails}
				if client.Network() != "ETH" {
					c.Chains[i] = client
				}
			}
			c.Treasury.Cold = func(context.Context, string) ([]treasury.ColdWallet, error) {
				return []treasury.ColdWallet{{Name: "Vault", Network: "ETH", Address: vaultAddress}}, nil
			}
			c.Treasury.Custodian = safe{}
		}
	}
}

// vaultAddress is the operator's own: customers' addresses depend on their name
// and network alone.
var vaultAddress = sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry()}).Customer("vault")

const heldFields = "blockchain string, token string, hot_wallet_balance number, cold_wallet_balance number, custody_balance number, total_balance number"

// figuresOf are the four numbers of a view of what is held, as they are written.
func figuresOf(a map[string]any) [4]string {
	var out [4]string
	for i, name := range []string{"hot_wallet_balance", "cold_wallet_balance", "custody_balance", "total_balance"} {
		n, _ := a[name].(json.Number)
		out[i] = n.String()
	}
	return out
}

func (w *world) figures(path string, refine ...with) [4]string {
	w.t.Helper()
	return figuresOf(w.ok(http.StatusOK, "GET", "/manage/users/balances/"+path, nil, refine...).Body)
}

func TestManageBalanceOfAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ok(http.StatusOK, "GET", "/manage/users/balances/ETH", nil)
	require.Equal(t, heldFields, members(t, a.Raw))
	require.JSONEq(t, `{"blockchain":"ETH","token":"USDT","hot_wallet_balance":0,"cold_wallet_balance":0,"custody_balance":0,"total_balance":0}`, a.Raw)
	w.fund(w.tenant)
	p := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "100", "currency": "USDTERC20"})
	_, err := w.chains["ETH"].Pay(chain.Address(p.Body["address"].(string)), "USDTERC20", decimal.RequireFromString("100.123456"))
	require.NoError(t, err)
	w.mine(1)
	require.Equal(t, [4]string{"0", "0", "100.123456", "100.123456"}, w.figures("ETH?token=USDT"), "on the deposit address")
	w.mine(60)
	s := w.ok(http.StatusOK, "POST", "/manage/users/balances/sync", nil)
	require.Equal(t, "wallets_updated number, wallet_errors array, custody_accounts_updated number, custody_errors array, sync_time string", members(t, s.Raw))
	require.Equal(t, json.Number("2"), s.Body["wallets_updated"], "of ETH and BTC")
	require.Equal(t, []any{[]any{}, json.Number("0"), []any{}}, []any{s.Body["wallet_errors"], s.Body["custody_accounts_updated"], s.Body["custody_errors"]})
	require.Equal(t, w.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z"), s.Body["sync_time"])
	require.Equal(t, [4]string{"100.123456", "0", "0", "100.123456"}, w.figures("ETH/"), "forwarded")
	hot, err := w.app.Hot(t.Context(), "ETH", w.tenant)
	require.NoError(t, err)
	ether := w.chains["ETH"].Balance(hot, "ETH").String()
	require.NotEqual(t, "10", ether, "gas was paid")
	require.Equal(t, [4]string{ether, "0", "0", ether}, w.figures("ETH?token=ETH"), "to the last place")
	require.Equal(t, [4]string{"10", "0", "0", "10"}, w.figures("BTC/?token=BTC"))
}

func TestManageKnowsOtherNamesOfBlockchains(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) { s.networks = []chain.Network{"TRX", "POLYGON"} })
	for path, want := range map[string][]any{
		"TRON": {"TRX", "USDT"}, "TRX": {"TRX", "USDT"}, "MATIC?token=MATIC": {"POLYGON", "MATIC"}, "POLYGON?token=USDC": {"POLYGON", "USDC"},
	} {
		a := w.ok(http.StatusOK, "GET", "/manage/users/balances/"+path, nil)
		require.Equal(t, want, []any{a.Body["blockchain"], a.Body["token"]})
	}
}

func TestManageRefusesInItsOwnForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, want := range map[string]string{
		"/manage/users/balances/NOPE":                     "The blockchain is invalid.",
		"/manage/users/balances/eth":                      "The blockchain is invalid.",
		"/manage/users/balances/ETH?token=NOPE":           "The token is not one of ETH",
		"/manage/users/balances/BTC?token=USDT":           "The token is not one of BTC, which has BTC.",
		"/manage/users/balances/ETH?token=A&token=B":      "token is given twice",
		"/manage/users/balances?include_wallets=yes":      "include_wallets must be true or false",
		"/manage/users/balances/?include_custody=perhaps": "include_custody must be true or false",
	} {
		a := w.ok(http.StatusBadRequest, "GET", path, nil)
		require.Equal(t, "detail string", members(t, a.Raw), path)
		require.Contains(t, a.Body["detail"], want, path)
	}
	plain := bearer(w.newToken(w.newApp(w.tenant, auth.NoRole, auth.Read, auth.Write, auth.Admin), ""))
	_, key, err := w.auth.CreateKey(t.Context(), auth.NewKey{Tenant: w.tenant, Name: "k", Role: auth.TenantAdmin})
	require.NoError(t, err)
	for _, r := range [][2]string{{"GET", "/manage/users/balances/ETH"}, {"POST", "/manage/users/balances/sync"}, {"GET", "/manage/users/balances"}} {
		for _, c := range []struct {
			status int
			who    []with
		}{
			{http.StatusUnauthorized, []with{nobody()}},
			{http.StatusUnauthorized, []with{bearer("nonsense")}},
			{http.StatusUnauthorized, []with{nobody(), apiKey(key)}},
			{http.StatusForbidden, []with{plain}},
			{http.StatusForbidden, []with{w.scoped("read")}},
			{http.StatusForbidden, []with{w.scoped("write")}},
		} {
			a := w.ok(c.status, r[0], r[1], nil, c.who...)
			require.Equal(t, "detail string", members(t, a.Raw), r)
			if c.status == http.StatusUnauthorized {
				require.Contains(t, a.Header.Get("WWW-Authenticate"), "Bearer")
			}
		}
	}
	require.Equal(t, http.StatusMethodNotAllowed, w.do("GET", "/manage/users/balances/sync", nil).Status)
	require.Equal(t, http.StatusMethodNotAllowed, w.do("DELETE", "/manage/users/balances/ETH", nil).Status)
}

func TestManageListing(t *testing.T) {
	t.Parallel()
	fails := &atomic.Bool{}
	w := newWorld(t, treasured(fails))
	a := w.ok(http.StatusOK, "GET", "/manage/users/balances", nil)
	require.JSONEq(t, `{"total_balances":[],"wallets":[],"custody_accounts":[],"last_updated":null}`, a.Raw)
	w.fund(w.tenant)
	_, err := w.chains["ETH"].Fund(vaultAddress, "USDTERC20", decimal.RequireFromString("1000.000001"))
	require.NoError(t, err)
	w.earn("USDTERC20", "20", "")
	s := w.ok(http.StatusOK, "POST", "/manage/users/balances/sync/", "{}")
	require.Equal(t, []any{json.Number("3"), json.Number("1")}, []any{s.Body["wallets_updated"], s.Body["custody_accounts_updated"]}, s.Raw)
	require.JSONEq(t, `[{"account_id":"acc-2","error":"the custodian did not tell its balances"}]`, inside(t, s.Raw, "custody_errors"))
	first := s.Body["sync_time"]
	a = w.ok(http.StatusOK, "GET", "/manage/users/balances/", nil)
	require.Equal(t, "total_balances array, wallets array, custody_accounts array, last_updated string", members(t, a.Raw))
	require.Equal(t, first, a.Body["last_updated"])
	require.Equal(t, heldFields, members(t, inside(t, a.Raw, "total_balances", "0")))
	for _, x := range a.Body["total_balances"].([]any) {
		if m := x.(map[string]any); m["token"] == "USDT" {
			require.Equal(t, [4]string{"20", "1000.000001", "50.5", "1070.500001"}, figuresOf(m))
		}
	}
	require.Equal(t, "id string, name string, blockchain string, address string, is_cold_wallet boolean, balance number, token string, last_check string",
		members(t, inside(t, a.Raw, "wallets", "0")))
	seen := map[string]any{}
	for _, x := range a.Body["wallets"].([]any) {
		m := x.(map[string]any)
		require.Equal(t, m["blockchain"].(string)+":"+m["address"].(string), m["id"])
		require.Equal(t, first, m["last_check"])
		if m["token"] == "USDT" {
			seen[m["name"].(string)] = []any{m["is_cold_wallet"], m["balance"]}
		}
	}
	require.Equal(t, map[string]any{"ETH hot wallet": []any{false, json.Number("20")}, "Vault": []any{true, json.Number("1000.000001")}}, seen)
	require.JSONEq(t, `[{"id":"acc-1","name":"Main","external_id":"ext-1","is_active":true,"last_sync":"`+first.(string)+`"},
		{"id":"acc-2","name":"Broken","external_id":null,"is_active":true,"last_sync":null}]`, inside(t, a.Raw, "custody_accounts"))

	without := w.ok(http.StatusOK, "GET", "/manage/users/balances?include_wallets=false&include_custody=0", nil)
	require.Equal(t, []any{[]any{}, []any{}}, []any{without.Body["wallets"], without.Body["custody_accounts"]})
	require.Equal(t, a.Body["total_balances"], without.Body["total_balances"], "the totals have them all the same")
	require.NotEmpty(t, w.ok(http.StatusOK, "GET", "/manage/users/balances?include_wallets=1&include_custody=false", nil).Body["wallets"])

	// A node that fails: in the list, without what it said, and nothing is lost.
	fails.Store(true)
	w.clock.Advance(time.Minute)
	s = w.ok(http.StatusOK, "POST", "/manage/users/balances/sync", nil)
	require.Equal(t, json.Number("1"), s.Body["wallets_updated"], "that of BTC")
	require.Len(t, s.Body["wallet_errors"], 2)
	require.Equal(t, "wallet_id string, blockchain string, error string", members(t, inside(t, s.Raw, "wallet_errors", "0")))
	e := s.Body["wallet_errors"].([]any)[0].(map[string]any)
	require.Equal(t, "ETH", e["blockchain"])
	require.True(t, strings.HasPrefix(e["wallet_id"].(string), "ETH:"))
	require.Contains(t, e["error"], "USDTERC20: the node could not be read")
	require.NotContains(t, s.Raw, "SECRET")
	require.Equal(t, [4]string{"20", "1000.000001", "50.5", "1070.500001"}, w.figures("ETH"))
}

func TestManageRolesSeeTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.newTenant("other")
	all := []auth.Scope{auth.Read, auth.Write}
	theirs := bearer(w.newToken(w.newApp(other, auth.TenantAdmin, all...), ""))
	global := bearer(w.newToken(w.newApp(other, auth.GlobalAdmin, all...), ""))
	w.earn("BTC", "600.00", "")
	w.earn("BTC", "1200.00", "", theirs)
	require.Equal(t, "0.01", w.figures("BTC?token=BTC")[2])
	require.Equal(t, "0.02", w.figures("BTC?token=BTC", theirs)[2])
	require.Equal(t, "0.03", w.figures("BTC?token=BTC", global)[2])
	hot, err := w.app.Hot(t.Context(), "BTC", w.tenant)
	require.NoError(t, err)
	_, err = w.chains["BTC"].Fund(hot, "BTC", decimal.RequireFromString("5"))
	require.NoError(t, err)
	w.mine(1)
	require.Equal(t, json.Number("0"), w.ok(http.StatusOK, "POST", "/manage/users/balances/sync", nil, theirs).Body["wallets_updated"])
	require.Equal(t, "0", w.figures("BTC?token=BTC")[0])
	require.Equal(t, json.Number("1"), w.ok(http.StatusOK, "POST", "/manage/users/balances/sync", nil, global).Body["wallets_updated"])
	require.Equal(t, "5", w.figures("BTC?token=BTC")[0])
	require.Equal(t, "0", w.figures("BTC?token=BTC", theirs)[0])
	require.Equal(t, [4]string{"5", "0", "0.03", "5.03"}, w.figures("BTC?token=BTC", global))
	require.Empty(t, w.ok(http.StatusOK, "GET", "/manage/users/balances", nil, theirs).Body["wallets"])
	require.NotEmpty(t, w.ok(http.StatusOK, "GET", "/manage/users/balances", nil, global).Body["wallets"])
}
