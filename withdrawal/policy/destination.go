package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Destination is an address that a tenant's list has, for rules of KindDestination.
type Destination struct {
	Network chain.Network `db:"network"`
	Address string        `db:"address"` // canonical
	Memo    string        `db:"memo"`    // "" = none; with a memo it is another destination
	By      string        `db:"actor"`
	Reason  string        `db:"reason"`
	At      time.Time     `db:"at"`
	// RemovedAt is when it was taken from the list; zero = it is on it.
	RemovedAt time.Time `db:"removed_at"`
	Seal      string    `db:"seal"`
}

// Destinations is the table of the lists, in tenants' partitions.
var Destinations = storage.NewTable[Destination]("policy_destinations", storage.Index("at"))

// destinationID names a destination in 32 hex digits.
func destinationID(n chain.Network, address, memo string) string {
	text, err := json.Marshal([]string{string(n), address, memo})
	if err != nil {
		return "" // texts always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

func (d *Destination) terms(tenant string) mandate.Terms {
	said, err := json.Marshal([]any{d.By, d.Reason, storage.Micros(d.At), storage.Micros(d.RemovedAt)})
	if err != nil {
		said = nil // texts and numbers always encode
	}
	return mandate.Terms{
		Tenant: tenant, Kind: "destination", Order: destinationID(d.Network, d.Address, d.Memo), Network: d.Network,
		To: chain.Address(d.Address), Memo: d.Memo, Decision: string(said),
	}
}

// parse gives an address its canonical form: also one that no key signs for, as whoever lists it says
// that it is a vault.
func (s *Service) parse(n chain.Network, address string) (chain.Address, error) {
	to, err := s.c.Parse(n, address)
	if err == nil {
		return to, nil
	}
	if vault, e := s.c.ParseVault(n, address); e == nil {
		return vault, nil
	}
	return "", err
}

// Vault is the canonical form of an address that no key signs for, where the tenant's list has it
// without a memo; "" = it is no such address, or is not on the list.
func (s *Service) Vault(ctx context.Context, tenant string, n chain.Network, address string) (chain.Address, error) {
	to, err := s.c.ParseVault(n, address)
	if err != nil {
		return "", nil //nolint:nilerr // whoever asks knows why the address is none
	}
	d, _, ok, err := Destinations.One(ctx, s.c.Store, storage.Tenant(tenant), destinationID(n, string(to), ""))
	if err != nil || !ok || !d.RemovedAt.IsZero() || d.Network != n || d.Address != string(to) || d.Memo != "" {
		return "", err
	}
	if err := s.sealed(ctx, d.Seal, d.terms(tenant)); errors.Is(err, ErrAltered) {
		return "", nil // who edits a list has nothing on it
	} else if err != nil {
		return "", err
	}
	return to, nil
}

// Allow puts a destination on a tenant's list. One that is on it stays as it is, with its time. A
// withdrawal to an address that no key signs for, such as a multisignature vault on Solana, is taken
// where its tenant's list has it.
// by and reason are as of Set. Errors: *InvalidError for by and reason, *chain.AddressError.
func (s *Service) Allow(ctx context.Context, tenant string, n chain.Network, address, memo, by, reason string, recorded ...Recorded) (Destination, error) {
	if err := who(by, reason); err != nil {
		return Destination{}, err
	}
	to, err := s.parse(n, address)
	if err != nil {
		return Destination{}, err
	}
	if len(memo) > maxExplain {
		return Destination{}, fault.Invalid("memo", "is too long")
	}
	d := Destination{Network: n, Address: string(to), Memo: memo, By: by, Reason: reason}
	id := destinationID(n, d.Address, memo)
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		stored, at, ok, err := Destinations.One(ctx, s.c.Store, storage.Tenant(tenant), id)
		if err == nil && ok && stored.RemovedAt.IsZero() && s.sealed(ctx, stored.Seal, stored.terms(tenant)) == nil {
			d = stored
			return storage.Change{}, nil
		}
		if err != nil {
			return storage.Change{}, err
		}
		d.At = s.c.Now().UTC().Truncate(time.Microsecond)
		if d.Seal, err = s.seal(d.terms(tenant)); err != nil {
			return storage.Change{}, err
		}
		c := storage.Change{ID: s.c.NewID(), Partition: storage.Tenant(tenant), Put: []storage.Row{Destinations.Row(id, at.Version, time.Time{}, d)}}
		return c, record(&c, recorded, nil, d.shown())
	})
	return d, err
}

// Remove takes a destination from a tenant's list. ErrUnknown where it is not on it; by and
// reason are as of Set.
func (s *Service) Remove(ctx context.Context, tenant string, n chain.Network, address, memo, by, reason string, recorded ...Recorded) error {
	if err := who(by, reason); err != nil {
		return err
	}
	to, err := s.parse(n, address)
	if err != nil {
		return err
	}
	id := destinationID(n, string(to), memo)
	return storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		d, at, ok, err := Destinations.One(ctx, s.c.Store, storage.Tenant(tenant), id)
		if err == nil && (!ok || !d.RemovedAt.IsZero()) {
			err = ErrUnknown
		}
		if err != nil {
			return storage.Change{}, err
		}
		was := d.shown()
		d.By, d.Reason, d.RemovedAt = by, reason, s.c.Now().UTC().Truncate(time.Microsecond)
		if d.Seal, err = s.seal(d.terms(tenant)); err != nil {
			return storage.Change{}, err
		}
		c := storage.Change{ID: s.c.NewID(), Partition: storage.Tenant(tenant), Put: []storage.Row{Destinations.Row(id, at.Version, time.Time{}, d)}}
		return c, record(&c, recorded, was, nil)
	})
}

// shown is a destination as a record shows it.
func (d *Destination) shown() any {
	return map[string]string{"network": string(d.Network), "address": d.Address, "memo": d.Memo}
}

// List returns what is and was on a tenant's list, newest first: at most limit of them, from offset on.
func (s *Service) List(ctx context.Context, tenant string, limit, offset int) ([]Destination, error) {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Destinations.Table, Partition: storage.Tenant(tenant), Order: []storage.Order{{Column: "at", Desc: true}}, Limit: limit, Offset: offset,
	})
	out := make([]Destination, len(rows))
	for i, r := range rows {
		out[i] = Destinations.Value(r)
	}
	return out, err
}
