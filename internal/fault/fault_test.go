package fault_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/fault"
)

// Figures with more places than the asset has are refused, never rounded.
func TestW15_PrecisionIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1.000001": "", "1.00000100000": "", "9223372036854.775807": "",
		"1.0000001": "decimal places", "0.0000001": "decimal places", "0": "greater", "-1": "greater",
		"9223372036854.775808": "too large",
	} {
		a, bad := fault.Units(decimal.RequireFromString(text), 6)
		if want == "" {
			require.Empty(t, bad, text)
			require.True(t, a.Decimal(6).Equal(decimal.RequireFromString(text)), text)
			continue
		}
		require.Contains(t, bad, want, text)
	}
}

// A number that would cost seconds to look at is refused before it is.
func TestI01_NumberBombs(t *testing.T) {
	t.Parallel()
	bombs := []decimal.Decimal{
		decimal.New(1, math.MaxInt32), decimal.New(1, math.MinInt32), decimal.New(-1, 10_000_000),
		decimal.NewFromBigInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(100_000), nil), -99_990),
	}
	start := time.Now()
	for _, d := range bombs {
		for _, scale := range []uint8{0, 2, 8} {
			_, bad := fault.Units(d, scale)
			require.NotEmpty(t, bad)
		}
	}
	require.Less(t, time.Since(start), time.Second)
}

func TestInvalidError(t *testing.T) {
	t.Parallel()
	bad := &fault.InvalidError{}
	require.NoError(t, bad.Err())
	bad.AddLong("name", "äöü", 3) // characters, not bytes
	bad.AddPage(1, 0)
	bad.AddPage(fault.MaxPage, 7)
	require.NoError(t, bad.Err())
	bad.AddPage(fault.MaxPage+1, -1)
	bad.AddPage(0, 0)
	bad.AddLong("name", "äöüß", 3)
	require.Equal(t, map[string][]string{
		"limit": {"must be 1 to 100", "must be 1 to 100"}, "offset": {"must not be negative"}, "name": {"must have at most 3 characters"},
	}, bad.Fields)
	require.EqualError(t, bad.Err(), "invalid request: limit: must be 1 to 100, must be 1 to 100; name: must have at most 3 characters; offset: must not be negative")
	require.EqualError(t, fault.Invalid("a", "is required"), "invalid request: a: is required")
}
