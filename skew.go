package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// ErrClock: this process's clock is too far from the store's for its leases to
// be worth anything: set it. Run claims nothing meanwhile.
var ErrClock = errors.New("cryptopay: the clock is off")

// shortestLease is the shortest of all workers' leases, where none is configured.
const shortestLease = 30 * time.Second

// skew holds a process's clock against the store's, if it has one.
type skew struct {
	clock Clock
	store storage.Clock // nil = there is nothing to compare with
	most  time.Duration // a quarter of the shortest lease: from there on it is off

	mu   sync.Mutex
	fine time.Time // when it was found right, by clock; zero = not yet
}

func newSkew(c *Config) *skew {
	lease := shortestLease
	leases := []time.Duration{c.Payments.Lease, c.Withdrawals.Lease, c.Treasury.Lease, c.Outgoing.Lease, c.Reconcile.Lease}
	for _, o := range c.OutgoingOn {
		leases = append(leases, o.Lease)
	}
	for _, own := range leases {
		if own > 0 {
			lease = min(lease, own)
		}
	}
	s := &skew{clock: c.Clock, most: lease / 4}
	s.store, _ = c.Store.(storage.Clock)
	return s
}

// check returns ErrClock where the clock is off by s.most or more, and an error
// where the store does not say. That it is right holds for as long as s.most,
// unless the clock was set back.
func (s *skew) check(ctx context.Context) error {
	if s.store == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.clock.Now()
	if age := before.Sub(s.fine); !s.fine.IsZero() && age >= 0 && age < s.most {
		return nil
	}
	s.fine = time.Time{}
	theirs, err := s.store.Now(ctx)
	if err != nil {
		return fmt.Errorf("cryptopay: asking the store for the time: %w", err)
	}
	after := s.clock.Now()
	if off := outside(theirs, before, after); off >= s.most {
		return fmt.Errorf("%w: it differs from the store's by %s, less than %s is needed: set it", ErrClock, off, s.most)
	}
	s.fine = after
	return nil
}

// outside is how far t is at least from every moment between two.
func outside(t, from, to time.Time) time.Duration {
	return max(from.Sub(t), t.Sub(to), 0)
}
