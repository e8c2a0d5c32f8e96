package cryptopay

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
)

// reconciling is how the books are held against one network.
func (a *App) reconciling(n *network) reconcile.Config {
	c := a.cfg.Reconcile
	c.Store, c.Client, c.Node, c.Registry, c.Now, c.Log, c.Audit = a.cfg.Store, n.client, n.in.Status, a.cfg.Registry, a.cfg.Clock.Now, a.cfg.Log, a.audit
	notify := c.Notify
	c.Notify = func(ctx context.Context, d reconcile.Difference) {
		if d.Ended == "" {
			a.record.alert(BooksDiffer)
		}
		if notify != nil {
			notify(ctx, d)
		}
	}
	return c
}

// outcome hands what became of an order to the treasury, and has what the order left looked at
// once nothing of it moves any more.
func (a *App) outcome(ctx context.Context, n *network, o outgoing.Outcome) error {
	if err := a.Treasury.HandleOutcome(ctx, o); err != nil {
		return err
	}
	if o.State != outgoing.Final && (o.State != outgoing.Failed || o.CostTx == "") {
		return nil
	}
	n.books.Touched(o.Tenant, o.Intent)
	return nil
}
