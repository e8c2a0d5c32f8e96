package cryptopay

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// SetPolicy holds a tenant's payouts to p from now on: see policy.Service.Set for version and
// errors. It returns what is in force, and the id of the record. A dry run checks p alone.
func (o *Operate) SetPolicy(ctx context.Context, tenant string, version int64, p policy.Policy, c Call) (policy.Version, string, error) {
	if err := o.ofTenant(ctx, tenant, c); err != nil {
		return policy.Version{}, "", err
	}
	if c.DryRun {
		checked, err := o.a.Policies.Check(ctx, tenant, version, p)
		return checked, "", err
	}
	by := o.recorded(ctx, storage.Tenant(tenant), outgoing.OpSetPolicy, "", tenant, "policy", c)
	v, err := o.a.Policies.Set(ctx, tenant, version, p, c.By, c.Reason, by.Rows)
	if err != nil {
		return v, "", err
	}
	return v, o.done(ctx, by), nil
}

// AllowDestination puts an address on the list of a tenant's rules about destinations: see
// policy.Service.Allow. It returns the entry, and the id of the record.
func (o *Operate) AllowDestination(ctx context.Context, tenant string, n chain.Network, address, memo string, c Call) (policy.Destination, string, error) {
	if err := o.ofTenant(ctx, tenant, c); err != nil {
		return policy.Destination{}, "", err
	}
	if c.DryRun {
		to, err := o.a.parse(n, address)
		return policy.Destination{Network: n, Address: string(to), Memo: memo, By: c.By, Reason: c.Reason}, "", err
	}
	by := o.recorded(ctx, storage.Tenant(tenant), outgoing.OpAllowDestination, n, tenant, address, c)
	d, err := o.a.Policies.Allow(ctx, tenant, n, address, memo, c.By, c.Reason, by.Rows)
	if err != nil {
		return d, "", err
	}
	return d, o.done(ctx, by), nil
}

// RemoveDestination takes an address from the list: see policy.Service.Remove. It returns the id
// of the record. What was handed over before goes out.
func (o *Operate) RemoveDestination(ctx context.Context, tenant string, n chain.Network, address, memo string, c Call) (string, error) {
	if err := o.ofTenant(ctx, tenant, c); err != nil {
		return "", err
	}
	if c.DryRun {
		_, err := o.a.parse(n, address)
		return "", err
	}
	by := o.recorded(ctx, storage.Tenant(tenant), outgoing.OpRemoveDestination, n, tenant, address, c)
	if err := o.a.Policies.Remove(ctx, tenant, n, address, memo, c.By, c.Reason, by.Rows); err != nil {
		return "", err
	}
	return o.done(ctx, by), nil
}

// ofTenant checks a Call about a tenant that there must be.
func (o *Operate) ofTenant(ctx context.Context, tenant string, c Call) error {
	if err := c.check(); err != nil {
		return err
	}
	return o.tenant(ctx, tenant)
}

// ofPolicy is the kind of a Contradiction.
const ofPolicy = "policy"

// editedPolicies names the rows of a tenant's policies and destinations that nobody set, and the
// policy in force where it is not the newest that somebody set.
func (a *App) editedPolicies(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	for _, t := range []*storage.Table{policy.Policies.Table, policy.Destinations.Table} {
		err := each(ctx, a.cfg.Store, storage.Query{Table: t, Partition: p}, func(row storage.Row) error {
			why, err := a.Policies.Altered(ctx, tenantOf(p), row)
			if err == nil && why != "" {
				out = append(out, Contradiction{ofPolicy, row.ID, why})
			}
			return err
		})
		if err != nil {
			return out, err
		}
	}
	set, err := a.cfg.Store.Count(ctx, storage.Query{Table: outgoing.Operations.Table, Partition: p, Where: []storage.Cond{
		{Column: "kind", Op: storage.Eq, Value: outgoing.OpSetPolicy},
	}}) // before the policy is read, so that one which is set meanwhile is not missed
	if err != nil {
		return out, err
	}
	in, err := a.Policies.Get(ctx, tenantOf(p))
	switch {
	case errors.Is(err, policy.ErrAltered):
		return append(out, Contradiction{ofPolicy, "in force", err.Error()}), nil
	case err == nil && set > in.Number:
		out = append(out, Contradiction{ofPolicy, "in force", fmt.Sprintf("it is version %d, and the audit log has %d that were set", in.Number, set)})
	}
	return out, err
}

// resealPolicies seals a tenant's policies and destinations with the newest key.
func (a *App) resealPolicies(ctx context.Context, tenant string, r *Resealed) error {
	for _, t := range []*storage.Table{policy.Policies.Table, policy.Destinations.Table} {
		err := storage.Pages(ctx, a.cfg.Store, storage.Query{Table: t, Partition: storage.Tenant(tenant), Limit: page}, func(rows []storage.Row) error {
			n, err := a.resealRows(ctx, rows, ofPolicy, r, func(ctx context.Context, row storage.Row) (storage.Row, string, error) {
				now, err := a.joined().Rows(ctx, t, storage.Keys(row.Partition, row.ID)...)
				if err != nil || len(now) == 0 {
					return storage.Row{}, "", err
				}
				return a.Policies.Resealed(ctx, tenant, now[0], a.mandateKeys.Newest)
			})
			r.Policies += n
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
