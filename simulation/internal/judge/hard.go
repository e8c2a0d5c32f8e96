package judge

import "slices"

// aboutHard are promises about worlds that are harder than most: each is asked only where
// what it is about happens.
var aboutHard = []Promise{
	{ID: "thrift", Rule: "An operator who brings coins only where a shown reason asks for them keeps everything going: once he has brought them, no withdrawal waits for coins and no coins wait for gas."},
	{ID: "many-coins", Rule: "A withdrawal of many small coins is paid: the bound of its cost follows the coins that it spends, or they are merged first."},
	{ID: "below-cost-shown", Rule: "A withdrawal whose coins would cost more to bring than half of it shows that as its reason, below_cost, and one that lacks more than all that waits there does not.", Rare: true},
	{ID: "gas-left", Rule: "Gas that is left on deposit addresses is fetched, or the operator is asked for coins in its place."},
	{ID: "fees-rose", Rule: "A withdrawal ordered at the fees of the day is paid within a day if its coins are at the hot address, also where an earlier one was sent before they rose, if nodes take a dearer one in its place."},
	{ID: "fees-rose-shown", Rule: "A withdrawal that waits for a day because fees rose shows a reason and since when."},
	{ID: "unread", Rule: "A payment that was paid in time is not called expired because nobody had read the blocks: time is the chain's own."},
	{ID: "theft", Rule: "A withdrawal whose row somebody edits in the database before it is signed pays nobody but whom it was ordered for, or waits with a reason; Verify names it."},
	{ID: "rollout", Rule: "While a new currency is known to one process and not to another, what customers pay in it is credited or in suspense as ever."},
	{ID: "delivered-less", Rule: "A withdrawal that was executed and brought less than was ordered is neither failed nor refunded, and completed only by an operator; one that was completed before it landed shows it until an operator has decided."},
	{ID: "taxed", Rule: "Where a token took from holders what the books do not know of, its payouts are halted.", Open: "M03", Why: "What a fee took of sweeps is booked; what a rebase took is named, and nobody adjusts the books: once an operator lifts the halt payouts go on."},
	{ID: "traitor", Rule: "The signer signs no second payout with a nonce that it has signed with, and sends gas, sweeps and change to addresses of ours alone, whoever asks."},
	{ID: "halted", Rule: "After a halt has returned nothing is sent within its scope but what it said is on its way, by any process, until it is lifted; one of a currency or merchant leaves alone what fills a nonce."},
	{ID: "traitor-new", Rule: "The signer signs no payout that nobody has ordered."},
}

// hard judges the end of such a world.
func (j *Judge) hard(s *Scene) {
	for i := range s.Shops {
		j.thrift(s, &s.Shops[i])
		j.manyCoins(s, &s.Shops[i])
		j.rollout(s, &s.Shops[i])
	}
}

// Reasons that other promises do not name.
const (
	stuck     = "stuck"           // of a withdrawal: a node or signer does not do its part
	tooHigh   = "fee_too_high"    // the network asks more than the bound
	gasShort  = "gas_float_short" // of coins that wait for the operator's
	hotShort  = "hot_short"       // of a withdrawal: the hot address does not hold the amount
	belowCost = "below_cost"      // they cost too much to bring
)

// coinsLieElsewhere asks about a withdrawal that waits for coins which no operator is asked
// for: those of deposits that cost too much to bring, and gas that was left on deposit
// addresses. It reports whether one of them keeps the withdrawal open.
func (j *Judge) coinsLieElsewhere(s *Scene, shop *Shop, p *Payout) bool {
	low := s.Weather.Crumbs && p.open() && shop.low(p.Coin)
	lack := p.Amount - shop.Hot[p.Coin]
	j.ask("below-cost-shown", low && lack <= shop.rests(p.Coin, belowCost), p.Reason != hotShort, "withdrawal %s waits for coins, and does not say that they cost too much to bring", p.ID)
	j.ask("below-cost-shown", p.open() && lack > shop.rests(p.Coin, ""), p.Reason != belowCost, "withdrawal %s lacks %d, more than waits anywhere, and shows that it costs too much to bring", p.ID, lack)
	left := s.Weather.Thrift && p.Reason == hotShort && j.coin(p.Coin).Native
	j.ask("gas-left", s.Weather.Thrift && p.open(), !left, "withdrawal %s waits for coins, and nobody is asked to bring them", p.ID)
	return low && (p.Reason == hotShort || p.Reason == belowCost) || left && p.open()
}

// low is whether coins wait on deposit addresses because they are worth too little.
func (s *Shop) low(coin string) bool {
	return slices.ContainsFunc(s.Resting, func(r Resting) bool { return r.Coin == coin && r.Reason == belowCost })
}

// rests is how much of a coin waits on deposit addresses, for one reason or any.
func (s *Shop) rests(coin, reason string) (sum int64) {
	for i := range s.Resting {
		if r := &s.Resting[i]; r.Coin == coin && (reason == "" || r.Reason == reason) {
			sum += r.Amount
		}
	}
	return sum
}

// thrift is that shown reasons are all that an operator needs to look at.
func (j *Judge) thrift(s *Scene, shop *Shop) {
	able := s.Weather.Thrift && !s.Weather.Deep && !s.Weather.Restored
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		j.ask("thrift", able && !s.Spared[p.ID], !p.open() || j.coinsLieElsewhere(s, shop, p) || p.Reason == stuck || p.Reason == tooHigh, "withdrawal %s is still %s for %q, and all that was asked for was brought", p.ID, p.Status, p.Reason)
	}
	for i := range shop.Resting {
		r := &shop.Resting[i]
		j.ask("thrift", able, r.Reason != gasShort, "%s at %s still waits for gas, and all that was asked for was brought", r.Coin, r.Address)
	}
}

// manyCoins is that a wallet of many small coins can pay.
func (j *Judge) manyCoins(s *Scene, shop *Shop) {
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		j.ask("many-coins", !s.Weather.Restored && !s.Weather.Deep, !p.open() || p.Reason != tooHigh, "withdrawal %s is still %s for %q", p.ID, p.Status, p.Reason)
	}
}

// dearer is what a rise of fees that stays does to withdrawals.
func (j *Judge) dearer(s *Scene, shop *Shop) {
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		risen, before := s.Risen[p.ID], s.Sieged[p.ID]
		if risen {
			there := p.Reason != hotShort && p.Reason != belowCost // else its coins cost too much to bring
			j.ask("fees-rose", there, !p.open(), "withdrawal %s was ordered after fees had risen and is %s for %q", p.ID, p.Status, p.Reason)
		}
		if risen || before {
			j.ask("fees-rose-shown", p.open(), p.Reason != "" && !p.Since.IsZero(), "withdrawal %s is %s since %s and shows no reason", p.ID, p.Status, p.Created)
		}
	}
}

// unread is that a payment does not expire on what nobody has read.
func (j *Judge) unread(s *Scene, shop *Shop) {
	if !s.Weather.Aged || s.End {
		return
	}
	for i := range shop.Payments {
		p := &shop.Payments[i]
		coin, came := j.coin(p.Coin), int64(0)
		for _, m := range s.chain(coin.Network).Moves {
			if m.To == p.Address && m.Coin == p.Coin && p.its(coin.Network, &m) && m.Time.Before(p.Expires) && !m.Amount.LessThan(coin.Dust) {
				came += coin.units(m.Amount)
			}
		}
		j.ask("unread", came >= p.Due && !p.Cancelled, p.Status != expired, "payment %s of %d is expired, and %d came before its end", p.ID, p.Due, came)
	}
}

// theft is that who edits the database is not paid.
func (j *Judge) theft(s *Scene, shop *Shop) {
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		e, ok := s.Edited[p.ID]
		if !ok {
			continue
		}
		for _, m := range s.chain(j.coin(p.Coin).Network).Moves {
			j.ask("theft", true, m.To != e.Thief, "withdrawal %s was edited, and the thief has %s %s", p.ID, m.Amount, m.Coin)
		}
		j.ask("theft", s.End && p.open(), p.Reason != "" && e.Named, "withdrawal %s was edited and waits for %q (named by Verify: %t)", p.ID, p.Reason, e.Named)
	}
}

// rollout is that a payment in a new currency loses nothing to processes that do not know
// it yet.
func (j *Judge) rollout(s *Scene, shop *Shop) {
	for i := range shop.Payments {
		p := &shop.Payments[i]
		if p.Coin != s.Weather.Fresh || p.AddressID != "" || s.Weather.Deep || s.Weather.Restored {
			continue
		}
		coin, there := j.coin(p.Coin), int64(0)
		for _, m := range s.chain(coin.Network).Moves {
			if m.To == p.Address && m.Coin == p.Coin && !m.Amount.LessThan(coin.Dust) {
				there += coin.units(m.Amount)
			}
		}
		for k := range shop.Suspense {
			if h := &shop.Suspense[k]; h.Address == p.Address && h.Coin == p.Coin {
				there -= h.Amount
			}
		}
		_, most := j.resolved(shop.ID, p.Coin)
		j.ask("rollout", there > 0, p.Received >= there-most-shop.Left[p.Coin] && p.Received <= there,
			"payment %s in the new %s has %d, and %d came that nobody holds back", p.ID, p.Coin, p.Received, there)
	}
}

// less is what becomes of withdrawals that brought less than was ordered.
func (j *Judge) less(s *Scene, shop *Shop) {
	for i := range shop.Payouts {
		p := &shop.Payouts[i]
		o, coin := j.orders[p.CustomID], j.coin(p.Coin)
		if o == nil || o.Shared || !s.Weather.Taxed[p.Coin] || s.Weather.Deep || s.Weather.Restored {
			continue
		}
		for _, m := range s.chain(coin.Network).Moves {
			short := m.To == p.Address && m.Amount.LessThan(coin.whole(p.Amount))
			j.ask("delivered-less", short, p.open() || p.Status == completed && (s.Weather.Took[p.ID] || p.Reason == "delivered_less"),
				"withdrawal %s of %d is %s, and brought %s", p.ID, p.Amount, p.Status, m.Amount)
		}
	}
}

// UnderHalt is told, while something is halted, whether withdrawals of it are open, and of
// orders of it of which a transaction was sent although the halt had not said that it is on
// its way.
func (j *Judge) UnderHalt(open bool, sent []string) {
	j.ask("halted", open || len(sent) > 0, len(sent) == 0, "transactions of %v were sent under a halt", sent)
}

// Betrayed is told what a process asked the signer for beyond what was decided, "" for a
// payout that nobody ordered, and whether it was refused.
func (j *Judge) Betrayed(what string, refused bool) {
	if what == "" {
		j.ask("traitor-new", true, refused, "the signer has signed a payout that nobody ordered")
		return
	}
	j.ask("traitor", true, refused, "the signer has signed %s", what)
}
