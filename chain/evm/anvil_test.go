package evm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
)

const payers = 40

// town is a real node with contracts and people who pay.
type town struct {
	url      string
	preset   Options // Network and ChainID, and what else is special about it
	client   *Client
	registry *chain.Registry
	accounts []common.Address
	next     int
	geth     *gethTown // where the node is a go-ethereum; nil = anvil

	usd, noReturn, fee, foreign, sender, liar, undoer common.Address

	mu    sync.Mutex
	fault fault
}

// fault is what stands between the client and the node.
type fault struct {
	lag           int64
	partial, fail bool
	lose          bool
}

func openTown(t *testing.T) *town {
	t.Helper()
	return newTown(t, Options{Network: "ETH", ChainID: 31337, FinalityTags: true})
}

// newTown starts anvil as the node of a network.
func newTown(t *testing.T, preset Options, args ...string) *town {
	t.Helper()
	node := testenv.Anvil(t, append(args, "--accounts", fmt.Sprint(payers), "--balance", "1000000", "--chain-id", fmt.Sprint(preset.ChainID))...)
	n := &town{url: node.URL(), preset: preset}
	n.ask(t, &n.accounts, "eth_accounts")
	require.Len(t, n.accounts, payers)
	n.settle(t)
	return n
}

// settle deploys the contracts and puts a client in front.
func (n *town) settle(t *testing.T) {
	t.Helper()
	n.found(t)
	var err error
	network := n.preset.Network
	token := func(code string, contract common.Address, decimals uint8) chain.Currency {
		return chain.Currency{Code: code, Network: network, Token: code, Contract: contract.Hex(), Decimals: decimals, Scale: min(8, decimals), Confirmations: 1}
	}
	n.registry, err = chain.NewRegistry(
		[]chain.NetworkInfo{{Code: network, Family: chain.AccountFamily, AddressType: "EVM", Gas: "ETH", ChainID: n.preset.ChainID}},
		[]chain.Currency{
			{Code: "ETH", Network: network, Token: "ETH", Decimals: 18, Scale: 8, Confirmations: 1},
			token("USD", n.usd, 6), token("NORETURN", n.noReturn, 6), token("FEE", n.fee, 18), token("LIAR", n.liar, 0),
		})
	require.NoError(t, err)
	proxy := httptest.NewServer(http.HandlerFunc(n.proxy))
	t.Cleanup(proxy.Close)
	n.client = n.connect(t, proxy.URL, n.preset.ChainID)
}

func (n *town) connect(t testing.TB, url string, id int64, change ...func(*Options)) *Client {
	t.Helper()
	o := n.preset
	o.ChainID, o.Registry, o.URL = id, n.registry, url
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	return c
}

// ask calls the node itself, past the client.
func (n *town) ask(t testing.TB, out any, method string, params ...any) {
	t.Helper()
	refused := n.try(t, out, method, params...)
	require.Nil(t, refused, "%s %v: %+v", method, params, refused)
}

// try calls the node itself and returns its refusal.
func (n *town) try(t testing.TB, out any, method string, params ...any) *fakeError {
	t.Helper()
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(transport.Request{Version: "2.0", ID: 1, Method: method, Params: params})
	require.NoError(t, err)
	resp, err := http.Post(n.url, "application/json", bytes.NewReader(body)) //nolint:noctx // a test's own node
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var a struct {
		Result json.RawMessage
		Error  *fakeError
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&a))
	if out != nil && a.Error == nil {
		require.NoError(t, json.Unmarshal(a.Result, out), "%s: %s", method, a.Result)
	}
	return a.Error
}

// words encodes call arguments; a slice becomes a dynamic array.
func words(signature string, args ...any) []byte {
	head, tail := []byte{}, []byte{}
	word := func(v any) []byte {
		switch v := v.(type) {
		case common.Address:
			return common.BytesToHash(v[:]).Bytes()
		case *big.Int:
			return common.BigToHash(v).Bytes()
		default:
			panic(fmt.Sprintf("%T", v))
		}
	}
	number := func(i int) []byte { return word(big.NewInt(int64(i))) }
	for _, a := range args {
		var list []any
		switch v := a.(type) {
		case string:
			head = append(head, number(32*len(args)+len(tail))...)
			tail = append(append(tail, number(len(v))...), common.RightPadBytes([]byte(v), 32)...)
			continue
		case []common.Address:
			for _, x := range v {
				list = append(list, x)
			}
		case []*big.Int:
			for _, x := range v {
				list = append(list, x)
			}
		default:
			head = append(head, word(a)...)
			continue
		}
		head = append(head, number(32*len(args)+len(tail))...)
		tail = append(tail, number(len(list))...)
		for _, x := range list {
			tail = append(tail, word(x)...)
		}
	}
	var selector []byte
	if signature != "" {
		selector = crypto.Keccak256([]byte(signature))[:4]
	}
	return slices.Concat(selector, head, tail)
}

type txArgs map[string]any

// send gives the node a transaction of one of its own accounts.
func (n *town) send(t testing.TB, from common.Address, tx txArgs) common.Hash {
	t.Helper()
	tx["from"] = from
	if tx["gas"] == nil {
		tx["gas"] = "0x4c4b40"
	}
	if n.geth != nil {
		return n.geth.send(t, from, tx)
	}
	var h common.Hash
	n.ask(t, &h, "eth_sendTransaction", tx)
	return h
}

func (n *town) mine(t testing.TB, blocks int) {
	if n.geth != nil {
		n.geth.mine(t, blocks)
		return
	}
	n.ask(t, nil, "anvil_mine", quantity(int64(blocks)))
}

// returnsZero is the code of a token that answers every call with false.
const returnsZero = "60006000526020" + "6000f3"

// undo is the code of a contract that calls itself with the value it got; there
// it pays the address in its calldata and then reverts, which it survives.
const undo = "333014601957" + "366000600037" + "6000600036600034305af15000" + "5b" + "6000600060006000346000355af15060006000fd"

func deployer(runtime string) string {
	return fmt.Sprintf("0x60%02x80600b6000396000f3%s", len(runtime)/2, runtime)
}

// found deploys the contracts and gives everybody tokens.
func (n *town) found(t *testing.T) {
	t.Helper()
	var file struct {
		Contracts map[string]struct{ Bytecode string }
	}
	readJSON(t, "testdata/contracts.json", &file)
	boss, supply := n.accounts[0], new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)
	var made []common.Hash
	deploy := func(code string, args ...any) {
		data := code + fmt.Sprintf("%x", words("", args...))
		made = append(made, n.send(t, boss, txArgs{"data": data}))
	}
	code := func(name string) string { return file.Contracts[name].Bytecode }
	deploy(code("TestToken"), "Tether USD", "USDT", big.NewInt(6), supply)
	deploy(code("NoReturnToken"), "Old", "OLD", big.NewInt(6), supply)
	deploy(code("FeeToken"), "Fee", "FEE", big.NewInt(18), supply)
	deploy(code("TestToken"), "Tether USD", "USDT", big.NewInt(6), supply)
	deploy(code("MultiSender"))
	deploy(deployer(returnsZero))
	deploy(deployer(undo))
	n.mine(t, 1)
	for i, at := range []*common.Address{&n.usd, &n.noReturn, &n.fee, &n.foreign, &n.sender, &n.liar, &n.undoer} {
		var r struct {
			ContractAddress common.Address
			Status          string
		}
		n.ask(t, &r, "eth_getTransactionReceipt", made[i])
		require.Equal(t, "0x1", r.Status)
		*at = r.ContractAddress
	}
	share := new(big.Int).Exp(big.NewInt(10), big.NewInt(24), nil)
	for _, a := range n.accounts[1:] {
		for _, token := range []common.Address{n.usd, n.noReturn, n.fee, n.foreign} {
			n.send(t, boss, txArgs{"to": token, "data": hexutil.Bytes(words("transfer(address,uint256)", a, share)), "gas": "0x30d40"})
		}
		n.send(t, a, txArgs{"to": n.usd, "data": hexutil.Bytes(words("approve(address,uint256)", n.sender, supply)), "gas": "0x30d40"})
	}
	n.mine(t, 3)
}

// payer is somebody with coins and nothing pending.
func (n *town) payer() common.Address {
	n.next++
	return n.accounts[1+n.next%(payers-1)]
}

// proxy is the client's way to the node, with faults.
func (n *town) proxy(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	f := n.fault
	n.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if f.fail {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	var batch []transport.Request
	single := json.Unmarshal(body, &batch) != nil
	if single {
		batch = make([]transport.Request, 1)
		_ = json.Unmarshal(body, &batch[0])
	}
	if f.lag > 0 {
		head := n.height()
		for i := range batch {
			lagging(&batch[i], head-f.lag)
		}
		body, _ = json.Marshal(batch)
	}
	resp, err := http.Post(n.url, "application/json", bytes.NewReader(body)) //nolint:noctx // a test's own node
	if err != nil {
		http.Error(w, "gone", http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(resp.Body)
	if f.lose && strings.Contains(string(body), "eth_sendRawTransaction") {
		n.set(func(f *fault) { f.lose = false })
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.Close()
		}
		return
	}
	if f.partial {
		answer = partially(batch, answer)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

func (n *town) set(f func(*fault)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(&n.fault)
}

func (n *town) height() int64 {
	resp, err := http.Post(n.url, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}`)) //nolint:noctx // a test's own node
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	var a struct{ Result hexutil.Uint64 }
	_ = json.NewDecoder(resp.Body).Decode(&a)
	return int64(a.Result)
}

// lagging makes a question that of a node whose head is lower.
func lagging(q *transport.Request, head int64) {
	if q.Method != "eth_getBlockByNumber" {
		return
	}
	tag, _ := q.Params[0].(string)
	if n, ok := parseNumber([]byte(tag)); tag == "latest" || ok && n > head {
		q.Params[0] = quantity(head)
		if ok {
			q.Params[0] = "0xffffffff"
		}
	}
}

// partially takes away what blocks moved.
func partially(batch []transport.Request, answer []byte) []byte {
	var all []map[string]any
	if json.Unmarshal(answer, &all) != nil {
		return answer
	}
	for i, q := range batch {
		switch q.Method {
		case "eth_getLogs":
			all[i]["result"] = []any{}
		case "eth_getTransactionReceipt", "eth_getBlockReceipts":
			all[i]["result"] = nil
		}
	}
	out, _ := json.Marshal(all)
	return out
}

// units are the smallest ones.
func (n *town) units(t testing.TB, code string, d decimal.Decimal) *big.Int {
	t.Helper()
	c, err := n.registry.Currency(code)
	require.NoError(t, err)
	return d.Shift(int32(c.Decimals)).BigInt()
}

func (n *town) contract(t testing.TB, code string) common.Address {
	t.Helper()
	c, err := n.registry.Currency(code)
	require.NoError(t, err)
	return common.HexToAddress(c.Contract)
}

func (n *town) transfer(t testing.TB, token common.Address, to chain.Address, amount *big.Int) common.Hash {
	t.Helper()
	return n.send(t, n.payer(), txArgs{"to": token, "data": hexutil.Bytes(words("transfer(address,uint256)", common.HexToAddress(string(to)), amount)), "gas": "0x30d40"})
}

func (n *town) internal(t testing.TB, amount *big.Int, gas string, to ...common.Address) common.Hash {
	t.Helper()
	return n.send(t, n.payer(), txArgs{"to": n.sender, "value": (*hexutil.Big)(amount), "data": hexutil.Bytes(words("sendEther(address[])", to)), "gas": gas})
}

// reorg replaces the last blocks by empty ones, and puts what was in them back
// into the mempool, save what is dropped.
func (n *town) reorg(t testing.TB, depth int, drop ...string) {
	t.Helper()
	var raws []hexutil.Bytes
	head := n.height()
	for h := head - int64(depth) + 1; h <= head; h++ {
		var b struct{ Transactions []common.Hash }
		n.ask(t, &b, "eth_getBlockByNumber", quantity(h), false)
		for _, x := range b.Transactions {
			if slices.Contains(drop, x.Hex()) {
				continue
			}
			var raw hexutil.Bytes
			n.ask(t, &raw, "eth_getRawTransactionByHash", x)
			raws = append(raws, raw)
		}
	}
	if n.geth != nil {
		n.geth.rewrite(t, depth)
	} else {
		n.ask(t, nil, "anvil_reorg", depth, []any{})
	}
	for _, raw := range raws { // geth may have put it back by itself
		if refused := n.try(t, nil, "eth_sendRawTransaction", raw); refused != nil {
			require.Equal(t, "already known", refused.Message)
		}
	}
}
