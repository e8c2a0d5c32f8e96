package outgoing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// replans is how often a plan is made anew because another worker reserved
// what it was about to.
const replans = 8

// errBusy: another intent's transaction from the same address is being signed.
var errBusy = &waitError{ReasonSigner, "a transaction of the same address is being signed"}

// start brings a queued intent to where its transaction is stored and sent, or
// puts it aside with a reason.
func (n *Sender) start(ctx context.Context, j *claimedIntent) error {
	if j.edited != "" {
		return n.keepBack(ctx, j)
	}
	fresh := len(j.v.Plan) == 0
	if fresh {
		if err := n.reserve(ctx, j); err != nil || len(j.v.Plan) == 0 {
			return err
		}
		return n.sign(ctx, j, true)
	}
	p, err := j.v.plan()
	if err != nil {
		return err
	}
	if j.v.Cancelling && !j.child() && p.Intent.Purpose != chain.ForCancel {
		return n.cancelPlan(ctx, j, p, errCancelled)
	}
	if err := n.planAllowed(ctx, j, p); err != nil {
		if n.parted(ctx, j, p, err) {
			n.Log.Warn("coins_taken_back", slog.String("intent", j.id), slog.String("cause", err.Error()))
			return n.cancelPlan(ctx, j, p, errCancelled)
		}
		return n.wait(ctx, j, err) // with its plan: a signer may have seen it
	}
	return n.sign(ctx, j, false)
}

// parted reports whether a stored plan was held back for some time, as some of its batch may not be
// sent and others may. Then its coins go back to ourselves, and each starts again alone.
func (n *Sender) parted(ctx context.Context, j *claimedIntent, p *plan, cause error) bool {
	if len(p.Also) == 0 || j.v.Tries < heldBack || !halted(cause) && !waitsFor(cause, ReasonAltered) {
		return false
	}
	return slices.ContainsFunc(append([]chain.Intent{p.Intent}, p.Also...), func(in chain.Intent) bool {
		_, err := n.allowed(ctx, in)
		return err == nil
	})
}

// planAllowed asks whether a stored plan may be signed and sent now.
func (n *Sender) planAllowed(ctx context.Context, j *claimedIntent, p *plan) (err error) {
	j.guards, err = n.allowed(ctx, p.Intent)
	for _, in := range p.Also {
		if err != nil {
			break
		}
		var theirs []storage.Guard
		theirs, err = n.allowed(ctx, in)
		j.guards = union(j.guards, theirs)
	}
	return err
}

// reserve chooses a fee and a nonce or coins, builds the transaction, and binds
// them to the intent in one Change. Nothing is bound before the transaction
// could be built, so an order that is short or too dear burns no nonce. Without
// an error and without a plan the intent was put aside.
func (n *Sender) reserve(ctx context.Context, j *claimedIntent) error {
	in := j.intent()
	if waits, err := n.outcomePending(ctx, j); waits || err != nil {
		return err
	}
	if waits, err := n.endedBefore(ctx, j); waits || err != nil {
		return err
	}
	if j.child() {
		return n.planChild(ctx, j)
	}
	if j.merge() {
		if err := n.needed(ctx, j); errors.Is(err, errUnneeded) {
			return n.unneeded(ctx, j, err)
		} else if err != nil {
			return err
		}
	}
	if slices.Contains(n.Retired, in.Currency) {
		return n.wait(ctx, j, &waitError{ReasonHalted, "its currency is retired"})
	}
	if _, err := n.allowed(ctx, in); err != nil {
		return n.wait(ctx, j, err)
	}
	if err := n.sponsor(ctx, &in); err != nil {
		return n.wait(ctx, j, err)
	}
	fee, err := n.priced(ctx, j, &in, nil)
	if err != nil {
		return n.waitOr(ctx, j, err)
	}
	members, theirs := n.selectMembers(ctx, j)
	var change chain.Derived
	var left map[string]bool
	for tries := 0; tries < replans; tries++ {
		guards, err := n.allowed(ctx, in) // again: a halt may have come meanwhile
		if err != nil {
			return n.wait(ctx, j, err)
		}
		d := candidate{intent: in, members: members, fee: fee, number: j.v.Attempts + 1, rise: 1, nonce: -1, change: change, left: left}
		if j.isGapFill() {
			d.nonce = j.v.Nonce
		}
		s, err := n.selectInputs(ctx, j, &d)
		if err == nil {
			err = n.checkGasBudget(ctx, j, &d)
		}
		if err == nil {
			err = n.backed(ctx, j, in)
		}
		change = d.change
		if n.leaveOut(ctx, &d, err) {
			left = d.left
			tries-- // others take their place: each time they are fewer
			continue
		}
		if err != nil && len(members) > 0 && ctx.Err() == nil {
			members = members[:len(members)/3] // too much, too dear, or one that can never be paid
			continue
		}
		if raised, e := n.raise(ctx, j, &in, err); raised || e != nil {
			if e != nil {
				return n.waitOr(ctx, j, e)
			}
			continue
		}
		if more := (*crowd)(nil); errors.As(err, &more) {
			j.guards = guards
			return n.consolidate(ctx, j, &d, more)
		}
		if errors.Is(err, errUnneeded) {
			return n.unneeded(ctx, j, err)
		}
		if errors.Is(err, errBusy) && j.v.Tries < 3 {
			j.v.Tries++
			return n.commit(ctx, j, transition{op: onLater, due: n.Now().Add(n.Backoff / 4)})
		}
		if err != nil {
			return n.wait(ctx, j, err)
		}
		if len(members) > 0 {
			guards = union(guards, theirs)
		}
		s.need, j.guards = union(s.need, guards), guards
		before := j.v
		if err = n.joinBatch(ctx, j, &d, s); err == nil {
			return nil
		}
		j.v, members = before, nil
		if !errors.Is(err, storage.ErrConflict) || n.lost(ctx, j) {
			return err
		}
	}
	return n.wait(ctx, j, &waitError{ReasonNode, "others reserved first"})
}

// sponsor names who pays the network, where it need not be the sender.
func (n *Sender) sponsor(ctx context.Context, in *chain.Intent) error {
	s, able := n.Client.(chain.Sponsored)
	if n.Payer == nil || !able || !s.Sponsored(*in) {
		return nil
	}
	p, err := n.Payer(ctx, *in)
	if err == nil && p.Address != in.From {
		in.Payer, in.PayerKey = p.Address, p.Key
	}
	return err
}

// outcomePending holds an order that starts again back until its owner has booked what
// the transaction before it cost: the next Outcome takes that one's place.
func (n *Sender) outcomePending(ctx context.Context, j *claimedIntent) (bool, error) {
	if j.v.Attempts == 0 {
		return false, nil
	}
	o, row, _, err := Outcomes.One(ctx, n.Store, n.part, j.id)
	if err != nil || o.CostTx == "" && len(o.Undone) == 0 || row.Due.IsZero() {
		return false, err
	}
	return true, n.commit(ctx, j, transition{op: onUntold, due: n.Now().Add(n.Backoff)})
}

// lost reports whether the claim on the intent is another's now.
func (n *Sender) lost(ctx context.Context, j *claimedIntent) bool {
	_, row, ok, err := Intents.One(ctx, n.Store, n.part, j.id)
	return err != nil || !ok || row.Version != j.version
}

// allowed asks whether this intent may be sent now, and returns what the Change that does
// so must require.
func (n *Sender) allowed(ctx context.Context, in chain.Intent) (guards []storage.Guard, err error) {
	if n.Guards != nil {
		if guards, err = n.Guards(storage.Apart(ctx), in); err != nil {
			return nil, &waitError{ReasonHalted, "halts cannot be read: " + err.Error()}
		}
	}
	switch guard, err := n.unhalted(ctx, in); {
	case halted(err):
		return nil, err
	case err != nil:
		return nil, &waitError{ReasonHalted, "halts cannot be read: " + err.Error()}
	default:
		guards = union(guards, []storage.Guard{guard})
	}
	if n.Halted == nil {
		return guards, nil
	}
	why, err := n.Halted(ctx, in)
	if err != nil {
		return nil, &waitError{ReasonHalted, "halts cannot be read: " + err.Error()}
	}
	switch r := Reason(why); r {
	case "":
		return guards, nil
	case ReasonHotBalance, ReasonOperatorFunds, ReasonBelowCost, ReasonHalted, ReasonNode, ReasonSigner, ReasonFeeTooHigh, ReasonAltered:
		return nil, &waitError{r, "the host says so"}
	default:
		return nil, &waitError{ReasonHalted, why}
	}
}

// limit is the most that one transaction of the intent may cost.
func (n *Sender) limit(in chain.Intent) ledger.Amount {
	if n.MaxFee > 0 {
		return min(in.MaxCost, n.MaxFee)
	}
	return in.MaxCost
}

// price asks for a fee, never below the one of the attempt to be replaced, and
// refuses one that is out of bounds whoever estimated it.
func (n *Sender) price(ctx context.Context, j *claimedIntent, in chain.Intent, last *chain.Fee) (chain.Fee, error) {
	fee, err := n.estimate(ctx, j, in)
	if err != nil {
		return fee, err
	}
	if last != nil && last.Max > fee.Max {
		fee = *last
	}
	if fee.Max < fee.Cost || fee.Cost < 0 {
		return fee, fmt.Errorf("%w: fee estimate is out of range", chain.ErrNode)
	}
	if fee.Max > n.limit(in) {
		return fee, &chain.DearError{Need: fee.Max, Most: n.limit(in)}
	}
	if more := fee.Max - j.v.Reserved; n.CheckGasBudget != nil && more > 0 {
		ok, err := n.CheckGasBudget(storage.Apart(ctx), in, more)
		if err != nil {
			return fee, &waitError{ReasonOperatorFunds, "the float cannot be read: " + err.Error()}
		}
		if !ok {
			return fee, &waitError{ReasonOperatorFunds, "the operator's float does not bear the fee"}
		}
	}
	return fee, nil
}

// candidate is a transaction being chosen.
type candidate struct {
	intent  chain.Intent
	members []*claimedIntent // paid too
	fee     chain.Fee
	number  int
	rise    int             // Order.Attempt: counts what was stored for this nonce or these coins, as each must pay more
	nonce   int64           // −1: the address's next
	coins   []chain.Coin    // already the intent's
	kept    []chain.Coin    // already the intent's, and not enough any more
	extra   []string        // outpoints that join them
	left    map[string]bool // coins that it cannot spend
	change  chain.Derived   // where the rest goes; "" = ask for an address
	first   bool
	built   chain.Unsigned
}

// selectInputs completes a candidate and returns what its reservation writes.
func (n *Sender) selectInputs(ctx context.Context, j *claimedIntent, d *candidate) (transition, error) {
	s := transition{op: onReserve, due: n.Now().Add(n.Lease)}
	var err error
	switch {
	case n.info.Family == chain.UTXOFamily:
		err = n.drawCoins(ctx, j, d, &s)
	case n.nonces != nil:
		err = n.drawNonce(ctx, j, d, &s)
	default:
		err = n.build(ctx, d)
	}
	return s, err
}

// build has the client make the transaction, and checks what came back against
// the order before anything is reserved for it.
func (n *Sender) build(ctx context.Context, d *candidate) error {
	o := d.order()
	o.Coins = d.coins
	if d.nonce >= 0 {
		o.Nonce = uint64(d.nonce)
	}
	u, err := n.Client.Build(ctx, o)
	if err != nil {
		return err
	}
	if err := n.verify(d, &u); err != nil {
		return err
	}
	d.built = u
	return nil
}

func (d *candidate) order() chain.Order {
	return chain.Order{Intent: d.intent, Also: also(d.members), Fee: d.fee, Change: d.change.Address, Attempt: d.rise}
}

// verify holds the built transaction against the order: what it spends, whom it
// pays, what it may cost.
func (n *Sender) verify(d *candidate, u *chain.Unsigned) error {
	wrong := func(what string) error {
		return fmt.Errorf("%w: the transaction built for %s has %s", chain.ErrNode, d.intent.ID, what)
	}
	o, most := d.order(), d.intent
	var err error
	if most.MaxCost, err = o.MaxCost(); err != nil {
		return err
	}
	if u.MaxCost > n.limit(most) {
		return &chain.DearError{Need: u.MaxCost, Most: n.limit(most)}
	}
	if ParseID(d.intent.ID).Early() {
		value, err := d.spent()
		if err != nil {
			return err
		}
		if most := value / mergesMost; u.MaxCost > most {
			return &chain.DearError{Need: u.MaxCost, Most: most}
		}
	}
	if len(u.Digests) == 0 || u.MaxCost < 0 || u.Network != n.info.Code {
		return wrong("no digests or another network")
	}
	if d.nonce >= 0 && !slices.Equal(u.Spends, []string{Slot(d.intent.From, d.nonce)}) {
		return wrong("another nonce")
	}
	if len(d.coins) > 0 {
		var want []string
		for _, c := range d.coins {
			want = append(want, c.Outpoint)
		}
		if !sameSet(u.Spends, want) {
			return wrong("other inputs")
		}
	}
	return n.verifyOutputs(d, u, wrong)
}

func (n *Sender) verifyOutputs(d *candidate, u *chain.Unsigned, wrong func(string) error) error {
	due := append([]chain.Intent{d.intent}, also(d.members)...)
	for _, o := range u.Outputs {
		if o.Change {
			if o.To != d.change.Address {
				return wrong("its change sent elsewhere")
			}
			continue
		}
		at := slices.IndexFunc(due, func(in chain.Intent) bool {
			return o.To == in.To && o.Currency == in.Currency && (in.All || in.Purpose == chain.ForCancel || o.Amount == in.Amount)
		})
		if at < 0 {
			return wrong("another recipient, currency or amount")
		}
		due = slices.Delete(due, at, at+1)
	}
	if len(due) > 0 && due[0].Purpose != chain.ForCancel {
		return wrong(fmt.Sprintf("%d payments too few", len(due)))
	}
	return nil
}

// bindInputs commits the candidate as the intent's plan, with its reservations.
func (n *Sender) bindInputs(ctx context.Context, j *claimedIntent, d *candidate, s transition) error {
	p := plan{
		Intent: d.intent, Also: also(d.members), Number: d.number, Fee: d.fee, Unsigned: d.built, Nonce: d.nonce,
		Coins: d.coins, Change: d.change, First: d.first, Extra: d.extra,
	}
	var err error
	if p.Keys, err = keysFor(d); err != nil {
		return err
	}
	if j.v.Plan, err = json.Marshal(&p); err != nil {
		return err
	}
	j.v.Attempts, j.v.Nonce = d.number, d.nonce
	j.v.Reserved = max(j.v.Reserved, d.built.MaxCost)
	if n.info.Family == chain.UTXOFamily {
		s.need = append(s.need, storage.Guard{Table: Batches.Table, ID: j.id}) // else another's transaction pays it
	}
	return n.commit(ctx, j, s)
}

// keysFor names the key of each digest.
func keysFor(d *candidate) ([]chain.KeyRef, error) {
	keys := make([]chain.KeyRef, len(d.built.Digests))
	for i, g := range d.built.Digests {
		switch {
		case g.From == d.intent.From && d.intent.FromKey != "":
			keys[i] = d.intent.FromKey
		case g.From == d.intent.Payer && d.intent.PayerKey != "":
			keys[i] = d.intent.PayerKey
		}
		for _, c := range d.coins {
			if c.Address == g.From {
				keys[i] = c.Key
			}
		}
		if keys[i] == "" {
			return nil, fmt.Errorf("%w: no key is known for digest %d of %s", chain.ErrNode, i, d.intent.ID)
		}
	}
	return keys, nil
}

// setAside has an order give its nonce back that holds it and may not be sent: others wait
// for it. A signer may have seen its plan, so that nonce goes to a transaction to ourselves.
// When that has landed, the order starts again, and waits without a nonce.
func (n *Sender) setAside(ctx context.Context, holder string) error {
	v, row, ok, err := Intents.One(ctx, n.Store, n.part, holder)
	if err != nil || !ok || v.State != Waiting || v.Cancelling || v.Tries < heldBack || v.Reason != ReasonHalted && v.Reason != ReasonAltered {
		return err
	}
	v.Cancelling = true
	if !v.aside() {
		return nil
	}
	if err := machine.Move(v.State, onSetAside, v.State); err != nil {
		return err
	}
	n.Log.Info("set_aside", slog.String("intent", holder), slog.String("reason", string(v.Reason)))
	err = storage.CommitOne(ctx, n.Store, storage.Change{
		ID: changeID(string(onSetAside), holder, row.Version), Partition: n.part,
		Put: []storage.Row{Intents.Row(holder, row.Version, n.Now(), v)},
	})
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrBusy) {
		return nil // somebody has it in work, and it is asked again
	}
	return err
}

// heldBack is how often an order was held back before it gives its nonce to others: a halt
// may be short, and so may a signer's refusal of what it has seen.
const heldBack = 3

// aside says that an order gives its nonce back to start again, or a withdrawal what a signer has seen
// and refuses.
func (r *IntentRow) aside() bool {
	if !r.Cancelling || r.ExecutedReported || r.Purpose == chain.ForCancel {
		return false
	}
	return r.Nonce >= 0 && (r.Reason == ReasonHalted || r.Reason == ReasonAltered) || r.Reason == ReasonSigner && r.Purpose == chain.ForWithdrawal
}

// startsAgain reports whether an order that was set aside starts again: no operator has cancelled
// it since.
func (n *Sender) startsAgain(ctx context.Context, j *claimedIntent) (bool, error) {
	if !j.v.aside() {
		return false, nil
	}
	off, err := n.cancelled(ctx, j.id)
	return !off, err
}
