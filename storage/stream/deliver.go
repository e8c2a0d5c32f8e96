package stream

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Deliver hands events to the consumer of a claimed place until it has seen all, an event
// fails, or the lease is used up. A consumer's failure is stored and is no error here.
func (s *Service) Deliver(ctx context.Context, place storage.Row) error {
	c := s.named[place.ID]
	if c == nil {
		return fmt.Errorf("stream: no consumer %q here", place.ID)
	}
	now := s.c.Now()
	// The last event begins in the first half of the lease, and has a quarter of it at least.
	end, host := now.Add(s.c.Lease/4), ctx
	ctx, cancel := context.WithTimeout(ctx, s.c.Lease*3/4)
	defer cancel()
	turn, over := context.WithTimeout(ctx, s.c.Lease/4)
	defer over()
	since, err := s.sinceOf(ctx, c)
	if err != nil {
		return err
	}
	d := &delivery{s: s, c: c, row: place, v: Places.Value(place), until: now.Add(s.c.Lease), since: since, most: batch, host: host}
	for {
		more, err := d.some(ctx)
		if more && err == nil && (turn.Err() != nil || !s.c.Now().Before(end)) {
			more, err = false, d.rest(ctx)
		}
		switch {
		case errors.Is(err, errStale):
			return nil
		case err != nil:
			return fmt.Errorf("stream: consumer %q in %s: %w", c.Name, place.Partition, err)
		case !more:
			return nil
		}
	}
}

// delivery is a consumer at work in one partition.
type delivery struct {
	s     *Service
	c     *Consumer
	row   storage.Row // as it is stored
	v     Place
	until time.Time // end of the lease
	since time.Time // events before it are passed over

	host    context.Context // whoever called Deliver ends it, for a reason that is not the event's
	handled int             // events of this turn
	most    int             // events of one transaction: one, after a transaction could not be committed
}

// some hands over the next events, at most one batch of them.
func (d *delivery) some(ctx context.Context) (more bool, err error) {
	p := d.row.Partition
	_, stream, _, err := storage.Streams.One(ctx, d.s.c.Store, p, storage.StreamID)
	if err != nil {
		return false, err
	}
	events, broken, err := d.next(ctx)
	if err != nil {
		return false, err
	}
	if len(events) == 0 && broken == nil {
		// Events that came meanwhile have moved the stream.
		return false, d.put(ctx, d.s.c.Store, d.v, time.Time{}, nil, storage.Streams.Guard(storage.StreamID, stream.Version))
	}
	if len(events) == 0 {
		return false, d.failed(ctx, broken.event, broken.err)
	}
	dead, err := d.dead(ctx, events)
	if err != nil {
		return false, err
	}
	n, failure, err := d.handle(ctx, events, dead)
	if err != nil || failure == nil {
		d.handled += n
		return err == nil, err
	}
	if d.host.Err() != nil || ctx.Err() != nil && d.handled+n > 0 {
		// The process stops, or other events had its time: it is the first of the next turn.
		return false, d.rest(ctx)
	}
	return false, d.failed(ctx, events[n], failure)
}

// unread is an event whose Data is not of its kind.
type unread struct {
	event Event
	err   error
}

// next reads the events after the place, up to the first that cannot be read: broken where
// that is the next one.
func (d *delivery) next(ctx context.Context) (events []Event, broken *unread, err error) {
	rows, bad, err := storage.Others(ctx, d.s.c.Store, storage.Query{
		Table: storage.Events.Table, Partition: d.row.Partition, Limit: d.most,
		Where: []storage.Cond{{Column: storage.ColID, Op: storage.Gt, Value: storage.EventID(d.v.Seen)}},
	})
	if err != nil {
		return nil, nil, err
	}
	first := "" // that has no readable row
	for _, b := range bad {
		if first == "" || b.ID < first {
			first, broken = b.ID, &unread{err: b}
		}
	}
	for _, r := range rows {
		if first != "" && r.ID > first {
			break
		}
		number, err := numberOf(r.ID)
		if err != nil {
			return nil, nil, err
		}
		e, err := d.s.c.Kinds.Event(r, number)
		if err != nil {
			if broken = nil; len(events) == 0 {
				broken = &unread{e, err}
			}
			return events, broken, nil
		}
		events = append(events, e)
	}
	if len(events) > 0 || broken == nil {
		return events, nil, nil
	}
	number, err := numberOf(first)
	broken.event = Event{Partition: d.row.Partition, Number: number}
	return nil, broken, err
}

func numberOf(id string) (number int64, err error) {
	if _, err := fmt.Sscanf(id, "%d", &number); err != nil {
		return 0, fmt.Errorf("event %q has no number: %w", id, err)
	}
	return number, nil
}

// dead are the objects among those of the events of which an earlier event is a dead letter.
func (d *delivery) dead(ctx context.Context, events []Event) (map[string]bool, error) {
	var objects []string
	for i := range events {
		if o := events[i].Object; o != "" && !slices.Contains(objects, o) {
			objects = append(objects, o)
		}
	}
	if len(objects) == 0 {
		return nil, nil
	}
	out := map[string]bool{}
	for last := ""; ; {
		rows, err := d.s.c.Store.Find(ctx, storage.Query{
			Table: Letters.Table, Partition: d.row.Partition, Limit: 1000,
			Where: []storage.Cond{
				{Column: "consumer", Op: storage.Eq, Value: d.c.Name},
				{Column: "object", Op: storage.In, Value: objects},
				{Column: storage.ColID, Op: storage.Gt, Value: last},
			},
		})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			out[Letters.Value(r).Object] = true
			last = r.ID
		}
		if len(rows) < 1000 {
			return out, nil
		}
	}
}

// handle hands events over and moves the place behind those that were handled: n of them.
// failure is why the next was not.
func (d *delivery) handle(ctx context.Context, events []Event, dead map[string]bool) (n int, failure, err error) {
	begin, ok := d.s.c.Store.(storage.Transactor)
	if !ok || !tenants(d.row.Partition) {
		if n, failure = d.each(ctx, Tx{}, events, dead); n == 0 {
			return 0, failure, nil
		}
		if err := d.seen(ctx, d.s.c.Store, events[:n], dead); err != nil {
			return 0, nil, err
		}
		return n, failure, d.reload(ctx)
	}
	for n = len(events); n > 0; {
		at, fault := n, error(nil)
		err := begin.InTx(ctx, d.row.Partition, func(ctx context.Context, tx *sql.Tx, st storage.Tx) error {
			if at, fault = d.each(ctx, Tx{tx, st}, events[:n], dead); fault != nil {
				return fault
			}
			return d.seen(ctx, st, events[:at], dead)
		})
		switch {
		case fault != nil: // nothing has happened: again, up to this one
			n, failure = at, fault
		case err == nil:
			if at < n {
				failure = nil
			}
			return at, failure, d.reload(ctx)
		case errors.Is(err, errStale), errors.Is(err, storage.ErrBusy): // no event's fault
			return 0, nil, err
		case n > 1: // one of them spoils the transaction: which one is found one by one
			n, d.most, failure = 1, 1, nil
		default:
			return 0, err, nil
		}
	}
	return 0, failure, nil
}

// each calls Handle, for a while. It returns how many events were handled, and what failed
// the next.
func (d *delivery) each(ctx context.Context, tx Tx, events []Event, dead map[string]bool) (int, error) {
	long, cancel := context.WithTimeout(ctx, min(d.s.c.Lease/4, longest))
	defer cancel()
	for i := range events {
		if i > 0 && long.Err() != nil {
			return i, nil
		}
		if dead[events[i].Object] || events[i].At.Before(d.since) {
			continue
		}
		if err := d.call(ctx, tx, events[i]); err != nil {
			return i, err
		}
	}
	return len(events), nil
}

// call is Handle; where that panics, the event has failed.
func (d *delivery) call(ctx context.Context, tx Tx, e Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("consumer %q panicked: %v", d.c.Name, p)
		}
	}()
	return d.c.Handle(ctx, tx, e)
}

// seen moves the place behind events that were handled. Those of dead objects become
// letters.
func (d *delivery) seen(ctx context.Context, s storage.Store, events []Event, dead map[string]bool) error {
	now := d.s.c.Now()
	var letters []storage.Row
	for i := range events {
		if e := &events[i]; dead[e.Object] {
			d.s.c.Log.WarnContext(ctx, "event_behind_a_dead_one", slog.String("consumer", d.c.Name), slog.String("partition", string(d.row.Partition)),
				slog.Int64("number", e.Number), slog.String("object", e.Object))
			letters = append(letters, d.letter(e, "an earlier event of "+e.Object+" is a dead letter", now))
		}
	}
	v := Place{Consumer: d.c.Name, Seen: events[len(events)-1].Number, Updated: now}
	return d.put(ctx, s, v, d.until, letters)
}

func (d *delivery) letter(e *Event, why string, now time.Time) storage.Row {
	return Letters.Row(letterID(d.c.Name, e.Number), 0, time.Time{}, Letter{
		Consumer: d.c.Name, Number: e.Number, Object: e.Object, Kind: e.Kind, Error: why, At: now,
	})
}

// put writes the place. It returns errStale where another process has it, or a guard does
// not hold.
func (d *delivery) put(ctx context.Context, s storage.Store, v Place, due time.Time, with []storage.Row, guards ...storage.Guard) error {
	c := storage.Change{
		ID: d.s.c.NewID(), Partition: d.row.Partition, Require: guards,
		Put: append([]storage.Row{Places.Row(d.row.ID, d.row.Version, due, v)}, with...),
	}
	err := storage.CommitOne(ctx, s, c)
	if errors.Is(err, storage.ErrConflict) {
		if len(guards) > 0 { // there may be more to see
			return d.rest(ctx)
		}
		return errStale
	}
	return err
}

// rest gives the place back, due at once.
func (d *delivery) rest(ctx context.Context) error {
	ctx, cancel := d.late(ctx)
	defer cancel()
	return d.put(ctx, d.s.c.Store, d.v, d.s.c.Now(), nil)
}

// late is a context for what is written of an event whose own context may have ended.
func (d *delivery) late(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d.s.c.Lease/8)
}

// reload reads the place as it was written.
func (d *delivery) reload(ctx context.Context) error {
	v, row, ok, err := Places.One(ctx, d.s.c.Store, d.row.Partition, d.row.ID)
	switch {
	case err != nil:
		return err
	case !ok:
		return errStale
	}
	d.v, d.row = v, row
	return nil
}

// failed notes a failure of the next event: it waits, or becomes a dead letter.
func (d *delivery) failed(ctx context.Context, e Event, failure error) error {
	ctx, cancel := d.late(ctx)
	defer cancel()
	now := d.s.c.Now()
	v := d.v
	v.Tries, v.Error, v.Updated = v.Tries+1, clip(failure.Error()), now
	log := d.s.c.Log.With(slog.String("consumer", d.c.Name), slog.String("partition", string(d.row.Partition)),
		slog.Int64("number", e.Number), slog.String("kind", e.Kind), slog.Int("tries", v.Tries), slog.Any("error", failure))
	if v.Tries < d.c.Tries {
		log.WarnContext(ctx, "event_failed")
		return d.put(ctx, d.s.c.Store, v, now.Add(pause(v.Tries)), nil)
	}
	log.ErrorContext(ctx, "event_dead")
	letter := d.letter(&e, v.Error, now)
	v.Seen, v.Tries, v.Error = e.Number, 0, ""
	return d.put(ctx, d.s.c.Store, v, now, []storage.Row{letter})
}

// clip keeps what is stored of an error short, and makes it a text that can be stored.
func clip(s string) string {
	const most = 1000
	if len(s) > most {
		s = s[:most]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�")
}
