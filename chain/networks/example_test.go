package networks_test

import (
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/networks"
)

// A host adds a network of Ethereum's kind and a token on it. It would read a file of its own
// with networks.Read.
func ExampleParse() {
	all, err := networks.Parse("networks.yaml", []byte(`
networks:
  UNICHAIN:
    like: BASE
    name: Unichain
    chain_id: 130
    confirmations: 30
    coin: {code: ETHUNI, token: ETH, name: Ether on Unichain, min: 0.001, max: 500, dust: 0.000001}
tokens:
  USDCUNI:
    network: UNICHAIN
    token: USDC
    name: USD Coin
    contract: "0x078D782b760474a361dDA0AF3839290b0EF57AD6"
    decimals: 6
    stable: true
    min: 1
    max: 1000000
    dust: 0.01
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	o, _ := all.EVM("UNICHAIN")
	o.Registry, o.URL = all.Registry(), "http://127.0.0.1:8545"
	client, err := evm.New(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := all.Registry().Pair("UNICHAIN", "USDC")
	fmt.Println(client.Network(), c.Code, c.Confirmations, err)

	_, err = networks.Parse("networks.yaml", []byte("networks:\n  ETH:\n    max_fee: 100\n"))
	fmt.Println(err)
	// Output:
	// UNICHAIN USDCUNI 30 <nil>
	// networks.yaml:2:3: networks.ETH is a network that is there already: say `override: true` to replace the fields that follow, or choose another code
}
