package rates_test

import (
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/rates"
)

// TestT02_AgeOfAPriceIsHalfOpen: at the very age it is too old, and so it is of
// the future.
func TestT02_AgeOfAPriceIsHalfOpen(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	r := rates.Rate{Token: "BTC", Fiat: "USD", Price: decimal.New(1, 0), At: at}
	for _, inside := range []time.Duration{0, time.Minute - 1, 1 - time.Minute} {
		require.NoError(t, r.Check(at.Add(inside), time.Minute))
	}
	for _, outside := range []time.Duration{time.Minute, -time.Minute, 1000 * time.Hour} {
		require.ErrorIs(t, r.Check(at.Add(outside), time.Minute), rates.ErrUnavailable)
	}
	require.NoError(t, r.Check(at.Add(1-time.Minute), time.Hour))
	require.ErrorIs(t, r.Check(at.Add(-time.Minute), time.Hour), rates.ErrUnavailable, "however old prices may be, none is of the future")
	for _, price := range []int64{0, -1} {
		r.Price = decimal.New(price, 0)
		require.ErrorIs(t, r.Check(at, time.Minute), rates.ErrUnavailable)
	}
}
