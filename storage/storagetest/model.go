package storagetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// model is a store for one partition as plainly as it can be written: whole
// copies, linear searches, and no line shared with any backend. It knows the
// suite's Notes and Things.
type model struct {
	rows     map[string]modelRow // by table and id
	txs      map[string]string
	balances map[[2]string]ledger.Balance
	entries  []ledger.Entry
	levels   map[string]int64
}

type modelRow struct {
	version int64
	change  string
	value   any
}

func newModel() *model {
	return &model{rows: map[string]modelRow{}, txs: map[string]string{}, balances: map[[2]string]ledger.Balance{}, levels: map[string]int64{}}
}

func (m *model) copy() *model {
	return &model{rows: maps.Clone(m.rows), txs: maps.Clone(m.txs), balances: maps.Clone(m.balances), entries: slices.Clone(m.entries), levels: maps.Clone(m.levels)}
}

func rowName(t *storage.Table, id string) string { return t.Name + "/" + id }

// commit gives the verdict in words, and takes effect where it is "".
func (m *model) commit(c storage.Change) string {
	for _, tx := range c.Post {
		if m.txs[tx.ID] == c.ID {
			return ""
		}
	}
	for _, r := range c.Put {
		if m.rows[rowName(r.Table, r.ID)].change == c.ID {
			return ""
		}
	}
	if len(c.Put)+len(c.Post)+len(c.Level)+len(c.Count) == 0 {
		gone := true
		for _, r := range c.Drop {
			gone = gone && m.rows[rowName(r.Table, r.ID)].version == 0
		}
		if gone {
			return ""
		}
	}
	next := m.copy()
	for _, g := range c.Require {
		if m.rows[rowName(g.Table, g.ID)].version != g.Version {
			return "conflict"
		}
	}
	for _, r := range c.Drop {
		if m.rows[rowName(r.Table, r.ID)].version != r.Version {
			return "conflict"
		}
		delete(next.rows, rowName(r.Table, r.ID))
	}
	for _, r := range c.Put {
		if m.rows[rowName(r.Table, r.ID)].version != r.Version {
			return "conflict"
		}
		next.rows[rowName(r.Table, r.ID)] = modelRow{r.Version + 1, c.ID, r.Value}
	}
	if next.doubled() {
		return "duplicate"
	}
	if v := next.money(c); v != "" {
		return v
	}
	*m = *next
	return ""
}

func (m *model) doubled() bool {
	names, orders := map[string]bool{}, map[string]bool{}
	for _, r := range m.rows {
		v, ok := r.value.(Thing)
		if !ok {
			continue
		}
		order := fmt.Sprintf("%q %d", v.Group, v.Order)
		if names[v.Name] || orders[order] {
			return true
		}
		names[v.Name], orders[order] = true, true
	}
	return false
}

func (m *model) money(c storage.Change) string {
	for _, a := range c.Empty {
		for k, b := range m.balances {
			if k[0] == string(a) && (b.Posted != 0 || b.Held != 0) {
				return "not empty"
			}
		}
	}
	for _, l := range c.Level {
		v := m.levels[l.Name] + l.Delta
		if l.Delta > 0 && v > l.Max {
			return "level"
		}
		if v < 0 {
			v = 0
		}
		m.levels[l.Name] = v
	}
	counted := map[string]bool{}
	for _, n := range c.Count {
		name := rowName(storage.Counters.Table, n.Name)
		r := m.rows[name]
		v, _ := r.value.(storage.Counter)
		if !counted[name] {
			r.version++
		}
		counted[name] = true
		m.rows[name] = modelRow{r.version, c.ID, storage.Counter{Value: v.Value + n.Delta}}
	}
	for _, tx := range c.Post {
		if _, taken := m.txs[tx.ID]; taken {
			return "duplicate"
		}
	}
	for _, tx := range c.Post {
		m.txs[tx.ID] = c.ID
		for _, l := range tx.Legs {
			k := [2]string{string(l.Account), string(l.Asset)}
			b := m.balances[k]
			b.Account, b.Asset = l.Account, l.Asset
			b.Posted += l.Delta
			b.Held += l.Hold
			if strings.HasPrefix(k[0], "wallet/") && (b.Held < 0 || b.Posted-b.Held < 0) {
				return "funds"
			}
			if l.Delta != 0 {
				b.Seq++
				m.entries = append(m.entries, ledger.Entry{Account: l.Account, Asset: l.Asset, Seq: b.Seq, Tx: tx.ID, Kind: tx.Kind, Ref: tx.Ref, Delta: l.Delta, After: b.Posted, At: tx.At})
			}
			m.balances[k] = b
		}
	}
	return ""
}

// word names an error as the model does.
func word(err error) string {
	var (
		dup   *storage.DuplicateError
		level *storage.LevelError
		empty *storage.NotEmptyError
		funds *ledger.InsufficientFundsError
	)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, storage.ErrConflict):
		return "conflict"
	case errors.As(err, &dup):
		return "duplicate"
	case errors.As(err, &level):
		return "level"
	case errors.As(err, &empty):
		return "not empty"
	case errors.As(err, &funds):
		return "funds"
	default:
		return err.Error()
	}
}

// drawChange makes a Change from so few rows, names and accounts that they
// meet all the time. Versions are mostly right.
func drawChange(t *rapid.T, p storage.Partition, n int, m *model) storage.Change {
	c := storage.Change{ID: fmt.Sprintf("c%d", n), Partition: p}
	version := func(table *storage.Table, id string) int64 {
		if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
			return rapid.Int64Range(1, 3).Draw(t, "version")
		}
		return m.rows[rowName(table, id)].version
	}
	used := map[string]bool{}
	for range rapid.IntRange(0, 2).Draw(t, "rows") {
		id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id")
		row := note(id, version(Notes.Table, id), int64(n))
		if rapid.Bool().Draw(t, "thing") {
			v := Thing{Name: rapid.SampledFrom([]string{"x", "X", "y", "z"}).Draw(t, "name"), Group: "g", Order: rapid.Int64Range(0, 3).Draw(t, "order")}
			row = Things.Row(id, version(Things.Table, id), time.Time{}, v)
		}
		if used[rowName(row.Table, id)] {
			continue
		}
		used[rowName(row.Table, id)] = true
		switch k := rapid.IntRange(0, 5).Draw(t, "what"); {
		case k == 0 && row.Version > 0:
			c.Drop = append(c.Drop, row)
		case k == 1:
			c.Require = append(c.Require, storage.Guard{Table: row.Table, ID: id, Version: row.Version})
		default:
			c.Put = append(c.Put, row)
		}
	}
	drawMoney(t, &c, n)
	if len(c.Put)+len(c.Drop)+len(c.Post) == 0 {
		c.Put = []storage.Row{note("filler", m.rows[rowName(Notes.Table, "filler")].version, int64(n))}
	}
	return c
}

func drawMoney(t *rapid.T, c *storage.Change, n int) {
	accounts := []ledger.Account{"wallet/a", "wallet/b", "house", "chain/x"}
	for i := range rapid.IntRange(0, 2).Draw(t, "txs") {
		tx := ledger.Tx{ID: fmt.Sprintf("t%d-%d", n, i), Kind: ledger.KindTransfer, Ref: "r", At: epoch}
		if rapid.IntRange(0, 9).Draw(t, "old tx") == 0 {
			tx.ID = fmt.Sprintf("t%d-0", rapid.IntRange(0, n).Draw(t, "tx"))
		}
		if i > 0 && tx.ID == c.Post[0].ID {
			continue
		}
		from := rapid.IntRange(0, 3).Draw(t, "from")
		to := (from + rapid.IntRange(1, 3).Draw(t, "to")) % 4
		amount := ledger.Amount(rapid.IntRange(-3, 9).Draw(t, "amount"))
		hold := ledger.Amount(rapid.SampledFrom([]int{0, 0, 0, 2, -2}).Draw(t, "hold"))
		if amount == 0 && hold == 0 {
			amount = 1
		}
		tx.Legs = []ledger.Leg{{Account: accounts[from], Asset: coin, Delta: -amount, Hold: hold}}
		if amount != 0 {
			tx.Legs = append(tx.Legs, ledger.Leg{Account: accounts[to], Asset: coin, Delta: amount})
		}
		c.Post = append(c.Post, tx)
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "counts") {
		c.Count = append(c.Count, storage.Count{Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "counter"), Delta: rapid.Int64Range(-9, 9).Draw(t, "count")})
	}
	switch rapid.IntRange(0, 7).Draw(t, "more") {
	case 0:
		c.Empty = []ledger.Account{rapid.SampledFrom(accounts[:2]).Draw(t, "empty")}
	case 1, 2:
		c.Level = []storage.Level{{Name: "l", Delta: rapid.Int64Range(-3, 4).Draw(t, "delta"), Max: 8}}
	}
}

// testModel compares random histories, with Changes sent again, in batches of
// random size, with what the model says.
func testModel(t testing.TB, e *env) {
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		if round > e.h.Rounds && !t.Failed() {
			return // enough for a backend that syncs to disk
		}
		p := storage.Tenant(fmt.Sprint("model", round))
		history(rt, p, func(rt *rapid.T, m *model, batch []storage.Change, want []string) {
			for i, err := range e.s.Commit(e.ctx, batch...) {
				if word(err) != want[i] {
					rt.Fatalf("change %d of %+v: the store says %q, the model %q", i, batch, word(err), want[i])
				}
			}
		}, func(rt *rapid.T, m *model) { m.compare(rt, e.ctx, e.s, p) })
	})
}

func history(rt *rapid.T, p storage.Partition, commit func(*rapid.T, *model, []storage.Change, []string), finish func(*rapid.T, *model)) {
	m := newModel()
	var sent []storage.Change
	n := 0
	for range rapid.IntRange(1, 12).Draw(rt, "batches") {
		var batch []storage.Change
		var want []string
		for range rapid.IntRange(1, 4).Draw(rt, "size") {
			var c storage.Change
			if len(sent) > 0 && rapid.IntRange(0, 5).Draw(rt, "again") == 0 {
				c = rapid.SampledFrom(sent).Draw(rt, "sent")
			} else {
				n++
				c = drawChange(rt, p, n, m)
				sent = append(sent, c)
			}
			batch = append(batch, c)
			want = append(want, m.commit(c))
		}
		commit(rt, m, batch, want)
	}
	finish(rt, m)
}

// compare says whether the store stands where the model does.
func (m *model) compare(t require.TestingT, ctx context.Context, s storage.Store, p storage.Partition) {
	got := map[string]modelRow{}
	for _, table := range []*storage.Table{Notes.Table, Things.Table, storage.Counters.Table} {
		rows, err := s.Find(ctx, storage.Query{Table: table, Partition: p})
		require.NoError(t, err)
		for _, r := range rows {
			got[rowName(table, r.ID)] = modelRow{r.Version, r.Change, r.Value}
		}
	}
	require.Len(t, got, len(m.rows))
	for k, want := range m.rows {
		have := got[k]
		require.Equal(t, want.version, have.version, k)
		require.Equal(t, want.change, have.change, k)
		if v, ok := want.value.(Thing); ok {
			require.Equal(t, v.Name, have.value.(Thing).Name, k)
		} else {
			require.Equal(t, want.value, have.value, k)
		}
	}
	balances, err := s.Balances(ctx, p)
	require.NoError(t, err)
	require.Len(t, balances, len(m.balances))
	for _, b := range balances {
		require.Equal(t, m.balances[[2]string{string(b.Account), string(b.Asset)}], b)
		entries, err := s.Entries(ctx, p, b.Account, b.Asset, 0, 1000)
		require.NoError(t, err)
		slices.Reverse(entries)
		var want []ledger.Entry
		for _, e := range m.entries {
			if e.Account == b.Account && e.Asset == b.Asset {
				want = append(want, e)
			}
		}
		require.Equal(t, want, entries)
	}
}

// Compare commits the same random histories to two stores and wants the same
// verdicts, word for word. rounds bounds how many.
func Compare(t testing.TB, a, b storage.Store, rounds int) {
	ctx := context.Background()
	require.NoError(t, a.Open(ctx, Tables()...))
	require.NoError(t, b.Open(ctx, Tables()...))
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		if round > rounds && !t.Failed() {
			return
		}
		p := storage.Tenant(fmt.Sprint("compare", round))
		history(rt, p, func(rt *rapid.T, _ *model, batch []storage.Change, _ []string) {
			x, y := a.Commit(ctx, batch...), b.Commit(ctx, batch...)
			for i := range x {
				require.Equal(rt, fmt.Sprint(x[i]), fmt.Sprint(y[i]), "%+v", batch[i])
			}
		}, func(*rapid.T, *model) {})
	})
}
