//go:build planted && sqlite

package main

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain/sim/world"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

// Only programs with a bug of this store in them carry the driver: the others are
// built in half the time.
func init() {
	sqliteStore = func(ctx context.Context, file string) (storage.Store, error) {
		if err := sqlite.Migrate(ctx, file, world.Tables()...); err != nil {
			return nil, err
		}
		return sqlite.Open(file, sqlite.Options{})
	}
}
