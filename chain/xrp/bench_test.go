package xrp

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

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/xrptest"
)

// mainnetLedger is a ledger of 200 transactions as large as on the main network,
// whose metadata is mostly of offers and trust lines.
func mainnetLedger(b *testing.B) []byte {
	b.Helper()
	n := openTown(b)
	for i := range 200 {
		n.Send(xrptest.Pay{To: xrptest.Address(fmt.Sprint(i % 20)), Drops: 5 * xrp, Tag: tag(uint32(i))})
	}
	n.Mine(1)
	w := httptest.NewRecorder()
	n.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(
		`{"method":"ledger","params":[{"ledger_index":"validated","transactions":true,"expand":true}]}`)))
	return enlarge(n.Payer)(w.Body.Bytes())
}

// enlarge gives each transaction the metadata of two offers.
func enlarge(owner string) func([]byte) []byte {
	offer := fmt.Sprintf(`"AffectedNodes":[{"ModifiedNode":{"FinalFields":{"Account":%q,"BookDirectory":%q,"BookNode":"0","Flags":0,"OwnerNode":"0","Sequence":5,"TakerGets":"1000","TakerPays":{"currency":"USD","issuer":%q,"value":"12.5"}},"LedgerEntryType":"Offer","LedgerIndex":%q,"PreviousTxnID":%q,"PreviousTxnLgrSeq":9}},`,
		owner, strings.Repeat("A", 64), owner, strings.Repeat("B", 64), strings.Repeat("C", 64))
	return func(answer []byte) []byte {
		return bytes.ReplaceAll(answer, []byte(`"AffectedNodes":[`), []byte(offer+strings.TrimPrefix(offer, `"AffectedNodes":[`)))
	}
}

// nobody watches nothing, but is asked.
type nobody struct{ follow.Only }

func (nobody) Contains(a chain.Address) bool { return len(a) == 1 }

// BenchmarkBlock decodes and matches a ledger. "std" decodes the same fields, of the
// metadata none, with encoding/json.
func BenchmarkBlock(b *testing.B) {
	raw := mainnetLedger(b)
	c := openTown(b).client
	b.Run("decode+match", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		defer chaintest.CPU(b)()
		for b.Loop() {
			w := newWalk(raw)
			w.Object(func([]byte) {
				l, err := readLedger(w.Raw(), whole)
				require.NoError(b, err)
				require.Len(b, l.txs, 200)
				require.Empty(b, c.match(&l, nobody{}))
			})
		}
	})
	b.Run("std", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		defer chaintest.CPU(b)()
		for b.Loop() {
			var v struct {
				Result struct {
					Ledger struct {
						Hash   string `json:"ledger_hash"`
						Parent string `json:"parent_hash"`
						Txs    []struct {
							Hash, TransactionType, Account, Destination string
							DestinationTag                              *uint32
							Meta                                        struct {
								TransactionResult string
								TransactionIndex  int
								Delivered         any `json:"delivered_amount"`
							} `json:"metaData"`
						} `json:"transactions"`
					} `json:"ledger"`
				} `json:"result"`
			}
			require.NoError(b, json.Unmarshal(raw, &v))
			require.Len(b, v.Result.Ledger.Txs, 200)
		}
	})
}

// BenchmarkDay catches up over HTTP with ledgers of mainnet's size: 200 transactions,
// 22,000 ledgers a day. The naive reader asks for each with its metadata.
func BenchmarkDay(b *testing.B) {
	const ledgers = 24
	n := openTown(b)
	tip, err := n.client.Tip(b.Context())
	require.NoError(b, err)
	for range ledgers {
		for i := range 200 {
			n.Send(xrptest.Pay{To: xrptest.Address(fmt.Sprint(i % 20)), Drops: 5 * xrp, Tag: tag(uint32(i))})
		}
		n.Mine(1)
	}
	url := chaintest.NewTape(b, n, enlarge(n.Payer))
	c, err := New(Options{Registry: n.registry, URL: url})
	require.NoError(b, err)
	chaintest.Day{
		Client: c, Trail: []chain.Block{tip.Head}, Blocks: ledgers, PerDay: 22_000, Sample: "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh",
		Naive: func(ctx context.Context, has func(string) bool) error {
			for i := range int64(ledgers) {
				var v struct {
					Result struct {
						Ledger struct {
							Hash string `json:"ledger_hash"`
							Txs  []struct {
								Hash, TransactionType, Account, Destination string
								DestinationTag                              *uint32
								Meta                                        struct {
									TransactionResult string
									Delivered         any `json:"delivered_amount"`
								} `json:"metaData"`
							} `json:"transactions"`
						} `json:"ledger"`
					} `json:"result"`
				}
				question := map[string]any{"method": "ledger", "params": []any{map[string]any{"ledger_index": tip.Head.Height + 1 + i, "transactions": true, "expand": true}}}
				if err := chaintest.Post(ctx, url, question, &v); err != nil {
					return err
				}
				if len(v.Result.Ledger.Txs) != 200 {
					return fmt.Errorf("%d transactions", len(v.Result.Ledger.Txs))
				}
				for _, tx := range v.Result.Ledger.Txs {
					if has(tx.Destination) {
						return errors.New("nobody is paid")
					}
				}
			}
			return nil
		},
	}.Bench(b)
}
