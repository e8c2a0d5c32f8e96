package remote_test

import (
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/chain/sim/remote"
)

// abilities are the optional interfaces of chain.Client.
func abilities(c chain.Client) map[string]bool {
	out := map[string]bool{}
	_, out["Mempool"] = c.(chain.Mempool)
	_, out["Balancer"] = c.(chain.Balancer)
	_, out["Deliverer"] = c.(chain.Deliverer)
	_, out["Tagger"] = c.(chain.Tagger)
	_, out["Multiplexer"] = c.(chain.Multiplexer)
	_, out["Noncer"] = c.(chain.Noncer)
	_, out["Historian"] = c.(chain.Historian)
	_, out["Sponsored"] = c.(chain.Sponsored)
	_, out["ParentPayer"] = c.(chain.ParentPayer)
	_, out["Locator"] = c.(chain.Locator)
	return out
}

// A client over the wire has every ability of the client that is served. Without one,
// processes that share a chain never do what needs it: no child pays for its parent.
func TestFQ12_EveryAbilityIsServed(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		c, _, client := pair(t, n)
		require.Equal(t, abilities(c.Client()), abilities(client))
	}
}

// The price of a child is asked over the wire, with the parent's bytes, and so is its
// refusal.
func TestFQ12_ChildFeeOverTheWire(t *testing.T) {
	t.Parallel()
	c, _, client := pair(t, "BTC")
	a, err := chaintest.Secp256k1Account(client, "owner")
	require.NoError(t, err)
	tx, err := c.Fund(a.Address, "BTC", decimal.New(1, 0))
	require.NoError(t, err)
	c.Mine(1)
	in := chain.Intent{
		ID: "parent", Purpose: chain.ForWithdrawal, Tenant: "t", Network: "BTC", Currency: "BTC",
		To: c.Customer("somebody"), Amount: 50_000_000, Confirmations: 1,
	}
	fee, err := client.EstimateFee(t.Context(), in)
	require.NoError(t, err)
	u, err := client.Build(t.Context(), chain.Order{
		Intent: in, Fee: fee, Coins: []chain.Coin{{Outpoint: tx + ":0", Address: a.Address, Amount: 100_000_000}},
		Change: a.Address, Attempt: 1,
	})
	require.NoError(t, err)
	sig, err := a.Sign(u.Digests[0].Hash)
	require.NoError(t, err)
	parent, err := client.Assemble(u, []chain.Signature{sig})
	require.NoError(t, err)
	c.SetFeeLevel(50)
	child := chain.Intent{Purpose: chain.ForCancel, Network: "BTC", Currency: "BTC", To: a.Address}
	want, err := c.Client().(chain.ParentPayer).ChildFee(t.Context(), child, parent.Raw, 705)
	require.NoError(t, err)
	got, err := client.(chain.ParentPayer).ChildFee(t.Context(), child, parent.Raw, 705)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Positive(t, got.Max)
	_, err = client.(chain.ParentPayer).ChildFee(t.Context(), child, []byte("none"), 705)
	require.ErrorIs(t, err, chain.ErrRejected)
}

// An address that carries a memo is taken apart without the node.
func TestFQ12_TagsNeedNoNode(t *testing.T) {
	t.Parallel()
	local, err := sim.New(sim.Options{Network: "XRP", Registry: chain.MainnetRegistry(), Addresses: tagged{}})
	require.NoError(t, err)
	client := remote.Dial("http://127.0.0.1:1", local)
	account, memo, ok := client.(chain.Tagger).Untag("account+7")
	require.Equal(t, []any{chain.Address("account"), "7", true}, []any{account, memo, ok})
}

// tagged writes addresses as account+memo.
type tagged struct{ sim.Format }

func (tagged) Untag(a chain.Address) (chain.Address, string, bool) {
	account, memo, ok := strings.Cut(string(a), "+")
	return chain.Address(account), memo, ok
}
