package xrp

import (
	"bytes"
	"context"
	"encoding/hex"

	"github.com/cryptopay-go/cryptopay/chain"
)

// An account's list of transactions has those of strangers who pay it, too, so anybody can
// make it long. A search in it reads a few pages each time it is asked for, and goes on
// with the ledger that it came to the next time.
const (
	pageOfTxs    = 200
	pagesPerLook = 8
)

// search is how far a list was read.
type search struct{ from, next int64 } // the ledger that it began with, and that it goes on with

// taken finds the transaction that took an attempt's Sequence among those of its account,
// the oldest first. Where it is not found, nothing is proven.
func (c *Client) taken(ctx context.Context, head *ledgerRead, t *sent) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	payer := []byte(t.account.text())
	from := min(max(int64(t.lastLedger)-int64(c.o.Window), 0), head.Height) // signed then at the earliest
	s := c.searches.Begin(t.tx(), search{from, from})
	list := c.history(t.account, s.next, head.Height, false)
	for range pagesPerLook {
		page, more, err := list(ctx)
		if err != nil {
			return unknown, err
		}
		late := false
		for i := range page {
			r := &page[i]
			if !bytes.Equal(r.account, payer) || !r.validated || r.sequence < int64(t.sequence) {
				continue
			}
			if late = r.sequence > int64(t.sequence); late {
				break
			}
			c.searches.End(t.tx())
			if r.id == t.id {
				return unknown, nil // it landed meanwhile: told at the next look
			}
			b, err := c.holding(ctx, r.ledger, r.id)
			if err != nil {
				return unknown, err
			}
			return placed(head, b, chain.Status{State: chain.Conflicted, By: hex.EncodeToString(r.id[:])}), nil
		}
		switch {
		case late && s.from == 0, !late && !more:
			c.searches.End(t.tx())
			return unknown, nil
		case late: // what took it is older
			before := max(s.from-4*(head.Height-s.from)-1000, 0)
			s = search{before, before}
			list = c.history(t.account, s.next, head.Height, false)
		case len(page) > 0:
			s.next = max(s.next, page[len(page)-1].ledger)
		}
		c.searches.Keep(t.tx(), s)
	}
	return unknown, nil
}
