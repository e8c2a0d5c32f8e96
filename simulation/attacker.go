package simulation

import (
	"context"
	"errors"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// attack is what strangers and other tenants try.
func (r *run) attack() string {
	switch a := r.anyPayment(); {
	case r.rng.IntN(2) == 0 || a == nil:
		return r.trespass()
	case r.rng.IntN(2) == 0 && a.net.chain.Family() == chain.AccountFamily:
		fake := a.net.chain.LookAlike(pick(r.rng, a.net.coins))
		_, err := a.net.chain.Send(sim.Tx{From: "attacker", Payments: []sim.Payment{{To: a.address, Contract: fake, Amount: a.due}}})
		return fmt.Sprintf("sends a look-alike to %s: %t", short(a.id), err == nil)
	default:
		least := decimal.New(1, -int32(a.c.Decimals))
		_, err := a.net.chain.Send(sim.Tx{From: "attacker", Payments: []sim.Payment{{To: a.address, Currency: a.c.Code, Amount: least}}})
		return fmt.Sprintf("sends dust to %s: %t", short(a.id), err == nil)
	}
}

// trespass lets one tenant ask for another's objects: I16.
func (r *run) trespass() string {
	if len(r.tenants) < 2 {
		return "nobody else"
	}
	i := r.rng.IntN(len(r.tenants))
	thief, m := r.tenants[i], r.tenants[(i+1)%len(r.tenants)]
	var tried []string
	r.ask("trespass", func(t *task) { tried = m.robbed(t, thief.id) })
	return fmt.Sprintf("merchant %d tries merchant %d: %d doors", thief.n, m.n, len(tried))
}

// robbed tries every way to a merchant's objects with another's identity.
func (m *merchant) robbed(t *task, thief string) (tried []string) {
	ctx, app := context.Background(), t.p.app
	try := func(what string, err error) {
		tried = append(tried, what)
		m.r.outside.judge.Trespassed(what, m.id, err != nil)
		switch {
		case err == nil:
		case !errors.Is(err, payment.ErrNotFound) && !errors.Is(err, withdrawal.ErrNotFound) && !errors.Is(err, wallet.ErrNotFound):
			m.r.excuse(t, err)
		}
	}
	if len(m.payments) > 0 {
		a := pick(m.r.rng, m.payments)
		_, err := app.Payments.Get(ctx, thief, a.id)
		try("read a payment", err)
		_, err = app.Payments.Cancel(ctx, thief, a.id)
		try("cancel a payment", err)
		text := "mine"
		_, err = app.Payments.Update(ctx, thief, a.id, payment.Patch{OrderID: &text})
		try("change a payment", err)
		if all, err := app.Payments.Deposits(ctx, thief, a.id); err == nil && len(all) > 0 {
			try("list deposits", nil)
		}
	}
	if len(m.payouts) > 0 {
		if p := pick(m.r.rng, m.payouts); p.id != "" {
			_, err := app.Withdrawals.Get(ctx, thief, p.id)
			try("read a withdrawal", err)
			_, err = app.Withdrawals.Cancel(ctx, thief, p.id)
			try("cancel a withdrawal", err)
			_, err = app.Withdrawals.Hold(ctx, thief, p.id, "the thief", "mine")
			try("freeze a withdrawal", err)
			_, err = app.Withdrawals.Refuse(ctx, thief, p.id, "thief", "mine")
			try("refuse a withdrawal", err)
		}
	}
	if len(m.wallets) > 0 {
		id := pick(m.r.rng, m.wallets)
		_, err := app.Wallets.Get(ctx, thief, id)
		try("read a wallet", err)
		_, err = app.Wallets.Rename(ctx, thief, id, "mine")
		try("rename a wallet", err)
		try("delete a wallet", app.Wallets.Delete(ctx, thief, id))
		c := currency(m.r.chains[0].coins[0])
		_, err = app.Wallets.CreateTransfer(ctx, thief, wallet.TransferInput{
			Direction: wallet.ToMaster, WalletID: id, Currency: c.Code, Amount: decimal.New(1, -2),
		})
		try("move money out of a wallet", err)
	}
	return tried
}
