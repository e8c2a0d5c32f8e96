package world

import (
	"context"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// expectDue holds a new payment against decisions §3: ⌈P⌉ by merchant, ⌈P(1+f)⌉
// by user, at a rate that was really quoted; the tolerance is 0.5 %, at most
// 5 USD worth.
func (r *run) expectDue(m *merchant, in *payment.CreateInput, p payment.Payment) {
	c := currency(p.Currency)
	if !slices.ContainsFunc(r.quoted[c.Token], p.Rate.Equal) {
		r.inside("model", "payment %s has the rate %s, which nobody quoted", p.ID, p.Rate)
		return
	}
	hundred := int64(100)
	num, den := dec(in.Amount).Shift(int32(c.Scale)), p.Rate
	if p.FeeByUser {
		num, den = num.Mul(decimal.New(hundred, 0).Add(m.fee)), den.Mul(decimal.New(hundred, 0))
	}
	due := ceilDiv(num.Shift(20).BigInt(), den.Shift(20).BigInt())
	if due.Cmp(big64(p.Due)) != 0 {
		r.inside("model", "payment %s of %s USD at %s asks for %d units, should be %s", p.ID, in.Amount, p.Rate, p.Due, due)
	}
	most := dec("5").Shift(int32(c.Scale)).Div(p.USDRate)
	tolerance := decimal.Min(decimal.New(int64(p.Due), 0).Mul(dec("0.005")), most).IntPart()
	if d := int64(p.Tolerance) - tolerance; d < -1 || d > 1 {
		r.inside("model", "payment %s tolerates %d units, should be %d", p.ID, p.Tolerance, tolerance)
	}
	if p.Status != payment.Waiting || p.FeePercent.Cmp(m.fee) != 0 || p.FeeByUser != *in.FeeByUser {
		r.inside("model", "payment %s begins as %s with fee %s by user %t", p.ID, p.Status, p.FeePercent, p.FeeByUser)
	}
}

// expectPrice holds an accepted withdrawal against decisions §4.
func (r *run) expectPrice(m *merchant, in *withdrawal.CreateInput, v withdrawal.Withdrawal) {
	c := currency(v.Currency)
	figures := []decimal.Decimal{}
	if in.Amount != nil {
		figures = append(figures, *in.Amount)
	} else {
		for _, rate := range r.quoted[c.Token] {
			figures = append(figures, in.PriceAmount.DivRound(rate, 30).Truncate(int32(c.Scale)))
		}
	}
	for _, f := range figures {
		units := f.Shift(int32(c.Scale)).BigInt()
		figure := v.Requested
		if in.FinalAmount {
			figure = v.Amount
		}
		if units.Cmp(big64(figure)) == 0 {
			fee := floorDiv(units, m.percent.Shift(6).BigInt(), 100_000_000, nil)
			if fee != v.PlatformFee {
				r.inside("model", "withdrawal %s of %d has the platform fee %d, should be %d", v.ID, figure, v.PlatformFee, fee)
			}
			return
		}
	}
	r.inside("model", "withdrawal %s: %d requested, %d to the recipient, none of it what was asked for", v.ID, v.Requested, v.Amount)
}

// sent is I7 at any moment: nobody's supplier has more than was accepted for him.
func (r *run) sent() {
	for _, m := range r.tenants {
		for _, p := range m.payouts {
			if p.shared {
				continue
			}
			v, ok := r.accepted(p)
			got := r.network(p.c.Network).chain.Balance(p.to, p.c.Code)
			if !ok && got.Sign() != 0 || ok && got.GreaterThan(p.c.Decimal(v.Amount)) {
				r.inside("I7", "withdrawal %q (%s) of %s paid %s %s to %s", v.ID, v.Status, p.key, got, p.c.Code, p.to)
			}
		}
	}
}

// accepted finds what was stored for a request.
func (r *run) accepted(p *payout) (withdrawal.Withdrawal, bool) {
	if p.id == "" {
		for id, v := range r.truth.payouts {
			if v.Tenant == p.m.id && v.CustomID == p.key {
				p.id = id
			}
		}
	}
	v, ok := r.truth.payouts[p.id]
	v.ID = p.id
	return v, ok
}

// books compares the store's balances with those that the witness kept.
func (r *run) books(m *merchant) {
	part := storage.Tenant(m.id)
	all, err := r.truth.Balances(context.Background(), part)
	if err != nil {
		r.fail("store", "%v", err)
		return
	}
	seen := 0
	for _, b := range all {
		have := balance{b.Posted, b.Held}
		if want := r.truth.balances[balanceKey{part, b.Account, b.Asset}]; have != want {
			r.inside("I2", "%s of %s in %s is %v, the entries make %v", b.Asset, b.Account, part, have, want)
		}
		seen++
	}
	for k, want := range r.truth.balances {
		if k.part == part && want != (balance{}) {
			seen--
		}
	}
	if seen < 0 {
		r.inside("I2", "%s has lost %d balances", part, -seen)
	}
}

// divide splits what a payment received as decisions §3 says: N = min(n, R); F by
// merchant min(⌊R·f⌋, R−N), by user ⌊(R−N)·f/(1+f)⌋; the wallet gets the rest.
func divide(p *payment.Payment) (net, platform, network ledger.Amount) {
	const million = 1_000_000
	f := p.FeePercent.Shift(6).BigInt() // percent · 10^6
	r := big64(p.Received)
	network = min(p.NetworkFee, p.Received)
	rest := p.Received - network
	if p.FeeByUser {
		platform = floorDiv(big64(rest), f, 100*million, f)
	} else {
		platform = min(floorDiv(r, f, 100*million, nil), rest)
	}
	return rest - platform, platform, network
}
