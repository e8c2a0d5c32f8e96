package incoming

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// multiplex makes addresses of the tenant's account, one per number. The number is
// the address's place in the directory, so that no two ever share one.
func (p *Pool) multiplex(ctx context.Context, network chain.Network, m chain.Multiplexer, tenant string, use Use, count int) ([]chain.Derived, error) {
	account, err := p.only(ctx, network, tenant, UseAccount)
	if err != nil {
		return nil, err
	}
	part := storage.Network(string(network))
	for range maxTries {
		seq, index, err := p.last(ctx, part)
		if err != nil {
			return nil, err
		}
		if seq > math.MaxUint32-int64(count) {
			return nil, fmt.Errorf("%w: the numbers of %s are used up", ErrNoAddress, network)
		}
		c := storage.Change{Partition: part, Level: onlyOne(use, tenant)}
		out := make([]chain.Derived, count)
		for i := range out {
			a, err := m.Multiplex(account.Address, uint32(seq)+uint32(i)) //nolint:gosec // checked above
			if err != nil {
				return nil, err
			}
			// The next account is derived behind this row as if it were not there.
			row := AddressRow{Seq: seq + int64(i), Index: index - 1, Key: string(account.Key), Tenant: tenant, Use: use, Created: p.cfg.Now()}
			c.Put = append(c.Put, Addresses.Row(string(a), 0, time.Time{}, row))
			out[i] = chain.Derived{Address: a, Index: account.Index, Key: account.Key}
		}
		// Not named by what it holds: two processes that take the same numbers for one
		// tenant in the same moment hold the same, and one of them must lose.
		c.ID = "multiplex/" + p.cfg.NewID()
		err = storage.CommitOne(ctx, p.cfg.Store, c)
		if raced(err) && p.moved(ctx, part, seq) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return out, nil
	}
	return nil, fmt.Errorf("%w: others kept taking numbers of %s", ErrNoAddress, network)
}
