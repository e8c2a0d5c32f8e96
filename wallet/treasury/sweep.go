package treasury

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// SweepState is how far the forwarding of one address and asset has come.
type SweepState string

// The states of a sweep. Each is stored before what follows it happens, and
// what follows carries an id derived from the sweep's: a crash repeats a step,
// it never adds one.
const (
	SweepNew      SweepState = "new"      // deposits are marked, nothing sent
	SweepFunding  SweepState = "funding"  // gas is on its way to the deposit address
	SweepMoving   SweepState = "moving"   // the sweep itself is under way
	SweepDone     SweepState = "done"     // it has landed
	SweepDeferred SweepState = "deferred" // not worth it, or failed: the coins stay where they are
)

// Sweep forwards everything that one deposit address holds of one currency to
// the tenant's hot address. It lives in the network's partition.
type Sweep struct {
	Tenant   string     `db:"tenant"`
	Network  string     `db:"network"`
	Address  string     `db:"address"`
	Key      string     `db:"key_ref"`
	Currency string     `db:"currency"`
	Deposits []string   `db:"deposits,json"` // ids of the Sightings that it forwards
	State    SweepState `db:"state"`
	Fundings int        `db:"fundings"` // gas transfers so far: part of their ids
	Reason   string     `db:"reason"`   // what it waits for, or why it was deferred
	Tx       string     `db:"tx"`
	Created  time.Time  `db:"created_at"`
}

// Sweeps is the table of forwardings, in network partitions.
var Sweeps = storage.NewTable[Sweep]("sweeps", storage.Index("address", "currency"), storage.Index("state"))

// The most gas transfers that one sweep may ask for.
const maxFundings = 3

// Step plans sweeps for the network's newly final deposits and moves those that
// are due. It returns how many rows it worked on.
func (t *Treasury) Step(ctx context.Context, n chain.Network) (int, error) {
	info, err := t.cfg.Registry.Network(string(n))
	if err != nil {
		return 0, err
	}
	planned, err := t.plan(ctx, n, info.Family)
	if err != nil {
		return planned, err
	}
	rows, err := t.cfg.Store.Claim(ctx, storage.Claim{
		Table: Sweeps.Table, Partition: storage.Network(string(n)),
		Now: t.cfg.Now(), Until: t.cfg.Now().Add(t.cfg.Lease), Max: t.cfg.Batch,
	})
	for _, row := range rows {
		err = errors.Join(err, t.advance(ctx, row))
	}
	return planned + len(rows), err
}

// plan takes final deposits that their payment has already handled.
func (t *Treasury) plan(ctx context.Context, n chain.Network, family chain.Family) (int, error) {
	rows, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: incoming.Sightings.Table, Partition: storage.Network(string(n)), Limit: t.cfg.Batch,
		Where: []storage.Cond{
			{Column: "forward", Op: storage.Eq, Value: incoming.ForwardNone},
			{Column: "state", Op: storage.Eq, Value: incoming.Final},
			{Column: "purpose", Op: storage.Eq, Value: incoming.UsePayment},
			{Column: "internal", Op: storage.Eq, Value: false},
			{Column: storage.ColDue, Op: storage.Eq, Value: time.Time{}},
		},
	})
	if err != nil {
		return 0, err
	}
	groups := map[[2]string][]storage.Row{}
	var order [][2]string
	worked := 0
	for _, row := range rows {
		s := incoming.Sightings.Value(row)
		if family == chain.UTXOFamily {
			if err := t.keep(ctx, s); err != nil {
				return worked, err
			}
			worked++
			continue
		}
		k := [2]string{s.Address, s.Currency}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], row)
	}
	for _, k := range order {
		if err := t.begin(ctx, n, groups[k]); err != nil && !errors.Is(err, storage.ErrConflict) {
			return worked, err
		}
		worked++
	}
	return worked, nil
}

// keep leaves a deposit where it is and makes it spendable: an output needs no
// forwarding.
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
		if cur.Currency != "" && cur.Amount > 0 {
			c.Put = append(c.Put, outgoing.CoinRow(cur.Tenant, chain.Coin{
				Outpoint: cur.Key(), Address: chain.Address(cur.Address), Key: chain.KeyRef(owner.Key), Amount: cur.Amount,
			}))
		}
		return c, nil
	})
}

// begin marks the deposits of one address and currency and stores the sweep in
// the same Change. What is not ours to name, or not worth moving, is deferred.
func (t *Treasury) begin(ctx context.Context, n chain.Network, rows []storage.Row) error {
	first := incoming.Sightings.Value(rows[0])
	owner, ok, err := t.cfg.Addresses.Owner(ctx, n, chain.Address(first.Address))
	if err != nil || !ok {
		return errors.Join(err, fmt.Errorf("treasury: %s is no address of ours", first.Address))
	}
	id := "sweep/" + first.Generated()
	forward, due := incoming.Forwarding, t.cfg.Now()
	if first.Currency == "" || first.Amount <= 0 {
		forward, due = incoming.Deferred, time.Time{}
	}
	c := storage.Change{ID: id, Partition: storage.Network(string(n))}
	var deposits []string
	for _, row := range rows {
		s := incoming.Sightings.Value(row)
		s.Forward = forward
		deposits = append(deposits, row.ID)
		c.Put = append(c.Put, incoming.Sightings.Row(row.ID, row.Version, t.cfg.Now(), s))
	}
	sweep := Sweep{
		Tenant: first.Tenant, Network: string(n), Address: first.Address, Key: owner.Key,
		Currency: first.Currency, Deposits: deposits, State: SweepNew, Created: t.cfg.Now(),
	}
	if forward == incoming.Deferred {
		sweep.State, sweep.Reason = SweepDeferred, "not a listed currency"
	}
	c.Put = append(c.Put, Sweeps.Row(id, 0, due, sweep))
	return storage.CommitOne(ctx, t.cfg.Store, c)
}

// advance moves one claimed sweep a step on.
func (t *Treasury) advance(ctx context.Context, row storage.Row) error {
	s := Sweeps.Value(row)
	switch s.State {
	case SweepNew:
		return t.move(ctx, row, s)
	case SweepFunding, SweepMoving:
		return t.put(ctx, row, s, time.Time{}) // its outcome wakes it
	case SweepDone, SweepDeferred:
		return t.mark(ctx, row, s)
	default:
		return fmt.Errorf("treasury: sweep %s is in state %q", row.ID, s.State)
	}
}

// move sends the sweep, or the gas that it needs first.
func (t *Treasury) move(ctx context.Context, row storage.Row, s Sweep) error {
	in, short, err := t.intent(ctx, row.ID, s)
	var dust *dustError
	switch {
	case errors.As(err, &dust):
		s.State, s.Reason = SweepDeferred, dust.Error()
		return t.put(ctx, row, s, t.cfg.Now())
	case err != nil:
		return err
	case short > 0 && s.Fundings >= maxFundings:
		s.State, s.Reason = SweepDeferred, "the address stayed short of gas"
		return t.put(ctx, row, s, t.cfg.Now())
	case short > 0:
		return t.fund(ctx, row, s, short)
	}
	if err := t.Submit(ctx, in); err != nil {
		return t.wait(ctx, row, s, err)
	}
	s.State, s.Reason = SweepMoving, ""
	return t.put(ctx, row, s, time.Time{})
}

type dustError struct{ text string }

func (e *dustError) Error() string { return e.text }

// intent makes the sweep's intent and says how much gas the address lacks.
func (t *Treasury) intent(ctx context.Context, id string, s Sweep) (in chain.Intent, short ledger.Amount, err error) {
	n := chain.Network(s.Network)
	hot, err := t.cfg.Addresses.Hot(ctx, n, s.Tenant)
	if err != nil {
		return in, 0, err
	}
	currency, err := t.cfg.Registry.Currency(s.Currency)
	if err != nil {
		return in, 0, err
	}
	in = chain.Intent{
		ID: id, Purpose: chain.ForSweep, Tenant: s.Tenant, Network: n, Currency: s.Currency,
		From: chain.Address(s.Address), FromKey: chain.KeyRef(s.Key), To: hot.Address, All: true, Confirmations: 1,
	}
	fee, err := t.cfg.Clients[n].EstimateFee(ctx, in)
	if err != nil {
		return in, 0, err
	}
	balancer, ok := t.cfg.Clients[n].(chain.Balancer)
	if !ok {
		return in, 0, fmt.Errorf("treasury: the client of %s cannot read balances: configure UTXO forwarding or a client with chain.Balancer", n)
	}
	held, err := balancer.Balance(ctx, fee.Currency, in.From)
	if err != nil {
		return in, 0, err
	}
	gas, err := t.cfg.Registry.Currency(fee.Currency)
	if err != nil {
		return in, 0, err
	}
	have, err := gas.Units(held, ledger.Down)
	if err != nil {
		return in, 0, err
	}
	if currency.Native() {
		need, err := fee.Max.MulDiv(t.cfg.MinSweep, 1, ledger.Up)
		if err == nil && have < need {
			err = &dustError{fmt.Sprintf("%s %s is not worth its fee of up to %s",
				ledger.PlainString(held), gas.Code, ledger.PlainString(gas.Decimal(fee.Max)))}
		}
		return in, 0, err
	}
	if have >= fee.Max {
		return in, 0, nil
	}
	short, err = fee.Max.Sub(have)
	return in, short, err
}

// fund sends the missing gas to the deposit address, with half as much again so
// that a rising price does not ask for a second transfer.
func (t *Treasury) fund(ctx context.Context, row storage.Row, s Sweep, short ledger.Amount) error {
	n := chain.Network(s.Network)
	gas, err := t.cfg.Registry.Gas(n)
	if err != nil {
		return err
	}
	amount, err := short.MulDiv(3, 2, ledger.Up)
	if err != nil {
		return err
	}
	in := chain.Intent{
		ID: fmt.Sprintf("gas/%d/%s", s.Fundings+1, row.ID), Purpose: chain.ForGas, Tenant: s.Tenant, Network: n,
		Currency: gas.Code, To: chain.Address(s.Address), Amount: amount, Confirmations: 1,
	}
	if err := t.Submit(ctx, in); err != nil {
		return t.wait(ctx, row, s, err)
	}
	s.State, s.Fundings, s.Reason = SweepFunding, s.Fundings+1, ""
	return t.put(ctx, row, s, time.Time{})
}

// wait keeps a sweep that cannot be paid for now, visibly; a payment does not
// wait with it: its deposits are told deferred until the sweep moves after all.
func (t *Treasury) wait(ctx context.Context, row storage.Row, s Sweep, cause error) error {
	var w *WaitError
	if !errors.As(cause, &w) {
		return cause
	}
	s.Reason = string(w.Reason)
	t.cfg.Log.WarnContext(ctx, "sweep waits", slogSweep(row.ID, s)...)
	return t.put(ctx, row, s, t.cfg.Now().Add(10*t.cfg.Lease))
}

func slogSweep(id string, s Sweep) []any {
	return []any{"sweep", id, "network", s.Network, "tenant", s.Tenant, "currency", s.Currency, "reason", s.Reason}
}

// put stores a sweep; the claim's version is the fence.
func (t *Treasury) put(ctx context.Context, row storage.Row, s Sweep, due time.Time) error {
	return storage.CommitOne(ctx, t.cfg.Store, storage.Change{
		ID: fmt.Sprintf("%s/v%d", row.ID, row.Version), Partition: storage.Network(s.Network),
		Put: []storage.Row{Sweeps.Row(row.ID, row.Version, due, s)},
	})
}

// mark tells the deposits of an ended sweep what became of them.
func (t *Treasury) mark(ctx context.Context, row storage.Row, s Sweep) error {
	p := storage.Network(s.Network)
	rows, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, p, s.Deposits...)
	if err != nil {
		return err
	}
	c := storage.Change{
		ID: fmt.Sprintf("%s/mark/%d", row.ID, row.Version), Partition: p,
		Put: []storage.Row{Sweeps.Row(row.ID, row.Version, time.Time{}, s)},
	}
	for _, r := range rows {
		d := incoming.Sightings.Value(r)
		d.Forward, d.ForwardTx = incoming.Deferred, ""
		if s.State == SweepDone {
			d.Forward, d.ForwardTx, d.ForwardFee = incoming.Forwarded, s.Tx, s.Reason
		}
		c.Put = append(c.Put, incoming.Sightings.Row(r.ID, r.Version, t.cfg.Now(), d))
	}
	err = storage.CommitOne(ctx, t.cfg.Store, c)
	if errors.Is(err, storage.ErrConflict) {
		return nil // still due under its lease: marked on a later step
	}
	return err
}

// HandleOutcome is the outgoing handler of every network: it books what a
// landed transaction cost, ends its reservation, and tells the intent's owner.
func (t *Treasury) HandleOutcome(ctx context.Context, o outgoing.Outcome) error {
	if err := t.cost(ctx, o); err != nil {
		return err
	}
	if slices.Contains([]outgoing.State{outgoing.Settled, outgoing.Failed, outgoing.Cancelled}, o.State) {
		if err := t.release(ctx, o); err != nil {
			return err
		}
	}
	switch o.Purpose {
	case chain.ForWithdrawal:
		return t.cfg.OnWithdrawal(ctx, o)
	case chain.ForSweep:
		return t.wake(ctx, o, o.Intent)
	case chain.ForGas:
		var fundings int
		var sweep string
		if _, err := fmt.Sscanf(o.Intent, "gas/%d/%s", &fundings, &sweep); err != nil {
			return fmt.Errorf("treasury: gas intent %q: %w", o.Intent, err)
		}
		return t.wake(ctx, o, sweep)
	}
	return nil
}

// wake moves a sweep on by what became of its gas or of itself.
func (t *Treasury) wake(ctx context.Context, o outgoing.Outcome, sweep string) error {
	landed := o.State == outgoing.Executed || o.State == outgoing.Settled
	dead := o.State == outgoing.Failed || o.State == outgoing.Cancelled
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		s, row, ok, err := Sweeps.One(ctx, t.cfg.Store, storage.Network(o.Network), sweep)
		if err != nil || !ok {
			return storage.Change{}, err
		}
		switch {
		case o.Purpose == chain.ForGas && s.State == SweepFunding && (landed || dead):
			s.State = SweepNew
		case o.Purpose == chain.ForSweep && s.State == SweepMoving && landed:
			s.State, s.Tx, s.Reason = SweepDone, o.Tx, t.feeText(o)
		case o.Purpose == chain.ForSweep && s.State == SweepMoving && dead:
			s.State, s.Reason = SweepDeferred, "the sweep failed on chain"
		default:
			return storage.Change{}, nil
		}
		return storage.Change{
			ID: fmt.Sprintf("%s/%s", o.Intent, o.State), Partition: storage.Network(o.Network),
			Put: []storage.Row{Sweeps.Row(sweep, row.Version, t.cfg.Now(), s)},
		}, nil
	})
}

func (t *Treasury) feeText(o outgoing.Outcome) string {
	gas, err := t.cfg.Registry.Gas(chain.Network(o.Network))
	if err != nil || o.Cost == 0 {
		return ""
	}
	return ledger.PlainString(gas.Decimal(o.Cost)) + " " + gas.Code
}

// Held reads what an address holds on chain, in whole coins.
func (t *Treasury) Held(ctx context.Context, n chain.Network, currency string, a chain.Address) (decimal.Decimal, error) {
	b, ok := t.cfg.Clients[n].(chain.Balancer)
	if !ok {
		return decimal.Zero, fmt.Errorf("treasury: the client of %s cannot read balances", n)
	}
	return b.Balance(ctx, currency, a)
}
