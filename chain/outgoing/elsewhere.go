package outgoing

import (
	"context"
	"fmt"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
)

// Only our keys sign what spends our nonces and coins. Where a block has a transaction that took
// what a withdrawal's transactions spend, and that is none of them, its row was deleted, the store
// is older than the chain, or somebody else has the key. It may have paid the withdrawal. So the
// withdrawal is disputed: it waits until a person has looked. The node's word is sealed when it is
// first heard, as nodes know for a short time only what took a nonce.

// endings is what was sealed of an order.
type endings struct {
	dead     map[mandate.Attempt]bool // can never pay it, and nothing else that is unknown has
	disputed string                   // hash of what may have paid it, and nobody has decided; "" = none
	off      bool                     // an operator has said that nothing has paid it
}

func (n *Sender) sealed(ctx context.Context, id string, v *IntentRow) (e endings, err error) {
	if n.Sealed == nil || len(v.Endings) == 0 {
		return e, nil
	}
	all, err := n.Sealed(ctx, id, v.Endings)
	return endingsOf(all), err
}

func endingsOf(all []mandate.Ending) endings {
	e := endings{dead: map[mandate.Attempt]bool{}}
	for _, one := range all {
		e.off = e.off || one.Off
		if one.By != "" {
			e.disputed = one.By
			continue
		}
		e.dead[one.Landed] = true
		for _, a := range one.Dead {
			e.dead[a] = true
		}
	}
	if e.off {
		e.disputed = ""
	}
	return e
}

// mayBePaid reports whether an order's Endings, genuine or not, say that it is disputed.
func (r *IntentRow) mayBePaid() bool {
	var all []mandate.Ending
	for _, text := range r.Endings {
		var e mandate.Ending
		if e.Read(text) == nil {
			all = append(all, e)
		}
	}
	return endingsOf(all).disputed != ""
}

func disputedBy(tx string) string {
	return tx + " took what its transactions spend, and is none of them: it may have paid it"
}

// taker is the hash of what took the place of a withdrawal's transactions and is none of them, ""
// where there is none, or the withdrawal is sent until it lands.
func (n *Sender) taker(j *claimedIntent, p *attemptSummary) string {
	if !p.foreign || n.Sealed == nil || j.v.Purpose != chain.ForWithdrawal || j.v.again() {
		return ""
	}
	for _, a := range p.open {
		if a.st.State == chain.Conflicted && a.st.By != "" {
			return a.st.By
		}
	}
	return "a transaction"
}

// dispute has an order wait for a person, and those that were to be paid with it.
func (n *Sender) dispute(j *claimedIntent, s *transition, by string) {
	s.ended.By = by
	n.requeue(j, s)
	j.v.State, j.v.Reason = Waiting, ReasonAltered
	n.altered(j, disputedBy(by))
}

// freed seals an operator's word that nothing has paid an order which has ended, and whose owner
// was not told so, because the App could not be sure.
func (n *Sender) freed(ctx context.Context, j *claimedIntent) error {
	_, row, _, err := Outcomes.One(ctx, n.Store, n.part, j.id)
	switch {
	case err != nil:
		return err
	case row.Due.IsZero() || n.Sealed == nil || j.v.Purpose != chain.ForWithdrawal || j.v.State != Failed && j.v.State != Cancelled:
		return noHelp(j.id, "it is "+string(j.v.State))
	}
	if err := n.seal(ctx, j.id, &j.v, &mandate.Ending{Off: true}); err != nil {
		return err
	}
	why := map[string]string{}
	if err := n.refuted(ctx, []string{j.id}, map[string]*claimedIntent{j.id: j}, why); err != nil {
		return err
	}
	if why[j.id] == unproven {
		return fmt.Errorf("%w: it cannot tell of the transactions of intent %s now", chain.ErrNode, j.id)
	}
	if why[j.id] != "" {
		return noHelp(j.id, why[j.id])
	}
	return nil
}

// elsewhere returns an attempt that a final transaction has made impossible which is none of the
// order's own, nil = there is none.
func (n *Sender) elsewhere(ctx context.Context, j *claimedIntent, atts []*attempt, e *endings) (*attempt, error) {
	if n.Sealed == nil {
		return nil, nil //nolint:nilnil // none
	}
	for _, a := range atts {
		taken := a.st.State == chain.Conflicted && n.final(j, &a.st) && a.st.By != ""
		if !taken || e.dead[a.v.Named(a.tx)] || slices.ContainsFunc(atts, func(o *attempt) bool { return o.tx == a.st.By || o.mined() == a.st.By }) {
			continue
		}
		by, _, known, err := Attempts.One(ctx, n.Store, n.part, a.st.By)
		if err != nil {
			return nil, err
		}
		if known && by.Intent == a.v.Intent {
			back, err := n.givesBack(ctx, a.st.By, &by)
			if err != nil {
				return nil, err
			}
			if back {
				continue
			}
		}
		return a, nil
	}
	return nil, nil //nolint:nilnil // none
}

// givesBack reports whether an attempt pays nobody, and that was sealed when it was signed.
func (n *Sender) givesBack(ctx context.Context, tx string, a *AttemptRow) (bool, error) {
	if a.Purpose != chain.ForCancel || n.Back == nil {
		return a.Purpose == chain.ForCancel, nil
	}
	v, _, _, err := Intents.One(ctx, n.Store, n.part, a.Intent)
	if err != nil {
		return false, err
	}
	return n.Back(ctx, a.Intent, v.Endings, a.Named(tx))
}

// unsaid is an attempt that is said to pay nobody and has landed, or may, though nobody has sealed
// that, "" = there is none.
func (n *Sender) unsaid(ctx context.Context, j *claimedIntent, atts []*attempt, e *endings) (string, error) {
	for _, a := range atts {
		if a.v.Purpose != chain.ForCancel || e.dead[a.v.Named(a.tx)] || a.st.State == chain.Conflicted && n.final(j, &a.st) {
			continue
		}
		if back, err := n.givesBack(ctx, a.tx, &a.v); !back || err != nil {
			return a.tx, err
		}
	}
	return "", nil
}

// pays reports whether an attempt's outputs have what an order orders.
func (r *AttemptRow) pays(j *claimedIntent) bool {
	return slices.ContainsFunc(r.Outputs, func(o chain.Output) bool {
		return o.To == j.v.To && o.Currency == j.v.Currency && o.Amount == j.v.Amount
	})
}
