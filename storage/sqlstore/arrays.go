package sqlstore

import (
	"strings"

	"github.com/cryptopay-go/cryptopay/storage"
)

// unnest is a table of values that travel as one array per column.
func (d *Dialect) unnest(kinds []storage.Kind) string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = "CAST(? AS " + d.Arrays[k] + ")"
	}
	return "unnest(" + strings.Join(out, ", ") + ")"
}

// join is what a query for rows among keys joins with: their arrays.
func (d *Dialect) join(columns []string, kinds []storage.Kind) string {
	names, on := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i] = "wanted_" + string(rune('a'+i))
		on[i] = c + " = " + names[i]
	}
	return " JOIN " + d.unnest(kinds) + " AS wanted (" + strings.Join(names, ", ") + ") ON " + strings.Join(on, " AND ")
}

// among is a condition on columns, of these kinds, to be among keys.
func (d *Dialect) among(columns []string, kinds []storage.Kind, keys []any) (cond string, args []any) {
	cond = "(" + strings.Join(columns, ", ") + ") IN ("
	if d.Arrays != nil {
		return cond + "SELECT * FROM " + d.unnest(kinds) + ")", transpose(kinds, keys)
	}
	return cond + d.tuples(kinds, len(keys)/len(kinds)) + ")", keys
}

// transpose turns rows of values into one array per column.
func transpose(kinds []storage.Kind, rows []any) []any {
	w := len(kinds)
	n := len(rows) / w
	out := make([]any, w)
	for c, k := range kinds {
		switch k {
		case storage.Int, storage.Bool, storage.Time:
			list := make([]int64, n)
			for i := range list {
				list[i] = rows[i*w+c].(int64)
			}
			out[c] = list
		case storage.Bytes:
			list := make([][]byte, n)
			for i := range list {
				list[i] = rows[i*w+c].([]byte)
				if list[i] == nil { // a nil one would be NULL
					list[i] = []byte{}
				}
			}
			out[c] = list
		default:
			list := make([]string, n)
			for i := range list {
				list[i] = rows[i*w+c].(string)
			}
			out[c] = list
		}
	}
	return out
}
