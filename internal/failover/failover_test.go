// Package failover kills the leader of replicated databases in the middle of a
// run, and counts what was acknowledged and is gone. Its servers take minutes
// and packages of their own: make failover runs it.
package failover

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

var runs = flag.Int("runs", 3, "how often the leader of a new cluster is killed")

func wanted(t *testing.T) {
	t.Helper()
	if os.Getenv("CRYPTOPAY_FAILOVER") != "1" {
		t.Skip("starts clusters: make failover")
	}
}

const (
	bank    = storage.Partition("bank")
	wallets = 8
	each    = 1000 // in every wallet
	callers = 16
)

// result is what one run came to.
type result struct {
	acknowledged int
	lost         int           // of them, after the failover
	again        int           // Changes that had to be sent again
	outage       time.Duration // the longest time without an acknowledgement
}

// run has callers move money between wallets, with the same Change sent again
// for as long as its outcome is unknown. The leader is killed in the middle; the
// run goes on for as long as it went before.
func run(t *testing.T, seed uint64, s storage.Store, kill func()) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	fund := storage.Change{ID: "fund", Partition: bank}
	for w := range wallets {
		fund.Post = append(fund.Post, ledger.Tx{ID: fmt.Sprint("fund", w), Legs: []ledger.Leg{
			{Account: "chain/net", Asset: "C", Delta: -each}, {Account: ledger.Wallet(fmt.Sprint(w)), Asset: "C", Delta: each},
		}})
	}
	require.NoError(t, storage.CommitOne(ctx, s, fund))
	const before = 1500
	var (
		mu    sync.Mutex
		r     result
		acked []string
		last  = time.Now()
		wg    sync.WaitGroup
		once  sync.Once
	)
	done := func(id string) (enough bool) {
		mu.Lock()
		acked = append(acked, id)
		r.outage = max(r.outage, time.Since(last))
		last = time.Now()
		n := len(acked)
		mu.Unlock()
		if n == before {
			once.Do(kill)
		}
		return n >= 2*before
	}
	for c := range callers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(c)))
			for n := 0; ctx.Err() == nil; n++ {
				change := move(fmt.Sprint(c, "-", n), random)
				for tries := 0; ; tries++ {
					attempt, stop := context.WithTimeout(ctx, 5*time.Second)
					err := storage.CommitOne(attempt, s, change)
					stop()
					var funds *ledger.InsufficientFundsError
					if err == nil || errors.As(err, &funds) {
						if err == nil && done(change.ID) {
							return
						}
						break
					}
					if storage.Final(err) || ctx.Err() != nil {
						t.Errorf("%s: %v", change.ID, err)
						return
					}
					mu.Lock()
					r.again++
					mu.Unlock()
					time.Sleep(20 * time.Millisecond) // the cluster is electing
				}
			}
		})
	}
	wg.Wait()
	r.acknowledged = len(acked)
	r.lost = missing(t, s, acked)
	storagetest.Audit(t, s, bank)
	return r
}

// move is one transfer, with a row that tells of it.
func move(id string, random *rand.Rand) storage.Change {
	from := random.IntN(wallets)
	to := (from + 1 + random.IntN(wallets-1)) % wallets
	amount := ledger.Amount(1 + random.IntN(20))
	return storage.Change{
		ID: id, Partition: bank,
		Put: []storage.Row{storagetest.Notes.Row(id, 0, time.Time{}, storagetest.Note{Text: id})},
		Post: []ledger.Tx{{ID: id, Legs: []ledger.Leg{
			{Account: ledger.Wallet(fmt.Sprint(from)), Asset: "C", Delta: -amount},
			{Account: ledger.Wallet(fmt.Sprint(to)), Asset: "C", Delta: amount},
		}}},
	}
}

// missing counts acknowledged Changes that are not there. Each is there whole or
// not at all: its row and its two entries.
func missing(t *testing.T, s storage.Store, acked []string) int {
	t.Helper()
	rows := map[string]bool{}
	for part := range chunks(acked, 500) {
		found, err := s.Rows(t.Context(), storagetest.Notes.Table, storage.Keys(bank, part...)...)
		require.NoError(t, err)
		for _, row := range found {
			rows[row.ID] = true
		}
	}
	entries := map[string]int{}
	for w := range wallets {
		for before := int64(0); ; {
			page, err := s.Entries(t.Context(), bank, ledger.Wallet(fmt.Sprint(w)), "C", before, 500)
			require.NoError(t, err)
			for _, e := range page {
				entries[e.Tx]++
				before = e.Seq
			}
			if len(page) < 500 {
				break
			}
		}
	}
	lost := 0
	for _, id := range acked {
		if rows[id] {
			require.Equal(t, 2, entries[id], id)
		} else {
			require.Zero(t, entries[id], id)
			lost++
		}
	}
	return lost
}

func chunks(all []string, size int) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for len(all) > 0 {
			n := min(size, len(all))
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// The leader of a synchronous Postgres cluster dies with its machine: what was
// acknowledged is on the standby that takes over.
func TestL08_PostgresLeaderKilled(t *testing.T) {
	wanted(t)
	for i := range *runs {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			members := testenv.Patroni(t, 3)
			var hosts []string
			for _, m := range members {
				hosts = append(hosts, m.Address())
			}
			dsn := "postgres://postgres@" + strings.Join(hosts, ",") + "/postgres?sslmode=disable&target_session_attrs=read-write&connect_timeout=2"
			require.NoError(t, postgres.Migrate(t.Context(), dsn, postgres.Options{}, storagetest.Tables()...))
			s, err := postgres.Open(dsn, postgres.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			require.NoError(t, s.Open(t.Context(), storagetest.Tables()...))
			killed := 0
			r := run(t, uint64(i), s, func() {
				for _, m := range members {
					if m.Leads() {
						m.Kill()
						killed++
					}
				}
			})
			require.Equal(t, 1, killed, "there was one leader")
			t.Logf("%+v", r)
			require.Zero(t, r.lost, "acknowledged, and gone")
		})
	}
}

// The master of a Redis under Sentinel dies: what a replica had not received is
// lost, which Open refuses to risk unless it is named. What is left fits together.
func TestL07_RedisMasterKilled(t *testing.T) {
	wanted(t)
	for i := range *runs {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			servers, s := sentinelStore(t)
			r := run(t, uint64(i), s, servers[0].Kill)
			t.Logf("%+v", r)
		})
	}
	t.Run("replicas cut off", func(t *testing.T) {
		servers, s := sentinelStore(t)
		r := run(t, 1, s, func() {
			for _, replica := range servers[1:] { // cut off: the master refuses what it says
				cut(t, replica, "CONFIG", "SET", "masterauth", "wrong")
			}
			cut(t, servers[0], "CLIENT", "KILL", "TYPE", "replica")
			time.Sleep(200 * time.Millisecond) // acknowledged, and nowhere else
			servers[0].Kill()
		})
		t.Logf("%+v", r)
		require.Positive(t, r.lost, "that is what redisstore.Failover allows")
	})
}

func cut(t *testing.T, p *testenv.Process, words ...any) {
	c := redis.NewClient(&redis.Options{Addr: p.Address()})
	defer func() { _ = c.Close() }()
	if err := c.Do(t.Context(), words...).Err(); err != nil {
		t.Error(err)
	}
}

// sentinelStore opens a store on a new Redis under Sentinel: the strict one is
// refused.
func sentinelStore(t *testing.T) ([]*testenv.Process, storage.Store) {
	t.Helper()
	servers, sentinels := testenv.RedisSentinel(t, 2, "--appendonly", "yes", "--appendfsync", "always")
	var at []string
	for _, s := range sentinels {
		at = append(at, s.Address())
	}
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "cryptopay", SentinelAddrs: at})
	strict := redisstore.New(client, redisstore.Options{})
	require.ErrorContains(t, strict.Open(t.Context(), storagetest.Tables()...), "a failover to one of them loses acknowledged commits")
	s := redisstore.New(client, redisstore.Options{AllowLoss: []redisstore.Loss{redisstore.Failover}}).Own()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Open(t.Context(), storagetest.Tables()...))
	return servers, s
}
