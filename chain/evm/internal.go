package evm

import (
	"context"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/ethereum/go-ethereum/common"
)

// internal finds ether that came otherwise than as a transaction's own value. An
// open address's balance at the last block is compared with that before the
// first; only where transactions do not explain the difference is every block
// looked at, and only then is the node asked for a trace.
func (c *Client) internal(ctx context.Context, rs []*reading, open map[common.Address]bool) error {
	list := slices.SortedFunc(maps.Keys(open), common.Address.Cmp)
	before, after, err := c.ends(ctx, rs, list)
	if errors.Is(err, chain.ErrNoState) {
		return nil // only what transactions and logs prove is seen here; Holdings shows the rest
	}
	if err != nil {
		return err
	}
	var odd []common.Address
	for _, a := range list {
		rest := new(big.Int).Sub(after[a], before[a])
		for _, r := range rs {
			rest.Sub(rest, c.direct(r, a))
		}
		if rest.Sign() != 0 {
			odd = append(odd, a)
		}
	}
	if len(odd) == 0 {
		return nil
	}
	blocks := []any{at(rs[0].parent)}
	for _, r := range rs {
		blocks = append(blocks, at(r.hash))
	}
	steps, err := c.balances(ctx, odd, blocks...)
	if errors.Is(err, chain.ErrNoState) {
		return nil
	}
	if err != nil {
		return err
	}
	for n, r := range rs {
		extra := map[common.Address]*big.Int{}
		for i, a := range odd {
			rest := new(big.Int).Sub(steps[n+1][i], steps[n][i])
			if rest.Sub(rest, c.direct(r, a)); rest.Sign() > 0 {
				extra[a] = rest
			}
		}
		if len(extra) == 0 {
			continue
		}
		if err := c.explain(ctx, r, extra); err != nil {
			return err
		}
	}
	return nil
}

// standing is what addresses held after a block.
type standing struct {
	hash common.Hash
	held map[common.Address]*big.Int
}

// ends returns what each address held before the first of these blocks and after the
// last. A balance at a block's hash never changes: those that the client has from the block before,
// or that came with the block, are not asked for again.
func (c *Client) ends(ctx context.Context, rs []*reading, list []common.Address) (before, after map[common.Address]*big.Int, err error) {
	last := rs[len(rs)-1]
	before, after = map[common.Address]*big.Int{}, map[common.Address]*big.Int{}
	was, is := map[common.Address]*big.Int{}, map[common.Address]*big.Int{}
	if s := c.known.Load(); s != nil && s.hash == rs[0].parent {
		was = s.held
	}
	if k := last.block.balances; k != nil {
		if got, err := bulkAnswer(k, len(last.owners)); err == nil { // else it is asked again
			for i, a := range last.owners {
				is[a] = got[i]
			}
		}
	}
	var ask []common.Address
	for _, a := range list {
		if before[a], after[a] = was[a], is[a]; before[a] == nil || after[a] == nil {
			ask = append(ask, a)
		}
	}
	if len(ask) > 0 {
		got, err := c.balances(ctx, ask, at(rs[0].parent), at(last.hash))
		if err != nil {
			return nil, nil, err
		}
		for i, a := range ask {
			before[a], after[a] = got[0][i], got[1][i]
		}
	}
	c.known.Store(&standing{last.hash, after})
	return before, after, nil
}

// direct is how the block's transactions themselves, and the coin as a token, changed an
// address's balance.
func (c *Client) direct(r *reading, a common.Address) *big.Int {
	sum := new(big.Int)
	for i := range r.logs {
		l := &r.logs[i]
		if !c.movesCoin(l) || !l.transfer() {
			continue
		}
		if l.to() == a {
			sum.Add(sum, l.amount())
		}
		if l.from() == a {
			sum.Sub(sum, l.amount())
		}
	}
	for i, rec := range r.receipts {
		t := &r.txs[i]
		if rec.ok && t.call && t.to == a {
			sum.Add(sum, t.value)
		}
		if t.from == a {
			sum.Sub(sum, rec.cost())
			if rec.ok {
				sum.Sub(sum, t.value)
			}
		}
	}
	return sum
}

// explain reports what came by internal calls: call by call where a trace adds
// up to the difference exactly, else as one Unproven transfer, named by block
// and address because no transaction is known to have made it.
func (c *Client) explain(ctx context.Context, r *reading, extra map[common.Address]*big.Int) error {
	moves, err := c.trace(ctx, r)
	if err != nil {
		return err
	}
	sums := map[common.Address]*big.Int{}
	for _, m := range moves {
		if extra[m.to] != nil {
			if sums[m.to] == nil {
				sums[m.to] = new(big.Int)
			}
			sums[m.to].Add(sums[m.to], m.value)
		}
	}
	proven := func(a common.Address) bool { return sums[a] != nil && sums[a].Cmp(extra[a]) == 0 }
	for _, m := range moves {
		if extra[m.to] == nil || !proven(m.to) {
			continue
		}
		x := r.transfer(&r.txs[m.tx], -2-m.index, checksum(m.from), checksum(m.to))
		x.Currency, x.Amount = c.native.Code, coins(m.value, c.native.Decimals)
		r.out = append(r.out, x)
	}
	for _, a := range slices.SortedFunc(maps.Keys(extra), common.Address.Cmp) {
		if proven(a) {
			continue
		}
		r.out = append(r.out, chain.Transfer{
			Tx: "balance/" + r.Hash + "/" + strings.ToLower(a.Hex()), Ordinal: -2, Block: r.Block, To: checksum(a),
			Currency: c.native.Code, Amount: coins(extra[a], c.native.Decimals), Unproven: true,
		})
	}
	return nil
}

// move is one executed internal call that carries value: the index-th of its tx.
type move struct {
	tx, index int
	from, to  common.Address
	value     *big.Int
}

// trace lists the block's internal moves; nil where the node cannot trace, which
// proves nothing.
func (c *Client) trace(ctx context.Context, r *reading) ([]move, error) {
	if c.o.NoTrace {
		return nil, nil
	}
	k := transport.NewCall("debug_traceBlockByHash", r.hash, map[string]any{"tracer": "callTracer"})
	if err := c.node.Do(ctx, k); err != nil {
		return nil, err
	}
	if unsupported(k.Err) || stateGone(k.Err) {
		return nil, nil
	}
	if k.Err != nil {
		return nil, k.Err
	}
	var out []move
	w, n := newWalk(k.Out), 0
	w.Array(func() {
		f, tx := readTrace(w)
		i := r.index(n, tx)
		n++
		if i < 0 {
			return // not one of the block's: explains nothing
		}
		index := 0
		f.walk(func(f *frame) {
			out = append(out, move{i, index, f.from, f.to, f.value})
			index++
		})
	})
	return out, w.End()
}

// readTrace reads one transaction's trace and its hash, where that is given.
func readTrace(w walk) (f frame, tx common.Hash) {
	w.Object(func(key []byte) {
		switch string(key) {
		case "result":
			f = readFrame(w, 0)
		case "txHash":
			w.fixed(tx[:])
		default:
			w.Skip()
		}
	})
	return f, tx
}

// index of a transaction in the block, by hash or else by place; −1 for none.
func (r *reading) index(place int, tx common.Hash) int {
	if tx == (common.Hash{}) {
		if place < len(r.txs) {
			return place
		}
		return -1
	}
	return slices.IndexFunc(r.txs, func(t blockTx) bool { return t.hash == tx })
}

// frame is one call of a trace.
type frame struct {
	kind     string
	from, to common.Address
	value    *big.Int
	failed   bool
	calls    []frame
}

func readFrame(w walk, depth int) frame {
	f := frame{value: new(big.Int)}
	if depth > transport.MaxDepth {
		w.Fail()
		return f
	}
	w.Object(func(key []byte) {
		switch string(key) {
		case "type":
			f.kind = string(w.Text())
		case "from":
			w.fixed(f.from[:])
		case "to":
			if w.Peek() == 'n' {
				w.Skip()
				return
			}
			w.fixed(f.to[:])
		case "value":
			if w.Peek() == 'n' {
				w.Skip()
				return
			}
			f.value = w.big()
		case "error":
			f.failed = !transport.Null(w.Raw())
		case "calls":
			w.Array(func() { f.calls = append(f.calls, readFrame(w, depth+1)) })
		default:
			w.Skip()
		}
	})
	return f
}

// walk visits the executed inner calls that carry value, in order. What is below
// a failed call was undone with it; a delegate call shows a value that it does
// not move.
func (f *frame) walk(visit func(*frame)) {
	if f.failed {
		return
	}
	for i := range f.calls {
		in := &f.calls[i]
		if in.failed {
			continue
		}
		switch in.kind {
		case "CALL", "CREATE", "CREATE2", "SELFDESTRUCT":
			if in.value.Sign() > 0 && in.from != in.to {
				visit(in)
			}
		}
		in.walk(visit)
	}
}
