package evm

import (
	"math/big"
	"testing"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"
)

// status of a transaction, by the node.
func (n *town) status(t testing.TB, tx string) string {
	t.Helper()
	var r struct{ Status string }
	n.ask(t, &r, "eth_getTransactionReceipt", tx)
	return r.Status
}

func TestAnvilTokens(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	c := n.connect(t, n.url, 31337)
	trail := begin(t, c)
	someone := common.HexToAddress("0x00000000000000000000000000000000000c0ffe")
	to, w := checksum(someone), watch(someone)
	paid := func(code string, amount int64) []chain.Transfer {
		t.Helper()
		n.transfer(t, n.contract(t, code), to, big.NewInt(amount))
		n.mine(t, 1)
		s := scan(t, c, trail, w)
		trail = []chain.Block{s.Blocks[len(s.Blocks)-1].Block}
		return all(s)
	}

	got := paid("NORETURN", 1_234_567)
	require.Len(t, got, 1, "a token that returns nothing is known by its log")
	require.True(t, dec("1.234567").Equal(got[0].Amount))

	got = paid("FEE", 1_000_000)
	require.Len(t, got, 1)
	require.True(t, dec("0.00000000000099").Equal(got[0].Amount), "credited is what arrived: %s", got[0].Amount)
	require.Equal(t, 1, got[0].Ordinal, "the fee's own log is the first")
	require.False(t, got[0].Unproven)
	held, err := c.Balance(t.Context(), "FEE", to)
	require.NoError(t, err)
	require.True(t, held.Equal(got[0].Amount))

	require.Empty(t, paid("LIAR", 1_000_000), "false, no log, status 1")
}

func TestD01_InternalEtherOnARealNode(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	c := n.client
	trail := begin(t, c)
	a, b := common.HexToAddress("0x00000000000000000000000000000000000c0ffe"), common.HexToAddress("0x00000000000000000000000000000000000cafe0")
	w := watch(a, b)
	w.opens = []common.Address{a, b}

	one := n.internal(t, big.NewInt(3000), "0x493e0", a, b, a).Hex()
	direct := n.pay(t, chaintest.Payment{To: checksum(a), Currency: "ETH", Amount: dec("2")})
	undone := n.pay(t, chaintest.Payment{To: checksum(a), Currency: "ETH", Amount: dec("3"), Effect: chaintest.InnerReverted})
	n.mine(t, 1)
	require.Equal(t, "0x1", n.status(t, undone), "it succeeded, and paid nobody")
	got := all(scan(t, c, trail, w))
	require.Len(t, got, 4)
	byID := map[string]chain.Transfer{}
	for _, x := range got {
		require.False(t, x.Unproven)
		byID[x.Tx+"/"+string(rune('0'-x.Ordinal))] = x
	}
	require.True(t, dec("2").Equal(byID[direct+"/1"].Amount))
	for i, to := range []common.Address{a, b, a} {
		x := byID[one+"/"+string(rune('2'+i))]
		require.Equal(t, checksum(to), x.To)
		require.Equal(t, checksum(n.sender), x.From)
		require.True(t, dec("0.000000000000001").Equal(x.Amount))
	}

	// Without traces the money is seen, and not proven.
	blind := n.connect(t, n.url, 31337, func(o *Options) { o.NoTrace = true })
	got = all(scan(t, blind, trail, w))
	require.Len(t, got, 3)
	sum := dec("0")
	for _, x := range got {
		if x.Tx != direct {
			require.True(t, x.Unproven)
			sum = sum.Add(x.Amount)
		}
	}
	require.True(t, dec("0.000000000000003").Equal(sum))
	off := n.connect(t, n.url, 31337, func(o *Options) { o.NoInternal = true })
	require.Len(t, all(scan(t, off, trail, w)), 1)
}

func TestAnvilLegacyTransactions(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	h := n.harness(t)
	h.Client = n.connect(t, n.url, 31337, func(o *Options) { o.Legacy = true })
	h.Lag, h.Partial, h.Fail, h.LoseAnswer = nil, nil, nil, nil
	chaintest.Run(t, func(*testing.T) *chaintest.Harness { return h })
}

func TestD06_PausedTokenSaysSo(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from, err := n.client.ParseAddress(n.accounts[3].Hex())
	require.NoError(t, err)
	n.send(t, n.accounts[0], txArgs{"to": n.noReturn, "data": hexutil.Bytes(words("addBlackList(address)", n.accounts[3]))})
	n.mine(t, 1)
	in := chain.Intent{Network: "ETH", Currency: "NORETURN", From: from, To: checksum(bob), Amount: 1, Purpose: chain.ForSweep}
	_, err = n.client.Build(t.Context(), chain.Order{Intent: in, Attempt: 1})
	require.Error(t, err)
	require.NotErrorIs(t, err, chain.ErrRejected, "it may be lifted")
	require.NotErrorIs(t, err, chain.ErrShort)
}
