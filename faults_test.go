package cryptopay_test

import (
	"bytes"
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
)

// A worker that panics again and again ends neither the process nor another's
// work, and is asked less and less often.
func TestC04_PoisonedWorkerStopsNobody(t *testing.T) {
	t.Parallel()
	h := newHost(t, 5, "BTC")
	var asked atomic.Int64
	cfg := h.app.Config()
	cfg.Key = bytes.Repeat([]byte{7}, 32)
	cfg.Workers = []cryptopay.Worker{{Name: "poisoned", Every: time.Second, Step: func(context.Context) (int, error) {
		asked.Add(1)
		panic("a row that nobody can read")
	}}}
	app, err := cryptopay.New(cfg)
	require.NoError(t, err)
	require.NoError(t, app.Open(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	p, err := app.Payments.Create(ctx, h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "120", Currency: "BTC"}})
	require.NoError(t, err)
	_, err = h.chains["BTC"].Pay(chain.Address(p.Address), "BTC", dec("0.002"))
	require.NoError(t, err)
	seconds := 0
	for ; seconds < 200_000; seconds++ {
		if h.payment(p.ID).Status == payment.Completed && seconds > 600 && asked.Load() > 1 {
			break
		}
		if h.chains["BTC"].Height() < 40 {
			h.chains["BTC"].Mine(1)
		}
		h.clock.Advance(time.Second)
		runtime.Gosched()
	}
	require.Equal(t, payment.Completed, h.payment(p.ID).Status)
	cancel()
	require.NoError(t, <-done)
	require.Greater(t, asked.Load(), int64(1))
	require.Less(t, asked.Load(), int64(8+seconds/60), "once a minute in the end")
}

// TestC04_WhatFailsDoesNotSlowTheRest: a worker of which some rows fail goes on with the others at once, and one
// that did nothing rests longer and longer.
func TestC04_WhatFailsDoesNotSlowTheRest(t *testing.T) {
	t.Parallel()
	for worked, most := range map[int]time.Duration{0: time.Hour, 3: 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(t, 5, "BTC")
			steps, over := 0, make(chan struct{})
			cfg := h.app.Config()
			cfg.Key, cfg.Clock = hostKey, cryptopay.SystemClock{}
			cfg.Workers = []cryptopay.Worker{{Name: "partly", Every: time.Second, Step: func(context.Context) (int, error) {
				if steps++; steps == 20 {
					close(over)
				}
				return worked, errSick
			}}}
			app, err := cryptopay.New(cfg)
			require.NoError(t, err)
			require.NoError(t, app.Open(t.Context()))
			ctx, cancel := context.WithCancel(t.Context())
			done, start := make(chan error, 1), time.Now()
			go func() { done <- app.Run(ctx) }()
			<-over
			took := time.Since(start)
			cancel()
			require.NoError(t, <-done)
			require.LessOrEqual(t, took, most)
			if worked == 0 {
				require.Greater(t, took, 10*time.Minute)
			}
		})
	}
}

// However often Run begins and ends, nothing of it stays behind: a goroutine that
// did would keep the bubble from ending.
func TestX02_RunLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	n := 10_000
	if testing.Short() {
		n = 500
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, 5, "BTC")
		for range n {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			require.NoError(t, h.app.Run(ctx))
			cancel()
		}
	})
}
