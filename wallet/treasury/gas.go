package treasury

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
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
	// Lacking is the largest reservation that was refused since the equity last bore all; 0 =
	// it does. FundsChanged tells when it begins and ends.
	Lacking ledger.Amount `db:"lacking"`
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
	// Undone is how many landings of the intent forks had undone when it was last opened or ended.
	Undone int `db:"undone"`
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
	err = storage.Together(ctx, "reserve/"+in.Tenant+"/"+gas.Code, want{in, most}, func(ctx context.Context, all []want) []error {
		return t.setAside(ctx, p, gas, all)
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
// count with what they bring. A merge that a payout needs is bounded with that.
func (t *Treasury) counted(in chain.Intent) bool {
	switch in.Purpose {
	case chain.ForGas:
		return true
	case chain.ForCancel:
		return outgoing.ParseID(in.ID).Early()
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
	limit, err := t.dayMost(ctx, gas)
	if err != nil {
		return nil, err
	}
	return []storage.Level{{Name: dayName(gas.Code, at), Delta: int64(most), Max: limit}}, nil
}

// dayMost is Config.DailyCost at the present price, in units of a gas currency.
func (t *Treasury) dayMost(ctx context.Context, gas *chain.Currency) (int64, error) {
	price, err := t.price(ctx, gas.Token)
	if err != nil {
		return 0, &WaitError{Reason: WaitNoPrice, Err: err}
	}
	limit, err := ledger.Quo(t.cfg.DailyCost, price, gas.Scale, ledger.Down)
	if err != nil {
		return 0, fmt.Errorf("treasury: DailyCost in %s: %w", gas.Code, err)
	}
	return int64(limit), nil
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
			reason = outgoing.ReasonHotBalance
			if asks, err := t.Uncovered(ctx, in); err == nil && asks && in.Purpose == chain.ForWithdrawal {
				reason = outgoing.ReasonOperatorFunds
			}
		}
		return 0, &WaitError{Reason: reason, Err: err}
	}
	most, err := fee.Max.MulDiv(t.cfg.CostMargin, 1, ledger.Up)
	if err != nil {
		return 0, fmt.Errorf("treasury: network fee of %s: %w", in.ID, err)
	}
	return most, nil
}

// want is an intent, and the most that it may cost.
type want struct {
	in   chain.Intent
	most ledger.Amount
}

// setAside makes new reservations in one Change, in their order: what one takes, those
// after it cannot have. Each has an error of its own.
func (t *Treasury) setAside(ctx context.Context, p storage.Partition, gas *chain.Currency, all []want) []error {
	errs := make([]error, len(all))
	err := storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		since := t.cfg.Now() // says on which day it counts, also when it is given back
		clear(errs)
		return t.decideReserve(ctx, p, gas, all, since, errs)
	})
	if full := (*storage.LevelError)(nil); errors.As(err, &full) && len(all) > 1 {
		for i := range all { // the day does not bear all of them, and may bear some
			errs[i] = t.setAside(ctx, p, gas, all[i:i+1])[0]
		}
		return errs
	}
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
	return errs
}

// decideReserve sets new reservations aside of the equity. The Change is empty where none
// is: the intents have one, or errs says why not.
func (t *Treasury) decideReserve(ctx context.Context, p storage.Partition, gas *chain.Currency, all []want, since time.Time, errs []error) (storage.Change, error) {
	c := storage.Change{Partition: p}
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].in.ID
	}
	rows, err := t.cfg.Store.Rows(ctx, Reservations.Table, storage.Keys(p, ids...)...)
	if err != nil || len(rows) == len(all) {
		return c, err
	}
	found := map[string]bool{}
	for _, row := range rows {
		found[row.ID] = true
	}
	g, gasRow, _, err := GasFloats.One(ctx, t.cfg.Store, p, gas.Code)
	if err != nil {
		return c, err
	}
	equity, err := t.equity(ctx, p, gas.Asset())
	if err != nil {
		return c, err
	}
	free, err := equity.Sub(g.Reserved)
	if err != nil {
		return c, err
	}
	was := g
	if free >= was.Lacking {
		g.Lacking = 0
	}
	for i, w := range all {
		if found[w.in.ID] {
			continue
		}
		r := Reservation{Asset: gas.Code, Amount: w.most, Since: since, Open: true}
		reserved, err := g.Reserved.Add(r.Amount)
		if err != nil || reserved > equity {
			errs[i] = &WaitError{Reason: outgoing.ReasonOperatorFunds, Err: ErrGasShort}
			g.Lacking = max(g.Lacking, was.Lacking, w.most)
			continue
		}
		level, err := t.dayLimit(ctx, w.in, gas, w.most, since)
		if err == nil {
			err = addLevels(&c, level)
		}
		if errs[i] = err; err != nil {
			continue
		}
		for _, l := range level {
			r.Counted = ledger.Amount(l.Delta)
		}
		found[w.in.ID] = true
		g.Reserved, g.Count = reserved, g.Count+1
		c.Put = append(c.Put, Reservations.Row(w.in.ID, 0, time.Time{}, r))
	}
	if g == was {
		return storage.Change{}, nil
	}
	if err := t.tellFunds(&c, gas, all[0].in, was, g, free); err != nil {
		return c, err
	}
	g.Asset = gas.Code
	c.Put = append(c.Put, GasFloats.Row(gas.Code, gasRow.Version, time.Time{}, g))
	c.ID = foldedID("reserve", c.Put)
	return c, nil
}

// addLevels adds to counters that a Change moves.
func addLevels(c *storage.Change, levels []storage.Level) error {
	for _, l := range levels {
		at := slices.IndexFunc(c.Level, func(have storage.Level) bool { return have.Name == l.Name })
		if at < 0 {
			c.Level = append(c.Level, l)
			continue
		}
		sum, err := ledger.Amount(c.Level[at].Delta).Add(ledger.Amount(l.Delta))
		if err != nil {
			return err
		}
		c.Level[at].Delta, c.Level[at].Max = int64(sum), min(c.Level[at].Max, l.Max)
	}
	return nil
}

// foldedID is the id of a Change that writes these rows: that of the intent where it is of
// one alone.
func foldedID(op string, rows []storage.Row) string {
	of := slices.DeleteFunc(slices.Clone(rows), func(r storage.Row) bool { return r.Table != Reservations.Table })
	if len(of) == 1 {
		return fmt.Sprintf("%s/%s/%d", op, of[0].ID, of[0].Version)
	}
	sum := sha256.New()
	for _, r := range rows {
		_, _ = fmt.Fprintf(sum, "%s/%q/%d\n", r.Table.Name, r.ID, r.Version)
	}
	return fmt.Sprintf("%s/%x", op, sum.Sum(nil))
}

// equity is what the house owns of one asset and is not on its way out. Receivables are left out on
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
		if sum, err = sum.Add(b.Available()); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

// Spare is, in a store, what of the house's equity in an asset may be taken: what neither covers what is
// owed, nor is set aside for network fees, nor is on its way out. What is owed to the house
// is not there. It may be below 0. Whoever decides on it writes the row in the Change of the
// decision: then nobody else has decided on the same equity.
func Spare(ctx context.Context, s storage.Store, tenant string, asset ledger.Asset) (ledger.Amount, storage.Row, error) {
	p := storage.Tenant(tenant)
	g, row, _, err := GasFloats.One(ctx, s, p, string(asset)) // before the balances: what moves them moves it afterwards
	if err != nil {
		return 0, row, err
	}
	g.Asset = string(asset)
	row = GasFloats.Row(string(asset), row.Version, time.Time{}, g)
	balances, err := p.HouseBalances(ctx, s)
	if err != nil {
		return 0, row, err
	}
	sum := -g.Reserved
	for i := range balances {
		if b := &balances[i]; b.Asset == asset {
			if sum, err = sum.Add(b.Available()); err != nil {
				return 0, row, err
			}
		}
	}
	return sum, row, nil
}

// cost posts what one landed transaction took, once, whatever becomes of its
// intent. The intent's reservation is given back only afterwards, so that the
// equity that others decide on is never overstated in between. What landings cost
// that forks have undone is taken back: each is booked before that, as its own outcome may
// not have been told.
func (t *Treasury) cost(ctx context.Context, o outgoing.Outcome) error {
	landed := map[string]int{} // how often a transaction had landed
	for _, l := range o.Undone {
		n := landed[l.Tx]
		landed[l.Tx]++
		if err := t.postCost(ctx, o, costID(o.Network, l.Tx, n), l.Cost); err != nil {
			return err
		}
		if err := t.postCost(ctx, o, "undone/"+costID(o.Network, l.Tx, n), -l.Cost); err != nil {
			return err
		}
		if err := t.undoLoss(ctx, o, l, n); err != nil {
			return err
		}
	}
	if o.CostTx == "" {
		return nil
	}
	if err := t.postCost(ctx, o, costID(o.Network, o.CostTx, landed[o.CostTx]), o.Cost); err != nil {
		return err
	}
	return t.loss(ctx, o, landed[o.CostTx])
}

// costID is the id of the posting of what a transaction cost that had landed so often before.
func costID(network, tx string, before int) string { return landingID("cost/", network, tx, before) }

func landingID(what, network, tx string, before int) string {
	id := what + network + "/" + tx
	if before > 0 {
		id += fmt.Sprint("/", before)
	}
	return id
}

func (t *Treasury) postCost(ctx context.Context, o outgoing.Outcome, id string, cost ledger.Amount) error {
	gas, err := t.cfg.Registry.Gas(chain.Network(o.Network))
	if err != nil || cost == 0 {
		return err
	}
	return t.bear(ctx, o, id, gas.Asset(), cost)
}

// bear posts once that a transaction of ours took something from the house; below 0 it gives that back.
func (t *Treasury) bear(ctx context.Context, o outgoing.Outcome, id string, asset ledger.Asset, cost ledger.Amount) error {
	return storage.CommitOne(ctx, t.cfg.Store, storage.Change{
		ID: id, Partition: storage.Tenant(o.Tenant),
		Post: []ledger.Tx{{ID: id, Kind: ledger.KindFee, Ref: o.Intent, At: t.cfg.Now(), Legs: []ledger.Leg{
			{Account: ledger.FeesNetwork, Asset: asset, Delta: -cost},
			{Account: ledger.Chain(o.Network), Asset: asset, Delta: cost},
		}}},
	})
}

// setAsideAgain opens the reservation of an intent that had settled, and that a fork has undone:
// what it may cost is set aside anew, also where the equity does not bear it, as its transaction
// may land at any moment. What it counted towards Config.DailyCost stays counted.
func (t *Treasury) setAsideAgain(ctx context.Context, o outgoing.Outcome) error {
	p := storage.Tenant(o.Tenant)
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		r, row, found, err := Reservations.One(ctx, t.cfg.Store, p, o.Intent)
		if err != nil || !found || len(o.Undone) <= r.Undone {
			return storage.Change{}, err
		}
		if r.Amount == 0 { // of a child that had ended before its payout
			gas, err := t.cfg.Registry.Gas(chain.Network(o.Network))
			if err != nil {
				return storage.Change{}, err
			}
			order, _, _, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(o.Network), o.Intent)
			if err != nil {
				return storage.Change{}, err
			}
			r.Asset, r.Amount = gas.Code, order.MaxCost
		}
		c := storage.Change{ID: fmt.Sprintf("reserve-again/%s/%d", o.Intent, row.Version), Partition: p}
		if !r.Open {
			g, gasRow, _, err := GasFloats.One(ctx, t.cfg.Store, p, r.Asset)
			if err != nil {
				return c, err
			}
			if g.Reserved, err = g.Reserved.Add(r.Amount); err != nil {
				return c, err
			}
			g.Count++
			r.Counted = 0
			c.Put = append(c.Put, GasFloats.Row(r.Asset, gasRow.Version, time.Time{}, g))
		}
		r.Open, r.Undone = true, len(o.Undone)
		c.Put = append(c.Put, Reservations.Row(o.Intent, row.Version, row.Due, r))
		return c, nil
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
	gas, err := t.cfg.Registry.Gas(chain.Network(o.Network))
	if err != nil {
		return err
	}
	return storage.Together(ctx, "release/"+o.Tenant+"/"+gas.Code, o, func(ctx context.Context, all []outgoing.Outcome) []error {
		return t.releaseAll(ctx, gas, all)
	})
}

// releaseAll ends reservations of a tenant's in one Change, in their order. Each has an
// error of its own.
func (t *Treasury) releaseAll(ctx context.Context, gas *chain.Currency, all []outgoing.Outcome) []error {
	errs := make([]error, len(all))
	err := storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		clear(errs)
		b, err := t.readReserved(ctx, gas, all)
		if err != nil {
			return storage.Change{}, err
		}
		for i := range all {
			errs[i] = t.decideRelease(b, all[i])
		}
		return b.change("release"), nil
	})
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
	return errs
}

// endings is what a tenant's reservations were when they were read, and what is decided
// to become of them.
type endings struct {
	partition storage.Partition
	float     GasFloat
	was       GasFloat
	version   int64 // of the float
	asset     string
	of        map[string]*reserved          // by intent
	intents   map[string]outgoing.IntentRow // those whose order is needed
	written   []*reserved
	levels    []storage.Level
}

// reserved is the reservation of one intent; Version 0 where it has none.
type reserved struct {
	id      string
	version int64
	v       Reservation
	there   bool
}

// readReserved reads what ending the reservations of these intents needs.
func (t *Treasury) readReserved(ctx context.Context, gas *chain.Currency, all []outgoing.Outcome) (*endings, error) {
	b := &endings{partition: storage.Tenant(all[0].Tenant), asset: gas.Code, of: map[string]*reserved{}, intents: map[string]outgoing.IntentRow{}}
	var ids, orders []string
	for _, o := range all {
		ids = union(ids, o.Intent)
		if o.State != outgoing.Final {
			orders = union(orders, o.Intent)
		}
		if child := t.childOf(o); child != "" {
			ids, orders = union(ids, child), union(orders, child)
		}
	}
	for _, id := range ids {
		b.of[id] = &reserved{id: id}
	}
	rows, err := t.cfg.Store.Rows(ctx, Reservations.Table, storage.Keys(b.partition, ids...)...)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		b.of[row.ID] = &reserved{row.ID, row.Version, Reservations.Value(row), true}
	}
	if len(orders) > 0 {
		if rows, err = t.cfg.Store.Rows(ctx, outgoing.Intents.Table, storage.Keys(storage.Network(all[0].Network), orders...)...); err != nil {
			return nil, err
		}
	}
	for _, row := range rows {
		if row.Table == outgoing.Intents.Table {
			b.intents[row.ID] = outgoing.Intents.Value(row)
		}
	}
	float, row, _, err := GasFloats.One(ctx, t.cfg.Store, b.partition, gas.Code)
	b.float, b.was, b.version = float, float, row.Version
	return b, err
}

// childOf is the id of the child that may pay for an intent's transaction, "" where none can.
func (t *Treasury) childOf(o outgoing.Outcome) string {
	info, err := t.cfg.Registry.Network(o.Network)
	if err != nil || info.Family != chain.UTXOFamily || o.Purpose != chain.ForWithdrawal {
		return ""
	}
	return outgoing.ID{Kind: outgoing.OrderChild, For: o.Intent}.String()
}

// decideRelease ends one reservation, or does nothing where it returns an error.
func (t *Treasury) decideRelease(b *endings, o outgoing.Outcome) error {
	r := b.of[o.Intent]
	late := len(o.Undone) < r.v.Undone // the intent has moved on since
	if late || r.there && !r.v.Open && len(o.Undone) == r.v.Undone || !r.there && !outgoing.ParseID(o.Intent).Helps() {
		return nil
	}
	float, heir := b.float, (*reserved)(nil)
	var err error
	if r.v.Open {
		if float.Reserved, err = float.Reserved.Sub(r.v.Amount); err != nil {
			return err
		}
		float.Count--
		if heir, err = t.bequeath(b, o, r.v, &float); err != nil {
			return err
		}
		of := chain.Intent{Purpose: o.Purpose, Network: chain.Network(o.Network), Currency: o.Currency}
		if o.State != outgoing.Final {
			of.Amount = b.intents[o.Intent].Amount
		}
		c := storage.Change{Level: slices.Clone(b.levels)}
		if err := addLevels(&c, uncounted(of, r.v, o.Cost)); err != nil {
			return err
		}
		b.levels = c.Level
	}
	if b.float = float; !r.there {
		r.v.Asset = b.asset
	}
	r.v.Open, r.v.Undone, r.there = false, len(o.Undone), true
	b.write(r) // a child's or a merge's says that it has ended
	if heir != nil {
		b.write(heir)
	}
	return nil
}

func (b *endings) write(r *reserved) {
	if !slices.Contains(b.written, r) {
		b.written = append(b.written, r)
	}
}

// change is what was decided; empty where nothing was.
func (b *endings) change(op string) storage.Change {
	if len(b.written) == 0 {
		return storage.Change{}
	}
	c := storage.Change{Partition: b.partition, Level: b.levels}
	for _, r := range b.written {
		c.Put = append(c.Put, Reservations.Row(r.id, r.version, time.Time{}, r.v))
	}
	if b.float != b.was {
		c.Put = append(c.Put, GasFloats.Row(b.asset, b.version, time.Time{}, b.float))
	}
	c.ID = foldedID(op, c.Put)
	return c
}

// bequeath sets what a child may cost aside, out of what its parent had. It returns the
// child's reservation, nil where there is none to be made.
func (t *Treasury) bequeath(b *endings, o outgoing.Outcome, had Reservation, float *GasFloat) (*reserved, error) {
	child := t.childOf(o)
	in, born := b.intents[child]
	if child == "" || !born || b.of[child].there {
		return nil, nil
	}
	heir := b.of[child]
	had.Amount, had.Undone = in.MaxCost, len(in.Undone)
	var err error
	if float.Reserved, err = float.Reserved.Add(had.Amount); err != nil {
		return nil, err
	}
	float.Count++
	heir.v, heir.there = had, true
	return heir, nil
}
