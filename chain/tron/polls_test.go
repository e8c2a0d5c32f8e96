package tron

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

// TestFP07_CallsOfAPoll: what a poll costs does not depend on how many payments are open.
func TestFP07_CallsOfAPoll(t *testing.T) {
	t.Parallel()
	var m *testenv.Meter
	n := openTown(t, func(o *Options) {
		m = testenv.NewMeter(t, o.URL)
		o.URL = m.URL
	})
	ours := func(i int) chain.Address {
		h := sha256.Sum256([]byte(fmt.Sprint("ours ", i)))
		a := account(h[:len(account{})])
		return a.text()
	}
	_, err := n.client.ParseAddress(string(ours(0)))
	require.NoError(t, err)
	clienttest.SameCalls(t, clienttest.Polls{
		Client: n.client, Registry: n.registry, Meter: m, Address: ours,
		Mine: func(testing.TB) { n.Mine(1) },
		Pay: func(t testing.TB, count int) {
			for i := range count {
				n.pay(t, "", false, chaintest.Payment{To: ours(i), Currency: "USDTTRC20", Amount: decimal.NewFromInt(1)})
			}
			n.Mine(1)
		},
	}.Run(t))
}
