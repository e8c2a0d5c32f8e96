package rates

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shopspring/decimal"
)

// Rate is the price of one whole coin of a token in a fiat currency.
type Rate struct {
	Token string // "BTC", "USDT"
	Fiat  string // "USD"
	Price decimal.Decimal
	At    time.Time // when the sources said so
}

// ahead is how far the clock of a source may be before ours, at most.
const ahead = time.Minute

// Check refuses a price that cannot be true at now: one that is not above zero,
// as old as most, or as far in the future as most or a minute. The error wraps
// ErrUnavailable.
func (r Rate) Check(now time.Time, most time.Duration) error {
	age := now.Sub(r.At)
	switch {
	case r.Price.Sign() <= 0:
		return fmt.Errorf("%w: the price of %s in %s is not above zero", ErrUnavailable, r.Token, r.Fiat)
	case age >= most || age <= -min(most, ahead):
		return fmt.Errorf("%w: the price of %s in %s is of %s", ErrUnavailable, r.Token, r.Fiat, r.At.UTC().Format(time.RFC3339))
	}
	return nil
}

// Rates gives prices. Implementations may be called concurrently and must not
// answer with a price older than their bound: the error then wraps
// ErrUnavailable.
type Rates interface {
	Rate(ctx context.Context, token, fiat string) (Rate, error)
}

// ErrUnavailable says that there is no price that is fresh and agreed upon.
var ErrUnavailable = errors.New("rates: no usable price now, try again later")
