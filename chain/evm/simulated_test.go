package evm

import (
	"fmt"
	"math/big"
	"net/http"
	"testing"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	gethnode "github.com/ethereum/go-ethereum/node"
	"github.com/stretchr/testify/require"
)

// geth is go-ethereum itself, in this process, behind its own HTTP server, with one block.
type geth struct {
	*simulated.Backend
	client *Client
}

func openGeth(t *testing.T) *geth {
	t.Helper()
	port := testenv.FreePort(t)
	many := new(big.Int).Mul(oneEther, big.NewInt(1000))
	b := simulated.NewBackend(types.GenesisAlloc{hotAddress: {Balance: many}}, func(n *gethnode.Config, _ *ethconfig.Config) {
		n.HTTPHost, n.HTTPPort, n.HTTPModules = "127.0.0.1", port, []string{"eth", "debug"}
	})
	t.Cleanup(func() { _ = b.Close() })
	b.Commit()
	testenv.GethIndexed(t, port)
	r, err := chain.NewRegistry(
		[]chain.NetworkInfo{{Code: "ETH", Family: chain.AccountFamily, AddressType: "EVM", Gas: "ETH", ChainID: 1337}},
		[]chain.Currency{{Code: "ETH", Network: "ETH", Token: "ETH", Decimals: 18, Scale: 8, Confirmations: 1}})
	require.NoError(t, err)
	c, err := New(Options{Network: "ETH", ChainID: 1337, Registry: r, URL: fmt.Sprintf("http://127.0.0.1:%d", port), FinalityTags: true, HTTP: &http.Client{Transport: &http.Transport{}}})
	require.NoError(t, err)
	return &geth{Backend: b, client: c}
}

func TestGethSendsAndReorganises(t *testing.T) {
	t.Parallel()
	g := openGeth(t)
	c := g.client
	root := g.Commit()
	trail := begin(t, c)
	require.Equal(t, root.Hex(), trail[0].Hash)

	u, s := build(t, c, order("ETH", 123_456_789, 0, 1))
	require.NoError(t, c.Broadcast(t.Context(), stored(s)))
	require.NoError(t, c.Broadcast(t.Context(), stored(s)), "already known")
	st, err := c.Status(t.Context(), attempt(u, s))
	require.NoError(t, err)
	require.Equal(t, chain.Pending, st[0].State)
	_, replacement := build(t, c, order("ETH", 123_456_789, 0, 2))
	require.NoError(t, c.Broadcast(t.Context(), stored(replacement)), "an eighth more is enough for a real pool")
	g.Commit()
	before := scan(t, c, trail, watch(bob))
	require.Len(t, all(before), 1)
	require.Equal(t, replacement.Tx, all(before)[0].Tx)
	require.True(t, dec("1.23456789").Equal(all(before)[0].Amount))
	st, err = c.Status(t.Context(), attempt(u, s))
	require.NoError(t, err)
	require.Equal(t, chain.Conflicted, st[0].State)
	require.Equal(t, replacement.Tx, st[0].By)
	require.False(t, st[0].Final)
	err = c.Broadcast(t.Context(), stored(s))
	require.Error(t, err, "nonce too low")
	require.NotErrorIs(t, err, chain.ErrRejected)

	// A longer branch: the transaction goes back to the pool and is mined again.
	trail = append(trail, before.Blocks[0].Block)
	require.NoError(t, g.Fork(root))
	g.Commit()
	g.Commit()
	g.Commit()
	after := scan(t, c, trail, watch(bob))
	require.Equal(t, 1, after.Rewound)
	require.Equal(t, root.Hex(), after.Blocks[0].Parent)
	require.LessOrEqual(t, len(all(after)), 1)
	for _, x := range all(after) {
		require.Equal(t, replacement.Tx, x.Tx)
		require.Equal(t, all(before)[0].Ordinal, x.Ordinal)
		require.NotEqual(t, all(before)[0].Block.Hash, x.Block.Hash)
	}
}

func TestD01_GethWithoutTracesShowsInternalEther(t *testing.T) {
	t.Parallel()
	g := openGeth(t)
	c := g.client
	trail := begin(t, c)
	var file struct {
		Contracts map[string]struct{ Bytecode string }
	}
	readJSON(t, "testdata/contracts.json", &file)
	signer, price := types.LatestSignerForChainID(big.NewInt(1337)), big.NewInt(10*gwei)
	contract := crypto.CreateAddress(hotAddress, 0)
	require.NoError(t, g.Client().SendTransaction(t.Context(), types.MustSignNewTx(hot, signer, &types.LegacyTx{
		Gas: 3_000_000, GasPrice: price, Data: common.FromHex(file.Contracts["MultiSender"].Bytecode),
	})))
	g.Commit()
	paying := types.MustSignNewTx(hot, signer, &types.LegacyTx{
		Nonce: 1, Gas: 3_000_000, GasPrice: price, To: &contract, Value: big.NewInt(2e10), Data: words("sendEther(address[])", []common.Address{mallory, bob}),
	})
	require.NoError(t, g.Client().SendTransaction(t.Context(), paying))
	g.Commit()
	w := watch(bob)
	w.opens = []common.Address{bob}
	got := all(scan(t, c, trail, w))
	require.Len(t, got, 1)
	require.True(t, dec("0.00000001").Equal(got[0].Amount))
	require.True(t, got[0].Unproven, "this node offers no traces: it is seen, and not proven")
	history, err := c.History(t.Context(), checksum(bob), 0, 3)
	require.NoError(t, err)
	require.Equal(t, got, history)
}
