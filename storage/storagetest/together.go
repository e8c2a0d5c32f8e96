package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

func testOnce(t testing.TB, e *env) {
	request := func(key, body, answer string, now time.Time) (string, bool, error) {
		o := storage.Once{Key: key, Fingerprint: body, Encode: func(any) ([]byte, error) { return []byte(answer), nil }}
		var response []byte
		var replayed bool
		err := storage.Decide(e.ctx, e.s, func(ctx context.Context) (storage.Change, error) {
			var err error
			if response, replayed, err = o.Find(ctx, e.s, here, now); err != nil || replayed {
				return storage.Change{}, err
			}
			response = []byte(answer)
			c := e.post(fund(ledger.Wallet("w"), 1)...)
			return c, o.AddTo(&c, now, nil)
		})
		return string(response), replayed, err
	}
	var wg sync.WaitGroup
	var replays atomic.Int64
	answers := make([]string, 6)
	for i := range answers {
		wg.Go(func() { // callers of different processes: nothing in memory keeps them apart
			got, replayed, err := request("key", "body", fmt.Sprint("answer ", i), epoch)
			if err != nil {
				t.Errorf("request %d: %v", i, err)
			}
			if replayed {
				replays.Add(1)
			}
			answers[i] = got
		})
	}
	wg.Wait()
	require.Equal(t, int64(5), replays.Load())
	for _, a := range answers {
		require.Equal(t, answers[0], a)
	}
	require.Equal(t, ledger.Amount(1), e.balance(t, ledger.Wallet("w")).Posted, "one effect")
	_, _, err := request("key", "other body", "", epoch)
	require.ErrorIs(t, err, storage.ErrIdempotencyMismatch)

	later := epoch.Add(storage.OnceFor)
	_, replayed, err := request("key", "body", "", later.Add(-time.Microsecond))
	require.NoError(t, err)
	require.True(t, replayed)
	got, replayed, err := request("key", "other body", "second life", later)
	require.NoError(t, err)
	require.False(t, replayed)
	require.Equal(t, "second life", got)

	n, err := storage.PurgeOnce(e.ctx, e.s, later, time.Minute, page)
	require.NoError(t, err)
	require.Zero(t, n, "it is in use again")
	n, err = storage.PurgeOnce(e.ctx, e.s, later.Add(storage.OnceFor), time.Minute, page)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, ok := e.row(t, storage.OnceTable.Table, "key")
	require.False(t, ok)
}

func testActivity(t testing.TB, e *env) {
	a := storage.Activity{
		Kind: storage.ActivityPayment, Status: "waiting", Currency: coin, Amount: 100, Fee: 1, Net: 99,
		Address: "addr", Reference: "order 1", CreatedAt: epoch, UpdatedAt: epoch, Metadata: []byte(`{"order_id":"order 1"}`),
	}
	for i, status := range []string{"waiting", "confirming", "completed"} {
		a.Status = status
		row, changed, err := storage.ActivityRow(e.ctx, e.s, here, "p1", a)
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, int64(i), row.Version)
		e.commit(t, e.put(row))
		_, changed, err = storage.ActivityRow(e.ctx, e.s, here, "p1", a)
		require.NoError(t, err)
		require.False(t, changed, "the line is as it should be")
	}
	got, _, ok, err := storage.Activities.One(e.ctx, e.s, here, "p1")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, a, got)
}

// W11: however many ask at once, exactly what is there can be taken.
func testDrain(t testing.TB, e *env) {
	e.drain(t, "w", 16, 12, 100)
	e.drain(t, "thousand", 1000, 1, 617)
}

func (e *env) drain(t testing.TB, name string, callers, each int, there ledger.Amount) {
	w, out := ledger.Wallet(name), ledger.Account("out/"+name)
	e.commit(t, e.post(fund(w, there)...))
	var won, refused atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				var funds *ledger.InsufficientFundsError
				switch err := storage.CommitOne(e.ctx, e.s, e.post(move(w, out, 1)...)); {
				case err == nil:
					won.Add(1)
				case errors.As(err, &funds):
					refused.Add(1)
				default:
					t.Errorf("neither paid nor refused: %v", err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(there), won.Load())
	require.Equal(t, int64(callers*each)-int64(there), refused.Load())
	require.Zero(t, e.balance(t, w).Posted)
	require.Equal(t, there, e.balance(t, out).Posted)
}

func testSameChangeTwice(t testing.TB, e *env) {
	for round := range 5 {
		c := e.post(fund(ledger.Wallet("w"), 1)...)
		c.Put = []storage.Row{named(fmt.Sprint("row", round), 0, fmt.Sprint("name", round))}
		c.Level = []storage.Level{{Name: fmt.Sprint("l", round), Delta: 1, Max: 1}}
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if err := storage.CommitOne(e.ctx, e.s, c); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, ledger.Amount(round+1), e.balance(t, ledger.Wallet("w")).Posted)
	}
}

// errCut is an answer that was lost on its way.
var errCut = errors.New("connection cut")

// Lossy commits, and then loses every second answer.
type Lossy struct {
	storage.Store
	n atomic.Int64
}

// Commit implements storage.Store.
func (l *Lossy) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := l.Store.Commit(ctx, changes...)
	if l.n.Add(1)%2 == 1 {
		for i := range errs {
			errs[i] = errCut
		}
	}
	return errs
}

// L02: the answer to a commit is lost. Sending the same Change again settles
// it, and it has one effect.
func testLostAnswers(t testing.TB, e *env) {
	lossy := &Lossy{Store: e.s}
	w := ledger.Wallet("w")
	for i := range 5 {
		c := e.post(fund(w, 10)...)
		require.NoError(t, storage.CommitOne(e.ctx, lossy, c), "deposit %d", i)
		err := storage.Decide(e.ctx, lossy, func(ctx context.Context) (storage.Change, error) {
			v, row, ok, err := Notes.One(ctx, lossy, here, "counter")
			if err != nil || ok && v.N > int64(i) {
				return storage.Change{}, err
			}
			return e.put(note("counter", row.Version, int64(i+1))), nil
		})
		require.NoError(t, err)
	}
	require.Equal(t, ledger.Amount(50), e.balance(t, w).Posted)
	row, _ := e.row(t, Notes.Table, "counter")
	require.Equal(t, int64(5), row.Version)

	var funds *ledger.InsufficientFundsError
	require.ErrorAs(t, storage.CommitOne(e.ctx, lossy, e.post(move(w, "x", 51)...)), &funds)
	require.ErrorIs(t, storage.CommitOne(e.ctx, cut{e.s}, e.post(fund(w, 1)...)), storage.ErrUnknown)
}

// cut never answers.
type cut struct{ storage.Store }

func (c cut) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := c.Store.Commit(ctx, changes...)
	for i := range errs {
		errs[i] = errCut
	}
	return errs
}

func testEndedContext(t testing.TB, e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	c := e.put(note("a", 0, 1))
	errs := e.s.Commit(ctx, c, c)
	require.Len(t, errs, 2)
	for _, err := range errs {
		require.Error(t, err)
		require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict), "an unknown outcome, not %v", err)
	}
	e.commit(t, c)
	_, err := e.s.Rows(ctx, Notes.Table, storage.Keys(here, "a")...)
	require.Error(t, err)
}

func testManyPartitions(t testing.TB, e *env) {
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			var list []storage.Change
			for i := range 12 {
				c := e.post(fund("x", 1)...)
				c.Partition = storage.Tenant(fmt.Sprint((w + i) % 5))
				list = append(list, c)
			}
			for i, err := range e.s.Commit(e.ctx, list...) {
				if err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	total := ledger.Amount(0)
	for i := range 5 {
		Audit(t, e.s, storage.Tenant(fmt.Sprint(i)))
		b, err := e.s.Balances(e.ctx, storage.Tenant(fmt.Sprint(i)), "x")
		require.NoError(t, err)
		total += b[0].Posted
	}
	require.Equal(t, ledger.Amount(48), total)
}

// More rows, keys and legs than one statement takes.
func testBigBatch(t testing.TB, e *env) {
	const n = 301
	var changes []storage.Change
	for i := range n {
		c := e.post(fund(ledger.Wallet(fmt.Sprint(i)), 1)...)
		c.Put = []storage.Row{named(fmt.Sprint(i), 0, fmt.Sprint("name", i))}
		c.Level = []storage.Level{{Name: fmt.Sprint(i), Delta: 1, Max: 1}}
		changes = append(changes, c)
	}
	e.commit(t, changes...)
	e.commit(t, changes...)
	one := e.put()
	for i := range n {
		one.Put = append(one.Put, named(fmt.Sprint(i), 1, fmt.Sprint("name", (i+1)%n))) // every key moves on
	}
	e.commit(t, one)
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	rows, err := e.s.Rows(e.ctx, Things.Table, storage.Keys(here, all...)...)
	require.NoError(t, err)
	require.Len(t, rows, n)
	for i, r := range rows {
		require.Equal(t, fmt.Sprint("name", (i+1)%n), Things.Value(r).Name)
		require.Equal(t, int64(2), r.Version)
	}
}

// Two handles, as two processes have them, on the same rows, on rows that are
// absent, and on one balance.
func testTwoHandles(t testing.TB, e *env) {
	other := e.h.Second(t, e.s)
	require.NoError(t, other.Open(e.ctx, Tables()...))
	handles := []storage.Store{e.s, other}
	e.commit(t, e.post(fund(ledger.Wallet("w"), 20)...))
	var made, named2, paid atomic.Int64
	var wg sync.WaitGroup
	for h, s := range handles {
		wg.Go(func() {
			for i := range 15 {
				insert := storage.Change{ID: fmt.Sprint("i", h, "-", i), Partition: here, Put: []storage.Row{note(fmt.Sprint("absent", i), 0, int64(h))}}
				key := storage.Change{ID: fmt.Sprint("k", h, "-", i), Partition: here, Put: []storage.Row{named(fmt.Sprint(h, "-", i), 0, fmt.Sprint("name", i))}}
				pay := storage.Change{ID: fmt.Sprint("p", h, "-", i), Partition: here, Post: []ledger.Tx{{ID: fmt.Sprint("p", h, "-", i), At: epoch, Legs: move(ledger.Wallet("w"), "x", 1)}}}
				for k, c := range []storage.Change{insert, key, pay} {
					err := storage.CommitOne(e.ctx, s, c)
					switch {
					case err == nil:
						[]*atomic.Int64{&made, &named2, &paid}[k].Add(1)
					case errors.Is(err, storage.ErrConflict) && k == 0, storage.Final(err) && k > 0:
					default:
						t.Errorf("handle %d, change %s: %v", h, c.ID, err)
					}
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(15), made.Load())
	require.Equal(t, int64(15), named2.Load())
	require.Equal(t, int64(20), paid.Load())
	Audit(t, other, here)
}

// What was acknowledged is there after the store was opened again, and knows
// that it is.
func testReopen(t testing.TB, e *env) {
	c := e.post(fund(ledger.Wallet("w"), 5)...)
	c.Put = []storage.Row{named("a", 0, "name"), dueNote("due", epoch, 1)}
	c.Level = []storage.Level{{Name: "l", Delta: 1, Max: 1}}
	e.commit(t, c)
	e.s = e.h.Reopen(t, e.s)
	require.NoError(t, e.s.Open(e.ctx, Tables()...))
	require.Equal(t, ledger.Amount(5), e.balance(t, ledger.Wallet("w")).Posted)
	e.commit(t, c)
	require.Equal(t, ledger.Amount(5), e.balance(t, ledger.Wallet("w")).Posted)
	require.Equal(t, "due", ids(e.claim(t, claim(page))))
	var dup *storage.DuplicateError
	require.ErrorAs(t, e.one(e.put(named("b", 0, "name"))), &dup)
	d := e.put(note("b", 0, 1))
	d.Level = c.Level
	var level *storage.LevelError
	require.ErrorAs(t, e.one(d), &level)
	require.NoError(t, e.s.Close())
	require.Error(t, e.one(c))
	e.s = e.h.Reopen(t, e.s)
	require.NoError(t, e.s.Open(e.ctx, Tables()...))
}
