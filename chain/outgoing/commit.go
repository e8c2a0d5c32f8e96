package outgoing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/storage"
)

// changeID derives a Change's id from what is done to which version. Long
// intent ids are hashed to stay within 100 bytes.
func changeID(op, id string, versions ...int64) string {
	if len(id) > 60 {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])[:60]
	}
	s := "out/" + op + "/" + id
	for _, v := range versions {
		s += fmt.Sprintf("/%d", v)
	}
	return s
}

// transition is one decision about a claimed intent.
type transition struct {
	op      trigger
	of      int // the attempt, where several of them may be moved so
	due     time.Time
	outcome *Outcome // nil: the owner has nothing to hear
	with    []storage.Row
	drop    []storage.Row
	need    []storage.Guard
	// levels are counters that the step moves.
	levels []storage.Level
	// alone ends what is paid together: each member of the batch starts again.
	alone  bool
	unpaid []*claimedIntent // those of them who start again though the rest have landed
	// ended is what became of transactions. It is sealed for each order that they do not settle: one that
	// starts again, has failed, or has other transactions open.
	ended *mandate.Ending
}

// commit makes the job's row as it now stands durable, with all that the step
// adds, under the fence of the claim. ErrConflict: the claim is lost, or a row
// that the step relied on has changed.
func (n *Sender) commit(ctx context.Context, j *claimedIntent, s transition) error {
	if err := machine.Move(j.was, s.op, j.v.State); err != nil {
		return fmt.Errorf("outgoing: intent %s: %w", j.id, err)
	}
	op := string(s.op)
	if s.of > 0 {
		op += fmt.Sprint("/", s.of)
	}
	if s.ended != nil && j.v.State != Final {
		if err := n.seal(ctx, j.id, &j.v, s.ended); err != nil {
			return err
		}
	}
	j.v.Updated = n.Now()
	halt, halted, err := n.distrust(ctx, j)
	if err != nil {
		return err
	}
	s.with = append(s.with, halt...)
	var before map[string]int64
	for {
		c := storage.Change{
			ID: changeID(op, j.id, j.version), Partition: n.part, Require: s.need, Drop: s.drop, Level: s.levels, Tell: slices.Clone(halted),
			Put: append([]storage.Row{Intents.Row(j.id, j.version, s.due, j.v)}, s.with...),
		}
		if s.outcome != nil {
			told, err := n.outcomeVersions(ctx, j)
			if err != nil {
				return err
			}
			if maps.Equal(told, before) {
				return storage.ErrConflict // it was not the delivery of an outcome that came between
			}
			before = told
			var all int64
			for _, v := range told {
				all += v
			}
			c.ID = changeID(op, j.id, j.version, all)
			s.outcome.Batch = j.batch(&s)
			c.Put = append(c.Put, Outcomes.Row(j.id, told[j.id], n.Now(), *s.outcome))
		}
		if err := n.updateMembers(ctx, j, &s, before, &c); err != nil {
			return err
		}
		if err := errors.Join(n.tell(&c, j.id, j.was, j.waited, &j.v, s.outcome), n.tellMade(&c)); err != nil {
			return err
		}
		err := storage.CommitOne(ctx, n.Store, c)
		if err == nil {
			j.moved()
			return nil
		}
		if s.outcome == nil || !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
}

// outcomeVersions reads the versions of the outcomes of a leader and of its members.
func (n *Sender) outcomeVersions(ctx context.Context, j *claimedIntent) (map[string]int64, error) {
	ids := []string{j.id}
	for _, r := range j.members {
		ids = append(ids, r.id)
	}
	rows, err := n.Store.Rows(ctx, Outcomes.Table, storage.Keys(n.part, ids...)...)
	if err != nil {
		return nil, err
	}
	told := make(map[string]int64, len(ids))
	for _, id := range ids {
		told[id] = 0
	}
	for _, r := range rows {
		told[r.ID] = r.Version
	}
	return told, nil
}

// moved notes that a transition was committed. Until then isMember stays set: a member could
// otherwise be sent alone while the batch may still pay it.
func (j *claimedIntent) moved() {
	j.version++
	j.was, j.waited = j.v.State, j.v.Reason
	for _, r := range j.members {
		if r.moves {
			r.v = r.next
			r.version++
			r.was = r.v.State
		}
		r.isMember = !r.leaves
	}
	j.members = slices.DeleteFunc(j.members, func(r *claimedIntent) bool { return r.leaves })
}

// outcome says how the job stands.
func (n *Sender) outcome(j *claimedIntent) *Outcome {
	return &Outcome{
		Intent: j.id, Purpose: j.v.Purpose, Tenant: j.v.Tenant, Network: string(j.v.Network),
		Currency: j.v.Currency, State: j.v.State, Reason: j.v.Reason, Tx: j.v.Tx, At: n.Now(), Undone: j.v.Undone,
	}
}

// ending is the row of the last outcome of an order that ends before more of it is signed. It takes
// the place of one that its owner may not have heard. What a transaction cost by that goes with it:
// the owner books it, whatever becomes of the order.
func (n *Sender) ending(ctx context.Context, j *claimedIntent) (storage.Row, error) {
	was, row, _, err := Outcomes.One(ctx, n.Store, n.part, j.id)
	o := n.outcome(j)
	if !row.Due.IsZero() {
		o.Cost, o.CostTx = was.Cost, was.CostTx
	}
	return Outcomes.Row(j.id, row.Version, n.Now(), *o), err
}

// pause is how long to wait after so many failures in a row.
func (n *Sender) pause(tries int) time.Duration { return n.Backoff << min(max(tries-1, 0), 6) }

// wait puts the job aside because of err, with the reason that its owner sees.
// An order that can never be built fails at once: nothing of it was signed.
func (n *Sender) wait(ctx context.Context, j *claimedIntent, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err() // says nothing about the node or the signer
	}
	if j.early() && j.v.idle() {
		return n.unneeded(ctx, j, cause)
	}
	if errors.Is(cause, chain.ErrRejected) && j.v.idle() {
		j.v.State, j.v.Reason = Failed, ""
		return n.commit(ctx, j, transition{op: onFail, outcome: n.outcome(j)})
	}
	reason := n.lacking(ctx, j, reasonOf(cause))
	if j.v.aside() {
		reason = j.v.Reason
	}
	var tell *Outcome
	told := j.v.State == Waiting && j.v.Reason == reason
	j.v.State, j.v.Reason, j.v.Tries = Waiting, reason, j.v.Tries+1
	if !told {
		tell = n.outcome(j)
	}
	n.Log.Info("intent_waits", slog.String("intent", j.id), slog.String("reason", string(reason)), slog.Int("tries", j.v.Tries), slog.String("cause", cause.Error()))
	return n.commit(ctx, j, transition{op: onWait, due: n.Now().Add(n.pause(j.v.Tries)), outcome: tell})
}

// lacking is ReasonBelowCost in place of one that says that a withdrawal's coins are not
// there, where Config.Costly says so.
func (n *Sender) lacking(ctx context.Context, j *claimedIntent, reason Reason) Reason {
	if j.v.Purpose != chain.ForWithdrawal {
		return reason
	}
	if reason != ReasonHotBalance && (reason != ReasonOperatorFunds || j.v.Currency != n.gas.Code) {
		return reason
	}
	costly, err := asked(ctx, j, n.Costly)
	if err != nil {
		n.Log.Warn("costly_unknown", slog.String("intent", j.id), slog.Any("error", err))
	}
	if costly {
		return ReasonBelowCost
	}
	return n.uncovered(ctx, j, reason)
}

// uncovered is ReasonOperatorFunds in place of ReasonHotBalance, where Config.Uncovered says so.
func (n *Sender) uncovered(ctx context.Context, j *claimedIntent, reason Reason) Reason {
	if reason != ReasonHotBalance || j.v.Purpose != chain.ForWithdrawal {
		return reason
	}
	uncovered, err := asked(ctx, j, n.Uncovered)
	if err != nil {
		n.Log.Warn("uncovered_unknown", slog.String("intent", j.id), slog.Any("error", err))
	}
	if uncovered {
		return ReasonOperatorFunds
	}
	return reason
}

// asked is what a hook says of the coins that an order lacks: false where there is no hook, or
// beside an error.
func asked(ctx context.Context, j *claimedIntent, hook func(context.Context, chain.Intent) (bool, error)) (bool, error) {
	if hook == nil {
		return false, nil
	}
	yes, err := hook(storage.Apart(ctx), j.v.intent(j.id))
	return yes && err == nil, err
}

// waitError is a reason that is known already.
type waitError struct {
	reason Reason
	why    string
}

func (e *waitError) Error() string { return "outgoing: " + string(e.reason) + ": " + e.why }

func reasonOf(err error) Reason {
	var w *waitError
	switch {
	case errors.As(err, &w):
		return w.reason
	case errors.Is(err, chain.ErrShort):
		return ReasonHotBalance
	case errors.Is(err, chain.ErrTooDear):
		return ReasonFeeTooHigh
	case errors.Is(err, chain.ErrRefused):
		return ReasonSigner
	}
	return ReasonNode
}
