package outgoing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
)

// What a transaction cost is booked when it has settled, and what a move of our own lost on its way. Where a deep
// reorg undoes that, the owner takes both back and sets aside what the next landing may cost, before anything dearer is signed. IntentRow.Undone lists
// all landings that were undone, so that each is taken back once, whichever outcome tells of it.

// undo has the owner take back what a landing cost and lost, and set aside what the next one may cost.
func (j *claimedIntent) undo(was Landing, atts []*attempt) {
	for _, r := range j.members {
		if r.v.State == Signed && r.v.Tx == j.v.Tx {
			r.v.Undone = append(slices.Clone(r.v.Undone), Landing{Tx: j.v.Tx}) // its cost is the leader's
		}
	}
	j.v.Undone = append(slices.Clone(j.v.Undone), was)
	for _, a := range atts {
		if a.v.State == Open {
			j.v.Reserved = max(j.v.Reserved, a.v.MaxCost)
		}
	}
}

// undoLate is undo of an intent that was reopened before every process knew what to do about its cost. done
// is false where there is nothing to be taken back.
func (n *Sender) undoLate(ctx context.Context, j *claimedIntent, atts []*attempt) (done bool, err error) {
	at := slices.IndexFunc(atts, func(a *attempt) bool { return a.v.State == Open && a.v.Cost > 0 })
	if !j.booked() || at < 0 {
		return false, nil
	}
	if knows, err := n.knows(ctx, AbilityUndone); err != nil || !knows {
		return false, err
	}
	a := atts[at]
	s := transition{op: onUndo, due: n.Now().Add(n.Poll)}
	if err := n.bindAgain(ctx, j, atts, &s); err != nil {
		return false, err
	}
	j.undo(Landing{Tx: j.v.Tx, Cost: a.v.Cost}, atts)
	a.v.Cost = 0
	s.with = append(s.with, Attempts.Row(a.tx, a.version, time.Time{}, a.v))
	s.outcome = n.outcome(j)
	s.outcome.Amount = j.paid(&a.v)
	return true, n.commit(ctx, j, s)
}

// landedBefore is what was told of the attempt with which an intent had settled: what it cost, and how much less
// than was ordered it brought.
func (n *Sender) landedBefore(ctx context.Context, j *claimedIntent, landed *attempt) (Landing, error) {
	was := Landing{Tx: j.v.Tx, Cost: landed.v.Cost}
	if was.Cost != 0 && j.v.Reason != ReasonDeliveredLess {
		return was, nil
	}
	o, _, _, err := Outcomes.One(ctx, n.Store, n.part, j.id)
	if err != nil || o.CostTx != j.v.Tx {
		return was, err
	}
	if was.Cost == 0 { // an earlier version stored it here alone
		was.Cost = o.Cost
	}
	if o.State == Final && o.Reason == ReasonDeliveredLess {
		was.Missing = j.paid(&landed.v) - o.Amount
	}
	return was, nil
}

// booked reports whether what the transaction of a reorged intent costs is booked still: it was reopened
// before every process knew how to take that back. The same bytes are sent again, and nothing dearer in their place.
func (j *claimedIntent) booked() bool { return j.v.Reason == ReasonReorged && j.v.Reserved == 0 }

// worth returns an error if a transaction that moves all of an address costs too much of what it moves.
// A fork that has undone the first one may have taken a part of that.
func (n *Sender) worth(ctx context.Context, j *claimedIntent, d *candidate) error {
	if len(j.v.Undone) == 0 || !d.intent.All || d.intent.Purpose != chain.ForSweep || n.MayCost == nil {
		return nil
	}
	moves := d.intent
	for _, o := range d.built.Outputs {
		if !o.Change {
			moves.Amount = o.Amount
		}
	}
	most, err := n.mayCost(ctx, moves)
	if err == nil && d.built.MaxCost > most {
		err = fmt.Errorf("%w: it costs up to %d to move what a fork has left there, and %d are allowed", chain.ErrTooDear, d.built.MaxCost, most)
	}
	return err
}

// undoPending reports whether the owner of an intent that was undone has not taken back yet what it cost: until
// then nothing is set aside for a dearer transaction.
func (n *Sender) undoPending(ctx context.Context, j *claimedIntent) (bool, error) {
	if len(j.v.Undone) == 0 {
		return false, nil
	}
	_, row, _, err := Outcomes.One(ctx, n.Store, n.part, j.id)
	return err == nil && !row.Due.IsZero(), err
}
