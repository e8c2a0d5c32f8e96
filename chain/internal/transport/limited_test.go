package transport_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// TestX02_NodesThatAreAskedTooOften: the answers are those of Bitcoin Core, rippled, Clio,
// TronGrid, Infura, Alchemy, QuickNode, Base and Solana's public nodes.
func TestX02_NodesThatAreAskedTooOften(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name   string
		status int
		retry  string
		body   string
		after  time.Duration
	}{
		{"429", 429, "", "", 0},
		{"429 with a wait", 429, "7", "", 7 * time.Second},
		{"503 with a wait", 503, "9", "", 9 * time.Second},
		{"Core", 503, "", "Work queue depth exceeded", 0},
		{"Core before 22 and its forks", 500, "", "Work queue depth exceeded", 0},
		{"rippled", 503, "", "Server is overloaded\r\n", 0},
		{"Clio", 503, "", `{"error":"slowDown","error_code":10,"error_message":"You are placing too much load on the server.","status":"error","type":"response"}`, 0},
		{"Clio, busy", 503, "", `{"error":"tooBusy","error_code":9,"error_message":"The server is too busy to help you now."}`, 0},
		{"TronGrid", 403, "", `{"Success":false,"Error":"The key exceeds the frequency limit(15), and the query server is suspended for 30s","StatusCode":403}`, 30 * time.Second},
		{"TronGrid, without a key", 403, "", `{"Error":"request rate exceeded the allowed_rps(10), and the query server is suspended for 5 s"}`, 5 * time.Second},
		{"Infura", 200, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"project ID request rate exceeded","data":{"rate":{"allowed_rps":1,"backoff_seconds":30,"current_rps":1.4}}}}`, 30 * time.Second},
		{"Infura, for the day", 200, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"daily request count exceeded, request rate limited"}}`, 0},
		{"Infura, credits of the day", 402, "", `{"jsonrpc":"2.0","id":1,"error":{"code":402,"event":-33000,"message":"Payment Required","details":"You have reached your daily credit limit."}}`, 5 * time.Minute},
		{"the same by 200", 200, "", `[{"jsonrpc":"2.0","id":1,"error":{"code":402,"message":"Payment Required"}}]`, 5 * time.Minute},
		{"Blockfrost", 402, "", `{"error":"Project Over Limit","message":"Usage is over limit.","status_code":402}`, 5 * time.Minute},
		{"402 with a wait", 402, "60", "", time.Minute},
		{"Alchemy", 200, "", `{"jsonrpc":"2.0","id":1,"error":{"code":429,"message":"Your app has exceeded its compute units per second capacity."}}`, 0},
		{"QuickNode", 200, "", `[{"jsonrpc":"2.0","id":1,"error":{"code":-32007,"message":"50/second request limit reached - reduce calls per second"}}]`, 0},
		{"QuickNode, credits", 200, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32012,"message":"credits limited to 6000/sec"}}`, 0},
		{"Base", 200, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32016,"message":"over rate limit"}}`, 0},
		{"code of a limit, with strangers' words", 200, "", `{"jsonrpc":"2.0","id":1,"error":{"code":429,"message":"slow down: execution reverted"}}`, 0},
		{"403 with a nested error", 403, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"project ID request rate exceeded","data":{"rate":{"backoff_seconds":30}}}}`, 30 * time.Second},
		{"403 of a gateway", 403, "", `{"message":"API rate limit exceeded"}`, 0},
		{"403 of a batch", 403, "", `[{"jsonrpc":"2.0","id":1,"error":{"code":-32016,"message":"over rate limit"}}]`, 0},
		{"Solana", 200, "", `{"jsonrpc":"2.0","id":null,"error":{"code":429,"message":"Too many requests for a specific RPC call"}}`, 0},
	} {
		n := newNode(t, 1, func(w http.ResponseWriter, _ []byte) {
			if x.retry != "" {
				w.Header().Set("Retry-After", x.retry)
			}
			w.WriteHeader(x.status)
			_, _ = w.Write([]byte(x.body))
		})
		n.Refusals = []int{500} // as Core's are
		k := transport.NewCall("m")
		err := n.Do(t.Context(), k)
		if err == nil {
			err = k.Err
		}
		clienttest.Limited(t, err, x.after, x.name)
	}
}

// TestX02_OtherLimitsAreNoRateLimits: what is refused for its size is refused again later.
func TestX02_OtherLimitsAreNoRateLimits(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		status int
		body   string
	}{
		{503, "upstream is down"},
		{403, "<html><h1>403 Forbidden</h1></html>"},
		{403, `{"error":"this API key is not allowed"}`},
		{200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"query returned more than 10000 results"}}`},
		{200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"limit exceeded"}}`},
		{200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"Node is behind by 42 slots","data":{"numSlotsBehind":42}}}`},
		{200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32016,"message":"Minimum context slot has not been reached","data":{"contextSlot":1}}}`},
		{200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"eth_getLogs is limited to a 10,000 range"}}`},
		{200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"exceeds block gas limit"}}`},
	} {
		n := newNode(t, 1, func(w http.ResponseWriter, _ []byte) {
			w.WriteHeader(x.status)
			_, _ = w.Write([]byte(x.body))
		})
		k := transport.NewCall("m")
		err := n.Do(t.Context(), k)
		if err == nil {
			err = k.Err
		}
		var limited *chain.LimitedError
		require.ErrorIs(t, err, chain.ErrNode, x.body)
		require.NotErrorAs(t, err, &limited, x.body)
	}
}

// TestX02_StrangersWordsAreNoRateLimit: a contract chooses the text of its revert, and a
// program what it logs. Neither makes a healthy node one that was asked too often. The
// answers are those of geth, Nethermind, Agave, Horizon and Clio.
func TestX02_StrangersWordsAreNoRateLimit(t *testing.T) {
	t.Parallel()
	const padding = "0000000000000000000000000000000000000000000000000000000000000000"
	for _, x := range []struct {
		name   string
		status int
		body   string
	}{
		{"revert", 200, `{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"execution reverted: rate limit","data":"0x08c379a0"}}`},
		{"revert without its code", 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Execution reverted: Too many requests"}}`},
		{"code of a revert without the word", 200, `{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"too many requests"}}`},
		{"revert in data", 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32015,"message":"VM execution error.","data":"Too many requests"}}`},
		{"logs", 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Transaction simulation failed","data":{"logs":["Program log: rate limit"],"message":"too many requests"}}}`},
		{"batch", 200, `[{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"execution reverted: rate limit"}}]`},
		{"revert by status", 400, `{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"execution reverted: rate limit"}}`},
		{"batch by status", 400, `[{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"execution reverted: rate limit"}}]`},
		{"logs by status", 400, `{"error":{"data":{"logs":["Program log: rate limit"]},"code":-32002,"message":"Transaction simulation failed"}}`},
		{"long logs by status", 400, `{"error":{"code":-32002,"message":"Transaction simulation failed","data":{"logs":["rate limit` + strings.Repeat(padding, 100) + `"]}}}`},
		{"echo of a memo", 504, `{"title":"Timeout","status":504,"extras":{"envelope_xdr":"AAAAslowdownAAAA"}}`},
		{"echo of an address", 503, `{"error":"noNetwork","request":{"account":"rTooBusy"},"status":"error"}`},
	} {
		n := newNode(t, 1, func(w http.ResponseWriter, _ []byte) {
			w.WriteHeader(x.status)
			_, _ = w.Write([]byte(x.body))
		})
		k := transport.NewCall("m")
		err := n.Do(t.Context(), k)
		if err == nil {
			err = k.Err
		}
		require.ErrorIs(t, err, chain.ErrNode, x.name)
		require.NotErrorAs(t, err, new(*chain.LimitedError), x.name)
	}
}
