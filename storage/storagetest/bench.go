package storagetest

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/internal/cputime"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

const benchAccounts = 1000

// Baseline is something naive to measure a store against, in the same run.
type Baseline struct {
	Name string
	// Open makes a fresh ledger of 1000 accounts with money enough, and gives
	// what moves n units between two of them under a unique id, durably where
	// the store is durable.
	Open func(b *testing.B) (transfer func(id string, from, to int, n int64) error)
}

// spread says between which accounts a benchmark transfers.
type spread int

const (
	oneTenant spread = iota // many accounts of one tenant
	hotOne                  // all to one account
	tenants                 // many accounts, of many tenants
)

const benchTenants = 20

func (s spread) String() string { return [...]string{"spread", "hot", "tenants"}[s] }

var benchParts = func() (out [benchTenants]storage.Partition) {
	for i := range out {
		out[i] = storage.Tenant(fmt.Sprint("bench-", i))
	}
	return out
}()

// partition of an account.
func (s spread) partition(account int) storage.Partition {
	if s == tenants {
		return benchParts[account%benchTenants]
	}
	return here
}

// Bench measures transfers: spread over many accounts, of one tenant and of many,
// and all to one account, by one caller, by 32 and by 256, each waiting for its own
// commit, history and idempotency included. Baselines run in between. The ledger is audited after each run.
func Bench(b *testing.B, h Harness, baselines ...Baseline) {
	for _, callers := range []int{1, 32, 256} {
		for _, hot := range []spread{oneTenant, hotOne, tenants} {
			name := fmt.Sprintf("callers=%d/%s", callers, hot)
			b.Run("store/"+name, func(b *testing.B) {
				s := h.Open(b)
				benchStore(b, s, callers, hot, benchIDs(b.N))
				b.StopTimer()
				Audit(b, s, here)
				for i := range benchTenants {
					Audit(b, s, tenants.partition(i))
				}
			})
			for _, base := range baselines {
				b.Run(base.Name+"/"+name, func(b *testing.B) {
					transfer := base.Open(b)
					id := benchIDs(b.N)
					measure(b, callers, func(_, i int) error {
						from, to := pick(i, hot)
						return transfer(id(i), from, to, 1)
					})
				})
			}
		}
	}
	b.Run("store/random ids", func(b *testing.B) {
		s := h.Open(b)
		benchStore(b, s, 1, oneTenant, randomIDs(b.N))
		b.StopTimer()
		Audit(b, s, here)
	})
	b.Run("store/batches of 100", func(b *testing.B) {
		s := h.Open(b)
		benchBatches(b, s, 100)
		b.StopTimer()
		Audit(b, s, here)
	})
}

func pick(i int, hot spread) (from, to int) {
	from = i % (benchAccounts - 1)
	switch hot {
	case hotOne:
		return from, benchAccounts - 1
	case tenants:
		from = i % benchAccounts
		return from, (from + benchTenants*(1+i%7)) % benchAccounts
	}
	if to = (i*7 + 1) % (benchAccounts - 1); to == from {
		to = (to + 1) % (benchAccounts - 1)
	}
	return from, to
}

func benchAccount(i int) ledger.Account { return ledger.Account(fmt.Sprintf("wallet/bench-%04d", i)) }

func benchOpen(b *testing.B, s storage.Store, hot spread) []ledger.Account {
	b.Helper()
	if err := s.Open(context.Background(), Tables()...); err != nil {
		b.Fatal(err)
	}
	names := make([]ledger.Account, benchAccounts)
	changes := make([]storage.Change, benchAccounts)
	for i := range names {
		names[i] = benchAccount(i)
		id := fmt.Sprint("fund-", i)
		changes[i] = storage.Change{ID: id, Partition: hot.partition(i), Post: []ledger.Tx{{ID: id, At: epoch, Legs: fund(names[i], 1e15)}}}
	}
	for _, err := range s.Commit(context.Background(), changes...) {
		if err != nil {
			b.Fatal(err)
		}
	}
	return names
}

// benchIDs is the ids of n transfers, as a maker of UUIDv7 gives them. They are
// cut from one text: making them is not what is measured.
func benchIDs(n int) (id func(i int) string) {
	return cutIDs(n, func(i int) uint64 { return uint64(i) })
}

// randomIDs is ids in no order.
func randomIDs(n int) (id func(i int) string) {
	rng := rand.New(rand.NewPCG(1, 2))
	return cutIDs(n, func(i int) uint64 { return rng.Uint64()&^(1<<32-1) | uint64(i) })
}

func cutIDs(n int, number func(i int) uint64) (id func(i int) string) {
	const width = len("0190a1b2-0000000000000000-8000-000000")
	text := make([]byte, 0, n*width)
	for i := range n {
		text = fmt.Appendf(text, "0190a1b2-%016x-8000-000000", number(i))
	}
	all := string(text)
	return func(i int) string { return all[i*width : (i+1)*width] }
}

// transfer is what a Change points to; its caller fills it in again and again.
type transfer struct {
	post [1]ledger.Tx
	legs [2]ledger.Leg
}

func (t *transfer) fill(c *storage.Change, names []ledger.Account, id string, i int, hot spread) {
	from, to := pick(i, hot)
	t.legs = [2]ledger.Leg{{Account: names[from], Asset: coin, Delta: -1}, {Account: names[to], Asset: coin, Delta: 1}}
	t.post[0] = ledger.Tx{ID: id, Kind: ledger.KindTransfer, At: epoch, Legs: t.legs[:]}
	c.ID, c.Partition, c.Post = id, hot.partition(from), t.post[:]
}

func benchStore(b *testing.B, s storage.Store, callers int, hot spread, id func(i int) string) {
	b.Helper()
	names := benchOpen(b, s, hot)
	own := make([]transfer, callers)
	changes := make([][1]storage.Change, callers)
	ctx := context.Background()
	measure(b, callers, func(caller, i int) error {
		c := &changes[caller]
		own[caller].fill(&c[0], names, id(i), i, hot)
		return s.Commit(ctx, c[:]...)[0]
	})
}

func benchBatches(b *testing.B, s storage.Store, size int) {
	names := benchOpen(b, s, oneTenant)
	id := benchIDs(b.N)
	own := make([]transfer, size)
	changes := make([]storage.Change, size)
	ctx := context.Background()
	before := cputime.Used()
	b.ResetTimer()
	for at := 0; at < b.N; at += size {
		n := min(size, b.N-at)
		for i := range n {
			own[i].fill(&changes[i], names, id(at+i), at+i, oneTenant)
		}
		for _, err := range s.Commit(ctx, changes[:n]...) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.StopTimer()
	reportCPU(b, before)
}

// measure lets callers share b.N operations and reports p50, p99 and the
// processor time of an operation, which other work on the machine moves less
// than the time that passes.
func measure(b *testing.B, callers int, do func(caller, i int) error) {
	b.Helper()
	// What the harness does itself counts beside a transfer in memory: callers
	// take several at a time, and only some are timed.
	share := max(1, min(16, b.N/callers/16))
	timed := 1<<bits.Len(uint(b.N/10_000)) - 1
	var next atomic.Int64
	took := make([][]time.Duration, callers)
	var wg sync.WaitGroup
	before := cputime.Used()
	b.ResetTimer()
	for c := range callers {
		wg.Go(func() {
			for {
				from := int(next.Add(int64(share))) - share
				for i := from; i < min(from+share, b.N); i++ {
					var start time.Time
					if i&timed == 0 {
						start = time.Now()
					}
					if err := do(c, i); err != nil {
						b.Error(err)
						return
					}
					if i&timed == 0 {
						took[c] = append(took[c], time.Since(start))
					}
				}
				if from+share >= b.N {
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	reportCPU(b, before)
	all := slices.Concat(took...)
	slices.Sort(all)
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)/2].Nanoseconds()), "p50-ns")
		b.ReportMetric(float64(all[len(all)*99/100].Nanoseconds()), "p99-ns")
	}
}

func reportCPU(b *testing.B, before time.Duration) {
	b.ReportMetric(float64((cputime.Used()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchDisk is what the disk takes for one commit of one caller: 8 KiB written and
// synced.
func BenchDisk(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "disk"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // a benchmark's end
	page := make([]byte, 8<<10)
	measure(b, 1, func(_, _ int) error {
		if _, err := f.Write(page); err != nil {
			return err
		}
		return f.Sync()
	})
}

// DecimalMap is the ledger that one writes first: a map of decimals and a
// mutex, with a history and the ids that were seen.
func DecimalMap() Baseline { return Baseline{Name: "decimal map", Open: decimalMap} }

func decimalMap(*testing.B) func(id string, from, to int, n int64) error {
	type line struct {
		id            string
		amount, after decimal.Decimal
	}
	var mu sync.Mutex
	balances := map[string]decimal.Decimal{}
	histories := map[string][]line{}
	seen := map[string]bool{}
	names := make([]string, benchAccounts)
	for i := range names {
		names[i] = string(benchAccount(i))
		balances[names[i]] = decimal.New(1, 15)
	}
	return func(id string, from, to int, n int64) error {
		mu.Lock()
		defer mu.Unlock()
		if seen[id] {
			return nil
		}
		amount := decimal.New(n, -8)
		if balances[names[from]].LessThan(amount) {
			return fmt.Errorf("insufficient funds on %s", names[from])
		}
		seen[id] = true
		balances[names[from]] = balances[names[from]].Sub(amount)
		balances[names[to]] = balances[names[to]].Add(amount)
		histories[names[from]] = append(histories[names[from]], line{id, amount.Neg(), balances[names[from]]})
		histories[names[to]] = append(histories[names[to]], line{id, amount, balances[names[to]]})
		return nil
	}
}
