package outgoing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/storage"
)

// finalize ends an intent of which one attempt is in a block for good: all others
// shared its nonce or an input, so they are dead with it.
func (n *Sender) finalize(ctx context.Context, j *claimedIntent, atts []*attempt, p *attemptSummary) error {
	won := p.mined
	s := transition{op: onLand}
	if err := n.closeAttempts(ctx, j, atts, won, &s); err != nil {
		return err
	}
	if err := n.unmerged(ctx, j, p, won, &s); err != nil {
		return err
	}
	off, err := n.calledOff(ctx, j)
	if err != nil {
		return err
	}
	aside, err := n.startsAgain(ctx, j)
	if err != nil {
		return err
	}
	why := j.v.Reason
	j.v.Tx, j.v.Reserved, j.v.Reason = won.mined(), 0, ""
	switch {
	case won.st.Executed && won.v.Purpose != chain.ForCancel || j.v.Purpose == chain.ForCancel:
		j.v.State, j.v.Reason = Final, n.less(j, won)
		s.unpaid = j.unpaid(&won.v)
		if won.ahead {
			s.due = n.Now().Add(n.Poll) // it is looked at again until its block was read
		}
	case aside:
		n.waitOn(j, &s, why)
	case j.v.again(), len(j.members) > 0 && !off:
		n.requeue(j, &s)
	default:
		j.v.State, s.alone = Failed, off
		if won.v.Purpose == chain.ForCancel {
			if j.v.Reason, err = n.refusal(ctx, j.id); err != nil {
				return err
			}
		}
	}
	s.levels = j.cost(won.st.Cost)
	s.outcome = n.outcome(j)
	s.outcome.Cost, s.outcome.CostTx, s.outcome.Confirmations = won.v.Cost, won.mined(), won.st.Confirmations
	if j.v.State == Final {
		s.outcome.Amount = j.paid(&won.v) - won.st.Shortfall
	}
	return n.commit(ctx, j, s)
}

// markDead ends the attempts of an intent that can provably never land any more.
func (n *Sender) markDead(ctx context.Context, j *claimedIntent, p *attemptSummary) error {
	s := transition{op: onDie}
	if err := n.closeAttempts(ctx, j, p.open, nil, &s); err != nil {
		return err
	}
	if err := n.unmerged(ctx, j, p, nil, &s); err != nil {
		return err
	}
	off, err := n.calledOff(ctx, j)
	if err != nil {
		return err
	}
	aside, err := n.startsAgain(ctx, j)
	if err != nil {
		return err
	}
	j.v.Reserved = 0
	by := n.taker(j, p)
	switch {
	case by != "":
		n.dispute(j, &s, by)
	case aside && !p.foreign:
		n.waitOn(j, &s, j.v.Reason)
	case j.v.again(), !j.child() && !p.foreign && (len(j.members) > 0 && !off || !j.v.Cancelling && j.v.Attempts < n.MaxAttempts):
		n.requeue(j, &s)
	default:
		j.v.State, j.v.Reason, s.alone = Failed, "", off && !p.foreign
	}
	s.levels = j.cost(0)
	n.Log.Error("attempts_dead", slog.String("intent", j.id), slog.String("tx", j.v.Tx), slog.Bool("foreign", p.foreign), slog.String("state", string(j.v.State)))
	s.outcome = n.outcome(j)
	return n.commit(ctx, j, s)
}

// calledOff reports whether an operator has cancelled the leader of a batch: its members
// start again, and it does not. Without one all start again, so that only who was refused
// fails.
func (n *Sender) calledOff(ctx context.Context, j *claimedIntent) (bool, error) {
	if !j.v.Cancelling || len(j.members) == 0 {
		return false, nil
	}
	return n.cancelled(ctx, j.id)
}

// refusal is why an order failed whose nonce or coins went back to ourselves.
func (n *Sender) refusal(ctx context.Context, id string) (Reason, error) {
	off, err := n.cancelled(ctx, id)
	if off {
		return ReasonCancelled, err
	}
	return ReasonRefused, err
}

// cancelled reports whether an operator has cancelled an order.
func (n *Sender) cancelled(ctx context.Context, id string) (bool, error) {
	count, err := n.Store.Count(ctx, storage.Query{Table: Operations.Table, Partition: n.part, Where: []storage.Cond{
		{Column: "object", Op: storage.Eq, Value: id}, {Column: "kind", Op: storage.Eq, Value: OpCancel},
	}})
	return count > 0, err
}

// requeue sends an order again from the start, under the same intent: where
// every attempt is dead with proof, and its owner was told that it is executed
// or only its time was over.
func (n *Sender) requeue(j *claimedIntent, s *transition) {
	nonce := j.v.Nonce
	j.v.restart()
	if j.isGapFill() {
		j.v.Nonce = nonce
	}
	s.due, s.alone = n.Now(), true
}

// waitOn sends an order again that was set aside: to its owner it has waited all the time.
func (n *Sender) waitOn(j *claimedIntent, s *transition, why Reason) {
	n.requeue(j, s)
	j.v.State, j.v.Reason, j.v.Tx = Waiting, why, ""
}

func (r *IntentRow) restart() {
	r.State, r.Reason, r.Cancelling, r.Tries, r.Nonce = Queued, "", false, 0, -1
}

// again reports whether an order is sent until it lands. One for all that an
// address holds is not: there may be nothing left, and whoever ordered it looks
// at what there is.
func (r *IntentRow) again() bool { return r.ExecutedReported && !r.All }

// closeAttempts writes the fate of all open attempts and ends what they had reserved.
// won is the one that landed, nil where none did.
func (n *Sender) closeAttempts(ctx context.Context, j *claimedIntent, atts []*attempt, won *attempt, s *transition) error {
	bound, err := n.heldCoins(ctx, j.id)
	if err != nil {
		return err
	}
	s.ended = new(mandate.Ending)
	for _, a := range atts {
		if a.v.State != Open {
			continue
		}
		fate := onRuleOut
		switch {
		case a == won:
			if fate = onFinal; a.v.Cost == 0 { // else it is booked: see undoLate
				a.v.Cost = a.st.Cost
			}
			s.ended.Landed, s.ended.Reverted = a.v.Named(a.tx), !a.st.Executed
		case won == nil, a.st.State == chain.Conflicted && n.final(j, &a.st), overlap(a.v.Spends, won.v.Spends):
			s.ended.Dead = append(s.ended.Dead, a.v.Named(a.tx))
		}
		if err := a.becomes(fate); err != nil {
			return err
		}
		bound = append(bound, a.v.Spends...)
		s.with = append(s.with, Attempts.Row(a.tx, a.version, time.Time{}, a.v))
	}
	slices.Sort(bound)
	bound = slices.Compact(bound)
	j.v.Plan = nil // a replacement: it reserved nothing of its own
	if err := n.unbind(ctx, bound, j.id, s); err != nil {
		return err
	}
	if won != nil {
		if err := n.change(ctx, won, s); err != nil {
			return err
		}
	}
	return n.moveCoins(ctx, bound, j.id, s, func(outpoint string) CoinState {
		if won != nil && slices.Contains(won.v.Spends, outpoint) {
			return CoinSpent
		}
		return CoinDisputed
	})
}

// change makes coins of what a landed transaction returned to us. One that is
// known already is left as it is, as it may be spent by now, or is its child's.
func (n *Sender) change(ctx context.Context, won *attempt, s *transition) error {
	for i, o := range won.v.Outputs {
		back := o.Change || won.v.Purpose == chain.ForCancel
		if !back || o.To != won.v.ChangeTo.Address {
			continue
		}
		outpoint := fmt.Sprintf("%s:%d", won.mined(), i)
		v, row, known, err := Coins.One(ctx, n.Store, n.part, outpoint)
		if err != nil {
			return err
		}
		switch {
		case known && v.State == CoinUnmined:
			c := coinOf(row)
			c.arrive(s)
			continue
		case known && v.State == CoinGone && ParseID(won.v.Intent).Kind == OrderMerge:
			back, guard, err := Found(ctx, n.Store, n.part, row)
			if err != nil {
				return err
			}
			s.with, s.need = append(s.with, back), union(s.need, []storage.Guard{guard})
			continue
		case known:
			continue
		}
		s.with = append(s.with, CoinRow(won.v.Tenant, chain.Coin{
			Outpoint: outpoint, Address: o.To, Key: won.v.ChangeTo.Key, Amount: o.Amount,
		}))
	}
	return nil
}

// replace plans, signs and sends a dearer transaction with the same nonce or
// the same inputs; where the order was rejected for good, one that pays
// ourselves. done is false where there is nothing better to send than what
// there is.
func (n *Sender) replace(ctx context.Context, j *claimedIntent, p *attemptSummary) (done bool, err error) {
	if helped, err := n.bumpByCPFP(ctx, j, p); helped || err != nil {
		return false, err
	}
	last := p.open[len(p.open)-1]
	if len(last.v.Spends) == 0 || n.lapses() || len(p.open) >= n.MaxAttempts && !j.v.Cancelling && !j.v.ExecutedReported {
		return false, nil // it would not conflict, and both could land
	}
	// What is called off is replaced once although it is behind others, as it may land with them.
	if behind, err := n.behind(ctx, j); err != nil || behind && (!j.v.Cancelling || last.v.Purpose == chain.ForCancel) {
		return false, err
	}
	if holes, err := n.findNonceGaps(ctx, j); err != nil || holes {
		return false, err
	}
	if waits, err := n.undoPending(ctx, j); err != nil || waits {
		return false, err
	}
	if lost, err := n.lostParent(ctx, j, p); err != nil || lost {
		return false, err
	}
	d := candidate{intent: j.intent(), members: j.members, number: j.v.Attempts + 1, rise: len(p.open) + 1, nonce: last.v.Nonce, coins: last.v.Coins, change: last.v.ChangeTo}
	switch {
	case j.v.Cancelling:
		d.intent, d.members = n.filling(j, last.v.ChangeTo), nil
	case j.merge():
		d.intent.To = last.v.ChangeTo.Address
	}
	before := j.v
	ended, err := n.replaceLostInputs(ctx, j, p, &d)
	if ended {
		return true, err
	}
	var s transition
	if err == nil {
		s, err = n.buildReplacement(ctx, j, &d, p)
	}
	if err == nil {
		err = n.bindInputs(ctx, j, &d, s)
	}
	switch {
	case err == nil:
		return true, n.sign(ctx, j, true)
	case ctx.Err() != nil, errors.Is(err, storage.ErrConflict):
		return true, err
	}
	n.Log.Warn("not_replaced", slog.String("intent", j.id), slog.String("tx", last.tx), slog.String("cause", err.Error()))
	bound := j.v.MaxCost // may have been raised, which is stored
	j.v = before
	j.v.MaxCost, j.v.BumpAt = bound, n.Now().Add(n.StuckAfter)
	next := transition{op: onUnreplaced, due: n.Now().Add(n.Poll)}
	if why := n.unreplaced(ctx, j, p, err); why != "" && j.v.State == Signed && why != j.v.Reason && j.v.Reason != ReasonOccupied && !j.v.aside() {
		j.v.Reason = why
		next.outcome = n.outcome(j)
		next.outcome.Amount = j.paid(&last.v)
	}
	if dear := (*chain.DearError)(nil); errors.As(err, &dear) && !j.v.Cancelling && !j.v.ExecutedReported {
		// It is not worth what it would cost now, and its nonce may keep others from being
		// sent: then that goes back to ourselves.
		if j.v.Cancelling, err = n.blocks(ctx, j); err != nil {
			return false, err
		}
	}
	return false, n.commit(ctx, j, next)
}

// unreplaced is what a signed order waits for that cannot be replaced because of cause, ""
// where nodes take what was sent. Coins that a dearer transaction alone lacks are not waited
// for.
func (n *Sender) unreplaced(ctx context.Context, j *claimedIntent, p *attemptSummary, cause error) Reason {
	if errors.Is(cause, chain.ErrShort) {
		return n.signedShort(ctx, j, p)
	}
	if why := reasonOf(cause); why == ReasonOperatorFunds || why == ReasonFeeTooHigh {
		return why
	}
	return ""
}

// signedShort says what the address of a signed order has too little of for the order's
// cheapest transaction, "" = of nothing, or it is not known: nodes take none without it.
// Where all of an address is sent its owner sees to the gas.
func (n *Sender) signedShort(ctx context.Context, j *claimedIntent, p *attemptSummary) Reason {
	b, ok := n.Client.(chain.Balancer)
	if !ok || n.nonces == nil || j.v.All || j.v.Cancelling {
		return ""
	}
	amount := decimal.Zero // a token that is missing keeps no transaction out of a block
	if j.v.Currency == n.gas.Code {
		amount = n.gas.Decimal(j.v.Amount)
	}
	least := slices.MinFunc(p.open, func(a, b *attempt) int { return cmp.Compare(a.v.MaxCost, b.v.MaxCost) })
	lacks := (*waitError)(nil)
	if err := holds(ctx, b, n.gas, j.v.From, amount, n.gas.Decimal(least.v.MaxCost)); errors.As(err, &lacks) {
		return n.uncovered(ctx, j, lacks.reason)
	}
	return ""
}

// behind reports whether an earlier nonce of the same address is still open: it
// is that one which is stuck, and a dearer fee here would help nothing.
func (n *Sender) behind(ctx context.Context, j *claimedIntent) (bool, error) {
	first, err := n.first(ctx, j)
	return first != "", err
}

// first is the signed order with the lowest nonce of an order's address, "" where none is
// lower than its own.
func (n *Sender) first(ctx context.Context, j *claimedIntent) (string, error) {
	if j.v.Nonce < 0 {
		return "", nil
	}
	rows, err := n.Store.Find(ctx, storage.Query{Table: Intents.Table, Partition: n.part, Limit: 1, Where: []storage.Cond{
		{Column: "from_address", Op: storage.Eq, Value: j.v.From},
		{Column: "nonce", Op: storage.Ge, Value: int64(0)},
		{Column: "nonce", Op: storage.Lt, Value: j.v.Nonce},
		{Column: "state", Op: storage.Eq, Value: Signed},
	}, Order: []storage.Order{{Column: "nonce"}}})
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].ID, nil
}

// buildReplacement builds the replacement.
func (n *Sender) buildReplacement(ctx context.Context, j *claimedIntent, d *candidate, p *attemptSummary) (s transition, err error) {
	guards, err := n.allAllowed(ctx, d.intent, d.members)
	if err != nil {
		return s, err
	}
	for range maxRises {
		afresh := *d
		s, err = n.outbid(ctx, j, d, p, &p.open[len(p.open)-1].v.Fee)
		if errors.Is(err, chain.ErrTooDear) && p.rejected() {
			*d = afresh
			d.rise = 1
			s, err = n.outbid(ctx, j, d, p, nil) // nodes have nothing that it must outbid
		}
		raised, e := n.raise(ctx, j, &afresh.intent, err)
		if e != nil {
			err = e
		}
		if !raised {
			break
		}
		*d = afresh
	}
	s.need, j.guards = union(s.need, guards), guards
	return s, err
}

// outbid builds a candidate at a price that nodes take in the place of what they have: that of
// over, or the one of now where it is nil, and what builders add for each time.
func (n *Sender) outbid(ctx context.Context, j *claimedIntent, d *candidate, p *attemptSummary, over *chain.Fee) (s transition, err error) {
	if d.fee, err = n.price(ctx, j, d.intent, over); err != nil {
		return s, err
	}
	for range maxRises {
		if s, err = n.selectInputs(ctx, j, d); err == nil {
			err = n.checkGasBudget(ctx, j, d)
		}
		if err == nil {
			err = n.worth(ctx, j, d)
		}
		if n.leaveOut(ctx, d, err) && len(d.kept) > 0 {
			d.coins, d.extra = nil, nil
			continue // others take their place
		}
		if err != nil {
			return s, err
		}
		if !n.refused(d, p) {
			s.op = onReplace
			if err = n.reserved(ctx, j, d.built.Spends, s.with); err == nil && !shares(p.open, d.built.Spends) {
				err = errUnreserved
			}
			return s, err
		}
		n.rises(d, p)
		if len(d.kept) > 0 {
			d.coins, d.extra = nil, nil
		}
	}
	return s, fmt.Errorf("%w: a replacement at %d is not dearer than what it replaces", chain.ErrTooDear, d.built.MaxCost)
}

// rejected says that nodes have proved of each open attempt that they never take it.
func (p *attemptSummary) rejected() bool {
	return !slices.ContainsFunc(p.open, func(a *attempt) bool { return !a.v.Rejected })
}

// maxRises is how often a replacement is built anew because it does not pay more.
const maxRises = 4

// mostRises bounds Order.Attempt where it is raised for a size: 1.125^40 is more than the
// ratio of any two sizes.
const mostRises = 40

// timed is an optional ability of clients of UTXO networks whose transactions can land for a
// time only: nodes forget one whose time is over. at is when a signed one can land no more.
type timed interface {
	Until(raw []byte) (at time.Time, ok bool)
}

// over reports whether no node has an attempt any more, because its time is over. It may be
// in a block all the same: that it is dead is for Status to say.
func (n *Sender) over(a *attempt) bool {
	c, able := n.Client.(timed)
	if !able {
		return false
	}
	at, ok := c.Until(a.v.Raw)
	return ok && n.Now().After(at)
}

// refused reports whether nodes that have an open attempt would refuse the candidate: it
// spends the same and pays no more. They do not have one that was rejected, or is over. On account
// networks they compare the price of gas, which Order.Attempt raises: what uses a nonce up
// takes less gas than a payment, and costs less at a higher price.
func (n *Sender) refused(d *candidate, p *attemptSummary) bool {
	return slices.ContainsFunc(p.open, func(a *attempt) bool {
		same := d.intent.Purpose == a.v.Purpose || n.info.Family == chain.UTXOFamily && !a.v.Rejected
		cost := d.built.MaxCost
		if d.intent.Purpose != a.v.Purpose {
			cost -= cost / 9 // a replacement pays an eighth more than the other did: nodes charge its own bytes, too
		}
		return same && cost <= a.v.MaxCost && sameSet(d.built.Spends, a.v.Spends) && !n.over(a)
	})
}

// rises raises the price of a candidate that nodes would refuse, an eighth at a time as builders
// do. A transaction to ourselves is much smaller than one that pays many, and needs many rises.
func (n *Sender) rises(d *candidate, p *attemptSummary) {
	for d.rise++; d.rise < mostRises; d.rise++ {
		next := *d
		if next.built.MaxCost += d.built.MaxCost / 8; !n.refused(&next, p) {
			return
		}
		d.built.MaxCost = next.built.MaxCost
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// filling is the order that uses a nonce or inputs up without paying anybody.
// It bears the intent's id, so that a signer lets it have what the intent has.
func (n *Sender) filling(j *claimedIntent, change chain.Derived) chain.Intent {
	in := j.intent()
	o := chain.Order{Intent: in, Also: also(j.members)} // its inputs are those of all of them
	if most, err := o.MaxCost(); err == nil {
		in.MaxCost = most
	}
	in.Purpose, in.Currency, in.Amount, in.All, in.Memo = chain.ForCancel, n.gas.Code, 0, false, ""
	if in.To = in.From; n.info.Family == chain.UTXOFamily {
		in.To = change.Address
	}
	return in
}
