package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

func BenchmarkTransfers(b *testing.B) {
	_, client := server(b)
	storagetest.Bench(b, harness(client, 0),
		storagetest.Baseline{Name: "one per EVALSHA", Open: onePerScript(client)},
		storagetest.Baseline{Name: "this script ungrouped", Open: ungrouped(client)},
		storagetest.Baseline{Name: "bare SET", Open: bareSet(client)})
}

func BenchmarkProcesses(b *testing.B) {
	p, client := server(b)
	storagetest.BenchProcesses(b,
		func(testing.TB) string { return fmt.Sprint(p.Address(), " shared", prefixes.Add(1)) },
		func(_ testing.TB, place string) storage.Store {
			_, prefix, _ := strings.Cut(place, " ")
			return redisstore.New(client, redisstore.Options{Prefix: prefix})
		})
}

func TestMain(m *testing.M) {
	storagetest.BenchChild(func(place string) (storage.Store, error) {
		address, prefix, _ := strings.Cut(place, " ")
		return redisstore.New(redis.NewClient(&redis.Options{Addr: address}), redisstore.Options{Prefix: prefix}).Own(), nil
	})
	os.Exit(m.Run())
}

// BenchmarkProcessor is the same with 32 callers, in processor time of both sides:
// what is gained where neither waits for the other, and hardly moved by other
// work on the machine.
func BenchmarkProcessor(b *testing.B) {
	p, client := server(b)
	grouped := func(*testing.B) func(id string, from, to int, n int64) error {
		s := redisstore.New(client, redisstore.Options{Prefix: fmt.Sprint("grouped", prefixes.Add(1))})
		return transfers(b, s, s.Commit)
	}
	for name, open := range map[string]func(*testing.B) func(id string, from, to int, n int64) error{
		"store": grouped, "one per EVALSHA": onePerScript(client), "this script ungrouped": ungrouped(client), "bare SET": bareSet(client),
	} {
		b.Run(name, func(b *testing.B) {
			transfer := open(b)
			const callers = 32
			var next atomic.Int64
			var wg sync.WaitGroup
			before, ours := processor(b, p.PID), processor(b, os.Getpid())
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
						if err := transfer(fmt.Sprintf("0190a1b2-c3d4-7000-8000-%012d", i), i%1000, (i*7+1)%1000, 1); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			server, client := processor(b, p.PID)-before, processor(b, os.Getpid())-ours
			b.ReportMetric(server/float64(b.N), "server-us/op")
			b.ReportMetric(client/float64(b.N), "client-us/op")
			b.ReportMetric(max(server, client)/float64(b.N), "busier-us/op")
		})
	}
}

// processor is the processor time of a process in µs, to 10 ms.
func processor(b *testing.B, pid int) float64 {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	ticks := 0.0
	for _, f := range fields[11:13] { // user, system
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += float64(n)
	}
	return ticks * 10_000
}

// naive is the script that one writes first: the id, the floor, two balances and
// two lines of history. Its amounts are exact up to 2^53.
var naive = redis.NewScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return 1 end
if tonumber(redis.call('HGET', KEYS[2], ARGV[2])) < tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
redis.call('HINCRBY', KEYS[2], ARGV[2], '-' .. ARGV[4])
redis.call('HINCRBY', KEYS[2], ARGV[3], ARGV[4])
redis.call('RPUSH', KEYS[3], '-' .. ARGV[4] .. ' ' .. redis.call('HGET', KEYS[2], ARGV[2]) .. ' ' .. ARGV[1])
redis.call('RPUSH', KEYS[4], ARGV[4] .. ' ' .. redis.call('HGET', KEYS[2], ARGV[3]) .. ' ' .. ARGV[1])
return 1`)

// onePerScript is one call of that script per transfer, as durable as the store.
func onePerScript(client redis.UniversalClient) func(*testing.B) func(id string, from, to int, n int64) error {
	return func(b *testing.B) func(id string, from, to int, n int64) error {
		b.Helper()
		ctx := context.Background()
		at := fmt.Sprint("naive", prefixes.Add(1), ":")
		for i := range 1000 {
			if err := client.HSet(ctx, at+"balances", i, "1000000000000000").Err(); err != nil {
				b.Fatal(err)
			}
		}
		return func(id string, from, to int, n int64) error {
			names := []string{at + "ids", at + "balances", fmt.Sprint(at, from), fmt.Sprint(at, to)}
			done, err := naive.Run(ctx, client, names, id, from, to, n).Int()
			if err == nil && done == 0 {
				err = errors.New("insufficient funds")
			}
			return err
		}
	}
}

// ungrouped is the store's own script with one Change per call, as many at once
// as there are callers.
func ungrouped(client redis.UniversalClient) func(*testing.B) func(id string, from, to int, n int64) error {
	return func(b *testing.B) func(id string, from, to int, n int64) error {
		b.Helper()
		s := redisstore.New(client, redisstore.Options{Prefix: fmt.Sprint("alone", prefixes.Add(1))})
		return transfers(b, s, func(ctx context.Context, changes ...storage.Change) []error {
			errs, err := s.Write(ctx, true, changes)
			return append(errs, err)
		})
	}
}

// transfers opens a ledger of 1000 accounts over which commit moves.
func transfers(b *testing.B, s storage.Store, commit func(context.Context, ...storage.Change) []error) func(id string, from, to int, n int64) error {
	b.Helper()
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	change := func(id string, from, to ledger.Account, n int64) storage.Change {
		return storage.Change{ID: id, Partition: "tenant/here", Post: []ledger.Tx{{ID: id, Legs: []ledger.Leg{
			{Account: from, Asset: "COIN", Delta: -ledger.Amount(n)}, {Account: to, Asset: "COIN", Delta: ledger.Amount(n)},
		}}}}
	}
	for i := range 1000 {
		if err := errors.Join(commit(b.Context(), change(fmt.Sprint("fund", i), "chain/net", account(i), 1e15))...); err != nil {
			b.Fatal(err)
		}
	}
	return func(id string, from, to int, n int64) error {
		return errors.Join(commit(context.Background(), change(id, account(from), account(to), n))...)
	}
}

func account(i int) ledger.Account { return ledger.Wallet(fmt.Sprint("bench-", i)) }

// bareSet stores the id and nothing else.
func bareSet(client redis.UniversalClient) func(*testing.B) func(id string, from, to int, n int64) error {
	return func(*testing.B) func(id string, from, to int, n int64) error {
		at := fmt.Sprint("bare", prefixes.Add(1), ":")
		return func(id string, _, _ int, n int64) error {
			return client.Set(context.Background(), at+id, n, 0).Err()
		}
	}
}
