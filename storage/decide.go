package storage

import (
	"context"
	"errors"
	"fmt"
)

// How often Decide tries: conflicts are decided again, unknown outcomes are
// sent again unchanged.
const (
	maxConflicts = 32
	maxResends   = 3
)

// Decide is the one place where decisions are retried. It calls decide, which
// reads what it needs and returns the Change that follows, commits it, and
// starts over on ErrConflict. A Change with an empty ID means that there is
// nothing left to do. A final error is returned as it is; one that stays
// unknown wraps ErrUnknown.
func Decide(ctx context.Context, s Store, decide func(ctx context.Context) (Change, error)) error {
	for range maxConflicts {
		c, err := decide(ctx)
		if err != nil {
			return err
		}
		if c.ID == "" {
			return nil
		}
		if err = CommitOne(ctx, s, c); !errors.Is(err, ErrConflict) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: gave up after %d decisions", ErrConflict, maxConflicts)
}

// CommitOne commits one Change, sending it again a few times where the outcome
// is unknown or the database is busy. ErrBusy where it was each time.
func CommitOne(ctx context.Context, s Store, c Change) error {
	var err error
	unknown := false
	for range maxResends {
		err = s.Commit(ctx, c)[0]
		if err == nil || errors.Is(err, ErrConflict) || Final(err) {
			return err
		}
		busy := errors.Is(err, ErrBusy)
		if unknown = unknown || !busy; busy && c.NoWait || ctx.Err() != nil {
			break
		}
	}
	if !unknown {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// One reads a single row; ok is false where there is none.
func (t TableOf[T]) One(ctx context.Context, s Store, p Partition, id string) (v T, row Row, ok bool, err error) {
	rows, err := s.Rows(ctx, t.Table, Key{Partition: p, ID: id})
	if err != nil || len(rows) == 0 {
		return v, row, false, err
	}
	return t.Value(rows[0]), rows[0], true, nil
}
