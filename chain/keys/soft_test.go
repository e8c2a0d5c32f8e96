package keys

import (
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/cardano"
)

// TestCardanoAccountIsWhatTheSeedSigns: the account that a watch-only process has derives, by
// its public key alone, the addresses whose keys the seed has, under the names that a signer
// and a module know them by.
func TestCardanoAccountIsWhatTheSeedSigns(t *testing.T) {
	t.Parallel()
	seed, err := FromMnemonic(strings.Repeat("abandon ", 11)+"about", "")
	require.NoError(t, err)
	client, err := cardano.New(cardano.Options{Blockfrost: "http://127.0.0.1:1"})
	require.NoError(t, err)
	networks := []chain.NetworkInfo{{Code: "ADA"}}
	accounts, err := seed.Accounts(networks)
	require.NoError(t, err)
	require.Len(t, accounts, 1)
	source, err := NewSource(accounts, map[chain.Network]Encode{"ADA": client.AddressOf})
	require.NoError(t, err)
	names, err := NamesOf(networks)
	require.NoError(t, err)
	all, err := source.Derive(t.Context(), "ADA", 5, 3)
	require.NoError(t, err)
	for i, d := range all {
		require.Equal(t, names["ADA"](uint32(5+i)), d.Key)
		onEdwards, err := CheckRef(d.Key)
		require.NoError(t, err)
		require.True(t, onEdwards)
		require.False(t, foreign("ADA", d.Key))
		require.True(t, foreign("SOL", d.Key))
		pub, err := seed.public(d.Key)
		require.NoError(t, err)
		named, err := source.PublicKey("ADA", d.Key)
		require.NoError(t, err)
		require.Equal(t, pub, named)
		a, err := client.AddressOf(pub)
		require.NoError(t, err)
		require.Equal(t, d.Address, a)
		s := &Signer{cfg: SignerConfig{Seed: seed}}
		digest := chain.Digest{Hash: [32]byte{1, 2, 3}, From: d.Address}
		sig, err := s.sign(t.Context(), client, d.Key, digest, nil)
		require.NoError(t, err)
		require.True(t, ed25519.Verify(ed25519.PublicKey(pub), digest.Hash[:], sig))
		again, err := s.sign(t.Context(), client, d.Key, digest, nil)
		require.NoError(t, err)
		require.Equal(t, sig, again)
		digest.From = all[(i+1)%len(all)].Address
		_, err = s.sign(t.Context(), client, d.Key, digest, nil)
		require.ErrorIs(t, err, chain.ErrRefused, "of another address")
	}
	for _, bad := range []string{"", "xpub1", accounts[0].XPub[:len(accounts[0].XPub)-1], string(all[0].Address)} {
		a := accounts[0]
		a.XPub = bad
		_, err := NewSource([]Account{a}, map[chain.Network]Encode{"ADA": client.AddressOf})
		require.Error(t, err, bad)
	}
}
