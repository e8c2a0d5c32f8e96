package outgoing

import (
	"context"
	"errors"
	"log/slog"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Replace gives orders another hot address in the place of some: those that are paid from one of
// old, and sweeps to one of them. now returns the hot address of a tenant. Orders of which
// something is reserved or signed stay as they are. It returns how many it has changed. Safe to
// repeat. A payout of which an attempt has landed or is dead stays, too: that was of the old address.
// Where the hot address of a tenant is not known his orders stay for now, and the others are changed.
func (n *Sender) Replace(ctx context.Context, old []chain.Address, now func(ctx context.Context, tenant string) (chain.Derived, error)) (changed int, err error) {
	hot, unknown := map[string]chain.Derived{}, map[string]bool{}
	pending := storage.Cond{Column: "state", Op: storage.In, Value: []State{Queued, Waiting}}
	for _, where := range [][]storage.Cond{
		{pending, {Column: "from_address", Op: storage.In, Value: old}, {Column: "purpose", Op: storage.In, Value: []chain.Purpose{chain.ForWithdrawal, chain.ForGas}}},
		{pending, {Column: "to_address", Op: storage.In, Value: old}, {Column: "purpose", Op: storage.Eq, Value: chain.ForSweep}},
	} {
		failed := storage.Pages(ctx, n.Store, storage.Query{Table: Intents.Table, Partition: n.part, Limit: replacePage, Where: where}, func(rows []storage.Row) error {
			var changes []storage.Change
			for _, row := range rows {
				v := Intents.Value(row)
				if !v.movable() || unknown[v.Tenant] {
					continue
				}
				to, known := hot[v.Tenant]
				if !known {
					var failed error
					if to, failed = now(ctx, v.Tenant); failed != nil {
						err, unknown[v.Tenant] = errors.Join(err, failed), true
						continue
					}
					hot[v.Tenant] = to
				}
				if v.Purpose == chain.ForSweep {
					v.To = to.Address
				} else {
					v.From, v.FromKey = to.Address, to.Key
				}
				changes = append(changes, storage.Change{
					ID: changeID("replace", row.ID, row.Version), Partition: n.part, Put: []storage.Row{Intents.Row(row.ID, row.Version, n.Now(), v)},
				})
			}
			if len(changes) == 0 {
				return nil
			}
			var failures error
			for i, err := range n.Store.Commit(ctx, changes...) {
				switch {
				case err == nil:
					changed++
					n.Log.Info("order_redirected", slog.String("intent", changes[i].Put[0].ID))
				case !errors.Is(err, storage.ErrConflict): // else it is being sent, or is found again
					failures = errors.Join(failures, err)
				}
			}
			return failures
		})
		if failed != nil {
			return changed, errors.Join(err, failed)
		}
	}
	return changed, err
}

const replacePage = 100

// movable reports whether an order can be paid from, or go to, another hot address: nothing of it
// is bound to the one that it names.
func (r *IntentRow) movable() bool {
	switch r.Purpose {
	case chain.ForWithdrawal, chain.ForGas:
		return r.idle() && r.Nonce < 0 && !r.Cancelling && r.Attempts == 0
	case chain.ForSweep: // its sender stays
		return r.idle() && r.Nonce < 0 && !r.Cancelling
	}
	return false
}
