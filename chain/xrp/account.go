package xrp

import (
	"context"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Flags of an account.
const (
	flagRequireTag  = 0x00020000 // payments without a tag bounce
	flagDisallowXRP = 0x00080000 // asks not to be sent XRP
	flagDepositAuth = 0x01000000 // takes from accounts that it named alone
)

// holding is what a validated ledger says of an account.
type holding struct {
	exists   bool
	drops    int64
	owned    int64 // objects, each of which raises the reserve
	sequence uint32
	flags    uint32
}

func (c *Client) account(ctx context.Context, a account) (holding, error) {
	var answer struct {
		Data struct {
			Account    chain.Address `json:"Account"`
			Balance    string        `json:"Balance"`
			Flags      uint32        `json:"Flags"`
			OwnerCount int64         `json:"OwnerCount"`
			Sequence   uint32        `json:"Sequence"`
		} `json:"account_data"`
		Validated bool `json:"validated"`
	}
	err := c.node.ask(ctx, "account_info", params{"account": a.text(), "ledger_index": "validated"}, &answer)
	if said(err, "actNotFound") {
		return holding{}, nil
	}
	if err != nil {
		return holding{}, err
	}
	d := &answer.Data
	n, ok := drops([]byte(`"` + d.Balance + `"`))
	if !ok || !answer.Validated || d.Account != a.text() || d.Sequence == 0 || d.OwnerCount < 0 || d.OwnerCount > 1<<32 {
		return holding{}, fmt.Errorf("%w: it was asked for a validated account and answered something else", follow.ErrTorn)
	}
	return holding{true, n, d.OwnerCount, d.Sequence, d.Flags}, nil
}

// spendable is what an account holds above its reserve, in drops; below 0 where
// it has fallen under it.
func (c *Client) spendable(ctx context.Context, a account) (int64, error) {
	h, err := c.account(ctx, a)
	if err != nil || !h.exists {
		return 0, err
	}
	s, err := c.state(ctx)
	if err != nil {
		return 0, err
	}
	v := s.State.Validated
	if h.owned > 0 && v.Owner > maxDrops/h.owned {
		return 0, fmt.Errorf("%w: absurd reserves", chain.ErrNode)
	}
	return h.drops - v.Base - v.Owner*h.owned, nil
}

// bounces says why the recipient would not get a payment, "" = it would.
func (c *Client) bounces(ctx context.Context, s *sending) (string, error) {
	h, err := c.account(ctx, s.to)
	if err != nil {
		return "", err
	}
	if !h.exists {
		st, err := c.state(ctx)
		if err != nil {
			return "", err
		}
		if base := st.State.Validated.Base; s.amount < base {
			return fmt.Sprintf("does not exist yet, and a payment of less than the reserve, %s XRP, does not make it", coins(base)), nil
		}
		return "", nil
	}
	switch {
	case h.flags&flagRequireTag != 0 && s.tag == nil:
		return "takes no payment without a destination tag", nil
	case h.flags&flagDisallowXRP != 0:
		return "asks not to be sent XRP", nil
	case h.flags&flagDepositAuth != 0:
		return "takes payments only from accounts that it has named", nil
	}
	return "", nil
}

// Deliverable asks the node whether the recipient would take the payment: an
// account that is not there needs at least the reserve, one that requires a tag
// needs one, one that takes from nobody gets nothing. The error is then a
// *chain.AddressError.
func (c *Client) Deliverable(ctx context.Context, currency string, to chain.Address, memo string, amount ledger.Amount) error {
	s := &sending{}
	var err error
	if currency != c.native.Code {
		return rejected("%q is not the currency of %s", currency, c.o.Network)
	}
	if s.to, err = c.classic(to); err != nil {
		return err
	}
	if s.tag, err = parseTag(memo); err != nil {
		return err
	}
	if s.amount, err = c.drops(amount); err != nil {
		return err
	}
	if err := c.rightChain(ctx); err != nil {
		return err
	}
	why, err := c.bounces(ctx, s)
	if err == nil && why != "" {
		err = &chain.AddressError{Network: c.o.Network, Address: string(to), Reason: "it " + why}
	}
	return err
}

// Balance reads what an account holds in the newest validated ledger, its reserve
// included, in whole coins. Of an X-address it is all of the account's.
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
	return coins(h.drops), err
}

// Nonce is the Sequence of an account's next transaction, by the newest validated
// ledger. An account that is not there has none, which is an error: its first is
// the index of the ledger that makes it.
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
		err = fmt.Errorf("%w: %s is not in the ledger yet: fund it with its reserve", chain.ErrShort, who.text())
	}
	return uint64(h.sequence), err
}
