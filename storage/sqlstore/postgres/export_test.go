package postgres

import "github.com/cryptopay-go/cryptopay/storage/sqlstore"

// Dialect is this package's, over a host's pool, for a test that takes something away from it.
func Dialect() sqlstore.Dialect {
	d, _ := Options{}.withDefaults().dialect()
	return *d
}
