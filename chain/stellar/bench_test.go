package stellar

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/stellar/stellartest"
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
