package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// turns gives each call to the next of several handles, as a customer's requests
// reach one instance after the other.
type turns struct {
	handles []storage.Store
	n       atomic.Int64
}

func (s *turns) next() storage.Store { return s.handles[int(s.n.Add(1))%len(s.handles)] }

func (s *turns) Open(ctx context.Context, tables ...*storage.Table) error {
	var errs []error
	for _, h := range s.handles {
		errs = append(errs, h.Open(ctx, tables...))
	}
	return errors.Join(errs...)
}

func (s *turns) Commit(ctx context.Context, c ...storage.Change) []error {
	return s.next().Commit(ctx, c...)
}

func (s *turns) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	return s.next().Rows(ctx, t, keys...)
}

func (s *turns) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	return s.next().Find(ctx, q)
}

func (s *turns) Count(ctx context.Context, q storage.Query) (int64, error) {
	return s.next().Count(ctx, q)
}

func (s *turns) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	return s.next().Claim(ctx, c)
}

func (s *turns) Balances(ctx context.Context, p storage.Partition, a ...ledger.Account) ([]ledger.Balance, error) {
	return s.next().Balances(ctx, p, a...)
}

func (s *turns) Entries(ctx context.Context, p storage.Partition, a ledger.Account, asset ledger.Asset, before int64, max int) ([]ledger.Entry, error) {
	return s.next().Entries(ctx, p, a, asset, before, max)
}

func (s *turns) Close() error {
	var errs []error
	for _, h := range s.handles {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}

// Three instances share the servers, and everything that holds for one holds
// for requests that reach one after the other.
func TestC05_ThreeInstances(t *testing.T) {
	t.Parallel()
	p, _ := server(t)
	clients := []*redis.Client{connect(t, p), connect(t, p), connect(t, p)}
	storagetest.Run(t, storagetest.Harness{
		Open: func(testing.TB) storage.Store {
			prefix := fmt.Sprint("three", prefixes.Add(1))
			s := &turns{}
			for _, c := range clients {
				s.handles = append(s.handles, redisstore.New(c, redisstore.Options{Prefix: prefix}))
			}
			return s
		},
		Rounds: 5,
	})
}

// One master of three is gone: what it has is unknown, what the others have is
// committed, in one and the same call.
func TestC03_OneMasterDown(t *testing.T) {
	t.Parallel()
	nodes := testenv.RedisCluster(t, 3, append([]string{"--cluster-require-full-coverage", "no"}, safe...)...)
	var addresses []string
	for _, n := range nodes {
		addresses = append(addresses, n.Address())
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, MaxRedirects: 1, DialerRetries: 1, MaxRetryBackoff: time.Millisecond})
	t.Cleanup(func() { _ = client.Close() })
	s := opened(t, client, redisstore.Options{})
	changes := func(round int) []storage.Change {
		var out []storage.Change
		for i := range 60 {
			c := sale(fmt.Sprintf("%d-%d", round, i))
			c.Partition = storage.Tenant(fmt.Sprint(i))
			out = append(out, c)
		}
		return out
	}
	for _, err := range s.Commit(t.Context(), changes(0)...) {
		require.NoError(t, err)
	}
	nodes[2].Kill()
	var good, unknown int
	for i, err := range s.Commit(t.Context(), changes(1)...) {
		switch {
		case err == nil:
			good++
			b, err := s.Balances(t.Context(), storage.Tenant(fmt.Sprint(i)), "wallet/w")
			require.NoError(t, err)
			require.Equal(t, ledger.Amount(2), b[0].Posted)
		case !storage.Final(err) && !errors.Is(err, storage.ErrConflict):
			unknown++
		default:
			t.Fatalf("neither committed nor unknown: %v", err)
		}
	}
	require.Positive(t, unknown)
	require.Positive(t, good, "the others go on")
}

// A script that the server forgot is sent again in full.
func TestForgottenScripts(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s := opened(t, client, redisstore.Options{})
	for i := range 3 {
		require.NoError(t, client.ScriptFlush(t.Context()).Err())
		var list []storage.Change
		for k := range 4 {
			c := sale(fmt.Sprint(i, "-", k))
			c.Partition = storage.Tenant(fmt.Sprint(k))
			list = append(list, c)
		}
		for _, err := range s.Commit(t.Context(), list...) {
			require.NoError(t, err)
		}
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s := opened(t, client, redisstore.Options{})
	before, err := client.Time(t.Context()).Result()
	require.NoError(t, err)
	now, err := s.Now(t.Context())
	require.NoError(t, err)
	after, err := client.Time(t.Context()).Result()
	require.NoError(t, err)
	require.WithinRange(t, now, before, after)
	require.Equal(t, time.UTC, now.Location())
}

// Everything of a partition has one hash tag, and every master gets some.
func TestKeysOfAPartitionShareASlot(t *testing.T) {
	t.Parallel()
	node := testenv.RedisCluster(t, 1, safe...)[0]
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{node.Address()}})
	t.Cleanup(func() { _ = client.Close() })
	s := opened(t, client, redisstore.Options{Prefix: "slots"})
	c := sale("a")
	c.Level = []storage.Level{{Name: "l", Delta: 1, Max: 1}}
	c.Put[0].Due = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, s.Commit(t.Context(), c)[0])
	names, err := connect(t, node).Keys(t.Context(), "slots:*").Result()
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(k string) bool { return k == "slots:{0}:schema:tables" })
	require.Len(t, names, 11)
	slots := map[int64]bool{}
	for _, k := range names {
		slot, err := client.ClusterKeySlot(t.Context(), k).Result()
		require.NoError(t, err)
		slots[slot] = true
	}
	require.Len(t, slots, 1)
	thirds := [3]int{}
	for tag := range 64 {
		slot, err := client.ClusterKeySlot(t.Context(), fmt.Sprintf("x:{%d}:y", tag)).Result()
		require.NoError(t, err)
		thirds[slot*3/16384]++
	}
	for _, n := range thirds {
		require.Greater(t, n, 10, "%v", thirds)
	}
}
