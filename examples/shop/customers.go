package main

import (
	"context"
	"errors"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
)

// customer is one that a button plays.
type customer struct {
	ID, Label string
	play      func(t *turn) error
}

// customers are all of them, as the page of an order shows them.
var customers = []customer{
	{"pays", "Pays what is due", func(t *turn) error { return t.pays(1, 1) }},
	{"short", "Pays half of it", func(t *turn) error { return t.pays(1, 2) }},
	{"over", "Pays twice as much", func(t *turn) error { return t.pays(2, 1) }},
	{"late", "Pays after the time is over", func(t *turn) error { return errors.Join(t.waits(), t.pays(1, 1)) }},
	{"wrong", "Pays in another coin", func(t *turn) error { return t.paysWrong() }},
	{"reorg", "Pays, and a fork takes it away", func(t *turn) error { return t.paysInVain() }},
	{"waits", "Lets the time pass", func(t *turn) error { return t.waits() }},
}

// turn is a customer's: what is due, where, and how to go on.
type turn struct {
	ctx     context.Context
	world   *simulation
	chain   *sim.Chain
	payment payment.Payment
	missing decimal.Decimal // in whole coins
	work    func() error    // has the App do what is due
}

// play presses the button of a customer for a payment.
func (s *simulation) play(ctx context.Context, app *cryptopay.App, who, paymentID string) error {
	for _, c := range customers {
		if c.ID != who {
			continue
		}
		return s.act(ctx, app, func(work func() error) error {
			p, err := app.Payments.Get(ctx, tenant, paymentID)
			if err != nil {
				return err
			}
			at, err := app.Payments.Progress(ctx, tenant, []payment.Payment{p})
			if err != nil {
				return err
			}
			missing := p.DueCoins()
			if p.Due > 0 && at[0].Missing > 0 && at[0].Missing < p.Due {
				missing = at[0].Missing.Decimal(uint8(p.Scale)) //nolint:gosec // at most 8
			}
			s.idle[chain.Network(p.Network)] = 0
			return c.play(&turn{ctx, s, s.on(p.Network), p, missing, work})
		})
	}
	return errors.New("there is no such customer")
}

// pays a part of what is missing.
func (t *turn) pays(times, of int64) error {
	amount := t.missing.Mul(decimal.NewFromInt(times)).Div(decimal.NewFromInt(of)).Truncate(int32(t.payment.Scale)) //nolint:gosec // at most 8
	_, err := t.chain.Pay(chain.Address(t.payment.Address), t.payment.Currency, amount)
	return err
}

// waits until a minute after the end of the payment's window.
func (t *turn) waits() error {
	if err := t.world.skip(t.ctx, t.payment.ExpiresAt.Add(time.Minute).Sub(t.world.clock.Now())); err != nil {
		return err
	}
	return t.work()
}

// paysWrong the same figure in another coin of the network, where it has one.
func (t *turn) paysWrong() error {
	for _, c := range t.world.registry.On(t.chain.Network()) {
		if c.Code != t.payment.Currency {
			_, err := t.chain.Pay(chain.Address(t.payment.Address), c.Code, t.missing.Truncate(int32(c.Decimals)))
			return err
		}
	}
	return errors.New("this network has one coin: there is no wrong one")
}

// paysInVain: the transaction is in a block, and a fork takes both away.
func (t *turn) paysInVain() error {
	tx, err := t.chain.Pay(chain.Address(t.payment.Address), t.payment.Currency, t.missing)
	if err != nil {
		return err
	}
	if err := t.work(); err != nil {
		return err
	}
	t.chain.Mine(1)
	if err := t.work(); err != nil {
		return err
	}
	_, err = t.chain.Reorg(1, tx)
	return err
}

// wallet is an address of the customer's own, for his refund.
func (s *simulation) wallet(network string) string { return string(s.on(network).Customer("customer")) }
