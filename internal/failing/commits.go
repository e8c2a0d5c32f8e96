package failing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Fault is what comes of a Change instead of what it should.
type Fault string

// The faults.
const (
	Busy     Fault = "busy"     // another process has the partition locked, each time that it is sent
	Conflict Fault = "conflict" // something that it relies on has changed
	Unheard  Fault = "unheard"  // it happens, and no answer comes, each time that it is sent
	Undone   Fault = "undone"   // it does not happen, and no answer comes, each time that it is sent
	Late     Fault = "late"     // as Undone, but it happens when another Change is sent
	Passed   Fault = "passed"   // Meanwhile goes by before it is sent, as where its process is paused
)

// Faults are all of them.
var Faults = []Fault{Busy, Conflict, Unheard, Undone, Late, Passed}

// Commits is a store for tests that counts Changes, each once however often it is sent, and
// has some of them meet a fault. Its fields are set and read while no call is under way.
type Commits struct {
	storage.Store
	// Counts selects the Changes that are counted. Defaults to all.
	Counts func(*storage.Change) bool
	// At has the fault of a Change by its number, from 1.
	At map[int]Fault
	// Seen is how many Changes were counted, and Met what faults were met.
	Seen int
	Met  []string
	// Meanwhile is what goes by while a process is Passed.
	Meanwhile func()

	mu    sync.Mutex
	fault Fault
	of    key // the Change that meets the fault, as long as it is sent again
	times int
	late  []storage.Change
}

type key struct {
	partition storage.Partition
	id        string
}

// tries is how often storage.CommitOne sends a Change.
const tries = 3

// Commit is that of storage.Store.
func (s *Commits) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	for i := range changes {
		errs[i] = s.one(ctx, changes[i])
	}
	return errs
}

func (s *Commits) one(ctx context.Context, c storage.Change) error {
	s.mu.Lock()
	fault, first := s.next(&c)
	late := s.late
	if fault == "" {
		s.late = nil
	}
	s.mu.Unlock()
	switch fault {
	case Busy:
		return fmt.Errorf("failing: %w", storage.ErrBusy)
	case Conflict:
		return fmt.Errorf("failing: %w", storage.ErrConflict)
	case Late:
		if first {
			s.mu.Lock()
			s.late = append(s.late, c)
			s.mu.Unlock()
		}
		return ErrGone
	case Undone:
		return ErrGone
	case Unheard:
		if err := s.Store.Commit(ctx, c)[0]; err != nil && first {
			return err
		}
		return ErrGone
	case Passed:
		s.Meanwhile()
	}
	for _, l := range late {
		s.Store.Commit(ctx, l)
	}
	return s.Store.Commit(ctx, c)[0]
}

// next is the fault of a Change, and whether it is sent for the first time.
func (s *Commits) next(c *storage.Change) (fault Fault, first bool) {
	k := key{c.Partition, c.ID}
	if s.times > 0 && s.of == k {
		s.times--
		return s.fault, false
	}
	if s.Counts != nil && !s.Counts(c) {
		return "", true
	}
	s.Seen++
	fault = s.At[s.Seen]
	if fault == "" {
		return "", true
	}
	s.Met = append(s.Met, strings.Join([]string{string(fault), string(c.Partition), c.ID}, " "))
	s.of, s.fault, s.times = k, fault, tries-1
	if fault == Conflict || fault == Passed {
		s.times = 0
	}
	return fault, true
}

// Ours reports whether an error is one that a fault gives.
func Ours(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, storage.ErrBusy) || errors.Is(err, storage.ErrConflict)
}
