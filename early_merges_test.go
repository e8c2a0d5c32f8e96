package cryptopay_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// hours lets time go by: each hour two blocks.
func (h *host) hours(n int) {
	h.t.Helper()
	for range n {
		h.clock.Advance(time.Hour)
		h.step()
		h.mine(2)
	}
}

// early are the ids of the merges that no payout needed and that landed, and what they cost.
func (h *host) early() (ids []string, cost ledger.Amount) {
	h.t.Helper()
	for intent, list := range h.attempts("BTC") {
		landed := 0
		for _, a := range list {
			if outgoing.ParseID(intent).Early() && a.State == outgoing.AttemptFinal {
				landed++
				cost += a.MaxCost
			}
		}
		if landed > 0 {
			require.Equal(h.t, 1, landed, intent)
			ids = append(ids, intent)
		}
	}
	return ids, cost
}

// freeCoins is how many coins can be spent, and what they come to.
func (h *host) freeCoins() (count int, sum ledger.Amount) {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{
		Table: outgoing.Coins.Table, Partition: storage.Network("BTC"), Limit: 1000,
		Where: []storage.Cond{{Column: "state", Op: storage.Eq, Value: outgoing.CoinFree}},
	})
	require.NoError(h.t, err)
	for _, r := range rows {
		sum += outgoing.Coins.Value(r).Amount
	}
	return len(rows), sum
}

// smallMerges lets an App of few coins merge early.
func smallMerges(c *cryptopay.Config) {
	c.Outgoing.MaxInputs = 10
	c.Outgoing.Merging = map[outgoing.MergingOf]outgoing.Merging{{Currency: "BTC"}: {Least: 12, Portion: 4}}
}

// merging lets an App merge early, so many coins at most in one transaction.
func merging(inputs int, m outgoing.Merging) func(*cryptopay.Config) {
	return func(c *cryptopay.Config) {
		c.Outgoing.MaxInputs = inputs
		c.Outgoing.Merging = map[outgoing.MergingOf]outgoing.Merging{{}: m}
	}
}

// smallCoins is a host with some of the operator's BTC and many small coins, whose fees were the
// same for longer than a day.
func smallCoins(t testing.TB, seed uint64, configure func(*cryptopay.Config), float string, count int, amount string) (*host, *sim.Chain) {
	t.Helper()
	h := newHost(t, seed, "BTC")
	h.configure = configure
	h.restart()
	h.float("BTC", float)
	h.coins(count, amount)
	h.hours(30)
	return h, h.chains["BTC"]
}

// decidesEarly has an early merge decided on, and not signed.
func (h *host) decidesEarly() {
	h.t.Helper()
	for range 70 {
		for _, w := range h.app.Workers() {
			if w.Name != "merges/BTC" {
				continue
			}
			worked, err := w.Step(h.t.Context())
			require.NoError(h.t, err)
			if worked > 1 {
				return
			}
		}
		h.clock.Advance(time.Minute)
	}
	require.Fail(h.t, "no merge was decided on")
}

// A shop has 500 small coins. While fees are as ever nothing is merged. They fall for a day:
// coins are merged, for no more than their share, and payouts take the merged ones. When fees
// are high nothing is merged, and nothing waits.
func TestFT04_CoinsAreMergedWhileFeesAreLow(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) storage.Store{
		"memory": func(*testing.T) storage.Store { return memory.New() },
		"sqlite": func(t *testing.T) storage.Store {
			file := filepath.Join(t.TempDir(), "shop.db")
			require.NoError(t, sqlite.Migrate(t.Context(), file))
			s, err := sqlite.Open(file, sqlite.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostOn(t, open(t), 91, "BTC")
			for range 4 {
				h.float("BTC", "0.004")
			}
			h.coins(500, "0.001")
			world := h.chains["BTC"]
			level := world.FeeLevel()
			h.hours(30)
			ids, _ := h.early()
			require.Empty(t, ids, "fees are at their average")
			dry, err := h.app.EarlyMerge(t.Context(), h.tenant, "BTC")
			require.NoError(t, err)
			require.Contains(t, dry.Why, "cheap")
			world.SetFeeLevel(10 * level)
			h.hours(6)
			ids, _ = h.early()
			require.Empty(t, ids, "fees are above their average")
			require.NotContains(t, h.attempts("BTC"), "merge/early")
			before, sum := h.freeCoins()
			world.SetFeeLevel(level / 2)
			dry, err = h.app.EarlyMerge(t.Context(), h.tenant, "BTC")
			require.NoError(t, err)
			require.Empty(t, dry.Why)
			require.Positive(t, dry.Cost)
			require.Empty(t, dry.Order, "nothing is written")
			h.hours(24)
			ids, cost := h.early()
			require.NotEmpty(t, ids)
			h.mine(30)
			after, left := h.freeCoins()
			t.Logf("%d coins became %d with %d merges for %d of %d", before, after, len(ids), cost, sum)
			require.Less(t, after, 100, "no more are merged than Least")
			require.Greater(t, after, 50, "payouts find coins of many sizes")
			require.Equal(t, sum, left+cost, "it cost what the network took")
			require.LessOrEqual(t, cost, sum/20)
			world.SetFeeLevel(level)
			w := h.payOut(world.Customer("payee"), "0.3")
			h.mergedAndPaid(world.Customer("payee"), h.goesOn(w.ID))
		})
	}
}

// The process dies at one commit after the other while coins are merged early: each merge is made
// once, and nothing stays set aside.
func TestFT04_ProcessesThatDieWhileCoinsAreMergedEarly(t *testing.T) {
	t.Parallel()
	m := &mortal{Store: memory.New()}
	h := newHostOn(t, m, 92, "BTC")
	h.configure = smallMerges
	h.restart()
	h.float("BTC", "0.004")
	h.coins(40, "0.005")
	world := h.chains["BTC"]
	h.hours(30)
	_, sum := h.freeCoins()
	world.SetFeeLevel(world.FeeLevel() / 2)
	for deaths := range 400 {
		m.left, m.done = 1+(deaths/2)%7, deaths%2 == 0
		_ = h.app.Step(t.Context())
		m.left, m.dead = 0, false
		h.restart()
		h.clock.Advance(5 * time.Minute)
		if deaths%4 == 0 {
			world.Mine(1)
		}
	}
	h.mine(60)
	ids, cost := h.early()
	require.NotEmpty(t, ids)
	count, left := h.freeCoins()
	t.Logf("%d merges, %d coins are left", len(ids), count)
	require.Equal(t, sum, left+cost)
	w := h.payOut(world.Customer("payee"), "0.1")
	h.mergedAndPaid(world.Customer("payee"), h.goesOn(w.ID))
}

// untilEarly lets time go by until an early merge is signed and in no block.
func (h *host) untilEarly() (id string) {
	h.t.Helper()
	for range 200 {
		for intent, list := range h.attempts("BTC") {
			if outgoing.ParseID(intent).Early() && list[len(list)-1].State == outgoing.Open {
				return intent
			}
		}
		h.clock.Advance(5 * time.Minute)
		h.step()
	}
	dry, err := h.app.EarlyMerge(h.t.Context(), h.tenant, "BTC")
	require.NoError(h.t, err)
	require.Fail(h.t, "no merge was made", dry.Why)
	return ""
}

// A merchant pays out each hour. One payout comes while a merge is in no block: it does not wait
// for that, as coins were left for what he pays out in a day.
func TestFT04_PayoutBesideAnEarlyMergeDoesNotWait(t *testing.T) {
	t.Parallel()
	h := newHost(t, 93, "BTC")
	h.configure = smallMerges
	h.restart()
	for range 4 {
		h.float("BTC", "0.004")
	}
	h.coins(60, "0.005")
	world := h.chains["BTC"]
	payee := world.Customer("payee")
	hourly := func() {
		w := h.payOut(payee, "0.004")
		h.clock.Advance(time.Minute)
		h.step()
		h.clock.Advance(time.Minute)
		h.step()
		require.Equal(t, withdrawal.Processing, h.withdrawal(w.ID).Status, "waits for %q", h.shownReason(w.ID))
		h.clock.Advance(58 * time.Minute)
		h.mine(3)
		h.mine(25)
	}
	for range 30 {
		h.hours(1)
	}
	for range 5 {
		hourly()
	}
	world.SetFeeLevel(world.FeeLevel() / 2)
	h.untilEarly()
	w := h.payOut(payee, "0.03")
	h.clock.Advance(time.Minute)
	h.step()
	h.clock.Advance(time.Minute)
	h.step()
	require.Equal(t, withdrawal.Processing, h.withdrawal(w.ID).Status, "waits for %q", h.shownReason(w.ID))
	h.goesOn(w.ID)
	for range 8 {
		hourly()
	}
	h.mine(30)
	ids, _ := h.early()
	require.NotEmpty(t, ids)
	h.nothingReserved("BTC")
	h.sound()
}

// A payout of all that there is comes while a merge is in no block: it says that coins are
// merged, and is paid when that has a confirmation.
func TestFT04_PayoutOfAllBesideAnEarlyMerge(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 94, merging(20, outgoing.Merging{Least: 12, Portion: 2}), "0.004", 20, "0.005")
	world.SetFeeLevel(world.FeeLevel() / 2)
	h.untilEarly()
	w := h.payOut(world.Customer("payee"), "0.09")
	h.clock.Advance(time.Minute)
	h.step()
	require.Equal(t, withdrawal.ShownConsolidating, h.shownReason(w.ID))
	h.mine(1)
	h.clock.Advance(time.Minute)
	h.step()
	h.mergedAndPaid(world.Customer("payee"), h.goesOn(w.ID))
}

// Fees rise while an early merge is in no block, to two hundred times of what they were, and stay. A
// payout of all that there is needs what the merge returns: now that may cost what a payout's may.
func TestFT04_PayoutOfAllBesideAnEarlyMergeOnceFeesAreDear(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 97, merging(20, outgoing.Merging{Least: 12, Portion: 2}), "0.04", 20, "0.005")
	level := world.FeeLevel() / 2
	world.SetFeeLevel(level)
	h.untilEarly()
	world.SetFeeLevel(200 * level)
	w := h.payOut(world.Customer("payee"), "0.09")
	for range 48 {
		h.clock.Advance(30 * time.Minute)
		h.mine(1)
	}
	require.Equal(t, withdrawal.Completed, h.withdrawal(w.ID).Status, "waits for %q", h.shownReason(w.ID))
	h.mine(30)
	h.nothingReserved("BTC")
	h.sound()
}

// The day's limit on costs is used up when fees rise while an early merge is in no block. A payout
// of all that there is needs what the merge returns: that is bounded as a payout is, not by the day.
func TestFT04_PayoutOfAllBesideAnEarlyMergeOnceTheDayIsUsedUp(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 97, func(c *cryptopay.Config) {
		c.Outgoing.MaxInputs = 20
		c.Outgoing.Merging = map[outgoing.MergingOf]outgoing.Merging{{}: {Least: 12, Portion: 2}}
		c.Treasury.DailyCost = dec("5")
	}, "0.04", 20, "0.005")
	level := world.FeeLevel() / 2
	world.SetFeeLevel(level)
	h.untilEarly()
	world.SetFeeLevel(200 * level)
	w := h.payOut(world.Customer("payee"), "0.09")
	for range 48 {
		h.clock.Advance(30 * time.Minute)
		h.mine(1)
	}
	require.Equal(t, withdrawal.Completed, h.withdrawal(w.ID).Status, "waits for %q", h.shownReason(w.ID))
	h.mine(30)
	h.nothingReserved("BTC")
	h.sound()
}

// A fork takes the block of an early merge away. It lands again, and the books are right.
func TestFT04_ForkTakesAnEarlyMerge(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 95, smallMerges, "0.004", 40, "0.005")
	_, sum := h.freeCoins()
	world.SetFeeLevel(world.FeeLevel() / 2)
	id := h.untilEarly()
	h.mine(1)
	_, held := h.freeCoins()
	require.Less(t, held, sum)
	_, err := world.Reorg(1)
	require.NoError(t, err)
	h.clock.Advance(time.Minute)
	h.step()
	h.mine(60)
	ids, cost := h.early()
	require.Contains(t, ids, id)
	h.mine(60)
	_, left := h.freeCoins()
	require.Equal(t, sum, left+cost)
	h.nothingReserved("BTC")
	h.sound()
}

// Fees rise between the decision and the signature: the merge ends, and nothing waits.
func TestFT04_FeesRiseBeforeAnEarlyMergeIsSigned(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 96, smallMerges, "0.004", 40, "0.005")
	world.SetFeeLevel(world.FeeLevel() / 2)
	h.decidesEarly()
	world.SetFeeLevel(20 * world.FeeLevel())
	h.mine(10)
	ids, _ := h.early()
	require.Empty(t, ids)
	h.nothingReserved("BTC")
	h.sound()
}

// Most of the coins are lost between the decision on an early merge and its signature, and then
// fees rise: what it may cost is a share of the coins that it spends, not of those that were there.
func TestFT04_AnEarlyMergeCostsAShareOfWhatItSpends(t *testing.T) {
	t.Parallel()
	h := newHost(t, 98, "BTC")
	h.configure = merging(100, outgoing.Merging{Least: 12})
	h.restart()
	h.float("BTC", "0.4")
	h.coins(90, "0.0002")
	world := h.chains["BTC"]
	world.SetFeeLevel(5 * world.FeeLevel())
	h.hours(30)
	world.SetFeeLevel(world.FeeLevel() / 2)
	h.decidesEarly()
	rows, err := h.store.Find(t.Context(), storage.Query{
		Table: outgoing.Coins.Table, Partition: storage.Network("BTC"), Order: []storage.Order{{Column: "amount", Desc: true}}, Limit: 1,
		Where: []storage.Cond{{Column: "state", Op: storage.Eq, Value: outgoing.CoinFree}},
	})
	require.NoError(t, err)
	lost := outgoing.Coins.Value(rows[0]) // all that the operator put in
	lost.State = outgoing.CoinDisputed
	require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{
		ID: "lost", Partition: storage.Network("BTC"), Put: []storage.Row{outgoing.Coins.Row(rows[0].ID, rows[0].Version, rows[0].Due, lost)},
	}))
	id := h.untilEarly()
	world.SetFeeLevel(6 * world.FeeLevel())
	for range 20 {
		h.clock.Advance(20 * time.Minute)
		h.step()
	}
	for _, a := range h.attempts("BTC")[id] {
		require.LessOrEqual(t, a.MaxCost*20, spentBy(a))
	}
}

// spentBy is what the coins of a transaction come to.
func spentBy(a outgoing.AttemptRow) (value ledger.Amount) {
	for _, c := range a.Coins {
		value += c.Amount
	}
	return value
}

// A fork takes most of the coins that an early merge spends, and fees rise: it is sent again with the
// others for at most half of these.
func TestFT04_AnEarlyMergeThatLostCoinsCostsHalfAtTheMost(t *testing.T) {
	t.Parallel()
	h := newHost(t, 99, "BTC")
	h.configure = func(c *cryptopay.Config) {
		c.Outgoing.MaxInputs = 60
		c.Outgoing.Merging = map[outgoing.MergingOf]outgoing.Merging{{}: {Least: 12, Share: 2, Portion: 2}}
		c.Treasury.DailyCost = dec("1000000")
	}
	h.restart()
	h.float("BTC", "0.4")
	world := h.chains["BTC"]
	world.SetFeeLevel(20 * world.FeeLevel())
	h.hours(30)
	h.coins(50, "0.0002")
	world.SetFeeLevel(world.FeeLevel() / 2)
	id := h.untilEarly()
	list := h.attempts("BTC")[id]
	var gone []string
	for _, c := range list[0].Coins[3:] {
		tx, _, _ := strings.Cut(c.Outpoint, ":")
		gone = append(gone, tx)
	}
	require.Greater(t, len(gone), 30)
	level := world.FeeLevel()
	world.SetFeeLevel(1) // the other coins are in the new blocks, too
	_, err := world.Reorg(17, gone...)
	require.NoError(t, err)
	h.mine(5)
	world.SetFeeLevel(2 * level)
	for range 40 {
		h.clock.Advance(20 * time.Minute)
		_ = h.app.Step(t.Context())
	}
	list = h.attempts("BTC")[id]
	require.True(t, slices.ContainsFunc(list, func(a outgoing.AttemptRow) bool { return len(a.Coins) == 3 }), "sent again without what is gone")
	for _, a := range list {
		require.LessOrEqual(t, a.MaxCost*2, spentBy(a))
	}
}

// What a merchant ordered to be paid out in the last day is left for him: when he pays out
// as much again, no merge is in the way.
func TestFT04_EarlyMergesLeaveWhatIsPaidOutInADay(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 97, merging(20, outgoing.Merging{Least: 12, Portion: 2}), "0.004", 40, "0.005")
	for range 2 {
		w := h.payOut(world.Customer("payee"), "0.09")
		h.clock.Advance(time.Minute)
		h.step()
		h.clock.Advance(time.Minute)
		h.step()
		require.Equal(t, withdrawal.Processing, h.withdrawal(w.ID).Status, "waits for %q", h.shownReason(w.ID))
		h.goesOn(w.ID)
		world.SetFeeLevel(2)
		for range 30 {
			h.clock.Advance(5 * time.Minute)
			h.step()
		}
	}
	dry, err := h.app.EarlyMerge(t.Context(), h.tenant, "BTC")
	require.NoError(t, err)
	require.NotEmpty(t, dry.Why)
	h.nothingReserved("BTC")
}

// One early merge is on its way at a time, whatever time that takes.
func TestFT04_OneEarlyMergeAtATime(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 98, smallMerges, "0.004", 60, "0.005")
	world.SetFeeLevel(world.FeeLevel() / 2)
	id := h.untilEarly()
	for range 40 {
		h.clock.Advance(5 * time.Minute)
		h.step()
	}
	for intent := range h.attempts("BTC") {
		require.True(t, !outgoing.ParseID(intent).Early() || intent == id, intent)
	}
	dry, err := h.app.EarlyMerge(t.Context(), h.tenant, "BTC")
	require.NoError(t, err)
	require.Contains(t, dry.Why, id)
	h.mine(60)
	h.sound()
}

// Early merges cost no more in a day than Treasury.DailyCost: after that nothing is merged
// until the next day.
func TestFT04_EarlyMergesCostNoMoreThanADayMay(t *testing.T) {
	t.Parallel()
	h, world := smallCoins(t, 99, func(c *cryptopay.Config) {
		smallMerges(c)
		c.Treasury.DailyCost = dec("1.5")
	}, "0.004", 60, "0.005")
	world.SetFeeLevel(world.FeeLevel() / 2)
	h.hours(30)
	h.mine(30)
	days := map[string]int{}
	ids, _ := h.early()
	for _, id := range ids {
		parts := strings.Split(id, "/")
		days[parts[3]]++
		require.Equal(t, 1, days[parts[3]], id)
	}
	require.Greater(t, len(days), 1, "each day anew")
	h.nothingReserved("BTC")
	h.sound()
}

// Two processes on one Postgres look at a tenant's coins at the same moment: one merge at a time
// is on its way, and what the coins came to is there in the end, less what the network took.
func TestFT04_EarlyMergesOfTwoProcessesOnPostgres(t *testing.T) {
	t.Parallel()
	store, err := postgres.Open(onPostgres(t), postgres.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := newHostOn(t, store, 101, "BTC")
	h.configure = smallMerges
	h.restart()
	other := h.beside(func(c *cryptopay.Config) {
		smallMerges(c)
		c.Random = rand.NewChaCha8([32]byte{102})
	})
	h.float("BTC", "0.004")
	h.coins(60, "0.005")
	world := h.chains["BTC"]
	h.hours(30)
	_, sum := h.freeCoins()
	world.SetFeeLevel(world.FeeLevel() / 2)
	ended := []outgoing.State{outgoing.Final, outgoing.Failed, outgoing.Cancelled, outgoing.Executed}
	for range 48 {
		h.clock.Advance(30 * time.Minute)
		var both errgroup.Group
		for _, app := range []*cryptopay.App{h.app, other} {
			both.Go(func() error { return app.Step(t.Context()) })
		}
		require.NoError(t, both.Wait())
		rows, err := store.Find(t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network("BTC"), Limit: 1000})
		require.NoError(t, err)
		open := 0
		for _, r := range rows {
			if outgoing.ParseID(r.ID).Early() && !slices.Contains(ended, outgoing.Intents.Value(r).State) {
				open++
			}
		}
		require.LessOrEqual(t, open, 1)
		world.Mine(1)
	}
	h.mine(40)
	ids, cost := h.early()
	require.Greater(t, len(ids), 1)
	_, left := h.freeCoins()
	require.Equal(t, sum, left+cost, "it cost what the network took")
	h.nothingReserved("BTC")
	h.sound()
}

// A tenant, or a network, whose coins are not to be merged keeps them.
func TestFT04_NoEarlyMergesWhereTheyAreOff(t *testing.T) {
	t.Parallel()
	h := newHost(t, 100, "BTC")
	tenant := h.tenant
	h.configure = func(c *cryptopay.Config) {
		c.Outgoing.MaxInputs = 10
		c.Outgoing.Merging = map[outgoing.MergingOf]outgoing.Merging{{Currency: "BTC"}: {Least: 12}, {Tenant: tenant}: {Off: true}}
	}
	h.restart()
	h.float("BTC", "0.004")
	h.coins(40, "0.005")
	world := h.chains["BTC"]
	h.hours(30)
	world.SetFeeLevel(world.FeeLevel() / 2)
	h.hours(10)
	ids, _ := h.early()
	require.Empty(t, ids)
	dry, err := h.app.EarlyMerge(t.Context(), h.tenant, "BTC")
	require.NoError(t, err)
	require.Contains(t, dry.Why, "off")
}
