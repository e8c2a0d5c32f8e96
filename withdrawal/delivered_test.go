package withdrawal_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// less is the fact that a payment of 97.5 USDT landed and brought less.
func (w *world) less(id, state string, units ledger.Amount, confirmations int64) {
	w.Helper()
	require.NoError(w, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{
		Intent: id, State: state, Tx: "aa", Confirmations: confirmations, Amount: units,
		Reason: withdrawal.WaitingDeliveredLess, At: w.clock(),
	}))
}

func (w *world) count(kind string) (n int) {
	for _, x := range w.notices {
		if x.Kind == kind {
			n++
		}
	}
	return n
}

// TestFN07_DeliveredLessWaitsForAnOperator: whatever is told again or late, the hold
// stays, the host hears once, and what an operator decides is booked as the ledger says.
func TestFN07_DeliveredLessWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	before := w.books("USDTTRC20")
	for range 2 {
		w.less(id, withdrawal.OutcomeExecuted, 97_400_000, 1)
		w.less(id, withdrawal.OutcomeSettled, 97_400_000, 40)
		w.advance(time.Hour)
	}
	v := w.get(id)
	require.Equal(t, []any{withdrawal.Processing, withdrawal.WaitingDeliveredLess, ledger.Amount(97_400_000)}, []any{v.Status, v.Waiting, v.Delivered})
	require.Empty(t, w.books("USDTTRC20").since(before, "USDTTRC20"))
	require.Equal(t, 1, w.count(withdrawal.NoticeShort))
	require.Contains(t, w.notices[len(w.notices)-1].Detail, "97.4 of 97.5 USDTTRC20")
	halted, err := w.DeliveredLess(w.ctx, tenant, "USDTTRC20")
	require.NoError(t, err)
	require.True(t, halted)
	other, err := w.DeliveredLess(w.ctx, tenant, "BTC")
	require.NoError(t, err)
	require.False(t, other)

	_, err = w.PayMissing(w.ctx, tenant, id, "ann", "owed")
	require.ErrorIs(t, err, withdrawal.ErrNoEquity, "the house has nothing")
	v, err = w.TakeDelivered(w.ctx, tenant, id, "ann", "so be it")
	require.NoError(t, err)
	require.Equal(t, []any{withdrawal.Completed, "so be it", ""}, []any{v.Status, v.Reason, v.Waiting})
	require.Equal(t, "H -100, w -100, c +97.5, P +0.5, N +2", w.books("USDTTRC20").since(before, "USDTTRC20"))
	w.less(id, withdrawal.OutcomeSettled, 97_400_000, 60)
	require.Equal(t, 1, w.count(withdrawal.NoticeShort), "it is decided")
	require.Zero(t, w.count(withdrawal.NoticeConflict))
	require.Equal(t, []string{"pending>processing", "processing>completed"}, w.events(id))

	halted, err = w.DeliveredLess(w.ctx, tenant, "USDTTRC20")
	require.NoError(t, err)
	require.False(t, halted)
	w.sound()
}

// TestFN07_TheOperatorPaysTheRest out of the fees earned: an adjustment, and another
// withdrawal.
func TestFN07_TheOperatorPaysTheRest(t *testing.T) {
	t.Parallel()
	w, first := handed(t)
	executed(w, first) // earns fees of 2.5
	in := usdt("100")
	in.Memo = "a note"
	v := w.create(in)
	w.step()
	w.tell(v.ID, withdrawal.OutcomeSigned, "aa", 0)
	w.less(v.ID, withdrawal.OutcomeExecuted, 97_400_000, 1)
	before := w.books("USDTTRC20")
	_, err := w.PayMissing(w.ctx, tenant, first, "ann", "owed")
	require.ErrorIs(t, err, withdrawal.ErrNotShort, "that one brought all")
	rest, err := w.PayMissing(w.ctx, tenant, v.ID, "ann", "owed")
	require.NoError(t, err)
	require.Equal(t, []any{withdrawal.Pending, ledger.Amount(100_000), v.Address}, []any{rest.Status, rest.Amount, rest.Address})
	again, err := w.PayMissing(w.ctx, tenant, v.ID, "ann", "owed")
	require.NoError(t, err)
	require.Equal(t, rest.ID, again.ID)
	w.step()
	w.tell(rest.ID, withdrawal.OutcomeSigned, "bb", 0)
	w.tell(rest.ID, withdrawal.OutcomeSettled, "bb", 40)
	require.Equal(t, withdrawal.Completed, w.get(rest.ID).Status)
	require.Equal(t, "H -100, w -100, c +97.6, P +0.5, N +2", w.books("USDTTRC20").since(before, "USDTTRC20"))
	balances, err := w.store.Balances(w.ctx, storage.Tenant(tenant), ledger.Adjustment)
	require.NoError(t, err)
	require.Len(t, balances, 1)
	require.Equal(t, ledger.Amount(-100_000), balances[0].Posted)
	require.Equal(t, []string{"a note", ""}, []string{rest.Memo, rest.SentMemo})
	entries, err := w.store.Entries(w.ctx, storage.Tenant(tenant), ledger.Adjustment, "USDTTRC20", 0, 10)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, []string{"missing/" + rest.ID, rest.ID}, []string{entries[0].Tx, entries[0].Ref})
	w.sound()
}

// The withdrawal that pays what is missing is told as every other: first that it was made,
// then what becomes of it.
func TestFE01_PayoutOfWhatIsMissingIsTold(t *testing.T) {
	t.Parallel()
	w, first := handed(t)
	executed(w, first) // earns fees of 2.5
	v := w.create(usdt("100"))
	w.step()
	w.tell(v.ID, withdrawal.OutcomeSigned, "aa", 0)
	w.less(v.ID, withdrawal.OutcomeExecuted, 97_400_000, 1)
	rest, err := w.PayMissing(w.ctx, tenant, v.ID, "ann", "owed")
	require.NoError(t, err)
	_, err = w.PayMissing(w.ctx, tenant, v.ID, "ann", "owed")
	require.NoError(t, err, "it is told once all the same")
	w.step()
	w.tell(rest.ID, withdrawal.OutcomeSigned, "bb", 0)
	w.tell(rest.ID, withdrawal.OutcomeSettled, "bb", 40)

	rows, err := w.store.Find(w.ctx, storage.Query{
		Table: storage.Events.Table, Partition: storage.Tenant(tenant), Order: []storage.Order{{Column: storage.ColID}}, Limit: 1000,
	})
	require.NoError(t, err)
	var told []withdrawal.Changed
	for _, r := range rows {
		e := storage.Events.Value(r)
		if e.Object != rest.ID || e.Kind != (withdrawal.Changed{}).EventKind() {
			continue
		}
		var c withdrawal.Changed
		require.NoError(t, json.Unmarshal(e.Data, &c))
		told = append(told, c)
	}
	require.Len(t, told, 3)
	made := told[0]
	require.Equal(t, withdrawal.Changed{
		WithdrawalID: rest.ID, To: withdrawal.Pending, WalletID: rest.Wallet, Network: rest.Network, Currency: "USDTTRC20",
		Address: v.Address, Requested: "0.1", Amount: "0.1",
	}, made)
	for i, to := range []withdrawal.Status{withdrawal.Processing, withdrawal.Completed} {
		require.Equal(t, []any{told[i].To, to, rest.ID}, []any{told[i+1].From, told[i+1].To, told[i+1].WithdrawalID})
	}
	w.sound()
}

// TestFN07_AForkTakesTheShortPaymentBack: it is sent again, and what it brings then
// counts.
func TestFN07_AForkTakesTheShortPaymentBack(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	w.less(id, withdrawal.OutcomeExecuted, 97_400_000, 1)
	late := w.clock()
	w.advance(time.Minute)
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	v := w.get(id)
	require.Equal(t, []any{withdrawal.Processing, "", ledger.Amount(0)}, []any{v.Status, v.Waiting, v.Delivered})
	require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{
		Intent: id, State: withdrawal.OutcomeExecuted, Tx: "aa", Confirmations: 1, Amount: 97_400_000,
		Reason: withdrawal.WaitingDeliveredLess, At: late,
	}))
	require.Empty(t, w.get(id).Waiting, "old news")
	_, err := w.TakeDelivered(w.ctx, tenant, id, "ann", "too early")
	require.ErrorIs(t, err, withdrawal.ErrNotShort)
	w.tell(id, withdrawal.OutcomeExecuted, "aa", 1)
	require.Equal(t, withdrawal.Completed, w.get(id).Status)
	w.sound()
}

// TestFN07_AForkBringsAllAfterItWasCompleted: a short payment of a completed withdrawal that
// a fork replaces by a whole one needs no operator any more.
func TestFN07_AForkBringsAllAfterItWasCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.required = 0
	w.fund("master", "USDTTRC20", "1000")
	v := w.create(usdt("100"))
	w.step()
	w.tell(v.ID, withdrawal.OutcomeSigned, "aa", 0)
	w.tell(v.ID, withdrawal.OutcomeExecuted, "aa", 0)
	w.advance(time.Minute)
	for range 2 {
		w.less(v.ID, withdrawal.OutcomeExecuted, 97_400_000, 1)
	}
	require.Equal(t, 1, w.count(withdrawal.NoticeShort))
	w.less(v.ID, withdrawal.OutcomeExecuted, 97_300_000, 2)
	require.Equal(t, 2, w.count(withdrawal.NoticeShort), "another amount")
	w.advance(time.Minute)
	w.tell(v.ID, withdrawal.OutcomeExecuted, "aa", 0)
	require.Equal(t, withdrawal.WaitingDeliveredLess, w.get(v.ID).Waiting, "nothing has landed in its place")
	w.tell(v.ID, withdrawal.OutcomeExecuted, "bb", 1)
	got := w.get(v.ID)
	require.Equal(t, []any{withdrawal.Completed, "", ledger.Amount(0), time.Time{}}, []any{got.Status, got.Waiting, got.Delivered, got.WaitingSince})
	halted, err := w.DeliveredLess(w.ctx, tenant, "USDTTRC20")
	require.NoError(t, err)
	require.False(t, halted)
	w.sound()
}

// overtaken is a store on which another process decides right before a commit.
type overtaken struct {
	storage.Store
	first *func()
}

func (o overtaken) Commit(ctx context.Context, changes ...storage.Change) []error {
	if f := *o.first; f != nil {
		*o.first = nil
		f()
	}
	return o.Store.Commit(ctx, changes...)
}

// Two rests are paid at once, and the operator owns enough for one of them only.
func TestFN07_TwoRestsAtOnceArePaidOutOfWhatTheHouseOwns(t *testing.T) {
	t.Parallel()
	var before func()
	var same withdrawal.Config
	w := newWorldOn(t, overtaken{memory.New(), &before}, func(c *withdrawal.Config) { same = *c })
	another, err := withdrawal.New(same)
	require.NoError(t, err)
	w.fund("master", "USDTTRC20", "1000")
	for range 3 { // earns fees of 7.5
		executed(w, w.create(usdt("100")).ID)
	}
	var short []string
	for range 3 {
		v := w.create(usdt("100"))
		w.step()
		w.tell(v.ID, withdrawal.OutcomeSigned, "aa", 0)
		w.less(v.ID, withdrawal.OutcomeExecuted, 90_500_000, 1) // of 97.5
		short = append(short, v.ID)
	}
	before = func() {
		_, err := another.PayMissing(w.ctx, tenant, short[1], "ann", "owed")
		require.NoError(w, err)
	}
	_, err = w.PayMissing(w.ctx, tenant, short[0], "ann", "owed")
	require.ErrorIs(t, err, withdrawal.ErrNoEquity)
	require.Equal(t, withdrawal.Processing, w.get(short[0]).Status, "and nothing has changed")
	executed(w, w.create(usdt("100")).ID)
	executed(w, w.create(usdt("100")).ID)
	_, err = w.PayMissing(w.ctx, tenant, short[0], "ann", "owed")
	require.NoError(t, err, "once the operator owns enough again")
	w.sound()
}

// A currency without required confirmations: the withdrawal is completed when a node has
// taken it, and what it then brings less halts the currency and can be paid all the same.
func TestFN07_DeliveredLessAfterItWasCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.required = 0
	w.fund("master", "USDTTRC20", "1000")
	executed(w, w.create(usdt("100")).ID)
	v := w.create(usdt("100"))
	w.step()
	w.tell(v.ID, withdrawal.OutcomeSigned, "aa", 0)
	w.tell(v.ID, withdrawal.OutcomeExecuted, "aa", 0)
	require.Equal(t, withdrawal.Completed, w.get(v.ID).Status)
	w.advance(time.Minute)
	w.less(v.ID, withdrawal.OutcomeExecuted, 97_400_000, 1)
	w.less(v.ID, withdrawal.OutcomeSettled, 97_400_000, 40)
	require.Equal(t, withdrawal.WaitingDeliveredLess, w.get(v.ID).Waiting)
	require.Equal(t, withdrawal.ShownDeliveredLess, w.get(v.ID).WaitingReason())
	told, _, _, err := withdrawal.Waits.One(w.ctx, w.store, storage.Tenant(tenant), v.ID)
	require.NoError(t, err)
	require.Equal(t, withdrawal.ShownDeliveredLess, told.Reason, "the merchant is told, too")
	require.Equal(t, 1, w.count(withdrawal.NoticeShort))
	halted, err := w.DeliveredLess(w.ctx, tenant, "USDTTRC20")
	require.NoError(t, err)
	require.True(t, halted)

	before := w.books("USDTTRC20")
	rest, err := w.PayMissing(w.ctx, tenant, v.ID, "ann", "owed")
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(100_000), rest.Amount)
	require.Equal(t, "H +0.1, w +0.1", w.books("USDTTRC20").since(before, "USDTTRC20"), "nothing is settled twice")
	w.advance(time.Minute)
	w.less(v.ID, withdrawal.OutcomeSettled, 97_400_000, 60)
	require.Equal(t, []any{withdrawal.Completed, ""}, []any{w.get(v.ID).Status, w.get(v.ID).Waiting}, "it is decided")
	told, _, _, err = withdrawal.Waits.One(w.ctx, w.store, storage.Tenant(tenant), v.ID)
	require.NoError(t, err)
	require.Empty(t, told.Reason)
	require.Equal(t, 1, w.count(withdrawal.NoticeShort))
	halted, err = w.DeliveredLess(w.ctx, tenant, "USDTTRC20")
	require.NoError(t, err)
	require.False(t, halted)
	again, err := w.PayMissing(w.ctx, tenant, v.ID, "ann", "owed")
	require.NoError(t, err)
	require.Equal(t, rest.ID, again.ID)
	w.sound()
}
