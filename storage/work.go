package storage

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
)

// Work does items of due work together, so that many of them cost few calls of the store.
// Each item is decided on by do, as if it were alone. Where an item's do asks a Joined
// store, it is put aside until every other item has come as far; then one look-up for
// each table answers all, and one Commit takes all Changes. An item whose Change is
// ErrConflict decides again by itself, as Decide does.
//
// Items with the same key are done one after the other, in their order: they are about
// one object, so that no Commit has two Changes that write it. Changes do not wait: of a
// partition that is locked elsewhere they are ErrBusy, and the item stays due.
//
// Work starts no goroutine, and the order of everything depends on the items alone. do
// must ask the store from where it was called; what it hands to other goroutines gets
// its context from Apart. Error i belongs to item i.
func Work[T any](ctx context.Context, s Store, items []T, key func(T) string, do func(ctx context.Context, item T) error) []error {
	errs := make([]error, len(items))
	base := s
	if j, ok := s.(joined); ok {
		base = j.Store
	}
	var order []int
	behind := map[string][]int{} // items that wait for one of the same key
	for i := range items {
		k := key(items[i])
		others, taken := behind[k]
		if taken {
			behind[k] = append(others, i)
			continue
		}
		behind[k] = nil
		order = append(order, i)
	}
	workers := make([]*worker, len(items))
	defer func() {
		for _, w := range workers {
			if w != nil {
				w.stop()
			}
		}
	}()
	for len(order) > 0 {
		var asked []*request
		var waiting []int
		for n := 0; n < len(order); n++ {
			i := order[n]
			if workers[i] == nil {
				workers[i] = newWorker(ctx, base, func(ctx context.Context) { errs[i] = do(ctx, items[i]) })
			}
			if r, ok := workers[i].next(); ok {
				asked, waiting = append(asked, r), append(waiting, i)
				continue
			}
			if k := key(items[i]); len(behind[k]) > 0 {
				order, behind[k] = append(order, behind[k][0]), behind[k][1:]
			}
		}
		answer(ctx, base, asked)
		order = waiting
	}
	return errs
}

// Joined is the store through which the items of Work ask together. For everybody else it
// is s itself.
func Joined(s Store) Store {
	if j, ok := s.(joined); ok {
		return j
	}
	return joined{s}
}

// Apart is the context for what may outlast an item of Work, or ask the store from
// another goroutine: a host's hook.
func Apart(ctx context.Context) context.Context {
	if ctx.Value(workKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, workKey{}, (*worker)(nil))
}

type workKey struct{}

// worker is one item on its way.
type worker struct {
	base  Store
	next  func() (*request, bool) // goes on until the item asks, or is done
	stop  func()
	yield func(*request) bool
}

func newWorker(ctx context.Context, base Store, do func(context.Context)) *worker {
	w := &worker{base: base}
	w.next, w.stop = iter.Pull(func(yield func(*request) bool) {
		w.yield = yield
		do(context.WithValue(ctx, workKey{}, w))
	})
	return w
}

// errOver is what an item gets that asks after its Work has ended by a panic.
var errOver = errors.New("storage: the work was broken off")

func (w *worker) ask(r *request) {
	if !w.yield(r) { // nobody answers any more
		r.err = errOver
		r.errs = slices.Repeat([]error{errOver}, len(r.changes))
	}
}

// request is what an item asks, and the answer.
type request struct {
	table   *Table
	keys    []Key
	query   *Query
	changes []Change

	rows []Row
	err  error
	errs []error
}

type joined struct{ Store }

// worker is the item of Work that asks; nil where none does.
func (j joined) worker(ctx context.Context) *worker {
	w, _ := ctx.Value(workKey{}).(*worker)
	if w == nil || !reflect.ValueOf(j.Store).Comparable() || w.base != j.Store {
		return nil
	}
	return w
}

func (j joined) Rows(ctx context.Context, t *Table, keys ...Key) ([]Row, error) {
	w := j.worker(ctx)
	if w == nil {
		return j.Store.Rows(ctx, t, keys...)
	}
	r := &request{table: t, keys: keys}
	w.ask(r)
	return r.rows, r.err
}

func (j joined) Find(ctx context.Context, q Query) ([]Row, error) {
	w := j.worker(ctx)
	if w == nil {
		return j.Store.Find(ctx, q)
	}
	r := &request{query: &q}
	w.ask(r)
	return r.rows, r.err
}

func (j joined) Commit(ctx context.Context, changes ...Change) []error {
	w := j.worker(ctx)
	if w == nil {
		return j.Store.Commit(ctx, changes...)
	}
	r := &request{changes: slices.Clone(changes)}
	for i := range r.changes {
		r.changes[i].NoWait = true
	}
	w.ask(r)
	return r.errs
}

// answer asks the store for all, in as few calls as it can.
func answer(ctx context.Context, s Store, asked []*request) {
	var commits []*request
	byTable, byShape := map[*Table][]*request{}, map[shape][]*request{}
	var tables []*Table
	var shapes []shape
	for _, r := range asked {
		switch {
		case r.changes != nil:
			commits = append(commits, r)
		case r.query == nil:
			if byTable[r.table] == nil {
				tables = append(tables, r.table)
			}
			byTable[r.table] = append(byTable[r.table], r)
		default:
			sh, ok := shapeOf(r.query)
			if !ok {
				r.rows, r.err = s.Find(ctx, *r.query)
				continue
			}
			if byShape[sh] == nil {
				shapes = append(shapes, sh)
			}
			byShape[sh] = append(byShape[sh], r)
		}
	}
	rowsOf(ctx, s, tables, byTable)
	for _, sh := range shapes {
		find(ctx, s, sh, byShape[sh])
	}
	commit(ctx, s, commits)
}

func commit(ctx context.Context, s Store, list []*request) {
	var all []Change
	for _, r := range list {
		all = append(all, r.changes...)
	}
	if len(all) == 0 {
		return
	}
	errs := s.Commit(ctx, all...)
	for _, r := range list {
		r.errs, errs = errs[:len(r.changes):len(r.changes)], errs[len(r.changes):]
	}
}

// rowsOf reads rows by all their keys: one look-up for each table, and all of them in one
// round trip where the store can.
func rowsOf(ctx context.Context, s Store, tables []*Table, by map[*Table][]*request) {
	asks := make([]Ask, len(tables))
	for i, t := range tables {
		asks[i].Table = t
		for _, r := range by[t] {
			asks[i].Keys = append(asks[i].Keys, r.keys...)
		}
	}
	if a, ok := s.(Asker); ok && len(asks) > 1 {
		found, err := a.Ask(ctx, asks...)
		for i, t := range tables {
			var rows []Row
			if err == nil {
				rows = found[i]
			}
			share(t, by[t], rows, err)
		}
		return
	}
	for i, t := range tables {
		rows, err := s.Rows(ctx, t, asks[i].Keys...)
		share(t, by[t], rows, err)
	}
}

// share gives each request its rows.
func share(t *Table, list []*request, rows []Row, err error) {
	for _, r := range list {
		if r.err = err; err != nil {
			continue
		}
		for i := range r.keys { // rows come in the order of their keys, and some keys have none
			if len(rows) > 0 && t.names(&r.keys[i], &rows[0]) {
				r.rows, rows = append(r.rows, rows[0]), rows[1:]
			}
		}
	}
}

// names reports whether a row has this key.
func (t *Table) names(k *Key, r *Row) bool {
	if r.Partition != k.Partition || len(k.Unique) == 0 {
		return r.Partition == k.Partition && r.ID == k.ID
	}
	for i, name := range k.Unique {
		if !t.holds(name, k.Values[i], r) {
			return false
		}
	}
	return true
}

// holds reports whether a column of the row holds a value.
func (t *Table) holds(column string, value any, r *Row) bool {
	c := &t.Columns[t.byName[column]]
	want, err := c.Encode(value)
	have, err2 := c.Encode(reflect.ValueOf(r.Value).FieldByIndex(c.index).Interface())
	return err == nil && err2 == nil && reflect.DeepEqual(want, have)
}

// shape is what queries have in common that can be asked as one: those for the rows of
// one partition with one value in one column.
type shape struct {
	table  *Table
	column string
	limit  int
}

func shapeOf(q *Query) (shape, bool) {
	if q.Partition == "" || len(q.Where) != 1 || len(q.Order) > 0 || q.Offset > 0 || q.IDs || q.Where[0].Op != Eq {
		return shape{}, false
	}
	c, ok := q.Table.Column(q.Where[0].Column)
	if !ok || reflect.TypeOf(q.Where[0].Value) != c.typ {
		return shape{}, false
	}
	limit := q.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	return shape{q.Table, c.Name, limit}, limit > 0
}

// find asks for the rows of all these queries at once, and each by itself where that
// finds more than it can hold.
func find(ctx context.Context, s Store, sh shape, list []*request) {
	if len(list) > 1 {
		q := Query{Table: sh.table, Partitions: []Partition{}, Limit: sh.limit * len(list)}
		values := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(list[0].query.Where[0].Value)), 0, len(list))
		for _, r := range list {
			q.Partitions = append(q.Partitions, r.query.Partition)
			values = reflect.Append(values, reflect.ValueOf(r.query.Where[0].Value))
		}
		q.Where = []Cond{{Column: sh.column, Op: In, Value: values.Interface()}}
		rows, err := s.Find(ctx, q)
		if err != nil || len(rows) < q.Limit {
			for _, r := range list {
				r.err = err
				for i := range rows {
					if rows[i].Partition == r.query.Partition && len(r.rows) < sh.limit && sh.table.holds(sh.column, r.query.Where[0].Value, &rows[i]) {
						r.rows = append(r.rows, rows[i])
					}
				}
			}
			return
		}
	}
	for _, r := range list {
		r.rows, r.err = s.Find(ctx, *r.query)
	}
}
