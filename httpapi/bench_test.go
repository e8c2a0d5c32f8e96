//go:build unix

package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
)

// bare is what a plain program would do: read JSON with a decimal, answer JSON.
// No authentication, limits, validation or headers.
var bare = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Amount   decimal.Decimal `json:"amount"`
		Currency string          `json:"currency"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"price_amount": in.Amount.StringFixed(2), "currency": in.Currency, "amount_crypto": in.Amount.Mul(decimal.New(1, 0)).StringFixed(8),
	})
})

// clients is how many connections ask at once.
const clients = 8

// BenchmarkAgainstBareHandler asks a bare net/http handler and the whole
// interface (token, limits, strict JSON, validation, pricing, on the memory
// store) in turns, over loopback with the same client, and reports how the
// throughput of the second stands to that of the first.
func BenchmarkAgainstBareHandler(b *testing.B) {
	w := newWorld(b, quiet, limits(func(l *httpapi.Limits) { l.PerHour, l.TenantPerHour = 1<<30, 1<<30 }))
	body := `{"amount":"25.00","currency":"USDTERC20"}`
	request := fmt.Sprintf("POST /payments/estimate/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", w.token, len(body), body)
	first, second := newLoad(b, bare, request), newLoad(b, w.api, request)
	const batch = 4000
	var plain, full spent
	for b.Loop() {
		plain.add(first.run(b, batch))
		full.add(second.run(b, batch))
	}
	n := float64(b.N * batch)
	b.ReportMetric(n/plain.wall.Seconds(), "bare/s")
	b.ReportMetric(n/full.wall.Seconds(), "full/s")
	b.ReportMetric(plain.wall.Seconds()/full.wall.Seconds(), "ratio")
	b.ReportMetric(plain.cpu.Seconds()*1e6/n, "bare-µs-cpu")
	b.ReportMetric(full.cpu.Seconds()*1e6/n, "full-µs-cpu")
	b.ReportMetric(plain.cpu.Seconds()/full.cpu.Seconds(), "cpu-ratio")
}

// spent is time on the wall, and of this process on its processors: the second
// says more where others use the machine, too.
type spent struct{ wall, cpu time.Duration }

func (s *spent) add(o spent) { s.wall, s.cpu = s.wall+o.wall, s.cpu+o.cpu }

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEstimate is the interface alone, without a network: what a request
// costs and allocates.
func BenchmarkEstimate(b *testing.B) {
	w := newWorld(b, quiet, limits(func(l *httpapi.Limits) { l.PerHour, l.TenantPerHour = 1<<30, 1<<30 }))
	for name, handler := range map[string]http.Handler{"bare": bare, "full": w.api} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			out := &sink{header: http.Header{}}
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/payments/estimate/", strings.NewReader(`{"amount":"25.00","currency":"USDTERC20"}`))
				r.Header.Set("Authorization", "Bearer "+w.token)
				r.Header.Set("Content-Type", "application/json")
				clear(out.header)
				out.status = http.StatusOK
				handler.ServeHTTP(out, r)
				if out.status != http.StatusOK {
					b.Fatal(out.status)
				}
			}
		})
	}
}

// sink is an answer that nobody reads.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

// load is a server and connections that ask it the same thing again and again.
type load struct {
	request []byte
	conns   []net.Conn
	readers []*bufio.Reader
}

func newLoad(b *testing.B, handler http.Handler, request string) *load {
	b.Helper()
	server := httptest.NewServer(handler)
	b.Cleanup(server.Close)
	l := &load{request: []byte(request)}
	for range clients {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(b, err)
		b.Cleanup(func() { c.Close() })
		l.conns, l.readers = append(l.conns, c), append(l.readers, bufio.NewReader(c))
	}
	l.run(b, 1000)
	return l
}

// run sends n requests over all connections.
func (l *load) run(b *testing.B, n int) spent {
	b.Helper()
	var wg sync.WaitGroup
	errs := make([]error, clients)
	start, used := time.Now(), cpuTime(b)
	for i := range clients {
		wg.Go(func() {
			for range n / clients {
				if errs[i] = l.ask(i); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	took := spent{time.Since(start), cpuTime(b) - used}
	for _, err := range errs {
		require.NoError(b, err)
	}
	return took
}

func (l *load) ask(i int) error {
	if _, err := l.conns[i].Write(l.request); err != nil {
		return err
	}
	length := 0
	for first := true; ; first = false {
		line, err := l.readers[i].ReadSlice('\n')
		if err != nil {
			return err
		}
		switch {
		case first && string(line[9:12]) != "200":
			return fmt.Errorf("answered %s", line)
		case len(line) == 2:
			_, err := io.CopyN(io.Discard, l.readers[i], int64(length))
			return err
		case len(line) > 16 && string(line[:16]) == "Content-Length: ":
			for _, d := range line[16 : len(line)-2] {
				length = length*10 + int(d-'0')
			}
		}
	}
}
