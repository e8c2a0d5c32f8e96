package keys_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
)

// A process that shows addresses needs the xpubs alone; the seed stays where
// the signer is.
func ExampleNewSource() {
	seed, err := keys.FromMnemonic(strings.Repeat("abandon ", 11)+"about", "") // never use this one
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := seed.Accounts([]chain.NetworkInfo{{Code: "ETH", AddressType: "EVM", ChainID: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(accounts[0].Path, accounts[0].XPub[:12]+"…")

	// Elsewhere. The encoder is the network's chain.Client: client.AddressOf.
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": evmAddress})
	if err != nil {
		fmt.Println(err)
		return
	}
	addresses, err := source.Derive(context.Background(), "ETH", 0, 2)
	for _, a := range addresses {
		fmt.Println(a.Index, a.Address, a.Key)
	}
	fmt.Println(seed, err)
	// Output:
	// m/44'/60'/0' xpub6DCoCpSu…
	// 0 0x9858EfFD232B4033E47d90003D41EC34EcaEda94 m/44'/60'/0'/0/0
	// 1 0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0 m/44'/60'/0'/0/1
	// *** <nil>
}

func ExampleSeed_Save() {
	dir, err := os.MkdirTemp("", "keys")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file, passphrase := filepath.Join(dir, "seed.json"), []byte("at least twelve bytes")

	seed, err := keys.FromBytes(make([]byte, 32))
	if err != nil {
		fmt.Println(err)
		return
	}
	random := rand.NewChaCha8([32]byte{}) // in earnest crypto/rand.Reader
	fmt.Println(seed.Save(file, passphrase, random))
	_, err = keys.Load(file, passphrase)
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
}
