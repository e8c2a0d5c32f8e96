package outgoing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Quote is what sending an intent would cost now: the client's estimate, and where coins
// are outputs, that of a transaction of the coins that are free now and would be chosen.
// An intent without a Tenant or an Amount is of one coin. Nothing is reserved, and MaxCost
// does not count. Where the free coins are too few it is the estimate for one coin. Where
// they are more than one transaction holds, merges is what merging them costs first, and
// fee what sending costs then.
func (n *Sender) Quote(ctx context.Context, in chain.Intent) (fee chain.Fee, merges ledger.Amount, err error) {
	fee, err = n.askFee(ctx, in)
	if err != nil || n.info.Family != chain.UTXOFamily || in.Tenant == "" || in.Amount == 0 {
		return fee, 0, err
	}
	free, err := n.freeCoins(ctx, &in)
	if err != nil || len(free) == 0 {
		return fee, 0, err
	}
	some := free[0].Address // of the form of all of ours, as the change is
	d := candidate{intent: in, fee: fee, change: chain.Derived{Address: some}}
	d.intent.MaxCost = 0
	if in.To == "" {
		d.intent.To = some
	}
	u, err := n.sketch(ctx, &d, free)
	cost := u.MaxCost
	if errors.Is(err, chain.ErrShort) {
		err = n.crowded(ctx, &d, free, err)
		if more := (*crowd)(nil); errors.As(err, &more) {
			cost, merges, err = more.payment, more.all, nil
		}
	}
	if waits := (*waitError)(nil); errors.Is(err, chain.ErrShort) || errors.Is(err, chain.ErrRejected) || errors.As(err, &waits) {
		return fee, 0, nil // what cannot be sent at all is refused elsewhere, in its own words
	}
	if err == nil && cost > fee.Cost {
		fee.Max, err = fee.Max.Add(cost - fee.Cost)
		fee.Cost = cost
	}
	return fee, merges, err
}

// patience is how long a node may take to say what sending costs. Other payouts wait meanwhile.
const patience = 10 * time.Second

func (n *Sender) askFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	short, end := context.WithTimeout(ctx, patience)
	defer end()
	fee, err := n.Client.EstimateFee(short, in)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		err = fmt.Errorf("%w: it did not say within %s what sending costs: %w", chain.ErrNode, patience, err)
	}
	return fee, err
}

// sketch builds a candidate of as many free coins as it takes.
func (n *Sender) sketch(ctx context.Context, d *candidate, free []coin) (chain.Unsigned, error) {
	free, take, err := n.choose(d, free)
	for ; err == nil; take++ {
		o := d.order()
		for i := range take {
			o.Coins = append(o.Coins, free[i].input())
		}
		u, err := n.Client.Build(ctx, o)
		if !errors.Is(err, chain.ErrShort) || take >= len(free) {
			return u, err
		}
	}
	return chain.Unsigned{}, err
}
