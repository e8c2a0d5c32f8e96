package outgoing

import (
	"context"
	"log/slog"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// recheckFailed looks, after a fork, at those of the orders in rows that have failed. The transaction that took the
// nonce or the coins of one back is sent again where no node has it: else the payment could land in its place. Where
// the payment has landed, its recipient is paid and its owner has the amount back: a person has to look.
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
	for _, r := range rows {
		j := &claimedIntent{id: r.ID, v: Intents.Value(r)}
		if a := landed(byIntent[r.ID]); a != nil && j.v.Purpose == chain.ForWithdrawal {
			n.Log.Error("failed_order_paid", slog.String("tenant", j.v.Tenant), slog.String("intent", r.ID), slog.String("tx", a.tx))
			continue
		}
		if err := n.resendLanded(ctx, j, byIntent[r.ID], nil); err != nil {
			return err
		}
	}
	return nil
}
