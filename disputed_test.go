package cryptopay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/wallet/house"
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
					first := i.firstLands(c.Network, w.ID)
					undo := i.rowOf("attempts", first)
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

// The same of a payment of the house's own: it shows why it waits, and gives nothing back, also where its
// rows are edited to say that it failed.
func TestFS02_HousePaymentThatAnUnknownTransactionMayHavePaidGivesNothingBack(t *testing.T) {
	t.Parallel()
	for _, failed := range []bool{false, true} {
		t.Run(fmt.Sprint("said to have failed ", failed), func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world := i.chains["ETH"]
			to := world.Customer("house")
			configure := i.configure
			i.configure = func(c *cryptopay.Config) {
				configure(c)
				c.HouseAddresses = []house.Address{{Network: "ETH", Address: to}}
			}
			i.restart()
			p, _, err := i.app.Operate.WithdrawOperatorFunds(t.Context(), house.Take{
				Tenant: i.tenant, Currency: "ETH", Amount: 1_000_000, Address: string(to), Key: "k",
			}, because("x"))
			require.NoError(t, err)
			for n := 0; len(i.sent(p.ID)) == 0; n++ {
				require.Less(t, n, 10)
				require.NoError(t, i.app.Step(t.Context()))
			}
			first := i.firstLands("ETH", p.ID)
			i.edit("DELETE FROM cryptopay_attempts WHERE id = ?", first)
			if failed {
				i.edit("DELETE FROM cryptopay_attempts WHERE intent = ?", p.ID)
				i.edit("UPDATE cryptopay_intents SET state = 'failed', due = 0 WHERE id = ?", p.ID)
				i.edit("UPDATE cryptopay_outcomes SET state = 'failed', due = 1 WHERE id = ?", p.ID)
			}
			i.work(30)
			p, err = i.app.Operate.HousePayment(t.Context(), i.tenant, p.ID)
			require.NoError(t, err)
			require.Equal(t, house.Processing, p.Status)
			require.Contains(t, i.log.heard(), "order_altered")
			if !failed {
				require.Equal(t, house.WaitingAltered, p.Waiting)
			}
		})
	}
}

// firstLands has an order replaced by a dearer transaction, and the first one in a block. It returns
// the hash of that.
func (i *insider) firstLands(n chain.Network, id string) string {
	i.t.Helper()
	require.NoError(i.t, i.app.Step(i.t.Context()))
	require.Len(i.t, i.sent(id), 1)
	i.stick(n)
	for minutes := 0; len(i.sent(id)) < 2; minutes++ {
		require.Less(i.t, minutes, 100)
		i.clock.Advance(time.Minute)
		require.NoError(i.t, i.app.Step(i.t.Context()))
	}
	first, world := i.sent(id)[0], i.chains[n]
	world.SetFeeLevel(0)
	world.Drop(i.sent(id)...)
	require.NoError(i.t, world.Resend(first))
	world.MineOnly(first)
	return first
}

// drops takes away a row that may be there.
func (i *insider) drops(table, id string) {
	i.t.Helper()
	_, err := i.db.Exec(i.db.Rebind("DELETE FROM cryptopay_"+table+" WHERE id = ?"), id)
	require.NoError(i.t, err)
}

// rowOf remembers a row, and returns what writes it again.
func (i *insider) rowOf(table, id string) (undo func()) {
	i.t.Helper()
	back := i.deletes(table, "id = ?", id)
	back()
	return func() {
		i.t.Helper()
		i.drops(table, id)
		back()
	}
}
