package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// payments judges a shop's payments.
func (j *Judge) payments(s *Scene, shop *Shop) {
	j.permanent(shop)
	for i := range shop.Payments {
		p := &shop.Payments[i]
		j.moved("payment", p.ID, p.Status, payEdges)
		j.address(p)
		if p.AddressID != "" {
			j.regular(s, shop, p)
		} else {
			j.asked(shop, p)
			j.priced(s, p)
		}
		j.split(p)
		j.progress(p)
		j.named(s, p)
		j.timely(s, p)
		j.credited(s, p)
		j.ask("cancelled", p.Cancelled, p.Received == 0 && p.Status == expired, "payment %s was cancelled, is %s and was credited %d", p.ID, p.Status, p.Received)
	}
	j.suspended(s, shop)
	there := map[string]bool{}
	for i := range shop.Payments {
		there[shop.Payments[i].ID] = true
	}
	for i := range shop.Addresses {
		there[shop.Addresses[i].ID] = true
	}
	for _, id := range sorted(j.given) {
		if a := j.given[id]; a.Shop == shop.ID {
			j.ask("kept", !j.lost[id], there[id], "permanent address %s that was given out is nowhere", id)
		}
	}
	for _, id := range sorted(j.asks) {
		if a := j.asks[id]; a.Shop == shop.ID {
			j.ask("kept", !j.lost[id], there[id], "payment %s that was given out is nowhere", id)
		}
	}
}

// suspended is why money matched nothing, as merchants are told it.
func (j *Judge) suspended(s *Scene, shop *Shop) {
	coin := map[string]string{}
	for i := range shop.Payments {
		p := &shop.Payments[i]
		coin[j.coin(p.Coin).Network+"/"+p.Address] = p.Coin
	}
	permanent := map[string]bool{}
	for i := range shop.Addresses {
		permanent[shop.Addresses[i].Network+"/"+shop.Addresses[i].Address] = true
	}
	listed := map[string]int64{}
	for i := range shop.Suspense {
		d := &shop.Suspense[i]
		at := j.coin(d.Coin).Network + "/" + d.Address
		asked, known := coin[at]
		if permanent[at] { // it takes every coin of its network
			known = false
			j.ask("permanent-small", true, d.Reason == "below_minimum" || d.Reason == "unmatched", "%d %s in suspense at a permanent address are shown as %q", d.Amount, d.Coin, d.Reason)
		}
		wrong := asked != d.Coin
		ok := d.Reason == "unmatched" || wrong && d.Reason == "wrong_asset" || !wrong && d.Reason == "late"
		j.ask("I25", true, d.Coin != "" && d.Address != "" && d.Tx != "" && d.Reason != "" && d.Amount > 0, "suspense %+v of %s", *d, shop.ID)
		told := j.alerts[shop.ID+"/"+d.ID]
		waits := d.Reason == "below_minimum" // for more, not for a person: the event tells of it
		j.ask("I25", !s.Weather.Lossy && !waits, told, "%d %s of %s in suspense, %s, and its host was not alerted", d.Amount, d.Coin, shop.ID, d.ID)
		j.ask("I25-alert", s.End && !s.Weather.Restored, told, "%d %s of %s in suspense, %s, and its host was not alerted", d.Amount, d.Coin, shop.ID, d.ID)
		listed[d.Coin] += d.Amount
		j.ask("suspense-reason", known, ok && d.Amount > 0, "%d %s in suspense at an address for %s are shown as %q", d.Amount, d.Coin, asked, d.Reason)
	}
	for _, at := range sorted(shop.Books) {
		if account, coin := cut(at); account == string(ledger.Suspense) {
			have := shop.Books[at].Posted
			j.ask("I25", have != 0 || listed[coin] != 0, have == listed[coin], "%s has %d %s in suspense, and %d are listed", shop.ID, have, coin, listed[coin])
		}
	}
}

// address is I11: no address is given to two payments.
func (j *Judge) address(p *Payment) {
	coin := j.coin(p.Coin)
	key := coin.Network + "/" + p.Address
	j.owner(key, p.ID, p.AddressID)
}

// owner is I11 of one address: it is a payment's, or a permanent one.
func (j *Judge) owner(key, payment, permanent string) {
	who := payment
	if permanent != "" {
		who = permanent
	}
	first, seen := j.where[key]
	j.ask("I11", true, !seen || first == who, "%s and %s have the address %s", first, who, key)
	if !seen {
		j.where[key] = who
	}
}

// permanent is that there is one permanent address for each external_id and network, as it was
// given, and that it is nobody else's.
func (j *Judge) permanent(shop *Shop) {
	of := map[string]string{}
	for i := range shop.Addresses {
		a := &shop.Addresses[i]
		j.owner(a.Network+"/"+a.Address, "", a.ID)
		key := a.Network + "/" + a.ExternalID
		j.ask("permanent", true, of[key] == "", "%s has two permanent addresses for %s", shop.ID, key)
		of[key] = a.ID
		g, known := j.given[a.ID]
		j.ask("permanent", known, g.Shop == shop.ID && g.Network == a.Network && g.Address == a.Address && g.ExternalID == a.ExternalID,
			"the permanent address %+v was given as %+v", *a, g)
	}
}

// regular is what a payment at a permanent address has to be: over what came, at the price when
// it was seen, without a window.
func (j *Judge) regular(s *Scene, shop *Shop, p *Payment) {
	coin, ok := j.coin(p.Coin), false
	for i := range shop.Addresses {
		a := &shop.Addresses[i]
		ok = ok || a.ID == p.AddressID && a.Address == p.Address && a.Network == coin.Network && a.Wallet == p.Wallet
	}
	j.ask("permanent", true, ok && !p.Fixed && !p.Cancelled && p.OrderID == "" && p.Percent.Equal(shop.Fee), "payment %s at a permanent address is %+v, of %+v", p.ID, *p, shop.Addresses)
	j.ask("permanent", true, p.Status != waiting && p.Status != partly && p.Status != expired, "payment %s at a permanent address is %s", p.ID, p.Status)
	j.ask("permanent", true, p.Expires.Equal(p.Created.Add(24*time.Hour)), "payment %s at a permanent address has %s", p.ID, p.Expires.Sub(p.Created))
	live, all := int64(0), int64(0)
	for i := range p.Deposits {
		if all += p.Deposits[i].Amount; !p.Deposits[i].Gone {
			live += p.Deposits[i].Amount
		}
	}
	// A payment that was paid keeps what it was over when a deep reorg takes some of that.
	over := p.Due == live || live == 0 && p.Due > 0 || s.Weather.Deep && p.Due <= all
	j.ask("permanent-due", true, over, "payment %s is over %d, and %d came", p.ID, p.Due, live)
	quoted := false
	for _, rate := range s.Quoted[coin.Token] {
		quoted = quoted || rate.Equal(p.Rate)
	}
	j.ask("permanent-due", true, quoted && p.Price.Equal(coin.whole(p.Due).Mul(p.Rate).Truncate(2)), "payment %s over %d at %s is worth %s", p.ID, p.Due, p.Rate, p.Price)
}

// its reports whether a move counts for a payment by where it came: to the payment's own
// address, or at a permanent one as a deposit of the payment's.
func (p *Payment) its(network string, m *Move) bool {
	if p.AddressID == "" {
		return true
	}
	id := fmt.Sprintf("%s/%s:%d", network, m.Tx, m.Ordinal)
	return slices.ContainsFunc(p.Deposits, func(d Deposit) bool { return d.ID == id })
}

// asked is that a payment is as it was asked for, at the merchant's fee.
func (j *Judge) asked(shop *Shop, p *Payment) {
	a, known := j.asks[p.ID]
	wallet := a.Wallet
	if wallet == "" {
		wallet = master
	}
	j.ask("asked", known, a.Shop == shop.ID && a.Coin == p.Coin && a.ByUser == p.ByUser && a.Fixed == p.Fixed && a.Address == p.Address &&
		wallet == p.Wallet && p.Percent.Equal(shop.Fee), "payment %s of %s is %+v, and was asked for as %+v", p.ID, shop.ID, *p, a)
}

// priced is what a customer has to send, from the price that was asked.
func (j *Judge) priced(s *Scene, p *Payment) {
	a, known := j.asks[p.ID]
	coin := j.coin(p.Coin)
	if !known || !p.Rate.IsPositive() {
		j.ask("due", false, true, "")
		return
	}
	price := decimal.RequireFromString(a.Price)
	ok := false
	for _, rate := range s.Quoted[coin.Token] {
		ok = ok || rate.Equal(p.Rate)
	}
	j.ask("rate", true, ok, "payment %s was priced at %s, which nobody said", p.ID, p.Rate)
	// ⌈P⌉, or ⌈P(1+f)+n⌉ where the customer bears the fee, without a rounding between.
	over := price.Mul(decimal.NewFromInt(100))
	if p.ByUser {
		over = price.Mul(decimal.NewFromInt(100).Add(p.Percent))
	}
	want := ceilDiv(over.Shift(coin.Scale), p.Rate.Mul(decimal.NewFromInt(100)))
	if p.ByUser {
		want += p.Quoted
	}
	j.ask("due", true, p.Due == want, "payment %s of %s USD at %s: %d due, and not %d", p.ID, a.Price, p.Rate, p.Due, want)
	j.ask("window", true, p.Expires.Equal(p.Created.Add(a.Window)), "payment %s has %s, and not %s", p.ID, p.Expires.Sub(p.Created), a.Window)
}

// ceilDiv is a/b rounded up to a whole number, exactly.
func ceilDiv(a, b decimal.Decimal) int64 {
	q, rest := a.QuoRem(b, 0)
	if rest.IsPositive() {
		q = q.Add(decimal.NewFromInt(1))
	}
	return q.IntPart()
}

// floorDiv is a/b rounded down to a whole number, exactly, of what is not negative.
func floorDiv(a, b decimal.Decimal) int64 {
	q, _ := a.QuoRem(b, 0)
	return q.IntPart()
}

// split is how what was received is shared: network, platform, wallet.
func (j *Judge) split(p *Payment) {
	r := decimal.NewFromInt(p.Received)
	hundred := decimal.NewFromInt(100)
	network := min(p.Quoted, p.Received)
	rest := p.Received - network
	platform := min(floorDiv(r.Mul(p.Percent), hundred), rest)
	if p.ByUser {
		platform = floorDiv(decimal.NewFromInt(rest).Mul(p.Percent), hundred.Add(p.Percent))
	}
	j.ask("fees", p.Received > 0, p.Network == network && p.Platform == platform && p.Net == rest-platform,
		"payment %s received %d: network %d, platform %d, net %d, and not %d, %d, %d",
		p.ID, p.Received, p.Network, p.Platform, p.Net, network, platform, rest-platform)
	coin := j.coin(p.Coin)
	value := coin.whole(p.Net).Mul(p.Rate).Truncate(2).StringFixed(2)
	j.ask("received-usd", p.Fixed && p.Received > 0, p.Value == value, "payment %s shows %s received, and not %s", p.ID, p.Value, value)
}

// progress is what the views say has come and is missing.
func (j *Judge) progress(p *Payment) {
	low, high := j.tolerance(p)
	have := p.ShownReceived + p.ShownPending
	missing := max(0, p.Due-have)
	ok := p.ShownShort == missing && have < p.Due-low || p.ShownShort == 0 && have >= p.Due-high
	j.ask("missing", true, ok, "payment %s, %d due, %d received and %d pending, misses %d", p.ID, p.Due, p.ShownReceived, p.ShownPending, p.ShownShort)
}

// named is that a payment tolerates what the papers say, and is called what it came to.
func (j *Judge) named(s *Scene, p *Payment) {
	low, high := j.tolerance(p)
	j.ask("tolerance", p.Rate.IsPositive() && p.AddressID == "", low-1 <= p.Tolerance && p.Tolerance <= high, "payment %s of %d tolerates %d, and not %d", p.ID, p.Due, p.Tolerance, low)
	want := "partial"
	switch {
	case p.Received > p.Due:
		want = "over"
	case p.Received >= p.Due-p.Tolerance:
		want = "full"
	}
	j.ask("type", s.End && p.Received > 0 && !s.Weather.Deep, p.Type == want, "payment %s has %d of %d and is called %q", p.ID, p.Received, p.Due, p.Type)
}

// tolerance is how much less than due is still full: half a percent of it, and at
// most what five USD are worth. The paper does not say how it is rounded, so the two
// figures bound it.
func (j *Judge) tolerance(p *Payment) (low, high int64) {
	most := decimal.NewFromInt(p.Due).Mul(decimal.New(5, -3))
	if p.Rate.IsPositive() {
		cap5 := decimal.NewFromInt(5).Shift(j.coin(p.Coin).Scale).DivRound(p.Rate, 8)
		most = decimal.Min(most, cap5)
	}
	low = most.Floor().IntPart()
	return low, low + 1
}

// timely is that no payment expires before its time.
func (j *Judge) timely(s *Scene, p *Payment) {
	j.ask("expiry", p.Status == expired && !p.Cancelled, !s.Now.Add(s.Weather.Skew).Before(p.Expires),
		"payment %s is expired, and its time ends at %s", p.ID, p.Expires.Format(time.DateTime))
}

// sums are what a chain says came for a payment in its coin and is final: for
// certain in time, and what may count as that. soon is what is in a block at all.
type sums struct{ sure, maybe, soon int64 }

// came adds up what came for a payment.
func (j *Judge) came(s *Scene, p *Payment) (out sums) {
	coin := j.coin(p.Coin)
	c := s.chain(coin.Network)
	for _, m := range c.Moves {
		if m.To != p.Address || m.Coin != p.Coin || m.Amount.LessThan(coin.Dust) || c.inner(j, s, m) || !p.its(c.Network, &m) {
			continue
		}
		units := coin.units(m.Amount)
		out.soon += units
		if c.Height-m.Height+1 < coin.Confirmations {
			continue
		}
		first, known := c.First[m.Tx]
		// A block is dated in whole seconds: one that was taken back may have had it in time.
		late := !m.Time.Before(p.Expires) && (c.Unseen[m.Tx] || known && !first.Add(-s.Weather.Skew-time.Second).Before(p.Expires))
		switch {
		case p.AddressID != "": // it has no window
			out.sure += units
		case m.Time.Before(p.Expires) && !p.Cancelled:
			out.sure += units
		case !late:
			out.maybe += units
		}
	}
	return out
}

// inner reports whether a move is one between the library's own addresses, and no
// withdrawal that somebody ordered to one of them.
func (c *Chain) inner(j *Judge, s *Scene, m Move) bool {
	if m.From != "" && c.Own[m.From] || c.ours(m.Tx) {
		for i := range s.Shops {
			for k := range s.Shops[i].Payouts {
				if p := &s.Shops[i].Payouts[k]; p.Address == m.To && p.Coin == m.Coin && (p.Tx == m.Tx || m.Amount.Equal(j.coin(p.Coin).whole(p.Amount))) {
					return false
				}
			}
		}
		return true
	}
	return false
}

// ours reports whether the library broadcast a transaction.
func (c *Chain) ours(tx string) bool {
	for i := range c.Sent {
		if c.Sent[i].Tx == tx {
			return true
		}
	}
	return false
}

// credited holds what was credited against the chain: I5, and that what came late
// counts for nothing.
func (j *Judge) credited(s *Scene, p *Payment) {
	came := j.came(s, p)
	// After a restore what we had sent, and forgot, counts for whom it was sent to.
	calm := (!s.Weather.Deep || s.End) && !s.Weather.Restored
	j.ask("I5", p.Received > 0 && calm, p.Received <= came.sure+came.maybe,
		"payment %s was credited %d, and %d is final on the chain in its coin and its time (%d in blocks)", p.ID, p.Received, came.sure+came.maybe, came.soon)
	_, tolerance := j.tolerance(p)
	j.ask("enough", paid(p.Status) && !s.Weather.Deep, came.sure+came.maybe >= p.Due-tolerance,
		"payment %s is %s, %d is due and %d has come for good", p.ID, p.Status, p.Due, came.sure+came.maybe)
}
