package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// deskData is what the desk shows of one order.
type deskData struct {
	Order    order
	Payment  payment.Payment
	Received string // of what is due, in coins
	Due      string
	Arrivals []arrival
	Refunds  []given
	Left     bool // something can be given back
	Page     string
}

// arrival is a transfer that came to the order's address.
type arrival struct {
	ID, Amount, Tx, State string
	To                    *destination // where it can be sent back to: it is in suspense, and does not count
}

// destination is what is asked of who names an address.
type destination struct {
	ID      string // of the fields
	Label   string
	Network string
	Memo    bool   // the network needs one
	Suggest string // an address of a simulated customer
}

func (s *shop) destination(id, label, network string) *destination {
	d := &destination{ID: id, Label: label, Network: network}
	if info, err := s.world.registry.Network(network); err == nil {
		d.Network, d.Memo = info.Name, info.NeedsMemo
	}
	if s.world.simulated() {
		d.Suggest = s.world.wallet(network)
	}
	return d
}

// given is a refund.
type given struct {
	Amount string
	Status refund.Status
}

func (s *shop) showDesk(w http.ResponseWriter, r *http.Request) {
	all, err := s.orders(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.show(w, r, http.StatusOK, "desk", "Orders", "", all)
}

func (s *shop) showDeskOrder(w http.ResponseWriter, r *http.Request) {
	s.deskOrder(w, r, http.StatusOK, "")
}

func (s *shop) deskOrder(w http.ResponseWriter, r *http.Request, status int, told string) {
	var o order
	found, err := s.get(r.Context(), &o, "SELECT * FROM orders WHERE number = ?", r.PathValue("number"))
	if s.answered(w, r, found, err) {
		return
	}
	d := deskData{Order: o}
	if err := s.fill(r.Context(), &d); err != nil {
		s.fail(w, r, err)
		return
	}
	s.show(w, r, status, "deskorder", "Order "+o.Number, told, d)
}

// fill reads what the library knows of an order.
func (s *shop) fill(ctx context.Context, d *deskData) (err error) {
	if d.Payment, err = s.app.Payments.Get(ctx, tenant, d.Order.Payment); err != nil {
		return err
	}
	d.Page, d.Due = s.pay.URL(tenant, d.Payment.ID), s.world.amount(d.Payment.DueCoins(), d.Payment.Currency)
	d.Received = s.world.amount(d.Payment.Received.Decimal(uint8(d.Payment.Scale)), d.Payment.Currency) //nolint:gosec // at most 8
	came, _, err := s.app.Payments.Arrivals(ctx, tenant, d.Payment.ID, 50, 0)
	if err != nil {
		return err
	}
	for i := range came {
		a := &came[i]
		one := arrival{ID: a.ID, Amount: s.world.amount(a.Exact, a.Currency), Tx: a.Tx, State: a.ShownStatus() + ", " + a.ShownRole()}
		switch a.Booking {
		case payment.InSuspense:
			one.To = s.destination(strconv.Itoa(i), "Address that the customer has told you", a.Network)
			one.State = "kept safe, does not count: " + a.SuspenseReason()
		case payment.Refunded:
			one.State = "sent back"
		}
		d.Arrivals = append(d.Arrivals, one)
	}
	back, _, err := s.app.Refunds.List(ctx, tenant, refund.Filter{Payment: d.Payment.ID})
	if err != nil {
		return err
	}
	for i := range back {
		d.Refunds = append(d.Refunds, given{s.world.amount(back[i].Coins(), back[i].Currency), back[i].Status})
	}
	left, err := s.app.Refunds.Left(ctx, tenant, d.Payment.ID)
	d.Left = left > 0
	return err
}

// refund gives all that is left of an order's payment back. Without an address the customer
// names it on the page of his order: it is never simply where the money came from. What is in
// suspense is sent to the address that the customer has told the desk.
func (s *shop) refund(w http.ResponseWriter, r *http.Request) {
	var o order
	found, err := s.get(r.Context(), &o, "SELECT * FROM orders WHERE number = ?", r.PathValue("number"))
	if s.answered(w, r, found, err) {
		return
	}
	who, err := s.staff(r)
	if err == nil {
		to, memo, reason := r.PostFormValue("address"), r.PostFormValue("memo"), "refund of order "+o.Number
		if deposit := r.PostFormValue("deposit"); deposit != "" {
			_, _, err = s.app.Operate.PayOutSuspense(r.Context(), tenant, deposit, to, memo, cryptopay.Call{By: who, Reason: reason})
		} else {
			_, err = s.app.Refunds.Create(r.Context(), tenant, refund.CreateInput{Payment: o.Payment, All: true, Address: to, Memo: memo, Reason: reason, By: who})
		}
	}
	if why, refused := refusal(err); refused {
		s.deskOrder(w, r, http.StatusBadRequest, why)
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/desk/"+o.Number, http.StatusSeeOther)
}

// refusal is what a person can do something about, in words.
func refusal(err error) (why string, ok bool) {
	var invalid *refund.InvalidError
	var state *refund.StateError
	var address *chain.AddressError
	var short *withdrawal.InsufficientError
	switch {
	case errors.As(err, &address):
		return "Nothing can be sent to that address: " + address.Reason + ".", true
	case errors.As(err, &invalid), errors.As(err, &state), errors.As(err, &short), errors.Is(err, refund.ErrNotFound):
		return "That was refused: " + strings.TrimPrefix(err.Error(), "invalid request: "), true
	}
	return "", false
}

// claimData is a refund whose address the customer is to name.
type claimData struct {
	Amount string
	To     *destination
}

// awaiting is the refund of a payment that waits for an address.
func (s *shop) awaiting(ctx context.Context, paymentID string) (*refund.Refund, error) {
	list, _, err := s.app.Refunds.List(ctx, tenant, refund.Filter{Payment: paymentID, Status: refund.AwaitingAddress, Limit: 1})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// refundsOf is what a customer reads of his refunds: the one whose address he is to name, and
// whether one is on its way.
func (s *shop) refundsOf(ctx context.Context, p *payment.Payment) (claim *claimData, returning bool, err error) {
	list, _, err := s.app.Refunds.List(ctx, tenant, refund.Filter{Payment: p.ID})
	for i := range list {
		switch r := &list[i]; r.Status {
		case refund.AwaitingAddress:
			claim = &claimData{s.world.amount(r.Coins(), r.Currency), s.destination("claim", "Your address", r.Network)}
		case refund.Pending, refund.Processing:
			returning = true
		}
	}
	return claim, returning, err
}

// claim takes the address that the customer names for his refund.
func (s *shop) claim(w http.ResponseWriter, r *http.Request) {
	if s.limited(w, r, "claim", 10) {
		return
	}
	o, found, err := s.orderOf(r.Context(), r.PathValue("number"), buyerOf(r))
	if s.answered(w, r, found, err) {
		return
	}
	back, err := s.awaiting(r.Context(), o.Payment)
	if err == nil && back != nil {
		_, err = s.app.Refunds.Claim(r.Context(), s.app.Refunds.Token(back), r.PostFormValue("address"), r.PostFormValue("memo"))
	}
	if why, refused := refusal(err); refused {
		s.orderPage(w, r, http.StatusBadRequest, why)
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/orders/"+o.Number, http.StatusSeeOther)
}
