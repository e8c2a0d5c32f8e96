// Package safehttp makes HTTP requests to peers that may be broken or hostile:
// nodes, price sources and receivers of webhooks.
//
// It promises: an exchange ends when its time is over, whatever the peer does
// and whatever http.Client the host gave; the body of an informational answer
// (1xx) is never read. After "101 Switching Protocols" net/http gives the raw
// socket as the body, and neither a context nor a client's timeout ends a read
// of it.
package safehttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// StatusError reports that a peer's final answer was informational (1xx).
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return fmt.Sprintf("the peer answered %d %s to a request that asks for no such thing", e.Status, http.StatusText(e.Status))
}

// Transport bounds the exchanges of another one. It may be used concurrently.
type Transport struct {
	// Base does the exchanges. Required.
	Base http.RoundTripper
	// Timeout bounds an exchange, from name resolution to the last byte of the
	// body. Required.
	Timeout time.Duration
}

// RoundTrip does one exchange. When the time is over, or the request's context
// ends, the connection of an answer that was not read to its end is closed. An
// informational answer is a *StatusError.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), t.Timeout)
	resp, err := t.Base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	if resp.StatusCode < http.StatusOK {
		cancel()
		_ = resp.Body.Close() // it is the socket
		return nil, &StatusError{resp.StatusCode}
	}
	b := &body{ReadCloser: resp.Body, ctx: ctx, cancel: cancel}
	b.stop = context.AfterFunc(ctx, func() { _ = b.ReadCloser.Close() })
	resp.Body = b
	return resp, nil
}

// CloseIdleConnections closes those of Base.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// body is an answer's body that ends with the exchange's context.
type body struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc
	stop   func() bool
}

// Read names the context's error where the context closed the body.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = b.ctx.Err()
	}
	return n, err
}

// Close ends the exchange.
func (b *body) Close() error {
	b.stop()
	err := b.ReadCloser.Close()
	b.cancel()
	return err
}

// Client returns a copy of a client whose exchanges are bounded by its own
// Timeout, or by timeout where it has none. One that is bounded already is
// returned as it is.
func Client(c *http.Client, timeout time.Duration) *http.Client {
	if _, ok := c.Transport.(*Transport); ok {
		return c
	}
	own := *c
	if own.Timeout > 0 {
		timeout = own.Timeout
	}
	base := own.Transport
	if base == nil {
		base = http.DefaultTransport //nolint:forbidigo // the host's own client says so
	}
	own.Transport, own.Timeout = &Transport{Base: base, Timeout: timeout}, 0
	return &own
}

// NewClient makes a client of a transport of its own: conns idle connections to
// a peer are kept, an exchange takes at most timeout, redirects are not followed.
// Nothing of the environment or of http.DefaultTransport is in it.
func NewClient(conns int, timeout time.Duration) *http.Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return Client(&http.Client{CheckRedirect: stay, Transport: &http.Transport{
		DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
		MaxIdleConnsPerHost: conns, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second,
		MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true,
		// A connection that is dead without a word is found and closed.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}}, timeout)
}

// maxHeader is the most that is read of an answer's header, in bytes.
const maxHeader = 64 << 10
