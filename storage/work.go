package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/cryptopay-go/cryptopay/ledger"
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
// its context from Apart. Error i belongs to item i. Where an item panics, the others are
// done all the same; then Work panics with the first item's value.
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
	var broken any // what the first item that panicked did so with
	defer func() {
		for _, w := range workers {
			if w != nil {
				w.stop()
			}
		}
	}()
	for len(order) > 0 {
		var asked, shared []*request
		var waiting []int
		for n := 0; n < len(order); n++ {
			i := order[n]
			if workers[i] == nil {
				workers[i] = newWorker(ctx, base, func(ctx context.Context) { errs[i] = do(ctx, items[i]) })
			}
			w := workers[i]
			if w.shares == nil {
				r, p := w.goOn()
				if broken == nil {
					broken = p
				}
				if r == nil {
					if k := key(items[i]); len(behind[k]) > 0 {
						order, behind[k] = append(order, behind[k][0]), behind[k][1:]
					}
					continue
				}
				if r.share == nil {
					asked, waiting = append(asked, r), append(waiting, i)
					continue
				}
				w.shares = r
			}
			shared, waiting = append(shared, w.shares), append(waiting, i)
		}
		if order = waiting; len(asked) > 0 {
			answer(ctx, base, asked)
			continue
		}
		share(ctx, base, shared)
		for _, i := range waiting {
			workers[i].shares = nil
		}
	}
	if broken != nil {
		panic(broken)
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

// Together has items of Work write as one what they write to the same object, such as a
// sum that each of them adds to. An item is put aside until every other item has come as
// far, or waits at a Together as well. Then do gets what the items with the same key
// brought, in their order, and returns an answer for each. Where there is no Work, do gets
// in alone. One key is of one do.
func Together[In, Out any](ctx context.Context, key string, in In, do func(ctx context.Context, all []In) []Out) Out {
	w, _ := ctx.Value(workKey{}).(*worker)
	if w == nil {
		return do(ctx, []In{in})[0]
	}
	r := &request{share: &shared{key: key, in: in, do: func(ctx context.Context, all []*request) {
		list := make([]In, len(all))
		for i, r := range all {
			list[i], _ = r.share.in.(In) // nil of an interface is not of it
		}
		for i, out := range do(ctx, list) {
			all[i].share.out = out
		}
	}}}
	if w.ask(r); r.err != nil { // the Work has ended by a panic, and everything that do asks has, too
		return do(ctx, []In{in})[0]
	}
	if r.share.broken != nil { // what do had committed before stays, as where a process dies
		panic(r.share.broken)
	}
	out, _ := r.share.out.(Out)
	return out
}

type workKey struct{}

// worker is one item on its way.
type worker struct {
	base   Store
	next   func() (*request, bool) // goes on until the item asks, or is done
	stop   func()
	yield  func(*request) bool
	shares *request // a Together that the item waits at
}

func newWorker(ctx context.Context, base Store, do func(context.Context)) *worker {
	w := &worker{base: base}
	w.next, w.stop = iter.Pull(func(yield func(*request) bool) {
		w.yield = yield
		do(context.WithValue(ctx, workKey{}, w))
	})
	return w
}

// goOn lets the item come to its next request, or to its end: then there is none. It
// returns what the item panicked with.
func (w *worker) goOn() (r *request, broken any) {
	defer func() { broken = recover() }()
	r, _ = w.next()
	return r, nil
}

// errOver is what an item gets that asks after its Work has ended by a panic of the store.
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
	count   bool // how many rows the query finds
	changes []Change
	of      *holders
	share   *shared

	rows     []Row
	n        int64
	balances []ledger.Balance
	err      error
	errs     []error
}

// holders are accounts whose balances are asked for; all of the partition where none is
// named, or all of the house's.
type holders struct {
	partition Partition
	accounts  []ledger.Account
	house     bool
}

// shared is what an item brings to a Together, and its answer.
type shared struct {
	key     string
	in, out any
	broken  any // what do panicked with
	do      func(ctx context.Context, all []*request)
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
	if len(changes) == 0 {
		return nil
	}
	r := &request{changes: slices.Clone(changes)}
	for i := range r.changes {
		r.changes[i].NoWait = true
	}
	w.ask(r)
	return r.errs
}

func (j joined) Count(ctx context.Context, q Query) (int64, error) {
	w := j.worker(ctx)
	if w == nil {
		return j.Store.Count(ctx, q)
	}
	r := &request{query: &q, count: true}
	w.ask(r)
	return r.n, r.err
}

func (j joined) Balances(ctx context.Context, p Partition, accounts ...ledger.Account) ([]ledger.Balance, error) {
	w := j.worker(ctx)
	if w == nil {
		return j.Store.Balances(ctx, p, accounts...)
	}
	r := &request{of: &holders{partition: p, accounts: accounts}}
	w.ask(r)
	return r.balances, r.err
}

// HouseBalances is the ability of the Store behind it, or does without.
func (j joined) HouseBalances(ctx context.Context, p Partition) ([]ledger.Balance, error) {
	w := j.worker(ctx)
	if w == nil {
		return p.HouseBalances(ctx, j.Store)
	}
	r := &request{of: &holders{partition: p, house: true}}
	w.ask(r)
	return r.balances, r.err
}

// group puts together what has the same key, in the order of the first of each.
func group[K comparable](list []*request, key func(*request) K) [][]*request {
	at := map[K]int{}
	var out [][]*request
	for _, r := range list {
		k := key(r)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k], out = i, append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

// share does what the items at a Together brought, each key at once. Where that panics, the
// items of the key do.
func share(ctx context.Context, s Store, list []*request) {
	groups := group(list, func(r *request) string { return r.share.key })
	Work(ctx, s, groups, func(g []*request) string { return g[0].share.key }, func(ctx context.Context, g []*request) error {
		defer func() {
			if p := recover(); p != nil {
				for _, r := range g {
					r.share.broken = p
				}
			}
		}()
		g[0].share.do(ctx, g)
		return nil
	})
}

// answer asks the store for all, in as few calls as it can.
func answer(ctx context.Context, s Store, asked []*request) {
	var rows, queries, single, balances, commits []*request
	for _, r := range asked {
		switch {
		case r.changes != nil:
			commits = append(commits, r)
		case r.of != nil:
			balances = append(balances, r)
		case r.query == nil:
			rows = append(rows, r)
		case r.count || !joins(r.query):
			single = append(single, r)
		default:
			queries = append(queries, r)
		}
	}
	rowsOf(ctx, s, group(rows, func(r *request) *Table { return r.table }))
	for _, g := range group(queries, func(r *request) shape { return shapeOf(r.query) }) {
		for _, some := range narrow(g) {
			find(ctx, s, some)
		}
	}
	for _, g := range group(single, func(r *request) sort { return sort{r.query.Table, r.query.Partition, r.count} }) {
		alone(ctx, s, g)
	}
	type kind struct {
		partition    Partition
		named, house bool
	}
	for _, g := range group(balances, func(r *request) kind { return kind{r.of.partition, len(r.of.accounts) > 0, r.of.house} }) {
		balancesOf(ctx, s, g)
	}
	commit(ctx, s, commits)
}

// sort tells apart what cannot be the same question.
type sort struct {
	table     *Table
	partition Partition
	other     bool
}

// alone asks each question that was not asked yet.
func alone(ctx context.Context, s Store, list []*request) {
	for i, r := range list {
		same := slices.IndexFunc(list[:i], func(o *request) bool { return reflect.DeepEqual(o.query, r.query) })
		switch {
		case same >= 0:
			r.n, r.rows, r.err = list[same].n, slices.Clone(list[same].rows), list[same].err
		case r.count:
			r.n, r.err = s.Count(ctx, *r.query)
		default:
			r.rows, r.err = s.Find(ctx, *r.query)
		}
	}
}

// balancesOf asks for the balances of all accounts of a partition that are named, or of
// all there are where none is, or of the house's.
func balancesOf(ctx context.Context, s Store, list []*request) {
	var all []ledger.Account
	seen := map[ledger.Account]bool{}
	for _, r := range list {
		for _, a := range r.of.accounts {
			if !seen[a] {
				seen[a], all = true, append(all, a)
			}
		}
	}
	p := list[0].of.partition
	var balances []ledger.Balance
	var err error
	if list[0].of.house {
		balances, err = p.HouseBalances(ctx, s)
	} else {
		balances, err = s.Balances(ctx, p, all...)
	}
	for _, r := range list {
		r.err = err
		for _, b := range balances {
			if len(all) == 0 || slices.Contains(r.of.accounts, b.Account) {
				r.balances = append(r.balances, b)
			}
		}
	}
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

// lookup is the keys that requests ask of one table, each id once.
type lookup struct {
	table *Table
	keys  []Key
	at    map[rowID]int // of keys
	list  []*request
}

type rowID struct {
	partition Partition
	id        string
}

func newLookup(list []*request) *lookup {
	l := &lookup{table: list[0].table, at: map[rowID]int{}, list: list}
	for _, r := range list {
		for _, k := range r.keys {
			if len(k.Unique) == 0 {
				if _, asked := l.at[rowID{k.Partition, k.ID}]; asked {
					continue
				}
				l.at[rowID{k.Partition, k.ID}] = len(l.keys)
			}
			l.keys = append(l.keys, k)
		}
	}
	return l
}

// rowsOf reads rows by all their keys: one look-up for each table, and all of them in one
// round trip where the store can.
func rowsOf(ctx context.Context, s Store, tables [][]*request) {
	var lookups []*lookup
	var asks []Ask
	for _, list := range tables {
		if l := newLookup(list); len(l.keys) > 0 {
			lookups, asks = append(lookups, l), append(asks, Ask{Table: l.table, Keys: l.keys})
		}
	}
	if a, ok := s.(Asker); ok && len(asks) > 1 {
		found, err := a.Ask(ctx, asks...)
		if !unread(err) {
			for i, l := range lookups {
				var rows []Row
				if err == nil {
					rows = found[i]
				}
				l.give(rows, err)
			}
			return
		}
	}
	for _, l := range lookups {
		rows, err := s.Rows(ctx, l.table, l.keys...)
		if unread(err) { // it is one item's
			for _, r := range l.list {
				r.rows, r.err = s.Rows(ctx, l.table, r.keys...)
			}
			continue
		}
		l.give(rows, err)
	}
}

// give hands each request its rows.
func (l *lookup) give(rows []Row, err error) {
	found := make([]*Row, len(l.keys)) // rows come in the order of their keys, and some keys have none
	for i := range l.keys {
		if len(rows) > 0 && l.table.names(&l.keys[i], &rows[0]) {
			found[i], rows = &rows[0], rows[1:]
		}
	}
	next := 0 // of keys
	for _, r := range l.list {
		r.err = err
		for _, k := range r.keys {
			i := next
			if len(k.Unique) == 0 {
				i = l.at[rowID{k.Partition, k.ID}]
			}
			if i == next {
				next++
			}
			if found[i] != nil {
				r.rows = append(r.rows, *found[i])
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

// shape is what queries have in common that can be asked as one: the columns in which
// each asks for one value, and what else they ask for.
type shape struct {
	table *Table
	where string
	limit int
}

// joins reports whether a query can be asked together with others: one for rows of one
// partition, some column of which has one value.
func joins(q *Query) bool {
	if q.Partition == "" || len(q.Order) > 0 || q.Offset > 0 || q.IDs || limitOf(q) < 1 {
		return false
	}
	one := false
	for i := range q.Where {
		switch c, ok := q.Table.Column(q.Where[i].Column); {
		case !ok:
			return false
		case q.Where[i].Op != Eq:
		case reflect.TypeOf(q.Where[i].Value) != c.typ:
			return false
		default:
			one = true
		}
	}
	return one
}

func limitOf(q *Query) int {
	if q.Limit == 0 {
		return DefaultLimit
	}
	return q.Limit
}

func shapeOf(q *Query) shape {
	sh := shape{table: q.Table, limit: limitOf(q)}
	for _, c := range q.Where {
		if c.Op != Eq {
			sh.where += fmt.Sprintf("%s %s %#v\n", c.Column, c.Op, c.Value)
			continue
		}
		sh.where += c.Column + "\n"
	}
	return sh
}

// maxSpread bounds the places that a joined query looks at, for each query in it. A place
// is one partition with one value in each column: a backend may look at every one of them,
// and queries of a hundred tenants for a value each have ten thousand.
const maxSpread = 4

// narrow divides queries of one shape so that each part looks at few places. Queries of
// one partition come together.
func narrow(list []*request) (parts [][]*request) {
	var at places
	last := -1
	for _, some := range group(list, func(r *request) Partition { return r.query.Partition }) {
		for _, r := range some {
			if last < 0 || at.with(r.query) > maxSpread*(len(parts[last])+1) {
				at = places{seen: map[placed]bool{}, different: map[int]int{}}
				at.with(r.query)
				parts, last = append(parts, nil), last+1
			}
			parts[last] = append(parts[last], r)
		}
	}
	return parts
}

// places counts what queries ask for: partitions, and values by condition.
type places struct {
	seen      map[placed]bool
	different map[int]int
}

type placed struct {
	condition int // -1: the partition
	value     any
}

// with adds a query and returns how many places all of them look at.
func (p *places) with(q *Query) int {
	all := p.add(-1, q.Partition)
	for i, c := range q.Where {
		if c.Op == Eq {
			all *= p.add(i, c.Value)
		}
	}
	return all
}

func (p *places) add(condition int, value any) int {
	at := placed{condition, value}
	known := false
	if reflect.ValueOf(value).Comparable() {
		known, p.seen[at] = p.seen[at], true
	}
	if !known {
		p.different[condition]++
	}
	return p.different[condition]
}

// find asks for the rows of all these queries at once, and each by itself where that
// finds more than it can hold.
func find(ctx context.Context, s Store, list []*request) {
	first := list[0].query
	q := Query{Table: first.Table, Partitions: []Partition{}}
	parts := map[Partition]bool{}
	for _, r := range list {
		if !parts[r.query.Partition] {
			parts[r.query.Partition], q.Partitions = true, append(q.Partitions, r.query.Partition)
		}
	}
	different := len(q.Partitions)
	for i, c := range first.Where {
		if c.Op == Eq {
			values := valuesOf(list, i)
			different = max(different, values.Len())
			c.Op, c.Value = In, values.Interface()
		}
		q.Where = append(q.Where, c)
	}
	if q.Limit = limitOf(first) * len(list); different == 1 {
		alone(ctx, s, list)
		return
	}
	rows, err := s.Find(ctx, q)
	if err == nil && len(rows) == q.Limit || unread(err) {
		alone(ctx, s, list)
		return
	}
	for _, r := range list {
		r.err = err
		for i := range rows {
			if len(r.rows) < limitOf(first) && r.query.finds(&rows[i]) {
				r.rows = append(r.rows, rows[i])
			}
		}
	}
}

// valuesOf lists the different values that queries ask for in one condition.
func valuesOf(list []*request, i int) reflect.Value {
	values := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(list[0].query.Where[i].Value)), 0, len(list))
	seen := map[any]bool{}
	for _, r := range list {
		v := r.query.Where[i].Value
		if reflect.ValueOf(v).Comparable() {
			if seen[v] {
				continue
			}
			seen[v] = true
		}
		values = reflect.Append(values, reflect.ValueOf(v))
	}
	return values
}

// finds reports whether a row has what the query asks for by value.
func (q *Query) finds(r *Row) bool {
	if r.Partition != q.Partition {
		return false
	}
	for _, c := range q.Where {
		if c.Op == Eq && !q.Table.holds(c.Column, c.Value, r) {
			return false
		}
	}
	return true
}
