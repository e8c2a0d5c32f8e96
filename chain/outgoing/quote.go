package outgoing

import (
	"context"
	"errors"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Quote is what sending an intent would cost now: the client's estimate, and where coins
// are outputs, that of a transaction of the coins that are free now and would be chosen.
// An intent without a Tenant or an Amount is of one coin. Nothing is reserved, and MaxCost
// does not count. Where the free coins are too few, or more than one transaction holds, it
// is the estimate for one coin.
func (n *Network) Quote(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	fee, err := n.Client.EstimateFee(ctx, in)
	if err != nil || n.info.Family != chain.UTXOFamily || in.Tenant == "" || in.Amount == 0 {
		return fee, err
	}
	free, err := n.freeCoins(ctx, &in)
	if err != nil || len(free) == 0 {
		return fee, err
	}
	some := coinOf(free[0]).Address // of the form of all of ours, as the change is
	d := draft{intent: in, fee: fee, change: chain.Derived{Address: some}}
	d.intent.MaxCost = 0
	if in.To == "" {
		d.intent.To = some
	}
	u, err := n.sketch(ctx, &d, free)
	switch {
	case errors.Is(err, chain.ErrShort), errors.Is(err, chain.ErrRejected):
		return fee, nil // what cannot be sent at all is refused elsewhere, in its own words
	case err != nil:
		return fee, err
	case u.MaxCost > fee.Cost:
		if fee.Max, err = fee.Max.Add(u.MaxCost - fee.Cost); err != nil {
			return fee, err
		}
		fee.Cost = u.MaxCost
	}
	return fee, nil
}

// sketch builds a draft of as many free coins as it takes.
func (n *Network) sketch(ctx context.Context, d *draft, free []storage.Row) (chain.Unsigned, error) {
	free, take, err := n.choose(d, free)
	for ; err == nil; take++ {
		o := d.order()
		for _, r := range free[:take] {
			o.Coins = append(o.Coins, coinOf(r))
		}
		u, err := n.Client.Build(ctx, o)
		if !errors.Is(err, chain.ErrShort) || take >= len(free) {
			return u, err
		}
	}
	return chain.Unsigned{}, err
}
