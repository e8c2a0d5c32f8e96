package cardano

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/internal/bip32ed"
)

type vectors struct {
	HD struct {
		Mnemonic  string `json:"mnemonic"`
		XPub      string `json:"account_xpub_bech32"`
		Hex       string `json:"account_xpub_hex"`
		Stake     string `json:"stake_address"`
		Addresses []struct {
			Index   uint32 `json:"index"`
			Change  uint32 `json:"change"`
			Path    string `json:"path"`
			Address string `json:"address"`
			Public  string `json:"public_key"`
		} `json:"addresses"`
	} `json:"hd"`
}

func load(t testing.TB) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(b, &v))
	return v
}

// TestVectors_CIP1852: the account from the phrase and from its own public key, and
// every address, as the reference library makes them.
func TestVectors_CIP1852(t *testing.T) {
	t.Parallel()
	v := load(t).HD
	fromWords, err := FromMnemonic(v.Mnemonic, "", 0)
	require.NoError(t, err)
	fromKey, err := ParseAccount(v.XPub, 0)
	require.NoError(t, err)
	require.Equal(t, fromKey, fromWords)
	require.Equal(t, v.Hex, hex.EncodeToString(append(append([]byte{}, fromWords.key.Key[:]...), fromWords.key.Code[:]...)))
	again, err := ParseAccount(fromWords.String(), 0)
	require.NoError(t, err)
	require.Equal(t, fromKey, again)
	require.Equal(t, v.Stake, fromKey.StakeAddress())
	require.Len(t, v.Addresses, 8)
	format, ok := address.For("ADA")
	require.True(t, ok)
	for _, x := range v.Addresses {
		pub, err := fromKey.PublicKey(x.Change, x.Index)
		require.NoError(t, err)
		require.Equal(t, x.Public, hex.EncodeToString(pub), x.Path)
		a, err := fromKey.Address(x.Change, x.Index)
		require.NoError(t, err)
		require.EqualValues(t, x.Address, a, x.Path)
		info, err := format.Parse(string(a))
		require.NoError(t, err)
		require.Equal(t, a, info.Canonical)
		if x.Change == RoleExternal {
			d, err := fromKey.Derive(t.Context(), "ADA", x.Index, 1)
			require.NoError(t, err)
			require.Equal(t, []chain.Derived{{Address: a, Index: x.Index, Key: chain.KeyRef("bip32-ed25519/" + x.Path)}}, d)
		}
	}
}

func TestAccount_RefusesWhatIsNone(t *testing.T) {
	t.Parallel()
	v := load(t).HD
	_, err := FromMnemonic(strings.Replace(v.Mnemonic, "about", "abandon", 1), "", 0)
	require.ErrorIs(t, err, ErrMnemonic)
	require.NotContains(t, err.Error(), "abandon")
	_, err = FromMnemonic(v.Mnemonic, "", bip32ed.Hardened)
	require.Error(t, err)
	for _, s := range []string{"", "xpub1", v.Stake, v.Addresses[0].Address, v.XPub[:len(v.XPub)-1], strings.ToUpper(v.XPub[:9]) + v.XPub[9:]} {
		_, err := ParseAccount(s, 0)
		require.Error(t, err, s)
	}
	a, err := ParseAccount(v.XPub, 0)
	require.NoError(t, err)
	_, err = a.Address(3, 0)
	require.Error(t, err)
	_, err = a.Address(0, bip32ed.Hardened)
	require.Error(t, err, "no hardened index can be derived from a public key")
	_, err = a.Derive(t.Context(), "ADA", math.MaxUint32, 1)
	require.Error(t, err)
	_, err = a.Derive(t.Context(), "BTC", 0, 1)
	require.Error(t, err)
}

// byron is a mainnet address of before 2020, from chain/address's own vectors.
const byron = "Ae2tdPwUPEZFRbyhz3cpfC2CumGzNkFBN2L42rcUc2yjQpEkxDbkPodpMAi"

// mainnetParams are those of the main network since 2022.
var mainnetParams = params{PerByte: 44, Fixed: 155_381, MaxSize: 16_384, PerOutput: 4_310}

// TestFee: figures that the chain is full of: 168317 lovelace are 294 bytes.
func TestFee(t *testing.T) {
	t.Parallel()
	p := mainnetParams
	fee, err := p.Fee(294)
	require.NoError(t, err)
	require.EqualValues(t, 168_317, fee)
	for _, size := range []int64{0, -1, p.MaxSize + 1, math.MaxInt64} {
		_, err := p.Fee(size)
		require.Error(t, err, size)
	}
}

// TestW14_AbsurdParametersAreRefused: they come from a node.
func TestW14_AbsurdParametersAreRefused(t *testing.T) {
	t.Parallel()
	for _, change := range []func(p *params){
		func(p *params) { *p = params{} }, func(p *params) { p.PerByte = -1 }, func(p *params) { p.PerByte = 1 << 60 },
		func(p *params) { p.Fixed = math.MaxInt64 }, func(p *params) { p.PerOutput = 1 << 40 }, func(p *params) { p.MaxSize = 0 },
	} {
		p := mainnetParams
		change(&p)
		_, err := p.Fee(294)
		require.Error(t, err)
		_, err = p.least(&pay{address: []byte{headerEnterprise}})
		require.Error(t, err)
	}
}

// TestLeast: coinsPerUTxOByte for 160 bytes and those of the output: an array, a base address
// and an amount of four bytes.
func TestLeast(t *testing.T) {
	t.Parallel()
	raw, err := bytesOf(chain.Address(load(t).HD.Addresses[0].Address))
	require.NoError(t, err)
	got, err := mainnetParams.least(&pay{address: raw})
	require.NoError(t, err)
	require.EqualValues(t, 4_310*(160+1+2+57+5), got)
}
