package treasury_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// A process sleeps after it decided on a sweep's gas transfer. Another one finds that the
// operator's coins do not cover it, so that it is no transfer of the sweep any more. The first
// process wakes once they do, sets the cost aside and dies before it hands the transfer over.
// The address gets gas by other means: once the sweep has landed, the cost is given back.
func TestW02_GasThatCouldNotBePaidForIsCalledOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	p := w.pay("USDTERC20", "300")
	w.mine(40)
	require.Empty(t, w.intents(chain.ForGas))
	rows, err := w.store.Find(t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network("ETH"), Limit: 1})
	require.NoError(t, err)
	require.Equal(t, 0, treasury.Sweeps.Value(rows[0]).Fundings)
	require.Equal(t, treasury.SweepDeferred, treasury.Sweeps.Value(rows[0]).State)
	late := "gas/1/" + rows[0].ID
	float, at, _, err := treasury.GasFloats.One(t.Context(), w.store, storage.Tenant(w.tenant), "ETH")
	require.NoError(t, err)
	float.Asset, float.Reserved, float.Count = "ETH", float.Reserved+1000, float.Count+1
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "late", Partition: storage.Tenant(w.tenant), Put: []storage.Row{
			treasury.GasFloats.Row("ETH", at.Version, time.Time{}, float),
			treasury.Reservations.Row(late, 0, time.Time{}, treasury.Reservation{Asset: "ETH", Amount: 1000, Since: w.clock.Now(), Open: true}),
		},
	}))
	_, err = w.chain.Fund(chain.Address(p.Address), "ETH", dec("0.01"))
	require.NoError(t, err)
	w.mine(30)
	w.hours(4)
	w.fund("1")
	w.hours(4)
	w.mine(30)
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}
