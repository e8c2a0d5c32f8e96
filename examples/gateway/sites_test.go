package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/address/v2/base58"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	sdk "github.com/gagliardetto/solana-go"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/stellartest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/trontest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/utxotest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/xrptest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// site is a node, those who pay and mine there, and what a user writes so that the
// gateway serves it.
type site struct {
	network  chain.Network
	settings map[string]string // beside those that every gateway of the test has
	float    string            // coins of the operator's own
	pace     int               // blocks at a time
	pay      func(to chain.Address, memo, currency string, coins decimal.Decimal) (tx string)
	mine     func(blocks int)
	// fork takes the newest block away; what was in it waits again, or is gone. Where
	// it is nil the node closes for good.
	fork     func(tx string) (gone bool)
	somebody chain.Address // who is there already; "" where anybody may be paid
}

// openPruned is a Litecoin Core that keeps no index of transactions.
func openPruned(t testing.TB) *site {
	s := openCoins("LTC", "regtest", "core", 130, testenv.Pruned...)(t)
	s.settings["CRYPTOPAY_PRUNED_LTC"] = "1"
	return s
}

func openCoins(network chain.Network, kind, dialect string, blocks int, args ...string) func(testing.TB) *site {
	return func(t testing.TB) *site {
		m := utxotest.Open(t, network, kind, blocks, args...)
		_, host, _ := strings.Cut(m.Node.URL(), "//")
		return &site{
			network: network, float: "0.1", pace: 1,
			settings: map[string]string{
				"CRYPTOPAY_RPC_" + string(network):     "http://" + testenv.CoinUser + ":" + testenv.CoinPassword + "@" + host,
				"CRYPTOPAY_CHAIN_" + string(network):   kind,
				"CRYPTOPAY_DIALECT_" + string(network): dialect,
			},
			pay: func(to chain.Address, _, _ string, coins decimal.Decimal) string {
				return m.Pay(string(to), coins)
			},
			mine: m.Mine,
			fork: func(string) bool { m.Fork(1); return false },
		}
	}
}

// ask calls a node's JSON-RPC.
func ask(t testing.TB, url string, out any, method string, params ...any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": slices.Concat([]any{}, params)})
	require.NoError(t, err)
	resp, err := httpClient.Post(url, "application/json", bytes.NewReader(body)) //nolint:noctx // it has a deadline
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var a struct{ Result, Error json.RawMessage }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&a))
	require.Empty(t, string(a.Error), method)
	if out != nil {
		require.NoError(t, json.Unmarshal(a.Result, out), method)
	}
}

// rich sends from an account that the node itself signs for.
type rich struct {
	t     testing.TB
	url   string
	from  common.Address
	token common.Address
}

func newRich(t testing.TB, url string) *rich {
	t.Helper()
	var all []common.Address
	ask(t, url, &all, "eth_accounts")
	return &rich{t: t, url: url, from: all[0]}
}

func (r *rich) send(tx map[string]any) string {
	r.t.Helper()
	tx["from"], tx["gas"] = r.from, "0x2dc6c0"
	var hash string
	ask(r.t, r.url, &hash, "eth_sendTransaction", tx)
	return hash
}

func (r *rich) pay(to chain.Address, _, currency string, coins decimal.Decimal) string {
	r.t.Helper()
	if strings.HasPrefix(currency, "USDC") {
		data := slices.Concat(hexutil.MustDecode("0xa9059cbb"), common.LeftPadBytes(common.HexToAddress(string(to)).Bytes(), 32),
			common.LeftPadBytes(coins.Shift(6).BigInt().Bytes(), 32))
		return r.send(map[string]any{"to": r.token, "data": hexutil.Bytes(data)})
	}
	return r.send(map[string]any{"to": to, "value": (*hexutil.Big)(coins.Shift(18).BigInt())})
}

// deploy puts a plain token there, all of which is the account's.
func (r *rich) deploy(mine func(int)) {
	r.t.Helper()
	raw, err := os.ReadFile("../../chain/evm/testdata/contracts.json")
	require.NoError(r.t, err)
	var file struct {
		Contracts map[string]struct{ Bytecode string }
	}
	require.NoError(r.t, json.Unmarshal(raw, &file))
	var args abi.Arguments
	for _, name := range []string{"string", "string", "uint8", "uint256"} {
		typ, err := abi.NewType(name, "", nil)
		require.NoError(r.t, err)
		args = append(args, abi.Argument{Type: typ})
	}
	packed, err := args.Pack("USD Coin", "USDC", uint8(6), big.NewInt(1e18))
	require.NoError(r.t, err)
	tx := r.send(map[string]any{"data": hexutil.Bytes(append(common.FromHex(file.Contracts["TestToken"].Bytecode), packed...))})
	mine(1)
	var receipt struct{ ContractAddress common.Address }
	ask(r.t, r.url, &receipt, "eth_getTransactionReceipt", tx)
	r.token = receipt.ContractAddress
}

func openAnvil(t testing.TB) *site {
	r := newRich(t, testenv.Anvil(t).URL())
	s := &site{network: "ETH", float: "1", pace: 2, pay: r.pay}
	s.mine = func(blocks int) { ask(t, r.url, nil, "anvil_mine", hexutil.Uint64(blocks)) }
	s.fork = func(string) bool {
		ask(t, r.url, nil, "anvil_reorg", 1, []any{})
		return true
	}
	r.deploy(s.mine)
	s.settings = map[string]string{
		"CRYPTOPAY_RPC_ETH": r.url, "CRYPTOPAY_CHAIN_ETH": "31337", "CRYPTOPAY_FINAL_ETH": "3", "CRYPTOPAY_CONFIRMATIONS_ETH": "4",
		"CRYPTOPAY_CONTRACT_USDCERC20": r.token.Hex(),
	}
	return s
}

// openGeth: a lone go-ethereum, which stands for another network of its kind.
func openGeth(t testing.TB) *site {
	r := newRich(t, testenv.Geth(t).URL())
	var head struct{ Number, Timestamp hexutil.Uint64 }
	commit := func(raws []string) {
		ask(t, r.url, &head, "eth_getBlockByNumber", "latest", false)
		ask(t, r.url, nil, "testing_commitBlockV1", map[string]any{
			"timestamp": head.Timestamp + 12, "prevRandao": common.Hash{}, "suggestedFeeRecipient": common.Address{},
			"withdrawals": []any{}, "parentBeaconBlockRoot": common.Hash{},
		}, raws, nil)
	}
	raw := func(tx string) (out string) { ask(t, r.url, &out, "eth_getRawTransactionByHash", tx); return out }
	return &site{
		network: "AVAX", float: "1", pace: 2, pay: r.pay,
		settings: map[string]string{"CRYPTOPAY_RPC_AVAX": r.url, "CRYPTOPAY_CHAIN_AVAX": "1337", "CRYPTOPAY_FINAL_AVAX": "2"},
		mine: func(blocks int) {
			raws := []string{}
			for _, tx := range waiting(t, r.url) {
				raws = append(raws, raw(tx))
			}
			for range blocks {
				commit(raws)
				raws = []string{}
			}
		},
		fork: func(tx string) bool {
			was := raw(tx)
			ask(t, r.url, &head, "eth_getBlockByNumber", "latest", false)
			ask(t, r.url, nil, "debug_setHead", head.Number-1)
			commit([]string{}) // others come first now
			commit([]string{was})
			return false
		},
	}
}

// waiting is what can be mined of a go-ethereum's pool, each sender's in order.
func waiting(t testing.TB, url string) (txs []string) {
	t.Helper()
	type pooled map[common.Address]map[string]struct{ Hash string }
	var pool struct{ Pending, Queued pooled }
	ask(t, url, &pool, "txpool_content")
	for _, part := range []pooled{pool.Pending, pool.Queued} {
		for _, of := range part {
			var nonces []int
			for n := range of {
				i, err := strconv.Atoi(n)
				require.NoError(t, err)
				nonces = append(nonces, i)
			}
			slices.Sort(nonces)
			for _, n := range nonces {
				txs = append(txs, of[strconv.Itoa(n)].Hash)
			}
		}
	}
	return txs
}

func openSolana(t testing.TB) *site {
	s, _ := openSolanaNode(t)
	return s
}

func openSolanaNode(t testing.TB) (*site, *solanatest.Node) {
	n := solanatest.Open(t, testenv.LiteSVM(t))
	mint := solanatest.Key("a token").PublicKey()
	n.MintAt(mint, solanatest.Token, 6)
	n.Mine(40) // it is final
	return &site{
		network: "SOL", float: "1", pace: 8,
		settings: map[string]string{"CRYPTOPAY_RPC_SOL": n.URL, "CRYPTOPAY_CHAIN_SOL": n.Genesis(), "CRYPTOPAY_CONTRACT_USDTSOL": mint.String()},
		pay: func(a chain.Address, _, currency string, coins decimal.Decimal) string {
			to := sdk.MustPublicKeyFromBase58(string(a))
			if currency == "SOL" {
				return n.Send(nil, n.MoveCoins(to, coins.Shift(9).BigInt().Uint64()))
			}
			return n.Send(nil, n.OpenATA(to, solanatest.Token, mint),
				n.MoveTokens(solanatest.ATA(to, solanatest.Token, mint), solanatest.Token, mint, coins.Shift(6).BigInt().Uint64(), 6))
		},
		mine: n.Mine,
		fork: func(tx string) bool { n.Reorg(1, tx); return true },
	}, n
}

// before is a proxy before a node, which may change what it answers. It returns its URL.
func before(t testing.TB, url string, change func(answer []byte) []byte) string {
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := httpClient.Post(url, "application/json", r.Body) //nolint:noctx // it has a deadline
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close() //nolint:errcheck // it was read
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(change(answer))
	}))
}

func serve(t testing.TB, node http.Handler) string {
	t.Helper()
	server := httptest.NewServer(node)
	t.Cleanup(server.Close)
	return server.URL
}

func openTron(t testing.TB) *site {
	n := trontest.New(t.Name())
	return &site{
		network: "TRX", float: "2000", pace: 5,
		settings: map[string]string{
			"CRYPTOPAY_RPC_TRX": serve(t, n), "CRYPTOPAY_CHAIN_TRX": n.Genesis(),
			"CRYPTOPAY_CONTRACT_USDTTRC20": base58.CheckEncode(n.Token[:], 0x41),
		},
		pay: func(to chain.Address, _, currency string, coins decimal.Decimal) string {
			raw, _, err := base58.CheckDecode(string(to))
			require.NoError(t, err)
			p := trontest.Pay{To: trontest.Account(raw), Amount: coins.Shift(6).BigInt()}
			if currency != "TRX" {
				p.Contract = n.Token
			}
			return n.Send(trontest.Plain, p)
		},
		mine: n.Mine,
		fork: func(tx string) bool { n.Reorg(1, tx); return true },
	}
}

func openXRP(t testing.TB) *site {
	n := xrptest.New(t.Name(), 1)
	somebody := xrptest.Address("somebody")
	n.Send(xrptest.Pay{To: somebody, Drops: 5_000_000})
	n.Mine(1)
	return &site{
		network: "XRP", float: "20", pace: 1, mine: n.Mine, somebody: chain.Address(somebody),
		settings: map[string]string{"CRYPTOPAY_RPC_XRP": serve(t, n), "CRYPTOPAY_CHAIN_XRP": "1"},
		pay: func(to chain.Address, memo, _ string, coins decimal.Decimal) string {
			p := xrptest.Pay{To: string(to), Drops: coins.Shift(6).IntPart()}
			if tag, err := strconv.ParseUint(memo, 10, 32); err == nil {
				p.Tag = new(uint32(tag))
			}
			return n.Send(p)
		},
	}
}

func openStellar(t testing.TB) *site {
	const passphrase = "A network of a test ; 2026"
	n := stellartest.New(t.Name(), passphrase)
	somebody := stellartest.Address("somebody")
	n.Send(stellartest.Pay{To: somebody, Stroops: 50_000_000})
	n.Mine(1)
	return &site{
		network: "XLM", float: "20", pace: 1, mine: n.Mine, somebody: chain.Address(somebody),
		settings: map[string]string{"CRYPTOPAY_RPC_XLM": serve(t, n), "CRYPTOPAY_CHAIN_XLM": passphrase},
		pay: func(to chain.Address, memo, _ string, coins decimal.Decimal) string {
			p := stellartest.Pay{To: string(to), Stroops: coins.Shift(7).IntPart()}
			if memo != "" {
				p.MemoType, p.Memo = "id", memo
			}
			n.Send(p)
			return ""
		},
	}
}

// prices as a user sets them for a test chain.
func prices() string {
	var all []string
	for token, usd := range firstPrices {
		all = append(all, token+"="+usd)
	}
	slices.SortFunc(all, cmp.Compare)
	return strings.Join(all, ",")
}
