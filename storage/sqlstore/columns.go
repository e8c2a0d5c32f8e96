package sqlstore

import (
	"slices"
	"sync"

	"github.com/cryptopay-go/cryptopay/storage"
)

// columns is a choice of a table's columns, ready to be scanned.
type columns struct {
	names []string
	kinds []storage.Kind
	place []int // in Table.Columns
}

// tableColumns is what statements need of a table: made once.
type tableColumns struct {
	all    columns
	unique columns // those that are part of a unique key
}

var shapes sync.Map // *storage.Table → *tableColumns

func columnsOf(t *storage.Table) *tableColumns {
	if c, ok := shapes.Load(t); ok {
		return c.(*tableColumns)
	}
	c := &tableColumns{}
	unique := slices.Concat(t.Uniques...)
	for i := range t.Columns {
		c.all.add(t, i)
		if slices.Contains(unique, t.Columns[i].Name) {
			c.unique.add(t, i)
		}
	}
	shapes.Store(t, c)
	return c
}

func columnsNamed(t *storage.Table, names []string) *columns {
	c := &columns{}
	for _, name := range names {
		c.add(t, slices.IndexFunc(t.Columns, func(c storage.Column) bool { return c.Name == name }))
	}
	return c
}

func (c *columns) add(t *storage.Table, i int) {
	c.names = append(c.names, t.Columns[i].Name)
	c.kinds = append(c.kinds, t.Columns[i].Kind)
	c.place = append(c.place, i)
}

// dest is where Scan puts the columns.
func (c *columns) dest() []any {
	out := make([]any, len(c.kinds))
	for i, k := range c.kinds {
		switch k {
		case storage.Int, storage.Bool, storage.Time:
			out[i] = new(int64)
		case storage.Bytes:
			out[i] = new([]byte)
		default:
			out[i] = new(string)
		}
	}
	return out
}

// scalars is what Scan has put there.
func (c *columns) scalars(dest []any) []any {
	out := make([]any, len(dest))
	for i := range dest {
		switch v := dest[i].(type) {
		case *int64:
			out[i] = *v
		case *[]byte:
			out[i] = *v
		case *string:
			out[i] = *v
		}
	}
	return out
}

// spread puts the scalars to their places among all of the table's columns.
func (c *columns) spread(t *storage.Table, dest []any) []any {
	out := make([]any, len(t.Columns))
	for i, v := range c.scalars(dest) {
		out[c.place[i]] = v
	}
	return out
}
