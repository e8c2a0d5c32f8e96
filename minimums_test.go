package cryptopay_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// A process that does not list a currency leaves its minimum and its samples as they are.
func TestFM09_MinimumsOfCurrenciesThatOthersList(t *testing.T) {
	t.Parallel()
	h := newHost(t, 34, "ETH")
	stored := func() cryptopay.Minimum {
		m, _, _, err := cryptopay.Minimums.One(t.Context(), h.store, storage.System, "ETH")
		require.NoError(t, err)
		return m
	}
	h.mine(2)
	was := stored()
	require.Positive(t, was.Least[usdt])
	require.Positive(t, was.Least["USDCERC20"])

	other := h.beside(without(t, usdt, false))
	h.clock.Advance(11 * time.Minute)
	require.NoError(t, other.Step(t.Context()))
	now := stored()
	require.Len(t, now.Samples["USDCERC20"], len(was.Samples["USDCERC20"])+1, "the other process has sampled")
	require.Equal(t, was.Least[usdt], now.Least[usdt])
	require.Equal(t, was.Samples[usdt], now.Samples[usdt])
}

// A host's minimums are asked beside the App's. The greater of the two counts.
func TestFM09_TheGreaterOfTheAppsAndTheHostsMinimumsCounts(t *testing.T) {
	t.Parallel()
	h := newHost(t, 36, "ETH")
	h.chains["ETH"].SetFeeLevel(100 * h.chains["ETH"].FeeLevel())
	h.mine(2)
	var currencies []*chain.Currency
	for _, code := range []string{usdt, "USDCERC20"} {
		c, err := h.app.Config().Registry.Currency(code)
		require.NoError(t, err)
		currencies = append(currencies, c)
	}
	ours, err := h.app.Payments.Minimums(t.Context(), currencies...)
	require.NoError(t, err)
	require.True(t, ours["USDCERC20"].GreaterThan(currencies[1].Min))
	h.configure = func(cfg *cryptopay.Config) {
		cfg.Payments.Minimums = func(context.Context, ...*chain.Currency) (map[string]ledger.Amount, error) {
			return map[string]ledger.Amount{usdt: 3_000_000_000, "USDCERC20": 1}, nil
		}
	}
	h.restart()
	both, err := h.app.Payments.Minimums(t.Context(), currencies...)
	require.NoError(t, err)
	require.Equal(t, "3000", both[usdt].String())
	require.Equal(t, ours["USDCERC20"].String(), both["USDCERC20"].String())
}
