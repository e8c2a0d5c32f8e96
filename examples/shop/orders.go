package main

import (
	"context"
	"crypto/rand"
	"errors"
	"regexp"
	"time"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// The states of an order.
const (
	open_    = "open"     // it waits for its payment
	paid     = "paid"     // deliver it
	closed   = "closed"   // the payment has ended without its money
	refunded = "refunded" // all of it was given back
)

// order is a row of the table.
type order struct {
	Number   string
	Buyer    string // digest of the buyer's cookie
	Goods    string
	Cents    int64
	Currency string
	Payment  string
	State    string
	Placed   moment
	Paid     moment // 0 = never
}

// Total is the price for people.
func (o order) Total() string { return dollars(o.Cents) }

// When is when it was paid, for people.
func (o order) When() string { return o.Paid.String() }

// numbers are what orders are called, such as K7Q2M4XA: the form of an order has one before it
// is sent, so that sending it twice is one order.
var numbers = regexp.MustCompile(`^[A-Z2-7]{10}$`)

func newNumber() string { return rand.Text()[:10] }

// errCoin says in which coin an order cannot be paid, in words for the customer.
type errCoin struct{ why string }

func (e errCoin) Error() string { return e.why }

// place takes an order: the order's row and its payment are there together, or not at all. Sent
// again it finds the order that is there.
func (s *shop) place(ctx context.Context, o order) (order, error) {
	if old, found, err := s.orderOf(ctx, o.Number, o.Buyer); found || err != nil {
		return old, err
	}
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return o, err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	p, err := s.app.In(s.store.WithTx(tx.Tx)).Payments.Create(ctx, tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: o.Total(), Currency: o.Currency}, OrderID: o.Number, Description: o.Goods,
	})
	var invalid *payment.InvalidError
	var unknown *payment.CurrencyError
	if errors.As(err, &invalid) || errors.As(err, &unknown) {
		return o, errCoin{"This order cannot be paid in that coin: " + err.Error()}
	}
	if err != nil {
		return o, err
	}
	o.Payment, o.State, o.Placed = p.ID, open_, moment(time.Now().Unix())
	_, err = tx.ExecContext(ctx, tx.Rebind("INSERT INTO orders (number, buyer, goods, cents, currency, payment, state, placed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"),
		o.Number, o.Buyer, o.Goods, o.Cents, o.Currency, o.Payment, o.State, o.Placed)
	if err != nil {
		return o, err
	}
	return o, tx.Commit()
}

// hear is the consumer of the library's events. What it writes commits with its place in the
// stream, so each event counts exactly once, whatever crashes.
func (s *shop) hear(ctx context.Context, tx stream.Tx, e stream.Event) error {
	set := func(query string, args ...any) error {
		_, err := tx.SQL.ExecContext(ctx, s.db.Rebind(query), args...)
		return err
	}
	switch b := e.Body.(type) {
	case payment.Changed:
		switch b.To {
		case payment.Confirmed:
			return set("UPDATE orders SET state = ?, paid = ? WHERE payment = ? AND paid = 0", paid, e.At.Unix(), b.PaymentID)
		case payment.Expired, payment.Failed:
			return set("UPDATE orders SET state = ? WHERE payment = ? AND state = ?", closed, b.PaymentID, open_)
		}
	case refund.Changed:
		if b.To != refund.Completed || b.PaymentID == "" {
			return nil
		}
		left, err := s.app.Refunds.Left(ctx, tenant, b.PaymentID)
		if err != nil || left > 0 { // a part was given back: the rest is still to be delivered
			return err
		}
		return set("UPDATE orders SET state = ? WHERE payment = ?", refunded, b.PaymentID)
	}
	return nil
}

// orderOf finds an order of a buyer. Others' orders are not there for him.
func (s *shop) orderOf(ctx context.Context, number, buyer string) (o order, found bool, err error) {
	found, err = s.get(ctx, &o, "SELECT * FROM orders WHERE number = ? AND buyer = ?", number, buyer)
	return o, found, err
}

// orders lists the newest for the desk.
func (s *shop) orders(ctx context.Context) (all []order, err error) {
	return all, s.db.SelectContext(ctx, &all, "SELECT * FROM orders ORDER BY placed DESC, number LIMIT 100")
}
