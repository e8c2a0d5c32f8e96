package keys_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
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
	none, err := h.Derive(t.Context(), "SOL", 3, 0)
	require.NoError(t, err)
	require.Empty(t, none)
	last, err := h.Derive(t.Context(), "SOL", 1<<31-1, 1)
	require.NoError(t, err)
	require.Equal(t, chain.KeyRef("ed25519/m/44'/501'/2147483647'/0'"), last[0].Key)
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
	none, err := source.Derive(t.Context(), "SOL", 10, 0)
	require.NoError(t, err)
	require.Empty(t, none)
	_, err = source.Derive(t.Context(), "SOL", 4, -1)
	require.Error(t, err)
	_, err = source.Derive(t.Context(), "SOL", 4, 7)
	require.ErrorContains(t, err, "derive more where the seed is")
	_, err = source.Derive(t.Context(), "TRX", 0, 1)
	require.Error(t, err)
	list["SOL"][5], list["SOL"][6] = list["SOL"][6], list["SOL"][5]
	_, err = source.Derive(t.Context(), "SOL", 0, 10)
	require.Error(t, err, "index and place must agree")
	all[1].Key = "m/44'/501'/1'/0'"
	_, err = keys.List{"SOL": all}.Derive(t.Context(), "SOL", 0, 2)
	require.Error(t, err, "a key of another curve")
}

// edwards is a network on ed25519 that sees in every payload what a test says.
type edwards struct{ seen chain.Unsigned }

func (e *edwards) Inspect([]byte) (chain.Unsigned, error) { return e.seen, nil }

func (*edwards) AddressOf(pub chain.PublicKey) (chain.Address, error) { return asHex(pub) }

// bindings counts what was bound.
type bindings struct{ bound []keys.Binding }

func (b *bindings) Bind(_ context.Context, one keys.Binding) error {
	b.bound = append(b.bound, one)
	return nil
}

// TestSignEdwards: sender and payer sign, each with its own key, what they see. With
// another key, or a payload that is not the intent's, nothing is signed or bound.
func TestSignEdwards(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	own, err := seed.Hardened(map[chain.Network]keys.Encode{"SOL": asHex}).Derive(t.Context(), "SOL", 0, 3)
	require.NoError(t, err)
	payload := []byte("a payload")
	hash := sha256.Sum256(payload)
	network, registry := &edwards{}, &bindings{}
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{"SOL": network}, Registry: registry,
		KeyOf: func(_ context.Context, _ chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return own[2].Key, a == own[2].Address || a == "thief", nil
		},
	})
	require.NoError(t, err)
	request := func() (chain.SignRequest, chain.Unsigned) {
		u := chain.Unsigned{
			Network: "SOL", Payload: payload, Spends: []string{"tx/1"}, MaxCost: 10, Memo: "m",
			Outputs: []chain.Output{{To: "payee", Currency: "SOL", Amount: 5}, {To: own[0].Address, Currency: "SOL"}, {To: own[2].Address, Currency: "SOL", Amount: 1}},
			Digests: []chain.Digest{{Hash: hash, From: own[1].Address, Whole: true}, {Hash: hash, From: own[0].Address}},
		}
		return chain.SignRequest{
			Intent: chain.Intent{
				ID: "w1", Purpose: chain.ForWithdrawal, Tenant: "a", Network: "SOL", Currency: "SOL", From: own[0].Address, FromKey: own[0].Key,
				Payer: own[1].Address, PayerKey: own[1].Key, To: "payee", Amount: 5, MaxCost: 10, Memo: "m",
			},
			Attempt: "w1/1", Unsigned: u, Keys: []chain.KeyRef{own[1].Key, own[0].Key},
		}, u
	}
	r, u := request()
	network.seen = u
	sigs, err := signer.Sign(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, sigs, 2)
	for i, signed := range [][]byte{payload, hash[:]} {
		pub, err := hex.DecodeString(string(u.Digests[i].From))
		require.NoError(t, err)
		require.True(t, ed25519.Verify(pub, signed, sigs[i]))
	}
	require.Equal(t, []keys.Binding{{
		Network: "SOL", Intent: "w1", Attempt: "w1/1", Payload: hash, Slots: []string{"tx/1"}, Pays: u.Outputs[:1], Orders: []string{"w1"}, Unproved: true,
		Keeps: []keys.Kept{{Output: u.Outputs[1], Key: own[0].Key}, {Output: u.Outputs[2], Key: own[2].Key}}, Cost: 10,
	}}, registry.bound)

	registry.bound = nil
	for name, edit := range map[string]func(r *chain.SignRequest, seen *chain.Unsigned){
		"a third sender":   func(_ *chain.SignRequest, u *chain.Unsigned) { u.Digests[1].From = own[2].Address },
		"two payers":       func(_ *chain.SignRequest, u *chain.Unsigned) { u.Digests[1].From = own[1].Address },
		"the sender's key": func(r *chain.SignRequest, _ *chain.Unsigned) { r.Keys[0] = own[0].Key },
		"the payer's key":  func(r *chain.SignRequest, _ *chain.Unsigned) { r.Keys[1] = own[1].Key },
		"another key":      func(r *chain.SignRequest, _ *chain.Unsigned) { r.Keys[1], r.Intent.FromKey = own[2].Key, "" },
		"another payer":    func(r *chain.SignRequest, _ *chain.Unsigned) { r.Keys[0], r.Intent.PayerKey = own[2].Key, "" },
		"no payer":         func(r *chain.SignRequest, _ *chain.Unsigned) { r.Intent.Payer = "" },
		"no such path":     func(r *chain.SignRequest, _ *chain.Unsigned) { r.Keys[1], r.Intent.FromKey = "ed25519/m/x", "" },
		"a path of no key": func(r *chain.SignRequest, _ *chain.Unsigned) {
			r.Keys[1], r.Intent.FromKey = "ed25519/m/44'/501'/0'/0", ""
		},
		"the wrong curve":    func(r *chain.SignRequest, _ *chain.Unsigned) { r.Keys[0], r.Intent.PayerKey = "m/44'/60'/0'/0/0", "" },
		"a cost below 0":     func(_ *chain.SignRequest, u *chain.Unsigned) { u.MaxCost = -1 },
		"a cost too high":    func(_ *chain.SignRequest, u *chain.Unsigned) { u.MaxCost = 11 },
		"another memo":       func(_ *chain.SignRequest, u *chain.Unsigned) { u.Memo = "n" },
		"more to a thief":    func(_ *chain.SignRequest, u *chain.Unsigned) { u.Outputs[2].To = "thief" },
		"a negative output":  func(_ *chain.SignRequest, u *chain.Unsigned) { u.Outputs[2].Amount = -1 },
		"of another network": func(_ *chain.SignRequest, u *chain.Unsigned) { u.Network = "XLM" },
		"nothing to sign":    func(r *chain.SignRequest, u *chain.Unsigned) { u.Digests, r.Keys = nil, nil },
		"nothing to spend":   func(_ *chain.SignRequest, u *chain.Unsigned) { u.Spends = nil },
		"a key too few":      func(r *chain.SignRequest, _ *chain.Unsigned) { r.Keys = r.Keys[:1] },
		"all":                func(r *chain.SignRequest, _ *chain.Unsigned) { r.Intent.All = true },
	} {
		r, u := request()
		edit(&r, &u)
		r.Unsigned, network.seen = u, u
		sigs, err := signer.Sign(t.Context(), r)
		require.ErrorIs(t, err, chain.ErrRefused, name)
		require.Nil(t, sigs, name)
		require.Empty(t, registry.bound, name)
	}
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
