package evm

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"testing"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"
)

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, v))
}

func offline(t testing.TB, id int64, legacy bool) *Client {
	t.Helper()
	c, err := New(Options{Network: "ETH", ChainID: id, Registry: mainRegistry(t), URL: "http://127.0.0.1:1", Legacy: legacy})
	require.NoError(t, err)
	return c
}

func TestW16_AddressVectors(t *testing.T) {
	t.Parallel()
	var rows []struct {
		Address, Note string
		Valid         bool
	}
	readJSON(t, "testdata/addresses.json", &rows)
	require.Greater(t, len(rows), 35)
	c := offline(t, 1, false)
	for _, r := range rows {
		a, err := c.ParseAddress(r.Address)
		if !r.Valid {
			var bad *chain.AddressError
			require.ErrorAs(t, err, &bad, "%s: %s", r.Address, r.Note)
			continue
		}
		require.NoError(t, err, "%s: %s", r.Address, r.Note)
		require.Equal(t, common.HexToAddress(r.Address).Hex(), string(a))
		again, err := c.ParseAddress(string(a))
		require.NoError(t, err)
		require.Equal(t, a, again)
	}
}

func TestTransactionVectors(t *testing.T) {
	t.Parallel()
	var v struct {
		Transactions []struct {
			Kind string
			Tx   struct {
				ChainID                                                       int64
				Nonce                                                         uint64
				Type                                                          int
				GasPrice, MaxFeePerGas, MaxPriorityFeePerGas, Value, GasLimit string
				To                                                            common.Address
			}
			SigningHash string `json:"signing_hash"`
			Raw, Hash   string
		}
		Key     string `json:"private_key"`
		Address string
	}
	readJSON(t, "testdata/evm.json", &v)
	require.Len(t, v.Transactions, 16)
	key, err := crypto.HexToECDSA(v.Key)
	require.NoError(t, err)
	for _, x := range v.Transactions {
		number := func(s string) int64 {
			n, _ := new(big.Int).SetString("0"+s, 10)
			return n.Int64()
		}
		c := offline(t, x.Tx.ChainID, x.Tx.Type == 0)
		value, _ := new(big.Int).SetString(x.Tx.Value, 10)
		p := &price{Gas: uint64(number(x.Tx.GasLimit)), Tip: number(x.Tx.MaxPriorityFeePerGas), Cap: number(x.Tx.GasPrice) + number(x.Tx.MaxFeePerGas)}
		payload, err := c.payload(&sending{cur: c.native, from: common.HexToAddress(v.Address), to: x.Tx.To, amount: value}, p, x.Tx.Nonce)
		require.NoError(t, err)
		u, err := c.Inspect(payload)
		require.NoError(t, err)
		require.Equal(t, x.SigningHash, common.Hash(u.Digests[0].Hash).Hex(), x.Kind)
		require.Equal(t, chain.Address(v.Address), u.Digests[0].From)
		require.Equal(t, []string{v.Address + "/7"}, u.Spends)
		units := new(big.Int).Div(value, big.NewInt(1e10)).Int64()
		require.Equal(t, []chain.Output{{To: checksum(x.Tx.To), Currency: "ETH", Amount: ledger.Amount(units)}}, u.Outputs)
		sig, err := crypto.Sign(u.Digests[0].Hash[:], key)
		require.NoError(t, err)
		s, err := c.Assemble(u, []chain.Signature{sig})
		require.NoError(t, err)
		require.Equal(t, x.Raw, "0x"+hex.EncodeToString(s.Raw), x.Kind)
		require.Equal(t, x.Hash, s.Tx)

		// Neither another network's client nor a changed byte passes.
		_, err = offline(t, x.Tx.ChainID+1, x.Tx.Type == 0).Inspect(payload)
		require.ErrorIs(t, err, chain.ErrRejected)
		sig[10] ^= 1
		_, err = c.Assemble(u, []chain.Signature{sig})
		require.Error(t, err)
	}
}

func TestInspectSeesTokens(t *testing.T) {
	t.Parallel()
	c := offline(t, 1, false)
	usd, err := c.o.Registry.Currency("USDTERC20")
	require.NoError(t, err)
	s := &sending{cur: usd, from: alice, to: bob, amount: big.NewInt(2_500_000)}
	payload, err := c.payload(s, &price{Gas: 60_000, Tip: 1, Cap: gwei}, 4)
	require.NoError(t, err)
	u, err := c.Inspect(payload)
	require.NoError(t, err)
	require.Equal(t, []chain.Output{{To: checksum(bob), Currency: "USDTERC20", Amount: 2_500_000}}, u.Outputs)
	require.Equal(t, ledger.Amount(6000), u.MaxCost)

	approve := append([]byte(nil), payload...)
	for i := range approve { // approve(address,uint256) in the place of transfer
		if string(approve[i:min(i+4, len(approve))]) == string(selTransfer[:]) {
			copy(approve[i:], []byte{0x09, 0x5e, 0xa7, 0xb3})
		}
	}
	_, err = c.Inspect(approve)
	require.ErrorIs(t, err, chain.ErrRejected, "nothing but transfer is signed")

	unlisted := *usd
	unlisted.Contract = mallory.Hex()
	s.cur = &unlisted
	payload, err = c.payload(s, &price{Gas: 60_000, Tip: 1, Cap: gwei}, 4)
	require.NoError(t, err)
	_, err = c.Inspect(payload)
	require.ErrorIs(t, err, chain.ErrRejected, "no token that is not registered")
}

func TestAddressOfKey(t *testing.T) {
	t.Parallel()
	c := offline(t, 1, false)
	a, err := c.AddressOf(crypto.CompressPubkey(&hot.PublicKey))
	require.NoError(t, err)
	require.Equal(t, hotAddress.Hex(), string(a))
	_, err = c.AddressOf([]byte{1, 2, 3})
	require.Error(t, err)
}

func TestPresets(t *testing.T) {
	t.Parallel()
	reg, err := chain.NewRegistry(chain.Networks(), chain.Mainnet())
	require.NoError(t, err)
	require.Len(t, Networks(), 7)
	for _, o := range Networks() {
		info, err := reg.Network(string(o.Network))
		require.NoError(t, err)
		require.Equal(t, info.ChainID, o.ChainID)
		o.Registry, o.URL = reg, "https://node.example/key"
		c, err := New(o)
		require.NoError(t, err)
		require.Equal(t, o.Network, c.Network())
		require.LessOrEqual(t, o.MaxTip, o.MaxFeePerGas)
		require.LessOrEqual(t, o.MinTip, c.o.MaxTip)
	}
	_, ok := Preset("ETH")
	require.True(t, ok)
	_, ok = Preset("TRX")
	require.False(t, ok)
	c, err := At("BASE", "https://node.example/key")
	require.NoError(t, err)
	require.Equal(t, chain.Network("BASE"), c.Network())
	_, err = At("TRX", "https://node.example/key")
	require.ErrorContains(t, err, "no preset of network TRX")
}

func FuzzInspect(f *testing.F) {
	c := offline(f, 1, false)
	for _, legacy := range []bool{true, false} {
		c.o.Legacy = legacy
		p, err := c.payload(&sending{cur: c.native, from: alice, to: bob, amount: big.NewInt(1e10)}, &price{Gas: 21000, Tip: 1, Cap: 2}, 1)
		require.NoError(f, err)
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		u, err := c.Inspect(payload)
		if err == nil && (len(u.Outputs) != 1 || len(u.Digests) != 1 || len(u.Spends) != 1) {
			t.Fatal("a payload that passes does one thing")
		}
	})
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"number":"0x1","hash":"0x00","transactions":[{"hash":"0x1","value":"0x"}],"logsBloom":null}`))
	f.Add([]byte(`[{"address":"0x","topics":["0x00"],"data":"0x\"","logIndex":"0x1"}]`))
	f.Add([]byte(`{"type":"CALL","calls":[{"calls":[]}]}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = blockOf(&transport.Call{Out: b})
		_, _ = decodeLogs(b)
		_, _ = receiptsOf(&transport.Call{Out: b})
		_, _ = receiptOf(&transport.Call{Out: b})
		w := newWalk(b)
		readFrame(w, 0)
		_ = (&transport.RPC{}).Split(b, []*transport.Call{transport.NewCall("x")})
	})
}
