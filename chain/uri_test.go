package chain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

func TestPaymentURI(t *testing.T) {
	t.Parallel()
	r := chain.MainnetRegistry()
	for _, row := range []struct {
		currency string
		to       chain.Address
		amount   string
		memo     string
		want     string
	}{
		{"BTC", "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu", "0.0012", "", "bitcoin:bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu?amount=0.00120000"},
		{"ETH", "0x9858EfFD232B4033E47d90003D41EC34EcaEda94", "0.05", "", "ethereum:0x9858EfFD232B4033E47d90003D41EC34EcaEda94@1?value=50000000000000000"},
		{
			"USDTERC20", "0x9858EfFD232B4033E47d90003D41EC34EcaEda94", "12.5", "",
			"ethereum:0xdAC17F958D2ee523a2206206994597C13D831ec7@1/transfer?address=0x9858EfFD232B4033E47d90003D41EC34EcaEda94&uint256=12500000",
		},
		{"USDTSOL", "HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk", "1", "", "solana:HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk?amount=1.000000&spl-token=Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB"},
		{"XRP", "rDEumPYhZSMDMRxM7NmNPkdgZy5SwXy5QR", "3", "17", "ripple:rDEumPYhZSMDMRxM7NmNPkdgZy5SwXy5QR?amount=3.000000&dt=17"},
		{"BTC", "bc1q?amount=9", "1", "", ""},
		{"AVAX", "\x7f", "1", "", ""},
		{"ETH", "a@2", "1", "", ""},
		{"BTC", "", "1", "", ""},
	} {
		c, err := r.Currency(row.currency)
		require.NoError(t, err)
		a, err := ledger.ParseAmount(row.amount, c.Scale)
		require.NoError(t, err)
		require.Equal(t, row.want, r.PaymentURI(c, row.to, a, row.memo))
	}
}
