package checkout

import (
	"context"
	"errors"
	"log/slog"
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
	back     ledger.Amount     // what refunds of the payment have sent
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
	if p.Received > 0 {
		if f.back, err = h.sentBack(ctx, r); err != nil {
			return nil, err
		}
	}
	f.merchant, err = h.merchant(ctx, r.tenant, &p)
	if len(f.merchant.Logo) > 0 {
		f.logo, _ = imageType(f.merchant.Logo) // sound has found that it is one
		f.logoName = "logo-" + sum(f.merchant.Logo)
	}
	return f, err
}

// sentBack is what refunds of a payment have sent, fees included.
func (h *Handler) sentBack(ctx context.Context, r ref) (all ledger.Amount, err error) {
	list, _, err := h.app.Refunds.List(ctx, r.tenant, refund.Filter{Payment: r.payment, Status: refund.Completed, Limit: 100})
	for i := range list {
		if err == nil {
			all, err = all.Add(list[i].Amount)
		}
	}
	return all, err
}

// merchant is who is paid. What the host gives and cannot be shown is left out.
func (h *Handler) merchant(ctx context.Context, tenant string, p *payment.Payment) (m Merchant, err error) {
	if h.o.Merchant != nil {
		given, err := h.o.Merchant(ctx, tenant, p)
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
