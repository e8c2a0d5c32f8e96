package outgoing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Many tenants have coins to merge when fees fall, and a signer is slow. A payout that is ordered then
// has at most a few merges of others before it: those are decided on while no order waits to be begun.
func TestFT04_EarlyMergesOfManyTenantsDelayNoPayout(t *testing.T) {
	t.Parallel()
	const tenants, most = 40, 4
	w := newWorld(t, narrow(10, func(c *outgoing.Config) {
		c.Batch = most
		c.Merging = map[outgoing.MergingOf]outgoing.Merging{{}: {Least: 12, Portion: 2}}
	}))
	for i := range tenants {
		for range 24 {
			d := w.key()
			tx, err := w.chain.Fund(d.Address, "BTC", cur(t, w).Decimal(coin))
			require.NoError(t, err)
			require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
				ID: "coin/" + tx, Partition: storage.Network(w.gas),
				Put: []storage.Row{outgoing.CoinRow(fmt.Sprint("m", i), chain.Coin{Outpoint: tx + ":0", Address: d.Address, Key: d.Key, Amount: coin})},
			}))
		}
	}
	w.fund(w.key(), "BTC", coin)
	average, err := w.Net.Typical(w.ctx)
	require.NoError(t, err)
	look := func() (made int) {
		for i := range tenants {
			got, err := w.Net.MergeEarly(w.ctx, fmt.Sprint("m", i), 2*average, false)
			require.NoError(t, err)
			if got.Order != "" {
				made++
			}
		}
		return made
	}
	require.Equal(t, most, look())
	in := w.submit(w.intent("a", coin/2))
	require.Zero(t, look(), "orders wait to be begun")
	for range 3 {
		require.NoError(t, w.step())
		w.advance(time.Second)
	}
	require.Equal(t, outgoing.Signed, w.state("a"))
	require.Equal(t, most, w.merges()[outgoing.Signed])
	w.comesTo("a", outgoing.Final)
	w.paid(in)
	all := 0
	for range tenants {
		all += look()
		require.NoError(t, w.step())
	}
	require.GreaterOrEqual(t, all, tenants-most, "each in its turn")
	w.run(20)
	w.sound()
}

func cur(t *testing.T, w *world) *chain.Currency {
	t.Helper()
	c, err := w.reg.Currency(w.gas)
	require.NoError(t, err)
	return c
}
