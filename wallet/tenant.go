package wallet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Tenant is a merchant with the settings that prices depend on. Its webhook
// settings are kept with the webhooks.
type Tenant struct {
	ID string `db:"-"`
	// Replayed says that CreateTenant answered from an earlier request with the same Key.
	Replayed bool `db:"-" json:"-"`

	Name string `db:"name"`
	// TransactionFee is the percentage that payments cost.
	TransactionFee decimal.Decimal `db:"transaction_fee"`
	// FeePaidByUser is the default of payments that do not say it.
	FeePaidByUser bool `db:"fee_paid_by_user"`
	// WithdrawalPercent and WithdrawalFlat are the platform's fee of a
	// withdrawal: a percentage of the figure asked for, and whole coins of its
	// currency. WithdrawalFlats overrides the flat sum by currency code.
	WithdrawalPercent decimal.Decimal `db:"withdrawal_percent"`
	WithdrawalFlat    decimal.Decimal `db:"withdrawal_flat"`
	WithdrawalFlats   Flats           `db:"withdrawal_flats,json"`

	CreatedAt time.Time `db:"created_at"`
	UpdatedAt time.Time `db:"updated_at"`
}

// TenantRows is the directory of tenants, in the system partition.
var TenantRows = storage.NewTable[Tenant]("tenants", storage.Index("created_at"))

// Settings are what UpdateTenant changes; nil leaves as it is.
type Settings struct {
	Name              *string
	TransactionFee    *decimal.Decimal
	FeePaidByUser     *bool
	WithdrawalPercent *decimal.Decimal
	WithdrawalFlat    *decimal.Decimal
	WithdrawalFlats   map[string]decimal.Decimal
}

// NewTenant is what CreateTenant takes. ID "" = one is made.
type NewTenant struct {
	ID string
	Settings
	// Key is the caller's own of this request: sent again with the same content within
	// storage.OnceFor it makes nothing, and answers the first result, Replayed. Keys of new
	// tenants are apart from those of what tenants do. Defaults to none: each request is a
	// new one. At most storage.MaxOnceKey bytes.
	Key string
}

// The bounds of texts, in characters.
const (
	maxName       = 255
	maxExternalID = 64
	maxTenantID   = 64
	maxURL        = 2048
	maxRef        = 200
)

// percentPlaces is how exact a percentage can be.
const percentPlaces = 6

// CreateTenant makes a tenant and its master account. Errors: ErrTenantExists where the
// id is taken, *InvalidError, and those of a Key.
func (s *Service) CreateTenant(ctx context.Context, n NewTenant) (Tenant, error) {
	once, err := storage.OnceOf(ctx, n.Key, n)
	if err != nil {
		return Tenant{}, err
	}
	leave, err := s.inFlight.Enter(storage.System, once)
	defer leave()
	if err != nil {
		return Tenant{}, err
	}
	if first, replay, err := once.Find(ctx, s.c.Store, storage.System, s.c.Now()); err != nil || replay {
		return replayedTenant(once, first, err)
	}
	or(&n.ID, s.c.NewID())
	t := Tenant{ID: n.ID, CreatedAt: s.now(), UpdatedAt: s.now()}
	bad := &InvalidError{}
	if len(n.ID) > maxTenantID || strings.ContainsAny(n.ID, "/ ") || !storage.ValidText(n.ID) {
		bad.Add("id", "must have at most 64 bytes of text, and no slash or space")
	}
	if n.Name == nil {
		bad.Add("name", "is required")
	}
	t.apply(n.Settings, bad)
	if err := bad.Err(); err != nil {
		return Tenant{}, err
	}
	// The master account comes first: a tenant that can be found has one.
	if err := s.makeMaster(ctx, n.ID); err != nil {
		return Tenant{}, err
	}
	return s.commitTenant(ctx, t, once)
}

func (s *Service) commitTenant(ctx context.Context, t Tenant, once *storage.Once) (Tenant, error) {
	c := storage.Change{ID: s.c.NewID(), Partition: storage.System, Put: []storage.Row{TenantRows.Row(t.ID, 0, time.Time{}, t)}}
	if err := once.AddTo(&c, t.CreatedAt, t); err != nil {
		return Tenant{}, err
	}
	err := storage.CommitOne(ctx, s.c.Store, c)
	var taken *storage.DuplicateError
	if !errors.Is(err, storage.ErrConflict) && !errors.As(err, &taken) {
		return t, err
	}
	// The id is taken, or another process was faster with the same key.
	if first, replay, err := once.Find(ctx, s.c.Store, storage.System, t.CreatedAt); err != nil || replay {
		return replayedTenant(once, first, err)
	}
	return Tenant{}, ErrTenantExists
}

func replayedTenant(once *storage.Once, response []byte, err error) (Tenant, error) {
	var t Tenant
	if err == nil {
		err = once.Decode(response, &t)
	}
	t.Replayed = err == nil
	return t, err
}

// Tenant returns one tenant, or ErrNoTenant.
func (s *Service) Tenant(ctx context.Context, id string) (Tenant, error) {
	t, _, err := s.loadTenant(ctx, id)
	return t, err
}

func (s *Service) loadTenant(ctx context.Context, id string) (Tenant, storage.Row, error) {
	if id == "" || len(id) > maxRef {
		return Tenant{}, storage.Row{}, ErrNoTenant
	}
	t, row, ok, err := TenantRows.One(ctx, s.c.Store, storage.System, id)
	if err == nil && !ok {
		err = ErrNoTenant
	}
	t.ID = id
	return t, row, err
}

// Tenants lists tenants by age, and says how many there are. limit 0 = 100.
func (s *Service) Tenants(ctx context.Context, limit, offset int) ([]Tenant, int64, error) {
	q := storage.Query{
		Table: TenantRows.Table, Partition: storage.System, Order: []storage.Order{{Column: "created_at"}},
		Limit: limit, Offset: offset,
	}
	total, err := s.c.Store.Count(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	rows, err := s.c.Store.Find(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	out := make([]Tenant, len(rows))
	for i, r := range rows {
		out[i] = TenantRows.Value(r)
		out[i].ID = r.ID
	}
	return out, total, nil
}

// UpdateTenant changes settings. They hold for what is priced from now on.
// ErrNoTenant; *InvalidError.
func (s *Service) UpdateTenant(ctx context.Context, id string, set Settings) (Tenant, error) {
	var out Tenant
	err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		t, row, err := s.loadTenant(ctx, id)
		if err != nil {
			return storage.Change{}, err
		}
		bad := &InvalidError{}
		t.apply(set, bad)
		if err := bad.Err(); err != nil {
			return storage.Change{}, err
		}
		t.UpdatedAt = s.now()
		out = t
		return storage.Change{
			ID: s.c.NewID(), Partition: storage.System, Put: []storage.Row{TenantRows.Row(id, row.Version, time.Time{}, t)},
		}, nil
	})
	return out, err
}

// WithdrawalFee is the tenant's platform fee of withdrawing a currency: percent
// of the figure asked for, and a flat sum in whole coins.
func (s *Service) WithdrawalFee(ctx context.Context, tenant, currency string) (percent, flat decimal.Decimal, err error) {
	t, err := s.Tenant(ctx, tenant)
	if err != nil {
		return percent, flat, err
	}
	flat = t.WithdrawalFlat
	if own, ok := t.WithdrawalFlats[currency]; ok {
		flat = own
	}
	return t.WithdrawalPercent, flat, nil
}

// apply takes over what is set, noting what cannot be.
func (t *Tenant) apply(set Settings, bad *InvalidError) {
	if set.Name != nil {
		t.Name = *set.Name
		if t.Name == "" {
			bad.Add("name", "is required")
		}
		bad.AddLong("name", t.Name, maxName)
	}
	percentage(bad, "transaction_fee", set.TransactionFee, &t.TransactionFee)
	percentage(bad, "withdrawal_percent", set.WithdrawalPercent, &t.WithdrawalPercent)
	flat(bad, "withdrawal_flat", set.WithdrawalFlat, &t.WithdrawalFlat)
	if set.FeePaidByUser != nil {
		t.FeePaidByUser = *set.FeePaidByUser
	}
	if set.WithdrawalFlats != nil {
		t.WithdrawalFlats = Flats{}
	}
	for code, d := range set.WithdrawalFlats {
		flat(bad, fmt.Sprintf("withdrawal_flats.%s", code), &d, &d)
		t.WithdrawalFlats[code] = d
	}
}

func percentage(bad *InvalidError, field string, from, to *decimal.Decimal) {
	if from == nil {
		return
	}
	if !fault.Exact(*from, percentPlaces) || from.Sign() < 0 || from.GreaterThan(hundred) {
		bad.Add(field, "must be a percentage of 0 to 100 with at most 6 places")
		return
	}
	*to = *from
}

func flat(bad *InvalidError, field string, from, to *decimal.Decimal) {
	if from == nil {
		return
	}
	if !fault.Exact(*from, 8) || from.Sign() < 0 {
		bad.Add(field, "must be 0 or more whole coins with at most 8 places")
		return
	}
	*to = *from
}

var hundred = decimal.New(100, 0)
