package cryptopay_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/storage"
)

// server is a store on another machine, with a clock of its own.
type server struct {
	storage.Store
	clock         cryptopay.Clock
	off           atomic.Int64 // ns; from broken on it does not answer
	asked, claims atomic.Int64
}

const broken = int64(time.Hour)

func (s *server) Now(context.Context) (time.Time, error) {
	s.asked.Add(1)
	if s.off.Load() == broken {
		return time.Time{}, errors.New("the connection is gone")
	}
	return s.clock.Now().Add(time.Duration(s.off.Load())), nil
}

func (s *server) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	s.claims.Add(1)
	return s.Store.Claim(ctx, c)
}

// TestT01_EveryLeaseCounts: a process whose clock is a quarter of any lease that the host has
// set away from the store's claims nothing.
func TestT01_EveryLeaseCounts(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	for name, set := range map[string]func(c *cryptopay.Config){
		"payments":    func(c *cryptopay.Config) { c.Payments.Lease = lease },
		"withdrawals": func(c *cryptopay.Config) { c.Withdrawals.Lease = lease },
		"treasury":    func(c *cryptopay.Config) { c.Treasury.Lease = lease },
		"outgoing":    func(c *cryptopay.Config) { c.Outgoing.Lease = lease },
		"reconcile":   func(c *cryptopay.Config) { c.Reconcile.Lease = lease },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, 32, "BTC")
			s := &server{Store: h.store, clock: h.clock}
			s.off.Store(int64(lease / 4))
			h.configure = func(c *cryptopay.Config) {
				c.Store = s
				set(c)
			}
			h.restart()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- h.app.Run(ctx) }()
			// The clock stands still: a worker cannot tell that it is off while it goes on.
			for workers := int64(len(h.app.Workers())); s.asked.Load() < workers && s.claims.Load() == 0; {
				runtime.Gosched()
			}
			cancel()
			require.NoError(t, <-done)
			require.Zero(t, s.claims.Load())
		})
	}
}

// TestT01_RunClaimsNothingWhileItsClockIsOff: leases are kept by the processes'
// own clocks; one that is a quarter of a lease off, either way, would take what
// another still works on. It goes on once its clock was set.
func TestT01_RunClaimsNothingWhileItsClockIsOff(t *testing.T) {
	t.Parallel()
	const quarter = 30 * time.Second / 4
	for name, c := range map[string]struct {
		off   time.Duration
		lease time.Duration
		stops bool
	}{
		"right":           {0, 0, false},
		"nearly ahead":    {quarter - 1, 0, false},
		"nearly behind":   {1 - quarter, 0, false},
		"ahead":           {quarter, 0, true},
		"behind":          {-quarter, 0, true},
		"no answer":       {time.Duration(broken), 0, true},
		"shorter lease":   {time.Second, 4 * time.Second, true},
		"below a quarter": {time.Second - 1, 4 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, 31, "BTC")
			s := &server{Store: h.store, clock: h.clock}
			s.off.Store(int64(c.off))
			h.configure = func(cfg *cryptopay.Config) {
				cfg.Store, cfg.Payments.Lease = s, c.lease
			}
			h.restart()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- h.app.Run(ctx) }()
			until := func(step time.Duration, there func() bool) {
				t.Helper()
				for range 500_000 {
					if there() {
						return
					}
					h.clock.Advance(step)
					runtime.Gosched()
				}
				require.FailNow(t, "it does not happen")
			}
			if c.stops {
				workers := int64(len(h.app.Workers()))
				until(0, func() bool { return s.asked.Load() == workers })
				require.Zero(t, s.claims.Load())
				s.off.Store(0)
			}
			until(time.Second, func() bool { return s.claims.Load() > 10 })

			s.off.Store(int64(1000 * time.Hour)) // it was right, and is not any more
			until(time.Second, func() bool {
				asked, claims := s.asked.Load(), s.claims.Load()
				until(time.Second, func() bool { return s.asked.Load() > asked+20 })
				return s.claims.Load() == claims
			})
			cancel()
			require.NoError(t, <-done)
		})
	}
}

// Step is its caller's, who has said what time it is; a store without a clock is
// not asked.
func TestT01_StepAsksNobodyForTheTime(t *testing.T) {
	t.Parallel()
	h := newHost(t, 32, "BTC")
	s := &server{Store: h.store, clock: h.clock}
	s.off.Store(int64(time.Minute))
	h.configure = func(cfg *cryptopay.Config) { cfg.Store = s }
	h.restart()
	h.step()
	require.Positive(t, s.claims.Load())
	require.Zero(t, s.asked.Load())
}
