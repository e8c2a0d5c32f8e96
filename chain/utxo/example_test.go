package utxo_test

import (
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
)

func ExampleNew() {
	params, _ := utxo.Mainnet("BTC")
	client, err := utxo.New(utxo.Options{
		Network: "BTC", Params: params, Registry: chain.MainnetRegistry(),
		URL: "http://127.0.0.1:8332", User: "shop", Password: "from the environment",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := client.ParseAddress("BC1QCR8TE4KR609GCAWUTMRZA0J4XV80JY8Z306FYU")
	fmt.Println(a, err)
	_, err = client.ParseAddress("ltc1qjmxnz78nmc8nq77wuxh25n2es7rzm5c2rkk4wh")
	fmt.Println(err)
	// Output:
	// bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu <nil>
	// chain: not a BTC address: is no Bitcoin address, or has a wrong checksum
}
