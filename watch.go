package cryptopay

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Run works until ctx ends: then it claims nothing new, waits for the steps in
// flight, and returns nil. It waits for Config.Grace; then it cancels the context
// of what still runs, and what does not return within 5 seconds of that it reports
// and leaves behind: its lease ends, and another process takes it up. A worker that
// fails is tried again after a pause that doubles up to a minute; nothing makes Run
// return early. A step that outlives its worker's lease is reported, as
// worker_overdue. Where the store tells the time (storage.Clock), a process whose
// clock is off by a quarter of the shortest lease claims nothing until it is set:
// see ErrClock. The error is ErrNotOpened where Open was not called.
func (a *App) Run(ctx context.Context) error {
	if !a.opened.Load() {
		return ErrNotOpened
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := shift{a: a, ctx: ctx, work: work, since: map[string]time.Time{}}
	var wg sync.WaitGroup
	for _, w := range a.workers {
		wg.Go(func() { s.loop(w) })
	}
	over := make(chan struct{})
	go func() {
		wg.Wait()
		close(over)
	}()
	<-ctx.Done()
	if a.waits(over, a.cfg.Grace) {
		return nil
	}
	a.cfg.Log.WarnContext(ctx, "shutdown_overdue", slog.Duration("grace", a.cfg.Grace), slog.Any("workers", s.busy()))
	cancel()
	if !a.waits(over, afterCancel) {
		a.cfg.Log.ErrorContext(ctx, "workers_left_behind", slog.Any("workers", s.busy()))
	}
	return nil
}

// afterCancel is how long a canceled step has to return.
const afterCancel = 5 * time.Second

// waits waits for at most d until over is closed, and reports whether it is.
func (a *App) waits(over <-chan struct{}, d time.Duration) bool {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	late := make(chan struct{})
	go func() {
		if a.cfg.Clock.Wait(ctx, d) == nil {
			close(late)
		}
	}()
	select {
	case <-over:
		return true
	case <-late:
		return false
	}
}

// shift is one Run.
type shift struct {
	a    *App
	ctx  context.Context // ends when nothing new may begin
	work context.Context // ends when nothing may go on

	mu    sync.Mutex
	since map[string]time.Time // workers whose step is in flight
}

// busy lists the workers whose step is in flight.
func (s *shift) busy() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for name := range s.since {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// loop works until the shift ends.
func (s *shift) loop(w Worker) {
	step, wake := w.Step, (<-chan struct{})(nil)
	if w.start != nil {
		r := w.start(s.work)
		step, wake = s.a.noted(w.Name, r.Step), r.Wake()
		defer func() {
			s.failed(w, s.watched(w, r.Close))
		}()
	}
	pause := w.Every
	for s.ctx.Err() == nil {
		n := 0
		err := s.watched(w, func(ctx context.Context) (err error) {
			if err = s.a.skew.check(ctx); err == nil {
				n, err = step(ctx)
			}
			return err
		})
		s.failed(w, err)
		switch {
		case err != nil && n > 0: // others go on: what failed is tried again by a later step
			pause = w.Every
			_ = s.a.cfg.Clock.Wait(s.ctx, min(pause, time.Second))
		case err != nil:
			pause = min(2*pause, time.Minute)
			_ = s.a.cfg.Clock.Wait(s.ctx, pause) // the loop sees the end
		case n > 0:
			pause = w.Every
		default:
			pause = w.Every
			s.wait(pause, wake)
		}
	}
}

func (s *shift) failed(w Worker, err error) {
	if err != nil {
		s.a.cfg.Log.ErrorContext(s.ctx, "worker_failed", slog.String("worker", w.Name), slog.Any("error", err))
	}
}

// wait waits for d, until wake says something, or until the shift ends.
func (s *shift) wait(d time.Duration, wake <-chan struct{}) {
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	if wake != nil {
		go func() {
			select {
			case <-wake:
				stop()
			case <-ctx.Done():
			}
		}()
	}
	_ = s.a.cfg.Clock.Wait(ctx, d) // either way there may be something to do
}

// watched does a step, and reports it once if it outlives the worker's lease. It
// turns a panic into an error: one bad row must not end a process that moves other
// people's money, nor stop this worker's other rows for ever.
func (s *shift) watched(w Worker, step func(context.Context) error) (err error) {
	began := s.a.cfg.Clock.Now()
	s.mu.Lock()
	s.since[w.Name] = began
	s.mu.Unlock()
	watch, stop := context.WithCancel(s.work)
	go func() {
		lease := w.Lease
		if lease == 0 {
			lease = time.Minute
		}
		if s.a.cfg.Clock.Wait(watch, lease) == nil {
			s.a.cfg.Log.WarnContext(s.ctx, "worker_overdue", slog.String("worker", w.Name),
				slog.Duration("running", s.a.cfg.Clock.Now().Sub(began)), slog.Duration("lease", lease))
		}
	}()
	defer func() {
		stop()
		s.mu.Lock()
		delete(s.since, w.Name)
		s.mu.Unlock()
		if p := recover(); p != nil {
			err = fmt.Errorf("cryptopay: worker %s panicked: %v", w.Name, p)
		}
	}()
	return step(s.work)
}
