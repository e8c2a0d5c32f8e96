package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cryptopay-go/cryptopay/internal/safehttp"
)

// Delivery is one attempt to tell of one event: the bytes are final.
type Delivery struct {
	// Tenant is the merchant whose event it is, Type the event's type, such as
	// PaymentStatusUpdate.
	Tenant string
	Type   string
	// Object names what the event is about, across tenants. Deliveries of one
	// Object stand together, in the order in which a Notifier should make them;
	// "" = on its own.
	Object string
	// URL is the merchant's receiver; "" = the merchant has none for this event.
	URL    string
	Header http.Header // signatures, id and attempt
	Body   []byte
}

// Result is what came of an attempt. Err is nil exactly for a 2xx.
type Result struct {
	Status   int // HTTP status, 0 where there was no answer
	Err      error
	Duration time.Duration
}

// ErrNoURL is a Notifier's answer to a Delivery that it has no use for, because
// the merchant has no URL. The event is then skipped: it is no attempt, and is
// not tried again.
var ErrNoURL = errors.New("webhook: the merchant has no URL for this event")

// Notifier delivers events. A host sets one of its own to hear every event of
// every tenant, and then delivers to merchants itself, or by an HTTP that it
// keeps. It gets:
//
//   - an event whose payment, withdrawal or transfer has a callback URL: with
//     that URL, whatever the merchant's enabled_events say;
//   - an event that the merchant's settings have a URL for, and whose type is in
//     enabled_events: with that URL;
//   - any other event: with an empty URL. No merchant is to be told of it. nil
//     makes it delivered, any error has it tried again by the usual schedule,
//     and ErrNoURL, which HTTP answers, makes it skipped.
//
// enabled_events therefore filter what a merchant gets, not what the host hears.
//
// Result i belongs to delivery i. A Notifier neither retries nor follows
// redirects. It may be called concurrently. It must return when the context
// ends: until it does, it holds a slot of that tenant.
type Notifier interface {
	Notify(ctx context.Context, deliveries []Delivery) []Result
}

// HTTP is the Notifier that posts over the network. Its transport is its own:
// no proxy of the environment, no redirects, no decompression, TLS 1.2 or newer
// with verified certificates, and every connection checked by the Guard at the
// moment it is made. A delivery without a URL is ErrNoURL.
type HTTP struct {
	transport *safehttp.Transport
	parallel  int
	agent     string
	guard     Guard
	now       func() time.Time
}

// HTTPOptions refine an HTTP notifier; the zero value is safe.
type HTTPOptions struct {
	Guard Guard
	// Timeout bounds one attempt from name resolution to the last byte read,
	// whatever the receiver does. Defaults to 15 s.
	Timeout time.Duration
	// Parallel bounds the attempts of one Notify in flight. Defaults to 32.
	Parallel int
	// UserAgent defaults to "cryptopay".
	UserAgent string
	// Resolver defaults to Go's.
	Resolver *net.Resolver
	// TLS gives TLS settings, for receivers behind a private authority. A copy is
	// used that verifies certificates and speaks TLS 1.2 or newer, whatever it
	// says of that.
	TLS *tls.Config
	// Now measures durations. Defaults to the wall clock.
	Now func() time.Time
}

// What is read of an answer at most.
const (
	maxAnswer = 4 << 10
	maxHeader = 16 << 10
	// The size of net/http's own buffer, the least that there is: see receiverConn.
	readAhead = 16
)

// NewHTTP makes an HTTP notifier.
func NewHTTP(o HTTPOptions) *HTTP {
	if o.Timeout == 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Parallel == 0 {
		o.Parallel = 32
	}
	if o.UserAgent == "" {
		o.UserAgent = "cryptopay"
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		settings = o.TLS.Clone()
		settings.MinVersion, settings.InsecureSkipVerify = max(settings.MinVersion, tls.VersionTLS12), false
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	guard := o.Guard
	dial := &dialing{settings: settings, timeout: o.Timeout, Dialer: &net.Dialer{Timeout: o.Timeout, Resolver: o.Resolver, Control: func(network, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return fmt.Errorf("%w: %s %s", ErrForbiddenAddress, network, address)
		}
		return guard.Address(to.Addr())
	}}}
	base := &http.Transport{
		Proxy: nil, DialContext: dial.plain, DialTLSContext: dial.secure,
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader, ResponseHeaderTimeout: o.Timeout,
		MaxIdleConns: 4 * o.Parallel, MaxIdleConnsPerHost: o.Parallel,
		IdleConnTimeout: 90 * time.Second, ExpectContinueTimeout: time.Second,
		ReadBufferSize: readAhead,
	}
	return &HTTP{
		transport: &safehttp.Transport{Base: base, Timeout: o.Timeout},
		parallel:  o.Parallel, agent: o.UserAgent, guard: guard, now: o.Now,
	}
}

// Notify posts all deliveries, at most Parallel at a time, those of one object
// one after the other.
func (n *HTTP) Notify(ctx context.Context, deliveries []Delivery) []Result {
	results := make([]Result, len(deliveries))
	if len(deliveries) == 1 {
		results[0] = n.post(ctx, &deliveries[0])
		return results
	}
	// Few workers that take one after the other: a goroutine for each delivery
	// would grow its stack anew each time.
	var g errgroup.Group
	var next atomic.Int64
	first := func(i int64) bool {
		return i == 0 || deliveries[i].Object == "" || deliveries[i].Object != deliveries[i-1].Object
	}
	for range min(n.parallel, len(deliveries)) {
		g.Go(func() error {
			for i := next.Add(1) - 1; i < int64(len(deliveries)); i = next.Add(1) - 1 {
				if !first(i) {
					continue // whoever has the object's first goes on with it
				}
				results[i] = n.post(ctx, &deliveries[i])
				for k := i + 1; k < int64(len(deliveries)) && !first(k); k++ {
					results[k] = n.post(ctx, &deliveries[k])
				}
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return no error
	return results
}

// Close drops idle connections.
func (n *HTTP) Close() { n.transport.CloseIdleConnections() }

func (n *HTTP) post(ctx context.Context, d *Delivery) (r Result) {
	start := n.now()
	defer func() { r.Duration = n.now().Sub(start) }()
	if d.URL == "" {
		return Result{Err: ErrNoURL}
	}
	// Checked again although it was when it was stored: rules change, rows are edited.
	u, err := n.guard.parse(d.URL)
	if err != nil {
		return Result{Err: err}
	}
	header := make(http.Header, len(d.Header)+2)
	maps.Copy(header, d.Header) // its values are only read
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", n.agent)
	req := (&http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(d.Body)), ContentLength: int64(len(d.Body)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(d.Body)), nil },
	}).WithContext(traced(ctx))
	// RoundTrip, not Client.Do: an answer is taken as it is, redirects included.
	resp, err := n.transport.RoundTrip(req)
	if err != nil {
		r := Result{Err: fmt.Errorf("webhook: not delivered: %w", err)}
		var informational *safehttp.StatusError
		if errors.As(err, &informational) {
			r.Status = informational.Status
		}
		return r
	}
	defer resp.Body.Close() //nolint:errcheck // nothing of it is wanted any more
	// The status says it all. A short body is read so that the connection can be
	// used again; how it ends is of no interest.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return Result{Status: resp.StatusCode, Err: fmt.Errorf("webhook: the receiver answered %d", resp.StatusCode)}
	}
	return Result{Status: resp.StatusCode}
}
