package checkout_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
)

// TestR06_ThePageCountsWhatIsAwaited: the customer sees how many confirmations the payment's
// value needs.
func TestR06_ThePageCountsWhatIsAwaited(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"ETH"}, Configure: func(c *cryptopay.Config) {
		all := chain.Mainnet()
		for i := range all {
			if all[i].Network == "ETH" {
				all[i].Steps = chain.SuggestedSteps("ETH")
			}
		}
		registry, err := chain.NewRegistry(chain.Networks(), all)
		require.NoError(t, err)
		c.Registry = registry
	}})
	p := pages(t, h)
	for usd, want := range map[string]string{"500": "1 of 12", "20000": "1 of 64"} {
		of := h.Payment(usd, "USDTERC20")
		sends(t, h, of)
		h.Mine(1)
		require.Contains(t, shows(t, h, p, of), want, usd)
	}
	small := h.Payment("50", "USDTERC20")
	sends(t, h, small)
	h.Mine(1)
	require.Contains(t, shows(t, h, p, small), "Payment complete")
}
