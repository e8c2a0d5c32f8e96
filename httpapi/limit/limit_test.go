package limit_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/httpapi/limit"
)

var (
	start  = time.Date(2026, 11, 20, 10, 0, 30, 500_000, time.UTC)
	minute = limit.Rule{Name: "minute", Max: 3, Window: time.Minute}
	hour   = limit.Rule{Name: "hour", Max: 5, Window: time.Hour}
)

// world is a limiter and a clock.
type world struct {
	t   require.TestingT
	l   limit.Limiter
	now time.Time
}

func newWorld(t require.TestingT, l limit.Limiter) *world { return &world{t, l, start} }

func (w *world) take(key string, rules ...limit.Rule) limit.State {
	s, err := w.l.Take(context.Background(), key, w.now, rules...)
	require.NoError(w.t, err)
	return s
}

// allowed tries often and says how many were let in.
func (w *world) allowed(tries int, key string, rules ...limit.Rule) int {
	n := 0
	for range tries {
		if w.take(key, rules...).Allowed {
			n++
		}
	}
	return n
}

// TestO10_HeadersAreTrue: the State is what the documented headers say, and the
// window ends at Reset, not before.
func TestO10_HeadersAreTrue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limit.NewMemory(10))
	end := start.Add(time.Minute)
	for i := range 3 {
		require.Equal(t, limit.State{Limit: 3, Remaining: 2 - i, Reset: end, Allowed: true}, w.take("a", minute))
		w.now = w.now.Add(time.Second)
	}
	refused := limit.State{Limit: 3, Reset: end}
	require.Equal(t, refused, w.take("a", minute))
	require.Equal(t, 2, w.take("b", minute).Remaining, "another key has its own")
	w.now = end.Add(-1)
	require.Equal(t, refused, w.take("a", minute))
	w.now = end
	require.Equal(t, limit.State{Limit: 3, Remaining: 2, Reset: end.Add(time.Minute), Allowed: true}, w.take("a", minute))
}

// TestO10_RefusedCountsInNoRule, and the State is of the nearest end.
func TestO10_RefusedCountsInNoRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limit.NewMemory(10))
	require.Equal(t, limit.State{Allowed: true}, w.take("a"), "no rule, no limit")
	require.Equal(t, limit.State{Limit: 3, Remaining: 2, Reset: start.Add(time.Minute), Allowed: true}, w.take("a", hour, minute))
	require.Equal(t, 2, w.allowed(10, "a", minute, hour))
	w.now = w.now.Add(time.Minute)
	// Seven were refused by the minute and cost nothing of the hour.
	require.Equal(t, limit.State{Limit: 5, Remaining: 1, Reset: start.Add(time.Hour), Allowed: true}, w.take("a", minute, hour))
	require.Equal(t, 1, w.allowed(10, "a", minute, hour))
	// Eight were refused by the hour and cost nothing of the minute.
	require.Equal(t, limit.State{Limit: 5, Reset: start.Add(time.Hour)}, w.take("a", minute, hour))
	require.Equal(t, limit.State{Limit: 3, Remaining: 0, Reset: w.now.Add(time.Minute), Allowed: true}, w.take("a", minute))
	require.Equal(t, limit.State{Limit: 5, Reset: start.Add(time.Hour)}, w.take("a", minute, hour), "both refuse: the longer one")
	require.Equal(t, limit.State{Limit: 5, Reset: start.Add(time.Hour)}, w.take("a", hour, minute))
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]limit.Rule{
		{{Max: 1, Window: 1}},
		{{Name: "a", Window: 1}},
		{{Name: "a", Max: -1, Window: 1}},
		{{Name: "a", Max: 1}},
		{{Name: "a", Max: 1, Window: -1}},
		{minute, hour, minute},
	} {
		s, err := limit.NewMemory(1).Take(t.Context(), "a", start, bad...)
		require.ErrorIs(t, err, limit.ErrRule)
		require.False(t, s.Allowed)
	}
	w := newWorld(t, limit.NewMemory(10))
	w.take("a", hour)
	w.take("a", hour)
	tightened := limit.Rule{Name: hour.Name, Max: 1, Window: time.Hour}
	require.Equal(t, limit.State{Limit: 1, Remaining: 0, Reset: start.Add(time.Hour)}, w.take("a", tightened), "a limit may be lowered")
}

// TestO10_ManyKeysFreeNoCounter: who fills the memory with keys of his own does
// not get rid of a count, neither one that is there nor one that comes after.
func TestO10_ManyKeysFreeNoCounter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limit.NewMemory(100))
	require.Equal(t, 3, w.allowed(5, "early", minute))
	flood := func() {
		for i := range 1000 {
			w.take(fmt.Sprint("flood", i), minute)
		}
	}
	flood()
	require.Zero(t, w.allowed(5, "early", minute))
	require.Equal(t, 3, w.allowed(5, "late", minute), "who comes new has his due")
	flood()
	require.Zero(t, w.allowed(5, "late", minute))
	w.now = w.now.Add(time.Minute - 1)
	require.Zero(t, w.allowed(5, "early", minute))
	require.Zero(t, w.allowed(5, "late", minute))
	w.now = w.now.Add(1)
	require.Equal(t, 3, w.allowed(5, "early", minute))
	require.Equal(t, 3, w.allowed(5, "late", minute))
}

// TestFS06_ManySourcesRefuseNoNewcomer: more sources in one minute than there is memory
// for, each within its limit: all of them are let in, and whoever comes new as well. Who is
// at his limit stays there.
func TestFS06_ManySourcesRefuseNoNewcomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limit.NewMemory(10_000))
	token := limit.Rule{Name: "createToken", Max: 20, Window: time.Minute}
	api := limit.Rule{Name: "api", Max: 1000, Window: time.Hour}
	require.Equal(t, 20, w.allowed(30, "guesser", token))
	require.Equal(t, 500, w.allowed(500, "token", api))
	for i := range 160_000 {
		require.True(t, w.take(fmt.Sprint("source", i), token).Allowed, i)
		if i%1000 == 0 {
			require.Zero(t, w.allowed(5, "guesser", token))
			w.now = w.now.Add(100 * time.Millisecond)
		}
	}
	require.Equal(t, 20, w.allowed(30, "newcomer", token))
	require.Equal(t, 500, w.allowed(600, "token", api), "nor does it forget what another rule has counted")
}

// TestO10_MemoryIsBounded, and comes back when windows end.
func TestO10_MemoryIsBounded(t *testing.T) {
	w := newWorld(t, limit.NewMemory(5000))
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range 100_000 {
		w.take(fmt.Sprint(i, strings.Repeat("x", 1000)), minute, hour)
	}
	grown := heap() - before
	require.Less(t, grown, int64(5000*400+200_000), "bytes")
	w.now = w.now.Add(time.Hour)
	require.Equal(t, 4*3, w.allowed(3, "a", minute)+w.allowed(3, "b", minute)+w.allowed(3, "c", minute)+w.allowed(3, "d", minute))
	runtime.KeepAlive(w)
}

// TestO10_ClockSetBack: no window is longer for it.
func TestO10_ClockSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limit.NewMemory(2))
	require.Equal(t, 3, w.allowed(5, "own", minute))
	require.Equal(t, 3, w.allowed(5, "other", minute))
	w.now = start.Add(-24 * time.Hour)
	for _, key := range []string{"own", "other"} {
		require.Equal(t, limit.State{Limit: 3, Reset: w.now.Add(time.Minute)}, w.take(key, minute))
	}
	w.now = w.now.Add(time.Minute)
	require.Equal(t, 3, w.allowed(5, "new", minute), "room is back")
	require.Equal(t, 3, w.allowed(5, "own", minute))
	require.Equal(t, 3, w.allowed(5, "other", minute))
}

// TestO10_AtOnce: many at once get no more than one after another.
func TestO10_AtOnce(t *testing.T) {
	t.Parallel()
	m := limit.NewMemory(10)
	w := newWorld(t, m)
	w.take("filler", minute)
	rule := limit.Rule{Name: "minute", Max: 5000, Window: time.Minute}
	wide := limit.Rule{Name: "hour", Max: 10_000, Window: time.Hour}
	var n atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				s, err := m.Take(context.Background(), "a", start, rule, wide)
				if err != nil {
					t.Error(err)
				}
				if s.Allowed {
					n.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, rule.Max, n.Load())
	require.Equal(t, wide.Max-rule.Max-1, w.take("a", wide).Remaining)
}

// plain is the promise written as plainly as can be: it forgets nothing.
type plain map[[2]string]limit.Window

func (p plain) Take(_ context.Context, key string, now time.Time, rules ...limit.Rule) (limit.State, error) {
	s := limit.State{Allowed: true, Remaining: math.MaxInt}
	windows := make([]limit.Window, len(rules))
	for i, r := range rules {
		w := p[[2]string{r.Name, key}]
		if w.Start.After(now) {
			w.Start = now
		}
		if now.Sub(w.Start) >= r.Window {
			w = limit.Window{Start: now}
		}
		windows[i] = w
		end := w.Start.Add(r.Window)
		left := r.Max - w.Count - 1
		switch {
		case left < 0 && (s.Allowed || end.After(s.Reset)):
			s = limit.State{Limit: r.Max, Reset: end}
		case left >= 0 && s.Allowed && (left < s.Remaining || left == s.Remaining && end.After(s.Reset)):
			s = limit.State{Limit: r.Max, Remaining: left, Reset: end, Allowed: true}
		}
	}
	if s.Allowed {
		for i, r := range rules {
			windows[i].Count++
			p[[2]string{r.Name, key}] = windows[i]
		}
	}
	return s, nil
}

// request is one step of a random history.
func request(t *rapid.T, now *time.Time) (key string, rules []limit.Rule) {
	*now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
	rules = [][]limit.Rule{{minute}, {hour}, {minute, hour}, {hour, minute}}[rapid.IntRange(0, 3).Draw(t, "rules")]
	return rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "key"), rules
}

// With room enough a Memory is what its promise says.
func TestMemoryAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, p := newWorld(t, limit.NewMemory(12)), newWorld(t, plain{})
		for range rapid.IntRange(1, 100).Draw(t, "requests") {
			key, rules := request(t, &m.now)
			p.now = m.now
			require.Equal(t, p.take(key, rules...), m.take(key, rules...))
		}
	})
}

func BenchmarkMemory(b *testing.B) {
	for name, keys := range map[string]int{"room": 1000, "full": 100_000} {
		b.Run(name, func(b *testing.B) {
			m := limit.NewMemory(10_000)
			names := make([]string, keys)
			for i := range names {
				names[i] = fmt.Sprintf("token/%064x", i)
			}
			rule := limit.Rule{Name: "api", Max: 1 << 30, Window: time.Minute}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Take(context.Background(), names[i%keys], start.Add(time.Duration(i)), rule); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
