package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// slow is a node that notes when each call reached it. Requests take their time, there and back.
type slow struct {
	random *rand.Rand
	fails  bool

	mu   sync.Mutex
	came []time.Time
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	there, back := time.Duration(s.random.Int64N(int64(3*time.Second))), time.Duration(s.random.Int64N(int64(3*time.Second)))
	s.mu.Unlock()
	time.Sleep(there)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var calls []transport.Request
	if json.Unmarshal(body, &calls) != nil {
		calls = make([]transport.Request, 1)
	}
	s.mu.Lock()
	for range calls {
		s.came = append(s.came, time.Now())
	}
	s.mu.Unlock()
	time.Sleep(back)
	if s.fails {
		return nil, io.ErrUnexpectedEOF
	}
	var out bytes.Buffer
	for _, c := range calls {
		_, _ = fmt.Fprintf(&out, `,{"id":%d,"result":1}`, max(c.ID, 1))
	}
	_ = out.WriteByte(']')
	out.Bytes()[0] = '['
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(&out)}, nil
}

// most is how many came within any time so long.
func (s *slow) most(within time.Duration) (n int) {
	slices.SortFunc(s.came, time.Time.Compare)
	for i := range s.came {
		j := i
		for j < len(s.came) && s.came[j].Sub(s.came[i]) < within {
			j++
		}
		n = max(n, j-i)
	}
	return n
}

func rpc(t *testing.T, s *slow, batch, perMinute int) *transport.RPC {
	t.Helper()
	b, err := transport.NewBudget("some", perMinute)
	require.NoError(t, err)
	return &transport.RPC{Endpoint: transport.Endpoint{HTTP: &http.Client{Transport: s}, Max: 1 << 20, Budget: b}, URL: "http://node", Batch: batch}
}

func many(n int) (out []*transport.Call) {
	for range n {
		out = append(out, transport.NewCall("m"))
	}
	return out
}

// TestFN16_ABudgetOfCallsIsNeverExceeded: whoever asks, in batches or alone, and whether the node answers
// or fails, no more than the budget reaches it in any minute, and a sixth in any ten seconds.
// All are asked in the end, and in about the time that the budget takes.
func TestFN16_ABudgetOfCallsIsNeverExceeded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		batch, perMinute int
		fails            bool
	}{"alone": {batch: 1, perMinute: 60}, "batches": {batch: 4, perMinute: 180}, "batches above the share": {batch: 50, perMinute: 120}, "a node that fails": {batch: 7, perMinute: 300, fails: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Log("seed", seed)
			synctest.Test(t, func(t *testing.T) {
				s := &slow{random: rand.New(rand.NewPCG(seed, 1)), fails: c.fails}
				n := rpc(t, s, c.batch, c.perMinute)
				start, total := time.Now(), 0
				var all sync.WaitGroup
				for i := range 12 {
					total += 10 + 5*i
					all.Go(func() {
						time.Sleep(time.Duration(i) * time.Second)
						for part := range slices.Chunk(many(10+5*i), 1+i) {
							require.Equal(t, c.fails, n.Do(t.Context(), part...) != nil)
						}
					})
				}
				all.Wait()
				took := time.Since(start)
				if !c.fails { // then the rest of a batch is not asked
					require.Len(t, s.came, total)
				}
				require.LessOrEqual(t, s.most(time.Minute), c.perMinute)
				require.LessOrEqual(t, s.most(10*time.Second), c.perMinute/6)
				// A share is used up and comes back within 12 s and what a request takes. Who asks in
				// batches may leave some of it.
				require.Less(t, took, 2*time.Minute+time.Duration(2*total/(c.perMinute/6))*18*time.Second)
				u := n.Budget.Usage()
				require.Zero(t, u.Waiting)
				require.Equal(t, c.perMinute, u.Most)
				require.Positive(t, u.Minute)
				time.Sleep(62 * time.Second)
				require.Zero(t, n.Budget.Usage().Minute, "a minute later")
			})
		})
	}
}

// TestFN16_WhatWaitsForABudgetIsShown, in the order in which it came, and ends with its context.
func TestFN16_WhatWaitsForABudgetIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{random: rand.New(rand.NewPCG(1, 1))}
		n := rpc(t, s, 10, 60)
		require.NoError(t, n.Do(t.Context(), many(10)...))
		require.Equal(t, chain.Usage{Total: 10, Minute: 10, Most: 60}, n.Budget.Usage())

		short, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		err := n.Do(short, transport.NewCall("m"))
		require.ErrorIs(t, err, chain.ErrNode)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "CallsPerMinute (60)")
		require.Zero(t, n.Budget.Usage().Waiting)

		var order []int
		var all sync.WaitGroup
		var mu sync.Mutex
		for i := range 3 {
			all.Go(func() {
				require.NoError(t, n.Do(t.Context(), many(10)...))
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait()
		}
		stopped, stop := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- n.Do(stopped, many(2)...) }()
		synctest.Wait()
		time.Sleep(time.Second)
		u := n.Budget.Usage()
		require.Equal(t, 32, u.Waiting)
		require.GreaterOrEqual(t, u.Waited, time.Second)
		stop()
		require.ErrorIs(t, <-failed, context.Canceled)
		require.Equal(t, 30, n.Budget.Usage().Waiting)
		time.Sleep(14 * time.Second) // the first has gone, and the second is the next
		require.Equal(t, 20, n.Budget.Usage().Waiting)
		all.Wait()
		require.Equal(t, []int{0, 1, 2}, order)
		require.Len(t, s.came, 40)
	})
}

// TestFN16_CallsAreCountedWithoutABound.
func TestFN16_CallsAreCountedWithoutABound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := rpc(t, &slow{random: rand.New(rand.NewPCG(1, 1))}, 50, 0)
		require.NoError(t, n.Do(t.Context(), many(500)...))
		n.Budget.Note(1)
		require.Equal(t, 501, n.Budget.Usage().Minute)
		time.Sleep(2 * time.Minute)
		require.Equal(t, chain.Usage{Total: 501}, n.Budget.Usage())
		require.NoError(t, n.Do(t.Context(), many(2)...))
		require.Equal(t, 2, n.Budget.Usage().Minute)
	})
}

func TestFN16_ABudgetThatIsTooSmall(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 1, 59} {
		_, err := transport.NewBudget("evm", n)
		require.ErrorContains(t, err, "evm: Options.CallsPerMinute must be at least 60")
		require.True(t, strings.HasSuffix(err.Error(), ": "+map[int]string{-1: "-1", 1: "1", 59: "59"}[n]))
	}
}
