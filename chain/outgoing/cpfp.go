package outgoing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Where nodes keep a cheap transaction and refuse the dearer one sent in its place,
// another helps that spends what the cheap one returns to us and pays for both (child
// pays for parent). It is an order of its own, to ourselves, once for each that is
// helped. Its coin is not there yet: it becomes one like others when the parent has
// landed, and never was one where something else lands in the parent's place.

// keptAttempt is the attempt that nodes keep though a dearer one was sent more than once in
// its place, nil where there is none.
func (p *attemptSummary) keptAttempt() *attempt {
	newest := p.open[len(p.open)-1]
	if newest.st.State != chain.Unknown || !newest.v.Sent.After(newest.v.Stored) {
		return nil
	}
	at := slices.IndexFunc(p.open, func(a *attempt) bool { return a.st.State == chain.Pending })
	if at < 0 {
		return nil
	}
	return p.open[at]
}

// changeOutput is the place of what a payment returns to us, −1 where it does not. A child
// is none, and has no child: that would have to pay for the first parent, too.
func (a *attempt) changeOutput() int {
	return slices.IndexFunc(a.v.Outputs, func(o chain.Output) bool {
		return o.Change && o.To == a.v.ChangeTo.Address && a.v.Purpose != chain.ForCancel
	})
}

// bumpByCPFP has a child pay for a transaction that nodes keep. helped is true where that is
// to be waited for; else all that is left is replacing.
func (n *Sender) bumpByCPFP(ctx context.Context, j *claimedIntent, p *attemptSummary) (helped bool, err error) {
	a := p.keptAttempt()
	payer, able := n.Client.(chain.ParentPayer)
	if a == nil || !able || n.DisableCPFP || n.info.Family != chain.UTXOFamily {
		return false, nil
	}
	at := a.changeOutput()
	if at < 0 {
		return false, nil
	}
	id := ID{Kind: OrderChild, For: j.id}.String()
	v, stored, born, err := Intents.One(ctx, n.Store, n.part, id)
	if err != nil {
		return false, err
	}
	if born {
		return n.helps(ctx, &claimedIntent{id: id, v: v, version: stored.Version}, a)
	}
	if !n.able(ctx, AbilityChildren) {
		return false, nil
	}
	most, err := n.budgetLeft(j, a)
	if err != nil {
		return false, err
	}
	in := chain.Intent{
		ID: id, Purpose: chain.ForCancel, Tenant: j.v.Tenant, Network: j.v.Network, Currency: n.gas.Code,
		To: a.v.ChangeTo.Address, MaxCost: most, Confirmations: 1,
	}
	coin := chain.Coin{
		Outpoint: fmt.Sprintf("%s:%d", a.tx, at), Address: in.To, Key: a.v.ChangeTo.Key, Amount: a.v.Outputs[at].Amount,
	}
	fee, err := payer.ChildFee(ctx, in, a.v.Raw, a.v.MaxCost)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil && fee.Max > n.limit(in):
		err = fmt.Errorf("%w: %d of at most %d", chain.ErrTooDear, fee.Max, n.limit(in))
	case err == nil && fee.Max >= coin.Amount:
		err = fmt.Errorf("%w: %d comes back", chain.ErrShort, coin.Amount)
	}
	if err != nil {
		n.Log.Info("no_child", slog.String("intent", j.id), slog.String("tx", a.tx), slog.String("cause", err.Error()))
		return false, nil
	}
	back := newCoin(j.v.Tenant, coin)
	known, err := n.loadCoins(ctx, coin.Outpoint)
	if err != nil {
		return false, err
	}
	if len(known) > 0 { // it was a coin before a fork
		if back = known[0]; back.State != CoinGone || back.Intent != "" {
			return false, nil // another order has it
		}
	}
	n.Log.Warn("child_pays", slog.String("intent", j.id), slog.String("tx", a.tx), slog.String("child", id))
	s := transition{op: onBeget, due: n.Now().Add(n.Poll), with: []storage.Row{Intents.Row(id, 0, n.Now(), record(in, n.Now()))}}
	if err := back.expect(id, n.Now(), &s); err != nil {
		return false, err
	}
	return true, n.commit(ctx, j, s)
}

// helps reports whether a child is about to pay for an attempt, or was sent of late: one
// that waits may wait for long, and nodes may take none, as where others have spent so
// much of what the attempt pays that it has too many children.
func (n *Sender) helps(ctx context.Context, child *claimedIntent, a *attempt) (bool, error) {
	if child.v.State != Queued && (child.v.State != Signed || n.Now().After(child.v.BumpAt.Add(n.StuckAfter))) {
		return false, nil
	}
	p, err := n.parentOf(ctx, child)
	return p.tx == a.tx, err
}

// lostParent reports whether a child waits for a parent that no node has: it is not
// too cheap then.
func (n *Sender) lostParent(ctx context.Context, j *claimedIntent, p *attemptSummary) (bool, error) {
	if !j.child() || slices.ContainsFunc(p.open, func(a *attempt) bool { return a.st.State == chain.Pending }) {
		return false, nil
	}
	of, err := n.parentOf(ctx, j)
	return !of.landed, err
}

// budgetLeft is what an order may cost beyond what one transaction of it pays. No more than
// its own part, as the members settle for themselves.
func (n *Sender) budgetLeft(j *claimedIntent, a *attempt) (ledger.Amount, error) {
	o := chain.Order{Intent: j.intent(), Also: also(j.members)}
	most, err := o.MaxCost()
	if err != nil {
		return 0, err
	}
	return min(most-a.v.MaxCost, j.v.MaxCost), nil
}

func (r *IntentRow) ended() bool {
	return r.State == Final || r.State == Failed || r.State == Cancelled
}

// parent is what a child pays for.
type parent struct {
	attempt
	coin   coin // the child's
	landed bool // the parent is final in a block, so its output is a coin
	dead   bool // it never will be
}

func (n *Sender) parentOf(ctx context.Context, j *claimedIntent) (p parent, err error) {
	held, err := n.heldCoins(ctx, j.id)
	if err != nil {
		return p, err
	}
	coins, err := n.loadCoins(ctx, held...)
	if err != nil {
		return p, err
	}
	if len(coins) != 1 && n.lost(ctx, j) {
		return p, storage.ErrConflict // another worker has ended it meanwhile
	}
	if len(coins) != 1 {
		return p, fmt.Errorf("outgoing: a child with %d coins", len(coins))
	}
	p.coin = coins[0]
	p.tx, _, _ = strings.Cut(p.coin.outpoint, ":")
	a, _, ok, err := Attempts.One(ctx, n.Store, n.part, p.tx)
	if err == nil && !ok {
		err = fmt.Errorf("outgoing: a child without a parent %s", p.tx)
	}
	if p.v = a; err != nil || a.State == Open {
		return p, err
	}
	order, _, _, err := Intents.One(ctx, n.Store, n.part, p.v.Intent)
	p.landed = p.v.State == AttemptFinal && order.Tx == p.tx // else it landed under another hash
	p.dead = !p.landed
	return p, err
}

// planChild chooses the transaction of a child, or ends one that is not needed any more.
func (n *Sender) planChild(ctx context.Context, j *claimedIntent) error {
	p, err := n.parentOf(ctx, j)
	if err != nil {
		return err
	}
	if p.dead || p.landed && !j.v.Cancelling {
		return n.closeChild(ctx, j, nil, &p)
	}
	in := j.intent()
	guards, err := n.allowed(ctx, in)
	if err != nil {
		return n.wait(ctx, j, err)
	}
	d := candidate{intent: in, number: j.v.Attempts + 1, rise: 1, nonce: -1, coins: []chain.Coin{p.coin.input()}, change: p.v.ChangeTo}
	if d.fee, err = n.price(ctx, j, in, nil); err == nil {
		err = n.build(ctx, &d)
	}
	little := errors.Is(err, chain.ErrRejected) || errors.Is(err, chain.ErrShort) // what the parent returns pays for no output
	switch {
	case little && !j.v.Cancelling:
		return n.closeChild(ctx, j, nil, &p)
	case little:
		return n.wait(ctx, j, &waitError{ReasonFeeTooHigh, err.Error()})
	case err != nil:
		return n.wait(ctx, j, err)
	}
	j.guards = guards
	return n.bindInputs(ctx, j, &d, transition{op: onReserve, due: n.Now().Add(n.Lease), need: guards})
}

// estimate asks for a fee: a child's is for its parent, too, until that has landed.
func (n *Sender) estimate(ctx context.Context, j *claimedIntent, in chain.Intent) (chain.Fee, error) {
	if payer, able := n.Client.(chain.ParentPayer); able && j.child() {
		p, err := n.parentOf(ctx, j)
		if err != nil {
			return chain.Fee{}, err
		}
		if !p.landed {
			return payer.ChildFee(ctx, in, p.v.Raw, p.v.MaxCost)
		}
	}
	return n.Client.EstimateFee(ctx, in)
}

// deadParent reports whether a child's coin will never be there.
func (n *Sender) deadParent(ctx context.Context, j *claimedIntent) (*parent, error) {
	if !j.child() {
		return nil, nil
	}
	p, err := n.parentOf(ctx, j)
	if err != nil || !p.dead {
		return nil, err
	}
	return &p, nil
}

// closeChild ends a child of which nothing was signed, or nothing can land. Its coin is
// free where it is one.
func (n *Sender) closeChild(ctx context.Context, j *claimedIntent, atts []*attempt, p *parent) error {
	s := transition{op: onEndChild}
	for _, a := range atts {
		if a.v.State == Open {
			if err := a.becomes(onRuleOut); err != nil {
				return err
			}
			s.with = append(s.with, Attempts.Row(a.tx, a.version, time.Time{}, a.v))
		}
	}
	if err := n.unbind(ctx, []string{p.coin.outpoint}, j.id, &s); err != nil {
		return err
	}
	if p.coin.State == CoinUnmined || p.dead { // it never exists
		p.coin.remove(&s)
	} else {
		p.coin.becomes(CoinFree, j.id, &s)
	}
	if j.v.State = Failed; p.landed {
		j.v.State = Cancelled
	}
	j.v.Plan, j.v.Reserved, j.v.Reason = nil, 0, ""
	s.outcome = n.outcome(j)
	return n.commit(ctx, j, s)
}
