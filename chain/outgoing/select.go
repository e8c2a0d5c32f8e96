package outgoing

import (
	"fmt"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// coinCoster is an optional ability of clients of UTXO networks: what a
// transaction of an order would cost, part by part, in units of its currency.
// It needs no node. base is without coins and without change, each of coins what
// one of Order.Coins adds, change what paying change adds, and least the smallest
// change there is.
type coinCoster interface {
	CoinCosts(o chain.Order) (base, change, least ledger.Amount, coins []ledger.Amount, err error)
}

// maxCandidates is how many free coins are looked at for one transaction.
const maxCandidates = 500

// choose orders free coins so that the ones to spend come first, and says how
// many those are. Where the client tells what coins cost, the choice is by
// selection; else it is the largest first.
func (n *Sender) choose(d *candidate, free []coin) ([]coin, int, error) {
	c, able := n.Client.(coinCoster)
	room := max(n.MaxInputs-len(d.kept), 0)
	if !able || len(d.kept) > 0 || d.intent.All {
		free = free[:min(len(free), room)]
		take, err := enough(d, free)
		return free, take, err
	}
	o := d.order()
	for i := range free {
		o.Coins = append(o.Coins, free[i].input())
	}
	base, change, least, costs, err := c.CoinCosts(o)
	if err != nil {
		return nil, 0, err
	}
	s := selection{change: change, least: least, most: room, spare: change}
	amount, err := o.Amount()
	if err != nil {
		return nil, 0, err
	}
	if s.need, err = amount.Add(base); err != nil {
		return nil, 0, err
	}
	for i, coin := range o.Coins {
		s.worth = append(s.worth, coin.Amount-costs[i])
		s.spare = max(s.spare, change+costs[i])
	}
	picked := s.pick()
	if picked == nil {
		return nil, 0, fmt.Errorf("%w: coins for less than %d and their fee", chain.ErrShort, amount)
	}
	out := make([]coin, 0, len(free))
	for _, i := range picked {
		out = append(out, free[i])
	}
	for i := range free { // the largest of the rest stand by
		if len(out) < room && !slices.Contains(picked, i) && s.worth[i] > 0 {
			out = append(out, free[i])
		}
	}
	return out, len(picked), nil
}

// selection chooses coins. It is pure, and the same for the same coins.
type selection struct {
	worth  []ledger.Amount // what each coin brings beyond its own cost, largest coins first
	need   ledger.Amount   // to be reached
	change ledger.Amount   // what change adds to the cost
	least  ledger.Amount   // below this there is none
	most   int             // coins
	// spare is the most that is left to the network where change can be had: what change
	// costs, now and when it is spent. On a network whose outputs must hold much it is less
	// than least.
	spare ledger.Amount
}

// maxTries bounds the search for coins that leave no change.
const maxTries = 50_000

// over is the most that coins that fit bring above the need: too little for change, and no
// more than change is worth.
func (s *selection) over() ledger.Amount { return min(max(s.change+s.least-1, 0), s.spare) }

// pick gives places in worth, ascending; nil where no choice is enough. Coins
// that fit so well that there is no change are best, where they are at most one more
// than with change: it costs an output now and an input later. Else as few coins as it
// takes, and of those the smallest that do, so that large coins stay free for others.
func (s *selection) pick() []int {
	withChange := s.fewest(s.need + s.change + s.least)
	most := s.most
	if withChange != nil {
		most = min(most, len(withChange)+1)
	}
	if exact := s.exact(most); exact != nil {
		return exact
	}
	if withChange == nil {
		return s.fewest(s.need) // what is over goes to the network: there is no other way
	}
	return withChange
}

// exact searches, depth first, for at most so many coins whose worth is nearest above the
// need, and not so far above that there would be change (branch and bound, as
// Bitcoin Core has it).
func (s *selection) exact(most int) []int {
	left := make([]ledger.Amount, len(s.worth)+1) // what coins from here on bring
	for i := len(s.worth) - 1; i >= 0; i-- {
		left[i] = left[i+1] + max(s.worth[i], 0)
	}
	limit := s.need + s.over()
	best := limit + 1
	var chosen, answer []int
	tries := 0
	var walk func(i int, sum ledger.Amount)
	walk = func(i int, sum ledger.Amount) {
		tries++
		switch {
		case sum >= s.need:
			if sum < best || sum == best && len(chosen) < len(answer) {
				best, answer = sum, slices.Clone(chosen)
			}
			return
		case tries > maxTries || i == len(s.worth) || len(chosen) == most || sum+left[i] < s.need:
			return
		}
		if s.worth[i] > 0 && sum+s.worth[i] <= min(limit, best) {
			chosen = append(chosen, i)
			walk(i+1, sum+s.worth[i])
			chosen = chosen[:len(chosen)-1]
		}
		next := i + 1
		for next < len(s.worth) && s.worth[next] == s.worth[i] {
			next++ // equal coins left out make no other choice
		}
		walk(next, sum)
	}
	walk(0, 0)
	return answer
}

// fewest takes the smallest number of coins that reaches a sum, then makes each
// as small as it can be.
func (s *selection) fewest(target ledger.Amount) []int {
	order := make([]int, 0, len(s.worth))
	for i, w := range s.worth {
		if w > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case s.worth[a] > s.worth[b]:
			return -1
		case s.worth[a] < s.worth[b]:
			return 1
		}
		return a - b
	})
	var sum ledger.Amount
	count := 0
	for count < min(len(order), s.most) && sum < target {
		sum += s.worth[order[count]]
		count++
	}
	if sum < target || count == 0 {
		return nil
	}
	picked := make([]int, count) // places in order
	for i := range picked {
		picked[i] = i
	}
	end := len(order)
	for i := count - 1; i >= 0; i-- { // the last one first, to the far end of what is left
		at := picked[i]
		for next := at + 1; next < end; next++ {
			if sum-s.worth[order[at]]+s.worth[order[next]] < target {
				break
			}
			picked[i] = next
		}
		sum += s.worth[order[picked[i]]] - s.worth[order[at]]
		end = picked[i]
	}
	out := make([]int, count)
	for i, p := range picked {
		out[i] = order[p]
	}
	slices.Sort(out)
	return out
}
