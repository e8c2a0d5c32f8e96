package treasury_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// A token's cost holds the sweep and the gas transfer before it, a coin's the sweep
// alone, and an output is spent where it is.
func TestForwardCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	token, gas, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
	require.NoError(t, err)
	require.Equal(t, "ETH", gas)
	coin, _, err := w.app.Treasury.ForwardCost(t.Context(), "ETH")
	require.NoError(t, err)
	require.Positive(t, coin)
	require.Greater(t, token, 3*coin)

	w.chain.SetFeeLevel(10 * w.chain.FeeLevel())
	same, _, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
	require.NoError(t, err)
	require.Equal(t, token, same, "one estimate serves for a minute")
	w.mine(5)
	dear, _, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
	require.NoError(t, err)
	require.Greater(t, dear, 5*token)

	_, _, err = w.app.Treasury.ForwardCost(t.Context(), "NONE")
	require.ErrorIs(t, err, chain.ErrCurrency)
	btc := newWorld(t, "BTC")
	cost, gas, err := btc.app.Treasury.ForwardCost(t.Context(), "BTC")
	require.NoError(t, err)
	require.Zero(t, cost)
	require.Equal(t, "BTC", gas)
}

// waiting lists what waits to be forwarded.
func (w *world) waiting() []treasury.Waiting {
	w.t.Helper()
	list, err := w.app.Treasury.Waiting(w.t.Context(), w.tenant, w.n, 1000, 0)
	require.NoError(w.t, err)
	return list
}

// waits is how many wait.
func (w *world) waits() int { return len(w.waiting()) }

// A node that gives no estimate once is asked again, and nothing counts as free meanwhile.
func TestW14_CostThatANodeDoesNotTell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.chain.Front().FailNext(1, chain.ErrNode)
	_, _, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
	require.ErrorIs(t, err, chain.ErrNode)
	cost, _, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
	require.NoError(t, err)
	require.Positive(t, cost)
}

// A process that does not list a currency leaves out what waits in it: it could not say what
// its amounts are.
func TestFM01_WaitingInACurrencyThatOneProcessDoesNotList(t *testing.T) {
	t.Parallel()
	w := newWorldAs(t, "ETH", func(w *world) { w.lacks = "USDTERC20" })
	before := w.app
	w.lacks = ""
	w.restart()
	w.fund("1")
	w.crumbs(2)
	require.Equal(t, 2, w.waits())
	list, err := before.Treasury.Waiting(t.Context(), w.tenant, w.n, 1000, 0)
	require.NoError(t, err)
	require.Empty(t, list)
}

// An operator has a sweep looked at now that waits. It waits on where nothing has changed.
func TestFT06_SweepThatIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.crumbs(1)
	id, by := w.waiting()[0].Sweep, &outgoing.Recorded{ID: "retry", Op: outgoing.Operation{Kind: outgoing.OpRetrySweep, By: "ann", Reason: "a look", At: w.clock.Now()}}
	_, _, err := w.app.Treasury.Retry(t.Context(), w.n, "none", by)
	require.ErrorIs(t, err, treasury.ErrNoSweep)
	before, _, err := w.app.Treasury.Retry(t.Context(), w.n, id, by)
	require.NoError(t, err)
	require.Contains(t, before, treasury.WaitBelowCost)
	require.EqualValues(t, -1, w.waiting()[0].DueBelow, "it waits for no cost any more")
	w.mine(1)
	require.Positive(t, w.waiting()[0].DueBelow)
	w.chain.SetFeeLevel(w.chain.FeeLevel() / 100)
	w.mine(60)
	require.Zero(t, w.waits())
}

// dear is a world that got six times the cost of a sweep, and waits as a sweep may cost only a
// thirtieth part.
func dear(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.treasury.MinSweep = 30
	w.restart()
	w.pay("USDTERC20", w.sweepCost().Mul(dec("6")).StringFixed(2))
	w.mine(30)
	require.Equal(t, []string{treasury.WaitBelowCost}, w.reasons())
	return w
}

// What was too dear for one Config.MinSweep goes by the one of a later process.
func TestFT03_CoinsGoOnceMoreMayBeSpentOnThem(t *testing.T) {
	t.Parallel()
	w := dear(t)
	w.treasury.MinSweep = 2
	w.restart()
	w.hours(1)
	w.mine(60)
	require.Zero(t, w.waits())
	require.True(t, w.moved().IsPositive())
	w.conserved("USDTERC20", "ETH")
}

// So it does where fees were too high for that one, too, when its process began.
func TestFT03_CoinsGoOnceMoreMayBeSpentOnThemAndFeesFell(t *testing.T) {
	t.Parallel()
	w := dear(t)
	level := w.chain.FeeLevel()
	w.chain.SetFeeLevel(30 * level)
	w.mine(1)
	w.treasury.MinSweep = 2
	w.restart()
	w.hours(3)
	require.Equal(t, []string{treasury.WaitBelowCost}, w.reasons())
	w.chain.SetFeeLevel(level)
	w.hours(1)
	w.mine(60)
	require.Zero(t, w.waits())
	require.True(t, w.moved().IsPositive())
}

// A process judges the sweeps that are too dear at its start, an hour later, and once a day. It
// takes some at a time, and leaves out those that are far too small.
func TestFT03_WhatIsTooDearIsLookedAtOnceADay(t *testing.T) {
	t.Parallel()
	w := dear(t)
	least, err := w.currency("USDTERC20").Units(w.sweepCost().Mul(dec("4")), ledger.Down)
	require.NoError(t, err)
	small := w.sweepCost().Mul(dec("3")).StringFixed(2)
	for range 4 {
		w.pay("USDTERC20", w.sweepCost().Mul(dec("6")).StringFixed(2))
	}
	w.pay("USDTERC20", small)
	w.mine(30)
	w.treasury.MinSweep, w.treasury.Batch = 12, 2
	w.restart()
	looked := func() (dear, far int64) {
		rows, err := w.store.Find(t.Context(), storage.Query{Table: treasury.SweepNotes.Table, Partition: storage.Network("ETH"), Limit: 10})
		require.NoError(t, err)
		require.Len(t, rows, 6)
		for _, row := range rows {
			if treasury.SweepNotes.Value(row).Amount < least {
				far += row.Version
			} else {
				dear += row.Version
			}
		}
		return dear, far
	}
	before, far := looked()
	for _, step := range []struct {
		hours int
		looks int64
	}{{1, 5}, {2, 10}, {21, 10}, {4, 15}} { // at its start, an hour later, and a day after that
		w.hours(step.hours)
		now, same := looked()
		require.Equal(t, far, same, "what is far too small is not looked at")
		require.Equal(t, before+2*step.looks, now, "each is made due, and judged")
	}
	for _, reason := range w.reasons() {
		require.Equal(t, treasury.WaitBelowCost, reason)
	}
}

// What could not be made due is found again.
func TestFT03_WhatIsTooDearIsFoundAgainWhereTheStoreWasBusy(t *testing.T) {
	t.Parallel()
	w := dear(t)
	w.treasury.MinSweep = 2
	w.restart()
	locked := 3 // as often as a change is sent
	w.store.busy = func(c *storage.Change) bool {
		if !strings.Contains(c.ID, "/due/") {
			return false
		}
		locked--
		return locked >= 0
	}
	for range 4 {
		w.clock.Advance(2 * time.Minute)
		w.mine(15)
	}
	require.Negative(t, locked)
	require.Zero(t, w.waits())
	require.True(t, w.moved().IsPositive())
}
