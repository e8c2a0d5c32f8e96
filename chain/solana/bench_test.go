package solana

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
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
		defer chaintest.CPU(b)()
		for b.Loop() {
			x, err := readBlock(&transport.Call{Out: answer}, 9)
			require.NoError(b, err)
			_, err = c.match(b.Context(), x, nobody{})
			require.NoError(b, err)
		}
	})
	b.Run("decode+match+20 paid", func(b *testing.B) {
		owner := solanatest.Key("owner0").PublicKey().String()
		b.SetBytes(int64(len(answer)))
		b.ReportAllocs()
		defer chaintest.CPU(b)()
		for b.Loop() {
			x, err := readBlock(&transport.Call{Out: answer}, 9)
			require.NoError(b, err)
			found, err := c.match(b.Context(), x, follow.Only{chain.Address(owner)})
			require.NoError(b, err)
			require.NotEmpty(b, found)
		}
	})
	b.Run("std", func(b *testing.B) {
		b.SetBytes(int64(len(answer)))
		b.ReportAllocs()
		defer chaintest.CPU(b)()
		for b.Loop() {
			var v stdBlock
			require.NoError(b, json.Unmarshal(answer, &v))
			require.Len(b, v.Transactions, 2000)
		}
	})
}

// stdBlock is what encoding/json decodes of a block.
type stdBlock struct {
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

type stdToken struct {
	Account              int `json:"accountIndex"`
	Owner, Mint, Program string
	Amount               struct{ Amount string } `json:"uiTokenAmount"`
}

func BenchmarkAddress(b *testing.B) {
	k := key(bytes.Repeat([]byte{7, 9}, 16))
	b.Run("encode", func(b *testing.B) {
		defer chaintest.CPU(b)()
		for b.Loop() {
			k.text()
		}
	})
	text := string(k.text())
	b.Run("decode", func(b *testing.B) {
		defer chaintest.CPU(b)()
		for b.Loop() {
			parseKey(text)
		}
	})
	b.Run("sdk", func(b *testing.B) {
		defer chaintest.CPU(b)()
		for b.Loop() {
			_ = sdk.PublicKey(k).String()
		}
	})
}

// slots is a validator that has made so many blocks of mainnet's size in a row.
type slots struct{ blocks [][]byte }

func newSlots(count int) *slots {
	one := mainnetBlock()
	_, txs, _ := bytes.Cut(one, []byte(`"transactions":`))
	n := &slots{}
	for i := range count + 1 {
		n.blocks = append(n.blocks, append(fmt.Appendf(nil, `{"blockHeight":%d,"blockTime":1760000000,"blockhash":%q,"parentSlot":%d,"previousBlockhash":%q,"transactions":`,
			i+100, solanatest.Key(fmt.Sprint(i)).PublicKey(), i+499, solanatest.Key(fmt.Sprint(i-1)).PublicKey()), txs...))
	}
	return n
}

func (n *slots) hash(i int) string {
	return fmt.Sprintf("%d:%s", i+500, solanatest.Key(fmt.Sprint(i)).PublicKey())
}

func (n *slots) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var calls []struct {
		ID     json.RawMessage
		Method string
		Params []any
	}
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &calls) != nil {
		calls = append(calls[:0], struct {
			ID     json.RawMessage
			Method string
			Params []any
		}{})
		_ = json.Unmarshal(body, &calls[0])
	}
	q := calls[0]
	answer := []byte(`null`)
	switch q.Method {
	case "getGenesisHash":
		answer = fmt.Appendf(nil, "%q", Mainnet)
	case "getSlot":
		answer = fmt.Append(nil, 500+len(n.blocks)-1)
	case "getBlocksWithLimit":
		var list []int
		for s := int(q.Params[0].(float64)); s < 500+len(n.blocks) && len(list) < int(q.Params[1].(float64)); s++ {
			list = append(list, s)
		}
		answer, _ = json.Marshal(list)
	case "getMultipleAccounts":
		mint := make([]byte, 82)
		mint[44], mint[45] = 6, 1 // decimals, and that it is one
		var list []any
		for range q.Params[0].([]any) {
			list = append(list, map[string]any{"lamports": 1, "owner": solanatest.Token, "executable": false, "data": []any{base64.StdEncoding.EncodeToString(mint), "base64"}})
		}
		answer, _ = json.Marshal(map[string]any{"context": map[string]any{"slot": 500}, "value": list})
	case "getBlock":
		answer = n.blocks[int(q.Params[0].(float64))-500]
		if q.Params[1].(map[string]any)["transactionDetails"] == "none" {
			head, _, _ := bytes.Cut(answer, []byte(`,"transactions":`))
			answer = append(head[:len(head):len(head)], '}')
		}
	}
	open, shut := "", ""
	if body[0] == '[' {
		open, shut = "[", "]"
	}
	_, _ = fmt.Fprintf(w, `%s{"jsonrpc":"2.0","id":%s,"result":`, open, q.ID)
	_, _ = w.Write(answer)
	_, _ = w.Write([]byte("}" + shut))
}

// BenchmarkDay catches up over HTTP with blocks of mainnet's size: 2000 transactions,
// two thirds of them votes, 216,000 blocks a day. The naive reader asks for the list of
// slots, and for each block.
func BenchmarkDay(b *testing.B) {
	const blocks = 8
	n := newSlots(blocks)
	server := httptest.NewServer(n)
	b.Cleanup(server.Close)
	c, err := New(Options{Registry: registry(b, solanatest.Key("mint").PublicKey().String()), URL: server.URL})
	require.NoError(b, err)
	chaintest.Day{
		Client: c, Trail: []chain.Block{{Height: 100, Hash: n.hash(0)}}, Blocks: blocks, PerDay: 216_000, Sample: "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB",
		Naive: func(ctx context.Context, has func(string) bool) error {
			for i := range blocks {
				var v struct{ Result stdBlock }
				if err := chaintest.Post(ctx, server.URL, map[string]any{"id": 1, "method": "getBlock", "params": []any{501 + i, map[string]any{}}}, &v); err != nil {
					return err
				}
				if len(v.Result.Transactions) != 2000 {
					return fmt.Errorf("%d transactions", len(v.Result.Transactions))
				}
				for _, tx := range v.Result.Transactions {
					raw, err := base64.StdEncoding.DecodeString(tx.Transaction[0])
					if err != nil {
						return err
					}
					parsed, err := sdk.TransactionFromBytes(raw)
					if err != nil {
						return err
					}
					for _, k := range parsed.Message.AccountKeys {
						if has(k.String()) {
							return errors.New("nobody is paid")
						}
					}
					for _, t := range tx.Meta.Tokens {
						if has(t.Owner) {
							return errors.New("nobody is paid")
						}
					}
				}
			}
			return nil
		},
	}.Bench(b)
}
