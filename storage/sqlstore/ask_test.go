package sqlstore

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// bounded is a runner that notes whether a statement may take for ever.
type bounded struct{ bounded bool }

func (b *bounded) each(ctx context.Context, _ string, _ []any, _ scan) error {
	_, b.bounded = ctx.Deadline()
	return nil
}

// Two callers ask for all. One that may wait for ever, as a worker does, gives its turn back
// where a connection hangs.
func TestFP04_ALookUpForOthersHasAnEnd(t *testing.T) {
	t.Parallel()
	s := &Store{d: &Dialect{}}
	s.tables.Store(&verdict.Tables{storage.OnceTable.Table: true})
	at := &bounded{}
	r := &reads{s: s, at: at, queue: &lookups{}}
	_, err := r.Rows(context.Background(), storage.OnceTable.Table, storage.Keys("t", "k")...)
	require.NoError(t, err)
	require.True(t, at.bounded)
}

// waiting is a look-up whose caller waits.
func waiting() *lookup { return &lookup{wake: make(chan bool, 1)} }

// told is what a waiting caller was told: to lead, that it is answered, or nothing.
func told(l *lookup) string {
	select {
	case lead := <-l.wake:
		if lead {
			return "lead"
		}
		return "answered"
	default:
		return "nothing"
	}
}

// Two lead, the others wait in order. Who leaves waits for nothing, and no turn is lost with it.
func TestFP04_TurnsOfLookUps(t *testing.T) {
	t.Parallel()
	q := &lookups{}
	for range lookupLeaders {
		require.True(t, q.enter(waiting()))
	}
	var list []*lookup
	for range 5 {
		list = append(list, waiting())
		require.False(t, q.enter(list[len(list)-1]), "others lead")
	}
	q.leave(list[0])
	q.leave(list[2])
	require.Equal(t, []*lookup{list[1], list[3], list[4]}, q.take())
	require.Empty(t, q.take())

	first, second, third := waiting(), waiting(), waiting()
	for _, l := range []*lookup{first, second, third} {
		require.False(t, q.enter(l))
	}
	q.handOver()
	require.Equal(t, "nothing", told(second))
	q.leave(first) // it was told to lead
	require.Equal(t, "nothing", told(first))
	require.Equal(t, "lead", told(second))
	third.wake <- false // a batch took it, and answers it
	require.Equal(t, []*lookup{third}, q.take())
	q.leave(third)
	last := waiting()
	require.False(t, q.enter(last), "the turn is not third's to give")
	q.leave(last)
	for range lookupLeaders {
		q.handOver() // to nobody
	}
	for range lookupLeaders {
		require.True(t, q.enter(waiting()))
	}
	require.False(t, q.enter(waiting()))
}

// asked is a runner that notes what it is asked, and a round trip of statements that
// travel together.
type asked struct {
	alone    []string
	together int
	err      error // of what travels together
}

func (a *asked) each(_ context.Context, q string, _ []any, _ scan) error {
	a.alone = append(a.alone, q)
	return nil
}

func (a *asked) pipe(_ context.Context, list []Stmt) error {
	a.together += len(list)
	return a.err
}

// Statements of one look-up travel together, once. What fails so is asked one by one, and
// nothing is where the caller has gone.
func TestFP04_OneRoundTrip(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	lost := errors.New("lost")
	two := []Stmt{{Text: "a"}, {Text: "b"}}
	for name, c := range map[string]struct {
		ctx      context.Context
		stmts    []Stmt
		err      error // of what travels together, and of all
		alone    []string
		together int
	}{
		"two":         {t.Context(), two, nil, nil, 2},
		"one":         {t.Context(), two[:1], nil, []string{"a"}, 0},
		"they fail":   {t.Context(), two, lost, []string{"a", "b"}, 2},
		"nobody asks": {gone, two, context.Canceled, nil, 2},
	} {
		a := &asked{err: c.err}
		r := &reads{at: a, pipe: a.pipe}
		err := r.send(c.ctx, c.stmts)
		if c.alone == nil {
			require.ErrorIs(t, err, c.err, name)
		} else {
			require.NoError(t, err, name)
		}
		require.Equal(t, c.alone, a.alone, name)
		require.Equal(t, c.together, a.together, name)
	}
}
