package tally

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Difference is a counter that is not what the rows come to.
type Difference struct {
	Counter string
	Have    int64
	Want    int64
}

// ErrMoving reports that a group of rows was written to each time that it was counted.
// Nothing is wrong with it: count again when less is written.
var ErrMoving = errors.New("storage/tally: rows are written faster than they can be counted")

// looks is how often a group that was written to meanwhile is counted again.
const looks = 50

// Recount counts the rows of a partition again, group by group, and mends the counters
// that differ. It returns those that did. Other processes may write meanwhile, if all of
// them count: a group's rows are read until none of its counters moved meanwhile, and a
// counter is mended only if it has not moved since. A group with a row, or a counter, that
// cannot be read is left as it is: the error joins their *storage.RowErrors, behind all
// other groups.
func (t *Tally) Recount(ctx context.Context, s storage.Store, p storage.Partition, newID func() string) ([]Difference, error) {
	return t.all(ctx, s, p, newID)
}

// Check is Recount without mending anything.
func (t *Tally) Check(ctx context.Context, s storage.Store, p storage.Partition) ([]Difference, error) {
	return t.all(ctx, s, p, nil)
}

func (t *Tally) all(ctx context.Context, s storage.Store, p storage.Partition, newID func() string) (out []Difference, err error) {
	var unread storage.RowErrors
	for group := ""; ; {
		next, ok, err := t.next(ctx, s, p, group)
		if err = unread.Take(err); err != nil {
			return out, err
		}
		if !ok {
			break
		}
		group = next
		found, err := t.one(ctx, s, p, group, newID)
		out = append(out, found...)
		if err = unread.Take(err); err != nil {
			return out, err
		}
	}
	found, err := t.strays(ctx, s, p, newID)
	out = append(out, found...)
	if err = unread.Take(err); err != nil {
		return out, err
	}
	found, err = t.sumUp(ctx, s, p, newID)
	return append(out, found...), unread.With(err)
}

// Book adds up what the counters of a partition ought to be, for whoever reads all of its
// rows anyway. The zero value is empty.
type Book struct{ want deltas }

// Row adds a row of the Tally's table.
func (b *Book) Row(t *Tally, r storage.Row) {
	i := t.Of(r)
	t.add(b.counters(), &i, 1)
}

// Entry adds an entry of the ledger; those that are not of wallets are not counted.
func (b *Book) Entry(e *ledger.Entry) {
	if wallet, ok := e.Account.WalletID(); ok {
		b.counters()[ofEntry(wallet, e)]++
	}
}

func (b *Book) counters() deltas {
	if b.want == nil {
		b.want = deltas{}
	}
	return b.want
}

// Verify returns the counters that differ from the rows. Where the Book differs, rows may
// have been written while it was made, so what differs is counted again. A partition whose
// counters do not hold yet has no differences.
func (b *Book) Verify(ctx context.Context, s storage.Store, p storage.Partition, tallies ...*Tally) (out []Difference, err error) {
	var unread storage.RowErrors
	check := func(first string, prefixes []string, again func() ([]Difference, error)) error {
		marked, err := s.Rows(ctx, storage.Counters.Table, storage.Keys(p, first)...)
		if err != nil || len(marked) == 0 {
			return err
		}
		have, err := standing(ctx, s, p, prefixes...)
		if err = unread.Take(err); err != nil {
			return err
		}
		want := map[string]int64{}
		for name, n := range b.want {
			if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				want[name] = n
			}
		}
		if len(differences(have, want)) == 0 {
			return nil
		}
		found, err := again()
		out = append(out, found...)
		return err
	}
	for _, t := range tallies {
		err := check(t.totals(), []string{t.totals(), t.groups(), t.sums()}, func() ([]Difference, error) { return t.Check(ctx, s, p) })
		if err = unread.Take(err); err != nil {
			return out, err
		}
	}
	err = check(entries, []string{entries}, func() ([]Difference, error) {
		found, err := CheckEntries(ctx, s, p)
		// A counter that is too small is not used, and nothing is wrong: a host may post.
		return slices.DeleteFunc(found, func(d Difference) bool { return d.Have < d.Want }), err
	})
	return out, unread.With(err)
}

// next is the group behind another one, by its rows and by its counters. "" is before all.
func (t *Tally) next(ctx context.Context, s storage.Store, p storage.Partition, group string) (next string, ok bool, err error) {
	consider := func(found string) {
		if found > group && (!ok || found < next) {
			next, ok = found, true
		}
	}
	column := cmp.Or(t.Column, created)
	q := storage.Query{Table: t.Table, Partition: p, Order: []storage.Order{{Column: column}}, Limit: 1}
	if group != "" {
		where, err := t.span(group)
		if err != nil {
			return "", false, err
		}
		last := where[len(where)-1]
		if last.Op = storage.Gt; t.Column == "" {
			last.Op = storage.Ge
		}
		q.Where = []storage.Cond{last}
	}
	rows, unread, err := storage.Others(ctx, s, q)
	if err != nil {
		return "", false, err
	}
	for _, r := range rows {
		i := t.Of(r)
		consider(t.group(&i))
	}
	for _, prefix := range []string{t.groups(), t.sums()} {
		from := prefix
		if group != "" {
			from += part(group) + "0"
		}
		err := walk(ctx, s, p, from, end(prefix), false, func(name string, _ storage.Row) bool {
			found, _, _ := strings.Cut(name[len(prefix):], "/")
			if !t.isGroup(found) {
				return true
			}
			consider(unescape.Replace(found))
			return false
		})
		if err = unread.Take(err); err != nil {
			return "", false, err
		}
	}
	return next, ok, unread.With(nil)
}

// strays compares the counters of groups that cannot be, such as a month 13, with nothing.
func (t *Tally) strays(ctx context.Context, s storage.Store, p storage.Partition, newID func() string) (out []Difference, err error) {
	var strays []string
	var unread storage.RowErrors
	for _, prefix := range []string{t.groups(), t.sums()} {
		err := walk(ctx, s, p, prefix, end(prefix), false, func(name string, _ storage.Row) bool {
			found, _, _ := strings.Cut(name[len(prefix):], "/")
			if stray := prefix + found + "/"; !t.isGroup(found) && !slices.Contains(strays, stray) {
				strays = append(strays, stray)
			}
			return true
		})
		if err = unread.Take(err); err != nil {
			return nil, err
		}
	}
	for _, stray := range strays {
		found, err := settled(ctx, s, p, newID, []string{stray}, func() (map[string]int64, error) { return nil, nil }, nil)
		out = append(out, found...)
		if err = unread.Take(err); err != nil {
			return out, err
		}
	}
	return out, unread.With(nil)
}

// standing is the counters below some prefixes as they are.
func standing(ctx context.Context, s storage.Store, p storage.Partition, prefixes ...string) (map[string]storage.Row, error) {
	out := map[string]storage.Row{}
	var unread storage.RowErrors
	for _, prefix := range prefixes {
		err := walk(ctx, s, p, prefix, end(prefix), false, func(name string, r storage.Row) bool {
			if name != prefix { // that is the marker
				out[name] = r
			}
			return true
		})
		if err = unread.Take(err); err != nil {
			return nil, err
		}
	}
	return out, unread.With(nil)
}

// differences compares counters with what they ought to be, by name.
func differences(have map[string]storage.Row, want map[string]int64) (out []Difference) {
	for name, n := range want {
		if have := amount(have, name); have != n {
			out = append(out, Difference{name, have, n})
		}
	}
	for name, r := range have {
		if _, ok := want[name]; !ok && value(r) != 0 {
			out = append(out, Difference{name, value(r), 0})
		}
	}
	slices.SortFunc(out, func(a, b Difference) int { return cmp.Compare(a.Counter, b.Counter) })
	return out
}

func amount(have map[string]storage.Row, name string) int64 {
	if r, ok := have[name]; ok {
		return value(r)
	}
	return 0
}

// settled compares counters with what count finds, and looks again while they move. With
// newID it writes what differs, and mend adds to that Change. A counter that moves before
// the write, and was right, stays right: whoever moved it wrote a row, too.
func settled(ctx context.Context, s storage.Store, p storage.Partition, newID func() string, prefixes []string, count func() (map[string]int64, error), mend func(*storage.Change, []Difference)) ([]Difference, error) {
	for range looks {
		have, err := standing(ctx, s, p, prefixes...)
		if err != nil {
			return nil, err
		}
		want, err := count()
		if err != nil {
			return nil, err
		}
		after, err := standing(ctx, s, p, prefixes...)
		if err != nil {
			return nil, err
		}
		if !maps.EqualFunc(have, after, func(a, b storage.Row) bool { return a.Version == b.Version }) {
			continue
		}
		found := differences(have, want)
		if len(found) == 0 || newID == nil {
			return found, nil
		}
		c := storage.Change{ID: newID(), Partition: p}
		for _, d := range found {
			c.Put = append(c.Put, storage.Counters.Row(d.Counter, have[d.Counter].Version, time.Time{}, storage.Counter{Value: d.Want}))
		}
		if mend != nil {
			mend(&c, found)
		}
		switch err := storage.CommitOne(ctx, s, c); {
		case errors.Is(err, storage.ErrConflict): // somebody wrote in between
		case err != nil:
			return nil, fmt.Errorf("storage/tally: writing counters of %s: %w", p, err)
		default:
			return found, nil
		}
	}
	return nil, fmt.Errorf("%w: %s of %s", ErrMoving, prefixes[0], p)
}

// one compares the counters of a group with its rows. What is mended in the group is
// moved in the totals, too.
func (t *Tally) one(ctx context.Context, s storage.Store, p storage.Partition, group string, newID func() string) ([]Difference, error) {
	prefixes := []string{t.groups() + part(group) + "/", t.sums() + part(group) + "/"}
	return settled(ctx, s, p, newID, prefixes, func() (map[string]int64, error) {
		want := deltas{}
		err := t.rows(ctx, s, p, group, func(r storage.Row) {
			i := t.Of(r)
			t.addToGroup(want, &i, join(i.Key), 1)
		})
		return want, err
	}, func(c *storage.Change, found []Difference) {
		for _, d := range found {
			if key, ok := strings.CutPrefix(d.Counter, prefixes[0]); ok {
				c.Count = append(c.Count, storage.Count{Name: t.totals() + key, Delta: d.Want - d.Have})
			}
		}
	})
}

// rows reads the rows of a group by key, in the order in which they were created.
func (t *Tally) rows(ctx context.Context, s storage.Store, p storage.Partition, group string, visit func(storage.Row)) error {
	where, err := t.span(group)
	if err != nil {
		return err
	}
	q := storage.Query{Table: t.Table, Partition: p, Limit: page, Where: where, Order: []storage.Order{{Column: created}}}
	var moment *time.Time // only rows of it are asked for
	for {
		rows, err := s.Find(ctx, q)
		if err != nil {
			return err
		}
		for _, r := range rows {
			visit(r)
		}
		switch {
		case len(rows) == page:
			last := rows[page-1]
			at := t.Of(last).At
			moment = &at
			q.Where = append(slices.Clip(where), storage.Cond{Column: created, Op: storage.Eq, Value: at}, storage.Cond{Column: storage.ColID, Op: storage.Gt, Value: last.ID})
		case moment == nil:
			return nil
		default:
			q.Where = append(slices.Clip(where), storage.Cond{Column: created, Op: storage.Gt, Value: *moment})
			moment = nil
		}
	}
}

// sumUp compares the totals with the groups' counters.
func (t *Tally) sumUp(ctx context.Context, s storage.Store, p storage.Partition, newID func() string) ([]Difference, error) {
	return settled(ctx, s, p, newID, []string{t.totals()}, func() (map[string]int64, error) {
		want := map[string]int64{}
		err := walk(ctx, s, p, t.groups(), end(t.groups()), false, func(name string, r storage.Row) bool {
			_, key, _ := strings.Cut(name[len(t.groups()):], "/")
			want[t.totals()+key] += value(r)
			return true
		})
		return want, err
	}, nil)
}
