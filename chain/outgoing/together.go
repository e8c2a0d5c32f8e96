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
	"github.com/cryptopay-go/cryptopay/storage"
)

// Where coins are outputs, one transaction can pay many: an order carries others
// that are due at the same moment. From the Change that reserves its coins on they
// go its way, written in each Change that moves it, until it has landed; if it ends
// any other way each goes alone, from the start. An order is carried once: what
// makes a node or a signer refuse the whole then fails alone.

// RideRow says which intent's transaction pays an intent, under that one's id.
type RideRow struct {
	Carrier string `db:"carrier"`
}

// Rides is the table of what is paid together, in network partitions.
var Rides = storage.NewTable[RideRow]("rides", storage.Index("carrier"))

// together lists those of the jobs claimed with j that its transaction can pay
// too, the longest waiting first, and what must not change for that.
func (n *Network) together(ctx context.Context, j *job) (out []*job, guards []storage.Guard) {
	if !n.carries(j) || len(j.beside) < 2 || !n.able(ctx, AbilityTogether) {
		return nil, nil
	}
	for _, o := range j.beside {
		if len(out) >= min(n.MaxPayments, mostPayments)-1 {
			break
		}
		if o == j || !n.carries(o) || o.v.Tenant != j.v.Tenant || o.v.Currency != j.v.Currency ||
			o.v.From != j.v.From || o.v.FromKey != j.v.FromKey || o.v.Confirmations != j.v.Confirmations {
			continue
		}
		if g, err := n.allowed(ctx, o.intent()); err == nil {
			out, guards = append(out, o), union(guards, g)
		}
	}
	slices.SortStableFunc(out, func(a, b *job) int { return cmp.Compare(a.v.Amount, b.v.Amount) }) // the largest are left out first
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
)

// able asks whether every process knows an ability. Without an answer it is off.
func (n *Network) able(ctx context.Context, a Ability) bool {
	if n.Able == nil {
		return true
	}
	ok, err := n.Able(ctx, a)
	if err != nil {
		n.Log.Warn("ability_unknown", slog.String("ability", string(a)), slog.Any("error", err))
	}
	return ok && err == nil
}

// mostPayments is what one transaction pays at most, whatever MaxPayments says: a
// network relays 100,000 bytes, and a Change writes three rows for each.
const mostPayments = 500

// allAllowed asks whether an intent and those it carries may be sent now.
func (n *Network) allAllowed(ctx context.Context, in chain.Intent, riders []*job) ([]storage.Guard, error) {
	guards, err := n.allowed(ctx, in)
	for _, r := range riders {
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

// carries reports whether an order can be paid together with others.
func (n *Network) carries(j *job) bool {
	return n.info.Family == chain.UTXOFamily && j.v.Purpose == chain.ForWithdrawal && !j.v.All && j.v.Memo == "" &&
		j.v.idle() && j.v.Attempts == 0 && !j.carried && j.edited == ""
}

// also are the orders that a draft pays beside its own.
func also(riders []*job) []chain.Intent {
	var out []chain.Intent
	for _, r := range riders {
		out = append(out, r.intent())
	}
	return out
}

// board commits a draft with those that it carries from now on.
func (n *Network) board(ctx context.Context, j *job, d *draft, s step) error {
	rows := make([]IntentRow, len(d.riders))
	for i, r := range d.riders {
		rows[i] = r.v
		r.v.Attempts++ // a number that nobody else gets, and the sign that it was carried
		s.with = append(s.with, Rides.Row(r.id, 0, time.Time{}, RideRow{Carrier: j.id}))
	}
	j.riders = d.riders
	err := n.bind(ctx, j, d, s)
	if err != nil {
		for i, r := range d.riders {
			r.v = rows[i]
		}
		j.riders = nil
	}
	return err
}

// borne asks whether the operator's float bears what paying all of a draft may cost
// beyond what is reserved: price has asked for one payment.
func (n *Network) borne(ctx context.Context, j *job, d *draft) error {
	more := d.built.MaxCost - j.v.Reserved
	if n.Float == nil || len(d.riders) == 0 || more <= 0 {
		return nil
	}
	ok, err := n.Float(storage.Apart(ctx), d.intent, more)
	if err == nil && !ok {
		err = errors.New("the operator's float does not bear it")
	}
	if err != nil {
		return &waitError{ReasonGasShort, err.Error()}
	}
	return nil
}

// mirror adds to a Change of the carrier what it means for those it carries: their
// state is its own. What the network took is its carrier's to tell. A Change that
// meets a conflict is made again, so who is carried stays as read until it is in.
func (n *Network) mirror(j *job, s *step, told map[string]int64, c *storage.Change) error {
	for _, r := range j.riders {
		var due time.Time // never: it is its carrier that is looked after
		r.moves, r.parts = false, false
		if r.v.ended() {
			continue // by a process that did not know of its carrier
		}
		v := r.v
		r.parts = s.parts(r)
		if r.parts {
			due = n.Now()
			v.restart()
			c.Drop = append(c.Drop, storage.Row{Table: Rides.Table, ID: r.id, Version: 1})
		} else {
			v.State, v.Reason, v.Tx, v.Reached = j.v.State, j.v.Reason, j.v.Tx, j.v.Reached
		}
		r.moves = s.tell != nil || r.parts || !r.carried ||
			v.State != r.v.State || v.Reason != r.v.Reason || v.Tx != r.v.Tx || v.Reached != r.v.Reached
		if !r.moves {
			continue
		}
		if err := machine.Move(r.v.State, OnCarried, v.State); err != nil {
			return fmt.Errorf("outgoing: intent %s, which %s carries: %w", r.id, j.id, err)
		}
		v.Updated = j.v.Updated
		r.next = v
		c.Put = append(c.Put, Intents.Row(r.id, r.version, due, v))
		if s.tell == nil {
			continue
		}
		o := *n.outcome(&job{id: r.id, v: v})
		o.Confirmations = s.tell.Confirmations
		if !r.parts {
			o.Batch = j.id
		}
		if s.tell.Amount > 0 && !r.parts {
			o.Amount = v.Amount
		}
		c.Put = append(c.Put, Outcomes.Row(r.id, told[r.id], n.Now(), o))
	}
	return nil
}

// parts reports whether a step lets an intent go that was carried.
func (s *step) parts(r *job) bool { return s.alone || slices.Contains(s.unpaid, r) }

// batch is what all have in common that the job's transaction pays after a step.
func (j *job) batch(s *step) string {
	for _, r := range j.riders {
		if r.v.State != Failed && r.v.State != Cancelled && !s.parts(r) {
			return j.id
		}
	}
	return ""
}

// unpaid lists those of the riders to whom a transaction that has landed pays nothing.
// There are none, unless what took its place was built by a process that did not
// know of them.
func (j *job) unpaid(won *AttemptRow) (out []*job) {
	open := slices.DeleteFunc(slices.Clone(won.Outputs), func(o chain.Output) bool { return o.Change })
	for _, o := range append([]*job{j}, j.riders...) {
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

// aboard reads whom the jobs carry.
func (n *Network) aboard(ctx context.Context, jobs []*job) error {
	if n.info.Family != chain.UTXOFamily || len(jobs) == 0 {
		return nil
	}
	byID := make(map[string]*job, len(jobs))
	carriers := make([]string, len(jobs))
	for i, j := range jobs {
		byID[j.id], carriers[i] = j, j.id
	}
	carrier := map[string]string{}
	const page = 500
	for offset := 0; ; offset += page {
		rows, err := n.Store.Find(ctx, storage.Query{
			Table: Rides.Table, Partition: n.part, Limit: page, Offset: offset,
			Where: []storage.Cond{{Column: "carrier", Op: storage.In, Value: carriers}},
		})
		if err != nil {
			return fmt.Errorf("outgoing: reading who is carried: %w", err)
		}
		for _, r := range rows {
			carrier[r.ID] = Rides.Value(r).Carrier
		}
		if len(rows) < page {
			break
		}
	}
	if len(carrier) == 0 {
		return nil
	}
	riders := make([]string, 0, len(carrier))
	for id := range carrier {
		riders = append(riders, id)
	}
	slices.Sort(riders)
	rows, err := n.Store.Rows(ctx, Intents.Table, storage.Keys(n.part, riders...)...)
	if err != nil {
		return fmt.Errorf("outgoing: reading who is carried: %w", err)
	}
	for _, r := range rows {
		j := byID[carrier[r.ID]]
		j.riders = append(j.riders, &job{id: r.ID, v: Intents.Value(r), version: r.Version, carried: true})
	}
	return nil
}
