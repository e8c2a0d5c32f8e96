package cryptopay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/report"
	books "github.com/cryptopay-go/cryptopay/report/journal"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// intents are the orders on BTC, by id.
func (h *host) intents() map[string]outgoing.IntentRow {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network("BTC"), Limit: 1000})
	require.NoError(h.t, err)
	out := map[string]outgoing.IntentRow{}
	for _, r := range rows {
		out[r.ID] = outgoing.Intents.Value(r)
	}
	return out
}

// A process of an older version may run: nothing is merged beforehand, and payouts are as ever. Once
// the operator says that none does, coins are merged.
func TestFN14_NoEarlyMergesBesideAnOlderProcess(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 111, smallMerges, "0.004", 40, "0.005")
	row, err := h.store.Rows(t.Context(), cryptopay.Abilities.Table, storage.Keys(storage.System, string(outgoing.AbilityEarly))...)
	require.NoError(t, err)
	require.Len(t, row, 1)
	require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{ID: "older", Partition: storage.System, Drop: row}))
	h.restart()
	world.SetFeeLevel(world.FeeLevel() / 2)
	h.hours(12)
	dry, err := h.app.EarlyMerge(t.Context(), h.tenant, "BTC")
	require.NoError(t, err)
	require.Contains(t, dry.Why, "older version")
	ids, _ := h.early()
	require.Empty(t, ids)
	require.NoError(t, h.app.Upgraded(t.Context()))
	h.hours(12)
	h.mine(30)
	ids, _ = h.early()
	require.NotEmpty(t, ids)
	h.nothingReserved("BTC")
	h.sound()
}

// Two processes on a store are configured in different ways: one merges early, one has that off or has other figures.
// They take turns, and either dies at one commit after the other. No coin is spent twice, what is decided on each
// hour is one order at the most, and a payout of all goes through.
func TestFT04_EarlyMergesOfProcessesThatAreConfiguredInDifferentWays(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]outgoing.Merging{
		"off":     {Off: true},
		"figures": {Least: 200, Portion: 16, Share: 40, Below: 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &mortal{Store: memory.New()}
			h := newHostOn(t, m, 112, "BTC")
			on, off := merging(10, outgoing.Merging{Least: 12, Portion: 4}), merging(10, other)
			h.configure = on
			h.restart()
			h.float("BTC", "0.004")
			h.coins(60, "0.005")
			world := h.chains["BTC"]
			h.hours(30)
			_, sum := h.freeCoins()
			world.SetFeeLevel(world.FeeLevel() / 2)
			for round := range 200 {
				h.configure = on
				if round%2 == 1 {
					h.configure = off
				}
				m.left, m.done = 1+(round/4)%7, round%4 < 2
				_ = h.app.Step(t.Context())
				m.left, m.dead = 0, false
				h.restart()
				h.clock.Advance(5 * time.Minute)
				if round%4 == 0 {
					world.Mine(1)
				}
			}
			h.mine(60)
			made, ended := 0, map[outgoing.State]int{}
			for id, v := range h.intents() {
				if outgoing.ParseID(id).Early() {
					made++
					ended[v.State]++
				}
			}
			ids, cost := h.early()
			count, left := h.freeCoins()
			t.Logf("%d orders: %v; %d merges, %d coins are left", made, ended, len(ids), count)
			require.LessOrEqual(t, made, 18, "one an hour")
			require.NotEmpty(t, ids, "those that were decided on are made")
			require.Equal(t, sum, left+cost)
			w := h.payOut(world.Customer("payee"), "0.28")
			h.mergedAndPaid(world.Customer("payee"), h.goesOn(w.ID))
		})
	}
}

// A merge was decided on when it is turned off: it is not signed. Other figures for when to merge leave it
// alone.
func TestFT04_WhatWasDecidedOnBeforeMergingIsConfiguredAnew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		other outgoing.Merging
		made  bool
	}{{"off", outgoing.Merging{Off: true}, false}, {"from more coins on", outgoing.Merging{Least: 400}, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, world := smallCoins(t, 113, merging(20, outgoing.Merging{Least: 12, Portion: 4}), "0.004", 150, "0.005")
			world.SetFeeLevel(world.FeeLevel() / 2)
			h.decidesEarly()
			h.configure = merging(20, c.other)
			h.restart()
			h.clock.Advance(time.Minute)
			h.mine(30)
			ids, _ := h.early()
			require.Equal(t, c.made, len(ids) > 0)
			h.nothingReserved("BTC")
			h.sound()
		})
	}
}

// A look at what would be merged writes nothing, and hourly looks at tenants who have no coins make no
// addresses for them.
func TestFT04_LookingForEarlyMergesMakesNoAddresses(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 114, smallMerges, "0.004", 40, "0.005")
	name := "has no coins"
	idle, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	world.SetFeeLevel(world.FeeLevel() / 2)
	for _, tenant := range []string{idle.ID, "nobody"} {
		dry, err := h.app.EarlyMerge(t.Context(), tenant, "BTC")
		require.NoError(t, err)
		require.Contains(t, dry.Why, "coins are there")
	}
	h.untilEarly()
	for _, tenant := range []string{idle.ID, "nobody"} {
		n, err := h.store.Count(t.Context(), storage.Query{
			Table: incoming.Addresses.Table, Partition: storage.Network("BTC"),
			Where: []storage.Cond{{Column: "tenant", Op: storage.Eq, Value: tenant}},
		})
		require.NoError(t, err)
		require.Zero(t, n)
	}
}

// Fees fall, and five tenants have coins to merge where a process begins one order at a time: all have
// their merges within minutes, not one after the other each hour.
func TestFT04_EarlyMergesOfManyTenantsComeInTurn(t *testing.T) {
	t.Parallel()
	h := newHost(t, 115, "BTC")
	h.configure = func(c *cryptopay.Config) {
		smallMerges(c)
		c.Outgoing.Batch = 1
	}
	h.restart()
	for i := range 5 {
		if i > 0 {
			name := "another"
			made, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
			require.NoError(t, err)
			h.tenant = made.ID
		}
		h.float("BTC", "0.004")
		h.coins(40, "0.005")
	}
	world := h.chains["BTC"]
	h.hours(30)
	world.SetFeeLevel(world.FeeLevel() / 2)
	orders := func() (tenants map[string]int, queued int) {
		tenants = map[string]int{}
		for id, v := range h.intents() {
			if outgoing.ParseID(id).Early() {
				tenants[v.Tenant]++
				if v.State == outgoing.Queued {
					queued++
				}
			}
		}
		return tenants, queued
	}
	for range 70 {
		h.clock.Advance(time.Minute)
		for _, w := range h.app.Workers() {
			if w.Name == "merges/BTC" {
				_, err := w.Step(t.Context())
				require.NoError(t, err)
			}
		}
		if _, queued := orders(); queued > 0 {
			break
		}
	}
	_, queued := orders()
	require.Equal(t, 1, queued)
	for range 10 {
		h.clock.Advance(time.Minute)
		h.step()
	}
	tenants, _ := orders()
	require.Len(t, tenants, 5)
	h.mine(60)
	h.sound()
}

// A halt of all, of the network, of its coin or of the tenant stops merges beforehand: none is decided on, and one that was is not signed.
// Once the halt is lifted coins are merged.
func TestFT04_HaltsStopEarlyMerges(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]func(h *host) cryptopay.HaltScope{
		"all":     func(*host) cryptopay.HaltScope { return cryptopay.HaltScope{} },
		"network": func(*host) cryptopay.HaltScope { return cryptopay.HaltScope{Network: "BTC"} },
		"coin":    func(*host) cryptopay.HaltScope { return cryptopay.HaltScope{Currency: "BTC"} },
		"tenant":  func(h *host) cryptopay.HaltScope { return cryptopay.HaltScope{Tenant: h.tenant} },
	} {
		for _, decided := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " decided on ", decided), func(t *testing.T) {
				t.Parallel()
				h, world := smallCoins(t, 116, smallMerges, "0.004", 40, "0.005")
				world.SetFeeLevel(world.FeeLevel() / 2)
				if decided {
					h.decidesEarly()
				}
				_, err := h.app.Operate.Halt(t.Context(), scope(h), because("a look"))
				require.NoError(t, err)
				h.hours(6)
				dry, err := h.app.EarlyMerge(t.Context(), h.tenant, "BTC")
				require.NoError(t, err)
				require.Contains(t, dry.Why, "halted")
				for id := range h.attempts("BTC") {
					require.False(t, outgoing.ParseID(id).Early(), "nothing is signed")
				}
				h.nothingReserved("BTC")
				_, err = h.app.Operate.Lift(t.Context(), scope(h), because("all is well"))
				require.NoError(t, err)
				h.untilEarly()
				h.mine(60)
				h.nothingReserved("BTC")
				h.sound()
			})
		}
	}
}

// choosy is a signer that refuses merges that no payout needs.
type choosy struct{ chain.Signer }

func (s choosy) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	if outgoing.ParseID(r.Intent.ID).Early() {
		return nil, fmt.Errorf("%w: not by our rules", chain.ErrRefused)
	}
	return s.Signer.Sign(ctx, r)
}

// A signer refuses to merge coins: their merge ends, and a payout of all of them goes.
func TestFT04_SignerThatRefusesEarlyMergesHoldsUpNoPayout(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 117, func(c *cryptopay.Config) {
		merging(20, outgoing.Merging{Least: 12, Portion: 2})(c)
		c.Signer = choosy{c.Signer}
	}, "0.004", 20, "0.005")
	world.SetFeeLevel(world.FeeLevel() / 2)
	h.decidesEarly()
	h.clock.Advance(time.Minute)
	h.step()
	for id, v := range h.intents() {
		require.True(t, !outgoing.ParseID(id).Early() || v.State == outgoing.Cancelled || v.State == outgoing.Failed, "%s is %s", id, v.State)
	}
	w := h.payOut(world.Customer("payee"), "0.09")
	h.mergedAndPaid(world.Customer("payee"), h.goesOn(w.ID))
}

// What early merges cost is the house's, to the unit, in the ledger and in the journal: one transaction each, named after its order. The
// merchant's balance is as it was, and the day's limit counts what they cost.
func TestFT04_EarlyMergesAreBookedWithWhatTheyCost(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 118, smallMerges, "0.004", 60, "0.005")
	p := storage.Tenant(h.tenant)
	spent := func() ledger.Amount {
		b, err := h.store.Balances(t.Context(), p, ledger.FeesNetwork)
		require.NoError(t, err)
		var sum ledger.Amount
		for _, x := range b {
			sum += x.Posted
		}
		return sum
	}
	wallets, _, err := h.app.Wallets.List(t.Context(), h.tenant, 10, 0)
	require.NoError(t, err)
	shown, total, err := h.app.Reports.Transactions(t.Context(), h.tenant, report.Filter{})
	require.NoError(t, err)
	before := spent()
	world.SetFeeLevel(world.FeeLevel() / 2)
	h.hours(20)
	h.mine(60)
	ids, cost := h.early()
	require.NotEmpty(t, ids)
	require.Equal(t, cost, before-spent())
	after, _, err := h.app.Wallets.List(t.Context(), h.tenant, 10, 0)
	require.NoError(t, err)
	require.Equal(t, wallets, after)
	page, n, err := h.app.Reports.Transactions(t.Context(), h.tenant, report.Filter{})
	require.NoError(t, err)
	require.Equal(t, total, n, "a merchant is shown none of them")
	require.Equal(t, shown, page)
	booked := map[string]bool{}
	for tx, err := range (books.Source{Store: h.store, Tenant: h.tenant, Scale: h.app.Scale}).Transactions(t.Context()) {
		require.NoError(t, err)
		if outgoing.ParseID(tx.Ref).Early() {
			require.False(t, booked[tx.Ref], tx.Ref)
			booked[tx.Ref] = true
		}
	}
	require.Len(t, booked, len(ids))
	h.sound()
}

// A signer refuses merges for hours: none of them counts towards what a day's may cost. When it takes them one is made on the same day.
func TestFT04_RefusedEarlyMergesUseUpNoDay(t *testing.T) {
	t.Parallel()
	refuses := true
	h, world := smallCoins(t, 119, func(c *cryptopay.Config) {
		smallMerges(c)
		c.Treasury.DailyCost = dec("1.5")
		if refuses {
			c.Signer = choosy{c.Signer}
		}
	}, "0.004", 60, "0.005")
	for h.clock.Now().Hour() != 1 {
		h.hours(1)
	}
	world.SetFeeLevel(world.FeeLevel() / 2)
	h.hours(10)
	refused := 0
	for id, v := range h.intents() {
		if outgoing.ParseID(id).Early() {
			require.Equal(t, outgoing.Cancelled, v.State, id)
			refused++
		}
	}
	require.Greater(t, refused, 5)
	refuses = false
	h.restart()
	h.hours(4)
	day := h.clock.Now().Format(time.DateOnly)
	h.mine(30)
	ids, _ := h.early()
	require.Len(t, ids, 1)
	require.Contains(t, ids[0], day)
	h.sound()
}

// A stranger sends dust to the address that a tenant pays from: no merge spends it, as it is worth less than twenty times what spending it
// costs. It takes no room from the coins that are merged.
func TestFT04_EarlyMergesSpendNoDust(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 120, smallMerges, "0.004", 40, "0.005")
	hot, err := h.app.Hot(t.Context(), "BTC", h.tenant)
	require.NoError(t, err)
	const dust = 1_500
	for range 60 {
		_, err := world.Pay(hot, "BTC", dec("0.000015"))
		require.NoError(t, err)
	}
	h.mine(10)
	world.SetFeeLevel(world.FeeLevel() / 2)
	h.hours(20)
	h.mine(60)
	ids, _ := h.early()
	require.Greater(t, len(ids), 2)
	for intent, list := range h.attempts("BTC") {
		for _, a := range list {
			for _, c := range a.Coins {
				require.Greater(t, c.Amount, ledger.Amount(dust), intent)
			}
		}
	}
	count, _ := h.freeCoins()
	require.Greater(t, count, 60, "the dust stays")
	w := h.payOut(world.Customer("payee"), "0.19")
	h.mergedAndPaid(world.Customer("payee"), h.goesOn(w.ID))
}
