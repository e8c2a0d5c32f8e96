package storage

import (
	"context"
	"strconv"
)

// Ask is a look-up of one table's rows by their keys: what Rows takes.
type Ask struct {
	Table *Table
	Keys  []Key
}

// Asker is what a Store may implement besides: several look-ups in one round trip.
type Asker interface {
	// Ask returns for each look-up what Rows would return. An error is of all of them.
	Ask(ctx context.Context, asks ...Ask) ([][]Row, error)
}

// SideBySide calls functions that read what does not depend on each other. What they ask
// of a Joined store is asked together, in as few round trips as the longest of them
// needs. A host's hook gets its context from Apart. It returns the first error, in the
// order of the functions.
func SideBySide(ctx context.Context, s Store, read ...func(context.Context) error) error {
	if w, _ := ctx.Value(workKey{}).(*worker); w != nil { // an item of Work: it asks with the others
		for _, f := range read {
			if err := f(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	each := make([]int, len(read))
	for i := range each {
		each[i] = i
	}
	for _, err := range Work(ctx, s, each, strconv.Itoa, func(ctx context.Context, i int) error { return read[i](ctx) }) {
		if err != nil {
			return err
		}
	}
	return nil
}
