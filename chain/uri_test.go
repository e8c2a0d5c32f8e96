package chain_test

import (
	"math/big"
	"net/url"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
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

// opened is what a wallet reads in a link, by the standard of its scheme.
type opened struct {
	to, contract, memo string
	chainID            string
	amount             decimal.Decimal
}

// wallet reads a link as its standard says: BIP21 and those like it, Solana Pay,
// SEP-7, CIP-13, EIP-681.
func wallet(t *testing.T, c *chain.Currency, uri string) opened {
	t.Helper()
	scheme, rest, ok := strings.Cut(uri, ":")
	require.True(t, ok, uri)
	path, query, _ := strings.Cut(rest, "?")
	require.NotContains(t, query, "+", "a plus is a plus outside of forms")
	q, err := url.ParseQuery(query)
	require.NoError(t, err)
	for key, values := range q {
		require.Len(t, values, 1, key)
	}
	if scheme == "ethereum" {
		target, call, _ := strings.Cut(path, "/")
		o := opened{to: target}
		o.to, o.chainID, _ = strings.Cut(target, "@")
		units := q.Get("value")
		if call != "" {
			require.Equal(t, "transfer", call)
			o.contract, o.to, units = o.to, q.Get("address"), q.Get("uint256")
		}
		n, ok := new(big.Int).SetString(units, 10)
		require.True(t, ok, uri)
		o.amount = decimal.NewFromBigInt(n, -int32(c.Decimals))
		return o
	}
	o := opened{to: path, memo: q.Get("memo"), contract: q.Get("spl-token") + q.Get("token")}
	switch scheme {
	case "ripple":
		o.memo = q.Get("dt")
	case "web+stellar":
		require.Equal(t, "pay", path)
		o.to = q.Get("destination")
	}
	o.amount, err = decimal.NewFromString(q.Get("amount"))
	require.NoError(t, err, uri)
	require.NotContains(t, strings.ToLower(q.Get("amount")), "e", "no exponents")
	return o
}

// TestPaymentURIIsReadBackExactly: every shipped currency, amounts from the
// smallest unit up.
func TestPaymentURIIsReadBackExactly(t *testing.T) {
	t.Parallel()
	r := chain.MainnetRegistry()
	schemes := map[chain.Network]string{
		"BTC": "bitcoin", "LTC": "litecoin", "DOGE": "dogecoin", "SOL": "solana", "TRX": "tron", "XRP": "ripple", "ADA": "web+cardano", "XLM": "web+stellar",
	}
	for _, c := range chain.Mainnet() {
		info, err := r.Network(string(c.Network))
		require.NoError(t, err)
		memos := []string{""}
		if info.NeedsMemo {
			memos = append(memos, "4294967295")
		}
		if c.Network == "SOL" || c.Network == "XLM" {
			memos = append(memos, "order 17 & more + =?#%")
		}
		for _, amount := range []ledger.Amount{0, 1, 10, 99, 100_000_000, 123_456_789_012_345_678, 1 << 62} {
			for _, memo := range memos {
				uri := r.PaymentURI(&c, "SomeAddress123", amount, memo)
				scheme := schemes[c.Network]
				if info.ChainID > 0 {
					scheme = "ethereum"
				}
				require.True(t, strings.HasPrefix(uri, scheme+":"), uri)
				got := wallet(t, &c, uri)
				require.Equal(t, "SomeAddress123", got.to, uri)
				require.Equal(t, c.Contract, got.contract, uri)
				require.True(t, c.Decimal(amount).Equal(got.amount), "%s: %s", uri, got.amount)
				require.Equal(t, memo, got.memo, uri)
				if info.ChainID > 0 {
					require.Equal(t, decimal.NewFromInt(info.ChainID).String(), got.chainID)
				}
			}
		}
	}
}
