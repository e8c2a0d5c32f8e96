package treasury

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Errors of what an operator asks for.
var (
	ErrNoSweep    = errors.New("treasury: no such sweep")
	ErrNotWaiting = errors.New("treasury: the sweep does not wait: nothing is to be tried again")
	ErrEnded      = errors.New("treasury: the gas reservation of this intent has ended")
)

// errOfPayout: a child has nothing set aside of its own yet.
var errOfPayout = errors.New("treasury: what this child may cost is set aside for its payout until that has ended: raise the bound of the payout")

// Raise sets more aside for an intent, so that its bound can be raised to most. It is made
// before the bound is raised: should the process die in between, too much is set aside
// until the intent ends, and never too little. What is large enough stays as it is, and an
// intent that nothing was set aside for, such as one that fills a nonce, needs nothing. What a
// child of a payout may cost is set aside for the payout until that has ended. The error is
// a *WaitError where the operator's coins do not bear it.
func (t *Treasury) Raise(ctx context.Context, tenant, intent string, most ledger.Amount) error {
	return t.raise(ctx, tenant, intent, most, math.MaxInt64) // an operator's word goes before the day's limit
}

// raise is Raise, where limit is the day's limit on the cost of forwarding in units of the
// gas currency. The error wraps a *storage.LevelError where it is used up.
func (t *Treasury) raise(ctx context.Context, tenant, intent string, most ledger.Amount, limit int64) error {
	p := storage.Tenant(tenant)
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		r, row, found, err := Reservations.One(ctx, t.cfg.Store, p, intent)
		if err == nil && !found && outgoing.ParseID(intent).Kind == outgoing.OrderChild {
			return storage.Change{}, &WaitError{Reason: outgoing.ReasonOperatorFunds, Err: errOfPayout}
		}
		if err != nil || !found {
			return storage.Change{}, err
		}
		if !r.Open {
			return storage.Change{}, ErrEnded
		}
		more := most - r.Amount
		if more <= 0 {
			return storage.Change{}, nil
		}
		g, gasRow, _, err := GasFloats.One(ctx, t.cfg.Store, p, r.Asset)
		if err != nil {
			return storage.Change{}, err
		}
		equity, err := t.equity(ctx, p, ledger.Asset(r.Asset))
		if err != nil {
			return storage.Change{}, err
		}
		if g.Reserved, err = g.Reserved.Add(more); err != nil || g.Reserved > equity {
			return storage.Change{}, &WaitError{Reason: outgoing.ReasonOperatorFunds, Err: ErrGasShort}
		}
		c := storage.Change{ID: fmt.Sprintf("raise/%s/%d", intent, row.Version), Partition: p}
		r.Amount = most
		if r.Counted > 0 {
			r.Counted += more
			c.Level = []storage.Level{{Name: dayName(r.Asset, r.Since), Delta: int64(more), Max: limit}}
		}
		c.Put = []storage.Row{
			Reservations.Row(intent, row.Version, time.Time{}, r),
			GasFloats.Row(r.Asset, gasRow.Version, time.Time{}, g),
		}
		return c, nil
	})
}

// Retry has a sweep that waits looked at now, whatever it waits for, and says how it waited
// and what it does now. by is written in the same Change; without it nothing is. The error
// wraps ErrNoSweep or ErrNotWaiting.
func (t *Treasury) Retry(ctx context.Context, n chain.Network, id string, by *outgoing.Recorded) (before, after string, err error) {
	p := storage.Network(string(n))
	var tenant string
	err = storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		s, row, ok, err := Sweeps.One(ctx, t.cfg.Store, p, id)
		switch {
		case err != nil:
			return storage.Change{}, err
		case !ok:
			return storage.Change{}, fmt.Errorf("%w: %s", ErrNoSweep, id)
		case s.State != SweepDeferred:
			return storage.Change{}, fmt.Errorf("%w: %s is %s", ErrNotWaiting, id, s.State)
		}
		j, err := t.job(ctx, row)
		if err != nil {
			return storage.Change{}, err
		}
		tenant, before, after = s.Tenant, j.note.Waiting+": "+s.Reason, "looked at now"
		if by == nil {
			return storage.Change{}, nil
		}
		kept := *by
		kept.Op.Tenant = tenant
		j.note.Next, j.note.DueBelow = time.Time{}, -1
		c := storage.Change{ID: "retry/" + by.ID, Partition: p}
		return c, errors.Join(t.write(&c, j, t.cfg.Now()), kept.Add(&c, before, after))
	})
	if err == nil && by != nil {
		t.blocked.clear(tenant, string(n))
	}
	return before, after, err
}
