package webhook_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/webhook"
)

// What a receiver may cost us is bounded: in these tests half a second, with
// room for a busy machine.
const (
	patience = 500 * time.Millisecond
	tooLong  = 10 * time.Second
)

func hostile(t *testing.T, answer func(net.Conn)) (webhook.Result, time.Duration) {
	base := raw(t, answer)
	n := newHTTP(t, webhook.HTTPOptions{Guard: allow(outside), Timeout: patience})
	start := time.Now()
	r := post(t, n, base)
	took := time.Since(start)
	require.Less(t, took, tooLong)
	return r, took
}

// drip writes a byte at a time until the other side has had enough.
func drip(c net.Conn, b byte) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := c.Write([]byte{b}); err != nil {
			return
		}
	}
}

func TestH05_NoAnswer(t *testing.T) {
	t.Parallel()
	r, _ := hostile(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	require.Error(t, r.Err)
	require.Zero(t, r.Status)
}

func TestH05_SlowDrip(t *testing.T) {
	t.Parallel()
	t.Run("header", func(t *testing.T) {
		t.Parallel()
		r, _ := hostile(t, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Slow: ")
			drip(c, 'a')
		})
		require.Error(t, r.Err)
		require.Zero(t, r.Status)
	})
	t.Run("body", func(t *testing.T) {
		t.Parallel()
		r, _ := hostile(t, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
			drip(c, 'a')
		})
		require.NoError(t, r.Err) // 2xx is success, whatever follows
		require.Equal(t, 200, r.Status)
	})
}

// TestH05_EndlessBody: 4 KiB are read, and what the kernel buffered is thrown
// away with the connection.
func TestH05_EndlessBody(t *testing.T) {
	t.Parallel()
	for _, code := range []int{200, 500} {
		written := make(chan int64, 1)
		r, _ := hostile(t, func(c net.Conn) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 %d X\r\nTransfer-Encoding: chunked\r\n\r\n", code)
			chunk := []byte("10000\r\n" + strings.Repeat("a", 0x10000) + "\r\n")
			var sum int64
			for {
				n, err := c.Write(chunk)
				if sum += int64(n); err != nil {
					written <- sum
					return
				}
			}
		})
		require.Equal(t, code, r.Status)
		require.Equal(t, code == 200, r.Err == nil)
		require.Less(t, <-written, int64(32<<20))
	}
}

// TestH05_ConnectionEndsWithTheAttempt: whoever answers more than is read loses the
// connection at once, not at the end of the Timeout: a busy receiver must not hold thousands.
func TestH05_ConnectionEndsWithTheAttempt(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	base := raw(t, func(c net.Conn) {
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n%s", strings.Repeat("a", 8<<10))
		_, err := io.Copy(io.Discard, c) // until the other side hangs up
		ended <- err
	})
	n := newHTTP(t, webhook.HTTPOptions{Guard: allow(outside), Timeout: time.Hour})
	require.Equal(t, 200, post(t, n, base).Status)
	select {
	case <-ended:
	case <-time.After(tooLong):
		t.Fatal("the connection is still open")
	}
}

// TestH05_ConnectionIsNotKept: after more than was read the connection is not
// used again, so that one answer's rest cannot be the next one's start.
func TestH05_ConnectionIsNotKept(t *testing.T) {
	t.Parallel()
	var conns atomic.Int64
	big := strings.Repeat("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1000)
	base := raw(t, func(c net.Conn) {
		conns.Add(1)
		_, _ = fmt.Fprintf(c, "HTTP/1.1 500 X\r\nContent-Length: %d\r\n\r\n%s", len(big), big)
		_, _ = io.Copy(io.Discard, c)
	})
	n := newHTTP(t, webhook.HTTPOptions{Guard: allow(outside), Timeout: 5 * time.Second})
	for i := range 3 {
		require.Equal(t, 500, post(t, n, base).Status)
		require.EqualValues(t, i+1, conns.Load())
	}
}

func TestH05_GzipBomb(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z, err := gzip.NewWriterLevel(&bomb, gzip.BestCompression)
	require.NoError(t, err)
	zeros := make([]byte, 1<<20)
	for range 64 {
		_, err = z.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	var accepts atomic.Value
	port, _ := pair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepts.Store(r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	}))
	n := newHTTP(t, webhook.HTTPOptions{Guard: allow(outside), Timeout: 5 * time.Second})
	require.Equal(t, 200, post(t, n, "http://"+outside+":"+port+"/").Status)
	require.Empty(t, accepts.Load(), "we must not ask for what we would have to unpack")
}

func TestH05_HeaderFlood(t *testing.T) {
	t.Parallel()
	t.Run("one big", func(t *testing.T) {
		t.Parallel()
		r, _ := hostile(t, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("a", 64<<10)+"\r\nContent-Length: 0\r\n\r\n")
		})
		require.Error(t, r.Err)
		require.Zero(t, r.Status)
	})
	t.Run("many", func(t *testing.T) {
		t.Parallel()
		r, _ := hostile(t, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for {
				if _, err := io.WriteString(c, "X-Flood: "+strings.Repeat("a", 1000)+"\r\n"); err != nil {
					return
				}
			}
		})
		require.Error(t, r.Err)
		require.Zero(t, r.Status)
	})
	t.Run("hundreds of 1xx", func(t *testing.T) {
		t.Parallel()
		r, _ := hostile(t, func(c net.Conn) {
			for {
				if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"); err != nil {
					return
				}
			}
		})
		require.Error(t, r.Err)
		require.Zero(t, r.Status)
	})
}

func TestH05_BrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"", "\x00\x01\x02", "HTTP/1.1", "HTTP/1.1 OK\r\n\r\n", "HTTP/1.1 9999 X\r\n\r\n", "HTTP/1.1 -20 X\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon \x00\xff\r\n\r\n",
		"SSH-2.0-OpenSSH_9\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n",
	} {
		r, _ := hostile(t, func(c net.Conn) { _, _ = io.WriteString(c, answer) })
		require.Error(t, r.Err, "%q", answer)
	}
}

func TestH05_TLS(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, c *tls.Config) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(ok))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.TLS = c
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	roots := func(s *httptest.Server) *x509.CertPool {
		p := x509.NewCertPool()
		p.AddCert(s.Certificate())
		return p
	}
	good := start(t, &tls.Config{MinVersion: tls.VersionTLS12})
	old := start(t, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}) //nolint:gosec // what is to be refused
	for name, c := range map[string]struct {
		to   string
		tls  *tls.Config
		fine bool
	}{
		"known authority":         {good.URL, &tls.Config{RootCAs: roots(good)}, true},
		"unknown authority":       {good.URL, nil, false},
		"told not to verify":      {good.URL, &tls.Config{InsecureSkipVerify: true}, false}, //nolint:gosec // what is to be refused
		"another name":            {strings.Replace(good.URL, inside, "[::1]", 1), &tls.Config{RootCAs: roots(good), ServerName: "other.test"}, false},
		"TLS 1.1":                 {old.URL, &tls.Config{RootCAs: roots(old)}, false},
		"TLS 1.1, told to accept": {old.URL, &tls.Config{RootCAs: roots(old), MinVersion: tls.VersionTLS10}, false}, //nolint:gosec // what is to be refused
		"no TLS at all":           {strings.Replace(good.URL, "https:", "http:", 1), nil, false},
	} {
		g := allow(inside, "::1")
		n := newHTTP(t, webhook.HTTPOptions{Guard: g, TLS: c.tls, Timeout: 5 * time.Second})
		r := post(t, n, c.to)
		require.Equal(t, c.fine, r.Err == nil, "%s: %v", name, r.Err)
	}
}

// TestFS12_DefaultLogger: nothing that a receiver sends unasked reaches Go's default logger, and
// receivers that send no such thing keep their connection.
func TestFS12_DefaultLogger(t *testing.T) { //nolint:paralleltest // the logger is everybody's
	var mu sync.Mutex
	var said bytes.Buffer
	log.SetOutput(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return said.Write(p)
	}))
	defer log.SetOutput(os.Stderr)
	const forged = "payment 12345 was approved by the operator"
	authority := httptest.NewTLSServer(nil)
	defer authority.Close()
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate())
	answers := map[string]string{
		"no body":    "HTTP/1.1 204 No Content\r\n\r\n",
		"empty body": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"short body": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"16 bytes":   "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n0123456789abcdef",
		"long body":  "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("a", 1000),
		"chunks":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n20\r\n" + strings.Repeat("b", 32) + "\r\n0\r\n\r\n",
		"interim":    "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	}
	for _, scheme := range []string{"http", "https"} {
		for name, answer := range answers {
			for _, unasked := range []string{"", "with the answer", "when idle", "before the request"} {
				t.Run(scheme+"/"+name+"/"+unasked, func(t *testing.T) {
					var conns atomic.Int64
					idle := make(chan struct{}, 4)
					l, err := net.Listen("tcp", outside+":0")
					require.NoError(t, err)
					var wg sync.WaitGroup
					serve := func(c net.Conn) {
						defer c.Close() //nolint:errcheck // it is a test's end of it
						if scheme == "https" {
							c = tls.Server(c, authority.TLS)
						}
						if unasked == "before the request" {
							_, _ = io.WriteString(c, forged)
						}
						r := bufio.NewReader(c)
						for n := 0; ; n++ {
							req, err := http.ReadRequest(r)
							if err != nil {
								return
							}
							_, _ = io.Copy(io.Discard, req.Body)
							out := answer
							if unasked == "with the answer" {
								out += forged
							}
							if _, err = io.WriteString(c, out); err != nil {
								return
							}
							if unasked == "when idle" {
								<-idle
								_, _ = io.WriteString(c, forged)
							}
							if unasked != "" {
								_, _ = io.Copy(io.Discard, c) // until the sender has had enough of it
								return
							}
						}
					}
					gone := make(chan struct{}, 8)
					wg.Go(func() {
						for {
							c, err := l.Accept()
							if err != nil {
								return
							}
							conns.Add(1)
							wg.Go(func() {
								serve(c)
								gone <- struct{}{}
							})
						}
					})
					n := newHTTP(t, webhook.HTTPOptions{Guard: allow(outside), Timeout: 5 * time.Second, TLS: &tls.Config{RootCAs: roots, ServerName: "example.com"}})
					defer func() { n.Close(); _ = l.Close(); wg.Wait() }()
					base := scheme + "://" + l.Addr().String() + "/"
					body := bytes.Repeat([]byte("x"), 20<<10) // it is written in parts
					post := func() error { return n.Notify(t.Context(), []webhook.Delivery{{URL: base, Body: body}})[0].Err }
					if unasked == "before the request" {
						require.Error(t, post())
					} else {
						for range 3 {
							require.NoError(t, post())
							if unasked != "" {
								idle <- struct{}{}
								<-gone
							}
						}
						want := int64(1)
						if unasked != "" {
							want = 3
						}
						require.Equal(t, want, conns.Load(), "connections for three deliveries")
					}
				})
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, said.String())
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
