package incoming_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
)

var background = context.Background()

func TestStep_SeenIncludedFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 1)
	w.step()
	a := w.address()
	tx := w.pay(a, "ETH", "1.5000000000000000019")
	seen := w.clock.Now().Add(time.Second)
	w.step()
	s := w.one(tx)
	require.Equal(t, incoming.Seen, s.State)
	require.Equal(t, seen, s.FirstSeen)
	require.Zero(t, s.Height)

	for i := int64(1); i <= confs; i++ {
		w.mine(1)
		w.step()
		s = w.one(tx)
		require.Equal(t, i, s.Confirmations(w.chain.Height()))
		require.Equal(t, i == confs, s.State == incoming.Final, "at %d confirmations", i)
	}
	require.Equal(t, incoming.Sighting{
		Network: "ETH", Tx: tx, Ordinal: -1, Generation: 1, State: incoming.Final, Address: string(a), Tenant: shop,
		Purpose: incoming.UsePayment, From: s.From, Currency: "ETH", Exact: dec("1.500000000000000001"), Amount: 150000000,
		Height: s.Height, BlockHash: s.BlockHash, BlockTime: s.BlockTime, FinalAt: s.Height + confs - 1, FirstSeen: seen, Spends: s.Spends,
	}, normal(s))
	require.Len(t, s.Spends, 1)
	require.Equal(t, map[string]ledger.Amount{s.Generated(): 150000000}, w.books)
	// Told three times: seen, included, final. Nothing is due any more.
	require.Len(t, w.facts, 3)
	w.clock.Advance(time.Hour)
	w.step()
	require.Len(t, w.facts, 3)
}

func normal(s incoming.Sighting) incoming.Sighting {
	s.Exact = dec(s.Exact.String())
	return s
}
