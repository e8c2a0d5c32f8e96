package cryptopay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// HaltScope is what a halt stops: everything, or what all of its fields name. A Currency
// has one network, so Network can be left out beside it.
type HaltScope struct {
	Network  chain.Network
	Currency string
	Tenant   string
}

func (s HaltScope) String() string {
	return fmt.Sprintf("network %q currency %q tenant %q", s.Network, s.Currency, s.Tenant)
}

// Halted is a halt as one network has it.
type Halted struct {
	Network chain.Network // "" = the record from which new networks copy
	outgoing.Halt
}

// Library is who halted a currency where the library itself did: By of such a Halted. It
// does so where a token's logs and balances differ (incoming.ReasonContradicted), or a payout or
// sweep brought less than was ordered (outgoing.ReasonDeliveredLess), and for one
// tenant where the books and the chain differ (reconcile.ReasonDiffer). Payouts
// that are not signed wait then. What was signed goes on, because payouts of other
// currencies wait behind its nonce.
const Library = "cryptopay"

// HaltEffect is what a Halt or Lift did.
type HaltEffect struct {
	Operation string // the id of the record; "" = nothing was done
	Networks  []chain.Network
	// OnItsWay lists what was stored before the halt: it may still land.
	OnItsWay []outgoing.OnItsWay
}

// Halt stops what is sent within a scope: payouts, sweeps, gas transfers, what replaces
// them, and refills. After it has returned nothing new is signed and stored, and nothing is sent again,
// by any process on the store. What was stored before may be on its way; it is returned.
// Payouts wait with the reason halted. Deposits are read and credited as ever. A halt of a
// currency or a tenant leaves alone what fills a nonce or takes one back, because others
// wait behind it.
//
// A halt of every network is written to each of them, and to new ones when they are
// opened. A scope that is halted already keeps its first reason. After an error some
// networks may be halted: halt again. The error wraps chain.ErrCurrency or
// wallet.ErrNoTenant where there is no such scope, and nothing is halted then.
func (o *Operate) Halt(ctx context.Context, s HaltScope, c Call) (HaltEffect, error) {
	target, err := o.haltTarget(ctx, s, &c)
	if err != nil {
		return HaltEffect{}, err
	}
	if s.Tenant != "" {
		if _, err := o.a.Wallets.Tenant(ctx, s.Tenant); err != nil {
			return HaltEffect{}, err
		}
	}
	h := outgoing.Halt{Scope: target.scope, Reason: c.Reason, Since: o.a.cfg.Clock.Now(), By: c.By}
	e, err := o.setHalts(ctx, target, c, outgoing.OpHalt, func(halts []outgoing.Halt) []outgoing.Halt {
		if slices.ContainsFunc(halts, func(have outgoing.Halt) bool { return have.Scope == h.Scope }) {
			return halts
		}
		return append(halts, h)
	})
	if err != nil {
		return e, err
	}
	for _, n := range e.Networks {
		some, err := o.onItsWay(ctx, n, target.scope)
		if err != nil {
			return e, err
		}
		e.OnItsWay = append(e.OnItsWay, some...)
	}
	return e, nil
}

// Lift ends the halt of just this scope: what waited for it goes on by itself. A halt of
// every network ends on each. That of a currency ends the library's own, too: see Library.
// It does nothing where there is no such halt. After an error some networks may be halted
// still: lift again.
func (o *Operate) Lift(ctx context.Context, s HaltScope, c Call) (HaltEffect, error) {
	target, err := o.haltTarget(ctx, s, &c)
	if err != nil {
		return HaltEffect{}, err
	}
	e, err := o.setHalts(ctx, target, c, outgoing.OpLift, func(halts []outgoing.Halt) []outgoing.Halt {
		return slices.DeleteFunc(halts, func(h outgoing.Halt) bool { return h.Scope == target.scope })
	})
	if err != nil || c.DryRun || s.Currency == "" || s.Tenant != "" {
		return e, err
	}
	return e, incoming.LiftAsset(ctx, o.a.cfg.Store, target.named.Network, s.Currency, o.a.cfg.Clock.Now())
}

// Halts lists the halts that operators have set and those of the Library, by network.
// App.NetworkStatus tells of a fork.
func (o *Operate) Halts(ctx context.Context) ([]Halted, error) {
	networks, err := o.networks(ctx)
	if err != nil {
		return nil, err
	}
	var out []Halted
	for _, n := range append([]chain.Network{""}, networks...) {
		row, _, _, err := outgoing.Halts.One(ctx, o.a.joined(), housePartition(n), outgoing.HaltsID)
		if err != nil {
			return nil, err
		}
		for _, h := range row.Halts {
			out = append(out, Halted{Network: n, Halt: h})
		}
		rows, err := o.a.joined().Find(ctx, storage.Query{Table: incoming.AssetHalts.Table, Partition: housePartition(n), Limit: 1000})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			h := incoming.AssetHalts.Value(r)
			out = append(out, Halted{Network: n, Halt: outgoing.Halt{Scope: outgoing.Scope{Currency: r.ID}, Reason: h.Reason, Since: h.Since, By: Library}})
		}
	}
	return out, nil
}

// lostHalts finds halts that nobody has lifted, and that the row of a partition does not have any more: the
// last Halt or Lift in the audit log says which there were. A network may have more, as a new one copies
// those of every network.
func (a *App) lostHalts(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	last := storage.Query{
		Table: outgoing.Operations.Table, Partition: p, Limit: 1, Order: []storage.Order{{Column: "number", Desc: true}},
		Where: []storage.Cond{
			{Column: "kind", Op: storage.In, Value: []outgoing.OperationKind{outgoing.OpHalt, outgoing.OpLift}},
			{Column: "number", Op: storage.Gt, Value: int64(0)}, // else of a version before the log
		},
	}
	before, err := a.cfg.Store.Find(ctx, last)
	if err != nil || len(before) == 0 {
		return nil, err
	}
	said, ok := haltsAfter(before[0])
	if !ok {
		return []Contradiction{{ofAudit, before[0].ID, "it does not say which halts there were"}}, nil
	}
	row, _, _, err := outgoing.Halts.One(ctx, a.cfg.Store, p, outgoing.HaltsID)
	if err != nil {
		return nil, err
	}
	for _, h := range said {
		if !slices.ContainsFunc(row.Halts, func(have outgoing.Halt) bool { return have.Scope == h.Scope }) {
			scope := HaltScope{Currency: h.Currency, Tenant: h.Tenant}
			if !h.Wide {
				scope.Network = chain.Network(strings.TrimPrefix(string(p), string(storage.Network(""))))
			}
			out = append(out, Contradiction{"halt", string(p), fmt.Sprintf("%s halted %s (%s), nobody has lifted it, and it is gone", h.By, scope, h.Reason)})
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	after, err := a.cfg.Store.Find(ctx, last)
	if err != nil || len(after) == 0 || after[0].ID != before[0].ID { // lifted meanwhile
		return nil, err
	}
	return out, nil
}

// haltsAfter are the halts that a Halt or Lift left.
func haltsAfter(op storage.Row) (halts []outgoing.Halt, ok bool) {
	err := json.Unmarshal([]byte(outgoing.Operations.Value(op).After), &halts)
	return halts, err == nil
}

// haltTarget is where a halt is written.
type haltTarget struct {
	named    HaltScope
	scope    outgoing.Scope
	networks []chain.Network
}

func (o *Operate) haltTarget(ctx context.Context, s HaltScope, c *Call) (t haltTarget, err error) {
	if err := c.check(); err != nil {
		return t, err
	}
	if s.Currency != "" {
		network, err := o.networkOf(s.Currency)
		if err != nil {
			return t, err
		}
		if s.Network != "" && s.Network != network {
			return t, fmt.Errorf("%w: %s is no currency of network %s", chain.ErrCurrency, s.Currency, s.Network)
		}
		s.Network = network
	}
	if t.networks, err = o.networks(ctx); err != nil {
		return t, err
	}
	t.named, t.scope = s, outgoing.Scope{Tenant: s.Tenant, Currency: s.Currency, Wide: s.Network == ""}
	if s.Network == "" {
		return t, nil
	}
	if !slices.Contains(t.networks, s.Network) {
		return t, fmt.Errorf("%w: no network %s is served", chain.ErrCurrency, s.Network)
	}
	t.networks = []chain.Network{s.Network}
	return t, nil
}

// networkOf is the network of a currency, also of one that is only listed in the store.
func (o *Operate) networkOf(currency string) (chain.Network, error) {
	for _, r := range []*chain.Registry{o.a.cfg.Registry, chain.MainnetRegistry()} {
		if cur, err := r.Currency(currency); err == nil {
			return cur.Network, nil
		}
	}
	return "", fmt.Errorf("%w: %s", chain.ErrCurrency, currency)
}

// networks lists those that any process on the store serves, by name.
func (o *Operate) networks(ctx context.Context) ([]chain.Network, error) {
	out := slices.Clone(o.a.cfg.Elsewhere)
	for _, n := range o.a.networks {
		out = append(out, n.name)
	}
	add := func(p storage.Partition) {
		if n, ok := strings.CutPrefix(string(p), string(storage.Network(""))); ok {
			out = append(out, chain.Network(n))
		}
	}
	for _, t := range []*storage.Table{incoming.Cursors.Table, outgoing.Halts.Table} { // a version before may have no row of Halts
		rows, unread, err := storage.Others(ctx, o.a.cfg.Store, storage.Query{Table: t, Limit: 1000, IDs: true})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			add(r.Partition)
		}
		for _, r := range unread {
			add(r.Partition)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// setHalts writes a halt to where it belongs. A wide one is written to the system first, and
// then to the networks that there are by then: see outgoing.InheritHalts.
func (o *Operate) setHalts(ctx context.Context, t haltTarget, c Call, kind outgoing.OperationKind, edit func([]outgoing.Halt) []outgoing.Halt) (e HaltEffect, err error) {
	if c.DryRun {
		return HaltEffect{Networks: t.networks}, nil
	}
	e.Operation = o.a.cfg.NewID()
	op := o.record(kind, c)
	op.Network, op.Tenant, op.Object = t.named.Network, t.named.Tenant, t.named.String()
	set := func(n chain.Network) error {
		err := outgoing.SetHalts(ctx, o.a.cfg.Store, o.a.audit, housePartition(n), e.Operation, op, edit)
		if err != nil {
			err = fmt.Errorf("cryptopay: %s of %s, at %s: %w", kind, t.named, housePartition(n), err)
		}
		return err
	}
	if e.Networks = t.networks; t.scope.Wide {
		if err := set(""); err != nil {
			return e, err
		}
		if e.Networks, err = o.networks(ctx); err != nil {
			return e, err
		}
		op.Copied = true
	}
	for _, n := range e.Networks {
		op.Network = n
		if err := set(n); err != nil {
			return e, err
		}
	}
	o.log(ctx, e.Operation, &op)
	return e, nil
}

func (o *Operate) onItsWay(ctx context.Context, n chain.Network, s outgoing.Scope) ([]outgoing.OnItsWay, error) {
	if net, err := o.a.network(n); err == nil {
		return net.out.OnItsWay(ctx, s)
	}
	return outgoing.Offline{Store: o.a.joined(), Network: n, Now: o.a.cfg.Clock.Now}.OnItsWay(ctx, s)
}

func housePartition(n chain.Network) storage.Partition {
	if n == "" {
		return storage.System
	}
	return storage.Network(string(n))
}

// inheritHalts copies the halts of every network to those that have become served since.
func (a *App) inheritHalts(ctx context.Context) error {
	var err error
	for _, n := range a.networks {
		err = errors.Join(err, outgoing.InheritHalts(ctx, a.cfg.Store, storage.Network(string(n.name)), a.cfg.Clock.Now()))
	}
	return err
}
