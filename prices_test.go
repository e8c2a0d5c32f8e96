package cryptopay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// earn has a customer pay the merchant in a currency, to the end, with coins of the
// operator's for the network.
func (h *host) earn(currency, usd string) {
	h.t.Helper()
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(h.t, err)
	gas, err := chain.MainnetRegistry().Gas(c.Network)
	require.NoError(h.t, err)
	h.step()
	hot, err := h.app.Addresses.Hot(h.t.Context(), c.Network, h.tenant)
	require.NoError(h.t, err)
	_, err = h.chains[c.Network].Fund(hot.Address, gas.Code, dec("1"))
	require.NoError(h.t, err)
	h.mine(int(gas.Confirmations))
	p, err := h.app.Payments.Create(h.t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: usd, Currency: currency}})
	require.NoError(h.t, err)
	_, err = h.chains[c.Network].Pay(chain.Address(p.Address), currency, c.Decimal(p.Due))
	require.NoError(h.t, err)
	h.mine(int(c.Confirmations) + 10)
	require.Equal(h.t, payment.Completed, h.payment(p.ID).Status)
}

// TestFM02_OneGuardedPriceForEveryUse: where the source says that USDT is worth a
// cent, nothing is paid in, paid out, quoted or shown at that price.
func TestFM02_OneGuardedPriceForEveryUse(t *testing.T) {
	t.Parallel()
	h := newHost(t, 41, "ETH")
	h.rates.Set("USDT", "EUR", dec("0.9"))
	h.earn("USDTERC20", "20000")
	ctx := t.Context()
	balance := func() ledger.Amount {
		all, err := h.store.Balances(ctx, storage.Tenant(h.tenant), ledger.Wallet("master"))
		require.NoError(t, err)
		var sum ledger.Amount
		for _, b := range all {
			sum += b.Available()
		}
		return sum
	}
	before := balance()
	require.NotZero(t, before)
	pay := func(fiat string) (withdrawal.Withdrawal, error) {
		return h.app.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{Terms: withdrawal.Terms{
			PriceAmount: ptr(dec("100")), PriceCurrency: fiat, Currency: "USDTERC20", Address: string(h.chains["ETH"].Customer("supplier")),
		}})
	}
	usdt, err := h.app.Config().Registry.Currency("USDTERC20")
	require.NoError(t, err)

	for _, cents := range []string{"0.01", "0.24", "2.01", "150"} {
		h.quoted = func(r rates.Rate) rates.Rate {
			if r.Token == "USDT" {
				r.Price = dec(cents)
			}
			return r
		}
		for _, fiat := range []string{"USD", "EUR"} {
			_, err = pay(fiat)
			require.ErrorIs(t, err, rates.ErrUnavailable, "%s at %s: a withdrawal", fiat, cents)
			_, err = h.app.Config().Rates.Rate(ctx, "USDT", fiat)
			require.ErrorIs(t, err, rates.ErrUnavailable, "%s at %s: what is built on the App", fiat, cents)
			_, err = h.app.Payments.Create(ctx, h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "100", PriceCurrency: fiat, Currency: "USDTERC20"}})
			require.ErrorIs(t, err, rates.ErrUnavailable, "%s at %s: a payment", fiat, cents)
		}
		_, err = h.app.Withdrawals.Estimate(ctx, h.tenant, withdrawal.Terms{Amount: ptr(dec("100")), Currency: "USDTERC20"})
		require.ErrorIs(t, err, withdrawal.ErrFee, "at %s: the quote of a fee", cents)
		_, err = h.app.NetworkFee(ctx, usdt)
		require.ErrorIs(t, err, rates.ErrUnavailable, "at %s: what forwarding costs", cents)
		require.Equal(t, before, balance(), "nothing is held")
	}
	h.quoted = nil
	w, err := pay("USD")
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(100_000_000), w.Requested)
}
