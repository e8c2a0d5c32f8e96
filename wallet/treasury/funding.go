package treasury

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// The most gas transfers that one sweep may ask for.
const maxFundings = 3

// unstick looks after a sweep that was taken over long ago. One that is not signed is
// called back where it is not worth its cost any more. Where the price of gas rose, or a
// fork or another transaction of the address took the gas away, the address gets more.
// done says that the sweep goes another way now, else waiting is what it waits for.
func (t *Treasury) unstick(ctx context.Context, j *job, in chain.Intent) (waiting string, done bool, err error) {
	intent, _, ok, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(j.s.Network), j.row.ID)
	if err != nil || !ok || intent.State != outgoing.Waiting && intent.State != outgoing.Signed {
		return "", false, err
	}
	j.s.Reason, waiting = string(intent.Reason), orderWaits(in.Purpose, intent.State, intent.Reason)
	j.note.MaxCost = max(j.note.MaxCost, intent.MaxCost) // may have been raised: see Grant
	c, err := t.cfg.Registry.Currency(j.s.Currency)
	if err != nil {
		return "", false, err
	}
	if j.note.Amount, err = t.holds(ctx, c, in.From); err != nil {
		return "", false, err
	}
	v, err := t.weigh(ctx, j, c, in)
	switch {
	case err != nil:
		return "", false, err
	case intent.State == outgoing.Waiting && (v.waiting == WaitBelowCost || intent.Reason == outgoing.ReasonFeeTooHigh):
		if err := t.reached(ctx, j.s); err != nil {
			return "", false, err
		}
		_, err = t.Cancel(ctx, in.Network, j.row.ID) // the outcome wakes it
		return "", false, err
	case v.waiting != "":
		if j.s.Reason = v.waiting; v.waiting == WaitGasStays { // what it may do again in time
			waiting = v.waiting
		}
		return waiting, false, nil
	case v.gas == 0:
		return waiting, false, nil
	}
	if err := j.s.to(SweepFunding, onFund); err != nil {
		return "", false, err
	}
	j.s.Fundings, j.s.Reason = j.s.Fundings+1, "more gas is needed"
	if err := j.note.fund(v.gas, v.fund); err != nil {
		return "", false, err
	}
	return "", true, t.put(ctx, j, t.cfg.Now())
}

// orderWaits is what a sweep waits for whose order, or that of its gas, was handed over:
// "" = it is on its way.
func orderWaits(p chain.Purpose, s outgoing.State, r outgoing.Reason) string {
	switch {
	case s != outgoing.Waiting && s != outgoing.Signed:
		return ""
	case r == outgoing.ReasonOperatorFunds, r == outgoing.ReasonHotBalance && p == chain.ForGas:
		return WaitGasShort
	case r == outgoing.ReasonFeeTooHigh:
		return WaitBelowCost
	}
	return string(r)
}

// missing is how much gas the address lacks for a sweep at the present fee, and whether
// the sweep is signed.
func (t *Treasury) missing(ctx context.Context, c, gas *chain.Currency, in chain.Intent, fee *chain.Fee) (lack ledger.Amount, signed bool, err error) {
	if c.Native() || t.sponsored(in) {
		return 0, false, nil
	}
	have, err := t.holds(ctx, gas, in.From)
	if err != nil {
		return 0, false, err
	}
	need, signed, err := t.needs(ctx, in, fee)
	return max(0, need-have), signed, err
}

// errUnsettled says that a fork undid a final deposit of a sweep. The sweep stays as it is.
var errUnsettled = errors.New("treasury: a deposit is not final any more")

// reached is nil where the node has the blocks that make the sweep's deposits final, and its
// head is on the chain that they were read from. The error wraps errUnsettled where the chain
// has yet to make them so again, and chain.ErrBehind where the node is to blame.
func (t *Treasury) reached(ctx context.Context, s Sweep) error {
	rows, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, storage.Keys(storage.Network(s.Network), s.Deposits...)...)
	if err != nil {
		return err
	}
	tip, err := t.cfg.Clients[chain.Network(s.Network)].Tip(ctx)
	if err != nil {
		return err
	}
	var undone error
	for _, r := range rows {
		d := incoming.Sightings.Value(r)
		switch {
		case tip.Head.Height >= d.FinalAt:
		case d.State == incoming.Seen || d.State == incoming.Included: // these are final, or gone, when the chain has grown
			undone = fmt.Errorf("%w: what %s holds is not known until block %d: a fork undid deposit %s", errUnsettled, s.Address, d.FinalAt, r.ID)
		default:
			return fmt.Errorf("treasury: what %s holds is not known yet: %w: its block is %d, and deposit %s is final at %d",
				s.Address, chain.ErrBehind, tip.Head.Height, r.ID, d.FinalAt)
		}
	}
	if undone != nil {
		return undone
	}
	cur, _, _, err := incoming.Cursors.One(ctx, t.cfg.Store, storage.Network(s.Network), incoming.CursorID)
	if err != nil {
		return err
	}
	left, err := cur.Trail.Leaves(tip.Head)
	if left {
		err = fmt.Errorf("treasury: what %s holds is not known yet: %w: its block %d %s is on a branch that was left",
			s.Address, chain.ErrBehind, tip.Head.Height, tip.Head.Hash)
	}
	return err
}

// still is nil where a sweep's address holds what was read before, and the node had the
// blocks that make its deposits final before it said so. Else what was read may be of an
// older state: the node was behind, or this process slept.
func (t *Treasury) still(ctx context.Context, j *job, c *chain.Currency) error {
	if err := t.reached(ctx, j.s); err != nil {
		return err
	}
	held, err := t.holds(ctx, c, chain.Address(j.s.Address))
	if err == nil && held != j.note.Amount {
		err = fmt.Errorf("treasury: what %s holds of %s has just changed: %w", j.s.Address, c.Code, chain.ErrBehind)
	}
	return err
}

// least is what a sender must have at a fee.
func least(fee *chain.Fee) ledger.Amount { return cmp.Or(fee.Least, fee.Max) }

// needs is what the address must hold for the sweep to land: the least at the fee of now,
// or where it is signed, what nodes demand for what was signed, however low the
// price has fallen meanwhile, and for its replacement where the price rose.
func (t *Treasury) needs(ctx context.Context, in chain.Intent, fee *chain.Fee) (need ledger.Amount, signed bool, err error) {
	v, _, ok, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(string(in.Network)), in.ID)
	if err != nil || !ok || v.State != outgoing.Signed {
		return least(fee), false, err
	}
	rows, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: outgoing.Attempts.Table, Partition: storage.Network(string(in.Network)), Limit: 100,
		Where: []storage.Cond{
			{Column: "intent", Op: storage.Eq, Value: in.ID},
			{Column: "fate", Op: storage.Eq, Value: outgoing.Open},
		},
	})
	if err != nil {
		return 0, false, err
	}
	raised, costs := fee.Max, make([]ledger.Amount, 0, len(rows))
	for _, r := range rows {
		costs = append(costs, outgoing.Attempts.Value(r).MaxCost)
		if raised, err = raised.MulDiv(9, 8, ledger.Up); err != nil { // what nodes ask of each replacement
			return 0, false, err
		}
	}
	slices.Sort(costs)
	for _, cost := range costs {
		if cost >= least(fee) {
			return cost, true, nil // any that is dear enough will do
		}
	}
	if len(costs) > 0 && raised > v.MaxCost {
		return costs[0], true, nil // it will not be replaced: it waits for the price to fall
	}
	return raised, true, nil
}

var (
	errEnough  = errors.New("treasury: the address has enough gas by now")
	errNothing = errors.New("treasury: the address holds nothing to move any more")
)

// gas is the intent that sends the missing gas to the deposit address, as it was decided.
func (t *Treasury) gas(ctx context.Context, j *job, sweep chain.Intent) (in chain.Intent, err error) {
	c, err := t.cfg.Registry.Currency(j.s.Currency)
	if err != nil {
		return in, err
	}
	client, gas, err := t.gasOf(c)
	if err != nil {
		return in, err
	}
	held, err := t.holds(ctx, c, sweep.From)
	if err != nil {
		return in, err
	}
	if held < smallest(c) {
		if err := t.reached(ctx, j.s); err != nil {
			return in, err
		}
		return in, errNothing
	}
	fee, err := client.EstimateFee(ctx, sweep)
	if err != nil {
		return in, err
	}
	lack, _, err := t.missing(ctx, c, gas, sweep, &fee)
	if err != nil {
		return in, err
	}
	if lack == 0 {
		return in, errEnough
	}
	amount := j.note.Gas
	if amount == 0 { // decided by an earlier version
		amount = lack
	}
	return chain.Intent{
		ID: gasID(j.s.Fundings, j.row.ID), Purpose: chain.ForGas, Tenant: j.s.Tenant, Network: sweep.Network,
		Currency: gas.Code, To: sweep.From, Amount: amount, Confirmations: 1, MaxCost: j.note.GasCost,
	}, nil
}

// waits notes for what a sweep waits that was handed over; "" = it is on its way.
func (n *SweepNote) waits(reason string, now time.Time) {
	if n.Waiting == reason {
		return
	}
	if n.Waiting, n.Since, n.Alerted = reason, now, ""; reason == "" {
		n.Since = time.Time{}
	}
}

// GasFor names the currency of the sweep that a gas transfer is for, "" where there is no
// such sweep: for outgoing.Config.GasFor.
func (t *Treasury) GasFor(ctx context.Context, in chain.Intent) (string, error) {
	_, sweep, err := sweepOf(in.ID)
	if err != nil {
		return "", nil //nolint:nilerr // no gas transfer of a sweep
	}
	s, _, _, err := Sweeps.One(ctx, t.cfg.Store, storage.Network(string(in.Network)), sweep)
	return s.Currency, err
}

// gasID is the intent of a sweep's gas transfer of that number, from 1.
func gasID(funding int, sweep string) string {
	return outgoing.ID{Kind: outgoing.OrderGas, For: sweep, Number: funding}.String()
}

// sweepOf reads a gasID.
func sweepOf(intent string) (funding int, sweep string, err error) {
	id := outgoing.ParseID(intent)
	if id.Kind != outgoing.OrderGas {
		return 0, "", fmt.Errorf("treasury: %q is no gas transfer of a sweep", intent)
	}
	return id.Number, id.For, nil
}

// callOff ends the gas transfers of a sweep that are needed no more, amount being that of
// the last one. Whoever set the cost of one aside may have died before it was handed over,
// or sleeps and does so later: once it was handed over and called back, its id has no
// effect any more, and what was set aside is given back as ever. Where it is being sent
// already, it is. One more than is counted is looked at, as one that could not be paid for is
// counted no more. undone says that the last one was not sent and never will be.
func (t *Treasury) callOff(ctx context.Context, id string, s Sweep, amount ledger.Amount) (undone bool, err error) {
	ids := make([]string, s.Fundings+1)
	for i := range ids {
		ids[i] = gasID(i+1, id)
	}
	rows, err := t.cfg.Store.Rows(ctx, Reservations.Table, storage.Keys(storage.Tenant(s.Tenant), ids...)...)
	if err != nil {
		return false, err
	}
	set := make(map[string]bool, len(rows)) // what it costs was set aside at some time
	open := make(map[string]bool, len(rows))
	for _, row := range rows {
		set[row.ID], open[row.ID] = true, Reservations.Value(row).Open
	}
	n := chain.Network(s.Network)
	gas, err := t.cfg.Registry.Gas(n)
	if err != nil {
		return false, err
	}
	for i, id := range ids {
		last := i == s.Fundings-1
		if set[id] && !open[id] || i == s.Fundings && !set[id] {
			continue
		}
		counted := ledger.Amount(1) // what an earlier one counted towards the day's limit is not known
		if last {
			counted = max(1, amount)
		}
		in := chain.Intent{
			ID: id, Purpose: chain.ForGas, Tenant: s.Tenant, Network: n,
			Currency: gas.Code, To: chain.Address(s.Address), Amount: counted, Confirmations: 1,
		}
		off, err := t.void(ctx, in, set[id])
		if err != nil {
			return false, err
		}
		undone = undone || last && off
		if s.State != SweepDone || off {
			continue
		}
		if err := t.reclaim(ctx, n, id); err != nil {
			return false, err
		}
	}
	return undone, nil
}

// void hands an order over and calls it back: from then on its id has no effect, and what
// was set aside for it is given back. set says that something was. Where nothing was, a
// reservation that has ended is written, as whoever was about to set it aside comes too
// late. Its outcome does not do that alone: it may have been told before something was set
// aside. off says that the order was not sent and never will be.
func (t *Treasury) void(ctx context.Context, in chain.Intent, set bool) (off bool, err error) {
	if in, err = t.sentBy(ctx, in); err != nil {
		return false, err
	}
	if in.MaxCost = max(1, in.MaxCost); set {
		if in.MaxCost, err = t.reserve(ctx, in); err != nil {
			return false, err
		}
	}
	if err := t.cfg.Senders[in.Network].Submit(ctx, in); err != nil && !errors.Is(err, outgoing.ErrDiffers) {
		return false, err
	}
	if off, err = t.Cancel(ctx, in.Network, in.ID); err != nil || !off {
		return off, err
	}
	return off, t.endCalledOff(ctx, in)
}

// endCalledOff ends the reservation of an order that was called back, also before anything was
// set aside for it.
func (t *Treasury) endCalledOff(ctx context.Context, in chain.Intent) error {
	p := storage.Tenant(in.Tenant)
	gas, err := t.cfg.Registry.Gas(in.Network)
	if err != nil {
		return err
	}
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		r, row, found, err := Reservations.One(ctx, t.cfg.Store, p, in.ID)
		if err != nil || found && !r.Open {
			return storage.Change{}, err
		}
		c := storage.Change{ID: fmt.Sprintf("called-off/%s/%d", in.ID, row.Version), Partition: p}
		if !found {
			c.Put = []storage.Row{Reservations.Row(in.ID, 0, time.Time{}, Reservation{Asset: gas.Code, Since: t.cfg.Now()})}
			return c, nil
		}
		float, err := t.freed(ctx, p, r)
		c.ID = fmt.Sprintf("called-off/%s/%d/%d", in.ID, row.Version, float.Version)
		in.Amount = r.Counted // nothing was sent: all of it
		c.Level, r.Open = uncounted(in, r, 0), false
		c.Put = []storage.Row{float, Reservations.Row(in.ID, row.Version, row.Due, r)}
		return c, err
	})
}

// reclaim has the nonce of a signed gas transfer that nobody needs any more go back to
// ourselves where it waits for coins: they would be asked of an operator for nothing.
func (t *Treasury) reclaim(ctx context.Context, n chain.Network, id string) error {
	v, _, ok, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(string(n)), id)
	if err != nil || !ok || v.State != outgoing.Signed || orderWaits(v.Purpose, v.State, v.Reason) != WaitGasShort {
		return err
	}
	_, _, err = t.cfg.Senders[n].CancelTransaction(ctx, id, &outgoing.Recorded{
		ID: "reclaim/" + id, Op: outgoing.Operation{
			Kind: outgoing.OpCancel, By: "treasury", Reason: "its sweep went without it", Network: n, Tenant: v.Tenant, Object: id, At: t.cfg.Now(),
		},
		Part: storage.Network(string(n)), Audit: func(c *storage.Change) error { return outgoing.Audited(ctx, t.cfg.Store, t.cfg.Audit, c) },
	})
	if errors.Is(err, outgoing.ErrHelp) {
		return nil // it is in a block, or on its way back
	}
	return err
}

// Held reads what an address holds on chain, in whole coins.
func (t *Treasury) Held(ctx context.Context, n chain.Network, currency string, a chain.Address) (decimal.Decimal, error) {
	b, ok := t.cfg.Clients[n].(chain.Balancer)
	if !ok {
		return decimal.Zero, fmt.Errorf("treasury: the client of %s cannot read balances", n)
	}
	return b.Balance(ctx, currency, a)
}
