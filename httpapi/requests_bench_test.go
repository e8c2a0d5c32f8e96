//go:build unix

package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// BenchmarkRequests measures what merchants ask over HTTP, on loopback, with the workers
// running beside, each request under an Idempotency-Key of its own:
//
//	go test -run '^$' -bench Requests/postgres -benchtime 3000x ./httpapi
//
// A transfer counts when it is applied. lone is one caller, whose p50 is to be compared
// with what the disk takes for a commit (BenchmarkDisk).
func BenchmarkRequests(b *testing.B) {
	stores := map[string]func(b *testing.B) storage.Store{
		"memory": func(*testing.B) storage.Store { return memory.New() },
		"postgres": func(b *testing.B) storage.Store {
			dsn := testenv.Postgres(b).DSN("postgres")
			require.NoError(b, postgres.Migrate(b.Context(), dsn, postgres.Options{}))
			s, err := postgres.Open(dsn, postgres.Options{})
			require.NoError(b, err)
			return s
		},
	}
	for _, store := range []string{"memory", "postgres"} {
		for _, kind := range []string{"transfer", "payment", "withdrawal", "get"} {
			for _, callers := range []int{1, 32, 256} {
				b.Run(fmt.Sprintf("%s/%s/%d", store, kind, callers), func(b *testing.B) { benchRequests(b, stores[store](b), kind, callers) })
			}
		}
	}
}

func benchRequests(b *testing.B, store storage.Store, kind string, callers int) {
	w := newWorld(b, unlimited, quiet, limits(func(l *httpapi.Limits) { l.PerHour, l.TenantPerHour, l.PaymentsPerHour = 1<<30, 1<<30, 1<<30 }),
		func(s *setup) {
			s.store = store
			s.config = func(c *cryptopay.Config) { c.Log = slog.New(slog.DiscardHandler) }
		})
	const subs = 32
	for i := range subs {
		w.ok(http.StatusCreated, "POST", "/wallets/", map[string]any{"name": "sub", "external_id": fmt.Sprint("sub", i)})
	}
	w.gift("USDTERC20", 1e15)
	shown := w.ok(http.StatusCreated, "POST", "/payments/", `{"amount":"25.00","currency":"USDTERC20"}`).Body["transaction_id"]
	w.step()
	stop := w.working()
	server := httptest.NewServer(w.api)
	b.Cleanup(server.Close)
	to := w.elsewhere()
	request := func(i int) string {
		path, body := "/payments/", fmt.Sprintf(`{"amount":"25.00","currency":"USDTERC20","order_id":"%d"}`, i)
		switch kind {
		case "transfer":
			path, body = "/wallets/transfer-to-user/", fmt.Sprintf(`{"external_id":"sub%d","currency":"USDTERC20","amount":"0.01"}`, i%subs)
		case "withdrawal":
			path, body = "/withdrawal/", fmt.Sprintf(`{"amount":"20","currency":"USDTERC20","address":"%s"}`, to)
		case "get":
			path, body = "/payments/status/", fmt.Sprintf(`{"transaction_id":"%s"}`, shown)
		}
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nIdempotency-Key: bench-%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			path, w.token, i, len(body), body)
	}
	var wg sync.WaitGroup
	took := make([][]time.Duration, callers)
	errs := make([]error, callers)
	b.ResetTimer()
	used := cpuTime(b)
	for c := range callers {
		wg.Go(func() {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				errs[c] = err
				return
			}
			defer conn.Close()
			answers := bufio.NewReader(conn)
			for i := c; i < b.N && errs[c] == nil; i += callers {
				began := time.Now()
				errs[c] = exchange(conn, answers, request(i))
				took[c] = append(took[c], time.Since(began))
			}
		})
	}
	wg.Wait()
	if kind == "transfer" {
		w.applied()
	}
	b.StopTimer()
	cpu := cpuTime(b) - used
	for _, err := range errs {
		require.NoError(b, err)
	}
	stop()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(cpu.Seconds()*1e6/float64(b.N), "µs-cpu/req")
	r, err := w.app.VerifyTenant(b.Context(), w.tenant)
	require.NoError(b, err)
	require.True(b, r.Sound(), "%+v", r)
	require.NoError(b, store.Close())
}

// exchange sends one request and reads its answer, which must be a success.
func exchange(conn net.Conn, answers *bufio.Reader, request string) error {
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	r, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("answered %d: %s", r.StatusCode, body)
	}
	return err
}

// gift gives the shop's master account so many units of a currency.
func (w *world) gift(currency ledger.Asset, units ledger.Amount) {
	w.t.Helper()
	require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, storage.Change{ID: "gift", Partition: storage.Tenant(w.tenant), Post: []ledger.Tx{{
		ID: "gift", Kind: ledger.KindAdjustment, At: w.clock.Now(), Legs: []ledger.Leg{
			{Account: ledger.Wallet(wallet.Master), Asset: currency, Delta: units}, {Account: ledger.Chain("ETH"), Asset: currency, Delta: -units},
		},
	}}}))
}

// working runs the workers that requests leave work to, as Run does, until stop is
// called: each looks again at once where it found something, else after a while.
func (w *world) working() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	for _, work := range w.app.Workers() {
		if work.Name != "transfers" && work.Name != "addresses" {
			continue
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				n, err := work.Step(ctx)
				if err != nil || n == 0 {
					select {
					case <-ctx.Done():
					case <-time.After(work.Every):
					}
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// applied waits until no transfer is pending.
func (w *world) applied() {
	for {
		n, err := w.store.Count(w.t.Context(), storage.Query{
			Table: wallet.TransferRows.Table, Partition: storage.Tenant(w.tenant),
			Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: wallet.TransferPending}},
		})
		require.NoError(w.t, err)
		if n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
