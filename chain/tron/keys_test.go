package tron

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// What a network takes for making an account is no part of the payload. The limit of fees
// counts it, as whoever owns the App can pay accounts that are not there, without end.
func TestFS07_AccountsThatAreMadeCountAsFees(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	seed, err := keys.FromMnemonic(strings.Repeat("abandon ", 11)+"about", "")
	require.NoError(t, err)
	info, err := n.registry.Network("TRX")
	require.NoError(t, err)
	accounts, err := seed.Accounts([]chain.NetworkInfo{info})
	require.NoError(t, err)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"TRX": n.client.AddressOf})
	require.NoError(t, err)
	own, err := source.Derive(t.Context(), "TRX", 0, 30)
	require.NoError(t, err)
	gas, err := n.registry.Gas("TRX")
	require.NoError(t, err)
	limit, err := gas.Units(decimal.NewFromInt(12), ledger.Down)
	require.NoError(t, err)
	store := memory.New()
	require.NoError(t, store.Open(t.Context(), keys.LimitTables()...))
	s, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{"TRX": n.client},
		KeyOf: func(_ context.Context, _ chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			at := slices.IndexFunc(own, func(d chain.Derived) bool { return d.Address == a })
			return own[max(at, 0)].Key, at >= 0, nil
		},
		Registry: keys.LimitedRegistry{Store: store, Now: time.Now, Limits: keys.Limits{
			Costs: map[chain.Network][]keys.Limit{"TRX": {{Amount: limit, Per: 24 * time.Hour}}},
		}},
	})
	require.NoError(t, err)
	n.fund(t, own[0].Address, "TRX", 900)
	before, err := n.client.Balance(t.Context(), "TRX", own[0].Address)
	require.NoError(t, err)
	refused := 0
	for i, to := range own[1:] { // moved to addresses of ours, which no other limit bounds
		in := n.intent(own[0].Address, to.Address, "TRX", 1)
		in.ID, in.FromKey, in.Purpose = string(to.Key), own[0].Key, chain.ForGas
		u, err := n.client.Build(t.Context(), chain.Order{Intent: in, Attempt: 1})
		require.NoError(t, err)
		sigs, err := s.Sign(t.Context(), chain.SignRequest{Intent: in, Attempt: in.ID + "/1", Unsigned: u, Keys: []chain.KeyRef{own[0].Key}})
		if err != nil {
			require.ErrorContains(t, err, "would pass the limit", i)
			refused++
			continue
		}
		signed, err := n.client.Assemble(u, sigs)
		require.NoError(t, err)
		require.NoError(t, n.Broadcast(t, chain.Attempt{Tx: signed.Tx, Raw: signed.Raw}))
		n.Mine(1)
	}
	require.Positive(t, refused)
	left := before
	for _, d := range own {
		has, err := n.client.Balance(t.Context(), "TRX", d.Address)
		require.NoError(t, err)
		if left = left.Sub(has); d.Address == own[0].Address {
			require.Less(t, has.IntPart(), before.IntPart())
		}
	}
	require.True(t, left.LessThanOrEqual(decimal.NewFromInt(12)), "%s TRX were burnt", left)
}

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
