package judge

import "time"

// Times within which the papers let things come to their end.
const (
	returns  = 24 * time.Hour   // what was in time may come back so long after the window
	schedule = 6 * time.Hour    // all attempts of a webhook: 5 h 21 min, and their rounds
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
			j.landed(s, &shop.Payouts[k])
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
		j.paths(s, shop)
	}
	for i := range s.Chains {
		j.reconcile(s, &s.Chains[i])
		j.atRest(s, &s.Chains[i])
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
func (j *Judge) landed(s *Scene, p *Payout) {
	id := "I19"
	if s.Weather.Restored {
		id = "I19-restored"
	}
	j.ask(id, true, !p.open() || p.Reason != "" && !p.Since.IsZero(), "withdrawal %s is still %s and shows no reason", p.ID, p.Status)
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
	j.ask("paid", !s.Weather.Restored && !s.Weather.Deep, tx != "" && tx == p.Tx, "withdrawal %s is completed by %q, and %q paid it", p.ID, p.Tx, tx)
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
	for i := range shop.Suspense {
		have[shop.Suspense[i].Coin] += shop.Suspense[i].Amount
	}
	for i := range s.Chains {
		c := &s.Chains[i]
		for _, m := range c.Moves {
			coin := j.coin(m.Coin)
			if ours[c.Network+"/"+m.To] && m.Coin != "" && !m.Amount.LessThan(coin.Dust) && !c.inner(s, m) && c.Height-m.Height+1 >= coin.Confirmations {
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

// atRest is that coins on deposit addresses are forwarded or shown to wait.
func (j *Judge) atRest(s *Scene, c *Chain) {
	if c.Outputs {
		return
	}
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
			there := c.Stuck[p.Address][p.Coin]
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
