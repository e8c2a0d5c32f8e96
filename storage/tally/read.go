package tally

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Match is a filter on keys: a part that is not nil must be one of its values. Parts
// behind its end may be any.
type Match [][]string

// Is is a part of a Match: any value where text is empty, else that one.
func Is(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// fits reports whether a key, as names have it, is one of those asked for.
func (m Match) fits(key string) bool {
	for i, values := range m {
		var have string
		have, key, _ = strings.Cut(key, "/")
		if values != nil && !slices.ContainsFunc(m[i], func(want string) bool { return part(want) == have }) {
			return false
		}
	}
	return true
}

// Totals returns how many rows fit each Match. ok is false where no counters hold.
func (t *Tally) Totals(ctx context.Context, s storage.Store, p storage.Partition, matches ...Match) (out []int64, ok bool, err error) {
	out = make([]int64, len(matches))
	err = walk(ctx, s, p, t.totals(), end(t.totals()), false, func(name string, r storage.Row) bool {
		key := name[len(t.totals()):]
		if key == "" {
			ok = true
			return true
		}
		for i, m := range matches {
			if ok && m.fits(key) {
				out[i] += value(r)
			}
		}
		return ok
	})
	return out, ok, err
}

// InGroup returns how many rows of a group fit.
func (t *Tally) InGroup(ctx context.Context, s storage.Store, p storage.Partition, group string, m Match) (n int64, err error) {
	prefix := t.groups() + part(group) + "/"
	err = walk(ctx, s, p, prefix, end(prefix), false, func(name string, r storage.Row) bool {
		if m.fits(name[len(prefix):]) {
			n += value(r)
		}
		return true
	})
	return n, err
}

// Range is a time from ≤ t < before; a zero time is no bound.
type Range struct{ From, Before time.Time }

// Edge is a part of a day whose rows are to be read: they are added to the sum of whole
// days, or taken off it.
type Edge struct {
	Range
	Less bool
}

// days are the whole days nearest to a range, and what differs. The present day is
// taken whole where the range reaches up to now, as there is nothing behind.
func (r Range) days(now time.Time) (from, to string, edges []Edge) {
	const half = 12 * time.Hour
	from, to = "0", ":" // before and behind every day
	if !r.From.IsZero() && r.From.Year() >= 1970 {
		at := r.From.UTC().Truncate(24 * time.Hour)
		switch next := at.AddDate(0, 0, 1); {
		case r.From.Equal(at):
		case r.From.Sub(at) <= half:
			edges = append(edges, Edge{Range{at, r.From}, true})
		default:
			edges = append(edges, Edge{Range{r.From, next}, false})
			at = next
		}
		from = at.Format(dayForm)
	}
	if !r.Before.IsZero() && r.Before.Year() <= 9999 {
		at := r.Before.UTC().Truncate(24 * time.Hour)
		switch next := at.AddDate(0, 0, 1); {
		case r.Before.Equal(at):
		case r.Before.Sub(at) > half || !r.Before.Before(now) && next.Year() <= 9999:
			edges = append(edges, Edge{Range{r.Before, next}, true})
			at = next
		default:
			edges = append(edges, Edge{Range{at, r.Before}, false})
		}
		to = at.Format(dayForm)
	}
	return from, to, edges
}

func (r Range) empty() bool {
	return !r.Before.IsZero() && !r.From.Before(r.Before)
}

// Where adds the range to the conditions of a query.
func (r Range) Where(column string, where []storage.Cond) []storage.Cond {
	if !r.From.IsZero() {
		where = append(slices.Clip(where), storage.Cond{Column: column, Op: storage.Ge, Value: r.From})
	}
	if !r.Before.IsZero() {
		where = append(slices.Clip(where), storage.Cond{Column: column, Op: storage.Lt, Value: r.Before})
	}
	return where
}

// Between returns how many rows of a time fit: whole days by their counters, and of the
// days at both ends the smaller part by rows. rows is the query of the same rows at any
// time. ok is false where no counters hold.
func (t *Tally) Between(ctx context.Context, s storage.Store, r Range, now time.Time, m Match, rows storage.Query) (n int64, ok bool, err error) {
	p := rows.Partition
	if r == (Range{}) {
		all, ok, err := t.Totals(ctx, s, p, m)
		return all[0], ok, err
	}
	if ok, err = t.Marked(ctx, s, p); err != nil || !ok || r.empty() {
		return 0, ok, err
	}
	from, to, edges := r.days(now)
	err = walk(ctx, s, p, t.groups()+from, t.groups()+to, false, func(name string, r storage.Row) bool {
		if _, key, _ := strings.Cut(name[len(t.groups()):], "/"); m.fits(key) {
			n += value(r)
		}
		return true
	})
	for _, e := range edges {
		if err != nil {
			break
		}
		q := rows
		q.Where = e.Where(created, rows.Where)
		var some int64
		some, err = s.Count(ctx, q)
		if e.Less {
			some = -some
		}
		n += some
	}
	return n, ok, err
}

// deep is from which offset on a page of a list is found by days.
const deep = 1000

// Side is the rows of one table in a list.
type Side struct {
	*Tally
	Match
}

// Page makes the query of a page, newest first, pass over fewer rows than one day has,
// where it is a deep one: newer days are passed over by their counters, which hold. rows
// is the query of the same rows at any time, r the time that is asked for.
func Page(ctx context.Context, s storage.Store, q, rows storage.Query, r Range, sides ...Side) (storage.Query, error) {
	if q.Offset < deep {
		return q, nil
	}
	from := func(before time.Time, offset int64) storage.Query {
		q.Where, q.Offset = Range{Before: before}.Where(created, q.Where), int(offset)
		return q
	}
	offset, last := int64(q.Offset), ":" // behind every day
	if !r.Before.IsZero() && r.Before.Year() <= 9999 {
		day := r.Before.UTC().Truncate(24 * time.Hour)
		last = day.Format(dayForm)
		rows.Where = Range{day, r.Before}.Where(created, rows.Where)
		n, err := s.Count(ctx, rows) // of a part of a day
		if err != nil || offset < n {
			return q, err
		}
		offset -= n
	}
	days := map[string]int64{}
	for _, side := range sides {
		prefix, day, n := side.groups(), "", int64(0)
		err := walk(ctx, s, q.Partition, prefix, prefix+last, true, func(name string, r storage.Row) bool {
			group, key, _ := strings.Cut(name[len(prefix):], "/")
			if group != day && n > offset {
				return false
			}
			if day = group; side.isGroup(group) && side.fits(key) {
				days[day] += value(r)
				n += value(r)
			}
			return true
		})
		if err != nil {
			return q, err
		}
	}
	for _, day := range slices.Backward(slices.Sorted(maps.Keys(days))) {
		if days[day] > offset {
			at, err := time.Parse(dayForm, day)
			return from(at.AddDate(0, 0, 1), offset), err
		}
		offset -= days[day]
	}
	return q, nil
}

// Cell is what all rows of some days with one status and currency, the first two parts
// of the key, come to.
type Cell struct {
	Count int64
	Sums  map[string]decimal.Decimal // by the names of Item.Sums
}

// Cells adds whole days up, by the first two parts of the key, and says which parts of
// days have to be added or taken off. ok is false where no counters hold, and where a part
// of a key is too long for a counter's name.
func (t *Tally) Cells(ctx context.Context, s storage.Store, p storage.Partition, r Range, now time.Time) (cells map[[2]string]*Cell, edges []Edge, ok bool, err error) {
	if ok, err = t.Marked(ctx, s, p); err != nil || !ok || r.empty() {
		return nil, nil, ok, err
	}
	from, to, edges := r.days(now)
	cells = map[[2]string]*Cell{}
	cell := func(key []string) *Cell {
		k := [2]string{unescape.Replace(key[0]), unescape.Replace(key[1])}
		if cells[k] == nil {
			cells[k] = &Cell{Sums: map[string]decimal.Decimal{}}
		}
		return cells[k]
	}
	err = walk(ctx, s, p, t.groups()+from, t.groups()+to, false, func(name string, r storage.Row) bool {
		key := strings.Split(name, "/")[2:]
		if len(key) < 2 {
			return true // no such key is counted: somebody edited it
		}
		ok = !hashed(key[0]) && !hashed(key[1])
		cell(key).Count += value(r)
		return ok
	})
	if err != nil || !ok {
		return nil, nil, ok, err
	}
	err = walk(ctx, s, p, t.sums()+from, t.sums()+to, false, func(name string, r storage.Row) bool {
		key := strings.Split(name, "/")[2:]
		if len(key) < 3 || key[2] == "" {
			return true
		}
		place, wrong := strconv.ParseInt(key[2][1:], 10, 32)
		if wrong == nil {
			c := cell(key)
			c.Sums[key[2][:1]] = c.Sums[key[2][:1]].Add(decimal.New(value(r), int32(place*limb)))
		}
		return true
	})
	return cells, edges, ok, err
}

// Add adds an item to a cell, or takes it off.
func (c *Cell) Add(i *Item, less bool) {
	sign := int64(1)
	if less {
		sign = -1
	}
	c.Count += sign
	for _, s := range i.Sums {
		c.Sums[s.Name] = c.Sums[s.Name].Add(s.Value.Mul(decimal.NewFromInt(sign)))
	}
}
