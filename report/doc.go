// Package report reads what a tenant's payments and withdrawals came to: the unified history,
// its export and statistics.
//
// It promises:
//
//   - It reads only, and only the tenant that is asked for.
//   - What a page costs does not grow with the history. Totals and statistics of whole days come
//     from counters; see storage/tally.
//   - Amounts are exact. A volume in USD is nil where a price is missing, and never a part of it.
package report

import (
	"context"
	"errors"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/storage"
)

// InvalidError names every field of a request that is wrong, and why.
type InvalidError = fault.InvalidError

// Config is what a Service reads from. All of it is required. An App fills it.
type Config struct {
	Store    storage.Store
	Registry *chain.Registry
	Now      func() time.Time
	// Scale returns how many places the ledger counts a currency in. It also knows currencies
	// that the Registry no longer has.
	Scale func(currency string) (uint8, error)
	// Price returns the present price of one coin in USD. Errors wrap rates.ErrUnavailable
	// where there is none.
	Price func(ctx context.Context, token string) (decimal.Decimal, error)
}

// Service reads reports. It is safe for concurrent use.
type Service struct{ cfg Config }

// New checks the Config.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Registry == nil || c.Now == nil || c.Scale == nil || c.Price == nil {
		return nil, errors.New("report: Config needs Store, Registry, Now, Scale and Price")
	}
	return &Service{c}, nil
}
