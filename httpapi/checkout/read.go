package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// facts are what the page of a payment is made of, in every language.
type facts struct {
	payment  payment.Payment
	progress payment.Progress
	arrivals []payment.Arrival // what came to the address, whether it counts or not
	refunds  []refund.Refund   // of the payment, and of what came and did not count; newest first
	back     ledger.Amount     // what refunds of the payment have sent, fees included
	coming   ledger.Amount     // what those that have not ended are to send
	merchant Merchant
	logo     string // its media type, "" = none
	logoName string // of its file, by its content
}

// maxArrivals is how much of what came a page shows.
const maxArrivals = 100

// errUnknown says that a link leads to no page.
var errUnknown = errors.New("checkout: no such page")

// read reads a payment for its page: errUnknown where a link is no longer good, any other
// error where nothing may be shown now, such as a payment whose address is not ours.
func (h *Handler) read(ctx context.Context, r ref) (*facts, error) {
	p, err := h.app.Payments.Get(ctx, r.tenant, r.payment)
	var missing *payment.NotFoundError
	if errors.As(err, &missing) {
		return nil, errUnknown
	}
	if err != nil {
		return nil, err
	}
	if h.now().After(p.ExpiresAt.Add(h.o.Keep)) {
		return nil, errUnknown
	}
	f := &facts{payment: p}
	progress, err := h.app.Payments.Progress(ctx, r.tenant, []payment.Payment{p})
	if err != nil {
		return nil, err
	}
	f.progress = progress[0]
	if f.arrivals, _, err = h.app.Payments.Arrivals(ctx, r.tenant, r.payment, maxArrivals, 0); err != nil {
		return nil, err
	}
	if err = h.refunds(ctx, r, f); err != nil {
		return nil, err
	}
	f.merchant, err = h.merchant(ctx, r.tenant, &p)
	if len(f.merchant.Logo) > 0 {
		f.logo, _ = imageType(f.merchant.Logo) // sound has found that it is one
		f.logoName = "logo-" + sum(f.merchant.Logo)
	}
	return f, err
}

// refunds reads what is given back, where something came.
func (h *Handler) refunds(ctx context.Context, r ref, f *facts) (err error) {
	var suspended []string
	for i := range f.arrivals {
		if f.arrivals[i].Booking == payment.Refunded {
			suspended = append(suspended, f.arrivals[i].ID)
		}
	}
	if f.payment.Received == 0 && len(f.arrivals) == 0 {
		return nil
	}
	f.refunds, err = h.app.Refunds.Of(ctx, r.tenant, r.payment, suspended...)
	for i := range f.refunds {
		switch one := &f.refunds[i]; {
		case err != nil || one.Payment == "":
		case one.Status == refund.Completed:
			f.back, err = f.back.Add(one.Amount)
		case underWay(one):
			f.coming, err = f.coming.Add(one.Amount)
		}
	}
	return err
}

// underWay reports whether a refund has not ended.
func underWay(r *refund.Refund) bool {
	return r.Status == refund.AwaitingAddress || r.Status == refund.Pending || r.Status == refund.Processing
}

// returning reports whether a refund of a deposit that did not count has not ended.
func (f *facts) returning(deposit string) bool {
	return slices.ContainsFunc(f.refunds, func(r refund.Refund) bool { return r.Deposit == deposit && underWay(&r) })
}

// merchant is who is paid. What the host gives and cannot be shown is left out.
func (h *Handler) merchant(ctx context.Context, tenant string, p *payment.Payment) (m Merchant, err error) {
	if h.o.Merchant != nil {
		given, err := h.given(ctx, tenant, p)
		var bad error
		m, bad = given.sound()
		if err = errors.Join(err, bad); err != nil {
			h.o.Log.LogAttrs(ctx, slog.LevelWarn, "checkout_merchant_incomplete", slog.String("tenant", tenant), slog.Any("error", err))
		}
	}
	if m.Name != "" {
		return m, nil
	}
	t, err := h.app.Wallets.Tenant(ctx, tenant)
	if errors.Is(err, wallet.ErrNoTenant) {
		return m, errUnknown
	}
	if m.Name = oneLine(t.Name, maxName); m.Name == "" {
		m.Name = h.host
	}
	return m, err
}

// given is what the host says of a merchant. Pages are read in goroutines, too, where a panic of
// the host's code would end the process.
func (h *Handler) given(ctx context.Context, tenant string, p *payment.Payment) (m Merchant, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = Merchant{}, fmt.Errorf("checkout: Options.Merchant panicked: %v", p)
		}
	}()
	return h.o.Merchant(ctx, tenant, p)
}

// again is when a payment has to be looked at although no event tells of it: zero = never.
func (f *facts) again(now time.Time) time.Time {
	switch {
	case f.progress.Pending > 0:
		return now.Add(confirmEvery)
	case f.open() && now.Before(f.payment.ExpiresAt):
		return f.payment.ExpiresAt
	}
	return time.Time{}
}

// confirmEvery is how often confirmations are counted: blocks are no event of a payment.
const confirmEvery = 4 * time.Second

// open reports whether the payment still waits for money.
func (f *facts) open() bool {
	return f.payment.Status == payment.Waiting || f.payment.Status == payment.PartiallyPaid
}
