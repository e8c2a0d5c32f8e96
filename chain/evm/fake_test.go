package evm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
)

// fakeNode is the outside world: a node that can be told to lie.
type fakeNode struct {
	t      testing.TB
	server *httptest.Server

	mu      sync.Mutex
	chainID int64
	blocks  []*fakeBlock
	final   int64
	lies    map[string]lie
	asked   map[string]int
}

// lie answers in place of the node. ok false: the node answers itself.
type lie func(params []json.RawMessage) (result any, err *fakeError, ok bool)

type fakeError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type fakeBlock struct {
	height       int64
	hash, parent common.Hash
	txs          []*fakeTx
}

type fakeTx struct {
	hash     common.Hash
	from, to common.Address
	value    *big.Int
	nonce    uint64
	failed   bool
	logs     []fakeLog
}

type fakeLog struct {
	contract common.Address
	topics   []common.Hash
	data     []byte
}

func newFake(t testing.TB) *fakeNode {
	t.Helper()
	f := &fakeNode{t: t, chainID: 1, lies: map[string]lie{}, asked: map[string]int{}}
	f.blocks = []*fakeBlock{{hash: crypto.Keccak256Hash([]byte("genesis"))}}
	f.server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.server.Close)
	return f
}

// mine adds a block on top.
func (f *fakeNode) mine(txs ...*fakeTx) *fakeBlock {
	f.mu.Lock()
	defer f.mu.Unlock()
	top := f.blocks[len(f.blocks)-1]
	b := &fakeBlock{height: top.height + 1, parent: top.hash, txs: txs}
	seed := fmt.Sprint(top.hash, len(txs), f.asked["branch"])
	for _, x := range txs {
		seed += x.hash.Hex()
	}
	b.hash = crypto.Keccak256Hash([]byte(seed))
	f.blocks = append(f.blocks, b)
	return b
}

// drop takes the last n blocks away; what is mined next is another branch.
func (f *fakeNode) drop(n int) []*fakeBlock {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked["branch"]++
	gone := slices.Clone(f.blocks[len(f.blocks)-n:])
	f.blocks = f.blocks[:len(f.blocks)-n]
	return gone
}

func (f *fakeNode) lie(method string, l lie) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lies[method] = l
}

func (f *fakeNode) says(method string, result any) {
	f.lie(method, func([]json.RawMessage) (any, *fakeError, bool) { return result, nil, true })
}

func (f *fakeNode) refuses(method string, code int, message string) {
	f.lie(method, func([]json.RawMessage) (any, *fakeError, bool) { return nil, &fakeError{code, message}, true })
}

func (f *fakeNode) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	type req struct {
		ID     int
		Method string
		Params []json.RawMessage
	}
	var reqs []req
	single := json.Unmarshal(body, &reqs) != nil
	if single {
		reqs = make([]req, 1)
		if err := json.Unmarshal(body, &reqs[0]); err != nil {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
	}
	out := []map[string]any{}
	for _, q := range reqs {
		if q.Method == "eth_call" && bytes.Contains(q.Params[0], []byte(hexutil.Encode(selDecimals[:])+`"`)) {
			q.Method = "decimals()"
		}
		f.asked[q.Method]++
		m := map[string]any{"jsonrpc": "2.0", "id": q.ID}
		var result any
		var refused *fakeError
		ok := false
		if l := f.lies[q.Method]; l != nil {
			result, refused, ok = l(q.Params)
		}
		if !ok {
			result, refused = f.answer(q.Method, q.Params)
		}
		if refused != nil {
			m["error"] = refused
		} else {
			m["result"] = result
		}
		out = append(out, m)
	}
	slices.Reverse(out) // the order of a batch's answers means nothing
	w.Header().Set("Content-Type", "application/json")
	if single {
		_ = json.NewEncoder(w).Encode(out[0])
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}

func text(p json.RawMessage) string {
	var s string
	_ = json.Unmarshal(p, &s)
	return s
}

func (f *fakeNode) at(tag string) *fakeBlock {
	switch tag {
	case "latest":
		return f.blocks[len(f.blocks)-1]
	case tagFinal, "safe":
		return f.blocks[f.final]
	}
	n, err := strconv.ParseInt(tag, 0, 64)
	if err != nil || n >= int64(len(f.blocks)) {
		return nil
	}
	return f.blocks[n]
}

func (f *fakeNode) byHash(h string) *fakeBlock {
	for _, b := range f.blocks {
		if b.hash.Hex() == h {
			return b
		}
	}
	return nil
}

func (f *fakeNode) find(tx string) (*fakeBlock, int) {
	for _, b := range f.blocks {
		for i, x := range b.txs {
			if x.hash.Hex() == tx {
				return b, i
			}
		}
	}
	return nil, 0
}

func (f *fakeNode) answer(method string, p []json.RawMessage) (any, *fakeError) {
	switch method {
	case "decimals()":
		return word(6), nil // of every token of ETH that is listed
	case "eth_chainId":
		return quantity(f.chainID), nil
	case "eth_getBlockByNumber":
		if b := f.at(text(p[0])); b != nil {
			return b.json(string(p[1]) == "true"), nil
		}
		return nil, nil
	case "eth_getBlockTransactionCountByHash":
		if b := f.byHash(text(p[0])); b != nil {
			return quantity(int64(len(b.txs))), nil
		}
		return nil, nil
	case "eth_getLogs":
		var q struct{ BlockHash string }
		_ = json.Unmarshal(p[0], &q)
		if b := f.byHash(q.BlockHash); b != nil {
			return b.logs(), nil
		}
		return nil, &fakeError{-32000, "unknown block"}
	case "eth_getTransactionReceipt":
		if b, i := f.find(text(p[0])); b != nil {
			return b.receipt(i), nil
		}
		return nil, nil
	case "eth_getBlockReceipts":
		if b := f.byHash(text(p[0])); b != nil {
			out := []any{}
			for i := range b.txs {
				out = append(out, b.receipt(i))
			}
			return out, nil
		}
		return nil, nil
	case "eth_getTransactionByHash":
		if b, i := f.find(text(p[0])); b != nil {
			return map[string]any{"hash": b.txs[i].hash, "blockHash": b.hash}, nil
		}
		return nil, nil
	case "eth_getTransactionCount":
		n := uint64(0)
		for _, b := range f.blocks[:f.at(text(p[1])).height+1] {
			for _, x := range b.txs {
				if x.from.Hex() == common.HexToAddress(text(p[0])).Hex() {
					n = x.nonce + 1
				}
			}
		}
		return quantity(int64(n)), nil
	}
	return nil, &fakeError{-32601, "the method " + method + " does not exist/is not available"}
}

func (b *fakeBlock) json(full bool) any {
	txs := []any{}
	var bloom types.Bloom
	for i, x := range b.txs {
		if full {
			txs = append(txs, map[string]any{
				"hash": x.hash, "from": x.from, "to": x.to, "value": (*hexutil.Big)(x.value), "nonce": hexutil.Uint64(x.nonce),
				"input": "0x", "blockHash": b.hash, "transactionIndex": hexutil.Uint64(i),
			})
		} else {
			txs = append(txs, x.hash)
		}
		if !x.failed {
			for _, l := range x.logs {
				bloom.Add(l.contract[:])
				for _, t := range l.topics {
					bloom.Add(t[:])
				}
			}
		}
	}
	return map[string]any{
		"number": quantity(b.height), "hash": b.hash, "parentHash": b.parent, "timestamp": quantity(1_700_000_000 + 12*b.height),
		"logsBloom": bloom, "baseFeePerGas": "0x3b9aca00", "transactions": txs,
	}
}

func (b *fakeBlock) logs() []any {
	out := []any{}
	for i, x := range b.txs {
		for _, l := range b.receipt(i)["logs"].([]any) {
			if m := l.(map[string]any); len(x.logs) > 0 && slices.Contains(m["topics"].([]common.Hash), transferTopic) {
				out = append(out, l)
			}
		}
	}
	return out
}

func (b *fakeBlock) receipt(n int) map[string]any {
	index := 0
	for _, x := range b.txs[:n] {
		if !x.failed {
			index += len(x.logs)
		}
	}
	x := b.txs[n]
	logs, status := []any{}, "0x1"
	if x.failed {
		status = "0x0"
	} else {
		for i, l := range x.logs {
			logs = append(logs, map[string]any{
				"address": l.contract, "topics": l.topics, "data": hexutil.Bytes(l.data), "blockHash": b.hash, "blockNumber": quantity(b.height),
				"transactionHash": x.hash, "transactionIndex": quantity(int64(n)), "logIndex": quantity(int64(index + i)), "removed": false,
			})
		}
	}
	return map[string]any{
		"transactionHash": x.hash, "blockHash": b.hash, "blockNumber": quantity(b.height), "status": status,
		"gasUsed": "0x5208", "effectiveGasPrice": "0x3b9aca00", "logs": logs,
	}
}

var (
	usdt    = common.HexToAddress("0xdAC17F958D2ee523a2206206994597C13D831ec7")
	alice   = common.HexToAddress("0x1111111111111111111111111111111111111111")
	bob     = common.HexToAddress("0x2222222222222222222222222222222222222222")
	mallory = common.HexToAddress("0x9999999999999999999999999999999999999999")
)

var fakeSeq = struct {
	sync.Mutex
	n uint64
}{}

func fakeHash() common.Hash {
	fakeSeq.Lock()
	defer fakeSeq.Unlock()
	fakeSeq.n++
	return crypto.Keccak256Hash([]byte(fmt.Sprint("tx", fakeSeq.n)))
}

func ether(to common.Address, wei int64) *fakeTx {
	return &fakeTx{hash: fakeHash(), from: alice, to: to, value: big.NewInt(wei)}
}

func transferLog(contract, from, to common.Address, amount *big.Int) fakeLog {
	return fakeLog{contract, []common.Hash{transferTopic, common.BytesToHash(from[:]), common.BytesToHash(to[:])}, common.BigToHash(amount).Bytes()}
}

func tokens(logs ...fakeLog) *fakeTx {
	return &fakeTx{hash: fakeHash(), from: alice, to: usdt, value: new(big.Int), logs: logs}
}

// set is a Watch over fixed addresses; open are those that wait for ether.
type set struct {
	all   []common.Address
	opens []common.Address
	syncs int
}

func watch(a ...common.Address) *set { return &set{all: a} }

func (s *set) Sync(context.Context) error { s.syncs++; return nil }
func (s *set) Contains(a chain.Address) bool {
	return slices.ContainsFunc(s.all, func(x common.Address) bool { return checksum(x) == a })
}

func (s *set) Open() []chain.Address {
	var out []chain.Address
	for _, a := range s.opens {
		out = append(out, checksum(a))
	}
	return out
}

func mainRegistry(t testing.TB) *chain.Registry {
	t.Helper()
	r, err := chain.NewRegistry(
		[]chain.NetworkInfo{{Code: "ETH", Family: chain.AccountFamily, AddressType: "EVM", Gas: "ETH", ChainID: 1}},
		[]chain.Currency{
			{Code: "ETH", Network: "ETH", Token: "ETH", Decimals: 18, Scale: 8, Confirmations: 12},
			{Code: "USDTERC20", Network: "ETH", Token: "USDT", Contract: usdt.Hex(), Decimals: 6, Scale: 6, Confirmations: 12},
		})
	require.NoError(t, err)
	return r
}

// tokensAudited is the Options' default: the fake node keeps no balances of tokens.
func tokensAudited(o *Options) { o.NoTokenAudit = false }

func (f *fakeNode) client(change ...func(*Options)) *Client {
	f.t.Helper()
	o := Options{Network: "ETH", ChainID: 1, Registry: mainRegistry(f.t), URL: f.server.URL, FinalityTags: true, NoTokenAudit: true}
	for _, c := range change {
		c(&o)
	}
	c, err := New(o)
	require.NoError(f.t, err)
	return c
}

func scan(t *testing.T, c *Client, trail []chain.Block, w chain.Watch) chain.Scan {
	t.Helper()
	s, err := c.Scan(t.Context(), trail, w, 100)
	require.NoError(t, err)
	return s
}

// begin is a trail that ends at the node's head.
func begin(t *testing.T, c *Client) []chain.Block {
	t.Helper()
	s := scan(t, c, nil, watch())
	require.Len(t, s.Blocks, 1)
	return []chain.Block{s.Blocks[0].Block}
}

func all(s chain.Scan) []chain.Transfer {
	var out []chain.Transfer
	for _, b := range s.Blocks {
		out = append(out, b.Transfers...)
	}
	return out
}

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

// word is a number as a contract returns it.
func word(n int64) string { return fmt.Sprintf("0x%064x", n) }
