package outgoing

import (
	"context"
	"errors"
	"log/slog"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// recheckFailed looks, after a fork, at those of the orders in rows that have failed. The transaction that took the
// nonce or the coins of one back is sent again where no node has it: else the payment could land in its place. Where
// the payment has landed, its recipient is paid and its owner has the amount back: the owner hears of it, because a
// person has to look.
func (n *Sender) recheckFailed(ctx context.Context, rows []storage.Row, failed []string) error {
	byIntent, err := n.attempts(ctx, failed...)
	if err != nil {
		return err
	}
	var all []*attempt
	for _, id := range failed {
		all = append(all, byIntent[id]...)
	}
	if len(all) == 0 {
		return nil
	}
	if err := n.ask(ctx, all); err != nil {
		return err
	}
	var failures error // where an owner cannot be told, the cancels of other orders are sent again all the same
	for _, r := range rows {
		j := &claimedIntent{id: r.ID, v: Intents.Value(r)}
		if a := landed(byIntent[r.ID]); a != nil && j.v.Purpose == chain.ForWithdrawal {
			n.Log.Error("failed_order_paid", slog.String("tenant", j.v.Tenant), slog.String("intent", r.ID), slog.String("tx", a.tx))
			if n.Handle != nil {
				failures = errors.Join(failures, n.Handle(ctx, *n.paidAfterwards(j, a)))
			}
			continue
		}
		failures = errors.Join(failures, n.resendLanded(ctx, j, byIntent[r.ID], nil))
	}
	return failures
}

// paidAfterwards is what the owner of an order that has failed hears where its payment has landed. Its stored outcome
// stays what it is, because the order has ended.
func (n *Sender) paidAfterwards(j *claimedIntent, a *attempt) *Outcome {
	o := n.outcome(j)
	o.State, o.Reason, o.Tx, o.Confirmations = Executed, "", a.tx, a.st.Confirmations
	if n.final(j, &a.st) {
		o.State = Final
	}
	o.Amount = j.paid(&a.v) - a.st.Shortfall
	return o
}
