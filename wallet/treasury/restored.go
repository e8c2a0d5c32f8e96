package treasury

import (
	"context"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// After a restore from an older backup the chain has transactions of our keys that the store
// knows nothing of.

// BookCost posts what the network took for a landed transaction of ours, once: that of
// Outcome.CostTx.
func (t *Treasury) BookCost(ctx context.Context, o outgoing.Outcome) error { return t.cost(ctx, o) }

// Swept is the record of a sweep that a transaction has made which the store knew nothing
// of: deposits of its address are seen to be forwarded by it.
func (t *Treasury) Swept(tenant string, n chain.Network, from chain.Address, key, currency, tx string, at time.Time) storage.Row {
	return Sweeps.Row("found/"+tx+"/"+currency, 0, time.Time{}, Sweep{
		Tenant: tenant, Network: string(n), Address: string(from), Key: key, Currency: currency, State: SweepDone, Tx: tx, Created: at,
	})
}
