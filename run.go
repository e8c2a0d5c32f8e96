package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Worker is one kind of due work, as data. Step does a bounded piece of it and
// returns how much it did; 0 = nothing was due.
type Worker struct {
	Name  string
	Every time.Duration // how long Run waits after a Step that found nothing
	Step  func(ctx context.Context) (int, error)
}

// maxRounds bounds one Step: work that never ends is a fault, not a reason to
// hang.
const maxRounds = 10_000

// ErrBusy: Step did maxRounds rounds and there was always more to do.
var ErrBusy = errors.New("cryptopay: work does not come to an end")

// Workers lists the App's workers, for a host that schedules them itself.
func (a *App) Workers() []Worker { return append([]Worker(nil), a.workers...) }

// work lists every kind of due work, in the order in which a fact travels.
func (a *App) work() []Worker {
	const soon = time.Second
	all := []Worker{{"addresses", 10 * time.Second, a.Addresses.Step}}
	for _, n := range a.networks {
		all = append(all,
			Worker{"incoming/" + string(n.name), a.cfg.Poll, n.in.Step},
			Worker{"treasury/" + string(n.name), soon, func(ctx context.Context) (int, error) { return a.Treasury.Step(ctx, n.name) }},
		)
	}
	all = append(all,
		Worker{"payments", soon, a.Payments.Step},
		Worker{"withdrawals", soon, a.Withdrawals.Step},
		Worker{"transfers", soon, a.Wallets.Step},
	)
	for _, n := range a.networks {
		all = append(all, Worker{"outgoing/" + string(n.name), soon, n.out.Step})
	}
	all = append(all, Worker{"webhooks", soon, a.Webhooks.Step}, Worker{"idempotency", time.Minute, a.forget})
	all = append(all, a.retention()...)
	all = append(all, a.seals()...)
	return append(all, a.cfg.Workers...)
}

// forget purges first responses that have outlived their day.
func (a *App) forget(ctx context.Context) (int, error) {
	return storage.PurgeOnce(ctx, a.cfg.Store, a.cfg.Clock.Now(), purgeLease, purgeBatch)
}

const (
	purgeLease = time.Minute
	purgeBatch = 500
)

// Step does everything that is due now, on the caller's goroutine, until
// nothing is. A worker that fails is left out for the rest of this Step and its
// error returned at the end; the others go on.
func (a *App) Step(ctx context.Context) error {
	failed := map[string]error{}
	for range maxRounds {
		worked := 0
		for _, w := range a.workers {
			if failed[w.Name] != nil {
				continue
			}
			n, err := w.Step(ctx)
			if err != nil {
				failed[w.Name] = fmt.Errorf("%s: %w", w.Name, err)
			}
			worked += n
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if worked == 0 {
			var all error
			for _, w := range a.workers { // in a fixed order
				all = errors.Join(all, failed[w.Name])
			}
			return all
		}
	}
	return ErrBusy
}

// Run works until ctx ends: then it claims nothing new, finishes what is in
// flight, and returns nil. A worker that fails is tried again after a pause
// that doubles up to a minute; nothing makes Run return early. Where the store
// tells the time (storage.Clock), a process whose clock is off by a quarter of
// the shortest lease claims nothing until it is set: see ErrClock.
func (a *App) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, w := range a.workers {
		wg.Go(func() { a.loop(ctx, w) })
	}
	wg.Wait()
	return nil
}

func (a *App) loop(ctx context.Context, w Worker) {
	pause := w.Every
	for ctx.Err() == nil {
		step := context.WithoutCancel(ctx)
		n, err := 0, a.skew.check(step)
		if err == nil {
			n, err = a.guarded(step, w)
		}
		switch {
		case err != nil:
			a.cfg.Log.ErrorContext(ctx, "worker failed", slog.String("worker", w.Name), slog.Any("error", err))
			pause = min(2*pause, time.Minute)
		case n > 0:
			pause = w.Every
			continue
		default:
			pause = w.Every
		}
		if a.cfg.Clock.Wait(ctx, pause) != nil {
			return
		}
	}
}

// guarded turns a panic into an error: one bad row must not end a process that
// moves other people's money, nor stop this worker's other rows for ever.
func (a *App) guarded(ctx context.Context, w Worker) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = 0, fmt.Errorf("cryptopay: worker %s panicked: %v", w.Name, p)
		}
	}()
	return w.Step(ctx)
}
