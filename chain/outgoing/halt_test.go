package outgoing_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
)

// setHalts changes the halts as an operator in another process does.
func (w *world) setHalts(edit func([]outgoing.Halt) []outgoing.Halt) {
	w.t.Helper()
	w.ops++
	err := outgoing.SetHalts(w.ctx, w.store, nil, storage.Network(w.gas), fmt.Sprint("op", w.ops), outgoing.Operation{By: "ann", Reason: "a look", At: w.clock()}, edit)
	require.NoError(w.t, err)
}

func (w *world) halt(s outgoing.Scope) {
	w.t.Helper()
	w.setHalts(func(halts []outgoing.Halt) []outgoing.Halt {
		return append(halts, outgoing.Halt{Scope: s, Reason: "a look", Since: w.clock(), By: "ann"})
	})
}

func (w *world) lift(s outgoing.Scope) {
	w.t.Helper()
	w.setHalts(func(halts []outgoing.Halt) []outgoing.Halt {
		return slices.DeleteFunc(halts, func(h outgoing.Halt) bool { return h.Scope == s })
	})
}

// forget empties the mempools: what was sent is in no block and no node has it.
func (w *world) forget() { w.chain.Drop(w.chain.Mempool()...) }

// TestFT05_CrashAnywhereInAHaltedRun: the process dies at each commit, signature and
// broadcast in turn, and is halted after the first step, by a halt or by what the host answers.
// From then on nothing is stored and nothing is sent again; after it is lifted each order is paid
// once: a payout, several that one transaction pays, gas for another address, and a sweep.
func TestFT05_CrashAnywhereInAHaltedRun(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	several := func(w *world) []chain.Intent {
		return []chain.Intent{w.intent("a", coin), w.intent("b", coin/2), w.intent("c", coin/3)}
	}
	gas := func(w *world) []chain.Intent {
		in := w.intent("a", coin/10)
		in.Purpose = chain.ForGas
		return []chain.Intent{in}
	}
	for name, c := range map[string]struct {
		scope  outgoing.Scope
		hook   bool
		family chain.Family
		orders func(w *world) []chain.Intent
	}{
		"all":                 {family: chain.AccountFamily},
		"all coins":           {family: chain.UTXOFamily},
		"a tenant":            {scope: outgoing.Scope{Tenant: "t1"}, family: chain.AccountFamily},
		"a tenant's coins":    {scope: outgoing.Scope{Tenant: "t1"}, family: chain.UTXOFamily},
		"the host":            {hook: true, family: chain.AccountFamily},
		"the host, of coins":  {hook: true, family: chain.UTXOFamily},
		"several":             {family: chain.AccountFamily, orders: several},
		"several of one":      {family: chain.UTXOFamily, orders: several},
		"the host, of them":   {hook: true, family: chain.UTXOFamily, orders: several},
		"gas":                 {family: chain.AccountFamily, orders: gas},
		"gas of a tenant":     {scope: outgoing.Scope{Tenant: "t1"}, family: chain.AccountFamily, orders: gas},
		"the host, of gas":    {hook: true, family: chain.AccountFamily, orders: gas},
		"a sweep":             {family: chain.AccountFamily, orders: swept},
		"the host, of sweeps": {hook: true, family: chain.AccountFamily, orders: swept},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.orders == nil {
				c.orders = func(w *world) []chain.Intent { return []chain.Intent{w.intent("a", coin)} }
			}
			for at := 1; ; at += stride() {
				stopped := false
				w := funded(t, setup{family: c.family, change: func(o *outgoing.Config) {
					o.Halted = func(context.Context, chain.Intent) (string, error) {
						if stopped {
							return "the host says so", nil
						}
						return "", nil
					}
				}})
				halt, lift := func() { w.halt(c.scope) }, func() { w.lift(c.scope) }
				if c.hook {
					halt, lift = func() { stopped = true }, func() { stopped = false }
				}
				orders := c.orders(w)
				w.points.dieAt = at
				for _, in := range orders {
					for w.die(func() { w.submit(in) }) {
						continue // whoever submits does so until it knows
					}
				}
				w.die(func() { _ = w.step() })
				halt()
				before := len(w.rows(outgoing.Attempts.Table))
				w.forget()
				for range 15 {
					w.die(func() { w.run(1) })
				}
				for _, in := range orders {
					w.unpaid(in)
					require.Equal(t, outgoing.ReasonHalted, w.get(in.ID).Reason, "place %d, %s", at, in.ID)
				}
				require.Len(t, w.rows(outgoing.Attempts.Table), before, "place %d", at)
				require.Empty(t, w.chain.Mempool(), "place %d", at)
				lift()
				for range 30 {
					w.die(func() { w.run(1) })
				}
				for _, in := range orders {
					require.Equal(t, outgoing.Final, w.state(in.ID), "place %d, %s", at, in.ID)
					if require.Len(t, w.chain.Transfers(in.To), 1, "place %d, %s", at, in.ID); !in.All {
						w.paid(in)
					}
				}
				w.sound()
				if !w.died {
					require.Greater(t, at, 15)
					return
				}
			}
		})
	}
}

// swept is a sweep of an address that has coins.
func swept(w *world) []chain.Intent {
	d := w.key()
	w.fund(d, "ETH", coin)
	w.chain.Mine(12)
	return []chain.Intent{w.sweep("a", d)}
}

// TestFT05_HaltBetweenReserveAndStore: the halt is set by another process while the signer
// signs. Nothing is stored; after it is lifted the same bytes are signed again and sent.
func TestFT05_HaltBetweenReserveAndStore(t *testing.T) {
	t.Parallel()
	for _, scope := range []outgoing.Scope{{}, {Tenant: "t1"}} {
		families(t, func(t *testing.T, w *world) {
			once := false
			w.set.change = func(c *outgoing.Config) {
				c.Signer = cancelDuring{w.signer, func() {
					if !once {
						once = true
						w.halt(scope)
					}
				}}
			}
			w.restart()
			in := w.submit(w.intent("a", coin))
			w.run(20)
			require.Equal(t, 1, w.signer.calls)
			require.Empty(t, w.rows(outgoing.Attempts.Table))
			require.Empty(t, w.client.sent)
			v := w.get("a")
			require.Equal(t, []any{outgoing.Waiting, outgoing.ReasonHalted, true}, []any{v.State, v.Reason, v.Signing})
			require.Equal(t, outgoing.ReasonHalted, w.last("a").Reason, "its owner is told")
			w.lift(scope)
			w.run(20)
			w.paid(in)
			w.sound()
		})
	}
}

// TestFT05_HaltWhileAReplacementIsSigned: the replacement is not stored. After the halt one
// of the two lands.
func TestFT05_HaltWhileAReplacementIsSigned(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		calls := 0
		w.set.change = func(c *outgoing.Config) {
			c.Signer = cancelDuring{w.signer, func() {
				if calls++; calls == 2 {
					w.halt(outgoing.Scope{})
				}
			}}
		}
		w.restart()
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.stick()
		w.run(30)
		require.Equal(t, 2, calls)
		require.Len(t, w.attempts("a"), 1)
		w.chain.SetFeeLevel(0)
		w.lift(outgoing.Scope{})
		w.run(30)
		w.paid(in)
		w.sound()
	})
}

// TestFT05_HaltBetweenStoreAndResend: what was stored is not sent again and not replaced
// while its tenant is halted, and its owner is told so; then it is, once.
func TestFT05_HaltBetweenStoreAndResend(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		require.Len(t, w.attempts("a"), 1)
		w.forget()
		w.halt(outgoing.Scope{Tenant: "t1"})
		way, err := w.Net.OnItsWay(w.ctx, outgoing.Scope{Tenant: "t1"})
		require.NoError(t, err)
		require.Len(t, way, 1)
		require.Equal(t, []string{w.attempts("a")[0].Tx}, way[0].Txs)
		none, err := w.Net.OnItsWay(w.ctx, outgoing.Scope{Tenant: "t2"})
		require.NoError(t, err)
		require.Empty(t, none)
		w.run(30)
		require.Empty(t, w.chain.Mempool())
		require.Len(t, w.attempts("a"), 1, "not replaced")
		require.Equal(t, []any{outgoing.Signed, outgoing.ReasonHalted}, []any{w.last("a").State, w.last("a").Reason})
		w.restart()
		w.run(3)
		require.Empty(t, w.chain.Mempool())
		w.lift(outgoing.Scope{Tenant: "t1"})
		w.run(30)
		w.paid(in)
		require.Empty(t, w.last("a").Reason)
		w.sound()
	})
}

// TestFT05_HaltBetweenTheQuestionAndTheResend: the Change that sends again requires the
// record of halts as it was read.
func TestFT05_HaltBetweenTheQuestionAndTheResend(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		armed := false
		w.set.change = func(c *outgoing.Config) {
			c.Halted = func(context.Context, chain.Intent) (string, error) {
				if armed {
					armed = false
					w.halt(outgoing.Scope{})
				}
				return "", nil // the record was read before, and told nothing
			}
		}
		w.restart()
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.forget()
		armed = true
		w.run(30)
		require.Empty(t, w.chain.Mempool())
		w.unpaid(in)
		w.lift(outgoing.Scope{})
		w.run(30)
		w.paid(in)
		w.sound()
	})
}

// TestFT05_HaltedTenantStopsNoOther: and a halt of a tenant's part of a currency leaves the
// tenant's other currencies alone.
func TestFT05_HaltedTenantStopsNoOther(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	other := w.key()
	w.fund(other, "ETH", 5*coin)
	w.halt(outgoing.Scope{Tenant: "t1", Currency: "USDT"})
	w.halt(outgoing.Scope{Tenant: "t3"})
	token, own, theirs := w.intent("token", 2_000_000), w.intent("own", coin), w.intent("theirs", coin)
	token.Currency = "USDT"
	theirs.Tenant, theirs.From, theirs.FromKey = "t2", other.Address, other.Key
	w.submit(token)
	w.submit(own)
	w.submit(theirs)
	w.run(15)
	w.unpaid(token)
	w.paid(own)
	w.paid(theirs)
	require.Equal(t, outgoing.ReasonHalted, w.get("token").Reason)
	w.lift(outgoing.Scope{Tenant: "t1", Currency: "USDT"})
	w.run(15)
	w.paid(token)
	w.sound()
}

// TestFT05_HaltedCurrencysNonceHolesAreFilled: nonces that nobody uses are filled though the
// currency of the network is halted, because other currencies wait behind them. A halt of
// the whole network keeps them as they are.
func TestFT05_HaltedCurrencysNonceHolesAreFilled(t *testing.T) {
	t.Parallel()
	for _, scope := range []outgoing.Scope{{Currency: "ETH"}, {}} {
		w := funded(t, setup{})
		w.chain.Front().LieNonce(2)
		token := w.intent("token", 2_000_000)
		token.Currency = "USDT"
		w.submit(token)
		require.NoError(t, w.step())
		w.chain.Front().LieNonce(0)
		w.halt(scope)
		gas := w.submit(w.intent("gas", coin))
		w.run(60)
		w.unpaid(gas)
		if scope.Currency == "" {
			require.Zero(t, w.fillers())
			w.unpaid(token)
		} else {
			require.Equal(t, 2, w.fillers())
			w.paid(token)
		}
		w.lift(scope)
		w.run(60)
		w.paid(gas)
		w.paid(token)
		w.sound()
	}
}

// TestFT06_CancelledPlanGivesItsNonceBack: a signer has signed and its answer was lost, so
// the plan's nonce or coins are this order's alone. Cancelled, they go back to ourselves,
// also while its tenant is halted, and what waits behind is paid.
func TestFT06_CancelledPlanGivesItsNonceBack(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.signer.lose = 1
		a := w.submit(w.intent("a", coin))
		_ = w.step()
		require.True(t, w.get("a").Signing)
		w.halt(outgoing.Scope{Tenant: "t1"})
		w.run(3)
		require.Equal(t, outgoing.ReasonHalted, w.get("a").Reason)
		by := &outgoing.Recorded{ID: "cancel", Op: outgoing.Operation{At: w.Net.Now(), Kind: outgoing.OpCancel, By: "ann", Reason: "a mistake"}}
		before, after, err := w.Net.CancelTransaction(w.ctx, "a", by)
		require.NoError(t, err)
		require.False(t, before.Cancelling)
		require.True(t, after.Cancelling)
		w.run(20)
		require.Equal(t, []any{outgoing.Failed, outgoing.ReasonRefused}, []any{w.last("a").State, w.last("a").Reason})
		w.unpaid(a)
		w.lift(outgoing.Scope{Tenant: "t1"})
		b := w.submit(w.intent("b", coin))
		w.run(20)
		w.paid(b)
		w.unpaid(a)
		w.sound()
	})
}

// FS02: an order has a nonce, and the signer may have seen it, when somebody edits its
// withdrawal, or its tenant is halted. What waits behind it is paid: the nonce goes to a
// transaction to ourselves. The order waits with its reason, and is paid once when it may be.
func TestFS02_HeldBackOrderGivesItsNonceToOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason outgoing.Reason
		seen   bool // by the signer
	}{{outgoing.ReasonAltered, false}, {outgoing.ReasonAltered, true}, {outgoing.ReasonHalted, true}} {
		t.Run(fmt.Sprint(c.reason, c.seen), func(t *testing.T) {
			t.Parallel()
			held := false
			w := funded(t, setup{family: chain.AccountFamily, change: func(o *outgoing.Config) {
				o.Halted = func(_ context.Context, in chain.Intent) (string, error) {
					if held && in.ID == "a" && in.Purpose != chain.ForCancel {
						return string(c.reason), nil
					}
					return "", nil
				}
			}})
			a := w.submit(w.intent("a", coin))
			if c.seen {
				w.signer.lose = 1
			} else {
				w.signer.fail = []error{errAway}
			}
			_ = w.step()
			require.True(t, w.get("a").Signing)
			held = true
			w.run(30)
			require.True(t, w.get("a").Signing, "as long as nobody waits for it, it keeps its nonce")
			b := w.submit(w.intent("b", 2*coin))
			w.run(60)
			w.paid(b)
			w.unpaid(a)
			v := w.get("a")
			require.Equal(t, []any{outgoing.Waiting, c.reason, false, false}, []any{v.State, v.Reason, v.Signing, v.Cancelling})
			d := w.submit(w.intent("d", 3*coin))
			w.run(30)
			w.paid(d)
			require.NotContains(t, w.states("a"), outgoing.Signed, "its owner sees it wait")
			held = false
			w.run(60)
			w.each(a, b, d)
		})
	}
}

// FS02: an order is signed, no node has heard of it, and then somebody edits its withdrawal:
// it is not sent again. As long as nobody waits behind its nonce it keeps that, and is paid
// when its rows are put right. Else the nonce goes to a transaction to ourselves, what waits
// is paid, and the order fails.
func TestFS02_SignedOrderThatWasEditedGivesItsNonceToOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		waited   bool
		currency string // a token's payment takes more gas than what frees its nonce
	}{{false, "ETH"}, {true, "ETH"}, {true, "USDT"}} {
		t.Run(fmt.Sprint(c.waited, c.currency), func(t *testing.T) {
			t.Parallel()
			held := false
			w := funded(t, setup{family: chain.AccountFamily, change: func(o *outgoing.Config) {
				o.Halted = func(_ context.Context, in chain.Intent) (string, error) {
					if held && in.ID == "a" && in.Purpose != chain.ForCancel {
						return string(outgoing.ReasonAltered), nil
					}
					return "", nil
				}
			}})
			w.client.reject = errAway
			a := w.intent("a", 2_000_000)
			a.Currency = c.currency
			w.submit(a)
			_ = w.step()
			require.Equal(t, outgoing.Signed, w.state("a"))
			held = true
			w.run(60)
			require.Equal(t, []any{outgoing.Signed, false}, []any{w.state("a"), w.get("a").Cancelling})
			if !c.waited {
				held = false
				w.run(60)
				w.each(a)
				return
			}
			b := w.submit(w.intent("b", 2*coin))
			w.run(60)
			w.paid(b)
			w.unpaid(a)
			require.Equal(t, []any{outgoing.Failed, outgoing.ReasonRefused}, []any{w.last("a").State, w.last("a").Reason})
			held = false
			d := w.submit(w.intent("d", 3*coin))
			w.run(30)
			w.each(b, d)
			w.unpaid(a)
		})
	}
}
