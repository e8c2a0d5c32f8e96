package memory

import (
	"container/heap"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// rec is a stored row. It is never changed, only replaced, so readers may keep
// it after the lock is gone.
type rec struct {
	storage.Stored
	keys  []string
	value *atomic.Value // what the scalars decode to, once asked; nil where values could be changed by who holds them
}

// table is one table in one partition. Its leading index columns are indexed
// by value.
type table struct {
	t       *storage.Table
	rows    map[string]*rec
	uniques []map[string]string
	index   map[string]map[any]map[string]*rec
	place   map[string]int   // of the indexed columns in Scalars
	most    map[string]int64 // of an indexed column of numbers, no row ever had more
	ids     []string         // sorted; nil until a query asks for ids of a range
}

func (p *part) table(t *storage.Table) *table {
	d := p.tables[t]
	if d != nil {
		return d
	}
	d = &table{t: t, rows: map[string]*rec{}, index: map[string]map[any]map[string]*rec{}, place: map[string]int{}, most: map[string]int64{}}
	for range t.Uniques {
		d.uniques = append(d.uniques, map[string]string{})
	}
	for _, cols := range slices.Concat(t.Uniques, t.Indexes) {
		d.index[cols[0]] = map[any]map[string]*rec{}
		d.place[cols[0]] = slices.IndexFunc(t.Columns, func(c storage.Column) bool { return c.Name == cols[0] })
	}
	p.tables[t] = d
	return d
}

// hashable makes a scalar a map key.
func hashable(v any) any {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return v
}

func (d *table) drop(id string) {
	r := d.rows[id]
	if r == nil {
		return
	}
	delete(d.rows, id)
	if at, ok := slices.BinarySearch(d.ids, id); ok {
		d.ids = slices.Delete(d.ids, at, at+1)
	}
	for u, key := range r.keys {
		if d.uniques[u][key] == id {
			delete(d.uniques[u], key)
		}
	}
	for col, byValue := range d.index {
		v := hashable(r.Scalars[d.place[col]])
		if delete(byValue[v], id); len(byValue[v]) == 0 {
			delete(byValue, v)
		}
	}
}

func (d *table) set(r *rec) {
	ids := d.ids
	d.ids = nil // the id stays: it need not be moved out and in
	d.drop(r.ID)
	d.rows[r.ID], d.ids = r, ids
	if at, ok := slices.BinarySearch(ids, r.ID); !ok && ids != nil {
		d.ids = slices.Insert(ids, at, r.ID)
	}
	for u, key := range r.keys {
		d.uniques[u][key] = r.ID
	}
	for col, byValue := range d.index {
		v := hashable(r.Scalars[d.place[col]])
		if byValue[v] == nil {
			byValue[v] = map[string]*rec{}
		}
		byValue[v][r.ID] = r
		if n, ok := v.(int64); ok {
			d.most[col] = max(d.most[col], n)
		}
	}
}

// above reports whether a filter asks for more than any row has.
func (d *table) above(f *storage.Filter) bool {
	if f.Op != storage.Gt && f.Op != storage.Ge || d.index[f.Column] == nil {
		return false
	}
	n, ok := f.Values[0].(int64)
	most := d.most[f.Column]
	return ok && n >= 0 && (n > most || f.Op == storage.Gt && n == most)
}

// span is the part of the sorted ids that filters by id ask for. ok is false where none does.
func (d *table) span(filters []storage.Filter) (ids []string, ok bool) {
	for i := range filters {
		f := &filters[i]
		if f.Column != storage.ColID || f.Op == storage.Ne {
			continue
		}
		if !ok {
			if d.ids == nil {
				d.ids = slices.Sorted(maps.Keys(d.rows))
			}
			ids, ok = d.ids, true
		}
		at, found := slices.BinarySearch(ids, f.Values[0].(string))
		after := at
		if found {
			after++
		}
		switch f.Op {
		case storage.Gt:
			ids = ids[after:]
		case storage.Ge:
			ids = ids[at:]
		case storage.Lt:
			ids = ids[:at]
		case storage.Le:
			ids = ids[:after]
		}
	}
	return ids, ok
}

// count is how many rows match.
func (d *table) count(filters []storage.Filter) (n int) {
	if len(filters) == 1 && filters[0].Op == storage.Eq && d.index[filters[0].Column] != nil {
		return len(d.index[filters[0].Column][hashable(filters[0].Values[0])])
	}
	d.each(filters, func(*rec) { n++ })
	return n
}

// each visits the rows that match.
func (d *table) each(filters []storage.Filter, visit func(*rec)) {
	d.near(filters, func(r *rec) {
		if matches(filters, &r.Stored) {
			visit(r)
		}
	})
}

// near visits the rows that may match: through an index where one helps.
func (d *table) near(filters []storage.Filter, visit func(*rec)) {
	for i := range filters {
		f := &filters[i]
		if d.above(f) {
			return
		}
		byValue := d.index[f.Column]
		if f.Op != storage.Eq && f.Op != storage.In || byValue == nil && f.Column != storage.ColID {
			continue
		}
		seen := map[any]bool{}
		for _, v := range f.Values {
			v = hashable(v)
			if seen[v] {
				continue
			}
			seen[v] = true
			if byValue == nil {
				if r := d.rows[v.(string)]; r != nil {
					visit(r)
				}
				continue
			}
			for _, r := range byValue[v] {
				visit(r)
			}
		}
		return
	}
	if ids, ok := d.span(filters); ok {
		for _, id := range ids {
			visit(d.rows[id])
		}
		return
	}
	for _, r := range d.rows {
		visit(r)
	}
}

func matches(filters []storage.Filter, r *storage.Stored) bool {
	for i := range filters {
		if !filters[i].Match(r) {
			return false
		}
	}
	return true
}

func (s *Store) tableOpen(ctx context.Context, t *storage.Table) error {
	open, err := s.opened(ctx)
	if err != nil {
		return err
	}
	if !open.Has(t) {
		return fmt.Errorf("%w: table %s was not opened", storage.ErrMalformed, t.Name)
	}
	return nil
}

// Rows implements storage.Store.
func (s *Store) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if err := s.tableOpen(ctx, t); err != nil {
		return nil, err
	}
	sought, err := t.Seek(keys)
	if err != nil {
		return nil, err
	}
	return decode(t, s.sought(t, sought))
}

func (s *Store) sought(t *storage.Table, keys []storage.Sought) []*rec {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make([]*rec, 0, len(keys))
	for i := range keys {
		k := &keys[i]
		p := s.part(k.Partition, false)
		if p == nil {
			continue
		}
		d, id := p.table(t), k.ID
		if k.Unique >= 0 {
			id = d.uniques[k.Unique][verdict.Key(k.Scalars)]
		}
		if r := d.rows[id]; r != nil {
			found = append(found, r)
		}
	}
	return found
}

func decode(t *storage.Table, found []*rec) ([]storage.Row, error) {
	out := make([]storage.Row, len(found))
	for i, r := range found {
		var err error
		if out[i], err = r.row(t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// row decodes a record, once where its table allows: reads of what seldom
// changes then cost nothing.
func (r *rec) row(t *storage.Table) (storage.Row, error) {
	if r.value == nil {
		return r.Row(t)
	}
	v := r.value.Load()
	if v == nil {
		row, err := r.Row(t)
		if err != nil {
			return row, err
		}
		v = row.Value
		r.value.Store(v)
	}
	return storage.Row{
		Table: t, Partition: r.Partition, ID: r.ID, Version: r.Version, Change: r.Change, Due: storage.FromMicros(r.Due), Value: v,
	}, nil
}

// among visits the table of a query in each of its partitions.
func (s *Store) among(q storage.Query, visit func(*table)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Partitions == nil {
		for _, p := range s.parts {
			visit(p.table(q.Table))
		}
	}
	for _, name := range q.Partitions {
		if p := s.part(name, false); p != nil {
			visit(p.table(q.Table))
		}
	}
}

// Find implements storage.Store.
func (s *Store) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	q, filters, err := q.Ready()
	if err != nil {
		return nil, err
	}
	if err := s.tableOpen(ctx, q.Table); err != nil {
		return nil, err
	}
	var found []*rec
	s.among(q, func(d *table) {
		d.each(filters, func(r *rec) { found = append(found, r) })
	})
	compare := q.Comparer()
	slices.SortFunc(found, func(a, b *rec) int { return compare(&a.Stored, &b.Stored) })
	found = found[min(q.Offset, len(found)):]
	found = found[:min(q.Limit, len(found))]
	if q.IDs {
		out := make([]storage.Row, len(found))
		for i, r := range found {
			out[i] = r.Bare(q.Table)
		}
		return out, nil
	}
	return decode(q.Table, found)
}

// Count implements storage.Store.
func (s *Store) Count(ctx context.Context, q storage.Query) (int64, error) {
	q, filters, err := q.Ready()
	if err != nil {
		return 0, err
	}
	if err := s.tableOpen(ctx, q.Table); err != nil {
		return 0, err
	}
	n := 0
	s.among(q, func(d *table) { n += d.count(filters) })
	return int64(n), nil
}

// Claim implements storage.Store.
func (s *Store) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	filters, err := c.Ready()
	if err != nil {
		return nil, err
	}
	if err := s.tableOpen(ctx, c.Table); err != nil {
		return nil, err
	}
	if s.nothingDue(c, filters) {
		return nil, nil
	}
	if err := s.lock(ctx, true); err != nil {
		return nil, err
	}
	taken := s.claim(c, filters)
	s.mu.Unlock()
	return decode(c.Table, taken)
}

// nothingDue reports whether a claim during a host's transaction need not wait for it.
func (s *Store) nothingDue(c storage.Claim, filters []storage.Filter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := storage.Micros(c.Now)
	return s.held != nil && !slices.ContainsFunc(s.due[c.Table].rows, func(d dueRow) bool {
		return d.r.Due <= now && !d.stale() && d.wanted(c, filters)
	})
}

// wanted reports whether a claim asks for the row, if it is due.
func (d *dueRow) wanted(c storage.Claim, filters []storage.Filter) bool {
	return (c.Partition == "" || d.p.name == c.Partition) && !slices.Contains(c.Except, d.p.name) && matches(filters, &d.r.Stored)
}

// claim takes rows; s.mu is held.
func (s *Store) claim(c storage.Claim, filters []storage.Filter) []*rec {
	q := s.due[c.Table]
	var taken []*rec
	var passed []dueRow
	for now := storage.Micros(c.Now); len(taken) < c.Max && len(q.rows) > 0 && q.rows[0].r.Due <= now; {
		d := heap.Pop(q).(dueRow)
		switch {
		case d.stale():
		case !d.wanted(c, filters):
			passed = append(passed, d)
		default:
			r := *d.r
			r.Version++
			r.Due = storage.Micros(c.Until)
			s.set(s.writable(d.p.name), c.Table, &r)
			taken = append(taken, &r)
		}
	}
	for _, d := range passed {
		d.p = s.parts[d.p.name] // it may be a copy by now
		heap.Push(q, d)
	}
	return taken
}

// Peek implements storage.Peeker.
func (s *Store) Peek(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	filters, err := c.Ready()
	if err != nil {
		return nil, err
	}
	if err := s.tableOpen(ctx, c.Table); err != nil {
		return nil, err
	}
	return decode(c.Table, s.peek(c, filters))
}

func (s *Store) peek(c storage.Claim, filters []storage.Filter) (found []*rec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.due[c.Table]
	var met []dueRow
	for now := storage.Micros(c.Now); len(found) < c.Max && len(q.rows) > 0 && q.rows[0].r.Due <= now; {
		d := heap.Pop(q).(dueRow)
		if d.stale() {
			continue
		}
		if met = append(met, d); (c.Partition == "" || d.p.name == c.Partition) && matches(filters, &d.r.Stored) {
			found = append(found, d.r)
		}
	}
	for _, d := range met {
		heap.Push(q, d)
	}
	return found
}

// dueQueue is the due rows of a table, oldest first. Rows that have moved on
// stay in it until they are met or outnumber the others.
type dueQueue struct {
	rows []dueRow
	tidy int // size at which to sweep next
}

type dueRow struct {
	p *part
	t *storage.Table
	r *rec
}

func (d *dueRow) stale() bool { return d.p.table(d.t).rows[d.r.ID] != d.r }

func (q *dueQueue) push(p *part, t *storage.Table, r *rec) {
	heap.Push(q, dueRow{p, t, r})
	if len(q.rows) > max(q.tidy, 64) {
		q.rows = slices.DeleteFunc(q.rows, func(d dueRow) bool { return d.stale() })
		heap.Init(q)
		q.tidy = 2 * len(q.rows)
	}
}

// Len implements heap.Interface.
func (q *dueQueue) Len() int { return len(q.rows) }

// Less implements heap.Interface: by due, then partition and id.
func (q *dueQueue) Less(i, j int) bool {
	a, b := &q.rows[i], &q.rows[j]
	if a.r.Due != b.r.Due {
		return a.r.Due < b.r.Due
	}
	if a.p.name != b.p.name {
		return a.p.name < b.p.name
	}
	return a.r.ID < b.r.ID
}

// Swap implements heap.Interface.
func (q *dueQueue) Swap(i, j int) { q.rows[i], q.rows[j] = q.rows[j], q.rows[i] }

// Push implements heap.Interface.
func (q *dueQueue) Push(d any) { q.rows = append(q.rows, d.(dueRow)) }

// Pop implements heap.Interface.
func (q *dueQueue) Pop() any {
	d := q.rows[len(q.rows)-1]
	q.rows = q.rows[:len(q.rows)-1]
	return d
}
