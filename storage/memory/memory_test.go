package memory_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

func harness() storagetest.Harness {
	return storagetest.Harness{
		Open:   func(testing.TB) storage.Store { return memory.New() },
		Second: func(_ testing.TB, s storage.Store) storage.Store { return s },
		Begin: func(t testing.TB, s storage.Store) (storage.Tx, func(bool) error) {
			tx, err := s.(*memory.Store).Begin(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { _ = tx.Rollback() })
			return s.(*memory.Store).WithTx(tx), func(commit bool) error {
				if commit {
					return tx.Commit()
				}
				return tx.Rollback()
			}
		},
		Reopen: func(t testing.TB, s storage.Store) storage.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, harness())
}

type thing struct {
	Hash []byte `db:"hash"`
	Kind string `db:"kind"`
}

var things = storage.NewTable[thing]("things", storage.Index("hash"), storage.Index("kind"))

// An index follows its rows, also of a column of bytes.
func TestIndexFollowsItsRows(t *testing.T) {
	t.Parallel()
	ctx, s, p := context.Background(), memory.New(), storage.Tenant("t")
	require.NoError(t, s.Open(ctx, things.Table))
	find := func(c storage.Cond) (ids []string) {
		t.Helper()
		rows, err := s.Find(ctx, storage.Query{Table: things.Table, Partition: p, Where: []storage.Cond{c}})
		require.NoError(t, err)
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		return ids
	}
	for version, v := range []thing{{[]byte("x"), "a"}, {[]byte("y"), "b"}, {[]byte("y"), "a"}} {
		c := storage.Change{ID: fmt.Sprint(version), Partition: p, Put: []storage.Row{things.Row("1", int64(version), time.Time{}, v)}}
		require.NoError(t, s.Commit(ctx, c)[0])
		for _, hash := range []string{"x", "y"} {
			require.Equal(t, string(v.Hash) == hash, len(find(storage.Cond{Column: "hash", Op: storage.Eq, Value: []byte(hash)})) == 1)
		}
		for _, kind := range []string{"a", "b"} {
			require.Equal(t, v.Kind == kind, len(find(storage.Cond{Column: "kind", Op: storage.Eq, Value: kind})) == 1)
		}
	}
	require.NoError(t, s.Commit(ctx, storage.Change{ID: "drop", Partition: p, Drop: []storage.Row{things.Row("1", 3, time.Time{}, thing{})}})[0])
	require.Empty(t, find(storage.Cond{Column: "kind", Op: storage.Eq, Value: "a"}))
}

// numbered has an index of numbers, as rows that are read on from a place have.
type numbered struct {
	Seq  int64  `db:"seq"`
	Kind string `db:"kind"`
}

var numbers = storage.NewTable[numbered]("numbers", storage.Index("seq"), storage.Index("kind"))

// Whatever rows are put, changed and dropped, in a host's transaction that ends either way or outside of
// one, a query by range finds what looking at each row finds.
func TestRangesFindWhatIsThere(t *testing.T) {
	t.Parallel()
	ctx, s, p := context.Background(), memory.New(), storage.Tenant("t")
	require.NoError(t, s.Open(ctx, numbers.Table))
	seed := rand.Uint64()
	t.Log("seed", seed)
	random, there, commits := rand.New(rand.NewPCG(seed, 0)), map[string]storage.Row{}, 0
	id := func() string { return fmt.Sprint("r", random.IntN(30)) }
	change := func(s storage.Store, there map[string]storage.Row) {
		commits++
		c, name := storage.Change{ID: fmt.Sprint(commits), Partition: p}, id()
		was, known := there[name]
		if known && random.IntN(3) == 0 {
			c.Drop = []storage.Row{numbers.Row(name, was.Version, time.Time{}, numbered{})}
			delete(there, name)
		} else {
			v := numbered{random.Int64N(20) - 5, fmt.Sprint(random.IntN(3))}
			c.Put = []storage.Row{numbers.Row(name, was.Version, time.Time{}, v)}
			there[name] = numbers.Row(name, was.Version+1, time.Time{}, v)
		}
		require.NoError(t, s.Commit(ctx, c)[0])
	}
	agrees := func(s storage.Store, there map[string]storage.Row) {
		ops := []storage.Op{storage.Gt, storage.Ge, storage.Lt, storage.Le, storage.Ne, storage.Eq}
		holds := func(op storage.Op, order int) bool {
			return map[storage.Op]bool{
				storage.Gt: order > 0, storage.Ge: order >= 0, storage.Lt: order < 0, storage.Le: order <= 0, storage.Ne: order != 0, storage.Eq: order == 0,
			}[op]
		}
		seq, from, to, kind := random.Int64N(24)-7, id(), id(), fmt.Sprint(random.IntN(4))
		ofSeq, ofFrom, ofTo := ops[random.IntN(len(ops))], ops[random.IntN(len(ops))], ops[random.IntN(len(ops))]
		conds := []storage.Cond{
			{Column: "id", Op: ofFrom, Value: from}, {Column: "id", Op: ofTo, Value: to}, {Column: "seq", Op: ofSeq, Value: seq}, {Column: "kind", Op: storage.Eq, Value: kind},
		}
		tests := []func(storage.Row) bool{
			func(r storage.Row) bool { return holds(ofFrom, cmp.Compare(r.ID, from)) },
			func(r storage.Row) bool { return holds(ofTo, cmp.Compare(r.ID, to)) },
			func(r storage.Row) bool { return holds(ofSeq, cmp.Compare(numbers.Value(r).Seq, seq)) },
			func(r storage.Row) bool { return numbers.Value(r).Kind == kind },
		}
		which := random.IntN(1 << len(conds))
		q, want := storage.Query{Table: numbers.Table, Partition: p}, []string{}
		for i := range conds {
			if which&(1<<i) != 0 {
				q.Where = append(q.Where, conds[i])
			}
		}
		for name, r := range there {
			if !slices.ContainsFunc([]int{0, 1, 2, 3}, func(i int) bool { return which&(1<<i) != 0 && !tests[i](r) }) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		rows, err := s.Find(ctx, q)
		require.NoError(t, err)
		got := []string{}
		for _, r := range rows {
			got = append(got, r.ID)
		}
		require.Equal(t, want, got, "%+v", q.Where)
		n, err := s.Count(ctx, q)
		require.NoError(t, err)
		require.EqualValues(t, len(want), n, "%+v", q.Where)
	}
	for range 300 {
		change(s, there)
		for range 5 {
			agrees(s, there)
		}
		if random.IntN(4) > 0 {
			continue
		}
		tx, err := s.Begin(ctx)
		require.NoError(t, err)
		inside := maps.Clone(there)
		for range 3 {
			change(s.WithTx(tx), inside)
			agrees(s.WithTx(tx), inside)
			agrees(s, there)
		}
		if random.IntN(2) == 0 {
			require.NoError(t, tx.Rollback())
			continue
		}
		require.NoError(t, tx.Commit())
		there = inside
	}
}

// A posting between known accounts goes a short way, which refuses what the long way does.
func TestShortWayRefuses(t *testing.T) {
	t.Parallel()
	ctx, s, p := context.Background(), memory.New(), storage.Tenant("t")
	require.NoError(t, s.Open(ctx))
	post := func(id string, txs ...ledger.Tx) error {
		for i := range txs {
			if txs[i].Legs == nil {
				txs[i].Legs = []ledger.Leg{{Account: ledger.Chain("ETH"), Asset: "ETH", Delta: -1}, {Account: ledger.FeesPlatform, Asset: "ETH", Delta: 1}}
			}
		}
		return s.Commit(ctx, storage.Change{ID: id, Partition: p, Post: txs})[0]
	}
	require.NoError(t, post("first", ledger.Tx{ID: "first"}))
	long := strings.Repeat("x", 201)
	for name, err := range map[string]error{
		"no change":          post("", ledger.Tx{ID: "a"}),
		"a long change":      post(long, ledger.Tx{ID: "a"}),
		"no id":              post("a", ledger.Tx{}),
		"a long id":          post("a", ledger.Tx{ID: long}),
		"an id with a zero":  post("a", ledger.Tx{ID: "a\x00"}),
		"a long kind":        post("a", ledger.Tx{ID: "a", Kind: ledger.Kind(long)}),
		"a long reference":   post("a", ledger.Tx{ID: "b", Ref: long}),
		"a zero in the kind": post("a", ledger.Tx{ID: "a", Kind: "\x00"}),
		"twice":              post("a", ledger.Tx{ID: "b"}, ledger.Tx{ID: "b"}),
		"no legs":            post("a", ledger.Tx{ID: "a", Legs: []ledger.Leg{}}),
		"an account twice":   post("a", ledger.Tx{ID: "a", Legs: []ledger.Leg{{Account: ledger.FeesPlatform, Asset: "ETH", Delta: 1}, {Account: ledger.FeesPlatform, Asset: "ETH", Delta: -1}}}),
		"unbalanced":         post("a", ledger.Tx{ID: "a", Legs: []ledger.Leg{{Account: ledger.Chain("ETH"), Asset: "ETH", Delta: -2}, {Account: ledger.FeesPlatform, Asset: "ETH", Delta: 1}}}),
		"nothing":            post("a", ledger.Tx{ID: "a", Legs: []ledger.Leg{{Account: ledger.Chain("ETH"), Asset: "ETH"}, {Account: ledger.FeesPlatform, Asset: "ETH"}}}),
	} {
		require.Error(t, err, name)
	}
	balances, err := s.Balances(ctx, p, ledger.FeesPlatform)
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(1), balances[0].Posted)
	require.NoError(t, post(strings.Repeat("x", 200), ledger.Tx{ID: strings.Repeat("y", 200), Kind: ledger.Kind(strings.Repeat("k", 200)), Ref: strings.Repeat("r", 200)}))
	require.NoError(t, post("two", ledger.Tx{ID: "two/1"}, ledger.Tx{ID: "two/2"}))
}
