package simulation

import (
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// deadHead is the age at which the processes of a world with forgetful nodes take a head
// for one that stands still.
const deadHead = 3 * time.Hour

// headAge is Config.HeadAge: chains of other worlds make blocks only when the world
// goes on.
func (r *run) headAge() time.Duration {
	if r.rate[Amnesia] > 0 {
		return deadHead
	}
	return -1
}

// amnesia lets nodes stand still, forget what is old, or tell finality late or ahead of
// their heads.
func (r *run) amnesia() string {
	n, p := r.anyNet(), pick(r.rng, r.procs)
	what := r.rng.IntN(4)
	if n.final == 0 && what > 1 { // it knows no finality to tell wrongly
		what -= 2
	}
	if currency(n.coins[0]).WaitFinal && what == 2 { // one node's word is all that there is
		what = 3
	}
	switch what {
	case 0: // the one provider that all processes use
		for _, p := range r.procs {
			p.sick[n.name] = true
			p.nodes[n.name].Freeze()
		}
		return string(n.name) + " frozen for all"
	case 1:
		keep := 2 + r.rng.Int64N(30)
		return r.spoilOn(p, n, fmt.Sprintf("keeps %d blocks", keep), func(x *sim.Node) { x.Prune(keep) })
	case 2:
		by := 1 + r.rng.Int64N(5)
		return r.spoilOn(p, n, fmt.Sprint("final ahead by ", by), func(x *sim.Node) { x.LieFinal(n.chain.Height() + by + 10) })
	}
	by := 20 + r.rng.Int64N(200)
	return r.spoilOn(p, n, fmt.Sprint("final late by ", by), func(x *sim.Node) { x.LieFinal(max(0, n.chain.Height()-by)) })
}

// steady says that a block that is left never counts again, and that clocks are right.
func (r *run) steady() bool {
	for _, n := range []Nemesis{DeepReorgs, FlipFlop, Restores, Skew} {
		if r.rate[n] > 0 {
			return false
		}
	}
	return true
}
