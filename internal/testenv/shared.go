package testenv

import (
	"sync"
	"testing"
)

// Shared is a server that all tests of a package use. Its TestMain closes it.
type Shared struct {
	mu      sync.Mutex
	p       *Process
	cleanup []func()
}

// Get starts the server for the first test that asks.
func (s *Shared) Get(t testing.TB, start func(testing.TB) *Process) *Process {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p == nil {
		s.p = start(keeper{t, s})
	}
	return s.p
}

// Close stops the server.
func (s *Shared) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.cleanup) - 1; i >= 0; i-- {
		s.cleanup[i]()
	}
	s.p, s.cleanup = nil, nil
}

// keeper puts off what its test would clean up. It is used under Shared.mu.
type keeper struct {
	testing.TB
	s *Shared
}

// Cleanup implements testing.TB.
func (k keeper) Cleanup(f func()) { k.s.cleanup = append(k.s.cleanup, f) }
