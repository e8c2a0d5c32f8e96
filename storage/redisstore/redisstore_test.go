package redisstore_test

import (
	"fmt"
	"hash/fnv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// safe is the settings that lose nothing.
var safe = []string{"--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"}

// server starts one that loses nothing and gives a client of it.
func server(t testing.TB, more ...string) (*testenv.Process, *redis.Client) {
	t.Helper()
	p := testenv.Redis(t, append(append([]string{}, safe...), more...)...)
	return p, connect(t, p)
}

func connect(t testing.TB, p *testenv.Process) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: p.Address(), MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// cluster starts three masters that lose nothing and gives a client of them.
func cluster(t testing.TB) redis.UniversalClient {
	t.Helper()
	var addresses []string
	for _, n := range testenv.RedisCluster(t, 3, safe...) {
		addresses = append(addresses, n.Address())
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

var prefixes atomic.Int64

// fresh is an empty store on servers that others use too.
type fresh struct {
	*redisstore.Store
	prefix string
}

// harness gives every case a prefix of its own.
func harness(client redis.UniversalClient, rounds int) storagetest.Harness {
	on := func(prefix string) storage.Store {
		return &fresh{redisstore.New(client, redisstore.Options{Prefix: prefix}), prefix}
	}
	again := func(_ testing.TB, s storage.Store) storage.Store { return on(s.(*fresh).prefix) }
	return storagetest.Harness{
		Open:   func(testing.TB) storage.Store { return on(fmt.Sprint("test", prefixes.Add(1))) },
		Second: again,
		Reopen: again,
		Spoil: func(t testing.TB, s storage.Store, p storage.Partition, id string) {
			edit(t, client, s, p, id, func(row string) string { return strings.Replace(row, `["x"]`, `{"x"]`, 1) })
		},
		Wreck: func(t testing.TB, s storage.Store, p storage.Partition, id string) {
			edit(t, client, s, p, id, func(row string) string { return row[:len(row)-1] })
		},
		Rounds: rounds,
	}
}

// edit changes the packed row of a Thing.
func edit(t testing.TB, client redis.UniversalClient, s storage.Store, p storage.Partition, id string, as func(string) string) {
	t.Helper()
	h := fnv.New32a()
	_, _ = h.Write([]byte(p))
	rows := fmt.Sprintf("%s:{%d}:row:suite_things:%s", s.(*fresh).prefix, h.Sum32()%64, p)
	row, err := client.HGet(t.Context(), rows, id).Result()
	require.NoError(t, err)
	require.NotEqual(t, row, as(row))
	require.NoError(t, client.HSet(t.Context(), rows, id, as(row)).Err())
}

func TestConformance(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	storagetest.Run(t, harness(client, 40))
}

func TestConformanceOfACluster(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, harness(cluster(t), 15))
}

// The verdicts are those of the reference, word for word.
func TestSameVerdictsAsMemory(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	storagetest.Compare(t, memory.New(), harness(client, 0).Open(t), 60)
}

func TestOpenOfTwoDeclarations(t *testing.T) {
	t.Parallel()
	type one struct {
		Name string `db:"name"`
	}
	type other struct {
		Name string `db:"name"`
		Age  int64  `db:"age"`
	}
	_, client := server(t)
	s := redisstore.New(client, redisstore.Options{})
	require.NoError(t, s.Open(t.Context(), storage.NewTable[one]("people").Table))
	err := s.Open(t.Context(), storage.NewTable[other]("people").Table)
	require.ErrorIs(t, err, storage.ErrSchema)
	err = s.Open(t.Context(), storage.NewTable[one]("people", storage.Index("name")).Table)
	require.ErrorIs(t, err, storage.ErrSchema, "rows would be missing in the index")
}
