package cryptopay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
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
