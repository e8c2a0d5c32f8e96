package outgoing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// drawCoins takes free coins of the tenant, largest first, until the
// transaction can be built. A replacement has its coins already.
func (n *Network) drawCoins(ctx context.Context, j *job, d *draft, s *step) error {
	if len(d.coins) > 0 {
		return n.build(ctx, d)
	}
	free, err := n.freeCoins(ctx, &d.intent)
	if err != nil {
		return err
	}
	if d.change, err = n.ChangeAddress(ctx, d.intent.Tenant); err != nil {
		return fmt.Errorf("%w: no change address: %w", chain.ErrNode, err)
	}
	take, err := enough(d, free)
	if err != nil {
		return err
	}
	for ; ; take++ {
		d.coins = nil
		for _, r := range free[:take] {
			c := Coins.Value(r)
			d.coins = append(d.coins, chain.Coin{Outpoint: r.ID, Address: c.Address, Key: c.Key, Amount: c.Amount})
		}
		if err = n.build(ctx, d); err == nil {
			break
		}
		if !errors.Is(err, chain.ErrShort) || take >= len(free) {
			return err
		}
	}
	d.first = true
	for _, r := range free[:take] {
		c := Coins.Value(r)
		c.State, c.Intent = CoinReserved, j.id
		s.with = append(s.with,
			Coins.Row(r.ID, r.Version, time.Time{}, c),
			Reservations.Row(r.ID, 0, time.Time{}, Reservation{Intent: j.id, At: n.Now()}))
	}
	return nil
}

// freeCoins reads what may be spent, largest first, then by outpoint: the same
// choice for the same coins everywhere.
func (n *Network) freeCoins(ctx context.Context, in *chain.Intent) ([]storage.Row, error) {
	q := storage.Query{
		Table: Coins.Table, Partition: n.part, Limit: n.MaxInputs,
		Where: []storage.Cond{
			{Column: "tenant", Op: storage.Eq, Value: in.Tenant},
			{Column: "state", Op: storage.Eq, Value: CoinFree},
		},
		Order: []storage.Order{{Column: "amount", Desc: true}},
	}
	if in.From != "" {
		q.Where = append(q.Where, storage.Cond{Column: "address", Op: storage.Eq, Value: in.From})
	}
	return n.Store.Find(ctx, q)
}

// enough says with how many of the free coins to try first, at least one.
func enough(d *draft, free []storage.Row) (int, error) {
	need, err := d.intent.Amount.Add(d.fee.Cost)
	if err != nil {
		return 0, err
	}
	var sum ledger.Amount
	for i, r := range free {
		if sum, err = sum.Add(Coins.Value(r).Amount); err != nil {
			return 0, err
		}
		if sum >= need && !d.intent.All {
			return i + 1, nil
		}
	}
	if len(free) == 0 || sum < need {
		return 0, fmt.Errorf("%w: coins for %d of %d", chain.ErrShort, sum, need)
	}
	return len(free), nil
}

// giveBack adds to a step what frees the reservations that a plan made for
// itself. Nothing of it was stored, so nothing of it was ever sent.
func (n *Network) giveBack(ctx context.Context, p *plan, s *step) error {
	if !p.First {
		return nil
	}
	var bound []string
	if p.Nonce >= 0 {
		from := p.Intent.From
		row, stored, ok, err := Nonces.One(ctx, n.Store, n.part, string(from))
		if err != nil {
			return err
		}
		if ok && row.Holder == p.Intent.ID {
			row.Holder = ""
			s.with = append(s.with, Nonces.Row(string(from), stored.Version, time.Time{}, row))
		}
		bound = append(bound, Slot(from, p.Nonce))
	}
	for _, c := range p.Coins {
		bound = append(bound, c.Outpoint)
	}
	if err := n.unbind(ctx, bound, s); err != nil {
		return err
	}
	return n.moveCoins(ctx, bound, CoinFree, p.Intent.ID, s)
}

// unbind drops reservations.
func (n *Network) unbind(ctx context.Context, ids []string, s *step) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := n.Store.Rows(ctx, Reservations.Table, n.part, ids...)
	if err != nil {
		return err
	}
	for _, r := range rows {
		s.drop = append(s.drop, storage.Row{Table: Reservations.Table, ID: r.ID, Version: r.Version})
	}
	return nil
}

// moveCoins changes the state of coins that the intent holds.
func (n *Network) moveCoins(ctx context.Context, ids []string, to CoinState, intent string, s *step) error {
	if len(ids) == 0 || n.info.Family != chain.UTXOFamily {
		return nil
	}
	rows, err := n.Store.Rows(ctx, Coins.Table, n.part, ids...)
	if err != nil {
		return err
	}
	for _, r := range rows {
		c := Coins.Value(r)
		if c.Intent != intent {
			continue
		}
		if c.State = to; to == CoinFree {
			c.Intent = ""
		}
		s.with = append(s.with, Coins.Row(r.ID, r.Version, time.Time{}, c))
	}
	return nil
}
