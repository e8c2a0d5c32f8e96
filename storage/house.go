package storage

import (
	"context"
	"slices"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// houseReader is an optional ability of a Store: it finds the balances of the house's accounts
// without those of wallets.
type houseReader interface {
	HouseBalances(ctx context.Context, p Partition) ([]ledger.Balance, error)
}

// HouseBalances returns the balances of the partition's accounts that are the house's (ledger.Account.House), in the
// order of Store.Balances. A Store with a method HouseBalances(ctx, p) is asked by it: SQL
// and memory have one, which reads no wallet's balance. Of any other Store all balances are read.
func (p Partition) HouseBalances(ctx context.Context, s Store) ([]ledger.Balance, error) {
	if h, ok := s.(houseReader); ok {
		return h.HouseBalances(ctx, p)
	}
	all, err := s.Balances(ctx, p)
	return slices.DeleteFunc(all, func(b ledger.Balance) bool { return !b.Account.House() }), err
}
