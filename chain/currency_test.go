package chain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

// The codes that the interface and its decisions name, no more and no fewer.
var shipped = []string{
	"ADA", "AVAX", "BNB", "BTC", "DAIERC20", "DOGE", "ETH", "ETHARB", "ETHBASE", "ETHOPTIMISM", "LTC", "MATIC", "SOL", "TRX",
	"USDCARB", "USDCAVAX", "USDCBASE", "USDCBSC", "USDCERC20", "USDCOPTIMISM", "USDCPOLYGON", "USDCSOL",
	"USDTARB", "USDTAVAX", "USDTBASE", "USDTBSC", "USDTERC20", "USDTOPTIMISM", "USDTPOLYGON", "USDTSOL", "USDTTRC20", "XLM", "XRP",
}

func TestMainnetIsComplete(t *testing.T) {
	t.Parallel()
	r := chain.MainnetRegistry()
	require.Equal(t, shipped, r.Codes())
	for _, code := range shipped {
		c, err := r.Currency(code)
		require.NoError(t, err)
		require.NotEmpty(t, c.Source, code)
		require.True(t, c.Min.IsPositive() && c.Dust.IsPositive() && c.Dust.LessThan(c.Min), code)
		p, err := r.Pair(string(c.Network), c.Token)
		require.NoError(t, err)
		require.Same(t, c, p)
		require.Same(t, c, r.ByContract(c.Network, c.Contract))
	}
}

func TestPairTakesAliases(t *testing.T) {
	t.Parallel()
	r := chain.MainnetRegistry()
	for _, pair := range [][3]string{{"TRON", "USDT", "USDTTRC20"}, {"TRX", "USDT", "USDTTRC20"}, {"MATIC", "USDC", "USDCPOLYGON"}, {"POLYGON", "MATIC", "MATIC"}, {"ARB", "ETH", "ETHARB"}} {
		c, err := r.Pair(pair[0], pair[1])
		require.NoError(t, err)
		require.Equal(t, pair[2], c.Code)
	}
	_, err := r.Pair("tron", "USDT")
	require.ErrorIs(t, err, chain.ErrCurrency)
	_, err = r.Currency("usdttrc20")
	require.ErrorIs(t, err, chain.ErrCurrency)
}

// D03: an asset is its contract on its network; symbols and look-alikes count for nothing.
func TestD03_AssetIsTheExactContract(t *testing.T) {
	t.Parallel()
	r := chain.MainnetRegistry()
	usdt, err := r.Currency("USDTERC20")
	require.NoError(t, err)
	require.Same(t, usdt, r.ByContract("ETH", "0xdac17f958d2ee523a2206206994597c13d831ec7"))
	require.Nil(t, r.ByContract("BSC", usdt.Contract), "the same contract on another network is another asset")
	require.Nil(t, r.ByContract("ETH", "0xdAC17F958D2ee523a2206206994597C13D831ec8"))
}

func TestRegistryRefuses(t *testing.T) {
	t.Parallel()
	change := func(f func(c *chain.Currency)) []chain.Currency {
		all := chain.Mainnet()
		f(&all[0])
		return all
	}
	for name, currencies := range map[string][]chain.Currency{
		"0 confirmations":     change(func(c *chain.Currency) { c.Confirmations = 0 }),
		"scale over 8":        change(func(c *chain.Currency) { c.Scale = 9 }),
		"scale over decimals": change(func(c *chain.Currency) { c.Decimals, c.Scale = 2, 3 }),
		"unknown network":     change(func(c *chain.Currency) { c.Network = "NOPE" }),
		"code twice":          append(chain.Mainnet(), chain.Mainnet()[0]),
		"second native coin":  change(func(c *chain.Currency) { c.Code = "BTC2" }),
	} {
		_, err := chain.NewRegistry(chain.Networks(), currencies)
		require.Error(t, err, name)
	}
}

func TestPartOfARegistry(t *testing.T) {
	t.Parallel()
	part := chain.MainnetRegistry().Only("ETH", "BTC", "nowhere")
	require.Equal(t, []string{"BTC", "DAIERC20", "ETH", "USDCERC20", "USDTERC20"}, part.Codes())
	_, err := part.Network("TRON")
	require.ErrorIs(t, err, chain.ErrCurrency)
	_, err = part.Pair("ETH", "USDT")
	require.NoError(t, err)
}
