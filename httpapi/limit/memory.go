package limit

import (
	"container/list"
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// late is how much later a request may come here than others that asked the
// clock after it; more than that is a clock that was set back.
const late = time.Second

// grace is how long an ended window is kept, as clocks differ.
const grace = time.Minute

// sweep is how many outlived counters one request clears away at most.
const sweep = 16

// looks is how many counters are compared where one must go.
const looks = 16

// Memory counts in this process, in bounded memory: at most max counters of a key and a
// rule.
//
// A counter is forgotten a minute after its window has ended. Where all max are in use, a
// key that comes new takes the place of another: of some counters of the rule that has
// most of them, picked at random, the one that has counted least goes. So a flood of keys
// refuses nobody who comes new, and a counter that has come near its limit stays. A key
// whose counter went begins anew, which is worth little: its counter had counted little,
// and whoever fills the memory has as many keys.
type Memory struct {
	max int

	mu     sync.Mutex
	last   time.Time
	used   int
	queues map[string]*queue // by rule; there are as many as the host has rules
}

// queue is what there is of one rule. Its windows are equally long, so they end
// in the order in which they began.
type queue struct {
	windows list.List                // of *counter, oldest first
	at      map[string]*list.Element // by key; long ones are replaced by a digest
	length  time.Duration
}

type counter struct {
	key string
	Window
}

// NewMemory makes a Memory of at most so many counters, at least 1; each takes about
// 250 bytes. A key uses one counter per rule.
func NewMemory(counters int) *Memory {
	return &Memory{max: max(counters, 1), queues: map[string]*queue{}}
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
		windows[i] = m.queue(r).window(key).At(now, r)
	}
	s := Judge(rules, windows)
	if s.Allowed {
		for i, r := range rules {
			windows[i].Count++
			m.put(key, m.queue(r), windows[i], now)
		}
	}
	return s, nil
}

func (m *Memory) queue(r Rule) *queue {
	q := m.queues[r.Name]
	if q == nil {
		q = &queue{at: map[string]*list.Element{}}
		m.queues[r.Name] = q
	}
	q.length = r.Window
	return q
}

// window is a key's counter, an empty one where there is none.
func (q *queue) window(key string) Window {
	if e := q.at[key]; e != nil {
		return e.Value.(*counter).Window
	}
	return Window{}
}

// put stores a key's counter, in the place of another where all are in use.
func (m *Memory) put(key string, q *queue, w Window, now time.Time) {
	if e := q.at[key]; e != nil {
		c := e.Value.(*counter)
		if w.Start.After(c.Start) { // a new window
			q.windows.MoveToBack(e)
		}
		c.Window = w
		return
	}
	m.forget(q, now)
	for _, other := range m.queues {
		if m.used < m.max {
			break
		}
		m.forget(other, now)
	}
	if m.used >= m.max {
		m.evict()
	}
	q.at[key] = q.windows.PushBack(&counter{key, w})
	m.used++
}

// evict drops one of the rule that has most counters: of some that are picked at
// random, the one that has counted least.
func (m *Memory) evict() {
	var most *queue
	for _, q := range m.queues {
		if most == nil || len(q.at) > len(most.at) {
			most = q
		}
	}
	var least *list.Element
	n := 0
	for _, e := range most.at { // Go begins such a walk at a random place
		if least == nil || e.Value.(*counter).Count < least.Value.(*counter).Count {
			least = e
		}
		if n++; n == looks {
			break
		}
	}
	m.drop(most, least)
}

func (m *Memory) drop(q *queue, e *list.Element) {
	q.windows.Remove(e)
	delete(q.at, e.Value.(*counter).key)
	m.used--
}

// forget drops some of the rule's counters whose windows have ended, a little
// later than they do: a clock that is set back must find them.
func (m *Memory) forget(q *queue, now time.Time) {
	for range sweep {
		e := q.windows.Front()
		if e == nil || now.Before(e.Value.(*counter).Start.Add(q.length+grace)) {
			return
		}
		m.drop(q, e)
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
	}
}
