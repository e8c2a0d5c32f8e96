package xrp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Status tells what became of attempts. Included needs a validated ledger, read
// itself, that has the transaction. Conflicted needs another transaction of the
// account with the same Sequence in one; both are final at once. That the time of
// an attempt is over is Unknown: no node's silence proves that it did not land. So
// is one of which the node's answers contradict each other, whatever the others are.
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
	account  account
	sequence uint32
}

func (t *sent) seat() seat {
	if t == nil {
		return seat{}
	}
	return seat{t.account, t.sequence}
}

// landed says whether a validated ledger has an attempt.
func (c *Client) landed(ctx context.Context, head *ledgerRead, t *sent) (chain.Status, bool, error) {
	known, r, err := c.find(ctx, t)
	if err != nil || !known || !r.validated {
		return chain.Status{State: chain.Unknown}, false, err
	}
	s, err := c.included(ctx, head, t, &r)
	return s, true, err
}

// judge is the state of an attempt that no validated ledger has.
func (c *Client) judge(ctx context.Context, head *ledgerRead, t *sent) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	h, err := c.account(ctx, t.account)
	if err != nil {
		return unknown, err
	}
	if h.exists && h.sequence > t.sequence {
		return c.taken(ctx, head, t)
	}
	at, err := c.place(ctx, t)
	if err == nil && at == waiting {
		return chain.Status{State: chain.Pending}, nil
	}
	return unknown, err
}

func (c *Client) included(ctx context.Context, head *ledgerRead, t *sent, r *txRead) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	done := string(r.result) == executed
	if r.ledger > head.Height || !done && !bytes.HasPrefix(r.result, []byte("tec")) {
		return unknown, nil // above the view, or not understood
	}
	b, err := c.holding(ctx, r.ledger, t.id)
	if err != nil {
		return unknown, err
	}
	cost, err := c.units(t.fee, ledger.Up)
	if err != nil {
		return unknown, fmt.Errorf("%w: cost of a transaction: %w", follow.ErrTorn, err)
	}
	if got, ok := drops(r.delivered); done && t.kind == typePayment && (!ok || got != int64(t.amount)) { //nolint:gosec // bounded where it was read
		return unknown, fmt.Errorf("%w: a payment of %d drops delivered something else", follow.ErrTorn, t.amount)
	}
	return placed(head, b, chain.Status{State: chain.Included, Executed: done, Cost: cost}), nil
}

// holding reads a validated ledger, which must hold the transaction: what the index
// says of it, its ledger must say too.
func (c *Client) holding(ctx context.Context, index int64, id [32]byte) (chain.Block, error) {
	l, err := c.ledger(ctx, index, hashes)
	if said(err, "lgrNotFound") || err == nil && !slices.Contains(l.ids, id) {
		err = fmt.Errorf("%w: it says that ledger %d has a transaction that is not in it, or that it has not", follow.ErrTorn, index)
	}
	return l.Block, err
}

func placed(head *ledgerRead, b chain.Block, s chain.Status) chain.Status {
	s.Block, s.Confirmations, s.Final = b, head.Height-b.Height+1, true
	return s
}

// history pages through the validated transactions of an account, the oldest first. Where
// the node has not all of those ledgers it is an error if all are wanted.
func (c *Client) history(a account, from, to int64, all bool) func(ctx context.Context) (page []txRead, more bool, err error) {
	var marker json.RawMessage
	return func(ctx context.Context) ([]txRead, bool, error) {
		p := params{
			"account": a.text(), "ledger_index_min": from, "ledger_index_max": to, "forward": true,
			"limit": pageOfTxs, "binary": false,
		}
		if marker != nil {
			p["marker"] = marker
		}
		raw, err := c.node.call(ctx, "account_tx", p)
		if err != nil {
			return nil, false, err
		}
		marker = nil
		var page []txRead
		least, most := int64(-1), int64(-1)
		w := newWalk(raw)
		w.Object(func(key []byte) {
			switch string(key) {
			case "transactions":
				w.Array(func() { page = append(page, readTx(w)) })
			case "marker":
				marker = append(json.RawMessage(nil), w.Raw()...)
			case "ledger_index_min":
				least = w.number()
			case "ledger_index_max":
				most = w.number()
			default:
				w.Skip()
			}
		})
		if err := w.End(); err != nil {
			return nil, false, err
		}
		if all && (most < to || least < 0 || least > from) {
			return nil, false, fmt.Errorf("%w: it has ledgers %d to %d alone, asked were %d to %d", chain.ErrNode, least, most, from, to)
		}
		return page, marker != nil, nil
	}
}

// History lists the executed transfers to an address from ledger from to ledger
// to, both included, with the identities of Scan. Of an X-address only what came
// with its tag.
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
		return nil, fmt.Errorf("%w: its newest validated ledger is %d, asked up to %d", chain.ErrBehind, head.Height, to)
	}
	list := c.history(who, from, to, true)
	both := follow.Only{a, who.text()}
	var out []chain.Transfer
	at := ledgerRead{}
	for {
		page, more, err := list(ctx)
		if said(err, "actNotFound") {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page {
			t := &page[i]
			if !t.validated || !t.meta || t.ledger < from || t.ledger > to {
				return nil, fmt.Errorf("%w: it listed a transaction that was not asked for", chain.ErrNode)
			}
			if at.Height != t.ledger {
				if at, err = c.at(ctx, t.ledger); err != nil {
					return nil, err
				}
			}
			for _, x := range c.transfers(t, at.Block, both) {
				if x.To == a {
					out = append(out, x)
				}
			}
		}
		if !more {
			return out, nil
		}
	}
}
