package cryptopay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// OpenBusinessError says that currencies with open business in the store are not served by
// this configuration: it would never end.
type OpenBusinessError struct{ Open []OpenBusiness }

func (e *OpenBusinessError) Error() string {
	texts := make([]string, len(e.Open))
	for i := range e.Open {
		texts[i] = e.Open[i].String()
	}
	return "cryptopay: open in this store and not served by this configuration: " + strings.Join(texts, "; ") +
		": list the currency in Config.Registry and its network in Config.Chains again, or name the network in Config.Elsewhere if another process serves it, or the currency in Config.Retire if nobody does"
}

// OpenBusiness is what a store has open in one currency.
type OpenBusiness struct {
	Currency    string
	Network     chain.Network
	Payments    int64 // that are not over
	Withdrawals int64 // pending or processing, and payments of the house's own
	Intents     int64 // transactions of ours that have not come to their end
	Deposits    int64 // not final yet, or not forwarded
	Balances    int64 // tenants with money of it in a wallet or in suspense
}

// String names what there is.
func (o *OpenBusiness) String() string {
	return fmt.Sprintf("%s on %s (%d payments, %d withdrawals, %d transactions, %d deposits, balances of %d tenants)",
		o.Currency, o.Network, o.Payments, o.Withdrawals, o.Intents, o.Deposits, o.Balances)
}

func (o *OpenBusiness) any() bool {
	return o.Payments+o.Withdrawals+o.Intents+o.Deposits+o.Balances > 0
}

// served refuses a configuration that leaves out what the store has open: of the listings
// that it knows, those that are neither listed here nor named in Retire or Elsewhere.
func (a *App) served(ctx context.Context) error {
	missing := map[string]*OpenBusiness{}
	err := each(ctx, a.cfg.Store, storage.Query{Table: Listings.Table, Partition: storage.System}, func(r storage.Row) error {
		n := chain.Network(Listings.Value(r).Network)
		_, err := a.cfg.Registry.Currency(r.ID)
		if err != nil && !slices.Contains(a.cfg.Retire, r.ID) && !slices.Contains(a.cfg.Elsewhere, n) {
			missing[r.ID] = &OpenBusiness{Currency: r.ID, Network: n}
		}
		return nil
	})
	if err != nil || len(missing) == 0 {
		return err
	}
	for _, o := range missing {
		if err := a.count(ctx, o); err != nil {
			return err
		}
	}
	if err := a.countBalances(ctx, missing); err != nil {
		return err
	}
	found := &OpenBusinessError{}
	for _, o := range missing {
		if o.any() {
			found.Open = append(found.Open, *o)
		}
	}
	if len(found.Open) == 0 {
		return nil
	}
	slices.SortFunc(found.Open, func(x, y OpenBusiness) int { return strings.Compare(x.Currency, y.Currency) })
	return found
}

// count counts what is open in a currency, apart from balances.
func (a *App) count(ctx context.Context, o *OpenBusiness) error {
	part := storage.Network(string(o.Network))
	in := func(column string, values any) storage.Cond {
		return storage.Cond{Column: column, Op: storage.In, Value: values}
	}
	for _, q := range []struct {
		to    *int64
		table *storage.Table
		part  storage.Partition
		where []storage.Cond
	}{
		{&o.Payments, payment.Payments.Table, "", []storage.Cond{in("status", []payment.Status{
			payment.Waiting, payment.PartiallyPaid, payment.Confirming, payment.Confirmed, payment.Sending,
		})}},
		{&o.Withdrawals, withdrawal.Withdrawals.Table, "", []storage.Cond{
			in("status", []withdrawal.Status{withdrawal.Pending, withdrawal.Processing}),
		}},
		{&o.Withdrawals, house.Payments.Table, "", []storage.Cond{in("status", []house.Status{house.Pending, house.Processing})}},
		{&o.Intents, outgoing.Intents.Table, part, []storage.Cond{in("state", []outgoing.State{
			outgoing.Queued, outgoing.Waiting, outgoing.Signed, outgoing.Executed,
		})}},
		{&o.Deposits, incoming.Sightings.Table, part, []storage.Cond{
			in("state", []incoming.State{incoming.Seen, incoming.Included, incoming.Final}),
			in("forward", []incoming.Forward{incoming.ForwardNone, incoming.Forwarding}),
			{Column: "purpose", Op: storage.Eq, Value: incoming.UsePayment},
			{Column: "internal", Op: storage.Eq, Value: false},
		}},
	} {
		q.where = append(q.where, storage.Cond{Column: "currency", Op: storage.Eq, Value: o.Currency})
		n, err := a.cfg.Store.Count(ctx, storage.Query{Table: q.table, Partition: q.part, Where: q.where})
		if err != nil {
			return err
		}
		*q.to += n
	}
	return nil
}

// countBalances counts the tenants that have money in one of these currencies.
func (a *App) countBalances(ctx context.Context, missing map[string]*OpenBusiness) error {
	return each(ctx, a.cfg.Store, storage.Query{Table: wallet.TenantRows.Table, Partition: storage.System}, func(r storage.Row) error {
		balances, err := a.cfg.Store.Balances(ctx, storage.Tenant(r.ID))
		if err != nil {
			return err
		}
		counted := map[string]bool{}
		for _, b := range balances {
			_, mine := b.Account.WalletID()
			o := missing[string(b.Asset)]
			if o == nil || counted[o.Currency] || b.Posted == 0 || !mine && b.Account != ledger.Suspense {
				continue
			}
			counted[o.Currency] = true
			o.Balances++
		}
		return nil
	})
}
