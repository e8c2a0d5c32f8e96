package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
)

// asked is a payment as the merchant and the customer know it.
type asked struct {
	m       *merchant
	id      string
	c       *chain.Currency
	net     *network
	address chain.Address
	due     decimal.Decimal
	until   time.Time
	plan    []plan
	sent    []string
	late    map[string]time.Time // mined then, after the end, and seen by nobody before
	cancel  bool                 // the merchant has asked for it
}

// plan is something that a customer is going to send.
type plan struct {
	at time.Time
	tx sim.Tx
}

func (r *run) askPayment() string {
	m, c := r.anyMerchant(), r.coin()
	fixed, byUser := r.rng.IntN(2) == 0, r.rng.IntN(3) == 0
	in := payment.CreateInput{Pricing: payment.Pricing{
		Amount: fmt.Sprintf("%d.%02d", 40+r.rng.IntN(400), r.rng.IntN(100)), Currency: c.Code, FixedRate: &fixed, FeeByUser: &byUser,
	}}
	if r.rng.IntN(4) == 0 {
		minutes := pick(r.rng, []int{1, 5, 15, 1440})
		in.ExpiryMinutes = &minutes
	}
	if len(m.wallets) > 0 && r.rng.IntN(3) == 0 {
		in.WalletID = pick(r.rng, m.wallets)
	}
	r.moved()
	said := "not heard"
	ok := r.ask("create payment", func(t *task) {
		quote := r.quote
		p, err := t.p.app.Payments.Create(context.Background(), m.id, in)
		if err != nil {
			said = "refused"
			r.outside.judge.Unpriced(quote)
			if !errors.Is(err, rates.ErrUnavailable) || quote == "" {
				m.heard(t, err, nil)
			}
			return
		}
		if quote == r.quote && !t.paused && len(r.typed) == 0 { // a price that was typed wrongly may make up for it
			r.outside.judge.Priced("payment "+p.ID, quote)
		}
		said = m.accept(&in, p)
	})
	if !ok {
		return "all busy"
	}
	return fmt.Sprintf("merchant %d asks %s USD in %s: %s", m.n, in.Amount, c.Code, said)
}

// accept looks at a new payment and lets a customer plan what to send.
func (m *merchant) accept(in *payment.CreateInput, p payment.Payment) string {
	r, c := m.r, currency(p.Currency)
	r.counts["payments"]++
	r.outside.paid(m, in, p)
	a := &asked{
		m: m, id: p.ID, c: c, net: r.network(c.Network), address: chain.Address(p.Address), due: c.Decimal(p.Due),
		until: p.ExpiresAt, late: map[string]time.Time{},
	}
	m.payments = append(m.payments, a)
	how := a.think()
	return fmt.Sprintf("payment %s, %s due, customer pays %s", short(p.ID), a.due, how)
}

func short(id string) string { return id[max(0, len(id)-6):] }

// think makes a customer's plan.
func (a *asked) think() string {
	r := a.m.r
	part := func(f string) decimal.Decimal {
		return a.due.Mul(dec(f)).Truncate(int32(a.c.Scale))
	}
	send := func(after time.Duration, amounts ...decimal.Decimal) {
		for _, x := range amounts {
			a.plan = append(a.plan, plan{r.now.Add(after), sim.Tx{Payments: []sim.Payment{{To: a.address, Currency: a.c.Code, Amount: x}}}})
		}
	}
	switch r.rng.IntN(16) {
	case 0:
		return "nothing"
	case 1:
		send(0, part("0.6"), a.due.Sub(part("0.6")))
		return "in two parts"
	case 2:
		send(0, part("0.3"))
		send(time.Duration(r.rng.IntN(80))*time.Minute, a.due.Sub(part("0.3")))
		return "in two parts, in time or not"
	case 3:
		send(0, part("0.4"))
		return "too little"
	case 4:
		send(0, part("1.5"))
		return "too much"
	case 5:
		send(0, part("0.9951"))
		return "almost all"
	case 6:
		send(a.until.Sub(r.now)+time.Duration(r.rng.IntN(120))*time.Minute, a.due)
		return "late"
	case 7:
		send(a.until.Sub(r.now)-time.Duration(r.rng.IntN(60))*time.Second, a.due)
		return "at the last moment"
	case 8:
		wrong := currency(pick(r.rng, a.net.coins))
		amount := dec("0.5").Truncate(int32(wrong.Scale))
		a.plan = append(a.plan, plan{r.now, sim.Tx{Payments: []sim.Payment{{To: a.address, Currency: wrong.Code, Amount: amount}}}})
		return "0.5 " + wrong.Code
	case 9:
		send(0, a.c.Dust.Div(dec("2")).Truncate(int32(a.c.Decimals)))
		send(0, a.due)
		return "dust, then all"
	case 10:
		if a.net.chain.Family() == chain.AccountFamily {
			effect := pick(r.rng, []sim.Effect{sim.Reverted, sim.ReturnsFalse, sim.InnerReverted, sim.Internal})
			if effect == sim.Internal && !a.c.Native() || effect == sim.ReturnsFalse && a.c.Native() {
				effect = sim.Reverted
			}
			a.plan = append(a.plan, plan{r.now, sim.Tx{Payments: []sim.Payment{{To: a.address, Currency: a.c.Code, Amount: a.due, Effect: effect}}}})
			return string(effect)
		}
		fallthrough
	default:
		// A chain counts finer than the books: what is over is nobody's.
		over := decimal.New(int64(r.rng.IntN(2)*(1+r.rng.IntN(99))), -int32(a.c.Decimals))
		if a.c.Decimals == a.c.Scale {
			over = decimal.Decimal{}
		}
		send(time.Duration(r.rng.IntN(4))*time.Minute, a.due.Add(over))
		return "all"
	}
}

// customer sends what is due of somebody's plan, or changes his mind.
func (r *run) customer() string {
	var ready []*asked
	for _, m := range r.tenants {
		for _, a := range m.payments {
			if slices.ContainsFunc(a.plan, func(p plan) bool { return !p.at.After(r.now) }) {
				ready = append(ready, a)
			}
		}
	}
	if len(ready) == 0 {
		if r.rng.IntN(2) == 0 {
			return r.askPayment()
		}
		return r.changeMind()
	}
	a := pick(r.rng, ready)
	for i, p := range a.plan {
		if p.at.After(r.now) {
			continue
		}
		a.plan = slices.Delete(a.plan, i, i+1)
		tx := p.tx
		if r.rng.IntN(6) == 0 && len(ready) > 1 { // pays two at once
			if b := pick(r.rng, ready); b != a && b.net == a.net && len(b.plan) > 0 && !b.plan[0].at.After(r.now) {
				tx.Payments = append(slices.Clone(tx.Payments), b.plan[0].tx.Payments...)
				b.plan = b.plan[1:]
			}
		}
		return a.send(tx)
	}
	return "nothing"
}

func (a *asked) send(tx sim.Tx) string {
	tx.Payments = a.m.r.inPieces(a.net, tx.Payments)
	hash, err := a.net.chain.Send(tx)
	if err != nil {
		return "not accepted: " + err.Error()
	}
	a.m.r.counts["transfers"]++
	a.m.r.first[string(a.net.name)+hash] = a.m.r.now
	a.sent = append(a.sent, hash)
	return fmt.Sprintf("sends %s %s for %s", tx.Payments[0].Amount, tx.Payments[0].Currency, short(a.id))
}

// changeMind replaces a payment that waits by another one at a higher fee.
func (r *run) changeMind() string {
	a := r.anyPayment()
	if a == nil || len(a.sent) == 0 || r.rng.IntN(3) > 0 {
		return "nothing to send"
	}
	old := a.sent[len(a.sent)-1]
	amount := a.due
	if r.rng.IntN(2) == 0 {
		amount = amount.Mul(dec("0.5")).Truncate(int32(a.c.Scale))
	}
	tx := sim.Tx{Replaces: old, Payments: []sim.Payment{{To: a.address, Currency: a.c.Code, Amount: amount}}}
	hash, err := a.net.chain.Send(tx)
	if err != nil {
		return "replaces nothing"
	}
	r.first[string(a.net.name)+hash] = r.first[string(a.net.name)+old]
	a.sent = append(a.sent, hash)
	return fmt.Sprintf("replaces a payment for %s by one of %s", short(a.id), amount)
}

// lastMoment is a customer who pays seconds before the end, in a block of before
// it, at it, or after it, while nobody looks until it is over.
func (r *run) lastMoment() string {
	a := r.anyPayment()
	if a == nil || a.until.Sub(r.now) < time.Minute || a.until.Sub(r.now) > 3*time.Hour {
		return "nobody"
	}
	a.plan = nil
	r.now = a.until.Add(-time.Duration(5+r.rng.IntN(30)) * time.Second)
	what := a.send(sim.Tx{Payments: []sim.Payment{{To: a.address, Currency: a.c.Code, Amount: a.due}}})
	mined := a.until.Add(pick(r.rng, []time.Duration{-3 * time.Second, -time.Second, 0, time.Second}))
	r.now = mined
	a.net.chain.Mine(1)
	if len(a.sent) > 0 && mined.Compare(a.until) >= 0 && r.rate[Skew] == 0 {
		a.late[a.sent[len(a.sent)-1]] = mined // nobody can have looked before
	}
	r.now = a.until.Add(time.Duration(2+r.rng.IntN(90)) * time.Second)
	return fmt.Sprintf("%s, mined %s after the end", what, mined.Sub(a.until))
}

func (r *run) anyPayment() *asked {
	m := r.anyMerchant()
	if len(m.payments) == 0 {
		return nil
	}
	return pick(r.rng, m.payments)
}

func (r *run) cancelPayment() string {
	a := r.anyPayment()
	if a == nil {
		return "nothing"
	}
	a.cancel = true
	said := "not heard"
	r.ask("cancel payment", func(t *task) {
		_, err := t.p.app.Payments.Cancel(context.Background(), a.m.id, a.id)
		said = fmt.Sprint(a.m.heard(t, err, nil))
	})
	return short(a.id) + " " + said
}
