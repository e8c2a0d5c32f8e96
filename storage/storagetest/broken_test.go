package storagetest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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
	read   func(rows []storage.Row)
	ledger func(b []ledger.Balance)
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

func (b *broken) Rows(ctx context.Context, t *storage.Table, p storage.Partition, ids ...string) ([]storage.Row, error) {
	rows, err := b.Store.Rows(ctx, t, p, ids...)
	if b.read != nil {
		b.read(rows)
	}
	return rows, err
}

func (b *broken) Balances(ctx context.Context, p storage.Partition, accounts ...ledger.Account) ([]ledger.Balance, error) {
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

// The suite is worth what it finds: every fault here fails the named cases.
func TestSuiteFindsBrokenStores(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	for name, c := range map[string]struct {
		b     broken
		cases []string
	}{
		"guards are not looked at": {
			broken{commit: each(func(c *storage.Change) { c.Require = nil })}, []string{"Guards", "JudgedOrder"},
		},
		"ceilings are not kept": {
			broken{commit: each(func(c *storage.Change) { c.Level = nil })}, []string{"Level", "JudgedOrder"},
		},
		"empty is not looked at": {
			broken{commit: each(func(c *storage.Change) { c.Empty = nil })}, []string{"Empty"},
		},
		"a change sent again happens again": {
			broken{commit: each(func(c *storage.Change) {
				again := n.Add(1)
				c.ID = fmt.Sprint(c.ID[:min(len(c.ID), 50)], "#", again)
				txs := append([]ledger.Tx{}, c.Post...)
				for i := range txs {
					txs[i].ID = fmt.Sprint(txs[i].ID, "#", again)
				}
				c.Post = txs
			})},
			[]string{"ThereAlready", "L02_LostAnswers", "D08_SameChangeTwice"},
		},
		"the slice is atomic": {
			broken{commit: func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
				for i := range changes {
					if err := s.Commit(ctx, changes[i])[0]; err != nil {
						return make([]error, len(changes))
					}
				}
				return make([]error, len(changes))
			}},
			[]string{"SliceIsNotAtomic", "W11_DrainToTheFloor", "C05_Linearizable"},
		},
		"postings are forgotten": {
			broken{commit: each(func(c *storage.Change) {
				if len(c.Put) > 0 {
					c.Post = nil
				}
			})},
			[]string{"D08_SameChangeTwice"},
		},
		"text is folded": {
			broken{commit: each(func(c *storage.Change) {
				rows := append([]storage.Row{}, c.Put...)
				for i := range rows {
					if v, ok := rows[i].Value.(Thing); ok {
						v.Name = strings.TrimRight(strings.ToLower(v.Name), " ")
						rows[i].Value = v
					}
				}
				c.Put = rows
			})},
			[]string{"I03_TextIsBytes", "RoundTrip"},
		},
		"claims do not lease": {
			broken{claim: func(s storage.Store, ctx context.Context, c storage.Claim) ([]storage.Row, error) {
				c.Until = c.Now.Add(1000)
				return s.Claim(ctx, c)
			}},
			[]string{"Claim"},
		},
		"claims do not raise the version": {
			broken{claim: func(s storage.Store, ctx context.Context, c storage.Claim) ([]storage.Row, error) {
				rows, err := s.Claim(ctx, c)
				for i := range rows {
					rows[i].Version--
				}
				return rows, err
			}},
			[]string{"Claim", "ClaimFences", "ClaimsNeverOverlap"},
		},
		"values are shared": {
			broken{read: func(rows []storage.Row) {
				for i := range rows {
					rows[i].Value = rows[0].Value
				}
			}},
			[]string{"NoAliasing"},
		},
		"L11 a wallet below zero hidden in a sum of zero": {
			broken{ledger: func(list []ledger.Balance) {
				for i := range list {
					if list[i].Account.Floored() && list[i].Posted > 0 {
						list[i].Held = list[i].Posted + 1
						return
					}
				}
			}},
			[]string{"ThereAlready", "Entries"},
		},
	} {
		for _, name2 := range c.cases {
			b := c.b
			require.True(t, fails(t, &b, name2), "%s: case %s does not notice", name, name2)
		}
	}
	for _, c := range cases() {
		require.False(t, c.skip == nil && fails(t, &broken{}, c.name), "%s fails on a store without a fault", c.name)
	}
}

// fails runs one case on the broken store.
func fails(t *testing.T, b *broken, name string) bool {
	t.Helper()
	b.Store = memory.New()
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
			runCase(r, Harness{Open: func(testing.TB) storage.Store { return b }, Rounds: 100}, c)
		})
		wg.Wait()
		return r.Failed()
	}
	t.Fatalf("there is no case %s", name)
	return false
}
