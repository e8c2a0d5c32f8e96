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
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// sign has the stored plan signed, stores the result and sends it. A signer
// that refuses ends the plan and gives its nonce or coins back; one that does
// not answer may have signed, so the plan stays and is asked for again as it is.
// fresh says that no signer can have seen the plan before.
func (n *Sender) sign(ctx context.Context, j *claimedIntent, fresh bool) error {
	p, err := j.v.plan()
	if err != nil {
		return err
	}
	j.mandates(p)
	if !fresh { // what was stored may have been edited
		if err = n.intact(ctx, j, p); err == nil {
			err = n.ordered(ctx, p)
		}
		if err != nil {
			return n.unsigned(ctx, j, err)
		}
	}
	sigs, err := n.signatures(ctx, chain.SignRequest{
		Intent: p.Intent, Also: p.Also, Attempt: p.attempt(), Unsigned: p.Unsigned, Keys: p.Keys, Endings: j.endings(p),
	})
	switch {
	case errors.Is(err, chain.ErrRefused) && p.First && !fresh && j.v.Purpose == chain.ForWithdrawal && !j.v.Cancelling && j.v.Tries < heldBack:
		return n.unsigned(ctx, j, err) // it may take it back, and nothing is used up by then
	case errors.Is(err, chain.ErrRefused) && p.First && !fresh:
		return n.cancelPlan(ctx, j, p, err)
	case errors.Is(err, chain.ErrRefused):
		return n.abandon(ctx, j, p, fresh, err)
	case err != nil:
		return n.unsigned(ctx, j, err)
	}
	signed, err := n.Client.Assemble(p.Unsigned, sigs)
	if err != nil {
		return n.unsigned(ctx, j, fmt.Errorf("signatures do not fit: %w", err))
	}
	return n.store(ctx, j, p, signed)
}

// ordered returns an error if a stored plan pays for a withdrawal that nobody ordered so.
func (n *Sender) ordered(ctx context.Context, p *plan) error {
	for _, in := range append([]chain.Intent{p.Intent}, p.Also...) {
		if n.Ordered == nil || in.Purpose != chain.ForWithdrawal {
			continue
		}
		if why, err := n.Ordered(ctx, in); err != nil || why != "" {
			return fmt.Errorf("outgoing: the stored plan of %s: %s: %w", in.ID, why, cmp.Or(err, chain.ErrRefused))
		}
	}
	return nil
}

// mandates gives the intents of a plan the mandates that their rows have: one that was
// planned by an earlier version has none, and one that is sealed again has another.
func (j *claimedIntent) mandates(p *plan) {
	if p.Intent.ID == j.id && p.Intent.Purpose == j.v.Purpose {
		p.Intent.Mandate = j.v.Mandate
	}
	for i := range p.Also {
		for _, r := range j.members {
			if r.id == p.Also[i].ID {
				p.Also[i].Mandate = r.v.Mandate
			}
		}
	}
}

// endings are those of all that a plan pays.
func (j *claimedIntent) endings(p *plan) []string {
	if p.Intent.Purpose == chain.ForCancel {
		return nil
	}
	all := slices.Clone(j.v.Endings)
	for _, r := range j.members {
		all = append(all, r.v.Endings...)
	}
	return all
}

// signatures asks the signer: one that can sign many is asked once for all items of Work.
func (n *Sender) signatures(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	many, ok := n.Signer.(chain.ManySigner)
	if !ok {
		return n.Signer.Sign(storage.Apart(ctx), r)
	}
	type answer struct {
		sigs []chain.Signature
		err  error
	}
	a := storage.Together(ctx, "sign/"+string(n.info.Code), r, func(ctx context.Context, all []chain.SignRequest) []answer {
		out := make([]answer, len(all))
		sigs, errs := many.SignMany(storage.Apart(ctx), all)
		for i := range out {
			if out[i].err = errors.New("the signer gave another number of answers"); len(sigs) == len(all) && len(errs) == len(all) {
				out[i] = answer{sigs[i], errs[i]}
			}
		}
		return out
	})
	return a.sigs, a.err
}

// unsigned puts an intent aside whose plan stays.
func (n *Sender) unsigned(ctx context.Context, j *claimedIntent, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if j.v.State == Queued || j.v.State == Waiting {
		return n.wait(ctx, j, &waitError{ReasonSigner, cause.Error()})
	}
	n.Log.Warn("replacement_unsigned", slog.String("intent", j.id), slog.String("cause", cause.Error()))
	return nil // looked at again at the next poll
}

// abandon ends a plan that was not signed and never will be.
func (n *Sender) abandon(ctx context.Context, j *claimedIntent, p *plan, fresh bool, cause error) error {
	s := transition{op: onAbandon}
	if err := n.giveBack(ctx, p, fresh, &s); err != nil {
		return err
	}
	j.v.Plan = nil
	j.v.Cancelling = j.v.Cancelling || j.child() && !fresh
	if j.early() && p.First {
		return n.end(ctx, j, s, cause)
	}
	if p.First || j.child() && j.v.State != Signed {
		s.alone = true
		told := j.v.State == Waiting && j.v.Reason == ReasonSigner
		j.v.State, j.v.Reason, j.v.Tries, j.v.Nonce, j.v.Reserved = Waiting, ReasonSigner, j.v.Tries+1, -1, 0
		s.due = n.Now().Add(n.pause(j.v.Tries))
		if !told {
			s.outcome = n.outcome(j)
		}
		log := n.Log.With(slog.String("intent", j.id), slog.String("attempt", p.attempt()), slog.String("cause", cause.Error()))
		if before, err := n.attempts(ctx, j.id); err == nil && len(before[j.id]) > 0 {
			log.Error("signer_refuses_again") // it was signed before: somebody may have set it back
		} else {
			log.Warn("signer_refuses")
		}
		return n.commit(ctx, j, s)
	}
	s.due, j.v.BumpAt = n.Now().Add(n.Poll), n.Now().Add(n.StuckAfter)
	n.Log.Warn("replacement_given_up", slog.String("intent", j.id), slog.String("attempt", p.attempt()), slog.String("cause", cause.Error()))
	return n.commit(ctx, j, s)
}

// cancelPlan ends a plan that the signer refuses now and may have signed before: it
// would then refuse the nonce or coins to every other intent. So they go back to
// ourselves under this one. When that is final a withdrawal starts again, unless an operator
// has cancelled it, and another intent fails.
func (n *Sender) cancelPlan(ctx context.Context, j *claimedIntent, p *plan, cause error) error {
	if p.Intent.Purpose == chain.ForCancel {
		return n.unsigned(ctx, j, cause)
	}
	if !errors.Is(cause, errCancelled) {
		n.Log.Error("signer_refuses_what_it_saw", slog.String("intent", j.id), slog.String("attempt", p.attempt()), slog.String("cause", cause.Error()))
	}
	d := candidate{
		intent: n.filling(j, p.Change), number: j.v.Attempts + 1, rise: 1, nonce: p.Nonce,
		coins: p.Coins, change: p.Change, first: true,
	}
	before := j.v
	j.v.Cancelling = true
	if j.v.Purpose == chain.ForWithdrawal && !errors.Is(cause, errCancelled) {
		j.v.Reason = ReasonSigner // see aside
	}
	var err error
	if j.guards, err = n.allowed(ctx, d.intent); err == nil {
		d.fee, err = n.priced(ctx, j, &d.intent, &p.Fee)
	}
	if err == nil {
		err = n.build(ctx, &d)
	}
	if err == nil {
		s := transition{op: onUseUp, due: n.Now().Add(n.Lease), need: j.guards}
		if j.v.aside() && j.waited != j.v.Reason {
			s.outcome = n.outcome(j)
			s.outcome.State = Waiting
		}
		err = n.bindInputs(ctx, j, &d, s)
	}
	if err == nil {
		return n.sign(ctx, j, false)
	}
	before.MaxCost = j.v.MaxCost // may have been raised, which is stored
	if j.v = before; errors.Is(err, storage.ErrConflict) {
		return err
	}
	return n.unsigned(ctx, j, err)
}

// store commits the signed bytes with everything that follows from them, and
// only then sends.
func (n *Sender) store(ctx context.Context, j *claimedIntent, p *plan, signed chain.Signed) error {
	now := n.Now()
	a := attempt{tx: signed.Tx, v: AttemptRow{
		Intent: j.id, Number: p.Number, Tenant: j.v.Tenant, Purpose: p.Intent.Purpose, Raw: signed.Raw,
		Nonce: p.Nonce, Spends: p.Unsigned.Spends, Outputs: p.Unsigned.Outputs, Coins: p.Coins, ChangeTo: p.Change,
		Fee: p.Fee, MaxCost: p.Unsigned.MaxCost, State: Open, Stored: now, Sent: now,
	}}
	s := transition{op: onStore, due: now.Add(n.Poll), need: j.guards, with: []storage.Row{Attempts.Row(a.tx, 0, time.Time{}, a.v)}}
	if p.First && p.Nonce >= 0 {
		own, err := n.loadNonce(ctx, p.Intent.From)
		if err != nil {
			return err
		}
		if !own.use(&a.v, &s) {
			// Only a Change of its holder moves a held row, so this process lost its claim: it
			// was paused, and another one stored or gave up this plan. That is harmless, because
			// nothing of this process is stored or sent. With the claim it would be an edit.
			if n.lost(ctx, j) {
				return storage.ErrConflict
			}
			return fmt.Errorf("outgoing: nonce row of %s does not stand where intent %s reserved it", p.Intent.From, j.id)
		}
	}
	if j.v.State != Executed {
		j.v.State = Signed
	}
	if j.v.Reason != ReasonStuck && j.v.Reason != ReasonReorged && !j.v.aside() {
		j.v.Reason = ""
	}
	j.v.Tx, j.v.Plan, j.v.Tries = a.tx, nil, 0
	j.v.BumpAt = now.Add(n.StuckAfter)
	if !j.v.aside() { // else its owner goes on waiting: what is sent is not for him
		s.outcome = n.outcome(j)
		s.outcome.Amount = j.paid(&a.v)
	}
	if a.v.Purpose == chain.ForCancel {
		if err := n.seal(ctx, j.id, &j.v, &mandate.Ending{Back: a.v.Named(a.tx)}); err != nil {
			return err
		}
	}
	if err := n.commit(ctx, j, s); err != nil {
		return err
	}
	a.version = 1
	return n.send(ctx, j, &a)
}

// send broadcasts stored bytes. Only a rejection with proof means anything;
// after every other error they may be on their way, and are sent again later.
func (n *Sender) send(ctx context.Context, j *claimedIntent, a *attempt) error {
	err := n.Client.Broadcast(ctx, proof.NewStored(string(n.info.Code), a.tx, a.v.Raw))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return n.released(ctx, j, a)
	case errors.Is(err, chain.ErrOccupied):
		return n.occupied(ctx, j, a, err)
	case !errors.Is(err, chain.ErrRejected):
		n.Log.Warn("broadcast_unknown", slog.String("intent", j.id), slog.String("tx", a.tx), slog.String("cause", err.Error()))
		return n.released(ctx, j, a)
	}
	n.Log.Error("broadcast_rejected", slog.String("intent", j.id), slog.String("tx", a.tx), slog.String("cause", err.Error()))
	if a.v.Rejected {
		return nil
	}
	if !j.v.aside() {
		j.v.Cancelling, j.v.Reason = true, ""
	}
	a.v.Rejected = true
	j.v.BumpAt = n.Now()
	return n.commit(ctx, j, transition{
		op: onRejected, due: n.Now().Add(n.Poll),
		with: []storage.Row{Attempts.Row(a.tx, a.version, time.Time{}, a.v)},
	})
}

// occupied notes that nodes keep an earlier attempt in the place of the newest.
func (n *Sender) occupied(ctx context.Context, j *claimedIntent, a *attempt, cause error) error {
	n.Log.Warn("replacement_refused", slog.String("intent", j.id), slog.String("tx", a.tx), slog.String("cause", cause.Error()))
	if a.tx != j.v.Tx || j.v.Reason == ReasonOccupied || j.v.State != Signed || j.v.aside() {
		return nil
	}
	return n.tellPlace(ctx, j, a, ReasonOccupied)
}

// released notes that nodes no longer keep an earlier attempt in the place of the newest:
// that one is replaced in its turn.
func (n *Sender) released(ctx context.Context, j *claimedIntent, a *attempt) error {
	if a.tx != j.v.Tx || j.v.Reason != ReasonOccupied {
		return nil
	}
	j.v.BumpAt = n.Now().Add(n.StuckAfter)
	return n.tellPlace(ctx, j, a, "")
}

func (n *Sender) tellPlace(ctx context.Context, j *claimedIntent, a *attempt, why Reason) error {
	j.v.Reason = why
	s := transition{op: onPlace, due: n.Now().Add(n.Poll), outcome: n.outcome(j)}
	s.outcome.Amount = j.paid(&a.v)
	return n.commit(ctx, j, s)
}

// less is the reason of an intent that a transaction in a block executed.
func (n *Sender) less(j *claimedIntent, a *attempt) Reason {
	if a.st.Shortfall == 0 {
		return ""
	}
	n.Log.Error("delivered_less", slog.String("intent", j.id), slog.String("tx", a.tx), slog.String("currency", j.v.Currency),
		slog.Int64("missing", int64(a.st.Shortfall)))
	return ReasonDeliveredLess
}

// distrust is what Config.Less has committed with a step in which it is first seen that an order brought less. The
// row of the order remembers that: it is asked again only after a fork has undone what it saw.
func (n *Sender) distrust(ctx context.Context, j *claimedIntent) ([]storage.Row, []storage.Event, error) {
	if n.Less == nil || j.v.Reason != ReasonDeliveredLess || j.waited == ReasonDeliveredLess {
		return nil, nil, nil
	}
	return n.Less(ctx, j.intent())
}

// Shortfall asks the node how much less than was ordered the transaction of an order has brought its
// recipient, in units of its currency. The error wraps ErrNoIntent for an unknown id, and ErrHelp where no
// transaction in a block pays the order.
func (n *Sender) Shortfall(ctx context.Context, id string) (ledger.Amount, error) {
	if _, _, ok, err := Intents.One(ctx, n.Store, n.part, id); err != nil || !ok {
		return 0, cmp.Or(err, fmt.Errorf("%w: %q", ErrNoIntent, id))
	}
	leaders, err := n.leadersOf(ctx, []string{id})
	if err != nil {
		return 0, err
	}
	byIntent, err := n.attempts(ctx, leaders[0])
	if err == nil {
		err = n.ask(ctx, byIntent[leaders[0]])
	}
	if err != nil {
		return 0, err
	}
	if a := landed(byIntent[leaders[0]]); a != nil {
		return a.st.Shortfall, nil
	}
	return 0, noHelp(id, "no transaction in a block pays it, or no node knows it any more")
}

// paid is what the recipient gets, where nothing is taken from it on its way.
func (j *claimedIntent) paid(a *AttemptRow) ledger.Amount {
	for _, o := range a.Outputs {
		if !o.Change && a.Purpose != chain.ForCancel && (j.v.All || o.Amount == j.v.Amount) {
			return o.Amount
		}
	}
	return 0
}
