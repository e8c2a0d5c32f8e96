package rates

import (
	"context"
	"errors"
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

// Rates gives prices. Implementations may be called concurrently and must not
// answer with a price older than their bound: the error then wraps
// ErrUnavailable.
type Rates interface {
	Rate(ctx context.Context, token, fiat string) (Rate, error)
}

// ErrUnavailable says that there is no price that is fresh and agreed upon.
var ErrUnavailable = errors.New("rates: no usable price now, try again later")
