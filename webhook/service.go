package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/internal/secret"
	"github.com/cryptopay-go/cryptopay/storage"
)

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
	// Lease bounds an attempt: none is begun after half of it, and none is waited
	// for longer than half of it. Defaults to 5 minutes.
	Lease time.Duration
	// Batch bounds what is claimed at a time. Defaults to 256.
	Batch int
	// Audit records each change of a tenant's settings in the Change that does it: App.Audit.
	// Defaults to none.
	Audit audit.Record
	// CheckTenant returns an error where there is no such tenant. Defaults to none: every tenant
	// is there.
	CheckTenant func(ctx context.Context, tenant string) error
	// MaxUndelivered is how many undelivered events of one tenant are kept. Of what
	// is more, the oldest are given up: they are failed, with a reason, and can be
	// replayed. Defaults to 100,000.
	MaxUndelivered int
}

// Service delivers the outbox and keeps the tenants' settings. Safe for
// concurrent use and by several processes on one store.
type Service struct {
	cfg      Config
	breakers breakers
	trims    turns
}

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
		cfg.Batch = 256
	}
	if cfg.MaxUndelivered == 0 {
		cfg.MaxUndelivered = 100_000
	}
	if cfg.MaxUndelivered < 0 || cfg.Batch < 0 || cfg.Lease < 0 {
		return nil, errors.New("webhook: MaxUndelivered, Batch and Lease must not be negative")
	}
	cfg.Store = storage.Joined(cfg.Store)
	return &Service{cfg: cfg, breakers: breakers{all: map[hostKey]*breaker{}}, trims: turns{last: map[storage.Partition]time.Time{}}}, nil
}

// CheckURL says whether a callback URL may be stored; the error wraps ErrURL.
func (s *Service) CheckURL(url string) error { return s.cfg.Guard.URL(url) }

// Step claims one batch of due deliveries, tries them one after the other on the
// caller's goroutine, and stores what came of them in one Commit. It returns how
// many it claimed. What it cannot try in half a lease it gives back.
func (s *Service) Step(ctx context.Context) (int, error) {
	now := s.cfg.Now()
	rows, _, err := s.claim(ctx, now, s.cfg.Batch, nil, true)
	if len(rows) == 0 {
		return 0, err
	}
	jobs, broken := s.prepare(ctx, rows, now)
	changes := make([]storage.Change, len(jobs))
	for i, j := range jobs {
		changes[i] = s.attempt(ctx, j)
	}
	// What was delivered is recorded also when we are told to stop meanwhile.
	_, unknown := s.commit(context.WithoutCancel(ctx), changes) // their leases end
	return len(rows), errors.Join(err, broken, unknown)
}

// Test sends a sample to the tenant's URL at once and returns what came of it.
// It is not retried. Errors: ErrEventType; ErrURL where no URL is set; those of an
// unknown tenant as of Setup.
func (s *Service) Test(ctx context.Context, tenant, eventType string, data any) (id string, r Result, err error) {
	if !slices.Contains(EventTypes(), eventType) {
		return "", r, fmt.Errorf("%w: %q", ErrEventType, eventType)
	}
	if err := s.checkTenant(ctx, tenant); err != nil {
		return "", r, err
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
	d := ep.delivery(ep.url, id, 1, now, body)
	d.Tenant, d.Type = tenant, eventType
	return id, s.notify(ctx, d), nil
}

// endpoint is a tenant's settings ready for use.
type endpoint struct {
	url               string
	events            []string
	current, previous *Signer
}

func (e *endpoint) wants(typ string) bool {
	return len(e.events) == 0 && !slices.Contains(onlyNamed, typ) || slices.Contains(e.events, typ)
}

// Wants reports whether a tenant's endpoint gets events of a type: a URL is set, and its
// enabled events name the type or it is one that needs no name.
func (s *Service) Wants(ctx context.Context, tenant, typ string) (bool, error) {
	v, _, ok, err := SettingsTable.One(ctx, s.cfg.Store, storage.Tenant(tenant), settingsID)
	ep := endpoint{url: v.URL, events: v.Events}
	return ok && ep.url != "" && ep.wants(typ), err
}

func (e *endpoint) delivery(url, id string, attempt int, at time.Time, body []byte) Delivery {
	h := make(http.Header, 8)
	Headers(h, e.current, e.previous, id, attempt, at, body)
	return Delivery{URL: url, Header: h, Body: body}
}

// endpoint reads a tenant's settings; where it has none yet, its secret is made
// now: a payment's own callback is signed with it too.
func (s *Service) endpoint(ctx context.Context, p storage.Partition, now time.Time) (*endpoint, error) {
	tenant := tenantOf(p)
	v, _, ok, err := SettingsTable.One(ctx, s.cfg.Store, p, settingsID)
	if err == nil && !ok {
		var lost bool
		if lost, err = s.lost(ctx, p); lost {
			s.cfg.Log.LogAttrs(ctx, slog.LevelError, "webhook_settings_lost", slog.String("tenant", tenant))
		}
		if err == nil {
			v, err = s.makeSettings(ctx, tenant)
		}
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

// makeSettings makes a tenant's secret. That is no act of a person.
func (s *Service) makeSettings(ctx context.Context, tenant string) (SettingsRow, error) {
	return s.edit(ctx, tenant, func(*SettingsRow) error { return nil }, func(context.Context, *storage.Change, any, shown) error { return nil })
}

// tenantOf is the tenant whose partition it is.
func tenantOf(p storage.Partition) string {
	return strings.TrimPrefix(string(p), string(storage.Tenant("")))
}

// turns says whose turn it is to be looked at: each tenant's once in trimEvery.
type turns struct {
	mu   sync.Mutex
	last map[storage.Partition]time.Time
}

func (t *turns) due(p storage.Partition, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, ok := t.last[p]; ok && now.Sub(last) < trimEvery && !now.Before(last) {
		return false
	}
	maps.DeleteFunc(t.last, func(_ storage.Partition, last time.Time) bool {
		return len(t.last) > maxBreakers && now.Sub(last) >= trimEvery
	})
	t.last[p] = now
	return true
}
