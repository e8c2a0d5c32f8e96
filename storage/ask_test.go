package storage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

type asked struct {
	Name string `db:"name"`
}

var (
	askedOne = storage.NewTable[asked]("asked_one", storage.Unique("name"))
	askedTwo = storage.NewTable[asked]("asked_two")
)

// asker answers several look-ups at once, and counts.
type asker struct {
	storage.Store
	rows, asks int
	fails      error
}

func (a *asker) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	a.rows++
	return a.Store.Rows(ctx, t, keys...)
}

func (a *asker) Ask(ctx context.Context, asks ...storage.Ask) ([][]storage.Row, error) {
	a.asks++
	found := make([][]storage.Row, len(asks))
	for i := range asks {
		found[i], _ = a.Store.Rows(ctx, asks[i].Table, asks[i].Keys...)
	}
	return found, a.fails
}

// What is read side by side of several tables is one round trip of a store that can, and
// each reader gets its own rows. The first error in their order is returned.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	s := &asker{Store: memory.New()}
	ctx, p := t.Context(), storage.Tenant("t")
	require.NoError(t, s.Open(ctx, askedOne.Table, askedTwo.Table))
	require.NoError(t, storage.CommitOne(ctx, s, storage.Change{ID: "c", Partition: p, Put: []storage.Row{
		askedOne.Row("a", 0, time.Time{}, asked{"one"}), askedTwo.Row("b", 0, time.Time{}, asked{"two"}),
	}}))
	joined := storage.Joined(s)
	var one, again, two asked
	var none bool
	read := []func(context.Context) error{
		func(ctx context.Context) (err error) { one, _, _, err = askedOne.One(ctx, joined, p, "a"); return err },
		func(ctx context.Context) error {
			rows, err := joined.Rows(ctx, askedOne.Table, storage.Key{Partition: p, Unique: []string{"name"}, Values: []any{"one"}})
			if err == nil {
				again = askedOne.Value(rows[0])
			}
			return err
		},
		func(ctx context.Context) (err error) { two, _, _, err = askedTwo.One(ctx, joined, p, "b"); return err },
		func(ctx context.Context) (err error) {
			_, _, none, err = askedTwo.One(ctx, joined, p, "nobody")
			return err
		},
	}
	require.NoError(t, storage.SideBySide(ctx, joined, read...))
	require.Equal(t, []asked{{"one"}, {"one"}, {"two"}}, []asked{one, again, two})
	require.False(t, none)
	require.Equal(t, []int{0, 1}, []int{s.rows, s.asks})

	s.fails = errors.New("gone")
	require.ErrorIs(t, storage.SideBySide(ctx, joined, read...), s.fails)
	s.fails = nil
	first, second := errors.New("first"), errors.New("second")
	require.ErrorIs(t, storage.SideBySide(ctx, joined, read[0],
		func(context.Context) error { return first }, func(context.Context) error { return second }), first)

	// Inside of Work it asks with the other items.
	s.rows, s.asks = 0, 0
	errs := storage.Work(ctx, joined, []string{"x", "y"}, func(k string) string { return k }, func(ctx context.Context, _ string) error {
		return storage.SideBySide(ctx, joined, read[0], read[2])
	})
	require.Equal(t, []error{nil, nil}, errs)
	require.Equal(t, []int{2, 0}, []int{s.rows, s.asks}, "a look-up for each table, of both items")
}
