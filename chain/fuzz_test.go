package chain_test

import (
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// FuzzCurrency: a code, a pair or a contract finds what reading the whole list
// finds, and nothing else.
func FuzzCurrency(f *testing.F) {
	r, all, networks := chain.MainnetRegistry(), chain.Mainnet(), chain.Networks()
	for _, c := range all {
		f.Add(c.Code, string(c.Network), c.Token, c.Contract)
	}
	f.Add("usdterc20", "TRON", "USDT", strings.ToLower("0xdAC17F958D2ee523a2206206994597C13D831ec7"))
	f.Add("USDT", "MATIC", "MATIC", "")
	f.Add("ETH ", "eth", "ETH\x00", "0x")
	f.Fuzz(func(t *testing.T, code, network, token, contract string) {
		var byCode, byPair *chain.Currency
		var info *chain.NetworkInfo
		for i, n := range networks {
			if string(n.Code) == network || slices.Contains(n.Aliases, network) {
				require.Nil(t, info, "two networks by one name")
				info = &networks[i]
			}
		}
		for i := range all {
			if all[i].Code == code {
				byCode = &all[i]
			}
			if info != nil && all[i].Network == info.Code && all[i].Token == token {
				byPair = &all[i]
			}
		}
		check := func(want, got *chain.Currency, err error) {
			if want == nil {
				require.Nil(t, got)
				require.ErrorIs(t, err, chain.ErrCurrency)
				return
			}
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		got, err := r.Currency(code)
		check(byCode, got, err)
		got, err = r.Pair(network, token)
		check(byPair, got, err)
		found, err := r.Network(network)
		require.Equal(t, info != nil, err == nil)
		if info == nil {
			require.ErrorIs(t, err, chain.ErrCurrency)
			return
		}
		require.Equal(t, *info, found)
		gas, err := r.Gas(info.Code)
		require.NoError(t, err)
		require.True(t, gas.Native() && gas.Network == info.Code)
		var byContract *chain.Currency
		for i := range all {
			c := &all[i]
			same := c.Contract == contract || info.AddressType == "EVM" && strings.EqualFold(c.Contract, contract)
			if c.Network == info.Code && same {
				byContract = c
			}
		}
		require.Equal(t, byContract, r.ByContract(info.Code, contract))
	})
}

// uriAmount is what a wallet would send, in whole coins, and to whom, read from
// a payment link the way wallets do.
func uriAmount(t *testing.T, c *chain.Currency, info chain.NetworkInfo, link string) (to string, coins *big.Rat, memo string) {
	u, err := url.Parse(link)
	require.NoError(t, err, link)
	q, err := url.ParseQuery(u.RawQuery)
	require.NoError(t, err, link)
	require.Empty(t, u.Fragment, link)
	for k, v := range q {
		require.Len(t, v, 1, "%s of %s", k, link)
	}
	if info.AddressType != "EVM" {
		coins, ok := new(big.Rat).SetString(q.Get("amount"))
		require.True(t, ok, link)
		require.NotContains(t, q.Get("amount"), "e")
		to = u.Opaque
		if c.Network == "XLM" {
			require.Equal(t, "web+stellar:pay", u.Scheme+":"+u.Opaque)
			to = q.Get("destination")
		}
		return to, coins, q.Get("memo") + q.Get("dt")
	}
	require.Equal(t, "ethereum", u.Scheme)
	target, call, _ := strings.Cut(u.Opaque, "/")
	account, id, ok := strings.Cut(target, "@")
	require.True(t, ok)
	require.Equal(t, strconv.FormatInt(info.ChainID, 10), id)
	key := "value"
	if to = account; !c.Native() {
		require.Equal(t, []string{c.Contract, "transfer"}, []string{account, call})
		to, key = q.Get("address"), "uint256"
	}
	units, ok := new(big.Int).SetString(q.Get(key), 10)
	require.True(t, ok, link)
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Decimals)), nil)
	return to, new(big.Rat).SetFrac(units, scale), ""
}

// FuzzPaymentURI: a wallet that reads the link pays that address that amount,
// to the last unit, with that memo; nothing that is given slips into another
// part of the link.
func FuzzPaymentURI(f *testing.F) {
	r := chain.MainnetRegistry()
	codes := r.Codes()
	for i := range codes {
		f.Add(uint8(i), "0x52908400098527886E0F7030069857D2E4169EE7", int64(123456789)<<(i%20), "m")
	}
	f.Add(uint8(0), "bitcoincash:qq&amount=5", int64(-1), "")
	f.Add(uint8(1), "a\nb\u00e9#@:", int64(1), "&amount=1\x00\xff")
	f.Add(uint8(2), "", int64(1<<62), "12345 +%")
	f.Fuzz(func(t *testing.T, which uint8, to string, units int64, memo string) {
		c, err := r.Currency(codes[int(which)%len(codes)])
		require.NoError(t, err)
		info, err := r.Network(string(c.Network))
		require.NoError(t, err)
		link := r.PaymentURI(c, chain.Address(to), ledger.Amount(units), memo)
		if link == "" {
			require.True(t, units < 0 || !wordlike(to), "no link to %q", to)
			return
		}
		require.GreaterOrEqual(t, units, int64(0))
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Scale)), nil)
		want := new(big.Rat).SetFrac(big.NewInt(units), scale)
		at, coins, said := uriAmount(t, c, info, link)
		require.Equal(t, to, at, link)
		require.Zero(t, want.Cmp(coins), "%s is not %s", link, want.RatString())
		if info.AddressType != "EVM" {
			require.Equal(t, memo, said, link)
		}
	})
}

// wordlike: letters and digits alone, as the addresses of all networks are.
func wordlike(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}
