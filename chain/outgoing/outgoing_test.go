package outgoing_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

func TestPaysOnceAndTellsItsOwner(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", 3*coin))
		require.NoError(t, w.step())
		require.Equal(t, outgoing.Signed, w.state("a"))
		require.Equal(t, outgoing.Signed, w.last("a").State)
		require.NotEmpty(t, w.last("a").Tx)
		w.run(12)
		w.paid(in)
		require.Equal(t, []outgoing.State{outgoing.Signed, outgoing.Executed, outgoing.Final}, w.states("a"))
		o := w.last("a")
		require.Equal(t, in.Amount, o.Amount)
		require.Positive(t, o.Cost)
		st, err := w.chain.Outcome(o.CostTx)
		require.NoError(t, err)
		require.Equal(t, st.Cost, o.Cost)
		v := w.get("a")
		require.Equal(t, []any{o.Cost, o.CostTx}, []any{v.Cost, v.CostTx})
		w.sound()
	})
}

func TestSettlesByDepthWhereTheNetworkKnowsNoFinality(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{noFinality: true})
	in := w.submit(w.intent("a", coin))
	w.run(5)
	require.Equal(t, outgoing.Executed, w.state("a"))
	w.run(4)
	require.Equal(t, outgoing.Final, w.state("a"))
	w.paid(in)
}

func TestSubmitIsIdempotent(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	in := w.submit(w.intent("a", coin))
	require.NoError(t, w.Net.Submit(w.ctx, in))
	w.run(12)
	require.NoError(t, w.Net.Submit(w.ctx, in))
	other := in
	other.Amount++
	require.ErrorIs(t, w.Net.Submit(w.ctx, other), outgoing.ErrDiffers)
	w.run(3)
	w.paid(in)
}

func TestSubmitRefusesWhatCanNeverBeSent(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	for name, spoil := range map[string]func(*chain.Intent){
		"id":       func(in *chain.Intent) { in.ID = "" },
		"network":  func(in *chain.Intent) { in.Network = "BTC" },
		"currency": func(in *chain.Intent) { in.Currency = "BTC" },
		"purpose":  func(in *chain.Intent) { in.Purpose = "gift" },
		"from":     func(in *chain.Intent) { in.From = "" },
		"to":       func(in *chain.Intent) { in.To = "nowhere" },
		"amount":   func(in *chain.Intent) { in.Amount = 0 },
		"negative": func(in *chain.Intent) { in.Amount = -1 },
		"max cost": func(in *chain.Intent) { in.MaxCost = 0 },
	} {
		in := w.intent(name, coin)
		spoil(&in)
		for range 2 {
			require.ErrorIs(t, w.Net.Submit(w.ctx, in), outgoing.ErrIntent, name)
		}
	}
	for _, r := range w.rows(outgoing.Intents.Table) {
		require.Equal(t, outgoing.Cancelled, outgoing.Intents.Value(r).State)
		require.True(t, r.Due.IsZero(), "nothing is ever done about %s", r.ID)
	}
}

func TestTokensAndSweepsOfEverything(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	token := w.intent("token", 2_500_000)
	token.Currency = "USDT"
	w.submit(token)
	deposit := w.key()
	w.fund(deposit, "ETH", coin)
	sweep := w.intent("sweep", 0)
	sweep.Purpose, sweep.From, sweep.FromKey, sweep.To, sweep.All = chain.ForSweep, deposit.Address, deposit.Key, w.hot.Address, true
	w.submit(sweep)
	w.run(12)
	w.paid(token)
	require.Equal(t, outgoing.Final, w.state("sweep"))
	o := w.last("sweep")
	require.Equal(t, coin, o.Amount+o.Cost)
	require.True(t, w.chain.Balance(deposit.Address, "ETH").IsZero())
	w.sound()
}

func TestInternalTellsOurOwnMovesFromPayments(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.submit(w.intent("pay", 2*coin))
		if w.gas == "ETH" {
			d := w.key()
			fundGas := w.intent("gas", coin/100)
			fundGas.Purpose, fundGas.To = chain.ForGas, d.Address
			w.submit(fundGas)
		}
		w.run(12)
		all := w.chain.Transfers("")
		internal, _, err := w.Net.Internal(w.ctx, chain.Network(w.gas), all)
		require.NoError(t, err)
		found := 0
		for i, x := range all {
			switch {
			case x.To == w.to("pay"):
				require.False(t, internal[i], "a withdrawal to somebody is none of ours")
			case internal[i]:
				found++
			}
		}
		require.Equal(t, 1, found)
		none, _, err := w.Net.Internal(w.ctx, "OTHER", all)
		require.NoError(t, err)
		require.NotContains(t, none, true)
	})
}

func TestChangeIsSpentAgainOnceFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{family: chain.UTXOFamily})
	w.fund(w.key(), "BTC", 5*coin)
	a := w.submit(w.intent("a", coin))
	require.NoError(t, w.step())
	b := w.submit(w.intent("b", coin))
	require.NoError(t, w.step())
	require.Equal(t, outgoing.Waiting, w.state("b"))
	require.Equal(t, outgoing.ReasonHotBalance, w.last("b").Reason)
	w.run(30)
	w.paid(a)
	w.paid(b)
	w.sound()
}

func TestCoinsAreChosenLargestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{family: chain.UTXOFamily})
	for _, n := range []ledger.Amount{1, 4, 2, 3} {
		w.fund(w.key(), "BTC", n*coin)
	}
	w.submit(w.intent("a", 5*coin))
	require.NoError(t, w.step())
	a := outgoing.Attempts.Value(w.rows(outgoing.Attempts.Table)[0])
	require.Len(t, a.Coins, 2)
	require.Equal(t, 4*coin, a.Coins[0].Amount)
	require.Equal(t, 3*coin, a.Coins[1].Amount)
}

func TestOutcomeIsDeliveredUntilItsOwnerTookIt(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	w.refuse = context.DeadlineExceeded
	w.submit(w.intent("a", coin))
	require.Error(t, w.step())
	w.run(12)
	require.Equal(t, outgoing.Final, w.state("a"))
	require.Empty(t, w.heard)
	w.refuse = fmt.Errorf("the owner: %w", storage.ErrBusy)
	w.advance(2 * time.Minute)
	require.NoError(t, w.step(), "nobody has to look at that")
	w.refuse = nil
	w.advance(2 * time.Minute)
	require.NoError(t, w.step())
	require.Equal(t, []outgoing.State{outgoing.Final}, w.states("a"))
	w.advance(time.Hour)
	require.NoError(t, w.step())
	require.Len(t, w.heard, 1)
}

func TestHaltedSendsNothing(t *testing.T) {
	t.Parallel()
	halted := "deep reorg"
	w := funded(t, setup{change: func(c *outgoing.Config) {
		c.Halted = func(context.Context, chain.Intent) (string, error) { return halted, nil }
	}})
	in := w.submit(w.intent("a", coin))
	w.run(3)
	require.Equal(t, outgoing.ReasonHalted, w.last("a").Reason)
	require.Empty(t, w.client.sent)
	require.Empty(t, w.rows(outgoing.InputReservations.Table))
	halted = ""
	w.run(20)
	w.paid(in)
}

func TestZeroConfirmationsIsExecutedWhenTheNodeHasIt(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	in := w.intent("a", coin)
	in.Confirmations = 0
	w.submit(in)
	require.NoError(t, w.step())
	w.advance(poll)
	require.NoError(t, w.step())
	require.Equal(t, outgoing.Executed, w.last("a").State)
	w.run(12)
	w.paid(in)
	require.Equal(t, outgoing.Final, w.last("a").State)
}

func TestHaltBetweenLookAndReserveIsSeen(t *testing.T) {
	t.Parallel()
	var w *world
	halted, version := "", int64(0)
	halts := outgoing.Nonces // any table will do for the record of halts
	w = funded(t, setup{change: func(c *outgoing.Config) {
		c.Guards = func(context.Context, chain.Intent) ([]storage.Guard, error) {
			return []storage.Guard{halts.Guard("halts", version)}, nil
		}
		c.Halted = func(context.Context, chain.Intent) (string, error) { return halted, nil }
	}})
	do := func() {
		if halted == "" {
			require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
				ID: "halt", Partition: storage.Network("ETH"),
				Put: []storage.Row{halts.Row("halts", 0, time.Time{}, outgoing.NonceRow{})},
			}))
			halted, version = "all", 1
		}
	}
	change := w.set.change
	w.set.change = func(c *outgoing.Config) {
		change(c)
		c.Client = cancelBuild{w.client, do}
	}
	w.restart()
	in := w.submit(w.intent("a", coin))
	w.run(3)
	require.Equal(t, outgoing.ReasonHalted, w.last("a").Reason)
	require.Zero(t, w.signer.calls)
	w.unpaid(in)
}

// TestFN07_WhatArrivedIsTold: of a payment that brings less, its owner hears how much, from
// its execution on.
func TestFN07_WhatArrivedIsTold(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.client.short = 7
		in := w.submit(w.intent("a", coin))
		w.run(12)
		told := map[outgoing.State]bool{}
		for _, o := range w.heard {
			if o.State == outgoing.Executed || o.State == outgoing.Final {
				require.Equal(t, coin-7, o.Amount)
				require.Equal(t, outgoing.ReasonDeliveredLess, o.Reason)
				told[o.State] = true
			}
		}
		require.Len(t, told, 2)
		require.Equal(t, outgoing.Final, w.last(in.ID).State)
		w.sound()
	})
}

// TestFN07_LessOfAPaymentThatCountedBeforeItsBlock: its owner heard that it is executed when a
// node had it, and hears how much it brings as soon as a block tells.
func TestFN07_LessOfAPaymentThatCountedBeforeItsBlock(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.intent("a", coin)
		in.Confirmations = 0
		w.submit(in)
		require.NoError(t, w.step())
		w.advance(poll)
		require.NoError(t, w.step())
		require.Equal(t, []any{outgoing.Executed, coin}, []any{w.last("a").State, w.last("a").Amount})
		w.client.short = 7
		w.run(2)
		require.Equal(t, []any{outgoing.Executed, outgoing.ReasonDeliveredLess, coin - 7}, []any{w.last("a").State, w.last("a").Reason, w.last("a").Amount})
		heard := len(w.heard)
		w.run(1)
		require.Len(t, w.heard, heard, "it is told once")
	})
}
