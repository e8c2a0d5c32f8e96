// Package fairpool does slow outside work side by side, on a bounded number of
// slots that are shared fairly.
//
// It promises: tenants take turns, and so do the destinations of a tenant. A
// tenant never has more than half of the slots that the other tenants leave, and
// a destination never more than half of what its tenant's other destinations
// leave, but each may always have one. So whoever hangs leaves room for whoever
// comes next. Of a destination's tasks those that are not Later run first. Tasks
// with the same Serial run one after the other, in the order in which they came.
package fairpool

import (
	"context"
	"slices"
	"sync"
)

// Task is one piece of work.
type Task struct {
	Tenant      string
	Destination string
	// Serial names what tasks of one tenant and destination must not overtake each
	// other in; "" = they may.
	Serial string
	// Later puts a task behind the destination's tasks that are not.
	Later bool
	// Run does it. It must return when the context ends. A panic is the caller's to
	// recover.
	Run func(ctx context.Context)
}

// Pool runs tasks. It may be used concurrently.
type Pool struct {
	ctx   context.Context
	slots int

	mu      sync.Mutex
	idle    sync.Cond // running is 0
	running int
	closed  bool
	tenants map[string]*tenant
	turns   []*tenant // with waiting tasks; the first has the next turn
}

// tenant is one tenant's share.
type tenant struct {
	name         string
	running      int
	waiting      int
	destinations map[string]*destination
	turns        []*destination // with waiting tasks
}

// destination is one destination's share of a tenant's.
type destination struct {
	name    string
	running int
	first   []Task
	later   []Task
	busy    map[string]bool // Serials that run
}

// New makes a Pool of at least one slot. Tasks get ctx.
func New(ctx context.Context, slots int) *Pool {
	p := &Pool{ctx: ctx, slots: max(1, slots), tenants: map[string]*tenant{}}
	p.idle.L = &p.mu
	return p
}

// Add puts tasks in their places, and starts what may start. On a pool that was
// closed it does nothing.
func (p *Pool) Add(tasks ...Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	for _, task := range tasks {
		p.put(task)
	}
	p.start()
}

func (p *Pool) put(task Task) {
	t := p.tenants[task.Tenant]
	if t == nil {
		t = &tenant{name: task.Tenant, destinations: map[string]*destination{}}
		p.tenants[task.Tenant] = t
	}
	d := t.destinations[task.Destination]
	if d == nil {
		d = &destination{name: task.Destination, busy: map[string]bool{}}
		t.destinations[task.Destination] = d
	}
	if t.waiting == 0 {
		p.turns = append(p.turns, t)
	}
	if len(d.first)+len(d.later) == 0 {
		t.turns = append(t.turns, d)
	}
	if t.waiting++; task.Later {
		d.later = append(d.later, task)
	} else {
		d.first = append(d.first, task)
	}
}

// start runs tasks until none may start.
func (p *Pool) start() {
	for !p.closed && p.running < p.slots {
		t, d, task, ok := p.next()
		if !ok {
			return
		}
		p.running++
		t.running++
		d.running++
		d.busy[task.Serial] = task.Serial != ""
		go p.run(t, d, task)
	}
}

func (p *Pool) run(t *tenant, d *destination, task Task) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.running--
		t.running--
		d.running--
		delete(d.busy, task.Serial)
		p.forget(t, d)
		if p.running == 0 {
			p.idle.Broadcast()
		}
		p.start()
	}()
	task.Run(p.ctx)
}

// forget drops what has nothing to do any more.
func (p *Pool) forget(t *tenant, d *destination) {
	if d.running == 0 && len(d.first)+len(d.later) == 0 {
		delete(t.destinations, d.name)
	}
	if t.running == 0 && t.waiting == 0 {
		delete(p.tenants, t.name)
	}
}

// next takes the task whose turn it is. Whoever got one goes to the end.
func (p *Pool) next() (*tenant, *destination, Task, bool) {
	for i, t := range p.turns {
		share := half(p.slots - (p.running - t.running))
		if t.running >= share {
			continue
		}
		for k, d := range t.turns {
			if d.running >= half(share-(t.running-d.running)) {
				continue
			}
			task, ok := d.take()
			if !ok {
				continue
			}
			t.turns = slices.Delete(t.turns, k, k+1)
			if len(d.first)+len(d.later) > 0 {
				t.turns = append(t.turns, d)
			}
			p.turns = slices.Delete(p.turns, i, i+1)
			if t.waiting--; t.waiting > 0 {
				p.turns = append(p.turns, t)
			}
			return t, d, task, true
		}
	}
	return nil, nil, Task{}, false
}

func half(n int) int { return max(1, n/2) }

// take takes the first task that nothing of its Serial runs before.
func (d *destination) take() (Task, bool) {
	for _, queue := range []*[]Task{&d.first, &d.later} {
		for i, task := range *queue {
			if !d.busy[task.Serial] {
				*queue = slices.Delete(*queue, i, i+1)
				return task, true
			}
		}
	}
	return Task{}, false
}

// Close starts nothing any more and waits for what runs. It returns how many
// tasks were never started.
func (p *Pool) Close() (left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for p.running > 0 {
		p.idle.Wait()
	}
	for _, t := range p.turns {
		left += t.waiting
	}
	return left
}
