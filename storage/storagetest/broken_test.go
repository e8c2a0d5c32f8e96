package storagetest

import (
	"context"
	"flag"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// The failures here are wanted: none is to be kept as an example.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// recorder lets a case fail without failing the test that runs it.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed bool
}

func (r *recorder) Helper()             {}
func (r *recorder) Log(...any)          {}
func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Error(...any)          { r.Fail() }
func (r *recorder) Errorf(string, ...any) { r.Fail() }
func (r *recorder) Fatal(...any)          { r.FailNow() }
func (r *recorder) Fatalf(string, ...any) { r.FailNow() }

func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// broken is a memory store with one fault.
type broken struct {
	storage.Store
	commit func(s storage.Store, ctx context.Context, changes []storage.Change) []error
	claim  func(s storage.Store, ctx context.Context, c storage.Claim) ([]storage.Row, error)
	keys   func(keys []storage.Key) []storage.Key
	read   func(rows []storage.Row)
	ledger func(b []ledger.Balance)

	find     func(s storage.Store, ctx context.Context, q storage.Query) ([]storage.Row, error)
	count    func(s storage.Store, ctx context.Context, q storage.Query) (int64, error)
	balances func(s storage.Store, ctx context.Context, p storage.Partition, accounts []ledger.Account) ([]ledger.Balance, error)
	entries  func(list []ledger.Entry) []ledger.Entry
	open     func(b *broken, ctx context.Context, tables []*storage.Table) error
}

func (b *broken) Open(ctx context.Context, tables ...*storage.Table) error {
	if b.open != nil {
		return b.open(b, ctx, tables)
	}
	return b.Store.Open(ctx, tables...)
}

func (b *broken) Commit(ctx context.Context, changes ...storage.Change) []error {
	if b.commit != nil {
		return b.commit(b.Store, ctx, changes)
	}
	return b.Store.Commit(ctx, changes...)
}

func (b *broken) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	if b.claim != nil {
		return b.claim(b.Store, ctx, c)
	}
	return b.Store.Claim(ctx, c)
}

func (b *broken) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if b.keys != nil {
		keys = b.keys(slices.Clone(keys))
	}
	rows, err := b.Store.Rows(ctx, t, keys...)
	if b.read != nil {
		b.read(rows)
	}
	return rows, err
}

func (b *broken) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if b.find != nil {
		return b.find(b.Store, ctx, q)
	}
	return b.Store.Find(ctx, q)
}

func (b *broken) Count(ctx context.Context, q storage.Query) (int64, error) {
	if b.count != nil {
		return b.count(b.Store, ctx, q)
	}
	return b.Store.Count(ctx, q)
}

func (b *broken) Entries(ctx context.Context, p storage.Partition, a ledger.Account, asset ledger.Asset, before int64, max int) ([]ledger.Entry, error) {
	list, err := b.Store.Entries(ctx, p, a, asset, before, max)
	if b.entries != nil {
		list = b.entries(list)
	}
	return list, err
}

func (b *broken) Balances(ctx context.Context, p storage.Partition, accounts ...ledger.Account) ([]ledger.Balance, error) {
	if b.balances != nil {
		return b.balances(b.Store, ctx, p, accounts)
	}
	list, err := b.Store.Balances(ctx, p, accounts...)
	if b.ledger != nil {
		b.ledger(list)
	}
	return list, err
}

// each changes every Change before it is committed.
func each(f func(*storage.Change)) func(storage.Store, context.Context, []storage.Change) []error {
	return func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
		list := append([]storage.Change{}, changes...)
		for i := range list {
			f(&list[i])
		}
		return s.Commit(ctx, list...)
	}
}

// fault is a store with one fault, and cases that notice it.
type fault struct {
	b     broken
	cases []string
}

// The suite is worth what it finds: each of these copies of a store has one fault,
// and the cases that stand beside it fail.
func TestSuiteFindsBrokenStores(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("cases at their short length notice less")
	}
	n := 0
	for _, kind := range []map[string]fault{changeFaults(), verdictFaults(), readFaults(), claimFaults(), openFaults()} {
		for name, c := range kind {
			n++
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				require.NotEmpty(t, c.cases)
				for _, noticed := range c.cases {
					b := c.b
					require.True(t, fails(t, &b, noticed), "case %s does not notice", noticed)
				}
			})
		}
	}
	require.Greater(t, n, 30)
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		for _, c := range cases() {
			require.False(t, c.skip == nil && fails(t, &broken{}, c.name), "%s fails on a store without a fault", c.name)
		}
	})
}

// fails runs one case on the broken store.
func fails(t *testing.T, b *broken, name string) bool {
	t.Helper()
	open := func(testing.TB) storage.Store {
		fresh := *b
		fresh.Store = memory.New()
		return &fresh
	}
	r := &recorder{TB: t}
	for _, c := range cases() {
		if c.name != name {
			continue
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() {
				if recover() != nil {
					r.Fail()
				}
			}()
			runCase(r, Harness{Open: open, Rounds: 100}, c)
		})
		wg.Wait()
		return r.Failed()
	}
	t.Fatalf("there is no case %s", name)
	return false
}
