package solana

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
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
	return follow.Steps[*block]{
		Head: head.Block, Group: c.o.Parallel,
		Stands: func(ctx context.Context, b chain.Block) (bool, error) { return c.stands(ctx, b, head) },
		Read: func(ctx context.Context, last chain.Block, n int) ([]*block, error) {
			return c.after(ctx, last, n, head)
		},
		Match: follow.ByBlock(c.match),
		Histories: follow.Histories[*block]{
			Most: c.o.FewAddresses, Rest: &c.rest,
			Find: func(ctx context.Context, list []chain.Address, last chain.Block) ([]int64, chain.Block, error) {
				return c.named(ctx, list, last, head)
			},
			Read: func(ctx context.Context, slots []int64) ([]*block, error) {
				return c.read(ctx, slots, "full", confirmed)
			},
			Still: c.still,
		},
	}.Scan(ctx, trail, w, limit)
}

// stands reports whether a block is on the node's chain. A slot without a block proves
// nothing by itself: it was skipped on this chain only where the next block's parent
// is before it. Else the node lacks blocks, which is an error. Of a slot that is not final a node
// that skipped it says what one says that has not come to it.
func (c *Client) stands(ctx context.Context, b chain.Block, head header) (bool, error) {
	slot, err := slotOf(b.Hash)
	if err != nil {
		return false, err
	}
	if slot >= head.slot {
		return b.Hash == head.Hash, nil
	}
	here, err := c.header(ctx, slot, confirmed)
	if !said(err, skipped, skippedOld, notAvailable) {
		return here.Hash == b.Hash, err
	}
	next, e := c.slots(ctx, slot, 1, confirmed)
	if e == nil && len(next) == 1 {
		if here, e = c.header(ctx, next[0], confirmed); e == nil && here.parentSlot < slot {
			return false, nil
		}
	}
	switch {
	case e != nil:
		return false, e
	case said(err, notAvailable):
		return false, err
	}
	return false, gap(slot)
}

func gap(slot int64) error {
	return fmt.Errorf("%w: it lacks blocks around slot %d, as after a start from a snapshot: ask another node", follow.ErrTorn, slot)
}

// after reads the blocks after last, several at once: at least one, each the child of
// the one before.
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
	next, err := follow.Linked(last, blocks)
	if err != nil {
		err = fmt.Errorf("%w, or %w", err, gap(slot))
	}
	return next, err
}

// read reads blocks, several at once. Anybody can make one whose whole answer is longer
// than Options.MaxBody, by what programs tell each other: of such a block the accounts
// are read.
func (c *Client) read(ctx context.Context, slots []int64, details, commitment string) ([]*block, error) {
	out := make([]*block, len(slots))
	err := follow.Each(len(slots), c.o.Parallel, func(i int) (err error) {
		k := c.node.call(ctx, "getBlock", slots[i], blockOptions(details, commitment))
		if details == "full" && errors.Is(k.Err, transport.ErrTooLong) {
			less := c.node.call(ctx, "getBlock", slots[i], blockOptions("accounts", commitment))
			if !said(less.Err, badRequest, noMethod, badParams) { // else it knows no such form: a larger MaxBody helps
				k = less
			}
		}
		out[i], err = readBlock(k, slots[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, b := range out {
		if i > 0 && b.Parent == out[i-1].Hash && b.Height != out[i-1].Height+1 {
			return nil, fmt.Errorf("%w: block %s says that its height is %d", follow.ErrTorn, b.Hash, b.Height)
		}
		if details == "full" && b.seen&16 == 0 || details == "signatures" && b.seen&32 == 0 {
			return nil, fmt.Errorf("%w: block %s without its transactions", follow.ErrTorn, b.Hash)
		}
		c.learn(&b.header)
	}
	return out, nil
}
