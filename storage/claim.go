package storage

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
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

// All yields the rows of a query of one partition by id, and ends with the first error. It reads
// Limit rows at a time, 500 where the query does not say. A row that others write or take away
// meanwhile is yielded at most once, and makes none be passed over. The query has no Order and
// no Offset.
func All(ctx context.Context, s Store, q Query) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		where := q.Where
		q.Limit = cmp.Or(q.Limit, allLimit)
		for {
			rows, err := s.Find(ctx, q)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
			if len(rows) < q.Limit {
				return
			}
			q.Where = slices.Concat(where, []Cond{{Column: ColID, Op: Gt, Value: rows[len(rows)-1].ID}})
		}
	}
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
