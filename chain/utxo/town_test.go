package utxo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	btcaddr "github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// town is a real node, a customer with coins, and what can go wrong between the
// node and the client.
type town struct {
	network chain.Network
	params  Params
	dialect Dialect
	node    *testenv.CoinNode
	client  *Client
	key     *btcec.PrivateKey
	purse   []wire.OutPoint // each of share units, P2PKH of key
	forks   int
	pruned  bool

	mu    sync.Mutex
	fault fault
}

type fault struct {
	lag                 int64
	kept                int64 // the oldest block that is not dropped
	partial, fail, lose bool
}

const share = 12_000_000

func customer() *btcec.PrivateKey {
	sum := sha256.Sum256([]byte("a customer"))
	k, _ := btcec.PrivKeyFromBytes(sum[:])
	return k
}

func mainRegistry() *chain.Registry { return chain.MainnetRegistry().Only("BTC", "LTC", "DOGE") }

func offline(t testing.TB, n chain.Network, p Params) *Client {
	t.Helper()
	c, err := New(Options{Network: n, Params: p, Registry: mainRegistry(), URL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	return c
}

func mainnet(t testing.TB, n chain.Network) *Client {
	t.Helper()
	p, ok := Mainnet(n)
	require.True(t, ok)
	return offline(t, n, p)
}

// legacyAddress is the P2PKH address of a key.
func (n *town) legacyAddress(k *btcec.PrivateKey) string {
	return string(newWriter(n.params.Address).append(nil, p2pkh, btcaddr.Hash160(k.PubKey().SerializeCompressed())))
}

func btcdTown(t testing.TB) *town {
	t.Helper()
	n := &town{network: "BTC", dialect: Btcd, key: customer()}
	n.params, _ = Testnets("BTC", "simnet")
	n.node = testenv.Btcd(t, "simnet", n.legacyAddress(n.key))
	n.found(t, 310) // segregated witness is active from 300 on
	return n
}

func litecoinTown(t testing.TB) *town {
	t.Helper()
	n := &town{network: "LTC", dialect: Core, key: customer()}
	n.params, _ = Testnets("LTC", "regtest")
	n.node = testenv.Litecoind(t, "-mempoolreplacement=1")
	n.found(t, 110)
	return n
}

// prunedTown is a Litecoin Core that keeps no index of transactions. Its chain is too short
// for it to drop blocks: see fault.kept.
func prunedTown(t testing.TB) *town {
	t.Helper()
	n := &town{network: "LTC", dialect: Core, key: customer(), pruned: true}
	n.params, _ = Testnets("LTC", "regtest")
	n.node = testenv.Litecoind(t, append(testenv.Pruned, "-mempoolreplacement=1")...)
	n.found(t, 110)
	return n
}

// found mines coins for the customer and divides one among many.
func (n *town) found(t testing.TB, blocks int) {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(n.proxy))
	t.Cleanup(proxy.Close)
	n.client = n.connect(t, proxy.URL, n.params)
	n.mine(t, blocks)
	var hash string
	n.ask(t, &hash, "getblockhash", 1)
	first := n.block(t, hash, 1)
	made := &first.txs[0]
	value, _ := made.value(0)
	split := wire.NewMsgTx(2)
	split.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: made.id}, nil, nil))
	for range (value - 1_000_000) / share {
		split.AddTxOut(wire.NewTxOut(share, n.purseScript()))
	}
	n.sign(t, split)
	n.ask(t, nil, "sendrawtransaction", n.hex(t, split))
	n.mine(t, 1)
	for i := range split.TxOut {
		n.purse = append(n.purse, wire.OutPoint{Hash: split.TxHash(), Index: uint32(i)})
	}
}

func (n *town) purseScript() []byte {
	return scriptOf(p2pkh, btcaddr.Hash160(n.key.PubKey().SerializeCompressed()))
}

// sign completes a transaction that spends the customer's outputs.
func (n *town) sign(t testing.TB, tx *wire.MsgTx) {
	t.Helper()
	for i, in := range tx.TxIn {
		var err error
		in.SignatureScript, err = txscript.SignatureScript(tx, i, n.purseScript(), txscript.SigHashAll, n.key, true)
		require.NoError(t, err)
	}
}

func (n *town) hex(t testing.TB, tx *wire.MsgTx) string {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, tx.Serialize(&buf))
	return hex.EncodeToString(buf.Bytes())
}

func (n *town) connect(t testing.TB, url string, p Params, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{
		Network: n.network, Params: p, Registry: mainRegistry(), URL: url, Dialect: n.dialect,
		User: testenv.CoinUser, Password: testenv.CoinPassword, Pruned: n.pruned,
	}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	return c
}

// try calls the node itself, past the client.
func (n *town) try(method string, params ...any) (json.RawMessage, error) {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(transport.Request{Version: "1.0", ID: 1, Method: method, Params: params})
	if err != nil {
		return nil, err
	}
	answer, err := n.post(body)
	if err != nil {
		return nil, err
	}
	var a struct {
		Result json.RawMessage
		Error  *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, fmt.Errorf("%s: %w: %.200s", method, err, answer)
	}
	if a.Error != nil {
		return nil, fmt.Errorf("%s: %d %s", method, a.Error.Code, a.Error.Message)
	}
	return a.Result, nil
}

func (n *town) post(body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, n.node.URL(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Close = true // Core ends only when nobody is connected
	req.SetBasicAuth(testenv.CoinUser, testenv.CoinPassword)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.ReadAll(resp.Body)
}

func (n *town) ask(t testing.TB, out any, method string, params ...any) {
	t.Helper()
	raw, err := n.try(method, params...)
	require.NoError(t, err)
	if out != nil {
		require.NoError(t, json.Unmarshal(raw, out), "%s: %s", method, raw)
	}
}

func (n *town) height() int64 {
	var h int64
	raw, _ := n.try("getblockcount")
	_ = json.Unmarshal(raw, &h)
	return h
}

func (n *town) block(t testing.TB, hash string, height int64) *block {
	t.Helper()
	var raw any = false
	if n.dialect == Btcd {
		raw = 0
	}
	var text string
	n.ask(t, &text, "getblock", hash, raw)
	b, err := hex.DecodeString(text)
	require.NoError(t, err)
	out, err := n.params.readBlock(b, hash, height)
	require.NoError(t, err)
	return &out
}

func (n *town) mine(t testing.TB, blocks int) {
	t.Helper()
	if n.dialect == Btcd {
		n.ask(t, nil, "generate", blocks)
		return
	}
	// Another address on each fork: two empty blocks of one second would be one.
	sum := sha256.Sum256(fmt.Append(nil, "miner", n.forks))
	k, _ := btcec.PrivKeyFromBytes(sum[:])
	if n.forks == 0 {
		k = n.key
	}
	n.ask(t, nil, "generatetoaddress", blocks, n.legacyAddress(k))
}

// pay is an outside customer's transaction.
func (n *town) pay(t testing.TB, ps ...chaintest.Payment) string {
	t.Helper()
	require.NotEmpty(t, n.purse, "the customer's purse is empty")
	at := n.purse[0]
	n.purse = n.purse[1:]
	tx := wire.NewMsgTx(2)
	in := wire.NewTxIn(&at, nil, nil)
	in.Sequence = replaceable
	tx.AddTxIn(in)
	rest := int64(share - 100_000)
	for _, p := range ps {
		script, err := n.client.script(p.To)
		require.NoError(t, err)
		value := p.Amount.Shift(8).IntPart()
		tx.AddTxOut(wire.NewTxOut(value, script))
		rest -= value
	}
	require.Positive(t, rest)
	tx.AddTxOut(wire.NewTxOut(rest, n.purseScript()))
	n.sign(t, tx)
	var id string
	n.ask(t, &id, "sendrawtransaction", n.hex(t, tx))
	return id
}

// reorg replaces the last blocks by empty ones, and puts what was in them back
// into the mempool, save what is dropped.
func (n *town) reorg(t testing.TB, depth int, drop ...string) {
	t.Helper()
	var keep []string
	head := n.height()
	var first string
	in := map[string]string{} // a node without an index is asked with the block
	for h := head - int64(depth) + 1; h <= head; h++ {
		var hash string
		n.ask(t, &hash, "getblockhash", h)
		if first == "" {
			first = hash
		}
		for _, x := range n.block(t, hash, h).txs[1:] {
			keep = append(keep, hexHash(x.id))
			in[hexHash(x.id)] = hash
		}
	}
	var waits []string
	n.ask(t, &waits, "getrawmempool")
	keep = append(keep, waits...)
	var raws []string
	for _, id := range keep {
		if !slices.Contains(drop, id) {
			var raw string
			if hash := in[id]; n.pruned && hash != "" {
				n.ask(t, &raw, "getrawtransaction", id, false, hash)
			} else {
				n.ask(t, &raw, "getrawtransaction", id, 0)
			}
			raws = append(raws, raw)
		}
	}
	n.forks++
	n.ask(t, nil, "invalidateblock", first)
	if n.ask(t, &waits, "getrawmempool"); len(waits) > 0 {
		n.node.Restart() // there is no other way to empty a mempool
		n.ask(t, &waits, "getrawmempool")
		require.Empty(t, waits)
	}
	require.Equal(t, head-int64(depth), n.height())
	n.mine(t, depth)
	for _, raw := range raws {
		n.ask(t, nil, "sendrawtransaction", raw)
	}
}

func (n *town) set(f func(*fault)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(&n.fault)
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
	_ = json.Unmarshal(body, &batch)
	answer, err := n.post(body)
	if err != nil {
		http.Error(w, "gone", http.StatusBadGateway)
		return
	}
	if f.lose && bytes.Contains(body, []byte("sendrawtransaction")) {
		n.set(func(f *fault) { f.lose = false })
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.Close()
		}
		return
	}
	if f.lag > 0 || f.partial || f.kept > 0 {
		answer = n.spoil(batch, answer, f)
	}
	_, _ = w.Write(answer)
}

// spoil makes answers those of a node that is behind, or that leaves the last
// transaction of a block out.
func (n *town) spoil(batch []transport.Request, answer []byte, f fault) []byte {
	var all []map[string]any
	if json.Unmarshal(answer, &all) != nil {
		return answer
	}
	head := n.height() - f.lag
	for i, q := range batch {
		switch q.Method {
		case "getblockcount":
			all[i]["result"] = head
		case "getblockhash":
			if h, _ := q.Params[0].(float64); int64(h) > head {
				all[i]["result"], all[i]["error"] = nil, map[string]any{"code": -8, "message": "Block height out of range"}
			}
		case "getblock":
			if text, ok := all[i]["result"].(string); ok && f.partial {
				all[i]["result"] = n.shorter(text)
			}
			if n.heightOf(q.Params[0]) < f.kept {
				all[i]["result"], all[i]["error"] = nil, map[string]any{"code": -1, "message": "Block not available (pruned data)"}
			}
		}
	}
	out, _ := json.Marshal(all)
	return out
}

// heightOf is where a block of a hash lies.
func (n *town) heightOf(hash any) int64 {
	var at struct {
		Height int64 `json:"height"`
	}
	if raw, err := n.try("getblockheader", hash, true); err != nil || json.Unmarshal(raw, &at) != nil {
		return -1
	}
	return at.Height
}

// shorter takes the last transaction out of a block.
func (n *town) shorter(text string) string {
	raw, _ := hex.DecodeString(text)
	r := &cursor{b: raw, i: headerSize + 1}
	for range raw[headerSize] - 1 {
		r.tx(newHasher(), n.params.MWEB, false)
	}
	raw = raw[:r.i]
	raw[headerSize]--
	return hex.EncodeToString(raw)
}

func (n *town) harness(t testing.TB) *chaintest.Harness {
	t.Helper()
	return &chaintest.Harness{
		Client: n.client, Registry: mainRegistry(), Family: chain.UTXOFamily, Native: string(n.network),
		Amount: decimal.RequireFromString("0.01"), Finality: -1,
		Batch: true, Returns: true, Replaceable: true,
		Pay: n.pay, Mine: n.mine, Reorg: n.reorg,
		Lag:        func(_ testing.TB, blocks int) { n.set(func(f *fault) { f.lag = int64(blocks) }) },
		Partial:    func(_ testing.TB, on bool) { n.set(func(f *fault) { f.partial = on }) },
		Fail:       func(_ testing.TB, on bool) { n.set(func(f *fault) { f.fail = on }) },
		LoseAnswer: func(testing.TB) { n.set(func(f *fault) { f.lose = true }) },
		WrongChain: func(t testing.TB) chain.Client {
			p, _ := Mainnet(n.network)
			return n.connect(t, n.node.URL(), p)
		},
		BadAddresses: []string{
			"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu", "DBus3bamQjgJULBJtYXpEzDWQRwF5iwxgC",
			"ltc1qjmxnz78nmc8nq77wuxh25n2es7rzm5c2rkk4wh", "KyZpNDKnfs94vbrwhJneDi77V6jF64PWPF8x5cdJb8ifgg2DUc9d",
		},
	}
}
