package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/client"
)

// TestFA08_PermanentAddress: asked for again it is the same one; its payments name it.
func TestFA08_PermanentAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, err := w.client.CreateAddress(t.Context(), client.CreateAddress{Currency: "USDTERC20", ExternalID: "ann"})
	require.NoError(t, err)
	again, err := w.client.CreateAddress(t.Context(), client.CreateAddress{Blockchain: "ETH", Token: "ETH", ExternalID: "ann"})
	require.NoError(t, err)
	require.Equal(t, a, again)
	page, err := w.client.Addresses(t.Context(), "ann", 0, 0)
	require.NoError(t, err)
	require.Equal(t, client.Addresses{Addresses: []client.Address{a}, Total: 1, Limit: 20}, page)
	w.pay(a.Address, "USDTERC20", "25")
	payments, err := w.client.Payments(t.Context(), client.PaymentFilter{})
	require.NoError(t, err)
	require.Len(t, payments.Results, 1)
	require.Equal(t, &a.AddressID, payments.Results[0].AddressID)
	require.Equal(t, "25.00000000", payments.Results[0].AmountReceived)
}
