package cryptopay_test

import (
	"context"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// because is an operator's call.
func because(reason string) cryptopay.Call { return cryptopay.Call{By: "ann", Reason: reason} }

// payout orders a withdrawal of some tenant.
func (h *host) payout(tenant, currency, amount string) string {
	h.t.Helper()
	cur, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(h.t, err)
	w, err := h.app.Withdrawals.Create(h.t.Context(), tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: ptr(dec(amount)), Currency: currency, Address: string(h.chains[cur.Network].Customer("supplier"))},
	})
	require.NoError(h.t, err)
	return w.ID
}

// status is how a withdrawal stands.
func (h *host) status(tenant, id string) string {
	h.t.Helper()
	w, err := h.app.Withdrawals.Get(h.t.Context(), tenant, id)
	require.NoError(h.t, err)
	return strings.TrimSpace(string(w.Status) + " " + w.WaitingReason())
}

// signed counts the transactions that are stored, by purpose.
func (h *host) signed() map[chain.Purpose]int {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{Table: outgoing.Attempts.Table, Limit: 1000})
	require.NoError(h.t, err)
	out := map[chain.Purpose]int{}
	for _, r := range rows {
		out[outgoing.Attempts.Value(r).Purpose]++
	}
	return out
}

// paidOnce reports that the supplier has what these withdrawals are to pay, and no more.
func (h *host) paidOnce(tenant string, ids ...string) {
	h.t.Helper()
	due := map[string]decimal.Decimal{}
	for _, id := range ids {
		w, err := h.app.Withdrawals.Get(h.t.Context(), tenant, id)
		require.NoError(h.t, err)
		require.Equal(h.t, withdrawal.Completed, w.Status, w.Waiting)
		cur, err := chain.MainnetRegistry().Currency(w.Currency)
		require.NoError(h.t, err)
		due[w.Currency] = due[w.Currency].Add(cur.Decimal(w.Amount))
	}
	for currency, amount := range due {
		cur, err := chain.MainnetRegistry().Currency(currency)
		require.NoError(h.t, err)
		world := h.chains[cur.Network]
		require.Equal(h.t, amount.String(), world.Balance(world.Customer("supplier"), currency).String(), currency)
	}
}

// TestFT05_HookAndHaltStopEverything: a host's hook that always says stop, and an operator's
// halt, each stop payouts, sweeps and gas. When they end all of it is sent, once.
func TestFT05_HookAndHaltStopEverything(t *testing.T) {
	t.Parallel()
	everything := cryptopay.HaltScope{}
	for name, stop := range map[string]struct {
		hook  string
		scope *cryptopay.HaltScope
	}{
		"hook":    {hook: "an incident"},
		"halt":    {scope: &everything},
		"network": {scope: &cryptopay.HaltScope{Network: "ETH"}},
		"both":    {hook: "an incident", scope: &everything},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for on, make := range stores() {
				if on == "sqlite" && name != "halt" {
					continue // slow
				}
				t.Run(on, func(t *testing.T) {
					t.Parallel()
					h, asked, hook := newHostOn(t, make(t), 61, "ETH", "BTC"), 0, ""
					h.configure = func(c *cryptopay.Config) {
						c.Outgoing.Halted = func(context.Context, chain.Intent) (string, error) { asked++; return hook, nil }
					}
					h.restart()
					h.earn("ETH", "300")
					h.earn(usdt, "300")
					before := h.signed()
					hook = stop.hook
					if stop.scope != nil {
						_, err := h.app.Operate.Halt(t.Context(), *stop.scope, because("keys may be stolen"))
						require.NoError(t, err)
					}
					p := h.create("50", usdt)
					h.pay(p, usdt, dec("50")) // is to be swept, with gas
					ids := []string{h.payout(h.tenant, "ETH", "0.01"), h.payout(h.tenant, usdt, "20"), h.payout(h.tenant, usdt, "30")}
					h.mine(60)
					require.Equal(t, before, h.signed(), "nothing is signed")
					require.Equal(t, "completed", string(h.payment(p.ID).Status), "deposits are credited")
					for _, id := range ids {
						w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
						require.NoError(t, err)
						require.Equal(t, "pending halted", h.status(h.tenant, id))
						require.False(t, w.WaitingSince.IsZero())
					}
					if stop.hook != "" && stop.scope == nil {
						require.Positive(t, asked)
					}
					hook = ""
					if stop.scope != nil {
						_, err := h.app.Operate.Lift(t.Context(), *stop.scope, because("keys are safe"))
						require.NoError(t, err)
					}
					h.mine(150)
					for _, id := range ids {
						require.Equal(t, "completed", h.status(h.tenant, id))
					}
					h.paidOnce(h.tenant, ids...)
					after := h.signed()
					require.Equal(t, before[chain.ForWithdrawal]+3, after[chain.ForWithdrawal], "each once")
					require.Equal(t, before[chain.ForSweep]+1, after[chain.ForSweep])
					h.sound()
				})
			}
		})
	}
}

// TestFT05_HaltByAnotherProcess: an operator's process that has no keys halts what this one
// sends. It is told what may still land, the halt stays over a restart, and a network that
// is opened later is halted, too. Who did what and why is recorded.
func TestFT05_HaltByAnotherProcess(t *testing.T) {
	t.Parallel()
	for on, make := range stores() {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			h := newHostOn(t, make(t), 62, "ETH")
			h.earn("ETH", "300")
			h.mine(30) // its sweep is final
			desk := h.beside(func(c *cryptopay.Config) { c.Signer = nil })
			way := h.payout(h.tenant, "ETH", "0.01")
			h.step()
			require.Equal(t, "processing", h.status(h.tenant, way))
			h.chains["ETH"].Drop(h.chains["ETH"].Mempool()...)

			_, err := desk.Operate.Halt(ctx, cryptopay.HaltScope{}, cryptopay.Call{By: "ann"})
			require.ErrorIs(t, err, cryptopay.ErrCall)
			_, err = desk.Operate.Halt(ctx, cryptopay.HaltScope{Network: "BTC"}, because("x"))
			require.ErrorIs(t, err, chain.ErrCurrency)
			dry := because("a look")
			dry.DryRun = true
			e, err := desk.Operate.Halt(ctx, cryptopay.HaltScope{}, dry)
			require.NoError(t, err)
			require.Len(t, e.OnItsWay, 1)
			halts, err := h.app.Operate.Halts(ctx)
			require.NoError(t, err)
			require.Empty(t, halts, "a dry run does nothing")
			e, err = desk.Operate.Halt(ctx, cryptopay.HaltScope{}, because("a look"))
			require.NoError(t, err)
			require.Len(t, e.OnItsWay, 1)
			require.Equal(t, way, e.OnItsWay[0].Intent)
			require.Len(t, e.OnItsWay[0].Txs, 1)
			_, err = desk.Operate.Halt(ctx, cryptopay.HaltScope{}, because("another reason"))
			require.NoError(t, err)

			waits := h.payout(h.tenant, "ETH", "0.01")
			h.mine(40)
			require.Empty(t, h.chains["ETH"].Mempool(), "nothing is sent again")
			require.Equal(t, "pending halted", h.status(h.tenant, waits))
			require.Equal(t, "processing halted", h.status(h.tenant, way))
			h.chains["BTC"] = sim.MustNew(sim.Options{Network: "BTC", Registry: chain.MainnetRegistry(), Seed: 62, Now: h.clock.Now})
			h.restart()
			halts, err = h.app.Operate.Halts(ctx)
			require.NoError(t, err)
			var where []chain.Network
			for _, halt := range halts {
				where = append(where, halt.Network)
				require.Equal(t, []string{"ann", "a look"}, []string{halt.By, halt.Reason}, "the first reason stays")
			}
			require.Equal(t, []chain.Network{"", "BTC", "ETH"}, where)
			h.mine(10)
			require.Equal(t, "pending halted", h.status(h.tenant, waits))

			_, err = h.app.Operate.Lift(ctx, cryptopay.HaltScope{}, because("all is well"))
			require.NoError(t, err)
			halts, err = h.app.Operate.Halts(ctx)
			require.NoError(t, err)
			require.Empty(t, halts)
			h.mine(60)
			h.paidOnce(h.tenant, way, waits)
			ops, err := h.app.Operate.List(ctx, "", 10, 0)
			require.NoError(t, err)
			var kinds []outgoing.OperationKind
			for _, op := range ops {
				kinds = append(kinds, op.Kind)
				require.Equal(t, "ann", op.By)
			}
			require.Equal(t, []outgoing.OperationKind{outgoing.OpLift, outgoing.OpHalt, outgoing.OpHalt}, kinds)
			require.Equal(t, "all is well", ops[0].Reason)
			require.Contains(t, ops[0].Before, "a look")
			require.Equal(t, "[]", ops[0].After)
			h.sound()
		})
	}
}

// TestFT05_HaltedTenantOfAnApp: a tenant that is halted everywhere does not stop another,
// and neither does the halt of a network within what is halted wider.
func TestFT05_HaltedTenantOfAnApp(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHost(t, 63, "ETH", "BTC")
	first := h.tenant
	h.earn("ETH", "300")
	h.newTenant()
	h.earn("ETH", "300")
	_, err := h.app.Operate.Halt(ctx, cryptopay.HaltScope{Tenant: first + "x"}, because("a look"))
	require.ErrorIs(t, err, wallet.ErrNoTenant, "a misspelt halt stops nothing")
	everywhere := cryptopay.HaltScope{Tenant: first}
	_, err = h.app.Operate.Halt(ctx, everywhere, because("his keys are lost"))
	require.NoError(t, err)
	_, err = h.app.Operate.Halt(ctx, cryptopay.HaltScope{Network: "ETH", Tenant: first}, because("another look"))
	require.NoError(t, err)
	waits, goes := h.payout(first, "ETH", "0.01"), h.payout(h.tenant, "ETH", "0.02")
	h.mine(40)
	require.Equal(t, "pending halted", h.status(first, waits))
	w, err := h.app.Withdrawals.Get(ctx, first, waits)
	require.NoError(t, err)
	require.Equal(t, "his keys are lost", w.Reason)
	h.paidOnce(h.tenant, goes)
	_, err = h.app.Operate.Lift(ctx, everywhere, because("he has new ones"))
	require.NoError(t, err)
	h.mine(40)
	require.Equal(t, "pending halted", h.status(first, waits), "the narrower halt is another")
	_, err = h.app.Operate.Lift(ctx, cryptopay.HaltScope{Network: "ETH", Tenant: first}, because("looked"))
	require.NoError(t, err)
	h.mine(60)
	require.Equal(t, "completed", h.status(first, waits))
	h.sound()
}

// TestFT05_HaltedCurrencyIsNotSwept: neither its sweeps nor the gas for them are sent, and
// what of it was signed before is not sent again.
func TestFT05_HaltedCurrencyIsNotSwept(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHost(t, 64, "ETH")
	h.earn("ETH", "300")
	h.earn(usdt, "300")
	before := h.signed()
	scope := cryptopay.HaltScope{Currency: usdt}
	p := h.create("50", usdt)
	h.pay(p, usdt, dec("50"))
	h.configure = func(c *cryptopay.Config) { c.Signer = nil }
	h.restart()
	h.mine(30) // gas for the sweep is ordered, and not signed
	_, err := h.app.Operate.Halt(ctx, scope, because("the issuer is looked at"))
	require.NoError(t, err)
	h.configure = nil
	h.restart()
	q := h.create("50", usdt)
	h.pay(q, usdt, dec("50"))
	gas := h.payout(h.tenant, "ETH", "0.01")
	h.mine(40)
	require.Equal(t, "completed", h.status(h.tenant, gas), "another currency is paid")
	require.Equal(t, "completed", string(h.payment(q.ID).Status))
	after := h.signed()
	require.Equal(t, []int{before[chain.ForSweep], before[chain.ForGas]}, []int{after[chain.ForSweep], after[chain.ForGas]})
	_, err = h.app.Operate.Lift(ctx, scope, because("it is fine"))
	require.NoError(t, err)
	h.mine(150)
	require.Equal(t, before[chain.ForSweep]+2, h.signed()[chain.ForSweep])
	require.Equal(t, "completed", string(h.payment(p.ID).Status))
	h.sound()
}

// between runs something once, before one call of a store.
type between struct {
	storage.Store
	left int    // calls until then
	run  func() // nil once it has run
}

func (b *between) call() {
	if b.left--; b.left < 0 && b.run != nil {
		run := b.run
		b.run = nil
		run()
	}
}

func (b *between) Commit(ctx context.Context, changes ...storage.Change) []error {
	b.call()
	return b.Store.Commit(ctx, changes...)
}

func (b *between) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	b.call()
	return b.Store.Rows(ctx, t, keys...)
}

func (b *between) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	b.call()
	return b.Store.Find(ctx, q)
}

// TestFT05_HaltMeetsANetworkThatStarts: whenever a halt of everything comes while the first
// process of a network starts, and whenever that starts while a halt, or its lift, is set,
// the network ends as all others do.
func TestFT05_HaltMeetsANetworkThatStarts(t *testing.T) {
	t.Parallel()
	type act struct {
		name  string
		run   func(h *host, desk *cryptopay.App) error
		holds bool // the halt does at the end
	}
	for _, a := range []act{
		{"halt", func(h *host, desk *cryptopay.App) error {
			_, err := desk.Operate.Halt(h.t.Context(), cryptopay.HaltScope{}, because("a look"))
			return err
		}, true},
		{"lift", func(h *host, desk *cryptopay.App) error {
			_, err := desk.Operate.Lift(h.t.Context(), cryptopay.HaltScope{}, because("all is well"))
			return err
		}, false},
	} {
		for _, inside := range []string{"the start", "the act"} {
			t.Run(a.name+" inside "+inside, func(t *testing.T) {
				t.Parallel()
				for n, last := 0, false; !last; n++ {
					h := newHost(t, 63, "ETH")
					cut := &between{Store: h.store, left: n}
					var store storage.Store = cut
					if inside == "the start" {
						store = h.store
					}
					desk := h.beside(func(c *cryptopay.Config) { c.Signer, c.Store = nil, store })
					if !a.holds {
						_, err := h.app.Operate.Halt(t.Context(), cryptopay.HaltScope{}, because("a look"))
						require.NoError(t, err)
					}
					h.chains["BTC"] = sim.MustNew(sim.Options{Network: "BTC", Registry: chain.MainnetRegistry(), Seed: 63, Now: h.clock.Now})
					h.configure = func(c *cryptopay.Config) {
						if inside == "the start" {
							c.Store = cut
						}
					}
					cut.left = n
					if inside == "the start" {
						cut.run = func() { require.NoError(t, a.run(h, desk)) }
						h.restart()
					} else {
						cut.run = h.restart
						require.NoError(t, a.run(h, desk))
					}
					if last = cut.run != nil; last {
						break // there are no more calls
					}
					h.step()
					halts, err := h.app.Operate.Halts(t.Context())
					require.NoError(t, err)
					var where []chain.Network
					for _, halt := range halts {
						where = append(where, halt.Network)
					}
					if a.holds {
						require.Equal(t, []chain.Network{"", "BTC", "ETH"}, where, "before call %d", n)
					} else {
						require.Empty(t, where, "before call %d", n)
					}
				}
			})
		}
	}
}
