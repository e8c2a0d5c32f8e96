package judge

import (
	"maps"
)

// views is I29: lists, the unified history, statistics and overviews say the same.
func (j *Judge) views(shop *Shop) {
	c := &shop.Counts
	j.ask("I29", true, c.Payments == int64(len(shop.Payments)) && c.Payouts == int64(len(shop.Payouts)) && c.Lines == int64(len(shop.Lines)) &&
		len(shop.Lines) == len(shop.Payments)+len(shop.Payouts),
		"%s: %d of %d payments, %d of %d withdrawals, %d of %d lines of history", shop.ID,
		len(shop.Payments), c.Payments, len(shop.Payouts), c.Payouts, len(shop.Lines), c.Lines)
	lines := map[string]*Line{}
	for i := range shop.Lines {
		l := &shop.Lines[i]
		j.ask("I29", true, lines[l.ID] == nil && l.Fee+l.Net == l.Amount, "line %s of %s: %d + %d = %d, or it is there twice", l.ID, shop.ID, l.Fee, l.Net, l.Amount)
		lines[l.ID] = l
	}
	j.paymentLines(shop, lines)
	j.payoutLines(shop, lines)
	j.overview(shop)
}

func (j *Judge) paymentLines(shop *Shop, lines map[string]*Line) {
	by, done := map[string]int64{}, int64(0)
	for i := range shop.Payments {
		p := &shop.Payments[i]
		by[shown(p.Status)]++
		if paid(p.Status) {
			done++
		}
		l := lines[p.ID]
		if l == nil {
			j.ask("I29", true, false, "payment %s is not in the history", p.ID)
			continue
		}
		amount := p.ShownReceived + p.ShownPending
		if amount == 0 {
			amount = p.Due
		}
		j.ask("I29", true, l.Kind == "payment" && l.Status == shown(p.Status) && l.Coin == p.Coin && l.Amount == amount,
			"payment %s is %s of %d %s (%d received, %d pending, %d due), and the history says %s of %d %s",
			p.ID, shown(p.Status), amount, p.Coin, p.ShownReceived, p.ShownPending, p.Due, l.Status, l.Amount, l.Coin)
		j.ask("I29", p.Received > 0, p.ShownReceived >= p.Received || !paid(p.Status),
			"payment %s is credited %d and shows %d received", p.ID, p.Received, p.ShownReceived)
	}
	j.ask("I29", len(shop.Payments) > 0, maps.Equal(nonzero(shop.Counts.StatPayments), by), "%s: statistics count payments %v, the list %v", shop.ID, shop.Counts.StatPayments, by)
	j.ask("total-deposits", done > 0, shop.Counts.Deposits == done, "%s: the overview counts %d payments that were paid, the list has %d", shop.ID, shop.Counts.Deposits, done)
}

func (j *Judge) payoutLines(shop *Shop, lines map[string]*Line) {
	by := map[string]int64{}
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		by[p.Status]++
		l := lines[p.ID]
		if l == nil {
			j.ask("I29", true, false, "withdrawal %s is not in the history", p.ID)
			continue
		}
		j.ask("I29", true, l.Kind == "withdrawal" && l.Status == p.Status && l.Coin == p.Coin && l.Amount == p.Requested &&
			l.Net == p.Amount && l.Reference == p.CustomID,
			"withdrawal %s is %s of %d %s, and the history says %s of %d %s, net %d", p.ID, p.Status, p.Requested, p.Coin, l.Status, l.Amount, l.Coin, l.Net)
	}
	j.ask("I29", len(shop.Payouts) > 0, maps.Equal(nonzero(shop.Counts.StatPayouts), by), "%s: statistics count withdrawals %v, the list %v", shop.ID, shop.Counts.StatPayouts, by)
	j.ask("I29", by[completed] > 0, shop.Counts.Withdrawals == by[completed], "%s: the overview counts %d completed withdrawals, the list %d", shop.ID, shop.Counts.Withdrawals, by[completed])
}

// overview holds the sums over sub-accounts against each of them.
func (j *Judge) overview(shop *Shop) {
	want := map[string]Total{}
	for i := range shop.Wallets {
		if shop.Wallets[i].ID == master {
			continue
		}
		for coin, b := range shop.Wallets[i].Balances {
			t := want[coin]
			want[coin] = Total{t.Amount + b.Amount, t.Pending + b.Pending}
		}
	}
	for _, coin := range sorted(want) {
		j.ask("I29", want[coin] != Total{}, shop.Overview[coin] == want[coin], "%s: sub-accounts have %v %s, and the overview says %v", shop.ID, want[coin], coin, shop.Overview[coin])
	}
	j.ask("I29", true, shop.Counts.SubWallet == int64(len(shop.Wallets)-1), "%s: %d sub-accounts, and the overview counts %d", shop.ID, len(shop.Wallets)-1, shop.Counts.SubWallet)
}

func nonzero(m map[string]int64) map[string]int64 {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(_ string, n int64) bool { return n == 0 })
	return out
}
