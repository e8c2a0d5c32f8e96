package several

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// EstimateFee is one node's word: what it may cost is bounded by the intent.
func (c *client) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	return sponsored(ctx, c, in, func(n chain.Client) (chain.Fee, error) { return n.EstimateFee(ctx, in) })
}

// Build is made with one node. What it makes is inspected before it is signed.
func (c *client) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	return sponsored(ctx, c, o.Intent, func(n chain.Client) (chain.Unsigned, error) { return n.Build(ctx, o) })
}

// sponsored reads from one node: one whose client is chain.Sponsored where another address pays.
func sponsored[T any](ctx context.Context, c *client, in chain.Intent, ask func(chain.Client) (T, error)) (T, error) {
	if in.Payer == "" {
		return either(ctx, c, ask)
	}
	return either(ctx, c, func(n interface {
		chain.Client
		chain.Sponsored
	},
	) (T, error) {
		return ask(n)
	})
}

// Balance is one node's word.
func (c *client) Balance(ctx context.Context, currency string, a chain.Address) (decimal.Decimal, error) {
	return either(ctx, c, func(b chain.Balancer) (decimal.Decimal, error) {
		return b.Balance(ctx, currency, a)
	})
}

// Balances is one node's word.
func (c *client) Balances(ctx context.Context, currency string, list []chain.Address) ([]*decimal.Decimal, error) {
	return either(ctx, c, func(b chain.ManyBalancer) ([]*decimal.Decimal, error) {
		return b.Balances(ctx, currency, list)
	})
}

// Deliverable is one node's word: nil where no node looks at recipients.
func (c *client) Deliverable(ctx context.Context, currency string, to chain.Address, memo string, a ledger.Amount) error {
	_, err := either(ctx, c, func(d chain.Deliverer) (struct{}, error) {
		return struct{}{}, d.Deliverable(ctx, currency, to, memo, a)
	})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// BlockAt is told where Agree nodes tell the same block.
func (c *client) BlockAt(ctx context.Context, height int64) (chain.Block, error) {
	return agree(ctx, c, fmt.Sprintf("block %d", height), func(l chain.Locator) (chain.Block, error) {
		return l.BlockAt(ctx, height)
	}, func(x, y chain.Block) bool { return x.Hash == y.Hash && x.Parent == y.Parent && x.Height == y.Height })
}

// History is told where Agree nodes tell the same transfers.
func (c *client) History(ctx context.Context, a chain.Address, from, to int64) ([]chain.Transfer, error) {
	return agree(ctx, c, "the history of "+string(a), func(h chain.Historian) ([]chain.Transfer, error) {
		return h.History(ctx, a, from, to)
	}, sameTransfers)
}

// Holdings is told where Agree nodes tell the same.
func (c *client) Holdings(ctx context.Context, at chain.Block, list []chain.Address) ([]decimal.Decimal, error) {
	return agree(ctx, c, fmt.Sprintf("what addresses hold at block %d", at.Height), func(r chain.Reconciler) ([]decimal.Decimal, error) {
		return r.Holdings(ctx, at, list)
	}, func(x, y []decimal.Decimal) bool { return slices.EqualFunc(x, y, decimal.Decimal.Equal) })
}

// Spent is told where Agree nodes tell the same.
func (c *client) Spent(ctx context.Context, at chain.Block, senders []chain.Sender) ([]chain.Spent, error) {
	return agree(ctx, c, fmt.Sprintf("what addresses spent up to block %d", at.Height), func(r chain.Reconciler) ([]chain.Spent, error) {
		return r.Spent(ctx, at, senders)
	}, func(x, y []chain.Spent) bool {
		return slices.EqualFunc(x, y, func(a, b chain.Spent) bool {
			return a.Nonce == b.Nonce && a.Strange == b.Strange && a.Paid.Equal(b.Paid)
		})
	})
}

// Received is told where Agree nodes tell the same.
func (c *client) Received(ctx context.Context, list []chain.Address, from, to chain.Block) ([]chain.Transfer, error) {
	return agree(ctx, c, fmt.Sprintf("what addresses received up to block %d", to.Height), func(r chain.Reconciler) ([]chain.Transfer, error) {
		return r.Received(ctx, list, from, to)
	}, sameTransfers)
}

// Pending is what waits at any node: what one has not heard of yet is not gone.
// It moves no money.
func (c *client) Pending(ctx context.Context, w chain.Watch) ([]chain.Transfer, error) {
	type place struct {
		tx      string
		ordinal int
	}
	known := map[place]bool{}
	var out []chain.Transfer
	var last error
	var lacking []error
	answered := 0
	for _, n := range c.usable() {
		list, err := askAble(n, func(m chain.Mempool) ([]chain.Transfer, error) { return m.Pending(ctx, w) })
		if errors.Is(err, errors.ErrUnsupported) {
			lacking = append(lacking, named(n, err))
			continue
		}
		if told := c.note(ctx, n, err); err != nil {
			if told {
				return nil, err
			}
			last = named(n, err)
			continue
		}
		answered++
		for _, t := range list {
			if at := (place{t.Tx, t.Ordinal}); !known[at] {
				known[at] = true
				out = append(out, t)
			}
		}
	}
	if answered == 0 {
		return nil, c.unanswered(0, lacking, last)
	}
	return out, nil
}

// Broadcast sends to every node, those that are left alone included where all
// are. It is sent where one takes it. ErrRejected only where each that answered
// has proof.
func (c *client) Broadcast(ctx context.Context, s chain.Stored) error {
	nodes := c.usable()
	if len(nodes) == 0 {
		nodes = c.nodes
	}
	taken := false
	var doubt, rejected error
	for _, n := range nodes {
		err := n.Client.Broadcast(ctx, s)
		c.heed(ctx, n, err)
		switch {
		case err == nil:
			taken = true
		case errors.Is(err, chain.ErrRejected):
			rejected = errors.Join(rejected, named(n, err))
		default:
			doubt = errors.Join(doubt, named(n, err))
		}
	}
	switch {
	case taken:
		return nil
	case doubt != nil && rejected != nil:
		return fmt.Errorf("%w; others say %s", doubt, rejected.Error()) // their proof is none against a doubt
	case doubt != nil:
		return doubt
	}
	return rejected
}

func sameTransfers(x, y []chain.Transfer) bool {
	order := func(a, b chain.Transfer) int {
		switch {
		case a.Tx < b.Tx:
			return -1
		case a.Tx > b.Tx:
			return 1
		}
		return a.Ordinal - b.Ordinal
	}
	x, y = slices.SortedFunc(slices.Values(x), order), slices.SortedFunc(slices.Values(y), order)
	return slices.EqualFunc(x, y, func(a, b chain.Transfer) bool {
		return a.Tx == b.Tx && a.Ordinal == b.Ordinal && a.Block.Hash == b.Block.Hash && a.Currency == b.Currency && a.Contract == b.Contract &&
			a.From == b.From && a.To == b.To && a.Memo == b.Memo && a.Amount.Equal(b.Amount) && a.Confirmable == b.Confirmable && a.Unproven == b.Unproven && a.Contradicted == b.Contradicted
	})
}
