package move

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// RowDifference is one thing that is not equal at both ends.
type RowDifference struct {
	Partition storage.Partition
	Table     string // or SumBalances, SumEntries, SumLevels
	ID        string // of a row; account and asset of a balance; name of a level
	Source    string // as text, "" where it is missing
	Target    string
}

func (d RowDifference) String() string {
	return fmt.Sprintf("%s in %s: %s: source %s, target %s", d.Table, d.Partition, d.ID, d.Source, d.Target)
}

// errEnough ends a Diff.
var errEnough = errors.New("move: enough")

// Diff compares two stores row by row, over the source's partitions, and returns
// at most max differences.
func Diff(ctx context.Context, source, target End, max int) ([]RowDifference, error) {
	d := &differ{a: source.Store, b: target.Store, max: max}
	for p, err := range source.Partitions(ctx, source.Store) {
		if err != nil {
			return d.out, err
		}
		if err := d.partition(ctx, source, p); errors.Is(err, errEnough) {
			return d.out, nil
		} else if err != nil {
			return d.out, fmt.Errorf("move: comparing %s: %w", p, err)
		}
	}
	return d.out, nil
}

type differ struct {
	a, b storage.Store
	max  int
	out  []RowDifference
}

func (d *differ) note(p storage.Partition, table, id, source, target string) error {
	if source == target {
		return nil
	}
	d.out = append(d.out, RowDifference{p, table, id, source, target})
	if len(d.out) >= d.max {
		return errEnough
	}
	return nil
}

func (d *differ) partition(ctx context.Context, source End, p storage.Partition) error {
	names := map[string]bool{}
	for _, t := range source.Tables {
		if err := d.table(ctx, t, p, source.Levels, names); err != nil {
			return err
		}
	}
	for n := range names {
		x, err := level(ctx, d.a, p, n)
		if err != nil {
			return err
		}
		y, err := level(ctx, d.b, p, n)
		if err != nil {
			return err
		}
		if err := d.note(p, SumLevels, n, fmt.Sprint(x), fmt.Sprint(y)); err != nil {
			return err
		}
	}
	return d.ledger(ctx, p)
}

// table walks one table at both ends in step.
func (d *differ) table(ctx context.Context, t *storage.Table, p storage.Partition, levels func(storage.Row) []string, names map[string]bool) error {
	a, b := &paged{s: d.a, t: t, p: p}, &paged{s: d.b, t: t, p: p}
	for {
		x, err := a.peek(ctx)
		if err != nil {
			return err
		}
		y, err := b.peek(ctx)
		if err != nil {
			return err
		}
		switch {
		case x == nil && y == nil:
			return nil
		case y == nil || x != nil && x.ID < y.ID:
			y = nil
		case x == nil || y.ID < x.ID:
			x = nil
		}
		id, left, right := "", "", ""
		if x != nil {
			id, left = x.ID, shown(x)
			if a.at++; levels != nil && len(names) < maxNames {
				for _, n := range levels(*x) {
					names[n] = true
				}
			}
		}
		if y != nil {
			id, right = y.ID, shown(y)
			b.at++
		}
		if err := d.note(p, t.Name, id, left, right); err != nil {
			return err
		}
	}
}

func shown(r *storage.Row) string {
	rec, err := rowRecord(r)
	if err != nil {
		return err.Error()
	}
	text, err := rec.text()
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text))
}

// paged reads a table of a partition row by row.
type paged struct {
	s    storage.Store
	t    *storage.Table
	p    storage.Partition
	last string
	rows []storage.Row
	at   int
	end  bool
}

func (g *paged) peek(ctx context.Context) (*storage.Row, error) {
	if g.at == len(g.rows) && !g.end {
		var err error
		g.rows, err = g.s.Find(ctx, storage.Query{
			Table: g.t, Partition: g.p, Limit: page, Where: []storage.Cond{{Column: storage.ColID, Op: storage.Gt, Value: g.last}},
		})
		if err != nil {
			return nil, err
		}
		g.at, g.end = 0, len(g.rows) < page
		if len(g.rows) > 0 {
			g.last = g.rows[len(g.rows)-1].ID
		}
	}
	if g.at == len(g.rows) {
		return nil, nil
	}
	return &g.rows[g.at], nil
}

// ledger compares balances, and the histories that are as long.
func (d *differ) ledger(ctx context.Context, p storage.Partition) error {
	a, err := balances(ctx, d.a, p)
	if err != nil {
		return err
	}
	b, err := balances(ctx, d.b, p)
	if err != nil {
		return err
	}
	for len(a) > 0 || len(b) > 0 {
		var c int
		switch {
		case len(b) == 0:
			c = -1
		case len(a) == 0:
			c = 1
		default:
			c = strings.Compare(string(a[0].Account)+"\x00"+string(a[0].Asset), string(b[0].Account)+"\x00"+string(b[0].Asset))
		}
		var x, y ledger.Balance
		left, right := "", ""
		if c <= 0 {
			x, a = a[0], a[1:]
			left = fmt.Sprintf("posted %d, held %d, %d entries", x.Posted, x.Held, x.Seq)
		}
		if c >= 0 {
			y, b = b[0], b[1:]
			right = fmt.Sprintf("posted %d, held %d, %d entries", y.Posted, y.Held, y.Seq)
		}
		name := string(x.Account) + " " + string(x.Asset)
		if c > 0 {
			name = string(y.Account) + " " + string(y.Asset)
		}
		if err := d.note(p, SumBalances, name, left, right); err != nil {
			return err
		}
		if c == 0 {
			if err := d.history(ctx, p, &x, &y); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *differ) history(ctx context.Context, p storage.Partition, x, y *ledger.Balance) error {
	for from := int64(1); from <= min(x.Seq, y.Seq); from += page {
		a, err := entries(ctx, d.a, p, x, from, page)
		if err != nil {
			return err
		}
		b, err := entries(ctx, d.b, p, y, from, page)
		if err != nil {
			return err
		}
		for i := range min(len(a), len(b)) {
			id := fmt.Sprintf("%s %s %d", x.Account, x.Asset, a[i].Seq)
			if err := d.note(p, SumEntries, id, fmt.Sprintf("%+v", a[i]), fmt.Sprintf("%+v", b[i])); err != nil {
				return err
			}
		}
	}
	return nil
}
