package outgoing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Where coins are outputs, one transaction can pay a batch of intents that are due at the
// same moment. One of them leads the batch: the transaction is an attempt of the leader. From
// the Change that reserves its inputs on, each Change that moves the leader moves every
// member, until the transaction is final. If the leader ends in any other way, each member
// starts again alone. An intent joins a batch once: if a node or the signer refuses the whole,
// only the faulty member fails the next time.

// BatchRow names the leader of a member's batch, under the id of the member.
type BatchRow struct {
	Leader string `db:"carrier"`
}

// Batches is the table of members, in network partitions. The leader has no row.
var Batches = storage.NewTable[BatchRow]("rides", storage.Index("carrier"))

// selectMembers lists the intents claimed with j that its transaction can pay, too, and the
// guards that must hold for that. The smallest come first: the largest are left out first.
func (n *Sender) selectMembers(ctx context.Context, j *claimedIntent) (out []*claimedIntent, guards []storage.Guard) {
	if !n.canBatch(j) || len(j.beside) < 2 || !n.able(ctx, AbilityTogether) {
		return nil, nil
	}
	for _, o := range j.beside {
		if len(out) >= min(n.MaxPayments, mostPayments)-1 {
			break
		}
		if o == j || !n.canBatch(o) || o.v.Tenant != j.v.Tenant || o.v.Currency != j.v.Currency ||
			o.v.From != j.v.From || o.v.FromKey != j.v.FromKey || o.v.Confirmations != j.v.Confirmations {
			continue
		}
		if g, err := n.allowed(ctx, o.intent()); err == nil {
			out, guards = append(out, o), union(guards, g)
		}
	}
	slices.SortStableFunc(out, func(a, b *claimedIntent) int { return cmp.Compare(a.v.Amount, b.v.Amount) })
	return out, guards
}

// Ability is something that a process of an older version would spoil: it stays off until
// every process on the store knows it.
type Ability string

// The abilities.
const (
	AbilityTogether Ability = "withdrawals_together" // one transaction pays several withdrawals
	AbilityChildren Ability = "children"             // a child pays for a transaction that nodes keep
	AbilityMerges   Ability = "merges"               // coins are merged for a payout that needs more of them than one transaction holds
	AbilityEarly    Ability = "early_merges"         // coins are merged before a payout needs them
	AbilityUnmined  Ability = "unmined_executed"     // that no block has a payment which was completed without confirmations is shown
	AbilityUndone   Ability = "undone_landings"      // what a landing cost is taken back where a deep reorg undoes it
)

// knows reports whether every process knows an ability.
func (n *Sender) knows(ctx context.Context, a Ability) (bool, error) {
	if n.Able == nil {
		return true, nil
	}
	return n.Able(ctx, a)
}

// able is knows. Without an answer the ability is off.
func (n *Sender) able(ctx context.Context, a Ability) bool {
	ok, err := n.knows(ctx, a)
	if err != nil {
		n.Log.Warn("ability_unknown", slog.String("ability", string(a)), slog.Any("error", err))
	}
	return ok && err == nil
}

// mostPayments is what one transaction pays at most, whatever MaxPayments says: a
// network relays 100,000 bytes, and a Change writes three rows for each.
const mostPayments = 500

// allAllowed asks whether a leader and its members may be sent now.
func (n *Sender) allAllowed(ctx context.Context, in chain.Intent, members []*claimedIntent) ([]storage.Guard, error) {
	guards, err := n.allowed(ctx, in)
	for _, r := range members {
		if err != nil {
			break
		}
		var theirs []storage.Guard
		theirs, err = n.allowed(ctx, r.intent())
		guards = union(guards, theirs)
	}
	return guards, err
}

func union(a, b []storage.Guard) []storage.Guard {
	for i := range b {
		if !slices.Contains(a, b[i]) {
			a = append(a, b[i])
		}
	}
	return a
}

// canBatch reports whether an order can be paid together with others.
func (n *Sender) canBatch(j *claimedIntent) bool {
	return n.info.Family == chain.UTXOFamily && j.v.Purpose == chain.ForWithdrawal && !j.v.All && j.v.Memo == "" &&
		j.v.idle() && j.v.Attempts == 0 && !j.isMember && j.edited == ""
}

// also are the intents that a candidate pays beside its own.
func also(members []*claimedIntent) []chain.Intent {
	var out []chain.Intent
	for _, r := range members {
		out = append(out, r.intent())
	}
	return out
}

// joinBatch commits a candidate together with the members of its batch.
func (n *Sender) joinBatch(ctx context.Context, j *claimedIntent, d *candidate, s transition) error {
	rows := make([]IntentRow, len(d.members))
	for i, r := range d.members {
		rows[i] = r.v
		r.v.Attempts++ // a number that nobody else gets, and the sign that it was in a batch
		s.with = append(s.with, Batches.Row(r.id, 0, time.Time{}, BatchRow{Leader: j.id}))
	}
	j.members = d.members
	err := n.bindInputs(ctx, j, d, s)
	if err != nil {
		for i, r := range d.members {
			r.v = rows[i]
		}
		j.members = nil
	}
	return err
}

// checkGasBudget asks whether the operator's funds cover what paying the whole batch may cost
// beyond what is reserved: price has asked for one payment.
func (n *Sender) checkGasBudget(ctx context.Context, j *claimedIntent, d *candidate) error {
	more := d.built.MaxCost - j.v.Reserved
	if n.CheckGasBudget == nil || len(d.members) == 0 || more <= 0 {
		return nil
	}
	ok, err := n.CheckGasBudget(storage.Apart(ctx), d.intent, more)
	if err == nil && !ok {
		err = errors.New("the operator's float does not bear it")
	}
	if err != nil {
		return &waitError{ReasonOperatorFunds, err.Error()}
	}
	return nil
}

// updateMembers adds to a Change of the leader what it means for the members: they have the
// leader's state. The network's cost is told for the leader alone. A Change that meets a
// conflict is made again, so members stay as they were read until it is committed.
func (n *Sender) updateMembers(ctx context.Context, j *claimedIntent, s *transition, versions map[string]int64, c *storage.Change) error {
	for _, r := range j.members {
		var due time.Time // none: only the leader is polled
		r.moves, r.leaves = false, false
		if r.v.ended() {
			continue // by a process that did not know of the batch
		}
		v := r.v
		r.leaves = s.leaves(r)
		ended := s.ended
		if ended != nil && slices.Contains(s.unpaid, r) { // only the row of the transaction says so: a person has to look
			ended = &mandate.Ending{By: j.v.Tx}
		}
		if r.leaves {
			due = n.Now()
			v.restart()
			if ended != nil && ended.By != "" {
				v.State, v.Reason = Waiting, ReasonAltered
			}
			c.Drop = append(c.Drop, storage.Row{Table: Batches.Table, ID: r.id, Version: 1})
		} else {
			v.State, v.Reason, v.Tx, v.ExecutedReported = j.v.State, j.v.Reason, j.v.Tx, j.v.ExecutedReported
		}
		sealed := s.ended != nil && (r.leaves || j.v.State != Final)
		if sealed {
			if err := n.seal(ctx, r.id, &v, ended); err != nil {
				return err
			}
		}
		r.moves = s.outcome != nil || sealed || r.leaves || !r.isMember ||
			v.State != r.v.State || v.Reason != r.v.Reason || v.Tx != r.v.Tx || v.ExecutedReported != r.v.ExecutedReported
		if !r.moves {
			continue
		}
		if err := machine.Move(r.v.State, onBatch, v.State); err != nil {
			return fmt.Errorf("outgoing: intent %s of the batch of %s: %w", r.id, j.id, err)
		}
		v.Updated = j.v.Updated
		r.next = v
		c.Put = append(c.Put, Intents.Row(r.id, r.version, due, v))
		if s.outcome == nil {
			continue
		}
		o := *n.outcome(&claimedIntent{id: r.id, v: v})
		o.Confirmations = s.outcome.Confirmations
		if !r.leaves {
			o.Batch = j.id
		}
		if s.outcome.Amount > 0 && !r.leaves {
			o.Amount = v.Amount
		}
		c.Put = append(c.Put, Outcomes.Row(r.id, versions[r.id], n.Now(), o))
	}
	return nil
}

// leaves reports whether a transition takes a member out of its batch.
func (s *transition) leaves(r *claimedIntent) bool { return s.alone || slices.Contains(s.unpaid, r) }

// batch is the id of the batch that the transaction pays after a transition, "" = none.
func (j *claimedIntent) batch(s *transition) string {
	for _, r := range j.members {
		if r.v.State != Failed && r.v.State != Cancelled && !s.leaves(r) {
			return j.id
		}
	}
	return ""
}

// unpaid lists the members to whom a final transaction pays nothing, as its row says. There are some only where
// somebody edited the row, or a process that did not know of the batch built a replacement. Each of
// them waits until a person has looked.
func (j *claimedIntent) unpaid(won *AttemptRow) (out []*claimedIntent) {
	open := slices.DeleteFunc(slices.Clone(won.Outputs), func(o chain.Output) bool { return o.Change })
	for _, o := range append([]*claimedIntent{j}, j.members...) {
		at := slices.IndexFunc(open, func(p chain.Output) bool {
			return p.To == o.v.To && p.Currency == o.v.Currency && p.Amount == o.v.Amount
		})
		if at >= 0 {
			open = slices.Delete(open, at, at+1)
		} else if o != j {
			out = append(out, o)
		}
	}
	return out
}

// loadBatches reads the members of the claimed leaders.
func (n *Sender) loadBatches(ctx context.Context, jobs []*claimedIntent) error {
	if n.info.Family != chain.UTXOFamily || len(jobs) == 0 {
		return nil
	}
	byID := make(map[string]*claimedIntent, len(jobs))
	leaders := make([]string, len(jobs))
	for i, j := range jobs {
		byID[j.id], leaders[i] = j, j.id
	}
	leader := map[string]string{}
	for r, err := range storage.All(ctx, n.Store, storage.Query{
		Table: Batches.Table, Partition: n.part, Where: []storage.Cond{{Column: "carrier", Op: storage.In, Value: leaders}},
	}) {
		if err != nil {
			return fmt.Errorf("outgoing: reading the members of batches: %w", err)
		}
		leader[r.ID] = Batches.Value(r).Leader
	}
	if len(leader) == 0 {
		return nil
	}
	members := make([]string, 0, len(leader))
	for id := range leader {
		members = append(members, id)
	}
	slices.Sort(members)
	rows, err := n.Store.Rows(ctx, Intents.Table, storage.Keys(n.part, members...)...)
	if err != nil {
		return fmt.Errorf("outgoing: reading the members of batches: %w", err)
	}
	for _, r := range rows {
		j := byID[leader[r.ID]]
		j.members = append(j.members, &claimedIntent{id: r.ID, v: Intents.Value(r), version: r.Version, isMember: true})
	}
	return nil
}
