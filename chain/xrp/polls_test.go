package xrp

import (
	"strconv"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// TestFP07_CallsOfAPoll: what a poll costs does not depend on how many payments are open.
func TestFP07_CallsOfAPoll(t *testing.T) {
	t.Parallel()
	clienttest.SameCalls(t, polls(t, -1))
}

// TestFN09_CallsOfAPollByHistories: an idle poll is two looks at ledgers and one list of the
// account that all payments share, however many there are.
func TestFN09_CallsOfAPollByHistories(t *testing.T) {
	t.Parallel()
	rows := polls(t, 10)
	clienttest.SameCalls(t, rows)
	for _, r := range rows {
		if r.Found == "an empty block" {
			require.Equal(t, 1, r.Methods["account_tx"], "%v", r)
			require.Equal(t, 4, r.Calls, "%v", r)
		}
	}
}

func polls(t *testing.T, few int) []clienttest.Poll {
	t.Helper()
	var m *testenv.Meter
	n := openTown(t, func(o *Options) {
		o.FewAddresses = few
		m = testenv.NewMeter(t, o.URL)
		o.URL = m.URL
	})
	hot := n.customer(t, "hot").Address
	n.fund(t, hot, 100)
	return clienttest.Polls{
		Client: n.client, Registry: n.registry, Meter: m,
		Address: func(i int) chain.Address {
			if i == 0 {
				return hot // which all payments share
			}
			a, err := n.client.Multiplex(hot, uint32(i))
			require.NoError(t, err)
			return a
		},
		Mine: func(testing.TB) { n.Mine(1) },
		Pay: func(t testing.TB, count int) {
			for i := range count {
				n.pay(t, hot, decimal.NewFromInt(1), strconv.Itoa(i+1))
			}
			n.Mine(1)
		},
	}.Run(t)
}
