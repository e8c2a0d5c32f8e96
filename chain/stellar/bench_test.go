package stellar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/stellartest"
)

// nobody watches nothing, but is asked.
type nobody struct{ follow.Only }

func (nobody) Contains(a chain.Address) bool { return len(a) == 1 }

// BenchmarkBlock decodes and matches a page of 200 operations.
func BenchmarkBlock(b *testing.B) {
	n := openTown(b)
	to := n.customer(b, "to").Address
	n.fund(b, to, 5)
	var all []stellartest.Pay
	for range 200 {
		all = append(all, payment(to, decimal.NewFromInt(1), ""))
	}
	n.Send(all...)
	n.Mine(1)
	w := httptest.NewRecorder()
	n.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/accounts/"+string(to)+"/operations?cursor=0&limit=200", nil))
	raw := w.Body.Bytes()
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	defer chaintest.CPU(b)()
	for b.Loop() {
		ops := 0
		w := newWalk(raw)
		w.records(func() {
			o := readOperation(w)
			_, err := n.client.transfers(b.Context(), &o, chain.Block{}, nobody{})
			require.NoError(b, err)
			ops++
		})
		require.NoError(b, w.End())
		require.Equal(b, 200, ops)
	}
}

// BenchmarkDay catches up over HTTP with ledgers of mainnet's size: 300 operations,
// 15,000 ledgers a day. The naive reader asks for the pages of each.
func BenchmarkDay(b *testing.B) {
	const ledgers, operations = 24, 300
	n := openTown(b)
	to := n.customer(b, "to").Address
	n.fund(b, to, 5)
	tip, err := n.client.Tip(b.Context())
	require.NoError(b, err)
	for range ledgers {
		for range operations / 100 {
			var all []stellartest.Pay
			for range 100 {
				all = append(all, payment(to, decimal.NewFromInt(1), ""))
			}
			n.Send(all...)
		}
		n.Mine(1)
	}
	url := chaintest.NewTape(b, n, nil)
	c, err := New(Options{Registry: n.registry, URL: url})
	require.NoError(b, err)
	chaintest.Day{
		Client: c, Trail: []chain.Block{tip.Head}, Blocks: ledgers, PerDay: 15_000, Sample: "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ",
		Naive: func(ctx context.Context, has func(string) bool) error {
			for i := range int64(ledgers) {
				var header map[string]any
				ledger := fmt.Sprintf("%s/ledgers/%d", url, tip.Head.Height+1+i)
				if err := chaintest.Get(ctx, ledger, &header); err != nil {
					return err
				}
				read, cursor := 0, "0"
				for {
					var page struct {
						Embedded struct {
							Records []struct {
								ID, Type, From, To, Amount string
								Asset                      string `json:"asset_type"`
								Successful                 bool   `json:"transaction_successful"`
							}
						} `json:"_embedded"`
					}
					if err := chaintest.Get(ctx, ledger+"/operations?order=asc&limit=200&cursor="+cursor, &page); err != nil {
						return err
					}
					for _, o := range page.Embedded.Records {
						if has(o.To) {
							return errors.New("nobody is paid")
						}
						cursor = o.ID
					}
					if read += len(page.Embedded.Records); len(page.Embedded.Records) < 200 {
						break
					}
				}
				if read != operations {
					return fmt.Errorf("%d operations", read)
				}
			}
			return nil
		},
	}.Bench(b)
}
