package stream

import (
	"context"
	"log/slog"
	"sync"

	"github.com/cryptopay-go/cryptopay/storage"
)

// running does what Service.Step does, side by side: no consumer waits for another one,
// and no partition for another, as long as there are slots. Each consumer has its own.
type running struct {
	s     *Service
	ctx   context.Context
	slots int
	wake  chan struct{}
	all   sync.WaitGroup

	mu   sync.Mutex
	busy map[string]int                            // places at work, by consumer
	mine map[string]map[storage.Partition]struct{} // which
}

// Run does what Step does, side by side, with so many slots for each consumer. Its work ends
// with ctx. One goroutine calls Step until it calls Close.
func (s *Service) Run(ctx context.Context, slots int) *running {
	return &running{
		s: s, ctx: ctx, slots: slots, wake: make(chan struct{}, 1),
		busy: map[string]int{}, mine: map[string]map[storage.Partition]struct{}{},
	}
}

// Wake says that a place was dealt with: there may be more.
func (r *running) Wake() <-chan struct{} { return r.wake }

// Step relays news and begins work on as many places as have a slot. It returns how many
// that were.
func (r *running) Step(ctx context.Context) (int, error) {
	if len(r.s.named) == 0 {
		return 0, nil
	}
	if _, err := r.s.Relay(ctx); err != nil {
		return 0, err
	}
	n := 0
	for i := range r.s.c.Consumers {
		name := r.s.c.Consumers[i].Name
		free := r.free(name)
		if free == 0 {
			continue
		}
		rows, err := r.s.claim(ctx, name, free)
		if err != nil {
			return n, err
		}
		for _, row := range rows {
			if r.start(row) {
				n++
			}
		}
	}
	return n, nil
}

func (r *running) free(consumer string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slots - r.busy[consumer]
}

// start begins work on a place, unless it is at work here although its lease has ended.
func (r *running) start(row storage.Row) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	mine := r.mine[row.ID]
	if mine == nil {
		mine = map[storage.Partition]struct{}{}
		r.mine[row.ID] = mine
	}
	if _, ok := mine[row.Partition]; ok {
		return false
	}
	mine[row.Partition] = struct{}{}
	r.busy[row.ID]++
	r.all.Go(func() {
		defer r.end(row)
		defer func() {
			if p := recover(); p != nil { // its lease ends, and it comes again
				r.s.c.Log.ErrorContext(r.ctx, "consumer_panicked", slog.String("consumer", row.ID),
					slog.String("partition", string(row.Partition)), slog.Any("panic", p))
			}
		}()
		if err := r.s.Deliver(r.ctx, row); err != nil && r.ctx.Err() == nil { // its lease ends, and it comes again
			r.s.c.Log.ErrorContext(r.ctx, "consumer_stopped", slog.String("consumer", row.ID),
				slog.String("partition", string(row.Partition)), slog.Any("error", err))
		}
	})
	return true
}

func (r *running) end(row storage.Row) {
	r.mu.Lock()
	delete(r.mine[row.ID], row.Partition)
	r.busy[row.ID]--
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default: // Step was not called since the last
	}
}

// Close waits for what is at work.
func (r *running) Close(context.Context) error {
	r.all.Wait()
	return nil
}
