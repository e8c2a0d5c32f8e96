package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/simulation/internal/judge"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// run is one playing of a World.
type run struct {
	w         World
	rng       *rand.Rand // who acts and what he does: one stream per step
	now       time.Time
	begun     time.Time
	step      int
	calls     int               // of the store, in this step
	operated  int               // acts of operators
	calm      bool              // faults have stopped
	taxed     map[string]bool   // tokens of which an issuer took something
	named     []judge.Named     // differences that the library told of
	took      map[string]bool   // withdrawals that brought less, and were completed by an operator
	rollout   *rollout          // nil = there is none
	edits     map[string]edited // withdrawals that a thief has edited, by id
	calledOff map[string]bool   // withdrawals on their way of which a thief wrote that they have failed

	truth   *witness
	chains  []*network
	procs   []*process
	tenants []*merchant
	prices  map[string]decimal.Decimal // of a token in USD
	quoted  map[string][]decimal.Decimal
	typed   map[string]decimal.Decimal // by mistake, until it is put right
	quote   string                     // what is wrong with the source of prices now, "" = nothing
	wild    decimal.Decimal            // how many times too high absurd prices are

	current   *task           // that is running
	rate      map[Nemesis]int // per 10,000 chances; 0 = does not strike
	cards     map[Nemesis]int // of its weight in the deck
	struck    map[Nemesis]int
	counts    map[string]int
	deep      bool // reorgs may be deeper than deposits' confirmations
	dear      int  // step from which fees may rise for good
	faults    *rand.Rand
	skewed    time.Duration // the most that any clock was off
	saved     int           // length of the log at the last backup
	restored  bool          // the store was put back
	replaying bool
	older     []storage.Store // before that
	held      map[chain.Network]bool
	signing   string        // what the signer does, "" = it signs
	signs     int           // from this step on it does again
	halts     []*halt       // that stand, or may
	lists     []*list       // that were asked for
	betrayed  int           // step at which a traitor last asked the signer for more
	unsigned  bool          // processes start without a Signer
	keep      time.Duration // for which webhooks are kept that have ended; 0 = for ever
	inbox     inbox
	first     map[string]time.Time // when a customer's transaction was first sent, by network and hash
	requests  int
	unheard   []*unheard
	outside   *outside // the judge, and what it looks through
	trace     hash.Hash
	story     []string
	failure   *Failure
}

// Confirmations of this world's currencies: few, so that a world is short, and
// different, so that none is right by chance.
var confirmations = map[chain.Network]int64{"ETH": 6, "BSC": 4, "AVAX": 2, "TRX": 5, "BTC": 2, "LTC": 3, "DOGE": 5}

// registry has the shipped currencies with this world's confirmations.
var registry = sync.OnceValue(func() *chain.Registry {
	all := chain.Mainnet()
	for i := range all {
		if n, ok := confirmations[all[i].Network]; ok {
			all[i].Confirmations = n
		}
	}
	r, err := chain.NewRegistry(chain.Networks(), all)
	if err != nil {
		panic("simulation: " + err.Error())
	}
	return r
})

func currency(code string) *chain.Currency {
	c, err := registry().Currency(code)
	if err != nil {
		panic("simulation: " + err.Error())
	}
	return c
}

func newRun(w World) *run {
	r := &run{
		w: w, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), trace: sha256.New(),
		prices: map[string]decimal.Decimal{}, quoted: map[string][]decimal.Decimal{},
		rate: map[Nemesis]int{}, cards: map[Nemesis]int{}, struck: map[Nemesis]int{}, counts: map[string]int{},
		inbox: inbox{dead: -1}, first: map[string]time.Time{},
	}
	r.begun, r.edits, r.calledOff, r.taxed, r.took = r.now, map[string]edited{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	r.outside = newOutside(w.Open)
	r.at(-1)
	return r
}

func (r *run) time() time.Time { return r.now }

// at gives a step dice of its own: leaving one out does not change the others.
func (r *run) at(step int) {
	r.step, r.calls = step, 0
	r.rng = rand.New(rand.NewPCG(r.w.Seed, uint64(step)<<1))
	r.faults = rand.New(rand.NewPCG(r.w.Seed, uint64(step)<<1|1))
}

// play runs the whole world.
func (r *run) play(ctx context.Context) {
	store, err := r.w.Store()
	if err != nil {
		r.fail("store", "%v", err)
		return
	}
	r.truth = newWitness(r, store)
	defer func() {
		for _, p := range r.procs {
			p.kill()
		}
		for _, s := range append(r.older, r.truth.Store) {
			_ = s.Close() // nothing is kept
		}
	}()
	r.cast()
	if r.failure == nil {
		r.safety(ctx)
	}
	if r.failure == nil {
		r.liveness()
	}
	r.judged(true)
}

// safety plays with faults on: whatever happens, nothing may be wrong.
func (r *run) safety(ctx context.Context) {
	deck, quiet := r.deck(), r.spans()
	for step := range r.w.Steps {
		if err := ctx.Err(); err != nil {
			r.fail("ended", "%v", err)
		}
		if r.failure != nil {
			return
		}
		if r.w.Skip[step] {
			continue
		}
		r.at(step)
		if until, ok := quiet[step]; ok {
			r.quiet(until)
		}
		r.wake(false)
		a := deck[r.rng.IntN(len(deck))]
		r.tell("%s: %s", a.name, a.do())
		r.harder()
		r.rise()
		r.overtake()
		r.underHalts()
		r.prove(r.w.Each > 0 && step%r.w.Each == r.w.Each-1)
	}
	if r.w.Span > 0 && r.failure == nil {
		r.at(r.w.Steps)
		r.quiet(r.begun.Add(r.w.Span))
	}
	r.lastPaydays()
}

// overtake lets people, the chains, and then another process do something while
// one is paused: what the one has read and not written yet is then most likely not
// as it was.
func (r *run) overtake() {
	var asleep, busy []*task
	for _, p := range r.procs {
		if t := p.task; t != nil {
			asleep = append(asleep, t)
			if len(t.took) > 0 {
				busy = append(busy, t)
			}
		}
	}
	if len(asleep) == 0 || len(busy) == 0 && r.rng.IntN(2) > 0 {
		return
	}
	can := []action{
		{2, "mined", r.mine},
		{2, "many mined", func() string { return r.many(r.anyNet()) }},
		{2, "cancel withdrawal", func() string { return r.regret(r.anyPayout()) }},
	}
	if r.rate[Operators] > 0 {
		can = append(can, action{1, "hold", func() string { return r.hold(r.anyPayout()) }}, action{1, "operator", r.meddle})
	}
	if r.rate[Reorgs] > 0 {
		can = append(can, action{1, "reorg", r.reorg})
	}
	if len(busy) > 0 {
		can = append(can, r.against(pick(r.rng, pick(r.rng, busy).took))...)
	}
	a := pick(r.rng, dealt(can))
	r.tell("overtaking: %s: %s", a.name, a.do())
	r.ask("overtake", func(t *task) {
		r.excuse(t, t.p.app.Step(context.Background()))
		r.tell("overtaking: %s", t.p)
	})
}

// against is what hurts one most who works on this row.
func (r *run) against(row storage.Row) (can []action) {
	switch row.Table {
	case incoming.Sightings.Table:
		s := incoming.Sightings.Value(row)
		n := r.network(chain.Network(s.Network))
		can = append(can, action{6, "many mined", func() string { return r.many(n) }})
		if r.rate[Reorgs] > 0 && slices.Contains(n.young(n.shallow(), false), s.Tx) {
			can = append(can, action{12, "taken back", func() string { return r.takeBack(n, s.Tx) }})
		}
	case withdrawal.Withdrawals.Table, outgoing.Intents.Table: // an order has the id of its withdrawal
		for _, p := range r.withdrawals() {
			if p.id == row.ID {
				can = append(can, action{8, "cancel withdrawal", func() string { return r.regret(p) }})
				if r.rate[Operators] > 0 {
					can = append(can, action{8, "hold", func() string { return r.hold(p) }})
				}
			}
		}
	}
	return can
}

// many blocks make everything final.
func (r *run) many(n *network) string {
	return fmt.Sprint(n.name, n.chain.Mine(int(confirmations[n.name])+1))
}

// wake lets paused tasks go on whose time has come.
func (r *run) wake(all bool) {
	for _, p := range r.procs {
		if t := p.task; t != nil && (all || t.wake <= r.step) {
			p.resume(t)
			r.revive(p)
		}
	}
}

// revive starts processes that have died.
func (r *run) revive(p *process) {
	if p.app != nil {
		return
	}
	p.kill()
	r.counts["restarts"]++
	if err := p.startAgain(); err != nil {
		r.fail("start", "%s does not start again: %v", p, err)
	}
}

// ask lets a process that is free do something; false where none is.
func (r *run) ask(name string, f func(t *task)) bool {
	var free []*process
	for _, p := range r.procs {
		if p.free() {
			free = append(free, p)
		}
	}
	if len(free) == 0 {
		return false
	}
	p := free[r.rng.IntN(len(free))]
	p.do(name, f)
	r.revive(p)
	return true
}

// work lets a process do what is due: all of it, or what some workers have.
func (r *run) work() string {
	what := "all busy"
	r.ask("work", func(t *task) {
		app := t.p.app
		if r.rng.IntN(2) == 0 {
			what = t.p.String() + " all"
			r.did(t, app.Step(context.Background()))
			return
		}
		what = t.p.String()
		workers := app.Workers()
		for range 1 + r.rng.IntN(4) {
			w := workers[r.rng.IntN(len(workers))]
			what += " " + w.Name
			_, err := w.Step(context.Background())
			r.excuse(t, err)
		}
	})
	return what
}

// excuse fails the run for an error that nothing explains.
func (r *run) excuse(t *task, err error) {
	if t.paused && len(r.procs) > 1 {
		return // it may have lost its lease meanwhile, and says that things are not as they were
	}
	if err == nil || t.struck || r.unwell(t.p) || r.noticed(err) || r.unlisted(err) || errors.Is(err, incoming.ErrHalted) || errors.Is(err, incoming.ErrStuck) || errors.Is(err, incoming.ErrForked) {
		return
	}
	r.fail("error", "%s of %s, with no fault about: %v", t.name, t.p, err)
}

// unwell says whether a process's calls may fail now for what is outside of it.
func (r *run) unwell(p *process) bool {
	for _, n := range r.chains {
		if p.sick[n.name] {
			return true
		}
	}
	return r.quote != "" || r.deep
}

// tell adds to the story and to the trace.
func (r *run) tell(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	r.story = append(r.story, fmt.Sprintf("%4d %s %s", r.step, r.now.Format("02 15:04:05"), line))
	r.note("tell", line)
}

// note adds to the trace alone.
func (r *run) note(parts ...string) {
	if r.replaying {
		return
	}
	for _, p := range parts {
		_, _ = fmt.Fprintf(r.trace, "%d:%s,", len(p), p) // a hash takes all
	}
}

// fail records the first broken promise.
func (r *run) fail(invariant, format string, args ...any) {
	if r.failure == nil && !r.replaying {
		r.failure = &Failure{Invariant: invariant, Step: r.step, What: fmt.Sprintf(format, args...)}
		r.tell("BROKEN %s: %s", invariant, r.failure.What)
	}
}

func (r *run) result() Result {
	return Result{
		World: r.w, Hash: hex.EncodeToString(r.trace.Sum(nil)), Steps: r.step + 1, Simulated: r.now.Sub(r.begun),
		Struck: r.struck, Counts: r.counts, Promises: r.outside.judge.Tally(), Failure: r.failure, story: r.story,
	}
}

func (r *run) network(n chain.Network) *network {
	for _, x := range r.chains {
		if x.name == n {
			return x
		}
	}
	panic("simulation: no network " + string(n))
}

// prove lets a host's own check and the judge look; with whole the library proves its
// books, too.
func (r *run) prove(whole bool) {
	if r.failure != nil {
		return
	}
	if r.w.Check != nil {
		for _, p := range r.procs {
			if p.free() {
				if err := r.w.Check(r.turn(&task{p: p}, r.tenants[0])); err != nil {
					r.fail("check", "%v", err)
				}
				break
			}
		}
	}
	if whole {
		r.audit()
	}
	r.judged(false)
}

// audit asks the chains and the library to prove themselves.
func (r *run) audit() {
	for _, n := range r.chains {
		if err := n.chain.Audit(); err != nil {
			r.fail("world", "%v", err)
		}
	}
	var app *cryptopay.App
	for _, p := range r.procs {
		if p.free() {
			app = p.app
		}
	}
	if app == nil || r.failure != nil {
		return
	}
	reports, err := app.Verify(context.Background())
	if err != nil {
		r.fail("verify", "%v", err)
		return
	}
	r.outside.verified, r.outside.findings = true, map[string][]string{}
	for i := range reports {
		rep := &reports[i]
		bad := r.outside.findings[rep.Tenant]
		for _, f := range rep.Ledger.Findings {
			short := f.Fault == ledger.FaultDeficit || f.Fault == ledger.FaultInsolvent
			if !short || !r.deep && !r.taxed[string(f.Asset)] { // what an issuer took of sweeps is the house's loss
				bad = append(bad, f.String())
			}
		}
		for _, f := range rep.Seals.Findings {
			bad = append(bad, f.String())
		}
		for _, c := range rep.Contradictions {
			if _, thief := r.edits[c.ID]; !thief && !r.calledOff[c.ID] && !r.disputed(c) { // those have to be named: see theft
				bad = append(bad, fmt.Sprintf("contradiction %v", c))
			}
		}
		if len(rep.Holds)+len(rep.Unexplained)+len(rep.Gas) > 0 {
			bad = append(bad, fmt.Sprintf("holds %v, unexplained %v, gas %v", rep.Holds, rep.Unexplained, rep.Gas))
		}
		if len(r.edits) == 0 && len(rep.Counters) > 0 { // who edits rows edits what is counted
			bad = append(bad, fmt.Sprintf("counters %v", rep.Counters))
		}
		r.outside.findings[rep.Tenant] = bad
	}
}

// disputed reports whether Verify must name an order. After a restore, a transaction that the store
// has forgotten may have spent a withdrawal's coins or nonce, and may have paid it. After a reorg past
// finality, one that has failed for good may be paid. A person decides.
func (r *run) disputed(c cryptopay.Contradiction) bool {
	if (r.deep || r.restored) && c.Kind == "withdrawal" && strings.Contains(c.Detail, "has paid its recipient") {
		return true
	}
	v := r.truth.payouts[c.ID]
	return r.restored && c.Kind == "order" && strings.Contains(c.Detail, "took what its transactions spend") && v.Status == withdrawal.Processing && v.Waiting == withdrawal.WaitingAltered
}
