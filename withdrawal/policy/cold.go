package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Cold is an address of the operator's whose key is elsewhere. Its balance is shown as cold.
// Coins of Currency are sent there once more than Ceiling of them are hot and not promised to
// a payout, so that Target of them stay. Amounts are in coins.
type Cold struct {
	Currency string `json:"currency"` // combined code
	Address  string `json:"address"`
	Memo     string `json:"memo,omitempty"`
	// Ceiling 0 = nothing is sent: the address is looked at only.
	Ceiling decimal.Decimal `json:"ceiling,omitzero"`
	Target  decimal.Decimal `json:"target,omitzero"` // at most Ceiling
	// Descriptor says which keys spend the coins at Address, without a private one, so that a
	// refill can be proposed: see chain.ColdSpender. "" = none is proposed.
	Descriptor string `json:"descriptor,omitempty"`
}

// maxMemo is the longest memo, in bytes.
const maxMemo = 256

// check fills in what a Policy leaves out, and copies it. The error names each field that is
// wrong, or is that of Config.ColdAddress.
func (s *Service) check(ctx context.Context, p *Policy) error {
	p.Rules, p.Cold, p.Sweeps = slices.Clone(p.Rules), slices.Clone(p.Cold), slices.Clone(p.Sweeps)
	if err := p.check(s.c.Registry); err != nil {
		return err
	}
	bad, seen := &fault.InvalidError{}, map[string]bool{}
	for i := range p.Cold {
		c, at := &p.Cold[i], fmt.Sprintf("cold[%d].", i)
		switch {
		case long(c.Ceiling):
			bad.Add(at+"ceiling", fmt.Sprintf("has more than %d digits", maxDigits))
		case long(c.Target):
			bad.Add(at+"target", fmt.Sprintf("has more than %d digits", maxDigits))
		case c.Ceiling.IsNegative() || c.Target.IsNegative():
			bad.Add(at+"ceiling", "and target must not be negative")
		case c.Target.GreaterThan(c.Ceiling):
			bad.Add(at+"target", "must be at most the ceiling")
		}
		bad.AddLong(at+"memo", c.Memo, maxMemo)
		if seen[c.Currency] {
			bad.Add(at+"currency", "has another cold address already")
		}
		seen[c.Currency] = true
		currency, err := s.c.Registry.Currency(c.Currency)
		if err != nil {
			bad.Add(at+"currency", "is not one that is listed")
			continue
		}
		if n, err := s.c.Registry.Network(string(currency.Network)); err == nil && !n.NeedsMemo && c.Memo != "" {
			bad.Add(at+"memo", "is on a network that has none")
		}
		if !long(c.Ceiling) {
			if _, err := currency.Units(c.Ceiling, ledger.Down); err != nil {
				bad.Add(at+"ceiling", "is more than the books can hold")
			}
		}
		if s.c.ColdAddress == nil {
			bad.Add(at+"address", "cannot be cold here")
			continue
		}
		to, why, err := s.c.ColdAddress(ctx, currency, c.Address)
		if err != nil {
			return err
		}
		if c.Address = string(to); why != "" {
			bad.Add(at+"address", why)
		}
		if c.Descriptor == "" {
			continue
		}
		if why := s.c.Described(currency, to, c.Descriptor); why != "" {
			bad.Add(at+"descriptor", why)
		}
	}
	return bad.Err()
}

// long reports an amount of so many digits that it is not computed with.
func long(d decimal.Decimal) bool {
	return d.NumDigits() > maxDigits || d.Exponent() < -maxDigits || d.Exponent() > maxDigits
}

// due is when the coins of a tenant are looked at first: never where it has no cold address.
func (p *Policy) due(now time.Time) time.Time {
	if len(p.Cold) > 0 {
		return now
	}
	return time.Time{}
}

// TenantsCold is where the coins of one tenant go.
type TenantsCold struct {
	Tenant string
	Cold   []Cold
}

// ClaimCold returns tenants with cold addresses, each to one caller for a time. A policy that was
// edited is logged and left out. serves says whether the caller sees to a currency: a policy with
// others goes back at once for those who see to them, and comes to this Service again after that time.
func (s *Service) ClaimCold(ctx context.Context, lease time.Duration, most int, serves func(currency string) bool, log *slog.Logger) ([]TenantsCold, error) {
	now := s.c.Now()
	until := now.Add(lease)
	rows, err := s.unread.Claimed(ctx, s.c.Store, storage.Claim{
		Table: Policies.Table, Now: now, Until: until, Max: most,
	}, log, func(*storage.RowError) {})
	if err != nil {
		return nil, err
	}
	var out []TenantsCold
	var back []storage.Change
	for _, r := range rows {
		tenant, _ := strings.CutPrefix(string(r.Partition), string(storage.Tenant("")))
		v := Policies.Value(r)
		version, err := s.read(ctx, tenant, &v)
		if errors.Is(err, ErrAltered) || err == nil && r.ID != current {
			log.ErrorContext(ctx, "policy_altered", slog.String("tenant", tenant), slog.Any("error", err))
			continue
		}
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(version.Cold, func(c Cold) bool { return !serves(c.Currency) }) {
			back = append(back, storage.Change{
				ID: fmt.Sprintf("cold-back/%s/%d", tenant, r.Version), Partition: r.Partition, Put: []storage.Row{Policies.Row(r.ID, r.Version, now, v)},
			})
			if !s.turn(tenant, now, until) {
				continue
			}
		}
		out = append(out, TenantsCold{tenant, version.Cold})
	}
	if len(back) == 0 {
		return out, nil
	}
	for _, err := range s.c.Store.Commit(ctx, back...) {
		if err != nil && !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrBusy) {
			return nil, err
		}
	}
	return out, nil
}

// turn reports whether a tenant's policy comes to this Service now, and not again before a time.
func (s *Service) turn(tenant string, now, until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.next[tenant]) {
		return false
	}
	if s.next == nil {
		s.next = map[string]time.Time{}
	}
	s.next[tenant] = until
	return true
}
