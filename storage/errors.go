package storage

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cryptopay-go/cryptopay/ledger"
)

var (
	// ErrConflict: the decision was taken on a state that is no longer there.
	// Nothing happened. Reload and decide again; Decide does so.
	ErrConflict = errors.New("storage: conflict: the state has changed, decide again")

	// ErrMalformed: the Change, Query or Claim itself is wrong. Nothing happened.
	ErrMalformed = errors.New("storage: malformed")

	// ErrUnknown: it is not known whether the Change happened. Send it again.
	ErrUnknown = errors.New("storage: outcome unknown, send the same change again")

	// ErrBusy: the database or the partition is locked elsewhere. Nothing happened:
	// the same Change may be sent again, later.
	ErrBusy = errors.New("storage: locked elsewhere, send the same change later")

	// ErrClosed: the store is closed or was never opened.
	ErrClosed = errors.New("storage: not open")

	// ErrSchema: the schema in the database is not the one this library needs.
	ErrSchema = errors.New("storage: schema does not match, run Migrate")
)

// DuplicateError says that a unique key, or a Tx.ID (Table "ledger"), is taken
// by another Change. Final.
type DuplicateError struct {
	Table string
	Key   string // the column names joined by ",", "id" for a row's id
	Value string
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("storage: duplicate %s in %s: %q", e.Key, e.Table, e.Value)
}

// LevelError says that a counter would have passed its ceiling. Final.
type LevelError struct {
	Name  string
	Value int64 // as it stands
	Delta int64
	Max   int64
}

func (e *LevelError) Error() string {
	return fmt.Sprintf("storage: level %q stands at %d, +%d passes its ceiling %d", e.Name, e.Value, e.Delta, e.Max)
}

// RowError says that what is stored of a row cannot be read: somebody has edited it, or
// the disk has. The row has to be put right, or taken away, in the database itself.
type RowError struct {
	Table     string
	Partition Partition
	ID        string
	Err       error
}

func (e *RowError) Error() string {
	return fmt.Sprintf("storage: row %q of table %s in partition %s cannot be read, put it right in the database: %v", e.ID, e.Table, e.Partition, e.Err)
}

func (e *RowError) Unwrap() error { return e.Err }

// RowErrors are rows that cannot be read, each once, for whoever goes on past them.
type RowErrors []*RowError

// Take adds those of an error, and returns what else went wrong.
func (l *RowErrors) Take(err error) (other error) {
	if !unread(err) {
		return err
	}
	switch e := err.(type) { //nolint:errorlint // it is taken apart
	case *RowError:
		if !slices.ContainsFunc(*l, func(o *RowError) bool { return o.Table == e.Table && o.Partition == e.Partition && o.ID == e.ID }) {
			*l = append(*l, e)
		}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			other = errors.Join(other, l.Take(one))
		}
	default:
		other = l.Take(errors.Unwrap(err))
	}
	return other
}

// Has reports whether one of them has an id.
func (l RowErrors) Has(id string) bool {
	return slices.ContainsFunc(l, func(r *RowError) bool { return r.ID == id })
}

// With joins them to what else went wrong.
func (l RowErrors) With(other error) error {
	for _, r := range l {
		other = errors.Join(other, r)
	}
	return other
}

// unread reports whether an error is of a row that cannot be read.
func unread(err error) bool {
	var r *RowError
	return errors.As(err, &r)
}

// NotEmptyError says that an account that had to be empty is not. Final.
type NotEmptyError struct {
	Account ledger.Account
	Asset   ledger.Asset
}

func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("storage: account %s is not empty in %s", e.Account, e.Asset)
}

// Final reports whether err is a verdict that sending or deciding again on the
// same facts will not change: the Change did not happen.
func Final(err error) bool {
	var (
		dup   *DuplicateError
		level *LevelError
		empty *NotEmptyError
		funds *ledger.InsufficientFundsError
	)
	return errors.As(err, &dup) || errors.As(err, &level) || errors.As(err, &empty) || errors.As(err, &funds) ||
		errors.Is(err, ErrMalformed) || errors.Is(err, ledger.ErrOverflow) ||
		errors.Is(err, ledger.ErrUnbalanced) || errors.Is(err, ledger.ErrMalformed)
}
