package tron

import (
	"context"
	"fmt"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
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
	head, err := c.head(ctx)
	if err != nil {
		return chain.Scan{}, err
	}
	return follow.Steps[block]{
		Head: head.Block, Group: c.o.Group, Stands: follow.Stands(head.Block, c.at), Read: c.blocks, Match: c.match,
	}.Scan(ctx, trail, w, limit)
}

// blocks reads the n blocks after last, which the node must have: at least one, each
// the child of the one before.
func (c *Client) blocks(ctx context.Context, last chain.Block, n int) ([]block, error) {
	raw, err := c.node.post(ctx, "/wallet/getblockbylimitnext", map[string]any{"startNum": last.Height + 1, "endNum": last.Height + 1 + int64(n)})
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
	for i := range all {
		if err := all[i].whole(); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: it has block %d, but does not give it", follow.ErrTorn, last.Height+1)
	}
	return follow.Linked(last, all[:min(n, len(all))])
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
	rs, err := c.read(ctx, blocks)
	if err == nil {
		err = c.keepsCalls(ctx, rs)
	}
	if err != nil {
		return nil, err
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

// read decodes blocks and reads their receipts.
func (c *Client) read(ctx context.Context, blocks []block) ([]*reading, error) {
	rs := make([]*reading, len(blocks))
	for i := range blocks {
		rs[i] = &reading{block: &blocks[i]}
		if err := rs[i].decode(); err != nil {
			return nil, err
		}
	}
	return rs, c.receipts(ctx, rs)
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
	last := rs[len(rs)-1]
	rs = slices.DeleteFunc(slices.Clone(rs), func(r *reading) bool { return len(r.txs) == 0 })
	if err := follow.Each(len(rs), c.o.Parallel, func(i int) error { return c.readInfos(ctx, rs[i]) }); err != nil || len(rs) == 0 {
		return err
	}
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
