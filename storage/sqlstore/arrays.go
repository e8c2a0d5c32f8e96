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

// among is a condition on columns, of these kinds, to be among the first of the keys, as
// many as one statement takes, and the keys that are left.
func (s *Store) among(columns []string, kinds []storage.Kind, keys []any) (cond string, args, left []any) {
	if s.d.Arrays == nil {
		return s.amongTuples(columns, keys)
	}
	n := min(len(keys), len(kinds)*s.most(len(kinds)))
	return "(" + strings.Join(columns, ", ") + ") IN (SELECT * FROM " + s.d.unnest(kinds) + ")", transpose(kinds, keys[:n]), keys[n:]
}

// fewTuples is how many tuples of several columns a list after IN has at the most: MariaDB
// plans it in the square of its length, a millisecond for 32 and 130 for 256.
const fewTuples = 32

// amongTuples is among where keys travel as a list after IN. Keys that follow each other
// and share their first column, the partition, are looked for in it. A list is filled up
// with its last key, so that few different texts are in use.
func (s *Store) amongTuples(columns []string, keys []any) (cond string, args, left []any) {
	w := len(columns)
	n, run := len(keys)/w, 1
	for run < n && keys[run*w] == keys[0] {
		run++
	}
	list := columns
	if w > 1 && (run == n || run >= fewTuples) {
		cond, args, list, n = columns[0]+" = ? AND ", []any{keys[0]}, columns[1:], run
	}
	most := s.most(w)
	if len(list) > 1 {
		most = min(most, fewTuples)
	}
	size := 1
	for size < n && size < most {
		size *= 2
	}
	n = min(n, size)
	for i := range size {
		at := w * min(i, n-1)
		args = append(args, keys[at+w-len(list):at+w]...)
	}
	names := strings.Join(list, ", ")
	return s.text(cond+names, size, func() string {
		if len(list) == 1 {
			return cond + names + " IN " + tuples(1, size)
		}
		return cond + "(" + names + ") IN (" + s.d.Tuples + tuples(size, len(list)) + ")"
	}), args, keys[n*w:]
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
