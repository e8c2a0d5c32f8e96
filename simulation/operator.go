package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// operate is what operators have to do: see to the coins for gas, and to money
// in suspense.
func (r *run) operate() string {
	m := r.anyMerchant()
	if r.operated++; r.operated%takeEvery == 0 {
		return r.takeOut(m)
	}
	if r.rng.IntN(2) == 0 {
		if n := r.anyNet(); r.rate[Thrift] == 0 {
			return m.topUp(n, false)
		}
		return r.lookAfter()
	}
	what := "nothing in suspense"
	r.ask("suspense", func(t *task) {
		all, err := t.p.app.Payments.Suspense(context.Background(), m.id, 10, 0)
		if !m.heard(t, err, nil) || len(all) == 0 {
			return
		}
		d := pick(r.rng, all)
		id := d.Network + "/" + d.Tx + ":" + fmt.Sprint(d.Ordinal)
		if r.rng.IntN(2) == 0 {
			r.outside.judge.Resolving(m.id, id, d.Currency, int64(d.Amount))
			_, err = t.p.app.Payments.Resolve(context.Background(), m.id, id, "")
			r.outside.judge.Resolved(id, err == nil)
			what = "resolves " + id
		} else {
			_, err = t.p.app.Payments.Refund(context.Background(), m.id, id)
			what = "refunds " + id
		}
		m.heard(t, err, nil)
	})
	return what
}

// takeEvery is how many of an operator's acts there are to one that takes fees out.
const takeEvery = 3

// takeOut takes what a merchant's house has earned of a currency to an address of the
// operator's own. One that the process does not survive is not asked for again.
func (r *run) takeOut(m *merchant) string {
	turn := r.operated / takeEvery
	n := r.chains[turn%len(r.chains)]
	code := n.coins[turn/len(r.chains)%len(n.coins)]
	what := "takes nothing out"
	r.ask("take out", func(t *task) {
		p, _, err := t.p.app.Operate.PayOutFees(context.Background(), house.Take{
			Tenant: m.id, Currency: code, All: true, Address: string(n.chain.Customer(ownAddress)), Key: fmt.Sprint(turn),
		}, cryptopay.Call{By: "operator", Reason: "earned"})
		var short *house.ShortError
		if errors.As(err, &short) || !m.heard(t, err, nil) {
			return
		}
		what = fmt.Sprintf("takes %d of the %s that it earned of merchant %d out", p.Amount, code, m.n)
	})
	return what
}

// ownAddress is whose the operator's own addresses are outside.
const ownAddress = "the operator"

// topUp brings coins of the operator's own to a merchant's hot address: for gas, and with
// all what the house is short of. Coins that were paid and are not forwarded yet are not
// replaced by the operator's own: they have to come by themselves.
func (m *merchant) topUp(n *network, all bool) string {
	for _, code := range n.coins {
		c := currency(code)
		var amount decimal.Decimal
		if c.Native() {
			amount = decimal.New(gasMoney, 0).Div(m.r.prices[c.Token]).Truncate(int32(c.Scale))
		}
		if all {
			amount = amount.Add(c.Decimal(m.missing(c)))
		}
		if !amount.IsPositive() {
			continue
		}
		if _, err := n.chain.Fund(m.hot[n.name], code, amount); err != nil {
			m.r.fail("world", "funding: %v", err)
		}
	}
	return fmt.Sprintf("tops merchant %d up on %s", m.n, n.name)
}

// gasMoney is what an operator brings for gas at a time, in USD.
const gasMoney = 100

// missing is what a merchant's house is short of in a currency: what a deep reorg took
// after it was credited, at whatever price, or an issuer took of sweeps. Its payouts are halted until that is there.
func (m *merchant) missing(c *chain.Currency) ledger.Amount {
	var house ledger.Amount
	for k, b := range m.r.truth.balances {
		if k.part == storage.Tenant(m.id) && k.asset == c.Asset() && k.account.House() {
			house += b.posted - b.held // what is to be taken out covers nothing
		}
	}
	if house >= 0 {
		return 0
	}
	dust, err := c.Units(c.Dust, ledger.Up) // less is not counted
	if err != nil {
		m.r.fail("world", "dust: %v", err)
	}
	return max(-house, dust)
}

// few brings coins for the gas of two transactions at the most.
func (m *merchant) few(n *network) error {
	amount, err := m.r.little(n, 1)
	if err == nil {
		_, err = n.chain.Fund(m.hot[n.name], n.coins[0], amount)
	}
	return err
}

// meddle is what operators do at odd times, and what must do no harm.
func (r *run) meddle() string {
	n := r.anyNet()
	what := "all busy"
	choice := r.rng.IntN(4)
	if choice == 2 {
		return r.hold(r.anyPayout())
	}
	r.ask("meddle", func(t *task) {
		ctx := context.Background()
		switch choice {
		case 0:
			a := r.anyPayment()
			if a == nil {
				what = "nothing"
				return
			}
			found, _, err := t.p.app.Operate.RecoverDeposits(ctx, a.net.name, a.address, 1, 0, looked)
			what = fmt.Sprintf("recovers %s: %d, %t", short(a.id), found, err == nil)
			t.struck = t.struck || errors.Is(err, chain.ErrBehind) || err != nil && strings.Contains(err.Error(), "not read")
			r.excuse(t, err)
		case 1:
			what = r.resume(t, n)
		default:
			for offset := range 2 {
				_, err := t.p.app.Treasury.Sync(ctx, r.tenants[offset%len(r.tenants)].id)
				r.excuse(t, err)
			}
			what = "syncs"
		}
	})
	return what
}

// hold lets an operator freeze a withdrawal: one that may be about to go out.
func (r *run) hold(p *payout) string {
	if p == nil {
		return "nothing"
	}
	what := "all busy"
	r.ask("hold", func(t *task) {
		v, err := t.p.app.Withdrawals.Hold(context.Background(), p.m.id, p.id, "ann", "a look at it")
		if err == nil && v.Status == withdrawal.Pending {
			r.outside.judge.Frozen(p.id, true)
		}
		what = fmt.Sprint(short(p.id), " ", err == nil)
		p.m.heard(t, err, nil)
	})
	return what
}

// resume ends a network's halt as an operator does who has looked at the node.
func (r *run) resume(t *task, n *network) string {
	ctx := context.Background()
	s, err := t.p.app.NetworkStatus(ctx, n.name)
	if err != nil || s.Halted == "" {
		r.excuse(t, err)
		return "nothing to resume on " + string(n.name)
	}
	from := max(1, min(s.Head, n.chain.Height())-300) // well below the deepest fork that was since
	_, err = t.p.app.Operate.ResumeNetwork(ctx, n.name, from, looked)
	t.struck = true // of no consequence: it stays halted, and is looked at again
	r.deep = true   // a fork took what its node had called final
	return fmt.Sprintf("resumes %s from %d: %t", n.name, from, err == nil)
}
