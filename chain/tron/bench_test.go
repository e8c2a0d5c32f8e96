package tron

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	blocks = enlarge(blocks)
	receipts = ask("/wallet/gettransactioninfobyblocknum", fmt.Sprintf(`{"num":%d}`, height))
	return blocks, receipts, height
}

// enlarge gives each transaction what a call of a contract has beside its bytes.
func enlarge(answer []byte) []byte {
	rest := fmt.Sprintf(`"raw_data":{"contract":[{"parameter":{"value":{"data":%q,"owner_address":%q,"contract_address":%q},"type_url":"type.googleapis.com/protocol.TriggerSmartContract"},"type":"TriggerSmartContract"}],"ref_block_bytes":"b9fa","ref_block_hash":"5be3f1ca7d2e9a3c",`,
		strings.Repeat("0", 136), strings.Repeat("4", 42), strings.Repeat("4", 42))
	_, txs, _ := bytes.Cut(answer, []byte(`"transactions":`))
	return append(answer[:len(answer)-len(txs):len(answer)-len(txs)], bytes.ReplaceAll(txs, []byte(`"raw_data":{`), []byte(rest))...)
}

// nobody watches nothing, but is asked.
type nobody struct{ follow.Only }

func (nobody) Contains(a chain.Address) bool { return len(a) != 34 }

// BenchmarkBlock decodes and matches a block with its receipts. "std" decodes
// the same fields with encoding/json, and matches nothing.
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
		defer chaintest.CPU(b)()
		for b.Loop() {
			decode()
		}
	})
	b.Run("decode+receipts+match", func(b *testing.B) {
		b.SetBytes(int64(len(blocks) + len(receipts)))
		b.ReportAllocs()
		defer chaintest.CPU(b)()
		for b.Loop() {
			r := decode()
			require.NoError(b, r.decode())
			w := newWalk(receipts)
			w.Array(func() { x := readInfo(w); r.infos[x.id] = &x })
			require.NoError(b, c.transfers(r, nobody{}))
		}
	})
	std := func() {
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
	b.Run("std", func(b *testing.B) {
		b.SetBytes(int64(len(blocks)))
		b.ReportAllocs()
		defer chaintest.CPU(b)()
		for b.Loop() {
			std()
		}
	})
	b.Run("std+receipts", func(b *testing.B) {
		b.SetBytes(int64(len(blocks) + len(receipts)))
		b.ReportAllocs()
		defer chaintest.CPU(b)()
		for b.Loop() {
			std()
			var v []struct {
				ID      string `json:"id"`
				Height  int64  `json:"blockNumber"`
				Millis  int64  `json:"blockTimeStamp"`
				Fee     int64  `json:"fee"`
				Result  string `json:"result"`
				Receipt struct {
					Result string `json:"result"`
				} `json:"receipt"`
				Logs []struct {
					Address string   `json:"address"`
					Topics  []string `json:"topics"`
					Data    string   `json:"data"`
				} `json:"log"`
			}
			require.NoError(b, json.Unmarshal(receipts, &v))
			require.Len(b, v, 200)
		}
	})
}

func BenchmarkAddress(b *testing.B) {
	a := account{1, 2, 3}
	defer chaintest.CPU(b)()
	for b.Loop() {
		a.text()
	}
}

// BenchmarkDay catches up over HTTP with blocks of mainnet's size: 200 transactions,
// half of them tokens, 28,800 blocks a day. The naive reader asks for each block and
// its receipts.
func BenchmarkDay(b *testing.B) {
	const blocks = 24
	n := openTown(b)
	tip, err := n.client.Tip(b.Context())
	require.NoError(b, err)
	to := n.customer(b, "to").Address
	for range blocks {
		for i := range 200 {
			n.pay(b, "", false, chaintest.Payment{To: to, Currency: []string{"TRX", "USDTTRC20"}[i%2], Amount: decimal.NewFromInt(1)})
		}
		n.Mine(1)
	}
	url := chaintest.NewTape(b, n, enlarge)
	c, err := New(Options{Registry: n.registry, Genesis: n.Genesis(), URL: url})
	require.NoError(b, err)
	chaintest.Day{
		Client: c, Trail: []chain.Block{tip.Head}, Blocks: blocks, PerDay: 28_800, Sample: "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
		Naive: func(ctx context.Context, has func(string) bool) error {
			for h := range int64(blocks) {
				var block struct {
					ID  string `json:"blockID"`
					Txs []struct {
						ID  string `json:"txID"`
						Raw struct {
							Contract []struct {
								Type      string
								Parameter struct{ Value map[string]any }
							}
						} `json:"raw_data"`
						Ret []struct{ ContractRet string }
					} `json:"transactions"`
				}
				var infos []struct {
					ID      string
					Receipt struct{ Result string }
					Log     []struct {
						Address, Data string
						Topics        []string
					}
				}
				question := map[string]any{"num": tip.Head.Height + 1 + h}
				if err := chaintest.Post(ctx, url+"/wallet/getblockbynum", question, &block); err != nil {
					return err
				}
				if err := chaintest.Post(ctx, url+"/wallet/gettransactioninfobyblocknum", question, &infos); err != nil {
					return err
				}
				if len(block.Txs) != 200 || len(infos) != 200 {
					return fmt.Errorf("%d transactions and %d receipts", len(block.Txs), len(infos))
				}
				for _, tx := range block.Txs {
					if to, _ := tx.Raw.Contract[0].Parameter.Value["contract_address"].(string); has(to) {
						return errors.New("nobody is paid")
					}
				}
				for _, info := range infos {
					for _, l := range info.Log {
						if has("41" + l.Topics[2][24:]) {
							return errors.New("nobody is paid")
						}
					}
				}
			}
			return nil
		},
	}.Bench(b)
}
