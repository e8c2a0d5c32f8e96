package cryptopay

import (
	"context"
	"errors"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// contradictions finds rows of a tenant that somebody edited: what is checked where money
// leaves, or an address is shown, is checked here for all of them.
func (a *App) contradictions(ctx context.Context, p storage.Partition) ([]Contradiction, error) {
	withdrawals, err := a.editedWithdrawals(ctx, p)
	if err != nil || a.Addresses == nil { // without an App's keys no address can be derived
		return withdrawals, err
	}
	addresses, err := a.editedAddresses(ctx, p)
	return append(withdrawals, addresses...), err
}

// editedWithdrawals compares withdrawals with their lines of the unified history, a page
// at a time.
func (a *App) editedWithdrawals(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	for last := ""; ; {
		rows, err := a.cfg.Store.Find(ctx, storage.Query{
			Table: withdrawal.Withdrawals.Table, Partition: p, Limit: page,
			Where: []storage.Cond{{Column: storage.ColID, Op: storage.Gt, Value: last}},
		})
		if err != nil || len(rows) == 0 {
			return out, err
		}
		ids := make([]string, len(rows))
		for i, row := range rows {
			ids[i] = row.ID
		}
		lines, err := a.activities(ctx, p, ids)
		if err != nil {
			return out, err
		}
		for _, row := range rows {
			w := withdrawal.Withdrawals.Value(row)
			line, ok := lines[row.ID]
			if why := w.Contradicts(p, &line, ok); why != "" {
				out = append(out, Contradiction{ofWithdrawal, row.ID, why})
			}
		}
		last = ids[len(ids)-1]
	}
}

func (a *App) activities(ctx context.Context, p storage.Partition, ids []string) (map[string]storage.Activity, error) {
	rows, err := a.cfg.Store.Rows(ctx, storage.Activities.Table, storage.Keys(p, ids...)...)
	out := make(map[string]storage.Activity, len(rows))
	for _, row := range rows {
		out[row.ID] = storage.Activities.Value(row)
	}
	return out, err
}

// editedAddresses derives the tenant's addresses that money goes to again: hot ones, those
// for change, and those that open payments wait at.
func (a *App) editedAddresses(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	check := func(kind, id string, err error) error {
		if errors.Is(err, incoming.ErrNotDerived) {
			out = append(out, Contradiction{kind, id, err.Error()})
			return nil
		}
		return err
	}
	tenant := strings.TrimPrefix(string(p), string(storage.Tenant("")))
	for _, n := range a.networks {
		err := each(ctx, a.cfg.Store, storage.Query{
			Table: incoming.Addresses.Table, Partition: storage.Network(string(n.name)), Where: []storage.Cond{
				{Column: "tenant", Op: storage.Eq, Value: tenant},
				{Column: "use_for", Op: storage.In, Value: []incoming.Use{incoming.UseHot, incoming.UseChange, incoming.UseAccount}},
			},
		}, func(row storage.Row) error {
			return check("address", string(n.name)+"/"+row.ID, a.Addresses.Check(ctx, n.name, row))
		})
		if err != nil {
			return out, err
		}
	}
	return out, each(ctx, a.cfg.Store, storage.Query{
		Table: payment.Payments.Table, Partition: p,
		Where: []storage.Cond{{Column: "status", Op: storage.In, Value: openPayments}},
	}, func(row storage.Row) error {
		v := payment.Payments.Value(row)
		return check(ofPayment, row.ID, a.Addresses.Ours(ctx, chain.Network(v.Network), tenant, chain.Address(v.Address)))
	})
}
