package treasury_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

var paused = sim.Behaviour{Paused: true}

func TestTopUpAndItsReversal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	tx, err := w.chain.Fund(w.hot, "ETH", dec("1"))
	require.NoError(t, err)
	w.mine(10)
	require.True(t, w.posted(ledger.Float, "ETH").IsZero(), "not final yet")
	w.mine(10)
	require.Equal(t, "1", w.posted(ledger.Float, "ETH").String())
	_, err = w.chain.Reorg(21, tx)
	require.NoError(t, err)
	w.mine(3)
	require.True(t, w.posted(ledger.Float, "ETH").IsZero())
	w.conserved("ETH")
	require.NoError(t, w.chain.Resend(tx))
	w.mine(20)
	require.Equal(t, "1", w.posted(ledger.Float, "ETH").String(), "mined again")
	w.conserved("ETH")
}

// A deep fork that takes a top-up away and mines it again, while nothing can be
// booked: that it was gone is never told.
func TestTopUpMinedAgainIsBookedOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []string{"ETH", "BTC"} {
		t.Run(n, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, networkOf(n))
			_, err := w.chain.Fund(w.hot, n, dec("1"))
			require.NoError(t, err)
			w.mine(20)
			require.Equal(t, "1", w.posted(ledger.Float, n).String())
			_, err = w.chain.Reorg(21)
			require.NoError(t, err)
			w.store.refuse = storage.Tenant(w.tenant)
			w.mine(1)
			w.store.refuse = ""
			w.clock.Advance(10 * time.Minute)
			w.mine(30)
			require.Equal(t, "1", w.posted(ledger.Float, n).String())
			w.conserved(n)
		})
	}
}

// An output that a deep fork took away is not spent, and is again when it is
// back.
func TestLostCoinIsNotSpent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	p := w.pay("BTC", "300")
	w.mine(10)
	tx := w.chain.Transfers(chain.Address(p.Address))[0].Tx
	require.Equal(t, outgoing.CoinFree, w.coins()[0].State)
	_, err := w.chain.Reorg(10, tx)
	require.NoError(t, err)
	w.mine(3)
	require.Equal(t, outgoing.CoinGone, w.coins()[0].State)
	require.NoError(t, w.chain.Resend(tx))
	w.mine(10)
	require.Len(t, w.coins(), 1)
	require.Equal(t, outgoing.CoinFree, w.coins()[0].State)
	w.conserved("BTC")
}

func (w *world) coins() (out []outgoing.CoinValue) {
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: outgoing.Coins.Table, Partition: storage.Network(string(w.n))})
	require.NoError(w.t, err)
	for _, r := range rows {
		out = append(out, outgoing.Coins.Value(r))
	}
	return out
}

// A deep fork takes the output away that a payout is being paid with. Where the
// customer spent it elsewhere for good, the payout goes on with other coins;
// where it comes back, with what was signed. It is paid once in any case.
func TestR03_PayoutOfALostCoinIsPaidOnce(t *testing.T) {
	t.Parallel()
	for _, twice := range []bool{false, true} {
		t.Run(fmt.Sprint("spent twice=", twice), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "BTC")
			w.mine(5)
			p := w.pay("BTC", "300")
			w.mine(10)
			w.fund("0.001")
			tx := w.chain.Transfers(chain.Address(p.Address))[0].Tx
			to := w.chain.Customer("supplier")
			amount := dec("200")
			v, err := w.app.Withdrawals.Create(t.Context(), w.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{PriceAmount: &amount, Currency: "BTC", Address: string(to)},
			})
			require.NoError(t, err)
			w.step()
			require.Equal(t, outgoing.Signed, w.intents(chain.ForWithdrawal)[0].State)
			_, err = w.chain.Reorg(26, append(w.chain.Transactions(true), tx)...)
			require.NoError(t, err)
			w.mine(3)
			held := 0
			for _, c := range w.coins() {
				if c.State == outgoing.CoinGone && c.Intent != "" {
					held++
				}
			}
			require.Equal(t, 1, held)
			if twice {
				_, err = w.chain.Send(sim.Tx{Replaces: tx, Payments: []sim.Payment{{To: w.chain.Customer("himself"), Currency: "BTC", Amount: dec("0.001")}}})
				require.NoError(t, err)
			}
			w.hours(2)
			_, err = w.chain.Fund(w.hot, "BTC", dec("1"))
			require.NoError(t, err)
			w.hours(2)
			if twice {
				require.Len(t, w.attempts(), 2)
			} else {
				require.Len(t, w.attempts(), 1, "it may come back")
				require.NoError(t, w.chain.Resend(tx))
				w.chain.MineOnly(tx)
				w.mine(2)
				require.True(t, slices.ContainsFunc(w.coins(), func(c outgoing.CoinValue) bool {
					return c.Intent == v.ID && c.State == outgoing.CoinReserved
				}), "it is the payout's again")
			}
			for range 4 {
				w.chain.ReviveAll()
				w.hours(2)
			}
			v, err = w.app.Withdrawals.Get(t.Context(), w.tenant, v.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, v.Status, v.Waiting)
			require.Equal(t, w.currency("BTC").Decimal(v.Amount).String(), w.chain.Balance(to, "BTC").String())
			w.conserved("BTC")
			w.released()
		})
	}
}

// The change of a payout that was final is gone and comes back with it.
func TestR03_LostChangeIsNotSpent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	w.pay("BTC", "300")
	w.mine(10)
	w.fund("0.001")
	amount := dec("200")
	_, err := w.app.Withdrawals.Create(t.Context(), w.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: &amount, Currency: "BTC", Address: string(w.chain.Customer("supplier"))},
	})
	require.NoError(t, err)
	w.mine(8)
	payout := outgoing.Attempts.Value(w.attempts()[0])
	require.Equal(t, outgoing.AttemptFinal, payout.State)
	change := func() outgoing.CoinState {
		for _, c := range w.coins() {
			if c.Address == payout.ChangeTo.Address {
				return c.State
			}
		}
		return ""
	}
	require.Equal(t, outgoing.CoinFree, change())
	tx := w.attempts()[0].ID
	_, err = w.chain.Reorg(9, tx)
	require.NoError(t, err)
	w.mine(1)
	require.Equal(t, outgoing.CoinGone, change())
	w.mine(8) // the payout is sent again
	require.Equal(t, outgoing.CoinFree, change())
}

// That a deposit is gone is told once more when it is back already.
func TestR03_LateWordOfALossIsNotTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	p := w.pay("BTC", "300")
	w.mine(10)
	rows, err := w.store.Find(t.Context(), storage.Query{Table: incoming.Sightings.Table, Partition: storage.Network("BTC")})
	require.NoError(t, err)
	old := incoming.Sightings.Value(rows[0])
	require.Equal(t, p.Address, old.Address)
	old.State = incoming.Gone
	require.NoError(t, w.app.Treasury.Lost(t.Context(), old))
	require.Equal(t, outgoing.CoinFree, w.coins()[0].State)
}

func (w *world) attempts() []storage.Row {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: outgoing.Attempts.Table, Partition: storage.Network(string(w.n)), Limit: 1000})
	require.NoError(w.t, err)
	return rows
}
