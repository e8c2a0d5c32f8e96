package limit

import (
	"container/list"
	"context"
	"crypto/sha256"
	"hash/maphash"
	"sync"
	"time"
)

// shared is how many counters the keys of one rule share when memory is full.
const shared = 1024

// late is how much later a request may come here than others that asked the
// clock after it; more than that is a clock that was set back.
const late = time.Second

// grace is how long an ended window is kept, as clocks differ.
const grace = time.Minute

// sweep is how many outlived counters one request clears away at most.
const sweep = 16

// Memory counts in this process, in bounded memory: at most max counters of a
// key and a rule, and a fixed number that are shared.
//
// A counter is forgotten a minute after its window has ended, and only then. While all max
// are in use, keys without a counter share one with others, by a hash that
// nobody outside can predict: whoever comes new then may be refused early, but
// nobody gets more than his due, and who has a counter keeps it. When room is
// back, a key takes the shared count with it. So somebody with any number of
// keys gains nothing by filling the memory.
type Memory struct {
	max  int
	seed maphash.Seed

	mu     sync.Mutex
	last   time.Time
	exact  map[counterKey]*list.Element
	queues map[string]*queue // by rule; there are as many as the host has rules
}

// counterKey is a key and a rule's name. Long keys are replaced by a digest.
type counterKey struct{ rule, key string }

// queue is what there is of one rule. Its windows are equally long, so they end
// in the order in which they began.
type queue struct {
	windows list.List // of *counter, oldest first
	shared  [shared]Window
	length  time.Duration
}

type counter struct {
	counterKey
	Window
}

// NewMemory makes a Memory of at most so many counters, at least 1; each takes about
// 250 bytes. A key uses one counter per rule.
func NewMemory(counters int) *Memory {
	return &Memory{
		max: max(counters, 1), seed: maphash.MakeSeed(),
		exact: map[counterKey]*list.Element{}, queues: map[string]*queue{},
	}
}

// Take is Limiter's. Its only error is ErrRule.
func (m *Memory) Take(_ context.Context, key string, now time.Time, rules ...Rule) (State, error) {
	if err := Check(rules); err != nil {
		return State{}, err
	}
	if len(key) > 96 {
		d := sha256.Sum256([]byte(key))
		key = string(d[:])
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setBack(now)
	windows := make([]Window, len(rules))
	for i, r := range rules {
		windows[i] = m.window(counterKey{r.Name, key}, r).At(now, r)
	}
	s := Judge(rules, windows)
	if s.Allowed {
		for i, r := range rules {
			windows[i].Count++
			m.put(counterKey{r.Name, key}, r, windows[i], now)
		}
	}
	return s, nil
}

// window is the counter that a key has, its own or a shared one.
func (m *Memory) window(k counterKey, r Rule) Window {
	if e := m.exact[k]; e != nil {
		return e.Value.(*counter).Window
	}
	return *m.shared(k, r)
}

// shared is the counter that a key has with others.
func (m *Memory) shared(k counterKey, r Rule) *Window {
	return &m.queue(r).shared[maphash.String(m.seed, k.key)%shared]
}

func (m *Memory) queue(r Rule) *queue {
	q := m.queues[r.Name]
	if q == nil {
		q = &queue{}
		m.queues[r.Name] = q
	}
	q.length = r.Window
	return q
}

// put stores a key's counter: its own where there is room, else the shared one.
func (m *Memory) put(k counterKey, r Rule, w Window, now time.Time) {
	q := m.queue(r)
	if e := m.exact[k]; e != nil {
		c := e.Value.(*counter)
		if w.Start.After(c.Start) { // a new window
			q.windows.MoveToBack(e)
		}
		c.Window = w
		return
	}
	m.forget(q, now)
	for _, other := range m.queues {
		if len(m.exact) < m.max {
			break
		}
		m.forget(other, now)
	}
	if len(m.exact) >= m.max {
		*m.shared(k, r) = w
		return
	}
	m.exact[k] = q.windows.PushBack(&counter{k, w})
}

// forget drops some of the rule's counters whose windows have ended, a little
// later than they do: a clock that is set back must find them.
func (m *Memory) forget(q *queue, now time.Time) {
	for range sweep {
		e := q.windows.Front()
		if e == nil {
			return
		}
		c := e.Value.(*counter)
		if now.Before(c.Start.Add(q.length + grace)) {
			return
		}
		q.windows.Remove(e)
		delete(m.exact, c.counterKey)
	}
}

// setBack lets no window end later because the clock was set back: none begins
// after now.
func (m *Memory) setBack(now time.Time) {
	back := now.Before(m.last.Add(-late))
	m.last = now
	if !back {
		return
	}
	for _, q := range m.queues {
		for e := q.windows.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*counter); now.Before(c.Start) {
				c.Start = now
			}
		}
		for i := range q.shared {
			if now.Before(q.shared[i].Start) {
				q.shared[i].Start = now
			}
		}
	}
}
