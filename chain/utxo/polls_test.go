package utxo

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// TestFP07_CallsOfAPoll: what a poll of btcd costs does not depend on how many payments
// are open. The client sees the transfers in the block alone, not in the mempool before.
func TestFP07_CallsOfAPoll(t *testing.T) {
	t.Parallel()
	n := btcdTown(t)
	m := testenv.NewMeter(t, n.node.URL())
	c := n.connect(t, m.URL, n.params)
	ours := func(i int) chain.Address {
		h := sha256.Sum256([]byte(fmt.Sprint("ours ", i)))
		return addressOf(t, c, scriptOf(p2wpkh, h[:20]))
	}
	rows := clienttest.Polls{
		Client: c, Registry: mainRegistry(), Meter: m, Address: ours,
		Mine: func(t testing.TB) { n.mine(t, 1) },
		Pay: func(t testing.TB, count int) {
			for i := range count {
				n.pay(t, chaintest.Payment{To: ours(i), Amount: decimal.RequireFromString("0.001")})
			}
			n.mine(t, 1)
		},
	}.Run(t)
	clienttest.SameCalls(t, rows)
	for i, r := range rows {
		if r.Found == "an empty block" {
			require.LessOrEqual(t, r.Calls-rows[i-1].Calls, 5, "no height above the head is asked for: %v", r.Methods)
		}
	}
}
