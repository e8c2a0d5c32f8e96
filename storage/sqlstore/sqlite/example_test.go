package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

// One file on a local disk. Migrate makes it, or brings it to this version's schema.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)    //nolint:errcheck // an example's end
	tables := storage.Tables() // in a host: cryptopay.Tables() and its own
	file := filepath.Join(dir, "shop.db")
	if err := sqlite.Migrate(ctx, file, tables...); err != nil {
		fmt.Println(err)
		return
	}
	store, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Open(ctx, tables...), store.Close())
	// Output:
	// <nil> <nil>
}
