package redisstore_test

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a client and a server that can be changed, and can keep
// answers from arriving.
type proxy struct {
	address string

	mu     sync.Mutex
	target string
	cut    int // so many answers from now one is not passed on, and its connection ends; 0 = none
	conns  []net.Conn
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{address: l.Addr().String(), target: target}
	t.Cleanup(func() {
		_ = l.Close()
		p.drop()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.conns = append(p.conns, c, server)
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(server, c)
		_ = server.Close()
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		cut := p.cut == 1
		p.cut = max(0, p.cut-1)
		p.mu.Unlock()
		if cut {
			return
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

// cutNext loses the next answer.
func (p *proxy) cutNext() { p.cutAt(1) }

// cutAt loses the n-th answer from now, and reports how many were still to come until
// the one that an earlier call named.
func (p *proxy) cutAt(n int) (left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left, p.cut = p.cut, n
	return left
}

// drop ends all connections.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// lead makes new connections end at another server, and drops the old ones.
func (p *proxy) lead(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	p.drop()
}
