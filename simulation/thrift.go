package simulation

import (
	"context"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A thrifty operator keeps little on hot addresses. He brings coins only where what
// the library shows asks for them: the waiting_reason of a withdrawal, and the reason
// for which deposited coins wait to be forwarded.

// lookAfter lets a thrifty operator look at one merchant on one network.
func (r *run) lookAfter() string {
	m, n := r.anyMerchant(), r.anyNet()
	what := "all busy"
	r.ask("look after", func(t *task) { what = m.relieve(t, n) })
	return what
}

// provide is what an operator brings before a world can end.
func (m *merchant) provide(t *task, n *network) {
	m.takeShort(t, n)
	if m.r.rate[Thrift] == 0 {
		m.topUp(n, true)
		return
	}
	if what := m.relieve(t, n); what != "" {
		m.r.struck[Thrift]++
		m.r.tell("%s: %s", Thrift, what)
	}
}

// relieve brings what the reasons shown for one merchant on one network ask for; ""
// where they ask for nothing.
func (m *merchant) relieve(t *task, n *network) string {
	gas, halted, err := m.asks(t.p.app.Withdrawals, n)
	if err == nil {
		var waiting []treasury.Waiting
		waiting, err = t.p.app.Treasury.Waiting(context.Background(), m.id, n.name, 1000, 0)
		for i := range waiting {
			if waiting[i].Reason == treasury.WaitGasShort {
				gas++
			}
		}
	}
	if err != nil {
		m.r.excuse(t, err)
		return ""
	}
	if m.short[n.name]++; gas == 0 {
		m.short[n.name] = 0
	}
	what := ""
	for _, code := range n.coins {
		c := currency(code)
		var amount decimal.Decimal
		if c.Native() && gas > 0 {
			if amount, err = m.r.little(n, gas); err != nil {
				m.r.fail("world", "estimate: %v", err)
			}
			amount = amount.Mul(decimal.New(1<<min(m.short[n.name]-1, 12), 0)) // it was not enough
		}
		if halted[code] { // a deep reorg took it
			amount = amount.Add(c.Decimal(m.missing(c)))
		}
		if !amount.IsPositive() {
			continue
		}
		if _, err := n.chain.Fund(m.hot[n.name], code, amount); err != nil {
			m.r.fail("world", "funding: %v", err)
		}
		what += fmt.Sprintf("brings merchant %d %s %s; ", m.n, amount, code)
	}
	return what
}

// asks counts the open withdrawals of a merchant on one network that lack coins for
// the fee, and lists the currencies of which payouts are halted.
func (m *merchant) asks(of *withdrawal.Service, n *network) (gas int, halted map[string]bool, err error) {
	halted = map[string]bool{}
	for offset := 0; ; offset += 100 {
		page, _, err := of.List(context.Background(), m.id, withdrawal.Filter{Limit: 100, Offset: offset})
		for i := range page {
			w := &page[i]
			switch {
			case w.Network != string(n.name):
			case w.WaitingReason() == withdrawal.ShownGasShort:
				gas++
			case w.WaitingReason() == withdrawal.ShownHalted:
				halted[w.Currency] = true
			}
		}
		if err != nil || len(page) < 100 {
			return gas, halted, err
		}
	}
}

// little is what a few transactions for each of so many asks may cost now.
func (r *run) little(n *network, asks int) (decimal.Decimal, error) {
	c := currency(n.coins[0])
	fee, err := n.chain.Client().EstimateFee(context.Background(), chain.Intent{
		Purpose: chain.ForWithdrawal, Network: n.name, Currency: c.Code, Amount: 1,
	})
	return decimal.Max(c.Dust, c.Decimal(fee.Max).Mul(decimal.New(int64(8*asks), 0))), err
}
