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
// withdrawal is disputed: it waits until a person has looked. What the node says is sealed at once,
// because a node knows only for a short time which transaction used a nonce.

// endings are what the App has sealed of an order.
type endings struct {
	dead     map[mandate.Attempt]bool // attempts that can never pay it; no transaction of others took their place
	disputed string                   // hash of a transaction that may have paid it, "" = there is none, or a person has decided
	off      bool                     // a person has decided that nothing has paid it
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

// mayBePaid reports whether an order's Endings, genuine or not, name a transaction that may have
// paid it.
func (r *IntentRow) mayBePaid() bool {
	return slices.ContainsFunc(r.Endings, func(text string) bool {
		var e mandate.Ending
		return e.Read(text) == nil && e.By != ""
	})
}

// disputedBy says why a disputed order waits.
func disputedBy(tx string) string {
	return tx + " took what its transactions spend, and no row says that it pays it: it may have"
}

// taker is the hash of a transaction that took what a withdrawal's attempts spend and is none of
// them. It is "" where there is none, and where the withdrawal is sent until it lands.
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

// dispute has an order wait until a person decides. The members of its batch leave it, and wait, too.
func (n *Sender) dispute(j *claimedIntent, s *transition, by string) {
	s.ended.By = by
	n.requeue(j, s)
	j.v.State, j.v.Reason = Waiting, ReasonAltered
	n.altered(j, disputedBy(by))
}

// releaseEnded seals an operator's word that nothing has paid an order. The order has failed or was
// cancelled, and its owner does not hear it, because the App cannot be sure that nothing has paid it.
func (n *Sender) releaseEnded(ctx context.Context, j *claimedIntent) error {
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

// takenElsewhere finds an attempt of an order that can never land because a final transaction took what
// it spends, and that transaction is none of the order's own. nil = there is none.
func (n *Sender) takenElsewhere(ctx context.Context, j *claimedIntent, atts []*attempt, e *endings) (*attempt, error) {
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

// givesBack reports whether an attempt gives a nonce or coins back to ourselves, and the App has sealed
// that it does.
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

// unsealedCancel is the hash of an attempt that has landed, or may: its row says that it pays nobody, and
// the App has not sealed that. "" = there is none.
func (n *Sender) unsealedCancel(ctx context.Context, j *claimedIntent, atts []*attempt, e *endings) (string, error) {
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

// pays reports whether an attempt has an output that is what an order orders.
func (r *AttemptRow) pays(j *claimedIntent) bool {
	return slices.ContainsFunc(r.Outputs, func(o chain.Output) bool {
		return o.To == j.v.To && o.Currency == j.v.Currency && o.Amount == j.v.Amount
	})
}
