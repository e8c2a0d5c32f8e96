package judge

import (
	"slices"
	"time"

	"github.com/shopspring/decimal"
)

// aboutSavings are promises about coins that a merchant's policy has wait for cheaper times.
var aboutSavings = []Promise{
	{ID: "saving-ends", Rule: "Coins wait for more only where a policy of their merchant says so, and no longer than it says."},
	{ID: "saving-needed", Rule: "A withdrawal that needs the coins ends their wait.", Rare: true},
	{ID: "saving-kept", Rule: "Before that time is over they are moved only where a withdrawal may need them, or moving them costs at most one part in the policy's multiple."},
}

// Saving is what a policy says of a coin on deposit addresses.
type Saving struct {
	Coin     string
	Multiple int64
	Wait     time.Duration
}

// savings are what one policy says.
type savings struct {
	from  time.Time // asked for
	sure  time.Time // in force; zero = nobody has heard that it is
	lines []Saving
}

func (s *savings) of(coin string) (Saving, bool) {
	i := slices.IndexFunc(s.lines, func(l Saving) bool { return l.Coin == coin })
	if i < 0 {
		return Saving{}, false
	}
	return s.lines[i], true
}

// Saves is told that a merchant's coins are to wait, before anybody answers. heard is told when
// somebody has said that they do.
func (j *Judge) Saves(shop string, now time.Time, lines []Saving) (heard func(now time.Time)) {
	s := &savings{from: now, lines: lines}
	j.saves[shop] = append(j.saves[shop], s)
	return func(now time.Time) { s.sure = now }
}

// saved judges coins that wait at deposit addresses, and those that were moved.
func (j *Judge) saved(s *Scene, shop *Shop) {
	all := j.saves[shop.ID]
	waits := map[string]int64{}
	for i := range shop.Resting {
		r := &shop.Resting[i]
		if r.Reason != waitsForMore {
			continue
		}
		longest := time.Duration(0)
		for _, x := range all {
			if l, ok := x.of(r.Coin); ok {
				longest = max(longest, l.Wait)
			}
		}
		long := r.Next.After(r.Since.Add(longest+s.Weather.Skew)) && r.Next.After(s.Now.Add(untold)) // else somebody is at it
		late := !s.Stepped.IsZero() && r.Next.Add(untold).Before(s.Stepped.Add(-s.Weather.Skew))
		j.ask("saving-ends", true, longest > 0 && !long && !late,
			"%s at %s wait for more since %s until %s, and the policy says %s", r.Coin, r.Address, r.Since, r.Next, longest)
		if !s.Stepped.IsZero() && r.Since.Add(untold).Before(s.Stepped.Add(-s.Weather.Skew)) {
			waits[r.Coin] += r.Amount
		}
	}
	for _, coin := range sorted(waits) {
		need, long := int64(0), false
		for i := range shop.Payouts {
			if p := &shop.Payouts[i]; p.Coin == coin && p.open() {
				need += p.Amount
				long = long || p.Reason == hotShort && p.Since.Add(untold).Before(s.Stepped.Add(-s.Weather.Skew))
			}
		}
		lack := need - shop.Hot[coin]
		able := need > 0 && !j.coin(coin).Native && !s.Halted[coin] && !s.Weather.Deep && !s.Weather.Restored
		j.ask("saving-needed", able, !long || lack <= 0 || lack > waits[coin], "withdrawals of %s in %s lack %d, and %d wait for more", shop.ID, coin, lack, waits[coin])
	}
	if len(all) > 0 && s.End && !s.Weather.Deep && !s.Weather.Restored {
		for i := range s.Chains {
			j.tooSoon(s, shop, &s.Chains[i], all)
		}
	}
}

// waitsForMore is the reason of coins that a policy has wait.
const waitsForMore = "waits_for_more"

// tooSoon judges the moves of coins that came to a merchant's deposit addresses while one policy
// held, from their coming to their move.
func (j *Judge) tooSoon(s *Scene, shop *Shop, c *Chain, all []*savings) {
	if c.Outputs || c.Blind {
		return
	}
	ours := map[string]bool{}
	for i := range shop.Payments {
		ours[shop.Payments[i].Address] = true
	}
	gas, cost := j.gas(c.Network), map[string]int64{}
	for _, t := range c.Sent {
		cost[t.Tx] = t.Cost
	}
	came := map[string][]Move{}
	for _, m := range c.Moves {
		if at := m.To + "/" + m.Coin; ours[m.To] && !c.Own[m.From] {
			came[at] = append(came[at], m)
		}
		in := came[m.From+"/"+m.Coin]
		if !ours[m.From] || !c.Hot[m.To] || len(in) != 1 {
			continue
		}
		line, ok := inForce(all, m.Coin, in[0].Time.Add(-s.Weather.Skew), m.Time.Add(s.Weather.Skew))
		soon := m.Time.Add(s.Weather.Skew).Before(in[0].Time.Add(line.Wait))
		for i := range shop.Payouts {
			p := &shop.Payouts[i]
			ended := !p.Completed.IsZero() && p.Completed.Before(in[0].Time.Add(-s.Weather.Skew))
			soon = soon && (p.Coin != m.Coin || ended || p.Created.After(m.Time.Add(s.Weather.Skew)))
		}
		if !ok || !soon || line.Multiple == 0 {
			continue
		}
		coin := j.coin(m.Coin)
		worth := m.Amount.Mul(s.Prices[coin.Token]).Mul(decimal.New(11, -1)) // some was dust, or the price moved
		paid := gas.whole(cost[m.Tx]).Mul(s.Prices[gas.Token]).Mul(decimal.New(line.Multiple, 0))
		j.ask("saving-kept", true, paid.LessThanOrEqual(worth), "%s %s of %s were moved after %s by %s, which cost %s USD: more than one part in %d, with a wait of %s",
			m.Amount, m.Coin, m.From, m.Time.Sub(in[0].Time), m.Tx, paid.Div(decimal.New(line.Multiple, 0)), line.Multiple, line.Wait)
	}
}

// inForce is what the one policy says of a coin that held from one moment to another; false = none
// did, or another may have.
func inForce(all []*savings, coin string, from, to time.Time) (Saving, bool) {
	var at *savings
	for _, x := range all {
		switch {
		case !x.from.After(from):
			at = x
			if x.sure.IsZero() || x.sure.After(from) {
				at = nil
			}
		case !x.from.After(to):
			return Saving{}, false
		}
	}
	if at == nil {
		return Saving{}, false
	}
	return at.of(coin)
}
