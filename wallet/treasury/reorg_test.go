package treasury_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// never: hot and custody together are never more than what the chain holds at our
// addresses, right after a Sync.
func (w *world) never(v *treasury.Treasury, p string, currency string) {
	w.t.Helper()
	_, err := v.Sync(w.t.Context(), w.tenant)
	require.NoError(w.t, err)
	h, err := v.Holdings(w.t.Context(), w.tenant)
	require.NoError(w.t, err)
	there := w.chain.Balance(w.hot, currency).Add(w.chain.Balance(chain.Address(p), currency))
	for _, x := range h.Totals {
		if x.Currency.Code == currency {
			sum := x.Sum()
			require.True(w.t, sum.LessThanOrEqual(there), "hot %s and custody %s of %s", x.Hot, x.Custody, there)
		}
	}
}

// reasons are those for which coins lie on deposit addresses.
func (w *world) reasons() (out []string) {
	w.t.Helper()
	for _, x := range w.waiting() {
		out = append(out, x.Reason)
	}
	return out
}

// TestFN08_SweepThatLacksADepositMovesTheOther: with the sweep one of its deposits is gone for
// good. What was signed asks for more than there is, so it cannot land. It is replaced by one of
// what is there.
func TestFN08_SweepThatLacksADepositMovesTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	_, err := w.chain.Fund(w.hot, "ETH", dec("100"))
	require.NoError(t, err)
	w.mine(140)
	p := w.pay("ETH", "300")
	w.mine(1)
	w.send(p, "ETH", dec("0.2"))
	w.until(func() bool { return len(w.sweeps()) > 0 && w.sweeps()[0].State == treasury.SweepDone })
	w.mine(140)
	came := w.chain.Transfers(chain.Address(p.Address))
	require.Len(t, came, 2)
	tx := w.sweeps()[0].Tx
	_, err = w.chain.Reorg(int(w.chain.Height()-came[1].Block.Height)+1, came[1].Tx, tx)
	require.NoError(t, err)
	w.until(func() bool { return len(w.reasons()) > 0 })
	require.Equal(t, []string{"reorged"}, w.reasons())
	w.hours(24)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "ETH").IsZero())
	require.Empty(t, w.reasons())
	require.Equal(t, "100.149950387499979", w.chain.Balance(w.hot, "ETH").String())
	_, err = w.app.Operate.ResumeNetwork(t.Context(), "ETH", came[1].Block.Height-1, cryptopay.Call{By: "ops", Reason: "the fork was looked at"})
	require.NoError(t, err)
	w.mine(80)
	w.conserved("ETH")
	w.released()
}

// TestFN08_SweepThatLacksADepositIsWorthItsCost: what a deep reorg leaves of a sweep's deposits is worth less than
// twice what moving it costs. It waits for lower fees.
func TestFN08_SweepThatLacksADepositIsWorthItsCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	level := w.chain.FeeLevel()
	_, err := w.chain.Fund(w.hot, "ETH", dec("100"))
	require.NoError(t, err)
	w.mine(140)
	p := w.open("ETH", "300")
	w.send(p, "ETH", dec("0.0002"))
	w.mine(1)
	w.send(p, "ETH", dec("0.15"))
	w.until(func() bool { return len(w.sweeps()) > 0 && w.sweeps()[0].State == treasury.SweepDone })
	w.mine(140)
	came := w.chain.Transfers(chain.Address(p.Address))
	require.Len(t, came, 2)
	w.chain.SetFeeLevel(5 * level / 2)
	hot := w.chain.Balance(w.hot, "ETH")
	_, err = w.chain.Reorg(int(w.chain.Height()-came[1].Block.Height)+1, came[1].Tx, w.sweeps()[0].Tx)
	require.NoError(t, err)
	w.hours(24)
	require.Equal(t, "0.0002", w.chain.Balance(chain.Address(p.Address), "ETH").String())
	require.Equal(t, []string{treasury.WaitBelowCost}, w.reasons())
	w.chain.SetFeeLevel(level)
	w.hours(24)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "ETH").IsZero())
	require.Empty(t, w.reasons())
	require.True(t, w.chain.Balance(w.hot, "ETH").LessThan(hot))
}

// TestFN08_SweepThatADeepReorgUndoesIsSentAgain: the deposit stays, its sweep and the gas for
// it are gone from the chain and from every mempool. Nothing else leaves the deposit's
// address, so nobody waits behind the sweep. The coins go to the hot address all the same.
func TestFN08_SweepThatADeepReorgUndoesIsSentAgain(t *testing.T) {
	t.Parallel()
	for currency, n := range map[string]chain.Network{"ETH": "ETH", "USDTERC20": "ETH", "USDTARB": "ARB"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, n)
			gas, err := chain.MainnetRegistry().Gas(n)
			require.NoError(t, err)
			_, err = w.chain.Fund(w.hot, gas.Code, dec("100"))
			require.NoError(t, err)
			w.mine(140)
			p := w.pay(currency, "300")
			w.until(func() bool { return len(w.sweeps()) > 0 && w.sweeps()[0].State == treasury.SweepDone })
			w.mine(140) // it is settled, and nobody looks at it any more
			sweep := w.sweeps()[0].Tx
			hot := w.chain.Balance(w.hot, currency)
			var gone []string
			depth := int64(0)
			for _, x := range w.chain.Transfers(chain.Address(p.Address)) {
				if x.From == w.hot && currency != gas.Code {
					gone = append(gone, x.Tx)
					depth = max(depth, w.chain.Height()-x.Block.Height+1)
				}
			}
			for _, x := range w.chain.Transfers(w.hot) {
				if x.Tx == sweep {
					depth = max(depth, w.chain.Height()-x.Block.Height+1)
				}
			}
			gone = append(gone, sweep)
			_, err = w.chain.Reorg(int(depth), gone...)
			require.NoError(t, err)
			require.True(t, w.chain.Balance(chain.Address(p.Address), currency).IsPositive(), "the deposit is there again, and its sweep is not")
			for len(w.reasons()) == 0 && w.chain.Balance(chain.Address(p.Address), currency).IsPositive() {
				w.step()
				w.clock.Advance(time.Minute)
			}
			require.Equal(t, []string{"reorged"}, w.reasons(), "it is shown why the coins lie there")
			w.mine(20)
			w.hours(24)
			w.mine(20)
			require.True(t, w.chain.Balance(chain.Address(p.Address), currency).IsZero())
			require.Equal(t, hot.String(), w.chain.Balance(w.hot, currency).String())
			require.Equal(t, treasury.SweepDone, w.sweeps()[0].State)
			require.Empty(t, w.reasons())
			w.conserved(currency)
		})
	}
}

// A deposit that was final and swept is taken away by a deep reorg and mined again, with
// its sweep, without it, or much later: the treasury never sees more than there is.
func TestFT09_NothingIsCountedTwiceAfterADeepReorg(t *testing.T) {
	t.Parallel()
	for currency, n := range map[string]chain.Network{"ETH": "ETH", "USDTERC20": "ETH", "USDTARB": "ARB"} {
		for name, drop := range map[string]bool{"with its sweep": false, "later": true} {
			t.Run(currency+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, n)
				v := w.viewer(node{Client: w.chain.Client()}, nil)
				gas, err := chain.MainnetRegistry().Gas(n)
				require.NoError(t, err)
				_, err = w.chain.Fund(w.hot, gas.Code, dec("100"))
				require.NoError(t, err)
				w.mine(140)
				p := w.pay(currency, "300")
				w.mine(1)
				tx := w.chain.Transfers(chain.Address(p.Address))[0].Tx
				deep := int(w.currency(currency).Confirmations) + 30
				w.mine(deep)
				w.until(func() bool { return len(w.sweeps()) > 0 && w.sweeps()[0].State == treasury.SweepDone })
				w.mine(5)
				w.never(v, p.Address, currency)
				depth := int(w.chain.Height() - w.chain.Transfers(chain.Address(p.Address))[0].Block.Height + 1)
				var gone []string
				if drop {
					gone = []string{tx}
				}
				_, err = w.chain.Reorg(depth, gone...)
				require.NoError(t, err)
				w.never(v, p.Address, currency)
				for range 3 {
					w.mine(1)
					w.never(v, p.Address, currency)
				}
				if drop {
					require.NoError(t, w.chain.Resend(tx))
				}
				for range deep {
					w.mine(1)
					w.never(v, p.Address, currency)
				}
				w.hours(3 * 24)
				w.never(v, p.Address, currency)
				h := w.holdings(v)
				require.Equal(t, "0", figures(h, currency)[2], "it was swept, once")
				require.Zero(t, w.waits())
			})
		}
	}
}

// A deposit whose sweep waits is taken away by a deep reorg and mined again. The sweep
// lists it once, waits with its reason, and goes on when fees fall.
func TestFT01_DepositThatIsMinedAgainWhileItsSweepWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	level := w.chain.FeeLevel()
	w.chain.SetFeeLevel(spike * level)
	p := w.pay("USDTERC20", "20")
	w.mine(40)
	require.Equal(t, 1, w.waits())
	tx := w.chain.Transfers(chain.Address(p.Address))[0]
	_, err := w.chain.Reorg(int(w.chain.Height()-tx.Block.Height+1), tx.Tx)
	require.NoError(t, err)
	w.mine(3)
	require.NoError(t, w.chain.Resend(tx.Tx))
	_, err = w.app.Operate.ResumeNetwork(t.Context(), "ETH", tx.Block.Height-1, cryptopay.Call{By: "ops", Reason: "the fork was looked at"})
	require.NoError(t, err)
	w.mine(60)
	require.Equal(t, treasury.WaitBelowCost, w.waiting()[0].Reason)
	require.Equal(t, "20", w.waiting()[0].Currency.Decimal(w.waiting()[0].Amount).String(), "counted once")
	w.chain.SetFeeLevel(level)
	w.hours(6)
	require.Zero(t, w.waits())
	require.Equal(t, "20", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A deposit below the dust limit is recorded only: no sweep waits for it alone, and one
// that an earlier version made ends.
func TestFT01_NothingWaitsForDustAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.open("USDTERC20", "20")
	w.send(p, "USDTERC20", w.currency("USDTERC20").Dust.Div(dec("2")))
	w.mine(60)
	require.Empty(t, w.sweeps())

	rows, err := w.store.Find(t.Context(), storage.Query{
		Table: incoming.Sightings.Table, Partition: storage.Network("ETH"), Limit: 1,
		Where: []storage.Cond{{Column: "address", Op: storage.Eq, Value: p.Address}},
	})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "as an earlier version did", Partition: storage.Network("ETH"),
		Put: []storage.Row{treasury.Sweeps.Row("sweep/old", 0, w.clock.Now(), treasury.Sweep{
			Tenant: w.tenant, Network: "ETH", Address: p.Address, Key: "m/44'/60'/0'/0/0", Currency: "USDTERC20",
			Deposits: []string{rows[0].ID}, State: treasury.SweepDeferred, Created: w.clock.Now(),
		})},
	}))
	w.mine(20)
	require.Equal(t, treasury.SweepReplaced, w.sweeps()[0].State, w.sweeps()[0].Reason)
	require.Zero(t, w.waits())
}

// judged makes the one sweep wait as a look has left it, due at some time.
func (w *world) judged(due time.Time, as func(*treasury.SweepNote)) {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network("ETH"), Limit: 1})
	require.NoError(w.t, err)
	s := treasury.Sweeps.Value(rows[0])
	note, at, _, err := treasury.SweepNotes.One(w.t.Context(), w.store, storage.Network("ETH"), rows[0].ID)
	require.NoError(w.t, err)
	s.State = treasury.SweepDeferred
	as(&note)
	require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, storage.Change{ID: "judged", Partition: storage.Network("ETH"), Put: []storage.Row{
		treasury.Sweeps.Row(rows[0].ID, rows[0].Version, due, s),
		treasury.SweepNotes.Row(at.ID, at.Version, time.Time{}, note),
	}}))
	require.Equal(w.t, 1, w.waits())
}

// A sweep was judged while a fork had taken its gas away, and waits for lower fees: a
// second transfer is not worth it. The first one is mined again: the sweep goes on.
func TestFT01_GasThatComesBackAfterAFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "20")
	w.until(func() bool { return len(w.sweeps()) > 0 && w.sweeps()[0].State == treasury.SweepFunding })
	w.judged(time.Time{}, func(n *treasury.SweepNote) { n.Waiting, n.DueBelow = treasury.WaitBelowCost, 1 })
	w.mine(60)
	require.Zero(t, w.waits())
	require.Equal(t, "20", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A sweep was looked at while a fork had taken its deposit away and left somebody's dust,
// or while it stayed short of gas. It is judged by what its address holds now.
func TestFT01_SweepIsJudgedByWhatIsThereNow(t *testing.T) {
	t.Parallel()
	for waiting, as := range map[string]func(*treasury.SweepNote){
		treasury.WaitEmpty:    func(n *treasury.SweepNote) { n.Amount = 1 },
		treasury.WaitGasStays: func(*treasury.SweepNote) {},
	} {
		t.Run(waiting, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			level := w.chain.FeeLevel()
			w.fund("1")
			w.chain.SetFeeLevel(spike * level)
			w.pay("USDTERC20", "20")
			w.until(func() bool { return w.waits() > 0 })
			w.chain.SetFeeLevel(level)
			w.judged(w.clock.Now(), func(n *treasury.SweepNote) {
				n.Waiting, n.Since = waiting, w.clock.Now()
				as(n)
			})
			if waiting == treasury.WaitGasStays {
				w.fundings(3)
				w.hours(20)
				require.Equal(t, waiting, w.waiting()[0].Reason, "one transfer more a day")
			}
			w.hours(8)
			require.Zero(t, w.waits())
			require.Equal(t, "20", w.chain.Balance(w.hot, "USDTERC20").String())
			w.conserved("ETH", "USDTERC20")
			w.released()
		})
	}
}

// fundings makes the one sweep have asked for gas so many times.
func (w *world) fundings(n int) {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network("ETH"), Limit: 1})
	require.NoError(w.t, err)
	s := treasury.Sweeps.Value(rows[0])
	s.Fundings = n
	require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, storage.Change{ID: "fundings", Partition: rows[0].Partition, Put: []storage.Row{
		treasury.Sweeps.Row(rows[0].ID, rows[0].Version, rows[0].Due, s),
	}}))
}

// A sweep took a deposit with it that was not final yet. A fork took the sweep out of its
// block, so the deposit, final now, got a sweep of its own, and more gas where that rose.
// Then the first landed after all: the second is called back, and what was set aside for
// it is free again.
func TestR05_SweepOfWhatAnotherOneTook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		currency string
		dearer   int64
	}{{"ETH", 3}, {"USDTERC20", 3}, {"USDTERC20", 9}} {
		t.Run(fmt.Sprint(c.currency, c.dearer), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.fund("1")
			level := w.chain.FeeLevel()
			p := w.pay(c.currency, "300")
			w.mine(10)
			before := w.chain.Balance(w.hot, c.currency)
			w.send(p, c.currency, dec("1"))
			w.until(func() bool { return len(w.sweeps()) > 0 && w.sweeps()[0].State == treasury.SweepDone })
			first := w.sweeps()[0].Tx
			require.True(t, w.chain.Balance(w.hot, c.currency).GreaterThan(before.Add(dec("1"))), "with what was not final")
			w.chain.SetFeeLevel(3 * level)
			_, err := w.chain.Reorg(2, first)
			require.NoError(t, err)
			if c.currency != "ETH" { // so that the second needs no gas, until it is dearer
				_, err = w.chain.Fund(chain.Address(p.Address), "ETH", dec("0.0006"))
				require.NoError(t, err)
			}
			w.hours(3)
			require.True(t, slices.ContainsFunc(w.sweeps(), func(s treasury.Sweep) bool { return s.State == treasury.SweepMoving }))
			w.chain.SetFeeLevel(c.dearer * level)
			w.hours(1)
			w.chain.SetFeeLevel(level)
			w.hours(4)
			require.True(t, w.chain.Balance(w.hot, c.currency).GreaterThan(before.Add(dec("1"))))
			for _, s := range w.sweeps() {
				require.Contains(t, []treasury.SweepState{treasury.SweepDone, treasury.SweepReplaced}, s.State)
			}
			w.conserved("ETH", c.currency)
			w.released()
		})
	}
}

// TestFN08_PayoutThatADeepReorgUndoesIsPaidAtThePriceOfNow: a settled payout is gone from the chain and
// from every mempool, and fees are far above what its transaction offers. It is replaced as any that
// is stuck, and keeps no payout behind it from being sent. What it cost before is taken back in the
// books, and what lands is booked once.
func TestFN08_PayoutThatADeepReorgUndoesIsPaidAtThePriceOfNow(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		for name, c := range map[string]struct {
			before, after int64 // the fee level, as a multiple of the usual one
			twice         bool  // the fork comes twice
		}{
			"dearer":            {1, 20, false},
			"the same again":    {1, 1, false},
			"dearer, and again": {1, 5, true},
		} {
			t.Run(string(n)+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, n)
				code, level := string(n), w.chain.FeeLevel()
				w.fund("1")
				for range 2 {
					w.pay(code, "300")
				}
				w.hours(12)
				w.chain.SetFeeLevel(c.before * level)
				id := w.withdraw(code, "100")
				w.hours(8)
				w.mine(80)
				w.paidOut(id)
				for range 1 + map[bool]int{true: 1}[c.twice] {
					v, err := w.app.Withdrawals.Get(t.Context(), w.tenant, id)
					require.NoError(t, err)
					landed, err := w.chain.Outcome(v.Tx)
					require.NoError(t, err)
					_, err = w.chain.Reorg(int(landed.Confirmations), v.Tx)
					require.NoError(t, err)
					w.chain.SetFeeLevel(c.after * level)
					behind := w.withdraw(code, "50")
					w.mine(3)
					w.hours(30)
					w.mine(80)
					w.paidOut(id)
					w.paidOut(behind)
					v, err = w.app.Withdrawals.Get(t.Context(), w.tenant, id)
					require.NoError(t, err)
					require.Empty(t, v.Waiting)
					w.conserved(code)
					w.released()
					c.after *= 2
				}
			})
		}
	}
}

// TestFN08_EarlierTransactionThatLandsAfterADeepReorgIsBookedAlone: a payout was replaced, and settled
// with the dearer transaction. After a deep reorg the cheaper one lands in its place: the books have
// what that one cost, and nothing of the other.
func TestFN08_EarlierTransactionThatLandsAfterADeepReorgIsBookedAlone(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, n)
			code, level := string(n), w.chain.FeeLevel()
			w.fund("1")
			w.pay(code, "300")
			w.hours(12)
			id := w.withdraw(code, "100")
			for known := len(w.attempts()); len(w.attempts()) == known; {
				w.step()
			}
			w.chain.SetFeeLevel(4 * level)
			w.hours(8)
			w.mine(80)
			w.paidOut(id)
			v, err := w.app.Withdrawals.Get(t.Context(), w.tenant, id)
			require.NoError(t, err)
			landed, err := w.chain.Outcome(v.Tx)
			require.NoError(t, err)
			first := ""
			for _, row := range w.attempts() {
				if a := outgoing.Attempts.Value(row); a.Intent == id && a.Number == 1 {
					first = row.ID
				}
			}
			require.NotEqual(t, first, v.Tx)
			w.chain.SetFeeLevel(level)
			_, err = w.chain.Reorg(int(landed.Confirmations), v.Tx)
			require.NoError(t, err)
			w.chain.Drop(w.chain.Mempool()...)
			require.NoError(t, w.chain.Resend(first))
			w.chain.MineOnly(first)
			w.hours(30)
			w.mine(80)
			v, err = w.app.Withdrawals.Get(t.Context(), w.tenant, id)
			require.NoError(t, err)
			require.Equal(t, []any{withdrawal.Completed, first, ""}, []any{v.Status, v.Tx, v.Waiting})
			w.conserved(code)
			w.released()
		})
	}
}

// TestFN08_PayoutOfAnotherOnesChangeAfterADeepReorg: one payout has spent what another returned, and a deep reorg
// undoes both. The first is replaced, so that what it had returned never exists: the second takes other coins.
func TestFN08_PayoutOfAnotherOnesChangeAfterADeepReorg(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	level := w.chain.FeeLevel()
	w.pay("BTC", "300")
	w.hours(12)
	w.fund("1")
	var txs []string
	var ids []string
	for range 2 {
		id := w.withdraw("BTC", "100")
		w.hours(8)
		w.paidOut(id)
		v, err := w.app.Withdrawals.Get(t.Context(), w.tenant, id)
		require.NoError(t, err)
		txs, ids = append(txs, v.Tx), append(ids, id)
	}
	var spends []string
	for _, row := range w.attempts() {
		if row.ID == txs[1] {
			spends = outgoing.Attempts.Value(row).Spends
		}
	}
	require.True(t, slices.ContainsFunc(spends, func(o string) bool { return strings.HasPrefix(o, txs[0]+":") }), "%v", spends)
	first, err := w.chain.Outcome(txs[0])
	require.NoError(t, err)
	_, err = w.chain.Reorg(int(first.Confirmations), txs...)
	require.NoError(t, err)
	w.chain.SetFeeLevel(8 * level)
	w.hours(30)
	w.mine(80)
	for _, id := range ids {
		w.paidOut(id)
		v, err := w.app.Withdrawals.Get(t.Context(), w.tenant, id)
		require.NoError(t, err)
		require.Empty(t, v.Waiting)
		require.NotContains(t, txs, v.Tx)
	}
	require.Equal(t, 2, w.landed(w.chain.Customer("supplier"), "BTC"))
	w.conserved("BTC")
	w.released()
}

// TestFN08_PayoutsOfOneTransactionAfterADeepReorg: what each of them may cost is set aside again, and given back when they have landed.
func TestFN08_PayoutsOfOneTransactionAfterADeepReorg(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	w.fund("1")
	w.pay("BTC", "300")
	w.hours(12)
	ids := []string{w.withdraw("BTC", "50"), w.withdraw("BTC", "60"), w.withdraw("BTC", "70")}
	w.hours(8)
	v, err := w.app.Withdrawals.Get(t.Context(), w.tenant, ids[0])
	require.NoError(t, err)
	landed, err := w.chain.Outcome(v.Tx)
	require.NoError(t, err)
	require.Equal(t, 3, w.landed(w.chain.Customer("supplier"), "BTC"))
	_, err = w.chain.Reorg(int(landed.Confirmations), v.Tx)
	require.NoError(t, err)
	w.chain.SetFeeLevel(4 * w.chain.FeeLevel())
	w.mine(3)
	bounds := int64(0)
	for _, id := range ids {
		r, there := w.reservation(id)
		require.True(t, there)
		require.True(t, r.Open, "set aside again")
		bounds += int64(r.Amount)
	}
	require.Equal(t, bounds, int64(w.gas(w.tenant, "BTC").Reserved))
	w.hours(30)
	w.mine(80)
	for _, id := range ids {
		w.paidOut(id)
	}
	require.Equal(t, 3, w.landed(w.chain.Customer("supplier"), "BTC"))
	w.conserved("BTC")
	w.released()
}

// TestFN08_ChildOfAPayoutThatADeepReorgUndid: nodes keep what a payout's transaction was before the reorg, and a child
// pays for it. What is set aside for the child ends with it.
func TestFN08_ChildOfAPayoutThatADeepReorgUndid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	w.fund("0.01")
	w.pay("BTC", "300")
	w.hours(12)
	id := w.withdraw("BTC", "200")
	w.hours(8)
	w.paidOut(id)
	v, err := w.app.Withdrawals.Get(t.Context(), w.tenant, id)
	require.NoError(t, err)
	landed, err := w.chain.Outcome(v.Tx)
	require.NoError(t, err)
	w.chain.SetFirstSeen(true)
	w.chain.SetFeeLevel(8)
	_, err = w.chain.Reorg(int(landed.Confirmations), v.Tx)
	require.NoError(t, err)
	w.mine(2)
	require.NoError(t, w.chain.Resend(v.Tx))
	child := outgoing.ID{Kind: outgoing.OrderChild, For: id}.String()
	for n := 0; len(w.intents(chain.ForCancel)) == 0 || w.intents(chain.ForCancel)[0].State != outgoing.Signed; n++ {
		require.Less(t, n, 200, "a child")
		w.wait()
	}
	w.parentAlone()
	left, ok := w.reservation(child)
	require.True(t, ok && left.Open)
	for range 30 {
		w.wait()
		w.mine(1)
	}
	w.paidOut(id)
	w.conserved("BTC")
	w.released()
}

// TestFN08_CoinThatASettledPayoutHasSpentIsGone: it is gone with its block, so that no transaction is built on it. Where it is
// back, and the payout still settled, it is spent.
func TestFN08_CoinThatASettledPayoutHasSpentIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	p := w.pay("BTC", "300")
	w.hours(12)
	w.fund("0.001")
	id := w.withdraw("BTC", "200")
	w.hours(8)
	w.paidOut(id)
	coin := func() outgoing.CoinState {
		for _, c := range w.coins() {
			if c.Address == chain.Address(p.Address) {
				return c.State
			}
		}
		return ""
	}
	require.Equal(t, outgoing.CoinSpent, coin())
	rows, err := w.store.Find(t.Context(), storage.Query{
		Table: incoming.Sightings.Table, Partition: storage.Network("BTC"), Where: []storage.Cond{{Column: "address", Op: storage.Eq, Value: p.Address}},
	})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	sighting := incoming.Sightings.Value(rows[0])
	becomes := func(state incoming.State) {
		s := sighting
		s.State, s.Forward = state, incoming.ForwardNone
		now, err := w.store.Rows(t.Context(), incoming.Sightings.Table, storage.Keys(storage.Network("BTC"), rows[0].ID)...)
		require.NoError(t, err)
		require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
			ID: fmt.Sprint("as a fork does: ", state, now[0].Version), Partition: storage.Network("BTC"), Put: []storage.Row{incoming.Sightings.Row(now[0].ID, now[0].Version, w.clock.Now(), s)},
		}))
		sighting = s
	}
	becomes(incoming.Gone)
	require.NoError(t, w.app.Treasury.Lost(t.Context(), sighting))
	require.Equal(t, outgoing.CoinGone, coin())
	becomes(incoming.Final)
	w.mine(2)
	require.Equal(t, outgoing.CoinSpent, coin())

	// A payout that was built without it in the end has not spent it.
	becomes(incoming.Gone)
	require.NoError(t, w.app.Treasury.Lost(t.Context(), sighting))
	for _, row := range w.attempts() {
		a := outgoing.Attempts.Value(row)
		a.Spends = []string{"another:0"}
		require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
			ID: "without it", Partition: storage.Network("BTC"), Put: []storage.Row{outgoing.Attempts.Row(row.ID, row.Version, time.Time{}, a)},
		}))
	}
	becomes(incoming.Final)
	w.mine(2)
	require.Equal(t, outgoing.CoinDisputed, coin())
}
