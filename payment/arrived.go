package payment

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// How far a deposit has come, as merchants see it.
const (
	ShownSeen  = "seen"  // in a mempool, or in a block without the confirmations that it needs
	ShownFinal = "final" // it has them
	ShownGone  = "gone"  // in no block and no mempool any more
)

// What a deposit counts for, as merchants see it.
const (
	ShownCounted   = "counted"    // for its payment
	ShownLate      = "late"       // for none: it came after the window, or after a cancellation
	ShownUnmatched = "unmatched"  // for none: another asset, not provable, too much, or no payment had the address
	ShownBelowDust = "below_dust" // for none: too little to be booked
)

// shownRoles lists the roles of which merchants are shown deposits. What is left out is a
// token that is not listed, or an amount that cannot be true.
var shownRoles = []Role{RoleInTime, RoleLate, RoleAgain, RoleUnmatched, RoleStray, RoleWrongToken, RoleUnproven, RoleExcess, RoleHeld, RoleRefused, RoleSmall, RoleDust}

// ShownStatus is how far the deposit has come: one of ShownSeen, ShownFinal and ShownGone.
func (d *Deposit) ShownStatus() string {
	switch {
	case !d.live():
		return ShownGone
	case d.Proven:
		return ShownFinal
	}
	return ShownSeen
}

// ShownRole is what the deposit counts for: ShownCounted, ShownLate, ShownUnmatched or
// ShownBelowDust.
func (d *Deposit) ShownRole() string {
	switch {
	case d.Role.counted():
		return ShownCounted
	case d.Role == RoleUnmatched:
		return ShownLate
	case d.Role == RoleDust:
		return ShownBelowDust
	}
	return ShownUnmatched
}

// shownAmount writes what a deposit brought as ledgers count it, with 8 places, rounded
// down. c may be nil.
func shownAmount(d *Deposit, c *chain.Currency) string {
	exact := d.Exact
	if c != nil {
		exact = exact.RoundDown(int32(c.Scale))
	}
	return ledger.FixedString(exact, cryptoPlaces)
}

// ShownAmount is what a deposit brought as ledgers count it, in whole coins with 8 places.
func (s *Service) ShownAmount(d *Deposit) string { return shownAmount(d, s.currency(d.Currency)) }

// Arrival is a deposit at a payment's address.
type Arrival struct {
	Deposit        // Confirmations are those of now
	Required int64 // confirmations that make it final; 0 for a currency that is not configured any more
}

// arrived selects the deposits that are a payment's business: all at its address, where it
// has that to itself, else those that count for it.
func (p *Payment) arrived() []storage.Cond {
	if p.AddressID != "" {
		return []storage.Cond{{Column: "payment", Op: storage.Eq, Value: p.ID}}
	}
	return []storage.Cond{{Column: "network", Op: storage.Eq, Value: p.Network}, {Column: "address", Op: storage.Eq, Value: p.Address}}
}

// Arrivals lists what came to the address of a payment, whether it counts or not, oldest
// first (at a permanent address what counts for the payment), and how many that are in all. limit is from 1 to 100, 0 = 20. Errors:
// *InvalidError, *NotFoundError.
func (s *Service) Arrivals(ctx context.Context, tenant, id string, limit, offset int) (page []Arrival, total int64, err error) {
	limit = orElse(limit, 20)
	bad := &InvalidError{}
	if bad.AddPage(limit, offset); bad.Err() != nil {
		return nil, 0, bad.Err()
	}
	p, _, ok, err := Payments.One(ctx, s.c.Store, storage.Tenant(tenant), id)
	if err == nil && !ok {
		err = &NotFoundError{Field: "transaction_id", ID: id}
	}
	if err != nil {
		return nil, 0, err
	}
	q := storage.Query{
		Table: Deposits.Table, Partition: storage.Tenant(tenant), Limit: limit, Offset: offset,
		Where: append(p.arrived(), storage.Cond{Column: "role", Op: storage.In, Value: shownRoles}),
		Order: []storage.Order{{Column: "created_at"}},
	}
	if total, err = s.c.Store.Count(ctx, q); err != nil || total == 0 {
		return nil, 0, err
	}
	cursor, err := s.c.Head(ctx, chain.Network(p.Network))
	if err != nil {
		return nil, 0, err
	}
	rows, err := s.c.Store.Find(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	page = make([]Arrival, len(rows))
	of := make([]*Deposit, len(rows))
	for i, r := range rows {
		page[i].Deposit = Deposits.Value(r)
		of[i] = &page[i].Deposit
	}
	given, err := s.given(ctx, of)
	if err != nil {
		return nil, 0, err
	}
	for i := range page {
		a := &page[i]
		at := incoming.Sighting{Height: a.Height, State: a.State}
		a.Confirmations = at.Confirmations(cursor.Head)
		a.Required = needed(s.currency(a.Currency), &p, a.Exact, given[a.ID])
	}
	return page, total, nil
}
