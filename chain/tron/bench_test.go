package tron

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// mainnetBlock is a block of 200 transactions as large as on the main network,
// and the receipts of it, half of them tokens.
func mainnetBlock(b *testing.B) (blocks, receipts []byte, height int64) {
	b.Helper()
	n := openTown(b)
	to := n.customer(b, "to").Address
	for i := range 200 {
		n.pay(b, "", false, chaintest.Payment{To: to, Currency: []string{"TRX", "USDTTRC20"}[i%2], Amount: decimal.NewFromInt(1)})
	}
	n.Mine(1)
	height = n.Head(b).Height
	ask := func(path, body string) []byte {
		w := httptest.NewRecorder()
		n.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		return w.Body.Bytes()
	}
	blocks = ask("/wallet/getblockbylimitnext", fmt.Sprintf(`{"startNum":%d,"endNum":%d}`, height, height+1))
	rest := fmt.Sprintf(`"raw_data":{"contract":[{"parameter":{"value":{"data":%q,"owner_address":%q,"contract_address":%q},"type_url":"type.googleapis.com/protocol.TriggerSmartContract"},"type":"TriggerSmartContract"}],"ref_block_bytes":"b9fa","ref_block_hash":"5be3f1ca7d2e9a3c",`,
		strings.Repeat("0", 136), strings.Repeat("4", 42), strings.Repeat("4", 42))
	blocks = bytes.ReplaceAll(blocks, []byte(`"raw_data":{`), []byte(rest))
	receipts = ask("/wallet/gettransactioninfobyblocknum", fmt.Sprintf(`{"num":%d}`, height))
	return blocks, receipts, height
}

// nobody watches nothing, but is asked.
type nobody struct{ follow.Only }

func (nobody) Contains(a chain.Address) bool { return len(a) != 34 }

// BenchmarkBlock decodes and matches a block with its receipts. "std" decodes
// the same fields of the block alone with encoding/json.
func BenchmarkBlock(b *testing.B) {
	blocks, receipts, _ := mainnetBlock(b)
	c, err := New(Options{Registry: registry(b, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"), URL: "http://127.0.0.1:1"})
	require.NoError(b, err)
	decode := func() *reading {
		w := newWalk(blocks)
		var all []block
		w.Object(func([]byte) { w.Array(func() { all = append(all, readBlock(w)) }) })
		require.NoError(b, w.End())
		r := &reading{block: &all[0], infos: map[[32]byte]*info{}}
		require.Len(b, r.txs, 200)
		return r
	}
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(blocks)))
		b.ReportAllocs()
		for b.Loop() {
			decode()
		}
	})
	b.Run("decode+receipts+match", func(b *testing.B) {
		b.SetBytes(int64(len(blocks) + len(receipts)))
		b.ReportAllocs()
		for b.Loop() {
			r := decode()
			require.NoError(b, r.decode())
			w := newWalk(receipts)
			w.Array(func() { x := readInfo(w); r.infos[x.id] = &x })
			require.NoError(b, c.transfers(r, nobody{}))
		}
	})
	b.Run("std", func(b *testing.B) {
		b.SetBytes(int64(len(blocks)))
		b.ReportAllocs()
		for b.Loop() {
			var v struct {
				Block []struct {
					ID     string `json:"blockID"`
					Header struct {
						Raw struct {
							Number    int64  `json:"number"`
							Timestamp int64  `json:"timestamp"`
							Parent    string `json:"parentHash"`
						} `json:"raw_data"`
					} `json:"block_header"`
					Txs []struct {
						ID  string `json:"txID"`
						Raw string `json:"raw_data_hex"`
						Ret []struct {
							Ret string `json:"contractRet"`
						} `json:"ret"`
					} `json:"transactions"`
				} `json:"block"`
			}
			require.NoError(b, json.Unmarshal(blocks, &v))
			require.Len(b, v.Block[0].Txs, 200)
		}
	})
}

func BenchmarkAddress(b *testing.B) {
	a := account{1, 2, 3}
	for b.Loop() {
		a.text()
	}
}
