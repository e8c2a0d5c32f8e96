package simulation

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// liveness ends all faults; then everything that is open must come to its end
// within Deadline: I19.
func (r *run) liveness() {
	r.at(r.w.Steps)
	r.calm = true
	for _, p := range r.procs {
		p.wellAgain()
		if p.skew != 0 && p.task != nil {
			p.task.struck = true // its clock is put right under its feet
		}
		p.skew = 0
	}
	r.quote, r.typed, r.inbox.mood = "", nil, ""
	r.wake(true)
	r.finish()
	for _, n := range r.chains {
		if n.sim != nil {
			n.storm = 1
			n.sim.SetFeeLevel(n.level)
			n.honestTokens()
		}
	}
	r.tell("faults stop")
	r.now = r.now.Add(r.skewed)
	r.underHalts()
	if r.rate[Halting] > 0 {
		r.liftAll()
	}
	r.siege()
	for round := range 2 {
		if round == 1 {
			r.drain()
		}
		for range 4 { // coins that waited may be worth their move by now, and on their way
			if r.settle(); r.failure != nil {
				return
			}
			if r.rest(round == 1 || r.deep); r.failure != nil || r.open() == "" {
				break
			}
		}
		r.audit()
		r.judged(true)
		if r.w.Check != nil && r.failure == nil {
			if err := r.w.Check(r.turn(&task{p: r.procs[0]}, r.tenants[0])); err != nil {
				r.fail("check", "%v", err)
			}
		}
		for _, n := range r.chains { // whatever was ever signed comes back
			n.chain.ReviveAll()
		}
	}
}

// drain lets each merchant order all that he has, to see that it can be spent: but for
// what waits on deposit addresses because moving it costs too much, and what a network
// must be paid. It is not asked where a backup or a deep reorg took coins away.
func (r *run) drain() {
	if r.deep || r.restored || len(r.w.Nodes) > 0 {
		return
	}
	ctx := context.Background()
	for _, m := range r.tenants {
		rests := map[string]ledger.Amount{}
		for _, n := range r.chains {
			all, err := r.procs[0].app.Treasury.Waiting(ctx, m.id, n.name, 1000, 0)
			if err != nil {
				r.fail("world", "waiting: %v", err)
				return
			}
			for i := range all {
				rests[all[i].Currency.Code] += all[i].Amount
			}
		}
		for _, id := range append([]string{wallet.Master}, m.wallets...) {
			have, err := r.procs[0].app.Wallets.Balances(ctx, m.id, id)
			if err != nil {
				r.fail("world", "balances: %v", err)
				return
			}
			for _, b := range have[id] {
				c, account := currency(b.Currency), id
				if account == wallet.Master {
					account = ""
				}
				if left := c.Decimal(b.Available - rests[c.Code]); left.IsPositive() {
					r.tell("merchant %d draws %s %s: %s", m.n, left, c.Code, r.withdraw(m, c, account, left))
				}
			}
		}
	}
}

// rest lets what operators brought last become final, too, and where day is set a day of
// calm come to its end.
func (r *run) rest(day bool) {
	for i := 0; i < 3 || day && r.now.Sub(r.outside.calm) < 25*time.Hour; i++ {
		r.now = r.now.Add(pace(10 * i))
		for _, n := range r.chains {
			n.chain.Mine(20)
		}
		r.procs[0].do("rest", func(t *task) { r.excuse(t, t.p.app.Step(context.Background())) })
	}
}

// Deadline is how long after the end of all faults everything has come to its
// end: 24 hours for a transaction that waits in a mempool, the webhooks'
// schedule of 5 h 21 min, and time to be mined.
const Deadline = 48 * time.Hour

// settle lets time pass until nothing is open, or it is time that nothing were.
func (r *run) settle() {
	end := r.now.Add(Deadline)
	given := end
	if r.inbox.dead >= 0 { // what is created last is held back for a day, and tried six times
		given = given.Add(Deadline)
	}
	for round := 0; r.now.Before(end) || r.now.Before(given) && r.deadOnly(); round++ {
		r.now, r.calls = r.now.Add(pace(round)), 0
		for _, n := range r.chains {
			n.chain.Mine(1 + min(round, 10)/2)
		}
		r.procs[round%len(r.procs)].do("settle", func(t *task) {
			if round%10 < 2 {
				r.attend(t)
			}
			t.p.r.excuse(t, t.p.app.Step(context.Background()))
		})
		if r.failure != nil || round > 4 && r.open() == "" {
			return
		}
	}
	r.tell("still open after %s: %s", Deadline, r.open())
}

// deadOnly says that nothing is open but deliveries to a receiver that never answers.
func (r *run) deadOnly() bool {
	what, ok := strings.CutPrefix(r.open(), "webhook ")
	return ok && r.dead(what)
}

// pace is how much time a round lets pass: little at first, so that what follows
// from one another can, then as much as fits into Deadline.
func pace(round int) time.Duration {
	switch {
	case round < 6:
		return time.Minute
	case round < 20:
		return 10 * time.Minute
	case round < 30:
		return time.Hour
	}
	return 3 * time.Hour
}

// undiffer lifts what was halted over a difference between the books and the chain, or over a token that brings
// less than was sent: the operators have looked at it, as the alert asks them to.
func (r *run) undiffer(t *task) {
	ctx := context.Background()
	halts, err := t.p.app.Operate.Halts(ctx)
	r.excuse(t, err)
	for _, h := range halts {
		if h.By != cryptopay.Library || h.Reason != reconcile.ReasonDiffer && h.Reason != string(outgoing.ReasonDeliveredLess) {
			continue
		}
		_, err := t.p.app.Operate.Lift(ctx, cryptopay.HaltScope{Network: h.Network, Currency: h.Currency, Tenant: h.Tenant}, cryptopay.Call{By: "operator", Reason: "looked at the difference"})
		r.excuse(t, err)
	}
}

// attend is what operators do before anything can end: resume what is halted,
// release what they hold, approve what waits for it, see to coins, ask again what was not heard.
func (r *run) attend(t *task) {
	ctx := context.Background()
	for _, n := range r.chains {
		if what := r.resume(t, n); !strings.HasPrefix(what, "nothing") {
			r.tell("operator %s", what)
		}
		for _, m := range r.tenants {
			m.provide(t, n)
		}
	}
	r.undiffer(t)
	t.struck = r.deep
	r.collect()
	for _, m := range r.tenants {
		for _, p := range m.payouts {
			v, ok := r.accepted(p)
			if ok && v.Frozen && v.Status == withdrawal.Pending {
				r.outside.judge.Frozen(v.ID, false)
				_, err := t.p.app.Withdrawals.Release(ctx, m.id, v.ID, "ann", "it is fine")
				r.excuse(t, err)
			}
			if ok && v.Review == withdrawal.ReviewWanted && v.Status == withdrawal.Pending { // it is large
				_, err := t.p.app.Withdrawals.Approve(ctx, m.id, v.ID, "ann", "it is fine")
				r.excuse(t, err)
			}
		}
		lost := m.lost
		m.lost = nil
		for _, again := range lost {
			again(t)
		}
	}
}

// open says what has not come to its end, "" = nothing.
func (r *run) open() string {
	w := r.truth
	for id, p := range w.payments {
		if r.restored && (p.Status == payment.Confirmed || p.Status == payment.Sending) {
			continue // its coins were moved on by a transaction that nobody remembers
		}
		if p.Status != payment.Completed && p.Status != payment.Expired && p.Status != payment.Failed {
			return fmt.Sprintf("payment %s is %s", id, p.Status)
		}
	}
	for id, v := range w.payouts {
		if (v.Status == withdrawal.Pending || v.Status == withdrawal.Processing) && !r.restored && !w.robbed(id) && !r.spared(id) {
			return r.explain(v, id)
		}
	}
	for _, n := range r.chains {
		for id, s := range r.sweeps(n) {
			if !r.restored && !r.undone(n, s) { // else moved on by a transaction that nobody remembers
				return fmt.Sprintf("sweep %s is %s, %d times funded: %s", id, s.State, s.Fundings, s.Reason)
			}
		}
	}
	for id, t := range w.moves {
		if t.Status == wallet.TransferPending {
			return "transfer " + id + " is pending"
		}
	}
	for key, a := range w.attempts {
		if a.State == outgoing.Open && !r.deep {
			return fmt.Sprintf("attempt %s of %s is open", key, a.Intent)
		}
	}
	deads := "" // told last: see deadOnly
	for key, e := range w.outbox {
		if e.Status != webhook.StatusPending {
			continue
		}
		what := fmt.Sprintf("webhook %s is pending, after %d attempts: %s", key, e.Attempts, e.Error)
		if !r.dead(key) {
			return what
		}
		deads = what
	}
	return deads
}

// dead says that a delivery goes to the receiver that never answers.
func (r *run) dead(key string) bool {
	return r.inbox.dead >= 0 && strings.HasPrefix(key, string(storage.Tenant(r.tenants[r.inbox.dead].id))+"\x00")
}

// sweeps are those of a network that have not ended, by id. One that waits has ended
// where its coins are not worth what forwarding them costs now.
func (r *run) sweeps(n *network) iter.Seq2[string, treasury.Sweep] {
	return func(yield func(string, treasury.Sweep) bool) {
		for _, row := range r.find(treasury.Sweeps.Table, storage.Network(string(n.name))) {
			s := treasury.Sweeps.Value(row)
			ended := s.State == treasury.SweepDone || s.State == treasury.SweepReplaced || s.State == treasury.SweepDeferred && !r.worth(n, row.ID, s)
			if !ended && !yield(row.ID, s) {
				return
			}
		}
	}
}

// worth says that what a waiting sweep's address holds is worth more than twice what
// forwarding it costs at the fees of now, by the chain's own word, with what earlier tries
// have cost: all of them together may cost half of what they move.
func (r *run) worth(n *network, id string, s treasury.Sweep) bool {
	c, gas := currency(s.Currency), currency(n.coins[0])
	if n.sim == nil {
		return false
	}
	var cost decimal.Decimal
	fee := func(p chain.Purpose, code string, times int64) {
		f, err := n.sim.Client().EstimateFee(context.Background(), chain.Intent{Purpose: p, Network: n.name, Currency: code, Amount: 1, All: p == chain.ForSweep})
		if err != nil {
			r.fail("world", "estimate: %v", err)
		}
		cost = cost.Add(gas.Decimal(f.Max).Mul(decimal.New(times, 0)))
	}
	if fee(chain.ForSweep, c.Code, 1); !c.Native() {
		fee(chain.ForGas, gas.Code, 3)
	}
	note, _, _, err := treasury.SweepNotes.One(context.Background(), r.truth, storage.Network(s.Network), id)
	if err != nil {
		r.fail("store", "%v", err)
	}
	cost = cost.Add(gas.Decimal(note.Spent))
	value := n.sim.Balance(chain.Address(s.Address), c.Code).Mul(r.prices[c.Token])
	return value.GreaterThan(cost.Mul(r.prices[gas.Token]).Mul(decimal.New(21, -1)))
}

// undone says that a deep reorg has taken away what was final: a deposit to the sweep's
// address, or what we had sent from there or from the hot one, which sends its gas. What
// is signed waits for that to come back, or for an operator, and so do the nonces after it.
func (r *run) undone(n *network, s treasury.Sweep) bool {
	if !r.deep || n.sim == nil {
		return false
	}
	gone := func(tx string) bool {
		made, err := n.sim.Outcome(tx)
		return err != nil || made.State != chain.Included
	}
	for _, row := range r.find(incoming.Sightings.Table, storage.Network(s.Network)) {
		d := incoming.Sightings.Value(row)
		final := d.FinalAt > 0 || slices.Contains(s.Deposits, row.ID) // or was, before a fork showed it again
		if d.Address == s.Address && final && gone(d.Tx) {
			return true
		}
	}
	for key, a := range r.truth.attempts {
		tx, here := strings.CutPrefix(key, string(storage.Network(s.Network))+"\x00")
		sender := a.Purpose != chain.ForSweep || strings.HasPrefix(a.Spends[0], s.Address)
		if here && sender && a.Tenant == s.Tenant && a.State == outgoing.AttemptFinal && gone(tx) {
			return true
		}
	}
	return false
}

// robbed says that a withdrawal is signed with what a deep reorg has taken away since:
// a coin, or the nonces before its own. It waits for that to come back, or for an
// operator.
func (w *witness) robbed(intent string) bool {
	n := w.r.network(chain.Network(w.payouts[intent].Network))
	if !w.r.deep || n.sim == nil {
		return false
	}
	if n.chain.Family() == chain.AccountFamily {
		return true
	}
	payer := w.payer(storage.Network(string(n.name)), intent)
	for _, a := range w.attempts {
		if a.Intent != payer || a.State != outgoing.Open {
			continue
		}
		for _, s := range a.Spends {
			tx, _, _ := strings.Cut(s, ":")
			if made, err := n.sim.Outcome(tx); err != nil || made.State != chain.Included {
				return true
			}
		}
	}
	return false
}
