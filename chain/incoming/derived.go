package incoming

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Check derives an entry of the directory again: the error wraps ErrNotDerived where the
// row's address or key is not what the source gives for its index. An address of a
// shared account must be that account's, with the number of the row. Networks for which
// this process has no source (chain.ErrNoSource) are not checked. What is wrong is logged
// as address_altered.
func (p *Pool) Check(ctx context.Context, network chain.Network, row storage.Row) error {
	return p.checkBy(ctx, network, row, func(tenant string) (chain.Derived, error) {
		return p.only(ctx, network, tenant, UseAccount)
	})
}

// checkBy is Check, with the accounts of tenants from account.
func (p *Pool) checkBy(ctx context.Context, network chain.Network, row storage.Row, account func(tenant string) (chain.Derived, error)) error {
	err := p.check(ctx, network, row, account)
	if errors.Is(err, ErrNotDerived) {
		p.cfg.Log.LogAttrs(ctx, slog.LevelError, "address_altered",
			slog.String("network", string(network)), slog.String("address", row.ID), slog.Any("error", err))
	}
	return err
}

func (p *Pool) check(ctx context.Context, network chain.Network, row storage.Row, accountOf func(tenant string) (chain.Derived, error)) error {
	a := Addresses.Value(row)
	wrong := fmt.Errorf("%w: %s on %s, index %d", ErrNotDerived, row.ID, network, a.Index)
	if m := p.cfg.Shared[network]; m != nil && a.Use != UseAccount && a.Use != "" {
		account, err := accountOf(a.Tenant)
		if err != nil {
			return err
		}
		want, err := m.Multiplex(account.Address, uint32(a.Seq)) //nolint:gosec // what does not fit is another address
		if err != nil || string(want) != row.ID || chain.KeyRef(a.Key) != account.Key {
			return errors.Join(wrong, err)
		}
		return nil
	}
	want, err := p.cfg.Source.Derive(storage.Apart(ctx), network, uint32(a.Index), 1) //nolint:gosec // as above
	if errors.Is(err, chain.ErrNoSource) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("incoming: deriving index %d of %s again: %w", a.Index, network, err)
	}
	if len(want) != 1 || string(want[0].Address) != row.ID || string(want[0].Key) != a.Key {
		return wrong
	}
	return nil
}

// Ours is Owned that remembers what was found good: an address that was derived once need not
// be derived again to be shown.
func (p *Pool) Ours(ctx context.Context, network chain.Network, tenant string, list ...chain.Address) (wrong map[chain.Address]error, err error) {
	var ask []chain.Address
	p.mu.Lock()
	for _, a := range list {
		if _, known := p.good[shown{network, tenant, a}]; !known {
			ask = append(ask, a)
		}
	}
	p.mu.Unlock()
	if wrong, err = p.Owned(ctx, network, tenant, ask...); err != nil {
		return nil, err
	}
	var good []chain.Derived
	for _, a := range ask {
		if wrong[a] == nil {
			good = append(good, chain.Derived{Address: a})
		}
	}
	p.found(network, tenant, good)
	return wrong, nil
}

// Owned says which of these addresses are not the tenant's for payments, or not as Check has
// them: their errors wrap ErrNotDerived, or *storage.RowError where the row cannot be read.
// It reads the store once, and once more for the account that the addresses share.
func (p *Pool) Owned(ctx context.Context, network chain.Network, tenant string, list ...chain.Address) (wrong map[chain.Address]error, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	wrong = make(map[chain.Address]error, len(list))
	ids := make([]string, len(list))
	for i, a := range list {
		ids[i] = string(a)
		wrong[a] = fmt.Errorf("%w: %s on %s is no address for payments of %s", ErrNotDerived, a, network, tenant)
	}
	rows, err := p.cfg.Store.Rows(ctx, Addresses.Table, storage.Keys(storage.Network(string(network)), ids...)...)
	var unread storage.RowErrors
	if err = unread.Take(err); err != nil {
		return nil, err
	}
	for _, r := range unread {
		wrong[chain.Address(r.ID)] = r
	}
	account := sync.OnceValues(func() (chain.Derived, error) { return p.only(ctx, network, tenant, UseAccount) })
	for _, row := range rows {
		if v := Addresses.Value(row); v.Tenant != tenant || v.Use != UsePayment {
			continue
		}
		switch err := p.checkBy(ctx, network, row, func(string) (chain.Derived, error) { return account() }); {
		case err == nil:
			delete(wrong, chain.Address(row.ID))
		case errors.Is(err, ErrNotDerived):
			wrong[chain.Address(row.ID)] = err
		default:
			return nil, err
		}
	}
	return wrong, nil
}

// found remembers addresses of a tenant as good.
func (p *Pool) found(network chain.Network, tenant string, list []chain.Derived) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.good)+len(list) > maxGood {
		clear(p.good)
	}
	for _, d := range list {
		p.good[shown{network, tenant, d.Address}] = struct{}{}
	}
}

// derivedHere remembers free addresses that this process derived, so that it need not
// derive them again to know that the directory is as it wrote it.
func (p *Pool) derivedHere(network chain.Network, list []chain.Derived) {
	e := p.end(network)
	p.mu.Lock()
	defer p.mu.Unlock()
	e.left += len(list)
	if len(p.made)+len(list) > maxGood {
		clear(p.made)
	}
	for _, d := range list {
		p.made[shown{network, "", d.Address}] = d
	}
}

// isOwn reports whether a free row is as this process derived it. It is forgotten then.
func (p *Pool) isOwn(network chain.Network, r storage.Row) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := shown{network, "", chain.Address(r.ID)}
	d, ok := p.made[k]
	delete(p.made, k)
	return ok && d == derived(r)
}

// shown is an address that a tenant's customers were shown.
type shown struct {
	network chain.Network
	tenant  string
	address chain.Address
}

// maxGood bounds how many addresses are remembered as good.
const maxGood = 10_000

// derivedOnly leaves out rows that are not what the source derives. They
// stay free, so that they are reported again as long as they are there.
func (p *Pool) derivedOnly(ctx context.Context, network chain.Network, rows []storage.Row) ([]storage.Row, error) {
	out := rows[:0]
	for _, r := range rows {
		var err error
		if !p.isOwn(network, r) {
			err = p.Check(ctx, network, r)
		}
		switch {
		case err == nil:
			out = append(out, r)
		case !errors.Is(err, ErrNotDerived):
			return nil, err
		}
	}
	return out, nil
}
