package cryptopay

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// abilityReplaceHot says that every process knows hot addresses that were replaced.
const abilityReplaceHot outgoing.Ability = "replaced_hot_addresses"

// ReplaceHot gives a tenant another hot address on a network of accounts in the place of old, as
// App.Hot names it: one that a token's issuer has blocked, or whose key is known to others. What is
// not signed yet is paid from the new address. What was signed goes on. Sweeps bring what old holds,
// and whatever comes to it later, to the new address, where that is worth what it costs:
// treasury.Waiting lists what stays, and why. old is watched for ever, and what comes to it is the
// operator's top-up.
//
// It returns the new address, and the id of the record; on a dry run none. Asked again for the same
// old it returns the present hot address and no record. Errors wrap outgoing.ErrHelp where old is not
// and was not the tenant's hot address, or where none can be replaced on the network, and ErrUpgrade.
func (o *Operate) ReplaceHot(ctx context.Context, n chain.Network, tenant string, old chain.Address, c Call) (now chain.Address, id string, err error) {
	if err := c.check(); err != nil {
		return "", "", err
	}
	if err := o.tenant(ctx, tenant); err != nil {
		return "", "", err
	}
	net, err := o.a.network(n)
	if err != nil {
		return "", "", err
	}
	if err := o.replaceable(net); err != nil {
		return "", "", err
	}
	on, err := o.a.able(ctx, abilityReplaceHot)
	if err == nil && !on {
		err = ErrUpgrade
	}
	if err != nil {
		return "", "", err
	}
	if err := o.a.reading(ctx, n); err != nil {
		return "", "", err
	}
	if old, _, _, err = o.directed(ctx, n, old); err != nil {
		return "", "", err
	}
	by := o.recorded(ctx, storage.Network(string(n)), outgoing.OpReplaceHot, n, tenant, string(old), c)
	var with func(now chain.Address) ([]storage.Row, []storage.Event, error)
	if by != nil {
		with = func(now chain.Address) ([]storage.Row, []storage.Event, error) {
			rows, tell, err := by.Rows(old, now)
			if err != nil {
				return nil, nil, err
			}
			row, err := o.a.Treasury.Replaced(ctx, n, old)
			return append(rows, row), tell, err
		}
	}
	d, made, err := o.a.Addresses.ReplaceHot(ctx, n, tenant, old, with)
	if errors.Is(err, incoming.ErrNotOurs) {
		err = fmt.Errorf("%w: %s is no hot address of the tenant's on %s", outgoing.ErrHelp, old, n)
	}
	if err == nil && !made && by != nil {
		made, err = o.emptyRetired(ctx, n, old, d.Address, by)
	}
	if err != nil || !made {
		return d.Address, "", err
	}
	return d.Address, o.done(ctx, by), nil
}

// emptyRetired has an address emptied that is a replaced one by an edit of the database alone.
func (o *Operate) emptyRetired(ctx context.Context, n chain.Network, old, now chain.Address, by *outgoing.Recorded) (made bool, err error) {
	replaced, err := o.a.Treasury.WasReplaced(ctx, n, string(old))
	if err != nil || replaced[string(old)] {
		return false, err
	}
	rows, tell, err := by.Rows(old, now)
	if err != nil {
		return false, err
	}
	row, err := o.a.Treasury.Replaced(ctx, n, old)
	if err != nil {
		return false, err
	}
	err = storage.CommitOne(ctx, o.a.cfg.Store, storage.Change{
		ID: row.ID + "/retired", Partition: storage.Network(string(n)), Put: append(rows, row), Tell: tell,
	})
	if errors.Is(err, storage.ErrConflict) { // another call has done it
		return false, nil
	}
	return err == nil, err
}

// replaceable says why no hot address of a network can be replaced.
func (o *Operate) replaceable(n *network) error {
	if _, shared := n.client.(chain.Multiplexer); shared {
		return fmt.Errorf("%w: on %s all addresses of a tenant are of one account, so another hot address would be of the same key: "+
			"take its coins out to a cold address or by a payment of the house's, and halt the tenant there", outgoing.ErrHelp, n.name)
	}
	accounts, err := o.a.accounts(n.name)
	if err != nil {
		return err
	}
	if !accounts {
		return fmt.Errorf("%w: on %s a payout spends coins of all of a tenant's addresses, and change never goes to the hot one: "+
			"take its coins out to a cold address or by a payment of the house's, and halt the tenant there", outgoing.ErrHelp, n.name)
	}
	payer, able := n.client.(chain.Sponsored)
	for _, c := range o.a.cfg.Registry.On(n.name) {
		if able && payer.Sponsored(chain.Intent{Purpose: chain.ForSweep, Network: n.name, Currency: c.Code}) {
			return fmt.Errorf("%w: on %s the hot address pays the network for sweeps of other addresses, and cannot be replaced: "+
				"take its coins out to a cold address or by a payment of the house's, and halt the tenant there", outgoing.ErrHelp, n.name)
		}
	}
	return nil
}
