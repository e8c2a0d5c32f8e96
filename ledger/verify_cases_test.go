package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// One unit on the wrong side of zero is a fault, as much as many: suspense never
// owes, and nobody's debt is money of theirs.
func TestFQ12_OneUnitOnTheWrongSide(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		account ledger.Account
		wrong   ledger.Amount
	}{{ledger.Suspense, -1}, {ledger.Receivable("1"), 1}} {
		t.Run(string(of.account), func(t *testing.T) {
			t.Parallel()
			for delta, want := range map[ledger.Amount][]ledger.Fault{of.wrong: {ledger.FaultSign}, -of.wrong: nil} {
				j := sound(t)
				require.NoError(t, j.post(ledger.Tx{ID: "one", Kind: ledger.KindAdjustment, Legs: []ledger.Leg{
					{Account: of.account, Asset: "ETH", Delta: delta},
					{Account: ledger.Chain("net"), Asset: "ETH", Delta: -delta},
				}}))
				require.Equal(t, want, faultsOf(t, j.books()), "%d", delta)
			}
		})
	}
}
