package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A store that is put back to an older moment (L14) is made again from the log
// of all that it was told. What happened since is on the chains and with the
// merchants, and not in the books; operators then do what docs/storage.md says.
//
// What is still asked of the library after it: nobody gets more than was
// accepted for him, though his payment looks unpaid; what is stored is right in
// itself; what is open ends, but for what waits for money that was moved by
// transactions nobody remembers. What a merchant was told and the store forgot
// is forgotten here, too: that is what a backup costs.

// entry is one thing that a store was told: a Change or a claim.
type entry struct {
	change *storage.Change
	claim  *storage.Claim
}

// remember adds to the log, in worlds whose store may be put back.
func (w *witness) remember(e entry) {
	if w.r.rate[Restores] > 0 {
		w.log = append(w.log, e)
	}
}

// backup notes that this moment may be restored: one of quiet, or one at which
// somebody was just promised money.
func (r *run) backup(promise bool) {
	if r.rate[Restores] > 0 && !r.restored && (promise || r.saved == 0) && r.rng.IntN(3) > 0 {
		r.saved = len(r.truth.log)
		r.tell("backup: of %d changes", r.saved)
	}
}

// restore puts the store back, once in a run.
func (r *run) restore() string {
	if r.saved == 0 || r.restored || len(r.truth.log) < r.saved+30 {
		return "no backup, or one of just now"
	}
	r.restored, r.deep = true, true
	for _, p := range r.procs {
		p.kill()
		p.wellAgain()
		p.skew = 0
	}
	r.quote, r.typed = "", nil
	lost := r.truth
	if err := r.replay(lost.log[:r.saved]); err != nil {
		r.fail("world", "restoring: %v", err)
		return "not restored"
	}
	r.forget()
	if r.failure == nil {
		r.recover(lost)
	}
	return fmt.Sprintf("%d of %d changes are lost", len(lost.log)-r.saved, len(lost.log))
}

// wasted is whose the addresses are that a restored store must not show again.
const wasted = "nobody"

// replay makes a store and its witness from a log.
func (r *run) replay(log []entry) error {
	ctx := context.Background()
	store, err := r.w.Store()
	if err != nil {
		return err
	}
	r.older = append(r.older, r.truth.Store)
	r.truth = newWitness(r, store)
	r.replaying = true
	defer func() { r.replaying = false }()
	if err := store.Open(ctx, Tables()...); err != nil {
		return err
	}
	for _, e := range log {
		if e.change != nil {
			err = r.truth.commit(ctx, *e.change)
		} else {
			_, err = r.truth.claim(ctx, *e.claim)
		}
		if err != nil {
			return err
		}
	}
	reports, err := cryptopay.VerifyStore(ctx, store)
	for i := range reports {
		rep := &reports[i]
		if bad := !slices.ContainsFunc(rep.Ledger.Findings, func(f ledger.Finding) bool {
			return f.Fault != ledger.FaultDeficit && f.Fault != ledger.FaultInsolvent
		}); !bad || len(rep.Holds)+len(rep.Unexplained)+len(rep.Gas)+len(rep.Seals.Findings) > 0 {
			return fmt.Errorf("the books of tenant %s were not right: %v", rep.Tenant, rep)
		}
	}
	return err
}

// forget takes from the merchants what the store does not know any more: they
// were told so, and begin again from there.
func (r *run) forget() {
	w := r.truth
	r.outside.judge.Forget()
	r.unheard, r.lists = nil, nil
	for _, m := range r.tenants {
		part := storage.Tenant(m.id)
		m.lost, m.answered = nil, nil
		m.wallets = slices.DeleteFunc(m.wallets, func(id string) bool {
			return w.versions[rowKey{wallet.WalletRows.Table, part, id}] == 0
		})
		m.payments = slices.DeleteFunc(m.payments, func(a *asked) bool {
			_, ok := w.payments[a.id]
			return !ok
		})
		m.payouts = slices.DeleteFunc(m.payouts, func(p *payout) bool {
			_, ok := r.accepted(p)
			return !ok
		})
	}
}

// recover is what operators do after a restore, in the order of docs/storage.md.
func (r *run) recover(lost *witness) {
	r.held = map[chain.Network]bool{}
	open := r.unsettled()
	for _, n := range r.chains {
		// What was signed since and not mined may come back at any time: until it
		// has, nothing can be told from the chain.
		n.sim.SetFeeLevel(n.fees())
		n.chain.ReviveAll()
		n.chain.Mine(20)
		// The backup still has coins that were spent, and orders that had begun.
		r.held[n.name] = n.chain.Family() == chain.UTXOFamily || open[n.name]
	}
	r.now = r.now.Add(10 * time.Minute)
	hold := maps.Clone(r.held)
	if r.rng.IntN(4) > 0 { // somebody is hasty: the library must halt by itself
		for _, n := range r.chains {
			r.held[n.name] = r.held[n.name] || !r.used(n, lost) // what it cannot know
			n.sim.SetFeeLevel(2 * n.fees())                     // else the same bytes might be signed again, and do no harm
		}
		r.again(true)
		r.tell("operator: starts all with a Signer")
		r.catchUp("hasty", 20)
	}
	r.again(false)
	r.catchUp("restored", 3)
	app := r.app()
	if app == nil {
		return
	}
	for _, m := range r.tenants {
		for _, p := range m.payouts {
			v, _ := r.accepted(p)
			if signedSince(lost, r.truth, p.id) && v.Status == withdrawal.Pending {
				_, err := app.Withdrawals.Cancel(context.Background(), m.id, p.id)
				if err != nil {
					hold[p.c.Network] = true
				}
				r.tell("operator: %s was paid and is cancelled: %t", short(p.id), err == nil)
			}
		}
	}
	r.waste(app, lost)
	defer r.again(true)
	for _, n := range r.chains {
		if r.held[n.name] = hold[n.name]; hold[n.name] || n.chain.Family() == chain.UTXOFamily {
			continue
		}
		for _, m := range r.tenants {
			r.adopt(app, n, m.hot[n.name])
		}
	}
}

// again starts all processes again, with a Signer or without.
func (r *run) again(signers bool) {
	r.unsigned = !signers
	for _, p := range r.procs {
		p.kill()
		if err := p.startAgain(); err != nil {
			r.fail("start", "%s does not start after a restore: %v", p, err)
		}
	}
}

// app is one of a process that is free: the operator waits for it, for a paused
// one that goes on may be paused again.
func (r *run) app() *cryptopay.App {
	for range 1000 {
		r.wake(true)
		for _, p := range r.procs {
			if p.free() {
				return p.app
			}
		}
	}
	r.fail("world", "every process is busy")
	return nil
}

// used reports whether the store knows of the hot addresses from which something
// was paid since that they were sent from before: of others it takes the chain's
// nonce for the first.
func (r *run) used(n *network, lost *witness) bool {
	for _, m := range r.tenants {
		paid := slices.ContainsFunc(m.payouts, func(p *payout) bool { return p.c.Network == n.name && signedSince(lost, r.truth, p.id) })
		if paid && r.truth.versions[rowKey{outgoing.Nonces.Table, storage.Network(string(n.name)), string(m.hot[n.name])}] == 0 {
			return false
		}
	}
	return true
}

// catchUp lets all processes do what is due for a while.
func (r *run) catchUp(what string, rounds int) {
	for range rounds {
		r.now = r.now.Add(time.Minute)
		for _, n := range r.chains {
			n.chain.Mine(2)
		}
		for _, p := range r.procs {
			if p.free() {
				p.do(what, func(t *task) { r.excuse(t, t.p.app.Step(context.Background())) })
				r.revive(p)
			}
		}
		r.wake(true)
	}
}

// unsettled lists networks with orders that had begun when the backup was made:
// a transaction of theirs may have been signed since that nobody knows.
func (r *run) unsettled() map[chain.Network]bool {
	out := map[chain.Network]bool{}
	for _, n := range r.chains {
		for _, row := range r.find(outgoing.Intents.Table, storage.Network(string(n.name))) {
			switch v := outgoing.Intents.Value(row); v.State {
			case outgoing.Final, outgoing.Failed, outgoing.Cancelled:
			default:
				out[n.name] = out[n.name] || v.Attempts > 0 || len(v.Plan) > 0
			}
		}
	}
	return out
}

// signedSince reports whether a lost store knew an attempt of an order that the
// restored one does not.
func signedSince(lost, now *witness, intent string) bool {
	for key, a := range lost.attempts {
		if _, known := now.attempts[key]; known {
			continue
		}
		part, _, _ := strings.Cut(key, "\x00")
		if a.Intent == lost.payer(storage.Partition(part), intent) {
			return true
		}
	}
	return false
}

// waste takes the addresses that were given out since out of circulation, for
// payments and for change.
func (r *run) waste(app *cryptopay.App, lost *witness) {
	ctx := context.Background()
	for _, n := range r.chains {
		part := storage.Network(string(n.name))
		rows, err := lost.Find(ctx, storage.Query{Table: incoming.Addresses.Table, Partition: part, Limit: 100_000})
		if err != nil {
			r.fail("store", "%v", err)
		}
		rows = slices.DeleteFunc(rows, func(row storage.Row) bool { return incoming.Addresses.Value(row).Tenant == "" })
		shown := func() bool {
			return slices.ContainsFunc(rows, func(x storage.Row) bool {
				row, _, ok, err := incoming.Addresses.One(ctx, r.truth, part, x.ID)
				return err != nil || !ok || row.Tenant == ""
			})
		}
		for i := 0; i < 400 && shown(); i++ {
			if _, err := app.Addresses.Take(ctx, n.name, wasted); err != nil {
				r.fail("L14", "an address cannot be wasted: %v", err)
				return
			}
		}
		if shown() {
			r.fail("L14", "addresses that were shown stay free on %s", n.name)
		}
	}
}

// looked is the call of an operator who has looked at what he helps.
var looked = cryptopay.Call{By: "operator", Reason: "looked at it"}

// adopt goes on from where the chain is.
func (r *run) adopt(app *cryptopay.App, n *network, a chain.Address) {
	ctx := context.Background()
	at, err := n.chain.Client().(chain.Noncer).Nonce(ctx, a)
	if err != nil {
		r.fail("world", "%v", err)
		return
	}
	_, err = app.Operate.AdoptNonce(ctx, n.name, a, at, looked)
	r.tell("operator: goes on at nonce %d of %s on %s: %t", at, short(string(a)), n.name, err == nil)
}
