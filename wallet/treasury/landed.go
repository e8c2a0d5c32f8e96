package treasury

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// mark tells the deposits of a landed sweep that they were forwarded, and takes the note
// of an ended one away. More gas may have been on its way to it. Deposits at which another
// sweep is about to look are left to that one.
func (t *Treasury) mark(ctx context.Context, j *job) error {
	if _, err := t.callOff(ctx, j.row.ID, j.s, j.note.Gas); err != nil {
		return err
	}
	if err := t.takeBack(ctx, j); err != nil {
		return err
	}
	p := storage.Network(j.s.Network)
	c := storage.Change{
		ID: fmt.Sprintf("%s/mark/%d", j.row.ID, j.row.Version), Partition: p,
		Put: []storage.Row{Sweeps.Row(j.row.ID, j.row.Version, time.Time{}, j.s)},
	}
	if j.was.Version > 0 {
		c.Drop = []storage.Row{j.was}
	}
	if j.s.State == SweepDone {
		others, err := t.sweepsAt(ctx, chain.Network(j.s.Network), spot{j.s.Address, j.s.Currency}, SweepNew)
		if err != nil {
			return err
		}
		rows, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, storage.Keys(p, j.s.Deposits...)...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			d := incoming.Sightings.Value(r)
			if looks(others, r.ID) {
				continue // it may still be there: the other one finds out who moved it
			}
			if d.Forward == incoming.ForwardNone || d.Forward == incoming.Forwarded && !j.s.replaces(j.row.ID) {
				continue // mined again meanwhile: what it is now has a sweep of its own
			}
			d.Forward, d.ForwardTx, d.ForwardFee = incoming.Forwarded, j.s.Tx, j.s.Reason
			c.Put = append(c.Put, incoming.Sightings.Row(r.ID, r.Version, t.cfg.Now(), d))
		}
	}
	err := storage.CommitOne(ctx, t.cfg.Store, c)
	if errors.Is(err, storage.ErrConflict) {
		return nil // still due under its lease: marked on a later step
	}
	return err
}

// looks reports whether one of these sweeps has a deposit and is about to look for it.
func looks(sweeps []storage.Row, deposit string) bool {
	return slices.ContainsFunc(sweeps, func(row storage.Row) bool {
		s := Sweeps.Value(row)
		return s.State == SweepNew && slices.Contains(s.Deposits, deposit)
	})
}

// takeBack ends the order of a sweep that ended without it, as another one moved its
// deposits: what was set aside for it is given back.
func (t *Treasury) takeBack(ctx context.Context, j *job) error {
	r, _, ok, err := Reservations.One(ctx, t.cfg.Store, storage.Tenant(j.s.Tenant), j.row.ID)
	if err != nil || !ok || !r.Open {
		return err
	}
	n := chain.Network(j.s.Network)
	intent, _, ok, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(j.s.Network), j.row.ID)
	if err != nil || ok && intent.State != outgoing.Waiting && intent.State != outgoing.Queued {
		return err // it is on its way
	}
	if !ok { // whoever set it aside may hand it over later: called back, its id has no effect
		in, err := t.order(ctx, j)
		if err != nil {
			return err
		}
		if err := t.Submit(ctx, in); err != nil && !errors.Is(err, outgoing.ErrDiffers) {
			return err
		}
	}
	_, err = t.Cancel(ctx, n, j.row.ID)
	return err
}

// HandleOutcome is the outgoing handler of every network: it books what a
// landed transaction cost, ends its reservation, and tells the intent's owner.
func (t *Treasury) HandleOutcome(ctx context.Context, o outgoing.Outcome) error {
	if err := t.cost(ctx, o); err != nil {
		return err
	}
	if slices.Contains([]outgoing.State{outgoing.Final, outgoing.Failed, outgoing.Cancelled}, o.State) {
		if err := t.release(ctx, o); err != nil {
			return err
		}
	}
	if len(o.Undone) > 0 { // of one that has ended it does nothing: the reservation has, too
		if err := t.setAsideAgain(ctx, o); err != nil {
			return err
		}
	}
	switch o.Purpose {
	case chain.ForWithdrawal:
		return t.cfg.OnWithdrawal(ctx, o)
	case chain.ForSweep:
		return t.wake(ctx, o, o.Intent, 0)
	case chain.ForGas:
		fundings, sweep, err := sweepOf(o.Intent)
		if err != nil {
			return err
		}
		if err := t.wake(ctx, o, sweep, fundings); err != nil {
			return err
		}
		return t.late(ctx, o, sweep)
	}
	return nil
}

// late looks at a gas transfer that waits for coins after its sweep has ended.
func (t *Treasury) late(ctx context.Context, o outgoing.Outcome, sweep string) error {
	if o.State != outgoing.Signed || orderWaits(o.Purpose, o.State, o.Reason) != WaitGasShort {
		return nil
	}
	s, _, ok, err := Sweeps.One(ctx, t.cfg.Store, storage.Network(o.Network), sweep)
	if err != nil || !ok || s.State != SweepDone {
		return err
	}
	return t.reclaim(ctx, chain.Network(o.Network), o.Intent)
}

// wake moves a sweep on by what became of its gas or of itself.
// Gas that is not its last, and told late, does not.
func (t *Treasury) wake(ctx context.Context, o outgoing.Outcome, sweep string, funding int) error {
	landed := o.State == outgoing.Executed || o.State == outgoing.Final
	dead := o.State == outgoing.Failed || o.State == outgoing.Cancelled
	fee := ""
	if o.Purpose == chain.ForSweep && landed {
		fee = t.fee(ctx, o)
	}
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		_, row, ok, err := Sweeps.One(ctx, t.cfg.Store, storage.Network(o.Network), sweep)
		if err == nil && !ok {
			t.lost(ctx, storage.Network(o.Network), o.Tenant, sweep)
		}
		if err != nil || !ok {
			return storage.Change{}, err
		}
		j, err := t.job(ctx, row)
		if err != nil {
			return storage.Change{}, err
		}
		id, due := fmt.Sprintf("%s/%s", o.Intent, o.State), t.cfg.Now()
		var next *job // that takes its place
		var then time.Time
		switch s := &j.s; {
		case o.Purpose == chain.ForGas && s.State == SweepFunding && s.Fundings == funding && (landed || dead):
			if err := s.to(SweepNew, onGas); err != nil {
				return storage.Change{}, err
			}
			j.note.settleGas(o, landed)
		case o.Purpose == chain.ForGas && s.State == SweepFunding && s.Fundings == funding && orderWaits(o.Purpose, o.State, o.Reason) == WaitGasShort:
			s.Reason = string(o.Reason)
			j.note.waits(WaitGasShort, t.cfg.Now())
			id, due = fmt.Sprintf("%s/short/%d", o.Intent, row.Version), row.Due
		case o.Purpose == chain.ForGas && s.State == SweepDeferred && landed:
			j.note.DueBelow = -1 // a fork had taken the gas away, and it is there again
			if s.Fundings == funding {
				j.note.settleGas(o, landed)
			}
			id = fmt.Sprintf("%s/again/%d", id, row.Version)
		case o.Purpose == chain.ForGas && (s.State == SweepNew || s.State == SweepMoving) && s.Fundings == funding && o.Cost > 0 && j.note.GasCost > 0:
			j.note.settleGas(o, landed) // what it cost was not known when it landed
			due = row.Due
		case o.Purpose == chain.ForSweep && s.State != SweepDone && landed:
			if next, then, err = t.rest(ctx, j, o); err != nil {
				return storage.Change{}, err
			}
			if err := s.to(SweepDone, onLanded); err != nil {
				return storage.Change{}, err
			}
			s.Tx, s.Reason = o.Tx, fee
		case o.Purpose == chain.ForSweep && s.State == SweepDone && o.State == outgoing.Signed && o.Reason == outgoing.ReasonReorged:
			undone, err := t.undone(ctx, j)
			if err != nil || !undone {
				return storage.Change{}, err
			}
			if err := s.to(SweepMoving, onReopen); err != nil {
				return storage.Change{}, err
			}
			s.Reason, j.note.Amount = string(o.Reason), o.Amount
			j.note.waits(string(o.Reason), t.cfg.Now())
			id, due = fmt.Sprintf("%s/reopened/%d", o.Intent, row.Version), due.Add(10*t.cfg.Lease) // its gas is sent again, too
		case s.State == SweepDone && o.State == outgoing.Cancelled: // another one moved its deposits
			return storage.Change{}, nil
		case o.Purpose == chain.ForSweep && s.State != SweepReplaced && dead:
			if next, then, err = t.again(ctx, j, o); err != nil {
				return storage.Change{}, err
			}
		default:
			return storage.Change{}, nil
		}
		c := storage.Change{ID: id, Partition: storage.Network(o.Network)}
		if next != nil {
			if err := t.write(&c, next, then); err != nil {
				return c, err
			}
		}
		return c, t.write(&c, j, due)
	})
}

// undone reports whether the transaction of a sweep that had settled is to land again, and
// no other sweep uses the address. One that had not settled lands again soon.
func (t *Treasury) undone(ctx context.Context, j *job) (bool, error) {
	v, _, ok, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(j.s.Network), j.row.ID)
	if err != nil || !ok || v.State != outgoing.Signed || v.Reserved > 0 && len(v.Undone) == 0 {
		return false, err
	}
	others, err := t.sweepsAt(ctx, chain.Network(j.s.Network), spot{j.s.Address, j.s.Currency}, SweepFunding, SweepMoving, SweepNew)
	return !slices.ContainsFunc(others, func(r storage.Row) bool { return r.ID != j.row.ID && Sweeps.Value(r).holds() }), err
}

// settleGas corrects what was noted of a gas transfer by what became of it. What it cost
// above the bound that was noted is no cost of the coins: it freed a nonce for those behind
// it (see Grant), whatever the coins are worth. Held against them it would keep them there
// beside their gas for ever.
func (n *SweepNote) settleGas(o outgoing.Outcome, landed bool) {
	if !landed {
		n.Sent -= n.Gas
	}
	n.Gas = 0
	if o.Cost > 0 || !landed {
		n.Spent += min(o.Cost, n.GasCost) - n.GasCost
		n.GasCost = 0
	}
}

// again ends a sweep whose own transaction is at its end: it failed, was called back, or
// died after it had landed. The sweep that takes its place takes what the address holds
// by then, which may be nothing. After a failure it waits, longer each time.
func (t *Treasury) again(ctx context.Context, j *job, o outgoing.Outcome) (next *job, due time.Time, err error) {
	next, err = t.anew(ctx, j, o)
	if err != nil {
		return nil, due, err
	}
	due = next.s.Created
	begins := SweepNew
	switch {
	case j.s.State == SweepDone:
		next.note.Amount = 0 // read at the first look
		j.s.Reason = "a fork took the sweep away"
	case o.State == outgoing.Failed:
		j.s.Reason = "the transaction failed"
		begins, next.s.Reason = SweepDeferred, "the last transaction failed: "+string(o.Reason)
		next.note.Tries++
		due = due.Add(tryPause(next.note.Tries))
		next.note.Waiting, next.note.Since, next.note.Next, next.note.DueBelow = WaitRefused, next.s.Created, due, -1
	}
	if err := errors.Join(j.s.to(SweepReplaced, onDied), next.s.to(begins, onPlan)); err != nil {
		return nil, due, err
	}
	j.s.Reason += ": again as " + next.row.ID
	return next, due, nil
}

// rest looks at what a landed sweep moved. Where half of some deposit may still be there,
// another sweep looks at the address: the node from which the transaction was built may
// have been behind the deposit's block.
func (t *Treasury) rest(ctx context.Context, j *job, o outgoing.Outcome) (next *job, due time.Time, err error) {
	rows, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, storage.Keys(storage.Network(j.s.Network), j.s.Deposits...)...)
	if err != nil {
		return nil, due, err
	}
	rest, least := -o.Amount, ledger.Amount(0)
	for _, r := range rows {
		d := incoming.Sightings.Value(r)
		if d.State == incoming.Gone {
			continue
		}
		if rest, err = rest.Add(d.Amount); err != nil {
			return nil, due, err
		}
		if least == 0 || d.Amount < least {
			least = d.Amount
		}
	}
	if rest <= least/2 {
		return nil, due, nil
	}
	next, err = t.anew(ctx, j, o)
	if err == nil {
		err = next.s.to(SweepNew, onPlan)
	}
	if err != nil {
		return nil, due, err
	}
	next.note.Amount = 0 // read at the first look
	return next, next.s.Created, nil
}

// anew is a sweep of the same deposits that follows one whose transaction is at its end. It
// has no state yet.
func (t *Treasury) anew(ctx context.Context, j *job, o outgoing.Outcome) (*job, error) {
	first, _, _ := strings.Cut(j.row.ID, replacing)
	free, err := t.freeID(ctx, chain.Network(j.s.Network), first)
	if err != nil {
		return nil, err
	}
	next := &job{s: j.s, note: j.note, told: SweepNote{Alerted: j.note.Alerted}}
	next.row.ID = free
	next.s.State, next.s.Fundings, next.s.Reason, next.s.Tx, next.s.Created = "", 0, "", "", t.cfg.Now()
	next.note.Sent, next.note.MaxCost = max(0, next.note.Sent-o.Cost), 0
	next.note.Spent, err = next.note.Spent.Add(o.Cost)
	return next, err
}

// replacing stands in the id of a sweep that takes the place of a dead one.
const replacing = "/again/"

func timesReplaced(id string) int {
	_, n, _ := strings.Cut(id, replacing)
	times, _ := strconv.Atoi(n)
	return times
}

// replaces says that the sweep has landed in the place of another.
func (s *Sweep) replaces(id string) bool {
	return s.State == SweepDone && timesReplaced(id) > 0
}

// fee is what a landed transaction took, in coins of the network's own with 8
// places, "" where the node cannot say. It is only shown: what is booked is told
// when it is final.
func (t *Treasury) fee(ctx context.Context, o outgoing.Outcome) string {
	cost := o.Cost
	if cost == 0 {
		said, err := t.cfg.Clients[chain.Network(o.Network)].Status(ctx, chain.Attempt{Tx: o.Tx})
		if err != nil || len(said) != 1 {
			return ""
		}
		cost = said[0].Cost
	}
	gas, err := t.cfg.Registry.Gas(chain.Network(o.Network))
	if err != nil || cost == 0 {
		return ""
	}
	return cost.Format(gas.Scale, shownPlaces)
}

// shownPlaces are those of amounts in events.
const shownPlaces = 8
