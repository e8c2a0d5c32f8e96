package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/webhook"
)

// BenchmarkSign1KiB compares a kept keyed state with a new HMAC for each body,
// in turns of a few microseconds: the medians are hardly moved by other work on
// the machine. sha-ns is the hash alone, which nothing that signs can undercut.
func BenchmarkSign1KiB(b *testing.B) {
	body, key := bytes.Repeat([]byte("x"), 1024), bytes.Repeat([]byte("k"), 43)
	s := webhook.NewSigner(key)
	const turn = 32
	ways := []struct {
		name string
		do   func()
		took []time.Duration
	}{
		{name: "kept-ns", do: func() { s.Body(body) }},
		{name: "new-ns", do: func() {
			h := hmac.New(sha256.New, key)
			h.Write(body)
			_ = hex.EncodeToString(h.Sum(nil))
		}},
		{name: "sha-ns", do: func() { sha256.Sum256(body) }},
	}
	for b.Loop() {
		for i := range ways {
			w := &ways[i]
			start := time.Now()
			for range turn {
				w.do()
			}
			w.took = append(w.took, time.Since(start))
		}
	}
	medians := make([]float64, len(ways))
	for i := range ways {
		w := &ways[i]
		slices.Sort(w.took)
		medians[i] = float64(w.took[len(w.took)/2].Nanoseconds()) / turn
		b.ReportMetric(medians[i], w.name)
	}
	b.ReportMetric(medians[1]/medians[0], "new/kept")
}

// BenchmarkPost delivers signed bodies of 1 KiB over loopback, beside the client
// that one writes first: http.Client with its defaults, a new HMAC each time.
// The receiver is the least that answers, so that the sender is what is seen;
// cpu-us/op is all of the process, the receiver with it.
func BenchmarkPost(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 1024)
	key := bytes.Repeat([]byte("k"), 43)
	for _, parallel := range []int{32, 256} {
		b.Run(fmt.Sprintf("naive/%d", parallel), func(b *testing.B) {
			to := sink(b)
			client := &http.Client{Timeout: 15 * time.Second}
			measure(b, func(n int) {
				var wg sync.WaitGroup
				work := make(chan struct{}, n)
				for range n {
					work <- struct{}{}
				}
				close(work)
				for range parallel {
					wg.Go(func() {
						for range work {
							h := hmac.New(sha256.New, key)
							h.Write(body)
							req, _ := http.NewRequest(http.MethodPost, to, bytes.NewReader(body))
							req.Header.Set("Content-Type", "application/json")
							req.Header.Set("X-Signature", hex.EncodeToString(h.Sum(nil)))
							resp, err := client.Do(req)
							if err != nil {
								b.Error(err)
								return
							}
							_, _ = io.Copy(io.Discard, resp.Body)
							resp.Body.Close()
						}
					})
				}
				wg.Wait()
			})
		})
		b.Run(fmt.Sprintf("ours/%d", parallel), func(b *testing.B) {
			to := sink(b)
			n := newHTTP(b, webhook.HTTPOptions{Guard: allow(outside), Parallel: parallel})
			s := webhook.NewSigner(key)
			measure(b, func(total int) {
				for total > 0 {
					ds := make([]webhook.Delivery, min(total, 16*parallel))
					for i := range ds {
						h := make(http.Header, 8)
						webhook.Headers(h, s, nil, "p1/000001", 1, start, body)
						ds[i] = webhook.Delivery{URL: to, Header: h, Body: body}
					}
					for _, r := range n.Notify(b.Context(), ds) {
						if r.Err != nil {
							b.Fatal(r.Err)
						}
					}
					total -= len(ds)
				}
			})
		})
	}
}

func measure(b *testing.B, run func(n int)) {
	run(512) // open the connections
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	run(b.N)
	b.StopTimer()
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-us/op")
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// sink answers every request of a known kind with the same bytes.
func sink(b *testing.B) string {
	l, err := net.Listen("tcp", outside+":0")
	require.NoError(b, err)
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
	return "http://" + l.Addr().String() + "/hook"
}

func answer(c net.Conn) {
	defer c.Close()
	buf, have := make([]byte, 16<<10), 0
	for {
		n, err := c.Read(buf[have:])
		if err != nil {
			return
		}
		have += n
		end := bytes.Index(buf[:have], []byte("\r\n\r\n"))
		if end < 0 || have < end+4+1024 {
			continue
		}
		have = 0
		if _, err = io.WriteString(c, okAnswer); err != nil {
			return
		}
	}
}

var okAnswer = strings.Join([]string{"HTTP/1.1 200 OK", "Content-Length: 2", "", "ok"}, "\r\n")
