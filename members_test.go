package cryptopay_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// together makes three payouts of BTC that one transaction pays. member is the id of one that does
// not lead the batch.
func (i *insider) together() (all []withdrawal.Withdrawal, member string) {
	i.t.Helper()
	for n := range 3 {
		all = append(all, i.withdraw("BTC", "0.002", i.chains["BTC"].Customer(fmt.Sprint("supplier ", n))))
	}
	require.NoError(i.t, i.app.Step(i.t.Context()))
	require.NoError(i.t, i.db.Get(&member, "SELECT min(id) FROM cryptopay_rides"))
	return all, member
}

// One transaction pays several payouts, and somebody deletes or edits the row that says so of one of
// them. That one is paid, and would wait for ever: the host hears of it.
func TestFS02_PayoutThatNobodyLooksAtIsNamed(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]string{
		"deleted":     "DELETE FROM cryptopay_rides WHERE id = ?",
		"of no order": "UPDATE cryptopay_rides SET carrier = 'nobody' WHERE id = ?",
		"of itself":   "UPDATE cryptopay_rides SET carrier = id WHERE id = ?",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "BTC")
			notices := i.countsAltered()
			all, member := i.together()
			i.restart()
			require.NotContains(t, i.contradictions(), member)
			i.edit(edit, member)
			for range 3 {
				i.clock.Advance(40 * time.Minute)
				i.work(2)
			}
			require.Contains(t, i.log.heard(), "order_altered")
			require.Positive(t, *notices)
			require.Contains(t, i.contradictions(), member)

			_, err := i.db.Exec("DELETE FROM cryptopay_rides WHERE id = ?", member)
			require.NoError(t, err)
			_, err = i.db.Exec("UPDATE cryptopay_intents SET due = 1 WHERE id = ?", member)
			require.NoError(t, err)
			i.work(60)
			btc, err := chain.MainnetRegistry().Currency("BTC")
			require.NoError(t, err)
			for n, w := range all {
				require.Equal(t, btc.Decimal(w.Amount).String(), i.chains["BTC"].Balance(i.chains["BTC"].Customer(fmt.Sprint("supplier ", n)), "BTC").String())
			}
		})
	}
}

// Somebody deletes the rows that say which transaction pays a payout, and has its other rows say that
// it failed. The owner was told of that transaction: it may land, or its row is gone, and nothing
// is given back.
func TestFS02_PayoutWhoseTransactionIsHiddenGivesNothingBack(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"BTC", "USDTERC20"} {
		for _, mined := range []bool{false, true} {
			t.Run(fmt.Sprint(currency, ", mined ", mined), func(t *testing.T) {
				t.Parallel()
				i := newInsider(t, currency)
				c, err := chain.MainnetRegistry().Currency(currency)
				require.NoError(t, err)
				world := i.chains[c.Network]
				var of withdrawal.Withdrawal
				hide := "DELETE FROM cryptopay_attempts WHERE intent = ?"
				if currency == "BTC" {
					all, member := i.together()
					of = all[slices.IndexFunc(all, func(w withdrawal.Withdrawal) bool { return w.ID == member })]
					hide = "DELETE FROM cryptopay_rides WHERE id = ?"
				} else {
					of = i.withdraw(currency, "100", world.Customer("supplier"))
					require.NoError(t, i.app.Step(t.Context()))
				}
				if mined {
					i.mine(1)
				}
				require.NoError(t, i.app.Step(t.Context()))
				i.edit(hide, of.ID)
				i.edit("UPDATE cryptopay_intents SET state = 'failed', due = 0, tx = '' WHERE id = ?", of.ID)
				i.edit("UPDATE cryptopay_outcomes SET state = 'failed', tx = '', due = 1 WHERE id = ?", of.ID)
				for range 3 {
					i.clock.Advance(time.Minute)
					_ = i.app.Step(t.Context())
				}
				i.work(25)
				got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, of.ID)
				require.NoError(t, err)
				require.Equal(t, c.Decimal(of.Amount).String(), world.Balance(chain.Address(of.Address), currency).String())
				require.NotContains(t, []withdrawal.Status{withdrawal.Failed, withdrawal.Cancelled}, got.Status)
				require.Contains(t, i.log.heard(), "order_altered")
			})
		}
	}
}
