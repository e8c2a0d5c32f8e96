package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		bad  string
	}{
		"defaults":             {},
		"half a client":        {env: map[string]string{"CRYPTOPAY_CLIENT_ID": "a"}, bad: "CRYPTOPAY_CLIENT_SECRET"},
		"a fee in words":       {env: map[string]string{"CRYPTOPAY_TRANSACTION_FEE": "half"}, bad: "CRYPTOPAY_TRANSACTION_FEE"},
		"a withdrawal fee":     {env: map[string]string{"CRYPTOPAY_WITHDRAWAL_FEE": "0.1+1.5"}},
		"a bad withdrawal fee": {env: map[string]string{"CRYPTOPAY_WITHDRAWAL_FEE": "0.1+x"}, bad: "CRYPTOPAY_WITHDRAWAL_FEE"},
		"a network fee":        {env: map[string]string{"CRYPTOPAY_NETWORK_FEE": "estimate"}},
		"a bad network fee":    {env: map[string]string{"CRYPTOPAY_NETWORK_FEE": "-1"}, bad: "CRYPTOPAY_NETWORK_FEE"},
		"an unknown network":   {args: []string{"-networks", "ETH,MOON"}, bad: "CRYPTOPAY_NETWORKS"},
		"an unknown flag":      {args: []string{"-nonsense"}, bad: "-store"},
		"dev on real chains":   {args: []string{"-dev"}, env: map[string]string{"CRYPTOPAY_RPC_ETH": "http://node/secret-key"}, bad: "-dev"},
		"real chains":          {env: map[string]string{"CRYPTOPAY_RPC_ETH": "http://node/secret-key"}},
	} {
		s, err := readSettings(c.args, func(k string) string { return c.env[k] })
		if c.bad != "" {
			require.ErrorContains(t, err, c.bad, name)
			require.NotContains(t, err.Error(), "secret-key", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, !s.real(), s.dev, name)
	}
}

// TestRealNetworksHaveKeys: a network that is made real by its node's URL has a client,
// and addresses, whatever curve its keys are on.
func TestRealNetworksHaveKeys(t *testing.T) {
	t.Parallel()
	w := &world{registry: chain.MainnetRegistry()}
	seed, err := keys.FromBytes(make([]byte, 32))
	require.NoError(t, err)
	accounts, err := seed.Accounts(w.registry.Networks())
	require.NoError(t, err)
	encode := map[chain.Network]keys.Encode{}
	for _, n := range []chain.Network{"ETH", "BTC", "TRX", "SOL"} {
		c, err := w.dial(n, "http://127.0.0.1:1/key")
		require.NoError(t, err)
		encode[n] = c.AddressOf
	}
	source, err := (&gateway{world: w}).source(seed, accounts, encode)
	require.NoError(t, err)
	for n := range encode {
		got, err := source.Derive(t.Context(), n, 0, 2)
		require.NoError(t, err)
		require.Len(t, got, 2)
	}
	_, err = w.dial("ADA", "http://127.0.0.1:1/key")
	require.Error(t, err)
}
