package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/safehttp/peertest"
)

// TestFS01_S03_GatewayWithReceiversThatNeverEnd: 300 events are due to receivers
// that hang, answer 101 or stream for ever; another receiver's event arrives before
// the first attempt at one of those has timed out, the documented test of an
// endpoint comes back, and SIGTERM ends the process within its patience.
func TestFS01_S03_GatewayWithReceiversThatNeverEnd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a process")
	}
	const (
		events   = 300
		attempt  = 15 * time.Second // what one may take
		patience = 30 * time.Second // the program's
	)
	w := newTown(t, "sqlite:"+filepath.Join(t.TempDir(), "gateway.db"))
	w.clock.Slow = true // timeouts are of the wall
	var urls []string
	for _, answer := range peertest.Endless() {
		urls = append(urls, peertest.Serve(t, "127.0.0.1", answer))
	}
	arrived := make(chan struct{}, 10)
	good := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} }))
	t.Cleanup(good.Close)
	p := w.start(point{})
	require.True(t, p.serves())
	m := newMerchant(w, 1)
	require.NoError(t, m.login(t.Context(), p))
	for _, c := range w.sims {
		c.Mine(1)
	}

	create := func(url string) string {
		for range 100 { // until the chain has been read once
			status, v, err := m.try(t.Context(), p, http.MethodPost, "/payments/", "", body{"amount": "20", "currency": "BTC", "callback_url": url})
			require.NoError(t, err)
			if status < http.StatusMultipleChoices {
				return v["transaction_id"].(string)
			}
			require.NoError(t, fast{}.Wait(t.Context(), 10*time.Second))
		}
		require.FailNow(t, "no payment can be made")
		return ""
	}
	// A payment that its merchant cancels is one event, due at once.
	cancel := func(id string) {
		status, v, err := m.try(t.Context(), p, http.MethodPost, "/payments/"+id+"/cancel/", "", body{})
		if err != nil || status != http.StatusOK {
			t.Errorf("cancelling: %d %v %v", status, v, err)
		}
	}
	last := create(good.URL)
	ids := make(chan string, events)
	for i := range events {
		ids <- create(fmt.Sprintf("%s/%d", urls[i%len(urls)], i))
	}
	close(ids)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for id := range ids {
				cancel(id)
			}
		})
	}
	wg.Wait()
	cancel(last)
	select {
	case <-arrived:
	case <-time.After(attempt):
		require.FailNow(t, "it waits for the receivers that never end")
	}

	for _, url := range urls[:3] {
		status, _, err := m.try(t.Context(), p, http.MethodPost, "/user/webhooks/", "", body{"callback_url": url})
		require.NoError(t, err)
		require.Less(t, status, http.StatusMultipleChoices)
		status, _, err = m.try(t.Context(), p, http.MethodPost, "/user/webhooks/test/", "", body{"event_type": "payment_status_update"})
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
	}

	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience + attempt):
		require.FailNow(t, "it lives on")
	}
	require.Zero(t, p.cmd.ProcessState.ExitCode())
}
