package outgoing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// A payout may need more coins than one transaction holds. Then coins of its tenant are
// merged first. A merge is an order of its own, to ourselves, that spends as many of the
// largest free coins as one transaction holds. The Change in which the payout begins to
// wait makes as many as it needs. What a merge returns is a coin like others from its first
// confirmation on, and gone while a fork has its block replaced. When no merge is under way
// any more the payout looks at its tenant's coins again: where others took some of them
// meanwhile, it makes more. A merge of which nothing was
// reserved ends as soon as its payout does not wait any more.

// mostMerges is how many merges of a payout are made at a time.
const mostMerges = 50

// crowd says that an order needs more coins than one transaction holds, and what it takes
// to merge them.
type crowd struct {
	merges  int           // at least 1
	now     int           // of them, that can be made at once
	each    ledger.Amount // most that one of them costs
	all     ledger.Amount // what they cost together
	payment ledger.Amount // what the order's own transaction costs afterwards
	largest coin          // of the coins
}

func (e *crowd) Error() string { return fmt.Sprintf("outgoing: its coins take %d merges", e.merges) }

// Unwrap: at present the coins of one transaction are too few.
func (e *crowd) Unwrap() error { return chain.ErrShort }

// crowded asks whether merges let a candidate be paid that the coins of one transaction are too
// few for, and returns cause where they do not. The error is a *crowd where they do.
func (n *Sender) crowded(ctx context.Context, d *candidate, free []coin, cause error) error {
	most := n.MaxInputs
	if d.intent.Purpose != chain.ForWithdrawal || most < 2 || len(free) <= most || len(d.kept) > 0 || len(d.members) > 0 {
		return cause
	}
	amount := d.intent.Amount
	var sum ledger.Amount
	err := n.eachFree(ctx, &d.intent, func(c *coin) (more bool, err error) {
		sum, err = sum.Add(c.Amount)
		return sum < amount, err
	})
	switch {
	case err != nil:
		return err
	case sum < amount:
		return cause
	}
	o := chain.Order{Intent: n.mergeFor(&d.intent, d.change.Address), Fee: d.fee, Change: d.change.Address, Attempt: 1}
	for i := range most {
		o.Coins = append(o.Coins, free[i].input())
	}
	u, err := n.Client.Build(ctx, o)
	var left *chain.UnfitError
	switch {
	case errors.As(err, &left):
		return err
	case errors.Is(err, chain.ErrShort), errors.Is(err, chain.ErrRejected):
		return &waitError{ReasonFeeTooHigh, "its coins bring less than it costs to merge them"}
	case err != nil:
		return err
	}
	c := crowd{merges: 1, each: u.MaxCost, largest: free[0]}
	perCoin, err := c.each.MulDiv(1, uint64(most), ledger.Up)
	if err != nil {
		return err
	}
	var worth ledger.Amount
	count, enough := 0, false
	err = n.eachFree(ctx, &d.intent, func(each *coin) (more bool, err error) {
		if each.Amount <= perCoin {
			return false, nil // it costs more than it brings, and so do those after it
		}
		if worth, err = worth.Add(each.Amount - perCoin); err != nil {
			return false, err
		}
		for count++; count > most+c.merges*(most-1); {
			c.merges++
		}
		// What the merges return is spent once more, and the payment has change.
		extra, err := perCoin.MulDiv(uint64(c.merges)+2, 1, ledger.Up)
		if err != nil {
			return false, err
		}
		need, err := amount.Add(extra)
		enough = err == nil && worth >= need
		return !enough, err
	})
	switch {
	case err != nil:
		return err
	case !enough:
		return &waitError{ReasonOperatorFunds, cause.Error()}
	case count <= most:
		return cause
	}
	if c.now = min(c.merges, mostMerges); c.merges > most {
		c.now = min(c.now, count/most) // what merges return is merged again
	}
	rest := max(count-c.merges*(most-1), 1) // coins of the payment
	if c.payment, err = perCoin.MulDiv(uint64(rest)+1, 1, ledger.Up); err == nil {
		c.all, err = perCoin.MulDiv(uint64(count+c.merges-rest), 1, ledger.Up)
	}
	if err != nil {
		return err
	}
	return &c
}

// eachFree hands out what may be spent for an intent, largest first, for as long as f wants more.
func (n *Sender) eachFree(ctx context.Context, in *chain.Intent, f func(*coin) (more bool, err error)) error {
	give := func(rows []storage.Row) (more bool, err error) {
		coins, err := n.fit(ctx, in.Tenant, rows)
		if err != nil {
			return false, err
		}
		for i := range coins {
			if more, err := f(&coins[i]); err != nil || !more {
				return false, err
			}
		}
		return true, nil
	}
	q := n.freeQuery(in)
	var rows []storage.Row
	for r, err := range storage.All(ctx, n.Store, q) {
		if err != nil {
			return err
		}
		if rows = append(rows, r); len(rows) < q.Limit {
			continue
		}
		if more, err := give(rows); err != nil || !more {
			return err
		}
		rows = nil
	}
	_, err := give(rows)
	return err
}

// mergeFor is a merge for a payout, without id and bound.
func (n *Sender) mergeFor(in *chain.Intent, to chain.Address) chain.Intent {
	return chain.Intent{
		Purpose: chain.ForCancel, Tenant: in.Tenant, Network: in.Network, Currency: n.gas.Code, To: to, Confirmations: 1,
	}
}

// merging says what a payout waits for while coins of its tenant are being merged: for one
// of its own that waits, what that one waits for. "" = none is under way. Those of other
// payouts that wait are not waited for, nor are early ones.
func (n *Sender) merging(ctx context.Context, payout, tenant string) (Reason, error) {
	rows, err := n.merges(ctx, tenant)
	if err != nil {
		return "", err
	}
	rows = slices.DeleteFunc(rows, func(r storage.Row) bool { return ParseID(r.ID).Early() })
	spendable, err := n.coinsOf(ctx, rows)
	if err != nil {
		return "", err
	}
	var why Reason
	for _, r := range rows {
		switch v := Intents.Value(r); {
		case v.State == Executed && spendable[mergedCoin(v.Tx)]:
		case v.Reason == "":
			return ReasonConsolidating, nil
		case ParseID(r.ID).For == payout:
			why = v.Reason
		}
	}
	return why, nil
}

// merges lists a tenant's merges that have not ended.
func (n *Sender) merges(ctx context.Context, tenant string) ([]storage.Row, error) {
	rows, err := n.Store.Find(ctx, storage.Query{Table: Intents.Table, Partition: n.part, Limit: 1000, Where: []storage.Cond{
		{Column: "tenant", Op: storage.Eq, Value: tenant},
		{Column: "state", Op: storage.In, Value: []State{Queued, Waiting, Signed, Executed}},
		{Column: "purpose", Op: storage.Eq, Value: chain.ForCancel},
	}})
	return slices.DeleteFunc(rows, func(r storage.Row) bool { return ParseID(r.ID).Kind != OrderMerge }), err
}

// mergedCoin is what a transaction of a merge returns, its only output.
func mergedCoin(tx string) string { return tx + ":0" }

// coinsOf says of which coins there are rows, of those that executed merges return. An
// earlier version had none before a merge was final.
func (n *Sender) coinsOf(ctx context.Context, merges []storage.Row) (map[string]bool, error) {
	var ids []string
	for _, r := range merges {
		if v := Intents.Value(r); v.State == Executed {
			ids = append(ids, mergedCoin(v.Tx))
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	coins, err := n.loadCoins(ctx, ids...)
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(coins))
	for i := range coins {
		out[coins[i].outpoint] = true
	}
	return out, nil
}

// merged has the coins of a merge follow the attempt that is in a block, nil where none is:
// what that returns can be spent, and what it spends counts no more.
func (n *Sender) merged(ctx context.Context, j *claimedIntent, p *attemptSummary, in *attempt, s *transition) error {
	if !j.merge() {
		return nil
	}
	if err := n.unmerged(ctx, j, p, in, s); err != nil {
		return err
	}
	if in != nil {
		if err := n.change(ctx, in, s); err != nil {
			return err
		}
	}
	held, err := n.heldCoins(ctx, j.id)
	if err != nil {
		return err
	}
	return n.moveCoins(ctx, held, j.id, s, func(outpoint string) CoinState {
		if in != nil && slices.Contains(in.v.Spends, outpoint) {
			return CoinSpent
		}
		return CoinReserved
	})
}

// unmerged takes away what open attempts of a merge would return, but for the one that is in
// a block: nothing pays with it before it is in one.
func (n *Sender) unmerged(ctx context.Context, j *claimedIntent, p *attemptSummary, but *attempt, s *transition) error {
	if !j.merge() {
		return nil
	}
	var ids []string
	for _, a := range p.open {
		if a != but {
			ids = append(ids, mergedCoin(a.tx))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	coins, err := n.loadCoins(ctx, ids...)
	for i := range coins {
		coins[i].leaveBlock(s)
	}
	return err
}

// had are a payout's merges so far: how many, and the sum of their bounds, or of what those
// cost that have ended.
func (n *Sender) had(ctx context.Context, payout string) (count int, bounds ledger.Amount, err error) {
	const page = 100
	for {
		keys := make([]string, page)
		for i := range keys {
			keys[i] = ID{OrderMerge, payout, count + i + 1}.String()
		}
		rows, err := n.Store.Rows(ctx, Intents.Table, storage.Keys(n.part, keys...)...)
		if err != nil {
			return 0, 0, err
		}
		for _, r := range rows {
			if bounds, err = bounds.Add(Intents.Value(r).MaxCost); err != nil {
				return 0, 0, err
			}
		}
		if count += len(rows); len(rows) < page {
			return count, bounds, nil
		}
	}
}

// mayCost is the most that moving coins for a payout may cost.
func (n *Sender) mayCost(ctx context.Context, in chain.Intent) (ledger.Amount, error) {
	if n.MayCost == nil {
		return in.Amount / 2, nil
	}
	return n.MayCost(storage.Apart(ctx), in)
}

// boundsOf counts the bounds of a payout's merges: together they are at most allowed.
func boundsOf(payout string, more, allowed ledger.Amount) []storage.Level {
	return []storage.Level{{Name: "merged-for/" + payout, Delta: int64(more), Max: int64(allowed)}}
}

// consolidate makes the merges that a payout needs, and has it wait for them. What they
// cost together with the payment is at most the allowed share of the amount.
func (n *Sender) consolidate(ctx context.Context, j *claimedIntent, d *candidate, c *crowd) error {
	in := j.intent()
	allowed, err := n.mayCost(ctx, in)
	if err != nil {
		return n.wait(ctx, j, &waitError{ReasonNode, "what its merges may cost: " + err.Error()})
	}
	count, used, err := n.had(ctx, j.id)
	if err != nil {
		return err
	}
	room := allowed - used - c.payment
	if c.all > room {
		return n.wait(ctx, j, &waitError{ReasonFeeTooHigh, fmt.Sprintf("merging its coins costs %d of at most %d", c.all, room)})
	}
	most, err := max(c.each, d.fee.Max).MulDiv(roomNum, roomDen, ledger.Up)
	if err != nil {
		return err
	}
	most = max(min(most, room/ledger.Amount(c.merges)), 1)
	together, err := most.MulDiv(uint64(c.now), 1, ledger.Up)
	if err != nil {
		return err
	}
	now := n.Now()
	// The largest coin is written as it is: of two payouts that decide at the same moment,
	// one meets a conflict, and then sees the merges of the other.
	s := transition{
		op: onMerge, due: now.Add(n.Backoff), need: j.guards, levels: boundsOf(j.id, together, allowed),
		with: []storage.Row{c.largest.row()},
	}
	for k := range c.now {
		m := n.mergeFor(&in, d.change.Address)
		m.ID, m.MaxCost = ID{OrderMerge, j.id, count + k + 1}.String(), most
		s.with = append(s.with, Intents.Row(m.ID, 0, now, record(m, now)))
	}
	j.v.State, j.v.Reason, j.v.Tries = Waiting, ReasonConsolidating, 0
	s.outcome = n.outcome(j)
	n.Log.Info("coins_are_merged", slog.String("intent", j.id), slog.Int("merges", c.now), slog.Int64("cost", int64(c.all)))
	return n.commit(ctx, j, s)
}

// drawMerge takes the coins of a merge.
func (n *Sender) drawMerge(ctx context.Context, j *claimedIntent, d *candidate, free []coin, s *transition) error {
	if j.early() {
		return n.drawEarly(ctx, j, d, s)
	}
	free = free[:min(len(free), n.MaxInputs)]
	if len(free) < 2 {
		return errUnneeded
	}
	return n.mergeCoins(ctx, j, d, free, s)
}

// mergeCoins takes these coins for a merge.
func (n *Sender) mergeCoins(ctx context.Context, j *claimedIntent, d *candidate, free []coin, s *transition) error {
	d.intent.To, d.first = d.change.Address, true
	for i := range free {
		d.coins = append(d.coins, free[i].input())
	}
	if err := n.build(ctx, d); err != nil {
		return err
	}
	return n.take(j, free, s)
}

// errUnneeded ends a merge of which nothing was reserved.
var errUnneeded = errors.New("outgoing: the merge is not needed")

// needed returns errUnneeded where the payout of a merge does not wait any more.
func (n *Sender) needed(ctx context.Context, j *claimedIntent) error {
	if j.early() {
		if n.mergingOf(j.v.Tenant).Off {
			return fmt.Errorf("%w: Config.Merging is off", errUnneeded)
		}
		why, err := n.earlyTaken(ctx, j.v.Tenant, j.id)
		if err == nil && why != "" {
			return fmt.Errorf("%w: %s", errUnneeded, why)
		}
		return err
	}
	v, _, ok, err := Intents.One(ctx, n.Store, n.part, ParseID(j.id).For)
	if err == nil && (!ok || !v.idle()) {
		return errUnneeded
	}
	return err
}

// unneeded ends a merge of which nothing was reserved.
func (n *Sender) unneeded(ctx context.Context, j *claimedIntent, cause error) error {
	return n.end(ctx, j, transition{}, cause)
}

// end ends a merge with what gives back all that was reserved for it.
func (n *Sender) end(ctx context.Context, j *claimedIntent, s transition, cause error) error {
	n.Log.Info("merge_not_made", slog.String("intent", j.id), slog.String("cause", cause.Error()))
	j.v.State, j.v.Reason = Cancelled, ""
	s.op, s.outcome, s.levels = onUnneeded, n.outcome(j), j.cost(0)
	return n.commit(ctx, j, s)
}

// cost has a merge that has ended count with what it cost, and no more with what it might
// have cost, towards what all merges of its payout may.
func (j *claimedIntent) cost(cost ledger.Amount) []storage.Level {
	left := j.v.MaxCost - cost
	if !j.merge() || j.early() || !j.v.ended() || left <= 0 {
		return nil
	}
	j.v.MaxCost = cost
	return boundsOf(ParseID(j.id).For, -left, 0)
}

// backed has what a merge may cost set aside. The bound of other orders was set aside before
// they were submitted.
func (n *Sender) backed(ctx context.Context, j *claimedIntent, in chain.Intent) error {
	if !j.merge() || n.Raise == nil {
		return nil
	}
	in.MaxCost = 0
	got, err := n.Raise(storage.Apart(ctx), in, j.v.MaxCost)
	switch {
	case err != nil:
		return &waitError{ReasonOperatorFunds, "what the merge may cost: " + err.Error()}
	case got < j.v.MaxCost:
		return &waitError{ReasonFeeTooHigh, fmt.Sprintf("the merge may cost %d", got)}
	}
	return nil
}

// bounded counts a higher bound of a merge towards what all of its payout may cost.
func (n *Sender) bounded(ctx context.Context, j *claimedIntent, more ledger.Amount) ([]storage.Level, error) {
	if !j.merge() || j.early() {
		return nil, nil
	}
	payout := ParseID(j.id).For
	v, _, _, err := Intents.One(ctx, n.Store, n.part, payout)
	if err != nil {
		return nil, err
	}
	allowed, err := n.mayCost(ctx, v.intent(payout))
	if err != nil {
		return nil, &waitError{ReasonNode, "what the merge may cost: " + err.Error()}
	}
	return boundsOf(payout, more, allowed), nil
}
