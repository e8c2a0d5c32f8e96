package solana

import (
	"context"
	"fmt"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Status tells what became of attempts. Included needs the transaction itself, and its
// block, read, to hold it. Conflicted means that its time is over: it is then final,
// and By is empty, as nothing took its place. The network has no pool that could be
// asked, so what is in no confirmed block is Unknown, or Pending where the node has
// seen it in a block that is not confirmed yet. Unknown is also one of which the node's
// answers contradict each other or lack blocks, whatever the other attempts are.
func (c *Client) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	v, err := c.view(ctx)
	if err != nil {
		return nil, err
	}
	known := make([]*sent, len(attempts)) // nil: not understood
	var ids []string
	for i, a := range attempts {
		if t, err := c.signed(a.Tx, a.Raw); err == nil {
			known[i], ids = t, append(ids, t.id)
		}
	}
	told := map[string]*saidOf{}
	for part := range slices.Chunk(ids, 256) {
		all, err := c.statuses(ctx, c.node, part...)
		if err != nil {
			return nil, err
		}
		for i, id := range part {
			told[id] = all[i]
		}
	}
	return follow.Statuses(len(attempts), func(i int) (chain.Status, error) {
		if known[i] == nil {
			return chain.Status{State: chain.Unknown}, nil
		}
		st, err := c.judge(ctx, &v, known[i], told[known[i].id])
		if said(err, cleanedUp, notAvailable, skipped, skippedOld, notYet) {
			err = follow.Torn(err) // it lacks a block that the attempt is in, or could be
		}
		return st, err
	})
}

// judge is the state of one attempt.
func (c *Client) judge(ctx context.Context, v *view, t *sent, said *saidOf) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	switch {
	case said == nil:
		return c.lapsed(ctx, v, t)
	case said.Slot > v.head.slot:
		return unknown, nil // above the view
	case said.Status == "processed":
		return chain.Status{State: chain.Pending}, nil
	}
	return c.included(ctx, v, t, said.Slot)
}

func (c *Client) included(ctx context.Context, v *view, t *sent, slot int64) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	x, at, err := c.transaction(ctx, t.id)
	if err != nil || x == nil || at != slot {
		return unknown, err // between two blocks
	}
	blocks, err := c.read(ctx, []int64{slot}, "signatures", confirmed)
	if said(err, skipped, skippedOld) {
		return unknown, nil // on a branch that is gone
	}
	if err != nil {
		return unknown, err
	}
	b := blocks[0]
	switch {
	case !b.signatures[t.id]:
		return unknown, fmt.Errorf("%w: it has transaction %s of block %s, which does not hold it", follow.ErrTorn, t.id, b.Hash)
	case x.none || x.lacks:
		return unknown, fmt.Errorf("%w: it does not tell what transaction %s did", follow.ErrTorn, t.id)
	case b.Height > v.head.Height:
		return unknown, nil
	}
	if slot <= v.final.slot { // the same block, by the network's last word
		if sure, err := c.header(ctx, slot, finalized); err != nil || sure.Hash != b.Hash {
			return unknown, err
		}
	}
	cost, err := c.took(t, x)
	if err != nil {
		return unknown, err
	}
	return v.placed(b.header, chain.Status{State: chain.Included, Executed: !x.failed, Cost: cost}), nil
}

// took is what a transaction cost who paid for it: the fee, the rent of an account
// that it opened, less the rent of one that it closed.
func (c *Client) took(t *sent, x *blockTx) (cost ledger.Amount, err error) {
	pre, err := lamports(x.pre)
	if err != nil {
		return 0, follow.Torn(err)
	}
	post, err := lamports(x.post)
	if err != nil || len(pre) != len(t.keys) || len(post) != len(pre) || pre[0] > 1<<62 || post[0] > 1<<62 {
		return 0, fmt.Errorf("%w: balances of other accounts than those of transaction %s", follow.ErrTorn, t.id)
	}
	fell := int64(pre[0]) - int64(post[0])
	if !x.failed && t.cur.Native() && t.from == t.keys[0] {
		fell -= int64(t.amount)
	}
	if cost, err = c.cost(fell); err != nil {
		err = fmt.Errorf("%w: cost of transaction %s: %w", follow.ErrTorn, t.id, err)
	}
	return cost, err
}

func (v *view) placed(b header, s chain.Status) chain.Status {
	s.Block, s.Confirmations = b.Block, v.head.Height-b.Height+1
	s.Final = b.Height <= v.final.Height
	return s
}

// window is how many blocks after its blockhash's own can hold a transaction: 150 by
// the network's count, which looks from the block before, and some to spare.
const window = 150 + 1 + 8

// lapsed proves that a transaction can never land any more, or leaves Unknown. At the
// height that it names must be the block whose hash it carries; the blocks after it in
// which it could be are read one by one, all of them finalized, each the child of the
// one before: an index that does not know it would prove nothing. The witnesses must
// not know it either.
func (c *Client) lapsed(ctx context.Context, v *view, t *sent) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	if v.final.Height < t.height+window {
		return unknown, nil
	}
	from, err := c.at(ctx, t.height, v.final)
	if err != nil {
		return unknown, err
	}
	if hash, ok := parseKey(from.blockhash); !ok || hash != t.blockhash {
		return unknown, nil // it was built on a chain that is not this one
	}
	slots, err := c.slots(ctx, from.slot, window+1, finalized)
	if err != nil {
		return unknown, err
	}
	if len(slots) != window+1 || slots[0] != from.slot {
		return unknown, gap(from.slot)
	}
	blocks, err := c.read(ctx, slots[1:], "signatures", finalized)
	if err != nil {
		return unknown, err
	}
	last := from
	for _, b := range blocks {
		if b.Parent != last.Hash || b.Height != last.Height+1 {
			return unknown, gap(last.slot)
		}
		if b.signatures[t.id] {
			return unknown, nil // it landed, and the index does not know yet
		}
		last = b.header
	}
	for _, n := range c.witnesses {
		if silent, err := c.knowsNot(ctx, n, t, last.Height); err != nil || !silent {
			return unknown, err
		}
	}
	return v.placed(last, chain.Status{State: chain.Conflicted}), nil
}

// knowsNot reports whether another node of the same cluster has finalized a height
// and does not know a transaction.
func (c *Client) knowsNot(ctx context.Context, n *node, t *sent, height int64) (bool, error) {
	if err := c.rightChain(ctx, n); err != nil {
		return false, err
	}
	at, err := n.call(ctx, "getBlockHeight", object{"commitment": finalized}).Integer()
	if err != nil || at < height {
		return false, err
	}
	all, err := c.statuses(ctx, n, t.id)
	return err == nil && all[0] == nil, err
}
