package tron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// Scan reads the blocks after the trail and the receipts of all that is in them.
// A node whose head is below the trail is ErrBehind, whatever branch it is on.
// Tokens that are not registered are reported with their Contract and in the
// token's smallest unit, as nobody vouches for decimals; TRC-10 tokens with
// "TRC10/" and their id.
func (c *Client) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	if err := c.rightChain(ctx); err != nil {
		return chain.Scan{}, err
	}
	if len(trail) == 0 {
		b, err := c.head(ctx)
		if err != nil {
			return chain.Scan{}, err
		}
		return chain.Scan{Blocks: []chain.ScannedBlock{{Block: b.Block}}}, nil
	}
	last := trail[len(trail)-1]
	head, err := c.reached(ctx, last)
	if err != nil {
		return chain.Scan{}, err
	}
	out := chain.Scan{}
	if on, err := c.stands(ctx, last, head); err != nil {
		return chain.Scan{}, err
	} else if !on {
		if out.Rewound, err = c.rewind(ctx, trail); err != nil {
			return chain.Scan{}, err
		}
		last = trail[len(trail)-1-out.Rewound]
	}
	for limit > len(out.Blocks) && last.Height < head.Height {
		upTo := min(head.Height, last.Height+int64(min(c.o.Group, limit-len(out.Blocks))))
		next, err := c.blocks(ctx, last, upTo)
		if err != nil {
			return chain.Scan{}, err
		}
		scanned, err := c.match(ctx, next, w)
		if err != nil {
			return chain.Scan{}, err
		}
		out.Blocks = append(out.Blocks, scanned...)
		if last = next[len(next)-1].Block; last.Height < upTo {
			break // a fork under our feet: the next Scan finds it
		}
	}
	return out, nil
}

// reached reads the head, which must not be below a block already read.
func (c *Client) reached(ctx context.Context, last chain.Block) (block, error) {
	head, err := c.head(ctx)
	if err == nil && head.Height < last.Height {
		err = fmt.Errorf("%w: its head is %d, read already %d", chain.ErrBehind, head.Height, last.Height)
	}
	return head, err
}

// stands reports whether a block is on the node's chain.
func (c *Client) stands(ctx context.Context, b chain.Block, head block) (bool, error) {
	if head.Height == b.Height {
		return head.Hash == b.Hash, nil
	}
	here, err := c.at(ctx, b.Height)
	return here.Hash == b.Hash, err
}

// rewind counts the blocks at the trail's end that are not on the chain, found
// by hash. Below one that is, all are: so it halves.
func (c *Client) rewind(ctx context.Context, trail []chain.Block) (int, error) {
	var failed error
	gone := sort.Search(len(trail), func(i int) bool {
		if failed != nil {
			return true
		}
		here, err := c.at(ctx, trail[i].Height)
		failed = err
		return err != nil || here.Hash != trail[i].Hash
	})
	if failed != nil {
		return 0, failed
	}
	if gone == 0 {
		return 0, fmt.Errorf("%w: %d blocks back to height %d", chain.ErrDeepFork, len(trail), trail[0].Height)
	}
	return len(trail) - gone, nil
}

// blocks reads the blocks after last up to a height that the node has: at least
// one, each the child of the one before.
func (c *Client) blocks(ctx context.Context, last chain.Block, upTo int64) ([]block, error) {
	raw, err := c.node.post(ctx, "/wallet/getblockbylimitnext", map[string]any{"startNum": last.Height + 1, "endNum": upTo + 1})
	if err != nil {
		return nil, err
	}
	w := newWalk(raw)
	var all []block
	w.Object(func(key []byte) {
		if string(key) != "block" {
			w.Skip()
			return
		}
		w.Array(func() { all = append(all, readBlock(w)) })
	})
	if err := w.End(); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b block) int { return int(a.Height - b.Height) })
	var out []block
	for i := range all {
		b := &all[i]
		if err := b.whole(); err != nil {
			return nil, err
		}
		if b.Height != last.Height+1 || b.Parent != last.Hash {
			if len(out) > 0 {
				break // the chain changed meanwhile; what is whole counts
			}
			return nil, fmt.Errorf("%w: block %d is not the child of block %d: the chain changed while it was read", chain.ErrNode, b.Height, last.Height)
		}
		out, last = append(out, *b), b.Block
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: it has block %d, but does not give it", chain.ErrNode, upTo)
	}
	return out, nil
}

// reading is one block while it is matched.
type reading struct {
	*block
	bodies []body
	infos  map[[32]byte]*info
	out    []chain.Transfer
}

// match turns blocks into what they moved to watched addresses.
func (c *Client) match(ctx context.Context, blocks []block, w chain.Watch) ([]chain.ScannedBlock, error) {
	rs := make([]*reading, len(blocks))
	for i := range blocks {
		rs[i] = &reading{block: &blocks[i]}
		if err := rs[i].decode(); err != nil {
			return nil, err
		}
	}
	if err := c.receipts(ctx, rs); err != nil {
		return nil, err
	}
	if err := w.Sync(ctx); err != nil {
		return nil, fmt.Errorf("tron: reading watched addresses: %w", err)
	}
	out := make([]chain.ScannedBlock, len(rs))
	for i, r := range rs {
		if err := c.transfers(r, w); err != nil {
			return nil, err
		}
		out[i] = chain.ScannedBlock{Block: r.Block, Transfers: r.out}
	}
	return out, nil
}

// decode reads every transaction's own bytes.
func (r *reading) decode() error {
	r.bodies = make([]body, len(r.txs))
	for i := range r.txs {
		t := &r.txs[i]
		raw := make([]byte, len(t.raw)/2)
		if !transport.Unhex(raw, t.raw) {
			return fmt.Errorf("%w: transaction %x of block %s is not hex", chain.ErrNode, t.id, r.Hash)
		}
		b, err := decodeBody(raw)
		switch {
		case err == nil:
			r.bodies[i] = b
		case digest(raw) != t.id:
			return fmt.Errorf("%w: transaction %x of block %s is not what its id says", chain.ErrNode, t.id, r.Hash)
		}
		// What the network took and we cannot read pays nobody by itself; one strange
		// transaction must not end the reading of a chain. Its logs still count.
	}
	return nil
}

// receipts reads the receipts of the blocks, several at once, and then whether
// the last block is still the one that was read: receipts do not name a hash.
func (c *Client) receipts(ctx context.Context, rs []*reading) error {
	errs := make([]error, len(rs))
	room := make(chan struct{}, c.o.Parallel)
	var wg sync.WaitGroup
	asked := false
	for i, r := range rs {
		if len(r.txs) == 0 {
			continue
		}
		asked = true
		wg.Go(func() {
			room <- struct{}{}
			errs[i] = c.readInfos(ctx, r)
			<-room
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil || !asked {
		return err
	}
	last := rs[len(rs)-1]
	again, err := c.at(ctx, last.Height)
	if err == nil && again.id != last.id {
		err = fmt.Errorf("%w: the chain changed while block %d was read", chain.ErrNode, last.Height)
	}
	return err
}

// readInfos reads the receipts of one block: of each of its transactions, and of
// no other.
func (c *Client) readInfos(ctx context.Context, r *reading) error {
	raw, err := c.node.post(ctx, "/wallet/gettransactioninfobyblocknum", map[string]any{"num": r.Height})
	if err != nil {
		return err
	}
	w := newWalk(raw)
	infos := make([]info, 0, len(r.txs))
	w.Array(func() { infos = append(infos, readInfo(w)) })
	if err := w.End(); err != nil {
		return err
	}
	r.infos = make(map[[32]byte]*info, len(infos))
	for i := range infos {
		x := &infos[i]
		if x.none || x.height != r.Height || x.millis != r.millis {
			return fmt.Errorf("%w: receipts of another block than %s", chain.ErrNode, r.Hash)
		}
		r.infos[x.id] = x
	}
	for i := range r.txs {
		if r.infos[r.txs[i].id] == nil {
			return fmt.Errorf("%w: no receipt for transaction %x of block %s", chain.ErrNode, r.txs[i].id, r.Hash)
		}
	}
	if len(infos) != len(r.txs) {
		return fmt.Errorf("%w: %d receipts of the %d transactions of block %s", chain.ErrNode, len(infos), len(r.txs), r.Hash)
	}
	return nil
}
