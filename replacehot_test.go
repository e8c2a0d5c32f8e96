package cryptopay_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/several"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// holds is what an address has on the chain.
func (h *host) holds(n chain.Network, a chain.Address, currency string) decimal.Decimal {
	return h.chains[n].Balance(a, currency)
}

func (h *host) hot(n chain.Network) chain.Address {
	h.t.Helper()
	a, err := h.app.Hot(h.t.Context(), n, h.tenant)
	require.NoError(h.t, err)
	return a
}

// replaces takes the hot address of a network out of use.
func (h *host) replaces(n chain.Network) (old, now chain.Address) {
	h.t.Helper()
	old = h.hot(n)
	now, id, err := h.app.Operate.ReplaceHot(h.t.Context(), n, h.tenant, old, because("its key leaked"))
	require.NoError(h.t, err)
	require.NotEmpty(h.t, id)
	require.NotEqual(h.t, old, now)
	require.Equal(h.t, now, h.hot(n))
	return old, now
}

// use is what the directory says that an address is for.
func (h *host) use(n chain.Network, a chain.Address) incoming.AddressRow {
	h.t.Helper()
	row, _, ok, err := incoming.Addresses.One(h.t.Context(), h.store, storage.Network(string(n)), string(a))
	require.NoError(h.t, err)
	require.True(h.t, ok)
	return row
}

// emptied: what the old address holds of each currency is less than moving it would cost, and the new one
// has all tokens of the books.
func (h *host) emptied(old, now chain.Address, coins string) {
	h.t.Helper()
	tokens := h.coin(usdt).Decimal(-h.posted(ledger.Chain("ETH"), usdt))
	require.True(h.t, h.holds("ETH", old, usdt).IsZero(), "%s", h.holds("ETH", old, usdt))
	require.True(h.t, h.holds("ETH", old, "ETH").LessThan(dec("0.003")), "%s", h.holds("ETH", old, "ETH"))
	require.True(h.t, h.holds("ETH", now, usdt).Equal(tokens), "%s", h.holds("ETH", now, usdt))
	require.True(h.t, h.holds("ETH", now, "ETH").GreaterThan(dec(coins)), "%s", h.holds("ETH", now, "ETH"))
	require.Empty(h.t, h.differences("ETH"))
	h.sound()
	h.unaltered()
}

// unaltered: Verify takes nothing for edited.
func (h *host) unaltered() {
	h.t.Helper()
	reports, err := h.app.Verify(h.t.Context())
	require.NoError(h.t, err)
	for _, r := range reports {
		require.Empty(h.t, r.Contradictions)
	}
}

// TestFT10_AReplacedHotAddressIsEmptied: tokens and ether go to the new address, with a payout under way and
// a deposit that is not swept yet. Payouts go on from the new one.
func TestFT10_AReplacedHotAddressIsEmptied(t *testing.T) {
	t.Parallel()
	h := newHost(t, 901, "ETH")
	h.float("ETH", "1")
	first := h.create("300", usdt)
	h.pay(first, usdt, first.DueCoins())
	h.mine(40)
	require.True(t, h.holds("ETH", h.hot("ETH"), usdt).Equal(dec("300")))
	second := h.create("100", usdt)
	h.pay(second, usdt, second.DueCoins())
	sent := h.withdraw("50", usdt)
	h.step() // it is signed and sent
	require.Equal(t, 1, h.signed()[chain.ForWithdrawal])
	old, now := h.replaces("ETH")
	waits := h.withdraw("20", usdt)
	gas := h.signed()[chain.ForGas]
	h.mine(80)
	require.Equal(t, gas+1, h.signed()[chain.ForGas], "for the deposit alone: tokens of the old address went before its ether")
	for _, id := range []string{sent, waits} {
		require.Equal(t, withdrawal.Completed, h.withdrawal(id).Status, h.withdrawal(id).Waiting)
	}
	h.paidOnce(h.tenant, sent, waits)
	h.emptied(old, now, "0.9")
	last := h.withdraw("30", usdt)
	h.mine(40)
	require.Equal(t, withdrawal.Completed, h.withdrawal(last).Status)
	order, _, ok, err := outgoing.Intents.One(t.Context(), h.store, storage.Network("ETH"), last)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, now, order.From)
	h.days(2)
	h.emptied(old, now, "0.9")
	require.True(t, h.use("ETH", old).WatchUntil.IsZero())
}

// TestFT10_OrdersThatAreNotSignedGoFromTheNewAddress: a payout that waits for coins when its address is
// replaced waits for those of the new one.
func TestFT10_OrdersThatAreNotSignedGoFromTheNewAddress(t *testing.T) {
	t.Parallel()
	h := newHost(t, 902, "ETH")
	h.float("ETH", "1")
	p := h.create("300", usdt)
	h.pay(p, usdt, p.DueCoins())
	h.mine(40)
	h.configure = func(c *cryptopay.Config) { c.Signer = nil }
	h.restart()
	id := h.withdraw("50", usdt)
	later := h.create("40", usdt)
	h.pay(later, usdt, later.DueCoins())
	ether := h.create("40", "ETH")
	h.pay(ether, "ETH", ether.DueCoins())
	h.mine(40)
	part := storage.Network("ETH")
	order, _, ok, err := outgoing.Intents.One(t.Context(), h.store, part, id)
	require.NoError(t, err)
	require.True(t, ok)
	old, now := h.replaces("ETH")
	require.Equal(t, old, order.From)
	h.mine(8)
	pending, err := h.store.Find(t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: part, Where: []storage.Cond{
		{Column: "state", Op: storage.In, Value: []outgoing.State{outgoing.Queued, outgoing.Waiting}},
	}})
	require.NoError(t, err)
	seen := map[chain.Purpose]int{}
	for _, r := range pending {
		v := outgoing.Intents.Value(r)
		seen[v.Purpose]++
		if v.Purpose == chain.ForSweep {
			require.Equal(t, now, v.To)
			continue
		}
		require.Equal(t, now, v.From, v.Purpose)
	}
	require.Equal(t, 1, seen[chain.ForWithdrawal])
	require.Equal(t, 1, seen[chain.ForGas], "for the tokens that are not swept")
	require.GreaterOrEqual(t, seen[chain.ForSweep], 1, "of the ether")
	h.configure = nil
	h.restart()
	h.mine(120)
	require.Equal(t, withdrawal.Completed, h.withdrawal(id).Status, h.withdrawal(id).Waiting)
	h.paidOnce(h.tenant, id)
	h.emptied(old, now, "0.9")
}

// TestFT10_WhatComesToAReplacedAddressIsMoved: it is the operator's own, and goes to the new address.
func TestFT10_WhatComesToAReplacedAddressIsMoved(t *testing.T) {
	t.Parallel()
	h := newHost(t, 903, "ETH")
	h.float("ETH", "1")
	old, now := h.replaces("ETH")
	h.mine(40)
	require.True(t, h.holds("ETH", now, "ETH").GreaterThan(dec("0.9")))
	h.days(7)
	had := h.posted(ledger.Float, usdt)
	for _, amount := range []string{"500", "70"} {
		_, err := h.chains["ETH"].Fund(old, usdt, dec(amount))
		require.NoError(t, err)
		h.mine(60)
	}
	require.Equal(t, had+570_000_000, h.posted(ledger.Float, usdt))
	h.emptied(old, now, "0.8")
	_, err := h.chains["ETH"].Fund(old, "ETH", dec("0.5"))
	require.NoError(t, err)
	h.mine(60)
	h.days(1)
	h.emptied(old, now, "1.3")
	require.Zero(t, h.credited(usdt), "it is no customer's")
}

// TestFT10_AnotherReplacement: of an address that replaced another one; both are emptied to the newest.
func TestFT10_AnotherReplacement(t *testing.T) {
	t.Parallel()
	h := newHost(t, 904, "ETH")
	h.float("ETH", "1")
	first, _ := h.replaces("ETH")
	second, third := h.replaces("ETH")
	h.mine(60)
	_, err := h.chains["ETH"].Fund(first, usdt, dec("200"))
	require.NoError(t, err)
	h.mine(80)
	h.emptied(first, third, "0.9")
	h.emptied(second, third, "0.9")
}

// TestFT10_ReplacingIsToldAndAskedForOnce: it is in the audit log; asked again for the same address it is
// the same replacement. What cannot be replaced is refused, and nothing is changed.
func TestFT10_ReplacingIsToldAndAskedForOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHost(t, 905, "ETH", "BTC")
	old := h.hot("ETH")
	_, _, err := h.app.Operate.ReplaceHot(ctx, "ETH", h.tenant, old, cryptopay.Call{By: "ann"})
	require.ErrorIs(t, err, cryptopay.ErrCall)
	_, _, err = h.app.Operate.ReplaceHot(ctx, "ETH", "nobody", old, because("a slip"))
	require.Error(t, err)
	p := h.create("10", usdt)
	for _, a := range []chain.Address{"somewhere", h.chains["ETH"].Customer("stranger"), chain.Address(p.Address)} {
		_, _, err = h.app.Operate.ReplaceHot(ctx, "ETH", h.tenant, a, because("a slip"))
		require.ErrorIs(t, err, outgoing.ErrHelp)
		require.ErrorContains(t, err, "no hot address of the tenant's")
	}
	dry := because("a look")
	dry.DryRun = true
	now, id, err := h.app.Operate.ReplaceHot(ctx, "ETH", h.tenant, old, dry)
	require.NoError(t, err)
	require.Empty(t, id)
	require.Empty(t, now)
	require.Equal(t, old, h.hot("ETH"))
	require.Equal(t, incoming.UseHot, h.use("ETH", old).Use)

	now, id, err = h.app.Operate.ReplaceHot(ctx, "ETH", h.tenant, old, because("its key leaked"))
	require.NoError(t, err)
	again, none, err := h.app.Operate.ReplaceHot(ctx, "ETH", h.tenant, old, because("its key leaked"))
	require.NoError(t, err)
	require.Equal(t, now, again)
	require.Empty(t, none, "there is one replacement")
	log := h.logged(storage.Network("ETH"))
	require.Len(t, log, 1)
	op := log[0]
	require.Equal(t, []any{id, outgoing.OperationKind("replace_hot"), "ann", "its key leaked", h.tenant, string(old), chain.Network("ETH")},
		[]any{op.ID, op.Kind, op.By, op.Reason, op.Tenant, op.Object, op.Network})
	require.Contains(t, op.After, string(now))
	require.Len(t, h.operated(storage.Network("ETH")), 1)
	h.unaltered()
}

// TestFT10_TwoProcessesReplaceOnce: two that replace at the same time make one replacement.
func TestFT10_TwoProcessesReplaceOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, 906, "ETH")
	old := h.hot("ETH")
	apps := []*cryptopay.App{h.app, h.beside(nil), h.beside(nil), h.beside(nil)}
	type answer struct {
		now chain.Address
		id  string
		err error
	}
	answers := make(chan answer)
	for _, a := range apps {
		go func() {
			now, id, err := a.Operate.ReplaceHot(t.Context(), "ETH", h.tenant, old, because("its key leaked"))
			answers <- answer{now, id, err}
		}()
	}
	made := 0
	seen := map[chain.Address]bool{}
	for range apps {
		a := <-answers
		require.NoError(t, a.err)
		seen[a.now] = true
		if a.id != "" {
			made++
		}
	}
	require.Equal(t, 1, made)
	require.Len(t, seen, 1)
	require.Len(t, h.logged(storage.Network("ETH")), 1)
	for _, a := range apps {
		now, err := a.Hot(t.Context(), "ETH", h.tenant)
		require.NoError(t, err)
		require.True(t, seen[now])
	}
}

// TestFT10_CrashAtEachStep: wherever a commit of a replacement or of the emptying fails, another process
// goes on, and there is one replacement.
func TestFT10_CrashAtEachStep(t *testing.T) {
	t.Parallel()
	for failAt := 1; failAt <= 40; failAt++ {
		fault := failing.Undone
		if failAt%2 == 0 {
			fault = failing.Unheard
		}
		t.Run(fmt.Sprintf("%d/%s", (failAt+1)/2, fault), func(t *testing.T) {
			t.Parallel()
			ctx := context.WithoutCancel(t.Context())
			f := &failing.Commits{Store: memory.New()}
			h := newHostOn(t, f, 907, "ETH")
			h.float("ETH", "1")
			p := h.create("300", usdt)
			h.pay(p, usdt, p.DueCoins())
			h.mine(40)
			id := h.withdraw("50", usdt)
			old := h.hot("ETH")
			f.Seen, f.At = 0, map[int]failing.Fault{(failAt + 1) / 2: fault}
			_, _, err := h.app.Operate.ReplaceHot(ctx, "ETH", h.tenant, old, because("its key leaked"))
			for range 12 {
				if err != nil {
					break
				}
				h.clock.Advance(15 * time.Second)
				h.chains["ETH"].Mine(1)
				err = h.app.Step(ctx)
			}
			f.At = nil
			h.restart()
			now, _, err := h.app.Operate.ReplaceHot(ctx, "ETH", h.tenant, old, because("its key leaked"))
			require.NoError(t, err)
			h.clock.Advance(2 * time.Minute)
			h.mine(80)
			require.Len(t, h.logged(storage.Network("ETH")), 1)
			h.paidOnce(h.tenant, id)
			h.emptied(old, now, "0.9")
		})
	}
}

// TestFT10_WhatWasSignedGoesFirst: a payout of the old address that is in no block is replaced from there, and
// until it has landed nothing is taken away from it.
func TestFT10_WhatWasSignedGoesFirst(t *testing.T) {
	t.Parallel()
	h, id, level := stuck(t, memory.New(), "ETH")
	sweeps := h.signed()[chain.ForSweep]
	old, now := h.replaces("ETH")
	h.mine(12)
	require.Equal(t, sweeps, h.signed()[chain.ForSweep])
	waiting, err := h.app.Treasury.Waiting(t.Context(), h.tenant, "ETH", 10, 0)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	require.Equal(t, []any{treasury.WaitTurn, old, "ETH"}, []any{waiting[0].Reason, waiting[0].Address, waiting[0].Currency.Code})
	require.Contains(t, waiting[0].Detail, "orders that the address pays")
	view, err := h.app.Operate.Transactions(t.Context(), "ETH", id)
	require.NoError(t, err)
	_, err = h.app.Operate.SpeedUp(t.Context(), "ETH", id, 60*view.Intent.MaxCost, because("a customer waits"))
	require.NoError(t, err)
	h.mine(20)
	require.Equal(t, withdrawal.Completed, h.withdrawal(id).Status, h.withdrawal(id).Waiting)
	h.chains["ETH"].SetFeeLevel(level)
	h.mine(80)
	h.paidOnce(h.tenant, id)
	require.True(t, h.holds("ETH", old, "ETH").LessThan(dec("0.003")), "%s", h.holds("ETH", old, "ETH"))
	require.True(t, h.holds("ETH", now, "ETH").GreaterThan(dec("0.1")), "%s", h.holds("ETH", now, "ETH"))
	require.Empty(t, h.differences("ETH"))
	h.sound()
	h.unaltered()
}

// TestFT10_WhatStaysIsTold: coins that are not worth moving stay, are shown with the reason, counted as hot
// coins, and told of after a day; once.
func TestFT10_WhatStaysIsTold(t *testing.T) {
	t.Parallel()
	h := newHost(t, 909, "ETH")
	var told []treasury.Notice
	h.configure = func(c *cryptopay.Config) {
		c.Treasury.Notify = func(_ context.Context, n treasury.Notice) { told = append(told, n) }
	}
	h.restart()
	h.float("ETH", "1")
	old, now := h.replaces("ETH")
	h.mine(40)
	require.Empty(t, told)
	_, err := h.chains["ETH"].Fund(old, usdt, dec("0.5"))
	require.NoError(t, err)
	h.mine(40)
	waiting, err := h.app.Treasury.Waiting(t.Context(), h.tenant, "ETH", 10, 0)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	require.Equal(t, []any{treasury.WaitBelowCost, old, usdt}, []any{waiting[0].Reason, waiting[0].Address, waiting[0].Currency.Code})
	require.Empty(t, told)
	h.days(3)
	require.Len(t, told, 1)
	require.Equal(t, []any{treasury.WaitBelowCost, usdt}, []any{told[0].Reason, told[0].Currency})
	_, err = h.app.Treasury.Sync(t.Context(), h.tenant)
	require.NoError(t, err)
	shown, err := h.app.Treasury.Holdings(t.Context(), h.tenant)
	require.NoError(t, err)
	names := map[chain.Address]string{}
	for _, w := range shown.Wallets {
		if w.Currency.Code == usdt {
			names[w.Address] = fmt.Sprint(w.Name, " ", w.Amount)
		}
	}
	require.Equal(t, map[chain.Address]string{old: "ETH replaced hot wallet 0.5", now: "ETH hot wallet 0"}, names)
	for _, total := range shown.Totals {
		if total.Currency.Code == usdt {
			require.True(t, total.Hot.Equal(dec("0.5")), "%s", total.Hot)
		}
	}
	require.Empty(t, h.differences("ETH"))
	h.sound()
}

// TestFT10_ABlockedToken: the issuer has blocked the old address. Its tokens stay and say why, its ether is moved,
// and payouts of the token go from the new address once it has some. Unblocked, they follow.
func TestFT10_ABlockedToken(t *testing.T) {
	t.Parallel()
	h := newHost(t, 910, "ETH")
	h.float("ETH", "1")
	p := h.create("300", usdt)
	h.pay(p, usdt, p.DueCoins())
	h.mine(40)
	token := h.coin(usdt).Contract
	h.chains["ETH"].SetBehaviour(token, sim.Behaviour{Blocked: []chain.Address{h.hot("ETH")}})
	old, now := h.replaces("ETH")
	id := h.withdraw("50", usdt)
	h.mine(60)
	require.True(t, h.holds("ETH", old, usdt).Equal(dec("300")))
	require.True(t, h.holds("ETH", now, "ETH").GreaterThan(dec("0.9")), "%s", h.holds("ETH", now, "ETH"))
	require.Equal(t, "pending hot_short", h.status(h.tenant, id))
	stays := func() bool { // what its issuer refuses is tried again, and waits in between
		waiting, err := h.app.Treasury.Waiting(t.Context(), h.tenant, "ETH", 10, 0)
		require.NoError(t, err)
		return slices.ContainsFunc(waiting, func(w treasury.Waiting) bool {
			return w.Address == old && w.Currency.Code == usdt && w.Reason == treasury.WaitRefused && w.Amount == 300_000_000
		})
	}
	for range 60 {
		if stays() {
			break
		}
		h.mine(1)
	}
	require.True(t, stays())
	h.covers("200")
	h.mine(40)
	require.Equal(t, withdrawal.Completed, h.withdrawal(id).Status, h.withdrawal(id).Waiting)
	h.chains["ETH"].SetBehaviour(token, sim.Behaviour{})
	h.days(2)
	h.paidOnce(h.tenant, id)
	h.emptied(old, now, "0.8")
}

// TestFT10_AProcessOfAVersionBefore: none is replaced while one may run that knows nothing of it.
func TestFT10_AProcessOfAVersionBefore(t *testing.T) {
	t.Parallel()
	h := newHost(t, 911, "ETH")
	row, err := h.store.Rows(t.Context(), cryptopay.Abilities.Table, storage.Keys(storage.System, "replaced_hot_addresses")...)
	require.NoError(t, err)
	require.Len(t, row, 1)
	require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{ID: "before", Partition: storage.System, Drop: row}))
	h.restart()
	old := h.hot("ETH")
	_, _, err = h.app.Operate.ReplaceHot(t.Context(), "ETH", h.tenant, old, because("its key leaked"))
	require.ErrorIs(t, err, cryptopay.ErrUpgrade)
	require.Equal(t, old, h.hot("ETH"))
	require.NoError(t, h.app.Upgraded(t.Context()))
	h.replaces("ETH")
}

// TestFT10_OneAccountIsNotReplaced: where another hot address would be of the same key or is not paid from, an
// operator is told why, and what to do.
func TestFT10_OneAccountIsNotReplaced(t *testing.T) {
	t.Parallel()
	h := newHost(t, 908, "BTC")
	h.chains["XRP"] = sim.MustNew(sim.Options{Network: "XRP", Registry: chain.MainnetRegistry(), Seed: 908, Now: h.clock.Now, Finality: 20})
	h.restart()
	for n, why := range map[chain.Network]string{"XRP": "one account", "BTC": "coins of all"} {
		old := h.hot(n)
		_, _, err := h.app.Operate.ReplaceHot(t.Context(), n, h.tenant, old, because("its key leaked"))
		require.ErrorIs(t, err, outgoing.ErrHelp)
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, "halt the tenant")
		require.Equal(t, old, h.hot(n))
	}
}

// TestFT10_AReplacementThatIsTurnedBackIsNamed: who edits the database makes the old address the hot one
// again.
func TestFT10_AReplacementThatIsTurnedBackIsNamed(t *testing.T) {
	t.Parallel()
	h := newHost(t, 913, "ETH")
	h.float("ETH", "1")
	old, now := h.replaces("ETH")
	h.mine(20)
	h.unaltered()
	part := storage.Network("ETH")
	var put []storage.Row
	for a, use := range map[chain.Address]incoming.Use{old: incoming.UseHot, now: incoming.UseRetired} {
		v, row, _, err := incoming.Addresses.One(t.Context(), h.store, part, string(a))
		require.NoError(t, err)
		v.Use = use
		put = append(put, incoming.Addresses.Row(row.ID, row.Version, row.Due, v))
	}
	require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{ID: "edit", Partition: part, Put: put}))
	reports, err := h.app.Verify(t.Context())
	require.NoError(t, err)
	var named []string
	for _, r := range reports {
		for _, c := range r.Contradictions {
			named = append(named, c.ID)
		}
	}
	slices.Sort(named)
	want := []string{"ETH/" + string(old), "ETH/" + string(now)}
	slices.Sort(want)
	require.Equal(t, want, named)

	// What Verify says is done.
	third, id, err := h.app.Operate.ReplaceHot(t.Context(), "ETH", h.tenant, old, because("its key leaked, and the directory was edited"))
	require.NoError(t, err)
	require.NotEmpty(t, id)
	require.Equal(t, third, h.hot("ETH"))
	again, id, err := h.app.Operate.ReplaceHot(t.Context(), "ETH", h.tenant, now, because("the directory was edited"))
	require.NoError(t, err)
	require.NotEmpty(t, id)
	require.Equal(t, third, again)
	_, id, err = h.app.Operate.ReplaceHot(t.Context(), "ETH", h.tenant, now, because("asked again"))
	require.NoError(t, err)
	require.Empty(t, id)
	h.unaltered()
	h.mine(80)
	h.clock.Advance(time.Hour)
	h.mine(20)
	require.True(t, h.holds("ETH", third, "ETH").GreaterThan(dec("0.9")), "%s", h.holds("ETH", third, "ETH"))
	h.unaltered()
	h.sound()
}

// TestFT10_ANetworkOfSeveralNodes: the hot address is replaced on a network that is read from several nodes.
func TestFT10_ANetworkOfSeveralNodes(t *testing.T) {
	t.Parallel()
	h := newHost(t, 914, "ETH")
	h.configure = func(c *cryptopay.Config) {
		nodes := []several.Node{{Name: "a", Client: h.chains["ETH"].NewNode().Client()}, {Name: "b", Client: h.chains["ETH"].NewNode().Client()}}
		client, err := several.New(several.Config{Nodes: nodes, Now: h.clock.Now})
		require.NoError(t, err)
		c.Chains = []chain.Client{client}
	}
	h.restart()
	h.float("ETH", "1")
	h.replaces("ETH")
}

// TestFT10_ARefillIsToldWithTheNewAddress: who was told to send coins to the old address hears of the new
// one. Where nothing is needed nobody is told.
func TestFT10_ARefillIsToldWithTheNewAddress(t *testing.T) {
	t.Parallel()
	h, hot, told := refilled(t, memory.New(), 691, usdt, "100", "50")
	rest := func() {
		for range 30 {
			h.clock.Advance(10 * time.Minute)
			h.mine(1)
		}
	}
	rest()
	require.Empty(t, *told)
	h.payout(h.tenant, usdt, "200")
	rest()
	require.Len(t, *told, 1)
	require.Contains(t, (*told)[0].Detail, string(hot))
	_, now := h.replaces("ETH")
	rest()
	last := (*told)[len(*told)-1]
	require.Equal(t, treasury.NoticeRefill, last.Kind)
	require.Contains(t, last.Detail, string(now))
	count := len(*told)
	rest()
	require.Len(t, *told, count, "once")
}
