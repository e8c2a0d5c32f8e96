package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// Histories is how a client finds the blocks that matter to a few addresses without reading
// the others.
type Histories[B Block] struct {
	Most int // addresses; 0 or less = blocks are always read whole
	// Find lists the places, ascending, of all blocks after last, up to and with the head, in
	// which anything can have come to one of the addresses. The error says so where the node
	// does not have all of them. It wraps errors.ErrUnsupported where blocks have to be read
	// whole in place of that.
	Find func(ctx context.Context, list []chain.Address, last chain.Block) ([]int64, error)
	// Read reads the blocks at some places whole, in their order.
	Read func(ctx context.Context, places []int64) ([]B, error)
}

// named is Scan by histories. told is false where blocks have to be read whole.
//
// The head was read before the addresses are. So one that is handed out after they were read
// can only be paid in a block after the head, and the next Scan asks for it, too.
func (s Steps[B]) named(ctx context.Context, trail []chain.Block, w chain.FewWatch, limit int) (out chain.Scan, told bool, err error) {
	if err := w.Sync(ctx); err != nil {
		return out, false, fmt.Errorf("chain: reading watched addresses: %w", err)
	}
	last := trail[len(trail)-1]
	on, err := s.Stands(ctx, last)
	if err == nil && !on {
		if out.Rewound, err = halve(ctx, trail, s.Stands); err == nil {
			last = trail[len(trail)-1-out.Rewound]
		}
	}
	if err != nil || last.Hash == s.Head.Hash {
		return out, err == nil, err
	}
	list, few, err := w.Few(ctx, s.Histories.Most, last.Time)
	if err != nil {
		return out, false, fmt.Errorf("chain: reading watched addresses: %w", err)
	}
	if !few {
		return out, false, nil
	}
	places, err := s.Histories.Find(ctx, list, last)
	if err != nil {
		if errors.Is(err, errors.ErrUnsupported) {
			err = nil
		}
		return chain.Scan{}, false, err
	}
	for part := range slices.Chunk(places[:min(limit, len(places))], max(1, s.Group)) {
		blocks, err := s.whole(ctx, part, w)
		if err != nil {
			return chain.Scan{}, false, err
		}
		for _, b := range blocks {
			if b.Height <= last.Height || b.Height > s.Head.Height || (b.Height == s.Head.Height) != (b.Hash == s.Head.Hash) {
				return chain.Scan{}, false, fmt.Errorf("%w: block %d %s is not between block %d and its head %d", ErrTorn, b.Height, b.Hash, last.Height, s.Head.Height)
			}
			out.Blocks = append(out.Blocks, after(last, b))
			last = b.Block
		}
	}
	if len(out.Blocks) < limit && len(places) < limit && last.Hash != s.Head.Hash {
		out.Blocks = append(out.Blocks, after(last, chain.ScannedBlock{Block: s.Head}))
	}
	return out, true, nil
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
