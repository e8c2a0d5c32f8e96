package tron

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// TestSigner_SignsWithAKeyOfTheSeed: addresses from the account m/44'/195'/0',
// and the signer's own look at what it signs.
func TestSigner_SignsWithAKeyOfTheSeed(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	seed, err := keys.FromMnemonic(strings.Repeat("abandon ", 11)+"about", "")
	require.NoError(t, err)
	info, err := n.registry.Network("TRX")
	require.NoError(t, err)
	accounts, err := seed.Accounts([]chain.NetworkInfo{info})
	require.NoError(t, err)
	require.Equal(t, "m/44'/195'/0'", accounts[0].Path)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"TRX": n.client.AddressOf})
	require.NoError(t, err)
	derived, err := source.Derive(t.Context(), "TRX", 0, 1)
	require.NoError(t, err)
	me := derived[0]
	require.EqualValues(t, "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH", me.Address)

	store := memory.New()
	require.NoError(t, store.Open(t.Context(), keys.Tables()...))
	s, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{"TRX": n.client}, Registry: keys.StoreRegistry{Store: store},
	})
	require.NoError(t, err)
	n.fund(t, me.Address, "TRX", 900)
	n.fund(t, me.Address, "USDTTRC20", 900)
	to := n.customer(t, "to").Address
	for _, code := range []string{"TRX", "USDTTRC20"} {
		in := n.intent(me.Address, to, code, 5)
		in.ID, in.FromKey = code, me.Key
		u, err := n.client.Build(t.Context(), chain.Order{Intent: in, Attempt: 1})
		require.NoError(t, err)
		r := chain.SignRequest{Intent: in, Attempt: code + "/1", Unsigned: u, Keys: []chain.KeyRef{me.Key}}
		sigs, err := s.Sign(t.Context(), r)
		require.NoError(t, err)
		signed, err := n.client.Assemble(u, sigs)
		require.NoError(t, err)
		require.NoError(t, n.Broadcast(t, chain.Attempt{Tx: signed.Tx, Raw: signed.Raw}))
		r.Attempt, r.Intent.ID = "other/1", "other"
		_, err = s.Sign(t.Context(), r)
		require.ErrorIs(t, err, chain.ErrRefused, "the same bytes for another intent")
	}
	n.Mine(1)
	got, err := n.client.Balance(t.Context(), "USDTTRC20", to)
	require.NoError(t, err)
	require.EqualValues(t, 5, got.IntPart())
}
