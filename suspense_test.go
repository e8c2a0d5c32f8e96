package cryptopay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// A decision about money in suspense is kept with who and why, and the host hears of it. A dry
// run decides nothing.
func TestFM04_DecisionsAreRecordedAndTold(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	h.Customer.PaysLate(h.Payment("25", "USDTERC20"))
	h.Customer.PaysLate(h.Payment("30", "USDTERC20"))
	waiting := func() []payment.Deposit {
		list, err := h.App.Payments.Suspense(t.Context(), h.ID, 10, 0)
		require.NoError(t, err)
		return list
	}
	all := waiting()
	require.Len(t, all, 2)
	ann := cryptopay.Call{By: "ann", Reason: "ticket 42"}

	_, _, err := h.App.Operate.CreditSuspense(t.Context(), h.ID, all[0].ID, "", cryptopay.Call{By: "ann"})
	require.ErrorContains(t, err, "Reason")
	dry := ann
	dry.DryRun = true
	d, id, err := h.App.Operate.CreditSuspense(t.Context(), h.ID, all[0].ID, "", dry)
	require.NoError(t, err)
	require.Empty(t, id)
	require.Equal(t, payment.InSuspense, d.Booking)
	require.Len(t, waiting(), 2)

	d, credited, err := h.App.Operate.CreditSuspense(t.Context(), h.ID, all[0].ID, "", ann)
	require.NoError(t, err)
	require.Equal(t, payment.Resolved, d.Booking)
	_, ignored, err := h.App.Operate.IgnoreSuspense(t.Context(), h.ID, all[1].ID, ann)
	require.NoError(t, err)
	require.Empty(t, waiting())
	_, _, err = h.App.Operate.CreditSuspense(t.Context(), h.ID, all[1].ID, "", ann)
	var state *payment.StateError
	require.ErrorAs(t, err, &state, "it was decided")
	balances, err := h.App.Wallets.Balances(t.Context(), h.ID, wallet.Master)
	require.NoError(t, err)
	require.Len(t, balances[wallet.Master], 1)
	require.Equal(t, all[0].Amount, balances[wallet.Master][0].Amount)

	kept, err := h.App.Operate.List(t.Context(), "", 10, 0)
	require.NoError(t, err)
	var ids []string
	for _, o := range kept {
		require.Equal(t, []string{"ann", "ticket 42", h.ID}, []string{o.By, o.Reason, o.Tenant})
		ids = append(ids, o.ID)
	}
	require.ElementsMatch(t, []string{credited, ignored}, ids)
	h.Settle()
	var told []outgoing.OperationKind
	for _, e := range h.Events() {
		if b, ok := e.Body.(outgoing.Operated); ok {
			told = append(told, b.Operation)
		}
	}
	require.Equal(t, []outgoing.OperationKind{outgoing.OpCreditSuspense, outgoing.OpIgnoreSuspense}, told)
	h.Verify()
}
