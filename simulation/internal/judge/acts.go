package judge

// Paid is told of a payment that a merchant asked for and was given.
func (j *Judge) Paid(id string, a Ask) { j.asks[id] = a }

// Given is told of a permanent address that a merchant asked for and got.
func (j *Judge) Given(a Address) { j.given[a.ID] = a }

// Ordered is told of a withdrawal that is asked for, before anybody answers.
func (j *Judge) Ordered(o Order) {
	j.orders[o.Key] = &o
	j.keys = append(j.keys, o.Key)
}

// Accepted is told that a withdrawal was accepted under this id: I14.
func (j *Judge) Accepted(key, id string) {
	o := j.orders[key]
	j.ask("I14", o.ID != "", o.ID == id, "the key %s made withdrawals %s and %s", key, o.ID, id)
	o.ID = id
}

// Alerted is told that the host was alerted of a deposit in suspense.
func (j *Judge) Alerted(shop, deposit string) { j.alerts[shop+"/"+deposit] = true }

// Frozen is told that an operator has put a pending withdrawal on hold, or is about to
// release it.
func (j *Judge) Frozen(id string, on bool) { j.frozen[id] = on }

// Transferred is told that a transfer was accepted under this id: I14.
func (j *Judge) Transferred(key, id string) {
	first, again := j.transferred[key]
	j.ask("I14", again, first == id, "the key %s made transfers %s and %s", key, first, id)
	j.transferred[key] = id
}

// Priced is told of what was wrong with the source of prices when a payment or a withdrawal
// was priced; "" = nothing was.
func (j *Judge) Priced(what, wrong string) {
	j.ask("W18", wrong != "", false, "%s was priced by a source that is %s", what, wrong)
}

// Unpriced is told that nothing was priced by such a source.
func (j *Judge) Unpriced(wrong string) { j.ask("W18", wrong != "", true, "") }

// Mistaken is told that a process was started with a currency mistaken, and what came of it.
func (j *Judge) Mistaken(what string, refused bool, err error) {
	j.ask("W18", true, refused, "a process starts with the %s mistaken: %v", what, err)
}

// Trespassed is told of one merchant's try to reach what is another's.
func (j *Judge) Trespassed(what, whose string, refused bool) {
	j.ask("I16", true, refused, "another merchant could %s of %s", what, whose)
}

// verdict is what a person decided about money in suspense.
type verdict struct {
	Shop, Coin string
	Amount     int64
	Heard      bool
}

// Resolving is told that a person gives money in suspense to the master account,
// before anybody answers.
func (j *Judge) Resolving(shop, deposit, coin string, amount int64) {
	if j.settled[deposit] == nil {
		j.settled[deposit] = &verdict{Shop: shop, Coin: coin, Amount: amount}
	}
}

// Resolved is told the answer: whether it was done.
func (j *Judge) Resolved(deposit string, done bool) {
	if v := j.settled[deposit]; done && v != nil {
		v.Heard = true
	}
}

// resolved is what people gave to a shop's master account out of suspense: for
// certain, and at the most.
func (j *Judge) resolved(shop, coin string) (least, most int64) {
	for _, v := range j.settled {
		if v.Shop != shop || v.Coin != coin {
			continue
		}
		most += v.Amount
		if v.Heard {
			least += v.Amount
		}
	}
	return least, most
}
