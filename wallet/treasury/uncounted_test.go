package treasury_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// A process sleeps after it decided on a sweep's gas transfer. Another one finds that the
// operator's coins do not cover it, so that it is no transfer of the sweep any more; the
// address gets gas by other means, and the sweep lands. The first process wakes, sets the
// cost aside and dies before it hands the transfer over: that is given back.
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
	_, err = w.chain.Fund(chain.Address(p.Address), "ETH", dec("0.01"))
	require.NoError(t, err)
	w.hours(2)
	w.mine(30)
	w.hours(2)
	w.fund("1")
	w.hours(2)
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	late := chain.Intent{
		ID: "gas/1/" + rows[0].ID, Purpose: chain.ForGas, Tenant: w.tenant, Network: w.n, Currency: "ETH",
		To: chain.Address(p.Address), Amount: 5000, Confirmations: 1,
	}
	w.store.fail = func(c *storage.Change) bool {
		w.store.dead = strings.HasPrefix(c.ID, "out/submit/")
		return w.store.dead
	}
	require.Error(t, w.app.Treasury.Submit(t.Context(), late))
	w.hours(4)
	w.mine(30)
	w.conserved("ETH", "USDTERC20")
	w.released()
}
