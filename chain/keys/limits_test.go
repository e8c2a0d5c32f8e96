package keys_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

func bindingOf(intent, attempt string, pays ledger.Amount, slots ...string) keys.Binding {
	b := keys.Binding{Network: "ETH", Intent: intent, Attempt: attempt, Payload: sha256.Sum256([]byte(attempt)), Slots: slots, Cost: 1}
	if pays > 0 {
		b.Pays = []chain.Output{{To: "somebody", Currency: "ETH", Amount: pays}}
	}
	return b
}

func limited(pays, costs ledger.Amount, per time.Duration) keys.Limits {
	return keys.Limits{
		Pays:  map[string][]keys.Limit{"ETH": {{Amount: pays, Per: per}}},
		Costs: map[chain.Network][]keys.Limit{"ETH": {{Amount: costs, Per: per}}},
	}
}

func openMemory(t require.TestingT, tables []*storage.Table) storage.Store {
	s := memory.New()
	require.NoError(t, s.Open(context.Background(), tables...))
	return s
}

// In no stretch of time of the window's length is more bound than the limit, whichever way
// the requests and the time go, and what is older than that and a step is not counted.
func TestFS07_NoWindowHasMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const limit, per = 100, time.Hour
		now := time.Unix(rapid.Int64Range(1, 1e9).Draw(t, "start"), 0)
		r := keys.LimitedRegistry{Store: openMemory(t, keys.LimitTables()), Limits: limited(limit, math.MaxInt64, per), Now: func() time.Time { return now }}
		type bound struct {
			at     time.Time
			amount ledger.Amount
		}
		var all []bound
		for i := range rapid.IntRange(1, 40).Draw(t, "requests") {
			near := []time.Duration{0, 1, per/60 - 1, per / 60, per / 2, per - per/60, per - per/120, per - 1, per}
			later := rapid.OneOf(rapid.SampledFrom(near), rapid.Custom(func(t *rapid.T) time.Duration {
				return time.Duration(rapid.Int64Range(0, int64(per)).Draw(t, "any"))
			}))
			now = now.Add(later.Draw(t, "later"))
			amount := ledger.Amount(rapid.Int64Range(1, limit+10).Draw(t, "amount"))
			err := r.Bind(t.Context(), bindingOf(fmt.Sprint(i), fmt.Sprint(i), amount, fmt.Sprint("slot", i)))
			var inside, around ledger.Amount
			for _, b := range all {
				if now.Sub(b.at) < per {
					inside += b.amount
				}
				if now.Sub(b.at) <= per+per/60 {
					around += b.amount
				}
			}
			if err == nil {
				all = append(all, bound{now, amount})
				require.LessOrEqual(t, inside+amount, ledger.Amount(limit))
				continue
			}
			require.ErrorIs(t, err, chain.ErrRefused)
			require.Greater(t, around+amount, ledger.Amount(limit), "refused without need")
		}
	})
}

// A clock that goes back gives no new window.
func TestFS07_ClockThatGoesBackGivesNothing(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := keys.LimitedRegistry{Store: openMemory(t, keys.LimitTables()), Limits: limited(100, 100, time.Hour), Now: func() time.Time { return now }}
	require.NoError(t, r.Bind(t.Context(), bindingOf("1", "1", 60, "a")))
	for _, back := range []time.Duration{time.Minute, time.Hour, 1000 * time.Hour} {
		now = time.Unix(1e9, 0).Add(-back)
		require.ErrorIs(t, r.Bind(t.Context(), bindingOf("2", "2", 60, "b")), chain.ErrRefused)
	}
	now = time.Unix(1e9, 0).Add(2 * time.Hour)
	require.NoError(t, r.Bind(t.Context(), bindingOf("2", "2", 60, "b")))
}

// Every limit of a currency holds.
func TestFS07_SeveralWindowsHoldTogether(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	limits := limited(100, 1000, time.Hour)
	limits.Pays["ETH"] = append(limits.Pays["ETH"], keys.Limit{Amount: 150, Per: 24 * time.Hour})
	r := keys.LimitedRegistry{Store: openMemory(t, keys.LimitTables()), Limits: limits, Now: func() time.Time { return now }}
	require.NoError(t, r.Bind(t.Context(), bindingOf("1", "1", 100, "a")))
	require.ErrorIs(t, r.Bind(t.Context(), bindingOf("2", "2", 1, "b")), chain.ErrRefused)
	now = now.Add(2 * time.Hour)
	require.ErrorIs(t, r.Bind(t.Context(), bindingOf("3", "3", 51, "c")), chain.ErrRefused)
	require.NoError(t, r.Bind(t.Context(), bindingOf("4", "4", 50, "d")))
	huge := bindingOf("5", "5", math.MaxInt64, "e")
	huge.Pays = append(huge.Pays, huge.Pays...)
	require.ErrorIs(t, r.Bind(t.Context(), huge), chain.ErrRefused)
}

// Signers that share a store pass no limit together.
func TestFS07_TogetherWithinTheLimit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registry.db")
	require.NoError(t, sqlite.Migrate(t.Context(), path, keys.LimitTables()...))
	var all sync.WaitGroup
	var mu sync.Mutex
	var bound ledger.Amount
	for process := range 4 {
		store, err := sqlite.Open(path, sqlite.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		require.NoError(t, store.Open(t.Context(), keys.LimitTables()...))
		r := keys.LimitedRegistry{Store: store, Limits: limited(20, 1000, time.Hour), Now: func() time.Time { return time.Unix(1e9, 0) }}
		for i := range 3 {
			all.Go(func() {
				var bs []keys.Binding
				for n := range 10 {
					id := fmt.Sprintf("%d/%d/%d", process, i, n)
					bs = append(bs, bindingOf(id, id, 1, id))
				}
				for _, err := range r.BindMany(t.Context(), bs) {
					if err == nil {
						mu.Lock()
						bound++
						mu.Unlock()
					}
				}
			})
		}
	}
	all.Wait()
	require.EqualValues(t, 20, bound)
}

// Without limits in the way a LimitedRegistry answers as a StoreRegistry does, one by one
// and many at once.
func TestFS07_LimitedRegistryBindsAsAStoreRegistry(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plain := keys.StoreRegistry{Store: openMemory(t, keys.Tables())}
		limits := limited(math.MaxInt64, math.MaxInt64, time.Hour)
		limits.Costs["BTC"] = limits.Costs["ETH"]
		r := keys.LimitedRegistry{Store: openMemory(t, keys.LimitTables()), Limits: limits, Now: func() time.Time { return time.Unix(1e9, 0) }}
		draw := func() keys.Binding {
			b := bindingOf(rapid.SampledFrom([]string{"v", "w"}).Draw(t, "intent"), rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(t, "attempt"), 1)
			b.Network = rapid.SampledFrom([]chain.Network{"ETH", "BTC"}).Draw(t, "network")
			b.Payload[0] = rapid.Byte().Draw(t, "payload") % 2
			b.Slots = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID[string]).Draw(t, "slots")
			return b
		}
		for range 20 {
			var lot []keys.Binding
			for range rapid.IntRange(1, 4).Draw(t, "lot") {
				lot = append(lot, draw())
			}
			errs := r.BindMany(t.Context(), lot)
			for i, b := range lot {
				if err := plain.Bind(t.Context(), b); err == nil {
					require.NoError(t, errs[i])
				} else {
					require.ErrorIs(t, err, chain.ErrRefused)
					require.ErrorIs(t, errs[i], chain.ErrRefused)
				}
			}
		}
	})
}
