package redisstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/shopspring/decimal"
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
		Rounds: rounds,
	}
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
		Age  int64  `db:"age"`
		Name string `db:"name"`
	}
	_, client := server(t)
	s := redisstore.New(client, redisstore.Options{})
	require.NoError(t, s.Open(t.Context(), storage.NewTable[one]("people").Table))
	err := s.Open(t.Context(), storage.NewTable[other]("people").Table)
	require.ErrorIs(t, err, storage.ErrSchema)
	err = s.Open(t.Context(), storage.NewTable[one]("people", storage.Index("name")).Table)
	require.ErrorIs(t, err, storage.ErrSchema, "rows would be missing in the index")
}

// TestU02_ColumnsAddedBehindTheOthers: rows from before read as if the new columns were
// zero, are written whole, and an older process does not open the store any more.
func TestU02_ColumnsAddedBehindTheOthers(t *testing.T) {
	t.Parallel()
	type older struct {
		Name string `db:"name"`
	}
	type newer struct {
		Name   string          `db:"name"`
		Text   string          `db:"text"`
		Number int64           `db:"number"`
		Flag   bool            `db:"flag"`
		At     time.Time       `db:"at"`
		Price  decimal.Decimal `db:"price"`
		Blob   []byte          `db:"blob"`
		List   []string        `db:"list,json"`
	}
	_, client := server(t)
	before, part := storage.NewTable[older]("people", storage.Index("name")), storage.Tenant("t")
	s := redisstore.New(client, redisstore.Options{})
	require.NoError(t, s.Open(t.Context(), before.Table))
	require.NoError(t, storage.CommitOne(t.Context(), s, storage.Change{ID: "1", Partition: part, Put: []storage.Row{before.Row("a", 0, time.Time{}, older{"Ada"})}}))

	after := storage.NewTable[newer]("people", storage.Index("name"))
	s = redisstore.New(client, redisstore.Options{})
	require.NoError(t, s.Open(t.Context(), after.Table))
	got, row, ok, err := after.One(t.Context(), s, part, "a")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, newer{Name: "Ada", Price: decimal.New(0, 0)}, got)
	got.Text, got.Number = "more", 7
	require.NoError(t, storage.CommitOne(t.Context(), s, storage.Change{ID: "2", Partition: part, Put: []storage.Row{after.Row("a", row.Version, time.Time{}, got)}}))
	rows, err := s.Find(t.Context(), storage.Query{Table: after.Table, Partition: part, Where: []storage.Cond{{Column: "name", Op: storage.Eq, Value: "Ada"}}})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, got, after.Value(rows[0]))
	require.ErrorIs(t, redisstore.New(client, redisstore.Options{}).Open(t.Context(), before.Table), storage.ErrSchema)
}
