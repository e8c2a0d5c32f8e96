package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// PermanentAddress is an address that one customer of a tenant may pay to at any time, in the
// tenant's partition. There is one for each external_id and network, for ever. It is watched
// until it is retired. Each deposit of a currency of the network that is at least that
// currency's minimum is a payment of its own. Smaller deposits wait in suspense until they
// add up to the minimum.
type PermanentAddress struct {
	ID          string    `db:"address_id"` // also the row's id
	Network     string    `db:"network"`
	Address     string    `db:"address"`
	ExternalID  string    `db:"external_id"`  // what the tenant calls whom the address is for
	Wallet      string    `db:"wallet"`       // id of the wallet that is credited
	WalletRef   string    `db:"wallet_ref"`   // as given, "" = none was: the master account
	CallbackURL string    `db:"callback_url"` // of the payments
	CreatedAt   time.Time `db:"created_at"`
	UpdatedAt   time.Time `db:"updated_at"`
	// RetiredAt is when the address was retired; zero = it is in use.
	RetiredAt time.Time `db:"retired_at"`
}

// PermanentAddresses is the table of permanent addresses, in tenant partitions. A row is due
// while the directory of addresses does not know yet whether to watch the address.
var PermanentAddresses = storage.NewTable[PermanentAddress]("permanent_addresses",
	storage.Unique("network", "address"), storage.Unique("external_id", "network"),
	storage.Index("created_at"),
)

// maxExternalID is the longest external_id of a permanent address, in characters.
const maxExternalID = 64

// ErrNotUpgraded reports that permanent addresses cannot be made yet: a process of an older
// version may run on the store, which would not credit what comes there. It ends when
// App.Upgraded was called.
var ErrNotUpgraded = errors.New("payment: permanent addresses are off until App.Upgraded was called")

// AddressInput asks for a permanent address.
type AddressInput struct {
	Currency    string // combined code; or
	Blockchain  string // network or its alias, with
	Token       string // symbol. Of the currency only its network counts.
	ExternalID  string // at most 64 characters
	WalletID    string // wallet_id or external_id of a wallet; "" = the master account
	CallbackURL string // of the payments
}

// CheckAddress says what is wrong with a request by itself: *InvalidError with every wrong
// field, or *CurrencyError.
func (s *Service) CheckAddress(in AddressInput) error {
	_, err := s.checkAddress(in)
	return err
}

func (s *Service) checkAddress(in AddressInput) (*chain.Currency, error) {
	bad := &InvalidError{}
	c, unsupported := s.chosen(Pricing{Currency: in.Currency, Blockchain: in.Blockchain, Token: in.Token}, bad)
	if in.ExternalID == "" {
		bad.Add("external_id", "is required")
	}
	bad.AddLong("external_id", in.ExternalID, maxExternalID)
	bad.AddLong("wallet_id", in.WalletID, maxWalletRef)
	bad.AddLong("callback_url", in.CallbackURL, maxURL)
	s.checkContact(in.CallbackURL, "", bad)
	if len(bad.Fields) > 0 && unsupported != nil {
		bad.Add("currency", "is not supported")
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return c, unsupported
}

// PermanentAddress returns the tenant's permanent address for an external_id on the network of
// a currency. made is true where there was none. One that is there is returned as it is,
// whatever else the request says; one that was retired is in use again. It may be called any
// number of times, by any number of processes. Errors: *InvalidError with every wrong field,
// *CurrencyError, *NotFoundError for the wallet or tenant, ErrNotUpgraded,
// incoming.ErrNoAddress (wrapped).
func (s *Service) PermanentAddress(ctx context.Context, tenant string, in AddressInput) (a PermanentAddress, made bool, err error) {
	c, err := s.checkAddress(in)
	if err != nil {
		return a, false, err
	}
	if ok, err := s.c.Permanent(ctx); err != nil || !ok {
		return a, false, errors.Join(err, ErrNotUpgraded)
	}
	var taken string
	for range 2 { // another may make it at the same moment
		a, made, err = s.takePermanent(ctx, tenant, c.Network, in, &taken)
		if dup := (*storage.DuplicateError)(nil); !errors.As(err, &dup) {
			break
		}
	}
	if err == nil && !made {
		err = s.intact(ctx, tenant, &a)
	}
	if err != nil {
		return PermanentAddress{}, false, err
	}
	return a, made, nil
}

func (s *Service) takePermanent(ctx context.Context, tenant string, n chain.Network, in AddressInput, taken *string) (a PermanentAddress, made bool, err error) {
	part := storage.Tenant(tenant)
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		now := s.now()
		rows, err := s.c.Store.Rows(ctx, PermanentAddresses.Table, storage.Key{
			Partition: part, Unique: []string{"external_id", "network"}, Values: []any{in.ExternalID, string(n)},
		})
		if err != nil {
			return storage.Change{}, err
		}
		if made = len(rows) == 0; !made {
			if a = PermanentAddresses.Value(rows[0]); a.RetiredAt.IsZero() {
				return storage.Change{}, nil
			}
			if !s.inTx { // watched before it is shown; a host's transaction leaves it to Step
				if err := s.watchUntil(ctx, a.Network, a.Address, time.Time{}); err != nil {
					return storage.Change{}, err
				}
			}
			a.RetiredAt, a.UpdatedAt = time.Time{}, now
			return s.putAddress(part, rows[0].Version, now, a)
		}
		wallet, guard, err := s.openWallet(ctx, tenant, in.WalletID)
		if err != nil {
			return storage.Change{}, err
		}
		if *taken == "" {
			d, err := s.c.Addresses.Take(ctx, n, tenant)
			if err != nil {
				return storage.Change{}, fmt.Errorf("payment: taking an address: %w", err)
			}
			*taken = string(d.Address)
		}
		a = PermanentAddress{
			ID: s.c.NewID(), Network: string(n), Address: *taken, ExternalID: in.ExternalID, Wallet: wallet, WalletRef: in.WalletID,
			CallbackURL: in.CallbackURL, CreatedAt: now, UpdatedAt: now,
		}
		return s.putAddress(part, 0, time.Time{}, a, guard)
	})
	return a, made, err
}

// putAddress writes a permanent address and tells of it.
func (s *Service) putAddress(part storage.Partition, version int64, due time.Time, a PermanentAddress, guards ...storage.Guard) (storage.Change, error) {
	told, err := toldAddress(&a, a.UpdatedAt)
	return storage.Change{
		ID: s.c.NewID(), Partition: part, Require: guards, Tell: []storage.Event{told},
		Put: []storage.Row{PermanentAddresses.Row(a.ID, version, due, a)},
	}, err
}

// RetireAddress ends the use of a permanent address. What comes from now on goes to suspense,
// unless Config.Late is LateCredit, and after Config.WatchAfter it is no longer watched.
// Payments that exist go on. It may be repeated. Errors: *NotFoundError.
func (s *Service) RetireAddress(ctx context.Context, tenant, id string) (a PermanentAddress, err error) {
	part := storage.Tenant(tenant)
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		v, row, ok, err := PermanentAddresses.One(ctx, s.c.Store, part, id)
		if err == nil && !ok {
			err = &NotFoundError{Field: "address_id", ID: id}
		}
		if a = v; err != nil || !a.RetiredAt.IsZero() {
			return storage.Change{}, err
		}
		now := s.now()
		a.RetiredAt, a.UpdatedAt = now, now
		return s.putAddress(part, row.Version, now, a)
	})
	if err != nil {
		return PermanentAddress{}, err
	}
	return a, nil
}

// AddressFilter selects permanent addresses. Empty fields select nothing out.
type AddressFilter struct {
	ExternalID string
	Limit      int // 1 to 100; 0 = 20
	Offset     int
}

// PermanentAddresses lists the tenant's permanent addresses, newest first, retired ones too,
// and how many match. One whose row somebody edited has no Address here. Errors:
// *InvalidError.
func (s *Service) PermanentAddresses(ctx context.Context, tenant string, f AddressFilter) (page []PermanentAddress, total int64, err error) {
	f.Limit = orElse(f.Limit, 20)
	bad := &InvalidError{}
	bad.AddLong("external_id", f.ExternalID, maxExternalID)
	if bad.AddPage(f.Limit, f.Offset); bad.Err() != nil {
		return nil, 0, bad.Err()
	}
	q := storage.Query{
		Table: PermanentAddresses.Table, Partition: storage.Tenant(tenant), Limit: f.Limit, Offset: f.Offset,
		Order: []storage.Order{{Column: "created_at", Desc: true}},
	}
	if f.ExternalID != "" {
		q.Where = []storage.Cond{{Column: "external_id", Op: storage.Eq, Value: f.ExternalID}}
	}
	if total, err = s.c.Store.Count(ctx, q); err != nil || total == 0 {
		return nil, 0, err
	}
	rows, err := s.c.Store.Find(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	page = make([]PermanentAddress, len(rows))
	shown := make([]Payment, len(rows))
	for i, r := range rows {
		page[i] = PermanentAddresses.Value(r)
		shown[i] = page[i].Shown()
	}
	wrong, err := s.altered(ctx, tenant, shown)
	for i := range page {
		if wrong[page[i].ID] != nil {
			page[i].Address = ""
		}
	}
	return page, total, err
}

// Shown is the address as Config.CheckAddresses takes it: a payment that nobody has paid yet.
func (a *PermanentAddress) Shown() Payment {
	return Payment{ID: a.ID, Network: a.Network, Address: a.Address, AddressID: a.ID}
}

// intact is an error where the row's address is not ours.
func (s *Service) intact(ctx context.Context, tenant string, a *PermanentAddress) error {
	wrong, err := s.altered(ctx, tenant, []Payment{a.Shown()})
	return errors.Join(err, wrong[a.ID])
}

// stepAddresses writes into the directory whether addresses that were retired, or are in use
// again, are watched.
func (s *Service) stepAddresses(ctx context.Context) (int, error) {
	now := s.now()
	rows, err := storage.Claimed(ctx, s.c.Store, storage.Claim{
		Table: PermanentAddresses.Table, Now: now, Until: now.Add(s.c.Lease), Max: claimMax,
	}, s.c.Log)
	if err != nil {
		return 0, err
	}
	errs := storage.Work(ctx, s.c.Store, rows, func(r storage.Row) string { return string(r.Partition) + "/" + r.ID }, func(ctx context.Context, r storage.Row) error {
		a := PermanentAddresses.Value(r)
		if err := s.watchUntil(ctx, a.Network, a.Address, a.watchedUntil(*s.c.WatchAfter)); err != nil {
			return err
		}
		return storage.CommitOne(ctx, s.c.Store, storage.Change{
			ID: s.c.NewID(), Partition: r.Partition, Put: []storage.Row{PermanentAddresses.Row(r.ID, r.Version, time.Time{}, a)},
		})
	})
	for i, err := range errs {
		switch {
		case err != nil && ctx.Err() != nil:
			return len(rows), err
		case err != nil && !errors.Is(err, storage.ErrBusy) && !errors.Is(err, storage.ErrConflict): // then it is due again
			tenant := strings.TrimPrefix(string(rows[i].Partition), string(storage.Tenant("")))
			s.c.Log.LogAttrs(ctx, slog.LevelError, "payment_address_step_failed",
				slog.String("tenant", tenant), slog.String("address_id", rows[i].ID), slog.String("error", err.Error()))
		}
	}
	return len(rows), nil
}

// watchedUntil is until when the address is watched; zero = for ever.
func (a *PermanentAddress) watchedUntil(after time.Duration) time.Time {
	if a.RetiredAt.IsZero() || after < 0 {
		return time.Time{}
	}
	return a.RetiredAt.Add(max(after, holdFor))
}
