package main

import (
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// TestX01_TheShopOnARealNode: by the settings of a node alone the shop takes its coins, and has
// nobody play the customer. The payment is what the page of the payment says, to the wei.
func TestX01_TheShopOnARealNode(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node")
	}
	t.Parallel()
	node := testenv.Anvil(t)
	r := startWith(t, map[string]string{
		"CRYPTOPAY_RPC_ETH": node.URL(), "CRYPTOPAY_CHAIN_ETH": "31337", "CRYPTOPAY_FINAL_ETH": "3", "CRYPTOPAY_CONFIRMATIONS_ETH": "4",
		"CRYPTOPAY_PRICES": "ETH=2000",
	}, "-dir", t.TempDir())
	v := r.visitor()
	order := v.orders("lamp", "ETH")
	page, _, _ := v.get(order)
	require.NotContains(t, page, "Play the customer")
	_, status, _ := v.post(order+"/customer", "who", "pays")
	require.Equal(t, http.StatusNotFound, status)

	link := regexp.MustCompile(`id="pay" href="([^"]+)"`).FindStringSubmatch(page)
	require.NotNil(t, link)
	page, _, _ = v.get(strings.TrimPrefix(link[1], r.base))
	uri := regexp.MustCompile(`href="ethereum:(0x[0-9a-fA-F]{40})@31337\?value=(\d+)"`).FindStringSubmatch(page)
	require.NotNil(t, uri, page)
	wei, ok := new(big.Int).SetString(uri[2], 10)
	require.True(t, ok)

	c, err := rpc.DialContext(t.Context(), node.URL())
	require.NoError(t, err)
	defer c.Close()
	ask := func(into any, method string, args ...any) {
		t.Helper()
		require.NoError(t, c.CallContext(t.Context(), into, method, args...))
	}
	var accounts []string
	ask(&accounts, "eth_accounts")
	ask(nil, "eth_sendTransaction", map[string]any{"from": accounts[0], "to": uri[1], "value": hexutil.EncodeBig(wei)})
	ask(nil, "anvil_mine", hexutil.Uint64(12))
	v.sees(order, `class="state paid"`)
}
