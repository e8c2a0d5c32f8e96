package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// Nemesis is one way in which the world is against the library.
type Nemesis string

// The nemeses.
const (
	Reorgs      Nemesis = "reorgs"       // shallower than any deposit's confirmations; mined again in another order
	DeepReorgs  Nemesis = "deep-reorgs"  // deeper than confirmations, past finality
	FlipFlop    Nemesis = "flip-flop"    // back to an abandoned branch
	Drops       Nemesis = "drops"        // customers' transactions leave the mempool or the chain
	Lag         Nemesis = "lag"          // nodes behind, stuck, or on another branch
	NodeErrors  Nemesis = "node-errors"  // nodes that fail by chance: rate limits, timeouts
	Partial     Nemesis = "partial"      // nodes that know blocks and not what they moved
	Lies        Nemesis = "lies"         // wrong heads, finality, nonces, mempools; forgotten transactions
	Broadcasts  Nemesis = "broadcasts"   // answers lost, transactions swallowed or refused
	Eviction    Nemesis = "eviction"     // our own transactions leave the mempool
	Revival     Nemesis = "revival"      // every old raw transaction is sent again
	Malleation  Nemesis = "malleation"   // the same transaction under another hash
	Fees        Nemesis = "fees"         // spikes: what was sent is stuck
	Crashes     Nemesis = "crashes"      // at any call of the store, before or after it
	Pauses      Nemesis = "pauses"       // at any call of the store, past any lease
	Conflicts   Nemesis = "conflicts"    // commits refused
	LostCommits Nemesis = "lost-commits" // commits whose outcome is not told
	FailedReads Nemesis = "failed-reads" // reads that fail
	Skew        Nemesis = "skew"         // processes whose clocks are off
	Jumps       Nemesis = "jumps"        // clocks that jump
	Crowd       Nemesis = "crowd"        // several processes on one store
	Receivers   Nemesis = "receivers"    // webhooks that fail, hang, redirect, or lose the answer
	Prices      Nemesis = "prices"       // sources of prices that fail, are stale, absurd or zero
	Operators   Nemesis = "operators"    // people who resume, recover and resolve at odd times
	Attackers   Nemesis = "attackers"    // look-alike tokens, dust, tenants after others' objects
)

// Nemeses lists all of them.
func Nemeses() []Nemesis {
	return []Nemesis{
		Reorgs, DeepReorgs, FlipFlop, Drops, Lag, NodeErrors, Partial, Lies, Broadcasts, Eviction, Revival, Malleation, Fees,
		Crashes, Pauses, Conflicts, LostCommits, FailedReads, Skew, Jumps, Crowd, Receivers, Prices, Operators, Attackers,
	}
}

// perPoint are the nemeses that strike at calls of the store: by how many of
// 10,000 at the most.
var perPoint = map[Nemesis]int{Crashes: 40, Pauses: 200, Conflicts: 200, LostCommits: 200, FailedReads: 60}

// swarm draws what may strike in this run, and how hard.
func (r *run) swarm() {
	given := r.w.Nemeses != nil
	for _, n := range Nemeses() {
		in := r.rng.IntN(100) < 45
		if n == DeepReorgs { // what they bring hides what others do
			in = r.rng.IntN(100) < 12
		}
		hard := 1 + r.rng.IntN(100)
		if given {
			in = slices.Contains(r.w.Nemeses, n)
		}
		if !in {
			continue
		}
		r.rate[n] = 1 + r.rng.IntN(4)
		if most := perPoint[n]; most > 0 {
			r.rate[n] = max(1, most*hard*hard/10_000)
		}
		r.struck[n] = 0
	}
	r.deep = r.rate[DeepReorgs] > 0
}

// strikes says whether a nemesis of the store strikes now.
func (r *run) strikes(n Nemesis) bool {
	rate := r.rate[n]
	if rate == 0 || r.calm || r.faults.IntN(10_000) >= rate {
		return false
	}
	r.struck[n]++
	return true
}

// action is a card of the deck.
type action struct {
	weight int
	name   string
	do     func() string
}

// deck is what can happen at a step, as often as its weight says.
func (r *run) deck() []action {
	all := []action{
		{30, "work", r.work},
		{18, "mine", r.mine},
		{5, "time passes", r.pass},
		{6, "payment", r.askPayment},
		{12, "customer", r.customer},
		{6, "withdrawal", r.askWithdrawal},
		{1, "cancel withdrawal", r.cancelWithdrawal},
		{1, "cancel payment", r.cancelPayment},
		{3, "transfer", r.askTransfer},
		{1, "wallet", r.askWallet},
		{2, "retry", r.retry},
		{2, "operator", r.operate},
	}
	nemeses := map[Nemesis]action{
		Reorgs: {3, "reorg", r.reorg}, DeepReorgs: {1, "deep reorg", r.deepReorg}, FlipFlop: {2, "flip-flop", r.flip},
		Drops: {2, "drop", r.drop}, Lag: {3, "node", r.lag}, NodeErrors: {3, "node", r.nodeErrors}, Partial: {2, "node", r.partial},
		Lies: {2, "node", r.lie}, Broadcasts: {3, "node", r.broadcasts}, Eviction: {2, "evict", r.evict}, Revival: {1, "revive", r.reviveOld},
		Malleation: {2, "malleate", r.malleate}, Fees: {2, "fees", r.fees}, Skew: {2, "clock", r.skew}, Jumps: {1, "clock", r.jump},
		Receivers: {3, "receiver", r.receiver}, Prices: {2, "prices", r.misprice}, Operators: {2, "operator", r.meddle},
		Attackers: {4, "attacker", r.attack},
	}
	for _, n := range Nemeses() {
		a, ok := nemeses[n]
		if !ok || r.rate[n] == 0 {
			continue
		}
		strike := a.do
		a.weight *= r.rate[n]
		a.do = func() string {
			r.struck[n]++
			return strike()
		}
		all = append(all, a)
	}
	for _, n := range []Nemesis{Lag, NodeErrors, Partial, Lies, Broadcasts} {
		if r.rate[n] > 0 {
			all = append(all, action{3, "node", r.heal})
		}
	}
	for _, x := range r.w.Actors {
		all = append(all, action{x.Weight, x.Name, func() string { return r.guest(x) }})
	}
	var deck []action
	for _, a := range all {
		deck = append(deck, slices.Repeat([]action{a}, a.weight)...)
	}
	return deck
}

func pick[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

func (r *run) anyNet() *network { return pick(r.rng, r.chains) }

// shallow is the deepest reorg that takes no final deposit away.
func (n *network) shallow() int {
	depth := int(confirmations[n.name]) - 1
	if n.final > 0 {
		depth = min(depth, int(n.final)-1)
	}
	return depth
}

func (r *run) reorg() string { return r.fork(r.anyNet(), false) }

func (r *run) fork(n *network, deep bool) string {
	most := n.shallow()
	if deep {
		most = int(confirmations[n.name]) + 6 + r.rng.IntN(20)
	}
	if most < 1 {
		return "none"
	}
	depth := 1 + r.rng.IntN(most)
	length := depth + r.rng.IntN(2)
	var gone []string
	if r.rate[Drops] > 0 && r.rng.IntN(2) == 0 {
		gone = r.loose(n)
	}
	n.tips = append(n.tips, n.chain.Head().Hash)
	_, err := n.chain.ReorgTo(depth, length, gone...)
	return fmt.Sprintf("%s by %d, %d new, %d dropped: %t", n.name, depth, length, len(gone), err == nil)
}

func (r *run) deepReorg() string { return r.fork(r.anyNet(), true) }

// flip goes back to a branch that was left, if that takes nothing final away.
func (r *run) flip() string {
	n := r.anyNet()
	if len(n.tips) == 0 {
		return "no branch"
	}
	tip := pick(r.rng, n.tips)
	before := n.chain.Head()
	if !r.deep && !n.near(tip) {
		return "too far"
	}
	n.tips = append(n.tips, before.Hash)
	h, err := n.chain.Switch(tip)
	return fmt.Sprintf("%s from %d to %d: %t", n.name, before.Height, h, err == nil)
}

// loose picks some customers' transactions that are not long mined.
func (r *run) loose(n *network) []string {
	all := n.chain.Transactions(false)
	mine := map[string]bool{}
	for _, h := range n.chain.Transactions(true) {
		mine[h] = true
	}
	all = slices.DeleteFunc(all[max(0, len(all)-12):], func(h string) bool { return mine[h] })
	if len(all) == 0 {
		return nil
	}
	return []string{pick(r.rng, all)}
}

func (r *run) drop() string {
	n := r.anyNet()
	gone := r.loose(n)
	n.chain.Drop(gone...)
	return fmt.Sprint(n.name, len(gone))
}

func (r *run) evict() string {
	n := r.anyNet()
	pool := n.chain.Mempool()
	if len(pool) == 0 {
		return "nothing"
	}
	n.chain.Drop(pick(r.rng, pool))
	return string(n.name)
}

func (r *run) reviveOld() string {
	n := r.anyNet()
	return fmt.Sprint(n.name, n.chain.ReviveAll())
}

func (r *run) malleate() string {
	n := r.anyNet()
	pool := n.chain.Mempool()
	if len(pool) == 0 {
		return "nothing"
	}
	_, err := n.chain.Malleate(pick(r.rng, pool))
	return fmt.Sprint(n.name, err == nil)
}

func (r *run) fees() string {
	n := r.anyNet()
	times := pick(r.rng, []int64{1, 1, 2, 3, 5})
	n.chain.SetFeeLevel(n.level * times)
	return fmt.Sprint(n.name, " times ", times)
}

// spoil gives one node of one process a fault.
func (r *run) spoil(what string, f func(n *sim.Node)) string {
	p, n := pick(r.rng, r.procs), r.anyNet()
	p.sick[n.name] = true
	f(p.nodes[n.name])
	return fmt.Sprintf("%s of %s: %s", n.name, p, what)
}

func (r *run) lag() string {
	if r.rng.IntN(3) == 0 {
		return r.spoil("frozen", func(n *sim.Node) { n.Freeze() })
	}
	blocks := int64(1 + r.rng.IntN(8))
	return r.spoil(fmt.Sprint(blocks, " behind"), func(n *sim.Node) { n.Lag(blocks) })
}

func (r *run) nodeErrors() string {
	if r.rng.IntN(2) == 0 {
		calls := 1 + r.rng.IntN(4)
		return r.spoil(fmt.Sprint(calls, " failures"), func(n *sim.Node) { n.FailNext(calls, nil) })
	}
	per := 1 + r.rng.IntN(400)
	return r.spoil(fmt.Sprint(per, " in a thousand fail"), func(n *sim.Node) { n.FailRate(per) })
}

func (r *run) partial() string { return r.spoil("partial", func(n *sim.Node) { n.Partial(true) }) }

func (r *run) lie() string {
	switch r.rng.IntN(5) {
	case 0:
		return r.spoil("no mempool", func(n *sim.Node) { n.Blind(true) })
	case 1:
		by := int64(r.rng.IntN(9) - 4)
		return r.spoil(fmt.Sprint("head off by ", by), func(n *sim.Node) { n.LieTip(by) })
	case 2:
		by := int64(r.rng.IntN(5) - 2)
		return r.spoil(fmt.Sprint("nonces off by ", by), func(n *sim.Node) { n.LieNonce(by) })
	case 3:
		return r.spoil("another chain", func(n *sim.Node) { n.WrongChain(true) })
	}
	net := r.anyNet()
	p := pick(r.rng, r.procs)
	p.sick[net.name] = true
	ours := net.chain.Transactions(true)
	if len(ours) == 0 {
		return "forgets nothing"
	}
	p.nodes[net.name].Forget(pick(r.rng, ours))
	return fmt.Sprintf("%s of %s forgets one of ours", net.name, p)
}

func (r *run) broadcasts() string {
	times := 1 + r.rng.IntN(3)
	switch r.rng.IntN(3) {
	case 0:
		return r.spoil(fmt.Sprint(times, " answers lost"), func(n *sim.Node) { n.LoseAnswers(times) })
	case 1:
		return r.spoil(fmt.Sprint(times, " swallowed"), func(n *sim.Node) { n.Swallow(times) })
	}
	err := pick(r.rng, []error{nil, sim.ErrNonceTooLow, sim.ErrUnderpriced, sim.ErrInsufficient})
	return r.spoil(fmt.Sprint(times, " refused: ", err), func(n *sim.Node) { n.RefuseNext(times, err) })
}

// heal makes one process's nodes honest again.
func (r *run) heal() string {
	p := pick(r.rng, r.procs)
	p.wellAgain()
	return p.String() + " well"
}

func (p *process) wellAgain() {
	for _, n := range p.r.chains {
		p.nodes[n.name].Honest()
		delete(p.sick, n.name)
	}
}

// skew sets one process's clock off.
func (r *run) skew() string {
	p := pick(r.rng, r.procs)
	p.skew = pick(r.rng, []time.Duration{0, 0, time.Second, -time.Second, 20 * time.Second, -20 * time.Second, 5 * time.Minute, -5 * time.Minute, time.Hour, -time.Hour})
	r.skewed = max(r.skewed, p.skew.Abs())
	return fmt.Sprintf("%s is off by %s", p, p.skew)
}

// jump moves time itself: a host that was suspended.
func (r *run) jump() string {
	d := pick(r.rng, []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 5 * time.Hour})
	r.now = r.now.Add(d)
	return "jumps by " + d.String()
}

func (r *run) pass() string {
	d := time.Duration(1+r.rng.IntN(600)) * time.Second
	r.now = r.now.Add(d)
	return d.String()
}

// mine adds blocks to some chains, with a moment for every process in between.
func (r *run) mine() string {
	n := 1 + r.rng.IntN(3)
	for range n {
		r.now = r.now.Add(time.Duration(5+r.rng.IntN(20)) * time.Second)
		for _, c := range r.chains {
			if r.rng.IntN(4) > 0 {
				c.chain.Mine(1)
			}
		}
	}
	return fmt.Sprint(n)
}
