package simulation

import (
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// spoil gives one node of one process a fault.
func (r *run) spoil(what string, f func(n *sim.Node)) string {
	p, n := pick(r.rng, r.procs), r.anyNet()
	return r.spoilOn(p, n, what, f)
}

func (r *run) spoilOn(p *process, n *network, what string, f func(n *sim.Node)) string {
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
		by := -int64(r.rng.IntN(3))
		if r.rate[Nonces] > 0 {
			by = -by
		}
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
	err := pick(r.rng, []error{nil, sim.ErrNonceTooLow, sim.ErrUnderpriced, sim.ErrInsufficient, chain.ErrRejected})
	return r.spoil(fmt.Sprint(times, " refused: ", err), func(n *sim.Node) { n.RefuseNext(times, err) })
}

// heal makes one process's nodes honest again.
func (r *run) heal() string {
	p := pick(r.rng, r.procs)
	p.wellAgain()
	return p.String() + " well"
}

func (p *process) wellAgain() {
	for _, n := range p.nodes {
		n.Honest()
	}
	clear(p.sick)
}

// skew sets one process's clock off.
func (r *run) skew() string {
	p := pick(r.rng, r.procs)
	p.skew = pick(r.rng, []time.Duration{0, 0, time.Second, -time.Second, 20 * time.Second, -20 * time.Second, 5 * time.Minute, -5 * time.Minute, time.Hour, -time.Hour})
	r.skewed = max(r.skewed, p.skew.Abs())
	if p.task != nil {
		p.task.struck = true // its clock has moved under its feet
	}
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
