package cryptopay_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/safehttp/peertest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// journal keeps what is logged.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

// lines are those that have all of these words.
func (j *journal) lines(words ...string) (out []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.buf.String()) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			out = append(out, line)
		}
	}
	return out
}

// hung is a host with one more worker, whose step returns when it is released, or
// when its context ends if it heeds that.
type hung struct {
	*host
	log     journal
	release chan struct{}
	steps   atomic.Int64
}

func newHung(t *testing.T, heeds bool) *hung {
	x := &hung{host: newHost(t, 41, "BTC"), release: make(chan struct{})}
	x.configure = func(c *cryptopay.Config) {
		c.Clock, c.Grace = cryptopay.SystemClock{}, 20*time.Second // of the bubble's time
		c.Log = slog.New(slog.NewTextHandler(&x.log, nil))
		c.Workers = []cryptopay.Worker{{Name: "hung", Every: time.Second, Lease: 90 * time.Second, Step: func(ctx context.Context) (int, error) {
			x.steps.Add(1)
			done := ctx.Done()
			if !heeds {
				done = nil
			}
			select {
			case <-x.release:
			case <-done:
			}
			return 0, nil
		}}}
	}
	x.restart()
	return x
}

// TestFS01_OverdueStepIsReported: once each time, with its worker's name and how
// long it has run; the other workers go on.
func TestFS01_OverdueStepIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newHung(t, false)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- x.app.Run(ctx) }()
		time.Sleep(89 * time.Second)
		require.Empty(t, x.log.lines("worker_overdue"))
		time.Sleep(time.Hour)
		require.Len(t, x.log.lines("worker_overdue"), 1, "once, however long it takes")
		require.Len(t, x.log.lines("level=WARN", "worker_overdue", "worker=hung", "running=1m30s"), 1)
		x.release <- struct{}{}
		time.Sleep(time.Hour)
		require.Len(t, x.log.lines("worker_overdue", "worker=hung"), 2, "and once for the next")
		require.EqualValues(t, 2, x.steps.Load())
		close(x.release)
		time.Sleep(time.Second)
		cancel()
		require.NoError(t, <-done)
	})
}

// TestFS01_RunEndsAlthoughAStepHangs: Run waits for what is in flight, no longer
// than Grace; then it cancels it, and leaves behind and reports what does not heed
// that.
func TestFS01_RunEndsAlthoughAStepHangs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		heeds    bool
		released time.Duration // 0 = never
		took     time.Duration
		says     []string
		behind   int
	}{
		"finishes in time":    {false, 7 * time.Second, 7 * time.Second, nil, 0},
		"heeds its context":   {true, 0, 20 * time.Second, []string{"shutdown_overdue", "hung", "grace=20s"}, 0},
		"heeds nothing":       {false, 0, 25 * time.Second, []string{"level=ERROR", "workers_left_behind", "hung"}, 1},
		"finishes after that": {false, 22 * time.Second, 22 * time.Second, []string{"shutdown_overdue", "hung"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := newHung(t, c.heeds)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- x.app.Run(ctx) }()
				time.Sleep(10 * time.Second)
				cancel()
				began := time.Now()
				if c.released > 0 {
					time.AfterFunc(c.released, func() { close(x.release) })
				}
				require.NoError(t, <-done)
				require.Equal(t, c.took, time.Since(began))
				if c.says != nil {
					require.Len(t, x.log.lines(c.says...), 1)
				} else {
					require.Empty(t, x.log.lines("shutdown_overdue"))
				}
				require.Len(t, x.log.lines("workers_left_behind"), c.behind)
				if c.released == 0 {
					close(x.release) // nothing may be left in the bubble
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestFE03_RunNeedsOpen: an App that was not opened does not run, in silence or
// otherwise; and what it logs is heard unless the host says otherwise.
func TestFE03_RunNeedsOpen(t *testing.T) {
	t.Parallel()
	h := newHost(t, 42, "BTC")
	app, err := cryptopay.New(cryptopay.Config{
		Store: memory.New(), Chains: []chain.Client{h.chains["BTC"].Client()}, Rates: h.rates,
		Addresses: sourceOf(h, h.seed), Key: bytes.Repeat([]byte{1}, 32),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, app.Run(ctx), cryptopay.ErrNotOpened)
	require.Same(t, slog.Default(), app.Config().Log)
	require.NoError(t, app.Open(t.Context()))
	require.NoError(t, app.Run(ctx))
}

// paid plays a payment to its end.
func (h *host) paid(callback string) payment.Payment {
	h.t.Helper()
	in := payment.CreateInput{Pricing: payment.Pricing{Amount: "120", Currency: "BTC"}, CallbackURL: callback}
	p, err := h.app.Payments.Create(h.t.Context(), h.tenant, in)
	require.NoError(h.t, err)
	_, err = h.chains["BTC"].Pay(chain.Address(p.Address), "BTC", dec("0.002"))
	require.NoError(h.t, err)
	h.mine(4)
	require.Equal(h.t, payment.Completed, h.payment(p.ID).Status)
	return p
}

// heard counts what the host's Notifier got, by event type, with and without URL.
func (h *host) heard() (with, without map[string]int) {
	h.inbox.mu.Lock()
	defer h.inbox.mu.Unlock()
	with, without = map[string]int{}, map[string]int{}
	for _, d := range h.inbox.got {
		require.Equal(h.t, h.tenant, d.Tenant)
		require.Contains(h.t, string(d.Body), `"event":"`+d.Type+`"`)
		if d.URL == "" {
			without[d.Type]++
		} else {
			with[d.Type]++
		}
	}
	h.inbox.got = nil
	return with, without
}

// TestFE01_HostHearsWithoutAnyURL: a Notifier of the host's own gets every event,
// with tenant and type: of merchants without a URL, and of types that the merchant
// has not enabled, without a URL, so that nobody else is told.
func TestFE01_HostHearsWithoutAnyURL(t *testing.T) {
	t.Parallel()
	h := newHost(t, 43, "BTC")
	h.paid("")
	with, without := h.heard()
	require.Empty(t, with)
	all := without
	require.NotEmpty(t, all[webhook.PaymentStatusUpdate])
	require.NotEmpty(t, all[webhook.DepositReceived])

	_, _, err := h.app.Webhooks.Setup(t.Context(), h.tenant, "https://shop.example/hook", webhook.By{})
	require.NoError(t, err)
	_, err = h.app.Webhooks.Edit(t.Context(), h.tenant, webhook.Patch{Events: &[]string{webhook.DepositReceived}})
	require.NoError(t, err)
	h.paid("")
	with, without = h.heard()
	require.Equal(t, map[string]int{webhook.DepositReceived: all[webhook.DepositReceived]}, with, "what the merchant asked for")
	require.Equal(t, map[string]int{
		webhook.PaymentStatusUpdate: all[webhook.PaymentStatusUpdate], webhook.PaymentDeposit: all[webhook.PaymentDeposit],
	}, without, "the rest is the host's alone")

	h.paid("https://shop.example/own")
	with, without = h.heard()
	require.Equal(t, map[string]int{webhook.PaymentDeposit: all[webhook.PaymentDeposit]}, without, "no endpoint names it")
	delete(all, webhook.PaymentDeposit)
	require.Equal(t, all, with, "a payment's own callback is told all the others")
}

// relay is a host's Notifier that counts, and delivers by the library's own.
type relay struct {
	*webhook.HTTP
	n atomic.Int64
}

func (r *relay) Notify(ctx context.Context, all []webhook.Delivery) []webhook.Result {
	r.n.Add(int64(len(all)))
	return r.HTTP.Notify(ctx, all)
}

// TestFE01_WithoutURLTheDefaultSkips: the library's own Notifier, alone or within a
// host's, skips what has no URL: it is neither tried again nor failed.
func TestFE01_WithoutURLTheDefaultSkips(t *testing.T) {
	t.Parallel()
	for _, own := range []*relay{nil, {HTTP: webhook.NewHTTP(webhook.HTTPOptions{})}} {
		h := newHost(t, 44, "BTC")
		h.configure = func(c *cryptopay.Config) {
			if c.Notifier = nil; own != nil {
				c.Notifier = own
			}
		}
		h.restart()
		h.paid("")
		skipped, err := h.app.Webhooks.List(t.Context(), h.tenant, webhook.StatusSkipped, 100, 0)
		require.NoError(t, err)
		require.NotEmpty(t, skipped)
		for _, row := range skipped {
			require.Zero(t, webhook.Events.Value(row).Attempts)
		}
		for _, s := range []webhook.Status{webhook.StatusPending, webhook.StatusFailed, webhook.StatusDelivered} {
			rows, err := h.app.Webhooks.List(t.Context(), h.tenant, s, 100, 0)
			require.NoError(t, err)
			require.Empty(t, rows, s)
		}
		require.True(t, own == nil || own.n.Load() == int64(len(skipped)))
	}
}

// TestFS01_TwoTenantsOneOfWhichHangs: 300 due events of one tenant, to receivers
// that never end an exchange in each way that there is; the other tenant's come
// before the first of those times out, and Run ends within its grace.
func TestFS01_TwoTenantsOneOfWhichHangs(t *testing.T) {
	t.Parallel()
	h := newHost(t, 45, "BTC")
	var urls []string
	for _, answer := range peertest.Endless() {
		urls = append(urls, peertest.Serve(t, "127.0.0.1", answer))
	}
	const events = 5
	arrived := make(chan string, events)
	good := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r.Header.Get(webhook.HeaderID) }))
	defer good.Close()
	const patience = time.Minute
	guard := webhook.Guard{AllowHTTP: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	notifier := webhook.NewHTTP(webhook.HTTPOptions{Guard: guard, Timeout: patience})
	defer notifier.Close()
	h.configure = func(c *cryptopay.Config) {
		c.Clock, c.Callbacks, c.Grace = cryptopay.SystemClock{}, guard, 100*time.Millisecond
		c.Notifier = notifier
	}
	h.restart()
	name := "another shop"
	other, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	emit := func(tenant string, n int, url func(int) string) {
		var rows []storage.Row
		for i := range n {
			row, err := webhook.NewEvent(webhook.PaymentStatusUpdate, fmt.Sprint("p", i), 1, url(i), 1, time.Now())
			require.NoError(t, err)
			rows = append(rows, row)
		}
		require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{ID: "emit", Partition: storage.Tenant(tenant), Put: rows}))
	}
	emit(h.tenant, 300, func(i int) string { return urls[i%len(urls)] })
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- h.app.Run(ctx) }()
	emit(other.ID, events, func(int) string { return good.URL })
	for range events {
		select {
		case <-arrived:
		case <-time.After(patience):
			require.FailNow(t, "they wait for the other tenant's")
		}
	}
	require.Less(t, time.Since(began), patience, "before the first attempt of the other tenant's has timed out")
	cancel()
	require.NoError(t, <-done)
	require.Less(t, time.Since(began), patience)
}
