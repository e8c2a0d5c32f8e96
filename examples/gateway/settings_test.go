package main

import (
	"testing"

	"github.com/stretchr/testify/require"
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
