package outgoing

import (
	"context"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
)

// Only our keys sign what spends our nonces and coins. Where a block has a transaction that took
// what a withdrawal's transactions spend, and that is none of them, its row was deleted, the store
// is older than the chain, or somebody else has the key. It may have paid the withdrawal. So the
// withdrawal waits until a person has looked, and gives nothing back by itself.

// takenElsewhere reports whether an order of which all transactions are dead waits for a person.
func (n *Sender) takenElsewhere(ctx context.Context, j *claimedIntent, p *attemptSummary) (bool, error) {
	if !p.foreign || j.v.Purpose != chain.ForWithdrawal || j.v.again() {
		return false, nil
	}
	if off, err := n.off(ctx, j.id, j.id, &j.v); off || err != nil {
		return false, err
	}
	if j.v.Reason == ReasonAltered {
		return true, nil
	}
	for _, a := range p.open {
		if a.st.State == chain.Conflicted {
			n.altered(j, takenBy(a))
			break
		}
	}
	return true, n.tellPlace(ctx, j, p.open[len(p.open)-1], ReasonAltered)
}

func takenBy(a *attempt) string {
	by := a.st.By
	if by == "" {
		by = "a transaction"
	}
	return by + " took what its transaction " + a.tx + " spends, and is none of its own: it may have paid it"
}

// off reports whether an operator has called an order off, or the one whose transactions pay it.
func (n *Sender) off(ctx context.Context, id, leader string, v *IntentRow) (bool, error) {
	if n.Off != nil && n.Ending != nil && v.Purpose == chain.ForWithdrawal {
		return n.Off(ctx, id, v.Endings) // each has its own
	}
	off, err := n.cancelled(ctx, id)
	if off || err != nil || leader == id {
		return off, err
	}
	return n.cancelled(ctx, leader)
}

// callOff has an operator's word sealed that nothing has paid an order.
func (n *Sender) callOff(ctx context.Context, j *claimedIntent) error {
	off, err := n.off(ctx, j.id, j.id, &j.v)
	switch {
	case err != nil:
		return err
	case off:
		return noHelp(j.id, "it is being cancelled")
	}
	j.v.Cancelling, j.v.Reason, j.v.BumpAt = true, "", n.Now()
	return n.seal(ctx, j.id, &j.v, &mandate.Ending{Off: true})
}

// callOffEnded is callOff of an order that has failed and whose owner does not hear it: a process of
// an earlier version asked nobody.
func (n *Sender) callOffEnded(ctx context.Context, j *claimedIntent) error {
	_, row, _, err := Outcomes.One(ctx, n.Store, n.part, j.id)
	if err != nil {
		return err
	}
	off, err := n.off(ctx, j.id, j.id, &j.v)
	if err == nil && (off || row.Due.IsZero() || j.v.State != Failed || j.v.Purpose != chain.ForWithdrawal) {
		err = noHelp(j.id, "it is "+string(j.v.State))
	}
	if err != nil {
		return err
	}
	return n.seal(ctx, j.id, &j.v, &mandate.Ending{Off: true})
}

// elsewhere says which of the attempts of an order a final transaction has made impossible that is
// none of its own, "" = none. An order that an operator has called off is not asked about.
func (n *Sender) elsewhere(ctx context.Context, j *claimedIntent, atts []*attempt) (string, error) {
	for _, a := range atts {
		taken := a.st.State == chain.Conflicted && n.final(j, &a.st) && a.st.By != ""
		if !taken || slices.ContainsFunc(atts, func(o *attempt) bool { return o.tx == a.st.By || o.mined() == a.st.By }) {
			continue
		}
		by, _, known, err := Attempts.One(ctx, n.Store, n.part, a.st.By)
		if err != nil {
			return "", err
		}
		if known && by.Intent == a.v.Intent && (by.Purpose == chain.ForCancel || !by.pays(j)) {
			continue // of a batch that it has left
		}
		if off, err := n.off(ctx, j.id, a.v.Intent, &j.v); off || err != nil {
			return "", err
		}
		return takenBy(a), nil
	}
	return "", nil
}

// pays reports whether an attempt's outputs have what an order orders.
func (r *AttemptRow) pays(j *claimedIntent) bool {
	return slices.ContainsFunc(r.Outputs, func(o chain.Output) bool {
		return o.To == j.v.To && o.Currency == j.v.Currency && o.Amount == j.v.Amount
	})
}

// unsaid is an attempt that is said to pay nobody and has landed, or may, though nobody has sealed
// that, "" = there is none.
func (n *Sender) unsaid(ctx context.Context, j *claimedIntent, atts []*attempt) (string, error) {
	if n.Back == nil {
		return "", nil
	}
	for _, a := range atts {
		if a.v.Purpose != chain.ForCancel || a.st.State == chain.Conflicted && n.final(j, &a.st) {
			continue
		}
		v, _, _, err := Intents.One(ctx, n.Store, n.part, a.v.Intent)
		if err != nil {
			return "", err
		}
		if ok, err := n.Back(ctx, a.v.Intent, v.Endings, a.v.Named(a.tx)); !ok || err != nil {
			return a.tx, err
		}
	}
	return "", nil
}
