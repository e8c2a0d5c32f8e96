package cardano

import (
	"context"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// Scan reads the blocks after the trail, with all of their transactions. A node whose head is
// below the trail is ErrBehind, whatever branch it is on.
func (c *Client) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	if len(trail) == 0 {
		head, err := c.node.tip(ctx)
		if err != nil {
			return chain.Scan{}, err
		}
		return chain.Scan{Blocks: []chain.ScannedBlock{{Block: head}}}, nil
	}
	r, err := c.node.open(ctx)
	if err != nil {
		return chain.Scan{}, err
	}
	defer r.close()
	return follow.Steps[block]{
		Head: chain.Block{Height: r.head()}, Group: c.o.Group, Stands: r.stands,
		Read: func(ctx context.Context, last chain.Block, n int) ([]block, error) {
			next, err := r.after(ctx, last, n)
			if err == nil && len(next) == 0 {
				err = fmt.Errorf("%w: it gives no block after %d, and says that its head is %d", chain.ErrNode, last.Height, r.head())
			}
			if err != nil {
				return nil, err
			}
			return follow.Linked(last, next)
		},
		Match: follow.ByBlock(func(_ context.Context, b block, w chain.Watch) ([]chain.Transfer, error) {
			return c.match(&b, w.Contains), nil
		}),
	}.Scan(ctx, trail, w, limit)
}

// tokenOrdinal is what the place of an output's first token is above that of its ada, and of
// each token above the one before: a transaction has fewer outputs.
const tokenOrdinal = 1 << 16

// match lists what a block moved to addresses. An output that holds native tokens or a script
// beside its ada is no payment as a wallet makes one, and what it takes to spend it is for
// whoever sent it to choose: its ada is Unproven, so that an operator decides.
func (c *Client) match(b *block, ours func(chain.Address) bool) (out []chain.Transfer) {
	for _, t := range b.txs {
		for i := range t.outputs {
			o := &t.outputs[i]
			to, ok := addressOf(o.address)
			if !ok || !ours(to) {
				continue
			}
			x := chain.Transfer{
				Tx: t.id, Ordinal: int(o.index), Block: b.Block, Currency: c.native.Code, To: to, Memo: t.memo,
				Amount: coins(int64(o.coin)), Unproven: len(o.tokens) > 0 || o.script, //nolint:gosec // at most all there is
			}
			for _, s := range t.spends {
				x.Spends = append(x.Spends, s.String())
			}
			out = append(out, x)
			for n, k := range o.tokens.list() {
				y := x
				y.Ordinal, y.Currency, y.Contract, y.Unproven = int(o.index)+(n+1)*tokenOrdinal, "", k.contract, false
				y.Amount = decimal.NewFromUint64(k.quantity)
				out = append(out, y)
			}
		}
	}
	return out
}

// History lists the executed transfers to an address from one height to another, both
// included, with the identities of Scan.
func (c *Client) History(ctx context.Context, a chain.Address, from, to int64) ([]chain.Transfer, error) {
	if _, err := c.ParseAddress(string(a)); err != nil {
		return nil, err
	}
	head, err := c.node.tip(ctx)
	if err != nil {
		return nil, err
	}
	if from < 0 || to > head.Height {
		return nil, fmt.Errorf("%w: blocks %d to %d of a chain of %d", chain.ErrBehind, from, to, head.Height)
	}
	blocks, err := c.node.paying(ctx, a, head, from, to)
	if err != nil {
		return nil, err
	}
	var out []chain.Transfer
	for i := range blocks {
		out = append(out, c.match(&blocks[i], func(to chain.Address) bool { return to == a })...)
	}
	return out, nil
}
