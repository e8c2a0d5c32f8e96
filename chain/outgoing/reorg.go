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

// A payment that is settled can be undone by a deep reorg. Nobody looks at it any more, so
// whoever learns of the reorg makes it due again: Recheck does after a fork, and a
// transaction that waits behind its nonce does. Where no block has it, the intent is signed
// again with the same attempts, its owner is told, and it is sent until it lands.

// Recheck has every order looked at again that was settled since a time: since the block
// at which the chain forked. Sweeps and gas transfers are among them, because nobody waits
// behind the last one of an address. An order that another process holds is an error that
// wraps storage.ErrBusy: call it again.
func (n *Network) Recheck(ctx context.Context, since time.Time) error {
	const page = 200
	for last := ""; ; {
		rows, err := n.Store.Find(ctx, storage.Query{
			Table: Intents.Table, Partition: n.part, Limit: page,
			Order: []storage.Order{{Column: storage.ColID}}, // most orders are settled: they are read once, in the order of ids
			Where: []storage.Cond{
				{Column: "state", Op: storage.Eq, Value: Settled},
				{Column: "updated_at", Op: storage.Ge, Value: since},
				{Column: storage.ColID, Op: storage.Gt, Value: last},
			},
		})
		if err != nil {
			return err
		}
		ids := make([]string, len(rows))
		for i, r := range rows {
			ids[i] = r.ID
		}
		carriers, err := n.carriersOf(ctx, ids)
		if err != nil {
			return err
		}
		err = errors.Join(storage.Work(ctx, n.Store, carriers, func(id string) string { return id }, n.makeDue)...)
		if err != nil || len(rows) < page {
			return err
		}
		last = ids[page-1]
	}
}

// carriersOf are the intents whose transactions pay these, each once: an intent itself
// where no other one carries it.
func (n *Network) carriersOf(ctx context.Context, ids []string) ([]string, error) {
	rides, err := n.Store.Rows(ctx, Rides.Table, storage.Keys(n.part, ids...)...)
	if err != nil {
		return nil, err
	}
	carrier := map[string]string{}
	for _, r := range rides {
		carrier[r.ID] = Rides.Value(r).Carrier
	}
	var out []string
	for _, id := range ids {
		out = append(out, cmp.Or(carrier[id], id))
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// lookAgain makes a settled intent due, or the one that carries it.
func (n *Network) lookAgain(ctx context.Context, id string) error {
	carriers, err := n.carriersOf(ctx, []string{id})
	if err != nil {
		return err
	}
	return n.makeDue(ctx, carriers[0])
}

// makeDue has a settled intent looked at.
func (n *Network) makeDue(ctx context.Context, id string) error {
	v, row, ok, err := Intents.One(ctx, n.Store, n.part, id)
	if err != nil || !ok || v.State != Settled || !row.Due.IsZero() {
		return err
	}
	err = storage.CommitOne(ctx, n.Store, storage.Change{
		ID: changeID("look-again", id, row.Version), Partition: n.part, Put: []storage.Row{Intents.Row(id, row.Version, n.Now(), v)},
	})
	if errors.Is(err, storage.ErrConflict) {
		return nil // another worker was first
	}
	return err
}

// recheck looks at an intent that is settled. It stays so, and is looked at until it is
// final again, where a block has its transaction. Where that was reverted in the block, it
// ends as one that is reverted at first.
func (n *Network) recheck(ctx context.Context, j *job, atts []*att) error {
	var a *att // the last one that has landed: those before it were reverted
	for _, o := range atts {
		if o.v.Fate == Landed {
			a = o
		}
	}
	if a == nil {
		return fmt.Errorf("outgoing: %s without an attempt that has landed", j.v.State)
	}
	final := n.final(j, &a.st)
	reverted := !a.st.Executed && j.v.Purpose != chain.ForCancel // mined again, it did nothing
	if a.st.State == chain.Included && (!reverted || !final) {
		s := step{op: OnRecheck}
		if !final || a.ahead {
			s.due = n.Now().Add(n.Poll)
		}
		return n.commit(ctx, j, s)
	}
	return n.reopen(ctx, j, atts, a)
}

// reopen takes a settlement back: the attempt that had landed, and those that only its
// landing had ruled out, may land.
func (n *Network) reopen(ctx context.Context, j *job, atts []*att, landed *att) error {
	s := step{op: OnReopen, due: n.Now()}
	for _, a := range atts {
		rival := a.v.Fate == Dead && !n.lapses() && slices.ContainsFunc(a.v.Spends, func(o string) bool { return slices.Contains(landed.v.Spends, o) })
		if a == landed || rival {
			if err := a.becomes(OnFork); err != nil {
				return err
			}
			s.with = append(s.with, Attempts.Row(a.tx, a.version, time.Time{}, a.v))
		}
	}
	for _, r := range j.riders {
		if r.v.State == Settled && r.v.Tx == j.v.Tx {
			r.v.State = Signed // it is paid by the same transaction, and written with it
		}
	}
	n.Log.Error("settlement_reorged", slog.String("intent", j.id), slog.String("tx", landed.tx))
	j.v.State, j.v.Reason, j.v.Tx, j.v.BumpAt = Signed, ReasonReorged, landed.tx, n.Now().Add(n.StuckAfter)
	s.tell = n.outcome(j)
	s.tell.Amount = j.paid(&landed.v)
	return n.commit(ctx, j, s)
}

// booked reports whether what the transaction of a reorged intent costs was booked when it
// settled: the same bytes are sent again, and nothing dearer in their place.
func (j *job) booked() bool { return j.v.Reason == ReasonReorged && j.v.Reserved == 0 }
