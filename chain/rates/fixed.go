package rates

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// Fixed gives prices that somebody set: for tests, and for hosts that have a
// price of their own. Safe for concurrent use.
type Fixed struct {
	mu     sync.RWMutex
	now    func() time.Time
	prices map[[2]string]decimal.Decimal
}

// NewFixed makes a Fixed of prices in one fiat currency by token, in decimal
// writing; it panics on one that is not a positive number, as it is a constant
// of the program. now defaults to time.Now.
func NewFixed(now func() time.Time, fiat string, prices map[string]string) *Fixed {
	if now == nil {
		now = time.Now //nolint:forbidigo // a default: set prices are of no age
	}
	f := &Fixed{now: now, prices: map[[2]string]decimal.Decimal{}}
	for token, p := range prices {
		price, err := ledger.ParsePlain(p)
		if err != nil {
			panic(fmt.Sprintf("rates: %s: %v", token, err))
		}
		f.Set(token, fiat, price)
	}
	return f
}

// Set changes one price; it must be positive.
func (f *Fixed) Set(token, fiat string, price decimal.Decimal) {
	if !price.IsPositive() {
		panic("rates: a price must be positive: " + token)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next := maps.Clone(f.prices)
	next[[2]string{token, fiat}] = price
	f.prices = next
}

// Rate implements Rates; a price that was set is always of this moment.
func (f *Fixed) Rate(_ context.Context, token, fiat string) (Rate, error) {
	f.mu.RLock()
	p, ok := f.prices[[2]string{token, fiat}]
	f.mu.RUnlock()
	if !ok {
		return Rate{}, fmt.Errorf("%w: %s in %s", ErrUnavailable, token, fiat)
	}
	return Rate{Token: token, Fiat: fiat, Price: p, At: f.now()}, nil
}
