// Package utxotest plays a customer who mines on a real node of Bitcoin's kind, for
// tests: btcd or Litecoin Core, started by internal/testenv, on a chain of its own
// that grows when a test says so.
package utxotest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	btcaddr "github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/address/v2/base58"
	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// Mint is a real node of Bitcoin's kind, with a customer who mines.
type Mint struct {
	Network chain.Network
	Node    *testenv.CoinNode
	Client  *utxo.Client // that is nobody's but the test's

	t       testing.TB
	params  utxo.Params
	dialect utxo.Dialect
	key     *btcec.PrivateKey
	spent   int64 // coinbases of blocks up to here
	forks   int
}

// Open starts btcd ("simnet", "regtest") for BTC, or Litecoin Core for LTC, and mines
// coins. Segregated witness is active on btcd from block 300 on. args go to the node.
// For DOGE it is btcd, too, with Dogecoin's fees, dust and kind of address: no node of
// Dogecoin's own is in the tests.
func Open(t testing.TB, network chain.Network, kind string, blocks int, args ...string) *Mint {
	t.Helper()
	sum := sha256.Sum256([]byte("a customer who mines"))
	m := &Mint{t: t, Network: network, dialect: utxo.Btcd}
	m.key, _ = btcec.PrivKeyFromBytes(sum[:])
	rules := network
	if network == "DOGE" {
		rules = "BTC"
	}
	var ok bool
	m.params, ok = utxo.Testnets(rules, kind)
	require.True(t, ok)
	if network == "DOGE" {
		doge, ok := utxo.Mainnet(network)
		require.True(t, ok)
		doge.Name, doge.Genesis, doge.Address, doge.Checkpoint = m.params.Name, m.params.Genesis, m.params.Address, m.params.Checkpoint
		doge.Address.HRP, doge.AuxPoW = "", false
		m.params = doge
	}
	if network == "LTC" {
		m.dialect = utxo.Core
		m.Node = testenv.Litecoind(t, args...)
	} else {
		m.Node = testenv.Btcd(t, kind, m.address(m.key), args...)
	}
	if blocks > 0 {
		m.Mine(blocks)
	}
	m.Client = m.Connect()
	return m
}

// Follow gives the node every block that another one has and it has not.
func (m *Mint) Follow(other *Mint) {
	m.t.Helper()
	hash := func(m *Mint, height int64) (out string) { m.Ask(&out, "getblockhash", height); return out }
	from := min(m.Height(), other.Height())
	for from > 0 && hash(m, from) != hash(other, from) {
		from--
	}
	for h := from + 1; h <= other.Height(); h++ {
		m.Ask(nil, "submitblock", other.block(h))
	}
}

// block is a raw block, in hex.
func (m *Mint) block(height int64) (raw string) {
	m.t.Helper()
	var hash string
	m.Ask(&hash, "getblockhash", height)
	m.Ask(&raw, "getblock", hash, map[utxo.Dialect]any{utxo.Btcd: 0, utxo.Core: false}[m.dialect])
	return raw
}

func (m *Mint) parsed(height int64) (block wire.MsgBlock) {
	m.t.Helper()
	b, err := hex.DecodeString(m.block(height))
	require.NoError(m.t, err)
	require.NoError(m.t, block.Deserialize(bytes.NewReader(b)))
	return block
}

// address is the P2PKH address of a key.
func (m *Mint) address(k *btcec.PrivateKey) string {
	body := append([]byte{m.params.Address.PubKeyHash}, btcaddr.Hash160(k.PubKey().SerializeCompressed())...)
	return base58.Encode(append(body, chainhash.DoubleHashB(body)[:4]...))
}

// Connect makes a client as a new process would have one.
func (m *Mint) Connect(change ...func(*utxo.Options)) *utxo.Client {
	m.t.Helper()
	o := utxo.Options{
		Network: m.Network, Params: m.params, Registry: chain.MainnetRegistry().Only(m.Network), Dialect: m.dialect,
		URL: m.Node.URL(), User: testenv.CoinUser, Password: testenv.CoinPassword,
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	for _, f := range change {
		f(&o)
	}
	c, err := utxo.New(o)
	require.NoError(m.t, err)
	return c
}

// Ask calls the node itself, past the library.
func (m *Mint) Ask(out any, method string, params ...any) {
	m.t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "1.0", "id": 1, "method": method, "params": slices.Concat([]any{}, params)})
	require.NoError(m.t, err)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, m.Node.URL(), bytes.NewReader(body))
	require.NoError(m.t, err)
	req.Close = true
	req.SetBasicAuth(testenv.CoinUser, testenv.CoinPassword)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(m.t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(m.t, err)
	var a struct{ Result, Error json.RawMessage }
	require.NoError(m.t, json.Unmarshal(raw, &a), "%s: %s", method, raw)
	require.Contains(m.t, []string{"", "null"}, string(a.Error), method)
	if out != nil {
		require.NoError(m.t, json.Unmarshal(a.Result, out), method)
	}
}

// Mine adds blocks, the first with what waits.
func (m *Mint) Mine(blocks int) {
	m.t.Helper()
	if m.dialect == utxo.Btcd {
		m.Ask(nil, "generate", blocks)
		return
	}
	m.Ask(nil, "generatetoaddress", blocks, m.reward())
}

// reward is another address after each fork: two empty blocks of one second would be
// one.
func (m *Mint) reward() string {
	to := m.key
	if m.forks > 0 {
		sum := sha256.Sum256([]byte{byte(m.forks)})
		to, _ = btcec.PrivKeyFromBytes(sum[:])
	}
	return m.address(to)
}

// Height is that of the newest block.
func (m *Mint) Height() (h int64) {
	m.t.Helper()
	m.Ask(&h, "getblockcount")
	return h
}

// Pay sends a whole coinbase: the amount to an address, the rest back.
func (m *Mint) Pay(to string, amount decimal.Decimal) string { return m.Spread(to, amount, 1) }

// Spread is Pay in as many equal coins, each of the amount.
func (m *Mint) Spread(to string, amount decimal.Decimal, coins int) string {
	m.t.Helper()
	m.spent++
	block := m.parsed(m.spent)
	from := block.Transactions[0]
	script := m.Script(to)
	tx := wire.NewMsgTx(2)
	id := from.TxHash()
	tx.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: id}, nil, nil))
	value := amount.Shift(8).IntPart()
	for range coins {
		tx.AddTxOut(wire.NewTxOut(value, script))
	}
	const rate = 30 // units for each byte
	fee := rate * int64(200+40*coins)
	tx.AddTxOut(wire.NewTxOut(from.TxOut[0].Value-value*int64(coins)-fee, from.TxOut[0].PkScript))
	sig, err := txscript.SignatureScript(tx, 0, from.TxOut[0].PkScript, txscript.SigHashAll, m.key, true)
	require.NoError(m.t, err)
	tx.TxIn[0].SignatureScript = sig
	var buf bytes.Buffer
	require.NoError(m.t, tx.Serialize(&buf))
	var sent string
	m.Ask(&sent, "sendrawtransaction", hex.EncodeToString(buf.Bytes()))
	return sent
}

// Script pays an address of the library's own form.
func (m *Mint) Script(to string) []byte {
	m.t.Helper()
	kind, program, ok := m.params.Address.Program(to)
	require.True(m.t, ok, to)
	if m.params.Legacy {
		require.Equal(m.t, "P2PKH", kind)
		return append(append([]byte{0x76, 0xa9, 20}, program...), 0x88, 0xac)
	}
	require.Equal(m.t, "P2WPKH", kind)
	return append([]byte{0, 20}, program...)
}

// invalidate takes the last blocks away.
func (m *Mint) invalidate(depth int) {
	m.t.Helper()
	var hash string
	m.Ask(&hash, "getblockhash", m.Height()-int64(depth)+1)
	m.forks++
	m.Ask(nil, "invalidateblock", hash)
}

// Reorg replaces the last blocks by empty ones. What was in them is gone. The node is
// at another port then.
func (m *Mint) Reorg(depth int) {
	m.t.Helper()
	m.invalidate(depth)
	m.Node.Restart()
	m.Mine(depth)
}

// Fork replaces the last blocks by one more. What was in them waits again; btcd, which
// cannot be told what to mine, puts it into the first of the new ones.
func (m *Mint) Fork(depth int) {
	m.t.Helper()
	m.invalidate(depth)
	if m.dialect == utxo.Btcd {
		m.Mine(depth + 1)
		return
	}
	for range depth + 1 {
		m.Ask(nil, "generateblock", m.reward(), []string{})
	}
}

// Received is what an address got in blocks, by the node's own outputs.
func (m *Mint) Received(a string) decimal.Decimal {
	m.t.Helper()
	sum, err := m.Client.Balance(m.t.Context(), string(m.Network), chain.Address(a))
	require.NoError(m.t, err)
	return sum
}

// Paid is what every output in a block brought an address, spent or not.
func (m *Mint) Paid(to string) (out []decimal.Decimal) {
	m.t.Helper()
	script := m.Script(to)
	for h := int64(1); h <= m.Height(); h++ {
		for _, tx := range m.parsed(h).Transactions {
			for _, o := range tx.TxOut {
				if bytes.Equal(o.PkScript, script) {
					out = append(out, decimal.New(o.Value, -8))
				}
			}
		}
	}
	return out
}

// Unspent reports whether an output is there, in a block, and not spent by one.
func (m *Mint) Unspent(outpoint string) bool {
	m.t.Helper()
	tx, place, _ := strings.Cut(outpoint, ":")
	n, err := strconv.Atoi(place)
	require.NoError(m.t, err)
	var out json.RawMessage
	m.Ask(&out, "gettxout", tx, n, false)
	return len(out) > 0 && string(out) != "null"
}
