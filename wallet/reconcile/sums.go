package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// foldAt is how many facts beyond its base an address may have before they are summed up.
const foldAt = 200

// sum is what the facts of an address say of one currency at its reading.
func (a *account) sum(c *chain.Currency, gas bool, outputs bool) look {
	spot, r := a.look.Spots[c.Code], &a.look.Reading
	l := look{currency: c, held: r.Held[c.Code], books: spot.Base, explained: spot.Explained, sent: spot.Sent}
	l.late = a.late(c.Code, &spot)
	if outputs {
		a.unspent(&l)
		return l
	}
	for _, f := range a.in {
		switch {
		case f.currency != c.Code:
		case f.height <= r.From:
			l.books = l.books.Add(f.amount)
		case f.height <= r.To:
			l.in = l.in.Add(f.amount)
		}
	}
	for i := range a.out {
		f := &a.out[i]
		same := f.currency == c.Code
		if !same && !gas {
			continue
		}
		least, most := decimal.Zero, decimal.Zero
		if gas {
			least, most = f.fee, decimal.Max(f.fee, f.mayCost)
		}
		if same {
			least, most = least.Add(f.amount), most.Add(f.amount)
		}
		switch {
		case f.ended && f.updated.Before(r.holds()):
			l.books = l.books.Sub(least)
			l.sent++
			if f.updated.After(r.holds().Add(settledFor-apart)) && !least.IsZero() {
				l.fresh = append(l.fresh, least)
			}
		case f.ended:
			l.out = l.out.Add(least)
		case same && f.all:
			l.out = everything
		default:
			l.out = l.out.Add(most)
		}
	}
	return l
}

// counted sums up the transfers of a currency that came up to a block, and of which keep says so.
func (a *account) counted(currency string, height int64, keep func(*inflow) bool) (n int, sum decimal.Decimal) {
	for _, list := range [][]inflow{a.in, a.came} {
		for i := range list {
			if f := &list[i]; f.currency == currency && f.height <= height && keep(f) {
				n, sum = n+1, sum.Add(f.amount)
			}
		}
	}
	return n, sum
}

func all(*inflow) bool { return true }

// late is what was found and booked since a difference was explained, of the blocks that it explains.
// That is known where all transfers to the address were read.
func (a *account) late(currency string, s *Spot) decimal.Decimal {
	if a.look.Height > 0 || !s.Explained.IsPositive() {
		return decimal.Zero
	}
	n, sum := a.counted(currency, s.Height, all)
	had, came := s.Transfers, s.Came
	if !s.Counted {
		had, came = a.counted(currency, s.Height, func(f *inflow) bool { return !f.seen.After(s.At) })
	}
	if n <= had {
		return decimal.Zero
	}
	return decimal.Max(sum.Sub(came), decimal.Zero)
}

// explain adds an amount to what is explained of a currency.
func (a *account) explain(currency string, s *Spot, amount decimal.Decimal, why Kind) {
	s.Explained, s.Why, s.Height, s.At = s.Explained.Add(amount), why, a.look.Reading.From, a.look.Reading.At
	s.Counted = a.look.Height == 0
	s.Transfers, s.Came = a.counted(currency, s.Height, all)
}

// holds is up to when a transaction must have ended for a reading to hold all of it.
func (r *Reading) holds() time.Time {
	if !r.Head.IsZero() && r.Head.Before(r.At.Add(-apart)) {
		return r.Head
	}
	return r.At.Add(-settledFor)
}

// everything is more than any address holds.
var everything = decimal.New(1, 30)

func (a *account) unspent(l *look) {
	r := &a.look.Reading
	for _, c := range a.coins {
		switch {
		case c.height == never && !c.disputed, c.height > r.From && c.height <= r.To: // in a block when the balance was read, or not
			l.in = l.in.Add(c.amount)
			delete(a.moving, c.outpoint)
			continue
		case c.height > r.To:
			continue
		}
		l.books = l.books.Add(c.amount)
		if _, moves := a.moving[c.outpoint]; moves || c.reserved {
			l.out = l.out.Add(c.amount)
			delete(a.moving, c.outpoint)
		}
	}
	for _, amount := range a.moving { // spent, and maybe not yet when the balance was read
		l.in = l.in.Add(amount)
	}
}

// fold moves the base of an address that has done much up to what can hardly change any more.
func (a *account) fold(currencies []*chain.Currency, gas string, depth int64) {
	height, cut := a.look.Reading.From-4*depth, a.look.Reading.holds().Add(-time.Hour)
	if cut.Before(a.look.Cut) { // the base has what ended by then
		cut = a.look.Cut
	}
	if len(a.in)+len(a.out)+len(a.came) < foldAt || height <= a.look.Height {
		return
	}
	for _, c := range currencies {
		spot := a.look.Spots[c.Code]
		for _, o := range a.coins {
			if o.bare && o.height <= height && c.Code == gas {
				spot.Base = spot.Base.Add(o.amount)
			}
		}
		for _, f := range a.in {
			if f.currency == c.Code && f.height <= height {
				spot.Base = spot.Base.Add(f.amount)
			}
		}
		for i := range a.out {
			f := &a.out[i]
			if !f.ended || f.again || f.updated.After(cut) {
				continue
			}
			if f.currency == c.Code {
				spot.Base = spot.Base.Sub(f.amount)
			}
			if c.Code == gas {
				spot.Base = spot.Base.Sub(f.fee)
			}
			if f.currency == c.Code || c.Code == gas {
				spot.Sent++
			}
		}
		a.put(c.Code, spot)
	}
	a.look.Height, a.look.Cut = height, cut
}

func (a *account) put(currency string, s Spot) {
	if s.Base.IsZero() && s.Explained.IsZero() && s.Suspect == "" && s.Why == "" && !s.Seen && s.Sent == 0 && s.Whole.IsZero() {
		delete(a.look.Spots, currency)
		return
	}
	if a.look.Spots == nil {
		a.look.Spots = map[string]Spot{}
	}
	a.look.Spots[currency] = s
}

// renew forgets the base once in a week, unless the address pays, or gives payouts its change: what
// was written into the store below it since would never be seen.
func (a *account) renew(now time.Time) {
	const week = 7 * 24 * time.Hour
	spread := time.Duration(a.owner.Seq%97) * week / 97 // so that not all are summed up on one day
	turn := func(t time.Time) int64 { return t.Add(spread).UnixNano() / int64(week) }
	last := a.look.Looked
	for _, s := range a.look.Spots {
		if s.Whole.After(last) {
			last = s.Whole
		}
	}
	if a.look.Height > 0 && !a.pays() && a.owner.Use != incoming.UseChange && turn(last) != turn(now) {
		a.unfold()
	}
}

// unfold forgets the base: the next look sums up from the beginning.
func (a *account) unfold() {
	a.look.Height, a.look.Cut = 0, time.Time{}
	for code, s := range a.look.Spots {
		s.Base, s.Sent = decimal.Zero, 0
		a.look.Spots[code] = s
	}
}
