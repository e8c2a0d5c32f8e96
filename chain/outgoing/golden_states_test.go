package outgoing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// stand is a network of the golden store, with orders in some of the states. Each has a
// partition of its own.
type stand struct {
	name  string
	setup setup
	bare  bool // nothing is funded before
	// make brings the orders into their states. It mines few blocks, as each is kept.
	make func(w *world)
	// mend brings what the orders lack. nil: they lack nothing.
	mend func(w *world)
	// ends are the orders that do not end settled.
	ends map[string]end
}

type end struct {
	state  outgoing.State
	reason outgoing.Reason
}

var (
	cancelled = end{state: outgoing.Cancelled}
	failed    = end{state: outgoing.Failed}
	refused   = end{outgoing.Failed, outgoing.ReasonRefused}
	calledOff = end{outgoing.Failed, outgoing.ReasonCancelled}
)

// errOwner is of an owner that does not take outcomes.
var errOwner = errors.New("the owner is away")

// later lets time go by without a block, in pieces, until something holds.
func (w *world) later(piece time.Duration, holds func() bool) {
	w.t.Helper()
	for range 100 {
		if holds() {
			return
		}
		w.advance(piece)
		_ = w.step()
	}
	require.Fail(w.t, "it never came")
}

// replaced lets time go by until an order has so many attempts.
func (w *world) replaced(id string, attempts int) {
	w.t.Helper()
	w.later(stuck, func() bool { return len(w.attempts(id)) >= attempts })
}

// from makes an order of a new address that holds some.
func (w *world) from(id string, amount, holds ledger.Amount) chain.Intent {
	in := w.intent(id, amount)
	if w.gas == "ETH" {
		d := w.key()
		in.From, in.FromKey = d.Address, d.Key
		if holds > 0 {
			w.fund(d, w.gas, holds)
		}
	}
	return in
}

// callOff has an operator cancel an order.
func (w *world) callOff(id string) {
	w.t.Helper()
	w.ops++
	_, _, err := w.Net.CancelTransaction(w.ctx, id, &outgoing.Recorded{ID: fmt.Sprint("op", w.ops), Op: outgoing.Operation{
		Kind: outgoing.OpCancel, By: "ann", Reason: "not wanted", Object: id, Network: chain.Network(w.gas), At: w.clock(),
	}})
	require.NoError(w.t, err)
}

// dies has the process die at a place, at the latest after an hour.
func (w *world) dies(at func(*outgoing.Config)) {
	w.t.Helper()
	change := w.set.change
	w.set.change = func(c *outgoing.Config) {
		if change != nil {
			change(c)
		}
		at(c)
	}
	w.restart()
	for range 60 {
		if w.die(func() { _ = w.step() }) {
			break
		}
		w.advance(time.Minute)
	}
	require.True(w.t, w.died)
	w.set.change = change
	w.restart()
}

// signing is where a signer is asked.
func (w *world) signing(c *outgoing.Config) {
	c.Signer = cancelDuring{w.signer, func() { panic(crash{"sign"}) }}
}

// building is where a transaction is built.
func (w *world) building(c *outgoing.Config) {
	c.Client = cancelBuild{w.client, func() { panic(crash{"build"}) }}
}

// both are stands that are the same on networks of either family.
func both(s stand) (out []stand) {
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		one := s
		one.setup.family, one.name = family, s.name+"-"+string(family)
		out = append(out, one)
	}
	return out
}

func costly(c *outgoing.Config) {
	c.Costly = func(_ context.Context, in chain.Intent) (bool, error) { return in.ID == "elsewhere", nil }
}

// stands lists what the golden store is made of.
func stands() []stand {
	account, outputs := setup{family: chain.AccountFamily}, setup{family: chain.UTXOFamily}
	return slices.Concat(
		both(stand{
			name: "new", make: func(w *world) {
				w.submit(w.intent("a", coin))
				w.submit(w.intent("off", coin))
				ok, err := w.Net.Cancel(w.ctx, "off")
				require.NoError(w.t, err)
				require.True(w.t, ok)
				never := w.intent("never", coin)
				never.MaxCost = 0
				require.ErrorIs(w.t, w.Net.Submit(w.ctx, never), outgoing.ErrIntent)
			},
			ends: map[string]end{"off": cancelled, "never": {outgoing.Cancelled, outgoing.ReasonRefused}},
		}),
		both(stand{
			name: "on-its-way", make: func(w *world) {
				w.submit(w.intent("settled", coin))
				w.run(7)
				w.submit(w.intent("executed", coin))
				w.run(2)
				w.submit(w.intent("one-block", coin))
				w.run(1)
				w.advance(poll)
				require.NoError(w.t, w.step())
				w.submit(w.intent("sent", coin))
				require.NoError(w.t, w.step())
				w.refuse = errOwner
				w.submit(w.intent("untold", coin))
				require.ErrorIs(w.t, w.step(), errOwner)
				require.Equal(w.t, outgoing.Final, w.state("settled"))
				require.Equal(w.t, outgoing.Executed, w.state("executed"))
				require.Equal(w.t, outgoing.Signed, w.state("one-block"))
			},
		}),
		[]stand{{
			name: "purposes", setup: account, make: func(w *world) {
				d := w.key()
				w.fund(d, "ETH", coin)
				w.submit(w.sweep("sweep", d))
				gas := w.intent("gas", coin/10)
				gas.Purpose = chain.ForGas
				w.submit(gas)
				require.NoError(w.t, w.step())
			},
		}, {
			name: "short", setup: setup{family: chain.AccountFamily, change: costly}, make: func(w *world) {
				w.submit(w.from("hot", coin, 0))
				w.submit(w.from("elsewhere", coin, 0))
				gas := w.from("gas", 2_000_000, 0)
				gas.Currency = "USDT"
				w.fund(chain.Derived{Address: gas.From, Key: gas.FromKey}, "USDT", 5_000_000)
				w.submit(gas)
				dear := w.intent("dear", coin)
				dear.MaxCost = 1
				w.submit(dear)
				halted := w.from("halted", coin, 2*coin)
				halted.Tenant = "t2"
				w.halt(outgoing.Scope{Tenant: "t2"})
				w.submit(halted)
				require.NoError(w.t, w.step())
				w.submit(w.from("refused", coin, 2*coin))
				w.signer.fail = []error{chain.ErrRefused}
				require.NoError(w.t, w.step())
				w.submit(w.from("unsigned", coin, 2*coin))
				w.signer.fail = []error{errAway}
				require.NoError(w.t, w.step())
				node := w.from("node", coin, 2*coin)
				w.submit(node)
				w.chain.Front().FailNext(100, nil)
				_ = w.step()
				w.chain.Front().Honest()
			},
			mend: func(w *world) {
				for _, id := range []string{"hot", "elsewhere", "gas"} {
					w.fund(chain.Derived{Address: w.get(id).Intent.From}, "ETH", 2*coin)
				}
				w.lift(outgoing.Scope{Tenant: "t2"})
			},
			ends: map[string]end{"dear": {outgoing.Waiting, outgoing.ReasonFeeTooHigh}},
		}, {
			name: "short-of-outputs", setup: outputs, make: func(w *world) {
				for _, id := range []string{"hot", "fee"} {
					in := w.intent(id, 25*coin)
					if in.Tenant = "of " + id; id == "fee" {
						w.output(in.Tenant, in.Amount)
					}
					w.submit(in)
				}
				require.NoError(w.t, w.step())
			},
			mend: func(w *world) {
				for _, id := range []string{"hot", "fee"} {
					w.output("of "+id, 26*coin)
				}
			},
		}, {
			name: "altered", setup: account, make: func(w *world) {
				w.submit(w.intent("a", coin))
				w.run(7)
				require.Equal(w.t, outgoing.Final, w.state("a"))
				v, row, _, err := outgoing.Intents.One(w.ctx, w.store, storage.Network("ETH"), "a")
				require.NoError(w.t, err)
				v.State = outgoing.Queued
				require.NoError(w.t, storage.CommitOne(w.ctx, w.store, storage.Change{
					ID: "edit", Partition: storage.Network("ETH"), Put: []storage.Row{outgoing.Intents.Row("a", row.Version, w.clock(), v)},
				}))
				require.NoError(w.t, w.step())
			},
			ends: map[string]end{"a": {outgoing.Waiting, outgoing.ReasonAltered}},
		}},
		both(stand{
			name: "planned", make: func(w *world) {
				for i, id := range []string{"a", "b", "c"} {
					w.submit(w.intent(id, ledger.Amount(i+1)*coin))
				}
				w.dies(w.signing)
				require.True(w.t, w.get("a").Signing)
				require.Equal(w.t, outgoing.Queued, w.state("a"))
			},
		}),
		both(stand{
			name: "replaced", make: func(w *world) {
				w.submit(w.from("twice", coin, 2*coin))
				require.NoError(w.t, w.step())
				w.stickAll()
				w.replaced("twice", 2)
				w.submit(w.from("once", coin, 2*coin))
				require.NoError(w.t, w.step())
				w.replaced("twice", 3)
				require.Len(w.t, w.attempts("once"), 2)
			},
			mend: (*world).loosen,
		}),
		both(stand{
			name: "replacement-planned", make: func(w *world) {
				w.submit(w.intent("a", coin))
				require.NoError(w.t, w.step())
				w.stickAll()
				w.signer.fail = slices.Repeat([]error{errAway}, 100)
				w.later(stuck, func() bool { return w.get("a").Signing })
			},
			mend: (*world).loosen,
		}),
		both(stand{
			name: "cancelling", make: func(w *world) {
				w.submit(w.from("sent", coin, 2*coin))
				require.NoError(w.t, w.step())
				w.stickAll()
				w.callOff("sent")
				w.replaced("sent", 2)
				w.submit(w.from("asked", coin, 2*coin))
				require.NoError(w.t, w.step())
				w.callOff("asked")
			},
			mend: (*world).loosen,
			ends: map[string]end{"sent": calledOff, "asked": calledOff},
		}),
		both(stand{
			name: "rejected", make: func(w *world) {
				for _, id := range []string{"over", "now"} {
					w.client.reject = chain.ErrRejected
					w.submit(w.intent(id, coin))
					require.NoError(w.t, w.step())
					if id == "over" {
						w.run(8)
						require.Equal(w.t, outgoing.Failed, w.state(id))
					}
				}
			},
			ends: map[string]end{"over": refused, "now": refused},
		}),
		[]stand{{
			name: "reverted", setup: account, make: func(w *world) {
				token := w.intent("a", 2_000_000)
				token.Currency = "USDT"
				w.submit(token)
				require.NoError(w.t, w.step())
				w.chain.SetBehaviour("0xusdt", sim.Behaviour{Paused: true})
				w.run(1)
			},
			ends: map[string]end{"a": failed},
		}, {
			name: "gap", setup: account, make: func(w *world) {
				w.chain.Front().LieNonce(2)
				w.submit(w.intent("a", coin))
				w.submit(w.intent("b", coin))
				require.NoError(w.t, w.step())
				w.chain.Front().LieNonce(0)
				w.later(stuck, func() bool { return w.fillers() > 0 })
			},
		}, {
			name: "gap-found", setup: account, make: func(w *world) {
				w.chain.Front().LieNonce(2)
				w.submit(w.intent("a", coin))
				require.NoError(w.t, w.step())
				w.chain.Front().LieNonce(0)
				w.dies(w.building)
				require.False(w.t, w.get("fill/"+outgoing.Slot(w.hot.Address, 0)).Signing)
			},
		}, {
			name: "set-aside", setup: account, make: func(w *world) {
				halted := w.intent("halted", coin)
				halted.Tenant = "t2"
				w.submit(halted)
				w.signer.lose = 1
				_ = w.step()
				w.halt(outgoing.Scope{Tenant: "t2"})
				for range 5 {
					w.advance(time.Minute)
					require.NoError(w.t, w.step())
				}
				w.submit(w.intent("behind", coin))
				w.later(poll, func() bool { return len(w.attempts("halted")) > 0 })
			},
			mend: func(w *world) { w.lift(outgoing.Scope{Tenant: "t2"}) },
		}, {
			name: "halted", setup: account, make: func(w *world) {
				w.submit(w.intent("a", coin))
				require.NoError(w.t, w.step())
				w.halt(outgoing.Scope{})
				w.forget()
				w.later(time.Minute, func() bool { return w.get("a").Reason == outgoing.ReasonHalted })
			},
			mend: func(w *world) { w.lift(outgoing.Scope{}) },
		}, {
			name: "stuck", setup: setup{family: chain.AccountFamily, change: func(c *outgoing.Config) { c.MaxAttempts = 2 }}, make: func(w *world) {
				w.submit(w.intent("a", coin))
				require.NoError(w.t, w.step())
				w.stickAll()
				w.later(time.Hour, func() bool { return w.get("a").Reason == outgoing.ReasonStuck })
			},
			mend: (*world).loosen,
		}, {
			name: "occupied", setup: account, make: func(w *world) {
				w.submit(w.intent("a", coin))
				require.NoError(w.t, w.step())
				w.client.keeps = w.attempts("a")[0].Tx
				w.stick()
				w.later(stuck, func() bool { return w.get("a").Reason == outgoing.ReasonOccupied })
			},
			mend: (*world).loosen,
		}, {
			name: "less", setup: account, make: func(w *world) {
				w.client.short = 1
				w.submit(w.intent("a", coin))
				w.run(3)
				require.Equal(w.t, outgoing.Executed, w.state("a"))
			},
			mend: func(w *world) { w.client.short = 1 },
			ends: map[string]end{"a": {outgoing.Final, outgoing.ReasonDeliveredLess}},
		}},
		both(stand{
			name: "reorged", setup: setup{noFinality: true}, make: func(w *world) {
				start := w.clock()
				w.submit(w.intent("settled", coin))
				w.run(7)
				require.Equal(w.t, outgoing.Final, w.state("settled"))
				w.submit(w.intent("executed", coin))
				w.run(3)
				require.Equal(w.t, outgoing.Executed, w.state("executed"))
				w.evict(w.last("settled").Tx)
				w.forget()
				require.NoError(w.t, w.Net.Recheck(w.ctx, start))
				w.advance(poll)
				require.NoError(w.t, w.step())
				for _, id := range []string{"settled", "executed"} {
					require.Equal(w.t, outgoing.ReasonReorged, w.get(id).Reason)
				}
			},
		}),
		[]stand{{
			name: "batch", setup: outputs, make: func(w *world) {
				three(w)
				require.NoError(w.t, w.step())
				require.Equal(w.t, "a", w.get("b").BatchLeader)
			},
		}, {
			name: "batch-cancelling", setup: outputs, make: func(w *world) {
				three(w)
				require.NoError(w.t, w.step())
				w.stickAll()
				w.callOff("a")
			},
			mend: (*world).loosen,
			ends: map[string]end{"a": calledOff},
		}, {
			name: "child", setup: firstSeen, make: func(w *world) {
				w.submit(w.intent("a", coin))
				require.NoError(w.t, w.step())
				w.stick()
				w.later(time.Minute, func() bool { return w.child().State == outgoing.Signed })
			},
		}, {
			name: "child-planned", setup: firstSeen, make: func(w *world) {
				w.submit(w.intent("a", coin))
				require.NoError(w.t, w.step())
				w.stick()
				w.replaced("a", 2)
				w.dies(w.signing)
				require.True(w.t, w.child().Signing)
			},
		}, {
			name: "child-of-a-settled-order", setup: firstSeen, make: func(w *world) {
				w.submit(w.intent("a", coin))
				require.NoError(w.t, w.step())
				w.stick()
				w.later(time.Minute, func() bool { return w.child().State == outgoing.Signed })
				w.chain.SetFeeLevel(0)
				w.chain.MineOnly(w.attempts("a")[0].Tx)
				w.idle(7)
				require.Equal(w.t, outgoing.Final, w.state("a"))
				require.Equal(w.t, outgoing.Signed, w.child().State)
			},
		}, {
			name: "merges", setup: narrow(3), bare: true, make: func(w *world) {
				w.crowd(8)
				w.submit(w.intent("a", 13*coin/2))
				require.NoError(w.t, w.step())
				require.Equal(w.t, outgoing.ReasonConsolidating, w.get("a").Reason)
				require.Equal(w.t, 2, w.merges()[outgoing.Signed])
			},
		}, {
			name: "merges-planned", setup: narrow(3), bare: true, make: func(w *world) {
				w.crowd(8)
				w.submit(w.intent("a", 13*coin/2))
				w.dies(w.signing)
				require.Equal(w.t, 2, w.merges()[outgoing.Queued])
			},
		}, {
			name: "merged", setup: narrow(3), bare: true, make: func(w *world) {
				w.crowd(8)
				w.submit(w.intent("a", 13*coin/2))
				w.until("merges in a block", func() bool { return w.merges()[outgoing.Executed] > 0 })
			},
		}, {
			name: "lost", setup: setup{family: chain.UTXOFamily, noFinality: true}, bare: true, make: func(w *world) {
				w.fork(2)
				require.Len(w.t, w.attempts("a"), 1)
			},
			mend: func(w *world) {
				for _, r := range w.rows(outgoing.Coins.Table) {
					if c := outgoing.Coins.Value(r); c.State == outgoing.CoinGone && c.Intent == "a" {
						w.regain(r.ID)
					}
				}
			},
		}, {
			name: "lost-and-replaced", setup: setup{family: chain.UTXOFamily, noFinality: true}, bare: true, make: func(w *world) {
				w.fork(3)
				w.replaced("a", 2)
			},
		}, {
			name: "lost-and-replacement-planned", setup: setup{family: chain.UTXOFamily, noFinality: true}, bare: true, make: func(w *world) {
				w.fork(3)
				w.dies(w.signing)
				require.True(w.t, w.get("a").Signing)
			},
		}, {
			name: "robbed", setup: setup{family: chain.UTXOFamily, noFinality: true}, make: func(w *world) {
				for _, id := range []string{"over", "now"} {
					w.submit(w.intent(id, coin))
					require.NoError(w.t, w.step())
					w.chain.MineOnly(w.foreign(id))
					if id == "over" {
						w.run(7)
						require.Equal(w.t, outgoing.Failed, w.state(id))
					}
				}
			},
			ends: map[string]end{"over": failed, "now": failed},
		}},
	)
}

// loosen lets everything that was sent into blocks.
func (w *world) loosen() { w.chain.SetFeeLevel(0) }

func (w *world) whole(amount ledger.Amount) decimal.Decimal {
	cur, err := w.reg.Currency(w.gas)
	require.NoError(w.t, err)
	return cur.Decimal(amount)
}

// output gives a tenant a new coin.
func (w *world) output(tenant string, amount ledger.Amount) {
	w.t.Helper()
	d := w.key()
	tx, err := w.chain.Fund(d.Address, w.gas, w.whole(amount))
	require.NoError(w.t, err)
	require.NoError(w.t, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: "coin/" + tx, Partition: storage.Network(w.gas),
		Put: []storage.Row{outgoing.CoinRow(tenant, chain.Coin{Outpoint: tx + ":0", Address: d.Address, Key: d.Key, Amount: amount})},
	}))
}

// crowd makes so many coins of one.
func (w *world) crowd(coins int) {
	w.t.Helper()
	for range coins {
		w.output("t1", coin)
	}
	w.chain.SetFeeLevel(50)
}

// fork makes so many coins of one, an order of two of them, and another coin. Then a fork
// takes one of the order's coins and the other coin away.
func (w *world) fork(coins int) {
	w.t.Helper()
	for range coins {
		w.deposit(coin)
	}
	w.chain.Mine(1)
	w.submit(w.intent("a", 3*coin/2))
	require.NoError(w.t, w.step())
	spends := w.spends("a")[0]
	require.Len(w.t, spends, 2)
	lost := []string{spends[0], w.deposit(coin / 4)}
	drop := w.chain.Transactions(true)
	for _, o := range lost {
		drop = append(drop, strings.TrimSuffix(o, ":0"))
	}
	_, err := w.chain.Reorg(int(w.chain.Height()-1), drop...)
	require.NoError(w.t, err)
	w.chain.Mine(1)
	for _, o := range lost {
		w.mark(o, outgoing.CoinGone)
	}
}
