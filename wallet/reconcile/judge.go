package reconcile

import (
	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Kind says what a look at an address came to in one currency.
type Kind string

// The kinds. The last three halt payouts; the others are explanations.
const (
	Agrees    Kind = "agrees"
	InFlight  Kind = "in_flight" // what is on its way may be the difference: looked at again
	Rounding  Kind = "rounding"  // less than one unit of the books for each transaction of ours
	Dust      Kind = "dust"      // coins of the network's own below the dust limit, which are not booked
	Unwatched Kind = "unwatched" // it came while the address was not watched
	Accepted  Kind = "accepted"  // an operator lifted the halt, and so explained it
	Late      Kind = "late"      // a deposit that was found later than its coins

	Missing      Kind = "missing"       // the chain has less than the books
	Surplus      Kind = "surplus"       // the chain has more than the books
	TokenChanged Kind = "token_changed" // a token's amount has changed and nothing was sent
)

// Named reports whether the kind is a difference that nothing explains.
func (k Kind) Named() bool { return k == Missing || k == Surplus || k == TokenChanged }

// look is all that one judgement takes. Amounts are exact, in whole coins.
type look struct {
	currency  *chain.Currency
	held      decimal.Decimal // as the chain tells
	books     decimal.Decimal // as the stored facts tell
	explained decimal.Decimal // what earlier looks have explained of the difference
	late      decimal.Decimal // of what is explained, what was found and booked since
	in, out   decimal.Decimal // the most that may have come, or left, at about the reading
	sent      int             // transactions of ours that the books count
	unwatched bool            // the watch had ended, or has begun again since the last look
}

// verdict is what a look came to. amount is what the chain holds beyond the books and what was
// explained; below 0 where it holds less.
type verdict struct {
	kind   Kind
	amount decimal.Decimal
}

// judge explains the difference, or names it.
func judge(l look) verdict {
	d := l.held.Sub(l.books).Sub(l.explained)
	if d.IsZero() {
		return verdict{Agrees, d}
	}
	if !d.LessThan(l.out.Neg()) && !d.GreaterThan(l.in) {
		return verdict{InFlight, d}
	}
	unit := decimal.New(1, -int32(l.currency.Scale)) //nolint:gosec // at most 18
	rest := d
	if d.IsPositive() {
		rest = d.Sub(l.in)
	} else {
		rest = d.Add(l.out)
	}
	finer := l.currency.Decimals > l.currency.Scale
	switch {
	case rest.IsPositive() && finer && rest.LessThan(unit.Mul(decimal.NewFromInt(int64(l.sent)+1))):
		return verdict{Rounding, d}
	case rest.IsNegative() && finer && rest.Neg().LessThan(unit):
		return verdict{Rounding, d}
	case rest.IsPositive() && l.unwatched:
		return verdict{Unwatched, d}
	case rest.IsPositive() && l.currency.Native() && rest.LessThan(l.currency.Dust):
		return verdict{Dust, d}
	case rest.IsPositive():
		return verdict{Surplus, d}
	case !rest.Neg().GreaterThan(decimal.Min(l.late, l.explained)):
		return verdict{Late, d}
	}
	return verdict{Missing, d}
}
