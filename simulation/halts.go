package simulation

import (
	"context"
	"errors"
	"slices"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// halt is what an operator has halted. Halts are lifted at odd times, and all of them when
// faults stop: what waited then goes out as ever.
type halt struct {
	scope cryptopay.HaltScope
	// before is how many transactions were sent until Halt returned, by network. It is nil
	// while Halt has not returned, or its answer was not heard: then nothing is judged.
	before map[chain.Network]int
	// stored are the signed transactions that Halt returned: they may still be sent.
	stored map[string]bool
}

// halting halts something, or lifts a halt.
func (r *run) halting() string {
	if len(r.halts) > 0 && r.rng.IntN(3) > 0 {
		h := pick(r.rng, r.halts)
		what := "not heard"
		r.ask("lift", func(t *task) {
			err := r.lift(t, h)
			what = said("lifts "+h.scope.String(), err)
		})
		return what
	}
	n := r.anyNet()
	scope := pick(r.rng, []cryptopay.HaltScope{{}, {Network: n.name}, {Currency: pick(r.rng, n.coins)}, {Tenant: r.anyMerchant().id}, {Network: n.name, Tenant: r.anyMerchant().id}})
	h := &halt{scope: scope}
	r.halts = append(r.halts, h)
	what := "not heard"
	r.ask("halt", func(t *task) {
		e, err := t.p.app.Operate.Halt(context.Background(), scope, cryptopay.Call{By: "operator", Reason: "a look at it"})
		what = said("halts "+scope.String(), err)
		if err != nil || !slices.Contains(r.halts, h) {
			r.excuse(t, err)
			return
		}
		h.before, h.stored = map[chain.Network]int{}, map[string]bool{}
		for _, x := range r.chains {
			h.before[x.name] = len(x.chain.Transactions(true))
		}
		for _, on := range e.OnItsWay {
			for _, tx := range on.Txs {
				h.stored[tx] = true
			}
		}
	})
	return what
}

func said(what string, err error) string {
	if err != nil {
		return what + ": " + err.Error()
	}
	return what
}

// lift ends a halt. Another of the same scope ends with it.
func (r *run) lift(t *task, h *halt) error {
	for _, x := range r.halts {
		if x.scope == h.scope {
			r.underHalt(x)
			x.before = nil
		}
	}
	_, err := t.p.app.Operate.Lift(context.Background(), h.scope, cryptopay.Call{By: "operator", Reason: "all is well"})
	if err == nil {
		r.halts = slices.DeleteFunc(r.halts, func(x *halt) bool { return x.scope == h.scope })
	}
	r.excuse(t, err)
	return err
}

// liftAll ends every halt that the library lists, once no fault is in the way: also that of
// a process which slept while it was lifted.
func (r *run) liftAll() {
	r.halts = nil
	r.procs[0].do("lift", func(t *task) {
		ctx := context.Background()
		all, err := t.p.app.Operate.Halts(ctx)
		for _, h := range all {
			scope := cryptopay.HaltScope{Network: h.Network, Currency: h.Scope.Currency, Tenant: h.Scope.Tenant}
			if h.Scope.Wide {
				scope.Network = ""
			}
			_, failed := t.p.app.Operate.Lift(ctx, scope, cryptopay.Call{By: "operator", Reason: "all is well"})
			err = errors.Join(err, failed)
		}
		if all, failed := t.p.app.Operate.Halts(ctx); err != nil || failed != nil || len(all) > 0 {
			r.fail("world", "%d halts are left: %v", len(all), errors.Join(err, failed))
		}
	})
}

// underHalts lets the judge look at what was sent while something is halted.
func (r *run) underHalts() {
	for _, h := range r.halts {
		r.underHalt(h)
	}
}

// underHalt tells the judge which orders within the scope of a halt were sent after Halt
// returned, but for what was stored before.
func (r *run) underHalt(h *halt) {
	if h.before == nil {
		return
	}
	var slipped []string
	for _, n := range r.chains {
		all := n.chain.Transactions(true)
		from := h.before[n.name]
		h.before[n.name] = len(all)
		for _, tx := range all[min(from, len(all)):] {
			part := storage.Network(string(n.name))
			a, _, _, err := outgoing.Attempts.One(context.Background(), r.truth.Store, part, tx)
			in, _, ok, failed := outgoing.Intents.One(context.Background(), r.truth.Store, part, a.Intent)
			if err != nil || failed != nil || !ok {
				r.fail("world", "the transaction %s of ours is in no book", tx)
				return
			}
			if h.stops(n.name, in.Currency, in.Tenant) && !h.stored[tx] && (h.wide() || a.Purpose != chain.ForCancel) {
				slipped = append(slipped, a.Intent)
			}
		}
	}
	open := slices.ContainsFunc(r.withdrawals(), func(p *payout) bool {
		v := r.truth.payouts[p.id]
		return v.Live() && h.stops(p.c.Network, p.c.Code, p.m.id)
	})
	r.outside.judge.UnderHalt(open, slipped)
}

// stops says whether the halt is of what is sent on a network, of a currency, for a merchant.
func (h *halt) stops(n chain.Network, code, merchant string) bool {
	s := h.scope
	return (s.Network == "" || s.Network == n) && (s.Currency == "" || s.Currency == code) && (s.Tenant == "" || s.Tenant == merchant)
}

// wide says whether it stops also what fills a nonce or takes one back.
func (h *halt) wide() bool { return h.scope.Tenant == "" && h.scope.Currency == "" }

// haltedCoins are those that an operator has halted for somebody.
func (r *run) haltedCoins(halted map[string]bool) {
	for _, h := range r.halts {
		for _, n := range r.chains {
			for _, code := range n.coins {
				if h.stops(n.name, code, h.scope.Tenant) {
					halted[code] = true
				}
			}
		}
	}
}
