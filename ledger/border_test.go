package ledger_test

import (
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// The table of powers of ten ends at 10^19: one power more is computed, and right.
func TestW15_ConversionsAtTheEndOfThePowers(t *testing.T) {
	t.Parallel()
	for _, places := range []int32{18, 19, 20, 21} {
		tiny := decimal.New(-9, -places)
		for r, want := range map[ledger.Rounding]ledger.Amount{ledger.Down: 0, ledger.Up: -1} {
			got, err := ledger.FromDecimal(tiny, 0, r)
			require.NoError(t, err)
			require.Equal(t, want, got, "%d", places)
			v, err := ledger.MulRound(1, 0, tiny, 0, r)
			require.NoError(t, err)
			require.Equal(t, int64(want), v.IntPart(), "%d", places)
		}
		want, overflow := ledger.Amount(1_000_000_000_000_000_000), places > 18
		for _, convert := range []func() (ledger.Amount, error){
			func() (ledger.Amount, error) {
				return ledger.FromDecimal(decimal.New(1, 0), uint8(places), ledger.Down)
			},
			func() (ledger.Amount, error) { return ledger.ParseAmount("1", uint8(places)) },
		} {
			got, err := convert()
			if overflow {
				require.ErrorIs(t, err, ledger.ErrOverflow, "%d", places)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		require.Equal(t, "0."+strings.Repeat("0", int(places)-1)+"7", ledger.Amount(7).Format(uint8(places), uint8(places)))
	}
	got, err := ledger.ParseAmount("922337203685477580", 1)
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(9223372036854775800), got, "the most of one place")
	_, err = ledger.ParseAmount("922337203685477581", 1)
	require.ErrorIs(t, err, ledger.ErrOverflow)
}

// An exponent of 10,000 is still written in zeros, and one more is not.
func TestI01_ZerosAtTheirMost(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("0", 9_999)
	for want, d := range map[string]decimal.Decimal{
		"-70" + zeros:       decimal.New(-7, 10_000),
		"-0." + zeros + "7": decimal.New(-7, -10_000),
		"-7e10001":          decimal.New(-7, 10_001),
		"-7e-10001":         decimal.New(-7, -10_001),
	} {
		require.Equal(t, want, ledger.PlainString(d))
	}
	require.Equal(t, "70"+zeros+".00", ledger.FixedString(decimal.New(7, 10_000), 2))
	require.Equal(t, "7e10001", ledger.FixedString(decimal.New(7, 10_001), 2))
	require.Equal(t, "0.00", ledger.FixedString(decimal.New(7, -10_001), 2))
}

// A refusal tells what was there and what was asked for.
func TestL11_RefusalTellsItsFigures(t *testing.T) {
	t.Parallel()
	w := ledger.Wallet("1")
	b := ledger.Balance{Account: w, Asset: "ETH", Posted: 10, Held: 4}
	for _, c := range []struct {
		leg                  ledger.Leg
		available, requested ledger.Amount
		text                 string
	}{
		{ledger.Leg{Account: w, Asset: "ETH", Delta: -7}, 6, 7, "6 units of ETH available, 7 requested"},
		{ledger.Leg{Account: w, Asset: "ETH", Delta: -3, Hold: 5}, 6, 8, "6 units of ETH available, 8 requested"},
		{ledger.Leg{Account: w, Asset: "ETH", Hold: -5}, 4, 5, "4 units of ETH available, 5 requested"},
	} {
		_, err := b.Apply(c.leg)
		var short *ledger.InsufficientFundsError
		require.ErrorAs(t, err, &short)
		require.Equal(t, &ledger.InsufficientFundsError{Account: w, Asset: "ETH", Available: c.available, Requested: c.requested}, short)
		require.ErrorContains(t, err, c.text)
	}
}

func TestBalance_ZeroIsOfBoth(t *testing.T) {
	t.Parallel()
	require.True(t, ledger.Balance{Account: ledger.Float, Asset: "ETH", Seq: 2}.Zero())
	require.False(t, ledger.Balance{Posted: 1}.Zero())
	require.False(t, ledger.Balance{Held: 1}.Zero())
}
