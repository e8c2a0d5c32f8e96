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
	Earlier   Kind = "earlier"   // it was so before this version looked for the first time

	Missing      Kind = "missing"       // the chain has less than the books
	Surplus      Kind = "surplus"       // the chain has more than the books
	TokenChanged Kind = "token_changed" // a token's amount has changed and nothing was sent
)

// Named reports whether the kind is a difference that nothing explains.
func (k Kind) Named() bool { return k == Missing || k == Surplus || k == TokenChanged }

// look is all that one judgement takes. Amounts are exact, in whole coins.
type look struct {
	currency  *chain.Currency
	held      decimal.Decimal   // as the chain tells
	books     decimal.Decimal   // as the stored facts tell
	explained decimal.Decimal   // what earlier looks have explained of the difference
	late      decimal.Decimal   // of what is explained, what was found and booked since
	in, out   decimal.Decimal   // the most that may have come, or left, at about the reading
	fresh     []decimal.Decimal // of what the books count as sent, what may have been sent behind the reading
	sent      int               // transactions of ours that the books count
	unwatched bool              // the watch had ended, or has begun again since the last look
}

// verdict is what a look came to. amount is what the chain holds beyond the books and what was
// explained, and beyond what is in flight; below 0 where it holds less.
type verdict struct {
	kind   Kind
	amount decimal.Decimal
	moving bool // something is in flight: amount is the least that the difference can be
}

// judge explains the difference, or names it. Nothing is explained while coins move.
func judge(l look) verdict {
	d := l.held.Sub(l.books).Sub(l.explained)
	moving := !l.in.IsZero() || !l.out.IsZero()
	switch {
	case d.IsZero():
		return verdict{Agrees, d, moving}
	case l.flight(d, l.fresh):
		return verdict{InFlight, decimal.Zero, true}
	case d.IsPositive():
		d = d.Sub(l.in)
	default:
		d = d.Add(l.out)
	}
	kind := l.kind(d)
	if moving && !kind.Named() {
		kind = InFlight
	}
	return verdict{kind, d, moving}
}

// flight reports whether a difference is what is on its way: within what may have come or left,
// once some of the fresh are taken as not sent yet.
func (l *look) flight(d decimal.Decimal, fresh []decimal.Decimal) bool {
	switch {
	case d.LessThan(l.out.Neg()):
		return false
	case !d.GreaterThan(l.in), len(fresh) < len(l.fresh) && l.kind(d.Sub(l.in)) == Rounding:
		return true
	case len(fresh) == 0:
		return false
	case len(fresh) > mostFresh: // too many to try each: all of them together are the bound
		return !d.GreaterThan(decimal.Sum(l.in, fresh...))
	}
	return l.flight(d.Sub(fresh[0]), fresh[1:]) || l.flight(d, fresh[1:])
}

// mostFresh bounds how many fresh transactions are tried in all combinations.
const mostFresh = 12

func (l *look) kind(rest decimal.Decimal) Kind {
	unit := decimal.New(1, -int32(l.currency.Scale)) //nolint:gosec // at most 18
	finer := l.currency.Decimals > l.currency.Scale
	switch {
	case rest.IsPositive() && finer && rest.LessThan(unit.Mul(decimal.NewFromInt(int64(l.sent)+1))):
		return Rounding
	case rest.IsNegative() && finer && rest.Neg().LessThan(unit):
		return Rounding
	case rest.IsPositive() && l.unwatched:
		return Unwatched
	case rest.IsPositive() && l.currency.Native() && rest.LessThan(l.currency.Dust):
		return Dust
	case rest.IsPositive():
		return Surplus
	case !rest.Neg().GreaterThan(decimal.Min(l.late, l.explained)):
		return Late
	}
	return Missing
}
