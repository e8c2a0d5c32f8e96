package ledger

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
)

// FromDecimal converts d to units of the given scale, rounded as said. A
// number outside the range of an Amount is ErrOverflow.
func FromDecimal(d decimal.Decimal, scale uint8, r Rounding) (Amount, error) {
	return divide(d, one, scale, r)
}

// Quo returns a/b in units of 10^-scale, rounded as said, exact until then:
// a price and a rate give the units of a coin. The error wraps ErrOverflow,
// also for b = 0.
func Quo(a, b decimal.Decimal, scale uint8, r Rounding) (Amount, error) {
	if b.Sign() == 0 {
		return 0, fmt.Errorf("%w: division by zero", ErrOverflow)
	}
	return divide(a, b, scale, r)
}

// MulRound returns a·rate with exactly the given number of places, rounded as
// said, exact until then: units of a coin (of 10^-scale) and a rate give a
// value in fiat. A result of more than 40 digits is ErrOverflow.
func MulRound(a Amount, scale uint8, rate decimal.Decimal, places uint8, r Rounding) (decimal.Decimal, error) {
	exp := int64(rate.Exponent()) - int64(scale) + int64(places)
	if c, ok := coefficient(rate); ok && a != MinAmount && exp <= 0 && -exp < int64(len(pow10)) {
		if v, err := signed(a, c).MulDiv(Amount(c).abs(), pow10[-exp], r); err == nil {
			return decimal.New(int64(v), -int32(places)), nil
		}
	}
	c := rate.Coefficient()
	v, err := ratio(c.Mul(c, big.NewInt(int64(a))), bigOne, exp, r, maxCoefficient.BitLen())
	if err != nil {
		return decimal.Decimal{}, err
	}
	if v.CmpAbs(maxCoefficient) >= 0 {
		return decimal.Decimal{}, fmt.Errorf("%w: a value of more than %d digits", ErrOverflow, maxDigits)
	}
	return decimal.NewFromBigInt(v, -int32(places)), nil
}

// maxZeros is how many zeros an exponent may stand for in plain text: far more
// than any asset has, few enough to be harmless.
const maxZeros = 10_000

// PlainString writes d with the places it has, never with an exponent, whatever
// the host has set in the decimal package. A number whose exponent is beyond
// ±10,000, which can come only from outside our own parser, is written as
// "<coefficient>e<exponent>" instead of filling the memory with zeros; no
// parser of ours reads that.
func PlainString(d decimal.Decimal) string {
	exp := int(d.Exponent())
	var buf [64]byte
	digits := buf[:0]
	if c, ok := coefficient(d); ok {
		digits = strconv.AppendInt(digits, c, 10)
	} else {
		digits = d.Coefficient().Append(digits, 10)
	}
	switch {
	case exp == 0 || exp > 0 && d.Sign() == 0:
		return string(digits)
	case exp > maxZeros || exp < -maxZeros:
		return string(digits) + "e" + strconv.Itoa(exp)
	case exp > 0:
		return string(digits) + strings.Repeat("0", exp)
	}
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	whole := len(digits) + exp
	if whole <= 0 {
		return sign + "0." + strings.Repeat("0", -whole) + string(digits)
	}
	return sign + string(digits[:whole]) + "." + string(digits[whole:])
}

// FixedString writes d with exactly the given number of places, rounded towards
// zero: how fiat is shown. It is PlainString for a d beyond ±10^10,000.
func FixedString(d decimal.Decimal, places uint8) string {
	exp := int64(d.Exponent())
	if exp > maxZeros {
		return PlainString(d)
	}
	c := d.Coefficient()
	v, err := ratio(c, bigOne, exp+int64(places), Down, c.BitLen()+4*maxZeros)
	if err != nil {
		return PlainString(d)
	}
	return PlainString(decimal.NewFromBigInt(v, -int32(places)))
}

var (
	one            = decimal.New(1, 0)
	bigOne         = big.NewInt(1)
	maxCoefficient = bigPow10(maxDigits)
)

func bigPow10(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

// coefficient is d's coefficient without a copy, where it has at most 18 digits.
func coefficient(d decimal.Decimal) (c int64, ok bool) {
	if d.NumDigits() > 18 {
		return 0, false
	}
	return d.CoefficientInt64(), true
}

// signed is a with the sign that its product or quotient with c has. a is not
// MinAmount.
func signed(a Amount, c int64) Amount {
	if c < 0 {
		return -a
	}
	return a
}

// divide is a/b in units of 10^-scale; b is not zero.
func divide(a, b decimal.Decimal, scale uint8, r Rounding) (Amount, error) {
	exp := int64(a.Exponent()) - int64(b.Exponent()) + int64(scale)
	if num, ok := coefficient(a); ok {
		if den, ok := coefficient(b); ok {
			n, d := signed(Amount(num), den), Amount(den).abs()
			switch {
			case exp >= 0 && exp < int64(len(pow10)):
				return n.MulDiv(pow10[exp], d, r)
			case d == 1 && exp < 0 && -exp < int64(len(pow10)):
				return n.MulDiv(1, pow10[-exp], r)
			}
		}
	}
	v, err := ratio(a.Coefficient(), b.Coefficient(), exp, r, 64)
	if err != nil {
		return 0, err
	}
	if !v.IsInt64() {
		return 0, ErrOverflow
	}
	return Amount(v.Int64()), nil
}

// ratio is num/den·10^exp, rounded as said; den is not zero. A result that
// surely has more than maxBits bits is ErrOverflow, and one that is surely below
// 1 is not divided out: so the work is bounded by the sizes of num and den and
// by maxBits, whatever exp is.
func ratio(num, den *big.Int, exp int64, r Rounding, maxBits int) (*big.Int, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if num.Sign() == 0 {
		return new(big.Int), nil
	}
	// 2^(size−1) < |num/den| < 2^(size+1), and 2^low ≤ 10^exp ≤ 2^high.
	size := int64(num.BitLen() - den.BitLen())
	low, high := powerBits(exp)
	if size-1+low >= int64(maxBits) {
		return nil, ErrOverflow
	}
	quo, exact := new(big.Int), false
	if size+1+high > 0 {
		if exp >= 0 {
			num = new(big.Int).Mul(num, bigPow10(exp))
		} else {
			den = new(big.Int).Mul(den, bigPow10(-exp))
		}
		rem := new(big.Int)
		quo.QuoRem(num, den, rem)
		exact = rem.Sign() == 0
	}
	if !exact && r == Up {
		quo.Add(quo, big.NewInt(int64(num.Sign()*den.Sign())))
	}
	return quo, nil
}

// powerBits brackets log2(10^n).
func powerBits(n int64) (low, high int64) {
	if n < 0 {
		low, high = powerBits(-n)
		return -high, -low
	}
	return n * 33219 / 10000, n*3322/1000 + 1
}
