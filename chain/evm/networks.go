package evm

import "github.com/cryptopay-go/cryptopay/chain"

// Networks lists the presets: chain id, fee model, finality and price limits.
// Registry and URL are to be added. A network that is not here is configured in
// the same way.
func Networks() []Options {
	return []Options{
		{Network: "ETH", ChainID: 1, FinalityTags: true, MaxFeePerGas: 500 * gwei, MinTip: gwei / 100, MaxTip: 20 * gwei},
		// Polygon's validators drop transactions that tip less than 25 gwei.
		{Network: "POLYGON", ChainID: 137, FinalityTags: true, MaxFeePerGas: 5000 * gwei, MinTip: 25 * gwei, MaxTip: 1000 * gwei},
		{Network: "BSC", ChainID: 56, FinalityTags: true, Legacy: true, MaxFeePerGas: 50 * gwei},
		{Network: "ARB", ChainID: 42161, FinalityTags: true, MaxFeePerGas: 20 * gwei, MaxTip: gwei},
		{Network: "BASE", ChainID: 8453, FinalityTags: true, L1Fee: true, MaxFeePerGas: 20 * gwei, MaxTip: gwei},
		{Network: "OPTIMISM", ChainID: 10, FinalityTags: true, L1Fee: true, MaxFeePerGas: 20 * gwei, MaxTip: gwei},
		{Network: "AVAX", ChainID: 43114, FinalityTags: true, MaxFeePerGas: 1000 * gwei, MaxTip: 50 * gwei},
	}
}

// Preset is the entry of Networks for one network.
func Preset(n chain.Network) (Options, bool) {
	for _, o := range Networks() {
		if o.Network == n {
			return o, true
		}
	}
	return Options{}, false
}
