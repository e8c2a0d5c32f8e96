package incoming

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// deliver hands every due Sighting to the Handler, once each. What it accepts
// is no longer due, unless it changed meanwhile; what it refuses is due again
// when the lease is over.
func (n *Network) deliver(ctx context.Context) (handled int, err error) {
	if n.cfg.Handle == nil {
		return 0, nil
	}
	for {
		cur, _, err := n.cursor(ctx)
		if err != nil {
			return handled, err
		}
		claim := storage.Claim{
			Table: Sightings.Table, Partition: n.part, Max: n.cfg.Batch,
			Now: n.cfg.Now(), Until: n.cfg.Now().Add(n.cfg.Lease), Where: []storage.Cond{n.lists.mine()},
		}
		if cur.Halted != "" { // no credits on a chain that contradicts itself
			claim.Where = append(claim.Where, storage.Cond{Column: "state", Op: storage.Ne, Value: Final})
		}
		rows, err := storage.Claimed(ctx, n.cfg.Store, claim, n.log)
		if err != nil || len(rows) == 0 {
			return handled, err
		}
		done, err := n.handle(ctx, cur, rows)
		handled += done
		if err != nil || ctx.Err() != nil {
			return handled, errors.Join(err, ctx.Err())
		}
	}
}

// object names what a fact is about. Facts of one address are handled in order; so are
// all that concern what the network's partition holds of our own.
func object(f Fact) string {
	s := &f.Sighting
	if !s.Internal && (s.Purpose == UsePayment || s.Purpose == UseAccount) {
		return s.Address
	}
	return ""
}

// handle gives each row to the Handler and marks those it accepted.
func (n *Network) handle(ctx context.Context, cur Cursor, rows []storage.Row) (int, error) {
	var facts []Fact
	var of []storage.Row
	for _, r := range rows {
		s := Sightings.Value(r)
		f := Fact{Sighting: s, Version: r.Version, Head: cur.Head, Final: prove(r, cur)}
		if s.State == Final && !f.Final.Valid() {
			continue // the chain is shorter again; it will be due again
		}
		facts, of = append(facts, f), append(of, r)
	}
	var accepted []storage.Change
	for i, err := range storage.Work(ctx, n.cfg.Store, facts, object, n.cfg.Handle) {
		s := &facts[i].Sighting
		switch {
		case errors.Is(err, storage.ErrBusy): // due again
		case err != nil:
			n.log.Warn("fact_refused", slog.String("sighting", s.Generated()), slog.String("state", string(s.State)), slog.Any("error", err))
		default:
			accepted = append(accepted, n.change("done", nil, Sightings.Row(of[i].ID, of[i].Version, time.Time{}, *s)))
		}
	}
	if len(accepted) == 0 {
		return 0, nil
	}
	var err error
	for _, e := range n.cfg.Store.Commit(ctx, accepted...) {
		// Changed meanwhile, or not known: due again, and handled again.
		if e != nil && !errors.Is(e, storage.ErrConflict) {
			err = errors.Join(err, e)
		}
	}
	return len(accepted), err
}

// prove is the one place where a Proof is made: from a row that a store gave,
// and a cursor that stands at or above the height at which it is final.
func prove(r storage.Row, cur Cursor) Proof {
	s := Sightings.Value(r)
	if r.Version == 0 || s.State != Final || s.FinalAt == 0 || s.FinalAt > cur.Head || cur.Halted != "" {
		return Proof{}
	}
	return Proof{s: s}
}
