package treasury

import (
	"context"
	"errors"
	"math"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Grant sets more aside for an order that cannot be sent within its bound, and returns the
// bound that it has from now on, in units of the network's gas currency: at most most, and
// the present one where it is refused. A payout, a sweep or gas for one may cost no more than
// the share of its value that Config.MinSweep allows, and a sweep or an early merge
// no more than Config.DailyCost leaves: else it waits for lower fees, or outgoing has its nonce go back to
// ourselves. An early merge that a payout waits for counts towards Config.DailyCost, and is not refused for it. A cancellation is bounded by the operator's coins alone, and so is a merge, which
// outgoing bounds with its payout. A *WaitError says that those do not bear it, or that there is no
// price. It is for outgoing.Config.Raise.
func (t *Treasury) Grant(ctx context.Context, in chain.Intent, most ledger.Amount) (ledger.Amount, error) {
	limit := int64(math.MaxInt64)
	if in.Purpose == chain.ForWithdrawal || in.Purpose == chain.ForSweep || in.Purpose == chain.ForGas {
		allowed, err := t.MayCost(ctx, in)
		if err != nil {
			return 0, err
		}
		most = min(most, allowed)
	}
	bounded := in.Purpose == chain.ForSweep
	if outgoing.ParseID(in.ID).Early() {
		needed, err := outgoing.PayoutNeedsMerge(ctx, t.cfg.Store, in.Network, in.Tenant)
		if err != nil {
			return 0, err
		}
		bounded = !needed
	}
	if bounded {
		gas, err := t.cfg.Registry.Gas(in.Network)
		if err != nil {
			return 0, err
		}
		if limit, err = t.dayMost(ctx, gas); err != nil {
			return 0, err
		}
	}
	if most <= in.MaxCost {
		return in.MaxCost, nil
	}
	if outgoing.ParseID(in.ID).Kind == outgoing.OrderMerge { // nothing may be set aside for it yet
		merge := in
		merge.MaxCost = most
		if _, err := t.reserve(ctx, merge); err != nil {
			return 0, err
		}
	}
	switch err, full := t.raise(ctx, in.Tenant, in.ID, most, limit), (*storage.LevelError)(nil); {
	case errors.Is(err, ErrEnded), errors.As(err, &full):
		return in.MaxCost, nil
	case err != nil:
		return 0, err
	}
	return most, nil
}

// MayCost is the most that sending an order may cost, with the moves of coins that it needs:
// the share of its value that Config.MinSweep allows, in units of the network's gas
// currency. The value of a sweep is that of Amount; where it is 0, that of what its address holds of
// what was there at the last look. Of a sweep that is without what was spent on it before, and may have to be spent
// on one more gas transfer; of a gas transfer, without what else its sweep costs. A *WaitError says that there is no price. It is for
// outgoing.Config.MayCost.
func (t *Treasury) MayCost(ctx context.Context, in chain.Intent) (ledger.Amount, error) {
	c, err := t.cfg.Registry.Currency(in.Currency)
	if err != nil {
		return 0, err
	}
	gas, err := t.cfg.Registry.Gas(in.Network)
	if err != nil {
		return 0, err
	}
	amount, spent := in.Amount, ledger.Amount(0)
	if in.Purpose == chain.ForGas {
		_, sweep, err := sweepOf(in.ID)
		if err != nil {
			return 0, err
		}
		note, _, ok, err := SweepNotes.One(ctx, t.cfg.Store, storage.Network(string(in.Network)), sweep)
		if err != nil || !ok {
			return 0, err
		}
		if c, err = t.cfg.Registry.Currency(note.Currency); err != nil {
			return 0, err
		}
		if amount, err = t.there(ctx, c, note); err != nil {
			return 0, err
		}
		if spent, err = (note.Spent - min(note.GasCost, in.MaxCost)).Add(note.MaxCost); err != nil {
			return 0, err
		}
	}
	if in.Purpose == chain.ForSweep {
		note, _, _, err := SweepNotes.One(ctx, t.cfg.Store, storage.Network(string(in.Network)), in.ID)
		if err != nil {
			return 0, err
		}
		if amount, spent = in.Amount, note.Spent; amount == 0 {
			if amount, err = t.there(ctx, c, note); err != nil {
				return 0, err
			}
		}
		if !c.Native() && !t.sponsored(in) {
			fund, err := t.fundingCost(ctx, gas, in.From)
			if err != nil {
				return 0, err
			}
			if spent, err = spent.Add(fund); err != nil {
				return 0, err
			}
		}
	}
	worth, err := t.inGas(ctx, c, gas, amount)
	if err != nil {
		return 0, &WaitError{Reason: WaitNoPrice, Err: err}
	}
	allowed, err := worth.MulDiv(1, t.cfg.MinSweep, ledger.Down)
	return allowed - spent, err
}

// there is what the address of a sweep holds of what it held when it was last looked at: a fork may
// have taken it away since.
func (t *Treasury) there(ctx context.Context, c *chain.Currency, note SweepNote) (ledger.Amount, error) {
	if note.Amount == 0 {
		return 0, nil
	}
	held, err := t.holds(ctx, c, chain.Address(note.Address))
	if err != nil {
		return 0, &WaitError{Reason: outgoing.ReasonNode, Err: err}
	}
	return min(held, note.Amount), nil
}
