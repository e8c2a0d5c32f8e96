package wallet_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// TestFP05_APageFarBackCostsAsMuchAsTheFirst: whatever stands before a page is not read, and beyond the last
// page nothing is. Movements of one moment keep their order.
func TestFP05_APageFarBackCostsAsMuchAsTheFirst(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	s := &failing.Store{Store: memory.New()}
	w := newWorldOn(t, s)
	type posted struct {
		at   time.Time
		code string
		n    int
	}
	const entries = 40_000
	var all []posted
	for i := range entries {
		code := usdt
		switch {
		case i > entries-5000: // a currency that is used of late alone
			code = "TRX"
		case random.IntN(10) == 0:
			code = "BTC"
		}
		w.post(ledger.KindDeposit, wallet.Master, code, "1")
		all = append(all, posted{w.clock(), code, i})
		if random.IntN(3) > 0 {
			w.advance(time.Duration(random.IntN(3)) * time.Second)
		}
	}
	slices.SortFunc(all, func(a, b posted) int {
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.code, b.code), cmp.Compare(b.n, a.n))
	})
	offsets := []int{0, 1, 299, 300, 999, 1000, entries - 101, entries - 100, entries - 1, entries, entries + 1, math.MaxInt32}
	for range 40 {
		offsets = append(offsets, random.IntN(entries))
	}
	for _, offset := range offsets {
		s.Calls = 0
		page, total, err := w.History(w.ctx, tenant, wallet.HistoryFilter{Limit: 100, Offset: offset})
		require.NoError(t, err)
		require.EqualValues(t, len(all), total)
		want := all[min(offset, len(all)):min(offset+100, len(all))]
		if offset >= len(all) {
			require.LessOrEqual(t, s.Calls, 1, "offset %d", offset)
		}
		require.Len(t, page, len(want), "offset %d", offset)
		for i := range page {
			require.Equal(t, posted{want[i].at, want[i].code, 0}, posted{page[i].At, page[i].Currency, 0}, "offset %d, entry %d", offset, i)
		}
		require.LessOrEqual(t, s.Calls, 70, "offset %d", offset)
	}
}
