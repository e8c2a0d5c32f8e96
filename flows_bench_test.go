package cryptopay_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// flows are what a payment goes through, each measured by its worker alone, in one
// process on a simulated chain. A benchmark reports how many a second.
var flows = []struct {
	name string
	run  func(b *testing.B, h *host)
}{
	{"deposits credited", flowCredits},
	{"deposits credited and completed", flowDeposits},
	{"payments expired", flowExpiry},
	{"webhooks delivered", flowWebhooks},
	{"payouts without rules", flowPayouts([]policy.Rule{})},
	{"payouts with the default rule", flowPayouts(policy.Default().Rules)},
	{"payouts with the rule of a day", flowPayouts([]policy.Rule{{Name: "day", Of: policy.KindSum, Over: dec("1000000"), Per: policy.Duration(24 * time.Hour)}})},
}

// BenchmarkFlows measures the workers: go test -run '^$' -bench Flows -benchtime 1x -count 5 .
func BenchmarkFlows(b *testing.B) {
	stores := map[string]func(b *testing.B) storage.Store{
		"memory": func(*testing.B) storage.Store { return memory.New() },
		"sqlite": func(b *testing.B) storage.Store {
			file := b.TempDir() + "/flows.db"
			require.NoError(b, sqlite.Migrate(b.Context(), file))
			s, err := sqlite.Open(file, sqlite.Options{})
			require.NoError(b, err)
			return s
		},
		"postgres": func(b *testing.B) storage.Store {
			dsn := testenv.Postgres(b).DSN("postgres")
			require.NoError(b, postgres.Migrate(b.Context(), dsn, postgres.Options{}))
			s, err := postgres.Open(dsn, postgres.Options{})
			require.NoError(b, err)
			return s
		},
	}
	for _, store := range []string{"memory", "sqlite", "postgres"} {
		for _, f := range flows {
			b.Run(store+"/"+f.name, func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					s := stores[store](b)
					f.run(b, newHostOn(b, s, 1, "ETH"))
					require.NoError(b, s.Close())
				}
			})
		}
	}
}

// quiet starts the App again without its log.
func (h *host) quiet() {
	h.configure = func(c *cryptopay.Config) { c.Log = slog.New(slog.DiscardHandler) }
	h.restart()
}

// orders makes so many payments.
func (h *host) orders(n int, currency string) []payment.Payment {
	h.t.Helper()
	all := make([]payment.Payment, n)
	for i := range all {
		p, err := h.app.Payments.Create(h.t.Context(), h.tenant, payment.CreateInput{
			Pricing: payment.Pricing{Amount: "300", Currency: currency}, OrderID: "order-" + strconv.Itoa(i),
		})
		require.NoError(h.t, err)
		all[i] = p
	}
	return all
}

// count is how many payments have a status.
func (h *host) count(status payment.Status) int64 {
	h.t.Helper()
	n, err := h.store.Count(h.t.Context(), storage.Query{
		Table: payment.Payments.Table, Partition: storage.Tenant(h.tenant),
		Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: status}},
	})
	require.NoError(h.t, err)
	return n
}

// perSecond reports what was done since began.
func perSecond(b *testing.B, n int, began time.Time, what string) {
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), what+"/s")
}

// flowCredits pays so many payments of ether in one block, at a time when forwarding them is
// dear, and works until all of them are credited.
func flowCredits(b *testing.B, h *host) {
	h.quiet()
	const n = 600
	eth, err := chain.MainnetRegistry().Currency("ETH")
	require.NoError(b, err)
	all := h.orders(n, "ETH")
	h.chains["ETH"].SetFeeLevel(1000 * h.chains["ETH"].FeeLevel())
	for _, p := range all {
		_, err := h.chains["ETH"].Pay(chain.Address(p.Address), "ETH", eth.Decimal(p.Due))
		require.NoError(b, err)
	}
	h.chains["ETH"].Mine(1)
	require.NoError(b, h.app.Step(b.Context()))
	h.chains["ETH"].Mine(12)
	began := time.Now()
	b.StartTimer()
	require.NoError(b, h.app.Step(b.Context()))
	b.StopTimer()
	require.EqualValues(b, n, h.count(payment.Confirmed)+h.count(payment.Sending)+h.count(payment.Completed))
	perSecond(b, n, began, "credited")
}

// flowDeposits pays so many payments of ether in one block, and works until all of them
// are completed, which forwards each.
func flowDeposits(b *testing.B, h *host) {
	h.quiet()
	const n = 300
	all := h.orders(n, "ETH")
	hot, err := h.app.Hot(b.Context(), "ETH", h.tenant)
	require.NoError(b, err)
	_, err = h.chains["ETH"].Fund(hot, "ETH", dec("10"))
	require.NoError(b, err)
	eth, err := chain.MainnetRegistry().Currency("ETH")
	require.NoError(b, err)
	for _, p := range all {
		_, err := h.chains["ETH"].Pay(chain.Address(p.Address), "ETH", eth.Decimal(p.Due))
		require.NoError(b, err)
	}
	h.chains["ETH"].Mine(1)
	require.NoError(b, h.app.Step(b.Context()))
	h.chains["ETH"].Mine(12)
	began, left := time.Now(), int64(n)
	b.StartTimer()
	require.NoError(b, h.app.Step(b.Context()))
	credited := time.Since(began)
	for round := 0; left > 0 && round < 60; round++ {
		h.clock.Advance(15 * time.Second)
		h.chains["ETH"].Mine(1)
		require.NoError(b, h.app.Step(b.Context()))
		left = n - h.count(payment.Completed)
	}
	b.StopTimer()
	require.Zero(b, left)
	b.ReportMetric(n/credited.Seconds(), "credited/s")
	perSecond(b, n, began, "completed")
}

// flowPayouts hands so many payouts of one merchant over to the payout side.
func flowPayouts(rules []policy.Rule) func(b *testing.B, h *host) {
	return func(b *testing.B, h *host) {
		h.configure = func(c *cryptopay.Config) {
			c.Log, c.Policy.Rules = slog.New(slog.DiscardHandler), rules
		}
		h.restart()
		const n = 300
		h.earn("ETH", "3000")
		to := string(h.chains["ETH"].Customer("supplier"))
		for range n {
			_, err := h.app.Withdrawals.Create(b.Context(), h.tenant, withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: ptr(dec("0.002")), Currency: "ETH", Address: to}})
			require.NoError(b, err)
		}
		h.clock.Advance(time.Minute)
		began := time.Now()
		b.StartTimer()
		for {
			did, err := h.app.Withdrawals.Step(b.Context())
			if did == 0 {
				break
			}
			if errors.Is(err, storage.ErrConflict) { // too many counted by one row at once: they are due again
				h.clock.Advance(time.Minute)
				err = nil
			}
			require.NoError(b, err)
		}
		b.StopTimer()
		perSecond(b, n, began, "payouts")
		left, err := h.store.Count(b.Context(), storage.Query{
			Table: withdrawal.Withdrawals.Table, Partition: storage.Tenant(h.tenant),
			Where: []storage.Cond{{Column: "stage", Op: storage.Ne, Value: withdrawal.Handed}},
		})
		require.NoError(b, err)
		require.Zero(b, left)
	}
}

// flowExpiry lets so many payments end at one time.
func flowExpiry(b *testing.B, h *host) {
	h.quiet()
	const n = 2000
	h.orders(n, "ETH")
	h.clock.Advance(25 * time.Hour)
	h.chains["ETH"].Mine(1)
	began := time.Now()
	b.StartTimer()
	require.NoError(b, h.app.Step(b.Context()))
	b.StopTimer()
	require.EqualValues(b, n, h.count(payment.Expired))
	perSecond(b, n, began, "expired")
}

// flowWebhooks delivers so many events to a receiver on loopback, by Run.
func flowWebhooks(b *testing.B, h *host) {
	const n = 3000
	var got atomic.Int64
	all := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if got.Add(1) == n {
			close(all)
		}
	}))
	defer receiver.Close()
	p := storage.Tenant(h.tenant)
	for at := 0; at < n; at += 100 {
		c := storage.Change{ID: "events/" + strconv.Itoa(at), Partition: p}
		for i := at; i < at+100; i++ {
			id := "p" + strconv.Itoa(i)
			c.Put = append(c.Put, webhook.Events.Row(id+"/000001", 0, time.Now(), webhook.Event{
				Type: "payment.confirmed", Object: id, Seq: 1, URL: receiver.URL, Status: webhook.StatusPending,
				Created: time.Now(), Body: `{"event":"payment.confirmed","data":"` + strings.Repeat("x", 700) + `"}`,
			}))
		}
		require.NoError(b, storage.CommitOne(b.Context(), h.store, c))
	}
	guard := webhook.Guard{AllowHTTP: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	h.configure = func(c *cryptopay.Config) {
		c.Clock, c.Callbacks, c.Notifier = cryptopay.SystemClock{}, guard, webhook.NewHTTP(webhook.HTTPOptions{Guard: guard})
		c.Log = slog.New(slog.DiscardHandler)
	}
	h.restart()
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error)
	began := time.Now()
	b.StartTimer()
	go func() { done <- h.app.Run(ctx) }()
	<-all
	b.StopTimer()
	perSecond(b, n, began, "delivered")
	stop()
	<-done
}
