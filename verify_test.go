package cryptopay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// What balances in the ledger can still be about nothing: a hold without an
// owner (L13), and a payout that no withdrawal stands behind.
func TestL13_VerifyNamesWhatNothingExplains(t *testing.T) {
	t.Parallel()
	h := newHost(t, 11, "BTC")
	master := ledger.Wallet(wallet.Master)
	post := func(tx ledger.Tx) {
		tx.At = h.clock.Now()
		require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{ID: tx.ID, Partition: storage.Tenant(h.tenant), Post: []ledger.Tx{tx}}))
	}
	post(ledger.Tx{ID: "gift", Kind: ledger.KindAdjustment, Legs: []ledger.Leg{
		{Account: ledger.Chain("BTC"), Asset: "BTC", Delta: -100}, {Account: master, Asset: "BTC", Delta: 100},
	}})
	h.sound()
	post(ledger.Tx{ID: "hold/nobody", Kind: ledger.KindWithdrawal, Ref: "nobody", Legs: []ledger.Leg{{Account: master, Asset: "BTC", Hold: 40}}})
	post(ledger.Tx{ID: "settle/stranger", Kind: ledger.KindWithdrawal, Ref: "stranger", Legs: []ledger.Leg{
		{Account: master, Asset: "BTC", Delta: -30}, {Account: ledger.Chain("BTC"), Asset: "BTC", Delta: 30},
	}})
	reports, err := h.app.Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, reports, 1)
	r := reports[0]
	require.False(t, r.Sound())
	require.Empty(t, r.Ledger.Findings, "the ledger by itself sees nothing wrong")
	require.Len(t, r.Holds, 1)
	require.EqualValues(t, 40, r.Holds[0].Held)
	require.Len(t, r.Unexplained, 1)
	require.Equal(t, "stranger", r.Unexplained[0].ID)
	require.EqualValues(t, -30, r.Unexplained[0].Posted)
}
