package webhook

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

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

// Overlap is how long the secret before still signs after a rotation.
const Overlap = 24 * time.Hour

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

// Patch changes some of the settings; nil leaves as it is.
type Patch struct {
	URL    *string
	Secret *string
	Events *[]string
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
// the secret in full; later ones return "". Errors wrap ErrURL.
func (s *Service) Setup(ctx context.Context, tenant, url string) (Settings, string, error) {
	if err := s.cfg.Guard.URL(url); err != nil {
		return Settings{}, "", err
	}
	var full string
	v, err := s.edit(ctx, tenant, func(v *SettingsRow) error {
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
// beside it for Overlap. Errors wrap ErrURL, ErrSecret or ErrEventType and
// nothing is changed.
func (s *Service) Edit(ctx context.Context, tenant string, p Patch) (Settings, error) {
	if p == (Patch{}) {
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
	v, err := s.edit(ctx, tenant, func(v *SettingsRow) error {
		s.touch(v)
		if p.URL != nil {
			v.URL = *p.URL
		}
		if p.Events != nil {
			v.Events = slices.Clone(*p.Events)
		}
		if p.Secret == nil {
			return nil
		}
		// The same secret again is a call that was repeated: rotating once more
		// would put the new one in the place of the one before.
		current, err := s.cfg.Box.Open(v.Sealed, place(tenant, v.Generation))
		v.Shown = true
		switch {
		case err != nil: // it can only be replaced: this is how an operator mends it
			v.Previous, v.PreviousEnd = nil, time.Time{}
		case string(current.Reveal()) == *p.Secret:
			return nil
		default:
			v.Previous, v.PreviousEnd = v.Sealed, s.cfg.Now().Add(Overlap)
		}
		return s.seal(v, tenant, secret.New([]byte(*p.Secret)))
	})
	if err != nil {
		return Settings{}, err
	}
	return view(v), nil
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

// edit reads or makes the tenant's row, changes it and commits it.
func (s *Service) edit(ctx context.Context, tenant string, change func(*SettingsRow) error) (SettingsRow, error) {
	var out SettingsRow
	err := storage.Decide(ctx, s.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		v, row, ok, err := SettingsTable.One(ctx, s.cfg.Store, storage.Tenant(tenant), settingsID)
		if err != nil {
			return storage.Change{}, err
		}
		if !ok {
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
		return storage.Change{
			ID: s.cfg.NewID(), Partition: storage.Tenant(tenant),
			Put: []storage.Row{SettingsTable.Row(settingsID, row.Version, time.Time{}, v)},
		}, nil
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
