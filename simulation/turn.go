package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// Turn is what an Actor and a Check have to work with.
type Turn struct {
	App    *cryptopay.App
	Tenant string
	Rand   *rand.Rand // the only source of chance
	Now    time.Time
	r      *run
}

// Chains lists the simulated networks of this world.
func (t *Turn) Chains() []*sim.Chain {
	var out []*sim.Chain
	for _, n := range t.r.chains {
		if n.sim != nil {
			out = append(out, n.sim)
		}
	}
	return out
}

// Chain finds one of the simulated networks; nil where this world does not have it.
func (t *Turn) Chain(n chain.Network) *sim.Chain {
	for _, x := range t.r.chains {
		if x.name == n {
			return x.sim
		}
	}
	return nil
}

// Currencies lists what is paid with in this world.
func (t *Turn) Currencies() []string {
	var out []string
	for _, n := range t.r.chains {
		out = append(out, n.coins...)
	}
	return out
}

func (r *run) turn(t *task, m *merchant) *Turn {
	return &Turn{App: t.p.app, Tenant: m.id, Rand: r.rng, Now: r.now, r: r}
}

// guest lets an actor of the host's act.
func (r *run) guest(x Actor) string {
	what := "not heard"
	r.ask(x.Name, func(t *task) {
		said, err := x.Act(r.turn(t, r.anyMerchant()))
		what = said
		if !verdict(err) {
			r.excuse(t, err)
		}
	})
	return what
}
