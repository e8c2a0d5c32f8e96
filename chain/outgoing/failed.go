package outgoing

import (
	"context"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// recheckFailed sends the transactions again by which orders have failed since a time, because they took the nonce
// or the coins back, and that no block has any more: what was to pay could land in their place. Where it has, the
// owner of the order has the amount back, and its recipient is paid: a person has to look.
func (n *Sender) recheckFailed(ctx context.Context, since time.Time) error {
	const page = 200
	for last := ""; ; {
		rows, err := n.Store.Find(ctx, storage.Query{
			Table: Intents.Table, Partition: n.part, Limit: page,
			Order: []storage.Order{{Column: storage.ColID}},
			Where: []storage.Cond{
				{Column: "state", Op: storage.Eq, Value: Failed},
				{Column: "updated_at", Op: storage.Ge, Value: since},
				{Column: storage.ColID, Op: storage.Gt, Value: last},
			},
		})
		if err != nil {
			return err
		}
		ids := make([]string, len(rows))
		for i, r := range rows {
			ids[i] = r.ID
		}
		byIntent, err := n.attempts(ctx, ids...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := n.failedStill(ctx, r, byIntent[r.ID]); err != nil {
				return err
			}
		}
		if len(rows) < page {
			return nil
		}
		last = ids[page-1]
	}
}

// failedStill looks at the transactions of an order that has failed.
func (n *Sender) failedStill(ctx context.Context, row storage.Row, atts []*attempt) error {
	if len(atts) == 0 {
		return nil
	}
	if err := n.ask(ctx, atts); err != nil {
		return err
	}
	v := Intents.Value(row)
	if tx := landed(atts); tx != "" && v.Purpose == chain.ForWithdrawal {
		n.Log.Error("failed_order_paid", slog.String("tenant", v.Tenant), slog.String("intent", row.ID), slog.String("tx", tx))
		return nil
	}
	return n.resendLanded(ctx, &claimedIntent{id: row.ID, v: v}, atts, nil)
}
