package httpapi_test

import (
	"context"
	"encoding/json"
	"math/big"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// simulated is what a simulated client can do.
type simulated interface {
	chain.Client
	chain.Mempool
	chain.Balancer
	chain.ManyBalancer
	chain.Noncer
	chain.Historian
	chain.Locator
	chain.OnDemand
	chain.Development
}

// coldChain is a simulated network on which a cold address signs as on the real one.
type coldChain struct {
	simulated
	evm *evm.Client
	id  int64
}

// withCold is a client that proposes refills.
func withCold(t testing.TB, c chain.Client) chain.Client {
	t.Helper()
	id := map[chain.Network]int64{"ETH": 1, "BASE": 8453, "OPTIMISM": 10}[c.Network()]
	e, err := evm.New(evm.Options{Network: c.Network(), ChainID: id, URL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	return coldChain{c.(simulated), e, id}
}

func (c coldChain) ColdAddress(descriptor string) (chain.Address, error) {
	return c.evm.ColdAddress(descriptor)
}

func (c coldChain) ProposeCold(_ context.Context, from string, o chain.Order) (u chain.Unsigned, tx string, err error) {
	a, err := c.evm.ParseAddress(from)
	if err != nil {
		return u, "", err
	}
	const cost = 100_800
	if cost > o.Intent.MaxCost {
		return u, "", &chain.DearError{Need: cost, Most: o.Intent.MaxCost}
	}
	wei := new(big.Int).Mul(big.NewInt(int64(o.Intent.Amount)), big.NewInt(10_000_000_000))
	raw, err := rlp.EncodeToBytes([]any{big.NewInt(c.id), uint64(3), big.NewInt(1_000_000_000), big.NewInt(40_000_000_000), uint64(25_200), common.HexToAddress(string(o.Intent.To)), wei, []byte{}, types.AccessList{}})
	return chain.Unsigned{
		Network: c.Network(), Payload: []byte("0x02" + hexutil.Encode(raw)[2:]), Spends: []string{string(a) + "/3"}, MaxCost: cost,
		Outputs: []chain.Output{{To: o.Intent.To, Currency: o.Intent.Currency, Amount: o.Intent.Amount}},
	}, "", err
}

func (c coldChain) AcceptCold(from chain.Address, payload, signed []byte) (chain.Signed, error) {
	return c.evm.AcceptCold(from, payload, signed)
}

func (c coldChain) FindCold(context.Context, chain.Address, []byte, string) (string, chain.Status, error) {
	return "", chain.Status{State: chain.Unknown}, nil
}

func (c coldChain) ShowCold(from chain.Address, payload []byte) ([]byte, error) {
	return c.evm.ShowCold(from, payload)
}

// coldKey is the key of the cold address.
var coldKey, _ = crypto.ToECDSA(crypto.Keccak256([]byte("cold")))

// signCold signs what is in a payload.
func signCold(t testing.TB, payload string) string {
	t.Helper()
	var f struct {
		ID       *big.Int
		Nonce    uint64
		Tip, Cap *big.Int
		Gas      uint64
		To       common.Address
		Value    *big.Int
		Data     []byte
		Access   types.AccessList
	}
	require.NoError(t, rlp.DecodeBytes(hexutil.MustDecode(payload)[1:], &f))
	tx, err := types.SignNewTx(coldKey, types.LatestSignerForChainID(f.ID), &types.DynamicFeeTx{ChainID: f.ID, Nonce: f.Nonce, GasTipCap: f.Tip, GasFeeCap: f.Cap, Gas: f.Gas, To: &f.To, Value: f.Value})
	require.NoError(t, err)
	raw, err := tx.MarshalBinary()
	require.NoError(t, err)
	return hexutil.Encode(raw)
}

// cooled has half a coin of currencies lie at a cold address by the books.
func (w *world) cooled(currencies ...string) {
	w.t.Helper()
	ctx, why := w.t.Context(), cryptopay.Call{By: "test", Reason: "most of it is safer there"}
	now, err := w.app.Policies.Get(ctx, w.tenant)
	require.NoError(w.t, err)
	p := now.Policy
	for _, c := range currencies {
		p.Cold = append(p.Cold, policy.Cold{Currency: c, Address: crypto.PubkeyToAddress(coldKey.PublicKey).Hex()})
		_, row, err := treasury.ColdOf(ctx, w.store, w.tenant, c)
		require.NoError(w.t, err)
		require.NoError(w.t, storage.CommitOne(ctx, w.store, storage.Change{
			ID: "cold of " + c, Partition: storage.Tenant(w.tenant), Put: []storage.Row{treasury.ColdRow(row, treasury.TopUp{Currency: c, Amount: 50_000_000})},
		}))
	}
	_, _, err = w.app.Operate.SetPolicy(ctx, w.tenant, now.Number, p, why)
	require.NoError(w.t, err)
}

// coldOn has the clients of networks propose refills.
func coldOn(t testing.TB, networks ...chain.Network) func(*cryptopay.Config) {
	return func(c *cryptopay.Config) {
		for i, client := range c.Chains {
			if slices.Contains(networks, client.Network()) {
				c.Chains[i] = withCold(t, client)
			}
		}
	}
}

// TestRefillsOverREST: a global administrator has a refill proposed, sees what is to be signed, gives it back
// and cancels another. What is wrong is named, and changes nothing.
func TestRefillsOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited, func(s *setup) {
		s.networks, s.real = []chain.Network{"ETH", "BTC"}, true
		s.config = coldOn(t, "ETH")
	})
	w.mine(3)
	w.cooled("ETH")
	global := bearer(w.newToken(w.newApp(w.tenant, auth.GlobalAdmin, auth.Read, auth.Write), ""))
	const at = "/manage/operations/refills/"
	ask := func(status int, method, path string, body map[string]any) answer {
		t.Helper()
		return w.ok(status, method, path, body, global)
	}
	of := "?for_tenant=" + w.tenant
	w.ok(http.StatusForbidden, "GET", at+of, nil)
	ask(http.StatusBadRequest, "GET", at, nil)
	ask(http.StatusNotFound, "GET", at+of+"x", nil)
	require.Empty(t, ask(http.StatusOK, "GET", at+of, nil).Body["refills"])
	ask(http.StatusNotFound, "GET", at+"refill-ETH-1/"+of, nil)
	propose := func(status int, currency, amount string, dry bool) answer {
		t.Helper()
		return ask(status, "POST", at, map[string]any{"for_tenant": w.tenant, "currency": currency, "amount": amount, "reason": "payouts wait", "dry_run": dry})
	}
	ask(http.StatusBadRequest, "POST", at, map[string]any{"for_tenant": w.tenant, "currency": "ETH", "amount": "0.1"})
	propose(http.StatusBadRequest, "NONE", "0.1", false)
	for _, amount := range []string{"0", "-1", "0.000000001"} {
		require.Contains(t, propose(http.StatusBadRequest, "ETH", amount, false).Raw, `"amount"`)
	}
	require.Contains(t, propose(http.StatusConflict, "BTC", "0.1", false).Raw, "No refill can be proposed")
	require.Contains(t, propose(http.StatusConflict, "ETH", "0.6", false).Raw, "by the books 0.5 ETH lies")
	require.Contains(t, propose(http.StatusConflict, "ETH", "0.001", false).Raw, "fee is above what is allowed")
	ask(http.StatusNotFound, "POST", at, map[string]any{"for_tenant": w.tenant + "x", "currency": "ETH", "amount": "0.1", "reason": "x"})
	require.Nil(t, propose(http.StatusOK, "ETH", "0.1", true).Body["audit_id"])
	require.Empty(t, ask(http.StatusOK, "GET", at+of, nil).Body["refills"])

	made := propose(http.StatusOK, "ETH", "0.1", false)
	require.NotEmpty(t, made.Body["audit_id"])
	effect := made.Body["effect"].(map[string]any)
	require.Equal(t, []any{"refill-ETH-1", "open", "0.10000000", "0.00100800", "ETH", nil}, []any{effect["proposal_id"], effect["status"], effect["amount"], effect["fee"], effect["fee_currency"], effect["transaction_hash"]})
	require.Contains(t, propose(http.StatusConflict, "ETH", "0.1", false).Raw, `"current_status":"open"`)
	listed := list(t, ask(http.StatusOK, "GET", at+of, nil), "refills")
	require.Len(t, listed, 1)
	require.Nil(t, listed[0]["payload"])
	behind := ask(http.StatusOK, "GET", at+of+"&offset=1", nil)
	require.Empty(t, list(t, behind, "refills"))
	require.Equal(t, json.Number("1"), behind.Body["total"])
	one := at + "refill-ETH-1/"
	got := ask(http.StatusOK, "GET", one+of, nil).Body
	require.Equal(t, effect, got)
	payload := got["payload"].(map[string]any)
	require.Equal(t, "transaction", payload["format"])
	require.Contains(t, payload["json"], `"nonce": "0x3"`)

	give := func(status int, signed string, dry bool) answer {
		t.Helper()
		return ask(status, "POST", one+"take/", map[string]any{"for_tenant": w.tenant, "signed": signed, "reason": "ann signed it", "dry_run": dry})
	}
	signed := signCold(t, payload["content"].(string))
	require.Contains(t, give(http.StatusBadRequest, payload["content"].(string), false).Raw, "not a signed transaction")
	require.Contains(t, give(http.StatusBadRequest, signed[:len(signed)-2], false).Raw, `"signed"`)
	require.Nil(t, give(http.StatusOK, signed, true).Body["audit_id"])
	require.Equal(t, got, ask(http.StatusOK, "GET", one+of, nil).Body, "nothing has changed")
	taken := give(http.StatusOK, signed, false).Body
	require.NotEmpty(t, taken["audit_id"])
	require.Equal(t, "sending", taken["effect"].(map[string]any)["status"])
	again := give(http.StatusOK, signed, false).Body
	require.Nil(t, again["audit_id"])
	require.Equal(t, taken["effect"], again["effect"])
	ask(http.StatusConflict, "POST", one+"cancel/", map[string]any{"for_tenant": w.tenant, "reason": "too late"})
	ask(http.StatusNotFound, "POST", at+"refill-ETH-2/cancel/", map[string]any{"for_tenant": w.tenant, "reason": "none"})
	p, err := w.app.Operate.Refill(t.Context(), w.tenant, "refill-ETH-1")
	require.NoError(t, err)
	require.Equal(t, []any{ledger.Amount(10_000_000), taken["effect"].(map[string]any)["transaction_hash"]}, []any{p.Amount, p.Tx})
	require.True(t, p.ExpiresAt.After(w.clock.Now().Add(47*time.Hour)))
}
