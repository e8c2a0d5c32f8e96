package cryptopay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
)

// D17: money that comes to an old address is not lost: it is found, booked to
// suspense, and finding it again changes nothing.
func TestD17_RecoverDepositsIsIdempotent(t *testing.T) {
	t.Parallel()
	h := newHost(t, 12, "BTC")
	p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "120", Currency: "BTC"}})
	require.NoError(t, err)
	h.clock.Advance(2 * time.Hour)
	h.mine(3)
	require.Equal(t, payment.Expired, h.payment(p.ID).Status)
	_, err = h.chains["BTC"].Pay(chain.Address(p.Address), "BTC", dec("0.002"))
	require.NoError(t, err)
	h.mine(4)
	before, err := h.app.Payments.Suspense(t.Context(), h.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, before, 1)

	found, err := h.app.RecoverDeposits(t.Context(), "BTC", chain.Address(p.Address), 1, 0)
	require.NoError(t, err)
	require.Zero(t, found, "it is known already")
	h.step()
	after, err := h.app.Payments.Suspense(t.Context(), h.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, after, 1)
	h.sound()

	s, err := h.app.NetworkStatus(t.Context(), "BTC")
	require.NoError(t, err)
	require.Equal(t, h.chains["BTC"].Height(), s.Head)
	_, err = h.app.NetworkStatus(t.Context(), "ETH")
	require.ErrorIs(t, err, chain.ErrCurrency)
	require.Error(t, h.app.ResumeNetwork(t.Context(), "ETH", 1))
}

// An operator tells where to go on; never back, and on no network that is not here.
func TestL14_AdoptedNonces(t *testing.T) {
	t.Parallel()
	h := newHost(t, 9, "ETH")
	h.step()
	hot, err := h.app.Hot(t.Context(), "ETH", h.tenant)
	require.NoError(t, err)
	require.NoError(t, h.app.AdoptNonce(t.Context(), "ETH", hot, 3))
	require.NoError(t, h.app.AdoptNonce(t.Context(), "ETH", hot, 5))
	require.Error(t, h.app.AdoptNonce(t.Context(), "ETH", hot, 4))
	require.ErrorIs(t, h.app.AdoptNonce(t.Context(), "BTC", hot, 1), chain.ErrCurrency)
}
