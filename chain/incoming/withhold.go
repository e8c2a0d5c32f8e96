package incoming

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// withholdAtOnce is how many addresses one Change of Withhold takes.
const withholdAtOnce = 100

// Shown is the place in the directory of the last address that was given to anybody; 0 = none
// was.
func (p *Pool) Shown(ctx context.Context, network chain.Network) (seq int64, err error) {
	rows, err := p.cfg.Store.Find(ctx, storage.Query{
		Table: Addresses.Table, Partition: storage.Network(string(network)), Limit: 1,
		Where: []storage.Cond{{Column: "tenant", Op: storage.Gt, Value: ""}}, Order: []storage.Order{{Column: "seq", Desc: true}},
	})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return Addresses.Value(rows[0]).Seq, nil
}

// Withhold gives the free addresses up to a place in the directory, and perhaps some more, to
// a tenant, so that nobody else is ever shown one: after a restore from an older backup they
// may have been shown. What comes to them goes to the tenant's suspense. It returns how many
// those were. It may be ended at any moment and called again.
func (p *Pool) Withhold(ctx context.Context, network chain.Network, tenant string, upTo int64) (n int, err error) {
	if tenant == "" {
		return 0, errors.New("incoming: addresses are withheld for a tenant")
	}
	part := storage.Network(string(network))
	for {
		next, _, err := p.last(ctx, part)
		if err != nil {
			return n, err
		}
		free, err := p.cfg.Store.Count(ctx, storage.Query{Table: Addresses.Table, Partition: part, Where: []storage.Cond{
			{Column: "tenant", Op: storage.Eq, Value: ""}, {Column: "seq", Op: storage.Le, Value: upTo},
		}})
		missing := max(upTo+1-next, 0) + free
		if err != nil || missing == 0 {
			return n, err
		}
		got, err := p.take(ctx, network, tenant, UsePayment, int(min(missing, withholdAtOnce)))
		if err != nil {
			return n, fmt.Errorf("incoming: withholding addresses of %s: %w", network, err)
		}
		n += len(got)
	}
}
