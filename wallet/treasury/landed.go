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
	"github.com/cryptopay-go/cryptopay/storage"
)

// mark tells the deposits of an ended sweep what became of them. More gas may have
// been on its way to it.
func (t *Treasury) mark(ctx context.Context, row storage.Row, s Sweep) error {
	if err := t.callOff(ctx, row.ID, s); err != nil {
		return err
	}
	p := storage.Network(s.Network)
	rows, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, p, s.Deposits...)
	if err != nil {
		return err
	}
	c := storage.Change{
		ID: fmt.Sprintf("%s/mark/%d", row.ID, row.Version), Partition: p,
		Put: []storage.Row{Sweeps.Row(row.ID, row.Version, time.Time{}, s)},
	}
	for _, r := range rows {
		d := incoming.Sightings.Value(r)
		if d.Forward != incoming.Forwarding && (d.Forward == incoming.ForwardNone || !s.replaces(row.ID)) {
			continue // mined again meanwhile: what it is now has a sweep of its own
		}
		d.Forward, d.ForwardTx = incoming.Deferred, ""
		if s.State == SweepDone {
			d.Forward, d.ForwardTx, d.ForwardFee = incoming.Forwarded, s.Tx, s.Reason
		}
		c.Put = append(c.Put, incoming.Sightings.Row(r.ID, r.Version, t.cfg.Now(), d))
	}
	err = storage.CommitOne(ctx, t.cfg.Store, c)
	if errors.Is(err, storage.ErrConflict) {
		return nil // still due under its lease: marked on a later step
	}
	return err
}

// HandleOutcome is the outgoing handler of every network: it books what a
// landed transaction cost, ends its reservation, and tells the intent's owner.
func (t *Treasury) HandleOutcome(ctx context.Context, o outgoing.Outcome) error {
	if err := t.cost(ctx, o); err != nil {
		return err
	}
	if slices.Contains([]outgoing.State{outgoing.Settled, outgoing.Failed, outgoing.Cancelled}, o.State) {
		if err := t.release(ctx, o); err != nil {
			return err
		}
	}
	switch o.Purpose {
	case chain.ForWithdrawal:
		return t.cfg.OnWithdrawal(ctx, o)
	case chain.ForSweep:
		return t.wake(ctx, o, o.Intent, 0)
	case chain.ForGas:
		var fundings int
		var sweep string
		if _, err := fmt.Sscanf(o.Intent, "gas/%d/%s", &fundings, &sweep); err != nil {
			return fmt.Errorf("treasury: gas intent %q: %w", o.Intent, err)
		}
		return t.wake(ctx, o, sweep, fundings)
	}
	return nil
}

// wake moves a sweep on by what became of its gas or of itself.
// Gas that is not its last, and told late, does not.
func (t *Treasury) wake(ctx context.Context, o outgoing.Outcome, sweep string, funding int) error {
	landed := o.State == outgoing.Executed || o.State == outgoing.Settled
	dead := o.State == outgoing.Failed || o.State == outgoing.Cancelled
	fee := ""
	if o.Purpose == chain.ForSweep && landed {
		fee = t.fee(ctx, o)
	}
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		s, row, ok, err := Sweeps.One(ctx, t.cfg.Store, storage.Network(o.Network), sweep)
		if err != nil || !ok {
			return storage.Change{}, err
		}
		var more []storage.Row
		switch {
		case o.Purpose == chain.ForGas && s.State == SweepFunding && s.Fundings == funding && (landed || dead):
			s.State = SweepNew
		case o.Purpose == chain.ForSweep && s.State != SweepDone && landed:
			s.State, s.Tx, s.Reason = SweepDone, o.Tx, fee
		case o.Purpose == chain.ForSweep && s.State != SweepDone && s.State != SweepDeferred && dead:
			s.State, s.Reason = SweepDeferred, "the sweep failed"
			if o.Reason == outgoing.ReasonRefused && timesReplaced(sweep) < maxReplaced {
				next := t.again(sweep, s)
				s.Reason += ": again as " + next.ID
				more = append(more, next)
			}
		case o.Purpose == chain.ForSweep && s.State == SweepDone && dead:
			again := t.again(sweep, s)
			s.State, s.Reason = SweepDeferred, "a fork took the sweep away: again as "+again.ID
			more = append(more, again)
		default:
			return storage.Change{}, nil
		}
		return storage.Change{
			ID: fmt.Sprintf("%s/%s", o.Intent, o.State), Partition: storage.Network(o.Network),
			Put: append(more, Sweeps.Row(sweep, row.Version, t.cfg.Now(), s)),
		}, nil
	})
}

// again is the sweep that takes the place of one whose own intent is at its end: it
// was refused, or had landed, as it was told, and died after that. It takes what the
// address holds by then, which may be nothing.
func (t *Treasury) again(id string, s Sweep) storage.Row {
	first, _, _ := strings.Cut(id, replacing)
	s.State, s.Fundings, s.Reason, s.Created = SweepNew, 0, "", t.cfg.Now()
	return Sweeps.Row(first+replacing+strconv.Itoa(timesReplaced(id)+1), 0, t.cfg.Now(), s)
}

// replacing stands in the id of a sweep that takes the place of a dead one.
const replacing = "/again/"

// maxReplaced is how often a sweep is made again that was refused: it costs gas each time.
const maxReplaced = 3

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
