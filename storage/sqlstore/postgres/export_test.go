package postgres

import "github.com/cryptopay-go/cryptopay/storage/sqlstore"

// Dialect is this package's, over a host's pool, for a test that takes something away from it.
func Dialect() sqlstore.Dialect {
	d, _ := Options{}.withDefaults().dialect()
	return *d
}

// Reading tells a setting of the connections that s reads by.
func (s *Store) Reading(setting string) (value string, err error) {
	err = s.read.Get(&value, "SELECT current_setting($1)", setting)
	return value, err
}
