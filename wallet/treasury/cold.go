package treasury

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// HotCoins is what a tenant can pay from in a currency: what its hot address holds, as the node
// says; where coins are outputs the sum of the largest that one transaction can spend and
// nothing has reserved. In units, rounded down. The error wraps chain.ErrCurrency where the
// tenants share an account: nobody can say whose its coins are.
func (t *Treasury) HotCoins(ctx context.Context, tenant, currency string) (ledger.Amount, error) {
	c, err := t.cfg.Registry.Currency(currency)
	if err != nil {
		return 0, err
	}
	info, err := t.cfg.Registry.Network(string(c.Network))
	if err != nil {
		return 0, err
	}
	if _, shared := t.shared(c.Network); shared {
		return 0, chain.ErrCurrency
	}
	if info.Family == chain.UTXOFamily {
		return t.freeOutputs(ctx, tenant, c.Network)
	}
	hot, err := t.cfg.Addresses.Hot(ctx, c.Network, tenant)
	if err != nil {
		return 0, err
	}
	held, err := t.Held(ctx, c.Network, currency, hot.Address)
	if err != nil {
		return 0, err
	}
	return c.Units(held, ledger.Down)
}

// spentAtOnce is how many coins one move to cold spends at the most.
const spentAtOnce = 100

func (t *Treasury) freeOutputs(ctx context.Context, tenant string, n chain.Network) (sum ledger.Amount, err error) {
	rows, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: outgoing.Coins.Table, Partition: storage.Network(string(n)), Limit: spentAtOnce,
		Where: []storage.Cond{{Column: "tenant", Op: storage.Eq, Value: tenant}, {Column: "state", Op: storage.Eq, Value: outgoing.CoinFree}},
		Order: []storage.Order{{Column: "amount", Desc: true}},
	})
	for _, r := range rows {
		if err == nil {
			sum, err = sum.Add(outgoing.Coins.Value(r).Amount)
		}
	}
	return sum, err
}

// Dear says whether a cost, in units of the gas currency, is more than one part in
// Config.MinSweep of an amount, at the present prices.
func (t *Treasury) Dear(ctx context.Context, currency string, amount, cost ledger.Amount) (bool, error) {
	worth, err := t.Worth(ctx, currency, amount)
	return err == nil && worth/ledger.Amount(t.cfg.MinSweep) < cost, err
}

// Worth is what an amount of a currency is worth in units of its network's gas currency, rounded down.
func (t *Treasury) Worth(ctx context.Context, currency string, amount ledger.Amount) (ledger.Amount, error) {
	c, err := t.cfg.Registry.Currency(currency)
	if err != nil {
		return 0, err
	}
	gas, err := t.cfg.Registry.Gas(c.Network)
	if err != nil {
		return 0, err
	}
	return t.inGas(ctx, c, gas, amount)
}
