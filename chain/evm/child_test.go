package evm

import (
	"encoding/json"
	"maps"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

// announced is a client whose Tip has read the header of the one block after the trail.
func announced(t *testing.T, f *fakeNode, txs ...*fakeTx) (c *Client, trail []chain.Block, b *fakeBlock) {
	t.Helper()
	c = f.client()
	trail = begin(t, c)
	b = f.mine(txs...)
	_, err := c.Tip(t.Context())
	require.NoError(t, err)
	return c, trail, b
}

// TestD07_LaggingNodeOfAnAnnouncedBlock: logs that came in one answer with their block are checked
// as those that are asked for afterwards.
func TestD07_LaggingNodeOfAnAnnouncedBlock(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c, trail, b := announced(t, f, tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
	fails := func(what string) {
		t.Helper()
		_, err := c.Scan(t.Context(), trail, watch(bob), 10)
		require.ErrorIs(t, err, chain.ErrNode, what)
	}
	f.says("eth_getLogs", []any{})
	fails("it has the block, but not its logs yet")
	f.refuses("eth_getLogs", -32000, "unknown block")
	fails("another backend does not know the block")
	f.says("eth_getLogs", nil)
	fails("no logs and no error")
	f.lie("eth_getLogs", nil)
	f.says("eth_getTransactionReceipt", nil)
	fails("no receipt")
	f.lie("eth_getTransactionReceipt", nil)

	// A header without a bloom proves nothing.
	bare := func(p []json.RawMessage) (any, *fakeError, bool) {
		if f.at(text(p[0])) != b {
			return nil, nil, false
		}
		m := b.json(string(p[1]) == "true").(map[string]any)
		m["logsBloom"] = "0x" + string(make0(512))
		return m, nil, true
	}
	f.lie("eth_getBlockByNumber", bare)
	f.says("eth_getLogs", []any{})
	f.says("eth_getBlockTransactionCountByHash", nil)
	fails("a backend that does not know the hash answers with nothing")
	f.lie("eth_getBlockTransactionCountByHash", nil)
	f.lie("eth_getLogs", nil)
	require.Len(t, all(scan(t, c, trail, watch(bob))), 1)
	f.lie("eth_getBlockByNumber", nil)

	before := maps.Clone(f.asked)
	require.Len(t, all(scan(t, c, trail, watch(bob))), 1)
	require.Equal(t, before["eth_getBlockByNumber"]+1, f.asked["eth_getBlockByNumber"])
	require.Equal(t, before["eth_getLogs"]+1, f.asked["eth_getLogs"])
	require.Equal(t, before["eth_chainId"], f.asked["eth_chainId"])
}

// TestR01_ForkBetweenTipAndScan: the block that Tip announced is not the chain's any more.
func TestR01_ForkBetweenTipAndScan(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.mine()
	f.mine()
	c, trail, _ := announced(t, f, ether(bob, 5))
	old := f.drop(1)[0]
	f.lie("eth_getLogs", func(p []json.RawMessage) (any, *fakeError, bool) {
		var q struct{ BlockHash common.Hash }
		_ = json.Unmarshal(p[0], &q)
		return old.logs(), nil, q.BlockHash == old.hash // nodes know abandoned blocks by hash
	})
	b := f.mine(ether(bob, 7))
	got := all(scan(t, c, trail, watch(bob)))
	require.Len(t, got, 1)
	require.Equal(t, b.hash.Hex(), got[0].Block.Hash)

	// The trail's own end is gone, too.
	c, trail, _ = announced(t, f, ether(bob, 8))
	f.drop(2)
	f.mine()
	f.mine(ether(bob, 9))
	s := scan(t, c, append([]chain.Block{{Height: 2, Hash: f.blocks[2].hash.Hex()}}, trail...), watch(bob))
	require.Equal(t, 1, s.Rewound)
	require.Len(t, all(s), 1)

	// The node that answers now has not come so far.
	c, trail, _ = announced(t, f, ether(bob, 10))
	f.drop(1)
	require.Empty(t, scan(t, c, trail, watch(bob)).Blocks)
}

// TestFP07_ReceiptsOfABlockAreOneCall, and a node that cannot give them at once, or gives
// those of another block, is asked for each.
func TestFP07_ReceiptsOfABlockAreOneCall(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	var txs []*fakeTx
	for range manyReceipts + 1 {
		txs = append(txs, tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
	}
	b := f.mine(txs...)
	read := func(each int) {
		t.Helper()
		before := f.asked["eth_getTransactionReceipt"]
		require.Len(t, all(scan(t, c, trail, watch(bob))), len(txs))
		require.Equal(t, before+each, f.asked["eth_getTransactionReceipt"])
	}
	read(0)
	f.says("eth_getBlockReceipts", nil)
	read(len(txs))
	f.says("eth_getBlockReceipts", []any{b.receipt(0)})
	read(len(txs) - 1)
	wrong := b.receipt(0)
	wrong["blockHash"] = fakeHash()
	f.says("eth_getBlockReceipts", []any{wrong})
	read(len(txs))
	f.refuses("eth_getBlockReceipts", -32601, "method not found")
	read(len(txs))
	before := f.asked["eth_getBlockReceipts"]
	read(len(txs))
	require.Equal(t, before, f.asked["eth_getBlockReceipts"], "asked once")
}

// TestD01_InternalEtherOfAnAnnouncedBlock: the balance before is the one that was read at
// the block before, and an address that is new since is compared, too.
func TestD01_InternalEtherOfAnAnnouncedBlock(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	c := n.client
	trail := begin(t, c)
	a, b := common.HexToAddress("0x00000000000000000000000000000000000c0ffe"), common.HexToAddress("0x00000000000000000000000000000000000cafe0")
	w := watch(a, b)
	w.opens = []common.Address{a}
	next := func() []chain.Transfer {
		t.Helper()
		n.mine(t, 1)
		_, err := c.Tip(t.Context())
		require.NoError(t, err)
		s := scan(t, c, trail, w)
		require.NotEmpty(t, s.Blocks)
		trail = trail[:len(trail)-s.Rewound]
		for _, b := range s.Blocks {
			trail = append(trail, b.Block)
		}
		return all(s)
	}
	require.Empty(t, next())
	n.internal(t, big.NewInt(2000), "0x493e0", a, a)
	require.Len(t, next(), 2)
	w.opens = append(w.opens, b)
	n.internal(t, big.NewInt(3000), "0x493e0", a, b, b)
	got := next()
	require.Len(t, got, 3)
	for _, x := range got {
		require.False(t, x.Unproven)
	}
	require.Empty(t, next())
	w.opens = w.opens[1:]
	n.internal(t, big.NewInt(2000), "0x493e0", b, b)
	require.Len(t, next(), 2)
	n.reorg(t, 1) // the balances known are of a block that is gone
	require.NotEmpty(t, next())
	require.Empty(t, next())
}

// TestFP07_ManyOpenAddressesCostOneRead: of more than one read holds, the last are compared.
func TestFP07_ManyOpenAddressesCostOneRead(t *testing.T) {
	t.Parallel()
	c := newFake(t).client()
	w := watch()
	for i := range bulkSize + 5 {
		w.opens = append(w.opens, common.BigToAddress(big.NewInt(int64(1+i))))
	}
	open, err := c.open(w)
	require.NoError(t, err)
	require.Len(t, open, bulkSize)
	require.NotContains(t, open, w.opens[4])
	require.Contains(t, open, w.opens[5])
}
