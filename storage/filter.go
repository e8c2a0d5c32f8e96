package storage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// DefaultLimit is the page size of a Query that names none.
const DefaultLimit = 100

// Filter is a Cond made ready for a backend: the column is known, its values
// are scalars as Table.Encode makes them.
type Filter struct {
	Column string
	Kind   Kind
	Op     Op
	Values []any // one, or for In any number: none matches nothing
	at     int   // position in Table.Columns, or below 0
}

// Positions of the columns that every table has.
const (
	atID = -1 - iota
	atDue
	atVersion
)

// Filters makes the conditions ready. Decimal and JSON columns have no order
// and no one way to be written, so they cannot be compared: ErrMalformed.
func (t *Table) Filters(where []Cond) ([]Filter, error) {
	out := make([]Filter, len(where))
	for i, w := range where {
		c, at, err := t.sortable(w.Column)
		if err != nil {
			return nil, err
		}
		f := Filter{Column: w.Column, Kind: c.Kind, Op: w.Op, at: at}
		switch w.Op {
		case Eq, Ne, Lt, Le, Gt, Ge:
			s, err := c.Encode(w.Value)
			if err != nil {
				return nil, fmt.Errorf("%w: table %s: %w", ErrMalformed, t.Name, err)
			}
			f.Values = []any{s}
		case In:
			if f.Values, err = c.encodeAll(w.Value); err != nil {
				return nil, fmt.Errorf("%w: table %s: %w", ErrMalformed, t.Name, err)
			}
		default:
			return nil, fmt.Errorf("%w: table %s: no comparison %q", ErrMalformed, t.Name, w.Op)
		}
		for _, v := range f.Values {
			if s, ok := v.(string); ok && !ValidText(s) {
				return nil, fmt.Errorf("%w: table %s: column %s is compared with text that cannot be stored", ErrMalformed, t.Name, w.Column)
			}
		}
		out[i] = f
	}
	return out, nil
}

func (c *Column) encodeAll(list any) ([]any, error) {
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice {
		return nil, fmt.Errorf("column %s: In needs a slice, not %T", c.Name, list)
	}
	out := make([]any, v.Len())
	for i := range out {
		s, err := c.Encode(v.Index(i).Interface())
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

// sortable finds a column that may be compared and ordered by.
func (t *Table) sortable(name string) (Column, int, error) {
	switch name {
	case ColID:
		return Column{Name: name, Kind: Text}, atID, nil
	case ColDue:
		return Column{Name: name, Kind: Time}, atDue, nil
	case ColVersion:
		return Column{Name: name, Kind: Int}, atVersion, nil
	}
	i, ok := t.byName[name]
	if !ok {
		return Column{}, 0, fmt.Errorf("%w: table %s has no column %q", ErrMalformed, t.Name, name)
	}
	if k := t.Columns[i].Kind; k == Decimal || k == JSON {
		return Column{}, 0, fmt.Errorf("%w: table %s: column %s cannot be compared", ErrMalformed, t.Name, name)
	}
	return t.Columns[i], i, nil
}

// ValidText reports whether every backend can keep s: UTF-8 without a NUL.
func ValidText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// Stored is a row as backends hold it: scalars, not Go values.
type Stored struct {
	Partition Partition
	ID        string
	Version   int64
	Change    string
	Due       int64 // µs, 0 = never
	Scalars   []any // as Table.Encode made them
}

// Row decodes what is stored. The value shares nothing with it.
func (r *Stored) Row(t *Table) (Row, error) {
	v, err := t.Decode(r.Scalars)
	if err != nil {
		return Row{}, &RowError{Table: t.Name, Partition: r.Partition, ID: r.ID, Err: err}
	}
	return Row{Table: t, Partition: r.Partition, ID: r.ID, Version: r.Version, Change: r.Change, Due: FromMicros(r.Due), Value: v}, nil
}

// Readable decodes what a Claim took or a Find found: the rows that can be read, and the errors of the
// others.
func Readable(t *Table, taken []*Stored) (rows []Row, unread error) {
	rows = make([]Row, 0, len(taken))
	for _, r := range taken {
		row, err := r.Row(t)
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		rows = append(rows, row)
	}
	return rows, unread
}

// Bare is the row without its value: for Query.IDs.
func (r *Stored) Bare(t *Table) Row {
	return Row{Table: t, Partition: r.Partition, ID: r.ID, Version: r.Version, Change: r.Change, Due: FromMicros(r.Due)}
}

func (r *Stored) at(i int) any {
	switch i {
	case atID:
		return r.ID
	case atDue:
		return r.Due
	case atVersion:
		return r.Version
	}
	return r.Scalars[i]
}

// Match reports whether the row satisfies the filter: for backends that hold
// their rows in memory.
func (f *Filter) Match(r *Stored) bool {
	have := r.at(f.at)
	if f.Op == In {
		return slices.ContainsFunc(f.Values, func(v any) bool { return compareScalars(have, v) == 0 })
	}
	switch c := compareScalars(have, f.Values[0]); f.Op {
	case Eq:
		return c == 0
	case Ne:
		return c != 0
	case Lt:
		return c < 0
	case Le:
		return c <= 0
	case Gt:
		return c > 0
	default:
		return c >= 0
	}
}

func compareScalars(a, b any) int {
	switch x := a.(type) {
	case string:
		return cmp.Compare(x, b.(string))
	case int64:
		return cmp.Compare(x, b.(int64))
	default:
		return bytes.Compare(a.([]byte), b.([]byte))
	}
}

// Ready checks the query and fills in what it leaves open: its filters, the
// whole order down to the id, the limit, and Partitions: sorted, each once, nil for
// all. Errors wrap ErrMalformed.
func (q Query) Ready() (Query, []Filter, error) {
	if q.Table == nil || q.Limit < 0 || q.Offset < 0 {
		return q, nil, fmt.Errorf("%w: a query needs a table, and limit and offset of at least 0", ErrMalformed)
	}
	filters, err := q.Table.Filters(q.Where)
	if err != nil {
		return q, nil, err
	}
	switch {
	case q.Partitions == nil && q.Partition != "":
		q.Partitions = []Partition{q.Partition}
	case q.Partitions != nil && q.Partition != "":
		return q, nil, fmt.Errorf("%w: a query names one partition or several", ErrMalformed)
	case q.Partitions != nil:
		q.Partitions = slices.Compact(slices.Sorted(slices.Values(q.Partitions)))
		if q.Partitions == nil {
			q.Partitions = []Partition{}
		}
	}
	desc := false
	for _, o := range q.Order {
		if _, _, err := q.Table.sortable(o.Column); err != nil {
			return q, nil, err
		}
		desc = o.Desc
	}
	q.Order = append(slices.Clone(q.Order), Order{Column: ColID, Desc: desc})
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	return q, filters, nil
}

// Comparer orders rows as the ready query says; equal ids of different
// partitions are told apart by those.
func (q *Query) Comparer() func(a, b *Stored) int {
	at := make([]int, len(q.Order))
	for i, o := range q.Order {
		_, at[i], _ = q.Table.sortable(o.Column)
	}
	order := q.Order
	return func(a, b *Stored) int {
		for i := range order {
			c := compareScalars(a.at(at[i]), b.at(at[i]))
			if order[i].Desc {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return cmp.Compare(a.Partition, b.Partition)
	}
}

// Ready checks the claim. Errors wrap ErrMalformed.
func (c Claim) Ready() ([]Filter, error) {
	if c.Table == nil || c.Max <= 0 || c.Now.IsZero() || !c.Until.After(c.Now) {
		return nil, fmt.Errorf("%w: a claim needs a table, a positive max, now, and until after now", ErrMalformed)
	}
	return c.Table.Filters(c.Where)
}
