package cryptopay

import (
	"context"
	"sync"
	"time"
)

// Clock is the only source of time that an App asks.
type Clock interface {
	// Now is the present moment. It may be called concurrently.
	Now() time.Time
	// Wait returns when d has passed, or with ctx's error when it ends first.
	Wait(ctx context.Context, d time.Duration) error
}

// SystemClock is the wall clock.
type SystemClock struct{}

// Now returns the wall clock's time in UTC.
func (SystemClock) Now() time.Time { return time.Now().UTC() }

// Wait sleeps.
func (SystemClock) Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ManualClock stands still until it is moved: for tests and simulations.
type ManualClock struct {
	mu    sync.Mutex
	now   time.Time
	moved chan struct{} // closed and replaced by each Advance
}

// NewManualClock is a clock that stands at a moment.
func NewManualClock(at time.Time) *ManualClock {
	return &ManualClock{now: at.UTC(), moved: make(chan struct{})}
}

// Now returns where the clock stands.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d, also backwards, and wakes who waits for it.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	close(c.moved)
	c.moved = make(chan struct{})
}

// Wait returns once the clock has been advanced by d from here.
func (c *ManualClock) Wait(ctx context.Context, d time.Duration) error {
	until := c.Now().Add(d)
	for {
		c.mu.Lock()
		now, moved := c.now, c.moved
		c.mu.Unlock()
		if !now.Before(until) {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
