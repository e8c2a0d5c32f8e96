package payment

import (
	"cmp"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// order keeps deposits in the order of their first sightings.
func (x *decision) order() {
	slices.SortStableFunc(x.deposits, func(a, b *entry) int {
		return cmp.Or(a.d.FirstSeen.Compare(b.d.FirstSeen), cmp.Compare(a.d.ID, b.d.ID))
	})
}

// sums brings up to date what the payment shows of its deposits.
func (x *decision) sums() {
	x.p.Live, x.p.Tx = 0, ""
	for _, e := range x.deposits {
		if e.d.Role.counted() && e.d.live() {
			x.p.Live, x.p.Tx = addUp(x.p.Live, e.d.Amount), e.d.Tx
		}
	}
	x.follow()
	x.p.Confirmations = x.confirmations()
	live, _, n := x.weights()
	switch {
	case n == 0 && !slices.Contains(paid, x.p.Status):
		x.p.Type = TypeNone
	case n == 0:
	case x.neededLate():
		x.p.Type = TypeLate
	case live > x.p.Due:
		x.p.Type = TypeOver
	case x.enough(live):
		x.p.Type = TypeFull
	case !slices.Contains(paid, x.p.Status):
		x.p.Type = TypePartial
	}
}

// confirmations is the lowest among the deposits that are needed to make up
// what is due, taking the deepest first.
func (x *decision) confirmations() int64 {
	var live []*entry
	for _, e := range x.deposits {
		if e.d.Role.counted() && e.d.live() {
			live = append(live, e)
		}
	}
	slices.SortStableFunc(live, func(a, b *entry) int { return cmp.Compare(b.d.Confirmations, a.d.Confirmations) })
	var sum ledger.Amount
	var lowest int64
	for _, e := range live {
		lowest, sum = e.d.Confirmations, addUp(sum, e.d.Weight)
		if x.enough(sum) {
			break
		}
	}
	return lowest
}

// due is when time alone may next change the payment; zero: never.
func (x *decision) due() time.Time {
	switch x.p.Status {
	case Waiting, PartiallyPaid, Confirming:
		if !x.p.Closed {
			return x.p.ExpiresAt
		}
		if slices.ContainsFunc(x.deposits, func(e *entry) bool {
			return e.d.Role.counted() && e.d.live() && e.d.State == incoming.Seen
		}) {
			return x.p.ExpiresAt.Add(holdFor)
		}
	case Confirmed, Sending:
		return x.p.ConfirmedAt.Add(forwardFor)
	default:
		if x.watch >= 0 && x.p.WatchedUntil.IsZero() && x.p.AddressID == "" {
			return x.p.ExpiresAt.Add(holdFor)
		}
	}
	return time.Time{}
}
