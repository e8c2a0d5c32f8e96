package treasury

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// keep leaves a deposit where it is and makes it spendable: an output needs no
// forwarding, nor does what came to an account that pays out, too.
func (t *Treasury) keep(ctx context.Context, s incoming.Sighting) error {
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		p := storage.Network(s.Network)
		cur, row, ok, err := incoming.Sightings.One(ctx, t.cfg.Store, p, s.Key())
		if err != nil || !ok || cur.Forward != incoming.ForwardNone || cur.State != incoming.Final {
			return storage.Change{}, err
		}
		owner, ok, err := t.cfg.Addresses.Owner(ctx, chain.Network(s.Network), chain.Address(s.Address))
		if err != nil || !ok {
			return storage.Change{}, errors.Join(err, fmt.Errorf("treasury: %s is no address of ours", s.Address))
		}
		cur.Forward = incoming.NotNeeded
		c := storage.Change{
			ID: fmt.Sprintf("keep/%s/%d", s.Key(), row.Version), Partition: p,
			Put: []storage.Row{incoming.Sightings.Row(s.Key(), row.Version, t.cfg.Now(), cur)},
		}
		if _, shared := t.shared(chain.Network(s.Network)); shared || cur.Currency == "" || cur.Amount <= 0 {
			return c, nil
		}
		coin, known, ok, err := outgoing.Coins.One(ctx, t.cfg.Store, p, cur.Key())
		switch {
		case err != nil:
			return c, err
		case !ok:
			c.Put = append(c.Put, outgoing.CoinRow(cur.Tenant, chain.Coin{
				Outpoint: cur.Key(), Address: chain.Address(cur.Address), Key: chain.KeyRef(owner.Key), Amount: cur.Amount,
			}))
		case coin.State == outgoing.CoinGone:
			err = t.found(ctx, known, &c)
		}
		return c, err
	})
}

// found gives a lost output that is mined again back to whom it was taken from.
func (t *Treasury) found(ctx context.Context, row storage.Row, c *storage.Change) error {
	back, guard, err := outgoing.Found(ctx, t.cfg.Store, c.Partition, row)
	if err != nil {
		return err
	}
	c.Require, c.Put = append(c.Require, guard), append(c.Put, back)
	return nil
}

// HandleInternal is the incoming handler for what attempts of ours moved to
// addresses of ours, which their own outcomes tell of: only change that a deep
// reorg takes away, or brings back, is news.
func (t *Treasury) HandleInternal(ctx context.Context, f incoming.Fact) error {
	s := f.Sighting
	info, err := t.cfg.Registry.Network(s.Network)
	if err != nil || info.Family != chain.UTXOFamily {
		return err
	}
	if !f.Final.Valid() {
		return t.Lost(ctx, s)
	}
	p := storage.Network(s.Network)
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		coin, row, ok, err := outgoing.Coins.One(ctx, t.cfg.Store, p, s.Key())
		if err != nil || !ok || coin.State != outgoing.CoinGone {
			return storage.Change{}, err
		}
		now, seen, _, err := incoming.Sightings.One(ctx, t.cfg.Store, p, s.Key())
		if err != nil || now.State != incoming.Final {
			return storage.Change{}, err
		}
		c := storage.Change{
			ID: fmt.Sprintf("found/%s/%d", row.ID, row.Version), Partition: p,
			Require: []storage.Guard{incoming.Sightings.Guard(seen.ID, seen.Version)},
		}
		err = t.found(ctx, row, &c)
		return c, err
	})
}

// Source says what the transaction that made an output spends, nil where it was
// never seen: whoever spends that output asks by it whether it can come back.
func (t *Treasury) Source(ctx context.Context, n chain.Network, outpoint string) ([]string, error) {
	s, _, _, err := incoming.Sightings.One(ctx, t.cfg.Store, storage.Network(string(n)), outpoint)
	return s.Spends, err
}

// Lost takes an output that a deep reorg took away out of what can be spent,
// until it is mined again. What is being paid with it hears of it, too.
func (t *Treasury) Lost(ctx context.Context, s incoming.Sighting) error {
	info, err := t.cfg.Registry.Network(s.Network)
	if err != nil || info.Family != chain.UTXOFamily || s.State != incoming.Gone {
		return err
	}
	p := storage.Network(s.Network)
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		gone, guard, ok, err := outgoing.Lost(ctx, t.cfg.Store, p, s.Key())
		if err != nil || !ok {
			return storage.Change{}, err
		}
		now, seen, _, err := incoming.Sightings.One(ctx, t.cfg.Store, p, s.Key())
		if err != nil || now.State != incoming.Gone {
			return storage.Change{}, err // it is back, and this was told late
		}
		return storage.Change{
			ID: fmt.Sprintf("lost/%s/%d", gone.ID, gone.Version), Partition: p,
			Require: []storage.Guard{incoming.Sightings.Guard(seen.ID, seen.Version), guard},
			Put:     []storage.Row{gone},
		}, nil
	})
}
