package treasury

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// NoticeDeliveredLess is the Kind of a Notice: a move between addresses of ours brought less than was
// sent, and payouts of the currency are halted.
const NoticeDeliveredLess = "delivered_less"

// A token that takes a fee of each transfer takes it of moves between addresses of ours, too: a sweep of 100 brings
// 99. Nobody else owes what is missing, so it is a loss of the house, booked once when the move is final, as what the
// network took for it is. What a payout brought less is its recipient's: see withdrawal.Service.DeliveredLess. The
// Change in which a move or a payout is first seen to bring less halts the currency: see outgoing.Config.Less.

// loss books what a move between addresses of ours lost on its way, and tells the operator. before is how often its
// transaction had landed.
func (t *Treasury) loss(ctx context.Context, o outgoing.Outcome, before int) error {
	if o.State != outgoing.Final || o.Reason != outgoing.ReasonDeliveredLess || !inside(o.Purpose) {
		return nil
	}
	ordered, err := t.moved(ctx, o)
	if err != nil || ordered <= o.Amount { // a fork has undone it: the outcome that says so books it, and takes it back
		return err
	}
	if err := t.bear(ctx, o, lossID(o.Network, o.CostTx, before), ledger.Asset(o.Currency), ordered-o.Amount); err != nil {
		return err
	}
	t.tellLoss(ctx, o, ordered)
	return nil
}

// undoLoss takes back what a landing lost that a fork has undone. It is booked before that, as its own outcome may
// not have been told.
func (t *Treasury) undoLoss(ctx context.Context, o outgoing.Outcome, l outgoing.Landing, before int) error {
	if l.Missing <= 0 || !inside(o.Purpose) {
		return nil
	}
	id, asset := lossID(o.Network, l.Tx, before), ledger.Asset(o.Currency)
	if err := t.bear(ctx, o, id, asset, l.Missing); err != nil {
		return err
	}
	return t.bear(ctx, o, "undone/"+id, asset, -l.Missing)
}

// inside reports whether an order for this purpose goes from one address of ours to another. Moves to cold addresses
// are payments of the house's, and book what they lose themselves.
func inside(p chain.Purpose) bool { return p == chain.ForSweep || p == chain.ForGas }

func lossID(network, tx string, before int) string { return landingID("less/", network, tx, before) }

// moved is how much the transaction of a settled order was to bring, 0 where none has settled it any more.
func (t *Treasury) moved(ctx context.Context, o outgoing.Outcome) (ledger.Amount, error) {
	rows, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: outgoing.Attempts.Table, Partition: storage.Network(o.Network), Limit: pageSize,
		Where: []storage.Cond{{Column: "intent", Op: storage.Eq, Value: o.Intent}}, Order: []storage.Order{{Column: "number", Desc: true}},
	})
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(rows, func(r storage.Row) bool {
		v := outgoing.Attempts.Value(r)
		return v.State == outgoing.AttemptFinal && v.Purpose == o.Purpose
	})
	if at < 0 {
		return 0, nil
	}
	for _, out := range outgoing.Attempts.Value(rows[at]).Outputs {
		if !out.Change {
			return out.Amount, nil
		}
	}
	return 0, nil
}

// tellLoss tells the operator of a loss after it is booked. After a crash in between it is told again.
func (t *Treasury) tellLoss(ctx context.Context, o outgoing.Outcome, ordered ledger.Amount) {
	n := Notice{Kind: NoticeDeliveredLess, Tenant: o.Tenant, Network: chain.Network(o.Network), Currency: o.Currency, Reason: string(o.Reason), Since: o.At}
	if o.Purpose == chain.ForSweep {
		n.Sweep = o.Intent
	}
	if c, err := t.cfg.Registry.Currency(o.Currency); err == nil {
		n.Detail = fmt.Sprintf("%s %s of %s arrived with %s", c.Decimal(o.Amount), o.Currency, c.Decimal(ordered), o.Tx)
	}
	t.cfg.Log.LogAttrs(ctx, slog.LevelError, "loss_booked", slog.String("tenant", o.Tenant), slog.String("currency", o.Currency),
		slog.String("intent", o.Intent), slog.String("tx", o.Tx), slog.Int64("missing", int64(ordered-o.Amount)))
	t.notify(ctx, n)
}
