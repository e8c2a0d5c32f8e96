package simulation

import (
	"context"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"

	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// crumb is a small payment to a merchant who lives on them. Its customer pays it in many
// pieces, each worth a few network fees or less, or sends only some of them.
func (r *run) crumb() string {
	if r.rng.IntN(25) == 0 {
		return r.payday()
	}
	m, c := r.anyMerchant(), r.coin()
	n := r.network(c.Network)
	no := false
	least := c.Min.Mul(r.prices[c.Token])
	usd := least.Add(decimal.New(int64(50+r.rng.IntN(1500)), -2)).RoundUp(2)
	in := payment.CreateInput{Pricing: payment.Pricing{Amount: usd.String(), Currency: c.Code, FeeByUser: &no}}
	said := "not heard"
	ok := r.ask("crumb", func(t *task) {
		quote := r.quote
		p, err := t.p.app.Payments.Create(context.Background(), m.id, in)
		if err != nil {
			said = "refused"
			if quote == "" {
				m.heard(t, err, nil)
			}
			return
		}
		said = m.accept(&in, p)
		a := m.payments[len(m.payments)-1]
		a.plan = nil
		said = a.crumble(n)
	})
	if !ok {
		return "all busy"
	}
	return fmt.Sprintf("merchant %d asks %s USD in %s: %s", m.n, usd, c.Code, said)
}

// crumble pays in equal pieces, one transaction for all where coins are outputs.
func (a *asked) crumble(n *network) string {
	r := a.m.r
	pieces := 2 + r.rng.IntN(11)
	piece := a.due.Div(decimal.New(int64(pieces), 0)).RoundUp(int32(a.c.Scale))
	for piece.LessThan(a.c.Dust.Mul(decimal.New(2, 0))) && pieces > 1 {
		pieces /= 2
		piece = a.due.Div(decimal.New(int64(pieces), 0)).RoundUp(int32(a.c.Scale))
	}
	sent := pieces
	if r.rng.IntN(4) == 0 {
		sent = 1 + r.rng.IntN(pieces)
	}
	var tx sim.Tx
	for range sent {
		tx.Payments = append(tx.Payments, sim.Payment{To: a.address, Currency: a.c.Code, Amount: piece})
	}
	if n.chain.Family() == chain.UTXOFamily {
		a.send(tx)
	} else {
		for _, p := range tx.Payments[:min(sent, 3)] {
			a.send(sim.Tx{Payments: []sim.Payment{p}})
		}
	}
	return fmt.Sprintf("%d of %d pieces of %s for %s", sent, pieces, piece, short(a.id))
}

// payday is the payout of all that one merchant has in one currency: once in a while, and
// before the world ends.
func (r *run) payday() string {
	m := r.anyMerchant()
	c, account := m.rich()
	from := wallet.Master
	if account != "" {
		from = account
	}
	b := r.truth.balances[balanceKey{storage.Tenant(m.id), ledger.Wallet(from), c.Asset()}]
	all := b.posted - b.held
	if all <= 0 {
		return "payday: nothing"
	}
	r.requests++
	p := &payout{m: m, c: c, key: fmt.Sprintf("withdrawal-%d", r.requests)}
	p.to = r.network(c.Network).chain.Customer("supplier " + p.key)
	figure := c.Decimal(all)
	in := withdrawal.CreateInput{
		Terms:    withdrawal.Terms{Currency: c.Code, Address: string(p.to), Amount: &figure},
		CustomID: p.key, AccountID: account,
	}
	m.payouts = append(m.payouts, p)
	r.outside.ordered(p, in)
	said := "not heard"
	again := &request{made: r.now}
	again.do = func(t *task) { said = p.request(t, in, again) }
	if !r.ask("payday", again.do) {
		return "payday: all busy"
	}
	r.counts["paydays"]++
	return fmt.Sprintf("payday: merchant %d, all of %s %s: %s", m.n, figure, c.Code, said)
}

// lastPaydays pay out what merchants have when the week is over.
func (r *run) lastPaydays() {
	if r.rate[Crumbs] == 0 {
		return
	}
	for range 2 * len(r.tenants) {
		r.tell("%s: %s", Crumbs, r.payday())
	}
}

// inPieces splits what a customer pays where coins are outputs: the merchant gets a coin
// for each piece.
func (r *run) inPieces(n *network, payments []sim.Payment) (out []sim.Payment) {
	if r.rate[Crumbs] == 0 || n.chain.Family() != chain.UTXOFamily || len(payments) > 2 {
		return payments
	}
	for _, p := range payments {
		c := currency(n.coins[0])
		pieces := 8 + int64(r.counts["transfers"])%17
		piece := p.Amount.Div(decimal.New(pieces, 0)).Truncate(int32(c.Scale))
		if piece.LessThan(c.Dust.Mul(decimal.New(4, 0))) {
			out = append(out, p)
			continue
		}
		for range pieces - 1 {
			out = append(out, sim.Payment{To: p.To, Currency: p.Currency, Amount: piece})
		}
		p.Amount = p.Amount.Sub(piece.Mul(decimal.New(pieces-1, 0)))
		out = append(out, p)
	}
	return out
}
