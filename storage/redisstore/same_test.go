package redisstore_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// hard are amounts at which arithmetic in doubles, or in halves, goes wrong.
var hard = []int64{
	0, 1, -1, 999_999_999, 1_000_000_000, 1_000_000_001, -999_999_999, -1_000_000_000, -1_000_000_001,
	1<<53 - 1, 1 << 53, 1<<53 + 1, -(1 << 53) - 1, 1_000_000_000_000_000_001, 9_223_372_036_000_000_000,
	math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1, math.MaxInt64 / 2, math.MinInt64 / 2,
}

// Amounts are exact to the last unit over all 64 bits: whatever is moved, held
// and counted, Redis says what the reference says, word for word.
func TestL07_AmountsAreExact(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s, m := opened(t, client, redisstore.Options{}), memory.New()
	require.NoError(t, m.Open(t.Context(), storagetest.Tables()...))
	const seed = 11
	rnd := rand.New(rand.NewPCG(seed, 0))
	amount := func() int64 {
		n := hard[rnd.IntN(len(hard))]
		if rnd.IntN(2) == 0 {
			n = int64(rnd.Uint64() >> rnd.IntN(64))
		}
		return n
	}
	accounts := []ledger.Account{"wallet/a", "wallet/b", "house", "other"}
	var batch []storage.Change
	happened := 0
	for i := range 3000 {
		from := rnd.IntN(4)
		to := (from + 1 + rnd.IntN(3)) % 4
		d := amount()
		if d == math.MinInt64 {
			d++
		}
		c := storage.Change{ID: fmt.Sprint("c", i), Partition: shop}
		legs := []ledger.Leg{{Account: accounts[from], Asset: "C", Delta: -ledger.Amount(d)}, {Account: accounts[to], Asset: "C", Delta: ledger.Amount(d)}}
		if rnd.IntN(3) == 0 {
			legs[1].Hold = ledger.Amount(amount())
		}
		if d == 0 {
			legs = []ledger.Leg{{Account: accounts[to], Asset: "C", Hold: ledger.Amount(amount()) | 1}}
		}
		c.Post = []ledger.Tx{{ID: c.ID, Legs: legs}}
		if rnd.IntN(2) == 0 {
			c.Level = []storage.Level{{Name: fmt.Sprint("l", rnd.IntN(2)), Delta: amount(), Max: amount()}}
		}
		if batch = append(batch, c); len(batch) < 1+rnd.IntN(8) {
			continue
		}
		got, want := s.Commit(t.Context(), batch...), m.Commit(t.Context(), batch...)
		for k := range batch {
			require.Equal(t, fmt.Sprint(want[k]), fmt.Sprint(got[k]), "seed %d: %+v", seed, batch[k])
			if want[k] == nil {
				happened++
			}
		}
		batch = batch[:0]
	}
	require.Greater(t, happened, 500)
	want, err := m.Balances(t.Context(), shop)
	require.NoError(t, err)
	got, err := s.Balances(t.Context(), shop)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, b := range want {
		w, err := m.Entries(t.Context(), shop, b.Account, b.Asset, 0, 5000)
		require.NoError(t, err)
		g, err := s.Entries(t.Context(), shop, b.Account, b.Asset, 0, 5000)
		require.NoError(t, err)
		require.Equal(t, w, g, b.Account)
	}
}

// Whatever index a query takes, it finds what the reference finds by looking at
// every row.
func TestQueriesFindWhatTheReferenceFinds(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s, m := opened(t, client, redisstore.Options{}), memory.New()
	require.NoError(t, m.Open(t.Context(), storagetest.Tables()...))
	const seed = 5
	rnd := rand.New(rand.NewPCG(seed, 0))
	texts := []string{"", "a", "a\x01", "aa", "b", "\uffff", "ab"}
	ints := []int64{math.MinInt64, -1, 0, 1, 2, math.MaxInt64}
	blobs := [][]byte{nil, {0}, {0, 0}, {0, 1}, {0, 255}, {1}, {255}, {255, 255}}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pick := func(column string) any {
		switch column {
		case "name":
			return fmt.Sprint("n", rnd.IntN(800))
		case "group":
			return texts[rnd.IntN(len(texts))]
		case "order", "version":
			return ints[rnd.IntN(len(ints))]
		case "flag":
			return rnd.IntN(2) == 0
		case "at", "due":
			return day.AddDate(0, 0, rnd.IntN(6))
		case "blob":
			return blobs[rnd.IntN(len(blobs))]
		}
		return fmt.Sprintf("r%03d", rnd.IntN(800))
	}
	parts := []storage.Partition{shop, "tenant/other", storage.System, shop, shop, shop, shop, shop, shop} // one of them takes several pieces
	for i := range 800 {
		v := storagetest.Thing{
			Name: fmt.Sprint("n", i), Group: pick("group").(string), Order: int64(i - 400), Flag: i%3 == 0,
			At: pick("at").(time.Time), Blob: pick("blob").([]byte),
		}
		c := storage.Change{ID: fmt.Sprint("c", i), Partition: parts[rnd.IntN(len(parts))], Put: []storage.Row{storagetest.Things.Row(fmt.Sprintf("r%03d", i), 0, time.Time{}, v)}}
		require.Equal(t, m.Commit(t.Context(), c), s.Commit(t.Context(), c))
	}
	columns := []string{"name", "group", "order", "flag", "at", "blob", "id", "version", "due"}
	ops := []storage.Op{storage.Eq, storage.Eq, storage.Ne, storage.Lt, storage.Le, storage.Gt, storage.Ge, storage.In}
	for i := range 1500 {
		q := storage.Query{Table: storagetest.Things.Table, Limit: []int{0, 1, 3, 700}[rnd.IntN(4)], Offset: []int{0, 0, 2, 150}[rnd.IntN(4)]}
		if rnd.IntN(4) > 0 {
			q.Partition = parts[rnd.IntN(len(parts))]
		}
		for range rnd.IntN(4) {
			column := columns[rnd.IntN(len(columns))]
			cond := storage.Cond{Column: column, Op: ops[rnd.IntN(len(ops))], Value: pick(column)}
			if cond.Op == storage.In {
				cond.Value = several(column, pick, rnd.IntN(4))
			}
			q.Where = append(q.Where, cond)
		}
		for range rnd.IntN(3) {
			q.Order = append(q.Order, storage.Order{Column: columns[rnd.IntN(len(columns))], Desc: rnd.IntN(2) == 0})
		}
		want, err := m.Find(t.Context(), q)
		require.NoError(t, err)
		got, err := s.Find(t.Context(), q)
		require.NoError(t, err)
		require.Equal(t, want, got, "seed %d, query %d: %+v", seed, i, q)
		wantN, err := m.Count(t.Context(), q)
		require.NoError(t, err)
		gotN, err := s.Count(t.Context(), q)
		require.NoError(t, err)
		require.Equal(t, wantN, gotN, "seed %d, query %d: %+v", seed, i, q)
	}
}

// several is a list of n values of a column's type.
func several(column string, pick func(string) any, n int) any {
	switch pick(column).(type) {
	case string:
		return list[string](column, pick, n)
	case int64:
		return list[int64](column, pick, n)
	case bool:
		return list[bool](column, pick, n)
	case time.Time:
		return list[time.Time](column, pick, n)
	}
	return list[[]byte](column, pick, n)
}

func list[T any](column string, pick func(string) any, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = pick(column).(T)
	}
	return out
}

// Claims of many partitions and tags, with and without conditions, take what the
// reference takes, in its order.
func TestClaimsTakeWhatTheReferenceTakes(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s, m := opened(t, client, redisstore.Options{}), memory.New()
	require.NoError(t, m.Open(t.Context(), storagetest.Tables()...))
	const seed = 3
	rnd := rand.New(rand.NewPCG(seed, 0))
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	part := func() storage.Partition { return storage.Tenant(fmt.Sprint(rnd.IntN(90))) }
	for i := range 600 {
		c := storage.Change{ID: fmt.Sprint("c", i), Partition: part(), Put: []storage.Row{
			storagetest.Notes.Row(fmt.Sprint("r", i), 0, day.Add(time.Duration(rnd.IntN(60))*time.Minute), storagetest.Note{N: int64(rnd.IntN(10))}),
		}}
		require.Equal(t, m.Commit(t.Context(), c), s.Commit(t.Context(), c))
	}
	for i := range 250 {
		now := day.Add(time.Duration(i) * time.Minute)
		c := storage.Claim{Table: storagetest.Notes.Table, Now: now, Until: now.Add(time.Duration(1+rnd.IntN(50)) * time.Minute), Max: 1 + rnd.IntN(12)}
		if rnd.IntN(3) == 0 {
			c.Partition = part()
		}
		if rnd.IntN(2) == 0 {
			c.Where = []storage.Cond{{Column: "n", Op: storage.Eq, Value: int64(rnd.IntN(11))}}
		}
		want, err := m.Claim(t.Context(), c)
		require.NoError(t, err)
		got, err := s.Claim(t.Context(), c)
		require.NoError(t, err)
		require.Len(t, got, len(want), "seed %d, claim %d", seed, i)
		for k := range want {
			require.Equal(t, want[k], got[k], "seed %d, claim %d", seed, i)
		}
	}
}
