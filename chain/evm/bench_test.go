package evm

import (
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"
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
