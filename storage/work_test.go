package storage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

type piece struct {
	Name  string `db:"name"`
	Group string `db:"group"`
	N     int64  `db:"n"`
}

var pieces = storage.NewTable[piece]("pieces", storage.Unique("name", "group"), storage.Index("group"))

func (s *calls) Count(ctx context.Context, q storage.Query) (int64, error) {
	s.list = append(s.list, "count")
	return s.Store.Count(ctx, q)
}

func (s *calls) Balances(ctx context.Context, p storage.Partition, accounts ...ledger.Account) ([]ledger.Balance, error) {
	s.list = append(s.list, fmt.Sprint("balances ", len(accounts)))
	return s.Store.Balances(ctx, p, accounts...)
}

// calls is a store that writes down what it is asked.
type calls struct {
	storage.Store
	list   []string
	places int                              // partitions times values that joined queries asked for
	before func(c []storage.Change) []error // in place of a commit, once
}

func (s *calls) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	s.list = append(s.list, fmt.Sprint("rows ", len(keys)))
	return s.Store.Rows(ctx, t, keys...)
}

func (s *calls) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	s.list = append(s.list, "find")
	places := len(q.Partitions)
	for _, c := range q.Where {
		if c.Op == storage.In {
			places *= reflect.ValueOf(c.Value).Len()
		}
	}
	s.places += places
	return s.Store.Find(ctx, q)
}

func (s *calls) Commit(ctx context.Context, c ...storage.Change) []error {
	s.list = append(s.list, fmt.Sprint("commit ", len(c)))
	if before := s.before; before != nil {
		s.before = nil
		if errs := before(c); errs != nil {
			return errs
		}
	}
	return s.Store.Commit(ctx, c...)
}

func newCalls(t *testing.T) *calls {
	t.Helper()
	s := &calls{Store: memory.New()}
	require.NoError(t, s.Open(t.Context(), append(storage.Tables(), pieces.Table)...))
	return s
}

func (s *calls) fill(t *testing.T, n int) (ids []string) {
	t.Helper()
	for i := range n {
		id := fmt.Sprint("p", i)
		c := storage.Change{ID: "fill" + id, Partition: part(i), Put: []storage.Row{pieces.Row(id, 0, time.Time{}, piece{Name: id, Group: "g" + id})}}
		require.NoError(t, s.Store.Commit(t.Context(), c)[0])
		ids = append(ids, id)
	}
	return ids
}

// part is the partition of a piece: there are three.
func part(i int) storage.Partition { return storage.Tenant(fmt.Sprint(i % 3)) }

func partOf(id string) storage.Partition {
	var i int
	_, _ = fmt.Sscanf(id, "p%d", &i)
	return part(i)
}

// more adds to a piece, which it reads in three ways.
func more(s storage.Store, change string) func(context.Context, string) error {
	return func(ctx context.Context, id string) error {
		return storage.Decide(ctx, s, func(ctx context.Context) (storage.Change, error) {
			v, row, ok, err := pieces.One(ctx, s, partOf(id), id)
			if err != nil || !ok {
				return storage.Change{}, errors.Join(err, errors.New("it is not there"))
			}
			named, err := s.Rows(ctx, pieces.Table, storage.Key{Partition: partOf(id), Unique: []string{"name", "group"}, Values: []any{v.Name, v.Group}},
				storage.Key{Partition: partOf(id), ID: "nobody"})
			if err != nil || len(named) != 1 || named[0].ID != id {
				return storage.Change{}, fmt.Errorf("by its name: %v, %w", named, err)
			}
			grouped, err := s.Find(ctx, storage.Query{Table: pieces.Table, Partition: partOf(id), Where: []storage.Cond{{Column: "group", Op: storage.Eq, Value: v.Group}}})
			if err != nil || len(grouped) != 1 || grouped[0].ID != id {
				return storage.Change{}, fmt.Errorf("in its group: %v, %w", grouped, err)
			}
			v.N++
			return storage.Change{ID: fmt.Sprint(change, id, "/", row.Version), Partition: partOf(id), Put: []storage.Row{pieces.Row(id, row.Version, time.Time{}, v)}}, nil
		})
	}
}

func (s *calls) requireN(t *testing.T, id string, n int64) {
	t.Helper()
	v, _, _, err := pieces.One(t.Context(), s.Store, partOf(id), id)
	require.NoError(t, err)
	require.Equal(t, n, v.N, id)
}

func itself(id string) string { return id }

// Many items cost as many calls as one does.
func TestFP01_WorkAsksTogether(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 50} {
		s := newCalls(t)
		ids := s.fill(t, n)
		j := storage.Joined(s)
		require.Equal(t, j, storage.Joined(j))
		for _, err := range storage.Work(t.Context(), j, ids, itself, more(j, "c")) {
			require.NoError(t, err)
		}
		if n > 0 {
			require.Equal(t, []string{fmt.Sprint("rows ", n), fmt.Sprint("rows ", n+min(n, 3)), "find", fmt.Sprint("commit ", n)}, s.list)
		}
		for _, id := range ids {
			s.requireN(t, id, 1)
		}
	}
}

// Items about one object are done in their order, each on what the one before left, and
// never in one Commit.
func TestFP13_OneObjectIsWrittenOnceInACommit(t *testing.T) {
	t.Parallel()
	s := newCalls(t)
	s.fill(t, 4)
	j := storage.Joined(s)
	items := []string{"p0", "p1", "p0", "p2", "p0", "p1", "p3"}
	var ends []string
	do := more(j, "c")
	for _, err := range storage.Work(t.Context(), j, items, itself, func(ctx context.Context, id string) error {
		err := do(ctx, id)
		ends = append(ends, id)
		return err
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, []string{"p0", "p1", "p2", "p3", "p0", "p1", "p0"}, ends)
	var commits []string
	for _, c := range s.list {
		if strings.HasPrefix(c, "commit") {
			commits = append(commits, c)
		}
	}
	require.Equal(t, []string{"commit 4", "commit 2", "commit 1"}, commits)
	for i, n := range []int64{3, 2, 1, 1} {
		s.requireN(t, fmt.Sprint("p", i), n)
	}
}

// What a stranger writes between reading and writing is not lost, also where two items
// write one row though their keys differ.
func TestFP13_AStrangersWriteStays(t *testing.T) {
	t.Parallel()
	s := newCalls(t)
	s.fill(t, 3)
	j := storage.Joined(s)
	s.before = func([]storage.Change) []error {
		v, row, _, err := pieces.One(t.Context(), s.Store, part(0), "p0")
		require.NoError(t, err)
		v.N += 100
		require.NoError(t, s.Store.Commit(t.Context(), storage.Change{ID: "stranger", Partition: part(0), Put: []storage.Row{pieces.Row("p0", row.Version, time.Time{}, v)}})[0])
		return nil
	}
	for _, err := range storage.Work(t.Context(), j, []string{"a p0", "b p1", "c p0", "d p2"}, itself, func(ctx context.Context, item string) error {
		return more(j, item[:1])(ctx, item[2:])
	}) {
		require.NoError(t, err)
	}
	s.requireN(t, "p0", 102)
	s.requireN(t, "p1", 1)
	s.requireN(t, "p2", 1)
}

// What one item meets is its own.
func TestFP01_ErrorsBelongToTheirItems(t *testing.T) {
	t.Parallel()
	s := newCalls(t)
	s.fill(t, 3)
	j := storage.Joined(s)
	errs := storage.Work(t.Context(), j, []string{"p0", "p9", "p1", "p2"}, itself, more(j, "c"))
	require.Error(t, errs[1])
	for _, i := range []int{0, 2, 3} {
		require.NoError(t, errs[i])
	}
	s.requireN(t, "p2", 1)

	busy := 0
	s.before = func(c []storage.Change) []error {
		errs := make([]error, len(c))
		for i := range c {
			require.True(t, c[i].NoWait)
			busy++
			errs[i] = storage.ErrBusy
		}
		return errs
	}
	for _, err := range storage.Work(t.Context(), j, []string{"p0", "p1"}, itself, more(j, "d")) {
		require.NoError(t, err, "busy once")
	}
	require.Equal(t, 2, busy)

	gone := errors.New("gone")
	s.list = nil
	down := storage.Joined(failing{s, gone})
	for _, err := range storage.Work(t.Context(), down, []string{"p0", "p1"}, itself, more(down, "e")) {
		require.ErrorIs(t, err, gone)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range storage.Work(ctx, j, []string{"p0", "p1"}, itself, more(j, "f")) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

type failing struct {
	storage.Store
	err error
}

func (f failing) Rows(context.Context, *storage.Table, ...storage.Key) ([]storage.Row, error) {
	return nil, f.err
}

// A panic is its item's: the others are done, and the panic comes after them.
func TestFP01_APanicIsItsItems(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(ctx context.Context, j storage.Store, id string){
		"before it asks": func(context.Context, storage.Store, string) {},
		"after it asked": func(ctx context.Context, j storage.Store, id string) {
			_, _, _, _ = pieces.One(ctx, j, partOf(id), id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCalls(t)
			s.fill(t, 4)
			j := storage.Joined(s)
			require.PanicsWithValue(t, "p1 is broken", func() {
				storage.Work(t.Context(), j, []string{"p0", "p1", "p2", "p3"}, itself, func(ctx context.Context, id string) error {
					if id == "p1" || id == "p3" {
						broken(ctx, j, id)
						panic(id + " is broken")
					}
					return more(j, "c")(ctx, id)
				})
			})
			s.requireN(t, "p0", 1)
			s.requireN(t, "p1", 0)
			s.requireN(t, "p2", 1)
		})
	}
}

// Where what items do together panics, it is these items' panic, and no other's.
func TestFP01_APanicInCommonIsTheirs(t *testing.T) {
	t.Parallel()
	s := newCalls(t)
	s.fill(t, 4)
	j := storage.Joined(s)
	require.PanicsWithValue(t, "p1 is broken", func() {
		storage.Work(t.Context(), j, []string{"p0", "p1", "p2", "p3"}, itself, func(ctx context.Context, id string) error {
			sum := map[string]string{"p0": "a", "p1": "a", "p2": "b", "p3": "b"}[id]
			return storage.Together(ctx, sum, id, func(ctx context.Context, all []string) []error {
				if slices.Contains(all, "p1") {
					panic("p1 is broken")
				}
				var errs []error
				for _, id := range all {
					errs = append(errs, more(j, "c")(ctx, id))
				}
				return errs
			})
		})
	})
	for id, n := range map[string]int64{"p0": 0, "p1": 0, "p2": 1, "p3": 1} {
		s.requireN(t, id, n)
	}
}

// A panic of the store ends the work: the items ask nothing more, and end.
func TestFP01_APanicOfTheStoreEndsTheWork(t *testing.T) {
	t.Parallel()
	j := storage.Joined(&panicking{newCalls(t)})
	ended := map[string]error{}
	require.PanicsWithValue(t, "the store is broken", func() {
		storage.Work(t.Context(), j, []string{"p0", "p1"}, itself, func(ctx context.Context, id string) error {
			_, _, _, err := pieces.One(ctx, j, partOf(id), id)
			ended[id] = errors.Join(err, j.Commit(ctx, storage.Change{ID: "late", Partition: partOf(id)})[0], storage.Together(ctx, "late", id, func(ctx context.Context, all []string) []error {
				return []error{more(j, "d")(ctx, all[0])}
			}))
			return nil
		})
	})
	require.Len(t, ended, 2)
	for id, err := range ended {
		require.Error(t, err, id)
	}
}

type panicking struct{ storage.Store }

func (*panicking) Rows(context.Context, *storage.Table, ...storage.Key) ([]storage.Row, error) {
	panic("the store is broken")
}

// A query that could find more than a joined one holds is asked alone, and answers are
// the same as alone.
func TestFP01_JoinedQueriesAnswerAsAlone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test's
		s := newCalls(t)
		for i := range 40 {
			v := piece{Name: fmt.Sprint("n", i), Group: fmt.Sprint("g", r.IntN(5)), N: int64(r.IntN(3))}
			require.NoError(t, s.Store.Commit(t.Context(), storage.Change{ID: fmt.Sprint(i), Partition: part(r.IntN(3)), Put: []storage.Row{pieces.Row(fmt.Sprint("p", i), 0, time.Time{}, v)}})[0])
		}
		var queries []storage.Query
		for range 12 {
			q := storage.Query{Table: pieces.Table, Partition: part(r.IntN(3)), Limit: 3 * r.IntN(2), Where: []storage.Cond{{Column: "group", Op: storage.Eq, Value: fmt.Sprint("g", r.IntN(6))}}}
			switch r.IntN(9) {
			case 0:
				q.Where = append(q.Where, storage.Cond{Column: "n", Op: storage.Eq, Value: int64(1)})
			case 1:
				q.Where[0].Op = storage.Ge
			case 2:
				q.Partition = ""
			case 3:
				q.Order = []storage.Order{{Column: "n", Desc: true}}
			case 4:
				q.Offset = 1
			case 5:
				q.Where = []storage.Cond{{Column: "n", Op: storage.Eq, Value: int64(r.IntN(3))}}
			case 6:
				q.IDs = true
			case 7:
				q.Where = append(q.Where, storage.Cond{Column: "n", Op: storage.In, Value: []int64{0, 1}})
			}
			if r.IntN(3) == 0 && len(queries) > 0 {
				q = queries[r.IntN(len(queries))]
			}
			queries = append(queries, q)
		}
		j, at := storage.Joined(s), map[int][]storage.Row{}
		for _, err := range storage.Work(t.Context(), j, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, func(i int) string { return fmt.Sprint(i) }, func(ctx context.Context, i int) error {
			rows, err := j.Find(ctx, queries[i])
			at[i] = rows
			return err
		}) {
			require.NoError(t, err)
		}
		for i, q := range queries {
			want, err := s.Find(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, keysOf(want), keysOf(at[i]), "seed %d: %+v", seed, q)
		}
	}
}

// Joined queries do not look everywhere for everything: of many partitions, few are looked
// at for the same values. Those of a few partitions, whatever they look for, are one.
func TestFP01_JoinedQueriesLookAtFewPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tenants, each, finds int }{{1, 60, 1}, {3, 30, 1}, {60, 1, 15}, {10, 20, 3}} {
		s := newCalls(t)
		type item struct{ tenant, n int }
		var items []item
		for n := range c.each {
			for tenant := range c.tenants { // one of each tenant after the other
				id := fmt.Sprint(tenant, "/", n)
				row := pieces.Row(id, 0, time.Time{}, piece{Name: id, Group: id})
				require.NoError(t, s.Store.Commit(t.Context(), storage.Change{ID: id, Partition: part(0) + storage.Partition(fmt.Sprint(tenant)), Put: []storage.Row{row}})[0])
				items = append(items, item{tenant, n})
			}
		}
		j := storage.Joined(s)
		errs := storage.Work(t.Context(), j, items, func(i item) string { return fmt.Sprint(i) }, func(ctx context.Context, i item) error {
			id := fmt.Sprint(i.tenant, "/", i.n)
			rows, err := j.Find(ctx, storage.Query{
				Table: pieces.Table, Partition: part(0) + storage.Partition(fmt.Sprint(i.tenant)), Where: []storage.Cond{{Column: "group", Op: storage.Eq, Value: id}},
			})
			if err == nil && (len(rows) != 1 || rows[0].ID != id) {
				err = fmt.Errorf("%s: %v", id, keysOf(rows))
			}
			return err
		})
		require.NoError(t, errors.Join(errs...))
		require.Len(t, s.list, c.finds, "%+v", c)
		require.LessOrEqual(t, s.places, 4*len(items), "%+v", c)
	}
}

// The same question is asked once, and of balances one for each partition.
func TestFP01_TheSameQuestionIsAskedOnce(t *testing.T) {
	t.Parallel()
	s := newCalls(t)
	for i := range 3 {
		c := storage.Change{ID: fmt.Sprint("post", i), Partition: part(i)}
		for _, w := range []string{"a", "b"} {
			c.Post = append(c.Post, ledger.Tx{ID: fmt.Sprint(w, i), Kind: ledger.KindAdjustment, Ref: "r", At: time.Unix(1, 0), Legs: []ledger.Leg{
				{Account: ledger.Wallet(w), Asset: "BTC", Delta: ledger.Amount(i + 1)}, {Account: ledger.Float, Asset: "BTC", Delta: -ledger.Amount(i + 1)},
			}})
		}
		require.NoError(t, s.Store.Commit(t.Context(), c)[0])
	}
	s.fill(t, 4)
	j := storage.Joined(s)
	items := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	one := func(i int) string { return fmt.Sprint(i) }
	for _, err := range storage.Work(t.Context(), j, items, one, func(ctx context.Context, i int) error {
		n, err := j.Count(ctx, storage.Query{Table: pieces.Table, Partition: part(i)})
		if want := []int64{2, 1, 1}[i%3]; n != want {
			err = errors.Join(err, fmt.Errorf("%d rows of %d", n, want))
		}
		wallet := ledger.Wallet([]string{"a", "b"}[i%2])
		some, err2 := j.Balances(ctx, part(i), wallet)
		all, err3 := j.Balances(ctx, part(i))
		if len(some) != 1 || some[0].Account != wallet || some[0].Posted != ledger.Amount(i%3+1) || len(all) != 3 {
			err = errors.Join(err, fmt.Errorf("balances %v of %v", some, all))
		}
		return errors.Join(err, err2, err3, errors.Join(j.Commit(ctx)...))
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, []string{
		"count", "count", "count", "balances 2", "balances 2", "balances 2", "balances 0", "balances 0", "balances 0",
	}, s.list)
}

// What items write to one object as one costs as many calls as one item does, also where
// some come to it later than others.
func TestFP01_ItemsWriteOneObjectTogether(t *testing.T) {
	t.Parallel()
	s := newCalls(t)
	s.fill(t, 3)
	j := storage.Joined(s)
	items := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
	var brought [][]int
	add := func(ctx context.Context, id string, n int) (int64, error) {
		type sum struct {
			after int64
			err   error
		}
		out := storage.Together(ctx, "sum/"+id, n, func(ctx context.Context, all []int) []sum {
			brought = append(brought, all)
			out := make([]sum, len(all))
			err := storage.Decide(ctx, j, func(ctx context.Context) (storage.Change, error) {
				v, row, _, err := pieces.One(ctx, j, partOf(id), id)
				for i, n := range all {
					v.N += int64(n)
					out[i].after = v.N
				}
				return storage.Change{ID: fmt.Sprint(id, all, row.Version), Partition: partOf(id), Put: []storage.Row{pieces.Row(id, row.Version, time.Time{}, v)}}, err
			})
			for i := range out {
				out[i].err = err
			}
			return out
		})
		return out.after, out.err
	}
	after := make([]int64, len(items))
	for _, err := range storage.Work(t.Context(), j, items, func(i int) string { return fmt.Sprint("k", i/8) }, func(ctx context.Context, i int) (err error) {
		after[i], err = add(ctx, fmt.Sprint("p", i%3), i)
		return err
	}) {
		require.NoError(t, err)
	}
	require.Len(t, brought, 9, "items with the same key are done one after the other")
	brought, s.list = nil, nil
	for _, err := range storage.Work(t.Context(), j, items, func(i int) string { return fmt.Sprint("k", i) }, func(ctx context.Context, i int) (err error) {
		if i%2 == 0 {
			_, _, _, err = pieces.One(ctx, j, part(0), fmt.Sprint("p", i))
		}
		if err == nil {
			after[i], err = add(ctx, fmt.Sprint("p", i%3), i)
		}
		return err
	}) {
		require.NoError(t, err)
	}
	require.ElementsMatch(t, [][]int{{0, 3, 6}, {1, 4, 7}, {2, 5, 8}}, brought)
	require.Equal(t, []string{"rows 5", "rows 3", "commit 3"}, s.list)
	s.requireN(t, "p1", 24)
	require.Equal(t, []int64{9, 13, 17, 12, 17, 22, 18, 24, 30}, after)

	n, err := add(t.Context(), "p1", 1) // without Work
	require.NoError(t, err)
	require.Equal(t, int64(25), n)
}

func keysOf(rows []storage.Row) (out []string) {
	for _, r := range rows {
		out = append(out, string(r.Partition)+" "+r.ID)
	}
	return out
}

// Whoever asks from elsewhere is answered at once; so is everybody on a store that is not
// joined, or is another one.
func TestFP01_Apart(t *testing.T) {
	t.Parallel()
	s, other := newCalls(t), newCalls(t)
	ids := s.fill(t, 2)
	other.fill(t, 2)
	j, o := storage.Joined(s), storage.Joined(other)
	require.Equal(t, t.Context(), storage.Apart(t.Context()))
	for _, err := range storage.Work(t.Context(), j, ids, itself, func(ctx context.Context, id string) error {
		_, err := j.Rows(storage.Apart(ctx), pieces.Table, storage.Keys(partOf(id), id)...)
		_, err2 := o.Rows(ctx, pieces.Table, storage.Keys(partOf(id), id)...)
		_, err3 := s.Rows(ctx, pieces.Table, storage.Keys(partOf(id), id)...)
		return errors.Join(err, err2, err3)
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, slices.Repeat([]string{"rows 1"}, 4), s.list)
	require.Equal(t, slices.Repeat([]string{"rows 1"}, 2), other.list)

	// Work within an item: its own items ask together.
	s.list = nil
	for _, err := range storage.Work(t.Context(), j, []string{"a", "b"}, itself, func(ctx context.Context, _ string) error {
		return errors.Join(storage.Work(ctx, j, ids, itself, func(ctx context.Context, id string) error {
			_, _, ok, err := pieces.One(ctx, j, partOf(id), id)
			if !ok {
				return errors.New("not there")
			}
			return err
		})...)
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, []string{"rows 2", "rows 2"}, s.list)
}
