package storagetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
)

func (e *env) find(t testing.TB, q storage.Query) string {
	t.Helper()
	rows, err := e.s.Find(e.ctx, q)
	require.NoError(t, err)
	n, err := e.s.Count(e.ctx, q)
	require.NoError(t, err)
	if q.Limit == 0 && q.Offset == 0 {
		require.Equal(t, int64(len(rows)), n, "count")
	}
	return ids(rows)
}

func testFind(t testing.TB, e *env) {
	for i, name := range []string{"a", "b", "c", "d"} {
		v := thing(name)
		v.Order, v.Flag, v.At, v.Blob = int64(i), i%2 == 0, epoch.Add(time.Duration(i)*time.Hour), []byte{byte(i)}
		due := time.Time{}
		if i > 1 {
			due = epoch.Add(time.Duration(i) * time.Minute)
		}
		e.commit(t, e.put(Things.Row(name, 0, due, v)))
	}
	e.commit(t, e.put(Things.Row("d", 1, time.Time{}, thing("d"))))
	for _, c := range []struct {
		column string
		op     storage.Op
		value  any
		want   string
	}{
		{"name", storage.Eq, "b", "b"},
		{"name", storage.Ne, "b", "a c d"},
		{"name", storage.Lt, "b", "a"},
		{"name", storage.Le, "b", "a b"},
		{"name", storage.Gt, "b", "c d"},
		{"name", storage.Ge, "b", "b c d"},
		{"name", storage.In, []string{"a", "c", "c", "x"}, "a c"},
		{"name", storage.In, []string{}, ""},
		{"name", storage.Eq, "' OR 1=1 --", ""},
		{"order", storage.Le, int64(1), "a b"},
		{"order", storage.In, []int64{0, 2}, "a c"},
		{"flag", storage.Eq, true, "a c"},
		{"at", storage.Ge, epoch.Add(2 * time.Hour), "c"},
		{"at", storage.Eq, epoch.Add(time.Hour).In(time.FixedZone("x", 3600)), "b"},
		{"blob", storage.Eq, []byte{1}, "b"},
		{"id", storage.Gt, "b", "c d"},
		{"id", storage.In, []string{"d", "a"}, "a d"},
		{"version", storage.Eq, int64(2), "d"},
		{"due", storage.Gt, time.Time{}, "c"},
		{"due", storage.Eq, time.Time{}, "a b d"},
	} {
		q := storage.Query{Table: Things.Table, Partition: here, Where: []storage.Cond{{Column: c.column, Op: c.op, Value: c.value}}}
		require.Equal(t, c.want, e.find(t, q), "%s %s %v", c.column, c.op, c.value)
	}
	require.Equal(t, "b", e.find(t, storage.Query{Table: Things.Table, Partition: here, Where: []storage.Cond{
		{Column: "group", Op: storage.Eq, Value: "g"}, {Column: "order", Op: storage.Gt, Value: int64(0)}, {Column: "order", Op: storage.Lt, Value: int64(2)},
	}}))
	require.Empty(t, e.find(t, storage.Query{Table: Things.Table, Partition: "tenant/none"}))
	q := storage.Query{Table: Things.Table, Partition: here, Where: []storage.Cond{{Column: "order", Op: storage.Ge, Value: int64(2)}}}
	whole, err := e.s.Find(e.ctx, q)
	require.NoError(t, err)
	q.IDs = true
	bare, err := e.s.Find(e.ctx, q)
	require.NoError(t, err)
	for i := range whole {
		whole[i].Value = nil
	}
	require.NotEmpty(t, whole)
	require.Equal(t, whole, bare, "the same rows, without their values")
}

// Rows of several partitions are found together, in one order.
func testFindInPartitions(t testing.TB, e *env) {
	third := storage.Partition("tenant/third")
	for i, p := range []storage.Partition{here, away, third} {
		for n := range 3 {
			c := e.put(Notes.Row("same", 0, time.Time{}, Note{N: 9}), Notes.Row(fmt.Sprintf("r%d%d", n, i), 0, time.Time{}, Note{N: int64(n)}))
			if n > 0 {
				c.Put = c.Put[1:]
			}
			c.Partition = p
			e.commit(t, c)
		}
	}
	in := func(p ...storage.Partition) storage.Query { return storage.Query{Table: Notes.Table, Partitions: p} }
	both := in(third, here, third)
	require.Equal(t, "r00 r02 r10 r12 r20 r22 same same", e.find(t, both))
	rows, err := e.s.Find(e.ctx, both)
	require.NoError(t, err)
	require.Equal(t, []storage.Partition{here, third}, []storage.Partition{rows[6].Partition, rows[7].Partition}, "of one id by partition")
	both.Where = []storage.Cond{{Column: "n", Op: storage.Gt, Value: int64(0)}}
	both.Order = []storage.Order{{Column: "n", Desc: true}}
	require.Equal(t, "same same r22 r20 r12 r10", e.find(t, both))
	both.Limit, both.Offset = page, 1
	require.Equal(t, "same r22 r20", e.find(t, both))
	both.Offset = 4
	require.Equal(t, "r12 r10", e.find(t, both))
	require.Equal(t, "r01 r11 r21 same", e.find(t, in(away)))
	require.Equal(t, "r01 r11 r21 same", e.find(t, in(away, "tenant/none")))
	require.Empty(t, e.find(t, storage.Query{Table: Notes.Table, Partitions: []storage.Partition{}}), "none is asked for")
	require.Len(t, strings.Fields(e.find(t, storage.Query{Table: Notes.Table})), 12)
	many := []storage.Partition{away}
	for range 700 {
		many = append(many, storage.Partition(e.id("tenant/none")))
	}
	require.Equal(t, "r01 r11 r21 same", e.find(t, in(many...)))
	_, err = e.s.Find(e.ctx, storage.Query{Table: Notes.Table, Partition: here, Partitions: []storage.Partition{away}})
	require.ErrorIs(t, err, storage.ErrMalformed)
}

func testFindPages(t testing.TB, e *env) {
	var rows []storage.Row
	for i := range 10 {
		rows = append(rows, note(fmt.Sprintf("r%d", i), 0, int64(i/4))) // n: 0000 1111 22
	}
	e.commit(t, e.put(rows...))
	for _, c := range []struct {
		order []storage.Order
		want  []string
	}{
		{nil, []string{"r0 r1 r2", "r3 r4 r5", "r6 r7 r8", "r9", ""}},
		{[]storage.Order{{Column: "id", Desc: true}}, []string{"r9 r8 r7", "r6 r5 r4", "r3 r2 r1", "r0", ""}},
		{[]storage.Order{{Column: "n"}}, []string{"r0 r1 r2", "r3 r4 r5", "r6 r7 r8", "r9", ""}},
		{[]storage.Order{{Column: "n", Desc: true}}, []string{"r9 r8 r7", "r6 r5 r4", "r3 r2 r1", "r0", ""}},
		{[]storage.Order{{Column: "n", Desc: true}, {Column: "text"}}, []string{"r8 r9 r4", "r5 r6 r7", "r0 r1 r2", "r3", ""}},
	} {
		for i, want := range c.want {
			q := storage.Query{Table: Notes.Table, Partition: here, Order: c.order, Limit: page, Offset: i * page}
			require.Equal(t, want, e.find(t, q), "%v page %d", c.order, i)
		}
	}
	n, err := e.s.Count(e.ctx, storage.Query{Table: Notes.Table, Partition: here, Limit: 1, Offset: 5})
	require.NoError(t, err)
	require.Equal(t, int64(10), n)

	var many []storage.Row
	for i := range 120 {
		many = append(many, note(fmt.Sprintf("s%03d", i), 0, 9))
	}
	e.commit(t, e.put(many...))
	all, err := e.s.Find(e.ctx, storage.Query{Table: Notes.Table, Partition: here})
	require.NoError(t, err)
	require.Len(t, all, 100, "the default page")
}

func testFindEverywhere(t testing.TB, e *env) {
	for i, p := range []storage.Partition{away, here, storage.System, storage.Network("net")} {
		c := e.put(note("same", 0, int64(i)), note(fmt.Sprintf("own%d", i), 0, 7))
		c.Partition = p
		e.commit(t, c)
	}
	rows, err := e.s.Find(e.ctx, storage.Query{Table: Notes.Table, Where: []storage.Cond{{Column: "id", Op: storage.Eq, Value: "same"}}})
	require.NoError(t, err)
	require.Len(t, rows, 4)
	for i := 1; i < 4; i++ {
		require.Less(t, rows[i-1].Partition, rows[i].Partition)
	}
	n, err := e.s.Count(e.ctx, storage.Query{Table: Notes.Table})
	require.NoError(t, err)
	require.Equal(t, int64(8), n)
	require.Equal(t, "own1 same", e.find(t, storage.Query{Table: Notes.Table, Partition: here}), "and nobody else's")
}

func testFindRefuses(t testing.TB, e *env) {
	cond := func(column string, op storage.Op, v any) storage.Query {
		return storage.Query{Table: Things.Table, Where: []storage.Cond{{Column: column, Op: op, Value: v}}}
	}
	for name, q := range map[string]storage.Query{
		"no table":       {},
		"unknown column": cond("nome", storage.Eq, "a"),
		"injected":       cond("name = name --", storage.Eq, "a"),
		"comparison":     cond("name", "like", "a"),
		"type":           cond("name", storage.Eq, 1),
		"in no slice":    cond("name", storage.In, "a"),
		"decimal":        cond("price", storage.Eq, thing("").Price),
		"json":           cond("notes", storage.Eq, []string{}),
		"order":          {Table: Things.Table, Order: []storage.Order{{Column: "x"}}},
		"order by json":  {Table: Things.Table, Order: []storage.Order{{Column: "notes"}}},
		"limit":          {Table: Things.Table, Limit: -1},
		"offset":         {Table: Things.Table, Offset: -1},
	} {
		_, err := e.s.Find(e.ctx, q)
		require.ErrorIs(t, err, storage.ErrMalformed, name)
		_, err = e.s.Count(e.ctx, q)
		require.ErrorIs(t, err, storage.ErrMalformed, name)
	}
}

func claim(n int) storage.Claim {
	return storage.Claim{Table: Notes.Table, Now: epoch, Until: epoch.Add(time.Minute), Max: n}
}

func (e *env) claim(t testing.TB, c storage.Claim) []storage.Row {
	t.Helper()
	rows, err := e.s.Claim(e.ctx, c)
	require.NoError(t, err)
	return rows
}

func (e *env) peek(t testing.TB, c storage.Claim) []storage.Row {
	t.Helper()
	rows, err := storage.Peek(e.ctx, e.s, c)
	require.NoError(t, err)
	return rows
}

func dueNote(id string, due time.Time, n int64) storage.Row {
	return Notes.Row(id, 0, due, Note{N: n})
}

func testClaim(t testing.TB, e *env) {
	require.Empty(t, e.claim(t, claim(page)))
	e.commit(t, e.put(
		dueNote("old", epoch.Add(-time.Hour), 1), dueNote("older", epoch.Add(-2*time.Hour), 2), dueNote("now", epoch, 3),
		dueNote("later", epoch.Add(time.Microsecond), 4), dueNote("never", time.Time{}, 5), dueNote("b", epoch.Add(-time.Minute), 6), dueNote("a", epoch.Add(-time.Minute), 7)))
	there := e.put(dueNote("away", epoch.Add(-3*time.Hour), 1))
	there.Partition = away
	e.commit(t, there)

	c := claim(page)
	c.Partition = away
	c.Where = []storage.Cond{{Column: "n", Op: storage.Gt, Value: int64(1)}}
	require.Empty(t, e.claim(t, c))
	c.Where, c.Except = nil, []storage.Partition{here, away}
	require.Empty(t, e.claim(t, c))
	c.Partition = ""
	require.Empty(t, e.claim(t, c))
	c.Except = []storage.Partition{"tenant/nobody", here}
	require.Equal(t, "away", ids(e.claim(t, c)), "what is older elsewhere is passed over")
	c.Except = nil
	before := e.peek(t, c)
	require.Equal(t, "older old a", ids(before), "what a claim would take")
	require.Equal(t, before, e.peek(t, c), "and does not")
	some := c
	some.Where = []storage.Cond{{Column: "n", Op: storage.Eq, Value: int64(3)}}
	require.Equal(t, "now", ids(e.peek(t, some)))
	some.Where, some.Partition = nil, "tenant/nobody"
	require.Empty(t, e.peek(t, some))
	got := e.claim(t, c)
	require.Equal(t, "older old a", ids(got), "oldest first, then by id")
	for i := range got {
		require.Equal(t, before[i].Version+1, got[i].Version)
	}
	require.Equal(t, int64(2), got[0].Version)
	require.Equal(t, c.Until, got[0].Due)
	require.Equal(t, here, got[0].Partition)
	row, _ := e.row(t, Notes.Table, "older")
	require.Equal(t, got[0], row)
	require.Equal(t, "b now", ids(e.claim(t, c)))
	require.Empty(t, e.claim(t, c))
	require.Empty(t, e.peek(t, c), "what is leased is not due")

	c.Now = c.Until.Add(-time.Microsecond)
	c.Until = c.Now.Add(time.Hour)
	require.Equal(t, "later", ids(e.claim(t, c)), "leases hold until their end")
	c.Now = epoch.Add(time.Minute)
	c.Max = 10
	require.Equal(t, "a away b now old older", sorted(e.claim(t, c)), "and not longer")

	for name, bad := range map[string]storage.Claim{
		"max":    {Table: Notes.Table, Now: epoch, Until: epoch.Add(1)},
		"until":  {Table: Notes.Table, Now: epoch, Until: epoch, Max: 1},
		"table":  {Now: epoch, Until: epoch.Add(1), Max: 1},
		"column": {Table: Notes.Table, Now: epoch, Until: epoch.Add(1), Max: 1, Where: []storage.Cond{{Column: "x", Op: storage.Eq, Value: 1}}},
	} {
		_, err := e.s.Claim(e.ctx, bad)
		require.ErrorIs(t, err, storage.ErrMalformed, name)
	}
}

func testClaimFences(t testing.TB, e *env) {
	first := e.put(dueNote("a", epoch, 1))
	e.commit(t, first)
	mine := e.claim(t, claim(1))[0]
	e.commit(t, first) // still its last writer: there already
	require.ErrorIs(t, e.one(e.put(note("a", 1, 2))), storage.ErrConflict, "a writer from before the claim")

	c := claim(1)
	c.Now = mine.Due
	c.Until = c.Now.Add(time.Minute)
	theirs := e.claim(t, c)[0]
	require.ErrorIs(t, e.one(e.put(note("a", mine.Version, 2))), storage.ErrConflict, "a holder whose lease was lost")
	e.commit(t, e.put(note("a", theirs.Version, 3))) // done: no longer due
	c.Now, c.Until = c.Now.Add(time.Hour), c.Until.Add(time.Hour)
	require.Empty(t, e.claim(t, c))
}

// A row that nobody can finish is claimed again and again. It must not keep others, which
// are due later, from their turn. What a claim wrote is gone when the row is written.
func testUnfinishedRowsGiveWay(t testing.TB, e *env) {
	e.commit(t, e.put(dueNote("poison", epoch, 1), dueNote("waits", epoch.Add(time.Microsecond), 1)))
	c := claim(1)
	turns, version := 0, int64(1)
	for ; turns < 30; turns++ {
		got := e.claim(t, c)
		require.Len(t, got, 1)
		if got[0].ID == "waits" {
			break
		}
		version++
		require.Equal(t, version, got[0].Version, "each claim raises it by one")
		row, _ := e.row(t, Notes.Table, "poison")
		require.Equal(t, got[0], row)
		require.Equal(t, c.Until, row.Due)
		c.Now, c.Until = c.Until, c.Until.Add(c.Until.Sub(c.Now))
	}
	require.Less(t, turns, 30, "a row that nobody finishes keeps the first place")

	row, _ := e.row(t, Notes.Table, "poison")
	e.commit(t, e.put(Notes.Row("poison", row.Version, c.Now.Add(-time.Microsecond), Note{N: 2})))
	row, _ = e.row(t, Notes.Table, "poison")
	require.Equal(t, version+1, row.Version)
	require.Equal(t, c.Now.Add(-time.Microsecond), row.Due, "whoever writes the row says when it is due")
	require.Equal(t, "poison", ids(e.claim(t, c)))
	row, _ = e.row(t, Notes.Table, "poison")
	require.Equal(t, c.Until, row.Due)
	e.commit(t, e.put(Notes.Row("poison", row.Version, c.Now, Note{N: 3})))
	require.Equal(t, "poison", ids(e.claim(t, c)), "before its lease ends, as it was written")
	found, err := e.s.Find(e.ctx, storage.Query{
		Table: Notes.Table, Partition: here, Order: []storage.Order{{Column: "due"}},
		Where: []storage.Cond{{Column: "due", Op: storage.Ge, Value: c.Until}, {Column: "version", Op: storage.Gt, Value: int64(1)}},
	})
	require.NoError(t, err)
	require.Equal(t, "poison waits", ids(found), "a lease counts as the time at which a row is due")
}

// C04: who claimed is never heard of again. What it finished stays so, nobody takes the
// rest before the lease ends, and then somebody takes all of it.
func testClaimThenCrash(t testing.TB, e *env) {
	var rows []storage.Row
	for i := range 9 {
		rows = append(rows, dueNote(fmt.Sprint("job", i), epoch, 1))
	}
	e.commit(t, e.put(rows...))
	other := e.h.Second(t, e.s)
	require.NoError(t, other.Open(e.ctx, Tables()...))
	taken, err := other.Claim(e.ctx, claim(9))
	require.NoError(t, err)
	require.Len(t, taken, 9)
	for _, r := range taken[:4] {
		require.NoError(t, storage.CommitOne(e.ctx, other, e.put(note(r.ID, r.Version, 2))))
	}

	c := claim(9)
	c.Now = taken[0].Due.Add(-time.Microsecond)
	c.Until = c.Now.Add(time.Hour)
	require.Empty(t, e.claim(t, c), "the lease stands")
	c.Now = taken[0].Due
	again := e.claim(t, c)
	require.Len(t, again, 5)
	for _, r := range again {
		require.Equal(t, int64(1), Notes.Value(r).N)
		e.commit(t, e.put(note(r.ID, r.Version, 2)))
	}
	require.ErrorIs(t, e.one(e.put(note(taken[8].ID, taken[8].Version, 3))), storage.ErrConflict, "the dead one's answer comes late")
	c.Now, c.Until = c.Until, c.Until.Add(time.Hour)
	require.Empty(t, e.claim(t, c))
}

func testClaimsNeverOverlap(t testing.TB, e *env) { overlap(t, e, e.s, e.s, e.s) }

func testTwoHandlesClaim(t testing.TB, e *env) {
	other := e.h.Second(t, e.s)
	require.NoError(t, other.Open(e.ctx, Tables()...))
	overlap(t, e, e.s, other)
}

// overlap lets workers on the given handles claim while others write.
func overlap(t testing.TB, e *env, handles ...storage.Store) {
	const rows = 60
	for i := range rows {
		e.commit(t, e.put(dueNote(fmt.Sprintf("r%02d", i), epoch.Add(-time.Second), 0)))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for _, s := range handles {
		wg.Go(func() {
			for {
				got, err := s.Claim(e.ctx, claim(page))
				if err != nil || len(got) == 0 {
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Errorf("claim: %v", err)
					}
					return
				}
				mu.Lock()
				for _, r := range got {
					seen[r.ID]++
				}
				mu.Unlock()
				for _, r := range got {
					c := storage.Change{ID: "done-" + r.ID, Partition: here, Put: []storage.Row{note(r.ID, r.Version, 1)}}
					if err := storage.CommitOne(e.ctx, s, c); err != nil {
						t.Errorf("marking %s: %v", r.ID, err)
					}
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, rows)
	for id, n := range seen {
		require.Equal(t, 1, n, id)
	}
}
