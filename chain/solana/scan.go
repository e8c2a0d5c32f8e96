package solana

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Scan reads the blocks after the trail. A node whose head is below the trail is
// ErrBehind, whatever branch it is on. Tokens that are not registered are reported
// with their mint as Contract and in the token's smallest unit.
func (c *Client) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	if err := c.ready(ctx); err != nil {
		return chain.Scan{}, err
	}
	head, err := c.newest(ctx, confirmed)
	if err != nil {
		return chain.Scan{}, err
	}
	if len(trail) == 0 {
		return chain.Scan{Blocks: []chain.ScannedBlock{{Block: head.Block}}}, nil
	}
	last := trail[len(trail)-1]
	if head.Height < last.Height {
		return chain.Scan{}, fmt.Errorf("%w: its head is %d, read already %d", chain.ErrBehind, head.Height, last.Height)
	}
	out := chain.Scan{}
	if on, err := c.stands(ctx, last, head); err != nil {
		return chain.Scan{}, err
	} else if !on {
		if out.Rewound, err = c.rewind(ctx, trail, head); err != nil {
			return chain.Scan{}, err
		}
		last = trail[len(trail)-1-out.Rewound]
	}
	for limit > len(out.Blocks) && last.Height < head.Height {
		next, err := c.after(ctx, last, min(limit-len(out.Blocks), c.o.Parallel), head)
		if err != nil {
			return chain.Scan{}, err
		}
		if err := w.Sync(ctx); err != nil {
			return chain.Scan{}, fmt.Errorf("solana: reading watched addresses: %w", err)
		}
		for _, b := range next {
			if b.Parent != last.Hash {
				return out, nil // a fork under our feet, or blocks that the node lacks: the next Scan tells
			}
			scanned, err := c.match(b, w)
			if err != nil {
				return chain.Scan{}, err
			}
			out.Blocks, last = append(out.Blocks, scanned), b.Block
		}
	}
	return out, nil
}

// stands reports whether a block is on the node's chain. A slot without a block proves
// nothing by itself: it was skipped on this chain only where the next block's parent
// is before it. Else the node lacks blocks, which is an error.
func (c *Client) stands(ctx context.Context, b chain.Block, head header) (bool, error) {
	slot, err := slotOf(b.Hash)
	if err != nil {
		return false, err
	}
	if slot >= head.slot {
		return b.Hash == head.Hash, nil
	}
	here, err := c.header(ctx, slot, confirmed)
	if !said(err, skipped, skippedOld) {
		return here.Hash == b.Hash, err
	}
	next, err := c.slots(ctx, slot, 1, confirmed)
	if err != nil {
		return false, err
	}
	if len(next) == 1 {
		if here, err = c.header(ctx, next[0], confirmed); err != nil {
			return false, err
		}
		if here.parentSlot < slot {
			return false, nil
		}
	}
	return false, gap(slot)
}

func gap(slot int64) error {
	return fmt.Errorf("%w: it lacks blocks around slot %d, as after a start from a snapshot: ask another node", chain.ErrNode, slot)
}

// rewind counts the blocks at the trail's end that are not on the chain, found by
// hash. Below one that is, all are: so it halves.
func (c *Client) rewind(ctx context.Context, trail []chain.Block, head header) (int, error) {
	var failed error
	gone := sort.Search(len(trail), func(i int) bool {
		if failed != nil {
			return true
		}
		on, err := c.stands(ctx, trail[i], head)
		failed = err
		return err != nil || !on
	})
	if failed != nil {
		return 0, failed
	}
	if gone == 0 {
		return 0, fmt.Errorf("%w: %d blocks back to height %d", chain.ErrDeepFork, len(trail), trail[0].Height)
	}
	return len(trail) - gone, nil
}

// after reads the blocks after last, several at once: at least one, the first of
// which is last's child.
func (c *Client) after(ctx context.Context, last chain.Block, limit int, head header) ([]*block, error) {
	slot, err := slotOf(last.Hash)
	if err != nil {
		return nil, err
	}
	slots, err := c.slots(ctx, slot+1, limit, confirmed)
	if err != nil {
		return nil, err
	}
	for len(slots) > 0 && slots[len(slots)-1] > head.slot {
		slots = slots[:len(slots)-1]
	}
	if len(slots) == 0 {
		return nil, gap(slot)
	}
	blocks, err := c.read(ctx, slots, "full", confirmed)
	if err != nil {
		return nil, err
	}
	if first := blocks[0]; first.Parent != last.Hash || first.Height != last.Height+1 {
		return nil, fmt.Errorf("block %s is not the child of block %s: the chain changed while it was read, or %w", first.Hash, last.Hash, gap(slot))
	}
	return blocks, nil
}

// read reads blocks, several at once.
func (c *Client) read(ctx context.Context, slots []int64, details, commitment string) ([]*block, error) {
	out, errs := make([]*block, len(slots)), make([]error, len(slots))
	room := make(chan struct{}, c.o.Parallel)
	var wg sync.WaitGroup
	for i, slot := range slots {
		wg.Go(func() {
			room <- struct{}{}
			out[i], errs[i] = readBlock(c.node.call(ctx, "getBlock", slot, blockOptions(details, commitment)), slot)
			<-room
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i, b := range out {
		if i > 0 && b.Parent == out[i-1].Hash && b.Height != out[i-1].Height+1 {
			return nil, fmt.Errorf("%w: block %s says that its height is %d", chain.ErrNode, b.Hash, b.Height)
		}
		if details == "full" && b.seen&16 == 0 || details == "signatures" && b.seen&32 == 0 {
			return nil, fmt.Errorf("%w: block %s without its transactions", chain.ErrNode, b.Hash)
		}
		c.learn(&b.header)
	}
	return out, nil
}
