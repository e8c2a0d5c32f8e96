package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/payment"
)

const supplier = "0x000000000000000000000000000000000000bEEF"

// flow is one payment in and one withdrawal out, with everything in between.
func flow(t *testing.T, n *node, currency string) *host {
	t.Helper()
	h := newHost(t, n)
	p := h.order("300", currency)
	n.pay(p.Address, currency, h.due(p))
	h.mine(1)
	require.Equal(t, payment.Confirming, h.payment(p.ID).Status)
	require.Equal(t, "0", h.available(currency), "nothing is credited before its confirmations")
	h.completed(p)
	require.Equal(t, "300.00", h.payment(p.ID).MerchantReceived())
	h.until("swept", func() bool { return n.holds(p.Address, currency).LessThan(dec("0.0001")) })
	h.sound("deposit_received", "payment_status_update:confirming", "payment_status_update:confirmed", "payment_status_update:completed")

	w := h.withdraw("100", currency, supplier)
	w = h.paidOnce(w, supplier)
	require.Len(t, h.attempts(), 1)
	require.EqualValues(t, 1, n.receipt(w.Tx).Status)
	h.sound("withdrawal_status_update:completed")
	return h
}

func TestAnvilPaymentInWithdrawalOut(t *testing.T) {
	t.Parallel()
	for name, currency := range map[string]string{"Ether": "ETH", "PlainToken": "USDCERC20", "TokenWithoutReturnValue": "USDTERC20"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flow(t, openAnvil(t, usual), currency)
		})
	}
}

func TestGethPaymentInWithdrawalOut(t *testing.T) {
	t.Parallel()
	for name, currency := range map[string]string{"Ether": "ETH", "PlainToken": "USDCERC20"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flow(t, openGeth(t, usual), currency)
		})
	}
}
