package evm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
)

// busyBlock is an eth_getLogs answer of 500 Transfers, about 300 kB.
func busyBlock(tb testing.TB) []byte {
	tb.Helper()
	var logs []map[string]any
	for i := range 500 {
		to := common.BigToAddress(big.NewInt(int64(i + 1)))
		logs = append(logs, map[string]any{
			"address": usdt, "topics": []common.Hash{transferTopic, common.BytesToHash(alice[:]), common.BytesToHash(to[:])},
			"data": hexutil.Bytes(common.BigToHash(big.NewInt(int64(i) * 1e6)).Bytes()), "blockNumber": "0x1312d00",
			"transactionHash": common.BigToHash(big.NewInt(int64(i / 2))), "transactionIndex": fmt.Sprintf("0x%x", i/2),
			"blockHash": fakeHashOf("block"), "logIndex": fmt.Sprintf("0x%x", i), "removed": false, "blockTimestamp": "0x65a0c1c7",
		})
	}
	for i := range logs {
		logs[i]["transactionHash"] = fakeHashOf(fmt.Sprint(i / 2))
	}
	b, err := json.Marshal(logs)
	require.NoError(tb, err)
	return b
}

func fakeHashOf(s string) common.Hash {
	return common.BytesToHash([]byte(s + "................................"))
}

// plainLog is what encoding/json would decode.
type plainLog struct {
	Address          string   `json:"address"`
	Topics           []string `json:"topics"`
	Data             string   `json:"data"`
	BlockHash        string   `json:"blockHash"`
	BlockNumber      string   `json:"blockNumber"`
	TransactionHash  string   `json:"transactionHash"`
	TransactionIndex string   `json:"transactionIndex"`
	LogIndex         string   `json:"logIndex"`
	Removed          bool     `json:"removed"`
}

// BenchmarkDecodeLogs compares, in one run, the decoding of a block's Transfer
// logs with encoding/json and with the walk, and the walk with the look-up of
// every recipient.
func BenchmarkDecodeLogs(b *testing.B) {
	raw := busyBlock(b)
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		defer chaintest.CPU(b)()
		for b.Loop() {
			var logs []plainLog
			if err := json.Unmarshal(raw, &logs); err != nil || len(logs) != 500 {
				b.Fatal(err)
			}
		}
	})
	b.Run("walk", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		defer chaintest.CPU(b)()
		for b.Loop() {
			if logs, err := decodeLogs(raw); err != nil || len(logs) != 500 {
				b.Fatal(err)
			}
		}
	})
	watched := map[string]bool{"0x": true}
	b.Run("walk-and-match", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		defer chaintest.CPU(b)()
		for b.Loop() {
			logs, err := decodeLogs(raw)
			if err != nil {
				b.Fatal(err)
			}
			for i := range logs {
				if logs[i].transfer() && watched[string(checksum(logs[i].to()))] {
					b.Fatal("nobody is watched")
				}
			}
		}
	})
}

func TestDecodedLogsAreThoseOfEncodingJSON(t *testing.T) {
	t.Parallel()
	raw := busyBlock(t)
	var want []plainLog
	require.NoError(t, json.Unmarshal(raw, &want))
	got, err := decodeLogs(raw)
	require.NoError(t, err)
	require.Len(t, got, len(want))
	for i, l := range got {
		require.Equal(t, common.HexToAddress(want[i].Address), l.contract)
		require.Equal(t, want[i].TransactionHash, l.tx.Hex())
		require.Equal(t, want[i].BlockHash, l.block.Hex())
		require.Equal(t, want[i].LogIndex, quantity(l.index))
		require.Equal(t, want[i].Topics[2], l.topics[2].Hex())
		require.Equal(t, want[i].Data, common.Hash(l.word).Hex())
		require.Equal(t, i > 0, l.transfer())
	}
}

// busyDay is a node with blocks of mainnet's size: 200 transactions with 320 bytes of
// calldata, and 500 Transfer logs.
func busyDay(b *testing.B, blocks int) *fakeNode {
	b.Helper()
	f := newFake(b)
	for range blocks {
		var txs []*fakeTx
		for i := range 200 {
			tx := ether(common.BigToAddress(big.NewInt(int64(1000+i))), 1e18)
			for range 2 + i%2 {
				tx.logs = append(tx.logs, transferLog(usdt, alice, common.BigToAddress(big.NewInt(int64(5000+i))), big.NewInt(1e6)))
			}
			txs = append(txs, tx)
		}
		f.mine(txs...)
	}
	return f
}

// BenchmarkDay catches up over HTTP with blocks of mainnet's size, 7200 of which are
// a day. The naive reader asks for each block and its logs.
func BenchmarkDay(b *testing.B) {
	const blocks = 32
	f := busyDay(b, blocks)
	input := []byte(`"input":"0x` + strings.Repeat("a9059cbb", 80) + `","r":"0x` + strings.Repeat("7", 64) + `","s":"0x` + strings.Repeat("7", 64) + `"`)
	url := chaintest.NewTape(b, http.HandlerFunc(f.serve), func(answer []byte) []byte {
		return bytes.ReplaceAll(answer, []byte(`"input":"0x"`), input)
	})
	c, err := New(Options{Network: "ETH", ChainID: 1, Registry: chain.MainnetRegistry(), URL: url, FinalityTags: true})
	require.NoError(b, err)
	chaintest.Day{
		Client: c, Trail: []chain.Block{{Hash: f.blocks[0].hash.Hex()}}, Blocks: blocks, PerDay: 7200, Sample: "0xdAC17F958D2ee523a2206206994597C13D831ec7",
		Naive: func(ctx context.Context, has func(string) bool) error {
			for h := range blocks {
				var block struct {
					Result struct {
						Hash         string
						Transactions []struct{ Hash, From, To, Value, Input string }
					}
				}
				var logs struct{ Result []plainLog }
				if err := chaintest.Post(ctx, url, map[string]any{"id": 1, "method": "eth_getBlockByNumber", "params": []any{quantity(int64(h + 1)), true}}, &block); err != nil {
					return err
				}
				if err := chaintest.Post(ctx, url, map[string]any{"id": 1, "method": "eth_getLogs", "params": []any{map[string]any{"blockHash": block.Result.Hash, "topics": []common.Hash{transferTopic}}}}, &logs); err != nil {
					return err
				}
				if len(block.Result.Transactions) != 200 || len(logs.Result) != 500 {
					return fmt.Errorf("%d transactions and %d logs", len(block.Result.Transactions), len(logs.Result))
				}
				for _, tx := range block.Result.Transactions {
					if has(tx.To) {
						return errors.New("nobody is paid")
					}
				}
				for _, l := range logs.Result {
					if has("0x" + l.Topics[2][26:]) {
						return errors.New("nobody is paid")
					}
				}
			}
			return nil
		},
	}.Bench(b)
}
