package storage

import (
	"fmt"
	"slices"
)

// Key names one row of a table: by its id, or by what its columns of one Unique hold.
type Key struct {
	Partition Partition
	ID        string
	Unique    []string // the columns of one of the table's Uniques: the ID plays no part then
	Values    []any    // what they hold, of the columns' Go types
}

// Keys names rows of one partition by their ids.
func Keys(p Partition, ids ...string) []Key {
	out := make([]Key, len(ids))
	for i, id := range ids {
		out[i] = Key{Partition: p, ID: id}
	}
	return out
}

// Sought is a Key made ready for a backend.
type Sought struct {
	Partition Partition
	ID        string
	Unique    int   // position in Table.Uniques, or below 0: by id
	Scalars   []any // of its columns, as Table.Encode makes them
}

// Seek makes keys ready. Keys with text that no backend can keep name no row and are
// left out. ErrMalformed where columns are no Unique of the table or hold no such values.
func (t *Table) Seek(keys []Key) ([]Sought, error) {
	out := make([]Sought, 0, len(keys))
	for i := range keys {
		k := &keys[i]
		s := Sought{Partition: k.Partition, ID: k.ID, Unique: -1}
		if len(k.Unique)+len(k.Values) > 0 {
			s.Unique = slices.IndexFunc(t.Uniques, func(u []string) bool { return slices.Equal(u, k.Unique) })
			if s.Unique < 0 || len(k.Values) != len(k.Unique) {
				return nil, fmt.Errorf("%w: table %s has no unique %v of %d values", ErrMalformed, t.Name, k.Unique, len(k.Values))
			}
			s.ID = ""
			for j, name := range k.Unique {
				v, err := t.Columns[t.byName[name]].Encode(k.Values[j])
				if err != nil {
					return nil, fmt.Errorf("%w: table %s: %w", ErrMalformed, t.Name, err)
				}
				s.Scalars = append(s.Scalars, v)
			}
		}
		if s.storable() {
			out = append(out, s)
		}
	}
	return out, nil
}

func (s *Sought) storable() bool {
	return ValidText(string(s.Partition)) && ValidText(s.ID) && !slices.ContainsFunc(s.Scalars, func(v any) bool {
		text, ok := v.(string)
		return ok && !ValidText(text)
	})
}
