package incoming_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
)

// between runs a hook once, between what a worker reads and the first Change that
// puts a Sighting in a state.
type between struct {
	storage.Store
	state incoming.State
	hook  func()
}

func (b *between) Commit(ctx context.Context, changes ...storage.Change) []error {
	puts := func(c storage.Change) bool {
		return slices.ContainsFunc(c.Put, func(r storage.Row) bool {
			return r.Table == incoming.Sightings.Table && incoming.Sightings.Value(r).State == b.state
		})
	}
	if h := b.hook; h != nil && slices.ContainsFunc(changes, puts) {
		b.hook = nil
		h()
	}
	return b.Store.Commit(ctx, changes...)
}

// The cursor is set back to the block of a deposit after a worker decided that the
// deposit is final, and before it commits that: the deposit is not final, as the blocks
// that made it so are not read any more.
func TestFQ07_CursorMovesBeforeADepositIsFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 51)
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(1)
	w.step()
	height := w.one(tx).Height
	require.Positive(t, height)
	w.mine(confs - 1)
	other := w.network(w.store, w.chain.Client())
	back := &between{Store: w.store, state: incoming.Final, hook: func() { require.NoError(t, other.Resume(background, height, unrecorded)) }}
	w.clock.Advance(time.Second)
	_, err := w.network(back, w.chain.Client()).Step(background)
	require.NoError(t, err)
	require.Nil(t, back.hook)
	require.Equal(t, height, w.cursor(w.store).Head)
	require.Equal(t, incoming.Included, w.one(tx).State)
	require.Empty(t, w.books)
	w.step()
	require.Equal(t, incoming.Final, w.one(tx).State)
	w.requireBooks()
}

// A deposit is final and not delivered yet when the chain becomes shorter above its
// block. It is delivered when the chain is as long again.
func TestFQ07_NoProofAboveAFallenHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 52)
	quiet := w.network(w.store, w.chain.Client(), func(c *incoming.Config, _ *sim.Options) { c.Handle = nil })
	w.stepOf(quiet)
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(confs)
	w.stepOf(quiet)
	s := w.one(tx)
	require.Equal(t, incoming.Final, s.State)
	_, err := w.chain.ReorgTo(confs-1, 2)
	require.NoError(t, err)
	require.NoError(t, quiet.Resume(background, s.Height, unrecorded))
	w.clock.Advance(time.Hour)
	w.step()
	require.Less(t, w.cursor(w.store).Head, s.FinalAt)
	require.Empty(t, w.books)
	w.mine(confs)
	for range 2 { // the lease of the delivery in vain has to end
		w.clock.Advance(time.Hour)
		w.step()
	}
	require.Len(t, w.books, 1)
	w.requireBooks()
}

// A final deposit was forwarded, a deep fork takes it away, and it is mined again. Its
// second life is not forwarded yet.
func TestFQ07_SecondLifeIsNotForwarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 53)
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(confs)
	w.step()
	s := w.one(tx)
	_, row, _, err := incoming.Sightings.One(background, w.store, storage.Network(string(eth)), s.Key())
	require.NoError(t, err)
	s.Forward, s.ForwardTx, s.ForwardFee = incoming.Forwarded, "forwarding", "0.1"
	require.NoError(t, storage.CommitOne(background, w.store, storage.Change{
		ID: "forwarded", Partition: storage.Network(string(eth)), Put: []storage.Row{incoming.Sightings.Row(s.Key(), row.Version, time.Time{}, s)},
	}))
	_, err = w.chain.Reorg(confs)
	require.NoError(t, err)
	w.mine(confs)
	w.step()
	again := w.one(tx)
	require.Equal(t, 2, again.Generation)
	require.Equal(t, incoming.Final, again.State)
	require.Equal(t, []any{incoming.ForwardNone, "", ""}, []any{again.Forward, again.ForwardTx, again.ForwardFee})
	w.requireBooks()
}

// An operator sets the cursor back to before a height that a dead branch called final.
// The new branch has not come as far with its own finality: it is read all the same,
// and what waits for finality waits for that of the new branch.
func TestFQ07_StepAfterResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 54, func(_ *incoming.Config, o *sim.Options) { o.Finality = 3 })
	w.step()
	w.mine(8)
	w.step()
	final := w.cursor(w.store).Final
	require.Greater(t, final, int64(4))
	_, err := w.chain.ReorgTo(8, 2)
	require.NoError(t, err)
	require.NoError(t, w.net.Resume(background, 1, unrecorded))
	token := w.pay(w.address(), "USDT", "1")
	w.mine(2)
	w.step()
	require.Less(t, w.cursor(w.store).Final, w.one(token).Height)
	require.Less(t, w.cursor(w.store).Final, final)
	require.Equal(t, incoming.Included, w.one(token).State)
	w.mine(2)
	w.step()
	require.Equal(t, incoming.Final, w.one(token).State)
	w.requireBooks()
}

// A fork takes a deposit out of its block, and the node is then on a branch that is
// shorter than the old one. The client knows no mempool, so nobody can say that the
// deposit is gone before the new branch is as long as the old one.
func TestFQ07_ThrownBackIsNotGoneAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 55)
	m := w.mangled()
	w.net = w.network(w.store, m)
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(confs - 1)
	w.step()
	old := w.cursor(w.store).Head
	require.Equal(t, incoming.Included, w.one(tx).State)
	_, err := w.chain.Reorg(confs - 1)
	require.NoError(t, err)
	m.change = func(s *chain.Scan) { // the node fails when the fork was followed, and before the new branch was read
		if s.Rewound == 0 {
			s.Blocks[0].Block.Hash = ""
		}
	}
	w.clock.Advance(time.Second)
	_, err = w.net.Step(background)
	require.Error(t, err)
	require.Equal(t, incoming.Seen, w.one(tx).State)
	m.change = nil
	_, err = w.chain.ReorgTo(confs-1, 2)
	require.NoError(t, err)
	w.step()
	require.Less(t, w.cursor(w.store).Head, old)
	require.Equal(t, incoming.Seen, w.one(tx).State)
	w.mine(confs)
	w.step()
	for _, f := range w.facts {
		require.NotEqual(t, incoming.Gone, f.Sighting.State)
	}
	require.Equal(t, 1, w.one(tx).Generation)
	require.Equal(t, w.truth(), w.summary(w.store))
	w.requireBooks()
}

// TestFN08_AForkIsAsDeepAsTheChainIsLong: deposits were read up to a block, and transactions of ours
// were settled by a head far above it. A fork that takes back one block of those that were read
// has orders looked at again all the same. A short one does not.
func TestFN08_AForkIsAsDeepAsTheChainIsLong(t *testing.T) {
	t.Parallel()
	for _, above := range []int{0, confs} {
		w := newWorld(t, btc, 56)
		w.mine(3)
		w.step()
		read := w.cursor(w.store).Head
		w.mine(above)
		_, err := w.chain.Reorg(above + 1)
		require.NoError(t, err)
		w.step()
		fork, row, noted, err := incoming.Forks.One(background, w.store, storage.Network(string(btc)), "fork")
		require.NoError(t, err)
		require.Equal(t, above > 0, noted, "%d blocks above", above)
		if noted {
			require.Equal(t, read-1, fork.Height)
			require.False(t, row.Due.IsZero())
		}
	}
}
