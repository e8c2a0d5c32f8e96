package solana

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/chain/solana/solanatest"
)

// mainnetBlock is a block as large as on the main network: 2000 transactions, two
// thirds of them votes.
func mainnetBlock() []byte {
	logs := strings.Repeat(`"Program 675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8 invoke [1]",`, 6)
	var txs []string
	vote := called(solanatest.Key("validator").PublicKey(), "null", 0)
	from, to := strings.Index(vote, `"innerInstructions":[`), strings.Index(vote, `,"loadedAddresses"`)
	vote = vote[:from] + `"innerInstructions":[]` + vote[to:]
	for _, name := range []string{"preTokenBalances", "postTokenBalances"} {
		from = strings.Index(vote, `"`+name+`":[`) + len(name) + 4
		vote = vote[:from] + vote[from+strings.Index(vote[from:], "]"):]
	}
	vote = strings.Replace(vote, `1000003000`, `1000000000`, 1)
	for i := range 2000 {
		if i%3 > 0 {
			txs = append(txs, vote)
			continue
		}
		x := called(solanatest.Key(fmt.Sprint("owner", i%60)).PublicKey(), "null", 0)
		txs = append(txs, strings.Replace(x, `"logMessages":[`, `"logMessages":[`+logs, 1))
	}
	return blockOf(txs...)
}

// nobody watches nothing, but is asked.
type nobody struct{ follow.Only }

func (nobody) Contains(a chain.Address) bool { return len(a) == 0 }

// BenchmarkBlock decodes and matches a block. "std" decodes the same fields alone with
// encoding/json.
func BenchmarkBlock(b *testing.B) {
	answer := mainnetBlock()
	c := offline(b)
	b.Run("decode+match", func(b *testing.B) {
		b.SetBytes(int64(len(answer)))
		b.ReportAllocs()
		for b.Loop() {
			x, err := readBlock(&transport.Call{Out: answer}, 9)
			require.NoError(b, err)
			_, err = c.match(x, nobody{})
			require.NoError(b, err)
		}
	})
	b.Run("decode+match+20 paid", func(b *testing.B) {
		owner := solanatest.Key("owner0").PublicKey().String()
		b.SetBytes(int64(len(answer)))
		b.ReportAllocs()
		for b.Loop() {
			x, err := readBlock(&transport.Call{Out: answer}, 9)
			require.NoError(b, err)
			found, err := c.match(x, follow.Only{chain.Address(owner)})
			require.NoError(b, err)
			require.NotEmpty(b, found)
		}
	})
	b.Run("std", func(b *testing.B) {
		b.SetBytes(int64(len(answer)))
		b.ReportAllocs()
		for b.Loop() {
			var v struct {
				Height       int64  `json:"blockHeight"`
				Hash         string `json:"blockhash"`
				Parent       string `json:"previousBlockhash"`
				Transactions []struct {
					Transaction []string
					Meta        struct {
						Err         any
						Fee         int64
						PreBalances []uint64
						Post        []uint64   `json:"postBalances"`
						PreTokens   []stdToken `json:"preTokenBalances"`
						Tokens      []stdToken `json:"postTokenBalances"`
						Inner       []struct {
							Index        int
							Instructions []struct {
								Program  int `json:"programIdIndex"`
								Accounts []int
								Data     string
							}
						} `json:"innerInstructions"`
						Loaded struct{ Writable, Readonly []string } `json:"loadedAddresses"`
					}
				}
			}
			require.NoError(b, json.Unmarshal(answer, &v))
			require.Len(b, v.Transactions, 2000)
		}
	})
}

type stdToken struct {
	Account              int `json:"accountIndex"`
	Owner, Mint, Program string
	Amount               struct{ Amount string } `json:"uiTokenAmount"`
}

func BenchmarkAddress(b *testing.B) {
	k := key(bytes.Repeat([]byte{7, 9}, 16))
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			k.text()
		}
	})
	text := string(k.text())
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			parseKey(text)
		}
	})
	b.Run("sdk", func(b *testing.B) {
		for b.Loop() {
			_ = sdk.PublicKey(k).String()
		}
	})
}
