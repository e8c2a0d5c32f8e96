package sim_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// everything is a watch of all addresses.
type everything struct{}

func (everything) Sync(context.Context) error  { return nil }
func (everything) Contains(chain.Address) bool { return true }
func (everything) Open() []chain.Address       { return nil }

func scan(t testing.TB, k chain.Client, trail ...chain.Block) (chain.Scan, error) {
	t.Helper()
	return k.Scan(t.Context(), trail, everything{}, 100)
}

func TestLaggingNodeLivesInThePast(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a := account(t, c, "a").Address
	start := c.Head()
	tx := pay(t, c, sim.Tx{Payments: to(a, one)})
	c.Mine(3)
	n := c.NewNode().Lag(3)
	k := n.Client()
	tip, err := k.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, start, tip.Head)
	held, err := k.(chain.Balancer).Balance(t.Context(), "ETH", a)
	require.NoError(t, err)
	require.True(t, held.IsZero())
	waiting, err := k.(chain.Mempool).Pending(t.Context(), everything{})
	require.NoError(t, err)
	require.Len(t, waiting, 1, "for this node it waits still")
	require.Equal(t, chain.Pending, status(t, k, chain.Attempt{Tx: tx}).State)
	n.Lag(2)
	require.Equal(t, chain.Included, status(t, k, chain.Attempt{Tx: tx}).State)
	_, err = k.(chain.Locator).BlockAt(t.Context(), c.Height())
	require.ErrorIs(t, err, chain.ErrBehind)
	n.Lag(1000)
	tip, err = k.Tip(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, tip.Head.Height)
}

func TestR07_FrozenNodeStaysOnItsBranch(t *testing.T) {
	t.Parallel()
	for _, name := range []chain.Network{"ETH", "BTC"} {
		c := open(t, name)
		a := account(t, c, "a").Address
		c.Mine(1)
		start := c.Head()
		tx := pay(t, c, sim.Tx{Payments: to(a, one)})
		c.Mine(2)
		n := c.NewNode().Freeze()
		k := n.Client()
		_, err := c.Reorg(2, tx)
		require.NoError(t, err)
		c.Mine(2)
		require.Equal(t, chain.Included, status(t, k, chain.Attempt{Tx: tx}).State)
		require.Equal(t, chain.Unknown, status(t, c.Client(), chain.Attempt{Tx: tx}).State)
		held, err := k.(chain.Balancer).Balance(t.Context(), string(name), a)
		require.NoError(t, err)
		require.Equal(t, "1", held.String())
		s, err := scan(t, k, start)
		require.NoError(t, err)
		require.Len(t, s.Blocks[0].Transfers, 1)
		_, err = scan(t, k, c.Head())
		require.ErrorIs(t, err, chain.ErrBehind)
		n.Thaw()
		s, err = scan(t, k, start, s.Blocks[0].Block, s.Blocks[1].Block)
		require.NoError(t, err)
		require.Equal(t, 2, s.Rewound)
		require.Len(t, s.Blocks, 4)
	}
}

func TestLies(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a := account(t, c, "a").Address
	start := c.Head()
	pay(t, c, sim.Tx{Payments: to(a, one)})
	c.Mine(10)
	n := c.NewNode()
	k := n.Client()

	n.LieTip(5)
	tip, err := k.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, c.Height()+5, tip.Head.Height)
	n.LieTip(0).LieFinal(c.Height())
	tip, err = k.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, c.Height(), tip.Final)
	n.LieEmpty(true)
	s, err := scan(t, k, start)
	require.NoError(t, err)
	require.Empty(t, s.Blocks[0].Transfers)
	n.LieNonce(3)
	nonce, err := k.(chain.Noncer).Nonce(t.Context(), a)
	require.NoError(t, err)
	require.EqualValues(t, 3, nonce)

	n.Honest()
	s, err = scan(t, k, start)
	require.NoError(t, err)
	require.Len(t, s.Blocks[0].Transfers, 1)
	tip, err = k.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, c.Height()-5, tip.Final)
}

func TestBroadcastFaults(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a, b := account(t, c, "a"), account(t, c, "b")
	_, err := c.Fund(a.Address, "ETH", dec("5"))
	require.NoError(t, err)
	tx := signed(t, c, a, chain.Order{Intent: chain.Intent{To: b.Address, Amount: 1e8}})

	c.Front().RefuseNext(1, errors.New("txpool is full"))
	err = send(t, c, tx)
	require.ErrorContains(t, err, "txpool is full")
	require.NotErrorIs(t, err, chain.ErrRejected)
	require.Empty(t, c.Mempool())

	c.Front().Swallow(1)
	require.NoError(t, send(t, c, tx))
	require.Empty(t, c.Mempool(), "it said yes and did nothing")
	require.Equal(t, chain.Unknown, status(t, c.Client(), tx).State)
	require.Equal(t, []string{tx.Tx}, c.Transactions(true), "but the bytes are out")

	c.Front().LoseAnswers(1)
	require.ErrorIs(t, send(t, c, tx), chain.ErrNode)
	require.Equal(t, []string{tx.Tx}, c.Mempool())

	c.Front().Forget(tx.Tx)
	c.Mine(1)
	require.Equal(t, chain.Unknown, status(t, c.Client(), tx).State)
	c.Front().Honest()
	require.Equal(t, chain.Included, status(t, c.Client(), tx).State)
}

func TestPrunedNodeForgetsReceiptsAndHistory(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a, b := account(t, c, "a"), account(t, c, "b")
	_, err := c.Fund(a.Address, "ETH", dec("5"))
	require.NoError(t, err)
	tx := signed(t, c, a, chain.Order{Intent: chain.Intent{To: b.Address, Amount: 1e8}})
	require.NoError(t, send(t, c, tx))
	c.Mine(3)
	history := c.Client().(chain.Historian)
	c.Front().Prune(3)
	require.Equal(t, chain.Included, status(t, c.Client(), tx).State)
	_, err = history.History(t.Context(), c.Customer("x"), c.Height()-2, c.Height())
	require.NoError(t, err)
	c.Mine(1)
	require.Equal(t, chain.Unknown, status(t, c.Client(), tx).State)
	_, err = history.History(t.Context(), c.Customer("x"), c.Height()-3, c.Height())
	require.ErrorIs(t, err, chain.ErrNode)
	c.Front().Honest()
	require.Equal(t, chain.Included, status(t, c.Client(), tx).State)
}

func TestFailuresAreCountedAndSeeded(t *testing.T) {
	t.Parallel()
	runs := map[string]int{}
	for range 2 {
		c := open(t, "ETH")
		k := c.Client()
		why := errors.New("429")
		c.Front().FailNext(2, why)
		for range 2 {
			_, err := k.Tip(t.Context())
			require.ErrorIs(t, err, chain.ErrNode)
			require.ErrorIs(t, err, why)
		}
		_, err := k.Tip(t.Context())
		require.NoError(t, err)
		c.Front().FailRate(300)
		pattern := ""
		for range 100 {
			if _, err := k.Tip(t.Context()); err != nil {
				pattern += "x"
				continue
			}
			pattern += "."
		}
		require.Contains(t, pattern, "x")
		require.Contains(t, pattern, ".")
		runs[pattern]++
	}
	require.Len(t, runs, 1, "the same seed fails the same calls")
}

func TestBlindNodeHasNoMempool(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	tx := pay(t, c, sim.Tx{Payments: to(account(t, c, "a").Address, one)})
	n := c.NewNode().Blind(true)
	waiting, err := n.Client().(chain.Mempool).Pending(t.Context(), everything{})
	require.NoError(t, err)
	require.Empty(t, waiting)
	require.Equal(t, chain.Unknown, status(t, n.Client(), chain.Attempt{Tx: tx}).State)
}

func TestMempoolShowsWhatIsSaidAndBlocksWhatIsDone(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a := account(t, c, "a").Address
	start := c.Head()
	pay(t, c, sim.Tx{Payments: []sim.Payment{{To: a, Amount: one, Effect: sim.Reverted}}})
	pay(t, c, sim.Tx{Payments: []sim.Payment{{To: a, Amount: one, Effect: sim.Internal}}})
	waiting, err := c.Client().(chain.Mempool).Pending(t.Context(), everything{})
	require.NoError(t, err)
	require.Len(t, waiting, 1, "the one that will revert; the inner call is not seen yet")
	c.Mine(1)
	s, err := scan(t, c.Client(), start)
	require.NoError(t, err)
	require.Len(t, s.Blocks[0].Transfers, 1)
	require.NotEqual(t, waiting[0].Tx, s.Blocks[0].Transfers[0].Tx)
}

func TestR06_FinalityTags(t *testing.T) {
	t.Parallel()
	for what, w := range map[string]struct {
		change func(o *sim.Options)
		safe   int64
		final  int64
	}{
		"depth":   {func(o *sim.Options) { o.Finality = 6 }, 18, 15},
		"none":    {func(o *sim.Options) { o.Finality = -1 }, -1, -1},
		"instant": {func(o *sim.Options) { o.Instant = true }, 21, 21},
		"young":   {func(o *sim.Options) { o.Finality, o.StartHeight = 60, 100 }, 100, 100},
	} {
		c := open(t, "ETH", w.change)
		c.Mine(20)
		tip, err := c.Client().Tip(t.Context())
		require.NoError(t, err)
		require.Equal(t, w.safe, tip.Safe, what)
		require.Equal(t, w.final, tip.Final, what)
	}
}
