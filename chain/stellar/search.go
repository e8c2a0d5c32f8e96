package stellar

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// An account's list of transactions has those of strangers who pay it, too, so anybody can
// make it long. A search in it reads a few pages each time it is asked for, and goes on
// there the next time.
const (
	pagesPerLook = 5
	// fastest is how many seconds a ledger takes at least, on average.
	fastest = 4
)

// search is how far a list was read.
type search struct {
	from   int64  // the ledger that it began with
	cursor string // of the last record that was read
}

// beginAt is a search from a ledger on.
func beginAt(ledger int64) search {
	ledger = min(max(ledger, 0), 1<<31-1)
	return search{ledger, strconv.FormatInt(ledger<<32, 10)}
}

// taken finds the transaction that took an attempt's sequence number among those of its
// account, failed ones too, the oldest first. Where it is not found, nothing is proven.
func (c *Client) taken(ctx context.Context, head *ledgerRead, t *sent) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	ago := head.Time.Unix() - int64(t.until) + int64(c.o.Expiry.Seconds())  //nolint:gosec // not above 2^63
	s := c.searches.Begin(t.tx, beginAt(head.Height-max(ago, 0)/fastest-2)) // signed then at the earliest
	for range pagesPerLook {
		list, err := c.transactions(ctx, t.source, s.cursor)
		if err != nil {
			return unknown, err
		}
		late := false
		for i := range list {
			f := &list[i].found
			n, ok := number(f.Sequence)
			if f.Source != string(t.source.text()) || !ok || n < uint64(t.sequence) { //nolint:gosec // positive
				continue
			}
			if late = n > uint64(t.sequence); late || f.Ledger > head.Height { //nolint:gosec // positive
				break
			}
			c.searches.End(t.tx)
			if f.name() == t.tx {
				return c.included(ctx, head, t, f)
			}
			l, err := c.holding(ctx, f)
			if err != nil {
				return unknown, err
			}
			return placed(head, &l, chain.Status{State: chain.Conflicted, By: f.name()}), nil
		}
		switch {
		case late && s.from == 0, !late && len(list) < pageSize:
			c.searches.End(t.tx)
			return unknown, nil
		case late: // what took it is older
			s = beginAt(s.from - 4*(head.Height-s.from) - 1000)
		default:
			s.cursor = list[len(list)-1].Token
		}
		c.searches.Keep(t.tx, s)
	}
	return unknown, nil
}

// listed is a transaction in a list.
type listed struct {
	found
	Token string `json:"paging_token"`
}

// transactions is a page of those that an account takes part in.
func (c *Client) transactions(ctx context.Context, a account, cursor string) ([]listed, error) {
	raw, err := c.node.get(ctx, fmt.Sprintf("/accounts/%s/transactions?order=asc&limit=%d&include_failed=true&cursor=%s", a.text(), pageSize, cursor))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Embedded *struct {
			Records []listed `json:"records"`
		} `json:"_embedded"`
	}
	if json.Unmarshal(raw, &answer) != nil || answer.Embedded == nil {
		return nil, fmt.Errorf("%w: its transactions are not the JSON expected", chain.ErrNode)
	}
	list := answer.Embedded.Records
	if n := len(list); n > 0 && !isNumber(list[n-1].Token) {
		return nil, fmt.Errorf("%w: its transactions have no paging token", follow.ErrTorn)
	}
	return list, nil
}
