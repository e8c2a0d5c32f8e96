package sim_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// free binds nothing.
type free struct{}

func (free) Bind(context.Context, keys.Binding) error { return nil }

// What keys derives and signs works here as it is.
func TestKeysSignForTheSimulatedChain(t *testing.T) {
	t.Parallel()
	seed, err := keys.FromBytes(make([]byte, 32))
	require.NoError(t, err)
	for _, n := range []chain.Network{"ETH", "BTC"} {
		c := open(t, n)
		k := c.Client()
		info, err := registry(t).Network(string(n))
		require.NoError(t, err)
		accounts, err := seed.Accounts([]chain.NetworkInfo{info})
		require.NoError(t, err)
		source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{n: k.AddressOf})
		require.NoError(t, err)
		ours, err := source.Derive(t.Context(), n, 0, 2)
		require.NoError(t, err)
		signer, err := keys.NewSigner(keys.SignerConfig{
			Seed: seed, Chains: map[chain.Network]keys.Chain{n: k}, Registry: free{},
			KeyOf: func(_ context.Context, _ chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
				i := slices.IndexFunc(ours, func(d chain.Derived) bool { return d.Address == a })
				return ours[max(i, 0)].Key, i >= 0, nil
			},
		})
		require.NoError(t, err)
		fund, err := c.Fund(ours[0].Address, string(n), one)
		require.NoError(t, err)
		to := account(t, c, "customer").Address
		o := chain.Order{Attempt: 1, Intent: chain.Intent{
			ID: "i", Purpose: chain.ForWithdrawal, Network: n, Currency: string(n), Confirmations: 1,
			From: ours[0].Address, FromKey: ours[0].Key, To: to, Amount: 1e7, MaxCost: 1e6,
		}}
		if c.Family() == chain.UTXOFamily {
			o.Intent.From, o.Intent.FromKey = "", ""
			o.Change = ours[1].Address
			o.Coins = []chain.Coin{{Outpoint: fund + ":0", Address: ours[0].Address, Key: ours[0].Key, Amount: ledger.Amount(1e8)}}
		}
		o.Fee, err = k.EstimateFee(t.Context(), o.Intent)
		require.NoError(t, err)
		u, err := k.Build(t.Context(), o)
		require.NoError(t, err)
		sigs, err := signer.Sign(t.Context(), chain.SignRequest{Intent: o.Intent, Attempt: "1", Unsigned: u, Keys: []chain.KeyRef{ours[0].Key}})
		require.NoError(t, err)
		s, err := k.Assemble(u, sigs)
		require.NoError(t, err)
		require.NoError(t, send(t, c, chain.Attempt{Tx: s.Tx, Raw: s.Raw}))
		c.Mine(1)
		require.Equal(t, "0.1", c.Balance(to, string(n)).String())
	}
}
