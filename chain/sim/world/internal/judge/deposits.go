package judge

// counted holds the list of what counts for each payment against its figures and
// against the chain.
func (j *Judge) counted(s *Scene, shop *Shop) {
	seen := map[string]bool{}
	for i := range shop.Payments {
		p := &shop.Payments[i]
		var final, open, net int64
		for k := range p.Deposits {
			d := &p.Deposits[k]
			j.ask("I5-once", d.Credited, !seen[d.ID], "deposit %s is credited twice", d.ID)
			seen[d.ID] = true
			j.ask("I27-deposits", !s.Weather.Restored, j.steps[d.ID] > 0, "deposit %s is there, and no event tells of it", d.ID)
			switch {
			case d.Final:
				final += d.Amount
			case !d.Gone:
				open += d.Amount
			}
			if d.Credited {
				net += d.Net
			}
		}
		id := "deposits"
		if s.Weather.Deep {
			id = "deposits-deep"
		}
		j.ask(id, len(p.Deposits) > 0 || p.ShownReceived+p.ShownPending > 0, final == p.ShownReceived && open == p.ShownPending && net == p.Net,
			"payment %s shows %d received, %d pending, %d net, and its deposits %d, %d, %d", p.ID, p.ShownReceived, p.ShownPending, p.Net, final, open, net)
		j.proved(s, p)
	}
}

// proved is I5 by identity: what is credited is one transfer on the chain, and no
// transfer is credited twice.
func (j *Judge) proved(s *Scene, p *Payment) {
	if s.Weather.Deep && !s.End {
		return
	}
	coin := j.coin(p.Coin)
	there := map[string]int{}
	name := func(tx string, units int64) string { return tx + " of " + coin.whole(units).String() }
	for _, m := range s.chain(coin.Network).Moves {
		if m.To == p.Address && m.Coin == p.Coin {
			there[name(m.Tx, coin.units(m.Amount))]++
		}
	}
	for k := range p.Deposits {
		if d := &p.Deposits[k]; d.Credited {
			key := name(d.Tx, d.Amount)
			there[key]--
			j.ask("I5-once", true, there[key] >= 0, "payment %s is credited for %s, which the chain does not have so often", p.ID, key)
		}
	}
}
