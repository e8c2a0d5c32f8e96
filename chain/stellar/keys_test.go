package stellar

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
)

// TestVectors_SEP5: the first test of the derivation's own specification.
func TestVectors_SEP5(t *testing.T) {
	t.Parallel()
	seed, err := keys.FromMnemonic("illness spike retreat truth genius clock brain pass fit cave bargain toe", "")
	require.NoError(t, err)
	source := seed.Hardened(map[chain.Network]keys.Encode{"XLM": openTown(t).client.AddressOf})
	got, err := source.Derive(t.Context(), "XLM", 0, 2)
	require.NoError(t, err)
	require.Equal(t, []chain.Derived{
		{Address: "GDRXE2BQUC3AZNPVFSCEZ76NJ3WWL25FYFK6RGZGIEKWE4SOOHSUJUJ6", Index: 0, Key: "ed25519/m/44'/148'/0'"},
		{Address: "GBAW5XGWORWVFE2XTJYDTLDHXTY2Q2MO73HYCGB3XMFMQ562Q2W2GJQX", Index: 1, Key: "ed25519/m/44'/148'/1'"},
	}, got)
}
