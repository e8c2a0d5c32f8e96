package stellar

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// mostPages bounds what one account's list is asked for at once: a stranger can make it long. Where
// there is more, the next Scan goes on.
const mostPages = 10

// named lists the ledgers after one, up to the end, in which something can have come to an account
// of the addresses.
func (c *Client) named(ctx context.Context, list []chain.Address, last, head chain.Block) ([]int64, chain.Block, error) {
	var accounts []account
	for _, a := range list {
		if who, _, err := c.own(a); err == nil { // else nothing can be paid there
			accounts = append(accounts, who)
		}
	}
	return follow.Named(ctx, c.o.Parallel, accounts, last, head, c.at, func(ctx context.Context, who account) ([]int64, int64, error) {
		return c.touching(ctx, who, last.Height, head.Height)
	})
}

// touching lists the ledgers after one, up to another, with operations that name an account. They
// are all up to and with the last return.
//
// What comes to an account changes it, so one that was not changed got nothing. Horizon says with an
// account how far it had read the chain then, and does not with lists. So a list must come to the
// ledger that changed the account, or it is of a server that is behind. It then has all that is
// below: Horizon writes what a ledger changed and its operations in one transaction of its
// database, one ledger after the other.
//
// Of an account that is not there, nothing says how far its list must come. What came to it is gone
// again, with the account, which only its own key can merge into another.
func (c *Client) touching(ctx context.Context, a account, from, to int64) (ledgers []int64, end int64, err error) {
	changed, err := c.changed(ctx, a, to)
	if err != nil || changed > 0 && changed <= from {
		return nil, to, err
	}
	count, at, end := 0, from, to
	err = c.operations(ctx, fmt.Sprintf("/accounts/%s/operations", a.text()), (from+1)<<32-1, func(o *operation) (bool, error) {
		if at = o.ledger(); at > to {
			return false, nil
		}
		if n := len(ledgers); n == 0 || ledgers[n-1] != at {
			ledgers = append(ledgers, at)
		}
		if count++; count == mostPages*pageSize {
			end = at // which is read whole, whatever else of it was not listed
		}
		return count < mostPages*pageSize, nil
	})
	switch {
	case missing(err) && changed == 0:
		return nil, to, nil // an account that never was
	case err == nil && end == to && at < min(changed, to+1):
		err = follow.ErrUntold
	}
	return ledgers, end, err
}

// changed is the ledger that changed an account last, 0 where there is no such account. The node
// must say that it had read the chain up to a ledger.
func (c *Client) changed(ctx context.Context, a account, to int64) (int64, error) {
	raw, latest, err := c.node.dated(ctx, "/accounts/"+string(a.text()))
	if err != nil && !missing(err) {
		return 0, err
	}
	if n, bad := strconv.ParseInt(latest, 10, 64); bad != nil || n < to {
		return 0, follow.ErrUntold
	}
	if missing(err) {
		return 0, nil
	}
	var answer struct {
		ID      chain.Address `json:"account_id"`
		Changed int64         `json:"last_modified_ledger"`
	}
	if json.Unmarshal(raw, &answer) != nil || answer.ID != a.text() || answer.Changed <= 0 {
		return 0, fmt.Errorf("%w: it was asked for an account and answered something else", follow.ErrTorn)
	}
	return answer.Changed, nil
}
