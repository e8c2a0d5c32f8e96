package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// storm raises the fees of a whole network ten or thirty times, for days. Nobody can send
// anything cheaper meanwhile.
func (r *run) storm() string {
	n := r.anyNet()
	if n.storm > 1 {
		return ""
	}
	n.storm = pick(r.rng, []int64{10, 30})
	n.abates = r.now.Add(time.Duration(12+r.rng.IntN(84)) * time.Hour)
	n.sim.SetFeeLevel(n.fees())
	return fmt.Sprintf("%s times %d until %s", n.name, n.storm, n.abates.Format(time.DateTime))
}

// fees is the level of fees that lasts, for days or for good.
func (n *network) fees() int64 { return n.level * max(1, n.storm) }

// abate ends storms whose time is over.
func (r *run) abate() {
	for _, n := range r.chains {
		if n.storm > 1 && !r.now.Before(n.abates) {
			n.storm = 1
			n.sim.SetFeeLevel(n.level)
			r.tell("%s: %s is as before", Storms, n.name)
		}
	}
}

// siege raises the fees of one network right after payouts were sent, and keeps them high
// for a day and a half, with no other fault on: payouts that are ordered at the new price
// have to be paid meanwhile, and all others have to say why they wait.
func (r *run) siege() {
	if r.rate[Storms] == 0 || r.restored || r.deep {
		return
	}
	n := r.anyNet()
	before := r.ordersOn(n)
	for _, p := range r.procs { // signed and sent, and in no block
		p.do("send", func(t *task) { r.excuse(t, t.p.app.Step(context.Background())) })
		p.do("send", func(t *task) { r.excuse(t, t.p.app.Step(context.Background())) })
	}
	n.storm = pick(r.rng, []int64{10, 30})
	n.sim.SetFeeLevel(n.fees())
	r.tell("%s: %s times %d, and stays", Storms, n.name, n.storm)
	risen := map[string]bool{}
	for _, p := range r.ordersOn(n) {
		risen[p.id] = n.sim.Family() == chain.UTXOFamily || !n.keeps // else nothing can take the place of what nodes have
	}
	end := r.now.Add(36 * time.Hour)
	r.days(6, func(int) bool { return r.now.Before(end) })
	r.outside.risen, r.outside.sieged = risen, map[string]bool{}
	for _, p := range before {
		r.outside.sieged[p.id] = true
	}
	r.judged(false)
	r.outside.risen, r.outside.sieged = nil, nil
	n.storm = 1
	n.sim.SetFeeLevel(n.level)
	r.tell("%s: %s is as before", Storms, n.name)
}

// ordersOn lets each merchant order a payout on a network, and lists those that were
// accepted.
func (r *run) ordersOn(n *network) (out []*payout) {
	for _, m := range r.tenants {
		for range 4 {
			c, account := m.rich()
			if c.Network != n.name {
				continue
			}
			r.tell("ordered: %s", r.order(m, c, account))
			if p := m.payouts[len(m.payouts)-1]; p.id != "" && r.truth.payouts[p.id].Status == withdrawal.Pending {
				out = append(out, p)
			}
			break
		}
	}
	return out
}

// days lets time pass as settle does, for as long as more says.
func (r *run) days(blocks int, more func(round int) bool) {
	for round := 0; more(round) && r.failure == nil; round++ {
		r.now, r.calls = r.now.Add(pace(round)), 0
		for _, x := range r.chains {
			x.chain.Mine(blocks)
		}
		r.procs[round%len(r.procs)].do("siege", func(t *task) {
			if round%10 < 2 {
				r.attend(t)
			}
			r.excuse(t, t.p.app.Step(context.Background()))
		})
	}
}
