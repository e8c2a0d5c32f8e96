package e2e_test

import (
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/xrp/xrptest"
	"github.com/cryptopay-go/cryptopay/payment"
)

// TestFN04_AnAccountDeletedIntoOursStopsNobody: a stranger deletes an account into the
// account that takes all payments, and another finishes an escrow for it. Payments go on,
// and what came is in suspense.
func TestFN04_AnAccountDeletedIntoOursStopsNobody(t *testing.T) {
	t.Parallel()
	node, ok := openXRP(t).(*rippled)
	require.True(t, ok)
	s := openCounter(t, node)
	p := s.order("30")
	account, memo := s.apart(chain.Address(p.Address))
	node.Send(xrptest.Pay{To: string(account), Drops: 200_000, Kind: "AccountDelete"})
	node.Send(xrptest.Pay{To: string(account), Drops: 7_000_000, Kind: "EscrowFinish"})
	s.pay(account, memo, decimal.New(int64(p.Due), -int32(p.Scale)))
	s.blocks(2)
	require.Equal(t, payment.Completed, s.status(p))
	lost, err := s.app.Payments.Suspense(t.Context(), s.tenant, 10, 0)
	require.NoError(t, err)
	amounts := map[string]bool{}
	for _, d := range lost {
		amounts[d.Amount.Format(6, 6)] = true
	}
	require.Equal(t, map[string]bool{"0.200000": true, "7.000000": true}, amounts)
	s.sound()
}
