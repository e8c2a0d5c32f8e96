package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/networks"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/examples/internal/nodes"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
)

// TestNodesPaymentAndWithdrawal is the program on a node of every kind: a payment in,
// thrown out by a fork where the node can make one, and a withdrawal out, all over
// HTTP, with settings as a user writes them. On btcd, Litecoin Core, anvil and
// go-ethereum the node is real; on Solana its runtime; the others are modelled.
func TestNodesPaymentAndWithdrawal(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node and a gateway for each network")
	}
	t.Parallel()
	var all sync.WaitGroup // they wait more than they work: more at once than there are processors
	defer all.Wait()
	for _, c := range []struct {
		name, currency string
		open           func(testing.TB) *site
	}{
		{"Btcd", "BTC", openCoins("BTC", "simnet", "btcd", 330)},
		{"LitecoinCorePruned", "LTC", openPruned},
		{"Anvil", "ETH", openAnvil},
		{"AnvilToken", "USDCERC20", openAnvil},
		{"Geth", "AVAX", openGeth},
		{"LiteSVM", "SOL", openSolana},
		{"LiteSVMToken", "USDTSOL", openSolana},
		{"TronModelled", "TRX", openTron},
		{"TronModelledToken", "USDTTRC20", openTron},
		{"XRPModelled", "XRP", openXRP},
		{"StellarModelled", "XLM", openStellar},
	} {
		all.Go(func() {
			t.Run(c.name, func(t *testing.T) {
				v := visit(t, c.open(t), c.currency)
				v.inAndOut()
				require.Equal(t, v.fork != nil, strings.Contains(v.log.String(), "chain_forked"), v.log.String())
			})
		})
	}
}

// TestFN01_TheGatewayLogsWhatSolanaPassesOver: its operator reads of a transaction that the
// client does not understand, and payments go on.
func TestFN01_TheGatewayLogsWhatSolanaPassesOver(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node and a gateway")
	}
	t.Parallel()
	s, n := openSolanaNode(t)
	s.settings["CRYPTOPAY_RPC_SOL"] = before(t, n.URL, func(answer []byte) []byte {
		if bytes.Contains(answer, []byte(`"version":2`)) {
			return bytes.ReplaceAll(answer, []byte(`"err":null`), []byte(`"error":null`))
		}
		return answer
	})
	// Else the gateway reads no block that does not name an address of its own.
	s.settings["CRYPTOPAY_FEW_SOL"] = "0"
	s.fork = func(string) bool { // when the gateway has seen a payment
		n.SendLater(2, nil, n.MoveCoins(solanatest.Key("somebody").PublicKey(), 2_000_000_000))
		n.Mine(1)
		return false
	}
	v := visit(t, s, "SOL")
	v.comeIn()
	v.p.signal(syscall.SIGTERM)
	<-v.p.done
	require.Contains(t, v.log.String(), `"msg":"transaction_skipped","network":"SOL"`)
}

// visitor is a merchant with a gateway of their own on a site.
type visitor struct {
	*site
	t        *testing.T
	currency string
	p        *process
	m        *merchant
	client   chain.Client // the test's own look at the node
	log      bytes.Buffer // what the gateway wrote; to be read when it is gone
}

func visit(t *testing.T, s *site, currency string) *visitor {
	t.Helper()
	v := &visitor{site: s, t: t, currency: currency, m: newMerchant(nil, 1)}
	settings := map[string]string{
		"CRYPTOPAY_CLIENT_ID": testClient, "CRYPTOPAY_CLIENT_SECRET": testSecret, "CRYPTOPAY_TRANSACTION_FEE": "0",
		"CRYPTOPAY_PRICES": prices(), "CRYPTOPAY_POLL": "200ms",
	}
	env := []string{program + "=1"}
	for name, value := range s.settings {
		settings[name] = value
	}
	for name, value := range settings {
		env = append(env, name+"="+value)
	}
	all := networks.Shipped()
	if file := s.settings["CRYPTOPAY_REGISTRY"]; file != "" {
		var err error
		all, err = networks.Read(file)
		require.NoError(t, err)
	}
	has, err := nodes.Read(all, func(name string) string { return s.settings[name] })
	require.NoError(t, err)
	registry, err := has.Registry()
	require.NoError(t, err)
	v.client, err = nodes.Dial(registry, s.network, has.At[s.network], nil, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(v.log.String())
		}
	})
	v.p = launch(t, &v.log, env, "-addr", "127.0.0.1:0", "-store", "sqlite:"+filepath.Join(t.TempDir(), "gateway.db"), "-log", "warn")
	require.True(t, v.p.serves())
	select {
	case n := <-v.p.knows:
		require.Equal(t, s.network, n)
	case <-v.p.done:
		t.Fatal("it is gone")
	case <-time.After(time.Minute):
		t.Fatal("it does not say where it pays from")
	}
	require.NoError(t, v.m.login(t.Context(), v.p))
	gas, err := registry.Gas(s.network)
	require.NoError(t, err)
	v.send(v.p.hot[s.network], gas.Code, decimal.RequireFromString(s.float))
	v.mine(1)
	return v
}

// send pays as a customer's wallet does, which takes an address with a memo apart.
func (v *visitor) send(to chain.Address, currency string, coins decimal.Decimal) (tx string) {
	v.t.Helper()
	memo := ""
	if tagger, ok := v.client.(chain.Tagger); ok {
		if account, m, ok := tagger.Untag(to); ok {
			to, memo = account, m
		}
	}
	return v.pay(to, memo, currency, coins)
}

func (v *visitor) call(method, path, key string, in any) body {
	v.t.Helper()
	status, out, err := v.m.try(v.t.Context(), v.p, method, path, key, in)
	require.NoError(v.t, err)
	require.Less(v.t, status, http.StatusMultipleChoices, "%s %s: %v", method, path, out)
	return out
}

// until repeats step, with a pause, until it is done.
func (v *visitor) until(what string, done func() bool, step func()) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), 90*time.Second)
	defer cancel()
	for !done() {
		step()
		require.NoError(v.t, cryptopay.SystemClock{}.Wait(ctx, 150*time.Millisecond), "it is not %s", what)
	}
}

func (v *visitor) grow() { v.mine(v.pace) }

// has is what the account can spend.
func (v *visitor) has() string {
	v.t.Helper()
	account, _ := v.call(http.MethodGet, "/user/balances/", "", nil)["account"].(body)
	of, _ := account[v.currency].(body)
	amount, _ := of["amount"].(string)
	if amount == "" {
		return "0"
	}
	return decimal.RequireFromString(amount).String()
}

// inAndOut takes a payment in, withdraws a part of it, and stops the gateway.
func (v *visitor) inAndOut() {
	v.t.Helper()
	v.comeIn()
	v.goOut()
	v.p.signal(syscall.SIGTERM)
	<-v.p.done
	require.True(v.t, v.p.cmd.ProcessState.Success(), "it stops as it should")
}

// comeIn takes a payment in; a fork throws it out on the way.
func (v *visitor) comeIn() {
	v.t.Helper()
	p := v.call(http.MethodPost, "/payments/", "in", body{"amount": "120.00", "currency": v.currency, "order_id": "1"})
	to, due := chain.Address(p["address"].(string)), decimal.RequireFromString(p["amount_crypto"].(string))
	var account, memo any // A09: beside the address, as in a simulation
	if m, shares := v.client.(chain.Multiplexer); shares {
		base, tag, tagged := m.Untag(to)
		require.True(v.t, tagged, to)
		account, memo = string(base), tag
	}
	require.Equal(v.t, []any{account, memo}, []any{p["memo_address"], p["memo"]})
	is := func(status string) func() bool {
		return func() bool {
			return v.call(http.MethodPost, "/payments/status/", "", body{"transaction_id": p["transaction_id"]})["status"] == status
		}
	}
	require.True(v.t, is("waiting")())
	tx := v.send(to, v.currency, due)
	v.mine(1)
	if v.fork != nil {
		v.until("seen", is("confirming"), func() {})
		require.Equal(v.t, "0", v.has())
		if v.fork(tx) {
			v.until("taken back", func() bool { return !is("confirming")() }, func() {})
			require.False(v.t, is("completed")())
			v.send(to, v.currency, due)
		}
	}
	v.until("completed", is("completed"), v.grow)
	require.Equal(v.t, due.String(), v.has(), "credited once")
}

// goOut withdraws a part, asked for twice under one key.
func (v *visitor) goOut() {
	v.t.Helper()
	to := v.somebody
	if to == "" {
		sum := sha256.Sum256([]byte(v.t.Name()))
		_, key := btcec.PrivKeyFromBytes(sum[:])
		public := chain.PublicKey(key.SerializeCompressed())
		if v.network == "SOL" { // its keys are on another curve
			public = chain.PublicKey(ed25519.NewKeyFromSeed(sum[:]).Public().(ed25519.PublicKey))
		}
		var err error
		to, err = v.client.AddressOf(public)
		require.NoError(v.t, err)
	}
	before, had := v.holds(to), decimal.RequireFromString(v.has())
	asked := had.DivRound(decimal.NewFromInt(3), 5)
	in := body{"amount": asked.String(), "currency": v.currency, "address": to, "final_amount": true, "memo": "77"}
	w := v.call(http.MethodPost, "/withdrawal/", "out", in)
	require.Equal(v.t, w["withdrawal_id"], v.call(http.MethodPost, "/withdrawal/", "out", in)["withdrawal_id"])
	path := "/withdrawal/" + w["withdrawal_id"].(string) + "/"
	v.until("withdrawn", func() bool {
		w = v.call(http.MethodGet, path, "", nil)
		require.NotContains(v.t, []any{"failed", "cancelled"}, w["status"])
		return w["status"] == "completed"
	}, v.grow)
	for range 3 { // nothing comes after it
		v.grow()
		require.NoError(v.t, cryptopay.SystemClock{}.Wait(v.t.Context(), 300*time.Millisecond))
	}
	require.Equal(v.t, asked.String(), v.holds(to).Sub(before).String(), "paid once, and exactly")
	fee := decimal.RequireFromString(w["fee"].(string))
	require.Equal(v.t, had.Sub(asked).Sub(fee).String(), v.has())
	hash, _ := w["transaction_hash"].(string)
	require.NotEmpty(v.t, hash)
}

func (v *visitor) holds(a chain.Address) decimal.Decimal {
	v.t.Helper()
	has, err := v.client.(chain.Balancer).Balance(v.t.Context(), v.currency, a)
	require.NoError(v.t, err)
	return has
}
