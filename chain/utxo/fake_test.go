package utxo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/btcsuite/btcd/wire/v2"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// fakeNode answers from blocks that a test makes, as a node would that checks no
// proof of work.
type fakeNode struct {
	mu     sync.Mutex
	blocks [][]byte // by height
	hashes []string
	pool   map[string][]byte
	answer map[string]func(params []any) (any, *fakeError) // instead of the usual
	asked  map[string]int
	url    string
}

type fakeError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func newFake(t testing.TB) *fakeNode {
	t.Helper()
	f := &fakeNode{pool: map[string][]byte{}, answer: map[string]func([]any) (any, *fakeError){}, asked: map[string]int{}}
	f.mine()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.url = s.URL
	return f
}

// client is one in front of the fake, of a network whose genesis is the fake's.
func (f *fakeNode) client(t testing.TB, n chain.Network, change ...func(*Options)) *Client {
	t.Helper()
	p, ok := Mainnet(n)
	require.True(t, ok)
	p.Genesis, p.Checkpoint = f.hashes[0], Checkpoint{}
	o := Options{Network: n, Params: p, Registry: mainRegistry(), URL: f.url}
	for _, c := range change {
		c(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	return c
}

func serialize(tx *wire.MsgTx) []byte {
	var buf bytes.Buffer
	_ = tx.Serialize(&buf)
	return buf.Bytes()
}

// coinbaseTx makes coins for a script, unlike any other.
func coinbaseTx(height int, script []byte) []byte {
	tx := wire.NewMsgTx(2)
	tx.AddTxIn(&wire.TxIn{
		PreviousOutPoint: wire.OutPoint{Index: 0xffffffff}, Sequence: 0xffffffff,
		SignatureScript: binary.LittleEndian.AppendUint32([]byte{4}, uint32(height)),
	})
	tx.AddTxOut(wire.NewTxOut(50_0000_0000, script))
	return serialize(tx)
}

// payTx spends something made up and pays a script.
func payTx(seed string, value int64, scripts ...[]byte) *wire.MsgTx {
	tx := wire.NewMsgTx(2)
	tx.AddTxIn(&wire.TxIn{PreviousOutPoint: wire.OutPoint{Hash: sha256.Sum256([]byte(seed))}, SignatureScript: []byte{1}, Sequence: replaceable})
	for _, s := range scripts {
		tx.AddTxOut(wire.NewTxOut(value, s))
	}
	return tx
}

// makeBlock puts transactions behind a header of a version; between is what
// stands between header and transactions, after what follows them.
func makeBlock(prev string, version uint32, between []byte, txs [][]byte, after []byte) (raw []byte, hash string) {
	h := newHasher()
	b := block{}
	body := []byte{byte(len(txs))}
	for i, raw := range txs {
		r := &cursor{b: raw}
		t := r.tx(h, true, i == len(txs)-1)
		b.txs = append(b.txs, t)
		body = append(body, raw...)
	}
	root, _ := b.merkle(h)
	head := [headerSize]byte{}
	binary.LittleEndian.PutUint32(head[:], version)
	if p, ok := parseHash(prev); ok {
		copy(head[4:], p[:])
	}
	copy(head[36:], root[:])
	binary.LittleEndian.PutUint32(head[68:], 1_700_000_000)
	hash = hexHash(twice(head[:]))
	return slices.Concat(head[:], between, body, after), hash
}

// mine adds a block with these transactions.
func (f *fakeNode) mine(txs ...[]byte) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	prev := ""
	if len(f.hashes) > 0 {
		prev = f.hashes[len(f.hashes)-1]
	}
	all := append([][]byte{coinbaseTx(len(f.blocks), []byte{0x51})}, txs...)
	raw, hash := makeBlock(prev, 2, nil, all, nil)
	f.put(raw, hash)
	return hash
}

func (f *fakeNode) put(raw []byte, hash string) {
	f.blocks, f.hashes = append(f.blocks, raw), append(f.hashes, hash)
}

func (f *fakeNode) set(method string, answer func(params []any) (any, *fakeError)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer[method] = answer
}

func (f *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var batch []transport.Request
	if json.Unmarshal(body, &batch) != nil {
		http.Error(w, "not an array", http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []map[string]any
	for _, q := range batch {
		f.asked[q.Method]++
		answer := f.answer[q.Method]
		if answer == nil {
			answer = func(p []any) (any, *fakeError) { return f.usual(q.Method, p) }
		}
		result, refused := answer(q.Params)
		a := map[string]any{"id": q.ID, "result": result, "error": nil}
		if refused != nil {
			a["error"] = refused
		}
		out = append(out, a)
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (f *fakeNode) usual(method string, p []any) (any, *fakeError) {
	switch method {
	case "getblockcount":
		return len(f.blocks) - 1, nil
	case "getblockhash":
		if h := int(p[0].(float64)); h < len(f.hashes) {
			return f.hashes[h], nil
		}
		return nil, &fakeError{-8, "Block height out of range"}
	case "getblock", "getblockheader":
		for i, h := range f.hashes {
			if h == p[0] {
				if p[1] == true {
					return map[string]any{"height": i}, nil
				}
				return hex.EncodeToString(f.blocks[i]), nil
			}
		}
		return nil, &fakeError{-5, "Block not found"}
	case "getrawmempool":
		ids := []string{}
		for id := range f.pool {
			ids = append(ids, id)
		}
		return ids, nil
	case "getrawtransaction":
		return f.transaction(p)
	default:
		return nil, &fakeError{-32601, "Method not found"}
	}
}

func (f *fakeNode) transaction(p []any) (any, *fakeError) {
	id := p[0].(string)
	if raw, ok := f.pool[id]; ok {
		if p[1] == 1.0 {
			return map[string]any{"hex": hex.EncodeToString(raw)}, nil
		}
		return hex.EncodeToString(raw), nil
	}
	params := Params{}
	for i, raw := range f.blocks {
		b, err := params.readBlock(raw, f.hashes[i], int64(i))
		if err != nil {
			continue
		}
		for _, t := range b.txs {
			if hexHash(t.id) != id {
				continue
			}
			text := hex.EncodeToString(t.stripped())
			if p[1] == 1.0 {
				return map[string]any{"hex": text, "blockhash": f.hashes[i], "confirmations": len(f.blocks) - i}, nil
			}
			return text, nil
		}
	}
	return nil, &fakeError{-5, fmt.Sprintf("No such mempool or blockchain transaction %s", id)}
}
