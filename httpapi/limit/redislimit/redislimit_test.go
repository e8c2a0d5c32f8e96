package redislimit_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/httpapi/limit"
	"github.com/cryptopay-go/cryptopay/httpapi/limit/redislimit"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

var (
	start  = time.Date(2026, 11, 20, 10, 0, 30, 500_000, time.UTC)
	minute = limit.Rule{Name: "minute", Max: 3, Window: time.Minute}
	hour   = limit.Rule{Name: "hour", Max: 5, Window: time.Hour}
)

func client(t testing.TB, p *testenv.Process) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: p.Address(), MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestO10_RedisAgainstMemory: both limiters answer alike, whatever comes.
func TestO10_RedisAgainstMemory(t *testing.T) {
	t.Parallel()
	c := client(t, testenv.Redis(t))
	world := 0
	rapid.Check(t, func(t *rapid.T) {
		world++
		l, m, now := redislimit.New(c, fmt.Sprint("w", world, ":")), limit.NewMemory(100), start
		for range rapid.IntRange(1, 40).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(-1, 20).Draw(t, "seconds")) * time.Second)
			rules := [][]limit.Rule{{}, {minute}, {hour}, {minute, hour}, {hour, minute}}[rapid.IntRange(0, 4).Draw(t, "rules")]
			key := rapid.SampledFrom([]string{"a", "b", "", "}", "{", "a\x00{b}", strings.Repeat("x", 1000)}).Draw(t, "key")
			want, err := m.Take(context.Background(), key, now, rules...)
			require.NoError(t, err)
			got, err := l.Take(context.Background(), key, now, rules...)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}

// TestO10_OneCountForAllProcesses, however many ask at once.
func TestO10_OneCountForAllProcesses(t *testing.T) {
	t.Parallel()
	p := testenv.Redis(t)
	rule := limit.Rule{Name: "minute", Max: 50, Window: time.Minute}
	wide := limit.Rule{Name: "hour", Max: 100, Window: time.Hour}
	var n atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		l := redislimit.New(client(t, p), "limit:")
		for range 3 {
			wg.Go(func() {
				for range 20 {
					s, err := l.Take(context.Background(), "a", start, rule, wide)
					if err != nil {
						t.Error(err)
					}
					if s.Allowed {
						n.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	require.EqualValues(t, 50, n.Load())
	s, err := redislimit.New(client(t, p), "limit:").Take(t.Context(), "a", start, wide)
	require.NoError(t, err)
	require.Equal(t, 49, s.Remaining, "what one rule refused counts in no other")
	s, err = redislimit.New(client(t, p), "elsewhere:").Take(t.Context(), "a", start, wide)
	require.NoError(t, err)
	require.Equal(t, 99, s.Remaining)
}

// TestO10_CountersExpireInRedis, a little after their windows, and tell nobody
// whose they are.
func TestO10_CountersExpireInRedis(t *testing.T) {
	t.Parallel()
	c := client(t, testenv.Redis(t))
	l := redislimit.New(c, "limit:")
	const secret = "token/0123456789"
	take := func(now time.Time) {
		_, err := l.Take(t.Context(), secret, now, minute, hour)
		require.NoError(t, err)
	}
	take(start)
	take(start.Add(20 * time.Second))
	keys, err := c.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 2)
	for _, k := range keys {
		require.True(t, strings.HasPrefix(k, "limit:{"))
		require.NotContains(t, k, "0123456789")
		left, err := c.PTTL(t.Context(), k).Result()
		require.NoError(t, err)
		want := 100 * time.Second
		if strings.HasSuffix(k, hour.Name) {
			want = time.Hour + 40*time.Second
		}
		require.InDelta(t, want.Seconds(), left.Seconds(), 30)
		require.LessOrEqual(t, left, want)
		fields, err := c.HGetAll(t.Context(), k).Result()
		require.NoError(t, err)
		require.Equal(t, map[string]string{"start": strconv.FormatInt(start.UnixMicro(), 10), "count": "2"}, fields, "no digit is lost")
	}
}

// TestO10_Cluster: several rules work where keys live on several nodes.
func TestO10_Cluster(t *testing.T) {
	t.Parallel()
	p := testenv.Redis(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(testenv.FreePort(t)))
	node := client(t, p)
	require.NoError(t, node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	require.Eventually(t, func() bool {
		info, err := node.ClusterInfo(context.Background()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	}, 20*time.Second, 20*time.Millisecond)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{p.Address()}})
	t.Cleanup(func() { _ = c.Close() })
	l := redislimit.New(c, "limit:")
	for i, key := range []string{"a", "b", "}", "", "{}"} {
		s, err := l.Take(t.Context(), key, start, minute, hour)
		require.NoError(t, err, i)
		require.Equal(t, 2, s.Remaining)
	}
}

// TestO10_RedisGone: no answer is no permission.
func TestO10_RedisGone(t *testing.T) {
	t.Parallel()
	c := client(t, testenv.Redis(t))
	l := redislimit.New(c, "limit:")
	_, err := l.Take(t.Context(), "a", start, limit.Rule{})
	require.ErrorIs(t, err, limit.ErrRule)
	s, err := l.Take(t.Context(), "a", start)
	require.NoError(t, err)
	require.True(t, s.Allowed)

	_, err = l.Take(t.Context(), "a", start, minute)
	require.NoError(t, err)
	keys, err := c.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, spoil := range []func() error{
		func() error { return c.HSet(t.Context(), keys[0], "start", "yesterday").Err() },
		func() error { return c.HSet(t.Context(), keys[0], "start", "1.5", "count", "1.5").Err() },
		func() error { return c.Set(t.Context(), keys[0], "x", 0).Err() },
	} {
		require.NoError(t, spoil())
		s, err = l.Take(t.Context(), "a", time.UnixMicro(0), minute)
		require.Error(t, err)
		require.False(t, s.Allowed)
	}
	require.NoError(t, c.Close())
	s, err = l.Take(t.Context(), "a", start, minute)
	require.ErrorIs(t, err, redis.ErrClosed)
	require.False(t, s.Allowed)
}

func BenchmarkTake(b *testing.B) {
	l := redislimit.New(client(b, testenv.Redis(b)), "limit:")
	rule := limit.Rule{Name: "api", Max: 1 << 30, Window: time.Hour}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Take(context.Background(), "a", start, rule); err != nil {
			b.Fatal(err)
		}
	}
}
