package move

import (
	"context"
	"fmt"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Options of a move. The zero value is fine.
type Options struct {
	// Progress is called now and then, on the caller's goroutine; nil = never.
	Progress func(Progress)
}

// Progress is how far one phase is.
type Progress struct {
	Phase string // "copying", "proving the source" or "proving the target"
	Done  int64  // rows, ledger entries and levels
	Total int64  // as far as it can be told; 0 = not
}

// every is how often Progress is called, in records.
const every = 1000

// walk reads all of a store in one order: partition by partition, its tables, its
// levels, its ledger.
type walk struct {
	end   End
	sums  *sums
	phase string
	tell  func(Progress)
	done  int64
	total int64

	// What is done with what it comes by, beside adding it up.
	part   func(storage.Partition) error
	record func(record, []byte) error
	ledger func(context.Context, storage.Partition, []ledger.Balance) error
}

func newWalk(e End, o Options, phase string) *walk {
	w := &walk{end: e, sums: newSums(e.Tables), phase: phase, tell: o.Progress}
	w.part = func(storage.Partition) error { return nil }
	w.record = func(record, []byte) error { return nil }
	return w
}

func (w *walk) run(ctx context.Context) error {
	if w.end.Store == nil || w.end.Partitions == nil {
		return fmt.Errorf("%w: an End needs Store and Partitions", ErrIncomplete)
	}
	var last storage.Partition
	for p, err := range w.end.Partitions(ctx, w.end.Store) {
		if err != nil {
			return fmt.Errorf("move: listing partitions: %w", err)
		}
		if p <= last {
			return fmt.Errorf("%w: partition %q comes after %q: they must ascend", ErrIncomplete, p, last)
		}
		last = p
		if err := w.partition(ctx, p); err != nil {
			return err
		}
	}
	w.report()
	return w.whole(ctx)
}

// whole makes sure that no row is in a partition that was not named.
func (w *walk) whole(ctx context.Context) error {
	for _, t := range w.end.Tables {
		n, err := w.end.Store.Count(ctx, storage.Query{Table: t})
		if err != nil {
			return err
		}
		switch seen := w.sums.byTable[t].n; {
		case n > seen:
			return fmt.Errorf("%w: table %s has %d rows and %d were found in the partitions named, or it is still written to", ErrIncomplete, t.Name, n, seen)
		case n < seen:
			return fmt.Errorf("%w: rows of %s went away meanwhile", ErrBusy, t.Name)
		}
	}
	return nil
}

func (w *walk) partition(ctx context.Context, p storage.Partition) error {
	if err := w.part(p); err != nil {
		return err
	}
	l := levels{w: w, p: p, names: map[string]bool{}}
	for _, t := range w.end.Tables {
		sum := w.sums.byTable[t]
		err := rows(ctx, w.end.Store, t, p, func(r storage.Row) error {
			rec, err := rowRecord(&r)
			if err != nil {
				return err
			}
			if err := w.take(p, sum, rec); err != nil {
				return err
			}
			return l.of(ctx, r)
		})
		if err != nil {
			return err
		}
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	list, err := balances(ctx, w.end.Store, p)
	if err != nil || len(list) == 0 {
		return err
	}
	for i := range list {
		w.sums.balance(p, &list[i])
	}
	return w.ledger(ctx, p, list)
}

// take adds a record to a sum and passes it on.
func (w *walk) take(p storage.Partition, s *sum, r record) error {
	text, err := r.text()
	if err != nil {
		return err
	}
	s.add(p, text)
	w.step()
	return w.record(r, text)
}

func (w *walk) entry(p storage.Partition, e *ledger.Entry) {
	w.sums.entry(p, e)
	w.step()
}

func (w *walk) step() {
	if w.done++; w.done%every == 0 {
		w.report()
	}
}

func (w *walk) report() {
	if w.tell == nil {
		return
	}
	total := w.total
	if total > 0 {
		total = max(total, w.done) // levels are not counted before
	}
	w.tell(Progress{w.phase, w.done, total})
}

// levels collects the counters that rows of a partition tell of, each once as
// long as there are not too many, and harmlessly twice where there are.
type levels struct {
	w     *walk
	p     storage.Partition
	names map[string]bool
	order []string
}

const maxNames = 10_000

func (l *levels) of(ctx context.Context, r storage.Row) error {
	if l.w.end.Levels == nil {
		return nil
	}
	for _, n := range l.w.end.Levels(r) {
		if !l.names[n] {
			l.names[n] = true
			l.order = append(l.order, n)
		}
	}
	if len(l.order) < maxNames {
		return nil
	}
	return l.flush(ctx)
}

func (l *levels) flush(ctx context.Context) error {
	for _, n := range l.order {
		v, err := level(ctx, l.w.end.Store, l.p, n)
		if err != nil {
			return err
		}
		if v == 0 {
			continue
		}
		if err := l.w.take(l.p, &l.w.sums.levels, record{Kind: kindLevel, ID: n, Value: v}); err != nil {
			return err
		}
	}
	clear(l.names)
	l.order = l.order[:0]
	return nil
}

// size is how many rows and ledger entries there are, for Progress.
func size(ctx context.Context, e End) (n int64, err error) {
	for _, t := range e.Tables {
		k, err := e.Store.Count(ctx, storage.Query{Table: t})
		if err != nil {
			return 0, err
		}
		n += k
	}
	for p, err := range e.Partitions(ctx, e.Store) {
		if err != nil {
			return 0, err
		}
		list, err := balances(ctx, e.Store, p)
		if err != nil {
			return 0, err
		}
		for i := range list {
			n += list[i].Seq
		}
	}
	return n, nil
}
