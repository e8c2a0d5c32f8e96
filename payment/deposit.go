package payment

import (
	"errors"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// take brings the deposit that a fact is about up to date: what the chain says,
// what role that gives it, and the reversal where booked money is gone. The
// entry is nil where an older fact arrives after a newer one; received says
// that the deposit counts for the payment from now on.
func (x *decision) take(f fact) (e *entry, received bool, err error) {
	s := &f.sighting
	id := DepositID(s)
	for _, o := range x.deposits {
		if o.d.ID == id {
			e = o
		}
	}
	if e == nil {
		e = &entry{d: x.fresh(id, s)}
		x.deposits = append(x.deposits, e)
	} else if f.version < e.d.FactVersion || s.Generation < e.d.Generation {
		return nil, false, nil
	} else if e.d.Role == RoleUnlisted && s.Currency != "" {
		made := e.d.CreatedAt
		e.d = x.fresh(id, s) // its currency is listed by now: it is judged as if it had just come
		e.d.CreatedAt = made
	} else if s.Currency == "" && e.d.Currency != "" {
		return nil, false, errUnlisted
	}
	e.given = s.Required()
	wasLive := e.d.Role != "" && e.d.live()
	if s.Generation > e.d.Generation || s.State == incoming.Gone {
		if err := x.takeBack(e); err != nil {
			return nil, false, err
		}
		wasLive = wasLive && s.Generation == e.d.Generation
		e.d.Generation, e.d.Proven = s.Generation, false
		e.d.unscreen()
	}
	proven := e.d.Proven
	x.chainSays(&e.d, f)
	was := e.d.Role
	x.executed(e, s)
	x.assign(e, s, wasLive)
	x.screen(e, f, proven)
	if e.d.Role == RoleQuarantined && was != RoleQuarantined {
		x.alert(AlertQuarantined, e, "a transfer of an impossible amount was seen and is not counted")
	}
	if !e.d.Role.counted() {
		if !e.d.HeldAs.counted() { // else it belongs to its payment still
			e.d.Payment = ""
		}
		return e, false, nil
	}
	e.d.Payment = x.p.ID
	return e, !was.counted(), x.value(&e.d)
}

// errUnlisted says that a deposit was read again by a process that does not list its
// currency. One that does describes it again.
var errUnlisted = errors.New("payment: the deposit's currency is not listed by the process that read it: one that lists it goes on")

func (x *decision) fresh(id string, s *incoming.Sighting) Deposit {
	d := Deposit{
		ID: id, Network: s.Network, Address: s.Address, Tx: s.Tx, Ordinal: s.Ordinal, Generation: s.Generation,
		From: s.From, Memo: s.Memo, Currency: s.Currency, Contract: s.Contract,
		Exact: s.Exact, Amount: s.Amount, FirstSeen: s.FirstSeen, CreatedAt: x.now,
	}
	for _, o := range x.deposits {
		if s.InheritedFrom != "" && o.d.Tx == s.InheritedFrom && o.d.Currency == d.Currency {
			d.Rate = o.d.Rate
			if o.d.FirstSeen.Before(d.FirstSeen) {
				d.FirstSeen = o.d.FirstSeen
			}
		}
	}
	return d
}

// chainSays copies what the chain says now. Final without a proof is not final.
func (x *decision) chainSays(d *Deposit, f fact) {
	s := &f.sighting
	d.State, d.Height, d.BlockTime = s.State, s.Height, s.BlockTime
	d.FactVersion, d.Confirmations = f.version, s.Confirmations(f.head)
	d.Forward, d.ForwardTx, d.ForwardFee = s.Forward, s.ForwardTx, s.ForwardFee
	if s.State == incoming.Final {
		d.Proven = d.Proven || f.final
		if !d.Proven {
			d.State = incoming.Included
		}
	}
}

// executed corrects what a deposit brings that is not booked. A transaction may do
// something else in its block, or in a block of another branch, than was seen of it
// before. Where that does not count, the deposit loses its role.
func (x *decision) executed(e *entry, s *incoming.Sighting) {
	d := &e.d
	c := x.currency(s.Currency)
	if c == nil || d.Role == "" || d.Booking != Unbooked && d.Booking != Reversed {
		return
	}
	same := d.Exact.Equal(s.Exact) && d.Amount == s.Amount && d.Currency == s.Currency
	d.Exact, d.Amount, d.Currency, d.Contract = s.Exact, s.Amount, s.Currency, s.Contract
	if !d.Role.counted() && d.Role != RoleSmall || same && !s.Unproven {
		return
	}
	if role := x.uncounted(d, s, c); role != "" {
		d.Role = role
	}
}

// assign gives the deposit its role. A role stays, but for two cases: what
// returns too late to be in time any more, and what turns out to have been in
// time by its block.
func (x *decision) assign(e *entry, s *incoming.Sighting, wasLive bool) {
	d := &e.d
	inBlock := d.State == incoming.Included || d.State == incoming.Final
	gaveUp := d.GivenUp
	if gaveUp && inBlock {
		d.GivenUp = false
	}
	if x.at != nil && d.Role != "" && !d.live() {
		return // there is no payment that could lose it
	}
	switch {
	case d.Role == "":
		d.Role = x.first(d, s)
	case d.Role == RoleInTime && !wasLive && d.live() && !x.eligible(d, gaveUp):
		if d.Booking == Reversed {
			d.Role = RoleAgain
		} else {
			d.Role = x.lateRole()
		}
	case (d.Role == RoleUnmatched || d.Role == RoleStray) && d.Booking == Unbooked && x.turnsOut(d, s):
		d.Role = RoleInTime
	}
	if x.at != nil && (d.Role == RoleInTime || d.Role == RoleSmall) && d.undecided() {
		d.Role = RoleInTime
		if x.at.small(d) {
			d.Role = RoleSmall
		}
	}
}

// undecided reports whether no person has dealt with the deposit's money.
func (d *Deposit) undecided() bool {
	return d.Booking == Unbooked || d.Booking == InSuspense || d.Booking == Reversed
}

// turnsOut says that a deposit which was first seen late, or came back late while the node
// had no new blocks, is in a block that is dated in time.
func (x *decision) turnsOut(d *Deposit, s *incoming.Sighting) bool {
	dated := !d.BlockTime.IsZero() && d.BlockTime.Before(x.p.ExpiresAt)
	return x.p.ID != "" && !s.Unproven && d.Currency == x.p.Currency &&
		(dated || !d.FirstSeen.Before(x.p.ExpiresAt)) && x.eligible(d, false)
}

// first is the role of a deposit that was never seen before.
func (x *decision) first(d *Deposit, s *incoming.Sighting) Role {
	c := x.currency(s.Currency)
	if c == nil {
		return RoleUnlisted
	}
	role := x.uncounted(d, s, c)
	switch {
	case role != "":
		return role
	case x.tooMany():
		return RoleExcess
	case x.eligible(d, false):
		return RoleInTime
	}
	return x.lateRole()
}

// uncounted is the role of a deposit that does not count because of what it brings. It is
// "" where that may count.
func (x *decision) uncounted(d *Deposit, s *incoming.Sighting, c *chain.Currency) Role {
	switch {
	case s.Amount < 0 || s.Amount > ledger.MaxCredit:
		return RoleQuarantined
	case s.Amount == 0 || s.Exact.LessThan(c.Dust):
		return RoleDust
	case x.p.ID == "":
		return RoleStray
	case s.Unproven:
		return RoleUnproven
	case s.Currency != x.p.Currency:
		return RoleWrongToken
	case x.tooMuch(d):
		return RoleExcess
	}
	return ""
}

// tooMany reports whether a payment has as many deposits that count as may.
func (x *decision) tooMany() bool {
	counted := 0
	for _, e := range x.deposits {
		if e.d.Role.counted() {
			counted++
		}
	}
	return x.maxDeposits > 0 && counted >= x.maxDeposits
}

// tooMuch reports whether one deposit is worth more than may be credited without a person.
func (x *decision) tooMuch(d *Deposit) bool {
	value := d.Exact.Mul(x.p.USDRate)
	return x.maxUSD.Sign() > 0 && value.GreaterThan(x.maxUSD)
}

func (x *decision) lateRole() Role {
	if x.creditLate && !x.p.Cancelled {
		return RoleLate
	}
	return RoleUnmatched
}

// eligible says whether a deposit is in time: first seen, or in a block dated,
// before expiry_time. Where the payment is over already, or the deposit was
// given up, it must also have come (back) within 24 h of the window's end.
func (x *decision) eligible(d *Deposit, gaveUp bool) bool {
	if x.p.AddressID != "" {
		return x.at == nil || x.creditLate || x.at.inUse(earlier(d.FirstSeen, d.BlockTime))
	}
	inBlock := !d.BlockTime.IsZero()
	inTime := d.FirstSeen.Before(x.p.ExpiresAt) || inBlock && d.BlockTime.Before(x.p.ExpiresAt)
	if x.p.Cancelled || !inTime {
		return false
	}
	if !gaveUp && x.p.Status != Expired && x.p.Status != Failed {
		return true
	}
	return earlier(x.now, d.BlockTime).Before(x.p.ExpiresAt.Add(holdFor))
}

// value finds the rate that values the deposit and what it counts for. Late
// money is worth what it was when seen, so it cannot be judged without a price;
// floating money can wait for one until it is credited.
func (x *decision) value(d *Deposit) error {
	if d.Rate.Sign() <= 0 {
		if d.Role == RoleInTime && x.p.FixedRate {
			d.Rate = x.p.Rate
		} else {
			d.Rate = x.price
		}
	}
	d.Weight = d.Amount
	if d.Role != RoleLate {
		return nil
	}
	if d.Rate.Sign() <= 0 {
		return errNoPrice
	}
	scale := uint8(x.p.Scale)
	w, err := ledger.Quo(d.Amount.Decimal(scale).Mul(d.Rate), x.p.Rate, scale, ledger.Down)
	if err != nil {
		w = ledger.MaxCredit
	}
	d.Weight = w
	return nil
}

// needsPrice says whether deciding on a fact or on time needs the price of now.
func (x *decision) needsPrice(f *fact) bool {
	if x.p.ID == "" {
		return false
	}
	for _, e := range x.deposits {
		if e.d.Role.counted() && e.d.Rate.Sign() <= 0 {
			return true
		}
	}
	if f == nil || f.sighting.Currency != x.p.Currency {
		return false
	}
	known := false
	for _, e := range x.deposits {
		known = known || e.d.ID == DepositID(&f.sighting) && e.d.Rate.Sign() > 0
	}
	begins := x.at != nil && f.sighting.State != incoming.Gone // a payment, which has no rate yet
	return (!known || begins) && (!x.p.FixedRate || x.creditLate)
}

// earlier is the earlier of two times, of which the second may be unknown.
func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
