package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Operate is what an operator can do by hand: halt, and help what is stuck. Each call is
// recorded with who made it and why: see List.
type Operate struct{ a *App }

// Call says who intervenes and why. Both are required, and kept.
type Call struct {
	By     string
	Reason string
	// DryRun has everything checked and nothing done.
	DryRun bool
	// Merchant says that the tenant decides about money of his own. What payment.Config.Screen
	// has held or refused is not his to decide about: *payment.StateError.
	Merchant bool
}

// ErrCall reports a Call without By or Reason.
var ErrCall = errors.New("cryptopay: an operator's call needs By and Reason")

func (c *Call) check() error {
	if c.By == "" || c.Reason == "" {
		return ErrCall
	}
	return nil
}

// record is a new operation.
func (o *Operate) record(kind outgoing.OperationKind, c Call) outgoing.Operation {
	return outgoing.Operation{Kind: kind, By: c.By, Reason: c.Reason, At: o.a.cfg.Clock.Now()}
}

func (o *Operate) log(ctx context.Context, id string, op *outgoing.Operation) {
	o.a.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "operator_intervened",
		slog.String("operation", id), slog.String("kind", string(op.Kind)), slog.String("by", op.By), slog.String("reason", op.Reason),
		slog.String("network", string(op.Network)), slog.String("object", op.Object))
}

// Operation is a recorded call.
type Operation struct {
	ID string
	outgoing.Operation
}

// List returns recorded calls, newest first; of one network where that is not "". One that
// concerned every network is listed once.
func (o *Operate) List(ctx context.Context, n chain.Network, limit, offset int) ([]Operation, error) {
	q := storage.Query{
		Table: outgoing.Operations.Table, Limit: limit, Offset: offset, Order: []storage.Order{{Column: "at", Desc: true}},
		Where: []storage.Cond{{Column: "network", Op: storage.Eq, Value: n}},
	}
	if n == "" {
		q.Where = []storage.Cond{{Column: "copied", Op: storage.Eq, Value: false}}
	}
	var out []Operation
	rows, err := o.a.cfg.Store.Find(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		out = append(out, Operation{ID: r.ID, Operation: outgoing.Operations.Value(r)})
	}
	return out, nil
}

// Effect is what a call did, or on a dry run would do.
type Effect struct {
	Operation string // the id of the record; "" on a dry run
	Before    outgoing.Help
	After     outgoing.Help
}

// helped is the network of an intent, the intent, and the record of a call about it; nil on
// a dry run.
func (o *Operate) helped(ctx context.Context, n chain.Network, intent string, kind outgoing.OperationKind, c Call) (*network, outgoing.View, *outgoing.Recorded, error) {
	if err := c.check(); err != nil {
		return nil, outgoing.View{}, nil, err
	}
	net, err := o.a.network(n)
	if err != nil {
		return nil, outgoing.View{}, nil, err
	}
	v, ok, err := net.out.Get(ctx, intent)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q", outgoing.ErrNoIntent, intent)
	}
	if err != nil {
		return nil, v, nil, err
	}
	return net, v, o.recorded(ctx, storage.Network(string(n)), kind, n, v.Intent.Tenant, intent, c), nil
}

func (o *Operate) did(ctx context.Context, by *outgoing.Recorded, before, after outgoing.Help) Effect {
	return Effect{Operation: o.done(ctx, by), Before: before, After: after}
}

// SpeedUp replaces the transaction of an intent (a withdrawal's id, a sweep's, …) now by
// one with a higher fee, or tries one that waits again. maxCost raises what the network may
// take for it, in units of the network's gas currency; 0 leaves the bound as it is. What is
// more is set aside from the tenant's gas first. Errors wrap outgoing.ErrNoIntent,
// outgoing.ErrHelp where it cannot be replaced, and are a *treasury.WaitError where the
// operator's coins do not bear the bound.
func (o *Operate) SpeedUp(ctx context.Context, n chain.Network, intent string, maxCost ledger.Amount, c Call) (Effect, error) {
	net, v, by, err := o.helped(ctx, n, intent, outgoing.OpSpeedUp, c)
	if err != nil {
		return Effect{}, err
	}
	before, after, err := net.out.SpeedUp(ctx, intent, maxCost, nil)
	if err != nil || by == nil {
		return o.did(ctx, nil, before, after), err
	}
	if maxCost > v.Intent.MaxCost {
		if err := o.a.Treasury.Raise(ctx, v.Intent.Tenant, intent, maxCost); err != nil {
			return Effect{}, err
		}
	}
	if before, after, err = net.out.SpeedUp(ctx, intent, maxCost, by); err != nil {
		return Effect{}, err
	}
	return o.did(ctx, by, before, after), nil
}

// CancelTransaction sees to it that an intent pays nobody: of one that was signed, the nonce
// or the coins go back to ourselves. If that lands a withdrawal fails and its hold is
// released, and a sweep is tried again later; should the payment land first, it is as if
// nothing was asked. Errors wrap outgoing.ErrNoIntent, and outgoing.ErrHelp where it is too
// late or the network replaces no transaction.
func (o *Operate) CancelTransaction(ctx context.Context, n chain.Network, intent string, c Call) (Effect, error) {
	net, _, by, err := o.helped(ctx, n, intent, outgoing.OpCancel, c)
	if err != nil {
		return Effect{}, err
	}
	before, after, err := net.out.CancelTransaction(ctx, intent, by)
	if err != nil {
		return Effect{}, err
	}
	return o.did(ctx, by, before, after), nil
}

// Transactions is an intent as it stands, with every attempt, what each may cost, what the
// network took and what it waits for. The error wraps outgoing.ErrNoIntent.
func (o *Operate) Transactions(ctx context.Context, n chain.Network, intent string) (outgoing.View, error) {
	net, err := o.a.network(n)
	if err != nil {
		return outgoing.View{}, err
	}
	v, ok, err := net.out.Get(ctx, intent)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q", outgoing.ErrNoIntent, intent)
	}
	return v, err
}

// FillNonce fills a nonce of one of our addresses that nobody uses and others wait behind:
// what had landed with it is sent again, or a transaction to ourselves uses it up. The
// library does so by itself once something behind it is stuck. maxCost bounds the fee, in
// units of the gas currency; 0 is three times the present estimate. It returns the id of
// the record. Errors wrap outgoing.ErrHelp where the nonce needs no filling.
func (o *Operate) FillNonce(ctx context.Context, n chain.Network, address chain.Address, nonce int64, maxCost ledger.Amount, c Call) (string, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	net, err := o.a.network(n)
	if err != nil {
		return "", err
	}
	gas, err := o.a.cfg.Registry.Gas(n)
	if err != nil {
		return "", err
	}
	address, owner, err := o.ours(ctx, n, address)
	if err != nil {
		return "", err
	}
	like := chain.Intent{
		ID: "fill", Purpose: chain.ForCancel, Tenant: owner.Tenant, Network: n, Currency: gas.Code,
		From: address, FromKey: chain.KeyRef(owner.Key), To: address, MaxCost: maxCost, Confirmations: 1,
	}
	if maxCost <= 0 {
		fee, err := net.client.EstimateFee(ctx, like)
		if err != nil {
			return "", err
		}
		if like.MaxCost, err = fee.Max.MulDiv(maxCostTimes, 1, ledger.Up); err != nil {
			return "", err
		}
	}
	by := o.recorded(ctx, storage.Network(string(n)), outgoing.OpFillNonce, n, owner.Tenant, outgoing.Slot(address, nonce), c)
	if err := net.out.FillNonce(ctx, like, nonce, by); err != nil {
		return "", err
	}
	return o.done(ctx, by), nil
}

// directed is an address as the directory of addresses has it, and its entry there, in whatever
// way it is written: people copy it from elsewhere. ok is false where the directory has none.
func (o *Operate) directed(ctx context.Context, n chain.Network, written chain.Address) (a chain.Address, row incoming.AddressRow, ok bool, err error) {
	row, ok, err = o.a.Addresses.Owner(ctx, n, written)
	if a, unknown := o.a.parse(n, string(written)); err == nil && !ok && unknown == nil {
		row, ok, err = o.a.Addresses.Owner(ctx, n, a)
		return a, row, ok, err
	}
	return written, row, ok, err
}

// ours is directed, with an error that wraps outgoing.ErrHelp where the address is not ours.
func (o *Operate) ours(ctx context.Context, n chain.Network, written chain.Address) (chain.Address, incoming.AddressRow, error) {
	a, row, ok, err := o.directed(ctx, n, written)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s is no address of ours", outgoing.ErrHelp, written)
	}
	return a, row, err
}

// NoncesBeyond lists our addresses of which the chain knows more transactions than the
// store: after a restore from an older backup, or where somebody else has a key. They send
// nothing until AdoptNonces.
func (o *Operate) NoncesBeyond(ctx context.Context, n chain.Network) ([]outgoing.Nonce, error) {
	net, err := o.a.network(n)
	if err != nil {
		return nil, err
	}
	return net.out.Beyond(ctx)
}

// AdoptNonces goes on with the chain's nonce at those of the addresses that NoncesBeyond
// lists, or at all of them where none is named, after a person has accounted for the
// transactions that the store does not know. It returns those that it adopted, or would on
// a dry run. Each is recorded for itself: Nonce.Operation.
func (o *Operate) AdoptNonces(ctx context.Context, n chain.Network, addresses []chain.Address, c Call) ([]outgoing.Nonce, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	net, err := o.a.network(n)
	if err != nil {
		return nil, err
	}
	beyond, err := net.out.Beyond(ctx)
	if err != nil {
		return nil, err
	}
	named := make([]chain.Address, len(addresses))
	for i, a := range addresses {
		if named[i], _, _, err = o.directed(ctx, n, a); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(beyond, func(b outgoing.Nonce) bool { return b.Address == named[i] }) {
			return nil, fmt.Errorf("%w: the chain knows nothing of %s that the store does not", outgoing.ErrHelp, a)
		}
	}
	var done []outgoing.Nonce
	for _, b := range beyond {
		if len(named) > 0 && !slices.Contains(named, b.Address) {
			continue
		}
		if b.Operation, err = o.adopt(ctx, net, b.Address, b.Chain, c); err != nil {
			return done, err
		}
		done = append(done, b)
	}
	return done, nil
}

// AdoptNonce goes on with next as the nonce of one of our addresses, after a person has
// accounted for every transaction before it that the store does not know. It never goes
// back. AdoptNonces takes the chain's word for next. It returns the id of the record, "" where
// next is the nonce already, or on a dry run. The error wraps outgoing.ErrHelp where the address is not ours.
func (o *Operate) AdoptNonce(ctx context.Context, n chain.Network, address chain.Address, next uint64, c Call) (string, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	net, err := o.a.network(n)
	if err != nil {
		return "", err
	}
	if address, _, err = o.ours(ctx, n, address); err != nil {
		return "", err
	}
	return o.adopt(ctx, net, address, next, c)
}

func (o *Operate) adopt(ctx context.Context, net *network, address chain.Address, next uint64, c Call) (string, error) {
	by := o.recorded(ctx, storage.Network(string(net.name)), outgoing.OpAdoptNonce, net.name, "", string(address), c)
	made, err := net.out.AdoptNonce(ctx, address, next, by)
	if err != nil || !made {
		return "", err
	}
	return o.done(ctx, by), nil
}

// RetrySweep has a sweep that waits looked at now, whatever it waits for: see
// treasury.Waiting. It says how it waited, and returns the id of the record. The error
// wraps treasury.ErrNoSweep or treasury.ErrNotWaiting.
func (o *Operate) RetrySweep(ctx context.Context, n chain.Network, sweep string, c Call) (id, waited string, err error) {
	if err := c.check(); err != nil {
		return "", "", err
	}
	if _, err := o.a.network(n); err != nil {
		return "", "", err
	}
	by := o.recorded(ctx, storage.Network(string(n)), outgoing.OpRetrySweep, n, "", sweep, c)
	if waited, _, err = o.a.Treasury.Retry(ctx, n, sweep, by); err != nil {
		return "", "", err
	}
	return o.done(ctx, by), waited, nil
}

// ResumeNetwork ends a halt after a fork below what was final, or rewinds a network that is
// not halted: it is read again from the block after height from, which must be at or below
// the fork. What was found above is taken back, and credited again where it is found again.
// It returns the id of the record. The error wraps incoming.ErrAgain where from is above
// what was read.
func (o *Operate) ResumeNetwork(ctx context.Context, n chain.Network, from int64, c Call) (string, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	net, err := o.a.network(n)
	if err != nil {
		return "", err
	}
	by := o.recorded(ctx, storage.Network(string(n)), outgoing.OpResume, n, "", fmt.Sprintf("from height %d", from), c)
	if err := net.in.Resume(ctx, from, rowsOf(by)); err != nil {
		return "", err
	}
	return o.done(ctx, by), nil
}

// RecoverDeposits reads an old address of ours again between two heights (to 0 = up to
// where the network was read). It returns how many transfers it found that were not known,
// and the id of the record. They go the way of every other: late money to suspense. The
// error wraps incoming.ErrNotOurs, incoming.ErrHalted, incoming.ErrForked, or
// incoming.ErrAgain where the network's client has no history of addresses, or was read at none
// of these heights.
func (o *Operate) RecoverDeposits(ctx context.Context, n chain.Network, address chain.Address, from, to int64, c Call) (found int, id string, err error) {
	if err := c.check(); err != nil {
		return 0, "", err
	}
	net, err := o.a.network(n)
	if err != nil {
		return 0, "", err
	}
	if address, _, _, err = o.directed(ctx, n, address); err != nil {
		return 0, "", err
	}
	by := o.recorded(ctx, storage.Network(string(n)), outgoing.OpRecover, n, "", fmt.Sprintf("%s from height %d to %d", address, from, to), c)
	if found, err = net.in.Recover(ctx, address, from, to, rowsOf(by)); err != nil {
		return 0, "", err
	}
	return found, o.done(ctx, by), nil
}

// recorded is the record of a call about an object, of a tenant or of none (""), in the
// partition of its Change; nil on a dry run.
func (o *Operate) recorded(ctx context.Context, p storage.Partition, kind outgoing.OperationKind, n chain.Network, tenant, object string, c Call) *outgoing.Recorded {
	if c.DryRun {
		return nil
	}
	op := o.record(kind, c)
	op.Network, op.Tenant, op.Object = n, tenant, object
	return &outgoing.Recorded{ID: o.a.cfg.NewID(), Op: op, Part: p, Audit: func(c *storage.Change) error { return o.a.Audited(ctx, c) }}
}

// rowsOf is a record as the side of deposits writes it.
func rowsOf(by *outgoing.Recorded) incoming.Record {
	if by == nil {
		return nil
	}
	return by.Rows
}

// done logs what was done, and is the id of its record; "" on a dry run.
func (o *Operate) done(ctx context.Context, by *outgoing.Recorded) string {
	if by == nil {
		return ""
	}
	o.log(ctx, by.ID, &by.Op)
	return by.ID
}
