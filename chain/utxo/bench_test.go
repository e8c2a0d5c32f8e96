package utxo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/btcsuite/btcd/wire/v2"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
)

// sample is what addresses look like.
const sample = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"

// bigBlock is one of mainnet's size: 3000 transactions of two inputs and three
// outputs, half of the outputs segregated witness.
func bigBlock(b testing.TB) (raw []byte, hash string) {
	b.Helper()
	n := 0
	script := func() []byte {
		n++
		h := sha256.Sum256(binary.LittleEndian.AppendUint32(nil, uint32(n)))
		switch n % 4 {
		case 0:
			return scriptOf(p2pkh, h[:20])
		case 1:
			return scriptOf(p2tr, h[:])
		default:
			return scriptOf(p2wpkh, h[:20])
		}
	}
	txs := [][]byte{coinbaseTx(1, []byte{0x51})}
	for i := range 3000 {
		tx := payTx(fmt.Sprint(i), 1000, script(), script())
		tx.TxIn[0].SignatureScript = nil
		tx.TxIn[0].Witness = wire.TxWitness{make([]byte, 72), make([]byte, 33)}
		txs = append(txs, serialize(tx))
	}
	return makeBigBlock(txs)
}

func makeBigBlock(txs [][]byte) ([]byte, string) {
	raw, _ := makeBlock("", 2, nil, txs[:1], nil)
	head := raw[:headerSize:headerSize]
	var blk block
	body := binary.LittleEndian.AppendUint16([]byte{0xfd}, uint16(len(txs)))
	h := newHasher()
	for _, raw := range txs {
		r := &cursor{b: raw}
		blk.txs = append(blk.txs, r.tx(h, false, true))
		body = append(body, raw...)
	}
	root, _ := blk.merkle(h)
	copy(head[36:], root[:])
	return append(head, body...), hexHash(twice(head))
}

// BenchmarkBlock decodes, proves and matches a block of mainnet's size against a
// million addresses, beside what reading the same block as JSON costs.
func BenchmarkBlock(b *testing.B) {
	c := mainnet(b, "BTC")
	raw, hash := bigBlock(b)
	w := chaintest.Watching(b, "BTC", sample, 1_000_000)
	b.Run("RawProvenMatched", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		defer chaintest.CPU(b)()
		for b.Loop() {
			blk, err := c.p.readBlock(raw, hash, 1)
			require.NoError(b, err)
			_, err = c.match(&blk, w)
			require.NoError(b, err)
		}
	})
	text := verbose(b, c, raw, hash)
	b.Run("VerboseJSON", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		defer chaintest.CPU(b)()
		for b.Loop() {
			var v verboseBlock
			require.NoError(b, json.Unmarshal(text, &v))
			hits := 0
			for _, t := range v.Tx {
				for _, o := range t.Vout {
					if w.Contains(chain.Address(o.Script.Address)) {
						hits++
					}
				}
			}
			require.Zero(b, hits)
		}
	})
}

type verboseBlock struct {
	Hash string `json:"hash"`
	Tx   []struct {
		Txid string `json:"txid"`
		Vin  []struct {
			Txid    string   `json:"txid"`
			Vout    uint32   `json:"vout"`
			Witness []string `json:"txinwitness"`
		} `json:"vin"`
		Vout []struct {
			Value  json.Number `json:"value"`
			N      int         `json:"n"`
			Script struct {
				Asm     string `json:"asm"`
				Hex     string `json:"hex"`
				Address string `json:"address"`
				Type    string `json:"type"`
			} `json:"scriptPubKey"`
		} `json:"vout"`
	} `json:"tx"`
}

// verbose is the block as getblock with verbosity 2 writes it.
func verbose(b testing.TB, c *Client, raw []byte, hash string) []byte {
	b.Helper()
	blk, err := c.p.readBlock(raw, hash, 1)
	require.NoError(b, err)
	var txs []map[string]any
	for i := range blk.txs {
		t := &blk.txs[i]
		var vin, vout []map[string]any
		t.inputs(func(o []byte) bool {
			vin = append(vin, map[string]any{"txid": hexHash([32]byte(o[:32])), "vout": 0, "txinwitness": []string{hex.EncodeToString(make([]byte, 72)), hex.EncodeToString(make([]byte, 33))}, "sequence": 0xfffffffd})
			return true
		})
		r := cursor{b: t.outs}
		for n := range t.nOut {
			_, script := r.output()
			a, _ := c.address(script)
			vout = append(vout, map[string]any{"value": jsonNumber("0.00001000"), "n": n, "scriptPubKey": map[string]any{
				"asm": "0 " + hex.EncodeToString(script), "hex": hex.EncodeToString(script), "address": a, "type": "witness_v0_keyhash",
			}})
		}
		txs = append(txs, map[string]any{"txid": hexHash(t.id), "hash": hexHash(t.id), "version": 2, "size": 250, "vsize": 150, "locktime": 0, "vin": vin, "vout": vout, "hex": hex.EncodeToString(t.stripped())})
	}
	text, err := json.Marshal(map[string]any{"hash": hash, "tx": txs})
	require.NoError(b, err)
	return text
}

func BenchmarkAddress(b *testing.B) {
	c := mainnet(b, "BTC")
	buf := make([]byte, 0, 128)
	for _, k := range []kind{p2pkh, p2wpkh, p2tr} {
		program := make([]byte, map[kind]int{p2pkh: 20, p2wpkh: 20, p2tr: 32}[k])
		program[3] = 7
		b.Run(string(k), func(b *testing.B) {
			b.ReportAllocs()
			defer chaintest.CPU(b)()
			for b.Loop() {
				buf = c.write.append(buf[:0], k, program)
			}
		})
	}
}

// BenchmarkDay catches up over HTTP with blocks of mainnet's size: 3000 transactions,
// 144 blocks a day. The naive reader asks for the verbose form of each.
func BenchmarkDay(b *testing.B) {
	const blocks = 16
	f := newFake(b)
	raw, _ := bigBlock(b)
	for range blocks { // each the child of the one before
		prev, _ := parseHash(f.hashes[len(f.hashes)-1])
		next := bytes.Clone(raw)
		copy(next[4:36], prev[:])
		f.put(next, hexHash(twice(next[:headerSize])))
	}
	text := verbose(b, mainnet(b, "BTC"), f.blocks[1], f.hashes[1])
	plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"error":null,"id":1,"result":%s}`, text)
	})
	naive := httptest.NewServer(plain)
	b.Cleanup(naive.Close)
	f.url = chaintest.NewTape(b, f, nil)
	chaintest.Day{
		Client: f.client(b, "BTC"), Trail: root(f), Blocks: blocks, PerDay: 144, Sample: sample,
		Naive: func(ctx context.Context, has func(string) bool) error {
			for range blocks {
				var v struct{ Result verboseBlock }
				if err := chaintest.Post(ctx, naive.URL, map[string]any{"id": 1, "method": "getblock", "params": []any{"", 2}}, &v); err != nil {
					return err
				}
				for _, t := range v.Result.Tx {
					for _, o := range t.Vout {
						if has(o.Script.Address) {
							return errors.New("nobody is paid")
						}
					}
				}
			}
			return nil
		},
	}.Bench(b)
}
