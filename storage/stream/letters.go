package stream

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// DeadLetter is an event that a consumer did not handle.
type DeadLetter struct {
	Letter
	Partition storage.Partition
}

// Dead lists the dead letters of a consumer in a partition, oldest first, after a number.
func (s *Service) Dead(ctx context.Context, p storage.Partition, consumer string, after int64, limit int) ([]DeadLetter, error) {
	rows, err := s.letters(ctx, p, consumer, after, limit)
	out := make([]DeadLetter, len(rows))
	for i, r := range rows {
		out[i] = DeadLetter{Letters.Value(r), p}
	}
	return out, err
}

func (s *Service) letters(ctx context.Context, p storage.Partition, consumer string, after int64, limit int) ([]storage.Row, error) {
	return s.c.Store.Find(ctx, storage.Query{
		Table: Letters.Table, Partition: p, Limit: limit,
		Where: []storage.Cond{
			{Column: "consumer", Op: storage.Eq, Value: consumer},
			{Column: storage.ColID, Op: storage.Gt, Value: letterID(consumer, after)},
		},
	})
}

// ErrNoLetter: there is no such dead letter.
var ErrNoLetter = errors.New("stream: no such dead letter")

// Retry has a consumer of this process handle the dead letters of an object again, in
// their order, until one fails. It returns how many were handled. Each is handled as an
// event is: in a transaction of its own where the store has them.
func (s *Service) Retry(ctx context.Context, p storage.Partition, consumer, object string) (int, error) {
	c := s.named[consumer]
	if c == nil {
		return 0, fmt.Errorf("stream: this process has no consumer %q", consumer)
	}
	for n, again := 0, 0; ; {
		row, ok, err := s.firstOf(ctx, p, consumer, object)
		switch {
		case err != nil:
			return n, err
		case !ok && n == 0:
			return 0, ErrNoLetter
		case !ok:
			return n, nil
		}
		switch err := s.retry(ctx, c, row); {
		case errors.Is(err, errStale) && again < mostAgain && ctx.Err() == nil:
			again++
		case err != nil:
			return n, fmt.Errorf("stream: consumer %q, event %d of %s: %w", consumer, Letters.Value(row).Number, p, err)
		default:
			n++
		}
	}
}

// mostAgain is how often Retry and Discard look again where others deal with the events of
// the same consumer.
const mostAgain = 32

func (s *Service) firstOf(ctx context.Context, p storage.Partition, consumer, object string) (storage.Row, bool, error) {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Letters.Table, Partition: p, Limit: 1,
		Where: []storage.Cond{{Column: "consumer", Op: storage.Eq, Value: consumer}, {Column: "object", Op: storage.Eq, Value: object}},
	})
	if err != nil || len(rows) == 0 {
		return storage.Row{}, false, err
	}
	return rows[0], true, nil
}

// retry handles one dead letter, and drops it with what was written.
func (s *Service) retry(ctx context.Context, c *Consumer, row storage.Row) error {
	v := Letters.Value(row)
	_, stored, ok, err := storage.Events.One(ctx, s.c.Store, row.Partition, storage.EventID(v.Number))
	if err != nil {
		return err
	}
	if !ok {
		return errors.New("its event is not kept any more: discard it")
	}
	e, err := s.c.Kinds.Event(stored, v.Number)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.c.Lease*3/4)
	defer cancel()
	d := &delivery{s: s, c: c, row: row}
	gone, err := s.without(ctx, row)
	if err != nil {
		return err
	}
	if begin, ok := s.c.Store.(storage.Transactor); ok && tenants(row.Partition) {
		return begin.InTx(ctx, row.Partition, func(ctx context.Context, tx *sql.Tx, st storage.Tx) error {
			if err := d.call(ctx, Tx{tx, st}, e); err != nil {
				return err
			}
			return forgets(ctx, st, gone)
		})
	}
	if err := d.call(ctx, Tx{}, e); err != nil {
		return err
	}
	return forgets(ctx, s.c.Store, gone)
}

// forgets commits what drops a letter: errStale where others deal with the consumer's events.
func forgets(ctx context.Context, s storage.Store, gone storage.Change) error {
	err := storage.CommitOne(ctx, s, gone)
	if errors.Is(err, storage.ErrConflict) {
		return errStale
	}
	return err
}

// Discard forgets the dead letters of an object: the consumer never handles those events.
// It returns how many there were.
func (s *Service) Discard(ctx context.Context, p storage.Partition, consumer, object string) (int, error) {
	for n, again := 0, 0; ; {
		row, ok, err := s.firstOf(ctx, p, consumer, object)
		switch {
		case err != nil:
			return n, err
		case !ok && n == 0:
			return 0, ErrNoLetter
		case !ok:
			return n, nil
		}
		gone, err := s.without(ctx, row)
		if err == nil {
			err = forgets(ctx, s.c.Store, gone)
		}
		switch {
		case err == nil:
			n++
		case errors.Is(err, errStale) && again < mostAgain && ctx.Err() == nil:
			again++
		default:
			return n, err
		}
	}
}

// without is the Change that drops a letter. It writes the consumer's place as it is, so
// that of all that deals with its events here at the same time one happens: two who retry,
// one who discards, and a delivery that has looked which objects have letters.
func (s *Service) without(ctx context.Context, letter storage.Row) (storage.Change, error) {
	name := Letters.Value(letter).Consumer
	v, place, _, err := Places.One(ctx, s.c.Store, letter.Partition, name)
	v.Consumer = name // one that was retired has no place
	return storage.Change{
		ID: s.c.NewID(), Partition: letter.Partition, Drop: []storage.Row{letter},
		Put: []storage.Row{Places.Row(name, place.Version, place.Due, v)},
	}, err
}

// Retire ends a consumer that no process lists any more: it is not woken again, and events
// are not kept for it. Its dead letters stay until they are discarded.
func (s *Service) Retire(ctx context.Context, consumer string) error {
	if s.named[consumer] != nil {
		return fmt.Errorf("stream: consumer %q is one of this process: leave it out of every process first", consumer)
	}
	return storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		_, row, ok, err := registrations.One(ctx, s.c.Store, storage.System, consumer)
		switch {
		case err != nil:
			return storage.Change{}, err
		case !ok:
			return storage.Change{}, fmt.Errorf("stream: no consumer %q is registered", consumer)
		}
		return storage.Change{ID: s.c.NewID(), Partition: storage.System, Drop: []storage.Row{row}}, nil
	})
}

// State is how a consumer stands.
type State struct {
	Consumer string
	Here     bool // this process lists it
	// Behind is how many places have events that were not handled, at most 1000 are counted;
	// Oldest is since when the one that waits longest has been due, zero where none is.
	Behind int
	Oldest time.Time
	// Failing are places whose next event has failed and is tried again, at most 100.
	Failing []Failing
}

// Failing is a place whose next event fails.
type Failing struct {
	Partition storage.Partition
	Number    int64 // of the last event that was handled
	Tries     int
	Error     string
	Again     time.Time // when it is tried again
}

// States says how all registered consumers stand.
func (s *Service) States(ctx context.Context) ([]State, error) {
	names, err := s.registered(ctx, s.c.Store)
	if err != nil {
		return nil, err
	}
	out := make([]State, 0, len(names))
	for _, name := range names {
		st := State{Consumer: name, Here: s.named[name] != nil}
		rows, err := s.c.Store.Find(ctx, storage.Query{
			Table: Places.Table, Limit: 1000, Order: []storage.Order{{Column: storage.ColDue}},
			Where: []storage.Cond{
				{Column: storage.ColDue, Op: storage.Gt, Value: time.Time{}}, {Column: "consumer", Op: storage.Eq, Value: name},
			},
		})
		if err != nil {
			return nil, err
		}
		st.Behind = len(rows)
		for _, r := range rows {
			v := Places.Value(r)
			if st.Oldest.IsZero() || v.Updated.Before(st.Oldest) {
				st.Oldest = v.Updated
			}
			if v.Tries > 0 && len(st.Failing) < 100 {
				st.Failing = append(st.Failing, Failing{r.Partition, v.Seen, v.Tries, v.Error, r.Due})
			}
		}
		out = append(out, st)
	}
	return out, nil
}

// Lowest is the number up to which every registered consumer has handled the events of a
// partition, dead letters not counted: what is kept for nobody. Where there is none it is
// the last.
func (s *Service) Lowest(ctx context.Context, st storage.Store, p storage.Partition) (int64, error) {
	v, row, ok, err := storage.Streams.One(ctx, st, p, storage.StreamID)
	if err != nil || !ok {
		return 0, err
	}
	names, err := s.registered(ctx, st)
	if err != nil {
		return 0, err
	}
	places, err := s.places(ctx, st, []storage.Row{row}, names)
	if err != nil {
		return 0, err
	}
	lowest := v.Last
	for _, name := range names {
		r, ok := places[p][name]
		if !ok {
			return 0, nil
		}
		lowest = min(lowest, Places.Value(r).Seen)
	}
	const most = 1000
	letters, err := st.Find(ctx, storage.Query{Table: Letters.Table, Partition: p, Limit: most})
	if len(letters) == most {
		return 0, err
	}
	for _, l := range letters {
		lowest = min(lowest, Letters.Value(l).Number-1)
	}
	return lowest, err
}

// Filter says which events a reader wants.
type Filter struct {
	Partition storage.Partition
	After     int64    // the number of the last event that was seen; 0 = from the first that is kept
	Kinds     []string // none = all
}

// ErrMissed: events that a reader has not seen are not kept any more, or the last one that
// it says it has seen does not exist. Read from 0 for all that is kept.
var ErrMissed = errors.New("stream: events were missed")

// Follow reads the events of a partition and goes on as they come, until ctx ends or the
// loop does; more waits until there may be new ones. What is yielded last beside an error
// is that error: ErrMissed rather than to pass over events in silence.
func (s *Service) Follow(ctx context.Context, f Filter, more func(context.Context) error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		d := &delivery{s: s, row: storage.Row{Partition: f.Partition}, v: Place{Seen: f.After}}
		if err := s.follows(ctx, f); err != nil {
			if ctx.Err() == nil {
				yield(Event{}, err)
			}
			return
		}
		for {
			events, broken, err := d.next(ctx)
			if err == nil && broken != nil {
				err = broken.err
			}
			if err == nil && len(events) == 0 {
				err = more(ctx)
			}
			if ctx.Err() != nil {
				return
			}
			if err == nil && len(events) > 0 && d.v.Seen > 0 && events[0].Number != d.v.Seen+1 {
				err = fmt.Errorf("%w: of %s those after %d and before %d are not kept any more", ErrMissed, f.Partition, d.v.Seen, events[0].Number)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range events {
				d.v.Seen = e.Number
				if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, e.Kind) {
					continue
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// follows refuses a Filter by which nothing would ever be heard.
func (s *Service) follows(ctx context.Context, f Filter) error {
	for _, kind := range f.Kinds {
		if s.c.Kinds[kind] == nil {
			return fmt.Errorf("stream: no event is of kind %q: there are %s", kind, strings.Join(slices.Sorted(maps.Keys(s.c.Kinds)), ", "))
		}
	}
	if f.After <= 0 {
		return nil
	}
	v, _, _, err := storage.Streams.One(ctx, s.c.Store, f.Partition, storage.StreamID)
	if err == nil && f.After > v.Last {
		err = fmt.Errorf("%w: %d was not told yet, the last event of %s is %d", ErrMissed, f.After, f.Partition, v.Last)
	}
	return err
}

// tenants reports whether a partition is a tenant's.
func tenants(p storage.Partition) bool {
	return strings.HasPrefix(string(p), string(storage.Tenant("")))
}
