package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// TestFT06_AnvilCancelledPayoutPaysNobody: payouts of a coin and of a token are in a node's
// pool when an operator calls them off. At the fees of before, a transaction to ourselves takes
// the nonce of each; nobody is paid, and the payout behind them goes.
func TestFT06_AnvilCancelledPayoutPaysNobody(t *testing.T) {
	t.Parallel()
	m := openSqueeze(t, "20")
	m.pays(3)
	m.pending()
	require.Equal(t, 3, m.unmined())
	off := m.payouts[:2]
	m.payouts = m.payouts[2:]
	for _, p := range off {
		_, err := m.app.Operate.CancelTransaction(t.Context(), "ETH", p.id, cryptopay.Call{By: "somebody", Reason: "to the wrong shop"})
		require.NoError(t, err)
	}
	m.pending()
	m.pass(40, time.Minute)
	got := map[string]bool{}
	for _, tx := range m.node.all() {
		for _, a := range tx.arrived {
			got[a.to.Hex()] = true
		}
	}
	for _, p := range off {
		w := m.withdrawal(p.id)
		require.Equal(t, withdrawal.Failed, w.Status, "%s waits for %q", w.Currency, w.WaitingReason())
		require.False(t, got[p.to], "%s", w.Currency)
	}
	m.judge()
}
