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

// attempt is a stored attempt, and what the network says of it now.
type attempt struct {
	tx      string
	v       AttemptRow
	version int64
	st      chain.Status
	ahead   bool  // deposits of its block were not read yet
	left    error // the node that said so may be on a branch that was left
}

// mined is the hash under which the attempt is in a block: another one where
// somebody changed its signature.
func (a *attempt) mined() string {
	if a.st.State == chain.Included && a.st.By != "" {
		return a.st.By
	}
	return a.tx
}

// attempts reads the attempts of intents, oldest first.
func (n *Sender) attempts(ctx context.Context, intents ...string) (map[string][]*attempt, error) {
	out := make(map[string][]*attempt, len(intents))
	if len(intents) == 0 {
		return out, nil
	}
	for r, err := range storage.All(ctx, n.Store, storage.Query{
		Table: Attempts.Table, Partition: n.part,
		Where: []storage.Cond{{Column: "intent", Op: storage.In, Value: intents}},
	}) {
		if err != nil {
			return nil, fmt.Errorf("outgoing: reading attempts: %w", err)
		}
		v := Attempts.Value(r)
		out[v.Intent] = append(out[v.Intent], &attempt{tx: r.ID, v: v, version: r.Version})
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b *attempt) int { return cmp.Compare(a.v.Number, b.v.Number) })
	}
	return out, nil
}

// watchDue looks after everything on its way that is due, with one question to
// the node for all of it. The claim itself moves the next look to one poll from
// now, so an intent about which there is nothing new costs no commit.
func (n *Sender) watchDue(ctx context.Context) (int, error) {
	jobs, err := n.claim(ctx, n.Poll, Signed, Executed, Final)
	if err != nil || len(jobs) == 0 {
		return 0, err
	}
	claimed := len(jobs)
	jobs, byIntent, err := n.poll(ctx, jobs)
	if err != nil {
		return claimed, err
	}
	// What is in a block writes rows of its own alone. What is not may be sent again or
	// replaced, one transaction of an address after the other.
	key := func(j *claimedIntent) string {
		if p := n.summarize(j, byIntent[j.id]); p.mined != nil {
			return "mined/" + j.id
		}
		return "sent/" + j.v.Tenant + "/" + string(j.v.From)
	}
	for i, e := range storage.Work(ctx, n.Store, jobs, key, func(ctx context.Context, j *claimedIntent) (err error) {
		if ctx.Err() == nil {
			err = n.advance(ctx, j, byIntent[j.id])
		}
		return err
	}) {
		err = errors.Join(err, n.named(jobs[i], e))
	}
	return claimed, err
}

// known reads the attempts of jobs. A job with an attempt that cannot be read is left out:
// nothing is known of what it has sent.
func (n *Sender) known(ctx context.Context, jobs []*claimedIntent) ([]*claimedIntent, map[string][]*attempt, error) {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.id
	}
	byIntent, err := n.attempts(ctx, ids...)
	if broken := (*storage.RowError)(nil); !errors.As(err, &broken) {
		return jobs, byIntent, err
	}
	byIntent = make(map[string][]*attempt, len(jobs))
	var rest []*claimedIntent
	for _, j := range jobs {
		own, err := n.attempts(ctx, j.id)
		var broken storage.RowErrors
		if err = broken.Take(err); err != nil {
			return nil, nil, err
		}
		if len(broken) > 0 {
			n.unread.Report(ctx, broken, n.Now(), n.Log)
			continue
		}
		rest, byIntent[j.id] = append(rest, j), own[j.id]
	}
	return rest, byIntent, nil
}

// poll asks for the status of every open attempt of the jobs whose attempts can be read,
// and returns these jobs.
func (n *Sender) poll(ctx context.Context, all []*claimedIntent) (jobs []*claimedIntent, byIntent map[string][]*attempt, err error) {
	if jobs, byIntent, err = n.known(ctx, all); err != nil {
		return nil, nil, err
	}
	tip, err := n.Client.Tip(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("outgoing: tip of %s: %w", n.info.Code, err)
	}
	if tip.Final >= 0 {
		n.mu.Lock()
		n.finality = true
		n.mu.Unlock()
	}
	var ask []chain.Attempt
	var open []*attempt
	for _, j := range jobs {
		for _, a := range byIntent[j.id] {
			if a.v.State == Open || a.v.State == AttemptFinal && (j.v.State == Final || len(j.v.Undone) > 0) {
				open = append(open, a)
				ask = append(ask, chain.Attempt{Tx: a.tx, Raw: a.v.Raw, Spends: a.v.Spends, MaxCost: a.v.MaxCost})
			}
		}
	}
	if len(ask) == 0 {
		return jobs, byIntent, nil
	}
	answers, err := n.Client.Status(ctx, ask...)
	if err != nil {
		return nil, nil, fmt.Errorf("outgoing: status on %s: %w", n.info.Code, err)
	}
	if len(answers) != len(ask) {
		return nil, nil, fmt.Errorf("outgoing: status on %s: %w: %d answers to %d questions", n.info.Code, chain.ErrNode, len(answers), len(ask))
	}
	claimed := map[string]*claimedIntent{}
	for _, j := range jobs {
		claimed[j.id] = j
	}
	var final, gone []*attempt // final or settled already; settled and in no block
	for i := range answers {
		open[i].st = answers[i]
		a := open[i]
		if a.v.State == AttemptFinal && a.st.State != chain.Included {
			gone = append(gone, a)
			// A node that stood still before the block was mined cannot know it. A fork that took the block
			// away has a newer head.
			if at := claimed[a.v.Intent].v.Updated; tip.Head.Time.Before(at.Add(-headAge)) {
				a.left = fmt.Errorf("outgoing: %s: %w: its head is of %s, and a block had attempt %s at %s", n.info.Code, chain.ErrBehind, tip.Head.Time, a.tx, at)
			}
		}
		if a.st.State != chain.Unknown && (a.v.State == AttemptFinal || n.final(claimed[a.v.Intent], &a.st)) {
			final = append(final, a)
		}
	}
	if err := n.branch(ctx, tip.Head, final, gone); err != nil {
		return nil, nil, err
	}
	return jobs, byIntent, nil
}

// headAge is how much older the head of a node may be than the order that it takes back: miners
// date their blocks.
const headAge = 10 * time.Minute

// final reports whether a status can no longer be undone. It needs the depth that makes
// deposits final, and the network's own word where it gives one: a node whose word of
// finality runs ahead cannot settle what a common reorg takes back.
func (n *Sender) final(j *claimedIntent, st *chain.Status) bool {
	cur, err := n.Registry.Currency(j.v.Currency)
	if err != nil { // retired
		cur = n.gas
	}
	if st.Confirmations < cur.Confirmations {
		return false
	}
	if st.Final {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.finality && !cur.WaitFinal
}

// attemptSummary is what all attempts of an intent come to.
type attemptSummary struct {
	open    []*attempt // oldest first
	mined   *attempt   // in a block, nil = none is
	final   bool       // mined for good
	dead    bool       // there are attempts, and none of them can ever land
	foreign bool       // … because a transaction that is none of them took what they spend
	blocked bool       // something in a block stands in their way, or may
}

// lapses reports whether transactions of the network exclude nothing, as it has
// neither nonces nor coins (Tron): two attempts could both land. One is sent in
// the place of another only once that one is dead, which is when its time is over.
func (n *Sender) lapses() bool { return n.info.Family == chain.AccountFamily && n.nonces == nil }

// summarize is pure: it says what the statuses mean.
func (n *Sender) summarize(j *claimedIntent, atts []*attempt) attemptSummary {
	var p attemptSummary
	lost := 0
	for _, a := range atts {
		if a.v.State != Open {
			continue
		}
		p.open = append(p.open, a)
		switch a.st.State {
		case chain.Included:
			if p.mined == nil || n.final(j, &a.st) {
				p.mined, p.final = a, n.final(j, &a.st)
			}
		case chain.Conflicted:
			p.blocked = true
			own := slices.ContainsFunc(atts, func(o *attempt) bool { return o.tx == a.st.By })
			if !own && n.final(j, &a.st) {
				lost++
				p.foreign = p.foreign || a.st.By != "" || len(a.v.Spends) > 0 && !n.lapses()
			}
		}
	}
	p.dead = p.mined == nil && len(p.open) > 0 && lost == len(p.open)
	return p
}

// advance takes an intent on its way one step further.
func (n *Sender) advance(ctx context.Context, j *claimedIntent, atts []*attempt) error {
	for _, a := range atts {
		if a.left != nil {
			return a.left
		}
	}
	if j.v.State == Final {
		return n.recheck(ctx, j, atts)
	}
	for _, a := range atts {
		uncalled, err := j.v.Uncalled(ctx, j.id, a.tx, &a.v, n.Back)
		if err != nil {
			return err
		}
		if uncalled { // the claim has made it due again after Poll
			n.altered(j, "its transaction "+a.tx+" is to pay nobody, and nobody has taken it back")
			return nil
		}
	}
	if len(j.v.Undone) > 0 {
		if err := n.resendLanded(ctx, j, atts, nil); err != nil {
			return err
		}
	}
	if done, err := n.undoLate(ctx, j, atts); done || err != nil {
		return err
	}
	p := n.summarize(j, atts)
	if p.mined == nil && (p.blocked || len(j.v.Undone) > 0 && shaken(atts)) {
		if paid, err := n.paidBefore(ctx, j, atts); paid || err != nil {
			return err
		}
	}
	switch {
	case len(p.open) == 0 && n.lost(ctx, j):
		return storage.ErrConflict // its attempts were read after another worker had ended it
	case len(p.open) == 0:
		return fmt.Errorf("outgoing: %s without an open attempt", j.v.State)
	case p.mined != nil && p.final:
		return n.finalize(ctx, j, atts, &p)
	case p.mined != nil:
		return n.confirm(ctx, j, &p)
	case p.dead:
		return n.markDead(ctx, j, &p)
	}
	if of, err := n.deadParent(ctx, j); err != nil {
		return err
	} else if of != nil {
		return n.closeChild(ctx, j, atts, of)
	}
	if err := n.unmined(ctx, j, &p); err != nil {
		return err
	}
	if j.v.Reason == "" && !n.Now().Before(j.v.BumpAt) && n.Now().Sub(p.open[0].v.Stored) >= n.TellAfter {
		may, err := n.mayTell(ctx, j)
		if err != nil {
			return err
		}
		if may { // else it is sent again and replaced as ever
			n.Log.Warn("stuck", slog.String("intent", j.id), slog.String("tx", j.v.Tx), slog.Time("since", p.open[0].v.Stored))
			j.v.State = Signed // also one that is executed without confirmations
			return n.tellPlace(ctx, j, p.open[len(p.open)-1], ReasonStuck)
		}
	}
	if p.blocked {
		return nil // nothing that we send helps until that block is final or gone
	}
	return n.rebroadcastOrReplace(ctx, j, &p)
}

// mayTell reports whether the owners of a payment may be told that no block has it. An executed one must have been
// told as executed before, and every process must know AbilityUnmined.
func (n *Sender) mayTell(ctx context.Context, j *claimedIntent) (bool, error) {
	if j.v.State != Executed {
		return true, nil
	}
	if !n.able(ctx, AbilityUnmined) {
		return false, nil
	}
	ids := []string{j.id}
	for _, m := range j.members {
		ids = append(ids, m.id)
	}
	rows, err := n.Store.Rows(ctx, Outcomes.Table, storage.Keys(n.part, ids...)...)
	untold := slices.ContainsFunc(rows, func(r storage.Row) bool { return !r.Due.IsZero() })
	return err == nil && !untold, err
}

// paidBefore reports whether a transaction has paid an order that takes what the open ones
// spend, though its row says that it is dead.
func (n *Sender) paidBefore(ctx context.Context, j *claimedIntent, atts []*attempt) (bool, error) {
	closed := slices.DeleteFunc(slices.Clone(atts), func(a *attempt) bool { return a.v.State == Open })
	if len(closed) == 0 || j.v.Purpose != chain.ForWithdrawal {
		return false, nil
	}
	if err := n.ask(ctx, closed); err != nil {
		return false, err
	}
	a := landed(closed)
	if a != nil {
		n.altered(j, "its transaction "+a.tx+" has paid it, and its row says that it is dead")
	}
	return a != nil, nil
}

// altered logs that rows of an order were edited.
func (n *Sender) altered(j *claimedIntent, why string) {
	n.Log.Error("order_altered", slog.String("tenant", j.v.Tenant), slog.String("intent", j.id), slog.String("reason", why))
}

// confirm follows a transaction that is in a block, not yet for good.
func (n *Sender) confirm(ctx context.Context, j *claimedIntent, p *attemptSummary) error {
	a := p.mined
	reached := a.st.Executed && a.st.Confirmations >= max(1, j.v.Confirmations) && (a.v.Purpose != chain.ForCancel || j.merge())
	switch {
	case reached && j.v.State != Executed:
	case reached && a.st.Shortfall > 0 && j.v.Reason != ReasonDeliveredLess: // it was accepted before it landed
	case a.mined() != j.v.Tx:
	case reached && j.v.Confirmations == 0 && !n.Now().Before(j.v.BumpAt): // a fork that takes it gives it its time again
		j.v.BumpAt = n.Now().Add(n.StuckAfter)
		return n.commit(ctx, j, transition{op: onMined, due: n.Now().Add(n.Poll)})
	default:
		return nil
	}
	if j.v.Tx = a.mined(); j.v.aside() && !reached { // to its owner it goes on waiting
		return n.commit(ctx, j, transition{op: onMined, due: n.Now().Add(n.Poll)})
	}
	j.v.Reason = ""
	if reached {
		j.v.State, j.v.ExecutedReported, j.v.Reason = Executed, !j.merge(), n.less(j, a)
	}
	s := transition{op: onMined, due: n.Now().Add(n.Poll), outcome: n.outcome(j)}
	if err := n.merged(ctx, j, p, a, &s); err != nil {
		return err
	}
	s.outcome.Confirmations, s.outcome.Amount = a.st.Confirmations, j.paid(&a.v)-a.st.Shortfall
	return n.commit(ctx, j, s)
}

// unmined tells the owner that an executed transaction is no longer in a block:
// the same bytes are sent again, nothing is given back.
func (n *Sender) unmined(ctx context.Context, j *claimedIntent, p *attemptSummary) error {
	if j.v.State != Executed || j.v.Confirmations == 0 {
		return nil
	}
	n.Log.Warn("unmined", slog.String("intent", j.id), slog.String("tx", j.v.Tx))
	j.v.State, j.v.Reason, j.v.BumpAt = Signed, ReasonReorged, n.Now().Add(n.StuckAfter)
	if j.merge() {
		j.v.Reason = ""
	}
	s := transition{op: onUnmined, due: n.Now().Add(n.Poll), outcome: n.outcome(j)}
	if err := n.merged(ctx, j, p, nil, &s); err != nil {
		return err
	}
	s.outcome.Amount = j.paid(&p.open[len(p.open)-1].v)
	return n.commit(ctx, j, s)
}

// rebroadcastOrReplace gets a transaction that is in no block there: accepted, sent again, or
// replaced by a dearer one.
func (n *Sender) rebroadcastOrReplace(ctx context.Context, j *claimedIntent, p *attemptSummary) error {
	newest := p.open[len(p.open)-1]
	pending := slices.ContainsFunc(p.open, func(a *attempt) bool { return a.st.State == chain.Pending })
	if pending && j.v.Confirmations == 0 && !j.v.ExecutedReported && j.v.State == Signed && !j.v.Cancelling {
		j.v.State, j.v.ExecutedReported, j.v.Reason, j.v.BumpAt = Executed, true, "", n.Now().Add(n.StuckAfter)
		s := transition{op: onAccepted, due: n.Now().Add(n.Poll), outcome: n.outcome(j)}
		s.outcome.Amount = j.paid(&newest.v)
		return n.commit(ctx, j, s)
	}
	planned := len(j.v.Plan) > 0
	replaced := n.Signer != nil && !j.booked() && (planned || !n.Now().Before(j.v.BumpAt) && j.v.Reason != ReasonOccupied)
	told := j.v.Reason == ReasonHalted && !j.v.aside()
	if !replaced && n.quiet(newest) && !told {
		return nil
	}
	may, err := n.maySend(ctx, j)
	if err != nil {
		n.Log.Info("held_back", slog.String("intent", j.id), slog.String("cause", err.Error()))
		if halted(err) && j.v.State == Signed && (!j.v.Cancelling || j.v.Nonce < 0) && (j.v.Reason == "" || j.v.Reason == ReasonStuck) {
			return n.tellPlace(ctx, j, newest, ReasonHalted)
		}
		if replaced && waitsFor(err, ReasonAltered) {
			return n.takeBack(ctx, j)
		}
		return nil
	}
	if told { // it has its time again before it counts as stuck
		j.v.BumpAt = n.Now().Add(n.StuckAfter)
		if err := n.tellPlace(ctx, j, newest, ""); err != nil {
			return err
		}
	}
	switch {
	case replaced && planned:
		if done, err := n.resume(ctx, j, p); done || err != nil {
			return err
		}
	case replaced:
		if done, err := n.replace(ctx, j, p); done || err != nil {
			return err
		}
	}
	return n.resend(ctx, j, p, may)
}

// takeBack has the nonce of an order whose rows were edited after it was signed go back to
// ourselves, where others wait behind it, and the coins of a transaction that pays others, too:
// what was signed is not sent again, and nobody may ever put those rows right. The others of
// the transaction start again.
func (n *Sender) takeBack(ctx context.Context, j *claimedIntent) (err error) {
	if j.v.Cancelling || j.v.ExecutedReported {
		return nil
	}
	if len(j.members) > 0 {
		j.v.Cancelling = true
		n.Log.Warn("coins_taken_back", slog.String("intent", j.id), slog.String("tx", j.v.Tx))
	} else {
		if j.v.Cancelling, err = n.blocks(ctx, j); err != nil || !j.v.Cancelling {
			return err
		}
		n.Log.Warn("nonce_taken_back", slog.String("intent", j.id), slog.String("tx", j.v.Tx))
	}
	return n.commit(ctx, j, transition{op: onTakeBack, due: n.Now()})
}

// permit is what may be sent of an intent now.
type permit struct {
	guards  []storage.Guard // what the Change that sends again requires
	nothing bool            // only what pays nobody: its nonce or inputs go back to ourselves
}

// maySend asks whether an intent that was signed may be sent again or replaced.
func (n *Sender) maySend(ctx context.Context, j *claimedIntent) (permit, error) {
	guards, err := n.allAllowed(ctx, j.intent(), j.members)
	if err == nil || !j.v.Cancelling || j.child() {
		return permit{guards: guards}, err
	}
	in := j.intent()
	in.Purpose = chain.ForCancel
	guards, err = n.allowed(ctx, in)
	return permit{guards: guards, nothing: true}, err
}

// resume signs a replacement that was planned and not signed before. done is false where the plan
// is gone and nothing was sent in its place.
func (n *Sender) resume(ctx context.Context, j *claimedIntent, pic *attemptSummary) (done bool, err error) {
	p, err := j.v.plan()
	if err != nil {
		return true, err
	}
	if j.v.Cancelling && !j.child() && p.Intent.Purpose != chain.ForCancel {
		return n.replace(ctx, j, pic) // it is to pay nobody any more
	}
	if err := n.planAllowed(ctx, j, p); err != nil {
		n.Log.Info("held_back", slog.String("intent", j.id), slog.String("cause", err.Error()))
		return true, nil
	}
	err = n.sign(ctx, j, false)
	return err != nil || len(j.v.Plan) == 0, err
}

// resendInterval is how long after it was last sent an attempt is sent again: one that a
// node has, seldom; one that no node knows, at once at first, and the longer it
// has been tried in vain, the less often.
func (n *Sender) resendInterval(a *attempt) time.Duration {
	if a.st.State == chain.Pending {
		return n.Resend
	}
	return min(max(a.v.Sent.Sub(a.v.Stored)/2, n.Poll/2), n.Resend)
}

// quiet reports whether an attempt was sent a short time ago: it is not sent again yet.
func (n *Sender) quiet(a *attempt) bool { return n.Now().Before(a.v.Sent.Add(n.resendInterval(a))) }

// resend sends stored bytes again, the newest first; older ones where the newest was
// rejected, or nodes keep one of them in its place. Where all were rejected, one that only
// uses the nonce up is sent again: nothing else frees what waits behind it.
func (n *Sender) resend(ctx context.Context, j *claimedIntent, p *attemptSummary, may permit) error {
	for _, rejected := range []bool{false, true} {
		for i := len(p.open) - 1; i >= 0; i-- {
			a := p.open[i]
			if a.v.Rejected != rejected || (rejected || may.nothing) && a.v.Purpose != chain.ForCancel {
				continue
			}
			if n.quiet(a) {
				return nil
			}
			now := n.Now()
			a.v.Sent = now
			err := n.commit(ctx, j, transition{
				op: onResend, of: a.v.Number, due: now.Add(n.Poll), need: may.guards,
				with: []storage.Row{Attempts.Row(a.tx, a.version, time.Time{}, a.v)},
			})
			if err != nil {
				return err
			}
			a.version++
			if err := n.send(ctx, j, a); err != nil || j.v.Reason != ReasonOccupied {
				return err
			}
		}
	}
	return nil
}
