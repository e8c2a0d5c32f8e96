package xrp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// mostPages bounds what one account's list is asked for at once: a stranger can make it long. Where
// there is more, the next Scan goes on.
const mostPages = 10

// named lists the ledgers after one, up to the end, in which a transaction touched an account of
// the addresses. The server lists a transaction under each account whose entry it changed.
func (c *Client) named(ctx context.Context, list []chain.Address, last chain.Block, head *ledgerRead) ([]int64, chain.Block, error) {
	accounts := map[account]bool{}
	for _, a := range list {
		if who, _, err := c.own(a); err == nil { // else nothing can be paid there
			accounts[who] = true
		}
	}
	all := slices.Collect(maps.Keys(accounts))
	var mu sync.Mutex
	found, end := map[int64]bool{}, head.Height
	err := follow.Each(len(all), c.o.Parallel, func(i int) error {
		ledgers, to, err := c.touching(ctx, all[i], last.Height+1, head.Height)
		mu.Lock()
		defer mu.Unlock()
		for _, l := range ledgers {
			found[l] = true
		}
		end = min(end, to)
		return err
	})
	if err != nil {
		return nil, chain.Block{}, err
	}
	ledgers := slices.Sorted(maps.Keys(found))
	switch {
	case end == head.Height:
		return ledgers, head.Block, nil
	case end <= last.Height:
		return nil, chain.Block{}, follow.ErrUntold
	}
	above, _ := slices.BinarySearch(ledgers, end+1)
	l, err := c.at(ctx, end)
	return ledgers[:above], l.Block, err
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
	return ledgers, ledger - 1, nil // of the last one, not all may have been listed
}
