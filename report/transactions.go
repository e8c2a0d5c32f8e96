package report

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Transaction is one line of the unified history: the present state of a
// payment or a withdrawal. Amounts are units of 10^-Scale of its currency.
type Transaction struct {
	ID    string // of the payment or withdrawal
	Scale uint8
	storage.Activity
}

// Filter selects transactions; empty fields select all.
type Filter struct {
	Type     string // storage.ActivityPayment or storage.ActivityWithdrawal
	Status   string // of Statuses
	Currency string // combined code
	// From ≤ created < Before.
	From     time.Time
	Before   time.Time
	Page     int // 1, 2, 3 …; 0 = 1
	PageSize int // 1–100; 0 = 20
}

// The bounds of a page of the history.
const (
	defaultPageSize = 20
	MaxPageSize     = fault.MaxPage
)

// exportPage is how many rows an export, or statistics, hold in memory at once.
const exportPage = 500

// Statuses are those that histories show: a payment's, without
// partially_paid, which is shown as waiting, and a withdrawal's.
func Statuses() []string {
	var out []string
	for _, s := range payment.Machine.States {
		p := payment.Payment{Status: s}
		if shown := string(p.Shown()); !slices.Contains(out, shown) {
			out = append(out, shown)
		}
	}
	for _, s := range withdrawal.Statuses() {
		if !slices.Contains(out, string(s)) {
			out = append(out, string(s))
		}
	}
	return out
}

// Transactions returns a page of the tenant's unified history, newest first, and
// how many match in all. A page behind the last is empty. Errors: *InvalidError.
func (s *Service) Transactions(ctx context.Context, tenant string, f Filter) (page []Transaction, count int64, err error) {
	where, err := s.conditions(&f)
	if err != nil {
		return nil, 0, err
	}
	if f.Page == 0 {
		f.Page = 1
	}
	if f.PageSize == 0 {
		f.PageSize = defaultPageSize
	}
	q := storage.Query{
		Table: storage.Activities.Table, Partition: storage.Tenant(tenant), Where: where, Limit: f.PageSize,
		Order: []storage.Order{{Column: "created_at", Desc: true}},
	}
	lines := func(kind string) storage.Query { // at any time
		rows := q
		rows.Where, _ = s.conditions(&Filter{Type: kind, Status: f.Status, Currency: f.Currency}) // checked before
		return rows
	}
	created := tally.Range{From: f.From, Before: f.Before}
	var of []tally.Side
	counted := true
	for _, side := range sides(f.Type, tally.Is(f.Status), f.Currency) {
		n, ok, err := side.Between(ctx, s.cfg.Store, created, s.cfg.Now(), side.Match, lines(side.kind))
		if err != nil {
			return nil, 0, err
		}
		count, counted, of = count+n, counted && ok, append(of, side.Side)
	}
	if !counted {
		if count, err = s.cfg.Store.Count(ctx, q); err != nil {
			return nil, 0, err
		}
	}
	// Compared before it is multiplied: page numbers have no bound.
	if int64(f.Page-1) > count/int64(f.PageSize) {
		return []Transaction{}, count, nil
	}
	q.Offset = (f.Page - 1) * f.PageSize
	if counted {
		if q, err = tally.Page(ctx, s.cfg.Store, q, lines(f.Type), created, of...); err != nil {
			return nil, 0, err
		}
	}
	rows, err := s.lines(ctx, q, &f, counted)
	if err != nil {
		return nil, 0, err
	}
	page, err = s.transactions(rows)
	return page, count, err
}

// merged is how many rows of each table are read at most to find a page among them.
const merged = 1000

// lines reads a page of the history. Lines of one type, status or currency are found by the
// payments and withdrawals that they are of, which have indexes for that. The history has one
// by time alone. Along that it reads a page far behind the first of a day's lines of several
// statuses or types, and all pages of a tenant without counters, whose lines are counted one by one.
func (s *Service) lines(ctx context.Context, q storage.Query, f *Filter, counted bool) ([]storage.Row, error) {
	of := behind(q, f)
	if f.Type+f.Status+f.Currency == "" || !counted || len(of) > 1 && q.Offset+q.Limit > merged {
		return s.cfg.Store.Find(ctx, q)
	}
	var rows []storage.Row
	for _, one := range of {
		if one.IDs = len(of) == 1; !one.IDs {
			one.Offset, one.Limit = 0, q.Offset+q.Limit
		}
		some, err := s.cfg.Store.Find(ctx, one)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	if len(of) > 1 {
		slices.SortFunc(rows, func(x, y storage.Row) int {
			return cmp.Or(createdAt(y).Compare(createdAt(x)), cmp.Compare(y.ID, x.ID))
		})
		rows = rows[min(q.Offset, len(rows)):min(q.Offset+q.Limit, len(rows))]
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	rows, err := s.cfg.Store.Rows(ctx, storage.Activities.Table, storage.Keys(q.Partition, ids...)...)
	return slices.DeleteFunc(rows, func(r storage.Row) bool { // what moved on meanwhile
		return f.Status != "" && storage.Activities.Value(r).Status != f.Status
	}), err
}

// behind are the queries for what the lines of a query of the history are of: one for each
// table and each status that is shown as the one asked for.
func behind(q storage.Query, f *Filter) (out []storage.Query) {
	created := slices.DeleteFunc(slices.Clone(q.Where), func(c storage.Cond) bool { return c.Column != "created_at" })
	for _, side := range sides(f.Type, nil, "") {
		statuses := []string{""}
		if f.Status != "" {
			statuses = shownAs(side.kind, f.Status)
		}
		for _, status := range statuses {
			one := q
			one.Table, one.Where = side.Table, slices.Clip(created)
			for _, c := range [][2]string{{"status", status}, {"currency", f.Currency}} {
				if c[1] != "" {
					one.Where = append(one.Where, storage.Cond{Column: c[0], Op: storage.Eq, Value: c[1]})
				}
			}
			out = append(out, one)
		}
	}
	return out
}

// shownAs are the statuses of payments or withdrawals that the history shows as this one.
func shownAs(kind, status string) (out []string) {
	if kind == storage.ActivityWithdrawal {
		if slices.Contains(withdrawal.Statuses(), withdrawal.Status(status)) {
			out = append(out, status)
		}
		return out
	}
	for _, s := range payment.Machine.States {
		if p := (payment.Payment{Status: s}); string(p.Shown()) == status {
			out = append(out, string(s))
		}
	}
	return out
}

// side is the rows behind the lines of one kind in the history.
type side struct {
	tally.Side
	kind string
}

// sides are those that match.
func sides(kind string, statuses []string, currency string) []side {
	match := tally.Match{statuses, tally.Is(currency)}
	all := []side{
		{tally.Side{Tally: payment.Tally, Match: match}, storage.ActivityPayment},
		{tally.Side{Tally: withdrawal.Tally, Match: match}, storage.ActivityWithdrawal},
	}
	return slices.DeleteFunc(all, func(s side) bool { return kind != "" && s.kind != kind })
}

// Shown returns how many payments or withdrawals show one of these statuses; ok is false
// where no counters hold yet.
func (s *Service) Shown(ctx context.Context, tenant, kind string, statuses []string) (n int64, ok bool, err error) {
	side := sides(kind, statuses, "")[0]
	all, ok, err := side.Totals(ctx, s.cfg.Store, storage.Tenant(tenant), side.Match)
	return all[0], ok, err
}

// Export checks the filter and returns an iterator over everything that
// matches, newest first; its Page and PageSize play no part. It reads by key, a
// page at a time, so that the memory it takes and the time of a page do not grow
// with the history. What is created meanwhile is left out; what changes meanwhile
// is there once, as it was when its page was read. The iterator ends with the
// first error. Errors: *InvalidError.
func (s *Service) Export(ctx context.Context, tenant string, f Filter) (iter.Seq2[Transaction, error], error) {
	where, err := s.conditions(&f)
	if err != nil {
		return nil, err
	}
	return func(yield func(Transaction, error) bool) {
		for rows, err := range pages(ctx, s.cfg.Store, storage.Activities.Table, storage.Tenant(tenant), where) {
			var page []Transaction
			if err == nil {
				page, err = s.transactions(rows)
			}
			if err != nil {
				yield(Transaction{}, err)
				return
			}
			for _, t := range page {
				if !yield(t, nil) {
					return
				}
			}
		}
	}, nil
}

// pages reads the rows of a table that match, newest first. Each page begins behind the
// last row of the page before, so that rows which are added meanwhile move none.
func pages(ctx context.Context, s storage.Store, t *storage.Table, p storage.Partition, where []storage.Cond) iter.Seq2[[]storage.Row, error] {
	find := func(more ...storage.Cond) ([]storage.Row, error) {
		return s.Find(ctx, storage.Query{
			Table: t, Partition: p, Where: slices.Concat(where, more),
			Order: []storage.Order{{Column: "created_at", Desc: true}}, Limit: exportPage,
		})
	}
	return func(yield func([]storage.Row, error) bool) {
		rows, err := find()
		more := len(rows) == exportPage
		for yield(rows, err) && err == nil && more {
			last := rows[len(rows)-1]
			at := createdAt(last)
			rows, err = find(
				storage.Cond{Column: "created_at", Op: storage.Eq, Value: at}, storage.Cond{Column: storage.ColID, Op: storage.Lt, Value: last.ID})
			if more = len(rows) == exportPage; err != nil || more {
				continue
			}
			var older []storage.Row
			older, err = find(storage.Cond{Column: "created_at", Op: storage.Lt, Value: at})
			rows, more = append(rows, older...), len(older) == exportPage
		}
	}
}

func createdAt(r storage.Row) time.Time {
	switch v := r.Value.(type) {
	case payment.Payment:
		return v.CreatedAt
	case withdrawal.Withdrawal:
		return v.CreatedAt
	default:
		return storage.Activities.Value(r).CreatedAt
	}
}

func (s *Service) transactions(rows []storage.Row) ([]Transaction, error) {
	out := make([]Transaction, len(rows))
	for i, r := range rows {
		t := Transaction{ID: r.ID, Activity: storage.Activities.Value(r)}
		var err error
		if t.Scale, err = s.cfg.Scale(string(t.Currency)); err != nil {
			return nil, err
		}
		out[i] = t
	}
	return out, nil
}

// Check says what is wrong with a filter: *InvalidError.
func (s *Service) Check(f Filter) error {
	_, err := s.conditions(&f)
	return err
}

// conditions checks a filter and says how it is put to the store.
func (s *Service) conditions(f *Filter) ([]storage.Cond, error) {
	bad, where := &InvalidError{}, []storage.Cond(nil)
	add := func(column string, op storage.Op, value any, given bool) {
		if given {
			where = append(where, storage.Cond{Column: column, Op: op, Value: value})
		}
	}
	if f.Type != "" && f.Type != storage.ActivityPayment && f.Type != storage.ActivityWithdrawal {
		bad.Add("type", "must be payment or withdrawal")
	}
	if f.Status != "" && !slices.Contains(Statuses(), f.Status) {
		bad.Add("status", "must be one of "+strings.Join(Statuses(), ", "))
	}
	if _, err := s.cfg.Registry.Currency(f.Currency); f.Currency != "" && err != nil {
		bad.Add("currency", "is not supported")
	}
	if f.Page < 0 {
		bad.Add("page", "must be at least 1")
	}
	if f.PageSize < 0 || f.PageSize > MaxPageSize {
		bad.Add("page_size", fmt.Sprintf("must be from 1 to %d", MaxPageSize))
	}
	add("kind", storage.Eq, f.Type, f.Type != "")
	add("status", storage.Eq, f.Status, f.Status != "")
	add("currency", storage.Eq, ledger.Asset(f.Currency), f.Currency != "")
	add("created_at", storage.Ge, f.From, !f.From.IsZero())
	add("created_at", storage.Lt, f.Before, !f.Before.IsZero())
	return where, bad.Err()
}
