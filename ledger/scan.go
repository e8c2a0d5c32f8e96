package ledger

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/shopspring/decimal"
)

// What a number that somebody typed may be at most. The limits hold before any
// digit is turned into a number, so no input costs more than its first bytes.
const (
	maxDigits = 40
	maxPlaces = 30
	maxLength = maxDigits + 1 // and one point
)

// ParseDecimal reads a number as a customer or a merchant types it: digits,
// and where there is a point, digits on both sides of it. There is no sign, no
// exponent, no space, no other script's digits. Leading and trailing zeros are
// allowed and count: at most 40 digits, at most 30 of them after the point.
// The result keeps the places as written. The error wraps ErrSyntax.
//
// Give it the raw token of a JSON number, never a float64.
func ParseDecimal(s string) (decimal.Decimal, error) {
	point, err := scan(s)
	if err != nil {
		return decimal.Decimal{}, err
	}
	return build(s, point, false), nil
}

// ParseAmount reads a number as ParseDecimal does, as units of 10^-scale. More
// places than scale are refused, trailing zeros not counted. The error wraps
// ErrSyntax, ErrPrecision or ErrOverflow, looked for in this order. Fiat
// amounts are read with scale 2.
func ParseAmount(s string, scale uint8) (Amount, error) {
	point, err := scan(s)
	if err != nil {
		return 0, err
	}
	fraction := strings.TrimRight(s[min(point+1, len(s)):], "0")
	if len(fraction) > int(scale) {
		return 0, fmt.Errorf("%w: at most %d are allowed", ErrPrecision, scale)
	}
	units, fits := join(s[:point], fraction)
	if !fits {
		return 0, ErrOverflow
	}
	if units == 0 {
		return 0, nil
	}
	missing := int(scale) - len(fraction)
	if missing >= len(pow10) || uint64(units) > math.MaxInt64/pow10[missing] {
		return 0, ErrOverflow
	}
	return Amount(units) * Amount(pow10[missing]), nil
}

// ParsePlain is the inverse of PlainString. It is for text that this library
// wrote itself: a sign is allowed and the length is not bounded, so it must
// never see what somebody typed. The error wraps ErrSyntax.
func ParsePlain(s string) (decimal.Decimal, error) {
	s, negative := strings.CutPrefix(s, "-")
	point, ok := shape(s)
	if !ok {
		return decimal.Decimal{}, ErrSyntax
	}
	return build(s, point, negative), nil
}

// scan checks form and length and finds the point: len(s) where there is none.
func scan(s string) (point int, err error) {
	if len(s) > maxLength {
		return 0, fmt.Errorf("%w: at most %d digits are allowed", ErrSyntax, maxDigits)
	}
	point, ok := shape(s)
	switch places := len(s) - point - 1; {
	case !ok:
		return 0, fmt.Errorf("%w: digits with at most one point are expected, no sign, exponent or space", ErrSyntax)
	case point == len(s) && point > maxDigits:
		return 0, fmt.Errorf("%w: at most %d digits are allowed", ErrSyntax, maxDigits)
	case places > maxPlaces:
		return 0, fmt.Errorf("%w: at most %d decimal places are allowed", ErrSyntax, maxPlaces)
	}
	return point, nil
}

// shape says whether s is digits with at most one point inside.
func shape(s string) (point int, ok bool) {
	point = len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.' && point == len(s):
			point = i
		case c < '0' || c > '9':
			return 0, false
		}
	}
	return point, point > 0 && point != len(s)-1
}

// build makes the number out of text that shape has found right.
func build(s string, point int, negative bool) decimal.Decimal {
	fraction := s[min(point+1, len(s)):]
	exp := -int32(len(fraction))
	if v, fits := join(s[:point], fraction); fits {
		if negative {
			v = -v
		}
		return decimal.New(v, exp)
	}
	c, _ := new(big.Int).SetString(s[:point]+fraction, 10)
	if negative {
		c.Neg(c)
	}
	return decimal.NewFromBigInt(c, exp)
}

// join is the number that the digits of both parts make, where an int64 holds it.
func join(whole, fraction string) (v int64, fits bool) {
	for _, part := range [...]string{whole, fraction} {
		for i := range len(part) {
			d := int64(part[i] - '0')
			if v > (math.MaxInt64-d)/10 {
				return 0, false
			}
			v = v*10 + d
		}
	}
	return v, true
}
