package rates_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/rates"
)

type sourceFunc func(ctx context.Context, token, fiat string) (rates.Rate, error)

func (f sourceFunc) Rate(ctx context.Context, token, fiat string) (rates.Rate, error) {
	return f(ctx, token, fiat)
}

// TestW18_PricesThatCannotBeTrue: a price that is zero, stale, of tomorrow, of
// another pair or outside its bounds is no price.
func TestW18_PricesThatCannotBeTrue(t *testing.T) {
	t.Parallel()
	var said rates.Rate
	g, err := rates.NewGuarded(rates.GuardConfig{
		Rates: sourceFunc(func(context.Context, string, string) (rates.Rate, error) { return said, nil }),
		Now:   func() time.Time { return noon }, Stable: []string{"USDT"},
		Bounds: map[string]rates.Bound{
			"BTC":     {Min: decimal.New(1000, 0), Max: decimal.New(10_000_000, 0)},
			"BTC/EUR": {Min: decimal.New(900, 0), Max: decimal.New(9_000_000, 0)},
		},
	})
	require.NoError(t, err)
	for _, c := range []struct {
		token, fiat, price string
		age                time.Duration
		ok                 bool
	}{
		{"ETH", "USD", "2000", 0, true},
		{"ETH", "USD", "0", 0, false},
		{"ETH", "USD", "-2000", 0, false},
		{"BTC", "USD", "1000", 0, true},
		{"BTC", "USD", "999.99", 0, false},
		{"BTC", "USD", "10000000", 0, true},
		{"BTC", "USD", "10000001", 0, false},
		{"BTC", "EUR", "950", 0, true},
		{"BTC", "EUR", "899", 0, false},
		{"BTC", "USD", "60000", rates.DefaultMaxAge - 1, true},
		{"BTC", "USD", "60000", rates.DefaultMaxAge, false},
		{"BTC", "USD", "60000", 1 - time.Minute, true},
		{"BTC", "USD", "60000", -time.Minute, false},
		{"USDT", "USD", "0.49", 0, false},
		{"USDT", "USD", "0.5", 0, true},
		{"USDT", "USD", "1.5", 0, true},
		{"USDT", "USD", "1.51", 0, false},
		{"USDT", "EUR", "0.01", 0, false},
		{"USDT", "EUR", "0.86", 0, true},
		{"USDT", "GBP", "100", 0, false},
	} {
		said = rates.Rate{Token: c.token, Fiat: c.fiat, Price: decimal.RequireFromString(c.price), At: noon.Add(-c.age)}
		r, err := g.Rate(t.Context(), c.token, c.fiat)
		if c.ok {
			require.NoError(t, err, "%+v", c)
			require.Equal(t, said, r)
			continue
		}
		require.ErrorIs(t, err, rates.ErrUnavailable, "%+v", c)
		require.Zero(t, r, "who drops the error has no price")
	}
	said = rates.Rate{Token: "BTC", Fiat: "USD", Price: decimal.New(60_000, 0), At: noon}
	_, err = g.Rate(t.Context(), "ETH", "USD")
	require.ErrorIs(t, err, rates.ErrUnavailable, "the price of another pair")
}

// TestW18_ASourceThatFailsIsUnavailable: whatever its error is.
func TestW18_ASourceThatFailsIsUnavailable(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection broke")
	g, err := rates.NewGuarded(rates.GuardConfig{
		Rates: sourceFunc(func(ctx context.Context, _, _ string) (rates.Rate, error) {
			return rates.Rate{}, errors.Join(broken, ctx.Err())
		}),
		Now: func() time.Time { return noon },
	})
	require.NoError(t, err)
	_, err = g.Rate(t.Context(), "BTC", "USD")
	require.ErrorIs(t, err, rates.ErrUnavailable)
	require.ErrorIs(t, err, broken)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = g.Rate(ended, "BTC", "USD")
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, rates.ErrUnavailable, "it says nothing about the source")
}

// TestGuardConfigIsChecked: what is not understood is no bound.
func TestGuardConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := rates.GuardConfig{Rates: sourceFunc(nil), Now: time.Now}
	_, err := rates.NewGuarded(good)
	require.NoError(t, err)
	for name, wrong := range map[string]func(*rates.GuardConfig){
		"no source": func(c *rates.GuardConfig) { c.Rates = nil },
		"no clock":  func(c *rates.GuardConfig) { c.Now = nil },
		"age":       func(c *rates.GuardConfig) { c.MaxAge = -1 },
		"pair":      func(c *rates.GuardConfig) { c.Bounds = map[string]rates.Bound{"BTC-USD": {Max: decimal.New(1, 0)}} },
		"fiat":      func(c *rates.GuardConfig) { c.Bounds = map[string]rates.Bound{"BTC/": {Max: decimal.New(1, 0)}} },
		"order":     func(c *rates.GuardConfig) { c.Bounds = map[string]rates.Bound{"BTC": {Min: decimal.New(1, 0)}} },
		"sign": func(c *rates.GuardConfig) {
			c.Bounds = map[string]rates.Bound{"BTC": {Min: decimal.New(-1, 0), Max: decimal.New(1, 0)}}
		},
	} {
		c := good
		wrong(&c)
		_, err := rates.NewGuarded(c)
		require.Error(t, err, name)
	}
}
