package main

import (
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay"
)

// clock runs with another, which is the wall's, plus what /dev/advance has
// skipped. It can be made to stand still for a while, and never runs backwards.
type clock struct {
	cryptopay.Clock
	mu     sync.Mutex
	offset time.Duration
	still  bool
	last   time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.Clock.Now().Add(c.offset); !c.still && now.After(c.last) {
		c.last = now
	}
	return c.last
}

// skip moves the clock forward.
func (c *clock) skip(d time.Duration) {
	c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
	c.last = c.last.Add(d)
}

// hold makes the clock stand still one tick from now until release is called:
// work that is put off by less than a tick is then due, once.
func (c *clock) hold() (release func()) {
	c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.still, c.last = true, c.last.Add(tick)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.still = false
	}
}

// tick is the shortest wait that a simulated world knows.
const tick = time.Millisecond

// restore sets the offset that a former run has left.
func (c *clock) restore(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = offset
}

func (c *clock) skipped() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}
