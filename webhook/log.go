package webhook

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/storage"
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

// logged is how far the log goes back: over so many deliveries of each status, or of one
// object. So it costs the same however many there are.
const logged = 1000

// Statuses lists what a delivery can be.
func Statuses() []Status {
	return []Status{StatusPending, StatusDelivered, StatusFailed, StatusSkipped}
}

// Log lists a tenant's deliveries, newest first, and how many match. It goes back over the
// newest 1,000 of each status, or of the object that the filter names. Errors:
// *InvalidError.
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
	p, look := storage.Tenant(tenant), storage.Query{Limit: logged}
	byStatus := f.Type == "" && f.Object == ""
	if byStatus { // the page is among so many of each status
		look.Limit = min(logged, f.Offset+f.Limit)
	}
	rows, err := s.newest(ctx, p, &f, look)
	if err != nil {
		return nil, 0, err
	}
	rows = slices.DeleteFunc(rows, func(r storage.Row) bool {
		e := Events.Value(r)
		return f.Type != "" && e.Type != f.Type || f.Status != "" && e.Status != f.Status
	})
	slices.SortStableFunc(rows, func(a, b storage.Row) int {
		x, y := Events.Value(a), Events.Value(b)
		return cmp.Or(y.Created.Compare(x.Created), cmp.Compare(b.ID, a.ID))
	})
	if total = len(rows); byStatus {
		all, err := s.newest(ctx, p, &f, storage.Query{Limit: logged, IDs: true})
		if err != nil {
			return nil, 0, err
		}
		total = len(all)
	}
	if f.Offset >= len(rows) {
		return nil, total, nil
	}
	v, _, _, err := SettingsTable.One(ctx, s.cfg.Store, p, settingsID)
	for _, r := range rows[f.Offset:min(len(rows), f.Offset+f.Limit)] {
		page = append(page, entry(r, &v))
	}
	return page, total, err
}

// newest reads what a log goes back over, as q says how: the newest of each status, or of an
// object.
func (s *Service) newest(ctx context.Context, p storage.Partition, f *LogFilter, q storage.Query) (rows []storage.Row, err error) {
	q.Table, q.Partition, q.Order = Events.Table, p, []storage.Order{{Column: "created_at", Desc: true}}
	if f.Object != "" {
		q.Where = []storage.Cond{{Column: "object", Op: storage.In, Value: []string{f.Object, f.Object + waiting}}}
		return s.cfg.Store.Find(ctx, q)
	}
	for _, status := range Statuses() {
		if f.Status != "" && f.Status != status {
			continue
		}
		q.Where = []storage.Cond{{Column: "status", Op: storage.Eq, Value: status}}
		some, err := s.cfg.Store.Find(ctx, q)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
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
		return storage.Change{
			ID: s.cfg.NewID(), Partition: p,
			Put: []storage.Row{Events.Row(event, row.Version, now, e)},
		}, nil
	})
	return ok, err
}
