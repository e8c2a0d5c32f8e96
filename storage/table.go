package storage

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// Kind is how a column is stored: the same on every backend.
type Kind uint8

// The kinds of columns. Times are kept as microseconds UTC, decimals and
// structured values as text.
const (
	Text Kind = iota + 1
	Int
	Bool
	Time
	Decimal
	Bytes
	JSON
)

// Column is one field of a table.
type Column struct {
	Name  string
	Kind  Kind
	index []int
	typ   reflect.Type
}

// Table is what a domain declares and every backend keeps: typed columns, the
// keys that are unique within a partition, and the indexes that queries need.
// Tables are compared by pointer; declare each once, as a package variable.
type Table struct {
	Name    string
	Columns []Column
	Uniques [][]string
	Indexes [][]string
	Across  [][]string
	Short   []string
	flat    bool // no column of a kind that refers to what others may change
	typ     reflect.Type
	byName  map[string]int
}

// TableOf is a Table whose rows hold a T.
type TableOf[T any] struct{ *Table }

// TableOption refines a declaration.
type TableOption func(*Table)

// Unique makes the columns together unique within a partition.
func Unique(columns ...string) TableOption {
	return func(t *Table) { t.Uniques = append(t.Uniques, columns) }
}

// Index says that queries select or order by these columns, in this order,
// within a partition. The last one may be ColID: for queries that go on behind a row
// that they name.
func Index(columns ...string) TableOption {
	return func(t *Table) { t.Indexes = append(t.Indexes, columns) }
}

// Across says that workers select by these columns over all partitions. Databases then
// have an index that no partition leads.
func Across(columns ...string) TableOption {
	return func(t *Table) { t.Across = append(t.Across, columns) }
}

// Short says that the values of these columns are as short as those of indexed ones are:
// for columns that had an index in an earlier version. Databases keep them as they did.
func Short(columns ...string) TableOption {
	return func(t *Table) { t.Short = append(t.Short, columns...) }
}

// NewTable declares a table of T: a struct whose exported fields carry a tag
// `db:"column"` or `db:"column,json"`; a field without a tag or with "-" is a
// programming error. Fields may be of string, integer, bool, time.Time,
// decimal.Decimal or []byte kind; anything else must be tagged json. It panics
// on a malformed declaration, as it runs at start.
func NewTable[T any](name string, options ...TableOption) TableOf[T] {
	typ := reflect.TypeFor[T]()
	t := &Table{Name: name, typ: typ, byName: map[string]int{}}
	for i := range typ.NumField() {
		f := typ.Field(i)
		col, opt, _ := strings.Cut(f.Tag.Get("db"), ",")
		if col == "-" {
			continue
		}
		c := Column{Name: col, index: f.Index, typ: f.Type, Kind: kindOf(f.Type)}
		if opt == "json" {
			c.Kind = JSON
		}
		if _, taken := t.byName[col]; col == "" || taken || c.Kind == 0 || reserved(col) {
			panic(fmt.Sprintf("storage: table %s: field %s has no usable db tag", name, f.Name))
		}
		t.byName[col] = len(t.Columns)
		t.Columns = append(t.Columns, c)
	}
	t.flat = !slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Kind == JSON || c.Kind == Bytes })
	for _, o := range options {
		o(t)
	}
	for i, cols := range slices.Concat(t.Uniques, t.Indexes) {
		for n, c := range cols {
			last := i >= len(t.Uniques) && n > 0 && n == len(cols)-1
			if _, ok := t.byName[c]; !ok && (!last || c != ColID) {
				panic(fmt.Sprintf("storage: table %s: no column %s to index", name, c))
			}
		}
	}
	for _, c := range append(slices.Concat(t.Across...), t.Short...) {
		if _, ok := t.byName[c]; !ok {
			panic(fmt.Sprintf("storage: table %s: no column %s to index", name, c))
		}
	}
	return TableOf[T]{t}
}

func reserved(col string) bool {
	switch col {
	case "part", ColID, ColDue, ColVersion, "change_id", "lease", "claims":
		return true
	}
	return false
}

func kindOf(t reflect.Type) Kind {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return Time
	case t == reflect.TypeFor[decimal.Decimal]():
		return Decimal
	case t.Kind() == reflect.String:
		return Text
	case t.Kind() == reflect.Bool:
		return Bool
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return Int
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return Bytes
	}
	return 0
}

// Column finds a column by name; ok is false where the table has none.
func (t *Table) Column(name string) (Column, bool) {
	i, ok := t.byName[name]
	if !ok {
		return Column{}, false
	}
	return t.Columns[i], true
}

// Encode turns a row's value into one scalar per column, in the order of
// Columns: string (Text, Decimal, JSON), int64 (Int, Time: µs, 0 = zero time;
// Bool: 0 or 1) or []byte. The error wraps ErrMalformed.
func (t *Table) Encode(value any) ([]any, error) {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.Type() != t.typ {
		return nil, fmt.Errorf("%w: table %s takes %v, not %T", ErrMalformed, t.Name, t.typ, value)
	}
	out := make([]any, len(t.Columns))
	for i := range t.Columns {
		c := &t.Columns[i]
		s, err := c.Encode(v.FieldByIndex(c.index).Interface())
		if err != nil {
			return nil, fmt.Errorf("%w: table %s: %w", ErrMalformed, t.Name, err)
		}
		out[i] = s
	}
	return out, nil
}

// Zero is the scalar of the column's zero value: what a row has that was stored before
// the column was declared.
func (c *Column) Zero() (any, error) { return c.Encode(reflect.Zero(c.typ).Interface()) }

// Encode turns one value of the column's type into its scalar; see Table.Encode.
func (c *Column) Encode(value any) (any, error) {
	v := reflect.ValueOf(value)
	if c.Kind == JSON {
		b, err := json.Marshal(value)
		return string(b), err
	}
	if !v.IsValid() || kindOf(v.Type()) != c.Kind {
		return nil, fmt.Errorf("column %s cannot hold %T", c.Name, value)
	}
	switch c.Kind {
	case Text:
		return v.String(), nil
	case Int:
		return v.Int(), nil
	case Bool:
		if v.Bool() {
			return int64(1), nil
		}
		return int64(0), nil
	case Time:
		return Micros(value.(time.Time)), nil
	case Decimal:
		return ledger.PlainString(value.(decimal.Decimal)), nil
	default:
		return append([]byte{}, v.Bytes()...), nil
	}
}

// Flat reports whether a decoded value can be given to any number of readers:
// none of them can change what another sees through it.
func (t *Table) Flat() bool { return t.flat }

// Decode is the inverse of Encode. Scalars may also arrive as []byte for text.
func (t *Table) Decode(scalars []any) (any, error) {
	if len(scalars) != len(t.Columns) {
		return nil, fmt.Errorf("%w: table %s has %d columns, not %d", ErrMalformed, t.Name, len(t.Columns), len(scalars))
	}
	v := reflect.New(t.typ).Elem()
	for i := range t.Columns {
		c := &t.Columns[i]
		if err := c.decode(v.FieldByIndex(c.index), scalars[i]); err != nil {
			return nil, fmt.Errorf("storage: table %s: column %s: %w", t.Name, c.Name, err)
		}
	}
	return v.Interface(), nil
}

func (c *Column) decode(f reflect.Value, scalar any) error {
	if b, ok := scalar.([]byte); ok && c.Kind != Bytes {
		scalar = string(b)
	}
	switch c.Kind {
	case Text, Decimal, JSON:
		s, ok := scalar.(string)
		if !ok {
			return fmt.Errorf("text expected, found %T", scalar)
		}
		switch c.Kind {
		case Text:
			f.SetString(s)
		case JSON:
			return json.Unmarshal([]byte(s), f.Addr().Interface())
		default:
			d, err := ledger.ParsePlain(s) // no limit that a host could have moved
			if err != nil {
				return err
			}
			f.Set(reflect.ValueOf(d))
		}
	case Bytes:
		switch b := scalar.(type) {
		case []byte:
			if len(b) > 0 { // empty and nil are one value
				f.SetBytes(slices.Clone(b))
			}
		case string:
			if b != "" {
				f.SetBytes([]byte(b))
			}
		case nil:
		default:
			return fmt.Errorf("bytes expected, found %T", scalar)
		}
	default:
		n, ok := scalar.(int64)
		if !ok {
			return fmt.Errorf("integer expected, found %T", scalar)
		}
		switch c.Kind {
		case Int:
			f.SetInt(n)
		case Bool:
			f.SetBool(n != 0)
		default:
			f.Set(reflect.ValueOf(FromMicros(n)))
		}
	}
	return nil
}

// Micros is a time as every backend keeps it: µs since 1970 UTC, 0 for the
// zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros is the inverse of Micros, in UTC.
func FromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// Row makes a row of this table for a Change. Version 0 inserts.
func (t TableOf[T]) Row(id string, version int64, due time.Time, value T) Row {
	return Row{Table: t.Table, ID: id, Version: version, Due: due, Value: value}
}

// Value is the typed content of a row of this table.
func (t TableOf[T]) Value(r Row) T { return r.Value.(T) }

// Guard demands that the row id stands at version; 0 = must not exist.
func (t TableOf[T]) Guard(id string, version int64) Guard {
	return Guard{Table: t.Table, ID: id, Version: version}
}
