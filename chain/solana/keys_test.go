package solana

import (
	"context"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// TestSignerSignsWhatItReads: a Signer with a seed signs whole messages for both
// addresses of a sweep, and for no other key, payer, amount or recipient.
func TestSignerSignsWhatItReads(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	seed, err := keys.FromBytes(make([]byte, 32))
	require.NoError(t, err)
	ours, err := seed.Hardened(map[chain.Network]keys.Encode{"SOL": n.client.AddressOf}).Derive(t.Context(), "SOL", 0, 3)
	require.NoError(t, err)
	store := memory.New()
	require.NoError(t, store.Open(t.Context(), keys.Tables()...))
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{"SOL": n.client}, Registry: keys.StoreRegistry{Store: store},
		KeyOf: func(_ context.Context, _ chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return ours[1].Key, a == ours[1].Address, nil
		},
	})
	require.NoError(t, err)
	from, hot := ours[0], ours[1]
	n.pay(chaintest.Payment{To: from.Address, Currency: "USDTSOL", Amount: decimal.NewFromInt(5)})
	n.pay(chaintest.Payment{To: hot.Address, Currency: "SOL", Amount: decimal.NewFromInt(1)})
	n.Mine(1)
	in := chain.Intent{
		ID: "sweep", Purpose: chain.ForSweep, Network: "SOL", Currency: "USDTSOL", From: from.Address, FromKey: from.Key,
		To: hot.Address, All: true, Payer: hot.Address, PayerKey: hot.Key, MaxCost: 1_000_000,
	}
	u, err := n.client.Build(t.Context(), chain.Order{Intent: in, Attempt: 1})
	require.NoError(t, err)
	good := chain.SignRequest{Intent: in, Attempt: "sweep/1", Unsigned: u, Keys: []chain.KeyRef{hot.Key, from.Key}}
	for what, change := range map[string]func(r *chain.SignRequest){
		"another payer":      func(r *chain.SignRequest) { r.Intent.Payer = ours[2].Address },
		"no payer":           func(r *chain.SignRequest) { r.Intent.Payer, r.Intent.PayerKey = "", "" },
		"another key":        func(r *chain.SignRequest) { r.Keys = []chain.KeyRef{ours[2].Key, from.Key} },
		"keys the other way": func(r *chain.SignRequest) { r.Keys = []chain.KeyRef{from.Key, hot.Key} },
		"key of a curve":     func(r *chain.SignRequest) { r.Intent.PayerKey, r.Keys[0] = "m/44'/501'/1'/0'", "m/44'/501'/1'/0'" },
		"soft step":          func(r *chain.SignRequest) { r.Intent.PayerKey, r.Keys[0] = "ed25519/m/1", "ed25519/m/1" },
		"another recipient":  func(r *chain.SignRequest) { r.Intent.To = ours[2].Address },
		"another amount":     func(r *chain.SignRequest) { r.Intent.All, r.Intent.Amount = false, 4_000_000 },
		"too dear":           func(r *chain.SignRequest) { r.Intent.MaxCost = u.MaxCost - 1 },
		"another digest":     func(r *chain.SignRequest) { r.Unsigned.Digests = []chain.Digest{u.Digests[0], u.Digests[0]} },
	} {
		r := good
		r.Keys = append([]chain.KeyRef(nil), good.Keys...)
		change(&r)
		_, err := signer.Sign(t.Context(), r)
		require.ErrorIs(t, err, chain.ErrRefused, what)
	}
	sigs, err := signer.Sign(t.Context(), good)
	require.NoError(t, err)
	again, err := signer.Sign(t.Context(), good)
	require.NoError(t, err)
	require.Equal(t, sigs, again)
	s, err := n.client.Assemble(u, sigs)
	require.NoError(t, err)
	a := chain.Attempt{Tx: s.Tx, Raw: s.Raw}
	require.NoError(t, n.Broadcast(n.t, a))
	n.Mine(1)
	require.True(t, n.Status(n.t, a).Executed)
}
