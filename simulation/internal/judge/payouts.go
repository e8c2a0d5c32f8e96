package judge

import (
	"time"

	"github.com/shopspring/decimal"
)

// payouts judges a shop's withdrawals and what became of every order of it.
func (j *Judge) payouts(s *Scene, shop *Shop) {
	keys := map[string]*Payout{}
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		j.moved("withdrawal", p.ID, p.Status, outEdges)
		o := j.orders[p.CustomID]
		j.ask("ordered", true, o != nil && o.Shop == shop.ID && o.Coin == p.Coin && o.To == p.Address && (o.ID == "" || o.ID == p.ID),
			"withdrawal %s of %s to %s is not what was ordered", p.ID, shop.ID, p.Address)
		j.ask("I14", o != nil, keys[p.CustomID] == nil, "withdrawals %s and another are of the one order %s", p.ID, p.CustomID)
		keys[p.CustomID] = p
		if o != nil {
			j.charged(s, shop, o, p)
		}
		j.ask("reason", p.Reason != "", (p.open() || p.Status == completed && (p.Reason == "reorged" || p.Reason == "delivered_less")) && !p.Since.IsZero() && !p.Since.After(s.Now.Add(s.Weather.Skew)),
			"withdrawal %s is %s and waits for %q since %s", p.ID, p.Status, p.Reason, p.Since)
	}
	for _, key := range j.keys {
		if o := j.orders[key]; o.Shop == shop.ID {
			p := keys[key]
			j.ask("kept", o.ID != "" && !o.lost, p != nil, "the withdrawal %s that was accepted for %s is nowhere", o.ID, key)
			j.once(s, o, p)
		}
	}
}

// waitTold is what the newest withdrawal_waiting of a withdrawal says.
type waitTold struct{ event, reason string }

// untold is how long a reason may be shown before its event, where a process has died
// between the two: it is looked at again when it would be an operator's matter.
const untold = 20 * time.Minute

// waitTold is I27-waiting: the newest event says the reason that is shown, and that of a
// withdrawal which has ended says that it waits no more.
func (j *Judge) waitTold(s *Scene, p *Payout) {
	told := j.waits[p.ID]
	long := p.Reason != "" && !s.Stepped.IsZero() && p.Since.Add(untold).Before(s.Stepped.Add(-s.Weather.Skew))
	j.ask("I27-waiting", long && !s.Weather.Restored, told.reason == p.Reason, "withdrawal %s waits for %q, and its newest event says %q", p.ID, p.Reason, told.reason)
	ended := !p.open() && p.Reason == ""
	j.ask("I27-waiting", ended && told.event != "" && !s.Weather.Restored, told.reason == "", "withdrawal %s has ended, and its newest event says that it waits for %q", p.ID, told.reason)
}

// charged holds the figures of a withdrawal against the order.
func (j *Judge) charged(s *Scene, shop *Shop, o *Order, p *Payout) {
	coin := j.coin(p.Coin)
	figures := []int64{coin.units(o.Figure)}
	if o.Priced {
		figures = nil
		for _, rate := range s.Quoted[coin.Token] {
			if rate.IsPositive() {
				figures = append(figures, floorDiv(o.Figure.Shift(coin.Scale), rate))
			}
		}
	}
	ok := false
	for _, figure := range figures {
		platform := floorDiv(decimal.NewFromInt(figure).Mul(shop.OutFee), decimal.NewFromInt(100))
		asked := p.Requested
		if o.Final {
			asked = p.Amount
		}
		ok = ok || asked == figure && p.Platform == platform
	}
	j.ask("charged", true, ok && p.Amount > 0 && p.Network >= 0 && p.Requested == p.Amount+p.Platform+p.Network,
		"withdrawal %s: %d = %d + %d + %d is not what %s (priced %t, final %t) comes to",
		p.ID, p.Requested, p.Amount, p.Platform, p.Network, o.Figure, o.Priced, o.Final)
}

// once is I7 and I8: an address that one order alone named gets nothing but that
// order, once; and nothing where the order ended unpaid or was never accepted.
func (j *Judge) once(s *Scene, o *Order, p *Payout) {
	if o.Shared {
		return
	}
	coin := j.coin(o.Coin)
	c := s.chain(coin.Network)
	var got []Move
	for _, m := range c.Moves {
		if m.To == o.To {
			got = append(got, m)
		}
	}
	// The second of two such forks can bring a coin back whose loss the first had made final.
	j.ask("I7", len(got) > 0 && c.Undone < 2, len(got) <= 1, "the order %s was paid %d times", o.Key, len(got))
	if len(got) == 0 {
		return
	}
	m := got[0]
	if p == nil {
		j.ask("I7", !o.lost, false, "the order %s, which nobody accepted, was paid %s %s", o.Key, m.Amount, m.Coin)
		return
	}
	want := coin.whole(p.Amount)
	whole := m.Amount.Equal(want) || s.Weather.Taxed[p.Coin] && m.Amount.LessThan(want)
	j.ask("I7", true, m.Coin == p.Coin && whole, "withdrawal %s of %s %s paid %s %s", p.ID, want, p.Coin, m.Amount, m.Coin)
	j.ask("I8", !o.lost && !s.Weather.Deep, p.Status != failed && p.Status != cancelled, "withdrawal %s is %s and was paid by %s", p.ID, p.Status, m.Tx)
}

// transfers judges a shop's transfers.
func (j *Judge) transfers(shop *Shop) {
	for i := range shop.Transfers {
		t := &shop.Transfers[i]
		j.moved("transfer", t.ID, t.Status, moveEdges)
	}
}
