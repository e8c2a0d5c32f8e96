package evm

import (
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Networks lists the presets: chain id, fee model, finality and price limits, and
// where each was taken from. Registry and URL are to be added. A network that is
// not here is configured in the same way.
//
// All of them answer the tags "safe" and "finalized", and mean different things
// by them: see the Source of each. Confirmations are the currencies' own; beside
// them a currency may WaitFinal for the tag.
func Networks() []Options {
	return []Options{
		{
			// A block every 12 s; final after two epochs, 12.8 minutes and more.
			Network: "ETH", ChainID: 1, FinalityTags: true,
			MaxFeePerGas: 500 * gwei, MinTip: gwei / 100, MaxTip: 20 * gwei,
			Source: "EIP-155, EIP-1559; ethereum.org/developers/docs/consensus-mechanisms/pos, Finality",
		},
		{
			// A block every 2 s or less; final by milestone after 2 to 5 s, so that a
			// reorg is as deep as milestones are late. Validators drop what tips less
			// than 25 gwei. The log of a state sync may name a transaction that the
			// block does not list.
			Network: "POLYGON", ChainID: 137, FinalityTags: true,
			MaxFeePerGas: 5000 * gwei, MinTip: 25 * gwei, MaxTip: 1000 * gwei,
			Source: "docs.polygon.technology/pos/concepts/finality; PIP-35 (25 gwei)",
		},
		{
			// A block every 0.45 to 1.5 s; final by vote two blocks later. Without
			// votes 88 blocks are half of the validators, 120 two thirds. The base
			// fee is 0: one gas price is all there is.
			Network: "BSC", ChainID: 56, FinalityTags: true, Legacy: true,
			MaxFeePerGas: 50 * gwei,
			Source:       "docs.bnbchain.org/bnb-smart-chain/developers/json_rpc/bsc-api-list, Finality API; BEP-126, BEP-226",
		},
		{
			// A block every 0.25 s by a sequencer; final with the Ethereum block that
			// holds its batch, a quarter of an hour later. Tips are ignored, and the
			// node suggests none. What
			// eth_estimateGas says covers the data on Ethereum, whose price moves
			// before the transaction is mined: hence the margin, of which nothing
			// unused is paid.
			Network: "ARB", ChainID: 42161, FinalityTags: true,
			MaxFeePerGas: 20 * gwei, MaxTip: gwei / 100, GasMargin: 50,
			Source: "docs.arbitrum.io/how-arbitrum-works/gas-fees, Estimating gas and Tips in L2; docs.arbitrum.io/how-arbitrum-works/deep-dives/sequencer, Finality",
		},
		{
			// A block every 2 s by a sequencer; final with the Ethereum block that
			// holds its batch. The data on Ethereum is paid beside gas, and so is an
			// operator, who asks nothing at the time of writing.
			Network: "BASE", ChainID: 8453, FinalityTags: true, L1Fee: true, OperatorFee: true,
			MaxFeePerGas: 20 * gwei, MaxTip: gwei,
			Source: "docs.base.org/base-chain/network-information, Fees and Finality; specs.optimism.io/protocol/fjord/predeploys",
		},
		{
			// As BASE.
			Network: "OPTIMISM", ChainID: 10, FinalityTags: true, L1Fee: true, OperatorFee: true,
			MaxFeePerGas: 20 * gwei, MaxTip: gwei,
			Source: "docs.optimism.io/stack/transactions/fees; docs.optimism.io/stack/transactions/transaction-finality; specs.optimism.io/protocol/fjord/predeploys",
		},
		{
			// A block every 1 to 2 s. What is accepted is final, and nothing else is
			// shown: the tags are the head.
			Network: "AVAX", ChainID: 43114, FinalityTags: true,
			MaxFeePerGas: 1000 * gwei, MaxTip: 50 * gwei,
			Source: "build.avax.network/docs/api-reference/c-chain/api; ACP-176 (fees)",
		},
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

// At is New with the Preset of a network and the URL of a node of it.
func At(n chain.Network, url string) (*Client, error) {
	o, ok := Preset(n)
	if !ok {
		return nil, fmt.Errorf("evm: no preset of network %s: use New", n)
	}
	o.URL = url
	return New(o)
}
