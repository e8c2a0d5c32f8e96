package evm

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

// TestFN04_AStrangersTransactionStopsNoBlock: of a type that nobody knows yet, with a nonce
// beyond what accounts have, and fields of other forms.
func TestFN04_AStrangersTransactionStopsNoBlock(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	b := f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
	f.lie("eth_getBlockByNumber", func(p []json.RawMessage) (any, *fakeError, bool) {
		if f.at(text(p[0])) != b || string(p[1]) != "true" {
			return nil, nil, false
		}
		m, ok := b.json(true).(map[string]any)
		if !ok {
			return nil, nil, false
		}
		txs, ok := m["transactions"].([]any)
		m["transactions"] = append([]any{map[string]any{
			"type": "0x7f", "hash": crypto.Keccak256Hash([]byte("strange")), "from": alice, "to": nil, "value": "0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
			"nonce": "0x1ffffffffffffffffffffffff", "input": "0x", "authorizationList": []any{map[string]any{"chainId": "0x0"}},
			"calls": []any{[]any{nil, 7, "x"}}, "r": nil, "yParity": "0x1b",
		}}, txs...)
		return m, nil, ok
	})
	got := all(scan(t, c, trail, watch(bob)))
	require.Len(t, got, 1)
	require.False(t, got[0].Unproven)
}

// TestFN04_MoreLogsThanANodeLists: the receipts have them, too.
func TestFN04_MoreLogsThanANodeLists(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client()
	trail := begin(t, c)
	f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
	listed := all(scan(t, c, trail, watch(bob)))
	f.refuses("eth_getLogs", -32005, "query returned more than 10000 results")
	got := all(scan(t, c, trail, watch(bob)))
	require.Equal(t, listed, got)

	f.refuses("eth_getLogs", -32000, "unknown block")
	_, err := c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode, "that is a node which is behind")
	f.refuses("eth_getLogs", -32005, "query returned more than 10000 results")
	f.says("eth_getBlockReceipts", []any{})
	_, err = c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode, "and that one says nothing of the block")
}

// TestFN04_ATokenThatDoesNotSayItsBalancesStopsNothing: it was paused, or is gone.
func TestFN04_ATokenThatDoesNotSayItsBalancesStopsNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.client(tokensAudited)
	trail := begin(t, c)
	f.mine(tokens(transferLog(usdt, alice, bob, big.NewInt(9))))
	for _, breaks := range []func(){
		func() { f.refuses("eth_call", 3, "execution reverted: paused") },
		func() { f.refuses("eth_call", -32000, "missing trie node 1234") },
		func() { f.says("eth_call", "0x") },
	} {
		breaks()
		got := all(scan(t, c, trail, watch(bob)))
		require.Len(t, got, 1)
		require.True(t, got[0].Unproven, "seen, and not proven")
	}
	f.refuses("eth_call", -32000, "header not found")
	_, err := c.Scan(t.Context(), trail, watch(bob), 10)
	require.ErrorIs(t, err, chain.ErrNode, "a node that is behind says nothing")
}
