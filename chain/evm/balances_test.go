package evm

import (
	"errors"
	"math/big"
	"testing"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"
)

// crowd are addresses, of which every seventh is one of the town's payers.
func (n *town) crowd(size int) (list []chain.Address) {
	for i := range size {
		a := common.BigToAddress(big.NewInt(int64(0x10000 + i)))
		if i%7 == 0 {
			a = n.accounts[i/7%len(n.accounts)]
		}
		list = append(list, checksum(a))
	}
	return list
}

// readsMany compares a read of many balances with the node's own word for each.
func (n *town) readsMany(t *testing.T) {
	t.Helper()
	list := n.crowd(2*bulkSize + 3)
	to := common.HexToAddress(string(list[1]))
	n.internal(t, big.NewInt(3_000_000_001), "0x493e0", to, to, to)
	n.mine(t, 1)
	var head struct{ Hash common.Hash }
	n.ask(t, &head, "eth_getBlockByNumber", "latest", false)
	at := chain.Block{Height: n.height(), Hash: head.Hash.Hex()}
	got, err := n.client.Holdings(t.Context(), at, list)
	require.NoError(t, err)
	require.Len(t, got, len(list))
	for _, i := range []int{0, 1, 2, 6, 7, bulkSize - 1, bulkSize, bulkSize + 1, 2*bulkSize - 1, 2 * bulkSize, 2*bulkSize + 2} {
		var v hexutil.Big
		n.ask(t, &v, "eth_getBalance", list[i], "latest")
		require.Equal(t, coins(v.ToInt(), 18).String(), got[i].String(), "address %d", i)
	}
	require.Zero(t, n.client.single.Load(), "all at once")
	n.mine(t, 1)
	again, err := n.client.Holdings(t.Context(), at, list[:7])
	require.NoError(t, err)
	require.Equal(t, got[:7], again, "of that very block")

	// A node that cannot run the code is asked for each.
	n.client.single.Store(1)
	each, err := n.client.Holdings(t.Context(), at, list)
	require.NoError(t, err)
	for i := range got {
		require.True(t, got[i].Equal(each[i]), "address %d", i)
	}
}

func TestFP07_AnvilReadsManyBalancesAtOnce(t *testing.T) {
	t.Parallel()
	openTown(t).readsMany(t)
}

func TestFP07_GethReadsManyBalancesAtOnce(t *testing.T) {
	t.Parallel()
	openGethTown(t).readsMany(t)
}

// A go-ethereum that is not told otherwise throws the state of old blocks away.
func TestFN05_GethSaysThatItHasNoStateAnyMore(t *testing.T) {
	t.Parallel()
	n := openGethTown(t)
	from := begin(t, n.client)[0]
	n.mine(t, 140)
	list := n.crowd(3)
	_, err := n.client.Holdings(t.Context(), from, list)
	require.ErrorIs(t, err, chain.ErrNoState)
	to := begin(t, n.client)[0]
	_, err = n.client.Received(t.Context(), list, from, to)
	require.ErrorIs(t, err, chain.ErrNoState)
	_, err = n.client.Spent(t.Context(), from, []chain.Sender{{Address: list[0]}})
	require.ErrorIs(t, err, chain.ErrNoState)
	_, err = n.client.Holdings(t.Context(), to, list)
	require.NoError(t, err)
}

func TestFN05_ReceivedFindsEachBlock(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from := begin(t, n.client)[0]
	a, b := common.HexToAddress("0x00000000000000000000000000000000000c0ffe"), common.HexToAddress("0x00000000000000000000000000000000000cafe0")
	var txs []string
	for i := range 5 {
		n.mine(t, i)
		txs = append(txs, n.internal(t, big.NewInt(2000), "0x493e0", a, b).Hex())
		n.mine(t, 1)
	}
	got, err := n.client.Received(t.Context(), []chain.Address{checksum(b), checksum(a)}, from, begin(t, n.client)[0])
	require.NoError(t, err)
	require.Len(t, got, 10)
	seen := map[string]int{}
	for _, x := range got {
		require.False(t, x.Unproven)
		seen[x.Tx]++
	}
	for _, tx := range txs {
		require.Equal(t, 2, seen[tx])
	}
	off := n.connect(t, n.url, 31337, func(o *Options) { o.NoInternal = true })
	_, err = off.Received(t.Context(), []chain.Address{checksum(a)}, from, from)
	require.Error(t, err)
}

// TestFN05_ReceivedIsBounded: where very many blocks moved coins, none is read, and fewer are to be
// asked about.
func TestFN05_ReceivedIsBounded(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	blocks := []chain.Block{begin(t, n.client)[0]}
	a := common.HexToAddress("0x00000000000000000000000000000000000c0ffe")
	for range maxFound + 1 {
		n.internal(t, big.NewInt(1), "0x493e0", a)
		n.mine(t, 1)
		blocks = append(blocks, begin(t, n.client)[0])
	}
	_, err := n.client.Received(t.Context(), []chain.Address{checksum(a)}, blocks[0], blocks[maxFound+1])
	require.ErrorIs(t, err, chain.ErrNoState)
	got, err := n.client.Received(t.Context(), []chain.Address{checksum(a)}, blocks[1], blocks[maxFound+1])
	require.NoError(t, err)
	require.Len(t, got, maxFound)
}

// What a node makes of a bulk read is checked, and a node that cannot is asked for each
// balance, but not for ever.
func TestFP07_NodeThatCannotReadManyIsAskedForEach(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	at := begin(t, c)[0]
	f.says("eth_getBalance", quantity(7))
	list := []chain.Address{checksum(alice), checksum(bob), checksum(mallory)}
	for what, answer := range map[string]any{
		"nothing": "0x", "too little": "0x00", "words": word(1), "no text": 7,
	} {
		c.single.Store(0)
		f.says("eth_call", answer)
		got, err := c.Holdings(t.Context(), at, list)
		require.NoError(t, err, what)
		require.Equal(t, "0.000000000000000007", got[1].String(), what)
		require.EqualValues(t, singleReads, c.single.Load(), what)
	}
	c.single.Store(0)
	f.refuses("eth_call", -32000, "intrinsic gas too low")
	before := f.asked["eth_call"]
	for range 3 {
		_, err := c.Holdings(t.Context(), at, list)
		require.NoError(t, err)
	}
	require.Equal(t, before+1, f.asked["eth_call"], "tried once")
	c.single.Store(0)
	f.refuses("eth_getBalance", -32000, "internal error")
	_, err := c.Holdings(t.Context(), at, list)
	require.ErrorIs(t, err, chain.ErrNode)
	require.Zero(t, c.single.Load(), "a node that answers nothing says nothing of what it can")
	for _, words := range []string{"missing trie node 0xabc", "historical state unavailable, historical state is not available", "BlockOutOfRangeError: block height is 5 but requested was 2"} {
		f.refuses("eth_call", -32000, words)
		_, err = c.Holdings(t.Context(), at, list)
		require.ErrorIs(t, err, chain.ErrNoState, words)
	}
}

// Balances asks a node that cannot read many at once for one balance, to see whether the node tells
// any, and for no more. It fails where the node tells none.
func TestBalancesAreNeverAskedForOneByOne(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	list := []chain.Address{checksum(alice), checksum(bob), checksum(mallory)}
	ask := func(currency string) (err error) {
		_, err = c.Balances(t.Context(), currency, list)
		return err
	}
	f.says("eth_getBalance", quantity(7))
	f.refuses("eth_call", -32602, "missing value for field to")
	for range 3 {
		require.ErrorIs(t, ask("ETH"), errors.ErrUnsupported)
	}
	require.Equal(t, []int{1, 1}, []int{f.asked["eth_call"], f.asked["eth_getBalance"]}, "it is remembered for a while")
	for range 3 {
		require.ErrorIs(t, ask("USDTERC20"), errors.ErrUnsupported)
	}
	require.Equal(t, []int{2, 1}, []int{f.asked["eth_call"], f.asked["eth_getBalance"]})

	c.single.Store(0)
	f.refuses("eth_getBalance", -32000, "internal error")
	err := ask("ETH")
	require.ErrorIs(t, err, chain.ErrNode)
	require.NotErrorIs(t, err, errors.ErrUnsupported)
	require.Zero(t, c.single.Load())
}
