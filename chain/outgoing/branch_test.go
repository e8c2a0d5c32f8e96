package outgoing_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
)

// blocks are the newest of the chain, as an honest node tells them.
func (w *world) blocks(keep int64) (out []chain.Block) {
	at := w.chain.Client().(chain.Locator)
	for h := max(1, w.chain.Height()-keep+1); h <= w.chain.Height(); h++ {
		b, err := at.BlockAt(w.ctx, h)
		require.NoError(w.t, err)
		out = append(out, b)
	}
	return out
}

// reads starts a process whose reader of deposits has read these blocks.
func (w *world) reads(trail func() []chain.Block) {
	w.set.change = func(c *outgoing.Config) {
		c.Trail = func(context.Context) ([]chain.Block, error) { return trail(), nil }
	}
	w.restart()
}

// TestR05_NodeOnABranchThatOthersHaveLeftSettlesNothing: a reorg past finality takes a payout
// away, and the node of one process stays behind. What it calls final is not settled again,
// neither while its branch is remembered nor when the chain has long gone on.
func TestR05_NodeOnABranchThatOthersHaveLeftSettlesNothing(t *testing.T) {
	t.Parallel()
	for _, keep := range []int64{256, 8} {
		families(t, func(t *testing.T, w *world) {
			w.reads(func() []chain.Block { return w.blocks(keep) })
			node := w.chain.NewNode()
			w.client.fullClient = node.Client().(fullClient)
			start := w.clock()
			in := w.submit(w.intent("a", coin))
			w.run(12)
			require.Equal(t, outgoing.Final, w.state("a"))
			node.Freeze()
			w.evict(w.last("a").Tx)
			w.chain.Mine(20)
			require.NoError(t, w.Net.Recheck(w.ctx, start))
			for range 5 {
				w.advance(time.Minute)
				require.ErrorIs(t, w.step(), chain.ErrBehind, "it says that all is well")
			}
			require.False(t, w.get("a").Due.IsZero(), "somebody has to look")
			w.unpaid(in)
			node.Honest()
			w.run(40)
			w.paid(in)
			require.Equal(t, outgoing.Final, w.state("a"))
			require.True(t, w.get("a").Due.IsZero())
			w.sound()
		})
	}
}

// TestR05_ANodeOlderThanTheSettlementUndoesNothing: an order is settled, and the node of one process
// stands still since before that. Deposits were read no further than that node has come, so that
// only the time of its head says that it cannot know the order's block.
func TestR05_ANodeOlderThanTheSettlementUndoesNothing(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		read := w.blocks(256)
		w.reads(func() []chain.Block { return read })
		honest, frozen := w.client.fullClient, w.chain.NewNode().Freeze().Client().(fullClient)
		w.advance(time.Hour)
		in := w.submit(w.intent("a", coin))
		w.run(12)
		require.Equal(t, outgoing.Final, w.state("a"))
		w.client.fullClient = frozen
		for range 5 {
			w.advance(time.Minute)
			_ = w.step() // it says that its node is behind
			require.Equal(t, outgoing.Final, w.state("a"))
		}
		w.client.fullClient = honest
		w.run(12)
		w.paid(in)
		require.Equal(t, outgoing.Final, w.state("a"))
		w.sound()
	})
}

// TestR05_ANodeThatForgetsUndoesNothing: orders are looked at again after a fork, by a node that
// knows no transaction so old. Their nonces are used: they have landed.
func TestR05_ANodeThatForgetsUndoesNothing(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.AccountFamily})
	start := w.clock()
	in := w.submit(w.intent("a", coin))
	w.run(12)
	require.Equal(t, outgoing.Final, w.state("a"))
	heard := len(w.heard)
	honest := w.client.fullClient
	w.client.fullClient = w.chain.NewNode().Prune(2).Client().(fullClient)
	require.NoError(t, w.Net.Recheck(w.ctx, start))
	w.run(12)
	require.Equal(t, outgoing.Final, w.state("a"))
	require.Len(t, w.heard, heard, "nobody is told that it was undone")
	w.client.fullClient = honest
	w.run(12)
	require.True(t, w.get("a").Due.IsZero())
	w.paid(in)
	w.sound()
}

// TestR05_OpenOrderIsNotSettledOnABranchThatOthersHaveLeft: the node stays behind before the
// order is settled.
func TestR05_OpenOrderIsNotSettledOnABranchThatOthersHaveLeft(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.reads(func() []chain.Block { return w.blocks(256) })
		node := w.chain.NewNode()
		w.client.fullClient = node.Client().(fullClient)
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.chain.Mine(12)
		node.Freeze()
		w.evict(w.attempts("a")[0].Tx)
		w.chain.Mine(20)
		w.advance(time.Minute)
		require.ErrorIs(t, w.step(), chain.ErrBehind)
		require.NotEqual(t, outgoing.Final, w.state("a"))
		node.Honest()
		w.run(40)
		w.paid(in)
		require.Equal(t, outgoing.Final, w.state("a"))
		w.sound()
	})
}

// TestR05_SettledBeforeItsBlockWasReadIsLookedAtAgain: the reader of deposits is behind, and
// a reorg past finality replaces blocks that it has never read: it sees no fork. An order
// that was settled in them is looked at until they are read, and is sent again.
func TestR05_SettledBeforeItsBlockWasReadIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		read := w.blocks(256)
		w.reads(func() []chain.Block { return read })
		in := w.submit(w.intent("a", coin))
		w.run(12)
		require.Equal(t, outgoing.Final, w.state("a"))
		require.False(t, w.get("a").Due.IsZero(), "its block was not read")
		w.evict(w.last("a").Tx)
		w.chain.Mine(20)
		w.unpaid(in)
		w.run(1)
		require.NotEqual(t, outgoing.Final, w.state("a"))
		w.run(40)
		w.paid(in)
		require.Equal(t, outgoing.Final, w.state("a"))
		require.False(t, w.get("a").Due.IsZero())
		read = w.blocks(256)
		w.run(1)
		require.True(t, w.get("a").Due.IsZero(), "its block was read")
		require.Equal(t, outgoing.Final, w.state("a"))
		w.sound()
	})
}

// TestR05_OrderWhoseBlockNobodyReadsIsLookedAtForHours: and not until nodes forget it, as one
// that they forget looks undone.
func TestR05_OrderWhoseBlockNobodyReadsIsLookedAtForHours(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		read := w.blocks(256)
		w.reads(func() []chain.Block { return read })
		w.submit(w.intent("a", coin))
		w.run(12)
		require.Equal(t, outgoing.Final, w.state("a"))
		w.advance(5 * time.Hour)
		require.NoError(t, w.step())
		require.False(t, w.get("a").Due.IsZero())
		w.advance(2 * time.Hour)
		require.NoError(t, w.step())
		require.True(t, w.get("a").Due.IsZero())
		require.Equal(t, outgoing.Final, w.state("a"))
		w.sound()
	})
}

// TestR05_OrderOfACurrencyThatThisProcessDoesNotListIsLookedAtAgain: whoever learns of the
// fork may run a version that does not list the token, and the others do not learn of it.
func TestR05_OrderOfACurrencyThatThisProcessDoesNotListIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{noFinality: true})
	start := w.clock()
	in := w.intent("a", 2_000_000)
	in.Currency = "USDT"
	w.submit(in)
	w.run(12)
	require.Equal(t, outgoing.Final, w.state("a"))
	w.evict(w.last("a").Tx)
	both, coins := w.reg, []chain.Currency(nil)
	for _, c := range both.On("ETH") {
		if c.Code != "USDT" {
			coins = append(coins, *c)
		}
	}
	info, err := both.Network("ETH")
	require.NoError(t, err)
	w.reg, err = chain.NewRegistry([]chain.NetworkInfo{info}, coins)
	require.NoError(t, err)
	require.NoError(t, w.process().Recheck(w.ctx, start))
	w.reg = both
	w.run(40)
	w.paid(in)
	w.sound()
}

// TestR05_HeadOnABranchThatOthersHaveLeftSettlesNothing: the block that the node calls final is
// below those that are remembered by now, and its head is not: that is on another branch.
func TestR05_HeadOnABranchThatOthersHaveLeftSettlesNothing(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		keep := int64(256)
		w.reads(func() []chain.Block { return w.blocks(keep) })
		node := w.chain.NewNode()
		w.client.fullClient = node.Client().(fullClient)
		start := w.clock()
		in := w.submit(w.intent("a", coin))
		w.run(12)
		require.Equal(t, outgoing.Final, w.state("a"))
		head := w.chain.Height()
		node.Freeze()
		w.evict(w.last("a").Tx)
		w.chain.Mine(20)
		keep = w.chain.Height() - head + 3
		require.NoError(t, w.Net.Recheck(w.ctx, start))
		for range 5 {
			w.advance(time.Minute)
			require.ErrorIs(t, w.step(), chain.ErrBehind, "it says that all is well")
		}
		require.False(t, w.get("a").Due.IsZero(), "somebody has to look")
		w.unpaid(in)
		node.Honest()
		w.run(40)
		w.paid(in)
		require.Equal(t, outgoing.Final, w.state("a"))
		w.sound()
	})
}

// TestR05_OneOrderInABlockThatWasReadOtherwiseKeepsNoOthers: the reader of deposits has failed
// since it read a block that was replaced. The order in that block waits; those after it are
// sent again and told of.
func TestR05_OneOrderInABlockThatWasReadOtherwiseKeepsNoOthers(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		var read []chain.Block
		w.reads(func() []chain.Block { return read })
		w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.chain.Mine(1)
		read = w.blocks(256)
		read[len(read)-1].Hash = "left"
		w.run(12)
		require.Equal(t, outgoing.Executed, w.state("a"))
		b := w.submit(w.intent("b", coin))
		w.run(12)
		w.paid(b)
		require.Equal(t, outgoing.Executed, w.state("b"), "its owner is told that it is paid")
		w.advance(time.Minute)
		require.ErrorIs(t, w.step(), chain.ErrBehind)
		read = w.blocks(256)
		w.run(2)
		require.Equal(t, outgoing.Final, w.state("a"))
		require.Equal(t, outgoing.Final, w.state("b"))
		w.sound()
	})
}

// TestR05_SettledOrderThatWaitsAgainIsReopenedOnAYoungChain: it is in no block, and the first
// block of all is remembered.
func TestR05_SettledOrderThatWaitsAgainIsReopenedOnAYoungChain(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.reads(func() []chain.Block { return append([]chain.Block{{Hash: "genesis"}}, w.blocks(256)...) })
		start := w.clock()
		in := w.submit(w.intent("a", coin))
		w.run(12)
		require.Equal(t, outgoing.Final, w.state("a"))
		_, err := w.chain.ReorgTo(int(w.chain.Height()-1), 0)
		require.NoError(t, err)
		require.NoError(t, w.Net.Recheck(w.ctx, start))
		w.advance(time.Minute)
		require.NoError(t, w.step())
		w.run(40)
		w.paid(in)
		require.Equal(t, outgoing.Final, w.state("a"))
		w.sound()
	})
}
