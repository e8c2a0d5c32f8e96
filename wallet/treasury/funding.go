package treasury

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// The most gas transfers that one sweep may ask for.
const maxFundings = 3

type dustError struct{ text string }

func (e *dustError) Error() string { return e.text }

// unstick looks after a sweep that was taken over long ago: where nothing is
// left to move it is called back, and where the price of gas rose, or a fork or
// another transaction of the address took the gas away, the address gets more.
// done says that the sweep goes another way now.
func (t *Treasury) unstick(ctx context.Context, row storage.Row, s Sweep, in chain.Intent) (done bool, err error) {
	v, _, ok, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(s.Network), row.ID)
	if err != nil || !ok || v.State != outgoing.Waiting && v.State != outgoing.Signed {
		return false, err
	}
	short, signed, err := t.short(ctx, s, in)
	var dust *dustError
	switch {
	case errors.As(err, &dust) && v.State == outgoing.Waiting:
		_, err = t.Cancel(ctx, in.Network, row.ID) // the outcome wakes it
		return false, err
	case errors.As(err, &dust):
		return false, nil
	case err != nil || short == 0 || s.spent(signed):
		return false, err
	}
	s.State, s.Fundings, s.Reason = SweepFunding, s.Fundings+1, "more gas is needed"
	return true, t.put(ctx, row, s, t.cfg.Now())
}

// spent says that the sweep gets no more gas. One that is signed does: it can no
// longer be given up, and what it may cost bounds what it gets.
func (s *Sweep) spent(signed bool) bool { return s.Fundings >= maxFundings && !signed }

// short says how much gas the address lacks for the sweep, and whether it is
// signed; the error is a *dustError where there is nothing worth moving, as a node
// says that has come to where the deposits are final.
func (t *Treasury) short(ctx context.Context, s Sweep, in chain.Intent) (lack ledger.Amount, signed bool, err error) {
	lack, signed, err = t.lacks(ctx, in)
	var dust *dustError
	if !errors.As(err, &dust) {
		return lack, signed, err
	}
	if err := t.reached(ctx, s); err != nil {
		return 0, false, err
	}
	return t.lacks(ctx, in) // what was read before may have been of before
}

// reached is nil where the node has the blocks that make the sweep's deposits final.
func (t *Treasury) reached(ctx context.Context, s Sweep) error {
	rows, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, storage.Network(s.Network), s.Deposits...)
	if err != nil {
		return err
	}
	tip, err := t.cfg.Clients[chain.Network(s.Network)].Tip(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if d := incoming.Sightings.Value(r); tip.Head.Height < d.FinalAt {
			return fmt.Errorf("treasury: what %s holds is not known yet: %w: its block is %d, and deposit %s is final at %d",
				s.Address, chain.ErrBehind, tip.Head.Height, r.ID, d.FinalAt)
		}
	}
	return nil
}

func (t *Treasury) lacks(ctx context.Context, in chain.Intent) (lack ledger.Amount, signed bool, err error) {
	currency, err := t.cfg.Registry.Currency(in.Currency)
	if err != nil {
		return 0, false, err
	}
	if !currency.Native() {
		held, err := t.Held(ctx, in.Network, in.Currency, in.From)
		if err != nil {
			return 0, false, err
		}
		if held.LessThan(currency.Dust) {
			return 0, false, &dustError{fmt.Sprintf("%s %s is not worth moving", ledger.PlainString(held), in.Currency)}
		}
	}
	if t.sponsored(in) {
		return 0, false, nil
	}
	fee, err := t.cfg.Clients[in.Network].EstimateFee(ctx, in)
	if err != nil {
		return 0, false, err
	}
	held, err := t.Held(ctx, in.Network, fee.Currency, in.From)
	if err != nil {
		return 0, false, err
	}
	gas, err := t.cfg.Registry.Currency(fee.Currency)
	if err != nil {
		return 0, false, err
	}
	have, err := gas.Units(held, ledger.Down)
	if err != nil {
		return 0, false, err
	}
	if currency.Native() {
		need, err := fee.Max.MulDiv(t.cfg.MinSweep, 1, ledger.Up)
		if err == nil && have < need {
			err = &dustError{fmt.Sprintf("%s %s is not worth its fee of up to %s",
				ledger.PlainString(held), gas.Code, ledger.PlainString(gas.Decimal(fee.Max)))}
		}
		return 0, false, err
	}
	need, signed, err := t.needs(ctx, in, fee.Max)
	if err != nil || have >= need {
		return 0, signed, err
	}
	lack, err = need.Sub(have)
	return lack, signed, err
}

// needs is what the address must hold for the sweep to land: the price of now,
// or where it is signed, what nodes demand for what was signed, however low the
// price has fallen meanwhile, and for its replacement where the price rose.
func (t *Treasury) needs(ctx context.Context, in chain.Intent, price ledger.Amount) (need ledger.Amount, signed bool, err error) {
	v, _, ok, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(string(in.Network)), in.ID)
	if err != nil || !ok || v.State != outgoing.Signed {
		return price, false, err
	}
	rows, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: outgoing.Attempts.Table, Partition: storage.Network(string(in.Network)), Limit: 100,
		Where: []storage.Cond{
			{Column: "intent", Op: storage.Eq, Value: in.ID},
			{Column: "fate", Op: storage.Eq, Value: outgoing.Open},
		},
	})
	if err != nil {
		return 0, false, err
	}
	raised, costs := price, make([]ledger.Amount, 0, len(rows))
	for _, r := range rows {
		costs = append(costs, outgoing.Attempts.Value(r).MaxCost)
		if raised, err = raised.MulDiv(9, 8, ledger.Up); err != nil { // what nodes ask of each replacement
			return 0, false, err
		}
	}
	slices.Sort(costs)
	for _, cost := range costs {
		if cost >= price {
			return cost, true, nil // any that is dear enough will do
		}
	}
	if len(costs) > 0 && raised > v.MaxCost {
		return costs[0], true, nil // it will not be replaced: it waits for the price to fall
	}
	return raised, true, nil
}

// errEnough: the address has its gas by now.
var errEnough = errors.New("treasury: the address has enough gas")

// gas is the intent that sends the missing gas to the deposit address, with
// half as much again so that a rising price does not ask for a second transfer.
func (t *Treasury) gas(ctx context.Context, id string, s Sweep, sweep chain.Intent) (in chain.Intent, err error) {
	short, _, err := t.short(ctx, s, sweep)
	if err == nil && short == 0 {
		err = errEnough
	}
	if err != nil {
		return in, err
	}
	gas, err := t.cfg.Registry.Gas(sweep.Network)
	if err != nil {
		return in, err
	}
	amount, err := short.MulDiv(3, 2, ledger.Up)
	return chain.Intent{
		ID: gasID(s, id), Purpose: chain.ForGas, Tenant: s.Tenant, Network: sweep.Network,
		Currency: gas.Code, To: sweep.From, Amount: amount, Confirmations: 1,
	}, err
}

// gasID is the intent of a sweep's last gas.
func gasID(s Sweep, sweep string) string { return fmt.Sprintf("gas/%d/%s", s.Fundings, sweep) }

// callOff ends gas that is needed no more. Whoever set its cost aside may have
// died before it was handed over, or sleeps and does so later: once it was
// handed over and called back, its id has no effect any more, and what was set
// aside is given back as ever. Where it is being sent already, it is.
func (t *Treasury) callOff(ctx context.Context, id string, s Sweep) error {
	if s.Fundings == 0 {
		return nil // none was asked for
	}
	r, _, ok, err := Reservations.One(ctx, t.cfg.Store, storage.Tenant(s.Tenant), gasID(s, id))
	if err != nil || !ok || !r.Open {
		return err
	}
	n := chain.Network(s.Network)
	err = t.Submit(ctx, chain.Intent{
		ID: gasID(s, id), Purpose: chain.ForGas, Tenant: s.Tenant, Network: n,
		Currency: r.Asset, To: chain.Address(s.Address), Amount: 1, Confirmations: 1,
	})
	if err != nil && !errors.Is(err, outgoing.ErrDiffers) {
		return err
	}
	_, err = t.Cancel(ctx, n, gasID(s, id))
	return err
}

// Held reads what an address holds on chain, in whole coins.
func (t *Treasury) Held(ctx context.Context, n chain.Network, currency string, a chain.Address) (decimal.Decimal, error) {
	b, ok := t.cfg.Clients[n].(chain.Balancer)
	if !ok {
		return decimal.Zero, fmt.Errorf("treasury: the client of %s cannot read balances", n)
	}
	return b.Balance(ctx, currency, a)
}
