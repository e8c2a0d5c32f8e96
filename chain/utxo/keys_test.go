package utxo_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/btcsuite/btcd/address/v2/bech32"
	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// A signature of Litecoin says nothing of its network: over a bitcoin, with the key of a
// Bitcoin address, it is one of Bitcoin. Whoever owns the App calls bitcoins litecoins, of
// which the limit allows more, and gets none.
func TestFS07_CoinsOfAnotherNetworkAreNotSigned(t *testing.T) {
	t.Parallel()
	registry := chain.MainnetRegistry()
	clients, encode := map[chain.Network]keys.Chain{}, map[chain.Network]keys.Encode{}
	for _, n := range []chain.Network{"BTC", "LTC"} {
		params, _ := utxo.Mainnet(n)
		c, err := utxo.New(utxo.Options{Network: n, Params: params, Registry: registry, URL: "http://127.0.0.1:1"})
		require.NoError(t, err)
		clients[n], encode[n] = c, c.AddressOf
	}
	seed, err := keys.FromBytes(bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(t, err)
	source, err := keys.NewSource(accounts, encode)
	require.NoError(t, err)
	store := memory.New()
	require.NoError(t, store.Open(t.Context(), keys.LimitTables()...))
	day := func(coins ledger.Amount) []keys.Limit {
		return []keys.Limit{{Amount: coins * 1e8, Per: 24 * time.Hour}}
	}
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: clients, Registry: keys.LimitedRegistry{Store: store, Now: time.Now, Limits: keys.Limits{
			Pays:  map[string][]keys.Limit{"BTC": day(1), "LTC": day(1000)},
			Costs: map[chain.Network][]keys.Limit{"BTC": day(1), "LTC": day(1)},
		}},
	})
	require.NoError(t, err)
	bitcoin, err := source.Derive(t.Context(), "BTC", 0, 1)
	require.NoError(t, err)
	litecoin, err := source.Derive(t.Context(), "LTC", 0, 1)
	require.NoError(t, err)
	witness := func(program []byte) []byte {
		script, err := txscript.NewScriptBuilder().AddOp(txscript.OP_0).AddData(program).Script()
		require.NoError(t, err)
		return script
	}
	// 100 coins of a key, paid to the thief.
	request := func(n chain.Network, from chain.Derived, attempt string) chain.SignRequest {
		_, data, err := bech32.Decode(string(from.Address))
		require.NoError(t, err)
		program, err := bech32.ConvertBits(data[1:], 5, 8, false)
		require.NoError(t, err)
		funding := wire.NewMsgTx(2)
		funding.AddTxIn(&wire.TxIn{PreviousOutPoint: wire.OutPoint{Index: 7}})
		funding.AddTxOut(wire.NewTxOut(100e8, witness(program)))
		tx := wire.NewMsgTx(2)
		tx.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: funding.TxHash()}, nil, nil))
		tx.AddTxOut(wire.NewTxOut(100e8-1000, witness(make([]byte, 20))))
		p, err := psbt.NewFromUnsignedTx(tx)
		require.NoError(t, err)
		p.Unknowns = []*psbt.Unknown{{Key: []byte("\xfc\x09cryptopay\x00"), Value: []byte(n)}}
		p.Inputs[0].NonWitnessUtxo, p.Inputs[0].WitnessUtxo = funding, funding.TxOut[0]
		var payload bytes.Buffer
		require.NoError(t, p.Serialize(&payload))
		u, err := clients[n].Inspect(payload.Bytes())
		require.NoError(t, err)
		return chain.SignRequest{
			Intent: chain.Intent{
				ID: attempt, Purpose: chain.ForWithdrawal, Tenant: "a", Network: n, Currency: string(n),
				To: u.Outputs[0].To, Amount: u.Outputs[0].Amount, MaxCost: 1e6,
			},
			Attempt: attempt, Unsigned: u, Keys: []chain.KeyRef{from.Key},
		}
	}
	_, err = signer.Sign(t.Context(), request("LTC", litecoin[0], "litecoins"))
	require.NoError(t, err, "within the limit of litecoins")
	_, err = signer.Sign(t.Context(), request("BTC", bitcoin[0], "bitcoins"))
	require.ErrorContains(t, err, "would pass the limit")
	_, err = signer.Sign(t.Context(), request("LTC", bitcoin[0], "bitcoins called litecoins"))
	require.ErrorIs(t, err, chain.ErrRefused)
	require.ErrorContains(t, err, "a key is of another network")
}
