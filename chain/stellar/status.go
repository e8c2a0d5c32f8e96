package stellar

import (
	"context"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Status tells what became of attempts. Included needs a ledger that the node has.
// Conflicted needs another transaction of the account with the same sequence number
// in one; both are final at once. That the time of an attempt is over is Unknown: no
// node's silence proves that it did not land. So is one of which the node's answers
// contradict each other, whatever the others are.
func (c *Client) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	head, err := c.head(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]*sent, len(attempts))
	for i, a := range attempts {
		all[i], _ = c.signed(a.Tx, a.Raw) // nil: not understood
	}
	return follow.Contest(attempts,
		func(i int) (seat, bool) { return all[i].seat(), all[i] != nil },
		func(i int) (chain.Status, bool, error) { return c.landed(ctx, &head, all[i]) },
		func(i int) (chain.Status, error) { return c.judge(ctx, &head, all[i]) })
}

// seat is what transactions exclude each other by.
type seat struct {
	source   account
	sequence int64
}

func (t *sent) seat() seat {
	if t == nil {
		return seat{}
	}
	return seat{t.source, t.sequence}
}

// landed says whether a ledger has an attempt.
func (c *Client) landed(ctx context.Context, head *ledgerRead, t *sent) (chain.Status, bool, error) {
	known, f, err := c.find(ctx, t.tx)
	if err != nil || !known {
		return chain.Status{State: chain.Unknown}, false, err
	}
	s, err := c.included(ctx, head, t, &f)
	return s, true, err
}

// judge is the state of an attempt that no ledger has.
func (c *Client) judge(ctx context.Context, head *ledgerRead, t *sent) (chain.Status, error) {
	h, err := c.account(ctx, t.source)
	if err != nil || !h.exists || h.sequence < t.sequence {
		return chain.Status{State: chain.Unknown}, err
	}
	return c.taken(ctx, head, t)
}

func (c *Client) included(ctx context.Context, head *ledgerRead, t *sent, f *found) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	if f.Ledger > head.Height {
		return unknown, nil // above the view
	}
	l, err := c.holding(ctx, f)
	if err != nil {
		return unknown, err
	}
	charged, err := f.cost()
	if err != nil || charged < 0 || charged > int64(t.fee) {
		return unknown, fmt.Errorf("%w: it says that a transaction cost %q", follow.ErrTorn, c.node.Redact(f.Charged))
	}
	cost, err := c.units(charged, ledger.Up)
	if err != nil {
		return unknown, fmt.Errorf("%w: cost of a transaction: %w", follow.ErrTorn, err)
	}
	return placed(head, &l, chain.Status{State: chain.Included, Executed: f.Successful, Cost: cost}), nil
}

// holding reads the ledger that a transaction is said to be in, which the node must have.
func (c *Client) holding(ctx context.Context, f *found) (ledgerRead, error) {
	l, err := c.at(ctx, f.Ledger)
	if missing(err) {
		err = follow.Torn(err)
	}
	return l, err
}

func placed(head, l *ledgerRead, s chain.Status) chain.Status {
	s.Block, s.Confirmations, s.Final = l.Block, head.Height-l.Height+1, true
	return s
}

func isNumber(s string) bool {
	_, ok := number(s)
	return ok
}

// History lists the executed transfers to an address from ledger from to ledger to,
// both included, with the identities of Scan. Of a muxed account only what came with
// its id.
func (c *Client) History(ctx context.Context, a chain.Address, from, to int64) ([]chain.Transfer, error) {
	who, _, err := c.own(a)
	if err != nil {
		return nil, err
	}
	head, err := c.head(ctx)
	if err != nil {
		return nil, err
	}
	if from = max(from, 1); to < from {
		return nil, nil
	}
	if head.Height < to {
		return nil, fmt.Errorf("%w: its newest ledger is %d, asked up to %d", chain.ErrBehind, head.Height, to)
	}
	if _, err := c.at(ctx, from); err != nil {
		return nil, err // it has no history that far back
	}
	both := follow.Only{a, who.text()}
	var out []chain.Transfer
	l := ledgerRead{}
	err = c.operations(ctx, fmt.Sprintf("/accounts/%s/operations", who.text()), from<<32-1, func(o *operation) (bool, error) {
		if o.ledger() > to {
			return false, nil
		}
		if l.Height != o.ledger() {
			var err error
			if l, err = c.at(ctx, o.ledger()); err != nil {
				return false, err
			}
		}
		found, err := c.transfers(ctx, o, l.Block, both)
		for _, x := range found {
			if x.To == a {
				out = append(out, x)
			}
		}
		return true, err
	})
	if missing(err) {
		return nil, nil // an account that never was
	}
	return out, err
}
