package payment

import (
	"context"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// Suspense lists deposits whose money stands in suspense, oldest first.
func (s *Service) Suspense(ctx context.Context, tenant string, limit, offset int) ([]Deposit, error) {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Deposits.Table, Partition: storage.Tenant(tenant), Limit: limit, Offset: offset,
		Where: []storage.Cond{{Column: "booking", Op: storage.Eq, Value: InSuspense}},
		Order: []storage.Order{{Column: "created_at"}},
	})
	if err != nil {
		return nil, err
	}
	out := make([]Deposit, len(rows))
	for i, r := range rows {
		out[i] = Deposits.Value(r)
	}
	return out, nil
}

// Resolve ends a suspense by a person's word: the money goes to a wallet of the
// tenant (wallet_id or external_id), in full and without fees. What the same
// deposit left that wallet owing is repaid first. Errors: *NotFoundError,
// *StateError where it does not stand in suspense.
func (s *Service) Resolve(ctx context.Context, tenant, depositID, wallet string) (Deposit, error) {
	return s.unsuspend(ctx, tenant, depositID, func(ctx context.Context, x *decision, e *entry, c *storage.Change) error {
		id, guard, err := s.openWallet(ctx, tenant, wallet)
		if err != nil {
			return err
		}
		debtor := e.d.Wallet
		e.d.Wallet, e.d.Booking, e.d.Net = id, Resolved, e.d.Amount
		c.Require = []storage.Guard{guard}
		err = x.post(ledger.Tx{
			ID: e.d.generated("resolve"), Kind: ledger.KindDeposit, Ref: e.d.ID, At: x.now,
			Legs: append(legs(e.d.Currency, ledger.Suspense, -e.d.Amount), legs(e.d.Currency, ledger.Wallet(id), e.d.Amount)...),
		})
		if err != nil {
			return err
		}
		return x.recover(e, debtor, e.d.Amount)
	})
}

// Refund books that a person has sent suspended money back outside of this
// library, or is about to. Errors as of Resolve.
func (s *Service) Refund(ctx context.Context, tenant, depositID string) (Deposit, error) {
	return s.unsuspend(ctx, tenant, depositID, func(_ context.Context, x *decision, e *entry, _ *storage.Change) error {
		e.d.Booking = Refunded
		return x.post(ledger.Tx{
			ID: e.d.generated("resolve"), Kind: ledger.KindRefund, Ref: e.d.ID, At: x.now,
			Legs: append(legs(e.d.Currency, ledger.Suspense, -e.d.Amount), legs(e.d.Currency, ledger.Chain(e.d.Network), e.d.Amount)...),
		})
	})
}

// unsuspend decides about a deposit in suspense; on says how, and adds to the Change
// what the decision stands on.
func (s *Service) unsuspend(ctx context.Context, tenant, id string, on func(context.Context, *decision, *entry, *storage.Change) error) (Deposit, error) {
	part := storage.Tenant(tenant)
	var out Deposit
	err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		d, row, ok, err := Deposits.One(ctx, s.c.Store, part, id)
		switch {
		case err != nil:
			return storage.Change{}, err
		case !ok:
			return storage.Change{}, &NotFoundError{Field: "deposit_id", ID: id}
		case d.Booking != InSuspense:
			return storage.Change{}, &StateError{Status: Status(d.Booking), Reason: fmt.Sprintf("deposit %s is not in suspense", id)}
		}
		x, e := &decision{env: env{now: s.now(), available: ledger.MaxAmount}}, &entry{d: d, was: d, version: row.Version}
		c := storage.Change{ID: s.c.NewID(), Partition: part}
		if err := on(ctx, x, e, &c); err != nil {
			return storage.Change{}, err
		}
		e.d.UpdatedAt = x.now
		out = e.d
		if c.Tell, err = e.tell(x.now); err != nil {
			return storage.Change{}, err
		}
		c.Post, c.Count, c.Put = x.posts, tally.Entries(x.posts), []storage.Row{Deposits.Row(id, row.Version, time.Time{}, e.d)}
		return c, nil
	})
	if err != nil {
		return Deposit{}, err
	}
	return out, nil
}
