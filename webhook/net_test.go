package webhook_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/webhook"
)

// The tests play a public receiver at 127.0.0.2, which they allow, and an
// internal service at 127.0.0.1, which they do not.
const (
	outside = "127.0.0.2"
	inside  = "127.0.0.1"
)

func allow(ips ...string) webhook.Guard {
	g := webhook.Guard{AllowHTTP: true}
	for _, ip := range ips {
		a := netip.MustParseAddr(ip)
		g.Allow = append(g.Allow, netip.PrefixFrom(a, a.BitLen()))
	}
	return g
}

// proxied counts what arrives at the proxy that the environment names.
var proxied atomic.Int64

func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { proxied.Add(1) }))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		_ = os.Setenv(name, proxy.URL)
	}
	os.Exit(m.Run())
}

// pair listens at one port of both addresses and counts what arrives inside.
func pair(t testing.TB, receiver http.Handler) (port string, leaked *atomic.Int64) {
	leaked = new(atomic.Int64)
	secretService := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) })
	for range 50 {
		in, err := net.Listen("tcp", inside+":0")
		require.NoError(t, err)
		_, port, _ = net.SplitHostPort(in.Addr().String())
		out, err := net.Listen("tcp", outside+":"+port)
		if err != nil {
			_ = in.Close()
			continue
		}
		serve(t, in, secretService)
		serve(t, out, receiver)
		return port, leaked
	}
	t.Fatal("no port is free at both addresses")
	return "", nil
}

func serve(t testing.TB, l net.Listener, h http.Handler) {
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	t.Cleanup(s.Close)
}

// names is a name server on loopback: query n for a name and type is answered
// by entry n of the list, the last one for ever. The TTL is 0.
type names struct {
	mu      sync.Mutex
	answers map[string][][]string // "host A" or "host AAAA"
	asked   map[string]int
	conn    net.PacketConn
}

func newNames(t testing.TB, answers map[string][][]string) *net.Resolver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	n := &names{answers: answers, asked: map[string]int{}, conn: conn}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.serve()
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (n *names) serve() {
	buf := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if a := n.answer(buf[:size]); a != nil {
			_, _ = n.conn.WriteTo(a, from)
		}
	}
}

func (n *names) answer(q []byte) []byte {
	var labels []string
	at := 12
	for at < len(q) && q[at] != 0 {
		labels = append(labels, string(q[at+1:at+1+int(q[at])]))
		at += 1 + int(q[at])
	}
	at++
	kind := map[uint16]string{1: "A", 28: "AAAA"}[binary.BigEndian.Uint16(q[at:])]
	key := strings.ToLower(strings.Join(labels, ".")) + " " + kind
	n.mu.Lock()
	list := n.answers[key]
	var ips []string
	if len(list) > 0 {
		ips = list[min(n.asked[key], len(list)-1)]
	}
	n.asked[key]++
	n.mu.Unlock()
	out := append([]byte{}, q[:2]...)
	out = append(out, 0x81, 0x80, 0, 1, 0, byte(len(ips)), 0, 0, 0, 0)
	out = append(out, q[12:at+4]...)
	for _, s := range ips {
		ip := netip.MustParseAddr(s).AsSlice()
		out = append(out, 0xc0, 12)
		out = append(out, q[at:at+4]...)
		out = append(out, 0, 0, 0, 0, 0, byte(len(ip)))
		out = append(out, ip...)
	}
	return out
}

func post(t testing.TB, n *webhook.HTTP, to string) webhook.Result {
	r := n.Notify(t.Context(), []webhook.Delivery{{URL: to, Body: []byte(`{"x":1}`)}})
	require.Len(t, r, 1)
	return r[0]
}

func newHTTP(t testing.TB, o webhook.HTTPOptions) *webhook.HTTP {
	n := webhook.NewHTTP(o)
	t.Cleanup(n.Close)
	return n
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func TestH02_DialIsChecked(t *testing.T) {
	t.Parallel()
	port, leaked := pair(t, http.HandlerFunc(ok))
	n := newHTTP(t, webhook.HTTPOptions{Guard: allow(outside), Resolver: newNames(t, map[string][][]string{
		"inside.test A": {{inside}}, "outside.test A": {{outside}}, "mapped.test AAAA": {{"::ffff:127.0.0.1"}},
		"meta.test A": {{"169.254.169.254"}}, "six.test AAAA": {{"::1", "fd00:ec2::254", "64:ff9b::7f00:1"}},
	})})
	require.NoError(t, post(t, n, "http://outside.test:"+port+"/").Err)
	for _, host := range []string{"inside.test", "mapped.test", "meta.test", "six.test", inside, "localhost"} {
		r := post(t, n, "http://"+host+":"+port+"/")
		require.Error(t, r.Err, host)
		require.Zero(t, r.Status, host)
		if host != "localhost" {
			require.ErrorIs(t, r.Err, webhook.ErrForbiddenAddress, host)
		}
	}
	require.Zero(t, leaked.Load())
}

// TestFS12_DeniedRangesAreNotDialed: a name that leads into a denied range is refused when the
// connection is made, also where the range is allowed.
func TestFS12_DeniedRangesAreNotDialed(t *testing.T) {
	t.Parallel()
	port, leaked := pair(t, http.HandlerFunc(ok))
	guard := allow(outside, inside)
	guard.Deny = []netip.Prefix{netip.MustParsePrefix(inside + "/32"), netip.MustParsePrefix("::1/128")}
	n := newHTTP(t, webhook.HTTPOptions{Guard: guard, Resolver: newNames(t, map[string][][]string{
		"inside.test A": {{inside}}, "outside.test A": {{outside}}, "mapped.test AAAA": {{"::ffff:" + inside}}, "six.test AAAA": {{"::1"}},
		"turns.test A": {{inside, outside}},
	})})
	for range 3 {
		require.NoError(t, post(t, n, "http://outside.test:"+port+"/").Err)
		require.NoError(t, post(t, n, "http://turns.test:"+port+"/").Err)
		for _, host := range []string{"inside.test", "mapped.test", "six.test"} {
			require.ErrorIs(t, post(t, n, "http://"+host+":"+port+"/").Err, webhook.ErrForbiddenAddress, host)
			require.ErrorIs(t, post(t, n, "https://"+host+":"+port+"/").Err, webhook.ErrForbiddenAddress, host)
		}
		require.ErrorIs(t, post(t, n, "http://"+inside+":"+port+"/").Err, webhook.ErrURL)
		n.Close()
	}
	require.Zero(t, leaked.Load())
}

func TestH03_Rebinding(t *testing.T) {
	t.Parallel()
	port, leaked := pair(t, http.HandlerFunc(ok))
	resolver := newNames(t, map[string][][]string{
		"rebind.test A": {{outside}, {inside}}, // first public, then private, TTL 0
		"mixed.test A":  {{outside}}, "mixed.test AAAA": {{"::1", "::ffff:127.0.0.1"}},
		"turns.test A": {{inside, outside}},
	})
	n := newHTTP(t, webhook.HTTPOptions{Guard: allow(outside), Resolver: resolver})
	require.NoError(t, post(t, n, "http://rebind.test:"+port+"/").Err)
	n.Close() // idle connections are gone: the name is asked again
	for range 3 {
		require.ErrorIs(t, post(t, n, "http://rebind.test:"+port+"/").Err, webhook.ErrForbiddenAddress)
	}
	for range 10 { // whichever address is tried first, only the public one is reached
		for _, host := range []string{"mixed.test", "turns.test"} {
			require.NoError(t, post(t, n, "http://"+host+":"+port+"/").Err, host)
			n.Close()
		}
	}
	require.Zero(t, leaked.Load())
}

func TestH04_RedirectsAreFailures(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	var port string
	var leaked *atomic.Int64
	port, leaked = pair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		q := r.URL.Query()
		var code int
		_, _ = fmt.Sscan(q.Get("code"), &code)
		w.Header().Set("Location", q.Get("to"))
		w.WriteHeader(code)
	}))
	n := newHTTP(t, webhook.HTTPOptions{Guard: allow(outside)})
	sent := 0
	for _, to := range []string{"http://" + inside + ":" + port + "/", "http://" + outside + ":" + port + "/?code=200", "/?code=200", "file:///etc/passwd", "http://169.254.169.254/"} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			r := post(t, n, fmt.Sprintf("http://%s:%s/?code=%d&to=%s", outside, port, code, url.QueryEscape(to)))
			require.Error(t, r.Err)
			require.Equal(t, code, r.Status)
			sent++
		}
	}
	require.EqualValues(t, sent, hits.Load(), "one request for each delivery")
	require.Zero(t, leaked.Load())
}

func TestH04_ProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	port, _ := pair(t, http.HandlerFunc(ok))
	n := newHTTP(t, webhook.HTTPOptions{Guard: allow(outside), Resolver: newNames(t, map[string][][]string{"receiver.test A": {{outside}}})})
	r := post(t, n, "http://receiver.test:"+port+"/")
	require.NoError(t, r.Err)
	require.Equal(t, http.StatusNoContent, r.Status)
	require.Zero(t, proxied.Load(), "a proxy would connect where we do not look")
}

// TestH04_StoredURLIsCheckedAgain: a row that was edited, or stored under rules
// that were wider, is not sent.
func TestH04_StoredURLIsCheckedAgain(t *testing.T) {
	t.Parallel()
	port, _ := pair(t, http.HandlerFunc(ok))
	g := allow(outside)
	g.AllowHTTP = false
	n := newHTTP(t, webhook.HTTPOptions{Guard: g, Resolver: newNames(t, map[string][][]string{"receiver.test A": {{outside}}})})
	for _, u := range []string{"http://receiver.test:" + port + "/", "http://" + outside + ":" + port + "/", "ftp://example.com/", "https://u:p@" + outside + ":" + port + "/", ":", "https://" + inside + "/"} {
		r := post(t, n, u)
		require.ErrorIs(t, r.Err, webhook.ErrURL, u)
		require.Zero(t, r.Status)
	}
}

func TestNotify_OrderAndBound(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	release := make(chan struct{})
	four := sync.OnceFunc(func() { close(release) })
	port, _ := pair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == 4 {
			four()
		}
		<-release
		b, _ := io.ReadAll(r.Body)
		var code int
		_, _ = fmt.Sscan(string(b), &code)
		w.WriteHeader(code)
	}))
	n := newHTTP(t, webhook.HTTPOptions{Guard: allow(outside), Parallel: 4})
	var ds []webhook.Delivery
	for i := range 40 {
		ds = append(ds, webhook.Delivery{URL: "http://" + outside + ":" + port + "/", Body: []byte(fmt.Sprint(200 + i%2*300))})
	}
	for i, r := range n.Notify(t.Context(), ds) {
		require.Equal(t, 200+i%2*300, r.Status, i)
		require.Equal(t, i%2 == 0, r.Err == nil, i)
		require.Positive(t, r.Duration)
	}
	require.EqualValues(t, 4, most.Load())
	require.Empty(t, n.Notify(t.Context(), nil))
}

// raw listens at the public address, reads one request and hands the connection
// to what answers.
func raw(t testing.TB, answer func(c net.Conn)) (base string) {
	l, err := net.Listen("tcp", outside+":0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close() //nolint:errcheck // it is a test's end of it
				if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.Copy(io.Discard, req.Body)
					answer(c)
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return "http://" + l.Addr().String() + "/"
}
