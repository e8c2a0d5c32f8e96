package solanatest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// ask is an answer as it is on the wire, without what is around it.
func ask(t *testing.T, n *solanatest.Node, method string, params ...any) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	require.NoError(t, err)
	resp, err := http.Post(n.URL, "application/json", bytes.NewReader(body)) //nolint:noctx // of a test's own node
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var out bytes.Buffer
	_, err = out.ReadFrom(resp.Body)
	require.NoError(t, err)
	text := strings.TrimPrefix(strings.TrimSuffix(out.String(), `,"id":1}`), `{"jsonrpc":"2.0",`)
	return strings.TrimPrefix(text, `"result":`)
}

type object map[string]any

func TestSlotsWithoutABlock(t *testing.T) {
	n := solanatest.Open(t, testenv.LiteSVM(t))
	none := object{"commitment": "confirmed", "encoding": "base64", "transactionDetails": "none", "rewards": false}
	slot := func(s int) string { t.Helper(); return ask(t, n, "getBlock", s, none) }
	// The chain is 40 blocks high; slots 3 and 4, and later 48 and 49, were skipped.
	require.Contains(t, slot(3), `"code":-32007`, "finalized")
	require.Contains(t, slot(48), `"code":-32004`, "not finalized")
	require.Contains(t, slot(1000), `"code":-32004`, "to come")
	require.Contains(t, slot(50), `"blockHeight":38`)
	require.NotContains(t, slot(50), "rewards")
	require.Contains(t, ask(t, n, "getBlock", 50, object{"commitment": "processed"}), `"code":-32602`)
	require.Contains(t, ask(t, n, "getBlock", 50, object{"commitment": "finalized"}), `"code":-32004`)

	n.Fault("unstored", []int{38})
	require.Equal(t, "null", slot(50))
	n.Fault("untold", 38)
	require.Contains(t, slot(51), `"code":-32014`)
	n.Fault("untold", nil)

	n.Fault("first", 8)
	require.Contains(t, slot(3), `"code":-32001`)
	require.Contains(t, slot(5), `"code":-32001`)
	n.Fault("archive", true)
	require.Contains(t, slot(3), `"code":-32009`)
	require.Contains(t, slot(5), `"blockHeight":3`)
}

func TestLimitsAndNumbers(t *testing.T) {
	n := solanatest.Open(t, testenv.LiteSVM(t))
	payer := n.Payer.PublicKey().String()
	many := func(count int) (out []string) {
		for range count {
			out = append(out, payer)
		}
		return out
	}
	require.Contains(t, ask(t, n, "getMultipleAccounts", many(101)), `Too many inputs provided; max 100`)
	require.Contains(t, ask(t, n, "getRecentPrioritizationFees", many(129)), `Too many inputs provided; max 128`)
	require.Contains(t, ask(t, n, "getSignaturesForAddress", payer, object{"limit": 1001}), `Invalid limit; max 1000`)
	require.Contains(t, ask(t, n, "getSignaturesForAddress", payer, object{"minContextSlot": 50}), `"data":{"contextSlot":`)
	require.Contains(t, ask(t, n, "getMultipleAccounts", many(1)), `"rentEpoch":18446744073709551615`)
	require.Contains(t, ask(t, n, "getBlocks", 0, 500_001, object{"commitment": "confirmed"}), `[0,1,2,5,`)

	// What one block moved is there for all once it is final, and exact to the lamport.
	n.Send(nil, n.MoveCoins(solanatest.Key("bob").PublicKey(), 1_000_000_001))
	n.Mine(1)
	require.Contains(t, ask(t, n, "getBalance", payer, object{"commitment": "confirmed"}), `"value":288230375151706743`)
	require.Contains(t, ask(t, n, "getBalance", payer), `"value":288230376151711744`)
	n.Mine(solanatest.Finality)
	require.Contains(t, ask(t, n, "getBalance", payer), `"value":288230375151706743`)

	n.Fault("limited", 5)
	resp, err := http.Post(n.URL, "application/json", strings.NewReader(`{}`)) //nolint:noctx // of a test's own node
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	require.Equal(t, "5", resp.Header.Get("Retry-After"))
}
