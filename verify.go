package cryptopay

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Report is what Verify found about one tenant.
type Report struct {
	Tenant string
	Ledger ledger.Report
	// Holds are wallets whose held amount is not what live withdrawals and
	// pending transfers hold.
	Holds []HoldMismatch
}

// HoldMismatch is a hold without an owner, or an owner without its hold.
type HoldMismatch struct {
	Account ledger.Account
	Asset   ledger.Asset
	Held    ledger.Amount // in the ledger
	Owed    ledger.Amount // by live withdrawals and pending transfers
}

// Sound reports whether nothing was found.
func (r *Report) Sound() bool { return len(r.Ledger.Findings) == 0 && len(r.Holds) == 0 }

const page = 500

// Verify proves every tenant's books from what is stored: see ledger.Verify for
// the postings; and that each hold has a live owner and each live owner its
// hold. It is exact while nothing else writes; on a live store a hold that is
// taken meanwhile may be reported, and is gone when asked again.
func (a *App) Verify(ctx context.Context) ([]Report, error) {
	var out []Report
	for offset := 0; ; offset += page {
		tenants, _, err := a.Wallets.Tenants(ctx, page, offset)
		if err != nil {
			return out, err
		}
		for _, t := range tenants {
			r, err := a.VerifyTenant(ctx, t.ID)
			if err != nil {
				return out, fmt.Errorf("cryptopay: verifying tenant %s: %w", t.ID, err)
			}
			out = append(out, r)
		}
		if len(tenants) < page {
			return out, nil
		}
	}
}

// VerifyTenant proves one tenant's books; see Verify.
func (a *App) VerifyTenant(ctx context.Context, tenant string) (Report, error) {
	p := storage.Tenant(tenant)
	balances, err := a.cfg.Store.Balances(ctx, p)
	if err != nil {
		return Report{}, err
	}
	r := Report{Tenant: tenant}
	r.Ledger, err = ledger.Verify(ledger.Books{
		Live: true,
		Balances: func(yield func(ledger.Balance, error) bool) {
			for _, b := range balances {
				if !yield(b, nil) {
					return
				}
			}
		},
		Entries: a.entries(ctx, p, balances),
	})
	if err != nil {
		return r, err
	}
	r.Holds, err = a.holds(ctx, p, balances)
	return r, err
}

// entries yields a partition's entries, oldest first within an account.
func (a *App) entries(ctx context.Context, p storage.Partition, balances []ledger.Balance) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for _, b := range balances {
			for from := int64(1); from <= b.Seq; from += page {
				n := min(page, b.Seq-from+1)
				got, err := a.cfg.Store.Entries(ctx, p, b.Account, b.Asset, from+n, int(n))
				if err != nil {
					yield(ledger.Entry{}, err)
					return
				}
				slices.Reverse(got)
				for _, e := range got {
					if !yield(e, nil) {
						return
					}
				}
			}
		}
	}
}

// holds compares what is held with who holds it.
func (a *App) holds(ctx context.Context, p storage.Partition, balances []ledger.Balance) ([]HoldMismatch, error) {
	type key struct {
		account ledger.Account
		asset   ledger.Asset
	}
	owed := map[key]ledger.Amount{}
	add := func(wallet, asset string, amount ledger.Amount) (err error) {
		k := key{ledger.Wallet(wallet), ledger.Asset(asset)}
		owed[k], err = owed[k].Add(amount)
		return err
	}
	err := each(ctx, a.cfg.Store, storage.Query{
		Table: withdrawal.Withdrawals.Table, Partition: p,
		Where: []storage.Cond{{Column: "status", Op: storage.In, Value: []withdrawal.Status{withdrawal.Pending, withdrawal.Processing}}},
	}, func(row storage.Row) error {
		w := withdrawal.Withdrawals.Value(row)
		return add(w.Wallet, w.Currency, w.Requested)
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, a.cfg.Store, storage.Query{
		Table: wallet.TransferRows.Table, Partition: p,
		Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: wallet.TransferPending}},
	}, func(row storage.Row) error {
		t := wallet.TransferRows.Value(row)
		return add(t.Source(), t.Currency, t.Amount)
	})
	if err != nil {
		return nil, err
	}
	var out []HoldMismatch
	for _, b := range balances {
		k := key{b.Account, b.Asset}
		if b.Account.Floored() && b.Held != owed[k] {
			out = append(out, HoldMismatch{b.Account, b.Asset, b.Held, owed[k]})
		}
		delete(owed, k)
	}
	for k, v := range owed {
		out = append(out, HoldMismatch{k.account, k.asset, 0, v})
	}
	return out, nil
}

// each walks all rows of a query by id, a page at a time.
func each(ctx context.Context, s storage.Store, q storage.Query, f func(storage.Row) error) error {
	where, last := q.Where, ""
	for {
		q.Limit, q.Where = page, append(slices.Clone(where), storage.Cond{Column: storage.ColID, Op: storage.Gt, Value: last})
		rows, err := s.Find(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := f(row); err != nil {
				return err
			}
			last = row.ID
		}
		if len(rows) < page {
			return nil
		}
	}
}
