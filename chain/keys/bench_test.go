package keys_test

import (
	"testing"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
)

// BenchmarkDerive compares the public derivation of one child with that of
// hdkeychain, on one core and without the address's own encoding.
func BenchmarkDerive(b *testing.B) {
	xpub, err := newSeed(b).XPub("m/84'/0'/0'")
	require.NoError(b, err)
	b.Run("ours", func(b *testing.B) {
		s, err := keys.NewSource([]keys.Account{{Network: "BTC", Path: "m/84'/0'/0'", XPub: xpub}},
			map[chain.Network]keys.Encode{"BTC": func(chain.PublicKey) (chain.Address, error) { return "", nil }})
		require.NoError(b, err)
		i := uint32(0)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Derive(b.Context(), "BTC", i, 1); err != nil {
				b.Fatal(err)
			}
			i++
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "keys/s")
	})
	b.Run("hdkeychain", func(b *testing.B) {
		k, err := hdkeychain.NewKeyFromString(xpub)
		require.NoError(b, err)
		k, err = k.Derive(0)
		require.NoError(b, err)
		i := uint32(0)
		b.ReportAllocs()
		for b.Loop() {
			c, err := k.Derive(i)
			if err != nil {
				b.Fatal(err)
			}
			p, err := c.ECPubKey()
			if err != nil {
				b.Fatal(err)
			}
			_ = p.SerializeCompressed()
			i++
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "keys/s")
	})
}

// BenchmarkSign is a whole request on a store in memory: read back, derived,
// signed, verified and bound.
func BenchmarkSign(b *testing.B) {
	w := newWorld(b, "ETH")
	r := w.request("w1", 0)
	b.ReportAllocs()
	for b.Loop() {
		w.signs(r)
	}
}
