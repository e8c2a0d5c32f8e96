package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Many callers look rows up at once, some of whom go away while they wait. Each gets its own
// rows, as they were when it asked or newer, whoever else asks; a store that answers
// several look-ups in one round trip answers as Rows does.
func testManyAsk(t testing.TB, e *env) {
	const callers, rounds = 16, 12
	e.commit(t, e.put(Things.Row("thing", 0, time.Time{}, Thing{Name: "the name"})))
	name := storage.Key{Partition: here, Unique: []string{"name"}, Values: []any{"the name"}}
	var wg sync.WaitGroup
	errs := make([]error, callers)
	for n := range callers {
		wg.Go(func() {
			id := fmt.Sprint("mine", n)
			for i := range int64(rounds) {
				c := storage.Change{ID: fmt.Sprint(id, "/", i), Partition: here, Put: []storage.Row{note(id, i, i)}}
				if errs[n] = storage.CommitOne(e.ctx, e.s, c); errs[n] != nil {
					return
				}
				ctx, cancel := context.WithCancel(e.ctx)
				gone := (int64(n)+i)%3 == 0
				if gone {
					go cancel()
				}
				errs[n] = asksWell(ctx, e.s, id, i+1, name)
				cancel()
				if gone && errors.Is(errs[n], context.Canceled) {
					errs[n] = nil
				}
				if errs[n] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// asksWell asks for a caller's own row and for one that is everybody's.
func asksWell(ctx context.Context, s storage.Store, id string, version int64, name storage.Key) error {
	own := storage.Keys(here, "nobody", id)
	rows, err := s.Rows(ctx, Notes.Table, own...)
	if err != nil {
		return err
	}
	found := [][]storage.Row{rows}
	if a, ok := s.(storage.Asker); ok {
		more, err := a.Ask(ctx, storage.Ask{Table: Notes.Table, Keys: own}, storage.Ask{Table: Things.Table, Keys: []storage.Key{name}}, storage.Ask{Table: Notes.Table})
		if err != nil {
			return err
		}
		if len(more) != 3 || ids(more[1]) != "thing" || len(more[2]) != 0 {
			return fmt.Errorf("asked for rows of two tables: %v", more)
		}
		found = append(found, more[0])
	}
	for _, rows := range found {
		if len(rows) != 1 || rows[0].ID != id || rows[0].Version != version || Notes.Value(rows[0]).N != version-1 {
			return fmt.Errorf("%s at version %d: found %v", id, version, rows)
		}
	}
	return nil
}
