package wallet

import (
	"context"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Balance is what a wallet has of one currency, in units of its scale. Amount
// includes Pending.
type Balance struct {
	Currency  string
	Amount    ledger.Amount // total
	Pending   ledger.Amount // held for withdrawals and transfers that are under way
	Available ledger.Amount // Amount − Pending
}

// Balances returns the balances of wallets by their wallet ids (Master for the
// master account), each ordered by currency. A currency that a wallet never had
// is left out; a wallet without any has no key.
func (s *Service) Balances(ctx context.Context, tenant string, wallets ...string) (map[string][]Balance, error) {
	out := map[string][]Balance{}
	const most = 500 // accounts in one question
	for part := range slices.Chunk(wallets, most) {
		accounts := make([]ledger.Account, len(part))
		for i, id := range part {
			accounts[i] = ledger.Wallet(id)
		}
		balances, err := s.c.Store.Balances(ctx, storage.Tenant(tenant), accounts...)
		if err != nil {
			return nil, err
		}
		for _, b := range balances {
			id, _ := b.Account.WalletID()
			out[id] = append(out[id], Balance{
				Currency: string(b.Asset), Amount: b.Posted, Pending: b.Held, Available: b.Available(),
			})
		}
	}
	return out, nil
}

// SubBalance is what all sub-accounts together have of one currency.
type SubBalance struct {
	Currency string
	Total    ledger.Amount
	Pending  ledger.Amount
	Accounts []AccountBalance // by number; those that ever had the currency
}

// AccountBalance is one sub-account's part of a SubBalance.
type AccountBalance struct {
	Wallet Wallet
	Balance
}

// Overview is everything that a tenant has.
type Overview struct {
	Account     []Balance    // of the master account, by currency
	SubAccounts []SubBalance // by currency
	Statistics  Statistics
}

// Statistics are counts beside an Overview.
type Statistics struct {
	Currencies  int64 // that the tenant ever had
	SubAccounts int64
	Deposits    int64 // payments that were credited
	Withdrawals int64 // that were completed
}

// Overview reads balances of the master account and of all sub-accounts.
func (s *Service) Overview(ctx context.Context, tenant string) (Overview, error) {
	subs, total, err := s.List(ctx, tenant, 0, 0)
	if err != nil {
		return Overview{}, err
	}
	ids := []string{Master}
	for _, w := range subs {
		ids = append(ids, w.ID)
	}
	balances, err := s.Balances(ctx, tenant, ids...)
	if err != nil {
		return Overview{}, err
	}
	o := Overview{Account: balances[Master], Statistics: Statistics{SubAccounts: total}}
	if o.SubAccounts, err = combine(subs, balances); err != nil {
		return Overview{}, err
	}
	err = s.count(ctx, tenant, &o)
	return o, err
}

// combine sums the sub-accounts' balances per currency.
func combine(subs []Wallet, balances map[string][]Balance) ([]SubBalance, error) {
	by := map[string]*SubBalance{}
	for _, w := range subs {
		for _, b := range balances[w.ID] {
			c := by[b.Currency]
			if c == nil {
				c = &SubBalance{Currency: b.Currency}
				by[b.Currency] = c
			}
			var err error
			if c.Total, err = c.Total.Add(b.Amount); err != nil {
				return nil, err
			}
			if c.Pending, err = c.Pending.Add(b.Pending); err != nil {
				return nil, err
			}
			c.Accounts = append(c.Accounts, AccountBalance{Wallet: w, Balance: b})
		}
	}
	out := make([]SubBalance, 0, len(by))
	for _, c := range by {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b SubBalance) int { return strings.Compare(a.Currency, b.Currency) })
	return out, nil
}

func (s *Service) count(ctx context.Context, tenant string, o *Overview) error {
	codes := map[string]bool{}
	for _, b := range o.Account {
		codes[b.Currency] = true
	}
	for _, b := range o.SubAccounts {
		codes[b.Currency] = true
	}
	o.Statistics.Currencies = int64(len(codes))
	for _, n := range []struct {
		kind     string
		statuses []string
		to       *int64
	}{
		{storage.ActivityPayment, []string{"confirmed", "sending", "completed"}, &o.Statistics.Deposits},
		{storage.ActivityWithdrawal, []string{"completed"}, &o.Statistics.Withdrawals},
	} {
		count, counted, err := s.c.Activity(ctx, tenant, n.kind, n.statuses)
		if err == nil && !counted {
			count, err = s.c.Store.Count(ctx, storage.Query{
				Table: storage.Activities.Table, Partition: storage.Tenant(tenant),
				Where: []storage.Cond{
					{Column: "kind", Op: storage.Eq, Value: n.kind}, {Column: "status", Op: storage.In, Value: n.statuses},
				},
			})
		}
		if err != nil {
			return err
		}
		*n.to = count
	}
	return nil
}
