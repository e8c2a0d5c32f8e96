package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Worker is one kind of due work, as data. Step does a bounded piece of it and
// returns how much it did; 0 = nothing was due.
type Worker struct {
	Name  string        // no other worker's
	Every time.Duration // how long Run waits after a Step that found nothing. Defaults to 1 second
	Step  func(ctx context.Context) (int, error)
	// Lease is how long a Step may take before Run reports it: as long as what it
	// claims is its own. Defaults to 1 minute.
	Lease time.Duration

	start func(ctx context.Context) runner // what Run does in place of Step; nil = Step
}

// runner is a worker that has work in flight between its steps.
type runner interface {
	Step(ctx context.Context) (int, error)
	Wake() <-chan struct{}           // there is something to do before Every has passed
	Close(ctx context.Context) error // ends what is in flight
}

// prepared fills in what workers leave out, and refuses those that cannot work. By their
// names Health, metrics and Step tell them apart.
func prepared(workers []Worker) error {
	seen := map[string]bool{}
	for i := range workers {
		w := &workers[i]
		switch {
		case w.Name == "" || w.Step == nil:
			return fmt.Errorf("cryptopay: Config.Workers: worker %q needs a Name and a Step", w.Name)
		case seen[w.Name]:
			return fmt.Errorf("cryptopay: Config.Workers: two workers have the name %q", w.Name)
		case w.Every < 0 || w.Lease < 0:
			return fmt.Errorf("cryptopay: Config.Workers: worker %q: Every and Lease must not be negative", w.Name)
		case w.Every == 0:
			w.Every = time.Second
		}
		seen[w.Name] = true
	}
	return nil
}

// filler derives addresses ahead, and is woken where they run low. It has nothing in
// flight between its steps.
type filler struct{ *incoming.Pool }

func (filler) Close(context.Context) error { return nil }

// maxRounds bounds one Step: work that never ends is a fault, not a reason to
// hang.
const maxRounds = 10_000

// ErrNotOpened reports that Run was called on an App whose Open has not succeeded.
var ErrNotOpened = errors.New("cryptopay: the App was not opened: call Open before Run")

// ErrBusy: Step did maxRounds rounds and there was always more to do.
var ErrBusy = errors.New("cryptopay: work does not come to an end")

// Workers lists the App's workers, for a host that schedules them itself.
func (a *App) Workers() []Worker { return append([]Worker(nil), a.workers...) }

// work lists every kind of due work, in the order in which a fact travels.
func (a *App) work() []Worker {
	const soon = time.Second
	var all []Worker
	if a.cfg.derives() {
		all = append(all, Worker{
			Name: "addresses", Every: 10 * time.Second, Step: a.Addresses.Step,
			start: func(context.Context) runner { return filler{a.Addresses} },
		})
	}
	for _, n := range a.networks {
		all = append(all,
			Worker{Name: "incoming/" + string(n.name), Every: a.cfg.pollOn(n.name), Step: n.in.Step, Lease: shortestLease},
			Worker{Name: "forks/" + string(n.name), Every: a.cfg.pollOn(n.name), Step: func(ctx context.Context) (int, error) { return a.forks(ctx, n) }},
		)
		if !a.cfg.derives() {
			continue // what sends needs the addresses that it sends from
		}
		all = append(all,
			Worker{Name: "treasury/" + string(n.name), Every: soon, Step: func(ctx context.Context) (int, error) { return a.Treasury.Step(ctx, n.name) }, Lease: a.cfg.Treasury.Lease},
		)
	}
	all = append(all, Worker{Name: "cold notices", Every: 5 * time.Second, Step: a.Treasury.StepNotices, Lease: a.cfg.Treasury.Lease})
	all = append(all, Worker{Name: "payments", Every: soon, Step: a.Payments.Step, Lease: a.cfg.Payments.Lease})
	if a.cfg.derives() {
		all = append(all,
			Worker{Name: "withdrawals", Every: soon, Step: a.Withdrawals.Step, Lease: a.cfg.Withdrawals.Lease},
			Worker{Name: "house payments", Every: soon, Step: a.houseMoney.Step, Lease: a.cfg.Withdrawals.Lease},
			Worker{Name: "cold", Every: 10 * time.Second, Step: a.houseMoney.StepCold},
			Worker{Name: "refills", Every: 5 * time.Second, Step: a.refills.Step},
		)
	}
	all = append(all,
		Worker{Name: "waiting withdrawals", Every: 10 * time.Second, Step: a.Withdrawals.StepWaits, Lease: a.cfg.Withdrawals.Lease},
		Worker{Name: "refunds", Every: time.Minute, Step: a.Refunds.Step},
		Worker{Name: "transfers", Every: soon, Step: a.Wallets.Step},
	)
	for _, n := range a.networks {
		all = append(all, Worker{Name: "outgoing/" + string(n.name), Every: soon, Step: n.out.Step, Lease: a.cfg.outgoingOn(n.client).Lease})
	}
	for _, n := range a.networks {
		all = append(all, Worker{Name: "books/" + string(n.name), Every: 5 * time.Second, Step: n.books.Step, Lease: a.cfg.Reconcile.Lease})
	}
	all = append(all,
		Worker{
			Name: "webhooks", Every: soon, Step: a.Webhooks.Step,
			start: func(ctx context.Context) runner { return a.Webhooks.Dispatch(ctx, webhookSlots) },
		},
		Worker{Name: "idempotency", Every: time.Minute, Step: a.forget},
		Worker{Name: "counters", Every: time.Minute, Step: (&counting{a: a}).step},
		Worker{Name: "unlisted", Every: time.Minute, Step: (&unlisted{a: a}).step},
		a.lost(),
	)
	all = append(all, a.streams()...)
	all = append(all, a.costWorkers()...)
	all = append(all, a.mergeWorkers()...)
	all = append(all, a.retention()...)
	all = append(all, a.seals()...)
	return append(all, a.cfg.Workers...)
}

// forget purges first responses that have outlived their day.
func (a *App) forget(ctx context.Context) (int, error) {
	return storage.PurgeOnce(ctx, a.cfg.Store, a.cfg.Clock.Now(), purgeLease, purgeBatch)
}

// webhookSlots is how many webhooks Run has in flight.
const webhookSlots = 128

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
