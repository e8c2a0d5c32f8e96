package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
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

const shop = storage.Partition("tenant/shop")

func opened(t testing.TB, client redis.UniversalClient, o redisstore.Options) *redisstore.Store {
	t.Helper()
	s := redisstore.New(client, o)
	require.NoError(t, s.Open(t.Context(), storagetest.Tables()...))
	return s
}

// sale is a Change of two halves: a row, and a coin.
func sale(id string) storage.Change {
	return storage.Change{
		ID: id, Partition: shop,
		Put: []storage.Row{storagetest.Notes.Row(id, 0, time.Time{}, storagetest.Note{Text: id})},
		Post: []ledger.Tx{{ID: id, Legs: []ledger.Leg{
			{Account: "chain/net", Asset: "C", Delta: -1}, {Account: "wallet/w", Asset: "C", Delta: 1},
		}}},
	}
}

func coins(t testing.TB, s storage.Store) ledger.Amount {
	t.Helper()
	b, err := s.Balances(t.Context(), shop, "wallet/w")
	require.NoError(t, err)
	if len(b) == 0 {
		return 0
	}
	return b[0].Posted
}

func sales(t testing.TB, s storage.Store) int64 {
	t.Helper()
	n, err := s.Count(t.Context(), storage.Query{Table: storagetest.Notes.Table, Partition: shop})
	require.NoError(t, err)
	return n
}

// until sells with several callers until something goes wrong, at the latest
// after many, and says what was tried and how much of it was acknowledged.
func until(s storage.Store, acknowledged func(n int64)) (tried []string, sold map[string]bool) {
	var mu sync.Mutex
	var n atomic.Int64
	sold = map[string]bool{}
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				id := fmt.Sprintf("s%d-%05d", c, i)
				err := s.Commit(context.Background(), storagetest.Telling(sale(id)))[0]
				mu.Lock()
				tried = append(tried, id)
				if err == nil {
					sold[id] = true
				}
				mu.Unlock()
				if err != nil {
					return
				}
				acknowledged(n.Add(1))
			}
		})
	}
	wg.Wait()
	return tried, sold
}

// recovered compares what a store holds after a crash with what was answered.
func recovered(t testing.TB, s storage.Store, tried []string, sold map[string]bool) {
	t.Helper()
	storagetest.Audit(t, s, shop)
	require.EqualValues(t, sales(t, s), coins(t, s), "rows without coins, or coins without rows")
	for id := range sold {
		_, _, ok, err := storagetest.Notes.One(t.Context(), s, shop, id)
		require.NoError(t, err)
		require.True(t, ok, "%s was acknowledged", id)
	}
	for _, id := range tried { // whoever got no answer asks again
		require.NoError(t, storage.CommitOne(t.Context(), s, storagetest.Telling(sale(id))), id)
	}
	require.EqualValues(t, len(tried), coins(t, s))
	require.EqualValues(t, len(tried), storagetest.AuditStream(t, s, shop))
	require.EqualValues(t, len(tried), sales(t, s))
	storagetest.Audit(t, s, shop)
}

// The server is killed while eight callers commit. What was acknowledged is
// there afterwards, what was not is there whole or not at all.
func TestL01_KilledServer(t *testing.T) {
	t.Parallel()
	p, client := server(t)
	s := opened(t, client, redisstore.Options{})
	tried, sold := until(s, func(n int64) {
		if n == 300 {
			p.Kill()
		}
	})
	require.GreaterOrEqual(t, len(sold), 300)
	_, client = server(t, "--dir", p.Dir)
	recovered(t, opened(t, client, redisstore.Options{}), tried, sold)
}

// The disk takes no more in the middle of a write: the server ends, and what it
// wrote half is not there when it comes back.
func TestL09_FullDisk(t *testing.T) {
	t.Parallel()
	p, client := server(t)
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		const line = "NOT TESTED: prlimit is not installed: it is part of util-linux"
		if os.Getenv("CRYPTOPAY_TEST_FULL") == "1" {
			t.Fatal(line)
		}
		t.Skip(line)
	}
	s := opened(t, client, redisstore.Options{})
	tried, sold := until(s, func(n int64) {
		if n == 100 {
			out, err := exec.CommandContext(t.Context(), prlimit, "--pid", strconv.Itoa(p.PID), "--fsize=100011").CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	})
	require.GreaterOrEqual(t, len(sold), 100)
	p.Kill() // it has ended, or will not write again
	_, client = server(t, "--dir", p.Dir)
	recovered(t, opened(t, client, redisstore.Options{}), tried, sold)
}

// The memory that the server may use runs out: commits are refused whole, and
// go through once there is room.
func TestL09_MemoryRunsOut(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s := opened(t, client, redisstore.Options{})
	require.NoError(t, s.Commit(t.Context(), sale("first"))[0])
	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", "1mb").Err())
	err := s.Commit(t.Context(), sale("second"))[0]
	require.ErrorIs(t, err, storage.ErrUnknown)
	require.ErrorContains(t, err, "OOM")
	require.EqualValues(t, 1, coins(t, s))
	require.EqualValues(t, 1, sales(t, s))
	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	require.NoError(t, storage.CommitOne(t.Context(), s, sale("second")))
	require.EqualValues(t, 2, coins(t, s))
}

// A key that something else took, or a history that somebody shortened, ends the
// script before it writes: not half of a Change happens, and the others of its
// batch do.
func TestL07_NothingIsHalfApplied(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s := opened(t, client, redisstore.Options{})
	require.NoError(t, s.Commit(t.Context(), sale("first"))[0])
	other := sale("other")
	other.Post[0].Legs[1].Account = "wallet/v"
	other.Post[0].Legs[0].Account = "chain/other"
	for i, pattern := range []string{"*:his:*wallet/w*", "*:idx:*", "*:in:suite_notes", "*:due:*"} {
		bad, good := sale(fmt.Sprint("bad", i)), other
		good.ID, good.Put = fmt.Sprint("good", i), nil
		good.Post = []ledger.Tx{{ID: good.ID, Legs: other.Post[0].Legs}}
		bad.Put[0].Due = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		names, err := client.Keys(t.Context(), pattern).Result()
		require.NoError(t, err)
		if pattern == "*:due:*" {
			names = []string{fmt.Sprintf("cryptopay:{%s}:due:suite_notes", tag(t, client))}
		}
		require.NotEmpty(t, names, pattern)
		for _, k := range names {
			_ = client.Rename(t.Context(), k, "kept:"+k).Err() // what is not there is not kept
			require.NoError(t, client.Set(t.Context(), k, "something else", 0).Err())
		}
		errs, err := s.Write(t.Context(), true, []storage.Change{bad, good})
		require.NoError(t, err)
		require.ErrorContains(t, errs[0], "WRONGTYPE", pattern)
		require.NoError(t, errs[1], pattern)
		require.EqualValues(t, 1+i, coins(t, s), pattern)
		for _, k := range names {
			require.NoError(t, client.Del(t.Context(), k).Err())
			_ = client.Rename(t.Context(), "kept:"+k, k).Err()
		}
		require.NoError(t, s.Commit(t.Context(), bad)[0], pattern)
		require.EqualValues(t, 2+i, coins(t, s))
	}
	storagetest.Audit(t, s, shop)

	names, err := client.Keys(t.Context(), "*:his:*wallet/w*").Result()
	require.NoError(t, err)
	line, err := client.RPop(t.Context(), names[0]).Result()
	require.NoError(t, err)
	require.ErrorContains(t, s.Commit(t.Context(), sale("last"))[0], "changed by hand")
	require.EqualValues(t, 5, sales(t, s))
	require.NoError(t, client.RPush(t.Context(), names[0], line).Err())
	require.NoError(t, s.Commit(t.Context(), sale("last"))[0])
	storagetest.Audit(t, s, shop)
}

// tag is the hash tag of the shop.
func tag(t testing.TB, client *redis.Client) string {
	t.Helper()
	names, err := client.Keys(t.Context(), "*:bal:"+string(shop)).Result()
	require.NoError(t, err)
	require.Len(t, names, 1)
	_, rest, _ := strings.Cut(names[0], "{")
	out, _, _ := strings.Cut(rest, "}")
	return out
}

// The answer to a commit is lost. Its outcome is unknown, and sending it again
// settles it.
func TestL02_LostAnswer(t *testing.T) {
	t.Parallel()
	p, _ := server(t)
	between := newProxy(t, p.Address())
	client := redis.NewClient(&redis.Options{Addr: between.address, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	s := opened(t, client, redisstore.Options{})
	require.NoError(t, s.Commit(t.Context(), sale("first"))[0])
	between.cutNext()
	err := s.Commit(t.Context(), sale("second"))[0]
	require.ErrorIs(t, err, storage.ErrUnknown)
	require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict))
	require.EqualValues(t, 2, coins(t, s), "it happened")
	require.NoError(t, s.Commit(t.Context(), sale("second"))[0])
	require.EqualValues(t, 2, coins(t, s), "once")

	between.cutNext()
	require.NoError(t, storage.CommitOne(t.Context(), s, sale("third")))
	require.EqualValues(t, 3, coins(t, s))
}

// Whichever answer to a read is lost, the read is an error, and never a part of what is
// there.
func TestL02_LostAnswersOfReads(t *testing.T) {
	t.Parallel()
	p, _ := server(t)
	between := newProxy(t, p.Address())
	client := redis.NewClient(&redis.Options{Addr: between.address, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	s := opened(t, client, redisstore.Options{})
	var ids []string
	for i := range 1200 { // more than one page
		id := fmt.Sprint("n", i)
		ids = append(ids, id)
		c := storage.Change{ID: id, Partition: shop, Put: []storage.Row{
			storagetest.Notes.Row(id, 0, time.Time{}, storagetest.Note{Text: fmt.Sprint(i % 2), N: int64(i)}),
		}}
		if i%100 == 0 {
			c = sale(id)
			c.Partition = storage.Partition(fmt.Sprint("tenant/", i%200))
		}
		require.NoError(t, s.Commit(t.Context(), c)[0])
	}
	for i := range 30 {
		c := sale(fmt.Sprint("sale", i))
		require.NoError(t, s.Commit(t.Context(), c)[0])
	}
	notes := func(p storage.Partition, where ...storage.Cond) storage.Query {
		return storage.Query{Table: storagetest.Notes.Table, Partition: p, Where: where, Limit: 2000}
	}
	odd := storage.Cond{Column: "text", Op: storage.Eq, Value: "1"}
	few := storage.Cond{Column: "n", Op: storage.Lt, Value: int64(7)}
	for name, read := range map[string]func() (any, error){
		"find":           func() (any, error) { return s.Find(t.Context(), notes(shop, odd)) },
		"find by index":  func() (any, error) { return s.Find(t.Context(), notes(shop, few)) },
		"find in all":    func() (any, error) { return s.Find(t.Context(), notes("", odd)) },
		"count":          func() (any, error) { return s.Count(t.Context(), notes(shop, odd)) },
		"count by index": func() (any, error) { return s.Count(t.Context(), notes(shop, few)) },
		"count in all":   func() (any, error) { return s.Count(t.Context(), notes("", odd)) },
		"rows": func() (any, error) {
			return s.Rows(t.Context(), storagetest.Notes.Table, storage.Keys(shop, ids...)...)
		},
		"balances":             func() (any, error) { return s.Balances(t.Context(), shop) },
		"balances of accounts": func() (any, error) { return s.Balances(t.Context(), shop, "wallet/w", "chain/net") },
		"entries":              func() (any, error) { return s.Entries(t.Context(), shop, "wallet/w", "C", 20, 10) },
	} {
		lost := 0
		for n := 1; ; n++ {
			want, err := read()
			require.NoError(t, err, name)
			between.cutAt(n)
			got, err := read()
			if between.cutAt(0) > 0 {
				require.NoError(t, err, name)
				require.Equal(t, want, got, name)
				break
			}
			require.Error(t, err, "%s: answer %d", name, n)
			lost++
		}
		require.Positive(t, lost, name)
	}
}

// Each setting that loses money is refused at Open, in words that name it.
func TestL06_UnsafeSettings(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	for _, c := range []struct{ setting, bad, good, words string }{
		{"maxmemory-policy", "allkeys-lru", "noeviction", "set maxmemory-policy noeviction"},
		{"maxmemory-policy", "volatile-ttl", "noeviction", "set maxmemory-policy noeviction"},
		{"appendonly", "no", "yes", "set appendonly yes"},
		{"appendfsync", "no", "always", "set appendfsync always"},
		{"appendfsync", "everysec", "always", "set appendfsync always, or name redisstore.LastSecond"},
		{"no-appendfsync-on-rewrite", "yes", "no", "set no-appendfsync-on-rewrite no"},
	} {
		require.NoError(t, client.ConfigSet(t.Context(), c.setting, c.bad).Err())
		err := redisstore.New(client, redisstore.Options{}).Open(t.Context())
		require.ErrorContains(t, err, c.words, "%s %s", c.setting, c.bad)
		require.NoError(t, client.ConfigSet(t.Context(), c.setting, c.good).Err())
		require.NoError(t, redisstore.New(client, redisstore.Options{}).Open(t.Context()))
	}
	lenient := redisstore.Options{AllowLoss: []redisstore.Loss{redisstore.LastSecond}}
	require.NoError(t, client.ConfigSet(t.Context(), "appendfsync", "everysec").Err())
	require.NoError(t, redisstore.New(client, lenient).Open(t.Context()), "named")
	require.NoError(t, client.ConfigSet(t.Context(), "appendfsync", "no").Err())
	require.Error(t, redisstore.New(client, lenient).Open(t.Context()), "half a minute is not a second")

	require.NoError(t, client.Do(t.Context(), "ACL", "SETUSER", "blind", "on", "nopass", "~*", "+@all", "-config").Err())
	blind := redis.NewClient(&redis.Options{Addr: client.Options().Addr, Username: "blind", Password: "x"})
	t.Cleanup(func() { _ = blind.Close() })
	require.ErrorContains(t, redisstore.New(blind, redisstore.Options{}).Open(t.Context()), "allow CONFIG GET")
	require.Eventually(t, func() bool { // a child of the server writes the log that was turned on, and outlives it
		info, err := client.Info(t.Context(), "persistence").Result()
		return err == nil && strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0")
	}, time.Minute, 10*time.Millisecond)
}

// A server that comes back with other settings is found out before anything
// that it took counts.
func TestL06_ServerComesBackUnsafe(t *testing.T) {
	t.Parallel()
	good, _ := server(t)
	bad := testenv.Redis(t)
	between := newProxy(t, good.Address())
	client := redis.NewClient(&redis.Options{Addr: between.address})
	t.Cleanup(func() { _ = client.Close() })
	s := opened(t, client, redisstore.Options{})
	require.NoError(t, s.Commit(t.Context(), sale("first"))[0])
	between.lead(bad.Address())
	for range 3 {
		err := s.Commit(t.Context(), sale("second"))[0]
		require.ErrorContains(t, err, "set appendonly yes")
		require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict))
	}
	between.lead(good.Address())
	require.NoError(t, s.Commit(t.Context(), sale("second"))[0])
	require.EqualValues(t, 2, coins(t, s))
}

// A failover forgets what the replica had not yet received: servers with
// replicas are refused unless that is accepted by name.
func TestL07_ReplicasAreRefused(t *testing.T) {
	t.Parallel()
	p, client := server(t)
	replica := testenv.Redis(t, append(append([]string{}, safe...), "--replicaof", "127.0.0.1 "+strconv.Itoa(p.Port), "--repl-diskless-sync-delay", "0")...)
	follower := connect(t, replica)
	require.Eventually(t, func() bool {
		return follower.InfoMap(t.Context(), "replication").Item("Replication", "master_link_status") == "up"
	}, 20*time.Second, 10*time.Millisecond)
	require.ErrorContains(t, redisstore.New(client, redisstore.Options{}).Open(t.Context()), "redisstore.Failover")
	s := opened(t, client, redisstore.Options{AllowLoss: []redisstore.Loss{redisstore.Failover}})
	require.NoError(t, s.Commit(t.Context(), sale("first"))[0])
}

// A replica is refused, and so is a master that becomes one.
func TestL08_ReadOnlyReplica(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s := opened(t, client, redisstore.Options{})
	require.NoError(t, s.Commit(t.Context(), sale("first"))[0])
	require.NoError(t, client.Do(t.Context(), "REPLICAOF", "127.0.0.1", strconv.Itoa(testenv.FreePort(t))).Err())
	require.ErrorContains(t, redisstore.New(client, redisstore.Options{}).Open(t.Context()), "read-only replica")
	for range 2 {
		err := s.Commit(t.Context(), sale("second"))[0]
		require.Error(t, err)
		require.False(t, storage.Final(err) || errors.Is(err, storage.ErrConflict))
	}
	require.ErrorContains(t, s.Commit(t.Context(), sale("second"))[0], "read-only replica", "it says why")
	require.NoError(t, client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	require.NoError(t, s.Commit(t.Context(), sale("second"))[0])
	require.EqualValues(t, 2, coins(t, s))
}

// Clients that read elsewhere than they write, or move keys, are refused.
func TestL08_ClientsThatReadElsewhere(t *testing.T) {
	t.Parallel()
	for _, o := range []*redis.ClusterOptions{
		{Addrs: []string{"127.0.0.1:1"}, ReadOnly: true},
		{Addrs: []string{"127.0.0.1:1"}, RouteByLatency: true},
		{Addrs: []string{"127.0.0.1:1"}, RouteRandomly: true},
	} {
		c := redis.NewClusterClient(o)
		t.Cleanup(func() { _ = c.Close() })
		require.ErrorContains(t, redisstore.New(c, redisstore.Options{}).Open(t.Context()), "reads from replicas")
	}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	require.ErrorContains(t, redisstore.New(ring, redisstore.Options{}).Open(t.Context()), "moves keys")
	node := connect(t, testenv.RedisCluster(t, 1, safe...)[0])
	require.ErrorContains(t, redisstore.New(node, redisstore.Options{}).Open(t.Context()), "NewClusterClient")
}

// The set of due rows holds what is due and nothing else: it would grow with all that was
// ever done, and each Claim would read it.
func TestX03_WhatIsDoneIsNotDueAnyMore(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s := opened(t, client, redisstore.Options{})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 20 {
		c := sale(fmt.Sprint("sale", i))
		c.Put[0].Due = at
		require.NoError(t, s.Commit(t.Context(), c)[0])
	}
	rows, err := s.Claim(t.Context(), storage.Claim{Table: storagetest.Notes.Table, Now: at, Until: at.Add(time.Minute), Max: 100})
	require.NoError(t, err)
	require.Len(t, rows, 20)
	for i, r := range rows {
		done := storage.Change{ID: fmt.Sprint("done", i), Partition: r.Partition}
		if i%2 == 0 {
			done.Drop = []storage.Row{r}
		} else {
			r.Due = time.Time{}
			done.Put = []storage.Row{r}
		}
		require.NoError(t, s.Commit(t.Context(), done)[0])
	}
	left, err := client.Keys(t.Context(), "*:due:*").Result()
	require.NoError(t, err)
	require.Empty(t, left)
}

// A counter that somebody has edited so that it cannot be read costs what it shows. What
// it counts is committed, and so is the rest.
func TestFS02_BrokenCounterStopsNothing(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	for name, broken := range map[string]string{
		"no array": "\x94\xa1", "a text": "\xa1x", "three columns": "\x93\xa11\xa11\xa10", "a short value": "\x94\xa11\xa11\xa10\xa3abc",
		"no version": "\x94\xa1x\xa11\xa10\xa8\x80\x00\x00\x00\x00\x00\x00\x07", "numbers": "\x94\x01\x01\x00\x07",
	} {
		s := opened(t, client, redisstore.Options{Prefix: name})
		counted := func(id string) storage.Change {
			c := sale(id)
			c.Count = []storage.Count{{Name: "sales", Delta: 1}}
			return c
		}
		require.NoError(t, storage.CommitOne(t.Context(), s, counted("1")))
		keys, err := client.Keys(t.Context(), name+":*:row:counters:"+string(shop)).Result()
		require.NoError(t, err)
		require.Len(t, keys, 1)
		require.NoError(t, client.HSet(t.Context(), keys[0], "sales", broken).Err())
		_, _, _, err = storage.Counters.One(t.Context(), s, shop, "sales")
		var unread *storage.RowError
		require.ErrorAs(t, err, &unread, name)
		require.Equal(t, []error{nil, nil, nil}, s.Commit(t.Context(), counted("2"), sale("3"), counted("4")), name)
		require.EqualValues(t, 4, coins(t, s))
		c, _, ok, err := storage.Counters.One(t.Context(), s, shop, "sales")
		require.NoError(t, err)
		require.True(t, ok)
		require.EqualValues(t, 2, c.Value)
	}
}

// A stream that cannot be read stops what tells of something, as its events have no
// numbers. What else is committed with it is not stopped.
func TestFS02_BrokenStreamStopsWhatItNumbers(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s := opened(t, client, redisstore.Options{})
	told := func(id string) storage.Change {
		c := sale(id)
		c.Tell = []storage.Event{{Kind: "sold", At: time.Unix(1, 0).UTC()}}
		return c
	}
	require.NoError(t, storage.CommitOne(t.Context(), s, told("1")))
	keys, err := client.Keys(t.Context(), "*:row:streams:"+string(shop)).Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	was, err := client.HGet(t.Context(), keys[0], storage.StreamID).Result()
	require.NoError(t, err)
	for _, broken := range []string{"\x94\xa1", was[:len(was)-1], "\x94\xa11\xa11\xa10\xa3abc"} {
		require.NoError(t, client.HSet(t.Context(), keys[0], storage.StreamID, broken).Err())
		n := coins(t, s)
		errs := s.Commit(t.Context(), sale("a"+strconv.Itoa(int(n))), told("2"), sale("b"+strconv.Itoa(int(n))))
		var unread *storage.RowError
		require.ErrorAs(t, errs[1], &unread)
		require.Equal(t, storage.Streams.Table.Name, unread.Table)
		require.Equal(t, []error{nil, nil}, []error{errs[0], errs[2]})
		require.Equal(t, n+2, coins(t, s), "nothing of the other is there")
	}
	require.NoError(t, client.HSet(t.Context(), keys[0], storage.StreamID, was).Err())
	require.NoError(t, storage.CommitOne(t.Context(), s, told("2")))
}

// A row that somebody took away, and left in the index, is met as one that cannot be read.
func TestFS02_RowTakenAwayCostsOnlyItself(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s := opened(t, client, redisstore.Options{})
	require.Equal(t, []error{nil, nil}, s.Commit(t.Context(), sale("1"), sale("2")))
	keys, err := client.Keys(t.Context(), "*:row:suite_notes:"+string(shop)).Result()
	require.NoError(t, err)
	require.NoError(t, client.HDel(t.Context(), keys[0], "1").Err())
	rows, broken, err := storage.Others(t.Context(), s, storage.Query{Table: storagetest.Notes.Table, Partition: shop, Limit: 1})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, "2", rows[0].ID)
	require.True(t, broken.Has("1"))
}

// Asked for by its unique key, it is named, too.
func TestFS02_RowTakenAwayIsNamedByItsUniqueKey(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s := opened(t, client, redisstore.Options{})
	c := storage.Change{ID: "1", Partition: shop, Put: []storage.Row{storagetest.Things.Row("1", 0, time.Time{}, storagetest.Thing{Name: "lamp"})}}
	require.NoError(t, storage.CommitOne(t.Context(), s, c))
	keys, err := client.Keys(t.Context(), "*:row:suite_things:"+string(shop)).Result()
	require.NoError(t, err)
	require.NoError(t, client.HDel(t.Context(), keys[0], "1").Err())
	_, err = s.Rows(t.Context(), storagetest.Things.Table, storage.Key{Partition: shop, Unique: []string{"name"}, Values: []any{"lamp"}})
	var unread *storage.RowError
	require.ErrorAs(t, err, &unread)
	require.Equal(t, []any{shop, "1"}, []any{unread.Partition, unread.ID})
}
