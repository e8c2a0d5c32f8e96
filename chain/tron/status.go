package tron

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"
	"sort"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Status tells what became of attempts. Included needs a receipt, and the block
// that it names to be on the chain now; once that is solidified also to be found
// in it. Conflicted means that its time is over: a solidified block is past the
// expiration, and no block that could hold it does. It is then final, and By is
// empty, as nothing took its place. What a block holds of a token transfer is
// Executed only where the token logged that it moved something of the sender's or to the
// recipient, and less than ordered is a Shortfall; an outcome with a
// name that is not known is Unknown, neither done nor failed. So is what the node's
// answers contradict each other about, whatever the other attempts are.
func (c *Client) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	v, err := c.view(ctx)
	if err != nil {
		return nil, err
	}
	return follow.Statuses(len(attempts), func(i int) (chain.Status, error) {
		t, err := c.signed(attempts[i].Tx, attempts[i].Raw)
		if err != nil {
			return chain.Status{State: chain.Unknown}, nil //nolint:nilerr // not understood
		}
		return c.judge(ctx, &v, t)
	})
}

// judge is the state of one attempt.
func (c *Client) judge(ctx context.Context, v *view, t *sent) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	r, err := c.infoOf(ctx, t.id)
	if err != nil {
		return unknown, err
	}
	if !r.none {
		return c.included(ctx, v, t, &r)
	}
	st, err := c.lapsed(ctx, v, t)
	if err != nil || st.State == chain.Conflicted {
		return st, err
	}
	waits, err := c.waits(ctx, t.id)
	if waits {
		return chain.Status{State: chain.Pending}, err
	}
	return unknown, err
}

func (c *Client) included(ctx context.Context, v *view, t *sent, r *info) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	if r.height > v.head.Height {
		return unknown, nil // above the view
	}
	b, err := c.at(ctx, r.height)
	if err != nil {
		return unknown, err
	}
	if b.millis != r.millis {
		return unknown, nil // on a branch that is gone
	}
	if r.height <= v.solid.Height {
		if err := c.holdsTx(ctx, b, t, r); err != nil {
			return unknown, err
		}
	}
	executed, short, known := c.outcome(t, r)
	if !known {
		return unknown, nil
	}
	cost, err := c.cost(r.fee)
	if err != nil {
		return unknown, fmt.Errorf("%w: cost of a transaction: %w", follow.ErrTorn, err)
	}
	return v.placed(b, chain.Status{State: chain.Included, Executed: executed, Shortfall: short, Cost: cost}), nil
}

func (v *view) placed(b block, s chain.Status) chain.Status {
	s.Block, s.Confirmations = b.Block, v.head.Height-b.Height+1
	s.Final = b.Height <= v.solid.Height
	return s
}

// holdsTx reads the block itself before anything is final: what the index says
// of a transaction, its block must say too.
func (c *Client) holdsTx(ctx context.Context, b block, t *sent, r *info) error {
	all, err := c.blocks(ctx, chain.Block{Height: b.Height - 1, Hash: b.Parent}, 1)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all[0].txs, func(x blockTx) bool { return x.id == t.id })
	if all[0].id != b.id || i < 0 {
		return fmt.Errorf("%w: it has a receipt of block %s for a transaction that is not in it", follow.ErrTorn, b.Hash)
	}
	ret := all[0].txs[i].ret
	if done := !r.failed && r.ret != resultFail; done != (ret == resultDone) && ret != resultOther && r.ret != resultOther {
		return fmt.Errorf("%w: block %s and a receipt contradict each other", follow.ErrTorn, b.Hash)
	}
	return nil
}

// outcome reads a receipt: whether it did what it says and how much less than ordered
// arrived, and whether that is known at all.
func (c *Client) outcome(t *sent, r *info) (executed bool, short ledger.Amount, known bool) {
	switch {
	case r.ret == resultOther || r.failed && r.ret == resultDone:
		return false, 0, false
	case r.failed || r.ret == resultFail:
		return false, 0, true
	case t.kind == kindTransfer:
		return true, 0, true
	case r.ret != resultDone:
		return false, 0, false
	}
	executed, short = c.delivered(t, r)
	return executed, short, true
}

// delivered reads from the token's logs what a call that succeeded moved. A token may
// answer with success and do nothing, and then logs nothing. One that takes a fee, as
// Tether's contract can, logs less to the recipient than was ordered, and the rest to
// another.
func (c *Client) delivered(t *sent, r *info) (executed bool, short ledger.Amount) {
	contract, _ := accountFrom(t.to)
	got, moved := new(big.Int), t.out.Amount == 0
	for i := range r.logs {
		l := &r.logs[i]
		if !l.transfer() || l.contract != contract {
			continue
		}
		arrived := l.to().text() == t.out.To
		if arrived {
			got.Add(got, new(big.Int).SetBytes(l.word[:]))
		}
		moved = moved || arrived || l.from() == t.from
	}
	cur := c.tokens[contract]
	if !moved || cur == nil {
		return moved, 0
	}
	return true, cur.Shortfall(t.out.Amount, coins(got, cur.Decimals))
}

// blockTime is the least time between two blocks, in milliseconds.
const blockTime = 3000

// lapsed proves that a transaction can never land any more, or leaves Unknown.
// The network takes it only into a block after the one that it stands on, whose
// parent is not yet past the expiration. Those blocks, all of them solidified, are
// read one by one: an index that does not know it would prove nothing.
func (c *Client) lapsed(ctx context.Context, v *view, t *sent) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	if v.solid.millis <= t.expiration {
		return unknown, nil
	}
	same, err := c.at(ctx, v.solid.Height)
	if err != nil || same.id != v.solid.id {
		return unknown, err // two nodes that do not agree
	}
	over, err := c.firstAfter(ctx, v, t.expiration)
	if err != nil || over.Height == 0 {
		return unknown, err
	}
	// The youngest block with these low bits of its height that it can stand on.
	ref := int64(binary.BigEndian.Uint16(t.refBytes))
	base := over.Height - 1 - (over.Height-1-ref)&0xffff
	if base < 0 {
		return unknown, nil
	}
	from, err := c.at(ctx, base)
	if err != nil {
		return unknown, err
	}
	if !bytes.Equal(from.id[8:16], t.refHash) {
		return c.homeless(ctx, v, t, over, base-1<<16)
	}
	for at := from.Block; at.Height < over.Height; {
		next, err := c.blocks(ctx, at, int(min(over.Height-at.Height, int64(c.o.Group))))
		if err != nil {
			return unknown, err
		}
		for i := range next {
			if slices.ContainsFunc(next[i].txs, func(x blockTx) bool { return x.id == t.id }) {
				return unknown, nil // it landed, and its receipt is not there yet
			}
		}
		if at = next[len(next)-1].Block; at.Height == over.Height && at.Hash != over.Hash {
			return unknown, fmt.Errorf("%w: the chain changed while it was read", follow.ErrTorn)
		}
	}
	return v.placed(over, chain.Status{State: chain.Conflicted}), nil
}

// homeless: the block that a transaction stands on is not on this chain, where
// all that could be meant are solidified. Only the one with the same low bits
// before it is left, of more than two days earlier; longer than any expiration.
func (c *Client) homeless(ctx context.Context, v *view, t *sent, over block, earlier int64) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	if earlier >= 0 {
		b, err := c.at(ctx, earlier)
		if err != nil || bytes.Equal(b.id[8:16], t.refHash) {
			return unknown, err
		}
	}
	return v.placed(over, chain.Status{State: chain.Conflicted}), nil
}

// firstAfter finds the first block that is not before a time: one that is
// solidified. A zero block where it cannot be told.
func (c *Client) firstAfter(ctx context.Context, v *view, millis int64) (block, error) {
	var failed error
	low := max(1, v.solid.Height-(v.solid.millis-millis)/blockTime)
	n := sort.Search(int(v.solid.Height-low), func(i int) bool {
		if failed != nil {
			return true
		}
		b, err := c.at(ctx, low+int64(i))
		failed = err
		return err != nil || b.millis >= millis
	})
	if failed != nil {
		return block{}, failed
	}
	before, err := c.at(ctx, low+int64(n)-1)
	if err != nil || before.millis >= millis {
		return block{}, err // blocks come faster than they should
	}
	over, err := c.at(ctx, low+int64(n))
	if err == nil && (over.millis < millis || over.Height > v.solid.Height) {
		return block{}, nil
	}
	return over, err
}
