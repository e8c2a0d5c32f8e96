package treasury

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// GasFloat is how much of a tenant's equity in one gas currency is set aside
// for what is in flight. Every reservation and every cost rewrites the row, so
// that two of them never decide on the same equity.
type GasFloat struct {
	Asset    string        `db:"asset"`
	Reserved ledger.Amount `db:"reserved"`
	Count    int64         `db:"in_flight"`
}

// GasFloats is in tenant partitions, by asset code.
var GasFloats = storage.NewTable[GasFloat]("gas_floats")

// Reservation is what one intent may cost at the most.
type Reservation struct {
	Asset  string        `db:"asset"`
	Amount ledger.Amount `db:"amount"`
	Since  time.Time     `db:"since"`
	Open   bool          `db:"open"`
	// Counted is what was taken of Config.DailyCost, on the day of Since; 0 where the
	// intent does not count, or an earlier version made the row.
	Counted ledger.Amount `db:"counted"`
}

// Reservations is in tenant partitions, by intent id.
var Reservations = storage.NewTable[Reservation]("gas_reservations")

// TopUp is the operator's own deposit to a hot address.
type TopUp struct {
	Tx       string        `db:"tx"`
	Currency string        `db:"currency"`
	Amount   ledger.Amount `db:"amount"`
}

// TopUps is in tenant partitions, by the id of the posting.
var TopUps = storage.NewTable[TopUp]("topups")

// ErrGasShort: the operator's own coins do not cover what sending may cost.
var ErrGasShort = errors.New("treasury: not enough of the operator's own coins for the network fee, top the hot address up")

// reserve sets the most that the intent may cost aside and returns it. A
// reservation that is there already is returned as it is, also one that has
// ended: its intent has, too, and whoever submits it again is only late. A
// second one would stay for ever.
func (t *Treasury) reserve(ctx context.Context, in chain.Intent) (ledger.Amount, error) {
	p := storage.Tenant(in.Tenant)
	if r, _, ok, err := Reservations.One(ctx, t.cfg.Store, p, in.ID); err != nil || ok {
		return r.Amount, err
	}
	gas, err := t.cfg.Registry.Gas(in.Network)
	if err != nil {
		return 0, err
	}
	most, err := t.most(ctx, in)
	if err != nil {
		return 0, err
	}
	err = storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		since := t.cfg.Now() // says on which day it counts, also when it is given back
		r := Reservation{Asset: gas.Code, Amount: most, Since: since, Open: true}
		c, err := t.decideReserve(ctx, p, in.ID, r)
		if err != nil || c.ID == "" {
			return c, err
		}
		c.Level, err = t.dayLimit(ctx, in, gas, most, since)
		for _, l := range c.Level {
			r.Counted = ledger.Amount(l.Delta)
		}
		c.Put = append(c.Put, Reservations.Row(in.ID, 0, time.Time{}, r))
		return c, err
	})
	if full := (*storage.LevelError)(nil); errors.As(err, &full) {
		return 0, &WaitError{Reason: WaitDailyCap, Err: fmt.Errorf("%w: %w", ErrDailyCost, err)}
	}
	if err != nil {
		return 0, err
	}
	r, _, _, err := Reservations.One(ctx, t.cfg.Store, p, in.ID)
	return r.Amount, err
}

// ErrDailyCost: forwarding has cost Config.DailyCost already today.
var ErrDailyCost = errors.New("treasury: the day's limit on the cost of forwarding is used up")

// counted reports whether an intent counts towards Config.DailyCost. A payout has bounds
// of its own, and a token's sweep is paid for by the gas transfers to its address, which
// count with what they bring.
func (t *Treasury) counted(in chain.Intent) bool {
	switch in.Purpose {
	case chain.ForGas:
		return true
	case chain.ForSweep:
		gas, err := t.cfg.Registry.Gas(in.Network)
		return err == nil && in.Currency == gas.Code || t.sponsored(in)
	}
	return false
}

// dayLimit counts what a sweep or a gas transfer may cost towards Config.DailyCost.
func (t *Treasury) dayLimit(ctx context.Context, in chain.Intent, gas *chain.Currency, most ledger.Amount, at time.Time) ([]storage.Level, error) {
	if !t.counted(in) {
		return nil, nil
	}
	if in.Purpose == chain.ForGas {
		var err error
		if most, err = most.Add(in.Amount); err != nil {
			return nil, err
		}
	}
	price, err := t.price(ctx, gas.Token)
	if err != nil {
		return nil, &WaitError{Reason: WaitNoPrice, Err: err}
	}
	limit, err := ledger.Quo(t.cfg.DailyCost, price, gas.Scale, ledger.Down)
	if err != nil {
		return nil, fmt.Errorf("treasury: DailyCost in %s: %w", gas.Code, err)
	}
	return []storage.Level{{Name: dayName(gas.Code, at), Delta: int64(most), Max: int64(limit)}}, nil
}

func dayName(gas string, at time.Time) string {
	return "forwarding/" + gas + "/" + at.UTC().Format(time.DateOnly)
}

// uncounted gives back what the bound of an intent was above its cost, and of a gas
// transfer its Amount, which is 0 where that has landed: never more than was counted.
func uncounted(in chain.Intent, r Reservation, cost ledger.Amount) []storage.Level {
	rest := r.Amount - cost
	if in.Purpose == chain.ForGas {
		rest += in.Amount
	}
	if rest = min(rest, r.Counted); rest <= 0 {
		return nil
	}
	return []storage.Level{{Name: dayName(r.Asset, r.Since), Delta: -int64(rest), Max: math.MaxInt64}}
}

// most is what the intent may cost: its own bound, or an estimate's worst case
// with room for a replacement.
func (t *Treasury) most(ctx context.Context, in chain.Intent) (ledger.Amount, error) {
	if in.MaxCost > 0 {
		return in.MaxCost, nil
	}
	fee, err := t.cfg.Clients[in.Network].EstimateFee(ctx, in)
	if err != nil {
		reason := outgoing.ReasonNode
		if errors.Is(err, chain.ErrShort) {
			reason = outgoing.ReasonHotShort
		}
		return 0, &WaitError{Reason: reason, Err: err}
	}
	most, err := fee.Max.MulDiv(t.cfg.CostMargin, 1, ledger.Up)
	if err != nil {
		return 0, fmt.Errorf("treasury: network fee of %s: %w", in.ID, err)
	}
	return most, nil
}

// decideReserve sets a new reservation aside of the equity. The caller adds its row. The
// Change is empty where the intent has one.
func (t *Treasury) decideReserve(ctx context.Context, p storage.Partition, intent string, r Reservation) (storage.Change, error) {
	_, _, found, err := Reservations.One(ctx, t.cfg.Store, p, intent)
	if err != nil || found {
		return storage.Change{}, err
	}
	g, gasRow, _, err := GasFloats.One(ctx, t.cfg.Store, p, r.Asset)
	if err != nil {
		return storage.Change{}, err
	}
	equity, err := t.equity(ctx, p, ledger.Asset(r.Asset))
	if err != nil {
		return storage.Change{}, err
	}
	reserved, err := g.Reserved.Add(r.Amount)
	if err != nil || reserved > equity {
		return storage.Change{}, &WaitError{Reason: outgoing.ReasonGasShort, Err: ErrGasShort}
	}
	g.Asset, g.Reserved, g.Count = r.Asset, reserved, g.Count+1
	return storage.Change{
		ID: "reserve/" + intent + "/0", Partition: p,
		Put: []storage.Row{GasFloats.Row(r.Asset, gasRow.Version, time.Time{}, g)},
	}, nil
}

// equity is what the house owns of one asset. Receivables are left out on
// purpose: they are owed, not there, and an asset with one is halted.
func (t *Treasury) equity(ctx context.Context, p storage.Partition, asset ledger.Asset) (ledger.Amount, error) {
	balances, err := t.cfg.Store.Balances(ctx, p, ledger.FeesPlatform, ledger.FeesNetwork, ledger.Float, ledger.Adjustment)
	if err != nil {
		return 0, err
	}
	var sum ledger.Amount
	for _, b := range balances {
		if b.Asset != asset {
			continue
		}
		if sum, err = sum.Add(b.Posted); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

// cost posts what one landed transaction took, once, whatever becomes of its
// intent. The intent's reservation is given back only afterwards, so that the
// equity that others decide on is never overstated in between.
func (t *Treasury) cost(ctx context.Context, o outgoing.Outcome) error {
	gas, err := t.cfg.Registry.Gas(chain.Network(o.Network))
	if err != nil || o.CostTx == "" || o.Cost == 0 {
		return err
	}
	id := "cost/" + o.Network + "/" + o.CostTx
	return storage.CommitOne(ctx, t.cfg.Store, storage.Change{
		ID: id, Partition: storage.Tenant(o.Tenant),
		Post: []ledger.Tx{{ID: id, Kind: ledger.KindFee, Ref: o.Intent, At: t.cfg.Now(), Legs: []ledger.Leg{
			{Account: ledger.FeesNetwork, Asset: gas.Asset(), Delta: -o.Cost},
			{Account: ledger.Chain(o.Network), Asset: gas.Asset(), Delta: o.Cost},
		}}},
	})
}

// unreserve takes the reservation of an intent that was refused for good away as
// if it had never been. One that was taken over before keeps it, whatever is said now.
func (t *Treasury) unreserve(ctx context.Context, in chain.Intent) error {
	p := storage.Tenant(in.Tenant)
	v, _, taken, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(string(in.Network)), in.ID)
	if err != nil || taken && !v.Refused() {
		return err
	}
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		r, row, found, err := Reservations.One(ctx, t.cfg.Store, p, in.ID)
		if err != nil || !found || !r.Open {
			return storage.Change{}, err
		}
		float, err := t.freed(ctx, p, r)
		return storage.Change{
			ID: fmt.Sprintf("unreserve/%s/%d", in.ID, float.Version), Partition: p,
			Put: []storage.Row{float}, Drop: []storage.Row{row}, Level: uncounted(in, r, 0),
		}, err
	})
}

// freed is the row of the gas float without one reservation.
func (t *Treasury) freed(ctx context.Context, p storage.Partition, r Reservation) (storage.Row, error) {
	g, row, _, err := GasFloats.One(ctx, t.cfg.Store, p, r.Asset)
	if err != nil {
		return row, err
	}
	g.Reserved, err = g.Reserved.Sub(r.Amount)
	g.Count--
	return GasFloats.Row(r.Asset, row.Version, time.Time{}, g), err
}

// release ends an intent's reservation. What a child of it may still cost stays set
// aside in the child's name, unless that has ended.
func (t *Treasury) release(ctx context.Context, o outgoing.Outcome) error {
	p := storage.Tenant(o.Tenant)
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		r, row, found, err := Reservations.One(ctx, t.cfg.Store, p, o.Intent)
		if err != nil || found && !r.Open || !found && !outgoing.IsChild(o.Intent) {
			return storage.Change{}, err
		}
		c := storage.Change{ID: fmt.Sprintf("release/%s/%d", o.Intent, row.Version), Partition: p}
		if found {
			float, err := t.freed(ctx, p, r)
			if err != nil {
				return c, err
			}
			if err := t.bequeath(ctx, o, r, &float, &c); err != nil {
				return c, err
			}
			c.Put = append(c.Put, float)
			of := chain.Intent{Purpose: o.Purpose, Network: chain.Network(o.Network), Currency: o.Currency}
			if o.State != outgoing.Settled {
				v, _, _, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(o.Network), o.Intent)
				if err != nil {
					return c, err
				}
				of.Amount = v.Amount
			}
			c.Level = uncounted(of, r, o.Cost)
		}
		r.Open = false
		c.Put = append(c.Put, Reservations.Row(o.Intent, row.Version, time.Time{}, r)) // a child's says that it has ended
		return c, nil
	})
}

// bequeath sets what a child may cost aside, out of what its parent had.
func (t *Treasury) bequeath(ctx context.Context, o outgoing.Outcome, r Reservation, float *storage.Row, c *storage.Change) error {
	info, err := t.cfg.Registry.Network(o.Network)
	if err != nil || info.Family != chain.UTXOFamily || o.Purpose != chain.ForWithdrawal {
		return err
	}
	child := outgoing.ChildOf(o.Intent)
	in, _, born, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(o.Network), child)
	if err != nil || !born {
		return err
	}
	if _, _, ended, err := Reservations.One(ctx, t.cfg.Store, c.Partition, child); err != nil || ended {
		return err
	}
	r.Amount = in.MaxCost
	g := GasFloats.Value(*float)
	if g.Reserved, err = g.Reserved.Add(r.Amount); err != nil {
		return err
	}
	g.Count++
	*float = GasFloats.Row(float.ID, float.Version, time.Time{}, g)
	c.Put = append(c.Put, Reservations.Row(child, 0, time.Time{}, r))
	return nil
}
