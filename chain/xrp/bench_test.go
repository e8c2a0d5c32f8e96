package xrp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/xrp/xrptest"
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
	offer := fmt.Sprintf(`"AffectedNodes":[{"ModifiedNode":{"FinalFields":{"Account":%q,"BookDirectory":%q,"BookNode":"0","Flags":0,"OwnerNode":"0","Sequence":5,"TakerGets":"1000","TakerPays":{"currency":"USD","issuer":%q,"value":"12.5"}},"LedgerEntryType":"Offer","LedgerIndex":%q,"PreviousTxnID":%q,"PreviousTxnLgrSeq":9}},`,
		n.Payer, strings.Repeat("A", 64), n.Payer, strings.Repeat("B", 64), strings.Repeat("C", 64))
	return bytes.ReplaceAll(w.Body.Bytes(), []byte(`"AffectedNodes":[`), []byte(offer+strings.TrimPrefix(offer, `"AffectedNodes":[`)))
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
		for b.Loop() {
			w := newWalk(raw)
			w.Object(func([]byte) {
				l, err := readLedger(w.Raw(), whole)
				require.NoError(b, err)
				require.Len(b, l.txs, 200)
				_, err = c.match(&l, nobody{})
				require.NoError(b, err)
			})
		}
	})
	b.Run("std", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
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
