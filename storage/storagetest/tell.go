package storagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// told is a Change that tells of something, beside a row.
func (e *env) told(objects ...string) storage.Change {
	c := e.put(note(e.id("row"), 0, 1))
	for i, o := range objects {
		c.Tell = append(c.Tell, storage.Event{Kind: "made", Object: o, At: epoch.Add(time.Duration(i) * time.Second), Data: json.RawMessage(`{"n":1}`)})
	}
	return c
}

// events are those of a partition behind a number, read in small pages. Their ids are
// without a gap.
func events(t testing.TB, s storage.Store, p storage.Partition, after int64) (list []storage.Row) {
	t.Helper()
	for {
		rows, err := s.Find(context.Background(), storage.Query{
			Table: storage.Events.Table, Partition: p, Limit: 50,
			Where: []storage.Cond{{Column: storage.ColID, Op: storage.Gt, Value: storage.EventID(after)}},
		})
		require.NoError(t, err)
		for _, r := range rows {
			after++
			require.Equal(t, storage.EventID(after), r.ID, "a gap")
			require.Equal(t, int64(1), r.Version)
			require.True(t, r.Due.IsZero())
		}
		if list = append(list, rows...); len(rows) == 0 {
			return list
		}
	}
}

// objects are what a partition's events happened to, in order.
func objects(t testing.TB, s storage.Store, p storage.Partition) (out []string) {
	t.Helper()
	for _, r := range events(t, s, p, 0) {
		out = append(out, storage.Events.Value(r).Object)
	}
	return out
}

func (e *env) stream(t testing.TB, p storage.Partition) (storage.Stream, storage.Row) {
	t.Helper()
	v, row, _, err := storage.Streams.One(e.ctx, e.s, p, storage.StreamID)
	require.NoError(t, err)
	return v, row
}

func testTell(t testing.TB, e *env) {
	first := e.told("a", "b")
	e.commit(t, first, e.told("c"))
	e.commit(t, first) // there already
	require.Equal(t, []string{"a", "b", "c"}, objects(t, e.s, here))
	require.Empty(t, events(t, e.s, away, 0))
	list := events(t, e.s, here, 1)
	require.Equal(t, first.ID, list[0].Change)
	v := storage.Events.Value(list[0])
	require.Equal(t, storage.Event{Kind: "made", Object: "b", At: first.Tell[1].At, Data: v.Data}, v)
	require.JSONEq(t, `{"n":1}`, string(v.Data))
	stream, row := e.stream(t, here)
	require.Equal(t, int64(3), stream.Last)
	require.Equal(t, int64(2), row.Version)
	require.Equal(t, epoch, row.Due)

	stale := e.told("lost")
	stale.Require = []storage.Guard{Notes.Guard("none", 1)}
	require.ErrorIs(t, e.one(stale), storage.ErrConflict)
	poor := e.post(move(ledger.Wallet("poor"), "x", 1)...)
	poor.Tell = stale.Tell
	require.Error(t, e.one(poor))
	elsewhere := e.told("z")
	elsewhere.Partition = away
	drop := storage.Change{ID: e.id("drop"), Partition: here, Drop: []storage.Row{note(first.Put[0].ID, 1, 0)}, Tell: e.told("d").Tell}
	paid := e.post(fund(ledger.Wallet("w"), 1)...)
	paid.Tell = e.told("e").Tell
	e.commit(t, drop, elsewhere, paid, paid)
	require.ErrorIs(t, e.one(drop), storage.ErrConflict, "as with a level")
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, objects(t, e.s, here), "what did not happen is not told of, and takes no number")
	require.Equal(t, []string{"z"}, objects(t, e.s, away))

	for name, bad := range map[string]storage.Event{
		"no kind": {At: epoch}, "no time": {Kind: "made"}, "no text": {Kind: "ma\x00de", At: epoch}, "no json": {Kind: "made", At: epoch, Data: json.RawMessage(`{`)},
	} {
		c := e.told()
		c.Tell = []storage.Event{bad}
		require.ErrorIs(t, e.one(c), storage.ErrMalformed, name)
	}
	only := e.told("only")
	only.Put = nil
	require.ErrorIs(t, e.one(only), storage.ErrMalformed, "nothing but an event")
}

// Who passes news on finds the partition by its stream, and what comes meanwhile is not
// taken for passed on.
func testTellIsDue(t testing.TB, e *env) {
	claim := func(now time.Time) []storage.Row {
		rows, err := e.s.Claim(e.ctx, storage.Claim{Table: storage.Streams.Table, Now: now, Until: now.Add(time.Minute), Max: 9})
		require.NoError(t, err)
		return rows
	}
	rest := func(r storage.Row) error {
		return e.one(storage.Change{ID: e.id("rest"), Partition: here, Put: []storage.Row{storage.Streams.Row(storage.StreamID, r.Version, time.Time{}, storage.Streams.Value(r))}})
	}
	e.commit(t, e.told("a"))
	require.Empty(t, claim(epoch.Add(-time.Second)))
	mine := claim(epoch)
	require.Len(t, mine, 1)
	require.Empty(t, claim(epoch), "leased")
	e.commit(t, e.told("b"))
	require.ErrorIs(t, rest(mine[0]), storage.ErrConflict, "there is news")
	mine = claim(epoch)
	require.Len(t, mine, 1, "due again at once")
	require.Equal(t, int64(2), storage.Streams.Value(mine[0]).Last)
	require.NoError(t, rest(mine[0]))
	require.Empty(t, claim(epoch.Add(time.Hour)), "at rest")

	// Old events go, and their numbers with them.
	gone := storage.Change{ID: e.id("gone"), Partition: here, Drop: events(t, e.s, here, 0)}
	e.commit(t, gone, e.told("c"))
	require.Len(t, events(t, e.s, here, 2), 1)
	stream, row := e.stream(t, here)
	require.Equal(t, int64(3), stream.Last)
	require.Equal(t, epoch, row.Due)

	// In one batch: what is told, taken away, and told again.
	told, next := e.told("d"), e.told("e")
	away := storage.Change{ID: e.id("away"), Partition: here}
	for _, n := range []int64{3, 4} {
		away.Drop = append(away.Drop, storage.Events.Row(storage.EventID(n), 1, time.Time{}, storage.Event{}))
	}
	e.commit(t, told, away, next)
	require.Len(t, events(t, e.s, here, 4), 1)
}

// Many tell at once, by two handles where there are two, while every second answer is
// lost: the numbers have no gap, each Change is told of once, in the order in which it
// happened, and a reader who follows sees each event once.
func testTellTogether(t testing.TB, e *env) {
	stores := []storage.Store{&Lossy{Store: e.s}, e.s}
	if e.h.Second != nil {
		other := e.h.Second(t, e.s)
		require.NoError(t, other.Open(e.ctx, Tables()...))
		stores = append(stores, &Lossy{Store: other})
	}
	const callers, each = 6, 20
	var wg, reader sync.WaitGroup
	stop, seen := make(chan struct{}), []storage.Row(nil)
	reader.Go(func() {
		for done := false; !done; {
			select {
			case <-stop:
				done = true
			default:
			}
			rows, err := e.s.Find(e.ctx, storage.Query{
				Table: storage.Events.Table, Partition: here, Limit: 7,
				Where: []storage.Cond{{Column: storage.ColID, Op: storage.Gt, Value: storage.EventID(int64(len(seen)))}},
			})
			if err != nil {
				t.Error(err)
				return
			}
			if seen = append(seen, rows...); len(rows) > 0 {
				done = false
			}
		}
	})
	for n := range callers {
		s := stores[n%len(stores)]
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d/%d", n, i)
				decide := func(ctx context.Context) (storage.Change, error) {
					c := storage.Change{ID: id, Partition: here, Put: []storage.Row{note(id, 0, 0)}}
					if _, _, done, err := Notes.One(ctx, s, here, id); done || err != nil {
						return storage.Change{}, err
					}
					v, row, _, err := Notes.One(ctx, s, here, "hot")
					if i%2 == 0 {
						c.Put = append(c.Put, note("hot", row.Version, v.N+1))
					}
					for k := range i%3 + 1 {
						c.Tell = append(c.Tell, storage.Event{Kind: fmt.Sprint(v.N + 1), Object: fmt.Sprintf("%s/%d", id, k), At: epoch})
					}
					return c, err
				}
				err := storage.ErrUnknown
				for tries := 0; tries < 20 && (errors.Is(err, storage.ErrUnknown) || errors.Is(err, storage.ErrConflict)); tries++ {
					err = storage.Decide(e.ctx, s, decide)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	reader.Wait()
	list := events(t, e.s, here, 0)
	require.Len(t, seen, len(list))
	once, hot := map[string]bool{}, int64(0)
	for i, r := range list {
		require.Equal(t, r.ID, seen[i].ID, "who follows sees all")
		v := storage.Events.Value(r)
		require.False(t, once[v.Object], "told twice: %s", v.Object)
		once[v.Object] = true
		var n, at, k int
		_, err := fmt.Sscanf(v.Object, "%d/%d/%d", &n, &at, &k)
		require.NoError(t, err)
		if k > 0 {
			require.Equal(t, fmt.Sprintf("%s/%d", r.Change, k-1), storage.Events.Value(list[i-1]).Object, "those of a Change stand together")
		}
		if at%2 == 0 && k == 0 { // the hot row's Changes, in the order of its content
			hot++
			require.Equal(t, fmt.Sprint(hot), v.Kind)
		}
	}
	require.Equal(t, int64(callers*each/2), hot)
	want := 0
	for i := range each {
		want += callers * (i%3 + 1)
	}
	require.Len(t, once, want)
	stream, _ := e.stream(t, here)
	require.Equal(t, int64(want), stream.Last)
}

// Telling is the Change with an event beside it.
func Telling(c storage.Change) storage.Change {
	c.Tell = []storage.Event{{Kind: "made", Object: c.ID, At: epoch}}
	return c
}

// AuditStream requires a partition's events to be without a gap up to its stream's Last,
// but for the oldest, which may be gone, and returns how many there are.
func AuditStream(t testing.TB, s storage.Store, p storage.Partition) int64 {
	t.Helper()
	ctx := context.Background()
	stream, _, _, err := storage.Streams.One(ctx, s, p, storage.StreamID)
	require.NoError(t, err)
	first, err := s.Find(ctx, storage.Query{Table: storage.Events.Table, Partition: p, Limit: 1})
	require.NoError(t, err)
	if len(first) == 0 {
		return 0
	}
	var from int64
	_, err = fmt.Sscan(first[0].ID, &from)
	require.NoError(t, err)
	n := stream.Last - from + 1
	require.Len(t, events(t, s, p, from-1), int(n), "events of %s", p)
	return n
}
