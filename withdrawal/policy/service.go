package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Config is what a Service is made of. All is required but what has a default.
type Config struct {
	Store    storage.Store
	Registry *chain.Registry
	// Rates values payouts for rules in USD.
	Rates rates.Rates
	// Parse validates an address and gives its canonical form.
	Parse func(n chain.Network, s string) (chain.Address, error)
	// ParseVault is Parse of an address that no key signs for: see chain.VaultParser. Defaults to
	// Parse.
	ParseVault func(n chain.Network, s string) (chain.Address, error)
	// Mandates seals policies and destinations. Defaults to none: nothing is sealed, and
	// nothing is asked for.
	Mandates withdrawal.Mandates
	// Default is the policy of tenants that have none of their own. It must be the same in
	// every process. Defaults to no rules.
	Default Policy
	// ColdAddress gives an address for cold coins its canonical form, or says why it cannot be
	// one. Defaults to refusing all.
	ColdAddress func(ctx context.Context, c *chain.Currency, address string) (canonical chain.Address, why string, err error)
	// Described says why a descriptor is not that of an address for cold coins, "" = it is.
	// Defaults to refusing all.
	Described func(c *chain.Currency, address chain.Address, descriptor string) (why string)
	Now       func() time.Time
	NewID     func() string
}

// Service stores policies and judges payouts by them. All methods may be called concurrently,
// by any number of processes.
type Service struct {
	c      Config
	unread storage.Unreadable
	mu     sync.Mutex
	next   map[string]time.Time // when a tenant's policy comes to this Service again that others see to, too
}

// New checks the Config and makes a Service. It does no I/O. *InvalidError: Default is wrong.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Registry == nil || c.Rates == nil || c.Parse == nil || c.Now == nil || c.NewID == nil {
		return nil, errors.New("policy: Config needs Store, Registry, Rates, Parse, Now and NewID")
	}
	c.Default.Rules = append([]Rule(nil), c.Default.Rules...)
	if err := c.Default.check(c.Registry); err != nil {
		return nil, fmt.Errorf("policy: Config.Default: %w", err)
	}
	if len(c.Default.Cold) > 0 {
		return nil, errors.New("policy: Config.Default: cold is set for each tenant")
	}
	if c.ParseVault == nil {
		c.ParseVault = c.Parse
	}
	if c.Described == nil {
		c.Described = func(*chain.Currency, chain.Address, string) string { return "cannot be used here" }
	}
	c.Store = storage.Joined(c.Store)
	return &Service{c: c}, nil
}

// InvalidError names every field of a request that is wrong, and why.
type InvalidError = fault.InvalidError

// Errors of this package.
var (
	// ErrVersion: somebody else has changed the policy meanwhile. Read it again.
	ErrVersion = errors.New("policy: it has another version by now: read it again")
	// ErrAltered: the stored policy, or a destination, is not what was set.
	ErrAltered = errors.New("policy: its stored row was edited: set it again, or put it back")
	ErrUnknown = errors.New("policy: no such destination or version")
)

// Version is a policy as it was set.
type Version struct {
	Policy
	Number int64 // from 1; 0 = none was set: it is Config.Default
	By     string
	Reason string
	At     time.Time
}

// row is a version as it is stored: the current one under the id "current", and each under
// its number.
type row struct {
	Number int64     `db:"number"`
	Rules  string    `db:"rules"` // the Policy as JSON
	By     string    `db:"actor"`
	Reason string    `db:"reason"`
	At     time.Time `db:"at"`
	Seal   string    `db:"seal"`
}

// Policies is the table of policies, in tenants' partitions.
var Policies = storage.NewTable[row]("policies", storage.Index("number"))

const current = "current"

// Tables lists what this package stores.
func Tables() []*storage.Table {
	return []*storage.Table{Policies.Table, usage.Table, Destinations.Table}
}

func versionID(number int64) string { return "v" + strconv.FormatInt(number, 10) }

// Recorded makes the row that says who changed something and why, and the event that tells of
// it, for the same Change. It gets both states as they are stored.
type Recorded func(before, after any) ([]storage.Row, []storage.Event, error)

// Get returns the policy of a tenant. ErrAltered where somebody edited it.
func (s *Service) Get(ctx context.Context, tenant string) (Version, error) {
	v, _, err := s.get(ctx, tenant)
	return v, err
}

func (s *Service) get(ctx context.Context, tenant string) (Version, storage.Row, error) {
	p := storage.Tenant(tenant)
	rows, err := s.c.Store.Rows(ctx, Policies.Table, storage.Keys(p, current, versionID(1))...)
	if err != nil {
		return Version{}, storage.Row{}, err
	}
	i := slices.IndexFunc(rows, func(r storage.Row) bool { return r.ID == current })
	switch {
	case i < 0 && len(rows) > 0:
		return Version{}, storage.Row{}, fmt.Errorf("%w: its row %s is gone", ErrAltered, current)
	case i < 0:
		return Version{Policy: s.c.Default}, storage.Row{}, nil
	}
	r := Policies.Value(rows[i])
	v, err := s.read(ctx, tenant, &r)
	if err != nil {
		return v, rows[i], err
	}
	_, _, later, err := Policies.One(ctx, s.c.Store, p, versionID(r.Number+1))
	if err == nil && later {
		err = fmt.Errorf("%w: version %d was put back in place of a later one", ErrAltered, r.Number)
	}
	return v, rows[i], err
}

func (s *Service) read(ctx context.Context, tenant string, r *row) (Version, error) {
	v := Version{Number: r.Number, By: r.By, Reason: r.Reason, At: r.At}
	if err := s.sealed(ctx, r.Seal, r.terms(tenant)); err != nil {
		return v, err
	}
	if err := json.Unmarshal([]byte(r.Rules), &v.Policy); err != nil {
		return v, fmt.Errorf("%w: %w", ErrAltered, err)
	}
	v.Policy = s.inForce(v.Policy)
	return v, nil
}

// inForce is a policy as it holds: one that says nothing of rules, such as one of cold addresses
// alone, keeps those of Config.Default.
func (s *Service) inForce(p Policy) Policy {
	if p.Rules == nil {
		p.Rules = slices.Clone(s.c.Default.Rules)
	}
	return p
}

// Find returns an earlier version: ErrUnknown where there is none.
func (s *Service) Find(ctx context.Context, tenant string, number int64) (Version, error) {
	r, _, ok, err := Policies.One(ctx, s.c.Store, storage.Tenant(tenant), versionID(number))
	if err == nil && !ok {
		err = ErrUnknown
	}
	if err != nil {
		return Version{}, err
	}
	return s.read(ctx, tenant, &r)
}

// Set makes p the policy of a tenant, from the next payout on that is handed over. version is
// the number of the one that it replaces, as Get said; ErrVersion where it is another by now.
// by names who sets it, reason says why; both are required and kept. What waits for approvals
// goes on waiting for those that it was told of. It returns what is in force then, as Get does.
func (s *Service) Set(ctx context.Context, tenant string, version int64, p Policy, by, reason string, recorded ...Recorded) (Version, error) {
	err := s.check(ctx, &p)
	if err == nil {
		err = who(by, reason)
	}
	if err != nil {
		return Version{}, err
	}
	text, err := p.text()
	if err != nil {
		return Version{}, err
	}
	var set Version
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		before, at, _, err := Policies.One(ctx, s.c.Store, storage.Tenant(tenant), current)
		if err == nil && before.Number != version {
			err = ErrVersion
		}
		if err != nil {
			return storage.Change{}, err
		}
		now := s.c.Now().UTC().Truncate(time.Microsecond)
		r := row{Number: version + 1, Rules: text, By: by, Reason: reason, At: now}
		if r.Seal, err = s.seal(r.terms(tenant)); err != nil {
			return storage.Change{}, err
		}
		set = Version{s.inForce(p), r.Number, by, reason, now}
		c := storage.Change{ID: s.c.NewID(), Partition: storage.Tenant(tenant), Put: []storage.Row{
			Policies.Row(current, at.Version, p.due(now), r), Policies.Row(versionID(r.Number), 0, time.Time{}, r),
		}}
		return c, record(&c, recorded, shownRules(before.Rules), shownRules(text))
	})
	return set, err
}

// Check is Set without effect: it returns what would be in force, under the next number.
func (s *Service) Check(ctx context.Context, tenant string, version int64, p Policy) (Version, error) {
	if err := s.check(ctx, &p); err != nil {
		return Version{}, err
	}
	before, _, _, err := Policies.One(ctx, s.c.Store, storage.Tenant(tenant), current)
	if err == nil && before.Number != version {
		err = ErrVersion
	}
	return Version{Policy: s.inForce(p), Number: version + 1}, err
}

// Altered says why a row of Policies or Destinations is not what somebody with the host's key set,
// "" = it is. An error is the store's.
func (s *Service) Altered(ctx context.Context, tenant string, r storage.Row) (why string, err error) {
	switch v := r.Value.(type) {
	case row:
		if r.ID == current {
			_, err = s.Get(ctx, tenant)
		} else if err = s.sealed(ctx, v.Seal, v.terms(tenant)); err == nil && r.ID != versionID(v.Number) {
			return "it is version " + versionID(v.Number), nil
		}
	case Destination:
		if err = s.sealed(ctx, v.Seal, v.terms(tenant)); err == nil && r.ID != destinationID(v.Network, v.Address, v.Memo) {
			return "it is another destination", nil
		}
	}
	if errors.Is(err, ErrAltered) {
		return err.Error(), nil
	}
	return "", err
}

// Resealed is a row of Policies or Destinations with a new seal, or why it has none: nobody with
// the host's key made it. A row without a table needs none: newest knows its seal. It writes
// nothing.
func (s *Service) Resealed(ctx context.Context, tenant string, r storage.Row, newest func(seal string) bool) (storage.Row, string, error) {
	var seal string
	var terms mandate.Terms
	var again func(seal string) storage.Row
	switch v := r.Value.(type) {
	case row:
		seal, terms = v.Seal, v.terms(tenant)
		again = func(seal string) storage.Row { v.Seal = seal; return Policies.Row(r.ID, r.Version, r.Due, v) }
	case Destination:
		seal, terms = v.Seal, v.terms(tenant)
		again = func(seal string) storage.Row { v.Seal = seal; return Destinations.Row(r.ID, r.Version, r.Due, v) }
	}
	if again == nil || newest(seal) {
		return storage.Row{}, "", nil
	}
	if err := s.sealed(ctx, seal, terms); errors.Is(err, ErrAltered) {
		return storage.Row{}, err.Error(), nil
	} else if err != nil {
		return storage.Row{}, "", err
	}
	made, err := s.seal(terms)
	return again(made), "", err
}

// shownRules are rules as a record shows them.
func shownRules(text string) any {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func record(c *storage.Change, recorded []Recorded, before, after any) error {
	for _, f := range recorded {
		rows, events, err := f(before, after)
		if err != nil {
			return err
		}
		c.Put, c.Tell = append(c.Put, rows...), append(c.Tell, events...)
	}
	return nil
}

// who checks the name and the reason of a person.
func who(by, reason string) error {
	bad := &fault.InvalidError{}
	if by == "" {
		bad.Add("by", "is required")
	}
	if reason == "" {
		bad.Add("reason", "is required")
	}
	bad.AddLong("by", by, maxExplain)
	bad.AddLong("reason", reason, maxExplain)
	return bad.Err()
}

// terms are what the seal of a version covers.
func (r *row) terms(tenant string) mandate.Terms {
	said, err := json.Marshal([]any{r.Number, r.Rules, r.By, r.Reason, storage.Micros(r.At)})
	if err != nil {
		said = nil // numbers and texts always encode
	}
	return mandate.Terms{Tenant: tenant, Kind: "policy", Order: versionID(r.Number), Decision: string(said)}
}

func (s *Service) seal(t mandate.Terms) (string, error) {
	if s.c.Mandates == nil {
		return "", nil
	}
	return s.c.Mandates.Make(t)
}

// sealed is an error that wraps ErrAltered where nobody with the host's key made the seal.
func (s *Service) sealed(ctx context.Context, text string, t mandate.Terms) error {
	if s.c.Mandates == nil {
		return nil
	}
	if text == "" {
		return fmt.Errorf("%w: %w", ErrAltered, mandate.ErrMissing) // none was ever made without one
	}
	err := s.c.Mandates.Check(ctx, text, t)
	if errors.Is(err, mandate.ErrMissing) || errors.Is(err, mandate.ErrForged) || errors.Is(err, mandate.ErrKey) {
		return fmt.Errorf("%w: %w", ErrAltered, err)
	}
	return err
}
