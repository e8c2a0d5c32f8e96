package checkout_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/httpapi/checkout"
	"github.com/cryptopay-go/cryptopay/payment"
)

var (
	viewers  = flag.Int("viewers", 0, "live viewers of TestViewers; 0 skips it")
	payments = flag.Int("viewers.payments", 1, "how many payments they look at")
)

// serverOfViewers is set in the process that serves.
const serverOfViewers = "CRYPTOPAY_TEST_VIEWERS"

// figures are what the process that serves says of itself.
type figures struct{ Heap, Stack uint64 }

// TestViewers measures what a live viewer takes of the process that serves, above a handler
// that streams nothing, and that a change reaches all. Two processes: make viewers.
func TestViewers(t *testing.T) {
	if os.Getenv(serverOfViewers) != "" {
		serveViewers(t)
		return
	}
	if *viewers == 0 {
		t.Skip("make viewers")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestViewers$", fmt.Sprintf("-viewers.payments=%d", *payments))
	cmd.Env, cmd.Stderr = append(os.Environ(), serverOfViewers+"=1"), os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	var at struct {
		Address string
		Paths   []string
	}
	line, err := bufio.NewReaderSize(out, 1<<20).ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &at))

	ask := func(path string) (f figures) {
		resp, err := http.Get("http://" + at.Address + path)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&f))
		return f
	}
	var all sync.WaitGroup
	var told atomic.Int64
	var slowest atomic.Int64
	var paid atomic.Pointer[time.Time]
	// look opens so many streams and returns when each has begun.
	look := func(path func(int) string, first string) (end func()) {
		var open sync.WaitGroup
		var conns []net.Conn
		for i := range *viewers {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at.Address)
			require.NoError(t, err)
			conns = append(conns, c)
			_, err = c.Write([]byte("GET " + path(i) + " HTTP/1.1\r\nHost: x\r\n\r\n"))
			require.NoError(t, err)
			open.Add(1)
			all.Go(func() {
				begun, seen := false, false
				r := bufio.NewReaderSize(c, 512)
				for {
					line, err := r.ReadSlice('\n')
					if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
						if !begun {
							open.Done()
						}
						return
					}
					if !begun && strings.Contains(string(line), first) {
						begun = true
						open.Done()
					}
					if !seen && strings.Contains(string(line), "Payment seen") {
						seen = true
						told.Add(1)
						if at := paid.Load(); at != nil {
							slowest.Store(max(slowest.Load(), int64(time.Since(*at))))
						}
					}
				}
			})
		}
		open.Wait()
		return func() {
			for _, c := range conns {
				_ = c.Close()
			}
			all.Wait()
		}
	}
	before := ask("/figures")
	end := look(func(int) string { return "/bare" }, "retry:")
	bare := ask("/figures")
	end()
	between := ask("/figures")
	end = look(func(i int) string { return at.Paths[i%len(at.Paths)] + "/events" }, "Waiting for your payment")
	ours := ask("/figures")
	now := time.Now()
	paid.Store(&now)
	ask("/pay")
	require.Eventually(t, func() bool { return told.Load() == int64(*viewers) }, 2*time.Minute, 10*time.Millisecond, "%d of %d heard", told.Load(), *viewers)
	after := ask("/figures")
	end()
	left := ask("/figures") // of the change itself, in the simulated chain and the store
	each := func(a, b figures) int64 { return (int64(b.Heap+b.Stack) - int64(a.Heap+a.Stack)) / int64(*viewers) }
	more, later := each(between, ours)-each(before, bare), each(left, after)-each(before, bare)
	fmt.Printf("%d viewers of %d payments: a bare stream %d B, ours %d B, %d B more (once all have heard of a change %d B); the last heard after %v\n",
		*viewers, *payments, each(before, bare), each(between, ours), more, later, time.Duration(slowest.Load()).Round(time.Millisecond))
	require.LessOrEqual(t, more, int64(4096))
	require.LessOrEqual(t, later, int64(4096))
}

// serveViewers is the process that serves.
func serveViewers(t *testing.T) {
	h := cryptopaytest.New(quiet{t})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p, err := checkout.New(h.App, checkout.Options{BaseURL: "http://" + l.Addr().String(), MaxViewers: 100 * 100_000})
	require.NoError(t, err)
	var of []payment.Payment
	var paths []string
	for range *payments {
		one := h.Payment("30", "USDTERC20")
		of = append(of, one)
		paths = append(paths, strings.TrimPrefix(p.URL(h.Tenant.ID, one.ID), "http://"+l.Addr().String()))
	}
	mux := http.NewServeMux()
	mux.Handle("/checkout/", p)
	mux.HandleFunc("/bare", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("retry: 3000\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/figures", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(measure()) })
	mux.HandleFunc("/pay", func(w http.ResponseWriter, _ *http.Request) {
		for _, one := range of {
			sends(t, h, one)
		}
		h.Step()
		_, _ = w.Write([]byte("{}"))
	})
	raw, err := json.Marshal(map[string]any{"Address": l.Addr().String(), "Paths": paths})
	require.NoError(t, err)
	fmt.Println(string(raw))
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the other process has ended
	_ = server.Close()
}

// measure waits until what connections left behind is collected.
func measure() figures {
	var m runtime.MemStats
	for range 4 { // a collection halves a stack that is too large
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return figures{m.HeapAlloc, m.StackInuse}
}

// quiet keeps the App's log from the other process.
type quiet struct{ *testing.T }

func (q quiet) Context() context.Context { return q.T.Context() }
