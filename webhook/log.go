package webhook

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// InvalidError names every field of a filter that is wrong, and why.
type InvalidError = fault.InvalidError

// Logged is a delivery as a tenant's log shows it.
type Logged struct {
	ID  string    // as the header X-Webhook-Id has it
	Due time.Time // of the next attempt; zero where there is none
	Why string    // the last attempt failed, as Result.Why says it; "" = it did not
	URL string    // where it goes or went; "" = nowhere, or to one that was set before the settings were last changed
	Event
}

// LogFilter selects deliveries. Empty fields select nothing out.
type LogFilter struct {
	Status Status
	Type   string
	Object string // id of the payment, withdrawal, transfer or deposit
	Limit  int    // 1 to 100; 0 = 20
	Offset int
}

// Tally counts deliveries by status and type.
var Tally = &tally.Tally{
	Name: "events", Table: Events.Table,
	Of: func(r storage.Row) tally.Item {
		e := Events.Value(r)
		return *e.counted()
	},
}

func (e *Event) counted() *tally.Item {
	return &tally.Item{At: e.Created, Key: []string{string(e.Status), e.Type}}
}

// Put puts new events into a Change, and counts them.
func Put(c *storage.Change, events ...storage.Row) {
	for _, r := range events {
		e := Events.Value(r)
		c.Put, c.Count = append(c.Put, r), append(c.Count, Tally.Moved(nil, e.counted())...)
	}
}

// Lost is what it counts when a delivery is dropped from the log.
func Lost(r storage.Row) []storage.Count {
	e := Events.Value(r)
	return Tally.Lost(e.counted())
}

// replace is the Change by which a delivery becomes another one.
func replace(id string, r storage.Row, e Event, due time.Time) storage.Change {
	was := Events.Value(r)
	return storage.Change{
		ID: id, Partition: r.Partition, Put: []storage.Row{Events.Row(r.ID, r.Version, due, e)}, Count: Tally.Moved(was.counted(), e.counted()),
	}
}

// Statuses lists what a delivery can be.
func Statuses() []Status {
	return []Status{StatusPending, StatusDelivered, StatusFailed, StatusSkipped}
}

// Log lists a tenant's deliveries, newest first, and how many match. Errors: *InvalidError.
func (s *Service) Log(ctx context.Context, tenant string, f LogFilter) (page []Logged, total int, err error) {
	f.Limit = cmp.Or(f.Limit, 20)
	bad := &InvalidError{}
	if f.Status != "" && !slices.Contains(Statuses(), f.Status) {
		bad.Add("status", "must be pending, delivered, failed or skipped")
	}
	if f.Type != "" && !slices.Contains(EventTypes(), f.Type) {
		bad.Add("event", "is no type of event")
	}
	if bad.AddPage(f.Limit, f.Offset); bad.Err() != nil {
		return nil, 0, bad.Err()
	}
	q := storage.Query{
		Table: Events.Table, Partition: storage.Tenant(tenant), Where: f.where(), Limit: f.Limit, Offset: f.Offset,
		Order: []storage.Order{{Column: "created_at", Desc: true}},
	}
	n, err := s.count(ctx, &q, &f)
	if err != nil {
		return nil, 0, err
	}
	rows, err := s.cfg.Store.Find(ctx, q)
	if err != nil || len(rows) == 0 {
		return nil, int(n), err
	}
	v, _, _, err := SettingsTable.One(ctx, s.cfg.Store, q.Partition, settingsID)
	for _, r := range rows {
		page = append(page, entry(r, &v))
	}
	return page, int(n), err
}

func (f *LogFilter) where() (out []storage.Cond) {
	if f.Object != "" {
		out = append(out, storage.Cond{Column: "object", Op: storage.In, Value: []string{f.Object, f.Object + waiting}})
	}
	if f.Status != "" {
		out = append(out, storage.Cond{Column: "status", Op: storage.Eq, Value: f.Status})
	}
	if f.Type != "" {
		out = append(out, storage.Cond{Column: "type", Op: storage.Eq, Value: f.Type})
	}
	return out
}

// count says how many deliveries match, and finds the place of a deep page. Where no counters
// hold yet, and of one object, it counts rows.
func (s *Service) count(ctx context.Context, q *storage.Query, f *LogFilter) (int64, error) {
	if f.Object != "" {
		return s.cfg.Store.Count(ctx, *q)
	}
	match := tally.Match{tally.Is(string(f.Status)), tally.Is(f.Type)}
	n, counted, err := Tally.Totals(ctx, s.cfg.Store, q.Partition, match)
	if err == nil && !counted {
		return s.cfg.Store.Count(ctx, *q)
	}
	if err == nil {
		*q, err = tally.Page(ctx, s.cfg.Store, *q, *q, tally.Range{}, tally.Side{Tally: Tally, Match: match})
	}
	return n[0], err
}

// waiting is what stands behind an object whose events of waiting are numbered for themselves.
const waiting = "/waiting"

// Waiting is the object of events that say why a withdrawal waits.
func Waiting(withdrawal string) string { return withdrawal + waiting }

func entry(r storage.Row, set *SettingsRow) Logged {
	l := Logged{ID: r.ID, Event: Events.Value(r)}
	l.Why = l.why()
	l.Object = strings.TrimSuffix(l.Object, waiting)
	if l.Status == StatusPending {
		l.Due = r.Due
	}
	// An event does not keep the tenant's URL that it went to.
	went := l.Status == StatusPending || l.Status != StatusSkipped && !l.Done.Before(set.Updated)
	if l.URL = l.Event.URL; l.URL == "" && went {
		l.URL = set.URL
	}
	return l
}

// List returns a tenant's deliveries of one status, oldest first.
func (s *Service) List(ctx context.Context, tenant string, status Status, limit, offset int) ([]storage.Row, error) {
	return s.cfg.Store.Find(ctx, storage.Query{
		Table: Events.Table, Partition: storage.Tenant(tenant), Limit: limit, Offset: offset,
		Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: status}},
		Order: []storage.Order{{Column: "created_at"}},
	})
}

// Replay sends a failed (or any ended) delivery again from the first attempt. One that
// waits for its next attempt is due now; its attempts stay counted. ok is false where the
// tenant has no such event.
func (s *Service) Replay(ctx context.Context, tenant, event string) (ok bool, err error) {
	p := storage.Tenant(tenant)
	err = storage.Decide(ctx, s.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		e, row, found, err := Events.One(ctx, s.cfg.Store, p, event)
		now := s.cfg.Now()
		ok = found
		if err != nil || !found || e.Status == StatusPending && !row.Due.After(now) {
			return storage.Change{}, err
		}
		if e.Status != StatusPending {
			e.Status, e.Attempts = StatusPending, 0
		}
		e.Done = now
		return replace(s.cfg.NewID(), row, e, now), nil
	})
	return ok, err
}
