package utxo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// Scan reads the blocks after the trail, raw. A node whose head is below the
// trail is ErrBehind, whatever branch it is on.
func (c *Client) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	if len(trail) == 0 {
		t, err := c.Tip(ctx)
		if err != nil {
			return chain.Scan{}, err
		}
		return chain.Scan{Blocks: []chain.ScannedBlock{{Block: t.Head}}}, nil
	}
	return follow.Chain[block]{
		Group: c.o.Group, Next: c.follow, Rewind: c.rewind,
		Match: follow.ByBlock(func(_ context.Context, b block, w chain.Watch) ([]chain.Transfer, error) { return c.match(&b, w) }),
	}.Scan(ctx, trail, w, limit)
}

// follow reads at most n blocks after last: it asks for the hashes of those up to the head
// that Tip read, or of one, and in a second request for those that the node has beyond
// them. forked says that last is on the node's chain no more.
func (c *Client) follow(ctx context.Context, last chain.Block, n int) (next []block, forked bool, err error) {
	check, count, at := c.checks(), transport.NewCall("getblockcount"), transport.NewCall("getblockhash", last.Height)
	calls := append(slices.Clone(check), count, at)
	after := hashCalls(last.Height+1, min(int64(n), max(1, c.head.Load()-last.Height)))
	if err := c.node.Do(ctx, append(calls, after...)...); err != nil {
		return nil, false, err
	}
	if err := c.rightChain(check); err != nil {
		return nil, false, err
	}
	head, err := count.Integer()
	if err != nil {
		return nil, false, err
	}
	if head < last.Height {
		return nil, false, fmt.Errorf("%w: its head is %d, read already %d", chain.ErrBehind, head, last.Height)
	}
	here, err := hashOf(at)
	if err != nil {
		return nil, false, err
	}
	if here != last.Hash {
		return nil, true, nil
	}
	asked := int64(len(after))
	if more := hashCalls(last.Height+1+asked, min(int64(n), head-last.Height)-asked); len(more) > 0 {
		if err := c.node.Do(ctx, more...); err != nil {
			return nil, false, err
		}
		after = append(after, more...)
	}
	var hashes []string
	for i, k := range after {
		if outOfRange(k.Err) && last.Height+1+int64(i) > head {
			break
		}
		h, err := hashOf(k)
		if err != nil {
			return nil, false, err
		}
		hashes = append(hashes, h)
	}
	next, err = c.blocks(ctx, last.Height+1, hashes)
	if err != nil {
		return nil, false, err
	}
	next, err = follow.Linked(last, next)
	return next, false, err
}

// hashCalls asks for the hashes of n heights.
func hashCalls(from, n int64) []*transport.Call {
	calls := make([]*transport.Call, max(0, n))
	for i := range calls {
		calls[i] = transport.NewCall("getblockhash", from+int64(i))
	}
	return calls
}

// blocks reads whole blocks by hash, in one request.
func (c *Client) blocks(ctx context.Context, height int64, hashes []string) ([]block, error) {
	calls := make([]*transport.Call, len(hashes))
	for i, h := range hashes {
		var raw any = false // understood by every age of Core
		if c.o.Dialect == Btcd {
			raw = 0
		}
		calls[i] = transport.NewCall("getblock", h, raw)
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return nil, err
	}
	out := make([]block, len(hashes))
	for i, k := range calls {
		raw, err := bytesOf(k)
		if err != nil {
			return nil, err
		}
		if out[i], err = c.p.readBlock(raw, hashes[i], height+int64(i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// rewind counts the blocks at the trail's end that are not on the chain, found
// by hash.
func (c *Client) rewind(ctx context.Context, trail []chain.Block) (int, error) {
	return follow.Back(ctx, trail, c.o.Batch, func(ctx context.Context, at []chain.Block) ([]string, error) {
		return c.hashes(ctx, at[0].Height, len(at))
	})
}

// hashes asks which blocks are at n heights, which the node must have.
func (c *Client) hashes(ctx context.Context, from int64, n int) ([]string, error) {
	calls, out := hashCalls(from, int64(n)), make([]string, n)
	if err := c.node.Do(ctx, calls...); err != nil {
		return nil, err
	}
	for i, k := range calls {
		var err error
		if out[i], err = hashOf(k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// output is one of a block that an address stands for.
type output struct {
	tx, index int
	value     int64
	from, to  int // its address, in the text of all
}

// desk is what matching a block needs.
type desk struct {
	text []byte
	all  []output
}

var desks = sync.Pool{New: func() any { return new(desk) }}

// match finds what a block moved to watched addresses. All addresses of a block
// are written into one text, so that an output costs no allocation.
func (c *Client) match(b *block, w chain.Watch) ([]chain.Transfer, error) {
	d := desks.Get().(*desk)
	defer desks.Put(d)
	d.text, d.all = d.text[:0], d.all[:0]
	for i := range b.txs {
		if err := d.add(c.write, &b.txs[i], i); err != nil {
			return nil, fmt.Errorf("%w: block %s: %w", chain.ErrNode, b.Hash, err)
		}
	}
	text := string(d.text)
	var out []chain.Transfer
	for _, o := range d.all {
		if a := chain.Address(text[o.from:o.to]); w.Contains(a) {
			t := c.transfer(&b.txs[o.tx], o, a)
			t.Block = b.Block
			out = append(out, t)
		}
	}
	return out, nil
}

// add writes the outputs of a transaction that have a value and an address.
func (d *desk) add(w *writer, t *tx, at int) error {
	r := cursor{b: t.outs}
	for i := range t.nOut {
		value, script := r.output()
		if value < 0 {
			return fmt.Errorf("an output of %d units", value)
		}
		k, program := classify(script)
		if k == "" || value == 0 {
			continue
		}
		from := len(d.text)
		if d.text = w.append(d.text, k, program); len(d.text) > from {
			d.all = append(d.all, output{tx: at, index: i, value: value, from: from, to: len(d.text)})
		}
	}
	return nil
}

func (c *Client) transfer(t *tx, o output, a chain.Address) chain.Transfer {
	x := chain.Transfer{
		Tx: hexHash(t.id), Ordinal: o.index, Currency: c.native.Code, To: chain.Address(strings.Clone(string(a))),
		Amount: decimal.New(o.value, -8), Spends: t.spends(),
	}
	switch {
	case t.coinbase():
		x.Confirmable = c.p.Maturity
	case t.pegs:
		x.Confirmable = pegMaturity
	}
	return x
}

// History reads every block between two heights, both included, and lists what
// they paid to the address. Without an index of addresses there is no shorter
// way that all nodes offer, so a long span takes long.
func (c *Client) History(ctx context.Context, a chain.Address, from, to int64) ([]chain.Transfer, error) {
	head, err := c.height(ctx)
	if err != nil {
		return nil, err
	}
	if from < 0 || to > head {
		return nil, fmt.Errorf("%w: blocks %d to %d of a chain of %d", chain.ErrBehind, from, to, head)
	}
	var out []chain.Transfer
	var last chain.Block
	for at := from; at <= to; {
		hashes, err := c.hashes(ctx, at, int(min(int64(c.o.Group), to-at+1)))
		if err != nil {
			return nil, err
		}
		blocks, err := c.blocks(ctx, at, hashes)
		if err != nil {
			return nil, err
		}
		for i := range blocks {
			if last.Hash != "" && blocks[i].Parent != last.Hash {
				return nil, fmt.Errorf("%w: the chain changed while it was read", chain.ErrNode)
			}
			found, err := c.match(&blocks[i], follow.Only{a})
			if err != nil {
				return nil, err
			}
			out, last = append(out, found...), blocks[i].Block
		}
		at += int64(len(blocks))
	}
	return out, nil
}
