package cryptopay_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// rich is a merchant with 100 USDT and an operator with coins for gas.
func rich(t testing.TB, seed uint64) *host {
	h := newHost(t, seed, "ETH", "BTC")
	h.float("ETH", "1")
	p := h.create("100", usdt)
	h.pay(p, usdt, dec("100"))
	h.mine(60)
	require.Equal(t, payment.Completed, h.payment(p.ID).Status)
	return h
}

// noETH configures a process without a client of ETH.
func noETH(cfg *cryptopay.Config) {
	cfg.Chains = slices.DeleteFunc(cfg.Chains, func(c chain.Client) bool { return c.Network() == "ETH" })
}

// TestFM05_WhatIsOpenIsNotRemovedUnseen: a currency or a chain that is taken out of the
// configuration while something of it is open would never end. Open names what there is,
// and goes on where the host says what is meant.
func TestFM05_WhatIsOpenIsNotRemovedUnseen(t *testing.T) {
	t.Parallel()
	h := rich(t, 40)
	refused := func(configure func(*cryptopay.Config)) map[string]cryptopay.OpenBusiness {
		t.Helper()
		var open *cryptopay.OpenBusinessError
		require.ErrorAs(t, h.compose(configure).Open(t.Context(), keys.Tables()...), &open)
		out := map[string]cryptopay.OpenBusiness{}
		for _, o := range open.Open {
			require.Contains(t, open.Error(), o.Currency+" on "+string(o.Network))
			out[o.Currency] = o
		}
		return out
	}
	gone := without(t, usdt, false)
	require.Equal(t, cryptopay.OpenBusiness{Currency: usdt, Network: "ETH", Balances: 1}, refused(gone)[usdt], "merchants could not take it out")
	h.create("20", usdt)
	id := h.withdraw("30", usdt)
	h.step()
	is := refused(gone)[usdt]
	require.Equal(t, []int64{1, 1, 1}, []int64{is.Payments, is.Withdrawals, is.Intents})
	require.Contains(t, refused(noETH), usdt, "a chain as much as a currency")

	h.beside(func(cfg *cryptopay.Config) { noETH(cfg); cfg.Elsewhere = []chain.Network{"ETH"} })
	h.beside(func(cfg *cryptopay.Config) { gone(cfg); cfg.Retire = []string{usdt} })
	h.mine(30)
	w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Completed, w.Status, "no other process was hurt by the questions")

	// Nothing is open in a currency that nobody ever used.
	h.beside(without(t, "DAIERC20", false))
}

// TestFM05_ConfigSaysOneThing: a currency is listed or retired, a network served here or elsewhere.
func TestFM05_ConfigSaysOneThing(t *testing.T) {
	t.Parallel()
	h := newHost(t, 41, "ETH")
	for field, edit := range map[string]func(*cryptopay.Config){
		"Config.Retire":    func(cfg *cryptopay.Config) { cfg.Retire = []string{usdt} },
		"Config.Elsewhere": func(cfg *cryptopay.Config) { cfg.Elsewhere = []chain.Network{"ETH"} },
	} {
		cfg := h.app.Config()
		cfg.Key = bytes.Repeat([]byte{7}, 32)
		edit(&cfg)
		_, err := cryptopay.New(cfg)
		require.ErrorContains(t, err, field)
	}
}

// TestFM05_RetiredWaitsAndCanBeCancelled: what is open in a retired currency, or on a
// network that nobody serves any more, waits as halted, harms no other work, and its
// withdrawals can be cancelled.
func TestFM05_RetiredWaitsAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	all := []string{usdt, "ETH", "USDCERC20", "DAIERC20"}
	for name, configure := range map[string]func(testing.TB) func(*cryptopay.Config){
		"currency": func(t testing.TB) func(*cryptopay.Config) {
			return func(cfg *cryptopay.Config) { without(t, usdt, false)(cfg); cfg.Retire = all[:1] }
		},
		"chain": func(testing.TB) func(*cryptopay.Config) {
			return func(cfg *cryptopay.Config) { noETH(cfg); cfg.Retire = all }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := rich(t, 42)
			was := h.credited(usdt)
			submitted := h.withdraw("20", usdt)
			h.configure = func(cfg *cryptopay.Config) { cfg.Signer = nil }
			h.restart()
			h.step() // handed over, and not signed
			kept := h.withdraw("20", usdt)
			h.configure = configure(t)
			h.restart()
			h.mine(3)
			for _, id := range []string{kept, submitted} {
				w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
				require.NoError(t, err)
				require.Equal(t, withdrawal.Pending, w.Status)
				if name == "currency" || id == kept {
					require.Equal(t, withdrawal.WaitingHalted, w.Waiting)
				}
				w, err = h.app.Withdrawals.Cancel(t.Context(), h.tenant, id)
				require.NoError(t, err)
				require.Equal(t, withdrawal.Cancelled, w.Status)
			}
			h.mine(3)
			require.Equal(t, was, h.credited(usdt))
			h.configure = nil
			h.restart()
			h.mine(30)
			require.Zero(t, h.chains["ETH"].Balance(h.chains["ETH"].Customer("supplier"), usdt).Sign(), "what was cancelled is never sent")
			h.sound()
		})
	}
}

// dying is the store of a worker that dies at a commit which inserts an intent: before it,
// or right after it.
type dying struct {
	storage.Store
	after bool
	dead  *bool
}

func (d dying) Commit(ctx context.Context, changes ...storage.Change) []error {
	inserts := slices.ContainsFunc(changes, func(c storage.Change) bool {
		return slices.ContainsFunc(c.Put, func(r storage.Row) bool { return r.Table == outgoing.Intents.Table && r.Version == 0 })
	})
	alive := !*d.dead
	*d.dead = *d.dead || inserts
	if alive && (!inserts || d.after) {
		return d.Store.Commit(ctx, changes...)
	}
	return slices.Repeat([]error{storage.ErrClosed}, len(changes))
}

// A worker died while it handed a withdrawal over, and the network is retired then: the
// withdrawal can be cancelled, whether or not the intent was stored, and what was set
// aside for the network's fee is given back.
func TestFM05_RetiredWithdrawalOfADeadWorkerCanBeCancelled(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before the intent is stored": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := rich(t, 43)
			was := h.credited(usdt)
			id := h.withdraw("20", usdt)
			var dead bool
			h.configure = func(cfg *cryptopay.Config) { cfg.Store = dying{h.store, after, &dead} }
			h.restart()
			_, err := h.app.Withdrawals.Step(t.Context())
			require.Error(t, err)
			require.True(t, dead)
			reserved := func() ledger.Amount {
				g, _, _, err := treasury.GasFloats.One(t.Context(), h.store, storage.Tenant(h.tenant), "ETH")
				require.NoError(t, err)
				return g.Reserved
			}
			require.Positive(t, reserved())
			h.configure = func(cfg *cryptopay.Config) {
				noETH(cfg)
				cfg.Retire = []string{usdt, "ETH", "USDCERC20", "DAIERC20"}
			}
			h.restart()
			h.mine(3)
			w, err := h.app.Withdrawals.Cancel(t.Context(), h.tenant, id)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Cancelled, w.Status)
			require.Equal(t, was, h.credited(usdt))
			h.configure = nil
			h.restart()
			h.mine(30)
			require.Zero(t, h.chains["ETH"].Balance(h.chains["ETH"].Customer("supplier"), usdt).Sign())
			require.Zero(t, reserved())
			h.sound()
		})
	}
}

// TestFM07_AnotherKeyIsRefused: another seed would show addresses whose money nobody finds,
// another Key would fail at the first webhook. Both are refused at Open, before anything is
// written, unless the host says that it is meant.
func TestFM07_AnotherKeyIsRefused(t *testing.T) {
	t.Parallel()
	other, err := keys.FromMnemonic("legal winner thank year wave sausage worth useful legal winner thank yellow", "")
	require.NoError(t, err)
	edits := map[string]func(h *host) func(*cryptopay.Config){
		"Key": func(*host) func(*cryptopay.Config) {
			return func(cfg *cryptopay.Config) { cfg.Key = bytes.Repeat([]byte{8}, 32) }
		},
		"Addresses": func(h *host) func(*cryptopay.Config) {
			return func(cfg *cryptopay.Config) { cfg.Addresses = sourceOf(h, other) }
		},
	}
	for field, edit := range edits {
		for _, older := range []bool{false, true} { // a store of a version that kept no fingerprints
			t.Run(field, func(t *testing.T) {
				t.Parallel()
				h := newHost(t, 43, "ETH", "BTC")
				h.step()
				if older {
					_, _, err := h.app.Webhooks.Setup(t.Context(), h.tenant, "https://shop.example/hook", webhook.By{})
					require.NoError(t, err)
					h.forgetFingerprints()
					h.configure = func(c *cryptopay.Config) { c.UnsealedUntil = h.clock.Now().Add(time.Hour) }
				}
				var wrong *cryptopay.KeyError
				require.ErrorAs(t, h.compose(edit(h)).Open(t.Context(), keys.Tables()...), &wrong)
				require.Equal(t, field, wrong.Field)
				require.ErrorContains(t, wrong, "Config."+field)
				h.restart() // with the right one
				require.ErrorAs(t, h.compose(edit(h)).Open(t.Context(), keys.Tables()...), &wrong)

				app := h.compose(edit(h))
				require.NoError(t, app.AdoptKeys(t.Context(), keys.Tables()...))
				require.NoError(t, app.AdoptKeys(t.Context(), keys.Tables()...))
				require.NoError(t, app.Open(t.Context(), keys.Tables()...))
				require.ErrorAs(t, h.compose(nil).Open(t.Context(), keys.Tables()...), &wrong)
			})
		}
	}
}

// forgetFingerprints makes the store one of a version that kept none.
func (h *host) forgetFingerprints() {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{Table: cryptopay.Fingerprints.Table, Partition: storage.System})
	require.NoError(h.t, err)
	require.Len(h.t, rows, 2+len(h.chains)) // of the store itself, and of the key
	require.NoError(h.t, h.store.Commit(h.t.Context(), storage.Change{ID: "older", Partition: storage.System, Drop: rows})[0])
}

// sourceOf derives addresses of another seed.
func sourceOf(h *host, seed *keys.Seed) chain.AddressSource {
	registry := chain.MainnetRegistry()
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(h.t, err)
	encode := map[chain.Network]keys.Encode{}
	for n, c := range h.chains {
		encode[n] = c.Client().AddressOf
	}
	source, err := keys.NewSource(accounts, encode)
	require.NoError(h.t, err)
	return source
}

// TestFE12_NetworkWithoutAnAddressIsFoundAtStart: Open derives one address of each client's network.
func TestFE12_NetworkWithoutAnAddressIsFoundAtStart(t *testing.T) {
	t.Parallel()
	h := newHost(t, 44, "ETH", "BTC")
	registry := chain.MainnetRegistry()
	accounts, err := h.seed.Accounts(registry.Networks())
	require.NoError(t, err)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": h.chains["ETH"].Client().AddressOf})
	require.NoError(t, err)
	err = h.compose(func(cfg *cryptopay.Config) { cfg.Addresses = source }).Open(t.Context(), keys.Tables()...)
	require.ErrorContains(t, err, "Config.Addresses")
	require.ErrorContains(t, err, "BTC")
}

// lossy is a store that loses the answer of the first Change that writes an intent, or
// that Change itself; it cannot be asked what became of it.
type lossy struct {
	storage.Store
	dies   bool // before the Change is written
	silent bool
}

func (l *lossy) Commit(ctx context.Context, changes ...storage.Change) []error {
	for _, c := range changes {
		if len(c.Put) > 0 && c.Put[0].Table == outgoing.Intents.Table {
			if l.silent = true; !l.dies {
				l.Store.Commit(ctx, changes...)
			}
			return slices.Repeat([]error{context.DeadlineExceeded}, len(changes))
		}
	}
	return l.Store.Commit(ctx, changes...)
}

func (l *lossy) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if l.silent && t == outgoing.Intents.Table {
		return nil, context.DeadlineExceeded
	}
	return l.Store.Rows(ctx, t, keys...)
}

// picky refuses one recipient: a version with stricter addresses.
type picky struct {
	able
	refused string
}

func (c *picky) ParseAddress(s string) (chain.Address, error) {
	if s == c.refused {
		return "", &chain.AddressError{Network: c.Network(), Address: s, Reason: "refused by this version"}
	}
	return c.able.ParseAddress(s)
}

// TestFT08_StoredIntentIsNotRefused: an intent was stored and the answer was lost. The next
// version refuses the recipient. The withdrawal is paid, or cancelled: never both paid and
// given back.
func TestFT08_StoredIntentIsNotRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dies, cancel bool
		want         withdrawal.Status
	}{
		"stored":                {false, false, withdrawal.Completed},
		"stored, cancelled":     {false, true, withdrawal.Cancelled},
		"not stored":            {true, false, withdrawal.Failed},
		"not stored, cancelled": {true, true, withdrawal.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := rich(t, 45)
			was := h.credited(usdt)
			h.configure = func(cfg *cryptopay.Config) { cfg.Store, cfg.Signer = &lossy{Store: h.store, dies: c.dies}, nil }
			h.restart()
			supplier := h.chains["ETH"].Customer("supplier")
			id := h.withdraw("30", usdt)
			require.Error(t, h.app.Step(t.Context()))
			h.configure = strict(supplier)
			h.clock.Advance(5 * time.Minute)
			h.restart()
			if c.cancel {
				_, err := h.app.Withdrawals.Cancel(t.Context(), h.tenant, id)
				require.NoError(t, err)
			}
			h.mine(40)
			w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
			require.NoError(t, err)
			require.Equal(t, c.want, w.Status)
			if c.want == withdrawal.Completed {
				was -= w.Requested
			}
			require.Equal(t, was, h.credited(usdt))
			require.Equal(t, c.want == withdrawal.Completed, h.chains["ETH"].Balance(supplier, usdt).Sign() > 0)
			h.sound()
		})
	}
}

// strict configures a process that refuses one recipient.
func strict(to chain.Address) func(*cryptopay.Config) {
	return func(cfg *cryptopay.Config) {
		for i, c := range cfg.Chains {
			if c.Network() == "ETH" {
				cfg.Chains[i] = &picky{c.(able), string(to)}
			}
		}
	}
}

// TestFT08_RefusedIsRefusedForGood: one version refuses a withdrawal and gives the money
// back. A process of another, which slept over it, cannot submit it after that.
func TestFT08_RefusedIsRefusedForGood(t *testing.T) {
	t.Parallel()
	h := rich(t, 46)
	was := h.credited(usdt)
	supplier := h.chains["ETH"].Customer("supplier")
	id := h.withdraw("30", usdt)
	stepOf(t, h.beside(strict(supplier)))
	w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Failed, w.Status)
	require.Equal(t, was, h.credited(usdt))
	late := chain.Intent{
		ID: id, Purpose: chain.ForWithdrawal, Tenant: h.tenant, Network: "ETH", Currency: usdt, To: supplier, Memo: w.SentMemo,
		Amount: w.Amount, MaxCost: w.MaxCost, Confirmations: w.Required,
	}
	require.Error(t, h.app.Treasury.Submit(t.Context(), late), "the slow one")
	h.mine(20)
	require.Zero(t, h.chains["ETH"].Balance(supplier, usdt).Sign())
	h.sound()
}

// TestFN10_FrozenProviderEndsNoOrder: a provider answers well and stands still. What was
// paid in time is not told to be expired; nothing becomes final, and the operator hears of it.
func TestFN10_FrozenProviderEndsNoOrder(t *testing.T) {
	t.Parallel()
	for name, frozen := range map[string]time.Duration{"shorter than the bound": 150 * time.Minute, "longer": 5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, 47, "BTC")
			world := sim.MustNew(sim.Options{
				Network: "BTC", Registry: chain.MainnetRegistry(), Seed: 47, Now: h.clock.Now, Steady: true,
			})
			h.chains["BTC"] = world
			node := world.NewNode()
			h.store = memory.New()
			h.configure = func(cfg *cryptopay.Config) { cfg.Chains = []chain.Client{node.Client()} }
			h.restart()
			h.newTenant()
			world.Mine(1)
			h.step()
			paid, unpaid := h.create("60", "BTC"), h.create("60", "BTC")
			node.Freeze().Blind(true)
			h.pay(paid, "BTC", dec("0.001"))
			h.clock.Advance(10 * time.Minute)
			world.Mine(1)
			for passed := time.Duration(0); passed < frozen; passed += 10 * time.Minute {
				h.clock.Advance(10 * time.Minute)
				if err := h.app.Step(t.Context()); passed > 3*time.Hour {
					require.ErrorIs(t, err, incoming.ErrStuck)
				}
			}
			status, err := h.app.NetworkStatus(t.Context(), "BTC")
			require.NoError(t, err)
			require.Equal(t, frozen > 3*time.Hour, status.Stuck != "")
			require.Empty(t, h.told(paid.ID))
			require.Empty(t, h.told(unpaid.ID))
			node.Thaw().Blind(false)
			for range 5 {
				h.clock.Advance(time.Minute)
				world.Mine(1)
				h.step()
			}
			require.Equal(t, payment.Completed, h.payment(paid.ID).Status)
			require.NotContains(t, h.told(paid.ID), "expired")
			require.Equal(t, payment.Expired, h.payment(unpaid.ID).Status)
		})
	}
}

// TestFN10_HeadAgeCanBeChosen: the bound is each network's own, the host's, or none.
func TestFN10_HeadAgeCanBeChosen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steady     bool
		configured time.Duration
		stuck      time.Duration // 0 = never
	}{
		"the network's own": {true, 0, 3 * time.Hour},
		"the host's":        {true, time.Hour, time.Hour},
		"none":              {true, -1, 0},
		"on demand":         {false, 0, 0},
		"on demand, bound":  {false, time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, 48, "BTC")
			h.chains["BTC"] = sim.MustNew(sim.Options{
				Network: "BTC", Registry: chain.MainnetRegistry(), Seed: 48, Now: h.clock.Now, Steady: c.steady,
			})
			h.store = memory.New()
			h.configure = func(cfg *cryptopay.Config) { cfg.HeadAge = c.configured }
			h.restart()
			h.chains["BTC"].Mine(1)
			h.step()
			if c.stuck > 0 {
				h.clock.Advance(c.stuck)
				h.step()
				h.clock.Advance(time.Second)
				require.ErrorIs(t, h.app.Step(t.Context()), incoming.ErrStuck)
				return
			}
			h.clock.Advance(1000 * time.Hour)
			h.step()
		})
	}
}

// TestFN13_MempoolsThatDifferDoNotFlap: the nodes of two processes hold different
// transactions. A deposit that one of them has is not gone, however often the other misses
// it; one that nobody has for a while is.
func TestFN13_MempoolsThatDifferDoNotFlap(t *testing.T) {
	t.Parallel()
	h := newHost(t, 49, "BTC")
	blind := h.chains["BTC"].NewNode()
	h.configure = func(cfg *cryptopay.Config) { cfg.GoneAfter = 10 * time.Minute }
	h.restart()
	h.step()
	other := h.beside(func(cfg *cryptopay.Config) {
		cfg.GoneAfter = 10 * time.Minute
		cfg.Chains = []chain.Client{blind.Client()}
	})
	p := h.create("60", "BTC")
	tx := h.pay(p, "BTC", dec("0.001"))
	blind.Forget(tx)
	for range 120 { // two hours, past the window
		h.clock.Advance(time.Minute)
		h.step()
		stepOf(t, other)
	}
	require.Equal(t, []string{"confirming"}, h.told(p.ID))
	h.chains["BTC"].Drop(tx)
	for range 12 {
		h.clock.Advance(time.Minute)
		stepOf(t, other)
		h.step()
	}
	require.Equal(t, []string{"confirming", "failed"}, h.told(p.ID))
	rows, err := h.store.Find(t.Context(), storage.Query{Table: incoming.Missing.Table, Partition: storage.Network("BTC")})
	require.NoError(t, err)
	require.Empty(t, rows, "nothing is left behind")
}

// TestFN14_AbilitiesWaitForTheLastOldProcess: on a store that an older version made,
// withdrawals are paid one by one until the operator says that no old process runs.
func TestFN14_AbilitiesWaitForTheLastOldProcess(t *testing.T) {
	t.Parallel()
	h := newHost(t, 50, "BTC")
	h.float("BTC", "1")
	for range 10 { // coins enough for payments one by one
		p := h.create("600", "BTC")
		h.pay(p, "BTC", dec("0.01"))
	}
	h.mine(5)
	transactions := func() int {
		var ids []string
		for range 4 {
			ids = append(ids, h.withdraw("50", "BTC"))
		}
		h.mine(5)
		hashes := map[string]bool{}
		for _, id := range ids {
			w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, w.Status)
			hashes[w.Tx] = true
		}
		return len(hashes)
	}
	require.Equal(t, 1, transactions(), "a store that this version made")
	rows, err := h.store.Find(t.Context(), storage.Query{Table: cryptopay.Abilities.Table, Partition: storage.System})
	require.NoError(t, err)
	require.NoError(t, h.store.Commit(t.Context(), storage.Change{ID: "older", Partition: storage.System, Drop: rows})[0])
	h.restart()
	require.Equal(t, 4, transactions(), "one that an older version made")
	old := h.beside(nil)
	require.NoError(t, old.Upgraded(t.Context()))
	require.NoError(t, h.app.Upgraded(t.Context()))
	require.Equal(t, 1, transactions(), "the running process hears of it")
}

// newTenant makes the merchant anew, in a store that does not have it.
func (h *host) newTenant() {
	h.t.Helper()
	name := "shop"
	tenant, err := h.app.Wallets.CreateTenant(h.t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(h.t, err)
	h.tenant = tenant.ID
}

// TestR05_ANodeThatLagsUndoesNoSettlement: a payout has settled, and another waits behind its nonce.
// The node of one process does not know the block of the first: its word takes nothing back.
func TestR05_ANodeThatLagsUndoesNoSettlement(t *testing.T) {
	t.Parallel()
	h := newHost(t, 73, "ETH")
	h.earn("ETH", "300")
	h.mine(30)
	node := h.chains["ETH"].NewNode().Freeze()
	other := h.beside(func(cfg *cryptopay.Config) { cfg.Chains = []chain.Client{node.Client()} })
	first := h.payout(h.tenant, "ETH", "0.01")
	h.mine(40)
	require.Equal(t, "completed", h.status(h.tenant, first))
	second := h.payout(h.tenant, "ETH", "0.01")
	h.step()
	level := h.stick("ETH")
	for range 24 {
		h.clock.Advance(15 * time.Minute)
		_ = other.Step(t.Context()) // it says that its node is behind
		require.Equal(t, "completed", h.status(h.tenant, first))
		row, _, _, err := outgoing.Intents.One(t.Context(), h.store, storage.Network("ETH"), first)
		require.NoError(t, err)
		require.Equal(t, outgoing.Final, row.State, row.Reason)
	}
	h.chains["ETH"].SetFeeLevel(level)
	h.mine(60)
	require.Equal(t, "completed", h.status(h.tenant, second))
	h.paidOnce(h.tenant, first, second)
	h.sound()
}
