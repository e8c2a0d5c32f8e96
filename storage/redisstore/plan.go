package redisstore

import (
	"slices"

	"github.com/cryptopay-go/cryptopay/storage"
)

// span is a piece of an index, as ZRANGE BYLEX takes its ends.
type span struct{ from, to string }

// plan is how a query is answered: along which index, over which pieces of it.
type plan struct {
	index   *index
	spans   []span
	use     int  // how much the conditions narrow it down
	covered bool // the spans say all that the conditions do
	ordered bool // rows come in the order asked for
	reverse bool
}

// maxSpans bounds what several In conditions multiply to; more are left to
// reading rows.
const maxSpans = 1000

// planOf chooses the index. order is that of a ready query, or nil where any
// will do.
func (l *layout) planOf(filters []storage.Filter, order []storage.Order) plan {
	var best plan
	for i := range l.indexes {
		p := l.along(&l.indexes[i], filters, order)
		if best.index == nil || p.use > best.use || p.use == best.use && p.ordered && !best.ordered {
			best = p
		}
	}
	return best
}

// along is the plan that one index allows: equal columns first, then one that
// is within bounds. The id is every index's last column.
func (l *layout) along(x *index, filters []storage.Filter, order []storage.Order) plan {
	p := plan{index: x}
	names := make([]string, 0, len(x.cols)+1)
	for _, c := range x.cols {
		names = append(names, l.t.Columns[c].Name)
	}
	names = append(names, storage.ColID)

	used := 0
	starts := []string{""}
	at := 0
	for ; at < len(names); at++ {
		f := equal(filters, names[at], maxSpans/max(1, len(starts)))
		if f == nil {
			break
		}
		starts = multiply(starts, f.Values)
		used++
		p.use += 2
	}
	var low, high string
	if at < len(names) {
		var n int
		if low, high, n = bounds(filters, names[at]); n > 0 {
			p.use++
			used += n
		}
	}
	for _, s := range starts {
		p.spans = append(p.spans, spanOf(s, low, high))
	}
	p.covered = used == len(filters)
	if order != nil {
		p.reverse = order[len(order)-1].Desc
		p.ordered = len(p.spans) <= 1 && follows(names[min(at, len(names)):], order, filters)
	}
	return p
}

// equal finds a condition that a column is one of a few values.
func equal(filters []storage.Filter, column string, most int) *storage.Filter {
	for i := range filters {
		f := &filters[i]
		if f.Column == column && (f.Op == storage.Eq || f.Op == storage.In && len(f.Values) <= most) {
			return f
		}
	}
	return nil
}

func multiply(starts []string, values []any) []string {
	out := make([]string, 0, len(starts)*len(values))
	for _, s := range starts {
		for _, v := range values {
			out = append(out, string(encodeScalar([]byte(s), v)))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// bounds joins the conditions that bound a column: low is where values that
// satisfy them begin, high what none of them reaches, "" where there is none.
func bounds(filters []storage.Filter, column string) (low, high string, n int) {
	for i := range filters {
		f := &filters[i]
		if f.Column != column {
			continue
		}
		switch f.Op {
		case storage.Ge:
			low = max(low, string(encodeScalar(nil, f.Values[0])))
		case storage.Gt:
			next := after(string(encodeScalar(nil, f.Values[0])))
			if next == "" {
				continue // no value is greater: the rows will tell
			}
			low = max(low, next)
		case storage.Lt:
			high = lower(high, string(encodeScalar(nil, f.Values[0])))
		case storage.Le:
			high = lower(high, after(string(encodeScalar(nil, f.Values[0]))))
		default:
			continue
		}
		n++
	}
	return low, high, n
}

func lower(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return min(a, b)
}

// after is the first text that does not begin with s and sorts after those that
// do.
func after(s string) string {
	b := []byte(s)
	for len(b) > 0 {
		if b[len(b)-1]++; b[len(b)-1] != 0 {
			return string(b)
		}
		b = b[:len(b)-1]
	}
	return "" // nothing is after it
}

// spanOf is the piece of an index that begins with start and is within bounds
// from there on.
func spanOf(start, low, high string) span {
	out := span{from: "[" + start + low, to: "+"}
	if low == "" && start == "" {
		out.from = "-"
	}
	if end := after(start); high != "" {
		out.to = "(" + start + high
	} else if end != "" {
		out.to = "(" + end
	}
	return out
}

// follows reports whether an index that goes on with names gives the order.
func follows(names []string, order []storage.Order, filters []storage.Filter) bool {
	desc := order[len(order)-1].Desc
	at := 0
	for _, o := range order {
		if fixedTo(filters, o.Column) {
			if o.Column == storage.ColID {
				return true
			}
			continue // one value has no order
		}
		if at >= len(names) || names[at] != o.Column || o.Desc != desc {
			return false
		}
		if at++; o.Column == storage.ColID {
			return true
		}
	}
	return false
}

func fixedTo(filters []storage.Filter, column string) bool {
	return slices.ContainsFunc(filters, func(f storage.Filter) bool {
		return f.Column == column && (f.Op == storage.Eq || f.Op == storage.In && len(f.Values) == 1)
	})
}
