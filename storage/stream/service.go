package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Config of a Service. All but Consumers, Log and Lease is required.
type Config struct {
	Store     storage.Store
	Consumers []Consumer // may be none: then Step does nothing
	Kinds     Kinds
	Now       func() time.Time
	NewID     func() string
	Log       *slog.Logger // defaults to slog.Default()
	// Lease is how long one process has a place. Defaults to 1 minute. Handle's context
	// ends after three quarters of it.
	Lease time.Duration
}

// Service hands events to consumers. It is safe for concurrent use.
type Service struct {
	c     Config
	named map[string]*Consumer

	mu    sync.Mutex
	since map[string]time.Time // as registered
}

const (
	defaultLease = time.Minute
	batch        = 100             // events of one transaction
	claimed      = 64              // partitions with news, or places, of one Step
	longest      = time.Second     // after which no event begins in a transaction
	relaying     = 5 * time.Second // for how long one process has a stream
)

// New checks the consumers. It does no I/O.
func New(c Config) (*Service, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	s := &Service{c: c, named: map[string]*Consumer{}, since: map[string]time.Time{}}
	for i := range c.Consumers {
		v := c.Consumers[i]
		if err := v.check(); err != nil {
			return nil, err
		}
		if s.named[v.Name] != nil {
			return nil, fmt.Errorf("stream: two consumers have the name %q", v.Name)
		}
		if v.Tries == 0 {
			v.Tries = defaultTries
		}
		s.named[v.Name] = &v
	}
	return s, nil
}

// Register makes the rows of consumers that have none.
func (s *Service) Register(ctx context.Context) error {
	for i := range s.c.Consumers {
		v := &s.c.Consumers[i]
		err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
			if _, _, ok, err := registrations.One(ctx, s.c.Store, storage.System, v.Name); ok || err != nil {
				return storage.Change{}, err
			}
			row := registrations.Row(v.Name, 0, time.Time{}, registration{Since: v.Since, Created: s.c.Now()})
			return storage.Change{ID: s.c.NewID(), Partition: storage.System, Put: []storage.Row{row}}, nil
		})
		if err != nil {
			return fmt.Errorf("stream: registering consumer %q: %w", v.Name, err)
		}
	}
	return nil
}

// sinceOf is from when on a consumer hears: what was registered first counts.
func (s *Service) sinceOf(ctx context.Context, c *Consumer) (time.Time, error) {
	s.mu.Lock()
	since, known := s.since[c.Name]
	s.mu.Unlock()
	if known {
		return since, nil
	}
	r, _, ok, err := registrations.One(ctx, s.c.Store, storage.System, c.Name)
	if err != nil {
		return time.Time{}, err
	}
	if !ok {
		return time.Time{}, fmt.Errorf("stream: consumer %q is not registered: call Register first", c.Name)
	}
	s.mu.Lock()
	s.since[c.Name] = r.Since
	s.mu.Unlock()
	return r.Since, nil
}

// Names lists all registered consumers, those of other processes included.
func (s *Service) Names(ctx context.Context) ([]string, error) { return s.registered(ctx, s.c.Store) }

// Here reports whether this process lists a consumer.
func (s *Service) Here(name string) bool { return s.named[name] != nil }

// registered lists the names of all consumers, those of other processes included.
func (s *Service) registered(ctx context.Context, st storage.Store) ([]string, error) {
	rows, err := st.Find(ctx, storage.Query{Table: registrations.Table, Partition: storage.System, Limit: 1000, IDs: true})
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.ID
	}
	return names, err
}

// Step finds partitions with news and hands their events to the consumers, on the
// caller's goroutine. It returns how many partitions and places it dealt with. The first
// error is returned at the end: one consumer's failure is none.
func (s *Service) Step(ctx context.Context) (int, error) {
	if len(s.named) == 0 {
		return 0, nil
	}
	woken, err := s.Relay(ctx)
	if err != nil {
		return woken, err
	}
	done := woken
	var failed error
	for i := range s.c.Consumers {
		rows, err := s.claim(ctx, s.c.Consumers[i].Name, claimed)
		if err != nil {
			return done, err
		}
		for _, r := range rows {
			if err := s.Deliver(ctx, r); err != nil && failed == nil {
				failed = err
			}
			done++
		}
	}
	return done, failed
}

// claim takes places of a consumer that are due.
func (s *Service) claim(ctx context.Context, consumer string, most int) ([]storage.Row, error) {
	now := s.c.Now()
	return storage.Claimed(ctx, s.c.Store, storage.Claim{
		Table: Places.Table, Now: now, Until: now.Add(s.c.Lease), Max: most,
		Where: []storage.Cond{{Column: "consumer", Op: storage.Eq, Value: consumer}},
	}, s.c.Log)
}

// Relay makes the places of all consumers due in partitions that have news. It returns how
// many partitions that were.
func (s *Service) Relay(ctx context.Context) (int, error) {
	now := s.c.Now()
	rows, err := storage.Claimed(ctx, s.c.Store, storage.Claim{
		Table: storage.Streams.Table, Now: now, Until: now.Add(relaying), Max: claimed,
	}, s.c.Log)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	names, err := s.registered(ctx, s.c.Store)
	if err != nil {
		return 0, err
	}
	changes := make([]storage.Change, 0, len(rows))
	places, err := s.places(ctx, s.c.Store, rows, names)
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		c := s.wake(r.Partition, storage.Streams.Value(r).Last, names, places[r.Partition], now)
		c.Put = append(c.Put, storage.Streams.Row(storage.StreamID, r.Version, time.Time{}, storage.Streams.Value(r)))
		changes = append(changes, c)
	}
	for i, err := range s.c.Store.Commit(ctx, changes...) {
		if errors.Is(err, storage.ErrConflict) { // there is more news, or a place has moved
			_, err = s.wakeUp(ctx, s.c.Store, changes[i].Partition, names)
		}
		if err != nil { // it comes again when the lease ends
			s.c.Log.WarnContext(ctx, "stream_not_relayed", slog.String("partition", string(changes[i].Partition)), slog.Any("error", err))
		}
	}
	return len(rows), nil
}

// wakeUp makes places of one partition due, and returns how many.
func (s *Service) wakeUp(ctx context.Context, st storage.Store, p storage.Partition, names []string) (n int, err error) {
	err = storage.Decide(ctx, st, func(ctx context.Context) (storage.Change, error) {
		v, row, ok, err := storage.Streams.One(ctx, st, p, storage.StreamID)
		if err != nil || !ok {
			return storage.Change{}, err
		}
		places, err := s.places(ctx, st, []storage.Row{row}, names)
		if err != nil {
			return storage.Change{}, err
		}
		c := s.wake(p, v.Last, names, places[p], s.c.Now())
		if n = len(c.Put); !row.Due.IsZero() {
			c.Put = append(c.Put, storage.Streams.Row(storage.StreamID, row.Version, time.Time{}, v))
		}
		if len(c.Put) == 0 {
			c.ID = ""
		}
		return c, nil
	})
	return n, err
}

// places reads the places of consumers in some partitions.
func (s *Service) places(ctx context.Context, st storage.Store, streams []storage.Row, names []string) (map[storage.Partition]map[string]storage.Row, error) {
	var keys []storage.Key
	for _, r := range streams {
		keys = append(keys, storage.Keys(r.Partition, names...)...)
	}
	out := map[storage.Partition]map[string]storage.Row{}
	if len(keys) == 0 {
		return out, nil
	}
	rows, err := st.Rows(ctx, Places.Table, keys...)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if out[r.Partition] == nil {
			out[r.Partition] = map[string]storage.Row{}
		}
		out[r.Partition][r.ID] = r
	}
	return out, nil
}

// wake makes places due that have not seen the last event. One that is due is left as it
// is, and must be so still: whoever has it sees to the end.
func (s *Service) wake(p storage.Partition, last int64, names []string, places map[string]storage.Row, now time.Time) storage.Change {
	c := storage.Change{ID: s.c.NewID(), Partition: p, NoWait: true}
	for _, name := range names {
		r, ok := places[name]
		v := Place{Consumer: name, Updated: now}
		if ok {
			v = Places.Value(r)
			v.Updated = now
		}
		switch {
		case v.Seen >= last:
		case r.Due.IsZero():
			c.Put = append(c.Put, Places.Row(name, r.Version, now, v))
		default:
			c.Require = append(c.Require, Places.Guard(name, r.Version))
		}
	}
	return c
}

// CatchUp makes the places of a partition due whose consumers have not seen all: those of
// new consumers, to which nothing is relayed until something happens. It drops the places of
// consumers that were retired. It returns how many there were.
func (s *Service) CatchUp(ctx context.Context, st storage.Store, p storage.Partition) (int, error) {
	// Who has a place was registered before: the places are read first.
	places, err := st.Find(ctx, storage.Query{Table: Places.Table, Partition: p, Limit: 1000})
	if err != nil {
		return 0, err
	}
	names, err := s.registered(ctx, st)
	if err != nil {
		return 0, err
	}
	gone := storage.Change{ID: s.c.NewID(), Partition: p, NoWait: true}
	for _, r := range places {
		if !slices.Contains(names, r.ID) {
			gone.Drop = append(gone.Drop, storage.Row{Table: Places.Table, ID: r.ID, Version: r.Version})
		}
	}
	if len(gone.Drop) > 0 {
		if err := storage.CommitOne(ctx, st, gone); err != nil {
			return 0, err
		}
	}
	if len(names) == 0 {
		return len(gone.Drop), nil
	}
	n, err := s.wakeUp(ctx, st, p, names)
	return n + len(gone.Drop), err
}
