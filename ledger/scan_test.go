package ledger_test

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/ledger"
)

func TestI01_OnlyPlainDigits(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", ".", "-", "+1", "-1", "\u22121", "1e5", "1E400", "1e10000000", "1e-2", "0x10", "1_000", "1,5", "1 ", " 1", "1\n",
		".5", "5.", "1.2.3", "1..2", "null", "NaN", "Inf", "Infinity", "\u0661", "\uff11", "1\x00", "\xff", "\ufeff1", "1.\u0665",
		strings.Repeat("9", 41), strings.Repeat("0", 41), "0." + strings.Repeat("0", 31), "1." + strings.Repeat("1", 40),
		strings.Repeat("1", 20) + "." + strings.Repeat("1", 30),
		strings.Repeat("9", 1<<20), strings.Repeat("x", 1<<20),
	} {
		_, err := ledger.ParseDecimal(bad)
		require.ErrorIs(t, err, ledger.ErrSyntax, "%.50q", bad)
		_, err = ledger.ParseAmount(bad, 8)
		require.ErrorIs(t, err, ledger.ErrSyntax, "%.50q", bad)
	}
	for in, want := range map[string]string{
		"0": "0", "00": "0", "007.50": "7.50", "0.0": "0.0", "1.23": "1.23",
		strings.Repeat("9", 40):                 strings.Repeat("9", 40),
		"1234567890." + strings.Repeat("7", 30): "1234567890." + strings.Repeat("7", 30),
	} {
		got, err := ledger.ParseDecimal(in)
		require.NoError(t, err, in)
		require.Equal(t, want, ledger.PlainString(got))
	}
}

// What is too long is refused for its length, with a handful of allocations
// and an error that does not repeat it.
func TestI01_LongInputIsNotRead(t *testing.T) {
	for _, c := range []string{"9", "0", "1.", "x"} {
		for _, s := range []string{strings.Repeat(c, 50), strings.Repeat(c, 1<<22)} {
			var err error
			allocs := testing.AllocsPerRun(10, func() { _, err = ledger.ParseDecimal(s) })
			require.ErrorIs(t, err, ledger.ErrSyntax)
			require.ErrorContains(t, err, "at most 40 digits", "whatever else is wrong with it")
			require.Less(t, allocs, 10.0)
			require.Less(t, len(err.Error()), 200)
		}
	}
}

// A decimal from elsewhere with an absurd exponent costs no memory either.
func TestI01_ExponentBombs(t *testing.T) {
	t.Parallel()
	for _, d := range []decimal.Decimal{decimal.New(1, 2_000_000_000), decimal.New(-7, -2_000_000_000)} {
		require.Less(t, len(ledger.PlainString(d)), 100)
		require.Less(t, len(ledger.FixedString(d, 2)), 100)
		_, err := ledger.ParsePlain(ledger.PlainString(d))
		require.ErrorIs(t, err, ledger.ErrSyntax)
	}
	huge, tiny := decimal.New(1, 2_000_000_000), decimal.New(1, -2_000_000_000)
	_, err := ledger.FromDecimal(huge, 8, ledger.Down)
	require.ErrorIs(t, err, ledger.ErrOverflow)
	_, err = ledger.Quo(huge, tiny, 8, ledger.Down)
	require.ErrorIs(t, err, ledger.ErrOverflow)
	_, err = ledger.MulRound(1, 8, huge, 2, ledger.Down)
	require.ErrorIs(t, err, ledger.ErrOverflow)
	for r, want := range map[ledger.Rounding]ledger.Amount{ledger.Down: 0, ledger.Up: 1} {
		got, err := ledger.FromDecimal(tiny, 8, r)
		require.NoError(t, err)
		require.Equal(t, want, got)
		got, err = ledger.Quo(tiny, huge, 8, r)
		require.NoError(t, err)
		require.Equal(t, want, got)
		v, err := ledger.MulRound(1, 8, tiny, 2, r)
		require.NoError(t, err)
		require.Equal(t, int64(want), v.CoefficientInt64())
	}
}

func TestW15_PlacesTooManyAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		scale uint8
		want  ledger.Amount
		err   error
	}{
		{"1.00000001", 8, 100000001, nil},
		{"1.000000010000", 8, 100000001, nil},
		{"1.000000001", 8, 0, ledger.ErrPrecision},
		{"0.5", 0, 0, ledger.ErrPrecision},
		{"5.000", 0, 5, nil},
		{"10.999", 2, 0, ledger.ErrPrecision},
		{"92233720368.54775807", 8, ledger.MaxAmount, nil},
		{"92233720368.54775808", 8, 0, ledger.ErrOverflow},
		{"9223372036854775807", 0, ledger.MaxAmount, nil},
		{"9223372036854775808", 0, 0, ledger.ErrOverflow},
		{strings.Repeat("9", 40), 8, 0, ledger.ErrOverflow},
		{"0", 255, 0, nil},
		{"1", 255, 0, ledger.ErrOverflow},
		{"1", 19, 0, ledger.ErrOverflow},
		{"9", 18, 9_000_000_000_000_000_000, nil},
		{strings.Repeat("9", 30) + ".123456789", 8, 0, ledger.ErrPrecision},
	} {
		got, err := ledger.ParseAmount(c.in, c.scale)
		require.ErrorIs(t, err, c.err, c.in)
		require.Equal(t, c.want, got, c.in)
	}
}

func TestPlainStringAndBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := decimals().Draw(t, "d")
		s := ledger.PlainString(d)
		back, err := ledger.ParsePlain(s)
		require.NoError(t, err)
		require.Zero(t, ratOf(d).Cmp(ratOf(back)), s)
		require.Equal(t, min(d.Exponent(), 0), back.Exponent())
		require.Equal(t, s, ledger.PlainString(back))
	})
	for _, bad := range []string{"", "-", "--1", "+1", "1e5", "-.5", "5.", "1.2.3", "\u22121"} {
		_, err := ledger.ParsePlain(bad)
		require.ErrorIs(t, err, ledger.ErrSyntax)
	}
	require.Equal(t, "0", ledger.PlainString(decimal.Decimal{}))
	require.Equal(t, "0.00", ledger.FixedString(decimal.Decimal{}, 2))
	require.Equal(t, "0.00", ledger.FixedString(decimal.New(-9, -3), 2))
	require.Equal(t, "-1.99", ledger.FixedString(decimal.New(-1999, -3), 2))
	require.Equal(t, "100.00", ledger.FixedString(decimal.New(1, 2), 2))
}

// outputs is everything of ours that writes or computes with decimals.
func outputs(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, s := range []string{"0", "7", "1.50", "0.00000001", "1234567890.123456789012345678901234567890", "60000", strings.Repeat("9", 40)} {
		d, err := ledger.ParseDecimal(s)
		require.NoError(t, err)
		plain, err := ledger.ParsePlain("-" + s + "5")
		require.NoError(t, err)
		out["parse "+s] = d.Coefficient().String() + " " + ledger.PlainString(d)
		out["stored "+s] = ledger.PlainString(plain)
		out["large "+s] = ledger.PlainString(decimal.NewFromBigInt(d.Coefficient(), 12))
		out["fixed "+s] = ledger.FixedString(d, 2)
		for _, r := range []ledger.Rounding{ledger.Down, ledger.Up} {
			units, err := ledger.FromDecimal(d, 3, r)
			out["units "+s+string('0'+rune(r))] = units.Format(3, 8) + ledger.PlainString(units.Decimal(3)) + errText(err)
			units, err = ledger.Quo(decimal.New(100, 0), d, 8, r)
			out["quo "+s+string('0'+rune(r))] = units.Format(8, 8) + errText(err)
			v, err := ledger.MulRound(12345678, 8, d, 2, r)
			out["value "+s+string('0'+rune(r))] = ledger.PlainString(v) + errText(err)
		}
		units, err := ledger.ParseAmount(s, 8)
		out["amount "+s] = units.Format(8, 8) + errText(err)
	}
	b, err := json.Marshal(ledger.Balance{Posted: 150, Held: 2})
	require.NoError(t, err)
	out["json"] = string(b)
	return out
}

func errText(err error) string {
	if err != nil {
		return " " + err.Error()
	}
	return ""
}

// It sets what is global to the process, so it does not run in parallel.
func TestI07_DecimalGlobalsChangeNothing(t *testing.T) {
	want := outputs(t)
	for _, flip := range []struct {
		name string
		set  func()
	}{
		{"DivisionPrecision", set(t, &decimal.DivisionPrecision, 1)},
		{"PowPrecisionNegativeExponent", set(t, &decimal.PowPrecisionNegativeExponent, 1)},
		{"MarshalJSONWithoutQuotes", set(t, &decimal.MarshalJSONWithoutQuotes, true)},
		{"TrimTrailingZeros", set(t, &decimal.TrimTrailingZeros, false)},
		{"UseScientificNotation", set(t, &decimal.UseScientificNotation, true)},
		{"ExpMaxIterations", set(t, &decimal.ExpMaxIterations, 1)},
		{"MaxDecodeExponent", set(t, &decimal.MaxDecodeExponent, 0)},
		{"Zero", set(t, &decimal.Zero, decimal.New(5, -3))},
	} { // each stands beside those before it
		flip.set()
		require.Equal(t, want, outputs(t), flip.name)
	}
}

func set[T any](t *testing.T, p *T, v T) func() {
	t.Helper()
	old := *p
	t.Cleanup(func() { *p = old })
	return func() { *p = v }
}

var plain = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

func FuzzParseAmount(f *testing.F) {
	for _, s := range []string{"0", "1.5", "00.10", "1e5", "\u22121", "9223372036854775808", strings.Repeat("9", 41), "0." + strings.Repeat("0", 31)} {
		f.Add(s, uint8(8))
	}
	f.Fuzz(func(t *testing.T, s string, scale uint8) {
		scale %= 31
		d, err := ledger.ParseDecimal(s)
		a, aerr := ledger.ParseAmount(s, scale)
		whole, fraction, _ := strings.Cut(s, ".")
		formed := plain.MatchString(s) && len(whole)+len(fraction) <= 40 && len(fraction) <= 30
		require.Equal(t, formed, err == nil)
		if !formed {
			require.ErrorIs(t, err, ledger.ErrSyntax)
			require.ErrorIs(t, aerr, ledger.ErrSyntax)
			return
		}
		zeros := min(len(whole)-1, len(whole)-len(strings.TrimLeft(whole, "0")))
		require.Equal(t, s[zeros:], ledger.PlainString(d))
		x, ok := new(big.Rat).SetString(s)
		require.True(t, ok)
		require.Zero(t, x.Cmp(ratOf(d)))

		x.Mul(x, power(int(scale)))
		switch {
		case !x.IsInt():
			require.ErrorIs(t, aerr, ledger.ErrPrecision)
		case !x.Num().IsInt64():
			require.ErrorIs(t, aerr, ledger.ErrOverflow)
		default:
			require.NoError(t, aerr)
			require.Equal(t, x.Num().Int64(), int64(a))
			require.LessOrEqual(t, len(a.Format(scale, scale)), 41)
		}
	})
}
