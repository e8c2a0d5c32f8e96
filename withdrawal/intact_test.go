package withdrawal_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// edit changes a stored withdrawal as somebody with access to the database would.
func (w *world) edit(id string, f func(v *withdrawal.Withdrawal)) {
	w.Helper()
	v, row, ok, err := withdrawal.Withdrawals.One(w.ctx, w.store, storage.Tenant(tenant), id)
	require.NoError(w, err)
	require.True(w, ok)
	f(&v)
	w.commit(storage.Change{ID: w.newID(), Put: []storage.Row{withdrawal.Withdrawals.Row(id, row.Version, row.Due, v)}})
}

// TestW13_ConfirmComparesTheOrder: an order that is not its withdrawal's is not paid, nor is
// one of a withdrawal that ended, or whose rows were edited.
func TestW13_ConfirmComparesTheOrder(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	order := w.payouts.intents[id]
	confirm := func(in chain.Intent) string {
		t.Helper()
		v, why, err := w.Confirm(w.ctx, in)
		require.NoError(t, err)
		if why == "" {
			require.Equal(t, w.get(id), v)
		}
		return why
	}
	require.Empty(t, confirm(order))
	for name, edit := range map[string]func(in *chain.Intent){
		"network":  func(in *chain.Intent) { in.Network = "ETH" },
		"currency": func(in *chain.Intent) { in.Currency = "TRX" },
		"to":       func(in *chain.Intent) { in.To = "Tthief" },
		"memo":     func(in *chain.Intent) { in.Memo = "m" },
		"amount":   func(in *chain.Intent) { in.Amount++ },
		"all":      func(in *chain.Intent) { in.All = true },
	} {
		in := order
		edit(&in)
		require.Contains(t, confirm(in), "is not what its withdrawal says", name)
	}
	unknown := order
	unknown.ID = "nobody"
	require.Contains(t, confirm(unknown), "no withdrawal has this order")

	v := w.get(id)
	for name, edit := range map[string]func(v *withdrawal.Withdrawal){
		"raised":   func(v *withdrawal.Withdrawal) { v.Amount++; v.NetworkFee-- },
		"repeated": func(v *withdrawal.Withdrawal) { v.Status = withdrawal.Processing },
		"tenant":   func(v *withdrawal.Withdrawal) { v.Tenant = "another" },
		"fees":     func(v *withdrawal.Withdrawal) { v.PlatformFee++ },
	} {
		w.edit(id, edit)
		in := order
		in.Amount = w.get(id).Amount
		require.NotEmpty(t, confirm(in), name)
		w.edit(id, func(x *withdrawal.Withdrawal) { *x = v })
	}
	require.Empty(t, confirm(order))
	w.commit(storage.Change{ID: "unheld", Post: []ledger.Tx{{ID: "unheld", Kind: ledger.KindAdjustment, At: w.clock(), Legs: []ledger.Leg{
		{Account: ledger.Wallet("master"), Asset: "USDTTRC20", Hold: -1},
	}}}})
	require.Contains(t, confirm(order), "its wallet holds 99999999 units, less than the 100000000")
	w.commit(storage.Change{ID: "held", Post: []ledger.Tx{{ID: "held", Kind: ledger.KindAdjustment, At: w.clock(), Legs: []ledger.Leg{
		{Account: ledger.Wallet("master"), Asset: "USDTTRC20", Hold: 1},
	}}}})
	require.Empty(t, confirm(order))

	_, err := w.Cancel(w.ctx, tenant, id)
	require.NoError(t, err)
	require.Contains(t, confirm(order), "is cancelled")
	w.edit(id, func(v *withdrawal.Withdrawal) { v.Status = withdrawal.Failed })
	require.Contains(t, confirm(order), "is failed")
}

// TestW13_EditedRowIsKeptBack: nothing is sent of a withdrawal whose rows contradict each
// other. The host hears once, and once they are repaired it goes out.
func TestW13_EditedRowIsKeptBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	w.edit(v.ID, func(v *withdrawal.Withdrawal) { v.Address = "Tthief" })
	began := w.clock()
	for range 3 {
		w.step()
		got := w.get(v.ID)
		require.Equal(t, []any{withdrawal.Pending, withdrawal.WaitingAltered, began}, []any{got.Status, got.Waiting, got.WaitingSince})
		require.Contains(t, got.Reason, "address is not that of its line")
		require.Equal(t, 1, w.count(withdrawal.NoticeAltered))
		w.advance(time.Hour)
	}
	require.Empty(t, w.payouts.intents)
	_, err := w.Cancel(w.ctx, tenant, v.ID)
	require.ErrorIs(t, err, withdrawal.ErrAltered, "nor does money move back by what it says")
	w.edit(v.ID, func(x *withdrawal.Withdrawal) { x.Address = v.Address })
	w.step()
	require.Equal(t, chain.Address("Tdest"), w.payouts.intents[v.ID].To)
	require.Equal(t, []any{withdrawal.Handed, ""}, []any{w.get(v.ID).Stage, w.get(v.ID).Waiting})
	w.sound()
}

// TestW13_PayoutSideHasAnotherOrder under its id: the withdrawal waits, and the host hears
// once.
func TestW13_PayoutSideHasAnotherOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	w.payouts.before = func(chain.Intent) error { return fmt.Errorf("%w: another amount", withdrawal.ErrAltered) }
	for range 3 {
		_, err := w.Step(w.ctx)
		require.ErrorIs(t, err, withdrawal.ErrAltered)
		require.Equal(t, []any{withdrawal.Pending, withdrawal.WaitingAltered}, []any{w.get(v.ID).Status, w.get(v.ID).Waiting})
		w.advance(time.Hour)
	}
	require.Equal(t, "the payout side has another order under its id", w.notices[0].Detail)
	w.sound()
}

// TestW13_EditedRowMovesNoMoney: an outcome of a withdrawal whose row was edited is told
// again, and the host hears of it.
func TestW13_EditedRowMovesNoMoney(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	v, before := w.get(id), w.books("USDTTRC20")
	w.edit(id, func(v *withdrawal.Withdrawal) { v.Amount, v.NetworkFee = v.Amount-1, v.NetworkFee+1 })
	o := withdrawal.Outcome{Intent: id, State: withdrawal.OutcomeExecuted, Tx: "aa", Confirmations: 1, At: w.clock()}
	for range 2 {
		require.ErrorIs(t, w.HandleOutcome(w.ctx, tenant, o), withdrawal.ErrAltered)
		require.Equal(t, 1, w.count(withdrawal.NoticeAltered))
		require.Equal(t, withdrawal.WaitingAltered, w.get(id).Waiting)
		require.Empty(t, w.books("USDTTRC20").since(before, "USDTTRC20"))
	}
	w.edit(id, func(x *withdrawal.Withdrawal) { x.Amount, x.NetworkFee = v.Amount, v.NetworkFee })
	require.NoError(t, w.HandleOutcome(w.ctx, tenant, o))
	require.Equal(t, "H -100, w -100, c +97.5, P +0.5, N +2", w.books("USDTTRC20").since(before, "USDTTRC20"))
	w.sound()
}

// TestW13_EditedRowOfACancelledOrderIsShown: its order is called back before anybody signs,
// and the withdrawal ends once its row is repaired. Until then it says why it waits.
func TestW13_EditedRowOfACancelledOrderIsShown(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	w.edit(id, func(v *withdrawal.Withdrawal) { v.Address = "Tthief" })
	_, err := w.Cancel(w.ctx, tenant, id)
	require.ErrorIs(t, err, withdrawal.ErrAltered)
	o := withdrawal.Outcome{Intent: id, State: withdrawal.OutcomeCancelled, At: w.clock()}
	require.ErrorIs(t, w.HandleOutcome(w.ctx, tenant, o), withdrawal.ErrAltered)
	require.Equal(t, []any{withdrawal.Pending, withdrawal.WaitingAltered}, []any{w.get(id).Status, w.get(id).Waiting})
	w.edit(id, func(v *withdrawal.Withdrawal) { v.Address = "Tdest" })
	require.NoError(t, w.HandleOutcome(w.ctx, tenant, o))
	require.Equal(t, withdrawal.Cancelled, w.get(id).Status)
	w.sound()
}

// TestReadsThatFail: whichever read of an operation fails, its error is the answer, and
// nothing has happened.
func TestReadsThatFail(t *testing.T) {
	t.Parallel()
	type act func(w *world, id string) error
	for name, do := range map[string]act{
		"create": func(w *world, _ string) error {
			_, err := w.Create(w.ctx, tenant, keyed("k", usdt("100")))
			return err
		},
		"confirm": func(w *world, id string) error {
			_, why, err := w.Confirm(w.ctx, w.payouts.intents[id])
			require.Empty(w, why)
			return err
		},
		"list":      func(w *world, _ string) error { _, _, err := w.List(w.ctx, tenant, withdrawal.Filter{}); return err },
		"get":       func(w *world, id string) error { _, err := w.Get(w.ctx, tenant, id); return err },
		"limits":    func(w *world, _ string) error { _, err := w.Limits(w.ctx, tenant, ""); return err },
		"spendable": func(w *world, _ string) error { _, err := w.AvailableCurrencies(w.ctx, tenant); return err },
		"cancel":    func(w *world, id string) error { _, err := w.Cancel(w.ctx, tenant, id); return err },
		"short":     func(w *world, _ string) error { _, err := w.DeliveredLess(w.ctx, tenant, "USDTTRC20"); return err },
		"executed": func(w *world, id string) error {
			return w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{Intent: id, State: withdrawal.OutcomeExecuted, Tx: "aa", Confirmations: 1, At: w.clock()})
		},
	} {
		for n := 1; ; n++ {
			store := &failing.Store{Store: memory.New()}
			w := newWorldOn(t, store)
			w.ceiling = withdrawal.Ceiling{Max: 900_000000, Daily: 900_000000}
			w.fund("master", "USDTTRC20", "1000")
			id := w.create(usdt("100")).ID
			w.step()
			before := w.books("USDTTRC20")
			store.Calls, store.FailAt = 0, n
			err := do(w, id)
			failed := store.Calls >= n
			store.FailAt = 0
			if !failed {
				require.NoError(t, err, name)
				require.Greater(t, n, 1, name)
				break
			}
			require.ErrorIs(t, err, failing.ErrGone, "%s, read %d", name, n)
			require.Equal(t, before, w.books("USDTTRC20"), "%s, read %d", name, n)
			w.sound()
		}
	}
}

// TestW13_NothingIsNoWithdrawal, whatever its line of the history says.
func TestW13_NothingIsNoWithdrawal(t *testing.T) {
	t.Parallel()
	v := withdrawal.Withdrawal{Tenant: tenant, Status: withdrawal.Pending, Currency: "USDTTRC20", Address: "T1", Requested: 5, NetworkFee: 5}
	line := storage.Activity{Kind: storage.ActivityWithdrawal, Status: string(v.Status), Currency: "USDTTRC20", Amount: 5, Fee: 5, Address: "T1"}
	require.Contains(t, v.Contradicts(storage.Tenant(tenant), &line, true), "amount and fees")
	v.Amount, v.NetworkFee, line.Net, line.Fee = 1, 4, 1, 4
	require.Empty(t, v.Contradicts(storage.Tenant(tenant), &line, true))
}

// TestOnceWithAnAnswerThatCannotBeRead is an error, and pays nothing twice.
func TestOnceWithAnAnswerThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	_, err := w.Create(w.ctx, tenant, keyed("k", usdt("100")))
	require.NoError(t, err)
	kept, row, ok, err := storage.OnceTable.One(w.ctx, w.store, storage.Tenant(tenant), "k")
	require.NoError(t, err)
	require.True(t, ok)
	kept.Response = []byte("{")
	w.commit(storage.Change{ID: "spoil", Put: []storage.Row{storage.OnceTable.Row("k", row.Version, row.Due, kept)}})
	_, err = w.Create(w.ctx, tenant, keyed("k", usdt("100")))
	require.ErrorContains(t, err, "reading the first response")
	require.EqualValues(t, 100_000000, w.books("USDTTRC20")["H"])
	_, err = w.Estimate(w.ctx, tenant, withdrawal.Terms{Amount: dec("1"), PriceAmount: dec("1"), Currency: "USDTTRC20"})
	bad := new(withdrawal.InvalidError)
	require.ErrorAs(t, err, &bad)
	require.Equal(t, []string{"amount"}, fieldsOf(bad))
}
