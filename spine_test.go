package cryptopay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// One payment in and one withdrawal out, through every room of the house.
func TestPaymentInWithdrawalOut(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"ETH", "USDTERC20", "BTC"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			inAndOut(t, memory.New(), currency)
		})
	}
}

// inAndOut is that over any store.
func inAndOut(t *testing.T, store storage.Store, currency string) {
	t.Helper()
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(t, err)
	h := newHostOn(t, store, 1, c.Network)
	ctx, world := t.Context(), h.chains[c.Network]
	h.step()

	// The operator's own coins pay the network.
	hot, err := h.app.Addresses.Hot(ctx, c.Network, h.tenant)
	require.NoError(t, err)
	gas, err := chain.MainnetRegistry().Gas(c.Network)
	require.NoError(t, err)
	_, err = world.Fund(hot.Address, gas.Code, dec("1"))
	require.NoError(t, err)
	h.mine(int(gas.Confirmations))

	p, err := h.app.Payments.Create(ctx, h.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: "300", Currency: currency}, OrderID: "order-1",
		CallbackURL: "https://shop.example/hook",
	})
	require.NoError(t, err)
	require.Equal(t, payment.Waiting, p.Status)
	_, err = world.Pay(chain.Address(p.Address), currency, c.Decimal(p.Due))
	require.NoError(t, err)
	h.step()
	p = h.payment(p.ID)
	require.Equal(t, payment.Confirming, p.Status)
	h.mine(int(c.Confirmations) + 10)
	p = h.payment(p.ID)
	require.Equal(t, payment.Completed, p.Status)
	require.Equal(t, "300.00", p.MerchantReceived())
	h.sound()

	to := world.Customer("supplier")
	w, err := h.app.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: ptr(dec("100")), Currency: currency, Address: string(to)},
	})
	require.NoError(t, err)
	before := world.Balance(to, currency)
	h.mine(int(c.Confirmations) + 30)
	w, err = h.app.Withdrawals.Get(ctx, h.tenant, w.ID)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Completed, w.Status, "waiting for %s", w.Waiting)
	require.Equal(t, c.Decimal(w.Amount).String(), world.Balance(to, currency).Sub(before).String(), "the recipient is paid once")
	h.sound()
	require.NoError(t, world.Audit())
	require.NotEmpty(t, h.inbox.got)
}

func ptr[T any](v T) *T { return &v }

func (h *host) payment(id string) payment.Payment {
	h.t.Helper()
	p, err := h.app.Payments.Get(h.t.Context(), h.tenant, id)
	require.NoError(h.t, err)
	return p
}
