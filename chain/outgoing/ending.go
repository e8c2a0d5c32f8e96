package outgoing

import (
	"context"
	"fmt"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
)

// A signer signs nothing for a withdrawal beside a transaction that may still pay it. So in the
// Change that starts an order again this package says, under a MAC, which of its transactions
// it has seen to be dead. What rows say counts for nothing there: the node was asked.

// seal has what became of transactions sealed for an order that they paid.
func (n *Sender) seal(ctx context.Context, id string, v *IntentRow, e *mandate.Ending) error {
	if n.Ending == nil || v.Purpose != chain.ForWithdrawal {
		return nil
	}
	own := *e
	own.Network, own.Order = n.info.Code, id
	text, err := n.Ending(ctx, own)
	if err == nil {
		v.Endings = append(slices.Clone(v.Endings), text)
	}
	return err
}

// named are the attempts that an order has an Ending of, whoever made it.
func (r *IntentRow) named() map[string]bool {
	out := map[string]bool{}
	for _, text := range r.Endings {
		var e mandate.Ending
		if e.Read(text) != nil {
			continue
		}
		for _, a := range append(e.Dead, e.Landed) {
			out[a.ID] = true
		}
	}
	return out
}

// endedBefore asks the node about transactions of an order that starts again of which it has
// no Ending: a process of an earlier version made none. waits says that the order was put aside,
// because a transaction has paid it, or may have.
func (n *Sender) endedBefore(ctx context.Context, j *claimedIntent) (waits bool, err error) {
	if n.Ending == nil || j.v.Attempts == 0 || j.v.Purpose != chain.ForWithdrawal {
		return false, nil
	}
	byIntent, err := n.attempts(ctx, j.id)
	if err != nil {
		return false, err
	}
	ids := j.v.named()
	var atts, named []*attempt
	for _, a := range byIntent[j.id] {
		if ids[a.v.Named(a.tx).ID] {
			named = append(named, a)
		} else {
			atts = append(atts, a)
		}
	}
	if len(atts) == 0 {
		return false, nil
	}
	if err := n.askAgain(ctx, j, atts); err != nil {
		return true, n.waitOr(ctx, j, &waitError{ReasonNode, err.Error()})
	}
	var e mandate.Ending
	taken, err := n.takenElsewhere(ctx, j, append(atts, named...), &endings{})
	if err != nil {
		return true, err
	}
	if taken != nil {
		e.By = taken.st.By
		j.disputed, j.edited = true, disputedBy(e.By)
	}
	for _, a := range atts {
		switch {
		case !n.final(j, &a.st):
			continue
		case a.st.State == chain.Conflicted:
			e.Dead = append(e.Dead, a.v.Named(a.tx))
			continue
		case a.st.State != chain.Included:
			continue
		}
		back := false
		if a.st.Executed {
			if back, err = n.givesBack(ctx, a.tx, &a.v); err != nil {
				return true, err
			}
		}
		if a.st.Executed && !back {
			j.edited = "it is to start, and its transaction " + a.tx + " has paid it"
			if a.v.Purpose == chain.ForCancel {
				j.edited = "it is to start, and nobody has sealed that its transaction " + a.tx + " pays nobody"
			}
			return true, n.keepBack(ctx, j)
		}
		e.Landed, e.Reverted = a.v.Named(a.tx), !a.st.Executed
	}
	if len(e.Dead) == 0 && e.Landed.ID == "" {
		return false, nil
	}
	if err := n.seal(ctx, j.id, &j.v, &e); err != nil || !j.disputed {
		return err != nil, err
	}
	return true, n.keepBack(ctx, j)
}

// ask asks the node about attempts, open or closed.
func (n *Sender) ask(ctx context.Context, atts []*attempt) error {
	ask := make([]chain.Attempt, len(atts))
	for i, a := range atts {
		ask[i] = chain.Attempt{Tx: a.tx, Raw: a.v.Raw, Spends: a.v.Spends, MaxCost: a.v.MaxCost}
	}
	answers, err := n.Client.Status(ctx, ask...)
	if err != nil {
		return err
	}
	if len(answers) != len(ask) {
		return fmt.Errorf("%w: %d answers to %d questions", chain.ErrNode, len(answers), len(ask))
	}
	for i, a := range atts {
		a.st = answers[i]
	}
	return nil
}

// askAgain asks the node about closed attempts of an order. An answer of a node that may be on a
// branch which was left, or whose block was not read yet, is an error.
func (n *Sender) askAgain(ctx context.Context, j *claimedIntent, atts []*attempt) error {
	tip, err := n.Client.Tip(ctx)
	if err != nil {
		return err
	}
	if err := n.ask(ctx, atts); err != nil {
		return err
	}
	var final []*attempt
	for _, a := range atts {
		if a.st.State != chain.Unknown && n.final(j, &a.st) {
			final = append(final, a)
		}
	}
	if err := n.branch(ctx, tip.Head, final, nil); err != nil {
		return err
	}
	for _, a := range final {
		if a.left != nil {
			return a.left
		}
		if a.ahead {
			return fmt.Errorf("%w: block %d was not read yet", chain.ErrBehind, a.st.Block.Height)
		}
	}
	return nil
}
