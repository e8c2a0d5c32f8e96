package webhook

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/fairpool"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Dispatcher delivers the outbox side by side: it does what Service.Step does, and
// waits for no receiver. Its slots are shared fairly by tenant and by host, first
// attempts come before retries, and events of one object one after the other.
type Dispatcher struct {
	s    *Service
	pool *fairpool.Pool
	wake chan struct{}

	mu      sync.Mutex
	mine    map[rowKey]*job           // waiting or being tried here
	load    map[storage.Partition]int // how many of them, by tenant
	changes []storage.Change          // what came of attempts since the last Step

	// Of the last claim, by Step alone.
	at      time.Time
	retried time.Time           // when retries were asked for
	again   bool                // there may be more
	full    []storage.Partition // tenants that were left out
}

const (
	claimEvery = time.Second // where nothing says that more is due
	quota      = 256         // deliveries of one tenant that wait here, at the most
	fewLeft    = quota / 2   // of these, with which more of it are claimed
	maxExcept  = 100         // tenants that a claim leaves out
)

// Dispatch makes a Dispatcher of so many slots. Its attempts end with ctx. One
// goroutine calls Step until it calls Close.
func (s *Service) Dispatch(ctx context.Context, slots int) *Dispatcher {
	return &Dispatcher{
		s: s, pool: fairpool.New(ctx, slots), wake: make(chan struct{}, 1),
		mine: map[rowKey]*job{}, load: map[storage.Partition]int{},
	}
}

// Wake says that an attempt has ended: Step has something to store.
func (d *Dispatcher) Wake() <-chan struct{} { return d.wake }

// Step stores in one Commit what came of attempts since it was called last, and
// claims what there is room for. It returns how many events that were. A tenant
// of which enough waits here is left out of the claim, so that what it has due is
// never in front of another one's. So is one of which nothing can be stored now.
func (d *Dispatcher) Step(ctx context.Context) (int, error) {
	changes := d.take()
	left, err := d.s.commit(ctx, changes)
	if len(left) > 0 { // the same again: what was stored already does nothing
		d.mu.Lock()
		d.changes = append(left, d.changes...)
		d.mu.Unlock()
	}
	now, stored := d.s.cfg.Now(), len(changes)-len(left)
	if err != nil || !d.hungry(now) {
		return stored, err
	}
	var room int
	d.full, room = d.laden()
	retries := now.Before(d.retried) || now.Sub(d.retried) >= claimEvery
	if retries {
		d.retried = now
	}
	rows, more, err := d.s.claim(ctx, now, min(room, d.s.cfg.Batch), without(d.full, left), retries)
	d.at, d.again = now, more
	jobs, broken := d.s.prepare(ctx, d.fresh(rows), now)
	if broken != nil {
		// Logged, not returned: who calls would pause, and with it all tenants.
		d.s.cfg.Log.ErrorContext(ctx, "webhooks_unreadable", slog.Any("error", broken))
	}
	d.start(jobs)
	return stored + len(jobs), err
}

// without are the tenants that a claim leaves out: those that are full, and those of which
// something is left to be stored.
func without(full []storage.Partition, left []storage.Change) []storage.Partition {
	except := slices.Clone(full)
	for i := range left {
		if len(except) < maxExcept && !slices.Contains(except, left[i].Partition) {
			except = append(except, left[i].Partition)
		}
	}
	return except
}

// hungry reports whether it is time to claim.
func (d *Dispatcher) hungry(now time.Time) bool {
	if d.again || now.Before(d.at) || now.Sub(d.at) >= claimEvery {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.full {
		if d.load[p] < fewLeft {
			return true
		}
	}
	return false
}

// laden are the tenants of which enough wait here, at most maxExcept. room is how many may
// be claimed of the others, so that of none of them more wait than its quota. A tenant that
// is one too many to be left out may exceed its quota: small claims would delay all.
func (d *Dispatcher) laden() (full []storage.Partition, room int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	most := 0
	for p, n := range d.load {
		switch {
		case n < fewLeft:
			most = max(most, n)
		case len(full) < maxExcept:
			full = append(full, p)
		}
	}
	return full, max(1, quota-most)
}

// fresh leaves out what is being tried here although its lease has ended.
func (d *Dispatcher) fresh(rows []storage.Row) []storage.Row {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []storage.Row
	for _, row := range rows {
		if d.mine[keyOf(row)] == nil {
			out = append(out, row)
		}
	}
	return out
}

func (d *Dispatcher) start(jobs []*job) {
	tasks := make([]fairpool.Task, len(jobs))
	d.mu.Lock()
	for i, j := range jobs {
		d.mine[keyOf(j.row)] = j
		d.load[j.row.Partition]++
		tasks[i] = fairpool.Task{
			Tenant: string(j.row.Partition), Destination: j.host.host, Serial: j.event.Object, Later: j.event.Attempts > 0,
			Run: func(ctx context.Context) { d.try(ctx, j) },
		}
	}
	d.mu.Unlock()
	d.pool.Add(tasks...)
}

// try makes an attempt. One that panics changes nothing: its lease ends.
func (d *Dispatcher) try(ctx context.Context, j *job) {
	var changes []storage.Change
	defer func() {
		if p := recover(); p != nil {
			d.s.cfg.Log.ErrorContext(ctx, "webhook_attempt_panicked", slog.String("event", j.row.ID), slog.Any("panic", p))
		}
		d.end(j, changes)
	}()
	changes = append(changes, d.s.attempt(ctx, j))
}

// end notes what came of an attempt.
func (d *Dispatcher) end(j *job, changes []storage.Change) {
	d.mu.Lock()
	d.changes = append(d.changes, changes...)
	delete(d.mine, keyOf(j.row))
	if d.load[j.row.Partition]--; d.load[j.row.Partition] == 0 {
		delete(d.load, j.row.Partition)
	}
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default: // Step was not called since the last
	}
}

func (d *Dispatcher) take() []storage.Change {
	d.mu.Lock()
	defer d.mu.Unlock()
	changes := d.changes
	d.changes = nil
	return changes
}

// Close begins no attempt any more, waits for those in flight, stores what came of
// them, and gives the rest back, due at once.
func (d *Dispatcher) Close(ctx context.Context) error {
	d.pool.Close()
	changes := d.take()
	d.mu.Lock()
	now := d.s.cfg.Now()
	for _, j := range d.mine {
		changes = append(changes, d.s.change(j.row, j.event, now))
	}
	d.mine, d.load = map[rowKey]*job{}, map[storage.Partition]int{}
	d.mu.Unlock()
	_, err := d.s.commit(ctx, changes)
	return err
}
