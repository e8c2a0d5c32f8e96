package cryptopay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A payout was replaced by a dearer transaction, and its first one lands. Somebody deletes the row
// of that one, or gives it to another order: what the payout spends was taken by a transaction that
// is none of its own. It has paid the supplier, so nothing is given back, the host hears of it, and
// Verify names it. It completes where the row is put back, and ends where an operator calls it off.
func TestFS02_PayoutThatAnUnknownTransactionMayHavePaidGivesNothingBack(t *testing.T) {
	t.Parallel()
	for currency, amount := range map[string]string{"USDTERC20": "100", "BTC": "0.002"} {
		for name, edits := range map[string][]string{
			"deleted":    {"DELETE FROM cryptopay_attempts WHERE id = ?"},
			"of another": {"UPDATE cryptopay_attempts SET intent = 'another' WHERE id = ?"},
			"deleted, and the rest agrees": {
				"DELETE FROM cryptopay_attempts WHERE id = ?", "UPDATE cryptopay_attempts SET fate = 'dead' WHERE intent = ?",
				"UPDATE cryptopay_intents SET state = 'failed', due = 0 WHERE id = ?", "UPDATE cryptopay_outcomes SET state = 'failed', due = 1 WHERE id = ?",
			},
		} {
			for _, calledOff := range []bool{false, true} {
				t.Run(fmt.Sprint(currency, ", ", name, ", called off ", calledOff), func(t *testing.T) {
					t.Parallel()
					i := newInsider(t, currency)
					c, err := chain.MainnetRegistry().Currency(currency)
					require.NoError(t, err)
					world := i.chains[c.Network]
					to := world.Customer("supplier")
					w := i.withdraw(currency, amount, to)
					require.NoError(t, i.app.Step(t.Context()))
					require.Len(t, i.sent(w.ID), 1)
					i.stick(c.Network)
					for n := 0; len(i.sent(w.ID)) < 2; n++ {
						require.Less(t, n, 100)
						i.clock.Advance(time.Minute)
						require.NoError(t, i.app.Step(t.Context()))
					}
					first := i.sent(w.ID)[0]
					world.SetFeeLevel(0)
					world.Drop(i.sent(w.ID)...)
					require.NoError(t, world.Resend(first))
					world.MineOnly(first)
					undo := i.rowOf("cryptopay_attempts", first)
					i.edit(edits[0], first)
					for _, e := range edits[1:] {
						i.edit(e, w.ID)
					}
					i.work(30)
					require.Equal(t, c.Decimal(w.Amount).String(), world.Balance(to, currency).String())
					got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
					require.NoError(t, err)
					require.Equal(t, withdrawal.Processing, got.Status)
					require.Contains(t, i.log.heard(), "order_altered")
					if len(edits) == 1 {
						require.Equal(t, withdrawal.ShownStuck, got.WaitingReason())
						require.True(t, i.told[withdrawal.NoticeAltered])
						i.named(w.ID)
					}
					if calledOff {
						_, err := i.app.Operate.CancelTransaction(t.Context(), c.Network, w.ID, cryptopay.Call{By: "ann", Reason: "it has paid somebody else"})
						require.NoError(t, err)
						i.work(2)
						got, err = i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
						require.NoError(t, err)
						require.Equal(t, withdrawal.Failed, got.Status)
						return
					}
					undo() // the rows of a backup
					i.edit("UPDATE cryptopay_attempts SET fate = 'open' WHERE id = ?", first)
					i.edit("UPDATE cryptopay_intents SET state = 'signed', due = 1 WHERE id = ?", w.ID)
					i.work(5)
					got, err = i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
					require.NoError(t, err)
					require.Equal(t, withdrawal.Completed, got.Status)
					i.sound()
				})
			}
		}
	}
}

// rowOf remembers a row, and returns what writes it again.
func (i *insider) rowOf(table, id string) (undo func()) {
	i.t.Helper()
	_, err := i.db.Exec("CREATE TABLE kept AS SELECT * FROM "+table+" WHERE id = ?", id)
	require.NoError(i.t, err)
	return func() {
		_, err := i.db.Exec("DELETE FROM "+table+" WHERE id = ?", id)
		require.NoError(i.t, err)
		i.edit("INSERT INTO " + table + " SELECT * FROM kept")
	}
}
