package follow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// few is a chain.FewWatch that notes as of when it was asked.
type few struct {
	follow.Only
	many bool
	err  error
	at   []time.Time
}

func (w *few) Few(_ context.Context, _ int, at time.Time) ([]chain.Address, bool, error) {
	w.at = append(w.at, at)
	return w.Only, !w.many, w.err
}

// named is a node whose histories name some heights, up to an end.
type named struct {
	*node
	places []int64
	end    int64 // 0 is the head
	err    error
	still  error
	from   int64 // the height of the block that was asked from last
	asked  int   // how often histories were
	rest   follow.Rest
}

func (n *named) scan(t *testing.T, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	head := n.blocks[len(n.blocks)-1].Block
	at := func(_ context.Context, height int64) (block, error) { return n.blocks[height], nil }
	return follow.Steps[block]{
		Head: head, Group: 2, Stands: follow.Stands(head, at),
		Read: func(ctx context.Context, last chain.Block, count int) ([]block, error) {
			return follow.Read(ctx, last, count, at)
		},
		Match: follow.ByBlock(func(_ context.Context, b block, _ chain.Watch) ([]chain.Transfer, error) {
			return []chain.Transfer{{Tx: b.Hash, Block: b.Block}}, nil
		}),
		Histories: follow.Histories[block]{
			Most: 1, Read: follow.Places(at), Rest: &n.rest, Still: func(context.Context, chain.Block) error { return n.still },
			Find: func(_ context.Context, _ []chain.Address, last chain.Block) ([]int64, chain.Block, error) {
				n.from, n.asked = last.Height, n.asked+1
				end := head
				if n.end > 0 {
					end = n.blocks[n.end].Block
				}
				return n.places, end, n.err
			},
		},
	}.Scan(t.Context(), trail, w, limit)
}

func heights(s chain.Scan) (out []int64) {
	for _, b := range s.Blocks {
		out = append(out, b.Height)
	}
	return out
}

func TestFN09_BlocksThatHistoriesName(t *testing.T) {
	t.Parallel()
	n := &named{node: &node{}, places: []int64{4, 6, 9}}
	n.grow("a", 13)
	for i := range n.blocks {
		n.blocks[i].Time = time.Unix(int64(i), 0)
	}
	trail := n.trail(2)[:1]
	for limit, want := range map[int][]int64{0: nil, 1: {4}, 3: {4, 6, 9}, 4: {4, 6, 9, 12}} {
		s, err := n.scan(t, trail, &few{}, limit)
		require.NoError(t, err)
		require.Equal(t, want, heights(s), "%d", limit)
		last := trail[0]
		for _, b := range s.Blocks {
			require.Equal(t, last.Hash, b.Parent)
			for _, x := range b.Transfers {
				require.Equal(t, b.Block, x.Block)
			}
			last = b.Block
		}
	}
	n.end = 9
	s, err := n.scan(t, trail, &few{}, 9)
	require.NoError(t, err)
	require.Equal(t, []int64{4, 6, 9}, heights(s), "the head is for another time")
	n.end = 10
	s, err = n.scan(t, trail, &few{}, 9)
	require.NoError(t, err)
	require.Equal(t, []int64{4, 6, 9, 10}, heights(s))
	for name, bad := range map[string][]int64{"above the end": {11}, "twice": {4, 4}, "out of order": {6, 4}, "before": {2}} {
		n.places = bad
		s, err = n.scan(t, trail, &few{}, 9)
		require.ErrorIs(t, err, chain.ErrNode, name)
		require.Empty(t, s, name)
	}
}

// Whatever keeps histories from telling all has blocks read whole, but for a node that is asked too
// often: it would be asked for more.
func TestFN09_WhereHistoriesDoNotTell(t *testing.T) {
	t.Parallel()
	n := &named{node: &node{}}
	n.grow("a", 9)
	trail := n.trail(2)[:1]
	whole := []int64{3, 4, 5, 6, 7, 8}
	s, err := n.scan(t, trail, &few{many: true}, 9)
	require.NoError(t, err)
	require.Equal(t, whole, heights(s))
	for _, n.err = range []error{follow.ErrUntold, follow.ErrTorn, chain.ErrNode, errors.New("anything")} {
		s, err = n.scan(t, trail, &few{}, 9)
		require.NoError(t, err)
		require.Equal(t, whole, heights(s))
	}
	var limited *chain.LimitedError
	n.err = &chain.LimitedError{After: time.Second}
	s, err = n.scan(t, trail, &few{}, 9)
	require.ErrorAs(t, err, &limited)
	require.Empty(t, s)
	n.asked = 0
	for range 8 {
		s, err = n.scan(t, trail, &few{}, 9)
		require.NoError(t, err)
		require.Equal(t, whole, heights(s), "who asks for histories alone is refused each time")
	}
	require.Zero(t, n.asked)
	n.err = nil
	s, err = n.scan(t, trail, &few{}, 9)
	require.NoError(t, err)
	require.Equal(t, []int64{8}, heights(s), "and later they are asked for again")
	n.still = follow.ErrTorn
	s, err = n.scan(t, trail, &few{}, 9)
	require.ErrorIs(t, err, chain.ErrNode, "of two branches")
	require.Empty(t, s)
	n.still = nil
	store := errors.New("the store is away")
	s, err = n.scan(t, trail, &few{err: store}, 9)
	require.ErrorIs(t, err, store)
	require.Empty(t, s)
}

// A fork is found in a trail with gaps as in every other. Histories are asked from the last block
// that is left, and for the addresses that were watched then.
func TestFN09_ForksOfATrailWithGaps(t *testing.T) {
	t.Parallel()
	n := &named{node: &node{}}
	n.grow("a", 20)
	for i := range n.blocks {
		n.blocks[i].Time = time.Unix(int64(i), 0)
	}
	var trail []chain.Block
	for _, h := range []int{3, 7, 8, 15, 19} {
		b := n.blocks[h].Block
		if len(trail) > 0 {
			b.Parent = trail[len(trail)-1].Hash
		}
		trail = append(trail, b)
	}
	for fork, gone := range map[int]int{19: 1, 16: 1, 15: 2, 9: 2, 8: 3, 5: 4} {
		other := &named{node: &node{blocks: n.blocks[:fork:fork]}}
		other.grow("b", 30-fork)
		w := &few{}
		s, err := other.scan(t, trail, w, 9)
		require.NoError(t, err)
		require.Equal(t, gone, s.Rewound, "%d", fork)
		left := trail[len(trail)-1-gone]
		require.Equal(t, left.Height, other.from)
		require.Equal(t, left.Time, w.at[len(w.at)-1])
		require.Equal(t, left.Hash, s.Blocks[0].Parent)
		require.Equal(t, []int64{29}, heights(s))
	}
	for _, fork := range []int{3, 1} {
		other := &named{node: &node{blocks: n.blocks[:fork:fork]}}
		other.grow("b", 30-fork)
		s, err := other.scan(t, trail, &few{}, 9)
		require.ErrorIs(t, err, chain.ErrDeepFork)
		require.Empty(t, s)
	}
}
