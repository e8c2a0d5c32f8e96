package outgoing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/storage"
)

// A nonce that nobody uses stops everything behind it. There are two ways to
// one: a deep reorg threw a transaction out that had settled, and which is
// looked at no more; or a node said too high a nonce when an address was first
// used. The first is filled with the same bytes again, the second by an intent
// that pays nobody. Whatever was signed keeps its nonce, so nothing is paid twice
// where the chain turns out to be further than its node said.

// maxHoles is how many nonces of one address are filled at a time.
const maxHoles = 16

// reportedNonce is what a node said of the nonce of an address without a history.
type reportedNonce struct {
	at    uint64
	since time.Time
}

// sure reports whether a nonce was said for StuckAfter, and nothing else between.
// Our own addresses begin at 0 unless their history was lost, so that one can
// wait; filling what a node made up would take gas that a deposit address has not.
func (n *Sender) sure(a chain.Address, at uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, ok := n.doubts[a]
	if !ok || d.at != at {
		n.doubts[a] = reportedNonce{at: at, since: n.Now()}
		return false
	}
	if n.Now().Before(d.since.Add(n.StuckAfter)) {
		return false
	}
	delete(n.doubts, a)
	return true
}

// findNonceGaps looks, for a transaction that is stuck, whether nonces before its own are
// missing, and fills them. A dearer one in its place would help nothing then.
func (n *Sender) findNonceGaps(ctx context.Context, j *claimedIntent) (bool, error) {
	if n.nonces == nil || j.v.Nonce <= 0 {
		return false, nil
	}
	at, err := n.nonces.Nonce(ctx, j.v.From)
	if err != nil || at >= uint64(j.v.Nonce) {
		return false, err
	}
	found, err := n.fillGaps(ctx, j.v.From, int64(at), j.v.Nonce, j)
	if err != nil || !found {
		return false, err
	}
	j.v.BumpAt = n.Now().Add(n.StuckAfter)
	return true, n.commit(ctx, j, transition{op: onRefilled, due: n.Now().Add(n.Poll)})
}

// fillGaps fills the nonces of an address from at up to below next. Those that were
// never used are filled only in the name of a job that waits for them.
func (n *Sender) fillGaps(ctx context.Context, from chain.Address, at, next int64, stuck *claimedIntent) (found bool, err error) {
	next = min(next, at+maxHoles)
	rows, err := n.bound(ctx, from, storage.Cond{Column: "nonce", Op: storage.Ge, Value: at}, storage.Cond{Column: "nonce", Op: storage.Lt, Value: next})
	if err != nil {
		return false, err
	}
	used := map[int64]bool{}
	for _, r := range rows {
		v := Intents.Value(r)
		used[v.Nonce] = true
		if v.State != Final && v.State != Failed || n.Now().Before(v.Updated.Add(n.StuckAfter)) {
			continue // looked after, or only not yet known to this node
		}
		found = true
		if err := n.rebroadcastSettled(ctx, r.ID, &v, v.Nonce); err != nil {
			return found, err
		}
	}
	for k := at; k < next && stuck != nil; k++ {
		if used[k] {
			continue
		}
		found = true
		if err := n.fillUnused(ctx, stuck, k); err != nil {
			return found, err
		}
	}
	return found, nil
}

// bound reads intents of an address.
func (n *Sender) bound(ctx context.Context, from chain.Address, where ...storage.Cond) ([]storage.Row, error) {
	where = append([]storage.Cond{{Column: "from_address", Op: storage.Eq, Value: from}}, where...)
	rows, err := n.Store.Find(ctx, storage.Query{Table: Intents.Table, Partition: n.part, Limit: 1000, Where: where})
	if err != nil {
		return nil, fmt.Errorf("outgoing: reading the nonces of %s: %w", from, err)
	}
	return rows, nil
}

// fillUnused fills a nonce, unless an intent had it that was sent again from the
// start: that one has a later nonce by now, or none.
func (n *Sender) fillUnused(ctx context.Context, stuck *claimedIntent, k int64) error {
	later, err := n.bound(ctx, stuck.v.From,
		storage.Cond{Column: "nonce", Op: storage.Gt, Value: k}, storage.Cond{Column: "attempts", Op: storage.Gt, Value: 1})
	if err != nil {
		return err
	}
	without, err := n.bound(ctx, stuck.v.From,
		storage.Cond{Column: "nonce", Op: storage.Eq, Value: int64(-1)}, storage.Cond{Column: "attempts", Op: storage.Gt, Value: 0})
	if err != nil {
		return err
	}
	for _, r := range append(later, without...) {
		byIntent, err := n.attempts(ctx, r.ID)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(byIntent[r.ID], func(a *attempt) bool { return a.v.Nonce == k }) {
			v := Intents.Value(r)
			return n.rebroadcastSettled(ctx, r.ID, &v, k)
		}
	}
	return n.fillGap(ctx, stuck, k)
}

// rebroadcastSettled sends the bytes again that an intent had landed at a nonce, and which
// the chain has lost. Those of one that was reverted are not: they may execute
// now, and its owner has the amount back or was paid another way.
func (n *Sender) rebroadcastSettled(ctx context.Context, id string, v *IntentRow, nonce int64) error {
	byIntent, err := n.attempts(ctx, id)
	if err != nil {
		return err
	}
	for _, a := range byIntent[id] {
		settled := v.State == Final && a.tx == v.Tx
		if a.v.State != AttemptFinal || a.v.Nonce != nonce || !settled && a.v.Purpose != chain.ForCancel {
			continue
		}
		n.Log.Error("settled_transaction_gone", slog.String("intent", id), slog.String("tx", a.tx), slog.Int64("nonce", nonce))
		if settled && v.Purpose == chain.ForWithdrawal {
			return n.lookAgain(ctx, id) // it is sent from there, and its owner is told
		}
		return n.sendLanded(ctx, v.intent(id), a)
	}
	n.Log.Error("nonce_missing", slog.String("intent", id), slog.String("address", string(v.From)), slog.Int64("nonce", nonce))
	return nil
}

// sendLanded sends an attempt again that had landed, unless a halt stops what it does.
func (n *Sender) sendLanded(ctx context.Context, in chain.Intent, a *attempt) error {
	in.Purpose = a.v.Purpose
	guards, err := n.allowed(ctx, in)
	if err != nil {
		n.Log.Info("held_back", slog.String("intent", in.ID), slog.String("cause", err.Error()))
		return nil // as it is with everything else that is sent
	}
	a.v.Sent = n.Now()
	err = storage.CommitOne(ctx, n.Store, storage.Change{
		ID: changeID("revive", a.tx, a.version), Partition: n.part, Require: guards,
		Put: []storage.Row{Attempts.Row(a.tx, a.version, time.Time{}, a.v)},
	})
	if errors.Is(err, storage.ErrConflict) {
		return nil // a halt has come meanwhile, or another worker was first
	}
	if err != nil {
		return err
	}
	err = n.Client.Broadcast(ctx, proof.NewStored(string(n.info.Code), a.tx, a.v.Raw))
	if err != nil {
		n.Log.Warn("broadcast_unknown", slog.String("intent", in.ID), slog.String("tx", a.tx), slog.String("cause", err.Error()))
	}
	return ctx.Err()
}

// fillGap submits an intent that uses up a nonce which nothing of ours ever had.
func (n *Sender) fillGap(ctx context.Context, stuck *claimedIntent, nonce int64) error {
	id := ID{Kind: OrderFill, For: Slot(stuck.v.From, nonce)}.String()
	if _, _, known, err := Intents.One(ctx, n.Store, n.part, id); err != nil || known {
		return err
	}
	if held, err := n.loadBinding(ctx, Slot(stuck.v.From, nonce)); err != nil || held.version > 0 {
		return err
	}
	n.Log.Error("nonce_never_used", slog.String("address", string(stuck.v.From)), slog.Int64("nonce", nonce), slog.String("waits", stuck.id))
	in := n.filling(stuck, chain.Derived{})
	in.ID, in.Confirmations = id, 1
	row := record(in, n.Now())
	row.Nonce = nonce
	c := storage.Change{ID: changeID("submit", id), Partition: n.part, Put: []storage.Row{Intents.Row(id, 0, n.Now(), row)}}
	if err := n.tellMade(&c); err != nil {
		return err
	}
	err := storage.CommitOne(ctx, n.Store, c)
	if errors.Is(err, storage.ErrConflict) {
		return nil // another worker was first
	}
	return err
}
