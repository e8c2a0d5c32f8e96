package rates_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/rates"
)

// said is one source's answer as exact fractions have it.
type said struct {
	price *big.Rat
	at    time.Time
}

func middle(list []said) *big.Rat {
	slices.SortFunc(list, func(a, b said) int { return a.price.Cmp(b.price) })
	n := len(list)
	if n%2 == 1 {
		return list[n/2].price
	}
	sum := new(big.Rat).Add(list[n/2-1].price, list[n/2].price)
	return sum.Quo(sum, big.NewRat(2, 1))
}

// FuzzMedian: of four sources' answers the price is the exact median of those
// that are near the median of all usable ones, with the oldest one's time, and
// there is none below the quorum.
func FuzzMedian(f *testing.F) {
	f.Add(int64(60000), int64(60100), int64(59900), int64(61201), int8(0), int8(0), uint16(0), uint16(5), uint8(2), uint16(200))
	f.Add(int64(1), int64(3), int64(0), int64(-5), int8(-18), int8(3), uint16(299), uint16(300), uint8(1), uint16(10_000))
	f.Add(int64(1<<62), int64(1<<62+1), int64(1<<62), int64(1), int8(18), int8(-40), uint16(301), uint16(0), uint8(3), uint16(1))
	f.Add(int64(102), int64(100), int64(98), int64(100), int8(19), int8(-41), uint16(0), uint16(400), uint8(4), uint16(200))
	f.Fuzz(func(t *testing.T, a, b, c, d int64, exp, odd int8, lag, oddLag uint16, quorum uint8, spread uint16) {
		m := newMarket(t, "", "", "", "")
		var good []said
		for i, n := range []int64{a, b, c, d} {
			e, late := exp, lag
			if i == 3 {
				e, late = odd, oddLag
			}
			price := decimal.New(n, int32(e))
			m.feeds[i].raw, m.feeds[i].lag = &price, time.Duration(late)*time.Second
			if n <= 0 || e < -40 || e > 18 || late > 300 {
				continue
			}
			exact, ok := new(big.Rat).SetString(fmt.Sprintf("%de%d", n, e))
			require.True(t, ok)
			good = append(good, said{exact, noon.Add(-m.feeds[i].lag)})
		}
		need := 1 + int(quorum)%4
		near := 1 + int64(spread)
		if len(good) > 0 {
			mid := new(big.Rat).Set(middle(good))
			limit := new(big.Rat).Mul(mid, big.NewRat(near, 10_000))
			good = slices.DeleteFunc(good, func(s said) bool {
				off := new(big.Rat).Sub(s.price, mid)
				return off.Abs(off).Cmp(limit) > 0
			})
		}
		got, err := m.median(func(cfg *rates.MedianConfig) { cfg.Quorum, cfg.Spread = need, near }).Rate(t.Context(), "BTC", "USD")
		if len(good) < need {
			require.ErrorIs(t, err, rates.ErrUnavailable)
			require.Zero(t, got)
			return
		}
		require.NoError(t, err)
		require.Zero(t, middle(good).Cmp(got.Price.Rat()), "%s", got.Price)
		oldest := slices.MinFunc(good, func(a, b said) int { return a.at.Compare(b.at) })
		require.Equal(t, oldest.at, got.At)
	})
}
