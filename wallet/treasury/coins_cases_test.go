package treasury_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// sighted writes the sighting of the hot address anew.
func (w *world) sighted(f func(*incoming.Sighting)) {
	w.t.Helper()
	s := w.sighting()
	_, row, _, err := incoming.Sightings.One(w.t.Context(), w.store, storage.Network(string(w.n)), s.Key())
	require.NoError(w.t, err)
	f(&s)
	require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, storage.Change{
		ID: "sighted/" + string(s.State), Partition: storage.Network(string(w.n)),
		Put: []storage.Row{incoming.Sightings.Row(row.ID, row.Version, time.Time{}, s)},
	}))
}

// A reorg takes an output away while it is booked. What is gone is no coin.
func TestFQ11_GoneOutputIsNoCoin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	_, err := w.chain.Fund(w.hot, "BTC", dec("1"))
	require.NoError(t, err)
	gone := false
	w.at("topup/", func() {
		w.sighted(func(s *incoming.Sighting) { s.State = incoming.Gone })
		gone = true
	})
	for !gone {
		w.mine(1)
	}
	require.Empty(t, w.coins())
}

// An output comes back after a reorg, and the payout that it was reserved for has
// ended without it. A transaction that was signed for it may still be sent by
// somebody, so it is not free.
func TestFQ11_CoinOfAnEndedIntentIsDisputed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	w.fund("1")
	s := w.sighting()
	coin, row, ok, err := outgoing.Coins.One(t.Context(), w.store, storage.Network("BTC"), s.Key())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, outgoing.CoinFree, coin.State)
	coin.State, coin.Intent = outgoing.CoinGone, "ended"
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "lost", Partition: storage.Network("BTC"), Put: []storage.Row{outgoing.Coins.Row(row.ID, row.Version, time.Time{}, coin)},
	}))
	w.sighted(func(s *incoming.Sighting) { s.Forward, s.Purpose = incoming.ForwardNone, incoming.UsePayment })
	_, err = w.app.Treasury.Step(t.Context(), "BTC")
	require.NoError(t, err)
	require.Len(t, w.coins(), 1)
	require.Equal(t, outgoing.CoinDisputed, w.coins()[0].State)
}
