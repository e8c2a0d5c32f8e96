package judge

// depositTold is what events said of a deposit: each step from one status to the next, and
// what the newest says.
type depositTold struct {
	newest, status, role string
	path                 []edge
}

// befell notes one event of a deposit. Ids of one object are numbered.
func (j *Judge) befell(id, deposit, from, to, role string) {
	t := j.steps[deposit]
	if t == nil {
		t = &depositTold{}
		j.steps[deposit] = t
	}
	if t.path = append(t.path, edge{from, to}); id > t.newest {
		t.newest, t.status, t.role = id, to, role
	}
}

// toldOf is I27-deposits: the events of a deposit lead, each taken once, from nothing to how
// it stands, and the newest says whether it counts.
func (j *Judge) toldOf(s *Scene, deposit, status string, counted bool) {
	t := j.steps[deposit]
	if t == nil {
		t = &depositTold{}
	}
	sum := map[string]int{"": 1}
	sum[status]--
	for _, e := range t.path {
		sum[e.from]--
		sum[e.to]++
	}
	ok := t.status == status && (t.role == "counted") == counted
	for _, n := range sum {
		ok = ok && n == 0
	}
	j.ask("I27-deposits", !s.Weather.Restored, ok, "deposit %s is %s (counted %v), and its events tell %+v", deposit, status, counted, *t)
}

// befallen holds what events say of deposits against how they stand.
func (j *Judge) befallen(s *Scene, shop *Shop) {
	for i := range shop.Payments {
		for _, d := range shop.Payments[i].Deposits {
			status := "seen"
			if d.Gone {
				status = "gone"
			} else if d.Final {
				status = "final"
			}
			j.toldOf(s, d.ID, status, true)
		}
	}
	for i := range shop.Suspense {
		j.toldOf(s, shop.Suspense[i].ID, "final", false)
	}
}

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
