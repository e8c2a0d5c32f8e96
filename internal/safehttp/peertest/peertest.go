// Package peertest plays HTTP peers that never end an exchange, for the tests of
// everything that makes requests.
package peertest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Answer is what a peer does with a connection after it has read a request. It
// returns when the other side has hung up.
type Answer func(net.Conn)

// Endless are the ways not to end. None of them hangs up by itself.
func Endless() map[string]Answer {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	return map[string]Answer{
		"silence":               after(""),
		"half a status line":    after("HTTP/1.1 2"),
		"silence after headers": after(ok + "Content-Length: 5\r\n\r\n"),
		"101 and silence":       after("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
		"101 without a word":    after("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
		"101 and a drip":        drip("HTTP/1.1 101 Switching Protocols\r\n\r\n", "x"),
		"101 and a flood":       flood("HTTP/1.1 101 Switching Protocols\r\n\r\n", strings.Repeat("x", 32<<10)),
		"a drip of a header":    drip("HTTP/1.1 200 OK\r\nX: ", "x"),
		"a drip of a body":      drip(ok+"Content-Length: 1000000\r\n\r\n", " "),
		"a drip of chunks":      drip(ok+"Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n"),
		"an endless body":       flood(ok+"\r\n", strings.Repeat(" ", 32<<10)),
	}
}

// after writes a beginning and keeps the socket open.
func after(beginning string) Answer {
	return func(c net.Conn) {
		_, _ = io.WriteString(c, beginning)
		_, _ = io.Copy(io.Discard, c)
	}
}

// drip writes a beginning and then a piece from time to time.
func drip(beginning, piece string) Answer {
	return func(c net.Conn) {
		_, err := io.WriteString(c, beginning)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for err == nil {
			<-tick.C
			_, err = io.WriteString(c, piece)
		}
	}
}

// flood writes as fast as the other side takes it.
func flood(beginning, piece string) Answer {
	return func(c net.Conn) {
		_, err := io.WriteString(c, beginning)
		for err == nil {
			_, err = io.WriteString(c, piece)
		}
	}
}

// Serve answers each connection's first request, at a free port of the host, and
// returns the peer's URL. What still hangs when the test ends is closed.
func Serve(t testing.TB, host string, answer Answer) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		open []net.Conn
	)
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.Copy(io.Discard, req.Body)
					answer(c)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return fmt.Sprintf("http://%s", l.Addr())
}

// Ends returns what f returns. It fails the test where f hangs for far longer than
// the times that tests give their peers; the peers are then closed, so that f ends.
func Ends[T any](t testing.TB, f func() T) T {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- f() }()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	select {
	case out := <-done:
		return out
	case <-late.C:
		t.Fatal("it hangs")
		panic("not reached")
	}
}
