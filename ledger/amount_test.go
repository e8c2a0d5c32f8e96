package ledger_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// amounts draws numbers of every size, with the bounds among them often.
func amounts() *rapid.Generator[ledger.Amount] {
	return rapid.Custom(func(t *rapid.T) ledger.Amount {
		if rapid.IntRange(0, 9).Draw(t, "edge") == 0 {
			return rapid.SampledFrom([]ledger.Amount{
				0, 1, -1, ledger.MaxAmount, ledger.MinAmount, ledger.MaxAmount - 1, ledger.MinAmount + 1, ledger.MaxCredit,
			}).Draw(t, "bound")
		}
		return ledger.Amount(rapid.Int64().Draw(t, "units")) >> rapid.IntRange(0, 63).Draw(t, "shift")
	})
}

func uints() *rapid.Generator[uint64] {
	return rapid.Custom(func(t *rapid.T) uint64 {
		return rapid.Uint64().Draw(t, "bits") >> rapid.IntRange(0, 63).Draw(t, "shift")
	})
}

// decimals draws coefficients up to some 60 digits and exponents around zero.
func decimals() *rapid.Generator[decimal.Decimal] {
	return rapid.Custom(func(t *rapid.T) decimal.Decimal {
		c := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 25).Draw(t, "coefficient"))
		if rapid.Bool().Draw(t, "small") {
			c.SetInt64(int64(amounts().Draw(t, "units")))
		}
		if rapid.Bool().Draw(t, "negative") {
			c.Neg(c)
		}
		return decimal.NewFromBigInt(c, rapid.Int32Range(-40, 25).Draw(t, "exponent"))
	})
}

var roundings = rapid.SampledFrom([]ledger.Rounding{ledger.Down, ledger.Up})

func bigOf(a ledger.Amount) *big.Int { return big.NewInt(int64(a)) }

// rounded is x as an integer, in the plainest way.
func rounded(x *big.Rat, r ledger.Rounding) *big.Int {
	q, rem := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	if rem.Sign() != 0 && r == ledger.Up {
		q.Add(q, big.NewInt(int64(x.Sign())))
	}
	return q
}

func power(n int) *big.Rat {
	p := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil))
	if n < 0 {
		return p.Inv(p)
	}
	return p
}

// ratOf is d without any of the decimal package's own arithmetic.
func ratOf(d decimal.Decimal) *big.Rat {
	x := new(big.Rat).SetInt(d.Coefficient())
	return x.Mul(x, power(int(d.Exponent())))
}

// same demands want, or ErrOverflow where an Amount cannot hold it.
func same(t require.TestingT, want *big.Int, got ledger.Amount, err error) {
	if !want.IsInt64() {
		require.ErrorIs(t, err, ledger.ErrOverflow, "%d does not fit", want)
		require.Zero(t, got)
		return
	}
	require.NoError(t, err, "%d fits", want)
	require.Equal(t, want.Int64(), int64(got))
}

func TestL10_SumsNeverWrap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := amounts().Draw(t, "a"), amounts().Draw(t, "b")
		got, err := a.Add(b)
		same(t, new(big.Int).Add(bigOf(a), bigOf(b)), got, err)
		got, err = a.Sub(b)
		same(t, new(big.Int).Sub(bigOf(a), bigOf(b)), got, err)
		got, err = a.Neg()
		same(t, new(big.Int).Neg(bigOf(a)), got, err)
		got, err = ledger.Sum(a, b)
		same(t, new(big.Int).Add(bigOf(a), bigOf(b)), got, err)
	})
}

func TestL10_MulDivNeverWraps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, r := amounts().Draw(t, "a"), roundings.Draw(t, "r")
		num, den := uints().Draw(t, "num"), max(1, uints().Draw(t, "den"))
		got, err := a.MulDiv(num, den, r)
		x := new(big.Rat).SetFrac(new(big.Int).Mul(bigOf(a), new(big.Int).SetUint64(num)), new(big.Int).SetUint64(den))
		same(t, rounded(x, r), got, err)
	})
}

// The quotient 2^64−1 with a remainder, rounded up, is not 0.
func TestL10_MulDivRoundsUpAtTheBrim(t *testing.T) {
	t.Parallel()
	_, err := ledger.MaxAmount.MulDiv(5, 2, ledger.Up) // 2.5·(2^63−1): above 2^64
	require.ErrorIs(t, err, ledger.ErrOverflow)
	a := ledger.Amount(6148914691236517205) // (2^64−1)/3, then ·6 + 1 over 2 = 2^64−1 and a half
	_, err = a.MulDiv(6, 2, ledger.Up)
	require.ErrorIs(t, err, ledger.ErrOverflow)
	_, err = ledger.Amount(1<<62+1).MulDiv(math.MaxUint64, 1<<62+2, ledger.Up) // just below 2^64, rounded up to it
	require.ErrorIs(t, err, ledger.ErrOverflow)
	got, err := ledger.MinAmount.MulDiv(3, 3, ledger.Up)
	require.NoError(t, err)
	require.Equal(t, ledger.MinAmount, got)
	_, err = ledger.MaxAmount.MulDiv(math.MaxUint64, math.MaxUint64-1, ledger.Up)
	require.ErrorIs(t, err, ledger.ErrOverflow)
	_, err = ledger.Amount(1).MulDiv(1, 0, ledger.Down)
	require.ErrorIs(t, err, ledger.ErrOverflow)
}

func TestRoundingHasNoDefault(t *testing.T) {
	t.Parallel()
	d := decimal.New(15, -1)
	for _, r := range []ledger.Rounding{0, 3} {
		_, err := ledger.Amount(3).MulDiv(1, 2, r)
		require.Error(t, err)
		_, err = ledger.FromDecimal(d, 8, r)
		require.Error(t, err)
		_, err = ledger.Quo(d, decimal.New(123, -30), 30, r)
		require.Error(t, err)
		_, err = ledger.MulRound(1, 8, d, 2, r)
		require.Error(t, err)
	}
}

func TestW15_ConversionsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, conversionsAreExact)
}

func conversionsAreExact(t *rapid.T) {
	a, b, r := decimals().Draw(t, "a"), decimals().Draw(t, "b"), roundings.Draw(t, "r")
	scale := rapid.Uint8Range(0, 30).Draw(t, "scale")
	shift := power(int(scale))

	got, err := ledger.FromDecimal(a, scale, r)
	same(t, rounded(new(big.Rat).Mul(ratOf(a), shift), r), got, err)

	got, err = ledger.Quo(a, b, scale, r)
	if b.Sign() == 0 {
		require.ErrorIs(t, err, ledger.ErrOverflow)
		return
	}
	x := new(big.Rat).Quo(ratOf(a), ratOf(b))
	same(t, rounded(x.Mul(x, shift), r), got, err)
}

// FuzzConversions: prices and rates against exact fractions, with a fuzzer's
// choices.
func FuzzConversions(f *testing.F) {
	for seed := range uint64(4) {
		choices := make([]byte, 512)
		_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(choices)
		f.Add(choices)
	}
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		conversionsAreExact(t)
		valuesAreExact(t)
	}))
}

func TestW15_ValuesAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, valuesAreExact)
}

func valuesAreExact(t *rapid.T) {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(40), nil)
	a, rate, r := amounts().Draw(t, "a"), decimals().Draw(t, "rate"), roundings.Draw(t, "r")
	scale, places := rapid.Uint8Range(0, 20).Draw(t, "scale"), rapid.Uint8Range(0, 20).Draw(t, "places")
	x := new(big.Rat).Mul(ratOf(rate), new(big.Rat).SetInt(bigOf(a)))
	want := rounded(x.Mul(x, power(int(places)-int(scale))), r)
	got, err := ledger.MulRound(a, scale, rate, places, r)
	if want.CmpAbs(limit) >= 0 {
		require.ErrorIs(t, err, ledger.ErrOverflow)
		return
	}
	require.NoError(t, err)
	require.Equal(t, -int32(places), got.Exponent())
	require.Equal(t, want.String(), got.Coefficient().String())
}

func TestW15_ValuesAtTheBorders(t *testing.T) {
	t.Parallel()
	v, err := ledger.MulRound(ledger.MinAmount, 0, decimal.New(-1, 0), 0, ledger.Down)
	require.NoError(t, err)
	require.Equal(t, "9223372036854775808", ledger.PlainString(v))
	v, err = ledger.MulRound(9, 0, decimal.New(1, 39), 0, ledger.Down)
	require.NoError(t, err)
	require.Len(t, ledger.PlainString(v), 40)
	_, err = ledger.MulRound(10, 0, decimal.New(1, 39), 0, ledger.Down)
	require.ErrorIs(t, err, ledger.ErrOverflow)
	_, err = ledger.Quo(decimal.New(1, 0), decimal.New(0, 5), 8, ledger.Down)
	require.ErrorIs(t, err, ledger.ErrOverflow)
}

// What is written is read again as it was, and Format is exact for every int64.
func TestW15_FormatIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := amounts().Draw(t, "a")
		scale, places := rapid.Uint8Range(0, 40).Draw(t, "scale"), rapid.Uint8Range(0, 40).Draw(t, "places")
		x := new(big.Rat).Mul(new(big.Rat).SetInt(bigOf(a)), power(-int(scale)))
		cut := rounded(new(big.Rat).Mul(x, power(int(places))), ledger.Down)
		want := new(big.Rat).Mul(new(big.Rat).SetInt(cut), power(-int(places))).FloatString(int(places))
		require.Equal(t, want, a.Format(scale, places))
		require.Equal(t, want, ledger.FixedString(a.Decimal(scale), places))

		if a < 0 {
			return
		}
		back, err := ledger.ParseAmount(a.Format(scale, min(scale, 20)), scale)
		if scale <= 20 {
			require.NoError(t, err)
			require.Equal(t, a, back)
		}
	})
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a             ledger.Amount
		scale, places uint8
		want          string
	}{
		{0, 8, 8, "0.00000000"},
		{0, 0, 0, "0"},
		{1, 8, 8, "0.00000001"},
		{-1, 8, 8, "-0.00000001"},
		{-1, 8, 2, "0.00"},
		{-199, 2, 1, "-1.9"},
		{123456789, 6, 8, "123.45678900"},
		{ledger.MinAmount, 0, 0, "-9223372036854775808"},
		{ledger.MinAmount, 19, 19, "-0.9223372036854775808"},
		{ledger.MaxAmount, 8, 8, "92233720368.54775807"},
		{ledger.MaxAmount, 255, 3, "0.000"},
		{7, 0, 3, "7.000"},
	} {
		require.Equal(t, c.want, c.a.Format(c.scale, c.places))
	}
}

func TestBalance_AvailableIsTheNearestBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := ledger.Balance{Posted: amounts().Draw(t, "posted"), Held: amounts().Draw(t, "held")}
		want := new(big.Int).Sub(bigOf(b.Posted), bigOf(b.Held))
		switch got := b.Available(); {
		case want.IsInt64():
			require.Equal(t, want.Int64(), int64(got))
		case want.Sign() < 0:
			require.Equal(t, ledger.MinAmount, got)
		default:
			require.Equal(t, ledger.MaxAmount, got)
		}
	})
}
