package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// spans draws where the world is quiet: before some steps, until a time. In
// between it is busy, as a week has its hours.
func (r *run) spans() map[int]time.Time {
	out := map[int]time.Time{}
	if r.w.Span < 0 {
		return out
	}
	rng := rand.New(rand.NewPCG(r.w.Seed, 0x7da15))
	n := 6 + rng.IntN(7)
	for i := 1; i < n; i++ {
		step := (r.w.Steps*i + rng.IntN(r.w.Steps+1)) / n
		part := (float64(i) + rng.Float64() - 0.5) / float64(n)
		out[step] = r.begun.Add(time.Duration(part * float64(r.w.Span)))
	}
	return out
}

// lull is how a quiet span passes: by rounds, each at the time at which
// something is due, but no sooner than least and no later than most after the
// one before. What is due sooner is found late, as by a process that was down: later
// rounds are at least slow times 20 minutes apart.
func lull(round, slow int) (least, most time.Duration) {
	switch {
	case round < 4:
		return time.Minute, 5 * time.Minute
	case round < 10:
		return 5 * time.Minute, time.Hour
	}
	return time.Duration(slow) * 20 * time.Minute, 4 * time.Hour
}

// quiet lets time pass in which nobody begins anything: chains make blocks,
// customers send what they meant to, and the processes do what comes due, with
// every fault that is on.
func (r *run) quiet(until time.Time) {
	if !r.now.Before(until) {
		return
	}
	if r.rng.IntN(2) == 0 {
		r.tell("heal: %s", r.heal()) // somebody looks after the nodes
	}
	began, round, slow := r.now, 0, 1+r.rng.IntN(4)
	for ; r.now.Before(until) && r.failure == nil; round++ {
		least, most := lull(round, slow)
		next := r.now.Add(most)
		for _, at := range []time.Time{until, r.truth.dueAfter(r.now.Add(least)), r.wanted(r.now.Add(least))} {
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		r.now, r.calls = next, 0
		r.shop()
		if r.rate[Eviction] > 0 && r.rng.IntN(3) == 0 { // what has waited for long is what nodes forget
			r.tell("evict: %s", r.evict())
		}
		for _, n := range r.chains {
			n.chain.Mine(1 + r.rng.IntN(4))
		}
		r.wake(true)
		r.ask("quiet", func(t *task) { r.did(t, t.p.app.Step(context.Background())) })
		r.rise()
	}
	r.tell("quiet: %s, %d rounds", r.now.Sub(began).Round(time.Second), round)
	r.prove(false)
	r.backup(false)
}

// wanted is when the next customer means to send something, not before a time.
func (r *run) wanted(from time.Time) time.Time {
	var next time.Time
	for _, m := range r.tenants {
		for _, a := range m.payments {
			for _, p := range a.plan {
				if !p.at.Before(from) && (next.IsZero() || p.at.Before(next)) {
					next = p.at
				}
			}
		}
	}
	return next
}

// shop lets every customer send what he meant to send by now.
func (r *run) shop() {
	for _, m := range r.tenants {
		for _, a := range m.payments {
			left := a.plan
			a.plan = nil
			for _, p := range left {
				if p.at.After(r.now) {
					a.plan = append(a.plan, p)
					continue
				}
				r.tell("customer: %s", a.send(p.tx))
			}
		}
	}
}

// dueAfter is when the next row is due, not before a time; zero = none is.
func (w *witness) dueAfter(from time.Time) time.Time {
	var next time.Time
	for _, at := range w.due {
		if !at.Before(from) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// dues keeps when each row that waits is due.
func (w *witness) dues(row *storage.Row, part storage.Partition) {
	k := rowKey{row.Table, part, row.ID}
	if row.Due.IsZero() {
		delete(w.due, k)
		return
	}
	w.due[k] = row.Due
}

func days(d time.Duration) string { return fmt.Sprintf("%g", d.Hours()/24) }
