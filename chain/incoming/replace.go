package incoming

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// ReplaceHot gives a tenant another hot address in the place of old, and returns it. old is
// watched for ever, and its Use is UseRetired from then on. The two move in one Change, with what
// by returns: of two calls for one address one makes the replacement, and the other returns what
// is the hot address by then; made is false. Without by everything is checked and nothing is
// done. The error wraps ErrNotOurs where old is not and was not the tenant's hot address, and
// errors.ErrUnsupported where the addresses of a tenant share an account.
func (p *Pool) ReplaceHot(ctx context.Context, network chain.Network, tenant string, old chain.Address,
	by func(now chain.Address) ([]storage.Row, []storage.Event, error),
) (now chain.Derived, made bool, err error) {
	if p.cfg.Shared[network] != nil {
		return now, false, fmt.Errorf("incoming: the addresses of %s share one account: %w", network, errors.ErrUnsupported)
	}
	part := storage.Network(string(network))
	for range maxTries {
		was, row, ok, err := Addresses.One(ctx, p.cfg.Store, part, string(old))
		switch {
		case err != nil:
			return now, false, err
		case !ok || was.Tenant != tenant || !was.Use.hot():
			return now, false, fmt.Errorf("%w: %s on %s is no hot address of the tenant's", ErrNotOurs, old, network)
		case was.Use == UseRetired:
			now, err = p.Hot(ctx, network, tenant)
			return now, false, err
		case by == nil:
			return now, false, nil
		}
		rows, err := p.free(ctx, network, 1)
		if err != nil {
			return now, false, err
		}
		if len(rows) == 0 {
			continue
		}
		now = derived(rows[0])
		next := Addresses.Value(rows[0])
		next.Tenant, next.Use = tenant, UseHot
		was.Use, was.WatchUntil = UseRetired, time.Time{}
		c := storage.Change{Partition: part, Put: []storage.Row{
			Addresses.Row(row.ID, row.Version, row.Due, was),
			Addresses.Row(rows[0].ID, rows[0].Version, time.Time{}, next),
		}}
		c.ID = changeID("replace", c.Put)
		with, tell, err := by(now.Address)
		if err != nil {
			return chain.Derived{}, false, err
		}
		c.Put, c.Tell = append(c.Put, with...), tell
		if err := storage.CommitOne(ctx, p.cfg.Store, c); !errors.Is(err, storage.ErrConflict) {
			return now, err == nil, err
		}
	}
	return chain.Derived{}, false, fmt.Errorf("%w: on %s", ErrNoAddress, network)
}
