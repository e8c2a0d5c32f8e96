package treasury_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// A token's cost holds the sweep and the gas transfer before it, a coin's the sweep
// alone, and an output is spent where it is.
func TestForwardCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	token, gas, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
	require.NoError(t, err)
	require.Equal(t, "ETH", gas)
	coin, _, err := w.app.Treasury.ForwardCost(t.Context(), "ETH")
	require.NoError(t, err)
	require.Positive(t, coin)
	require.Greater(t, token, 3*coin)

	w.chain.SetFeeLevel(10 * w.chain.FeeLevel())
	same, _, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
	require.NoError(t, err)
	require.Equal(t, token, same, "one estimate serves for a minute")
	w.mine(5)
	dear, _, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
	require.NoError(t, err)
	require.Greater(t, dear, 5*token)

	_, _, err = w.app.Treasury.ForwardCost(t.Context(), "NONE")
	require.ErrorIs(t, err, chain.ErrCurrency)
	btc := newWorld(t, "BTC")
	cost, gas, err := btc.app.Treasury.ForwardCost(t.Context(), "BTC")
	require.NoError(t, err)
	require.Zero(t, cost)
	require.Equal(t, "BTC", gas)
}

// waiting lists what waits to be forwarded.
func (w *world) waiting() []treasury.Waiting {
	w.t.Helper()
	list, err := w.app.Treasury.Waiting(w.t.Context(), w.tenant, w.n, 1000, 0)
	require.NoError(w.t, err)
	return list
}

// waits is how many wait.
func (w *world) waits() int { return len(w.waiting()) }
