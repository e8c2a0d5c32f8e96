package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
)

// rollout is a change of configuration that reaches one process after the other: a
// currency that is new, and more confirmations of another.
type rollout struct {
	code  string // of the new currency
	net   *network
	began bool // some process lists it, so people pay with it
}

// newCurrency leaves out one token, until a rollout brings it.
func (r *run) newCurrency() {
	if r.rate[Rollouts] == 0 {
		return
	}
	dice := rand.New(rand.NewPCG(r.w.Seed^hardSeed, 0xf4e5))
	for _, n := range r.chains {
		if len(n.coins) > 1 {
			at := 1 + dice.IntN(len(n.coins)-1)
			r.rollout = &rollout{code: n.coins[at], net: n}
			n.coins = slices.Delete(slices.Clone(n.coins), at, at+1)
			return
		}
	}
}

// deploy restarts one process with another configuration.
func (r *run) deploy() string {
	p := pick(r.rng, r.procs)
	if !p.free() {
		return "busy"
	}
	p.kill()
	var what string
	switch o := r.rollout; {
	case o != nil && r.rng.IntN(5) > 0 && !p.rolled:
		p.rolled = true
		if !o.began {
			o.began = true
			o.net.coins = append(o.net.coins, o.code)
		}
		what = o.code + " is new"
	case o != nil && r.rng.IntN(3) == 0:
		p.rolled = false
		what = o.code + " is taken back"
	default:
		c := r.coin()
		p.deeper = map[string]int64{c.Code: int64(r.rng.IntN(4))}
		what = fmt.Sprintf("%s needs %d confirmations more", c.Code, p.deeper[c.Code])
	}
	r.revive(p)
	return fmt.Sprintf("%s is started again: %s, it lists it: %t", p, what, p.rolled)
}

// startAgain starts a process. One that would leave out a currency with open business
// refuses, and is given the new configuration.
func (p *process) startAgain() error {
	err := p.start()
	var open *cryptopay.OpenBusinessError
	if p.r.rollout != nil && !p.rolled && errors.As(err, &open) {
		p.kill()
		p.r.counts["refused starts"]++
		p.rolled = true
		err = p.start()
	}
	return err
}

// finish ends a rollout: every process has the new configuration, and the usual
// confirmations, and moves coins as is usual.
func (r *run) finish() {
	for _, p := range r.procs {
		if r.rate[Rollouts] > 0 && (!p.rolled || p.deeper != nil) || p.daily.IsPositive() || p.parts > 0 {
			p.kill()
			p.rolled, p.deeper, p.daily, p.parts = true, nil, decimal.Zero, 0
			r.revive(p)
		}
	}
}

// listing is the registry of a process, as the rollout has reached it.
func (p *process) listing() *chain.Registry {
	r := p.r
	hidden := ""
	if r.rollout != nil && !p.rolled {
		hidden = r.rollout.code
	}
	if hidden == "" && len(p.deeper) == 0 {
		return registry()
	}
	var all []chain.Currency
	for _, k := range registry().Codes() {
		c := *currency(k)
		if k == hidden {
			continue
		}
		c.Confirmations += p.deeper[k]
		all = append(all, c)
	}
	out, err := chain.NewRegistry(registry().Networks(), all)
	if err != nil {
		panic("simulation: " + err.Error())
	}
	return out
}

// unlisted reports whether an error says that a process does not list the currency that
// others list already.
func (r *run) unlisted(err error) bool {
	var wrong *payment.CurrencyError
	return r.rollout != nil && (errors.As(err, &wrong) || errors.Is(err, chain.ErrCurrency))
}

// fresh is the currency that a rollout has brought, "" = none.
func (r *run) fresh() string {
	if r.rollout == nil || !r.rollout.began {
		return ""
	}
	return r.rollout.code
}
