package treasury_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// What a raised bound adds is set aside of the house's own coins, once however often it is
// asked for, and not where those do not bear it, or where a
// payout is not worth it. A sweep keeps its bound.
func TestFN03_RaisedBoundIsSetAsideOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	in := chain.Intent{
		ID: "p", Purpose: chain.ForWithdrawal, Tenant: w.tenant, Network: "ETH", Currency: "USDTERC20",
		To: w.chain.Customer("payee"), Amount: 100_000000, MaxCost: 40_000, Confirmations: 1,
	}
	require.NoError(t, w.app.Treasury.Submit(t.Context(), in))
	aside := func() (reserved, of int64) {
		g := w.gas(w.tenant, "ETH")
		r, _, _, err := treasury.Reservations.One(t.Context(), w.store, storage.Tenant(w.tenant), "p")
		require.NoError(t, err)
		return int64(g.Reserved), int64(r.Amount)
	}
	is := func(want int64) {
		t.Helper()
		all, of := aside()
		require.Equal(t, []int64{want, want}, []int64{all, of})
	}
	is(40_000)
	for range 3 { // as after a crash between the two commits
		got, err := w.app.Treasury.Grant(t.Context(), in, 100_000)
		require.NoError(t, err)
		require.EqualValues(t, 100_000, got)
		is(100_000)
	}
	in.MaxCost = 100_000
	got, err := w.app.Treasury.Grant(t.Context(), in, 1e8) // 1 ETH for 100 USDT
	require.NoError(t, err)
	require.EqualValues(t, 2_500_000, got, "half of it")
	is(2_500_000)
	in.MaxCost = 2_500_000
	got, err = w.app.Treasury.Grant(t.Context(), in, 3_000_000)
	require.NoError(t, err)
	require.EqualValues(t, 2_500_000, got)

	cancel := in
	cancel.Purpose = chain.ForCancel
	_, err = w.app.Treasury.Grant(t.Context(), cancel, 2e8) // the house has 1 ETH
	short := (*treasury.WaitError)(nil)
	require.ErrorAs(t, err, &short)
	require.ErrorIs(t, err, treasury.ErrGasShort)
	is(2_500_000)

	w.unpriced = true
	w.clock.Advance(time.Hour)
	_, err = w.app.Treasury.Grant(t.Context(), in, 3_000_000)
	require.ErrorAs(t, err, &short)
	require.EqualValues(t, treasury.WaitNoPrice, short.Reason)
	w.unpriced = false

	sweep := in
	sweep.Purpose = chain.ForSweep
	got, err = w.app.Treasury.Grant(t.Context(), sweep, 1e7)
	require.NoError(t, err)
	require.Equal(t, in.MaxCost, got)

	require.ErrorIs(t, w.app.Treasury.Raise(t.Context(), w.tenant, "p", 1e9), treasury.ErrGasShort)
	is(2_500_000)
}
