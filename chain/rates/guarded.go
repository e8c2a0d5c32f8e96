package rates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// Bound is the range in which a price can be true. Both ends belong to it.
type Bound struct{ Min, Max decimal.Decimal }

// GuardConfig says which prices a Guarded lets through.
type GuardConfig struct {
	// Rates is the source. Required.
	Rates Rates
	// Now is the clock that ages are measured by. Required.
	Now func() time.Time
	// MaxAge is the age at which a price is refused. Defaults to DefaultMaxAge.
	MaxAge time.Duration
	// Stable are the tokens whose price is near 1 USD. Unless Bounds says otherwise,
	// their price must be from 0.5 to 1.5 in USD, and from 0.25 to 2 in EUR and GBP.
	Stable []string
	// Bounds are the ranges of prices by "TOKEN/FIAT", or by "TOKEN" for the price in
	// USD. Defaults to none beside those of Stable.
	Bounds map[string]Bound
}

// DefaultMaxAge is GuardConfig.MaxAge where it is left out.
const DefaultMaxAge = 10 * time.Minute

// Guarded gives only prices that can be true: above zero, fresh, not of the future,
// of the pair that was asked for, and within their bounds. Every error wraps
// ErrUnavailable, but for one of a context that has ended. Safe for concurrent use
// where its source is.
type Guarded struct {
	source Rates
	now    func() time.Time
	age    time.Duration
	bounds map[[2]string]Bound
}

// NewGuarded checks the configuration: bounds must be of a named pair, with
// 0 ≤ Min ≤ Max.
func NewGuarded(c GuardConfig) (*Guarded, error) {
	if c.Rates == nil || c.Now == nil {
		return nil, errors.New("rates: GuardConfig needs Rates and Now")
	}
	if c.MaxAge < 0 {
		return nil, errors.New("rates: GuardConfig.MaxAge is below 0")
	}
	g := &Guarded{source: c.Rates, now: c.Now, age: c.MaxAge, bounds: map[[2]string]Bound{}}
	if g.age == 0 {
		g.age = DefaultMaxAge
	}
	for _, token := range c.Stable {
		maps.Copy(g.bounds, stableBounds(token))
	}
	for name, b := range c.Bounds {
		pair, ok := pairOf(name)
		if !ok || b.Min.Sign() < 0 || b.Max.LessThan(b.Min) {
			return nil, fmt.Errorf("rates: GuardConfig.Bounds[%q] must be of TOKEN or TOKEN/FIAT, with 0 ≤ Min ≤ Max", name)
		}
		g.bounds[pair] = b
	}
	return g, nil
}

// stableBounds are wide: they tell a broken source from a price.
func stableBounds(token string) map[[2]string]Bound {
	elsewhere := Bound{Min: decimal.New(25, -2), Max: decimal.New(2, 0)}
	return map[[2]string]Bound{
		{token, "USD"}: {Min: decimal.New(5, -1), Max: decimal.New(15, -1)},
		{token, "EUR"}: elsewhere,
		{token, "GBP"}: elsewhere,
	}
}

// pairOf reads "TOKEN/FIAT", or "TOKEN" for its price in USD.
func pairOf(name string) (pair [2]string, ok bool) {
	token, fiat, both := strings.Cut(name, "/")
	if !both {
		fiat = "USD"
	}
	return [2]string{token, fiat}, symbol(token) && symbol(fiat)
}

// Rate implements Rates.
func (g *Guarded) Rate(ctx context.Context, token, fiat string) (Rate, error) {
	r, err := g.source.Rate(ctx, token, fiat)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, ErrUnavailable) {
			return Rate{}, err
		}
		return Rate{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if r.Token != token && r.Token != "" || r.Fiat != fiat && r.Fiat != "" {
		return Rate{}, fmt.Errorf("%w: the source answered %s in %s where %s in %s was asked", ErrUnavailable, r.Token, r.Fiat, token, fiat)
	}
	r.Token, r.Fiat = token, fiat
	if err := r.Check(g.now(), g.age); err != nil {
		return Rate{}, err
	}
	if b, ok := g.bounds[[2]string{token, fiat}]; ok && (r.Price.LessThan(b.Min) || r.Price.GreaterThan(b.Max)) {
		return Rate{}, fmt.Errorf("%w: the price of %s in %s is outside its bounds", ErrUnavailable, token, fiat)
	}
	return r, nil
}
