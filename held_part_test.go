package cryptopay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/payment"
)

// A small deposit at a permanent address that was credited together with another, was taken away
// by a fork, came back and is held can be released.
func TestScreen_AHeldPartIsReleasedAndTakenBack(t *testing.T) {
	t.Parallel()
	s := &screener{}
	s.always(payment.Allow, "", nil)
	h := cryptopaytest.Open(t, cryptopaytest.Options{Configure: s.configure})
	world := h.Chains["ETH"]
	a := h.PermanentAddress("ann", "USDTERC20")
	small, err := world.Pay(chain.Address(a.Address), "USDTERC20", dec("0.6"))
	require.NoError(t, err)
	_, err = world.Pay(chain.Address(a.Address), "USDTERC20", dec("0.7"))
	require.NoError(t, err)
	h.Step()
	h.Mine(14)
	require.Equal(t, "1.3", has(t, h, "USDTERC20"))
	_, err = world.Reorg(14, small)
	require.NoError(t, err)
	h.Step()
	h.Mine(14)
	require.Equal(t, "0.7", has(t, h, "USDTERC20"))
	s.always(payment.AskReview, "look", nil)
	require.NoError(t, world.Resend(small))
	h.Step()
	h.Mine(14)
	list, _, err := h.App.Payments.SuspenseList(t.Context(), h.ID, payment.SuspenseFilter{Status: payment.SuspenseOpen})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, payment.RoleHeld, list[0].Role)
	_, _, err = h.App.Operate.ReleaseSuspense(t.Context(), h.ID, list[0].ID, cryptopay.Call{By: "ann", Reason: "known"})
	require.NoError(t, err, "it can be released")
	_, err = world.Reorg(14, small)
	require.NoError(t, err)
	h.Step()
	h.Mine(2)
	_, err = h.App.Payments.SuspendedDeposit(t.Context(), h.ID, list[0].ID)
	require.ErrorIs(t, err, payment.ErrNotFound, "the chain has taken it away, and the books have it still")
}
