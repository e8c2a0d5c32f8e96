package follow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// Histories is how a client finds the blocks that matter to a few addresses without reading
// the others.
type Histories[B Block] struct {
	Most int // addresses; 0 or less = blocks are always read whole
	// Find lists the places, ascending, of all blocks after last, up to and with end, in which
	// anything can have come to one of the addresses. end is the head, or a block below it where
	// that is more than a node can be asked for at once. It returns an error where the node does
	// not show that these are all: blocks are read whole then.
	Find func(ctx context.Context, list []chain.Address, last chain.Block) (places []int64, end chain.Block, err error)
	// Read reads the blocks at some places whole, in their order.
	Read func(ctx context.Context, places []int64) ([]B, error)
	// Still returns an error where end is not on the chain any more, after all was read. nil = it
	// always is.
	Still func(ctx context.Context, end chain.Block) error
	// Rest is the client's. nil = it never rests.
	Rest *Rest
}

// Rest has blocks read whole for some Scans after a node said that it was asked too often for
// histories. Strangers can make them long, so that one who asks for them alone would be refused each
// time.
type Rest struct{ scans atomic.Int64 }

// resting is how many Scans read whole blocks then.
const resting = 8

func (r *Rest) begin() {
	if r != nil {
		r.scans.Store(resting)
	}
}

// over counts a Scan, and reports whether histories may be asked for.
func (r *Rest) over() bool { return r == nil || r.scans.Load() <= 0 || r.scans.Add(-1) < 0 }

// ErrUntold is the error of Histories.Find where the node's histories do not tell all.
var ErrUntold = errors.New("histories do not tell")

// named is Scan by histories. told is false where blocks have to be read whole: there are many
// addresses, or the node does not show that it named all blocks.
//
// The head was read before the addresses are. So one that is handed out after they were read
// can only be paid in a block after the head, and the next Scan asks for it, too.
func (s Steps[B]) named(ctx context.Context, trail []chain.Block, w chain.FewWatch, limit int) (out chain.Scan, told bool, err error) {
	if err := w.Sync(ctx); err != nil {
		return out, false, fmt.Errorf("chain: reading watched addresses: %w", err)
	}
	last := trail[len(trail)-1]
	list, few, err := w.Few(ctx, s.Histories.Most, last.Time)
	if err == nil && few {
		if out.Rewound, err = s.rewound(ctx, trail); err != nil {
			return chain.Scan{}, false, err
		}
		if out.Rewound > 0 {
			last = trail[len(trail)-1-out.Rewound]
			list, few, err = w.Few(ctx, s.Histories.Most, last.Time) // as of then, there may be more
		}
	}
	switch {
	case err != nil:
		return chain.Scan{}, false, fmt.Errorf("chain: reading watched addresses: %w", err)
	case !few:
		return chain.Scan{}, false, nil
	case last.Hash == s.Head.Hash:
		return out, true, nil
	}
	places, end, err := s.Histories.Find(ctx, list, last)
	if err != nil {
		var limited *chain.LimitedError
		switch {
		case errors.As(err, &limited):
			s.Histories.Rest.begin()
		case ctx.Err() == nil:
			err = nil
		}
		return chain.Scan{}, false, err
	}
	for part := range slices.Chunk(places[:max(0, min(limit, len(places)))], max(1, s.Group)) {
		blocks, err := s.whole(ctx, part, w)
		if err != nil {
			return chain.Scan{}, false, err
		}
		for _, b := range blocks {
			if b.Height <= last.Height || b.Height > end.Height || (b.Height == end.Height) != (b.Hash == end.Hash) {
				return chain.Scan{}, false, fmt.Errorf("%w: block %d %s is not between block %d and block %d", ErrTorn, b.Height, b.Hash, last.Height, end.Height)
			}
			out.Blocks = append(out.Blocks, after(last, b))
			last = b.Block
		}
	}
	if len(places) < limit && last.Hash != end.Hash {
		out.Blocks = append(out.Blocks, after(last, chain.ScannedBlock{Block: end}))
	}
	if s.Histories.Still != nil {
		if err := s.Histories.Still(ctx, end); err != nil {
			return chain.Scan{}, false, err
		}
	}
	return out, true, nil
}

// Named is a Histories.Find that asks for one account after the other, several at once. of lists
// the heights of blocks that may have brought something to an account, ascending; they are all up
// to and with end. at reads the block at a height.
func Named[A comparable, B Block](
	ctx context.Context, parallel int, accounts []A, last, head chain.Block,
	at func(ctx context.Context, height int64) (B, error),
	of func(ctx context.Context, a A) (heights []int64, end int64, err error),
) ([]int64, chain.Block, error) {
	var mu sync.Mutex
	found, end := map[int64]bool{}, head.Height
	err := Until(len(accounts), parallel, func(i int) error {
		if slices.Contains(accounts[:i], accounts[i]) {
			return nil
		}
		heights, to, err := of(ctx, accounts[i])
		mu.Lock()
		defer mu.Unlock()
		for _, h := range heights {
			found[h] = true
		}
		end = min(end, to)
		return err
	})
	if err == nil && end <= last.Height {
		err = ErrUntold
	}
	if err != nil {
		return nil, chain.Block{}, err
	}
	heights := slices.Sorted(maps.Keys(found))
	if end == head.Height {
		return heights, head, nil
	}
	above, _ := slices.BinarySearch(heights, end+1)
	b, err := at(ctx, end)
	if err != nil {
		return nil, chain.Block{}, err
	}
	return heights[:above], b.At(), nil
}

// Places makes a Histories.Read of how the block at one height is read.
func Places[B Block](read func(ctx context.Context, height int64) (B, error)) func(context.Context, []int64) ([]B, error) {
	return func(ctx context.Context, heights []int64) ([]B, error) {
		out := make([]B, len(heights))
		err := Each(len(heights), len(heights), func(i int) (err error) {
			out[i], err = read(ctx, heights[i])
			return err
		})
		return out, err
	}
}

// rewound counts the blocks at the trail's end that do not stand.
func (s Steps[B]) rewound(ctx context.Context, trail []chain.Block) (int, error) {
	on, err := s.Stands(ctx, trail[len(trail)-1])
	if err != nil || on {
		return 0, err
	}
	return halve(ctx, trail, s.Stands)
}

// whole reads blocks and matches them: one by one where so many are too large an answer.
func (s Steps[B]) whole(ctx context.Context, places []int64, w chain.Watch) ([]chain.ScannedBlock, error) {
	blocks, err := s.Histories.Read(ctx, places)
	var out []chain.ScannedBlock
	if err == nil {
		if len(blocks) != len(places) {
			return nil, fmt.Errorf("%w: %d of %d blocks", ErrTorn, len(blocks), len(places))
		}
		out, err = s.Match(ctx, blocks, w)
	}
	if len(places) == 1 || !errors.Is(err, transport.ErrTooLong) {
		return out, err
	}
	out = nil
	for i := range places {
		one, err := s.whole(ctx, places[i:i+1], w)
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	return out, nil
}

// after is a block as the one that follows another in an answer, whatever is between them.
func after(last chain.Block, b chain.ScannedBlock) chain.ScannedBlock {
	b.Parent = last.Hash
	for i := range b.Transfers {
		b.Transfers[i].Block.Parent = b.Parent
	}
	return b
}
