package storage

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"
)

// Claimed is Claim for a worker: each row that cannot be read is logged as
// "row_unreadable", once a lease, and the worker goes on with the others.
func Claimed(ctx context.Context, s Store, c Claim, log *slog.Logger) ([]Row, error) {
	rows, err := s.Claim(ctx, c)
	var broken RowErrors
	err = broken.Take(err)
	for _, r := range broken {
		r.log(ctx, log)
	}
	return rows, err
}

func (e *RowError) log(ctx context.Context, log *slog.Logger) {
	log.LogAttrs(ctx, slog.LevelError, "row_unreadable", slog.String("table", e.Table), slog.String("partition", string(e.Partition)),
		slog.String("id", e.ID), slog.Any("error", e.Err))
}

// Unreadable is what a worker has reported of rows that cannot be read. The zero value is
// ready. It is safe for concurrent use.
type Unreadable struct {
	mu     sync.Mutex
	logged map[rowOf]time.Time // when it was last
}

type rowOf struct {
	table     string
	partition Partition
	id        string
}

// logEvery is how often Found logs the same row: about once a lease.
const logEvery = time.Minute

// Claimed is Claimed, also for leases of less than a minute, and calls first with each row
// that this worker reports for the first time.
func (u *Unreadable) Claimed(ctx context.Context, s Store, c Claim, log *slog.Logger, first func(*RowError)) ([]Row, error) {
	rows, err := s.Claim(ctx, c)
	var broken RowErrors
	err = broken.Take(err)
	for _, r := range u.Report(ctx, broken, c.Now, log) {
		first(r)
	}
	return rows, err
}

// Found is Find for a worker: each row that cannot be read is logged as "row_unreadable",
// once a minute, and the worker goes on with as many others as the query asks for. It is
// for rows each of which is decided on by itself, not for whoever needs all that match.
func (u *Unreadable) Found(ctx context.Context, s Store, q Query, now time.Time, log *slog.Logger) ([]Row, error) {
	rows, broken, err := Others(ctx, s, q)
	u.Report(ctx, broken, now, log)
	return rows, err
}

// Report logs rows as "row_unreadable", each once a minute, and returns those that it logs
// for the first time.
func (u *Unreadable) Report(ctx context.Context, broken RowErrors, now time.Time, log *slog.Logger) (first []*RowError) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range broken {
		of := rowOf{r.Table, r.Partition, r.ID}
		last, known := u.logged[of]
		if known && now.Sub(last) < logEvery {
			continue
		}
		if u.logged == nil {
			u.logged = map[rowOf]time.Time{}
		}
		u.logged[of] = now
		if r.log(ctx, log); !known {
			first = append(first, r)
		}
	}
	return first
}

// Others is Find beside rows that cannot be read: it returns as many others as the query
// asks for, and those that it met.
func Others(ctx context.Context, s Store, q Query) ([]Row, RowErrors, error) {
	for want, passed := limitOf(&q), 0; ; {
		q.Limit = want + passed
		rows, err := s.Find(ctx, q)
		var broken RowErrors
		err = broken.Take(err)
		if err != nil || len(rows) >= want || len(broken) <= passed {
			return rows[:min(want, len(rows))], broken, err
		}
		passed = len(broken) // they took the places of others
	}
}

// allLimit is how many rows All reads at once where its query does not say.
const allLimit = 500

// All yields the rows of a query of one partition by id, or along the one column of its Order and
// by id where they have the same value. It ends with the first error. It reads Limit rows at a
// time, 500 where the query does not say. A row that others write or take away meanwhile makes none
// be passed over, and is yielded at most once as long as its place in the order stays. The query
// has no Offset, and with an Order no IDs.
func All(ctx context.Context, s Store, q Query) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		q.Limit = cmp.Or(q.Limit, allLimit)
		next, column, err := q, Column{}, error(nil)
		if len(q.Order) > 0 {
			column, _ = q.Table.Column(q.Order[0].Column)
		}
		if q.Offset > 0 || len(q.Order) > 1 || len(q.Order) == 1 && (column.Name == "" || q.IDs) {
			err = fmt.Errorf("%w: All walks table %s by id, or along one of its columns and with values", ErrMalformed, q.Table.Name)
		}
		var last any // value of the column whose rows are being read, nil = the rows behind all read ones
		for {
			var rows []Row
			if err == nil {
				rows, err = s.Find(ctx, next)
			}
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
			switch full := len(rows) == q.Limit; {
			case full:
				r := &rows[len(rows)-1]
				if column.Name != "" {
					last = reflect.ValueOf(r.Value).FieldByIndex(column.index).Interface()
				}
				next = q.behind(column.Name, last, r.ID)
			case last != nil:
				next, last = q.behind(column.Name, last, ""), nil
			default:
				return
			}
		}
	}
}

// behind is the query of the rows that come after one: where an id is named, of those with the
// same value of the column, else of those with another value. Without a column it is of ids alone.
func (q Query) behind(column string, value any, id string) Query {
	op := Gt
	if column != "" && q.Order[0].Desc {
		op = Lt
	}
	after := []Cond{{Column: ColID, Op: op, Value: id}}
	switch {
	case column != "" && id == "":
		after = []Cond{{Column: column, Op: op, Value: value}}
	case column != "": // by id alone: the value is one
		after = append(after, Cond{Column: column, Op: Eq, Value: value})
		if q.Order = nil; op == Lt {
			q.Order = []Order{{Column: ColID, Desc: true}}
		}
	}
	if column != "" { // what the value is within, a database would go along instead
		q.Where = slices.DeleteFunc(slices.Clone(q.Where), func(c Cond) bool {
			return c.Column == column && (id != "" || c.Op == op || op == Gt && c.Op == Ge || op == Lt && c.Op == Le)
		})
	}
	q.Where = slices.Concat(q.Where, after)
	return q
}

// Pages calls f with all rows of a query of one partition by id, Limit at a time. It goes
// on past rows that cannot be read, and past *RowErrors of f, and joins all of them to one
// error at the end. Other errors end it. The query has no Order and no Offset.
func Pages(ctx context.Context, s Store, q Query, f func([]Row) error) error {
	var unread RowErrors
	where := q.Where
	q.Limit = limitOf(&q)
	for last := ""; ; {
		q.Where = slices.Concat(where, []Cond{{Column: ColID, Op: Gt, Value: last}})
		rows, broken, err := Others(ctx, s, q)
		if err == nil && len(rows) > 0 {
			err = unread.Take(f(rows))
		}
		_ = unread.Take(broken.With(nil))
		if err != nil || len(rows) < q.Limit {
			return unread.With(err)
		}
		last = rows[len(rows)-1].ID
	}
}
