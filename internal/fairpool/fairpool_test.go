package fairpool_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/fairpool"
)

// desk is a pool whose tasks run until they are let go.
type desk struct {
	pool *fairpool.Pool
	mu   sync.Mutex
	runs []string // names, in the order of starting
	gate map[string]chan struct{}
	wake *sync.Cond
}

func newDesk(t *testing.T, slots int) *desk {
	d := &desk{pool: fairpool.New(t.Context(), slots), gate: map[string]chan struct{}{}}
	d.wake = sync.NewCond(&d.mu)
	t.Cleanup(func() {
		d.mu.Lock()
		for _, g := range d.gate {
			select {
			case <-g:
			default:
				close(g)
			}
		}
		d.mu.Unlock()
		d.pool.Close()
	})
	return d
}

func (d *desk) task(tenant, destination, serial, name string, later bool) fairpool.Task {
	gate := make(chan struct{})
	d.mu.Lock()
	d.gate[name] = gate
	d.mu.Unlock()
	return fairpool.Task{Tenant: tenant, Destination: destination, Serial: serial, Later: later, Run: func(context.Context) {
		d.mu.Lock()
		d.runs = append(d.runs, name)
		d.wake.Broadcast()
		d.mu.Unlock()
		<-gate
	}}
}

// started waits until so many have started, and returns their names.
func (d *desk) started(n int) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.runs) < n {
		d.wake.Wait()
	}
	return append([]string(nil), d.runs...)
}

func (d *desk) end(names ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range names {
		close(d.gate[n])
	}
}

// Whoever hangs has at most half of what the others leave, in all and at one
// destination; so each newcomer starts at once.
func TestWhoHangsLeavesRoom(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 16)
	for i := range 40 {
		d.pool.Add(d.task("a", "dead", "", fmt.Sprint("a", i), false))
	}
	require.Len(t, d.started(4), 4) // half of a half
	d.pool.Add(d.task("a", "good", "", "a-good", false))
	require.Contains(t, d.started(5), "a-good")
	for i := range 40 {
		d.pool.Add(d.task("a", fmt.Sprint("dead", i), "", fmt.Sprint("a-many", i), false))
	}
	require.Len(t, d.started(8), 8)
	for i, tenant := range []string{"b", "c", "d"} {
		d.pool.Add(d.task(tenant, "x", "", tenant, false))
		require.Contains(t, d.started(9+i), tenant)
	}
	require.Len(t, d.started(11), 11, "and a has got no more")
}

// Of a destination's tasks those that are not Later come first, and each Serial's
// come in their order.
func TestFirstThingsFirst(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	d.pool.Add(
		d.task("a", "x", "o", "o1", false), d.task("a", "x", "", "retry", true), d.task("a", "x", "o", "o2", false),
		d.task("a", "x", "", "fresh", false),
	)
	want := []string{"o1", "o2", "fresh", "retry"}
	for i, name := range want {
		require.Equal(t, want[:i+1], d.started(i+1))
		d.end(name)
	}

	d = newDesk(t, 16)
	d.pool.Add(d.task("a", "x", "o", "o1", false), d.task("a", "x", "o", "o2", false), d.task("a", "x", "p", "p1", false))
	require.ElementsMatch(t, []string{"o1", "p1"}, d.started(2), "o2 waits for o1")
	d.end("o1")
	require.Equal(t, "o2", d.started(3)[2])
}

// Tenants take turns, however much one of them has.
func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	for i := range 5 {
		d.pool.Add(d.task("a", "x", "", fmt.Sprint("a", i), false))
	}
	d.pool.Add(d.task("b", "x", "", "b0", false), d.task("c", "x", "", "c0", false))
	want := []string{"a0", "a1", "b0", "c0", "a2"} // a's second turn was due before b came
	for i, name := range want {
		require.Equal(t, want[:i+1], d.started(i+1))
		d.end(name)
	}
}

// Close waits for what runs and starts nothing any more.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, 1)
		d.pool.Add(d.task("a", "x", "", "one", false), d.task("a", "x", "", "two", false))
		d.started(1)
		left := make(chan int)
		go func() { left <- d.pool.Close() }()
		synctest.Wait() // Close waits for the first
		d.end("one")
		require.Equal(t, 1, <-left)
		d.pool.Add(d.task("b", "x", "", "three", false))
		require.Equal(t, []string{"one"}, d.started(1))
		d.end("two", "three")
	})
}

// Everything runs exactly once, never more at a time than there are slots, and
// nothing is left behind.
func TestAllRunOnce(t *testing.T) {
	t.Parallel()
	const slots, all = 7, 3000
	rng := rand.New(rand.NewPCG(5, 5))
	p := fairpool.New(t.Context(), slots)
	var mu sync.Mutex
	var wg sync.WaitGroup
	now, ran, serial := 0, map[int]int{}, map[string]int{}
	wg.Add(all)
	for i := range all {
		tenant, destination, object := fmt.Sprint(rng.IntN(9)), fmt.Sprint(rng.IntN(4)), fmt.Sprint(rng.IntN(3))
		key := tenant + "/" + destination + "/" + object
		p.Add(fairpool.Task{Tenant: tenant, Destination: destination, Serial: object, Later: rng.IntN(2) == 0, Run: func(context.Context) {
			mu.Lock()
			now++
			ran[i]++
			serial[key]++
			if now > slots || serial[key] > 1 {
				t.Errorf("%d run at once, %d of %s", now, serial[key], key)
			}
			mu.Unlock()
			mu.Lock()
			now--
			serial[key]--
			mu.Unlock()
			wg.Done()
		}})
	}
	wg.Wait()
	require.Zero(t, p.Close())
	require.Len(t, ran, all)
	for i, n := range ran {
		require.Equal(t, 1, n, i)
	}
}
