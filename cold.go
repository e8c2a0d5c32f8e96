package cryptopay

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// coldAddress gives an address for cold coins its canonical form, or says why it cannot be one.
func (a *App) coldAddress(ctx context.Context, c *chain.Currency, address string) (chain.Address, string, error) {
	net, err := a.network(c.Network)
	if err != nil {
		return "", "is on a network that this process does not serve", nil //nolint:nilerr // it is said
	}
	if _, shared := net.client.(chain.Multiplexer); shared {
		return "", "is on a network where tenants share an account", nil
	}
	to, err := net.client.ParseAddress(address)
	var bad *chain.AddressError
	if errors.As(err, &bad) {
		return "", "is no address of " + string(c.Network) + ": " + bad.Reason, nil
	}
	if err != nil {
		return "", "", err
	}
	if errors.As(a.Withdrawals.Burned(c.Network, to), &bad) {
		return to, bad.Reason, nil
	}
	if _, ours, err := a.own(ctx, c.Network, to); err != nil || ours {
		return to, "is one that this store gives out or pays from", err
	}
	return to, "", nil
}

// patience asks a tenant's policy how long his coins wait for cheaper sweeps, and a host's own
// hook where the policy says nothing of the currency. A policy that was edited waits for nothing.
func (a *App) patience(hosts func(ctx context.Context, tenant, currency string) (uint64, time.Duration, error)) func(ctx context.Context, tenant, currency string) (uint64, time.Duration, error) {
	return func(ctx context.Context, tenant, currency string) (uint64, time.Duration, error) {
		v, err := a.Policies.Get(ctx, tenant)
		if errors.Is(err, policy.ErrAltered) {
			return 0, 0, nil // it is reported where the policy is enforced
		}
		if err != nil {
			return 0, 0, err
		}
		for _, s := range v.Sweeps {
			if s.Currency == currency {
				return s.Multiple, time.Duration(s.Wait), nil
			}
		}
		if hosts == nil {
			return 0, 0, nil
		}
		return hosts(ctx, tenant, currency)
	}
}

// described says why a descriptor is not that of a cold address, "" = it is.
func (a *App) described(c *chain.Currency, address chain.Address, descriptor string) string {
	net, err := a.network(c.Network)
	if err != nil {
		return "is on a network that this process does not serve"
	}
	spender, ok := net.client.(chain.ColdSpender)
	if !ok {
		return "is on a network whose transactions cannot be signed elsewhere"
	}
	if accounts, err := a.accounts(c.Network); err != nil || accounts {
		return "is not needed on a network of accounts: leave it out"
	}
	switch at, err := spender.ColdAddress(descriptor); {
	case errors.Is(err, errors.ErrUnsupported):
		return "is on a network whose transactions cannot be signed elsewhere"
	case err != nil:
		return "is not one: " + err.Error()
	case at != address:
		return "is of the address " + string(at) + ", and the cold address is another"
	}
	return ""
}

// ceilings are the tenants' policies as the house sees them.
type ceilings struct{ a *App }

func (c ceilings) Claim(ctx context.Context, lease time.Duration, most int) (out []house.Cold, err error) {
	if on, err := c.a.able(ctx, abilityCold); err != nil || !on {
		return nil, err
	}
	tenants, err := c.a.Policies.ClaimCold(ctx, lease, most, c.serves, c.a.cfg.Log)
	for _, t := range tenants {
		for i := range t.Cold {
			if r, ok, err := c.rule(t.Tenant, &t.Cold[i]); err == nil && ok {
				out = append(out, r)
			}
		}
	}
	return out, err
}

// serves reports whether this process serves the network of a currency.
func (c ceilings) serves(currency string) bool {
	cur, err := c.a.cfg.Registry.Currency(currency)
	if err == nil {
		_, err = c.a.network(cur.Network)
	}
	return err == nil
}

// rule is an entry of a policy; ok is false where this process does not serve its network.
func (c ceilings) rule(tenant string, p *policy.Cold) (r house.Cold, ok bool, err error) {
	currency, err := c.a.cfg.Registry.Currency(p.Currency)
	if err != nil {
		return r, false, err
	}
	if _, err := c.a.network(currency.Network); err != nil {
		return r, false, nil //nolint:nilerr // another process serves it
	}
	r = house.Cold{Tenant: tenant, Currency: p.Currency, Address: p.Address, Memo: p.Memo}
	if r.Ceiling, err = currency.Units(p.Ceiling, ledger.Down); err == nil {
		r.Target, err = currency.Units(p.Target, ledger.Down)
	}
	return r, err == nil, err
}

func (c ceilings) Of(ctx context.Context, tenant, currency string) (house.Cold, bool, error) {
	v, err := c.a.Policies.Get(ctx, tenant)
	if err != nil {
		return house.Cold{}, false, err
	}
	for i := range v.Cold {
		if v.Cold[i].Currency == currency {
			return c.rule(tenant, &v.Cold[i])
		}
	}
	return house.Cold{}, false, nil
}

func (c ceilings) Hot(ctx context.Context, tenant, currency string) (ledger.Amount, error) {
	return c.a.Treasury.HotCoins(ctx, tenant, currency)
}

func (c ceilings) Short(ctx context.Context, tenant, currency string) (sum ledger.Amount, since time.Time, err error) {
	rows, err := c.a.cfg.Store.Find(ctx, storage.Query{
		Table: withdrawal.Withdrawals.Table, Partition: storage.Tenant(tenant), Limit: 1000, // more than the greatest need is no better to know
		Where: []storage.Cond{
			{Column: "currency", Op: storage.Eq, Value: currency},
			{Column: "status", Op: storage.In, Value: []withdrawal.Status{withdrawal.Pending, withdrawal.Processing}},
			{Column: "waiting", Op: storage.Eq, Value: string(outgoing.ReasonHotBalance)},
		},
		Order: []storage.Order{{Column: "waiting_since"}},
	})
	for i, r := range rows {
		w := withdrawal.Withdrawals.Value(r)
		if i == 0 {
			since = w.WaitingSince
		}
		if err == nil {
			sum, err = sum.Add(w.Requested)
		}
	}
	return sum, since, err
}

func (c ceilings) NeedRefill(ctx context.Context, tenant, currency string, need ledger.Amount, since time.Time) error {
	return c.a.Treasury.NeedRefill(ctx, tenant, currency, need, since)
}

func (c ceilings) Propose(ctx context.Context, tenant, currency string, lack ledger.Amount, needed bool) {
	c.a.proposeRefill(ctx, tenant, currency, lack, needed)
}

func (c ceilings) Dear(ctx context.Context, currency string, amount, cost ledger.Amount) (bool, error) {
	return c.a.Treasury.Dear(ctx, currency, amount, cost)
}

// coldWallets lists the cold addresses of a tenant's policy, and those that the host lists.
func (a *App) coldWallets(hosts func(ctx context.Context, tenant string) ([]treasury.ColdWallet, error)) func(ctx context.Context, tenant string) ([]treasury.ColdWallet, error) {
	return func(ctx context.Context, tenant string) (out []treasury.ColdWallet, err error) {
		if hosts != nil {
			if out, err = hosts(ctx, tenant); err != nil {
				return nil, err
			}
		}
		v, err := a.Policies.Get(ctx, tenant)
		for i := range v.Cold {
			if c, err := a.cfg.Registry.Currency(v.Cold[i].Currency); err == nil {
				out = append(out, treasury.ColdWallet{Name: string(c.Network) + " cold", Network: c.Network, Address: chain.Address(v.Cold[i].Address)})
			}
		}
		return out, err
	}
}

// HeldTopUps lists money that came to hot addresses of a tenant while coins of it lie at cold
// addresses, and of which nobody can say yet whether it came back from there: by id, behind one
// ("" = from the first). It is in suspense until ResolveTopUp.
func (o *Operate) HeldTopUps(ctx context.Context, tenant, behind string, limit int) ([]treasury.Apart, error) {
	return o.a.Treasury.Apart(ctx, tenant, behind, limit)
}

// ResolveTopUp books money of HeldTopUps as what a person says it is: a refill from cold, or the
// operator's own. It returns the amount in units, and the id of the record, "" for a dry run.
// Errors are those of Treasury.ResolveApart.
func (o *Operate) ResolveTopUp(ctx context.Context, tenant, id string, is treasury.ApartIs, c Call) (ledger.Amount, string, error) {
	if err := c.check(); err != nil {
		return 0, "", err
	}
	n, _, _ := strings.Cut(id, "/")
	by := o.recorded(ctx, storage.Tenant(tenant), outgoing.OpResolveTopUp, chain.Network(n), tenant, id, c)
	was, err := o.a.Treasury.ResolveApart(ctx, tenant, id, is, c.DryRun, by)
	if err != nil || c.DryRun {
		return was.Amount, "", err
	}
	return was.Amount, o.done(ctx, by), nil
}

// BookRefillCost books what a network took for a transaction that cold coins paid for, as for a
// refill: fees/network −, chain/<network> +, and so much less lies at the cold address. tx is its
// hash; asked again for the same it does nothing. cost is in units of the network's gas currency.
// It returns the id of the record, "" where it has made none. Errors are those of Treasury.RefillCost.
func (o *Operate) BookRefillCost(ctx context.Context, tenant string, n chain.Network, tx string, cost ledger.Amount, c Call) (string, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	by := o.recorded(ctx, storage.Tenant(tenant), outgoing.OpRefillCost, n, tenant, tx, c)
	made, err := o.a.Treasury.RefillCost(ctx, tenant, n, tx, cost, c.DryRun, by)
	if err != nil || !made {
		return "", err
	}
	return o.done(ctx, by), nil
}
