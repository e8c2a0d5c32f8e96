package evm_test

import (
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
)

// A shipped network has a preset. The node is asked at the first call that needs it.
func ExampleNew() {
	o, _ := evm.Preset("ETH")
	o.Registry, o.URL = chain.MainnetRegistry(), "http://127.0.0.1:8545"
	client, err := evm.New(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := client.ParseAddress("0x9858effd232b4033e47d90003d41ec34ecaeda94")
	fmt.Println(a, err)
	_, err = client.ParseAddress("0x9858EfFD232B4033E47d90003D41EC34EcaEda95")
	fmt.Println(err != nil)
	// Output:
	// 0x9858EfFD232B4033E47d90003D41EC34EcaEda94 <nil>
	// true
}

// Another network of Ethereum's kind: a Registry that lists it, and a client.
// keys.Seed.Accounts gives it a branch of its own, and Rates needs a price of its token.
func ExampleNew_anotherNetwork() {
	registry, err := chain.NewRegistry(
		append(chain.Networks(), chain.NetworkInfo{
			Code: "GNOSIS", Name: "Gnosis Chain", Family: chain.AccountFamily, AddressType: "EVM",
			Gas: "XDAI", ChainID: 100, HeadAge: 10 * time.Minute,
		}),
		append(chain.Mainnet(), chain.Currency{
			Code: "XDAI", Name: "xDAI", Network: "GNOSIS", Token: "XDAI", Decimals: 18, Scale: 8, Confirmations: 20,
			Min: decimal.NewFromInt(1), MinWithdrawal: decimal.NewFromInt(1), Dust: decimal.New(1, -2),
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := evm.New(evm.Options{Network: "GNOSIS", ChainID: 100, Registry: registry, URL: "http://127.0.0.1:8545"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.Network())
	// Output:
	// GNOSIS
}
