package chain

import (
	"slices"
	"time"

	"github.com/shopspring/decimal"
)

// Networks returns the networks that the documented interface names.
func Networks() []NetworkInfo {
	evm := func(code Network, name, gas string, id int64, aliases ...string) NetworkInfo {
		return NetworkInfo{Code: code, Name: name, Aliases: aliases, Family: AccountFamily, AddressType: "EVM", Gas: gas, ChainID: id}
	}
	networks := []NetworkInfo{
		evm("ETH", "Ethereum", "ETH", 1),
		evm("POLYGON", "Polygon PoS", "MATIC", 137, "MATIC"),
		evm("BSC", "BNB Smart Chain", "BNB", 56),
		evm("ARB", "Arbitrum One", "ETHARB", 42161),
		evm("BASE", "Base", "ETHBASE", 8453),
		evm("OPTIMISM", "OP Mainnet", "ETHOPTIMISM", 10),
		evm("AVAX", "Avalanche C-Chain", "AVAX", 43114),
		{Code: "TRX", Name: "Tron", Aliases: []string{"TRON"}, Family: AccountFamily, AddressType: "TRX", Gas: "TRX"},
		{Code: "SOL", Name: "Solana", Family: AccountFamily, AddressType: "SOL", Gas: "SOL"},
		{Code: "BTC", Name: "Bitcoin", Family: UTXOFamily, AddressType: "BTC", Gas: "BTC", MostInputs: 1_400},
		{Code: "LTC", Name: "Litecoin", Family: UTXOFamily, AddressType: "LTC", Gas: "LTC", MostInputs: 1_400},
		{Code: "DOGE", Name: "Dogecoin", Family: UTXOFamily, AddressType: "DOGE", Gas: "DOGE", MostInputs: 650},
		{Code: "XRP", Name: "XRP Ledger", Family: AccountFamily, AddressType: "XRP", Gas: "XRP", NeedsMemo: true},
		{Code: "ADA", Name: "Cardano", Family: UTXOFamily, AddressType: "ADA", Gas: "ADA", MostInputs: 100},
		{Code: "XLM", Name: "Stellar", Family: AccountFamily, AddressType: "XLM", Gas: "XLM", NeedsMemo: true},
	}
	for i := range networks {
		networks[i].HeadAge = headAge[networks[i].Code]
	}
	return networks
}

// headAge is at least 18 times the mean time between blocks: where blocks are found by
// chance, a longer pause comes once in some hundred years. The others have blocks every
// few seconds, and the bound leaves room for clocks that differ.
var headAge = map[Network]time.Duration{
	"BTC": 3 * time.Hour, "LTC": time.Hour, "DOGE": 30 * time.Minute, "ADA": 20 * time.Minute, "AVAX": 15 * time.Minute,
	"ETH": 10 * time.Minute, "POLYGON": 10 * time.Minute, "BSC": 10 * time.Minute, "ARB": 10 * time.Minute, "BASE": 10 * time.Minute,
	"OPTIMISM": 10 * time.Minute, "TRX": 10 * time.Minute, "SOL": 10 * time.Minute, "XRP": 10 * time.Minute, "XLM": 10 * time.Minute,
}

// suffix is what a token's code carries for its network.
var suffix = map[Network]string{
	"TRX": "TRC20", "ETH": "ERC20", "ARB": "ARB", "BSC": "BSC", "POLYGON": "POLYGON",
	"SOL": "SOL", "BASE": "BASE", "OPTIMISM": "OPTIMISM", "AVAX": "AVAX",
}

// confirmations is the default depth at which a deposit is final.
var confirmations = map[Network]int64{
	"BTC": 2, "LTC": 6, "DOGE": 20, "ETH": 12, "BSC": 15, "POLYGON": 64,
	"ARB": 20, "BASE": 20, "OPTIMISM": 20, "AVAX": 2, "TRX": 20, "SOL": 1,
	"XRP": 1, "XLM": 1, "ADA": 15,
}

// waitFinal lists networks whose own finality is waited for beside the depth.
var waitFinal = []Network{"TRX", "SOL"}

// Mainnet returns every shipped currency with its real contract. A host adds,
// changes or removes entries before it makes a Registry of them.
func Mainnet() []Currency {
	return slices.Concat(coins(), tether(), circle(), []Currency{
		stable("DAI", "Dai", "ETH", "0x6B175474E89094C44Da98b954EedeAC495271d0F", 18, "docs.makerdao.com, MCD_DAI in the Maker changelog"),
	})
}

func coins() []Currency {
	coin := func(code, name string, n Network, token string, decimals uint8, minimum, maximum, dust, source string) Currency {
		return with(Currency{
			Code: code, Name: name, Network: n, Token: token, Decimals: decimals, Source: source,
			Popular: code == "BTC" || code == "ETH" || code == "TRX" || code == "SOL",
		}, minimum, maximum, dust)
	}
	const wei = "ethereum.org yellow paper: 1 ether = 10^18 wei; "
	return []Currency{
		coin("BTC", "Bitcoin", "BTC", "BTC", 8, "0.0001", "10", "0.00000546", "Bitcoin Core consensus/amount.h: COIN; policy dust of P2PKH"),
		coin("ETH", "Ether", "ETH", "ETH", 18, "0.001", "500", "0.000001", wei+"mainnet"),
		coin("MATIC", "Polygon", "POLYGON", "MATIC", 18, "1", "5000000", "0.001", "docs.polygon.technology: native token, 18 decimals"),
		coin("BNB", "BNB", "BSC", "BNB", 18, "0.005", "1500", "0.00001", "docs.bnbchain.org: native token, 18 decimals"),
		coin("ETHARB", "Ether on Arbitrum", "ARB", "ETH", 18, "0.001", "500", "0.000001", wei+"docs.arbitrum.io"),
		coin("ETHBASE", "Ether on Base", "BASE", "ETH", 18, "0.001", "500", "0.000001", wei+"docs.base.org"),
		coin("ETHOPTIMISM", "Ether on Optimism", "OPTIMISM", "ETH", 18, "0.001", "500", "0.000001", wei+"docs.optimism.io"),
		coin("AVAX", "Avalanche", "AVAX", "AVAX", 18, "0.1", "50000", "0.0001", "docs.avax.network: C-Chain native token, 18 decimals"),
		coin("TRX", "Tron", "TRX", "TRX", 6, "10", "4000000", "0.1", "developers.tron.network: 1 TRX = 10^6 sun"),
		coin("SOL", "Solana", "SOL", "SOL", 9, "0.02", "7000", "0.001", "solana.com/docs: 1 SOL = 10^9 lamports"),
		coin("LTC", "Litecoin", "LTC", "LTC", 8, "0.01", "10000", "0.00005460", "Litecoin Core amount.h: COIN"),
		coin("DOGE", "Dogecoin", "DOGE", "DOGE", 8, "5", "6000000", "0.01", "Dogecoin Core amount.h: COIN; policy soft dust limit"),
		coin("XRP", "XRP", "XRP", "XRP", 6, "1", "500000", "0.001", "xrpl.org: 1 XRP = 10^6 drops"),
		coin("ADA", "Cardano", "ADA", "ADA", 6, "2", "2000000", "0.1", "docs.cardano.org: 1 ada = 10^6 lovelace"),
		coin("XLM", "Stellar Lumens", "XLM", "XLM", 7, "2", "4000000", "0.001", "developers.stellar.org: 1 lumen = 10^7 stroops"),
	}
}

func tether() []Currency {
	const name, source = "Tether USD", "tether.to/supported-protocols"
	return []Currency{
		stable("USDT", name, "TRX", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", 6, source),
		stable("USDT", name, "ETH", "0xdAC17F958D2ee523a2206206994597C13D831ec7", 6, source),
		stable("USDT", name, "ARB", "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9", 6, "docs.usdt0.to/technical-documentation/deployments"),
		stable("USDT", name, "BSC", "0x55d398326f99059fF775485246999027B3197955", 18, "bscscan.com, Binance-Peg BSC-USD"),
		stable("USDT", name, "POLYGON", "0xc2132D05D31c914a87C6611C10748AEb04B58e8F", 6, "polygonscan.com, (PoS) Tether USD"),
		stable("USDT", name, "SOL", "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB", 6, source),
		stable("USDT", name, "BASE", "0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2", 6, "basescan.org, bridged Tether USD"),
		stable("USDT", name, "OPTIMISM", "0x94b008aA00579c1307B0EF2c499aD98a8ce58e58", 6, "optimistic.etherscan.io, Tether USD"),
		stable("USDT", name, "AVAX", "0x9702230A8Ea53601f5cD2dc00fDBc13d4dF4A8c7", 6, source),
	}
}

func circle() []Currency {
	const name, source = "USD Coin", "developers.circle.com/stablecoins/usdc-contract-addresses"
	return []Currency{
		stable("USDC", name, "ETH", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", 6, source),
		stable("USDC", name, "ARB", "0xaf88d065e77c8cC2239327C5EDb3A432268e5831", 6, source),
		stable("USDC", name, "BSC", "0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d", 18, "bscscan.com, Binance-Peg USD Coin"),
		stable("USDC", name, "POLYGON", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", 6, source),
		stable("USDC", name, "SOL", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", 6, source),
		stable("USDC", name, "BASE", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", 6, source),
		stable("USDC", name, "OPTIMISM", "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85", 6, source),
		stable("USDC", name, "AVAX", "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", 6, source),
	}
}

func stable(token, name string, n Network, contract string, decimals uint8, source string) Currency {
	return with(Currency{
		Code: token + suffix[n], Name: name, Network: n, Token: token, Contract: contract,
		Decimals: decimals, Stable: true, Popular: token == "USDT", Source: source,
	}, "1", "1000000", "0.01")
}

// with fills what is the same for every shipped currency.
//
// Maximums are worth about 1,000,000 USD at the prices of 2026: hosts set their own
// where prices have moved.
func with(c Currency, minimum, maximum, dust string) Currency {
	c.Max = decimal.RequireFromString(maximum)
	c.Min, c.MinWithdrawal = decimal.RequireFromString(minimum), decimal.RequireFromString(minimum)
	c.Dust = decimal.RequireFromString(dust)
	c.Scale = min(8, c.Decimals)
	c.Confirmations = confirmations[c.Network]
	c.WaitFinal = slices.Contains(waitFinal, c.Network)
	return c
}

// MainnetRegistry is a Registry of Networks and Mainnet.
func MainnetRegistry() *Registry {
	r, err := NewRegistry(Networks(), Mainnet())
	if err != nil {
		panic(err) // the shipped data is tested
	}
	return r
}
