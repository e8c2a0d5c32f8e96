package judge

import (
	"time"

	"github.com/shopspring/decimal"
)

// Times within which the papers let things come to their end.
const (
	returns  = 24 * time.Hour   // what was in time may come back so long after the window
	schedule = 6 * time.Hour    // all attempts of a webhook: 5 h 21 min, and their rounds
	mempool  = 24 * time.Hour   // a transaction waits there for so long
	forwards = 30 * time.Minute // a payment is forwarded, or completed all the same
)

// ends judges what must have come to its end when the faults are over.
func (j *Judge) ends(s *Scene) {
	for i := range s.Shops {
		shop := &s.Shops[i]
		for k := range shop.Payments {
			j.ended(s, &shop.Payments[k])
		}
		for k := range shop.Payouts {
			j.landed(s, shop, &shop.Payouts[k])
		}
		for k := range shop.Transfers {
			t := &shop.Transfers[k]
			j.ask("I19", true, t.Status != pending, "transfer %s is still pending", t.ID)
		}
		for k := range shop.Outbox {
			l := &shop.Outbox[k]
			j.ask("I19", !shop.Deaf, l.Failed || s.Now.Sub(l.Created) < schedule, "webhook %s of %s is not delivered since %s: %d attempts, %s", l.ID, l.Object, l.Created, l.Attempts, l.Error)
		}
		j.complete(s, shop)
		j.listened(s, shop)
		j.setAside(s, shop)
	}
	for i := range s.Houses {
		j.listenedTo(s, &s.Houses[i])
	}
	for i := range s.Chains {
		j.taken(s, &s.Chains[i], true)
		j.reconcile(s, &s.Chains[i])
		j.synced(s, &s.Chains[i])
		j.costs(s, &s.Chains[i])
		j.atRest(s, &s.Chains[i])
		j.spendable(s, &s.Chains[i])
	}
}

// ended is I19 of a payment, and what its end has to be.
func (j *Judge) ended(s *Scene, p *Payment) {
	came := j.came(s, p)
	over := s.Now.After(p.Expires.Add(s.Weather.Skew))
	calm := !s.Weather.Deep && !s.Weather.Restored
	low, _ := j.tolerance(p)
	full := came.sure >= p.Due-low && !p.Cancelled
	done := p.Status == completed || paid(p.Status) && s.Calm < forwards // it may have been confirmed just now
	last := done || p.Status == expired || p.Status == failed
	id := "I19"
	if s.Weather.Restored && paid(p.Status) {
		id = "I19-restored" // its coins were moved on by a transaction that nobody remembers
	}
	j.ask(id, s.Now.After(p.Expires.Add(returns+forwards)), last, "payment %s is still %s, its time ended at %s", p.ID, p.Status, p.Expires.Format(time.DateTime))
	j.ask("full", full && calm, done, "payment %s is %s: %d is due, %d came in time", p.ID, p.Status, p.Due, came.sure)
	j.ask("partial", over && !full && came.sure > 0 && calm && !p.Cancelled, p.Received >= came.sure, "payment %s is %s with %d: %d came in time", p.ID, p.Status, p.Received, came.sure)
	nothing := came.soon == 0 && calm
	j.ask("empty", over && nothing && s.Now.After(p.Expires.Add(returns)), (p.Status == expired || p.Status == failed) && p.Received == 0,
		"payment %s is %s with %d, and nothing has come for it", p.ID, p.Status, p.Received)
}

// landed is I19 of a withdrawal, and that one that is completed was paid.
func (j *Judge) landed(s *Scene, shop *Shop, p *Payout) {
	id, shown := "I19", p.Reason != "" && !p.Since.IsZero() || s.Calm < mempool // it may have been taken away just now
	switch {
	case s.Weather.Restored:
		id = "I19-restored"
	case !s.Weather.Deep:
		shown = false
	}
	elsewhere := j.coinsLieElsewhere(s, shop, p)
	asked := (!p.open() || s.Now.Sub(p.Created) >= mempool) && !s.Spared[p.ID] && !elsewhere
	j.ask(id, asked, !p.open() || shown, "withdrawal %s is still %s, waiting %q since %s", p.ID, p.Status, p.Reason, p.Since)
	o := j.orders[p.CustomID]
	if p.Status != completed || o == nil || o.Shared {
		return
	}
	tx := ""
	for _, m := range s.chain(j.coin(p.Coin).Network).Moves {
		if m.To == p.Address {
			tx = m.Tx
		}
	}
	j.ask("paid", !s.Weather.Restored, tx != "" && tx == p.Tx || s.Weather.Deep && p.Reason != "", "withdrawal %s is completed by %q, and %q paid it", p.ID, p.Tx, tx)
}

// setAside is that nothing stays set aside for gas when nothing is on its way any more. No
// view shows it, and Verify holds it against reservations alone, so the judge reads the
// sums themselves: what stays set aside for nothing is missing for the next transaction.
func (j *Judge) setAside(s *Scene, shop *Shop) {
	still := !s.Weather.Deep && !s.Weather.Restored
	for i := range shop.Payouts {
		still = still && !shop.Payouts[i].open()
	}
	for i := range shop.Resting {
		still = still && shop.Resting[i].DueBelow >= 0
	}
	for _, coin := range sorted(shop.Aside) {
		j.ask("I9-gas", still, shop.Aside[coin] == 0, "%d %s of %s are set aside for gas, and nothing is on its way", shop.Aside[coin], coin, shop.ID)
	}
}

// complete is the other half of I5: what came for good is credited or in suspense.
func (j *Judge) complete(s *Scene, shop *Shop) {
	came, have := map[string]int64{}, map[string]int64{}
	ours, window := map[string]bool{}, true
	for i := range shop.Payments {
		p := &shop.Payments[i]
		ours[j.coin(p.Coin).Network+"/"+p.Address] = true
		have[p.Coin] += p.Received
		window = window && (paid(p.Status) || p.Status == expired || p.Status == failed)
	}
	for i := range shop.Addresses {
		ours[shop.Addresses[i].Network+"/"+shop.Addresses[i].Address] = true
	}
	for i := range shop.Suspense {
		have[shop.Suspense[i].Coin] += shop.Suspense[i].Amount
	}
	for i := range s.Chains {
		c := &s.Chains[i]
		for _, m := range c.Moves {
			coin := j.coin(m.Coin)
			if ours[c.Network+"/"+m.To] && m.Coin != "" && !m.Amount.LessThan(coin.Dust) && !c.inner(j, s, m) && c.Height-m.Height+1 >= coin.Confirmations {
				came[m.Coin] += coin.units(m.Amount)
			}
		}
	}
	for coin, n := range shop.Left {
		have[coin] += n
	}
	for _, code := range sorted(came) {
		least, most := j.resolved(shop.ID, code)
		j.ask("complete", window && !s.Weather.Deep && !s.Weather.Restored, have[code]+least <= came[code] && came[code] <= have[code]+most,
			"%s: %d %s came for good, and %d is credited, in suspense or refunded (and %d to %d resolved)", shop.ID, came[code], code, have[code], least, most)
	}
}

// resting is that what waits on deposit addresses says why, since when, and what ends
// it.
func (j *Judge) resting(s *Scene, shop *Shop) {
	for i := range shop.Resting {
		r := &shop.Resting[i]
		j.ask("resting", true, r.Reason != "" && !r.Since.IsZero() && !r.Since.After(s.Now.Add(s.Weather.Skew)),
			"%s at %s waits for %q since %s", r.Coin, r.Address, r.Reason, r.Since)
		j.ask("resting-ends", true, !r.Next.IsZero() || r.DueBelow >= 0, "%s at %s waits for %q, and nothing says what ends it", r.Coin, r.Address, r.Reason)
	}
}

// atRest is that coins on deposit addresses are forwarded or shown to wait. Gas that is
// left of what was brought there is not the payment's.
func (j *Judge) atRest(s *Scene, c *Chain) {
	if c.Outputs {
		return
	}
	brought, _ := c.brought(j, s)
	for i := range s.Shops {
		shop := &s.Shops[i]
		shows := map[string]*Resting{}
		for k := range shop.Resting {
			r := &shop.Resting[k]
			shows[r.Address+"/"+r.Coin] = r
		}
		for k := range shop.Payments {
			p := &shop.Payments[k]
			coin := j.coin(p.Coin)
			if coin.Network != c.Network || p.Received == 0 {
				continue
			}
			there := c.Stuck[p.Address][p.Coin].Sub(brought[p.Address+"/"+p.Coin])
			lies := there.GreaterThanOrEqual(coin.whole(p.Received/2)) && there.GreaterThan(coin.Dust)
			id := "at-rest"
			if s.Weather.Deep {
				id = "at-rest-deep"
			}
			j.ask(id, !s.Weather.Restored, !lies || shows[p.Address+"/"+p.Coin] != nil,
				"%s %s lie at %s of payment %s, and nothing says why", there, p.Coin, p.Address, p.ID)
		}
	}
}

// spendable is I23: on an account network each coin that is worth forwarding was
// forwarded, and what was ordered of it was paid (I19). Of what is left at an address it
// knows why, and that it is below its cost.
func (j *Judge) spendable(s *Scene, c *Chain) {
	able := !s.Weather.Deep && !s.Weather.Restored && c.Normal && !c.Halted && s.Calm >= 24*time.Hour
	if c.Outputs {
		return
	}
	aside := map[string]bool{}
	for i := range s.Shops {
		for k := range s.Shops[i].Suspense {
			d := &s.Shops[i].Suspense[k]
			aside[d.Address+"/"+d.Coin] = true
		}
		for _, r := range s.Shops[i].Resting {
			if r.Reason == waitsForMore && !r.Next.Before(s.Now.Add(-untold-s.Weather.Skew)) { // saving-ends judges for how long
				aside[r.Address+"/"+r.Coin] = true
			}
		}
	}
	own := j.gas(c.Network)
	spent, failed := c.spent(j)
	brought, came := c.brought(j, s)
	for _, a := range sorted(c.Stuck) {
		for _, code := range sorted(c.Stuck[a]) {
			coin, there := j.coin(code), c.Stuck[a][code].Sub(brought[a+"/"+code])
			sent := decimal.Min(brought[a+"/"+own.Code], c.Stuck[a][own.Code]) // gas that was paid for this, too
			value, cost := there.Mul(s.Prices[coin.Token]), c.Forward[code].Add(spent[a]).Add(sent).Mul(s.Prices[own.Token])
			worth := value.GreaterThan(cost.Mul(decimal.New(25, -1))) // it counts bounds, and estimates of its last look
			id := "I23"
			if s.Weather.Taxed[code] {
				id = "I23-taxed"
			}
			j.ask(id, able && !failed[a] && came[a+"/"+code].GreaterThan(coin.Dust), there.LessThan(coin.Dust) || !worth || aside[a+"/"+code],
				"%s %s lie at %s: %s USD, and forwarding costs %s", there, code, a, value, cost)
		}
	}
}

// brought is what the library itself has sent to each address in each coin, and what came
// from others: gas that is left there has no legs, by the ledger's page, and is nobody's to
// spend.
func (c *Chain) brought(j *Judge, s *Scene) (own, others map[string]decimal.Decimal) {
	own, others = map[string]decimal.Decimal{}, map[string]decimal.Decimal{}
	for _, m := range c.Moves {
		if !c.Own[m.To] || c.Hot[m.To] {
			continue
		}
		to := others
		if c.inner(j, s, m) {
			to = own
		}
		to[m.To+"/"+m.Coin] = to[m.To+"/"+m.Coin].Add(m.Amount)
	}
	return own, others
}

// spent is what the library has paid the network for each address, in its own coin, and
// from which of them a transaction failed: what that cost counts at its bound.
func (c *Chain) spent(j *Judge) (out map[string]decimal.Decimal, failed map[string]bool) {
	gas, cost := j.gas(c.Network), map[string]decimal.Decimal{}
	out, failed = map[string]decimal.Decimal{}, map[string]bool{}
	for _, t := range c.Sent {
		if cost[t.Tx] = gas.whole(t.Cost); !t.Executed && c.Own[t.From] && !c.Hot[t.From] { // it moved nothing
			out[t.From], failed[t.From] = out[t.From].Add(cost[t.Tx]), true
		}
	}
	for _, m := range c.Moves {
		for _, a := range []string{m.From, m.To} {
			if c.Own[a] && !c.Hot[a] {
				out[a] = out[a].Add(cost[m.Tx])
			}
		}
	}
	return out, failed
}
