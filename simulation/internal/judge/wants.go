package judge

import (
	"time"

	"github.com/shopspring/decimal"
)

// A withdrawal waits as below_cost where bringing the coins that it lacks costs too much of
// it, as below-cost-shown has it. So coins that are worth less than what moving them costs
// are brought where a withdrawal lacks them: all of them together for half of what it is
// worth.

// want is what withdrawals of one merchant lacked, and what was spent on bringing it, in USD.
type want struct{ value, cost decimal.Decimal }

// wants are those withdrawals, by the deposit addresses from which something was brought that
// cost too much. A merchant's addresses have one between them.
func (j *Judge) wants(s *Scene, c *Chain, dear func(address string) decimal.Decimal) map[string]*want {
	out := map[string]*want{}
	for i := range s.Shops {
		shop, w, of := &s.Shops[i], &want{}, map[*Payout]bool{}
		for k := range shop.Payments {
			p := &shop.Payments[k]
			cost, coin := dear(p.Address), j.coin(p.Coin)
			if !cost.IsPositive() || coin.Network != c.Network {
				continue
			}
			if out[p.Address] == nil { // a permanent address has many payments
				w.cost, out[p.Address] = w.cost.Add(cost), w
			}
			for _, short := range j.lacked(s, c, shop, p.Address, coin) {
				if !of[short] {
					of[short], w.value = true, w.value.Add(coin.whole(short.Amount).Mul(s.Prices[coin.Token]))
				}
			}
		}
	}
	return out
}

// lacked are the withdrawals of a merchant that were open while coins lay at one of his
// deposit addresses and the hot address, to which they were moved then, held less than all
// that were open.
func (j *Judge) lacked(s *Scene, c *Chain, shop *Shop, address string, coin Coin) (out []*Payout) {
	hot, until := "", 0
	for i, m := range c.Moves {
		if m.From == address && m.Coin == coin.Code && c.Hot[m.To] {
			hot, until = m.To, i+1
		}
	}
	held, lie, paid := decimal.Zero, false, map[*Payout]bool{}
	for _, m := range c.Moves[:until] {
		if m.Coin != coin.Code {
			continue
		}
		in, away := m.To == hot, m.From == hot
		if lie && (in || away) {
			all, need := shop.openAt(m.Time.Add(s.Weather.Skew), coin, paid)
			if coin.Native || held.LessThan(need) { // what sending costs comes out of native coins, too
				out = append(out, all...)
			}
		}
		if lie = lie || m.To == address; in {
			held = held.Add(m.Amount)
		}
		if away {
			held = held.Sub(m.Amount)
		}
		for i := range shop.Payouts {
			if p := &shop.Payouts[i]; p.Coin == m.Coin && p.Address == m.To && m.Amount.Equal(coin.whole(p.Amount)) {
				paid[p] = true
			}
		}
	}
	return out
}

// openAt are a merchant's withdrawals of one coin that were ordered by then and not paid yet,
// and what they need together. No view says when one was cancelled: it may have been open.
func (s *Shop) openAt(now time.Time, coin Coin, paid map[*Payout]bool) (all []*Payout, need decimal.Decimal) {
	for i := range s.Payouts {
		if p := &s.Payouts[i]; p.Coin == coin.Code && !p.Created.After(now) && !paid[p] {
			all, need = append(all, p), need.Add(coin.whole(p.Amount))
		}
	}
	return all, need
}
