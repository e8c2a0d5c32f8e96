package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// behindServer makes a world behind a real server without any timeout of its own.
func behindServer(t *testing.T, timeout time.Duration) (*world, *httptest.Server) {
	t.Helper()
	w := newWorld(t, unlimited, func(s *setup) {
		inner := s.options
		s.options = func(o *httpapi.Options) {
			inner(o)
			o.Timeout = timeout
		}
	})
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close)
	return w, server
}

// raw speaks to a server by hand.
func raw(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

func (w *world) head(path string, more ...string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.token + "\r\nContent-Type: application/json\r\n" + strings.Join(more, "\r\n") + "\r\n\r\n"
}

// TestI05_SlowBodiesEnd: a body that never comes ends the request at its
// deadline, on a server without timeouts.
func TestI05_SlowBodiesEnd(t *testing.T) {
	t.Parallel()
	w, server := behindServer(t, 150*time.Millisecond)
	for name, start := range map[string]string{
		"promised, never sent": w.head("/payments/", "Content-Length: 50"),
		"begun":                w.head("/payments/", "Content-Length: 50") + `{"amount":`,
		"chunk never ends":     w.head("/payments/", "Transfer-Encoding: chunked") + "5\r\n{\"am",
	} {
		t.Run(name, func(t *testing.T) {
			c := raw(t, server)
			_, err := io.WriteString(c, start)
			require.NoError(t, err)
			answer, err := io.ReadAll(c) // until the server closes
			require.NoError(t, err, "the connection was not closed")
			status, _, _ := strings.Cut(string(answer), "\r\n")
			require.Contains(t, []string{"HTTP/1.1 408 Request Timeout", "HTTP/1.1 503 Service Unavailable"}, status)
			require.NotContains(t, string(answer), "i/o timeout")
		})
	}
}

// TestI05_LargeBodies: 413 as soon as the limit is passed, however it is sent.
func TestI05_LargeBodies(t *testing.T) {
	t.Parallel()
	w, server := behindServer(t, 5*time.Second)
	t.Run("announced", func(t *testing.T) {
		c := raw(t, server)
		_, err := io.WriteString(c, w.head("/payments/", "Content-Length: 1048577"))
		require.NoError(t, err)
		go func() { _, _ = c.Write(bytes.Repeat([]byte(" "), 1048577)) }()
		require.Equal(t, http.StatusRequestEntityTooLarge, readStatus(t, c))
	})
	t.Run("chunked", func(t *testing.T) {
		c := raw(t, server)
		_, err := io.WriteString(c, w.head("/payments/", "Transfer-Encoding: chunked"))
		require.NoError(t, err)
		go func() {
			for range 40 {
				if _, err := fmt.Fprintf(c, "10000\r\n%s\r\n", bytes.Repeat([]byte(" "), 1<<16)); err != nil {
					return
				}
			}
		}()
		require.Equal(t, http.StatusRequestEntityTooLarge, readStatus(t, c))
	})
	// In the handler alone, with the form that the document promises.
	a := w.do("POST", "/payments/", `{"x":"`+strings.Repeat("a", 1<<20)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, a.Status)
	require.Equal(t, "invalid_request", a.code())
	a = w.do("POST", "/o/token/", "grant_type="+strings.Repeat("a", 1<<20), nobody(), header("Content-Type", "application/x-www-form-urlencoded"))
	require.Equal(t, http.StatusRequestEntityTooLarge, a.Status)
}

func readStatus(t *testing.T, c net.Conn) int {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer res.Body.Close()
	return res.StatusCode
}

// TestI05_SilenceIsNoSuccess: who ended his half of the connection, so that the
// request was given up, is not told 200 by an empty answer.
func TestI05_SilenceIsNoSuccess(t *testing.T) {
	t.Parallel()
	f, with := newFaulty()
	w := newWorld(t, with, unlimited)
	f.set(func(string, []storage.Change) error { return context.Canceled }, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/payments/", strings.NewReader(`{"amount":"5","currency":"USDTERC20"}`))
	r.Header.Set("Authorization", "Bearer "+w.token)
	a := w.send(r)
	require.Equal(t, http.StatusServiceUnavailable, a.Status)
	require.Equal(t, "server_error", a.code())
}

// TestI05_DeadlinesStayOurs: on one connection, the deadlines of a request here
// do not cut a later answer of the host's own handler.
func TestI05_DeadlinesStayOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) {
		s.options = func(o *httpapi.Options) { o.Timeout = time.Nanosecond } // and 5 s of grace to write
	})
	seen := &deadlines{}
	mux := http.NewServeMux()
	mux.Handle("/", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.api.ServeHTTP(seen.watch(rw), r)
	}))
	server := httptest.NewServer(mux)
	defer server.Close()
	res, err := server.Client().Get(server.URL + "/status/")
	require.NoError(t, err)
	res.Body.Close()
	server.Close() // returns when the handler has
	require.NotEmpty(t, seen.write)
	require.True(t, seen.write[len(seen.write)-1].IsZero(), "the deadline to write is lifted at the end")
}

// deadlines remembers what was set on a connection.
type deadlines struct {
	http.ResponseWriter
	write []time.Time
}

func (d *deadlines) watch(w http.ResponseWriter) *deadlines { d.ResponseWriter = w; return d }

func (d *deadlines) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.write = append(d.write, at)
	return nil
}

// faulty is a store that breaks down on demand.
type faulty struct {
	storage.Store
	mu     sync.Mutex
	before func(call string, changes []storage.Change) error // asked before each call
	after  func(call string, changes []storage.Change) error // asked after a commit that happened
}

func (f *faulty) set(before, after func(string, []storage.Change) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

func (f *faulty) hooks() (before, after func(string, []storage.Change) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.before, f.after
}

func (f *faulty) ask(call string, changes ...storage.Change) error {
	before, _ := f.hooks()
	if before == nil {
		return nil
	}
	return before(call, changes)
}

func (f *faulty) Commit(ctx context.Context, changes ...storage.Change) []error {
	if err := f.ask("Commit", changes...); err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	out := f.Store.Commit(ctx, changes...)
	if _, after := f.hooks(); after != nil {
		if err := after("Commit", changes); err != nil {
			return slices.Repeat([]error{err}, len(changes))
		}
	}
	return out
}

func (f *faulty) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if err := f.ask("Rows " + t.Name); err != nil {
		return nil, err
	}
	return f.Store.Rows(ctx, t, keys...)
}

func (f *faulty) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if err := f.ask("Find " + q.Table.Name); err != nil {
		return nil, err
	}
	return f.Store.Find(ctx, q)
}

func (f *faulty) Count(ctx context.Context, q storage.Query) (int64, error) {
	if err := f.ask("Count " + q.Table.Name); err != nil {
		return 0, err
	}
	return f.Store.Count(ctx, q)
}

func newFaulty() (*faulty, func(*setup)) {
	f := &faulty{Store: memory.New()}
	return f, func(s *setup) { s.store = f }
}

const canary = "pq: duplicate key in postgres://root:hunter2@10.0.0.7/db"

// TestI06_BreakdownsTellNothing: wherever the store panics or fails, the answer
// is 500 (or 503) with a request id and nothing of the cause, and the log has it.
func TestI06_BreakdownsTellNothing(t *testing.T) {
	t.Parallel()
	f, with := newFaulty()
	var log bytes.Buffer
	w := newWorld(t, unlimited, with, func(s *setup) {
		inner := s.options
		s.options = func(o *httpapi.Options) {
			inner(o)
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
		}
	})
	for _, r := range w.routes() {
		if r.Access == httpapi.Public {
			continue
		}
		for _, fault := range []struct {
			name string
			fail func() error
		}{
			{"panic", func() error { panic(canary) }},
			{"error", func() error { return errors.New(canary) }},
		} {
			body := any(w.sample(r))
			if r.Method == http.MethodGet {
				body = nil
			}
			if r.Style == httpapi.OAuth {
				form := tokenFor(w.admin)
				form.Set("token", "cpt_x")
				body = form
			}
			path := place(r.Path, nil) + w.contract.sampleQuery(r)
			// At the store's first call, and then at the second, and so on, until one
			// gets through.
			for depth := 0; depth < 12; depth++ {
				calls := 0
				f.set(func(string, []storage.Change) error {
					if calls++; calls > depth {
						return fault.fail()
					}
					return nil
				}, nil)
				log.Reset()
				a := w.do(r.Method, path, body, header("X-Request-Id", "the-request"))
				f.set(nil, nil)
				if calls <= depth {
					break
				}
				what := fmt.Sprintf("%s with %s at call %d: %s", r.Name, fault.name, depth, a.Raw)
				require.NotContains(t, a.Raw, "hunter2", what)
				require.NotContains(t, a.Raw, "goroutine", what)
				if a.Status < 500 {
					continue // it did without
				}
				require.Contains(t, []int{500, 503}, a.Status, what)
				if r.Style == httpapi.Standard || r.Style == httpapi.Classic {
					require.Equal(t, "the-request", a.at("error", "details", "request_id"), what)
				}
				require.Contains(t, log.String(), "the-request", what)
			}
		}
	}
}
