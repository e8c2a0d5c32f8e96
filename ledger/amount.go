package ledger

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"github.com/shopspring/decimal"
)

// Amount is an exact count of 10^-scale units of an asset. The scale belongs
// to the asset and never changes. All arithmetic is checked.
type Amount int64

// The range of an Amount. MaxCredit bounds a single deposit: more is quarantined.
const (
	MaxAmount Amount = math.MaxInt64
	MinAmount Amount = math.MinInt64
	MaxCredit Amount = 1 << 62
)

// Add returns a + b, or ErrOverflow.
func (a Amount) Add(b Amount) (Amount, error) {
	s := a + b
	if (s > a) != (b > 0) && b != 0 {
		return 0, ErrOverflow
	}
	return s, nil
}

// Sub returns a − b, or ErrOverflow.
func (a Amount) Sub(b Amount) (Amount, error) {
	s := a - b
	if (s < a) != (b > 0) && b != 0 {
		return 0, ErrOverflow
	}
	return s, nil
}

// Neg returns −a, or ErrOverflow for MinAmount.
func (a Amount) Neg() (Amount, error) { return Amount(0).Sub(a) }

// Sum adds all amounts, or returns ErrOverflow.
func Sum(amounts ...Amount) (Amount, error) {
	var s Amount
	var err error
	for _, a := range amounts {
		if s, err = s.Add(a); err != nil {
			return 0, err
		}
	}
	return s, nil
}

// Rounding says which way an inexact result goes. There is no default.
type Rounding uint8

// Down rounds towards zero, Up away from zero.
const (
	Down Rounding = iota + 1
	Up
)

// errRounding answers a Rounding that is neither Down nor Up: a bug in the caller.
var errRounding = errors.New("ledger: rounding must be Down or Up")

func (r Rounding) check() error {
	if r != Down && r != Up {
		return errRounding
	}
	return nil
}

// MulDiv returns a·num/den in 128 bits, rounded as said. a may be negative;
// num must be ≥ 0 and den > 0. The error is ErrOverflow, also for den = 0, or
// one that says that r is no Rounding.
func (a Amount) MulDiv(num, den uint64, r Rounding) (Amount, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	if den == 0 {
		return 0, fmt.Errorf("%w: division by zero", ErrOverflow)
	}
	abs, limit := a.abs(), uint64(math.MaxInt64)
	if a < 0 {
		limit++
	}
	hi, lo := bits.Mul64(abs, num)
	if hi >= den {
		return 0, ErrOverflow
	}
	q, rem := bits.Div64(hi, lo, den)
	if q > limit {
		return 0, ErrOverflow
	}
	if rem != 0 && r == Up {
		if q == limit {
			return 0, ErrOverflow
		}
		q++
	}
	if a < 0 {
		return -Amount(q), nil
	}
	return Amount(q), nil
}

// abs is |a|, right for MinAmount too.
func (a Amount) abs() uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// Decimal is the amount as a decimal number, given the asset's scale.
func (a Amount) Decimal(scale uint8) decimal.Decimal {
	return decimal.New(int64(a), -int32(scale))
}

// Format writes the amount with exactly the given number of decimal places,
// rounded towards zero where places < scale. It depends on no package-level
// setting of anybody.
func (a Amount) Format(scale, places uint8) string {
	var buf [48]byte
	return string(a.Append(buf[:0], scale, places))
}

// Append appends to dst what Format writes, and returns it.
func (a Amount) Append(dst []byte, scale, places uint8) []byte {
	abs, fraction := a.abs(), int(min(scale, places))
	if drop := int(scale) - fraction; drop < len(pow10) {
		abs /= pow10[drop]
	} else {
		abs = 0
	}
	if a < 0 && abs != 0 {
		dst = append(dst, '-')
	}
	whole, part := uint64(0), abs
	if fraction < len(pow10) {
		whole, part = abs/pow10[fraction], abs%pow10[fraction]
	}
	dst = strconv.AppendUint(dst, whole, 10)
	if places == 0 {
		return dst
	}
	dst = append(dst, '.')
	point := len(dst)
	for range places {
		dst = append(dst, '0')
	}
	for i := point + fraction - 1; part != 0; i-- {
		dst[i] += byte(part % 10)
		part /= 10
	}
	return dst
}

// pow10 holds every power of ten that a uint64 can.
var pow10 = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// satSub is a − b, or the nearest bound.
func satSub(a, b Amount) Amount {
	v, err := a.Sub(b)
	if err == nil {
		return v
	}
	if b > 0 {
		return MinAmount
	}
	return MaxAmount
}

// wide is a signed 128-bit sum of amounts.
type wide struct{ hi, lo uint64 }

func (w *wide) add(a Amount) {
	var c uint64
	w.lo, c = bits.Add64(w.lo, uint64(a), 0)
	w.hi, _ = bits.Add64(w.hi, uint64(int64(a)>>63), c)
}

func (w *wide) sub(a Amount) {
	var c uint64
	w.lo, c = bits.Sub64(w.lo, uint64(a), 0)
	w.hi, _ = bits.Sub64(w.hi, uint64(int64(a)>>63), c)
}

func wideOf(a Amount) wide { return wide{hi: uint64(int64(a) >> 63), lo: uint64(a)} }

func (w wide) zero() bool { return w.hi|w.lo == 0 }

// sign is −1, 0 or +1.
func (w wide) sign() int {
	switch {
	case int64(w.hi) < 0:
		return -1
	case w.zero():
		return 0
	}
	return 1
}

func (w wide) big() *big.Int {
	v := new(big.Int).Lsh(big.NewInt(int64(w.hi)), 64)
	return v.Add(v, new(big.Int).SetUint64(w.lo))
}
