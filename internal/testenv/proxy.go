package testenv

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// quiet is how long a server says nothing when its answer is over.
const quiet = 50 * time.Millisecond

// Proxy stands between a client and a server and can lose an answer, or a client.
type Proxy struct {
	Address string

	mu    sync.Mutex
	armed []byte
	hold  bool
	cuts  int
}

// NewProxy listens on a port of its own and passes everything to target.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", address(FreePort(t)))
	if err != nil {
		t.Fatalf("testenv: proxy: %v", err)
	}
	p := &Proxy{Address: l.Addr().String()}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			go p.pass(client, server)
		}
	}()
	return p
}

// CutAfter loses the answer to the next request that contains word: the server
// gets it and answers, and when it has nothing more to say both lose their
// connection.
func (p *Proxy) CutAfter(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.hold = bytes.ToUpper([]byte(word)), false
}

// HoldAt keeps the next request that contains word from the server, and the
// connection open: as a client does that is stopped.
func (p *Proxy) HoldAt(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.hold = bytes.ToUpper([]byte(word)), true
}

// Cuts is how many requests were met that were waited for.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

func (p *Proxy) hit(request []byte) (cut, hold bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed == nil || !bytes.Contains(bytes.ToUpper(request), p.armed) {
		return false, false
	}
	p.armed = nil
	p.cuts++
	return !p.hold, p.hold
}

func (p *Proxy) pass(client, server net.Conn) {
	var mu sync.Mutex // held from a lost request on
	lost := false
	closeBoth := func() {
		_ = client.Close()
		_ = server.Close()
	}
	go func() {
		defer closeBoth()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			mu.Lock()
			gone := lost
			mu.Unlock()
			if gone { // the answer goes nowhere; it may come in parts
				for err == nil {
					_ = server.SetReadDeadline(time.Now().Add(quiet))
					_, err = server.Read(buf)
				}
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	defer closeBoth()
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		cut, hold := p.hit(buf[:n])
		if hold {
			_, _ = io.Copy(io.Discard, client)
			return
		}
		if cut {
			mu.Lock()
			lost = true
			mu.Unlock()
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
		if cut { // the other direction closes both when the answer comes
			_, _ = io.Copy(io.Discard, client)
			return
		}
	}
}
