package stellar

import (
	"context"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// holding is what Horizon says of an account.
type holding struct {
	exists   bool
	stroops  int64
	bound    int64 // promised by offers to sell
	entries  int64 // base reserves that it must keep
	sequence int64
	memo     bool // SEP-29: wants a memo with each payment
}

func (c *Client) account(ctx context.Context, a account) (holding, error) {
	var answer struct {
		ID         chain.Address     `json:"account_id"`
		Sequence   string            `json:"sequence"`
		Entries    int64             `json:"subentry_count"`
		Sponsoring int64             `json:"num_sponsoring"`
		Sponsored  int64             `json:"num_sponsored"`
		Data       map[string]string `json:"data"`
		Balances   []struct {
			Asset   string `json:"asset_type"`
			Balance string `json:"balance"`
			Selling string `json:"selling_liabilities"`
		} `json:"balances"`
	}
	err := c.node.ask(ctx, "/accounts/"+string(a.text()), &answer)
	if missing(err) {
		return holding{}, nil
	}
	if err != nil {
		return holding{}, err
	}
	wrong := fmt.Errorf("%w: it was asked for an account and answered something else", chain.ErrNode)
	h := holding{exists: true, entries: 2 + answer.Entries + answer.Sponsoring - answer.Sponsored, memo: answer.Data["config.memo_required"] == "MQ=="}
	n, ok := number(answer.Sequence)
	if !ok || n == 0 || n > 1<<62 || answer.ID != a.text() || h.entries < 0 || h.entries > 1<<20 {
		return holding{}, wrong
	}
	h.sequence = int64(n)
	found := 0
	for _, b := range answer.Balances {
		if b.Asset != native {
			continue
		}
		found++
		held, good := stroops(b.Balance)
		bound, fine := int64(0), true
		if b.Selling != "" {
			bound, fine = stroops(b.Selling)
		}
		if !good || !fine {
			return holding{}, wrong
		}
		h.stroops, h.bound = held, bound
	}
	if found != 1 {
		return holding{}, wrong
	}
	return h, nil
}

// spendable is what an account holds above its reserve and what it has promised.
func (h *holding) spendable(head *ledgerRead) int64 {
	if !h.exists {
		return 0
	}
	return h.stroops - h.bound - h.entries*head.baseReserve
}

// fails says why a payment would not arrive, "" = it would; it also finds whether
// the recipient must be made.
func (c *Client) fails(ctx context.Context, head *ledgerRead, s *sending) (string, error) {
	h, err := c.account(ctx, s.to)
	if err != nil {
		return "", err
	}
	s.create = !h.exists
	least := 2 * head.baseReserve
	switch {
	case s.create && s.amount < least:
		return fmt.Sprintf("does not exist yet, and less than the reserve, %s XLM, does not make it", coins(least)), nil
	case h.memo && s.memo == "":
		return "takes no payment without a memo", nil
	}
	return "", nil
}

// Deliverable asks the node whether the recipient would take the payment: an account
// that is not there is made by at least its reserve, one that asks for a memo
// (SEP-29) needs one. The error is then a *chain.AddressError.
func (c *Client) Deliverable(ctx context.Context, currency string, to chain.Address, memo string, amount ledger.Amount) error {
	s := &sending{memo: memo}
	var err error
	if currency != c.native.Code {
		return rejected("%q is not the currency of %s", currency, c.o.Network)
	}
	if s.to, err = c.plain(to); err != nil {
		return err
	}
	if s.amount, err = c.stroops(amount); err != nil {
		return err
	}
	head, err := c.head(ctx)
	if err != nil {
		return err
	}
	why, err := c.fails(ctx, &head, s)
	if err == nil && why != "" {
		err = &chain.AddressError{Network: c.o.Network, Address: string(to), Reason: "it " + why}
	}
	return err
}

// Balance reads what an account holds, its reserve included, in whole coins. Of a
// muxed account it is all of the account's.
func (c *Client) Balance(ctx context.Context, currency string, a chain.Address) (decimal.Decimal, error) {
	if currency != c.native.Code {
		return decimal.Zero, fmt.Errorf("%w: %s is not on %s", chain.ErrCurrency, currency, c.o.Network)
	}
	who, _, err := c.own(a)
	if err != nil {
		return decimal.Zero, err
	}
	if err := c.rightChain(ctx); err != nil {
		return decimal.Zero, err
	}
	h, err := c.account(ctx, who)
	return coins(h.stroops), err
}

// Nonce is the sequence number of an account's next transaction: one above the last.
// An account that is not there has none, which is an error.
func (c *Client) Nonce(ctx context.Context, a chain.Address) (uint64, error) {
	who, _, err := c.own(a)
	if err != nil {
		return 0, err
	}
	if err := c.rightChain(ctx); err != nil {
		return 0, err
	}
	h, err := c.account(ctx, who)
	if err == nil && !h.exists {
		err = fmt.Errorf("%w: %s is not there yet: fund it with its reserve", chain.ErrShort, who.text())
	}
	return uint64(h.sequence) + 1, err //nolint:gosec // positive
}
