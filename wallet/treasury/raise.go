package treasury

import (
	"context"
	"errors"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Grant sets more aside for an order that cannot be sent within its bound, and returns the
// bound that it has from now on, in units of the network's gas currency: at most most, and
// the present one where it is refused. A payout may cost no more than the share of its
// value that Config.MinSweep allows. A sweep keeps its bound: it waits for lower fees. What
// frees a nonce, that is a gas transfer or a cancellation, is bounded by the operator's
// coins alone, and so is a merge, which outgoing bounds with its payout. A *WaitError says that those do not bear it, or that there is no price. It is
// for outgoing.Config.Raise.
func (t *Treasury) Grant(ctx context.Context, in chain.Intent, most ledger.Amount) (ledger.Amount, error) {
	switch in.Purpose {
	case chain.ForSweep:
		return in.MaxCost, nil
	case chain.ForWithdrawal:
		allowed, err := t.MayCost(ctx, in)
		if err != nil {
			return 0, err
		}
		most = min(most, allowed)
	}
	if most <= in.MaxCost {
		return in.MaxCost, nil
	}
	if outgoing.IsMerge(in.ID) { // nothing may be set aside for it yet
		merge := in
		merge.MaxCost = most
		if _, err := t.reserve(ctx, merge); err != nil {
			return 0, err
		}
	}
	switch err := t.Raise(ctx, in.Tenant, in.ID, most); {
	case errors.Is(err, ErrEnded):
		return in.MaxCost, nil
	case err != nil:
		return 0, err
	}
	return most, nil
}

// MayCost is the most that paying an intent may cost, with the moves of coins that it needs:
// the share of its value that Config.MinSweep allows, in units of the network's gas
// currency. A *WaitError says that there is no price. It is for outgoing.Config.MayCost.
func (t *Treasury) MayCost(ctx context.Context, in chain.Intent) (ledger.Amount, error) {
	c, err := t.cfg.Registry.Currency(in.Currency)
	if err != nil {
		return 0, err
	}
	gas, err := t.cfg.Registry.Gas(in.Network)
	if err != nil {
		return 0, err
	}
	worth, err := t.inGas(ctx, c, gas, in.Amount)
	if err != nil {
		return 0, &WaitError{Reason: WaitNoPrice, Err: err}
	}
	return worth.MulDiv(1, t.cfg.MinSweep, ledger.Down)
}
