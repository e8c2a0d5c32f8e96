package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// receiverConn is a connection to a receiver that ends where the receiver sends something that was not asked
// for. net/http would write the beginning of it into Go's default logger, which is the host's. So net/http gets
// an answer byte by byte up to its end, and nothing behind it.
type receiverConn struct {
	net.Conn
	ahead *bufio.Reader // of Conn
	taken atomic.Bool   // a request has taken the connection, and has not written to it yet
	asked atomic.Int64  // requests that have begun to write, less answers that were read to their end
}

// aheadSize is the size of a receiverConn's own buffer.
const aheadSize = 1 << 10

func newReceiverConn(c net.Conn) *receiverConn {
	return &receiverConn{Conn: c, ahead: bufio.NewReaderSize(c, aheadSize)}
}

// Write sends a part of a request.
func (c *receiverConn) Write(p []byte) (int, error) {
	if c.taken.Swap(false) {
		c.asked.Add(1)
	}
	return c.Conn.Write(p)
}

// Read reads a part of an answer. A read into net/http's buffer, which has readAhead bytes, gets one byte,
// because only net/http knows where the answer ends. Longer reads are of a body and end with it.
func (c *receiverConn) Read(p []byte) (int, error) {
	if len(p) > 1 && len(p) <= readAhead {
		p = p[:1]
	}
	if _, err := c.ahead.Peek(1); err != nil {
		return 0, err
	}
	if c.asked.Load() <= 0 {
		return 0, io.EOF // net/http closes the connection, and before that gives it to no request
	}
	return c.ahead.Read(p)
}

// traced returns a context whose request tells its receiverConn when it takes the connection, and when the
// answer was read to its end. net/http says the latter before it reads on.
func traced(ctx context.Context) context.Context {
	var conn *receiverConn
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if conn, _ = info.Conn.(*receiverConn); conn != nil {
				conn.taken.Store(true)
			}
		},
		PutIdleConn: func(err error) {
			if err == nil && conn != nil {
				conn.asked.Add(-1)
			}
		},
	})
}

// dialing makes connections to receivers, for http and for https.
type dialing struct {
	*net.Dialer
	settings *tls.Config
	timeout  time.Duration // of a handshake
}

func (d *dialing) plain(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return newReceiverConn(c), nil
}

func (d *dialing) secure(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	settings := d.settings.Clone()
	if settings.ServerName == "" {
		settings.ServerName, _, _ = net.SplitHostPort(address) // it was dialed
	}
	c := tls.Client(raw, settings)
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return newReceiverConn(c), nil
}
