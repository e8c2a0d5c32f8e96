package chain_test

import (
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

// TestR06_SuggestedStepsFitTheShippedCurrencies: what is suggested is accepted for each
// currency, its middle step is what is shipped, and without a price the highest holds. What is
// shipped has no steps.
func TestR06_SuggestedStepsFitTheShippedCurrencies(t *testing.T) {
	t.Parallel()
	for _, c := range chain.Mainnet() {
		require.Empty(t, c.Steps, c.Code)
		require.Equal(t, c.Confirmations, c.Needs(decimal.Zero, false).Confirmations)
		steps := chain.SuggestedSteps(c.Network)
		if steps == nil {
			continue
		}
		c.Steps = steps
		require.NoError(t, c.CheckSteps(), c.Code)
		require.Equal(t, c.Confirmations, c.Needs(decimal.New(100, 0), true).Confirmations, c.Code)
		require.Less(t, c.Needs(decimal.New(9999, -2), true).Confirmations, c.Confirmations, c.Code)
		require.Equal(t, steps[2], c.Needs(decimal.New(10_000, 0), true), c.Code)
		require.Equal(t, steps[2], c.Needs(decimal.Zero, false), c.Code)
		require.Equal(t, steps[2].WaitFinal, c.Waits(steps[2].Confirmations), c.Code)
		require.False(t, c.Waits(steps[1].Confirmations), c.Code)
	}
}
