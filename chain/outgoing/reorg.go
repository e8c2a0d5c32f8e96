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

// Recheck has every order looked at again that was settled, or has failed, since a time: since the block
// at which the chain forked. Sweeps and gas transfers are among them, because nobody waits
// behind the last one of an address. An order that another process holds is an error that
// wraps storage.ErrBusy: call it again.
func (n *Sender) Recheck(ctx context.Context, since time.Time) error {
	const page = 200
	var unasked error // of orders that have failed: it keeps none that was settled from being looked at
	for last := ""; ; {
		rows, err := n.Store.Find(ctx, storage.Query{
			Table: Intents.Table, Partition: n.part, Limit: page,
			Order: []storage.Order{{Column: storage.ColID}}, // most orders are settled: they are read once, in the order of ids
			Where: []storage.Cond{
				{Column: "state", Op: storage.In, Value: []State{Final, Failed}},
				{Column: "updated_at", Op: storage.Ge, Value: since},
				{Column: storage.ColID, Op: storage.Gt, Value: last},
			},
		})
		if err != nil {
			return err
		}
		var settled, failed []string
		for _, r := range rows {
			if last = r.ID; Intents.Value(r).State == Final {
				settled = append(settled, r.ID)
			} else {
				failed = append(failed, r.ID)
			}
		}
		leaders, err := n.leadersOf(ctx, settled)
		if err != nil {
			return err
		}
		err = errors.Join(storage.Work(ctx, n.Store, leaders, func(id string) string { return id }, n.makeDue)...)
		unasked = errors.Join(unasked, n.recheckFailed(ctx, rows, failed))
		if err != nil || len(rows) < page {
			return errors.Join(err, unasked)
		}
	}
}

// leadersOf are the leaders of the batches of these intents, each once: an intent itself
// where it is in no batch of another.
func (n *Sender) leadersOf(ctx context.Context, ids []string) ([]string, error) {
	batches, err := n.Store.Rows(ctx, Batches.Table, storage.Keys(n.part, ids...)...)
	if err != nil {
		return nil, err
	}
	leader := map[string]string{}
	for _, r := range batches {
		leader[r.ID] = Batches.Value(r).Leader
	}
	var out []string
	for _, id := range ids {
		out = append(out, cmp.Or(leader[id], id))
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// lookAgain makes a settled intent due, or the leader of its batch.
func (n *Sender) lookAgain(ctx context.Context, id string) error {
	leaders, err := n.leadersOf(ctx, []string{id})
	if err != nil {
		return err
	}
	return n.makeDue(ctx, leaders[0])
}

// makeDue has a settled intent looked at.
func (n *Sender) makeDue(ctx context.Context, id string) error {
	v, row, ok, err := Intents.One(ctx, n.Store, n.part, id)
	if err != nil || !ok || v.State != Final || !row.Due.IsZero() {
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
func (n *Sender) recheck(ctx context.Context, j *claimedIntent, atts []*attempt) error {
	var a *attempt // the last one that has landed: those before it were reverted
	for _, o := range atts {
		if o.v.State == AttemptFinal {
			a = o
		}
	}
	if a == nil {
		return fmt.Errorf("outgoing: %s without an attempt that has landed", j.v.State)
	}
	final := n.final(j, &a.st)
	reverted := !a.st.Executed && j.v.Purpose != chain.ForCancel // mined again, it did nothing
	if a.st.State == chain.Included && (!reverted || !final) {
		if !final || a.ahead {
			return nil // the claim has made it due again after Poll
		}
		return n.stays(ctx, j, a)
	}
	// Those that landed before it and spend something else: their fate may have changed with the branch.
	before := slices.DeleteFunc(slices.Clone(atts), func(o *attempt) bool { return overlap(o.v.Spends, a.v.Spends) })
	if shaken(before) {
		if paid, err := n.paidBefore(ctx, j, before); paid || err != nil {
			return err
		}
	}
	if err := n.resendLanded(ctx, j, atts, a); err != nil {
		return err
	}
	if forgot, err := n.forgot(ctx, j, atts, a); err != nil || forgot {
		return err // the claim has made it due again after Poll: another node may know
	}
	return n.reopen(ctx, j, atts, a)
}

// stays notes that an intent is settled still. Its transaction may have cost, or brought, another sum in the block
// of the other branch.
func (n *Sender) stays(ctx context.Context, j *claimedIntent, a *attempt) error {
	s := transition{op: onRecheck}
	knows, err := n.knows(ctx, AbilityUndone)
	if err != nil {
		return err
	}
	was, err := n.landedBefore(ctx, j, a)
	if err != nil {
		return err
	}
	less, cost := n.less(j, a), was.Cost
	dearer := cost != a.st.Cost && (a.st.Cost > 0 || n.lapses()) // Tron may take nothing
	rebooked := knows && (dearer || was.Missing != a.st.Shortfall)
	if rebooked {
		j.v.Undone = append(slices.Clone(j.v.Undone), was)
	}
	if rebooked && dearer {
		cost, a.v.Cost = a.st.Cost, a.st.Cost
		s.with = []storage.Row{Attempts.Row(a.tx, a.version, time.Time{}, a.v)}
	}
	if rebooked || less != j.v.Reason {
		j.v.Tx, j.v.Reason = a.mined(), less
		s.outcome = n.outcome(j)
		s.outcome.Cost, s.outcome.CostTx, s.outcome.Confirmations = cost, a.mined(), a.st.Confirmations
		s.outcome.Amount = j.paid(&a.v) - a.st.Shortfall
	}
	return n.commit(ctx, j, s)
}

// forgot reports whether the node knows none of an order's transactions, and yet says that its
// nonce is used: it keeps no old ones, and proves nothing by that.
func (n *Sender) forgot(ctx context.Context, j *claimedIntent, atts []*attempt, landed *attempt) (bool, error) {
	known := func(a *attempt) bool { return a.st.State != "" && a.st.State != chain.Unknown }
	if n.nonces == nil || j.v.Nonce < 0 || landed.st.State != chain.Unknown || slices.ContainsFunc(atts, known) {
		return false, nil
	}
	next, err := n.nonces.Nonce(ctx, j.v.From)
	return err == nil && next > uint64(j.v.Nonce), err //nolint:gosec // it is not negative
}

// reopen takes a settlement back: the attempt that had landed, and those that only its
// landing had ruled out, may land.
func (n *Sender) reopen(ctx context.Context, j *claimedIntent, atts []*attempt, landed *attempt) error {
	s := transition{op: onReopen, due: n.Now()}
	undone, err := n.knows(ctx, AbilityUndone)
	if err != nil {
		return err
	}
	was, err := n.landedBefore(ctx, j, landed)
	if err != nil {
		return err
	}
	for _, a := range atts {
		rival := a.v.State == Dead && !n.lapses() && slices.ContainsFunc(a.v.Spends, func(o string) bool { return slices.Contains(landed.v.Spends, o) })
		if a != landed && !rival {
			continue
		}
		if err := a.becomes(onFork); err != nil {
			return err
		}
		if undone {
			a.v.Cost = 0
		}
		s.with = append(s.with, Attempts.Row(a.tx, a.version, time.Time{}, a.v))
	}
	for _, r := range j.members {
		if r.v.State == Final && r.v.Tx == j.v.Tx {
			r.v.State = Signed // it is paid by the same transaction, and written with it
		}
	}
	n.Log.Error("settlement_reorged", slog.String("intent", j.id), slog.String("tx", landed.tx))
	if err := n.bindAgain(ctx, j, atts, &s); err != nil {
		return err
	}
	if undone {
		j.undo(was, atts)
	}
	j.v.ExecutedReported = j.v.ExecutedReported || j.v.Purpose == chain.ForWithdrawal // its owner was told that it is settled
	j.v.State, j.v.Reason, j.v.Tx, j.v.BumpAt = Signed, ReasonReorged, landed.tx, n.Now().Add(n.StuckAfter)
	s.outcome = n.outcome(j)
	s.outcome.Amount = j.paid(&landed.v)
	return n.commit(ctx, j, s)
}

// resendLanded sends transactions again that gave an order's nonce or coins back before the one that counts,
// and that no node has any more: that one may spend what they return. Those that were reverted are not sent again.
func (n *Sender) resendLanded(ctx context.Context, j *claimedIntent, atts []*attempt, counts *attempt) error {
	for _, a := range atts {
		if a == counts || a.v.State != AttemptFinal || a.v.Purpose != chain.ForCancel || a.st.State != chain.Unknown || n.quiet(a) {
			continue
		}
		if err := n.sendLanded(ctx, j.intent(), a); err != nil {
			return err
		}
	}
	return nil
}

// shaken reports whether transactions of an intent that had landed are not what they were, after a fork that has
// undone the last of them: one that was reverted may have paid, or one that called it off may have lost.
func shaken(atts []*attempt) bool {
	return slices.ContainsFunc(atts, func(a *attempt) bool {
		if a.v.State != AttemptFinal {
			return false
		}
		if a.v.Purpose == chain.ForCancel {
			return a.st.State == chain.Conflicted
		}
		return a.st.State == chain.Included && a.st.Executed
	})
}
