package xrp

import (
	"context"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// mostPages bounds what one account's list is asked for at once: a stranger can make it long. Where
// there is more, the next Scan goes on.
const mostPages = 10

// named lists the ledgers after one, up to the end, in which a transaction touched an account of
// the addresses. The server lists a transaction under each account whose entry it changed.
func (c *Client) named(ctx context.Context, list []chain.Address, last, head chain.Block) ([]int64, chain.Block, error) {
	var accounts []account
	for _, a := range list {
		if who, _, err := c.own(a); err == nil { // else nothing can be paid there
			accounts = append(accounts, who)
		}
	}
	return follow.Named(ctx, c.o.Parallel, accounts, last, head, c.at, func(ctx context.Context, who account) ([]int64, int64, error) {
		return c.touching(ctx, who, last.Height+1, head.Height)
	})
}

// touching lists the ledgers from one to another that changed an account. They are all up to and
// with the last return: the node must have all of them, and list in order what is in them.
func (c *Client) touching(ctx context.Context, a account, from, to int64) (ledgers []int64, end int64, err error) {
	list := c.history(a, from, to, true)
	ledger, index := from, int64(-1)
	for range mostPages {
		page, more, err := list(ctx)
		if err != nil {
			return nil, 0, err
		}
		for i := range page {
			t := &page[i]
			if !t.validated || !t.meta || t.ledger < ledger || t.ledger > to || t.ledger == ledger && t.index <= index {
				return nil, 0, fmt.Errorf("%w: its list of an account's transactions is out of order, or not of validated ledgers", follow.ErrTorn)
			}
			if n := len(ledgers); n == 0 || ledgers[n-1] != t.ledger {
				ledgers = append(ledgers, t.ledger)
			}
			ledger, index = t.ledger, t.index
		}
		if !more {
			return ledgers, to, nil
		}
	}
	if len(ledgers) == 0 {
		return nil, 0, follow.ErrUntold
	}
	return ledgers, ledger, nil // the last one is read whole, whatever else of it was not listed
}
