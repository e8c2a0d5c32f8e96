// Receiver is the smallest program that takes the service's webhooks: it checks
// each delivery with webhook.Verify, which refuses what is replayed later, and prints
// the event as a line of JSON.
//
//	WEBHOOK_SECRET=whatever go run ./examples/receiver -addr 127.0.0.1:9090
//
// A delivery may come twice and out of order: what was seen is told by
// X-Webhook-Id, and printed once.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cryptopay-go/cryptopay/webhook"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:9090", "where to listen")
	file := flag.String("secret-file", "", "file with the secret, read at each delivery; defaults to WEBHOOK_SECRET")
	tolerance := flag.Duration("tolerance", 5*time.Minute, "how old a delivery may be; raise it where /dev/advance moves the service's clock")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *file, *tolerance); err != nil {
		fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr, file string, tolerance time.Duration) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	r := &receiver{file: file, tolerance: tolerance, seen: map[string]bool{}}
	server := &http.Server{Handler: r, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, "receiver is at http://"+listener.Addr().String())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		err = server.Close()
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// receiver checks and prints.
type receiver struct {
	file      string
	tolerance time.Duration
	mu        sync.Mutex
	seen      map[string]bool // ids: within the tolerance a delivery may come twice
}

func (r *receiver) secret() string {
	if r.file == "" {
		return os.Getenv("WEBHOOK_SECRET")
	}
	text, err := os.ReadFile(r.file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// maxEvent is more than any event has.
const maxEvent = 1 << 20

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxEvent))
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	if err := webhook.Verify(req.Header, body, time.Now(), r.tolerance, r.secret()); err != nil {
		fmt.Fprintln(os.Stderr, "refused:", err)
		http.Error(w, "bad signature", http.StatusUnauthorized)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if id := req.Header.Get(webhook.HeaderID); !r.seen[id] {
		r.seen[id] = true
		var line bytes.Buffer
		if json.Compact(&line, body) == nil {
			fmt.Println(line.String())
		}
	}
}
