package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cryptopay-go/cryptopay/internal/secret"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Schedule is the waiting time before each retry. After the last the delivery
// is failed: six attempts in all.
var schedule = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour}

// Config wires a Service. Store, Notifier, Box, Now, NewID and Random are
// required.
type Config struct {
	Store    storage.Store
	Notifier Notifier
	Guard    Guard       // for URLs when they are stored
	Box      *secret.Box // seals the tenants' secrets
	Now      func() time.Time
	NewID    func() string
	Random   io.Reader
	Log      *slog.Logger // Defaults to discarding.
	// Lease must outlast a Notify of Batch deliveries. Defaults to 5 minutes.
	Lease time.Duration
	// Batch bounds what one Step claims at a time. Defaults to 100.
	Batch int
}

// Service delivers the outbox and keeps the tenants' settings. Safe for
// concurrent use and by several processes on one store.
type Service struct{ cfg Config }

// New checks the configuration. It does no I/O.
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.Notifier == nil || cfg.Box == nil || cfg.Now == nil || cfg.NewID == nil || cfg.Random == nil {
		return nil, errors.New("webhook: Store, Notifier, Box, Now, NewID and Random are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Lease == 0 {
		cfg.Lease = 5 * time.Minute
	}
	if cfg.Batch == 0 {
		cfg.Batch = 100
	}
	return &Service{cfg: cfg}, nil
}

// CheckURL says whether a callback URL may be stored; the error wraps ErrURL.
func (s *Service) CheckURL(url string) error { return s.cfg.Guard.URL(url) }

// Step claims one batch of due deliveries, sends them and stores what came of
// them. It returns how many it claimed.
func (s *Service) Step(ctx context.Context) (int, error) {
	now := s.cfg.Now()
	rows, err := s.cfg.Store.Claim(ctx, storage.Claim{
		Table: Events.Table, Now: now, Until: now.Add(s.cfg.Lease), Max: s.cfg.Batch,
	})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	tenants := map[storage.Partition]*endpoint{}
	var broken error
	var send []outgoing
	changes := make([]storage.Change, 0, len(rows))
	for _, row := range rows {
		ep, known := tenants[row.Partition]
		if !known {
			// A tenant whose settings cannot be opened is our fault, not the
			// receiver's: its deliveries wait for the lease's end, uncounted, and
			// nobody else's wait for it.
			if ep, err = s.endpoint(ctx, row.Partition, now); err != nil {
				broken = errors.Join(broken, fmt.Errorf("webhook: settings of %s: %w", row.Partition, err))
			}
			tenants[row.Partition] = ep
		}
		if ep == nil {
			continue
		}
		e := Events.Value(row)
		url := e.URL
		if url == "" && ep.wants(e.Type) {
			url = ep.url
		}
		if url == "" {
			e.Status, e.Done = StatusSkipped, now
			changes = append(changes, s.change(row, e, time.Time{}))
			continue
		}
		d := ep.delivery(url, row.ID, e.Attempts+1, now, []byte(e.Body))
		d.Object = string(row.Partition) + "/" + e.Object
		send = append(send, outgoing{d, row, e.Seq})
	}
	send, later := inOrder(send)
	for _, o := range later {
		changes = append(changes, s.change(o.row, Events.Value(o.row), now))
	}
	if len(send) > 0 {
		deliveries := make([]Delivery, len(send))
		for i, o := range send {
			deliveries[i] = o.Delivery
		}
		results := s.cfg.Notifier.Notify(ctx, deliveries)
		for i, r := range results[:min(len(results), len(send))] {
			if ctx.Err() != nil && r.Err != nil {
				continue // cut off by us: the lease ends and it is tried again
			}
			changes = append(changes, s.outcome(ctx, send[i].row, r))
		}
	}
	// What was delivered is recorded also when we are told to stop meanwhile.
	return len(rows), errors.Join(broken, s.commit(context.WithoutCancel(ctx), changes))
}

// inRow is how many events of one object are sent in one Step, one after the
// other: with a receiver that hangs they must still end within the lease.
const inRow = 8

// outgoing is a delivery with the row that it is of.
type outgoing struct {
	Delivery
	row storage.Row
	seq int64
}

// inOrder sorts deliveries so that each object's come as they happened, and
// splits off those that are too many for one Step. Receivers must bear any order
// (retries make one), but those who do not are spared the usual case.
func inOrder(all []outgoing) (now, later []outgoing) {
	slices.SortFunc(all, func(a, b outgoing) int {
		return cmp.Or(strings.Compare(a.Object, b.Object), cmp.Compare(a.seq, b.seq))
	})
	n := 0
	for i, o := range all {
		if n++; i > 0 && all[i-1].Object != o.Object {
			n = 1
		}
		if n <= inRow {
			now = append(now, o)
		} else {
			later = append(later, o)
		}
	}
	return now, later
}

// commit stores outcomes. A conflict means that the lease was lost: whoever has
// it now delivers again, which is allowed.
func (s *Service) commit(ctx context.Context, changes []storage.Change) error {
	if len(changes) == 0 {
		return nil
	}
	var all error
	for _, err := range s.cfg.Store.Commit(ctx, changes...) {
		if err != nil && !errors.Is(err, storage.ErrConflict) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// outcome is what one attempt changes.
func (s *Service) outcome(ctx context.Context, row storage.Row, r Result) storage.Change {
	e := Events.Value(row)
	now := s.cfg.Now()
	e.Attempts++
	e.Response, e.Error = r.Status, ""
	if r.Err == nil {
		e.Status, e.Done = StatusDelivered, now
		return s.change(row, e, time.Time{})
	}
	e.Error = short(r.Err.Error())
	if e.Attempts > len(schedule) {
		e.Status, e.Done = StatusFailed, now
		s.cfg.Log.WarnContext(ctx, "webhook failed for good",
			slog.String("event", row.ID), slog.Int("attempts", e.Attempts), slog.Int("response", r.Status))
		return s.change(row, e, time.Time{})
	}
	return s.change(row, e, now.Add(schedule[e.Attempts-1]))
}

func (s *Service) change(row storage.Row, e Event, due time.Time) storage.Change {
	return storage.Change{
		ID: fmt.Sprintf("deliver/%s/%d", row.ID, row.Version), Partition: row.Partition,
		Put: []storage.Row{Events.Row(row.ID, row.Version, due, e)},
	}
}

// short makes text that a receiver had its hand in fit for a column and a log:
// at most 300 bytes of UTF-8 without control characters (a NUL, which Postgres
// does not store, would keep the outcome from ever being recorded).
func short(s string) string {
	if len(s) > 300 {
		s = s[:300]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return '?'
	}, s)
}

// Replay sends a failed (or any ended) delivery again from the first attempt.
// ok is false where the tenant has no such event.
func (s *Service) Replay(ctx context.Context, tenant, event string) (ok bool, err error) {
	p := storage.Tenant(tenant)
	err = storage.Decide(ctx, s.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		e, row, found, err := Events.One(ctx, s.cfg.Store, p, event)
		ok = found
		if err != nil || !found || e.Status == StatusPending {
			return storage.Change{}, err
		}
		e.Status, e.Attempts, e.Done = StatusPending, 0, time.Time{}
		return storage.Change{
			ID: s.cfg.NewID(), Partition: p,
			Put: []storage.Row{Events.Row(event, row.Version, s.cfg.Now(), e)},
		}, nil
	})
	return ok, err
}

// List returns a tenant's deliveries of one status, oldest first.
func (s *Service) List(ctx context.Context, tenant string, status Status, limit, offset int) ([]storage.Row, error) {
	return s.cfg.Store.Find(ctx, storage.Query{
		Table: Events.Table, Partition: storage.Tenant(tenant), Limit: limit, Offset: offset,
		Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: status}},
		Order: []storage.Order{{Column: "created_at"}},
	})
}

// Test sends a sample to the tenant's URL at once and returns what came of it.
// It is not retried. Errors: ErrEventType; ErrURL where no URL is set.
func (s *Service) Test(ctx context.Context, tenant, eventType string, data any) (id string, r Result, err error) {
	if !slices.Contains(EventTypes(), eventType) {
		return "", r, fmt.Errorf("%w: %q", ErrEventType, eventType)
	}
	now := s.cfg.Now()
	ep, err := s.endpoint(ctx, storage.Tenant(tenant), now)
	if err != nil {
		return "", r, err
	}
	if ep.url == "" {
		return "", r, fmt.Errorf("%w: none is set", ErrURL)
	}
	id = s.cfg.NewID()
	row, err := NewEvent(eventType, id, 1, "", data, now)
	if err != nil {
		return "", r, err
	}
	body := []byte(Events.Value(row).Body)
	return id, s.cfg.Notifier.Notify(ctx, []Delivery{ep.delivery(ep.url, id, 1, now, body)})[0], nil
}

// endpoint is a tenant's settings ready for use.
type endpoint struct {
	url               string
	events            []string
	current, previous *Signer
}

func (e *endpoint) wants(typ string) bool {
	return len(e.events) == 0 || slices.Contains(e.events, typ)
}

func (e *endpoint) delivery(url, id string, attempt int, at time.Time, body []byte) Delivery {
	h := make(http.Header, 8)
	Headers(h, e.current, e.previous, id, attempt, at, body)
	return Delivery{URL: url, Header: h, Body: body}
}

// endpoint reads a tenant's settings; where it has none yet, its secret is made
// now: a payment's own callback is signed with it too.
func (s *Service) endpoint(ctx context.Context, p storage.Partition, now time.Time) (*endpoint, error) {
	tenant, _ := strings.CutPrefix(string(p), string(storage.Tenant("")))
	v, _, ok, err := SettingsTable.One(ctx, s.cfg.Store, p, settingsID)
	if err == nil && !ok {
		v, err = s.edit(ctx, tenant, func(*SettingsRow) error { return nil })
	}
	if err != nil {
		return nil, err
	}
	sec, err := s.cfg.Box.Open(v.Sealed, place(tenant, v.Generation))
	if err != nil {
		return nil, err
	}
	ep := &endpoint{url: v.URL, events: v.Events, current: NewSigner(sec.Reveal())}
	if len(v.Previous) > 0 && now.Before(v.PreviousEnd) {
		if sec, err = s.cfg.Box.Open(v.Previous, place(tenant, v.Generation-1)); err != nil {
			return nil, err
		}
		ep.previous = NewSigner(sec.Reveal())
	}
	return ep, nil
}
