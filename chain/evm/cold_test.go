package evm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// coldOrder pays somebody out of a cold address.
func coldOrder(currency string, amount, most ledger.Amount) chain.Order {
	return chain.Order{Intent: chain.Intent{
		Network: "ETH", Currency: currency, To: "0x7079000000000000000000000000000000000002", Amount: amount, MaxCost: most,
	}}
}

// TestColdIsSignedByAnotherLibrary: anvil, which uses alloy, signs the JSON that ShowCold writes, on networks
// with and without EIP-1559. AcceptCold takes it for what was proposed.
func TestColdIsSignedByAnotherLibrary(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from := checksum(n.accounts[0])
	for _, legacy := range []bool{false, true} {
		c := n.connect(t, n.url, n.preset.ChainID, func(o *Options) { o.Legacy = legacy })
		for _, code := range []string{"ETH", "USD"} {
			u, tx, err := c.ProposeCold(t.Context(), string(from), coldOrder(code, 1_000_000, 0))
			if code == "USD" && errors.Is(err, chain.ErrShort) {
				n.transfer(t, n.usd, from, big.NewInt(5_000_000))
				n.mine(t, 1)
				u, tx, err = c.ProposeCold(t.Context(), string(from), coldOrder(code, 1_000_000, 0))
			}
			require.NoError(t, err)
			require.Empty(t, tx)
			require.Equal(t, !legacy, strings.HasPrefix(string(u.Payload), "0x02"))
			shown, err := c.ShowCold(from, u.Payload)
			require.NoError(t, err)
			var signed string
			n.ask(t, &signed, "eth_signTransaction", json.RawMessage(shown))
			s, err := c.AcceptCold(from, u.Payload, []byte(strings.TrimPrefix(signed, "0x")))
			require.NoError(t, err)
			bin, err := c.AcceptCold(from, u.Payload, hexutil.MustDecode(signed))
			require.NoError(t, err)
			require.Equal(t, s, bin, "as it is, too")
			_, err = c.AcceptCold(checksum(n.accounts[1]), u.Payload, []byte(signed))
			require.ErrorContains(t, err, "it is signed by the key of "+string(from))
			other := n.connect(t, n.url, n.preset.ChainID, func(o *Options) { o.Legacy = !legacy })
			wrong, _, err := other.ProposeCold(t.Context(), string(from), coldOrder(code, 1_000_000, 0))
			require.NoError(t, err)
			_, err = c.AcceptCold(from, wrong.Payload, []byte(signed))
			require.ErrorIs(t, err, chain.ErrRejected)
			require.ErrorContains(t, err, "its type is")

			found, st, err := c.FindCold(t.Context(), from, u.Payload, s.Tx)
			require.NoError(t, err)
			require.Equal(t, chain.Unknown, st.State)
			require.Empty(t, found)
			var hash string
			n.ask(t, &hash, "eth_sendRawTransaction", signed)
			require.Equal(t, s.Tx, hash)
			_, st, err = c.FindCold(t.Context(), from, u.Payload, s.Tx)
			require.NoError(t, err)
			require.Equal(t, chain.Pending, st.State)
			_, _, err = c.ProposeCold(t.Context(), string(from), coldOrder(code, 1, 0))
			require.ErrorIs(t, err, chain.ErrOccupied, "one waits")
			n.mine(t, 3)
			for _, hint := range []string{"", s.Tx, (common.Hash{1}).Hex()} {
				found, st, err = c.FindCold(t.Context(), from, u.Payload, hint)
				require.NoError(t, err)
				require.Equal(t, hash, found)
				require.Equal(t, chain.Included, st.State)
				require.True(t, st.Executed)
				require.Positive(t, st.Cost)
				require.LessOrEqual(t, st.Cost, u.MaxCost)
			}
			found, st, err = c.FindCold(t.Context(), from, []byte(strings.Replace(string(u.Payload), "7079", "7080", 1)), "")
			require.NoError(t, err)
			require.Empty(t, found)
			require.Equal(t, []any{chain.Conflicted, hash}, []any{st.State, st.By})
		}
	}
}

// TestColdFeeHasRoom: a proposal pays at most twice the usual bound per gas, and less where its cost's bound, the
// network's limit or the address's balance allow less. An address that cannot pay the present fee is refused,
// with how much is to be sent there.
func TestColdFeeHasRoom(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from := checksum(n.accounts[0])
	c := n.client
	usual, err := c.EstimateFee(t.Context(), chain.Intent{Network: "ETH", Currency: "ETH", From: from, To: "0x7079000000000000000000000000000000000002", Amount: 100})
	require.NoError(t, err)
	propose := func(c *Client, most ledger.Amount) (ledger.Amount, error) {
		u, _, err := c.ProposeCold(t.Context(), string(from), coldOrder("ETH", 100, most))
		return u.MaxCost, err
	}
	near := func(want, got ledger.Amount) {
		t.Helper()
		require.InDelta(t, int64(want), int64(got), 1)
	}
	all, err := propose(c, 0)
	require.NoError(t, err)
	near(2*usual.Max, all)
	some, err := propose(c, usual.Max+usual.Max/2)
	require.NoError(t, err)
	near(usual.Max+usual.Max/2, some)
	_, err = propose(c, usual.Max-1)
	dear := (*chain.DearError)(nil)
	require.ErrorAs(t, err, &dear)
	var p price
	require.NoError(t, json.Unmarshal(usual.Params, &p))
	limited := n.connect(t, n.url, n.preset.ChainID, func(o *Options) { o.MaxFeePerGas = p.Cap })
	some, err = propose(limited, 0)
	require.NoError(t, err)
	require.Equal(t, usual.Max, some)

	unit := big.NewInt(10_000_000_000)
	wei := func(units ledger.Amount) *hexutil.Big {
		return (*hexutil.Big)(new(big.Int).Mul(unit, big.NewInt(int64(units))))
	}
	n.ask(t, nil, "anvil_setBalance", from, wei(100+usual.Max+usual.Max/4))
	some, err = propose(c, 0)
	require.NoError(t, err)
	near(usual.Max+usual.Max/4, some)
	n.ask(t, nil, "anvil_setBalance", from, wei(100+usual.Max/2))
	_, err = propose(c, 0)
	require.ErrorIs(t, err, chain.ErrShort)
	require.ErrorContains(t, err, fmt.Sprintf("send at least %s ETH more to %s", c.native.Decimal(usual.Max-usual.Max/2), from))
	n.ask(t, nil, "anvil_setBalance", from, wei(99))
	_, err = propose(c, 0)
	require.ErrorIs(t, err, chain.ErrShort)
}

// TestColdAddressThatNobodySignsFor: a contract has no key. One whose owner's key has code by EIP-7702 has.
func TestColdAddressThatNobodySignsFor(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	_, _, err := n.client.ProposeCold(t.Context(), string(checksum(n.usd)), coldOrder("USD", 1, 0))
	require.ErrorIs(t, err, errors.ErrUnsupported)
	from := n.accounts[2]
	n.ask(t, nil, "anvil_setCode", from, hexutil.Bytes(append([]byte{0xef, 0x01, 0x00}, n.usd.Bytes()...)))
	_, _, err = n.client.ProposeCold(t.Context(), string(checksum(from)), coldOrder("ETH", 100, 0))
	require.NoError(t, err)
	_, _, err = n.client.ProposeCold(t.Context(), "nobody", coldOrder("ETH", 100, 0))
	require.ErrorIs(t, err, chain.ErrRejected)
}

// TestColdOnAPrunedNode: the node has thrown away the state in which the nonce was used. A transaction that came
// back and has no receipt can never land. Of a proposal that nobody gave back no hash is known: it stays Unknown.
func TestColdOnAPrunedNode(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	from := n.accounts[0]
	u, _, err := n.client.ProposeCold(t.Context(), string(checksum(from)), coldOrder("ETH", 100, 0))
	require.NoError(t, err)
	n.ask(t, nil, "eth_sendTransaction", map[string]any{"from": from, "to": n.accounts[1], "value": "0x1"})
	n.mine(t, 20)
	var head hexutil.Uint64
	n.ask(t, &head, "eth_blockNumber")
	pruned := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked []struct {
			ID     json.RawMessage
			Method string
			Params []json.RawMessage
		}
		_ = json.Unmarshal(body, &asked)
		resp, err := http.Post(n.url, "application/json", bytes.NewReader(body)) //nolint:noctx // a test's own node
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		var answers []map[string]json.RawMessage
		_ = json.NewDecoder(resp.Body).Decode(&answers)
		for i, a := range asked {
			var height hexutil.Uint64
			if a.Method == "eth_getTransactionCount" && json.Unmarshal(a.Params[1], &height) == nil && uint64(height)+10 < uint64(head) {
				answers[i] = map[string]json.RawMessage{"jsonrpc": json.RawMessage(`"2.0"`), "id": a.ID, "error": json.RawMessage(`{"code":-32000,"message":"missing trie node"}`)}
			}
		}
		_ = json.NewEncoder(w).Encode(answers)
	}))
	t.Cleanup(pruned.Close)
	c := n.connect(t, pruned.URL, n.preset.ChainID)
	found, st, err := c.FindCold(t.Context(), checksum(from), u.Payload, "")
	require.NoError(t, err)
	require.Equal(t, []any{"", chain.Unknown}, []any{found, st.State})
	found, st, err = c.FindCold(t.Context(), checksum(from), u.Payload, (common.Hash{1}).Hex())
	require.NoError(t, err)
	require.Equal(t, []any{"", chain.Conflicted, ""}, []any{found, st.State, st.By})
	require.GreaterOrEqual(t, st.Confirmations, int64(8))
}

// FuzzAcceptCold: whatever comes back is refused or is what was proposed, signed by the cold address.
func FuzzAcceptCold(f *testing.F) {
	c, err := New(Options{Network: "ETH", ChainID: 1, URL: "http://127.0.0.1:1"})
	require.NoError(f, err)
	from := chain.Address("0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf")
	s, err := c.sending(&chain.Intent{Network: "ETH", Currency: "ETH", From: from, To: "0x7079000000000000000000000000000000000002", Amount: 5}, true)
	require.NoError(f, err)
	raw, err := c.payload(s, &price{Gas: 21000, Tip: 1, Cap: 100}, 7)
	require.NoError(f, err)
	payload := []byte(hexutil.Encode(raw[20:]))
	f.Add(payload)
	f.Add(raw[20:])
	f.Add([]byte("0x02"))
	_, tx, err := unsigned(raw)
	require.NoError(f, err)
	one, err := crypto.ToECDSA(common.LeftPadBytes([]byte{1}, 32)) // the key of from
	require.NoError(f, err)
	good, err := types.SignTx(tx, c.signer(), one)
	require.NoError(f, err)
	signed, err := good.MarshalBinary()
	require.NoError(f, err)
	_, err = c.AcceptCold(from, payload, signed)
	require.NoError(f, err)
	f.Add(signed)
	f.Add([]byte(hexutil.Encode(signed)))
	f.Fuzz(func(t *testing.T, signed []byte) {
		got, err := c.AcceptCold(from, payload, signed)
		if err != nil {
			require.ErrorIs(t, err, chain.ErrRejected)
			return
		}
		var came types.Transaction
		require.NoError(t, came.UnmarshalBinary(got.Raw))
		by, err := types.Sender(c.signer(), &came)
		require.NoError(t, err)
		require.Equal(t, string(from), by.Hex())
		require.Equal(t, c.signer().Hash(tx), c.signer().Hash(&came), "all that is signed is as it was proposed")
		require.Equal(t, came.Hash().Hex(), got.Tx)
	})
}
