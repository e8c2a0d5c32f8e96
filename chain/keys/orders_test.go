package keys_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// book binds attempts of orders in a registry of its own.
type book struct {
	t     *testing.T
	store storage.Store
	keys.Registry
}

func newBook(t *testing.T, limited bool) *book {
	t.Helper()
	b := &book{t: t, store: memory.New()}
	require.NoError(t, b.store.Open(t.Context(), keys.LimitTables()...))
	b.Registry = keys.StoreRegistry{Store: b.store}
	if limited {
		b.Registry = keys.LimitedRegistry{Store: b.store, Now: func() time.Time { return time.Unix(1e9, 0) }, Limits: keys.Limits{
			Costs: map[chain.Network][]keys.Limit{"ETH": {{Amount: 1e18, Per: time.Hour}}},
		}}
	}
	return b
}

// registries runs a test on each kind of registry.
func registries(t *testing.T, f func(t *testing.T, b *book)) {
	t.Parallel()
	for _, limited := range []bool{false, true} {
		t.Run(map[bool]string{false: "store", true: "limited"}[limited], func(t *testing.T) {
			t.Parallel()
			f(t, newBook(t, limited))
		})
	}
}

// signed is a binding of the attempt with a number of an order, for it and others.
func signed(order string, number int, slots []string, also ...string) keys.Binding {
	id := fmt.Sprintf("%s/%d", order, number)
	return keys.Binding{
		Network: "ETH", Intent: order, Attempt: id, Payload: sha256.Sum256([]byte(id)), Slots: slots, Tx: "tx " + id,
		Orders: append([]string{order}, also...), Cost: ledger.Amount(1),
	}
}

// named is how an Ending names a binding.
func named(b *keys.Binding) mandate.Attempt {
	return mandate.Attempt{ID: b.Attempt, Tx: b.Tx, Spends: mandate.SpendsOf(b.Slots)}
}

func (b *book) binds(of keys.Binding, endings ...mandate.Ending) keys.Binding {
	b.t.Helper()
	of.Endings = endings
	require.NoError(b.t, b.Bind(b.t.Context(), of))
	return of
}

func (b *book) refuses(of keys.Binding, endings ...mandate.Ending) {
	b.t.Helper()
	of.Endings = endings
	require.ErrorIs(b.t, b.Bind(b.t.Context(), of), chain.ErrRefused)
}

// A withdrawal has one nonce, until somebody shows that the transaction with it is dead.
func TestFS02_RegistryBindsAnOrderToItsNonce(t *testing.T) {
	registries(t, func(t *testing.T, b *book) {
		first := b.binds(signed("w", 1, []string{"a/5"}))
		b.binds(signed("w", 2, []string{"a/5"})) // dearer
		b.refuses(signed("w", 3, []string{"a/6"}))
		b.refuses(signed("w", 7, []string{"c/0"}))
		b.refuses(signed("w", 3, []string{"a/6"}), mandate.Ending{Order: "w", Dead: []mandate.Attempt{named(&first)}})
		second := signed("w", 2, []string{"a/5"})
		dead := mandate.Ending{Order: "w", Dead: []mandate.Attempt{named(&first), named(&second)}}
		another := dead
		another.Order = "v"
		b.refuses(signed("w", 3, []string{"a/6"}), another)
		third := b.binds(signed("w", 3, []string{"a/6"}), dead)
		b.refuses(signed("w", 4, []string{"a/7"}), dead)
		b.binds(signed("w", 4, []string{"a/7"}), dead, mandate.Ending{Order: "w", Dead: []mandate.Attempt{named(&third)}})
		b.binds(signed("v", 1, []string{"a/8"})) // others are free
	})
}

// What spends coins must share one with each transaction before it.
func TestFS02_RegistryComparesEachAttempt(t *testing.T) {
	registries(t, func(t *testing.T, b *book) {
		first := b.binds(signed("w", 1, []string{"x", "y"}))
		b.binds(signed("w", 2, []string{"y", "z"}))
		b.refuses(signed("w", 3, []string{"x", "v"}), mandate.Ending{})
		b.refuses(signed("w", 3, []string{"z", "v"}))
		b.binds(signed("w", 4, []string{"x", "z"}))
		b.binds(signed("w", 5, []string{"z", "v"}), mandate.Ending{Order: "w", Dead: []mandate.Attempt{named(&first)}})
	})
}

// What has landed rules out what spends the same: it need not have been stored, as where a
// process died between a signature and its commit.
func TestFS02_RegistryKnowsWhatALandedOneRulesOut(t *testing.T) {
	registries(t, func(t *testing.T, b *book) {
		lost := b.binds(signed("w", 1, []string{"a/5"}))
		fill := signed("w", 2, []string{"a/5"})
		fill.Orders = nil // it pays nobody
		landed := mandate.Ending{Order: "w", Landed: named(&fill)}
		b.refuses(signed("w", 3, []string{"a/6"}), landed) // nobody has signed it
		fill = b.binds(fill)
		wrong := landed
		wrong.Landed.Tx = "another"
		b.refuses(signed("w", 3, []string{"a/6"}), wrong)
		elsewhere := signed("w", 4, []string{"a/9"})
		elsewhere.Orders = nil
		b.binds(elsewhere)
		b.refuses(signed("w", 3, []string{"a/6"}), mandate.Ending{Order: "w", Landed: named(&elsewhere)})
		b.refuses(signed("w", 3, []string{"a/6"}), mandate.Ending{Order: "w", Landed: named(&lost)}) // it has paid
		third := b.binds(signed("w", 3, []string{"a/6"}), landed)
		b.binds(signed("w", 5, []string{"a/7"}), mandate.Ending{Order: "w", Landed: named(&third), Reverted: true})
	})
}

// A batch binds each withdrawal that it pays.
func TestFS02_RegistryBindsAllOfABatch(t *testing.T) {
	registries(t, func(t *testing.T, b *book) {
		batch := b.binds(signed("w", 1, []string{"x"}, "v", "u"))
		b.binds(signed("w", 2, []string{"x"}, "v", "u"))
		for _, id := range []string{"v", "u"} {
			b.refuses(signed(id, 2, []string{"y"}))
			b.refuses(signed("s", 1, []string{"y"}, id))
		}
		b.binds(signed("s", 1, []string{"y"}))
		second := signed("w", 2, []string{"x"})
		gone := mandate.Ending{Order: "v", Dead: []mandate.Attempt{named(&batch), named(&second)}}
		b.binds(signed("v", 2, []string{"z"}), gone)
		gone.Order = "u"
		b.refuses(signed("r", 1, []string{"q"}, "u", "v"), gone) // v lives
		b.binds(signed("r", 2, []string{"q"}, "u"), gone)
	})
}

// A registry that an earlier version wrote lists no attempts by order, and neither hashes nor
// what they spend: an order has what it had, and an Ending that names them frees it.
func TestFS02_RegistryOfAnEarlierVersion(t *testing.T) {
	registries(t, func(t *testing.T, b *book) {
		old := func(order string, number int, slots ...string) keys.Binding {
			of := signed(order, number, slots)
			put := []storage.Row{keys.SignedAttempts.Row(of.Attempt, 0, time.Time{}, keys.SignedAttempt{Intent: order, Payload: fmt.Sprintf("%x", of.Payload)})}
			for _, s := range slots {
				put = append(put, keys.SignedSlots.Row(s, 0, time.Time{}, keys.SignedSlot{Intent: order}))
			}
			require.NoError(t, storage.CommitOne(t.Context(), b.store, storage.Change{ID: of.Attempt, Partition: storage.Network("ETH"), Put: put}))
			return of
		}
		first := old("w", 1, "a/5")
		b.binds(first) // asked again
		b.refuses(signed("w", 7, []string{"a/6"}))
		b.refuses(signed("s", 1, []string{"x"}, "w"))
		b.binds(signed("w", 2, []string{"a/5"}))
		b.refuses(signed("w", 7, []string{"a/6"}))
		dead := mandate.Ending{Order: "w", Dead: []mandate.Attempt{named(&first)}}
		b.refuses(signed("w", 7, []string{"a/6"}), dead)
		second := signed("w", 2, []string{"a/5"})
		dead.Dead = append(dead.Dead, named(&second))
		b.binds(signed("w", 7, []string{"a/6"}), dead)

		first = old("v", 1, "c/1")
		b.refuses(signed("v", 3, []string{"c/2"}))
		b.binds(signed("v", 3, []string{"c/2"}), mandate.Ending{Order: "v", Dead: []mandate.Attempt{named(&first)}})

		old("u", 1, "d/1")
		fill := old("u", 2, "d/2")                                                                   // went back to ourselves
		b.refuses(signed("u", 3, []string{"d/3"}), mandate.Ending{Order: "u", Landed: named(&fill)}) // it may have paid
		b.binds(signed("u", 3, []string{"d/3"}), mandate.Ending{Order: "u", Landed: named(&fill), Dead: []mandate.Attempt{named(&fill)}})
	})
}

// Of all that is bound for one order, whatever is asked for in which order and by how many at
// once, no two can be included in a block together.
func TestFS02_NoTwoLiveAttemptsOfAnOrderCanLand(t *testing.T) {
	registries(t, func(t *testing.T, b *book) {
		const seed = 7
		rng := rand.New(rand.NewPCG(seed, seed))
		var mu sync.Mutex
		bound := map[string][]keys.Binding{}
		dead := map[string]bool{}
		for round := range 60 {
			var asks []keys.Binding
			for n := range 6 {
				order := fmt.Sprint("w", rng.IntN(3))
				slots := []string{}
				for range 1 + rng.IntN(3) {
					slots = append(slots, fmt.Sprint(order, ":", rng.IntN(5)))
				}
				slices.Sort(slots)
				of := signed(order, 10*round+n+1, slices.Compact(slots))
				if rng.IntN(2) == 0 {
					other := fmt.Sprint("w", rng.IntN(3))
					if other != order {
						of.Orders = append(of.Orders, other)
					}
				}
				for _, o := range of.Orders {
					for i := range bound[o] {
						if rng.IntN(3) == 0 {
							dead[o+" "+bound[o][i].Attempt] = true
							of.Endings = append(of.Endings, mandate.Ending{Order: o, Dead: []mandate.Attempt{named(&bound[o][i])}})
						}
					}
				}
				asks = append(asks, of)
			}
			var wg sync.WaitGroup
			for _, of := range asks {
				wg.Go(func() {
					if b.Bind(t.Context(), of) == nil {
						mu.Lock()
						defer mu.Unlock()
						for _, o := range of.Orders {
							bound[o] = append(bound[o], of)
						}
					}
				})
			}
			wg.Wait()
			for o, all := range bound {
				for i := range all {
					for k := range all[:i] {
						shares := slices.ContainsFunc(all[i].Slots, func(s string) bool { return slices.Contains(all[k].Slots, s) })
						require.True(t, shares || dead[o+" "+all[i].Attempt] || dead[o+" "+all[k].Attempt], "seed %d: %s may be paid by %s and by %s", seed, o, all[i].Attempt, all[k].Attempt)
					}
				}
			}
		}
		require.NotEmpty(t, dead, "seed %d", seed)
	})
}

// A module makes other signatures each time, so that a transaction has other hashes. One that is
// dead is dead by each of them, unless the registry keeps the signatures.
func TestFS02_RegistryOfAModule(t *testing.T) {
	registries(t, func(t *testing.T, b *book) {
		_, limited := b.Registry.(keys.LimitedRegistry)
		held := func(number int, slot, tx string) keys.Binding {
			of := signed("w", number, []string{slot})
			of.Tx, of.Signatures = tx, []chain.Signature{chain.Signature(tx)}
			return of
		}
		ending := func(of keys.Binding, tx string) mandate.Ending {
			of.Tx = tx
			return mandate.Ending{Order: "w", Dead: []mandate.Attempt{named(&of)}}
		}
		first := held(1, "a/5", "one")
		b.binds(first)
		b.binds(held(1, "a/5", "two"))
		next := held(2, "a/6", "three")
		if limited { // it hands out the first ones each time
			b.refuses(next, ending(first, "two"))
			b.binds(next, ending(first, "one"))
		} else {
			b.binds(next, ending(first, "two"))
		}
		if !limited {
			return
		}
		rebuilt := signed("w", 3, []string{"a/6"})
		b.binds(rebuilt)
		b.binds(held(3, "a/6", "another"))
		b.binds(held(4, "a/7", "four"), ending(next, next.Tx), ending(rebuilt, "another"))
	})
}

// Many that are bound at once are compared with each other.
func TestFS02_RegistryComparesThoseThatAreBoundAtOnce(t *testing.T) {
	registries(t, func(t *testing.T, b *book) {
		many, ok := b.Registry.(interface {
			BindMany(ctx context.Context, bs []keys.Binding) []error
		})
		require.True(t, ok)
		errs := many.BindMany(t.Context(), []keys.Binding{
			signed("w", 1, []string{"a/1"}), signed("w", 2, []string{"a/2"}), signed("v", 1, []string{"a/3"}), signed("w", 3, []string{"a/1"}),
		})
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], chain.ErrRefused)
		require.NoError(t, errs[2])
		require.NoError(t, errs[3])
	})
}

// BenchmarkLargestBatch binds replacements of a transaction that pays 500 and spends as much as
// one can, of which each keeps one coin of those before it.
func BenchmarkLargestBatch(b *testing.B) {
	store := memory.New()
	require.NoError(b, store.Open(b.Context(), keys.Tables()...))
	r := keys.StoreRegistry{Store: store}
	var also []string
	for i := range 499 {
		also = append(also, fmt.Sprint("member", i))
	}
	var first keys.Binding
	number := 0
	for b.Loop() {
		var slots []string
		for i := range 1_399 {
			slots = append(slots, fmt.Sprintf("%064x:0", 2_000*number+i))
		}
		number++
		of := signed("w", number, append(slots, "kept:0"), also...)
		if number == 1 {
			first = of
		}
		for _, o := range of.Orders {
			of.Endings = append(of.Endings, mandate.Ending{Order: o, Dead: []mandate.Attempt{named(&first)}})
		}
		require.NoError(b, r.Bind(b.Context(), of))
	}
}
