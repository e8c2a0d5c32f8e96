package xrp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
)

// TestVectors_BIP44: addresses of a seed as the reference library has them, and the
// public keys behind them.
func TestVectors_BIP44(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	seed, err := keys.FromMnemonic(strings.Repeat("abandon ", 11)+"about", "")
	require.NoError(t, err)
	accounts, err := seed.Accounts(n.registry.Networks())
	require.NoError(t, err)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"XRP": n.client.AddressOf})
	require.NoError(t, err)
	got, err := source.Derive(t.Context(), "XRP", 0, 2)
	require.NoError(t, err)
	require.Equal(t, []chain.Derived{
		{Address: "rHsMGQEkVNJmpGWs8XUBoTBiAAbwxZN5v3", Index: 0, Key: "m/44'/144'/0'/0/0"},
		{Address: "r3AgF9mMBFtaLhKcg96weMhbbEFLZ3mx17", Index: 1, Key: "m/44'/144'/0'/0/1"},
	}, got)
	for _, d := range got {
		pub, err := source.PublicKey("XRP", d.Key)
		require.NoError(t, err)
		a, err := n.client.AddressOf(pub)
		require.NoError(t, err)
		require.Equal(t, d.Address, a)
	}
	for _, bad := range []chain.KeyRef{"", "m/44'/144'/0'/0/", "m/44'/144'/0'/0/01", "m/44'/144'/0'/0/2147483648", "m/44'/144'/1'/0/0", "m/44'/60'/0'/0/0"} {
		_, err := source.PublicKey("XRP", bad)
		require.Error(t, err, bad)
	}
	_, err = source.PublicKey("BTC", got[0].Key)
	require.Error(t, err)
}
