// Package failing is a store for tests, one call of which fails. A test that lets each call
// fail in turn shows that none of them breaks what it tests.
package failing

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// ErrGone is the error of the call that fails.
var ErrGone = errors.New("the store is gone")

// Store counts its calls, and fails one of them before the store behind it is asked. Its
// fields are set and read while no call is under way.
type Store struct {
	storage.Store
	// Counts selects the calls that are counted. Defaults to all that read.
	Counts func(Call) bool
	// FailAt is the number of the call that fails, from 1. At 0 none fails.
	FailAt int
	// Calls is how many calls were counted.
	Calls int
	// Failed is the call that failed.
	Failed Call

	mu sync.Mutex
}

// Call is one call of a store.
type Call struct {
	Table   *storage.Table   // of Rows, Find, Count and Claim
	Changes []storage.Change // of Commit
}

func (s *Store) count(c Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Counts == nil && c.Changes != nil || s.Counts != nil && !s.Counts(c) {
		return nil
	}
	if s.Calls++; s.Calls != s.FailAt {
		return nil
	}
	s.Failed = c
	return ErrGone
}

// Commit is that of storage.Store, and so is each method below.
func (s *Store) Commit(ctx context.Context, changes ...storage.Change) []error {
	if err := s.count(Call{Changes: changes}); err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	return s.Store.Commit(ctx, changes...)
}

func (s *Store) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if err := s.count(Call{Table: t}); err != nil {
		return nil, err
	}
	return s.Store.Rows(ctx, t, keys...)
}

func (s *Store) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if err := s.count(Call{Table: q.Table}); err != nil {
		return nil, err
	}
	return s.Store.Find(ctx, q)
}

func (s *Store) Count(ctx context.Context, q storage.Query) (int64, error) {
	if err := s.count(Call{Table: q.Table}); err != nil {
		return 0, err
	}
	return s.Store.Count(ctx, q)
}

func (s *Store) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	if err := s.count(Call{Table: c.Table}); err != nil {
		return nil, err
	}
	return s.Store.Claim(ctx, c)
}

func (s *Store) Balances(ctx context.Context, p storage.Partition, a ...ledger.Account) ([]ledger.Balance, error) {
	if err := s.count(Call{}); err != nil {
		return nil, err
	}
	return s.Store.Balances(ctx, p, a...)
}

func (s *Store) Entries(ctx context.Context, p storage.Partition, a ledger.Account, asset ledger.Asset, before int64, most int) ([]ledger.Entry, error) {
	if err := s.count(Call{}); err != nil {
		return nil, err
	}
	return s.Store.Entries(ctx, p, a, asset, before, most)
}
