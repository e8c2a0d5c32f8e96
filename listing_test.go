package cryptopay_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
)

// A currency that is listed otherwise than before would turn every stored amount
// into another one: nothing starts with it, and nothing is changed by the attempt.
func TestW18_CurrencyListedOtherwise(t *testing.T) {
	t.Parallel()
	h := newHost(t, 1, "ETH", "BSC")
	open := func(edit func(c *chain.Currency)) error {
		currencies := chain.Mainnet()
		for i := range currencies {
			if currencies[i].Code == "USDTERC20" {
				edit(&currencies[i])
			}
		}
		cfg := h.app.Config()
		cfg.Key = bytes.Repeat([]byte{7}, 32)
		var err error
		cfg.Registry, err = chain.NewRegistry(chain.Networks(), currencies)
		require.NoError(t, err)
		app, err := cryptopay.New(cfg)
		require.NoError(t, err)
		return app.Open(t.Context())
	}
	for field, edit := range map[string]func(c *chain.Currency){
		"contract": func(c *chain.Currency) { c.Contract = "0x000000000000000000000000000000000000dEaD" },
		"decimals": func(c *chain.Currency) { c.Decimals = 18 },
		"scale":    func(c *chain.Currency) { c.Scale-- },
		"network":  func(c *chain.Currency) { c.Network, c.Token = "BSC", "USDT2" },
	} {
		var wrong *cryptopay.ListingError
		require.ErrorAs(t, open(edit), &wrong, field)
		require.Equal(t, field, wrong.Field)
		require.Equal(t, "USDTERC20", wrong.Currency)
		require.Contains(t, wrong.Error(), "put it back")
	}
	require.NoError(t, open(func(c *chain.Currency) { c.Name, c.Dust = "Tether", c.Min }), "what is no amount may change")
	require.NoError(t, open(func(c *chain.Currency) {
		c.Code, c.Contract, c.Decimals = "USDTNEW", "0x000000000000000000000000000000000000dEaD", 18
	}))
	require.NoError(t, open(func(*chain.Currency) {}), "what is not listed for a while is not forgotten")
}
