package storagetest

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// openFaults are stores with one fault in Open, in Close, or in how they lease.
func openFaults() map[string]fault {
	var n atomic.Int64
	return map[string]fault{
		"claims lease the first partition's rows alone": {
			broken{claim: func(s storage.Store, ctx context.Context, c storage.Claim) ([]storage.Row, error) {
				rows, err := s.Claim(ctx, c)
				for i, r := range rows {
					if r.Partition == rows[0].Partition {
						continue
					}
					rows[i].Due = c.Until
					r.Due = c.Now
					s.Commit(ctx, storage.Change{ID: fmt.Sprint("unleased", n.Add(1)), Partition: r.Partition, Put: []storage.Row{r}})
				}
				return rows, err
			}},
			[]string{"FQ08_ClaimsAcrossPartitions"},
		},
		"a second Open forgets what is stored": {
			broken{open: func(b *broken, ctx context.Context, tables []*storage.Table) error {
				b.Store = memory.New()
				return b.Store.Open(ctx, tables...)
			}},
			[]string{"FQ08_OpenAgain"},
		},
		"a closed store is empty": {
			broken{
				find: func(s storage.Store, ctx context.Context, q storage.Query) ([]storage.Row, error) {
					rows, err := s.Find(ctx, q)
					return rows, unclosed(err)
				},
				count: func(s storage.Store, ctx context.Context, q storage.Query) (int64, error) {
					n, err := s.Count(ctx, q)
					return n, unclosed(err)
				},
			},
			[]string{"FQ08_Closed"},
		},
		"a closed store knows no balances": {
			broken{balances: func(s storage.Store, ctx context.Context, p storage.Partition, accounts []ledger.Account) ([]ledger.Balance, error) {
				list, err := s.Balances(ctx, p, accounts...)
				return list, unclosed(err)
			}},
			[]string{"FQ08_Closed"},
		},
	}
}

func unclosed(err error) error {
	if err == storage.ErrClosed { //nolint:errorlint // this one alone
		return nil
	}
	return err
}
