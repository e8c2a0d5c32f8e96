package evm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/ethereum/go-ethereum/common"
)

// Scan reads the blocks after the trail, in a few round trips: the blocks, then
// their Transfer logs by hash, then the receipts of the transactions that touch
// a watched address. A node whose head is below the trail is ErrBehind, whatever
// branch it is on. Tokens that are not registered are reported with their
// Contract and in the token's smallest unit, as nobody vouches for decimals.
func (c *Client) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	if len(trail) == 0 {
		t, err := c.start(ctx)
		if err != nil {
			return chain.Scan{}, err
		}
		return chain.Scan{Blocks: []chain.ScannedBlock{{Block: t}}}, nil
	}
	return follow.Chain[block]{Group: c.o.Group, Next: c.follow, Rewind: c.rewind, Match: c.match}.Scan(ctx, trail, w, limit)
}

func (c *Client) start(ctx context.Context) (chain.Block, error) {
	t, err := c.Tip(ctx)
	return t.Head, err
}

// follow reads at most n blocks after last: those up to the head that Tip read, or one
// where that is not above last, and in a second request those that the node has beyond
// them. forked says that last is on the node's chain no more.
func (c *Client) follow(ctx context.Context, last chain.Block, n int) (next []block, forked bool, err error) {
	newest := c.head.Load()
	if newest != nil && n > 0 && newest.Height == last.Height+1 && newest.Parent == last.Hash {
		switch b, err := c.child(ctx, newest); {
		case err != nil:
			return nil, false, err
		case b != nil:
			return []block{*b}, false, nil
		}
	}
	above := int64(1)
	if newest != nil {
		above = max(above, newest.Height-last.Height)
	}
	id, head := transport.NewCall("eth_chainId"), transport.NewCall("eth_getBlockByNumber", "latest", false)
	at := transport.NewCall("eth_getBlockByNumber", quantity(last.Height), false)
	blocks := blockCalls(last.Height+1, min(int64(n), above))
	if err := c.node.Do(ctx, append([]*transport.Call{id, head, at}, blocks...)...); err != nil {
		return nil, false, err
	}
	if err := c.rightChain(id); err != nil {
		return nil, false, err
	}
	tip, err := blockOf(head)
	if err != nil {
		return nil, false, err
	}
	if tip.Height < last.Height {
		return nil, false, fmt.Errorf("%w: its head is %d, read already %d", chain.ErrBehind, tip.Height, last.Height)
	}
	here, err := blockOf(at)
	if err != nil {
		return nil, false, err
	}
	if here.Height != last.Height {
		return nil, false, fmt.Errorf("%w: asked for block %d, got %d", chain.ErrNode, last.Height, here.Height)
	}
	if here.Hash != last.Hash {
		return nil, true, nil
	}
	asked := int64(len(blocks))
	if more := blockCalls(last.Height+1+asked, min(int64(n), tip.Height-last.Height)-asked); len(more) > 0 {
		if err := c.node.Do(ctx, more...); err != nil {
			return nil, false, err
		}
		blocks = append(blocks, more...)
	}
	next, err = linked(blocks, last, tip)
	return next, false, err
}

// child reads a block whose header Tip has read, and in the same request all that its
// hash is enough to ask for: its Transfer logs, and the balances that were compared at
// its parent. It returns nil where the chain has another block at that height by now, or
// none: follow then finds out why. The block is asked for by its height, because nodes
// know abandoned blocks by hash, too.
func (c *Client) child(ctx context.Context, head *block) (*block, error) {
	k := blockCalls(head.Height, 1)
	calls := k
	var logs, balances *transport.Call
	if head.count > 0 || head.mayHaveTransfers() {
		logs = logsCall(head.hash)
		calls = append(calls, logs)
	}
	var owners []common.Address
	if s := c.known.Load(); s != nil && s.hash == head.parent && len(s.held) > 0 && c.single.Load() == 0 {
		owners = slices.SortedFunc(maps.Keys(s.held), common.Address.Cmp)
		balances = bulkCall(owners, at(head.hash))
		calls = append(calls, balances)
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		if errors.Is(err, transport.ErrTooLong) {
			return nil, nil // one by one it may be short enough
		}
		return nil, err
	}
	b, err := blockOf(k[0])
	if err != nil || b.hash != head.hash || b.Height != head.Height || b.parent != head.parent {
		return nil, nil //nolint:nilerr // follow asks again, and says what is wrong
	}
	b.transfers, b.balances, b.owners = logs, balances, owners
	return &b, nil
}

// logsCall asks for the Transfer logs of a block.
func logsCall(hash common.Hash) *transport.Call {
	return transport.NewCall("eth_getLogs", map[string]any{"blockHash": hash, "topics": []any{transferTopic}})
}

// blockCalls asks for n blocks with their transactions.
func blockCalls(from, n int64) []*transport.Call {
	calls := make([]*transport.Call, max(0, n))
	for i := range calls {
		calls[i] = transport.NewCall("eth_getBlockByNumber", quantity(from+int64(i)), true)
	}
	return calls
}

// linked decodes blocks as far as each is the child of the one before. A gap
// below the head, or a first block that does not link, is an error.
func linked(calls []*transport.Call, last chain.Block, tip block) ([]block, error) {
	var out []block
	for _, k := range calls {
		if k.Err == nil && transport.Null(k.Out) || unknownBlock(k.Err) {
			if tip.Height > last.Height {
				return nil, fmt.Errorf("%w: its head is %d, but it has no block %d", chain.ErrNode, tip.Height, last.Height+1)
			}
			break
		}
		b, err := blockOf(k)
		if err != nil {
			return nil, err
		}
		if b.Height != last.Height+1 {
			return nil, fmt.Errorf("%w: asked for block %d, got %d", chain.ErrNode, last.Height+1, b.Height)
		}
		if b.Parent != last.Hash {
			if len(out) > 0 {
				break // the chain changed between two answers; what is whole counts
			}
			return nil, fmt.Errorf("%w: block %d is not the child of block %d: the chain changed while it was read", chain.ErrNode, b.Height, last.Height)
		}
		out, last = append(out, b), b.Block
	}
	return out, nil
}

// rewind counts the blocks at the trail's end that are not on the chain, found
// by hash.
func (c *Client) rewind(ctx context.Context, trail []chain.Block) (int, error) {
	return follow.Back(ctx, trail, c.o.Batch, func(ctx context.Context, at []chain.Block) ([]string, error) {
		calls, out := make([]*transport.Call, len(at)), make([]string, len(at))
		for i, b := range at {
			calls[i] = transport.NewCall("eth_getBlockByNumber", quantity(b.Height), false)
		}
		if err := c.node.Do(ctx, calls...); err != nil {
			return nil, err
		}
		for i, k := range calls {
			b, err := blockOf(k)
			if err != nil {
				return nil, err
			}
			if b.Height == at[i].Height {
				out[i] = b.Hash
			}
		}
		return out, nil
	})
}

// reading is one block while it is matched.
type reading struct {
	*block
	logs     []logEntry
	wanted   []int // txs of interest, ascending
	receipts map[int]*receipt
	out      []chain.Transfer
}

// match turns blocks into what they moved to watched addresses.
func (c *Client) match(ctx context.Context, blocks []block, w chain.Watch) ([]chain.ScannedBlock, error) {
	rs := make([]*reading, len(blocks))
	for i := range blocks {
		rs[i] = &reading{block: &blocks[i], receipts: map[int]*receipt{}}
	}
	if err := c.readLogs(ctx, rs); err != nil {
		return nil, err
	}
	open, err := c.open(w)
	if err != nil {
		return nil, err
	}
	for _, r := range rs {
		r.want(w, open)
	}
	if err := c.readReceipts(ctx, rs); err != nil {
		return nil, err
	}
	for _, r := range rs {
		c.transfers(r, w)
	}
	if len(open) > 0 {
		if err := c.internal(ctx, rs, open); err != nil {
			return nil, err
		}
	}
	if !c.o.NoTokenAudit {
		if err := c.audit(ctx, rs); err != nil {
			return nil, err
		}
	}
	out := make([]chain.ScannedBlock, len(rs))
	for i, r := range rs {
		out[i] = chain.ScannedBlock{Block: r.Block, Transfers: r.out}
	}
	return out, nil
}

// open is the set of addresses whose balances are compared: of more than bulkSize only
// the last ones, so that a block costs the same however many wait. Rounds find what comes
// to the others: see Holdings.
func (c *Client) open(w chain.Watch) (map[common.Address]bool, error) {
	set := map[common.Address]bool{}
	if c.o.NoInternal {
		return set, nil
	}
	list := w.Open()
	for _, s := range list[max(0, len(list)-bulkSize):] {
		a, err := c.own(s)
		if err != nil {
			return nil, err
		}
		set[a] = true
	}
	return set, nil
}

// readLogs asks for Transfer logs of each block by its hash, where they were not asked
// for together with the block. In the same request the node says how many transactions
// that block has: one that does not know the block is told from one that has nothing to
// report.
func (c *Client) readLogs(ctx context.Context, rs []*reading) error {
	var calls []*transport.Call
	asked, counts, logs := []*reading{}, map[*reading]*transport.Call{}, map[*reading]*transport.Call{}
	for _, r := range rs {
		if len(r.txs) == 0 && !r.mayHaveTransfers() {
			continue
		}
		asked = append(asked, r)
		if logs[r] = r.block.transfers; logs[r] != nil && !r.silent() {
			continue
		}
		counts[r], logs[r] = transport.NewCall("eth_getBlockTransactionCountByHash", r.hash), logsCall(r.hash)
		calls = append(calls, counts[r], logs[r])
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		if len(asked) == 1 && errors.Is(err, transport.ErrTooLong) {
			// Of several blocks fewer are asked for. Anybody can fill one with transfers.
			asked[0].logs, err = c.logsOfReceipts(ctx, asked[0])
		}
		return err
	}
	for _, r := range asked {
		if count := counts[r]; count != nil {
			if count.Null() {
				return fmt.Errorf("%w: it does not know block %s any more", chain.ErrNode, r.Hash)
			}
			if _, err := quantityOf(count); err != nil {
				return err
			}
		}
		if err := c.take(ctx, r, logs[r]); err != nil {
			return err
		}
		for j := range r.logs {
			if l := &r.logs[j]; l.block != r.hash || l.removed {
				return fmt.Errorf("%w: logs of another block than %s", chain.ErrNode, r.Hash)
			}
		}
		if len(r.logs) == 0 && r.mayHaveTransfers() {
			if err := c.proveNoLogs(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// silent reports whether nothing but an empty answer says that a block with transactions
// has no Transfer logs: its header has no bloom, as on some networks. A backend that does
// not know the block may answer so.
func (r *reading) silent() bool {
	if r.bloom != [256]byte{} || r.block.transfers.Err != nil {
		return false
	}
	logs, err := decodeLogs(r.block.transfers.Out)
	return err == nil && len(logs) == 0
}

// take reads a block's Transfer logs. A node can refuse to list more than so many, and
// anybody can write as many into a block: the receipts have them too.
func (c *Client) take(ctx context.Context, r *reading, logs *transport.Call) (err error) {
	var refused *transport.ReplyError
	switch {
	case errors.As(logs.Err, &refused) && !unknownBlock(logs.Err):
		if r.logs, err = c.logsOfReceipts(ctx, r); err != nil {
			err = fmt.Errorf("%w; and %w", logs.Err, err)
		}
	case logs.Err != nil:
		return logs.Err
	case transport.Null(logs.Out):
		return fmt.Errorf("%w: no logs for block %s", chain.ErrNode, r.Hash)
	default:
		r.logs, err = decodeLogs(logs.Out)
	}
	return err
}

// proveNoLogs settles the case of a block whose header says that it may hold
// Transfers, while the node finds none: a node can have a block before it has
// its logs.
func (c *Client) proveNoLogs(ctx context.Context, r *reading) error {
	logs, err := c.logsOfReceipts(ctx, r)
	if err == nil && len(logs) > 0 {
		err = fmt.Errorf("%w: it has block %s, but not its logs yet", chain.ErrNode, r.Hash)
	}
	return err
}

// logsOfReceipts takes a block's Transfer logs from the receipts of its transactions.
func (c *Client) logsOfReceipts(ctx context.Context, r *reading) ([]logEntry, error) {
	all := transport.NewCall("eth_getBlockReceipts", r.hash)
	var list []receipt
	err := c.node.Do(ctx, all)
	if err == nil {
		list, err = receiptsOf(all)
	}
	if unsupported(err) || errors.Is(err, transport.ErrTooLong) {
		list, err = c.eachReceipt(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	if len(list) < len(r.txs) { // a state sync has a receipt, and the block may not list it
		return nil, fmt.Errorf("%w: %d receipts of the %d transactions of block %s", chain.ErrNode, len(list), len(r.txs), r.Hash)
	}
	var out []logEntry
	for i := range list {
		if list[i].block != r.hash || i < len(r.txs) && list[i].tx != r.txs[i].hash {
			return nil, fmt.Errorf("%w: receipts of another block than %s", chain.ErrNode, r.Hash)
		}
		for _, l := range list[i].logs {
			if l.count > 0 && l.topics[0] == transferTopic {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// inLots makes calls, fewer at once where their answers are too long together.
func (c *Client) inLots(ctx context.Context, calls []*transport.Call) error {
	for lot := max(1, c.o.Batch); len(calls) > 0; {
		part := calls[:min(lot, len(calls))]
		err := c.node.Do(ctx, part...)
		switch {
		case err == nil:
			calls = calls[len(part):]
		case errors.Is(err, transport.ErrTooLong) && len(part) > 1:
			lot = len(part) / 2
		default:
			return err
		}
	}
	return nil
}

func (c *Client) eachReceipt(ctx context.Context, r *reading) ([]receipt, error) {
	calls := make([]*transport.Call, len(r.txs))
	for i := range r.txs {
		calls[i] = transport.NewCall("eth_getTransactionReceipt", r.txs[i].hash)
	}
	if err := c.inLots(ctx, calls); err != nil {
		return nil, err
	}
	out := make([]receipt, 0, len(calls))
	for _, k := range calls {
		rec, err := receiptOf(k)
		if err != nil {
			return nil, err
		}
		if rec == nil {
			return nil, fmt.Errorf("%w: no receipt for a transaction of block %s", chain.ErrNode, r.Hash)
		}
		out = append(out, *rec)
	}
	return out, nil
}
