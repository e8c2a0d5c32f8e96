package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/simulation/internal/judge"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// save changes when coins of deposit addresses are moved: by a merchant's policy, or by the
// configuration of one process.
func (r *run) save() string {
	if r.rng.IntN(3) == 0 {
		return r.tighten()
	}
	m := r.anyMerchant()
	p := policy.Policy{Rules: policy.Default().Rules}
	var told []judge.Saving
	for _, n := range r.chains {
		for _, code := range n.coins {
			if r.rng.IntN(4) == 0 || code == r.fresh() {
				continue
			}
			s := policy.Sweep{
				Currency: code, Multiple: pick(r.rng, []uint64{3, 30, 200, 1000, 1000}),
				Wait: policy.Duration(pick(r.rng, []time.Duration{time.Minute, 2 * time.Hour, 12 * time.Hour, 36 * time.Hour, 36 * time.Hour})),
			}
			p.Sweeps = append(p.Sweeps, s)
			told = append(told, judge.Saving{Coin: code, Multiple: int64(s.Multiple), Wait: time.Duration(s.Wait)})
		}
	}
	said := "not heard"
	r.ask("policy", func(t *task) {
		heard := r.outside.judge.Saves(m.id, r.now, told)
		now, err := t.p.app.Policies.Get(context.Background(), m.id)
		if err == nil {
			_, _, err = t.p.app.Operate.SetPolicy(context.Background(), m.id, now.Number, p, cryptopay.Call{By: "operator", Reason: "fees"})
		}
		if said = fmt.Sprint(err == nil); err == nil {
			heard(r.now)
		} else if !errors.Is(err, policy.ErrVersion) { // its own first try may have been in time
			r.excuse(t, err)
		}
	})
	return fmt.Sprintf("merchant %d has %v wait: %s", m.n, told, said)
}

// tighten starts one process again that spends less on moving coins, in a day or for each.
func (r *run) tighten() string {
	p := pick(r.rng, r.procs)
	if !p.free() {
		return "busy"
	}
	p.kill()
	p.daily, p.parts = decimal.New(pick(r.rng, []int64{0, 1, 5, 50}), 0), pick(r.rng, []uint64{0, 3, 20})
	r.revive(p)
	return fmt.Sprintf("%s is started again: at most %s USD a day, and one part in %d", p, p.daily, p.parts)
}
