package stellar

import (
	"strconv"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// TestFP07_CallsOfAPoll: what a poll costs depends neither on how many payments are open nor, but for pages, on
// how many transfers a ledger has.
func TestFP07_CallsOfAPoll(t *testing.T) {
	t.Parallel()
	rows := polls(t, -1)
	clienttest.SameCalls(t, rows)
	for _, r := range rows {
		require.LessOrEqual(t, r.Requests, 4+2*5, "what somebody pays in many transactions does not cost as many requests: %s", r.Found)
	}
}

// TestFN09_CallsOfAPollByHistories: an idle poll is looks at ledgers and one at the account that
// all payments share, however many there are.
func TestFN09_CallsOfAPollByHistories(t *testing.T) {
	t.Parallel()
	rows := polls(t, 10)
	clienttest.SameCalls(t, rows)
	for _, r := range rows {
		if r.Found == "an empty block" {
			require.Equal(t, 4, r.Requests, "%v", r)
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
		Client: n.client, Registry: n.registry, Meter: m, Transfers: []int{1, 100, 900},
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
				n.Send(payment(hot, decimal.NewFromInt(1), strconv.Itoa(i+1)))
			}
			n.Mine(1)
		},
	}.Run(t)
}
