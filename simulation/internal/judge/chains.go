package judge

import (
	"slices"

	"github.com/shopspring/decimal"
)

// chains judges what all shops have together against each network.
func (j *Judge) chains(s *Scene) {
	j.alarmed(s)
	for i := range s.Chains {
		c := &s.Chains[i]
		j.covered(s, c)
		j.taken(s, c, false)
		if !c.Outputs && !c.Blind {
			j.dear(s, c)
			j.sweptBack(s, c)
		}
	}
}

// covered is I4: what merchants have is there.
func (j *Judge) covered(s *Scene, c *Chain) {
	for _, code := range sorted(c.Held) {
		coin, there, owed := j.coin(code), c.Held[code], int64(0)
		for i := range s.Shops {
			shop := &s.Shops[i]
			for k := range shop.Wallets {
				owed += shop.Wallets[k].Balances[code].Amount
			}
			for k := range shop.Suspense {
				if shop.Suspense[k].Coin == code {
					owed += shop.Suspense[k].Amount
				}
			}
			for k := range shop.Payouts {
				if p := &shop.Payouts[k]; p.Coin == code && p.open() { // also where it came back to us as a deposit
					there = there.Add(c.left(p, coin))
				}
			}
		}
		j.ask("I4", owed > 0 && !s.Weather.Deep && !s.Weather.Restored && !s.Weather.Taxed[code], there.GreaterThanOrEqual(coin.whole(owed)),
			"%s %s are owed, and %s are there", coin.whole(owed), code, there)
	}
}

// taken is I7 for what operators take out of what they earned: their addresses get at most what
// the payments come to that are completed or on their way. In the end they got all of the
// completed ones: before it, a fork may just have undone one.
func (j *Judge) taken(s *Scene, c *Chain, end bool) {
	type sum struct {
		address, coin string
		least, most   int64
	}
	at := map[string]*sum{}
	for i := range s.Shops {
		for k := range s.Shops[i].Taken {
			t := &s.Shops[i].Taken[k]
			if j.coin(t.Coin).Network != c.Network || t.Status == failed || t.Status == cancelled {
				continue
			}
			p := at[t.Address+" "+t.Coin]
			if p == nil {
				p = &sum{address: t.Address, coin: t.Coin}
				at[t.Address+" "+t.Coin] = p
			}
			if p.most += t.Amount; t.Status == completed {
				p.least += t.Amount
			}
		}
	}
	for _, key := range sorted(at) {
		p := at[key]
		var got decimal.Decimal
		for _, m := range c.Moves {
			if m.To == p.address && m.Coin == p.coin {
				got = got.Add(m.Amount)
			}
		}
		coin := j.coin(p.coin)
		j.ask("taken", end && !s.Weather.Restored && !s.Weather.Deep && c.Undone == 0, s.Weather.Taxed[p.coin] || got.GreaterThanOrEqual(coin.whole(p.least)),
			"%s %s were taken out, and %s arrived", coin.whole(p.least), p.coin, got)
		j.ask("taken", !s.Weather.Restored && c.Undone < 2, got.LessThanOrEqual(coin.whole(p.most)), "%s %s arrived, and %s were taken out", got, p.coin, coin.whole(p.most))
	}
}

// left is what has already gone out for a withdrawal that is still open.
func (c *Chain) left(p *Payout, coin Coin) (out decimal.Decimal) {
	for _, m := range c.Moves {
		if m.To == p.Address && m.Coin == p.Coin && m.Amount.Equal(coin.whole(p.Amount)) {
			out = out.Add(m.Amount)
		}
	}
	return out
}

// dear is I24: what forwarding costs, gas and its transfer and what failed included,
// in a world of a week or so, against half of the value that it moved, or of the
// withdrawals that it was for.
func (j *Judge) dear(s *Scene, c *Chain) {
	gas := j.gas(c.Network)
	price := s.Prices[gas.Token]
	byTx := map[string][]Move{}
	for _, m := range c.Moves {
		byTx[m.Tx] = append(byTx[m.Tx], m)
	}
	var cost, value, failed decimal.Decimal // failed: the dearest move that failed
	funded, moves := map[string]bool{}, 0
	swept, paidFor := map[string]decimal.Decimal{}, map[string]decimal.Decimal{} // by address: what moved, and what that cost
	for _, t := range c.Sent {
		paid := gas.whole(t.Cost).Mul(price)
		if !t.Executed {
			moves++
			cost, failed = cost.Add(paid), decimal.Max(failed, paid)
		}
		for _, m := range byTx[t.Tx] {
			sweep := c.Own[m.From] && !c.Hot[m.From] && c.Hot[m.To]
			fund := c.Hot[m.From] && c.Own[m.To] && !c.Hot[m.To] && c.inner(j, s, m) && m.Coin == gas.Code
			if !sweep && !fund {
				continue
			}
			moves++
			cost = cost.Add(paid)
			if fund {
				funded[m.To] = true // what lies there is about to be moved
				paidFor[m.To] = paidFor[m.To].Add(paid)
			} else {
				brings := m.Amount.Mul(s.Prices[j.coin(m.Coin).Token])
				value, swept[m.From], paidFor[m.From] = value.Add(brings), swept[m.From].Add(brings), paidFor[m.From].Add(paid)
			}
		}
	}
	_, refused := c.spent(j)
	for a := range funded { // gas was brought for tokens as well whose contract refuses to move them
		if _, moved := swept[a]; !moved || !refused[a] {
			continue
		}
		for code, there := range c.Stuck[a] {
			if code != gas.Code {
				swept[a] = swept[a].Add(there.Mul(s.Prices[j.coin(code).Token]))
			}
		}
	}
	wants := j.wants(s, c, func(a string) decimal.Decimal {
		if paidFor[a].LessThanOrEqual(swept[a]) {
			return decimal.Zero
		}
		return paidFor[a]
	})
	for _, a := range sorted(swept) {
		// Half, and as much again for what prices did since.
		w := wants[a]
		j.ask("I24", !s.Weather.Mistyped && !s.Weather.Deep, paidFor[a].LessThanOrEqual(swept[a]) || w != nil && w.cost.LessThanOrEqual(w.value),
			"on %s moving %s USD from %s cost %s USD", c.Network, swept[a], a, paidFor[a])
	}
	for _, w := range wants {
		value = value.Add(w.value)
		w.value = decimal.Zero // it is that of several addresses
	}
	for _, a := range sorted(funded) {
		for _, code := range sorted(c.Stuck[a]) {
			value = value.Add(c.Stuck[a][code].Mul(s.Prices[j.coin(code).Token]))
		}
	}
	tries := int64(len(c.Stuck))
	for i := range s.Shops {
		tries += int64(len(s.Shops[i].Payouts)) // what failed may have been one
	}
	// Half of the value, half as much again for what prices and fees did meanwhile, and
	// one failed move per address.
	most := value.Mul(decimal.New(75, -2)).Add(failed.Mul(decimal.NewFromInt(tries)))
	j.ask("I24", moves > 0 && !s.Weather.Mistyped, cost.LessThanOrEqual(most),
		"on %s forwarding cost %s USD and moved %s USD, %d addresses and withdrawals may have failed once for %s", c.Network, cost, value, tries, failed)
}

// sweptBack is that what the library sent to a deposit address as gas is not forwarded as
// if somebody had paid it: it would cost, and bring what was there before.
func (j *Judge) sweptBack(s *Scene, c *Chain) {
	gas := j.gas(c.Network).Code
	_, others := c.brought(j, s)
	for _, m := range c.Moves {
		sweep := c.Own[m.From] && !c.Hot[m.From] && c.Hot[m.To] && m.Coin == gas
		j.ask("I5-own", sweep && !s.Weather.Deep && !s.Weather.Restored, others[m.From+"/"+gas].IsPositive(),
			"%s moved %s %s from %s, to which we alone had sent any", m.Tx, m.Amount, gas, m.From)
	}
}

// gas is a network's own coin.
func (j *Judge) gas(network string) Coin {
	for _, code := range sorted(j.coins) {
		if c := j.coins[code]; c.Network == network && c.Native {
			return c
		}
	}
	return Coin{}
}

// unbooked is what was paid for withdrawals that somebody edited in the database: those wait
// with their reason until a person has put them right, and are booked then.
func unbooked(s *Scene, c *Chain, coin Coin) (sum int64) {
	for i := range s.Shops {
		for k := range s.Shops[i].Payouts {
			p := &s.Shops[i].Payouts[k]
			if _, edited := s.Edited[p.ID]; !edited || p.Coin != coin.Code || !p.open() {
				continue
			}
			if c.paid(p, coin) {
				sum += p.Amount
			}
		}
	}
	return sum
}

// undone is what withdrawals paid that a deep reorg has taken away, and that show it: they are
// completed by the books, and are sent until they land.
func undone(s *Scene, c *Chain, coin Coin) (sum int64) {
	for i := range s.Shops {
		for k := range s.Shops[i].Payouts {
			p := &s.Shops[i].Payouts[k]
			if p.Coin == coin.Code && p.Status == completed && p.Reason == "reorged" && !c.paid(p, coin) {
				sum += p.Amount
			}
		}
	}
	return sum
}

// paid reports whether a transaction of ours brings a withdrawal what it is to bring.
func (c *Chain) paid(p *Payout, coin Coin) bool {
	return slices.ContainsFunc(c.Moves, func(m Move) bool {
		return m.Coin == p.Coin && m.To == p.Address && m.Amount.Equal(coin.whole(p.Amount)) && c.ours(m.Tx)
	})
}

// alarmed is that nobody is alarmed over the books without a cause: an issuer took something, or a
// backup was put back that does not know what was sent since.
func (j *Judge) alarmed(s *Scene) {
	id := "I26-named"
	if s.Weather.Deep {
		id = "I26-named-deep"
	}
	for _, n := range s.Named {
		if !s.Weather.Taxed[n.Coin] && !s.Weather.Restored && s.chain(j.coin(n.Coin).Network).Undone < 2 { // see reconcile
			j.ask(id, true, false, "%s, and nobody has planted that", n.What)
			return
		}
	}
	j.ask(id, true, true, "")
}

// reconcile is I26: at rest, the chain holds what the books say, and what the rules
// leave out of the books: dust, places finer than the books', and what people paid
// outside and only told of. Costs are booked rounded up, each by less than a unit.
func (j *Judge) reconcile(s *Scene, c *Chain) {
	gas := j.gas(c.Network)
	for _, code := range sorted(c.Held) {
		coin := j.coin(code)
		var books, refunds int64
		for i := range s.Shops {
			books += s.Shops[i].Held[c.Network+"/"+code]
			refunds += s.Shops[i].Left[code]
		}
		rest := coin.whole(refunds - unbooked(s, c, coin) + undone(s, c, coin))
		final := true
		for _, m := range c.Moves {
			if m.Coin != code || !c.Own[m.To] || c.ours(m.Tx) {
				continue
			}
			final = final && c.Height-m.Height+1 >= coin.Confirmations
			if m.Amount.LessThan(coin.Dust) {
				rest = rest.Add(m.Amount)
			} else {
				rest = rest.Add(m.Amount.Sub(coin.whole(coin.units(m.Amount))))
			}
		}
		most := rest
		if code == gas.Code {
			most = most.Add(coin.whole(int64(len(c.Sent))))
		}
		gap := c.Held[code].Sub(coin.whole(books))
		id := "I26"
		if s.Weather.Deep { // the second such fork may have what had failed for good land after all
			id, final = "I26-deep", final && c.Undone < 2
		}
		if s.Weather.Taxed[code] {
			j.ask("taxed", gap.LessThan(rest), s.Halted[code], "%s: the books say %s, the chain holds %s, and payouts go on", code, coin.whole(books), c.Held[code])
			continue
		}
		j.ask(id, final && !s.Weather.Restored && (books != 0 || !c.Held[code].IsZero()), !gap.LessThan(rest) && !gap.GreaterThan(most),
			"%s: the chain holds %s, the books say %s: %s more, and not %s to %s", code, c.Held[code], coin.whole(books), gap, rest, most)
	}
}
