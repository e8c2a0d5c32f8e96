package keys_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
)

// TestVectorsOfSolana holds SLIP-10 to lists that two other libraries agree on.
func TestVectorsOfSolana(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/hd_solana.json")
	require.NoError(t, err)
	var v struct {
		Mnemonic  string
		Addresses []struct {
			Index     uint32
			Path      string
			PublicKey string `json:"public_key"`
		}
	}
	require.NoError(t, json.Unmarshal(raw, &v))
	seed, err := keys.FromMnemonic(v.Mnemonic, "")
	require.NoError(t, err)
	h := seed.Hardened(map[chain.Network]keys.Encode{"SOL": asHex})
	got, err := h.Derive(t.Context(), "SOL", 0, len(v.Addresses))
	require.NoError(t, err)
	require.NotEmpty(t, got)
	for i, want := range v.Addresses {
		require.Equal(t, chain.Derived{
			Address: chain.Address(want.PublicKey), Index: want.Index, Key: chain.KeyRef("ed25519/" + want.Path),
		}, got[i])
	}
	from, err := h.Derive(t.Context(), "SOL", 3, 2)
	require.NoError(t, err)
	require.Equal(t, got[3:5], from)
	for _, bad := range []func() ([]chain.Derived, error){
		func() ([]chain.Derived, error) { return h.Derive(t.Context(), "BTC", 0, 1) },
		func() ([]chain.Derived, error) { return h.Derive(t.Context(), "SOL", 0, -1) },
		func() ([]chain.Derived, error) { return h.Derive(t.Context(), "SOL", 1<<31-1, 2) },
	} {
		_, err := bad()
		require.Error(t, err)
	}
}

// TestListIsWhatWasDerivedAhead: a process without a seed hands out what it was given,
// and nothing else.
func TestListIsWhatWasDerivedAhead(t *testing.T) {
	t.Parallel()
	seed, err := keys.FromBytes(make([]byte, 32))
	require.NoError(t, err)
	h := seed.Hardened(map[chain.Network]keys.Encode{"SOL": asHex})
	all, err := h.Derive(t.Context(), "SOL", 0, 10)
	require.NoError(t, err)
	raw, err := json.Marshal(keys.List{"SOL": all})
	require.NoError(t, err)
	require.NotContains(t, string(raw), hex.EncodeToString(make([]byte, 32)))
	var list keys.List
	require.NoError(t, json.Unmarshal(raw, &list))
	source := keys.Sources{"SOL": list}
	got, err := source.Derive(t.Context(), "SOL", 4, 6)
	require.NoError(t, err)
	require.Equal(t, all[4:], got)
	_, err = source.Derive(t.Context(), "SOL", 4, 7)
	require.ErrorContains(t, err, "derive more where the seed is")
	_, err = source.Derive(t.Context(), "TRX", 0, 1)
	require.Error(t, err)
	list["SOL"][5], list["SOL"][6] = list["SOL"][6], list["SOL"][5]
	_, err = source.Derive(t.Context(), "SOL", 0, 10)
	require.Error(t, err, "index and place must agree")
}

func BenchmarkDeriveEdwards(b *testing.B) {
	seed, err := keys.FromBytes(make([]byte, 32))
	require.NoError(b, err)
	h := seed.Hardened(map[chain.Network]keys.Encode{"SOL": func(chain.PublicKey) (chain.Address, error) { return "", nil }})
	b.ReportAllocs()
	for i := range b.N {
		if _, err := h.Derive(b.Context(), "SOL", uint32(i)&0xffffff, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEdwardsKey is the least that a derivation takes: the public key itself.
func BenchmarkEdwardsKey(b *testing.B) {
	seed := make([]byte, ed25519.SeedSize)
	for i := range b.N {
		seed[i&31]++
		ed25519.NewKeyFromSeed(seed)
	}
}
