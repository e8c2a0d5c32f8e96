package stream_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

const (
	shopA = storage.Partition("tenant/a")
	shopB = storage.Partition("tenant/b")
)

// listener is a host that hears the events of a store as consumer "host". Its clock stands.
type listener struct {
	*testing.T
	*stream.Service
	store storage.Store
	clock atomic.Int64

	mu   sync.Mutex
	list map[storage.Partition][]int64 // what was heard where there is no table for it
}

func listen(t *testing.T, store storage.Store) *listener {
	t.Helper()
	l := &listener{T: t, store: store, list: map[storage.Partition][]int64{}}
	l.clock.Store(time.Now().UnixMilli())
	require.NoError(t, store.Open(t.Context(), tables()...))
	l.sql("CREATE TABLE IF NOT EXISTS heard (part varchar(100), number bigint)")
	return l
}

func (l *listener) now() time.Time { return time.UnixMilli(l.clock.Load()).UTC() }

func (l *listener) advance(d time.Duration) { l.clock.Add(d.Milliseconds()) }

// sql does something to the host's own tables, where it has any.
func (l *listener) sql(statements ...string) {
	l.Helper()
	begin, ok := l.store.(storage.Transactor)
	if !ok {
		return
	}
	require.NoError(l, begin.InTx(l.Context(), storage.Tenant("host"), func(ctx context.Context, tx *sql.Tx, _ storage.Tx) error {
		for _, q := range statements {
			if _, err := tx.ExecContext(ctx, q); err != nil {
				return err
			}
		}
		return nil
	}))
}

// on is a process of the host over a store, which is the listener's own or in its place.
func (l *listener) on(store storage.Store, lease time.Duration, c stream.Consumer) *stream.Service {
	l.Helper()
	c.Name = "host"
	s, err := stream.New(stream.Config{
		Store: store, Consumers: []stream.Consumer{c}, Lease: lease, Now: l.now, NewID: uuid.NewString,
		Kinds: stream.Kinds{"odd": func(json.RawMessage) (stream.Body, error) { return nil, errors.New("no such body") }},
		Log:   slog.New(slog.NewTextHandler(l.Output(), nil)),
	})
	require.NoError(l, err)
	require.NoError(l, s.Register(l.Context()))
	return s
}

// serve starts the host's process, or another in its place.
func (l *listener) serve(lease time.Duration, c stream.Consumer) {
	l.Helper()
	l.Service = l.on(l.store, lease, c)
}

// after hears an event once first was done without an error.
func (l *listener) after(first func(ctx context.Context, tx stream.Tx, e stream.Event) error) func(context.Context, stream.Tx, stream.Event) error {
	return func(ctx context.Context, tx stream.Tx, e stream.Event) error {
		if err := first(ctx, tx, e); err != nil {
			return err
		}
		if tx.SQL == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.list[e.Partition] = append(l.list[e.Partition], e.Number)
		}
		return hear(ctx, tx, e)
	}
}

func nothing(context.Context, stream.Tx, stream.Event) error { return nil }

// tell makes an event of each object; of kind odd where the object is "odd".
func (l *listener) tell(p storage.Partition, objects ...string) {
	l.Helper()
	for _, object := range objects {
		kind := "k"
		if object == "odd" {
			kind = object
		}
		c := noted(p)
		c.Tell = []storage.Event{{Kind: kind, Object: object, At: l.now()}}
		require.NoError(l, storage.CommitOne(l.Context(), l.store, c))
	}
}

// noted is a Change that writes something.
func noted(p storage.Partition) storage.Change {
	id := uuid.NewString()
	return storage.Change{ID: id, Partition: p, Put: []storage.Row{storagetest.Notes.Row(id, 0, time.Time{}, storagetest.Note{})}}
}

func (l *listener) place(p storage.Partition) stream.Place {
	l.Helper()
	v, _, _, err := stream.Places.One(l.Context(), l.store, p, "host")
	require.NoError(l, err)
	return v
}

// until goes on until so many events of a partition were seen. It returns the errors of
// Step.
func (l *listener) until(p storage.Partition, seen int64) error {
	l.Helper()
	var failed []error
	for range 25 {
		if l.place(p).Seen == seen {
			return errors.Join(failed...)
		}
		if _, err := l.Step(l.Context()); err != nil {
			failed = append(failed, err)
		}
		l.advance(2 * time.Hour) // leases and pauses end
	}
	require.Fail(l, "the events of a partition do not go on", "%+v: %v", l.place(p), failed)
	return nil
}

// heard are the numbers of the events that were heard, in their order.
func (l *listener) heard(p storage.Partition) (numbers []int64) {
	l.Helper()
	begin, ok := l.store.(storage.Transactor)
	if !ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		return slices.Clone(l.list[p])
	}
	require.NoError(l, begin.InTx(l.Context(), storage.Tenant("host"), func(ctx context.Context, tx *sql.Tx, _ storage.Tx) error {
		rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT number FROM heard WHERE part = '%s' ORDER BY number", p))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var n int64
			if err := rows.Scan(&n); err != nil {
				return err
			}
			numbers = append(numbers, n)
		}
		return rows.Err()
	}))
	return numbers
}

// dead are the dead letters of a partition, which are these numbers.
func (l *listener) dead(p storage.Partition, numbers ...int64) []stream.DeadLetter {
	l.Helper()
	letters, err := l.Dead(l.Context(), p, "host", 0, 100)
	require.NoError(l, err)
	var have []int64
	for _, d := range letters {
		have = append(have, d.Number)
	}
	require.Equal(l, numbers, have)
	return letters
}

// failing is the one place whose next event has failed.
func (l *listener) failing() stream.Failing {
	l.Helper()
	states, err := l.States(l.Context())
	require.NoError(l, err)
	require.Len(l, states, 1)
	require.Len(l, states[0].Failing, 1)
	return states[0].Failing[0]
}

// lite is a listener on SQLite; file is the database's.
func lite(t *testing.T) (l *listener, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, sqlite.Migrate(t.Context(), file, tables()...))
	store, err := sqlite.Open(file, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return listen(t, store), file
}

// elephant is a listener on PostgreSQL.
func elephant(t *testing.T, o postgres.Options) (l *listener, dsn string) {
	t.Helper()
	dsn = testenv.Postgres(t).DSN("postgres")
	require.NoError(t, postgres.Migrate(t.Context(), dsn, postgres.Options{}, tables()...))
	store, err := postgres.Open(dsn, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return listen(t, store), dsn
}

// withAndWithout runs a test on a store with transactions, and on one without.
func withAndWithout(t *testing.T, test func(t *testing.T, l *listener)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		l, _ := lite(t)
		test(t, l)
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, listen(t, memory.New()))
	})
}

// watched is a store that asks read after each Find.
type watched struct {
	storage.Store
	storage.Transactor
	read func(q *storage.Query) error
}

func (l *listener) watched(read func(q *storage.Query) error) watched {
	l.Helper()
	begin, ok := l.store.(storage.Transactor)
	require.True(l, ok)
	return watched{l.store, begin, read}
}

func (w watched) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	rows, err := w.Store.Find(ctx, q)
	if e := w.read(&q); e != nil {
		return nil, e
	}
	return rows, err
}

// A process that says a later Since when it starts again hears what happened meanwhile:
// the Since of the first registration counts.
func TestFE01_SinceIsWhatWasRegisteredFirst(t *testing.T) {
	t.Parallel()
	withAndWithout(t, func(t *testing.T, l *listener) {
		l.tell(shopA, "before")
		l.advance(time.Minute)
		l.serve(time.Minute, stream.Consumer{Handle: l.after(nothing), Since: l.now()})
		l.advance(time.Minute)
		l.tell(shopA, "while nobody listened")
		l.advance(time.Minute)
		l.serve(time.Minute, stream.Consumer{Handle: l.after(nothing), Since: l.now()})
		l.tell(shopA, "after")
		require.NoError(t, l.until(shopA, 3))
		require.Equal(t, []int64{2, 3}, l.heard(shopA))
		l.dead(shopA)
	})
}

// An event whose handler waits until its context ends has failed; after its tries it is a
// dead letter, and the events behind it are handled.
func TestFE01_HandlerThatHangsBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	withAndWithout(t, func(t *testing.T, l *listener) {
		l.serve(time.Second, stream.Consumer{Tries: 2, Handle: l.after(func(ctx context.Context, _ stream.Tx, e stream.Event) error {
			if e.Object == "bad" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})})
		l.tell(shopA, "bad", "good", "good")
		_ = l.until(shopA, 3)
		require.Equal(t, []int64{2, 3}, l.heard(shopA))
		require.Equal(t, context.DeadlineExceeded.Error(), l.dead(shopA, 1)[0].Error)
	})
}

// A backlog that takes longer than one process may have the place goes on with each turn:
// what was handled stays handled, and no event becomes a dead letter for it.
func TestFE01_LongBacklogGoesOn(t *testing.T) {
	t.Parallel()
	withAndWithout(t, func(t *testing.T, l *listener) {
		l.serve(time.Second, stream.Consumer{Handle: l.after(func(context.Context, stream.Tx, stream.Event) error {
			time.Sleep(10 * time.Millisecond) // 100 of them are longer than the lease
			return nil
		})})
		var all []int64
		for i := range int64(100) {
			l.tell(shopA, "")
			all = append(all, i+1)
		}
		_ = l.until(shopA, 100)
		l.dead(shopA)
		heard := l.heard(shopA)
		if _, once := l.store.(storage.Transactor); !once {
			slices.Sort(heard)
			heard = slices.Compact(heard)
		}
		require.Equal(t, all, heard)
	})
}

// Of two operators who deal with the same dead letter at the same time one succeeds, and
// the other is told that there is none: the event is handled once, or not where it was
// discarded.
func TestFE01_TwoRetriesHandleOnce(t *testing.T) {
	t.Parallel()
	type deal func(s *stream.Service) (int, error)
	retry := func(s *stream.Service) (int, error) { return s.Retry(t.Context(), shopA, "host", "o") }
	discard := func(s *stream.Service) (int, error) { return s.Discard(t.Context(), shopA, "host", "o") }
	for name, other := range map[string]deal{"retry": retry, "discard": discard} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := lite(t)
			l.serve(time.Minute, stream.Consumer{Tries: 1, Handle: func(context.Context, stream.Tx, stream.Event) error { return errors.New("no") }})
			l.tell(shopA, "o")
			require.NoError(t, l.until(shopA, 1))
			require.Equal(t, "no", l.dead(shopA, 1)[0].Error)

			var found atomic.Int64
			both := make(chan struct{}) // have found the letter
			s := l.on(l.watched(func(q *storage.Query) error {
				if q.Table == stream.Letters.Table {
					if found.Add(1) == 2 {
						close(both)
					}
					<-both
				}
				return nil
			}), time.Minute, stream.Consumer{Handle: l.after(nothing)})
			var n [2]int
			var errs [2]error
			var all sync.WaitGroup
			for i, f := range []deal{retry, other} {
				all.Go(func() { n[i], errs[i] = f(s) })
			}
			all.Wait()
			require.ElementsMatch(t, []int{0, 1}, n[:])
			lost := slices.Index(n[:], 0)
			require.ErrorIs(t, errs[lost], stream.ErrNoLetter)
			require.NoError(t, errs[1-lost])
			if name == "retry" || lost == 1 {
				require.Equal(t, []int64{1}, l.heard(shopA))
			} else {
				require.Empty(t, l.heard(shopA), "it was discarded")
			}
			l.dead(shopA)
			require.EqualValues(t, 1, l.place(shopA).Seen)
		})
	}
}

// A delivery that has found a letter of an object before Retry handled that one does not put
// the next event of the object aside behind it: both are handled once, in their order.
func TestFE01_RetryBesideADelivery(t *testing.T) {
	t.Parallel()
	l, _ := lite(t)
	l.serve(time.Minute, stream.Consumer{Tries: 1, Handle: func(context.Context, stream.Tx, stream.Event) error { return errors.New("no") }})
	l.tell(shopA, "o")
	require.NoError(t, l.until(shopA, 1))
	l.dead(shopA, 1)

	retrying, looked := make(chan struct{}), make(chan struct{})
	l.serve(time.Minute, stream.Consumer{Handle: l.after(func(_ context.Context, _ stream.Tx, e stream.Event) error {
		if e.Number == 1 {
			close(retrying)
			<-looked
		}
		return nil
	})})
	tell := sync.OnceFunc(func() { close(looked) })
	delivering := l.on(l.watched(func(q *storage.Query) error {
		if q.Table == stream.Letters.Table {
			tell()
		}
		return nil
	}), time.Minute, stream.Consumer{Handle: l.after(nothing)})
	l.tell(shopA, "o")
	_, err := l.Relay(t.Context())
	require.NoError(t, err)
	rows, err := l.store.Claim(t.Context(), storage.Claim{Table: stream.Places.Table, Now: l.now(), Until: l.now().Add(time.Minute), Max: 1})
	require.NoError(t, err)
	require.Len(t, rows, 1)

	var n int
	var failed error
	var all sync.WaitGroup
	all.Go(func() { n, failed = l.Retry(t.Context(), shopA, "host", "o") })
	<-retrying
	require.NoError(t, delivering.Deliver(t.Context(), rows[0]))
	all.Wait()
	require.NoError(t, failed)
	require.Equal(t, 1, n)
	require.NoError(t, l.until(shopA, 2))
	require.Equal(t, []int64{1, 2}, l.heard(shopA))
	l.dead(shopA)
}

// deferring makes a handler whose transaction cannot be committed after a bad event.
func deferring(l *listener) func(context.Context, stream.Tx, stream.Event) error {
	l.sql("CREATE TABLE parent (id INTEGER PRIMARY KEY)", "CREATE TABLE kid (n INTEGER REFERENCES parent(id) DEFERRABLE INITIALLY DEFERRED)")
	return l.after(func(ctx context.Context, tx stream.Tx, e stream.Event) error {
		if e.Object != "bad" {
			return nil
		}
		_, err := tx.SQL.ExecContext(ctx, "INSERT INTO kid VALUES (7)")
		return err
	})
}

// A handler after which the transaction cannot be committed has failed for its own event
// and no other: the one before it is handled, and those behind it once it is a dead letter.
func TestFE01_CommitThatFailsIsCountedForItsEvent(t *testing.T) {
	t.Parallel()
	l, _ := lite(t)
	l.serve(time.Minute, stream.Consumer{Tries: 2, Handle: deferring(l)})
	l.tell(shopA, "good", "bad", "good")
	_, err := l.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{1}, l.heard(shopA))
	f := l.failing()
	require.Equal(t, []any{shopA, int64(1), 1}, []any{f.Partition, f.Number, f.Tries})
	require.Contains(t, f.Error, "FOREIGN KEY")
	l.advance(time.Hour)
	require.NoError(t, l.until(shopA, 3))
	require.Equal(t, []int64{1, 3}, l.heard(shopA))
	require.Contains(t, l.dead(shopA, 2)[0].Error, "FOREIGN KEY")
	require.Zero(t, l.place(shopA).Tries)
}

// A handler that passes over an error which has spoiled the transaction has failed for its
// own event, with what the database says, and the events before it stay handled.
func TestFE01_ErrorThatAHandlerPassesOverIsCountedForItsEvent(t *testing.T) {
	t.Parallel()
	l, _ := elephant(t, postgres.Options{})
	l.sql("CREATE UNIQUE INDEX once ON heard (part)")
	l.serve(time.Minute, stream.Consumer{Tries: 2, Handle: func(ctx context.Context, tx stream.Tx, e stream.Event) error {
		_ = hear(ctx, tx, e) // it is there already: as good as done
		return nil
	}})
	l.tell(shopA, "1", "2", "3")
	require.NoError(t, l.until(shopA, 3))
	require.Equal(t, []int64{1}, l.heard(shopA))
	for _, d := range l.dead(shopA, 2, 3) {
		require.Contains(t, d.Error, "SQLSTATE 25P02")
	}
}

// An event that cannot be read, as a row or as what its kind says, becomes a dead letter
// with the reason; all others are handled, and the row is, too, once it was put right.
func TestFE01_UnreadableEventIsADeadLetter(t *testing.T) {
	t.Parallel()
	l, file := lite(t)
	l.serve(time.Minute, stream.Consumer{Tries: 2, Handle: l.after(nothing)})
	l.tell(shopA, "good", "broken", "good", "odd", "good")
	host, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer host.Close()
	write := func(data string) {
		_, err := host.ExecContext(t.Context(), "UPDATE cryptopay_stream_events SET data = ? WHERE id = ?", data, storage.EventID(2))
		require.NoError(t, err)
	}
	write("{")
	require.NoError(t, l.until(shopA, 5))
	require.Equal(t, []int64{1, 3, 5}, l.heard(shopA))
	letters := l.dead(shopA, 2, 4)
	require.Contains(t, letters[0].Error, "unexpected end of JSON input")
	require.Contains(t, letters[1].Error, "no such body")

	_, err = l.Retry(t.Context(), shopA, "host", letters[0].Object)
	require.ErrorContains(t, err, "unexpected end of JSON input")
	_, err = l.Retry(t.Context(), shopA, "host", "odd")
	require.ErrorContains(t, err, "no such body")
	l.dead(shopA, 2, 4)
	write("{}")
	n, err := l.Retry(t.Context(), shopA, "host", letters[0].Object)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []int64{1, 2, 3, 5}, l.heard(shopA))
	l.dead(shopA, 4)
}

// What fails for one tenant, be it a handler's commit or the store, leaves the others their
// turn in the same Step.
func TestFE01_OneTenantsFailureLeavesOthersTheirTurn(t *testing.T) {
	t.Parallel()
	t.Run("commit", func(t *testing.T) {
		t.Parallel()
		l, _ := lite(t)
		l.serve(time.Minute, stream.Consumer{Handle: deferring(l)})
		l.tell(shopA, "bad")
		l.tell(shopB, "good")
		_, err := l.Step(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int64{1}, l.heard(shopB))
		require.Empty(t, l.heard(shopA))
		require.Equal(t, shopA, l.failing().Partition)
	})
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		l, _ := lite(t)
		gone := errors.New("the store is gone")
		s := l.on(l.watched(func(q *storage.Query) error {
			if q.Table == storage.Events.Table && q.Partition == shopA {
				return gone
			}
			return nil
		}), time.Minute, stream.Consumer{Handle: l.after(nothing)})
		l.tell(shopA, "1")
		l.advance(time.Second) // the first to have its turn
		l.tell(shopB, "1")
		_, err := s.Step(t.Context())
		require.ErrorIs(t, err, gone)
		require.Equal(t, []int64{1}, l.heard(shopB))
		require.Empty(t, l.heard(shopA))
		l.serve(time.Minute, stream.Consumer{Handle: l.after(nothing)})
		l.advance(time.Hour)
		require.NoError(t, l.until(shopA, 1))
		require.Equal(t, []int64{1}, l.heard(shopA), "once the store is there again")
		l.dead(shopA)
	})
}

// A transaction of the library waits, as a commit does, for what the host writes to the
// same database file on a connection of its own.
func TestFE01_TransactionWaitsForTheHostsOwn(t *testing.T) {
	t.Parallel()
	l, file := lite(t)
	l.serve(time.Minute, stream.Consumer{Handle: l.after(nothing)})
	l.tell(shopA, "1")
	host, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer host.Close()
	conn, err := host.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), "INSERT INTO heard VALUES ('host', 9)")
	require.NoError(t, err)
	done := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { // the host's transaction takes that long
		_, err := conn.ExecContext(context.Background(), "COMMIT")
		done <- err
	})
	l.sql("INSERT INTO heard VALUES ('host', 10)")
	require.NoError(t, <-done)
	require.Equal(t, []int64{9, 10}, l.heard("host"))
	require.NoError(t, l.until(shopA, 1))
	require.Equal(t, []int64{1}, l.heard(shopA))
}

// Handlers that ask nothing of the database for a while, one after the other, do not keep
// one transaction open until the server ends it: all events are handled.
func TestFE01_HandlersThatAskTheDatabaseNothing(t *testing.T) {
	t.Parallel()
	l, _ := elephant(t, postgres.Options{LockTimeout: 2 * time.Second})
	handled := map[int64]int{}
	l.serve(time.Minute, stream.Consumer{Handle: func(_ context.Context, _ stream.Tx, e stream.Event) error {
		time.Sleep(100 * time.Millisecond) // as a request to another service
		handled[e.Number]++
		return nil
	}})
	want := map[int64]int{}
	for i := range int64(25) {
		l.tell(shopA, "")
		want[i+1] = 1
	}
	require.NoError(t, l.until(shopA, 25))
	require.Equal(t, want, handled, "each once")
	l.dead(shopA)
}

// While a transaction of the host has one tenant locked, the events of others are relayed
// and handled; that tenant's are once the transaction has ended.
func TestFE01_RelayWaitsForNoLockedTenant(t *testing.T) {
	t.Parallel()
	l, _ := elephant(t, postgres.Options{LockTimeout: 20 * time.Second})
	l.serve(time.Minute, stream.Consumer{Handle: l.after(nothing)})
	l.tell(shopA, "1")
	l.tell(shopB, "1")
	begin, ok := l.store.(storage.Transactor)
	require.True(t, ok)
	require.NoError(t, begin.InTx(t.Context(), shopA, func(ctx context.Context, _ *sql.Tx, in storage.Tx) error {
		if err := storage.CommitOne(ctx, in, noted(shopA)); err != nil {
			return err
		}
		_, err := l.Step(ctx)
		require.NoError(t, err)
		require.Equal(t, []int64{1}, l.heard(shopB))
		require.Empty(t, l.heard(shopA))
		return nil
	}), "the server ends a transaction that others wait for too long")
	l.advance(time.Minute)
	require.NoError(t, l.until(shopA, 1))
	require.Equal(t, []int64{1}, l.heard(shopA))
	require.Equal(t, []int64{1}, l.heard(shopB))
}

// pooled makes the listener's store one over a pool of the host's with so many connections,
// which knows nothing yet of the tenants: as a process that has just started.
func pooled(l *listener, dsn string, connections int) {
	l.Helper()
	db, err := sqlx.Open("pgx", dsn)
	require.NoError(l, err)
	l.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(connections)
	store, err := postgres.OpenDB(db, postgres.Options{})
	require.NoError(l, err)
	require.NoError(l, store.Open(l.Context(), tables()...))
	l.store = store
}

// Two connections are enough for a host: the transaction of a tenant's first event needs
// no more than the one that the library may have.
func TestFE01_HostsPoolOfTwoConnections(t *testing.T) {
	t.Parallel()
	l, dsn := elephant(t, postgres.Options{})
	l.serve(time.Minute, stream.Consumer{Handle: l.after(nothing)})
	l.tell(shopA, "1", "2")
	_, err := l.Relay(t.Context()) // another process has relayed them
	require.NoError(t, err)
	pooled(l, dsn, 2)
	l.serve(20*time.Second, stream.Consumer{Handle: l.after(nothing)})
	_, err = l.Step(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, l.place(shopA).Seen)
	require.Equal(t, []int64{1, 2}, l.heard(shopA))
}

// Handlers that have all connections which the library may take of a host's pool keep
// neither each other nor another tenant's commit from ending.
func TestFE01_HandlersThatHaveAllConnections(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("another database server")
	}
	const connections = 8
	l, dsn := elephant(t, postgres.Options{})
	l.serve(time.Minute, stream.Consumer{Handle: l.after(nothing)})
	for i := range connections {
		l.tell(storage.Tenant(fmt.Sprint("s", i)), "1")
	}
	_, err := l.Relay(t.Context())
	require.NoError(t, err)
	pooled(l, dsn, connections)
	in, out := make(chan struct{}, connections), make(chan struct{})
	l.serve(time.Minute, stream.Consumer{Handle: l.after(func(ctx context.Context, _ stream.Tx, _ stream.Event) error {
		in <- struct{}{}
		select {
		case <-out:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})})
	r := l.Service.Run(t.Context(), connections)
	n, err := r.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, connections, n)
	for range connections - 1 { // one is the host's
		<-in
	}
	committed := make(chan error, 1)
	go func() { committed <- storage.CommitOne(t.Context(), l.store, noted(storage.Tenant("other"))) }()
	close(out)
	require.NoError(t, <-committed)
	require.NoError(t, r.Close(t.Context()))
	for i := range connections {
		p := storage.Tenant(fmt.Sprint("s", i))
		require.EqualValues(t, 1, l.place(p).Seen, p)
		require.Equal(t, []int64{1}, l.heard(p), p)
		l.dead(p)
	}
}

// A handler that hangs and does not look at its context holds up its own tenant alone, until
// its context has ended: not the commits of others, and not the end of the process.
func TestFE01_HandlerThatNeverReturns(t *testing.T) {
	t.Parallel()
	l, _ := lite(t)
	in, out := make(chan struct{}), make(chan struct{})
	l.serve(time.Second, stream.Consumer{Handle: func(context.Context, stream.Tx, stream.Event) error {
		close(in)
		<-out
		return nil
	}})
	l.tell(shopA, "1")
	stepped := make(chan error, 1)
	go func() {
		_, err := l.Step(t.Context())
		stepped <- err
	}()
	<-in
	l.tell(shopB, "1")
	closed := make(chan error, 1)
	go func() { closed <- l.store.Close() }()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "the store cannot be closed")
	}
	close(out)
	<-stepped
}

// An error may have any bytes, such as those of an answer that was not understood: it is
// counted and kept as another is.
func TestFE01_ErrorOfAnyBytes(t *testing.T) {
	t.Parallel()
	withAndWithout(t, func(t *testing.T, l *listener) {
		l.serve(time.Minute, stream.Consumer{Tries: 2, Handle: l.after(func(_ context.Context, _ stream.Tx, e stream.Event) error {
			if e.Object == "bad" {
				return errors.New("the answer was \x1f\x8b\x00\xff")
			}
			return nil
		})})
		l.tell(shopA, "bad", "good")
		require.NoError(t, l.until(shopA, 2))
		require.Equal(t, []int64{2}, l.heard(shopA))
		require.Contains(t, l.dead(shopA, 1)[0].Error, "the answer was")
	})
}

// busy is a store whose database is locked elsewhere for so many transactions.
type busy struct {
	storage.Store
	storage.Transactor
	times int
}

func (b *busy) InTx(ctx context.Context, p storage.Partition, f func(context.Context, *sql.Tx, storage.Tx) error) error {
	if b.times--; b.times >= 0 {
		return storage.ErrBusy
	}
	return b.Transactor.InTx(ctx, p, f)
}

// A database that is locked elsewhere is no failure of an event: it is handled later, and
// no try of it is counted.
func TestFE01_LockedDatabaseIsNoFailureOfAnEvent(t *testing.T) {
	t.Parallel()
	l, _ := lite(t)
	l.tell(shopA, "1", "2")
	locked := &busy{l.store, l.store.(storage.Transactor), 3}
	l.Service = l.on(locked, time.Minute, stream.Consumer{Handle: l.after(nothing), Tries: 1})
	for range 3 {
		_, err := l.Step(t.Context())
		require.ErrorIs(t, err, storage.ErrBusy)
		require.Zero(t, l.place(shopA).Tries)
		l.advance(2 * time.Minute)
	}
	require.NoError(t, l.until(shopA, 2))
	require.Equal(t, []int64{1, 2}, l.heard(shopA))
	l.dead(shopA)
}

// A process that is stopped while it handles an event does not count that as a failure: the
// next one handles the event at once.
func TestFE01_StoppedProcessIsNoFailureOfAnEvent(t *testing.T) {
	t.Parallel()
	withAndWithout(t, func(t *testing.T, l *listener) {
		ctx, stop := context.WithCancel(t.Context())
		l.serve(time.Minute, stream.Consumer{Tries: 1, Handle: l.after(func(ctx context.Context, _ stream.Tx, _ stream.Event) error {
			stop()
			return ctx.Err()
		})})
		l.tell(shopA, "1")
		_, err := l.Step(ctx)
		require.NoError(t, err)
		require.Zero(t, l.place(shopA).Tries)
		l.serve(time.Minute, stream.Consumer{Tries: 1, Handle: l.after(nothing)})
		_, err = l.Step(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int64{1}, l.heard(shopA))
		l.dead(shopA)
	})
}

// Retry tells the error of a handler, also where that is one of the store's.
func TestFE01_RetryTellsTheHandlersError(t *testing.T) {
	t.Parallel()
	withAndWithout(t, func(t *testing.T, l *listener) {
		l.serve(time.Minute, stream.Consumer{Tries: 1, Handle: func(context.Context, stream.Tx, stream.Event) error { return storage.ErrConflict }})
		l.tell(shopA, "1")
		require.NoError(t, l.until(shopA, 1))
		l.dead(shopA, 1)
		n, err := l.Retry(t.Context(), shopA, "host", "1")
		require.ErrorIs(t, err, storage.ErrConflict)
		require.Zero(t, n)
		l.dead(shopA, 1)
	})
}

// A consumer that was retired, and whose letters were discarded then, hears again where it
// is registered again.
func TestFE01_RetiredConsumerComesBack(t *testing.T) {
	t.Parallel()
	withAndWithout(t, func(t *testing.T, l *listener) {
		l.serve(time.Minute, stream.Consumer{Tries: 1, Handle: func(context.Context, stream.Tx, stream.Event) error { return errors.New("no") }})
		l.tell(shopA, "1")
		require.NoError(t, l.until(shopA, 1))
		l.dead(shopA, 1)
		operator, err := stream.New(stream.Config{Store: l.store, Kinds: stream.Kinds{}, Now: l.now, NewID: uuid.NewString})
		require.NoError(t, err)
		require.NoError(t, operator.Retire(t.Context(), "host"))
		_, err = operator.CatchUp(t.Context(), l.store, shopA)
		require.NoError(t, err)
		require.Zero(t, l.place(shopA))
		n, err := operator.Discard(t.Context(), shopA, "host", "1")
		require.NoError(t, err)
		require.Equal(t, 1, n)
		l.serve(time.Minute, stream.Consumer{Handle: l.after(nothing)})
		l.tell(shopA, "2")
		require.NoError(t, l.until(shopA, 2))
		require.Equal(t, []int64{1, 2}, l.heard(shopA))
	})
}
