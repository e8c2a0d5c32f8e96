package wallet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
)

func TestPlatformFees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	none, err := w.PlatformFees(w.ctx, tenant)
	require.NoError(t, err)
	require.Equal(t, []wallet.Fee{}, none)
	w.post(ledger.KindDeposit, wallet.Master, usdt, "100") // no fee is in it
	for i, fee := range []ledger.Amount{500, -200} {
		id := w.newID()
		for asset, amount := range map[ledger.Asset]ledger.Amount{"BTC": fee * 2, usdt: fee} {
			n := id + string(asset)
			require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{ID: n, Partition: storage.Tenant(tenant), Post: []ledger.Tx{{
				ID: n, Kind: ledger.KindFee, At: w.clock(), Legs: []ledger.Leg{
					{Account: ledger.FeesPlatform, Asset: asset, Delta: amount},
					{Account: ledger.Chain("TRX"), Asset: asset, Delta: -amount},
				},
			}}}), i)
		}
	}
	got, err := w.PlatformFees(w.ctx, tenant)
	require.NoError(t, err)
	require.Equal(t, []wallet.Fee{{Currency: "BTC", Amount: 600}, {Currency: usdt, Amount: 300}}, got)
	none, err = w.PlatformFees(w.ctx, "other")
	require.NoError(t, err)
	require.Empty(t, none)
}
