package webhook

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/internal/secret"
	"github.com/cryptopay-go/cryptopay/storage"
)

// SettingsRow is a tenant's webhook configuration, in the tenant's partition.
// The secrets are sealed, bound to tenant and version.
type SettingsRow struct {
	URL         string    `db:"url"`
	Events      []string  `db:"events,json"` // empty = all
	Shown       bool      `db:"shown"`       // the secret was returned in full once
	Generation  int64     `db:"generation"`  // of the secret
	Sealed      []byte    `db:"sealed"`
	Masked      string    `db:"masked"`
	Previous    []byte    `db:"previous"`
	PreviousEnd time.Time `db:"previous_end"`
	Created     time.Time `db:"created_at"` // zero until the tenant set something
	Updated     time.Time `db:"updated_at"`
}

// SettingsTable has one row per tenant, id "settings".
var SettingsTable = storage.NewTable[SettingsRow]("webhook_settings")

const settingsID = "settings"

// Tables lists what this package stores.
func Tables() []*storage.Table { return []*storage.Table{Events.Table, SettingsTable.Table} }

// Settings is what a tenant sees of its configuration.
type Settings struct {
	URL          string
	MaskedSecret string
	Events       []string // empty = all
	Created      time.Time
	Updated      time.Time
}

// overlap is how long the secret before still signs after a rotation.
const overlap = 24 * time.Hour

// The length that a tenant's own secret may have, in bytes.
const (
	MinSecret = 16
	MaxSecret = 128
)

// Errors of the settings.
var (
	ErrSecret    = fmt.Errorf("webhook: a secret must have %d to %d printable characters", MinSecret, MaxSecret)
	ErrEventType = errors.New("webhook: unknown event type")
)

// onlyNamed lists the types that reach only an endpoint whose enabled events name them:
// they came after merchants had left the list empty.
var onlyNamed = []string{WithdrawalWaiting, PaymentDeposit, RefundUpdate}

// EventTypes lists what can be subscribed to.
func EventTypes() []string {
	return []string{PaymentStatusUpdate, DepositReceived, DepositMerged, WithdrawalStatusUpdate, TransferStatusUpdate, WithdrawalWaiting, PaymentDeposit, RefundUpdate}
}

// CheckSecret says whether a tenant's own secret may be stored, else ErrSecret.
func CheckSecret(s string) error {
	if !printable(s) {
		return ErrSecret
	}
	return nil
}

// CheckEvents says whether these can be subscribed to; the error wraps
// ErrEventType.
func CheckEvents(events []string) error {
	for _, e := range events {
		if !slices.Contains(EventTypes(), e) {
			return fmt.Errorf("%w: %q", ErrEventType, e)
		}
	}
	return nil
}

// By is who changes the settings, and why: for the audit log. Name defaults to "host".
type By struct{ Name, Reason string }

// Patch changes some of the settings; nil leaves as it is.
type Patch struct {
	URL    *string
	Secret *string
	Events *[]string
	// EndPrevious ends the secret before, of this rotation or of an earlier one: it signs nothing
	// any more. For a secret that has leaked.
	EndPrevious bool
	By          By
}

// Opens reports whether a stored secret opens with the service's Box: whether the key is
// the one that this store's secrets were sealed with. It is true where there is none.
func (s *Service) Opens(ctx context.Context) (bool, error) {
	rows, err := s.cfg.Store.Find(ctx, storage.Query{Table: SettingsTable.Table, Limit: 1})
	if err != nil || len(rows) == 0 {
		return err == nil, err
	}
	v := SettingsTable.Value(rows[0])
	tenant := strings.TrimPrefix(string(rows[0].Partition), string(storage.Tenant("")))
	_, err = s.cfg.Box.Open(v.Sealed, place(tenant, v.Generation))
	return err == nil, nil //nolint:nilerr // that it does not open is the answer
}

// Altered says why a tenant's secrets do not open, "" where they do: somebody edited them, or
// they were sealed with another key. It says so, too, where the settings are gone to whose URL
// webhooks were delivered.
func (s *Service) Altered(ctx context.Context, tenant string) (string, error) {
	v, _, _, err := SettingsTable.One(ctx, s.cfg.Store, storage.Tenant(tenant), settingsID)
	if err != nil {
		return "", err
	}
	if v.Created.IsZero() { // the tenant has set nothing
		lost, err := s.lost(ctx, storage.Tenant(tenant))
		if lost {
			return "webhooks were delivered to the URL of its settings, and the settings are gone", nil
		}
		if err != nil || v.Generation == 0 {
			return "", err
		}
	}
	for i, sealed := range [][]byte{v.Sealed, v.Previous} {
		if i > 0 && len(sealed) == 0 {
			continue
		}
		if _, err := s.cfg.Box.Open(sealed, place(tenant, v.Generation-int64(i))); err != nil {
			return err.Error(), nil //nolint:nilerr // that it does not open is the answer
		}
	}
	return "", nil
}

// lost reports whether a webhook was delivered to the URL of a tenant's settings: where there are
// none now, somebody deleted them. A Notifier of the host's own takes events without a URL, so
// that what it delivered says nothing.
func (s *Service) lost(ctx context.Context, p storage.Partition) (bool, error) {
	if _, ours := s.cfg.Notifier.(*HTTP); !ours {
		return false, nil
	}
	rows, err := s.cfg.Store.Find(ctx, storage.Query{Table: Events.Table, Partition: p, Limit: 1, IDs: true, Where: []storage.Cond{
		{Column: "status", Op: storage.Eq, Value: StatusDelivered}, {Column: "url", Op: storage.Eq, Value: ""}, {Column: "response", Op: storage.Ge, Value: http.StatusOK},
	}})
	return len(rows) > 0, err
}

// Reseal seals the tenant's secrets with the newest key that the service's Box has, and
// returns how many it sealed. left names those that none of its keys opens: they stay as
// they are. A tenant without secrets has 0.
func (s *Service) Reseal(ctx context.Context, tenant string) (n int, left []string, err error) {
	err = storage.Decide(ctx, s.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		n, left = 0, nil
		v, row, ok, err := SettingsTable.One(ctx, s.cfg.Store, storage.Tenant(tenant), settingsID)
		if err != nil || !ok {
			return storage.Change{}, err
		}
		for i, sealed := range []*[]byte{&v.Sealed, &v.Previous} {
			at := place(tenant, v.Generation-int64(i))
			if len(*sealed) == 0 || s.cfg.Box.Newest(*sealed, at) {
				continue
			}
			sec, err := s.cfg.Box.Open(*sealed, at)
			if err != nil {
				left = append(left, err.Error())
				continue
			}
			if *sealed, err = s.cfg.Box.Seal(sec, at); err != nil {
				return storage.Change{}, err
			}
			n++
		}
		if n == 0 {
			return storage.Change{}, nil
		}
		return storage.Change{
			ID: s.cfg.NewID(), Partition: storage.Tenant(tenant), Put: []storage.Row{SettingsTable.Row(settingsID, row.Version, time.Time{}, v)},
		}, nil
	})
	return n, left, err
}

// Setup sets the tenant's URL. The first call that ever sets one also returns
// the secret in full; later ones return "". Errors wrap ErrURL, or what
// Config.CheckTenant returns for a tenant that does not exist: of an App that is
// wallet.ErrNoTenant.
func (s *Service) Setup(ctx context.Context, tenant, url string, by By) (Settings, string, error) {
	if err := s.cfg.Guard.URL(url); err != nil {
		return Settings{}, "", err
	}
	var full string
	v, err := s.set(ctx, tenant, by, func(v *SettingsRow) error {
		full = ""
		s.touch(v)
		if !v.Shown {
			sec, err := s.cfg.Box.Open(v.Sealed, place(tenant, v.Generation))
			if err != nil {
				return err
			}
			full, v.Shown = string(sec.Reveal()), true
		}
		v.URL = url
		return nil
	})
	if err != nil {
		return Settings{}, "", err
	}
	return view(v), full, nil
}

// Edit changes settings. A new secret signs from now on; the one before signs
// beside it for 24 h, or until EndPrevious. What a worker has claimed before may
// still be signed as it was then, for at most half of Config.Lease. Errors wrap
// ErrURL, ErrSecret or ErrEventType, or are those of an unknown tenant as of Setup,
// and nothing is changed.
func (s *Service) Edit(ctx context.Context, tenant string, p Patch) (Settings, error) {
	if p.URL == nil && p.Secret == nil && p.Events == nil && !p.EndPrevious {
		return s.Get(ctx, tenant)
	}
	if p.URL != nil {
		if err := s.cfg.Guard.URL(*p.URL); err != nil {
			return Settings{}, err
		}
	}
	if p.Secret != nil {
		if err := CheckSecret(*p.Secret); err != nil {
			return Settings{}, err
		}
	}
	if p.Events != nil {
		if err := CheckEvents(*p.Events); err != nil {
			return Settings{}, err
		}
	}
	v, err := s.set(ctx, tenant, p.By, func(v *SettingsRow) error {
		s.touch(v)
		if p.URL != nil {
			v.URL = *p.URL
		}
		if p.Events != nil {
			v.Events = slices.Clone(*p.Events)
		}
		if p.Secret != nil {
			if err := s.rotate(v, tenant, *p.Secret); err != nil {
				return err
			}
		}
		if p.EndPrevious {
			v.Previous, v.PreviousEnd = nil, time.Time{}
		}
		return nil
	})
	if err != nil {
		return Settings{}, err
	}
	return view(v), nil
}

// rotate makes a tenant's own secret the one that signs, beside the one before.
func (s *Service) rotate(v *SettingsRow, tenant, fresh string) error {
	// The same secret again is a call that was repeated: rotating once more
	// would put the new one in the place of the one before.
	current, err := s.cfg.Box.Open(v.Sealed, place(tenant, v.Generation))
	v.Shown = true
	switch {
	case err != nil: // it can only be replaced: this is how an operator mends it
		v.Previous, v.PreviousEnd = nil, time.Time{}
	case string(current.Reveal()) == fresh:
		return nil
	default:
		v.Previous, v.PreviousEnd = v.Sealed, s.cfg.Now().Add(overlap)
	}
	return s.seal(v, tenant, secret.New([]byte(fresh)))
}

// Get returns the tenant's settings; the zero Settings before it set anything.
func (s *Service) Get(ctx context.Context, tenant string) (Settings, error) {
	v, _, ok, err := SettingsTable.One(ctx, s.cfg.Store, storage.Tenant(tenant), settingsID)
	if err != nil || !ok || v.Created.IsZero() {
		return Settings{}, err
	}
	return view(v), nil
}

func view(v SettingsRow) Settings {
	return Settings{URL: v.URL, MaskedSecret: v.Masked, Events: v.Events, Created: v.Created, Updated: v.Updated}
}

// touch notes that the tenant changed something.
func (s *Service) touch(v *SettingsRow) {
	v.Updated = s.cfg.Now()
	if v.Created.IsZero() {
		v.Created = v.Updated
	}
}

// shown is what the audit log has of settings: no part of a secret.
type shown struct {
	URL         string   `json:"url"`
	Events      []string `json:"events"` // empty = all
	Secret      int64    `json:"secret"` // its number: each new one has the next
	Shown       bool     `json:"secret_shown"`
	PreviousEnd string   `json:"previous_signs_until,omitempty"`
}

func (v *SettingsRow) shown() shown {
	out := shown{URL: v.URL, Events: append([]string{}, v.Events...), Secret: v.Generation, Shown: v.Shown}
	if len(v.Previous) > 0 {
		out.PreviousEnd = Timestamp(v.PreviousEnd)
	}
	return out
}

// set is edit by somebody, of a tenant that there is. It is recorded where it changes something.
func (s *Service) set(ctx context.Context, tenant string, by By, change func(*SettingsRow) error) (SettingsRow, error) {
	if err := s.checkTenant(ctx, tenant); err != nil {
		return SettingsRow{}, err
	}
	return s.edit(ctx, tenant, change, func(ctx context.Context, c *storage.Change, before any, after shown) error {
		if s.cfg.Audit == nil || reflect.DeepEqual(before, after) {
			return nil
		}
		return s.cfg.Audit(ctx, c, audit.Act{
			Kind: audit.SetWebhooks, By: cmp.Or(by.Name, "host"), Reason: by.Reason, Tenant: tenant, Object: "webhooks", Before: before, After: after, Tell: true,
		})
	})
}

// checkTenant refuses a tenant that does not exist.
func (s *Service) checkTenant(ctx context.Context, tenant string) error {
	if s.cfg.CheckTenant == nil {
		return nil
	}
	if err := s.cfg.CheckTenant(ctx, tenant); err != nil {
		return fmt.Errorf("webhook: settings of tenant %q: %w", tenant, err)
	}
	return nil
}

// edit reads or makes the tenant's row, changes it, records that, and commits it. before is nil
// where there was no row.
func (s *Service) edit(ctx context.Context, tenant string, change func(*SettingsRow) error, record func(ctx context.Context, c *storage.Change, before any, after shown) error) (SettingsRow, error) {
	var out SettingsRow
	err := storage.Decide(ctx, s.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		v, row, ok, err := SettingsTable.One(ctx, s.cfg.Store, storage.Tenant(tenant), settingsID)
		if err != nil {
			return storage.Change{}, err
		}
		var before any
		if ok {
			before = v.shown()
		} else {
			fresh, err := s.fresh()
			if err != nil {
				return storage.Change{}, err
			}
			if err := s.seal(&v, tenant, fresh); err != nil {
				return storage.Change{}, err
			}
		}
		if err := change(&v); err != nil {
			return storage.Change{}, err
		}
		out = v
		c := storage.Change{
			ID: s.cfg.NewID(), Partition: storage.Tenant(tenant),
			Put: []storage.Row{SettingsTable.Row(settingsID, row.Version, time.Time{}, v)},
		}
		return c, record(ctx, &c, before, v.shown())
	})
	return out, err
}

// fresh is a new secret of 32 random bytes in base64url: 43 characters.
func (s *Service) fresh() (secret.Secret, error) {
	raw := make([]byte, 32)
	if _, err := io.ReadFull(s.cfg.Random, raw); err != nil {
		return secret.Secret{}, fmt.Errorf("webhook: no randomness for a secret: %w", err)
	}
	return secret.New([]byte(base64.RawURLEncoding.EncodeToString(raw))), nil
}

func (s *Service) seal(v *SettingsRow, tenant string, sec secret.Secret) (err error) {
	v.Generation++
	v.Masked = mask(sec.Reveal())
	v.Sealed, err = s.cfg.Box.Seal(sec, place(tenant, v.Generation))
	return err
}

// place binds a sealed secret to where it belongs.
func place(tenant string, generation int64) string {
	return fmt.Sprintf("%s/webhook/%d", storage.Tenant(tenant), generation)
}

func mask(b []byte) string { return "****" + string(b[len(b)-4:]) }

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) >= MinSecret && len(s) <= MaxSecret
}
