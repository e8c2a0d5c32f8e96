package treasury_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
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
	require.Equal(t, outgoing.CoinDisputed, w.coins()[0].State)
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
