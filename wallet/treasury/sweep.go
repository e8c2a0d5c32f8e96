package treasury

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
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

// Step plans sweeps for the network's newly final deposits and moves those that
// are due. It returns how many rows it worked on.
func (t *Treasury) Step(ctx context.Context, n chain.Network) (int, error) {
	info, err := t.cfg.Registry.Network(string(n))
	if err != nil {
		return 0, err
	}
	planned, failed := t.plan(ctx, n, info.Family)
	rows, err := t.cfg.Store.Claim(ctx, storage.Claim{
		Table: Sweeps.Table, Partition: storage.Network(string(n)),
		Now: t.cfg.Now(), Until: t.cfg.Now().Add(t.cfg.Lease), Max: t.cfg.Batch,
	})
	err = errors.Join(failed, err)
	for _, row := range rows {
		if e := t.advance(ctx, row); !errors.Is(e, storage.ErrConflict) { // else another process goes on with it
			err = errors.Join(err, e)
		}
	}
	return planned + len(rows), err
}

// plan takes final deposits that their payment has already handled. One that
// cannot be taken does not keep the others.
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
		if _, shared := t.shared(n); shared || family == chain.UTXOFamily {
			e := t.keep(ctx, s)
			if err = errors.Join(err, e); e == nil {
				worked++
			}
			continue
		}
		k := [2]string{s.Address, s.Currency}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], row)
	}
	for _, k := range order {
		if e := t.begin(ctx, n, groups[k]); e != nil && !errors.Is(e, storage.ErrConflict) {
			err = errors.Join(err, e)
			continue
		}
		worked++
	}
	return worked, err
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
		return t.send(ctx, row, s) // whoever wrote the state may have died before it sent
	case SweepDone, SweepDeferred:
		return t.mark(ctx, row, s)
	default:
		return fmt.Errorf("treasury: sweep %s is in state %q", row.ID, s.State)
	}
}

// move decides what the sweep does next, stores that, and only then does it.
func (t *Treasury) move(ctx context.Context, row storage.Row, s Sweep) error {
	lock, free, err := t.turn(ctx, row.ID, s)
	if err != nil {
		return err
	}
	if !free {
		s.Reason = "another sweep of the address is under way"
		return t.put(ctx, row, s, t.cfg.Now().Add(t.cfg.Lease))
	}
	in, err := t.order(ctx, row.ID, s)
	if err != nil {
		return err
	}
	short, signed, err := t.short(ctx, s, in)
	var dust *dustError
	switch {
	case errors.As(err, &dust):
		s.State, s.Reason = SweepDeferred, dust.Error()
		return t.put(ctx, row, s, t.cfg.Now())
	case err != nil:
		return err
	case short > 0 && s.spent(signed):
		s.State, s.Reason = SweepDeferred, "the address stayed short of gas"
		return t.put(ctx, row, s, t.cfg.Now())
	case short > 0:
		s.State, s.Fundings, s.Reason = SweepFunding, s.Fundings+1, ""
	default:
		s.State, s.Reason = SweepMoving, ""
	}
	err = t.put(ctx, row, s, t.cfg.Now().Add(t.cfg.Lease), lock)
	if errors.Is(err, storage.ErrConflict) {
		return nil // the address or the claim is another's: due again when the lease ends
	}
	if err != nil {
		return err
	}
	row.Version++
	return t.send(ctx, row, s)
}

// turn says whether the sweep may use its address now: each takes all that is
// there, so two at once would spend the same coins, or one the other's gas. The
// row of the address, written in the Change that takes the turn, is the lock.
func (t *Treasury) turn(ctx context.Context, id string, s Sweep) (lock storage.Row, free bool, err error) {
	p := storage.Network(s.Network)
	a, lock, ok, err := incoming.Addresses.One(ctx, t.cfg.Store, p, s.Address)
	if err != nil || !ok {
		return lock, false, errors.Join(err, fmt.Errorf("treasury: %s is no address of ours", s.Address))
	}
	for _, holds := range [][]storage.Cond{
		{{Column: "state", Op: storage.In, Value: []SweepState{SweepFunding, SweepMoving}}},
		{{Column: "state", Op: storage.Eq, Value: SweepNew}, {Column: "fundings", Op: storage.Gt, Value: 0}},
	} {
		n, err := t.cfg.Store.Count(ctx, storage.Query{Table: Sweeps.Table, Partition: p, Where: append(holds,
			storage.Cond{Column: "address", Op: storage.Eq, Value: s.Address},
			storage.Cond{Column: storage.ColID, Op: storage.Ne, Value: id},
		)})
		if err != nil || n > 0 {
			return lock, false, err
		}
	}
	return incoming.Addresses.Row(lock.ID, lock.Version, lock.Due, a), true, nil
}

// send submits what the sweep's state says, which is harmless to repeat: the id
// is derived from the sweep, and what was taken over before stays as it was.
func (t *Treasury) send(ctx context.Context, row storage.Row, s Sweep) error {
	in, err := t.order(ctx, row.ID, s)
	if err == nil && s.State == SweepFunding {
		in, err = t.gas(ctx, row.ID, s, in)
	}
	var dust *dustError
	if errors.As(err, &dust) || errors.Is(err, errEnough) {
		if err := t.callOff(ctx, row.ID, s); err != nil {
			return err
		}
		s.State = SweepNew
		return t.put(ctx, row, s, t.cfg.Now())
	}
	if err != nil {
		return err
	}
	if s.State == SweepMoving {
		if done, err := t.unstick(ctx, row, s, in); done || err != nil {
			return err
		}
	}
	if err := t.Submit(ctx, in); err != nil && !errors.Is(err, outgoing.ErrDiffers) {
		if s.State == SweepFunding {
			s.Fundings--
		}
		s.State = SweepNew
		return t.wait(ctx, row, s, err)
	}
	err = t.put(ctx, row, s, t.cfg.Now().Add(10*t.cfg.Lease)) // its outcome wakes it before
	if errors.Is(err, storage.ErrConflict) {
		return nil // its outcome was faster
	}
	return err
}

// order is the sweep's intent.
func (t *Treasury) order(ctx context.Context, id string, s Sweep) (in chain.Intent, err error) {
	n := chain.Network(s.Network)
	hot, err := t.cfg.Addresses.Hot(ctx, n, s.Tenant)
	in = chain.Intent{
		ID: id, Purpose: chain.ForSweep, Tenant: s.Tenant, Network: n, Currency: s.Currency,
		From: chain.Address(s.Address), FromKey: chain.KeyRef(s.Key), To: hot.Address, All: true, Confirmations: 1,
	}
	if t.sponsored(in) { // outgoing has the hot address pay, too
		in.Payer, in.PayerKey = hot.Address, hot.Key
	}
	return in, err
}

// sponsored reports whether the hot address can pay the network for an intent of
// another address, which then needs no gas.
func (t *Treasury) sponsored(in chain.Intent) bool {
	c, able := t.cfg.Clients[in.Network].(chain.Sponsored)
	return able && c.Sponsored(in)
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
func (t *Treasury) put(ctx context.Context, row storage.Row, s Sweep, due time.Time, with ...storage.Row) error {
	return storage.CommitOne(ctx, t.cfg.Store, storage.Change{
		ID: fmt.Sprintf("%s/v%d", row.ID, row.Version), Partition: storage.Network(s.Network),
		Put: append([]storage.Row{Sweeps.Row(row.ID, row.Version, due, s)}, with...),
	})
}
