package tally

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Tally says how the rows of a table are counted.
type Tally struct {
	Name   string         // what the counters' names begin with: letters
	Table  *storage.Table // has a column created_at
	Column string         // each value of it is a group; "" = each day of created_at, UTC, is one
	Of     func(storage.Row) Item
}

// Item is what one row adds to the counters.
type Item struct {
	At    time.Time // created_at
	Group string    // the Tally's Column, if it has one
	Key   []string  // empty: the row is not counted
	Sums  []Sum     // in a group, by the first two parts of the key
}

// Sum is an amount that is added up, exactly.
type Sum struct {
	Name  string // a letter
	Value decimal.Decimal
}

// Moved is the difference that a write of one row makes. was is nil for a new row.
func (t *Tally) Moved(was, is *Item) []storage.Count {
	d := deltas{}
	if was != nil {
		t.add(d, was, -1)
	}
	t.add(d, is, 1)
	return d.counts()
}

// Lost is the difference that it makes when a row is dropped.
func (t *Tally) Lost(was *Item) []storage.Count {
	d := deltas{}
	t.add(d, was, -1)
	return d.counts()
}

// deltas are differences by the names of counters.
type deltas map[string]int64

// counts lists those that are not zero, by name.
func (d deltas) counts() []storage.Count {
	var out []storage.Count
	for _, name := range slices.Sorted(maps.Keys(d)) {
		if d[name] != 0 {
			out = append(out, storage.Count{Name: name, Delta: d[name]})
		}
	}
	return out
}

// add adds an item to the counters of its key, of its group, and to the sums.
func (t *Tally) add(d deltas, i *Item, sign int64) {
	if len(i.Key) == 0 {
		return
	}
	key := join(i.Key)
	d[t.totals()+key] += sign
	t.addToGroup(d, i, key, sign)
}

func (t *Tally) addToGroup(d deltas, i *Item, key string, sign int64) {
	if len(i.Key) == 0 {
		return
	}
	group := part(t.group(i)) + "/"
	d[t.groups()+group+key] += sign
	for _, s := range i.Sums {
		limbs(s.Value, func(place, value int64) {
			d[t.sums()+group+join(i.Key[:2])+"/"+s.Name+strconv.FormatInt(place, 10)] += sign * value
		})
	}
}

// What the names of counters begin with. Each is followed by what sorts before "0".
func (t *Tally) totals() string { return t.Name + "/" }
func (t *Tally) groups() string { return t.Name + ".by/" }
func (t *Tally) sums() string   { return t.Name + ".sum/" }

// end is what sorts behind all names that begin with a prefix which ends in a slash.
func end(prefix string) string { return strings.TrimSuffix(prefix, "/") + "0" }

func join(parts []string) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = part(p)
	}
	return strings.Join(out, "/")
}

// maxPart is how long a part of a name may be: five of them are a name.
const maxPart = 50

var escape, unescape = strings.NewReplacer("%", "%25", "/", "%2F", "#", "%23"), strings.NewReplacer("%25", "%", "%2F", "/", "%23", "#")

// part writes text as a part of a name. Text that is too long becomes a hash.
func part(text string) string {
	text = escape.Replace(text)
	if len(text) > maxPart {
		sum := sha256.Sum256([]byte(text))
		return "#" + hex.EncodeToString(sum[:16])
	}
	return text
}

// hashed reports whether a part of a name is a hash.
func hashed(part string) bool { return strings.HasPrefix(part, "#") }

// limbs splits a number into whole numbers of 10^(9·place), each below 10^9, so that
// counters hold sums of any size exactly.
func limbs(v decimal.Decimal, each func(place, value int64)) {
	place := int64(v.Exponent()) / limb
	if int64(v.Exponent())%limb < 0 {
		place--
	}
	rest := v.Shift(int32(-place * limb))
	for base := decimal.New(1, limb); !rest.IsZero(); place++ {
		more, digits := rest.QuoRem(base, 0)
		if !digits.IsZero() {
			each(place, digits.IntPart())
		}
		rest = more
	}
}

const limb = 9

func (t *Tally) group(i *Item) string {
	if t.Column == "" {
		return time.UnixMicro(storage.Micros(i.At)).UTC().Format(dayForm)
	}
	return i.Group
}

const (
	dayForm = "20060102"
	created = "created_at"
)

// span is the rows of a group, as conditions.
func (t *Tally) span(group string) ([]storage.Cond, error) {
	if t.Column != "" {
		return []storage.Cond{{Column: t.Column, Op: storage.Eq, Value: group}}, nil
	}
	from, err := time.Parse(dayForm, group)
	return []storage.Cond{
		{Column: created, Op: storage.Ge, Value: from}, {Column: created, Op: storage.Lt, Value: from.AddDate(0, 0, 1)},
	}, err
}

// isGroup reports whether a group of a counter's name is one that rows can be in.
func (t *Tally) isGroup(group string) bool {
	if t.Column != "" {
		return true
	}
	day, err := time.Parse(dayForm, group)
	return err == nil && day.Format(dayForm) == group
}

// Mark is the rows that say of these tallies, and of the entries, that a partition's
// counters hold: for the first Change in a partition.
func Mark(tallies ...*Tally) []storage.Row {
	out := make([]storage.Row, 0, len(tallies)+1)
	for _, t := range tallies {
		out = append(out, mark(t.totals()))
	}
	return append(out, mark(entries))
}

func mark(name string) storage.Row {
	return storage.Counters.Row(name, 0, time.Time{}, storage.Counter{Value: 1})
}

// Marked reports whether the counters of a partition hold.
func (t *Tally) Marked(ctx context.Context, s storage.Store, p storage.Partition) (bool, error) {
	rows, err := s.Rows(ctx, storage.Counters.Table, storage.Keys(p, t.totals())...)
	return len(rows) > 0, err
}

// page is how many counters, or rows, are read at once.
const page = 500

// walk reads the counters from one name up to another, by name. It ends where visit
// returns false. It goes on past counters that cannot be read, and joins their
// *storage.RowErrors.
func walk(ctx context.Context, s storage.Store, p storage.Partition, from, to string, desc bool, visit func(name string, c storage.Row) bool) error {
	first := true
	var unread storage.RowErrors
	for {
		q := storage.Query{
			Table: storage.Counters.Table, Partition: p, Limit: page, Order: []storage.Order{{Column: storage.ColID, Desc: desc}},
			Where: []storage.Cond{{Column: storage.ColID, Op: storage.Ge, Value: from}, {Column: storage.ColID, Op: storage.Lt, Value: to}},
		}
		if !first && !desc {
			q.Where[0].Op = storage.Gt
		}
		rows, broken, err := storage.Others(ctx, s, q)
		if err != nil {
			return err
		}
		_ = unread.Take(broken.With(nil))
		for _, r := range rows {
			if !visit(r.ID, r) {
				return unread.With(nil)
			}
		}
		if len(rows) < page {
			return unread.With(nil)
		}
		if last := rows[len(rows)-1].ID; desc {
			to = last
		} else {
			from = last
		}
		first = false
	}
}

// value is what a counter's row holds.
func value(r storage.Row) int64 { return storage.Counters.Value(r).Value }
