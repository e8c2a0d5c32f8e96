package signerd_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// BenchmarkSign asks a signer in a process of its own, over TLS on loopback: what an App
// waits for a signature that is bound, counted and logged on the disk, with the keys in a
// seed file and in SoftHSM.
func BenchmarkSign(b *testing.B) {
	token := testenv.SoftHSM(b)
	for name, module := range map[string]*testenv.Token{"seed": nil, "softhsm": &token} {
		for _, many := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("%s/requests=%d", name, many), func(b *testing.B) { benchSign(b, module, many) })
		}
	}
}

func benchSign(b *testing.B, module *testenv.Token, many int) {
	s := newSigner(b, limitsOf("ETH", "ETH", 1<<60, 1<<60), "ETH")
	s.order.Module = module
	s.start()
	h := newThief(b, s, "ETH")
	client := s.client(h.keyOf)
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		var rs []chain.SignRequest
		for i := range many {
			id := fmt.Sprintf("%d/%d", n, i)
			rs = append(rs, h.request(wish{intent: id, attempt: id, slots: []int{n*many + i}, amount: 1000}))
		}
		b.StartTimer()
		start := time.Now()
		_, errs := client.SignMany(b.Context(), rs)
		took = append(took, time.Since(start))
		for _, err := range errs {
			require.NoError(b, err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
