package utxo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// pool is what waits to be mined, as the node told it last: each transaction's
// own part by id, so that each is read once however often it is asked for.
type pool struct {
	mu    sync.Mutex
	txs   map[string][]byte
	bytes int64
}

// Pending reads the mempool, each waiting transaction once. Where more are new
// than Options.PoolFetch allows for one call, or than Options.MaxMempool can
// hold, it says so with an error; the next call goes on.
func (c *Client) Pending(ctx context.Context, w chain.Watch) ([]chain.Transfer, error) {
	check, list := c.checks(), transport.NewCall("getrawmempool", false)
	if err := c.node.Do(ctx, append(slices.Clone(check), list)...); err != nil {
		return nil, err
	}
	if err := c.rightChain(check); err != nil {
		return nil, err
	}
	var ids []string
	if err := list.Into(&ids); err != nil {
		return nil, err
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if err := c.refill(ctx, ids); err != nil {
		return nil, err
	}
	if err := w.Sync(ctx); err != nil {
		return nil, fmt.Errorf("utxo: reading watched addresses: %w", err)
	}
	d := desks.Get().(*desk)
	defer desks.Put(d)
	var out []chain.Transfer
	for _, id := range ids {
		raw, ok := c.pool.txs[id]
		if !ok {
			continue // gone before it was read
		}
		t, err := readTx(raw, c.p.MWEB)
		d.text, d.all = d.text[:0], d.all[:0]
		if err != nil || d.add(c.write, &t, 0) != nil {
			continue // its block will tell
		}
		text := string(d.text)
		for _, o := range d.all {
			if a := chain.Address(text[o.from:o.to]); w.Contains(a) {
				out = append(out, c.transfer(&t, o, a))
			}
		}
	}
	return out, nil
}

// refill drops what waits no more and reads what is new. The caller holds the
// pool.
func (c *Client) refill(ctx context.Context, ids []string) error {
	waits := make(map[string]bool, len(ids))
	var fresh []string
	for _, id := range ids {
		if !isHash(id) {
			return fmt.Errorf("%w: its mempool names %.80q", chain.ErrNode, id)
		}
		waits[id] = true
		if _, known := c.pool.txs[id]; !known {
			fresh = append(fresh, id)
		}
	}
	maps.DeleteFunc(c.pool.txs, func(id string, raw []byte) bool {
		if !waits[id] {
			c.pool.bytes -= int64(len(raw))
		}
		return !waits[id]
	})
	left := len(fresh) - c.o.PoolFetch
	fresh = fresh[:min(len(fresh), c.o.PoolFetch)]
	for part := range slices.Chunk(fresh, c.o.Batch) {
		if err := c.fetch(ctx, part); err != nil {
			return err
		}
		if c.pool.bytes > c.o.MaxMempool {
			return fmt.Errorf("%w: its mempool is over %d bytes: raise Options.MaxMempool", chain.ErrNode, c.o.MaxMempool)
		}
	}
	if left > 0 {
		return fmt.Errorf("%w: %d transactions of its mempool are still to be read", chain.ErrNode, left)
	}
	return nil
}

// fetch reads waiting transactions into the pool. One that is gone meanwhile is
// left out.
func (c *Client) fetch(ctx context.Context, ids []string) error {
	calls := make([]*transport.Call, len(ids))
	for i, id := range ids {
		calls[i] = transport.NewCall("getrawtransaction", id, 0)
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return err
	}
	for i, k := range calls {
		if unknownTx(k.Err) || noIndex(k.Err) {
			continue
		}
		raw, err := bytesOf(k)
		if err != nil {
			return err
		}
		t, err := readTx(raw, c.p.MWEB)
		own := t.stripped()
		if err != nil || t.nIn == 0 { // of a form that is not known, or all of it is within the extension block
			own = emptyTx
		} else if hexHash(t.id) != ids[i] {
			return fmt.Errorf("%w: asked for transaction %s, got %s", chain.ErrNode, ids[i], hexHash(t.id))
		}
		c.pool.txs[ids[i]] = own
		c.pool.bytes += int64(len(own))
	}
	return nil
}

// emptyTx stands for one that pays nobody whom we can see before it is in a block: no inputs, no
// outputs, behind the marker without which it could not be told from a witness.
var emptyTx = []byte{2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}
