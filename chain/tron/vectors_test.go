package tron

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

type vectors struct {
	Addresses []struct {
		Private string `json:"private_key"`
		Public  string `json:"public_key_compressed"`
		Base58  string `json:"address_base58"`
		Hex     string `json:"address_hex"`
	} `json:"addresses"`
	Transactions []struct {
		Type   string `json:"type"`
		Params struct {
			From, To, Contract, Memo string
			Sun                      string `json:"amount_sun"`
			Amount                   string `json:"amount"`
			FeeLimit                 string `json:"fee_limit"`
			Permission               int64  `json:"permission_id"`
			Head                     struct {
				Bytes      string `json:"ref_block_bytes"`
				Hash       string `json:"ref_block_hash"`
				Expiration int64  `json:"expiration"`
				Timestamp  int64  `json:"timestamp"`
			} `json:"blockHeader"`
		} `json:"params"`
		Private   string `json:"private_key"`
		Raw       string `json:"raw_data_hex"`
		TxID      string `json:"txID"`
		Signature string `json:"signature"`
		Signed    string `json:"signed_transaction_hex"`
	} `json:"transactions"`
	Topic string `json:"trc20_transfer_topic0"`
	Calls []struct {
		Function string   `json:"function_selector"`
		Args     []string `json:"args"`
		Data     string   `json:"data_hex"`
	} `json:"trc20_calls"`
}

func load(t testing.TB) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(b, &v))
	return v
}

func unhexed(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func TestW16_Addresses(t *testing.T) {
	t.Parallel()
	c := openTown(t).client
	v := load(t)
	require.Len(t, v.Addresses, 14)
	for _, x := range v.Addresses {
		a, err := c.AddressOf(unhexed(t, x.Public))
		require.NoError(t, err)
		require.Equal(t, x.Base58, string(a))
		again, err := c.ParseAddress(x.Base58)
		require.NoError(t, err)
		require.Equal(t, a, again)
		own, err := c.own(a)
		require.NoError(t, err)
		require.Equal(t, x.Hex, own.hex())
		_, err = c.ParseAddress(x.Hex)
		require.Error(t, err, "the hexadecimal form is refused")
	}
	require.Equal(t, strings.TrimPrefix(v.Topic, "0x"), hex.EncodeToString(transferTopic[:]))
}

// TestVectors_Transactions rebuilds every transfer of the vectors byte for byte,
// signs it with the vector's key, and reads it back.
func TestVectors_Transactions(t *testing.T) {
	t.Parallel()
	c, err := New(Options{Registry: registry(t, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"), URL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	built := 0
	for _, x := range load(t).Transactions {
		raw := unhexed(t, x.Raw)
		b, err := decodeBody(raw)
		require.NoError(t, err)
		require.Equal(t, 1, b.contracts)
		require.Equal(t, x.TxID, hex.EncodeToString(func() []byte { d := digest(raw); return d[:] }()))
		if b.kind != kindTransfer && b.kind != kindTrigger {
			_, err = c.Inspect(raw)
			require.ErrorIs(t, err, chain.ErrRejected, "%s is nothing that is ever signed", x.Type)
			continue
		}
		p := x.Params
		from, err := parseAddress("TRX", p.From)
		require.NoError(t, err)
		to, err := parseAddress("TRX", p.To)
		require.NoError(t, err)
		s := &sending{from: from, to: to, cur: c.native, amount: new(big.Int)}
		text, price := p.Sun, &price{}
		if b.kind == kindTrigger {
			s.contract, err = parseAddress("TRX", p.Contract)
			require.NoError(t, err)
			s.cur, text = c.tokens[s.contract], p.Amount
			limit, ok := new(big.Int).SetString(p.FeeLimit, 10)
			require.True(t, ok)
			price.Energy, price.Unit = limit.Int64(), 1
		}
		_, ok := s.amount.SetString(text, 10)
		require.True(t, ok)
		own := s.body(price)
		own.refBytes, own.refHash, own.expiration, own.timestamp = unhexed(t, p.Head.Bytes), unhexed(t, p.Head.Hash), p.Head.Expiration, p.Head.Timestamp
		own.memo, own.permission = []byte(p.Memo), p.Permission
		require.Equal(t, x.Raw, hex.EncodeToString(own.encode()))
		built++

		key := secp256k1.PrivKeyFromBytes(unhexed(t, x.Private))
		d := digest(raw)
		compact := ecdsa.SignCompact(key, d[:], true)
		sig := append(append(chain.Signature{}, compact[1:]...), compact[0]-31)
		if p.Memo != "" || p.Permission != 0 {
			_, err = c.Inspect(raw)
			require.ErrorIs(t, err, chain.ErrRejected)
			continue
		}
		u, err := c.Inspect(raw)
		if err != nil { // an amount beyond what a ledger holds
			require.Greater(t, s.amount.BitLen(), 62, "%v", err)
			continue
		}
		require.Equal(t, p.To, string(u.Outputs[0].To))
		require.Equal(t, s.amount.Int64(), int64(u.Outputs[0].Amount))
		signed, err := c.Assemble(u, []chain.Signature{sig})
		require.NoError(t, err)
		require.Equal(t, x.TxID, signed.Tx)
		require.Equal(t, x.Signed, hex.EncodeToString(signed.Raw))
		require.Equal(t, strings.ToLower(x.Signature), hex.EncodeToString(signed.Raw[len(signed.Raw)-65:]))
	}
	require.Equal(t, 18, built)
}

func TestVectors_Calls(t *testing.T) {
	t.Parallel()
	v := load(t)
	require.NotEmpty(t, v.Calls)
	for _, x := range v.Calls {
		a, err := parseAddress("TRX", x.Args[0])
		require.NoError(t, err)
		if x.Function == "balanceOf(address)" {
			require.Equal(t, x.Data, hex.EncodeToString(balanceCall(a)))
			continue
		}
		amount, ok := new(big.Int).SetString(x.Args[1], 10)
		require.True(t, ok)
		require.Equal(t, x.Data, hex.EncodeToString((&sending{to: a, amount: amount}).data()))
	}
}
