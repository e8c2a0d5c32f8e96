package lane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
)

// script is a Target that notes what it is asked and answers by a function.
type script struct {
	mu     sync.Mutex
	calls  []string
	answer func(n int, wait bool, changes []storage.Change) ([]error, error)
}

func (s *script) Write(_ context.Context, wait bool, changes []storage.Change) ([]error, error) {
	s.mu.Lock()
	text := ""
	for _, c := range changes {
		text += c.ID + " "
	}
	if wait {
		text += "wait"
	}
	s.calls = append(s.calls, text)
	n := len(s.calls)
	s.mu.Unlock()
	return s.answer(n, wait, changes)
}

func (s *script) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.calls...)
}

func change(p storage.Partition, id string) storage.Change {
	return storage.Change{ID: id, Partition: p}
}

func fine(changes []storage.Change) ([]error, error) { return make([]error, len(changes)), nil }

// queued waits until so many Changes wait in the first shard.
func queued(l *Lane, n int) {
	for {
		l.shards[0].mu.Lock()
		have := len(l.shards[0].queue)
		l.shards[0].mu.Unlock()
		if have == n {
			return
		}
		runtime.Gosched()
	}
}

func TestWhoWaitsIsCommittedTogether(t *testing.T) {
	t.Parallel()
	started, release := make(chan bool), make(chan bool)
	s := &script{answer: func(n int, _ bool, changes []storage.Change) ([]error, error) {
		if n == 1 {
			close(started)
			<-release
		}
		return fine(changes)
	}}
	l := New(s, Config{})
	var wg sync.WaitGroup
	wg.Go(func() { l.Commit(context.Background(), change("p", "first")) })
	<-started
	for i := range 5 {
		wg.Go(func() { require.NoError(t, l.Commit(context.Background(), change("p", fmt.Sprint("c", i)))[0]) })
		queued(l, i+1)
	}
	close(release)
	wg.Wait()
	require.Equal(t, []string{"first ", "c0 c1 c2 c3 c4 "}, s.log())
	require.False(t, l.shards[0].leading)
}

func TestMaxBatchAndOrder(t *testing.T) {
	t.Parallel()
	s := &script{answer: func(_ int, _ bool, changes []storage.Change) ([]error, error) { return fine(changes) }}
	l := New(s, Config{MaxBatch: 2})
	for _, err := range l.Commit(context.Background(), change("p", "1"), change("q", "2"), change("p", "3"), change("p", "4"), change("q", "5")) {
		require.NoError(t, err)
	}
	require.Equal(t, []string{"1 2 ", "3 4 ", "5 "}, s.log())
}

func TestShards(t *testing.T) {
	t.Parallel()
	s := &script{answer: func(_ int, _ bool, changes []storage.Change) ([]error, error) {
		errs := make([]error, len(changes))
		for i := range errs {
			errs[i] = errors.New(changes[i].ID)
		}
		return errs, nil
	}}
	l := New(s, Config{Shards: 3})
	var list []storage.Change
	for i := range 20 {
		list = append(list, change(storage.Tenant(fmt.Sprint(i)), fmt.Sprint(i)))
	}
	for i, err := range l.Commit(context.Background(), list...) {
		require.EqualError(t, err, fmt.Sprint(i), "error i belongs to change i")
	}
	require.Len(t, s.log(), 3)
}

// A follower whose context ends leaves; what was not taken is taken back.
func TestFollowerLeaves(t *testing.T) {
	t.Parallel()
	started, release := make(chan bool), make(chan bool)
	s := &script{answer: func(n int, _ bool, changes []storage.Change) ([]error, error) {
		if n == 1 {
			close(started)
			<-release
		}
		return fine(changes)
	}}
	l := New(s, Config{})
	var wg sync.WaitGroup
	wg.Go(func() { l.Commit(context.Background(), change("p", "first")) })
	<-started
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error)
	wg.Go(func() { left <- l.Commit(ctx, change("p", "leaver"))[0] })
	queued(l, 1)
	wg.Go(func() { require.NoError(t, l.Commit(context.Background(), change("p", "stays"))[0]) })
	queued(l, 2)
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	close(release)
	wg.Wait()
	require.Equal(t, []string{"first ", "stays "}, s.log())
}

// late is a context that ends while its owner is told to lead: Done returns when both
// are true.
type late struct {
	context.Context
	once sync.Once
	told func()
	end  context.CancelFunc
}

func (l *late) Done() <-chan struct{} {
	l.once.Do(func() {
		l.told()
		l.end()
	})
	return l.Context.Done()
}

// A follower that leaves at the moment in which it is told to lead lets the next lead.
func TestFollowerLeavesWhenToldToLead(t *testing.T) {
	t.Parallel()
	for range 64 { // it hears of one of the two first, by chance
		started, release, first := make(chan bool), make(chan bool), make(chan bool)
		s := &script{answer: func(n int, _ bool, changes []storage.Change) ([]error, error) {
			if n == 1 {
				close(started)
				<-release
			}
			return fine(changes)
		}}
		l := New(s, Config{MaxBatch: 1})
		var wg sync.WaitGroup
		wg.Go(func() {
			require.NoError(t, l.Commit(context.Background(), change("p", "first"))[0])
			close(first)
		})
		<-started
		ctx, cancel := context.WithCancel(context.Background())
		follower := &late{Context: ctx, end: cancel, told: func() {
			queued(l, 2)
			close(release)
			<-first
		}}
		wg.Go(func() { require.ErrorIs(t, l.Commit(follower, change("p", "leaver"))[0], context.Canceled) })
		queued(l, 1)
		wg.Go(func() { require.NoError(t, l.Commit(context.Background(), change("p", "stays"))[0]) })
		wg.Wait()
		require.Equal(t, []string{"first ", "stays "}, s.log())
	}
}

// A follower that leaves at the moment in which it is told to wait for a partition lets
// the next wait for it.
func TestFollowerLeavesWhenToldToWait(t *testing.T) {
	t.Parallel()
	for i := range 64 { // it hears of one of the two first, by chance
		started, release, first := make(chan bool), make(chan bool), make(chan bool)
		s := &script{answer: func(n int, wait bool, changes []storage.Change) ([]error, error) {
			if n == 1 {
				close(started)
				<-release
			}
			errs := make([]error, len(changes))
			for i := range changes {
				if changes[i].Partition == "busy" && !wait {
					errs[i] = ErrSkipped
				}
			}
			return errs, nil
		}}
		l := New(s, Config{MaxBatch: 3, Skips: 1})
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, err := range l.Commit(context.Background(), change("p", "1"), change("p", "2"), change("p", "3"), change("p", "4")) {
				require.NoError(t, err)
			}
			close(first)
		})
		<-started
		ctx, cancel := context.WithCancel(context.Background())
		follower := &late{Context: ctx, end: cancel, told: func() {
			queued(l, 3)
			close(release)
			<-first
		}}
		wg.Go(func() {
			if err := l.Commit(follower, change("busy", "leaver"))[0]; err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
		})
		queued(l, 2)
		if i%2 == 0 {
			wg.Go(func() { require.NoError(t, l.Commit(context.Background(), change("busy", "stays"))[0]) })
		} else {
			wg.Go(func() { require.NoError(t, l.Commit(context.Background(), change("q", "other"))[0]) })
		}
		wg.Wait()
		require.Empty(t, l.shards[0].parked)
		require.NoError(t, l.Commit(context.Background(), change("busy", "later"))[0], "also where nobody else waited")
	}
}

// A caller that waits for a partition and has other Changes in the queue neither keeps
// the lead nor is told to wait for a second partition that somebody else can wait for.
func TestWaiterStallsNoOther(t *testing.T) {
	t.Parallel()
	waiting, locked := make(chan bool), make(chan bool)
	s := &script{answer: func(_ int, wait bool, changes []storage.Change) ([]error, error) {
		switch {
		case changes[0].ID == "a1" && wait:
			close(waiting)
			<-locked
		case (changes[0].ID == "a1" || changes[0].ID == "b1") && !wait:
			return []error{ErrSkipped}, nil
		}
		return fine(changes)
	}}
	l := New(s, Config{MaxBatch: 1, Skips: 1})
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, err := range l.Commit(context.Background(), change("a", "a1"), change("b", "b1"), change("c", "c1")) {
			require.NoError(t, err)
		}
	})
	<-waiting
	require.NoError(t, l.Commit(context.Background(), change("b", "b2"))[0])
	require.NoError(t, l.Commit(context.Background(), change("d", "d1"))[0])
	close(locked)
	wg.Wait()
	require.Equal(t, []string{"a1 ", "a1 wait", "b1 ", "b1 wait", "b2 ", "c1 ", "d1 "}, s.log())
	require.Empty(t, l.shards[0].parked)
	require.Empty(t, l.shards[0].queue)
}

// A caller that has waited for a partition can be told to lead again: what did not fit
// into its batch is committed, though others led meanwhile.
func TestWaiterLeadsAgain(t *testing.T) {
	t.Parallel()
	waiting, locked, leading, busy := make(chan bool), make(chan bool), make(chan bool), make(chan bool)
	s := &script{answer: func(n int, wait bool, changes []storage.Change) ([]error, error) {
		switch {
		case n == 1:
			return []error{ErrSkipped, ErrSkipped}, nil
		case wait:
			close(waiting)
			<-locked
		case changes[0].ID == "x1":
			close(leading)
			<-busy
		}
		return fine(changes)
	}}
	l := New(s, Config{MaxBatch: 2, Skips: 1})
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, err := range l.Commit(context.Background(), change("b", "b1"), change("b", "b2"), change("b", "b3")) {
			require.NoError(t, err)
		}
	})
	<-waiting
	wg.Go(func() { require.NoError(t, l.Commit(context.Background(), change("x", "x1"))[0]) })
	<-leading
	close(locked)
	queued(l, 1)
	close(busy)
	wg.Wait()
	require.Equal(t, []string{"b1 b2 ", "b1 b2 wait", "x1 ", "b3 "}, s.log())
}

// The leader's ended context takes nobody else's Change down.
func TestLeaderLeaves(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	started, release := make(chan bool), make(chan bool)
	s := &script{}
	s.answer = func(n int, _ bool, changes []storage.Change) ([]error, error) {
		if n == 1 {
			close(started)
			<-release
		}
		return fine(changes)
	}
	l := New(s, Config{MaxBatch: 1})
	var wg sync.WaitGroup
	wg.Go(func() {
		errs := l.Commit(ctx, change("p", "1"), change("p", "2"))
		require.NoError(t, errs[0], "it was committed")
		require.ErrorIs(t, errs[1], context.Canceled)
	})
	<-started
	wg.Go(func() { require.NoError(t, l.Commit(context.Background(), change("p", "3"))[0]) })
	queued(l, 2)
	cancel()
	close(release)
	wg.Wait()
	require.Equal(t, []string{"1 ", "3 "}, s.log())
}

// L05: a batch that the database refuses is tried again as it is; refused
// twice, it goes Change by Change, and only the bad one fails.
func TestL05_RefusedBatch(t *testing.T) {
	t.Parallel()
	s := &script{answer: func(n int, _ bool, changes []storage.Change) ([]error, error) {
		for _, c := range changes {
			if c.ID == "bad" {
				return nil, fmt.Errorf("%w: a constraint", ErrRefused)
			}
		}
		return fine(changes)
	}}
	errs := New(s, Config{}).Commit(context.Background(), change("p", "a"), change("p", "bad"), change("p", "b"))
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], ErrRefused)
	require.NoError(t, errs[2])
	require.Equal(t, []string{"a bad b ", "a bad b ", "a wait", "bad wait", "b wait"}, s.log())
}

func TestL05_DeadlockOnce(t *testing.T) {
	t.Parallel()
	s := &script{answer: func(n int, _ bool, changes []storage.Change) ([]error, error) {
		if n == 1 {
			return nil, fmt.Errorf("%w: 1213", ErrRefused)
		}
		return fine(changes)
	}}
	for _, err := range New(s, Config{}).Commit(context.Background(), change("p", "a"), change("p", "b")) {
		require.NoError(t, err)
	}
	require.Equal(t, []string{"a b ", "a b "}, s.log())
}

// A database that is locked or gone is not asked for each Change.
func TestWholeBatchFails(t *testing.T) {
	t.Parallel()
	for cause, calls := range map[error]int{storage.ErrBusy: 2, errors.New("connection lost"): 1} {
		s := &script{answer: func(int, bool, []storage.Change) ([]error, error) { return nil, fmt.Errorf("%w: it says", cause) }}
		for _, err := range New(s, Config{}).Commit(context.Background(), change("p", "a"), change("p", "b")) {
			require.ErrorIs(t, err, cause)
		}
		require.Len(t, s.log(), calls)
	}
}

// A batch that goes Change by Change ends where the database goes: the Changes that are
// left get the reason, and it is not asked for each.
func TestDatabaseGoesAmongSingleChanges(t *testing.T) {
	t.Parallel()
	gone := errors.New("connection lost")
	s := &script{answer: func(n int, _ bool, changes []storage.Change) ([]error, error) {
		switch n {
		case 1, 2:
			return nil, ErrRefused
		case 3:
			return fine(changes)
		}
		return nil, gone
	}}
	errs := New(s, Config{}).Commit(context.Background(), change("p", "a"), change("p", "b"), change("p", "c"), change("p", "d"))
	require.NoError(t, errs[0])
	for _, err := range errs[1:] {
		require.ErrorIs(t, err, gone)
	}
	require.Equal(t, []string{"a b c d ", "a b c d ", "a wait", "b wait"}, s.log())
}

// A partition locked elsewhere is passed over three times, then waited for,
// and its Changes keep their order.
func TestSkipAndWait(t *testing.T) {
	t.Parallel()
	s := &script{answer: func(_ int, wait bool, changes []storage.Change) ([]error, error) {
		errs := make([]error, len(changes))
		for i := range changes {
			if changes[i].Partition == "busy" && !wait {
				errs[i] = fmt.Errorf("%w: lock timeout", ErrSkipped)
			}
		}
		return errs, nil
	}}
	for _, err := range New(s, Config{}).Commit(context.Background(), change("busy", "1"), change("p", "2"), change("busy", "3")) {
		require.NoError(t, err)
	}
	require.Equal(t, []string{"1 2 3 ", "1 3 ", "1 3 ", "1 3 wait"}, s.log())
}

func hasty(p storage.Partition, id string) storage.Change {
	return storage.Change{ID: id, Partition: p, NoWait: true}
}

// A Change that does not wait is passed over as often as another, and then busy:
// nobody waits for its partition.
func TestNoWait(t *testing.T) {
	t.Parallel()
	s := &script{answer: func(_ int, wait bool, changes []storage.Change) ([]error, error) {
		errs := make([]error, len(changes))
		for i := range changes {
			if changes[i].Partition == "busy" && !wait {
				errs[i] = ErrSkipped
			}
		}
		return errs, nil
	}}
	l := New(s, Config{})
	errs := l.Commit(context.Background(), hasty("busy", "1"), hasty("p", "2"), hasty("busy", "3"))
	require.Equal(t, []error{storage.ErrBusy, nil, storage.ErrBusy}, errs)
	require.Equal(t, []string{"1 2 3 ", "1 3 ", "1 3 "}, s.log())
	require.Equal(t, []error{storage.ErrBusy, nil}, l.Commit(context.Background(), hasty("busy", "4"), change("busy", "5")), "others wait")
	require.Equal(t, []string{"4 5 ", "4 5 ", "4 5 ", "5 wait"}, s.log()[3:])
	require.Empty(t, l.shards[0].parked)
	require.False(t, l.shards[0].leading)
}

// While somebody waits for a partition, a Change of it that does not wait is busy at
// once, whether it was queued before or comes then.
func TestNoWaitBesideOneWhoWaits(t *testing.T) {
	t.Parallel()
	waiting, release := make(chan bool), make(chan bool)
	s := &script{}
	s.answer = func(_ int, wait bool, changes []storage.Change) ([]error, error) {
		if wait {
			close(waiting)
			<-release
			return fine(changes)
		}
		errs := make([]error, len(changes))
		for i := range changes {
			if changes[i].Partition == "busy" {
				errs[i] = ErrSkipped
			}
		}
		return errs, nil
	}
	l := New(s, Config{})
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(t, l.Commit(context.Background(), change("busy", "waits"))[0]) })
	<-waiting
	for range 3 {
		require.Equal(t, []error{storage.ErrBusy, nil}, l.Commit(context.Background(), hasty("busy", "1"), hasty("free", "2")))
	}
	require.Equal(t, storage.ErrBusy, l.Commit(context.Background(), hasty("busy", "3"))[0], "alone")
	close(release)
	wg.Wait()
	require.NotContains(t, strings.Join(s.log(), ""), "1")
	require.Empty(t, l.shards[0].parked)
}

// A refused batch goes Change by Change, and those that do not wait do not wait there.
func TestNoWaitWhenRefused(t *testing.T) {
	t.Parallel()
	s := &script{}
	s.answer = func(_ int, wait bool, changes []storage.Change) ([]error, error) {
		switch {
		case len(changes) > 1:
			return nil, ErrRefused
		case changes[0].NoWait:
			require.False(t, wait)
			return []error{ErrSkipped}, nil
		}
		return fine(changes)
	}
	require.Equal(t, []error{storage.ErrBusy, nil}, New(s, Config{}).Commit(context.Background(), hasty("p", "1"), change("p", "2")))
}

// A call is one transaction, also behind others that nearly fill it.
func TestACallIsOneBatch(t *testing.T) {
	t.Parallel()
	started, release := make(chan bool), make(chan bool)
	s := &script{answer: func(n int, _ bool, changes []storage.Change) ([]error, error) {
		if n == 1 {
			close(started)
			<-release
		}
		return fine(changes)
	}}
	l := New(s, Config{MaxBatch: 4})
	var wg sync.WaitGroup
	wg.Go(func() { l.Commit(context.Background(), change("p", "first")) })
	<-started
	for i, call := range [][]storage.Change{
		{change("p", "a1"), change("q", "a2")},
		{change("p", "b1"), change("q", "b2"), change("r", "b3")},
		{change("p", "c1")},
		{change("p", "d1"), change("p", "d2"), change("p", "d3"), change("p", "d4"), change("p", "d5")},
	} {
		wg.Go(func() { l.Commit(context.Background(), call...) })
		queued(l, []int{2, 5, 6, 11}[i])
	}
	close(release)
	wg.Wait()
	require.Equal(t, []string{"first ", "a1 a2 ", "b1 b2 b3 c1 ", "d1 d2 d3 d4 ", "d5 "}, s.log())
}

func TestBusyForEver(t *testing.T) {
	t.Parallel()
	s := &script{answer: func(_ int, _ bool, changes []storage.Change) ([]error, error) { return []error{ErrSkipped}, nil }}
	require.ErrorIs(t, New(s, Config{}).Commit(context.Background(), change("busy", "1"))[0], ErrSkipped)
	require.Len(t, s.log(), 4)
}

// bounded is a Target that notes how long it is given.
type bounded struct{ given time.Duration }

func (b *bounded) Write(ctx context.Context, _ bool, changes []storage.Change) ([]error, error) {
	until, ok := ctx.Deadline()
	if !ok {
		return nil, errors.New("no deadline")
	}
	b.given = time.Until(until)
	return fine(changes)
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	for set, most := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Hour: time.Hour} {
		var b bounded
		require.NoError(t, New(&b, Config{Timeout: set}).Commit(context.Background(), change("p", "a"))[0])
		require.LessOrEqual(t, b.given, most)
		require.Greater(t, b.given, most/2)
	}
}

// A panic below belongs to the caller who leads; the others are served.
func TestPanicBelow(t *testing.T) {
	t.Parallel()
	started, release := make(chan bool), make(chan bool)
	s := &script{answer: func(n int, _ bool, changes []storage.Change) ([]error, error) {
		if n == 1 {
			close(started)
			<-release
			panic("below")
		}
		return fine(changes)
	}}
	l := New(s, Config{})
	var wg sync.WaitGroup
	wg.Go(func() {
		require.Panics(t, func() { l.Commit(context.Background(), change("p", "first")) })
	})
	<-started
	wg.Go(func() { require.NoError(t, l.Commit(context.Background(), change("p", "second"))[0]) })
	queued(l, 1)
	close(release)
	wg.Wait()
}

func TestWrongNumberOfVerdicts(t *testing.T) {
	t.Parallel()
	s := &script{answer: func(int, bool, []storage.Change) ([]error, error) { return nil, nil }}
	require.Error(t, New(s, Config{}).Commit(context.Background(), change("p", "a"))[0])
}

func TestMany(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	var mu sync.Mutex
	s := &script{answer: func(_ int, _ bool, changes []storage.Change) ([]error, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range changes {
			seen[c.ID]++
		}
		return fine(changes)
	}}
	l := New(s, Config{Shards: 2, MaxBatch: 7})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 200 {
				for _, err := range l.Commit(context.Background(), change(storage.Tenant(fmt.Sprint(i%5)), fmt.Sprint(w, "/", i)), change(storage.Tenant(fmt.Sprint(w)), fmt.Sprint(w, "+", i))) {
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 3200)
	for id, n := range seen {
		require.Equal(t, 1, n, id)
	}
}

// C03: a partition that stays locked elsewhere stalls no other, whoever leads, and
// its own Changes keep their order.
func TestLockedPartitionStallsNoOther(t *testing.T) {
	t.Parallel()
	waiting, release := make(chan bool), make(chan bool)
	var once sync.Once
	s := &script{answer: func(_ int, wait bool, changes []storage.Change) ([]error, error) {
		errs := make([]error, len(changes))
		for i := range changes {
			if changes[i].Partition != "busy" {
				continue
			}
			if !wait {
				select {
				case <-release:
				default:
					errs[i] = ErrSkipped
				}
				continue
			}
			once.Do(func() { close(waiting) })
			<-release
		}
		return errs, nil
	}}
	l := New(s, Config{})
	ctx := context.Background()
	var wg sync.WaitGroup
	wg.Go(func() { // it queues first and leads, and waits in the end
		for _, err := range l.Commit(ctx, change("busy", "b1"), change("p", "p1"), change("busy", "b2")) {
			require.NoError(t, err)
		}
	})
	<-waiting
	for i := range 3 { // these wait behind it
		wg.Go(func() { require.NoError(t, l.Commit(ctx, change("busy", fmt.Sprint("b", i+3)))[0]) })
		for {
			l.shards[0].mu.Lock()
			n := len(l.shards[0].parked["busy"])
			l.shards[0].mu.Unlock()
			if n == i+1 {
				break
			}
			runtime.Gosched()
		}
	}
	left, cancel := context.WithCancel(ctx)
	wg.Go(func() {
		errs := l.Commit(left, change("busy", "gone"), change("p", "p2"))
		require.ErrorIs(t, errs[0], context.Canceled)
		require.NoError(t, errs[1], "it was there before")
	})
	for i := range 20 {
		require.NoError(t, l.Commit(ctx, change("q", fmt.Sprint("q", i)))[0])
	}
	for !strings.Contains(strings.Join(s.log(), ""), "p2 ") {
		runtime.Gosched()
	}
	settled := func() bool {
		l.shards[0].mu.Lock()
		defer l.shards[0].mu.Unlock()
		return !l.shards[0].leading
	}
	for !settled() {
		runtime.Gosched()
	}
	cancel()
	for {
		l.shards[0].mu.Lock()
		n := len(l.shards[0].parked["busy"])
		l.shards[0].mu.Unlock()
		if n == 3 {
			break
		}
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
	var order []string
	for _, call := range s.log() {
		if strings.Contains(call, "b") {
			order = append(order, call)
		}
	}
	require.Equal(t, []string{"b1 p1 b2 ", "b1 b2 ", "b1 b2 ", "b1 b2 wait", "b3 b4 b5 "}, order)
	require.False(t, l.shards[0].leading)
	require.Empty(t, l.shards[0].parked)
	require.Empty(t, l.shards[0].queue)
}

// Partitions are locked elsewhere at random, callers leave at random: everybody
// gets an answer, once, in order, and nothing is left behind.
func TestManyWithLocks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	last := map[string]int{}
	rng := rand.New(rand.NewPCG(7, 7))
	s := &script{answer: func(_ int, wait bool, changes []storage.Change) ([]error, error) {
		mu.Lock()
		defer mu.Unlock()
		errs := make([]error, len(changes))
		skip := map[storage.Partition]bool{}
		for i, c := range changes {
			if _, seen := skip[c.Partition]; !seen {
				skip[c.Partition] = !wait && c.Partition != "free" && rng.IntN(3) > 0
			}
			if skip[c.Partition] {
				errs[i] = ErrSkipped
				continue
			}
			caller, n, _ := strings.Cut(c.ID, "/")
			number, _ := strconv.Atoi(n)
			key := string(c.Partition) + caller
			if last[key] >= number {
				t.Errorf("%s after %d", c.ID, last[key])
			}
			last[key] = number
		}
		return errs, nil
	}}
	l := New(s, Config{MaxBatch: 5})
	var wg sync.WaitGroup
	for w := range 12 {
		wg.Go(func() {
			for i := range 60 {
				ctx, cancel := context.WithCancel(context.Background())
				if i%7 == w%7 {
					go cancel()
				}
				id := fmt.Sprintf("%d/%d", w, i+1)
				for k, err := range l.Commit(ctx, change("a", id), change("free", id), change(storage.Partition(fmt.Sprint("p", w%3)), id)) {
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("%s %d: %v", id, k, err)
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
	require.False(t, l.shards[0].leading)
	require.Empty(t, l.shards[0].parked)
	require.Empty(t, l.shards[0].queue)
}
