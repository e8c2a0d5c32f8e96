package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
)

const whole = ledger.Amount(100_000_000)

// waiting is a payment of ours at the quiet price, in the mempool of a network that has
// become ten times as dear. Its output 1 comes back.
func waiting(t *testing.T) (c *sim.Chain, a chaintest.Account, coin chain.Coin, parent chain.Attempt) {
	c = open(t, "BTC")
	a = account(t, c, "a")
	tx, err := c.Fund(a.Address, "BTC", dec("1"))
	require.NoError(t, err)
	c.Mine(1)
	coin = chain.Coin{Outpoint: tx + ":0", Address: a.Address, Amount: whole}
	parent = spend(t, c, a, coin, 1)
	require.NoError(t, send(t, c, parent))
	c.SetFeeLevel(50)
	return c, a, coin, parent
}

// spend pays somebody half a coin.
func spend(t *testing.T, c *sim.Chain, a chaintest.Account, coin chain.Coin, attempt int) chain.Attempt {
	t.Helper()
	return signed(t, c, a, chain.Order{
		Intent: chain.Intent{To: c.Customer("somebody"), Amount: whole / 2}, Coins: []chain.Coin{coin}, Change: a.Address, Attempt: attempt,
	})
}

func fee(t *testing.T, c *sim.Chain, x chain.Attempt) ledger.Amount {
	t.Helper()
	c.Mine(1)
	st, err := c.Outcome(x.Tx)
	require.NoError(t, err)
	return st.Cost
}

// child spends what the parent returns, to ourselves.
func child(t *testing.T, c *sim.Chain, a chaintest.Account, parent chain.Attempt, paid ledger.Amount, attempt int) chain.Attempt {
	t.Helper()
	in := chain.Intent{Purpose: chain.ForCancel, Network: "BTC", Currency: "BTC", To: a.Address}
	f, err := c.Client().(chain.ParentPayer).ChildFee(t.Context(), in, parent.Raw, paid)
	require.NoError(t, err)
	return signed(t, c, a, chain.Order{
		Intent: in, Fee: f, Change: a.Address, Attempt: attempt,
		Coins: []chain.Coin{{Outpoint: parent.Tx + ":1", Address: a.Address, Amount: whole/2 - paid}},
	})
}

func TestChildPaysForItsParent(t *testing.T) {
	t.Parallel()
	c, a, _, parent := waiting(t)
	c.Mine(2)
	require.Equal(t, chain.Pending, state(t, c, parent.Tx), "it pays too little alone")
	const paid = 705 // 141 bytes at 5
	first := child(t, c, a, parent, paid, 1)
	require.NoError(t, send(t, c, first))
	c.SetFeeLevel(60)
	c.Mine(1)
	require.Equal(t, chain.Pending, state(t, c, parent.Tx), "both together pay too little by now")
	second := child(t, c, a, parent, paid, 2)
	require.NoError(t, send(t, c, second), "a dearer child takes its place")
	require.Positive(t, fee(t, c, second))
	for _, x := range []chain.Attempt{parent, second} {
		require.Equal(t, chain.Included, state(t, c, x.Tx))
	}
	require.Equal(t, chain.Conflicted, state(t, c, first.Tx))
	require.NoError(t, c.Audit())
}

// A child is priced for both, and never at less than an eighth above its parent.
func TestChildFee(t *testing.T) {
	t.Parallel()
	c, a, _, parent := waiting(t)
	x := child(t, c, a, parent, 705, 1)
	require.NoError(t, send(t, c, x))
	require.EqualValues(t, 50*(141+110)-705, fee(t, c, x))
	c, a, _, parent = waiting(t)
	c.SetFeeLevel(0)
	x = child(t, c, a, parent, 705, 1)
	require.NoError(t, send(t, c, x))
	require.EqualValues(t, 6*(141+110)-705, fee(t, c, x))
	_, err := c.Client().(chain.ParentPayer).ChildFee(t.Context(), chain.Intent{Currency: "BTC"}, []byte("none"), 1)
	require.ErrorIs(t, err, chain.ErrRejected)
	_, err = open(t, "ETH").Client().(chain.ParentPayer).ChildFee(t.Context(), chain.Intent{Currency: "ETH"}, parent.Raw, 1)
	require.ErrorIs(t, err, chain.ErrRejected)
}

// What takes the place of others pays for all that goes with them.
func TestReplacementPaysForAllItEvicts(t *testing.T) {
	t.Parallel()
	c, a, coin, parent := waiting(t)
	dear := spend(t, c, a, coin, 1) // at today's price, which is less than that of both
	x := child(t, c, a, parent, 705, 1)
	require.NoError(t, send(t, c, x))
	require.ErrorIs(t, send(t, c, dear), sim.ErrUnderpriced)
	c.SetFeeLevel(100)
	require.NoError(t, send(t, c, spend(t, c, a, coin, 1)))
	require.Len(t, c.Mempool(), 1, "a child goes with its parent")
}

func TestFirstSeenIsKept(t *testing.T) {
	t.Parallel()
	c, a, coin, parent := waiting(t)
	c.SetFirstSeen(true)
	dear := spend(t, c, a, coin, 1)
	err := send(t, c, dear)
	require.ErrorIs(t, err, sim.ErrFirstSeen)
	require.NotErrorIs(t, err, chain.ErrRejected)
	require.Equal(t, []string{parent.Tx}, c.Mempool())
	c.SetFirstSeen(false)
	require.NoError(t, send(t, c, dear))
	require.Equal(t, []string{dear.Tx}, c.Mempool())
}
