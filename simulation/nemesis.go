package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
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
	Nonces      Nemesis = "nonces"       // beside lies: nodes that say more of our nonces were used than were
	Broadcasts  Nemesis = "broadcasts"   // answers lost, transactions swallowed or refused
	Eviction    Nemesis = "eviction"     // our own transactions leave the mempool
	Revival     Nemesis = "revival"      // every old raw transaction is sent again
	Malleation  Nemesis = "malleation"   // a customer's transaction under another hash
	Forgery     Nemesis = "forgery"      // beside malleation: our own, on networks that keep outputs
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
	Tokens      Nemesis = "tokens"       // contracts that pause, block our hot address, or do nothing
	Attackers   Nemesis = "attackers"    // look-alike tokens, dust, tenants after others' objects
	Restores    Nemesis = "restores"     // the store is put back to an older backup
	Mistakes    Nemesis = "mistakes"     // a price with its point in the wrong place, a currency with another's contract or units
	Signers     Nemesis = "signers"      // a signer out of reach, whose answers are lost, or that refuses
)

// Nemeses lists all of them.
func Nemeses() []Nemesis { return append(dealtNemeses(), hardNemeses()...) }

// dealtNemeses are those that have cards in the deck, or strike at calls of the store.
func dealtNemeses() []Nemesis {
	return []Nemesis{
		Reorgs, DeepReorgs, FlipFlop, Drops, Lag, NodeErrors, Partial, Lies, Nonces, Broadcasts, Eviction, Revival, Malleation, Forgery, Fees,
		Crashes, Pauses, Conflicts, LostCommits, FailedReads, Skew, Jumps, Crowd, Receivers, Prices, Operators, Attackers,
		Restores, Tokens, Mistakes, Signers,
	}
}

// dormant are the nemeses that strike only where they are asked for: what they
// break is known, see docs/evidence/reliability.md.
var dormant = []Nemesis{Forgery, Nonces}

// perPoint are the nemeses that strike at calls of the store: by how many of
// 10,000 at the most.
var perPoint = map[Nemesis]int{Crashes: 40, Pauses: 200, Conflicts: 200, LostCommits: 200, FailedReads: 200}

// swarm draws what may strike in this run, and how hard. What Options leave out
// of what the seed has drawn keeps its place in the deck and does nothing, so
// that the rest of the run stays as it is.
func (r *run) swarm() {
	for _, n := range dealtNemeses() {
		odds := 45
		switch {
		case n == DeepReorgs: // what they bring hides what others do
			odds = 25
		case n == Restores && r.rate[DeepReorgs] > 0:
			odds = 0
		case n == Restores:
			odds = 8
		case n == Crowd && r.cards[Pauses] > 0: // nobody overtakes who is alone
			odds = 75
		}
		in := r.rng.IntN(100) < odds
		hard, rate := 1+r.rng.IntN(100), 1+r.rng.IntN(4)
		if most := perPoint[n]; most > 0 {
			rate = max(1, most*hard*hard/10_000)
		}
		in = in && !slices.Contains(dormant, n)
		active := in
		if r.w.Nemeses != nil {
			active = slices.Contains(r.w.Nemeses, n)
		}
		active = active && r.w.able(n)
		if in || active {
			r.cards[n] = rate
		}
		if active {
			r.rate[n], r.struck[n] = rate, 0
		}
	}
	r.harden()
	r.deep = r.rate[DeepReorgs] > 0
	r.dear = rand.New(rand.NewPCG(r.w.Seed, 0xdea2)).IntN(4 * r.w.Steps) // dice of its own: all other worlds stay as they are
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
		{8, "payment", r.askPayment},
		{12, "customer", r.customer},
		{11, "withdrawal", r.askWithdrawal},
		{2, "cancel withdrawal", func() string { return r.regret(r.anyPayout()) }},
		{1, "cancel payment", r.cancelPayment},
		{2, "last moment", r.lastMoment},
		{3, "transfer", r.askTransfer},
		{2, "wallet", r.askWallet},
		{2, "retry", r.retry},
		{2, "operator", r.operate},
	}
	nemeses := map[Nemesis]action{
		Reorgs: {3, "reorg", r.reorg}, DeepReorgs: {4, "deep reorg", r.deepReorg}, FlipFlop: {2, "flip-flop", r.flip},
		Drops: {2, "drop", r.drop}, Lag: {3, "node", r.lag}, NodeErrors: {3, "node", r.nodeErrors}, Partial: {2, "node", r.partial},
		Lies: {2, "node", r.lie}, Broadcasts: {3, "node", r.broadcasts}, Eviction: {2, "evict", r.evict}, Revival: {1, "revive", r.reviveOld},
		Malleation: {2, "malleate", r.malleate}, Fees: {2, "fees", r.fees}, Skew: {2, "clock", r.skew}, Jumps: {1, "clock", r.jump},
		Receivers: {3, "receiver", r.receiver}, Prices: {2, "prices", r.misprice}, Operators: {2, "operator", r.meddle},
		Attackers: {4, "attacker", r.attack}, Restores: {1, "restore", r.restore}, Tokens: {2, "token", r.pauseToken},
		Mistakes: {2, "mistake", r.mistype}, Signers: {2, "signer", r.unsign},
	}
	for _, n := range dealtNemeses() {
		a, ok := nemeses[n]
		if !ok || r.cards[n] == 0 {
			continue
		}
		strike := a.do
		a.weight *= r.cards[n]
		a.do = func() string {
			if r.rate[n] == 0 {
				return "left out"
			}
			r.struck[n]++
			return strike()
		}
		all = append(all, a)
	}
	for _, n := range []Nemesis{Lag, NodeErrors, Partial, Lies, Broadcasts} {
		if r.cards[n] > 0 {
			all = append(all, action{3, "node", r.heal})
		}
	}
	for _, x := range r.w.Actors {
		all = append(all, action{x.Weight, x.Name, func() string { return r.guest(x) }})
	}
	return dealt(all)
}

// dealt holds each card as often as its weight says.
func dealt(cards []action) (deck []action) {
	for _, a := range cards {
		deck = append(deck, slices.Repeat([]action{a}, a.weight)...)
	}
	return deck
}

func pick[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

func (r *run) anyNet() *network { return pick(r.rng, r.chains) }

// shallow is the deepest reorg that takes no final deposit away. What is final was so at
// the highest block that there was, and the chain may be shorter now.
func (n *network) shallow() int {
	depth := int(confirmations[n.name]) - 1
	if n.final > 0 {
		depth = min(depth, int(n.final)-1)
	}
	return max(0, depth-int(max(0, n.peak-n.chain.Height())))
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
	if r.rate[Drops] > 0 && r.rng.IntN(2) == 0 || r.rng.IntN(4) == 0 {
		gone = r.loose(n)
	}
	// A customer takes back what he has just paid, or the nodes forget what we sent.
	if back := n.young(most, r.rate[Eviction] > 0 && r.rng.IntN(2) == 0); len(back) > 0 && r.rng.IntN(3) > 0 {
		return r.takeBack(n, pick(r.rng, back))
	}
	if n.sim != nil {
		n.leave(int64(depth))
	}
	_, err := n.chain.ReorgTo(depth, length, gone...)
	return fmt.Sprintf("%s by %d, %d new, %d dropped: %t", n.name, depth, length, len(gone), err == nil)
}

// takeBack lets the blocks from that of a transaction go, and it with them.
func (r *run) takeBack(n *network, tx string) string {
	depth := n.depth(tx)
	n.leave(int64(depth))
	_, err := n.chain.ReorgTo(depth, depth+1, tx)
	return fmt.Sprintf("%s by %d, without %s: %t", n.name, depth, short(tx), err == nil)
}

// depth is how many blocks have to go for a transaction to go, 0 where it is in none.
func (n *network) depth(tx string) int {
	st, err := n.sim.Outcome(tx)
	if err != nil || st.State != chain.Included {
		return 0
	}
	return int(n.sim.Height() - st.Block.Height + 1)
}

// tip is the end of a branch that was left, and where it parts from the chain.
type tip struct {
	hash string
	fork int64
}

// leave remembers the branch that is about to be left, depth blocks deep.
func (n *network) leave(depth int64) {
	head := n.sim.Head()
	if depth > int64(n.shallow()) {
		n.undone++
	}
	n.peak = max(n.peak, head.Height)
	for i := range n.tips {
		n.tips[i].fork = min(n.tips[i].fork, head.Height-depth)
	}
	n.tips = append(n.tips, tip{head.Hash, head.Height - depth})
}

// deepReorg takes away what was final, at times from a customer who has been given
// something for it, and then the merchant spends it.
func (r *run) deepReorg() string {
	n := r.anyNet()
	paid := slices.DeleteFunc(n.young(deepest, false), func(tx string) bool { return n.depth(tx) < int(confirmations[n.name]) })
	if len(paid) == 0 || r.rng.IntN(2) == 0 {
		return r.fork(n, true)
	}
	what := r.takeBack(n, pick(r.rng, paid))
	for range 2 {
		r.tell("then %s", r.askWithdrawal())
	}
	return what
}

// deepest is how far back a branch may be found again: past that not even an
// operator knows where to resume.
const deepest = 40

// flip goes back to a branch that was left, if that takes nothing final away.
func (r *run) flip() string {
	n := r.anyNet()
	if len(n.tips) == 0 {
		return "no branch"
	}
	old, before := pick(r.rng, n.tips), n.sim.Head()
	if most := int64(n.shallow()); before.Height-old.fork > most && (r.rate[DeepReorgs] == 0 || before.Height-old.fork > deepest) {
		return "too far"
	}
	n.leave(before.Height - old.fork)
	h, err := n.sim.Switch(old.hash)
	return fmt.Sprintf("%s from %d to %d: %t", n.name, before.Height, h, err == nil)
}

// loose picks some customers' transactions that are not long mined.
func (r *run) loose(n *network) []string {
	all := n.recent(false)
	if len(all) == 0 {
		return nil
	}
	return []string{pick(r.rng, all)}
}

// recent are the newest transactions, of those that are ours or of the others.
func (n *network) recent(ours bool) []string {
	all := n.chain.Transactions(false)
	sent := n.chain.Transactions(true)
	return slices.DeleteFunc(all[max(0, len(all)-12):], func(h string) bool { return slices.Contains(sent, h) != ours })
}

// young are those of them that the last few blocks hold.
func (n *network) young(blocks int, ours bool) []string {
	if n.sim == nil {
		return nil
	}
	return slices.DeleteFunc(n.recent(ours), func(h string) bool { return n.depth(h) < 1 || n.depth(h) > blocks })
}

func (r *run) drop() string {
	n := r.anyNet()
	gone := r.loose(n)
	n.chain.Drop(gone...)
	return fmt.Sprint(n.name, len(gone))
}

func (r *run) evict() string {
	n := r.anyNet()
	if r.rate[Reorgs] > 0 && r.rng.IntN(2) == 0 {
		return r.fork(n, false)
	}
	pool := n.sim.Mempool()
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
	pool := n.sim.Mempool()
	if n.chain.Family() == chain.AccountFamily || r.rate[Forgery] == 0 {
		// No account network has another hash for what somebody signed.
		ours := n.chain.Transactions(true)
		pool = slices.DeleteFunc(pool, func(h string) bool { return slices.Contains(ours, h) })
	}
	if len(pool) == 0 {
		return "nothing"
	}
	_, err := n.sim.Malleate(pick(r.rng, pool))
	return fmt.Sprint(n.name, err == nil)
}

func (r *run) fees() string {
	n := r.anyNet()
	times := pick(r.rng, []int64{1, 1, 2, 3, 5})
	n.sim.SetFeeLevel(n.fees() * times)
	return fmt.Sprint(n.name, " times ", times)
}

// rise doubles the fees of a network for good, once in a quarter of the worlds with
// spikes, while gas that was bought before is on its way to a sweep. What
// was signed and set aside before bears twice the price. On networks that keep outputs it
// need not, and would rightly wait for ever: they have no such gas.
func (r *run) rise() {
	r.abate()
	if r.rate[Fees] == 0 || r.step < r.dear {
		return
	}
	for _, n := range r.chains {
		for _, s := range r.sweeps(n) {
			if s.State == treasury.SweepFunding {
				r.struck[Fees]++
				r.dear, n.level = r.w.Steps+1, 2*n.level
				n.sim.SetFeeLevel(n.fees())
				r.tell("fees: %s times 2, for good", n.name)
				return
			}
		}
	}
}

// pauseToken lets a token's contract refuse what it mostly does, or takes that back.
func (r *run) pauseToken() string {
	n := r.anyNet()
	c := currency(pick(r.rng, n.coins))
	if c.Native() {
		return "the coin itself"
	}
	how := pick(r.rng, []string{"honest", "honest", "paused", "does nothing", "blocks"})
	var b sim.Behaviour
	switch how {
	case "paused":
		b.Paused = true
	case "does nothing":
		b.ReturnsFalse = true
	case "blocks":
		b.Blocked = []chain.Address{r.anyMerchant().hot[n.name]}
	}
	if how != "honest" {
		r.outside.judge.Refusing()
	}
	n.sim.SetBehaviour(c.Contract, b)
	return c.Code + " " + how
}

// honestTokens ends what pauseToken did.
func (n *network) honestTokens() {
	for _, code := range n.coins {
		if c := currency(code); !c.Native() {
			n.sim.SetBehaviour(c.Contract, sim.Behaviour{})
		}
	}
}
