package evm

import (
	"context"
	"fmt"
	"math/big"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/ethereum/go-ethereum/common"
)

// view is one look at the head, against which attempts are judged.
type view struct {
	head  block
	final int64 // −1: nothing is final
}

// Status tells what became of attempts. Included needs a receipt in a block that
// is on the chain now. Conflicted needs the other transaction itself, found in
// the block where the account's nonce passed ours: that a receipt is missing
// proves nothing, as nodes forget old ones. What a block holds of a token
// transfer is Executed only where the token logged that it moved something of the
// sender's or to the recipient; less than ordered is a Shortfall. An attempt of which the
// node's answers contradict each other is Unknown, whatever the others are.
func (c *Client) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	v, err := c.view(ctx)
	if err != nil {
		return nil, err
	}
	txs := make([]*sent, len(attempts))
	calls := make([]*transport.Call, 0, 2*len(attempts))
	for i, a := range attempts {
		txs[i], _ = c.signed(a.Tx, a.Raw) // nil: not understood, so Unknown
		h := common.HexToHash(a.Tx)
		calls = append(calls, transport.NewCall("eth_getTransactionReceipt", h), transport.NewCall("eth_getTransactionByHash", h))
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return nil, err
	}
	return follow.Statuses(len(attempts), func(i int) (chain.Status, error) {
		st, err := c.judge(ctx, v, txs[i], calls[2*i], calls[2*i+1])
		if unknownBlock(err) {
			err = follow.Torn(err) // it named that block itself
		}
		return st, err
	})
}

func (c *Client) view(ctx context.Context) (view, error) {
	t, err := c.Tip(ctx)
	if err != nil {
		return view{}, err
	}
	v := view{head: block{Block: t.Head, hash: common.HexToHash(t.Head.Hash)}, final: -1}
	switch {
	case c.o.FinalityTags:
		v.final = t.Final
	case c.o.FinalDepth > 0:
		v.final = t.Head.Height - c.o.FinalDepth + 1
	}
	return v, nil
}

// judge is the state of one attempt.
func (c *Client) judge(ctx context.Context, v view, t *sent, receipt, byHash *transport.Call) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	if t == nil {
		return unknown, nil
	}
	rec, err := receiptOf(receipt)
	if err != nil {
		return unknown, err
	}
	if rec != nil {
		if rec.tx != t.Hash() {
			return unknown, fmt.Errorf("%w: it answered with another receipt", follow.ErrTorn)
		}
		return c.included(ctx, v, t, rec)
	}
	if byHash.Err != nil {
		return unknown, byHash.Err
	}
	if !transport.Null(byHash.Out) {
		if mined, err := inBlock(byHash.Out); err != nil || mined {
			return unknown, err // in a block, its receipt not there yet
		}
	}
	st, err := c.conflict(ctx, v, t)
	if err != nil || st.State == chain.Conflicted {
		return st, err
	}
	if !transport.Null(byHash.Out) {
		return chain.Status{State: chain.Pending}, nil
	}
	return unknown, nil
}

func inBlock(raw []byte) (mined bool, err error) {
	w := newWalk(raw)
	w.Object(func(key []byte) {
		if string(key) == "blockHash" {
			mined = !transport.Null(w.Raw())
			return
		}
		w.Skip()
	})
	return mined, follow.Torn(w.End())
}

func (c *Client) included(ctx context.Context, v view, t *sent, rec *receipt) (chain.Status, error) {
	k := transport.NewCall("eth_getBlockByNumber", quantity(rec.height), false)
	if err := c.node.Do(ctx, k); err != nil {
		return chain.Status{}, err
	}
	if k.Err == nil && transport.Null(k.Out) {
		return chain.Status{State: chain.Unknown}, nil
	}
	b, err := blockOf(k)
	if err != nil {
		return chain.Status{}, err
	}
	if b.hash != rec.block || b.Height > v.head.Height {
		return chain.Status{State: chain.Unknown}, nil // on a branch that is gone, or above the view
	}
	cost, err := c.cost(rec.cost())
	if err != nil {
		return chain.Status{}, fmt.Errorf("%w: cost of %s: %w", follow.ErrTorn, t.Hash(), err)
	}
	st := chain.Status{State: chain.Included, Cost: cost}
	if rec.ok {
		st.Executed, st.Shortfall = c.delivered(t, rec)
	}
	return c.placed(v, b, st), nil
}

func (c *Client) placed(v view, b block, s chain.Status) chain.Status {
	s.Block, s.Confirmations = b.Block, v.head.Height-b.Height+1
	s.Final = v.final >= 0 && b.Height <= v.final
	return s
}

// delivered reads from the token's logs what a transaction of status 1 moved. A token
// may answer with success and do nothing, and then logs nothing. One that takes a fee
// logs less to the recipient than was ordered, and may log the rest to another or move
// all of it through an address of its own.
func (c *Client) delivered(t *sent, rec *receipt) (executed bool, short ledger.Amount) {
	if t.To() == nil || len(t.Data()) == 0 {
		return true, 0
	}
	out, err := c.output(t.Transaction)
	if err != nil {
		return true, 0 // not one of our transfers; its status is all there is to say
	}
	got, moved := new(big.Int), out.Amount == 0
	for i := range rec.logs {
		l := &rec.logs[i]
		if !l.transfer() || l.contract != *t.To() {
			continue
		}
		arrived := checksum(l.to()) == out.To
		if arrived {
			got.Add(got, l.amount())
		}
		moved = moved || arrived || l.from() == t.from
	}
	if !moved {
		return false, 0
	}
	cur := c.tokens[*t.To()]
	return true, cur.Shortfall(out.Amount, coins(got, cur.Decimals))
}

// conflict looks for the transaction that took the nonce: the block in which the account's
// nonce went past ours, and the transaction in it. Anything that cannot be found out leaves
// Unknown.
func (c *Client) conflict(ctx context.Context, v view, t *sent) (chain.Status, error) {
	at, err := c.passed(ctx, v, t)
	if err != nil || !at.exact {
		return chain.Status{State: chain.Unknown}, err
	}
	return c.taker(ctx, v, t, at.height)
}

// passing is where an account's nonce went past one: in the block at height, or before it where
// that is not exact. height is -1 where it has not, as far as the node says.
type passing struct {
	height int64
	exact  bool
}

// passed finds by halving where the nonce of a transaction was used.
func (c *Client) passed(ctx context.Context, v view, t *sent) (passing, error) {
	not := passing{height: -1}
	past := func(height int64) (bool, bool, error) {
		k := transport.NewCall("eth_getTransactionCount", t.from, quantity(height))
		if err := c.node.Do(ctx, k); err != nil {
			return false, false, err
		}
		if n, err := quantityOf(k); err == nil {
			return n.IsUint64() && n.Uint64() > t.Nonce(), true, nil
		}
		return false, false, nil // the state of that block is gone
	}
	used, known, err := past(v.head.Height)
	if err != nil || !known || !used {
		return not, err
	}
	hi := v.head.Height // used here
	var lo int64
	for step := int64(1); ; step *= 2 {
		if lo = max(0, hi-step); lo == 0 {
			break
		}
		used, known, err := past(lo)
		if err != nil {
			return not, err
		}
		if !known {
			return passing{height: hi}, nil
		}
		if !used {
			break
		}
		hi = lo
	}
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		used, known, err := past(mid)
		if err != nil {
			return not, err
		}
		if !known {
			return passing{height: hi}, nil
		}
		if used {
			hi = mid
		} else {
			lo = mid
		}
	}
	return passing{hi, true}, nil
}

// taker reads the block and finds the other transaction with our nonce.
func (c *Client) taker(ctx context.Context, v view, t *sent, height int64) (chain.Status, error) {
	k := transport.NewCall("eth_getBlockByNumber", quantity(height), true)
	if err := c.node.Do(ctx, k); err != nil {
		return chain.Status{}, err
	}
	b, err := blockOf(k)
	if err != nil {
		return chain.Status{}, err
	}
	for i := range b.txs {
		o := &b.txs[i]
		if o.from != t.from || o.nonce < 0 || uint64(o.nonce) != t.Nonce() {
			continue
		}
		if o.hash == t.Hash() {
			break // ours, in a block, without a receipt: not understood
		}
		return c.placed(v, b, chain.Status{State: chain.Conflicted, By: o.hash.Hex(), Cost: ledger.Amount(0)}), nil
	}
	return chain.Status{State: chain.Unknown}, nil
}
