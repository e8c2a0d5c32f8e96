package follow_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

type block struct{ chain.Block }

func (b block) At() chain.Block { return b.Block }

// node is a chain that counts what it is asked.
type node struct {
	blocks []block
	asked  int
	most   int // blocks read at once
}

// grow adds blocks of a branch.
func (n *node) grow(branch string, count int) {
	for range count {
		h := len(n.blocks)
		b := chain.Block{Height: int64(h), Hash: fmt.Sprint(branch, h)}
		if h > 0 {
			b.Parent = n.blocks[h-1].Hash
		}
		n.blocks = append(n.blocks, block{b})
	}
}

func (n *node) trail(from int) (out []chain.Block) {
	for _, b := range n.blocks[from:] {
		out = append(out, b.Block)
	}
	return out
}

// watch wants to be asked to Sync after blocks were read, each time.
type watch struct {
	follow.Only
	fresh *bool
}

func (w watch) Sync(context.Context) error { *w.fresh = true; return nil }

// ways are the two in which clients read: up to a head, or in batches with the check.
func (n *node) ways(t *testing.T) map[string]func(trail []chain.Block, limit int) (chain.Scan, error) {
	const group = 4
	fresh := false
	read := func(last chain.Block, count int) ([]block, error) {
		n.most, fresh = max(n.most, count), false
		from := min(int(last.Height)+1, len(n.blocks))
		return follow.Linked(last, n.blocks[from:min(from+count, len(n.blocks))])
	}
	match := follow.ByBlock(func(_ context.Context, b block, _ chain.Watch) ([]chain.Transfer, error) {
		require.True(t, fresh, "addresses are read after blocks")
		return []chain.Transfer{{Tx: b.Hash}}, nil
	})
	at := func(_ context.Context, height int64) (block, error) {
		n.asked++
		return n.blocks[height], nil
	}
	return map[string]func([]chain.Block, int) (chain.Scan, error){
		"steps": func(trail []chain.Block, limit int) (chain.Scan, error) {
			head := n.blocks[len(n.blocks)-1].Block
			return follow.Steps[block]{
				Head: head, Group: group, Stands: follow.Stands(head, at), Match: match,
				Read: func(_ context.Context, last chain.Block, count int) ([]block, error) { return read(last, count) },
			}.Scan(t.Context(), trail, watch{fresh: &fresh}, limit)
		},
		"batches": func(trail []chain.Block, limit int) (chain.Scan, error) {
			return follow.Chain[block]{
				Group: group, Match: match,
				Next: func(_ context.Context, last chain.Block, count int) ([]block, bool, error) {
					if n.blocks[last.Height].Hash != last.Hash {
						return nil, true, nil
					}
					next, err := read(last, count)
					return next, false, err
				},
				Rewind: func(ctx context.Context, trail []chain.Block) (int, error) {
					return follow.Back(ctx, trail, 7, func(_ context.Context, part []chain.Block) (out []string, err error) {
						n.asked++
						require.LessOrEqual(t, len(part), 7)
						for _, b := range part {
							out = append(out, n.blocks[b.Height].Hash)
						}
						return out, nil
					})
				},
			}.Scan(t.Context(), trail, watch{fresh: &fresh}, limit)
		},
	}
}

func TestR01_EveryDepthIsFoundByHash(t *testing.T) {
	t.Parallel()
	for length := 1; length <= 33; length++ {
		for depth := range length + 1 {
			n := &node{}
			n.grow("a", 1+length)
			trail := n.trail(1)
			n.blocks = n.blocks[:1+length-depth]
			n.grow("b", depth+9)
			for way, scan := range n.ways(t) {
				n.asked, n.most = 0, 0
				s, err := scan(trail, 6)
				if depth == length {
					require.ErrorIs(t, err, chain.ErrDeepFork, "%s %d", way, length)
					require.Empty(t, s)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, depth, s.Rewound, "%s of %d", way, length)
				require.Len(t, s.Blocks, 6, "as many as were asked for, of two groups")
				last := trail[length-1-depth]
				for _, b := range s.Blocks {
					require.Equal(t, last.Hash, b.Parent)
					require.Equal(t, b.Hash, b.Transfers[0].Tx)
					last = b.Block
				}
				require.LessOrEqual(t, n.most, 4, "no more at once than the group")
				require.LessOrEqual(t, n.asked, 7, "halved, or in batches")
			}
		}
	}
}

// TestFN04_BlocksThatAreTooFullAreReadOneByOne: others fill blocks; what is too large an
// answer is asked for in parts, when blocks are read and when they are matched.
func TestFN04_BlocksThatAreTooFullAreReadOneByOne(t *testing.T) {
	t.Parallel()
	tooLarge := fmt.Errorf("%w: %w", chain.ErrNode, transport.ErrTooLong)
	for name, most := range map[string][2]int{"when read": {1, 4}, "when matched": {4, 1}, "both": {3, 2}} {
		n := &node{}
		n.grow("a", 20)
		c := follow.Chain[block]{
			Group: 4,
			Next: func(_ context.Context, last chain.Block, count int) ([]block, bool, error) {
				if count > most[0] {
					return nil, false, tooLarge
				}
				at := int(last.Height) + 1
				return n.blocks[at:min(at+count, len(n.blocks))], false, nil
			},
			Match: func(_ context.Context, next []block, _ chain.Watch) (out []chain.ScannedBlock, err error) {
				if len(next) > most[1] {
					return nil, tooLarge
				}
				for _, b := range next {
					out = append(out, chain.ScannedBlock{Block: b.Block})
				}
				return out, nil
			},
		}
		trail := n.trail(0)[:1]
		for len(trail) < 20 {
			s, err := c.Scan(t.Context(), trail, follow.Only{}, 4)
			require.NoError(t, err, name)
			require.NotEmpty(t, s.Blocks, name)
			for _, b := range s.Blocks {
				require.Equal(t, trail[len(trail)-1].Hash, b.Parent, name)
				trail = append(trail, b.Block)
			}
		}
	}
	c := follow.Chain[block]{Group: 4, Next: func(context.Context, chain.Block, int) ([]block, bool, error) { return nil, false, tooLarge }}
	_, err := c.Scan(t.Context(), []chain.Block{{Hash: "a"}}, follow.Only{}, 4)
	require.ErrorIs(t, err, chain.ErrNode, "one block alone")
}

func TestD07_HeadBelowTheTrailIsNoFork(t *testing.T) {
	t.Parallel()
	n := &node{}
	n.grow("a", 5)
	trail := n.trail(1)
	n.blocks = n.blocks[:3]
	_, err := n.ways(t)["steps"](trail, 9)
	require.ErrorIs(t, err, chain.ErrBehind)
	require.NotErrorIs(t, err, chain.ErrDeepFork)
}

func TestD07_OnlyWhatLinksIsGiven(t *testing.T) {
	t.Parallel()
	for way := range (&node{}).ways(t) {
		n := &node{}
		n.grow("a", 9)
		trail := n.trail(2)[:1]
		scan := n.ways(t)[way]
		good := n.blocks[5]
		for what, bad := range map[string]chain.Block{
			"parent": {Height: 5, Hash: good.Hash, Parent: "other"},
			"height": {Height: 6, Hash: good.Hash, Parent: good.Parent},
		} {
			n.blocks[5] = block{bad}
			s, err := scan(trail, 9)
			require.NoError(t, err)
			require.Len(t, s.Blocks, 2, "%s: what is whole counts, and nothing after it", what)
			_, err = scan(append(trail, s.Blocks[0].Block, s.Blocks[1].Block), 9)
			require.ErrorIs(t, err, chain.ErrNode, what)
		}
		n.blocks[5] = good
		s, err := scan(trail, 99)
		require.NoError(t, err)
		require.Len(t, s.Blocks, 6)
		for _, none := range []int{0, -1} {
			s, err = scan(trail, none)
			require.NoError(t, err)
			require.Empty(t, s.Blocks)
		}
	}
}

func TestW07_TornIsOneAttemptsAndAnythingElseIsAll(t *testing.T) {
	t.Parallel()
	other := fmt.Errorf("%w: not reached", chain.ErrNode)
	for _, torn := range []error{follow.ErrTorn, follow.Torn(other), fmt.Errorf("x: %w", fmt.Errorf("%w: y", follow.ErrTorn))} {
		require.ErrorIs(t, torn, chain.ErrNode)
		all, err := follow.Statuses(3, func(i int) (chain.Status, error) {
			if i == 1 {
				return chain.Status{State: chain.Included, Final: true}, torn
			}
			return chain.Status{State: chain.Pending}, nil
		})
		require.NoError(t, err)
		require.Equal(t, []chain.Status{{State: chain.Pending}, {State: chain.Unknown}, {State: chain.Pending}}, all)
	}
	require.NotErrorIs(t, other, follow.ErrTorn)
	require.NoError(t, follow.Torn(nil))
	_, err := follow.Statuses(3, func(int) (chain.Status, error) { return chain.Status{}, other })
	require.ErrorIs(t, err, other)
}

func TestEachIsBoundedAndTellsEveryError(t *testing.T) {
	t.Parallel()
	var now, most, done atomic.Int32
	one, two := errors.New("one"), errors.New("two")
	err := follow.Each(50, 3, func(i int) error {
		defer now.Add(-1)
		for n := now.Add(1); n > most.Load(); {
			most.Store(n)
		}
		for range 100 {
			runtime.Gosched()
		}
		done.Add(1)
		return map[int]error{7: one, 40: two}[i]
	})
	require.ErrorIs(t, err, one)
	require.ErrorIs(t, err, two)
	require.EqualValues(t, 50, done.Load())
	require.LessOrEqual(t, most.Load(), int32(3))
	require.NoError(t, follow.Each(0, 3, nil))
}
