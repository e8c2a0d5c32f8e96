package cryptopay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// differences lists what stands on a network.
func (h *host) differences(n chain.Network) []reconcile.DifferenceRow {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{Table: reconcile.Differences.Table, Partition: storage.Network(string(n))})
	require.NoError(h.t, err)
	var out []reconcile.DifferenceRow
	for _, r := range rows {
		out = append(out, reconcile.Differences.Value(r))
	}
	return out
}

// plant adds coins to what the books say that a deposit brought.
func (h *host) plant(n chain.Network, address, currency, coins string) {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{Table: incoming.Sightings.Table, Partition: storage.Network(string(n)), Where: []storage.Cond{
		{Column: "address", Op: storage.Eq, Value: address}, {Column: "currency", Op: storage.Eq, Value: currency},
	}})
	require.NoError(h.t, err)
	require.NotEmpty(h.t, rows)
	s := incoming.Sightings.Value(rows[0])
	s.Exact = s.Exact.Add(dec(coins))
	put := []storage.Row{incoming.Sightings.Row(rows[0].ID, rows[0].Version, rows[0].Due, s)}
	require.NoError(h.t, h.store.Commit(h.t.Context(), storage.Change{ID: "planted" + rows[0].ID + coins, Partition: storage.Network(string(n)), Put: put})[0])
}

// days lets days pass.
func (h *host) days(n int) {
	h.t.Helper()
	for range n * 24 {
		h.clock.Advance(time.Hour)
		h.mine(30)
	}
}

// TestI26_ADayOfBusinessAlarmsNobody: deposits, sweeps, gas, payouts and days of rest.
func TestI26_ADayOfBusinessAlarmsNobody(t *testing.T) {
	t.Parallel()
	h := rich(t, 61)
	h.withdraw("20", usdt)
	h.mine(60)
	h.days(2)
	require.Empty(t, h.differences("ETH"))
	require.Empty(t, h.differences("BTC"))
	rows, err := h.store.Find(t.Context(), storage.Query{Table: reconcile.Looks.Table, Partition: storage.Network("ETH"), Limit: 1000})
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	for _, r := range rows {
		v := reconcile.Looks.Value(r)
		require.Less(t, h.clock.Now().Sub(v.Looked), 26*time.Hour, "%+v", v)
		require.Empty(t, v.Waits)
	}
	h.sound()
}

// TestI26_AUnitOfDriftHaltsItsAssetAlone: the books say one unit more than the chain holds.
func TestI26_AUnitOfDriftHaltsItsAssetAlone(t *testing.T) {
	t.Parallel()
	h := rich(t, 62)
	other := h.create("50", "USDCERC20")
	h.pay(other, "USDCERC20", dec("50"))
	h.mine(60)
	require.Equal(t, payment.Completed, h.payment(other.ID).Status)
	h.days(1)
	require.Empty(t, h.differences("ETH"))

	p := h.create("30", usdt)
	h.pay(p, usdt, dec("30"))
	h.mine(1)
	h.plant("ETH", p.Address, usdt, "0.000001")
	h.mine(60)
	found := h.differences("ETH")
	rr, _ := h.store.Rows(t.Context(), reconcile.Looks.Table, storage.Keys("network/ETH", p.Address)...)
	t.Logf("LOOK %+v due %v now %v", rr[0].Value, rr[0].Due, h.clock.Now())
	require.Len(t, found, 1, "at once on an address that was touched")
	require.Equal(t, []any{p.Address, usdt, reconcile.TokenChanged, "-0.000001"}, []any{found[0].Address, found[0].Currency, found[0].Kind, found[0].Amount.String()})
	figures, err := h.app.Figures(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, figures.Alerts[cryptopay.BooksDiffer])

	waits, goes := h.withdraw("20", usdt), h.withdraw("20", "USDCERC20")
	h.mine(60)
	status := func(id string) []any {
		w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
		require.NoError(t, err)
		return []any{w.Status, w.Waiting}
	}
	require.Equal(t, []any{withdrawal.Pending, withdrawal.WaitingHalted}, status(waits))
	require.Equal(t, []any{withdrawal.Completed, ""}, status(goes))

	_, err = h.app.Operate.Lift(t.Context(), cryptopay.HaltScope{Currency: usdt, Tenant: h.tenant}, because("it is in the cold wallet"))
	require.NoError(t, err)
	h.mine(60)
	require.Equal(t, []any{withdrawal.Completed, ""}, status(waits))
	h.days(2)
	require.Empty(t, h.differences("ETH"), "it is explained")
	figures, err = h.app.Figures(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, figures.Alerts[cryptopay.BooksDiffer])
}
