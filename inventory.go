package cryptopay

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Partitions yields every partition that an App may have used in a store, in
// ascending order: for what reads all of it, such as storage/move. It needs no
// App: only an open store.
func Partitions(ctx context.Context, s storage.Store) iter.Seq2[storage.Partition, error] {
	return func(yield func(storage.Partition, error) bool) {
		networks := map[storage.Partition]bool{}
		for _, n := range chain.Networks() {
			networks[storage.Network(string(n.Code))] = true
		}
		// A host's own networks have a cursor. All have one id, so that one page has to hold them.
		for limit := page; ; limit *= 2 {
			rows, err := s.Find(ctx, storage.Query{Table: incoming.Cursors.Table, Limit: limit, IDs: true})
			if err != nil {
				yield("", err)
				return
			}
			for _, r := range rows {
				networks[r.Partition] = true
			}
			if len(rows) < limit {
				break
			}
		}
		for _, p := range append(slices.Sorted(maps.Keys(networks)), storage.System) {
			if !yield(p, nil) {
				return
			}
		}
		err := each(ctx, s, storage.Query{Table: wallet.TenantRows.Table, Partition: storage.System}, func(r storage.Row) error {
			if !yield(storage.Tenant(r.ID), nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield("", err)
		}
	}
}

// errStopped: whoever reads has enough.
var errStopped = errors.New("cryptopay: stopped")

// LevelsOf names the levels that a row of an App tells of: a withdrawal counts in
// its day's, and a hot or change address is the only one of its kind.
func LevelsOf(r storage.Row) []string {
	switch r.Table {
	case withdrawal.Withdrawals.Table:
		if w := withdrawal.Withdrawals.Value(r); w.Counter != "" {
			return []string{w.Counter}
		}
	case incoming.Addresses.Table:
		if a := incoming.Addresses.Value(r); a.Tenant != "" && a.Use != incoming.UsePayment && a.Use != incoming.UseRetired {
			return []string{"address/" + string(a.Use) + "/" + a.Tenant}
		}
	}
	return nil
}

// VerifyStore is App.Verify over an open store, for a program that has no App:
// after a move, or a restore. Without the Key, seals are proved and not who made them.
func VerifyStore(ctx context.Context, s storage.Store) ([]Report, error) {
	a := &App{cfg: Config{Store: s}}
	return a.Verify(ctx)
}
