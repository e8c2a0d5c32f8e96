package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Commit implements storage.Store.
func (s *Store) Commit(ctx context.Context, changes ...storage.Change) []error {
	if _, err := s.opened(ctx); err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	return s.lane.Commit(ctx, changes...)
}

// Write implements lane.Target: one script per partition, all in one round
// trip. Nothing is ever locked elsewhere. What is not known of one partition
// says nothing of the others, so errors are those of Changes.
func (s *Store) Write(ctx context.Context, _ bool, changes []storage.Change) ([]error, error) {
	o, err := s.opened(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.settled(ctx); err != nil {
		return nil, err
	}
	errs := make([]error, len(changes))
	s.send(ctx, group(o, s.keys, changes, errs), changes, errs)
	// Some of it may have been executed over a connection made meanwhile: see
	// whose, before it counts.
	if err := s.settled(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrUnknown, err)
	}
	return errs, nil
}

// group sorts Changes by partition, each in their order. What is malformed gets
// its error at once.
func group(o *open, k keys, changes []storage.Change, errs []error) []*writer {
	var groups []*writer
	var last *writer
	byPartition := map[storage.Partition]*writer{}
	for i := range changes {
		c := &changes[i]
		if errs[i] = malformed(o, changes[i:i+1]); errs[i] != nil {
			continue
		}
		if last == nil || last.p != c.Partition {
			if last = byPartition[c.Partition]; last == nil {
				last = newWriter(o, k, c.Partition)
				byPartition[c.Partition] = last
				groups = append(groups, last)
			}
		}
		errs[i] = last.add(c, i)
	}
	return slices.DeleteFunc(groups, func(w *writer) bool { return len(w.at) == 0 })
}

func (s *Store) send(ctx context.Context, groups []*writer, changes []storage.Change, errs []error) {
	if len(groups) == 0 {
		return
	}
	calls := make([]evaluation, len(groups))
	for i, w := range groups {
		calls[i] = w.evaluation()
	}
	for i, cmd := range s.run(ctx, commitScript, calls) {
		w := groups[i]
		refused, err := cmd.Slice()
		if err == nil {
			err = w.verdicts(refused, changes, errs)
		}
		if err == nil {
			continue
		}
		if len(w.at) > 1 && ofOneChange(err) {
			for _, at := range w.at {
				alone := newWriter(w.o, w.k, w.p)
				if errs[at] = alone.add(&changes[at], at); errs[at] == nil {
					s.send(ctx, []*writer{alone}, changes, errs)
				}
			}
			continue
		}
		for _, at := range w.at {
			errs[at] = fmt.Errorf("%w: redisstore: committing: %w", storage.ErrUnknown, err)
		}
	}
}

// ofOneChange reports whether the script broke off while it judged, so that
// nothing was written and the fault may be one Change's.
func ofOneChange(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	return strings.HasPrefix(err.Error(), "ERR ") || strings.HasPrefix(err.Error(), "WRONGTYPE ")
}
