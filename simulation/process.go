package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/simulation/internal/judge"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// process is one program with an App in it: a view of the store, nodes of its
// own, a clock of its own, and at most one thing that it does at a time.
type process struct {
	r      *run
	n      int
	app    *cryptopay.App // nil while it is down
	view   *view
	nodes  map[chain.Network]*sim.Node
	sick   map[chain.Network]bool
	again  map[Nemesis]int // so many times more, whatever the dice say
	locked int             // so many commits more meet a partition that is locked elsewhere
	skew   time.Duration
	task   *task // that is paused; nil = it is free
	now    *task // that is running
	random *rand.ChaCha8
	listed *chain.Registry  // as an operator has mistaken it; nil = as it is
	rolled bool             // it lists the currency that a rollout brings
	deeper map[string]int64 // confirmations more than usual, by currency
	daily  decimal.Decimal  // USD that it spends on moving coins in a day; zero = the default
	parts  uint64           // its Treasury.MinSweep; 0 = the default
	dead   bool             // died in the task that is running
}

// crash unwinds a process that dies. errDead is what its last gasps are told.
type crash struct{}

var errDead = errors.New("simulation: this process is dead")

// clock is the process's own: off by its skew.
type clock struct{ p *process }

func (c clock) Now() time.Time { return c.p.r.now.Add(c.p.skew) }

// Wait is for Run, which a world never calls.
func (clock) Wait(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

const mnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

// seed is the same in all worlds: what differs is what is done with the keys.
var seed = sync.OnceValue(func() *keys.Seed {
	s, err := keys.FromMnemonic(mnemonic, "")
	if err != nil {
		panic("simulation: " + err.Error())
	}
	return s
})

// accounts are the public part of it, derived once.
var accounts = sync.OnceValue(func() []keys.Account {
	a, err := seed().Accounts(registry().Networks())
	if err != nil {
		panic("simulation: " + err.Error())
	}
	return a
})

// derived remembers addresses over all worlds of a program: deriving costs more
// than everything else that a short world does.
var derived struct {
	sync.Mutex
	by map[chain.Network][]chain.Derived
}

type source struct{ keys *keys.Source }

func (s source) Derive(ctx context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	derived.Lock()
	defer derived.Unlock()
	if derived.by == nil {
		derived.by = map[chain.Network][]chain.Derived{}
	}
	have := derived.by[n]
	if need := int(from) + count; len(have) < need {
		more, err := s.keys.Derive(ctx, n, uint32(len(have)), need-len(have))
		if err != nil {
			return nil, err
		}
		have = append(have, more...)
		derived.by[n] = have
	}
	return append([]chain.Derived(nil), have[from:int(from)+count]...), nil
}

// hostKey is the Config.Key of every process.
var hostKey = bytes.Repeat([]byte{7}, 32)

// start makes an App over the store: all that a process kept in memory before is
// gone.
func (p *process) start() error {
	r := p.r
	p.view, p.dead = &view{p: p}, false
	var clients []chain.Client
	encode, inspect := map[chain.Network]keys.Encode{}, map[chain.Network]keys.Chain{}
	for _, net := range r.chains {
		client := p.client(net)
		clients = append(clients, client)
		encode[net.name], inspect[net.name] = client.AddressOf, client
	}
	public, err := keys.NewSource(accounts(), encode)
	if err != nil {
		return err
	}
	own, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed(), Chains: inspect, Registry: keys.StoreRegistry{Store: p.view},
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return p.app.KeyOf(ctx, n, a)
		},
		Mandates: cryptopay.MandateKeys(hostKey),
	})
	if err != nil {
		return err
	}
	var addresses chain.AddressSource = source{public}
	if len(r.w.Nodes) > 0 {
		addresses = public // written as the node writes them
	}
	cfg := cryptopay.Config{
		Store: p.view, Chains: clients, HeadAge: r.headAge(), GoneAfter: -1, Registry: p.registry(), Addresses: addresses, Signer: signer{own, r}, Rates: prices{p}, RateBounds: r.bounds(),
		Key: hostKey, Clock: clock{p}, Random: p.random, Notifier: receivers{r},
		Callbacks: webhook.Guard{AllowHTTP: true}, Log: slog.New(slog.DiscardHandler),
	}
	cfg.Reconcile.Halt = true
	cfg.Treasury.DailyCost, cfg.Treasury.MinSweep = p.daily, p.parts
	for _, n := range r.chains {
		cfg.HouseAddresses = append(cfg.HouseAddresses, house.Address{Network: n.name, Address: n.chain.Customer(ownAddress)})
	}
	if r.unsigned {
		cfg.Signer = nil
	}
	cfg.Payments.Notify = func(_ context.Context, a payment.Alert) {
		if a.Kind == payment.AlertSuspense {
			r.outside.judge.Alerted(a.Tenant, a.Deposit)
		}
	}
	cfg.Consumers = []stream.Consumer{{Name: "host", Handle: r.hear}}
	cfg.Retention = cryptopay.Retention{Events: r.keep, FailedEvents: r.keep}
	if r.rate[Crumbs] > 0 && r.w.Seed%2 == 0 { // payouts of crumbs need merges
		cfg.Outgoing.MaxInputs = 4
		cfg.Outgoing.Merging = map[outgoing.MergingOf]outgoing.Merging{{}: {Least: 5, Portion: 2}}
	}
	if r.w.Configure != nil {
		r.w.Configure(&cfg)
	}
	if p.app, err = cryptopay.New(cfg); err != nil {
		return err
	}
	return p.app.Open(context.Background(), keys.Tables()...)
}

// hear is the host's consumer: what it hears, the judge does.
func (r *run) hear(_ context.Context, _ stream.Tx, e stream.Event) error {
	shop, _ := strings.CutPrefix(string(e.Partition), string(storage.Tenant("")))
	t := judge.Told{Shop: shop, Number: e.Number, Object: e.Object}
	switch b := e.Body.(type) {
	case payment.Changed:
		t.From, t.To = string(b.From), string(b.To)
	case withdrawal.Changed:
		t.From, t.To = string(b.From), string(b.To)
	case wallet.TransferChanged: // made and ended in one
		t.To = string(b.To)
	case treasury.SweepChanged:
		t.From, t.To = string(b.From), string(b.To)
	case outgoing.OrderChanged:
		t.From, t.To = string(b.From), string(b.To)
	case outgoing.HaltChanged:
		t.Object, t.Halt, t.To = operatorsHalt(b.Currency, b.Tenant), true, haltedOr(b.Halted)
	case incoming.HaltChanged:
		t.Object, t.Halt, t.To = ownHalt(b.Currency), true, haltedOr(b.Halted)
	case reconcile.DifferenceChanged:
		if b.Ended == "" {
			r.named = append(r.named, judge.Named{Coin: b.Currency, What: fmt.Sprintf("%s %s %s at %s, which holds %s", b.Kind, b.Amount, b.Currency, b.Address, b.Held)})
		}
	case payment.DepositChanged:
		if b.Booking == payment.InSuspense {
			t.Suspense = b.DepositID
		}
	}
	r.outside.judge.Heard(t)
	return nil
}

// How halts are named to the judge.
func operatorsHalt(currency, tenant string) string {
	return "the operators' halt of " + currency + "/" + tenant
}

func ownHalt(currency string) string { return "the library's halt of " + currency }

func haltedOr(halted bool) string {
	if halted {
		return judge.Halted
	}
	return judge.Lifted
}

func (p *process) registry() *chain.Registry {
	if p.listed != nil {
		return p.listed
	}
	return p.listing()
}

// task is something that a process does: a coroutine that can be left at every
// call of the store, and taken up again or never.
type task struct {
	p      *process
	name   string
	yield  func(struct{}) bool
	next   func() (struct{}, bool)
	stop   func()
	began  time.Time
	wake   int           // step at which it may go on
	struck bool          // by a fault: its errors mean nothing
	paused bool          // ever
	took   []storage.Row // its last claim
}

// do begins a task of a process that is free and runs it until it ends, is
// paused, or dies.
func (p *process) do(name string, f func(t *task)) {
	t := &task{p: p, name: name, began: p.r.now}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer t.unwind()
		f(t)
	})
	p.resume(t)
}

// unwind ends a task that dies; a panic of the library's is a failure.
func (t *task) unwind() {
	switch x := recover().(type) {
	case nil, crash:
	default:
		t.p.r.fail("panic", "%s of process %d: %v\n%s", t.name, t.p.n, x, debug.Stack())
	}
}

func (p *process) resume(t *task) {
	p.task, p.now = nil, t
	t.struck = t.struck || p.r.unwell(p)
	p.r.current = t
	p.r.outside.watch(p.r)
	_, alive := t.next()
	p.now, p.r.current = nil, nil
	if alive {
		p.task = t
		return
	}
	t.stop()
	if p.dead {
		p.app = nil
	}
}

// kill ends a process wherever it is.
func (p *process) kill() {
	p.dead = true
	if t := p.task; t != nil {
		p.task, p.now = nil, t
		t.stop()
		p.now = nil
	}
	p.app = nil
}

// free reports whether a process can be asked for something.
func (p *process) free() bool { return p.app != nil && p.task == nil }

// point is a place at which a process may be paused or die.
func (p *process) point() error {
	t := p.now
	if p.r.calls++; p.r.calls > runaway {
		p.r.fail("I19", "%s does not end: more than %d calls of the store", p, runaway)
		return errRunaway
	}
	if t == nil {
		return nil // while a process starts
	}
	if p.dead {
		return errDead
	}
	r := p.r
	if r.strikes(Crashes) {
		p.die()
	}
	p.linger(t)
	return nil
}

// linger is where a process may be paused, most likely while it has work in hand.
func (p *process) linger(t *task) {
	r := p.r
	strikes := r.strikes(Pauses)
	for i := 0; i < 4 && !strikes && len(t.took) > 0; i++ {
		strikes = r.strikes(Pauses)
	}
	if !strikes {
		return
	}
	// Mostly for a moment; at times for longer than any lease.
	t.wake, t.paused = r.step+1+r.faults.IntN(3), true
	if r.faults.IntN(3) == 0 {
		t.wake += r.faults.IntN(30)
	}
	if !t.yield(struct{}{}) {
		p.die()
	}
}

// runaway is how many calls of the store one step of the world may take: many
// times what any takes. A loop without an end is left by the error.
const runaway = 100_000

var errRunaway = errors.New("simulation: too many calls of the store")

func (p *process) die() {
	p.dead = true
	panic(crash{})
}

func (p *process) String() string { return fmt.Sprintf("p%d", p.n) }
