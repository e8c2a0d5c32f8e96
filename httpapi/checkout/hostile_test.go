package checkout_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/httpapi/checkout"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// TestX01_AMerchantThatHangsHoldsNobodyElse: while the host's Merchant does not answer for one
// tenant, the pages of another tenant go on.
func TestX01_AMerchantThatHangsHoldsNobodyElse(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	another := h.NewTenant("another")
	slow, other := h.Payment("30", "USDTERC20"), another.Payment("30", "USDTERC20")
	var hang, cutOff atomic.Bool
	hangs, free := make(chan struct{}, 100), make(chan struct{})
	p := pages(t, h, func(o *checkout.Options) {
		o.Poll = 10 * time.Millisecond
		o.Merchant = func(ctx context.Context, _ string, p *payment.Payment) (checkout.Merchant, error) {
			if p.ID == slow.ID && hang.Load() {
				hangs <- struct{}{}
				select {
				case <-free:
				case <-ctx.Done():
					cutOff.Store(true)
				}
			}
			return checkout.Merchant{Name: "Shop"}, nil
		}
	})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	look := func(tenant string, of payment.Payment) func() string {
		r, status := stream(t, server.URL+strings.TrimPrefix(p.URL(tenant, of.ID), origin)+"/events")
		require.Equal(t, http.StatusOK, status)
		return func() string { return next(t, r) }
	}
	slows, others := look(h.Tenant.ID, slow), look(another.ID, other)
	require.Contains(t, slows(), "Waiting for your payment")
	require.Contains(t, others(), "Waiting for your payment")
	hang.Store(true)
	sends(t, h, slow)
	h.Step()
	<-hangs
	sends(t, h, other)
	h.Step()
	require.Contains(t, others(), "Payment seen")
	require.False(t, cutOff.Load(), "the other tenant's page waited for the Merchant's time to be over")
	hang.Store(false)
	close(free)
	require.Contains(t, slows(), "Payment seen")
}

// TestX01_AMerchantThatPanicsEndsNoProcess: the host's Merchant may break down over one payment.
// Its page has the tenant's name then, and the pages of others go on.
func TestX01_AMerchantThatPanicsEndsNoProcess(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	broken, other := h.Payment("30", "USDTERC20"), h.Payment("31", "USDTERC20")
	var panics atomic.Bool
	p := pages(t, h, func(o *checkout.Options) {
		o.Poll = 10 * time.Millisecond
		o.Merchant = func(_ context.Context, _ string, p *payment.Payment) (checkout.Merchant, error) {
			if p.ID == broken.ID && panics.Load() {
				panic("an order that the host has no row of")
			}
			return checkout.Merchant{Name: "The Shop"}, nil
		}
	})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	look := func(of payment.Payment) func() string {
		r, status := stream(t, server.URL+strings.TrimPrefix(p.URL(h.Tenant.ID, of.ID), origin)+"/events")
		require.Equal(t, http.StatusOK, status)
		return func() string { return next(t, r) }
	}
	brokens, others := look(broken), look(other)
	require.Contains(t, brokens(), "Waiting for your payment")
	require.Contains(t, others(), "Waiting for your payment")
	panics.Store(true)
	sends(t, h, broken)
	sends(t, h, other)
	h.Step()
	require.Contains(t, brokens(), "Payment seen")
	require.Contains(t, others(), "Payment seen")
	require.Contains(t, look(broken)(), "Payment seen", "a stream that begins")
	require.NotContains(t, shows(t, h, p, broken), "The Shop")
	require.Contains(t, shows(t, h, p, other), "The Shop")
}

// slowEvents is a store whose events cannot be read in time, once.
type slowEvents struct {
	storage.Store
	slow, late atomic.Bool
	polls      atomic.Int64
	after      chan string // what the page did when the time was over
}

func (s *slowEvents) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if by, ok := ctx.Deadline(); q.Table == storage.Events.Table && ok && time.Until(by) < 20*time.Second { // a page's; consumers have longer
		if s.slow.CompareAndSwap(true, false) {
			<-ctx.Done()
			s.late.Store(true)
			return nil, ctx.Err()
		}
		if s.late.Load() {
			s.say("it asked again")
		}
	}
	return s.Store.Find(ctx, q)
}

func (s *slowEvents) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if t == storage.Streams.Table && s.late.Load() && s.polls.Add(1) == 3 {
		s.say("it looked thrice whether there is news, and did not read them")
	}
	return s.Store.Rows(ctx, t, keys...)
}

func (s *slowEvents) say(what string) {
	select {
	case s.after <- what:
	default:
	}
}

// TestX01_EventsThatCameTooSlowlyAreReadAgain: a store that answers too late makes a page late,
// and no page misses that it was paid.
func TestX01_EventsThatCameTooSlowlyAreReadAgain(t *testing.T) {
	t.Parallel()
	store := &slowEvents{Store: memory.New(), after: make(chan string, 1)}
	h := cryptopaytest.Open(t, cryptopaytest.Options{Store: store})
	p := pages(t, h, func(o *checkout.Options) { o.Poll = 10 * time.Millisecond })
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	of := h.Payment("30", "USDTERC20")
	r, status := stream(t, server.URL+strings.TrimPrefix(p.URL(h.Tenant.ID, of.ID), origin)+"/events")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, next(t, r), "Waiting for your payment")
	store.slow.Store(true)
	sends(t, h, of)
	h.Step()
	require.Equal(t, "it asked again", <-store.after)
	require.Contains(t, next(t, r), "Payment seen")
}

// pausedEvents is a store that pauses a page's second look at the events of a tenant, once.
type pausedEvents struct {
	storage.Store
	looks          atomic.Int64
	paused, resume chan struct{}
}

func (s *pausedEvents) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if by, ok := ctx.Deadline(); q.Table == storage.Events.Table && ok && time.Until(by) < 20*time.Second { // a page's; consumers have longer
		if s.looks.Add(1) == 2 {
			close(s.paused)
			<-s.resume
		}
	}
	return s.Store.Find(ctx, q)
}

// TestX01_APageThatOpensMissesNoEvent: an event that comes while the first viewer's page is read,
// and is seen before that ends, is shown all the same.
func TestX01_APageThatOpensMissesNoEvent(t *testing.T) {
	t.Parallel()
	store := &pausedEvents{Store: memory.New(), paused: make(chan struct{}), resume: make(chan struct{})}
	h := cryptopaytest.Open(t, cryptopaytest.Options{Store: store})
	reading, read := make(chan struct{}, 100), make(chan struct{})
	p := pages(t, h, func(o *checkout.Options) {
		o.Poll = 10 * time.Millisecond
		o.Merchant = func(context.Context, string, *payment.Payment) (checkout.Merchant, error) {
			reading <- struct{}{} // the payment was read
			<-read
			return checkout.Merchant{}, nil
		}
	})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	of := h.Payment("30", "USDTERC20")
	shown := make(chan string)
	go func() {
		defer close(shown)
		ctx, end := context.WithTimeout(t.Context(), time.Minute) // of a page that is told nothing
		defer end()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+strings.TrimPrefix(p.URL(h.Tenant.ID, of.ID), origin)+"/events", nil)
		if err != nil {
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return
		}
		defer func() { _ = resp.Body.Close() }()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if title, ok := strings.CutPrefix(lines.Text(), "data: <h1>"); ok {
				shown <- title
			}
		}
	}()
	<-reading
	sends(t, h, of)
	h.Step()
	<-store.paused
	close(read)
	require.Equal(t, "Waiting for your payment</h1>", <-shown)
	close(store.resume)
	require.Equal(t, "Payment seen</h1>", <-shown)
}
