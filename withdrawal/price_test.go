package withdrawal

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// The arithmetic of fees against exact fractions.
func TestW15_FeesAgainstRat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		asked := rapid.Int64Range(1, math.MaxInt64).Draw(t, "asked")
		percent := rapid.Int64Range(0, 100_000_000).Draw(t, "percent") // in 10^-6 %
		flat := rapid.Int64Range(0, 1<<40).Draw(t, "flat")
		network := rapid.Int64Range(0, 1<<40).Draw(t, "network")
		final := rapid.Bool().Draw(t, "final")

		exactly := new(big.Rat).Mul(big.NewRat(asked, 1), big.NewRat(percent, 100_000_000))
		platform := new(big.Int).Quo(exactly.Num(), exactly.Denom())
		platform.Add(platform, big.NewInt(flat))
		fee := new(big.Int).Add(platform, big.NewInt(network))
		requested, amount := big.NewInt(asked), big.NewInt(asked)
		if final {
			requested.Add(requested, fee)
		} else {
			amount.Sub(amount, fee)
		}

		p, err := price(ledger.Amount(asked), final, decimal.New(percent, -percentPlaces), ledger.Amount(flat), ledger.Amount(network))
		if !requested.IsInt64() || !fee.IsInt64() || !amount.IsInt64() {
			require.ErrorIs(t, err, ledger.ErrOverflow)
			return
		}
		require.NoError(t, err)
		require.Equal(t, []int64{requested.Int64(), amount.Int64(), platform.Int64(), network},
			[]int64{int64(p.Requested), int64(p.Amount), int64(p.PlatformFee), int64(p.NetworkFee)})
		require.Equal(t, p.Requested, p.Amount+p.PlatformFee+p.NetworkFee)
		require.Equal(t, p.Fee(), p.PlatformFee+p.NetworkFee)
	})
}

func TestW15_FeeSettings(t *testing.T) {
	t.Parallel()
	for _, percent := range []string{"-0.1", "100.000001", "0.0000001", "1e30"} {
		_, err := price(100, false, decimal.RequireFromString(percent), 0, 0)
		require.ErrorIs(t, err, errFeeSetting, percent)
	}
	_, err := price(100, false, decimal.Decimal{}, -1, 0)
	require.ErrorIs(t, err, errFeeSetting)
}

func TestRankComparesAcrossScales(t *testing.T) {
	t.Parallel()
	require.Less(t, rank(5_000_000, 6), rank(600_000_000, 8))
	require.EqualValues(t, math.MaxInt64, rank(math.MaxInt64, 3))
	require.EqualValues(t, 7, rank(7, 8))
}

// T02: a day and a delay are half-open.
func TestT02_HalfOpenDays(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	require.Equal(t, "withdrawal/BTC/2026-11-21", counter("BTC", midnight))
	require.Equal(t, "withdrawal/BTC/2026-11-20", counter("BTC", midnight.Add(-time.Microsecond)))

	from, before, err := DateRange("2026-11-20", "2026-11-20")
	require.NoError(t, err)
	require.Equal(t, midnight.Add(-24*time.Hour), from)
	require.Equal(t, midnight, before)

	from, before, err = DateRange("2026-11-20T10:00:00.500Z", "2026-11-20T12:00:00.500+02:00")
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 11, 20, 10, 0, 0, 500e6, time.UTC), from)
	require.Equal(t, from.Add(time.Millisecond), before)

	from, _, err = DateRange("2026-11-20T10:00:00", "")
	require.NoError(t, err, "without a zone it is UTC")
	require.Equal(t, time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), from)

	var bad *InvalidError
	for _, year := range []string{"0000-01-01", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"} {
		_, _, err = DateRange(year, "")
		require.ErrorContains(t, err, "start_date", year)
	}
	_, _, err = DateRange("yesterday", "2026-13-01")
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Fields, 2)
}
