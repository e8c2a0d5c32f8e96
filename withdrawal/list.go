package withdrawal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// Get returns one of the tenant's withdrawals, or ErrNotFound.
func (s *Service) Get(ctx context.Context, tenant, id string) (Withdrawal, error) {
	w, _, err := s.load(ctx, storage.Tenant(tenant), id)
	return w, err
}

// Sort is the order of a list.
type Sort string

// The orders. Amounts of different currencies compare by number.
const (
	CreatedDesc Sort = "created_desc"
	CreatedAsc  Sort = "created_asc"
	AmountDesc  Sort = "amount_desc"
	AmountAsc   Sort = "amount_asc"
)

var orders = map[Sort]storage.Order{
	CreatedDesc: {Column: "created_at", Desc: true},
	CreatedAsc:  {Column: "created_at"},
	AmountDesc:  {Column: "amount_rank", Desc: true},
	AmountAsc:   {Column: "amount_rank"},
}

// The bounds of a page.
const (
	DefaultLimit = 20
	MaxLimit     = fault.MaxPage
)

// Filter selects withdrawals; empty fields select all.
type Filter struct {
	Status     Status
	Currency   string // combined code
	Blockchain string // or an alias of it
	Token      string
	CustomID   string
	// From ≤ created < Before. DateRange makes them of what merchants write.
	From   time.Time
	Before time.Time
	Sort   Sort // "" = CreatedDesc
	Limit  int  // 1–100; 0 = 20
	Offset int
}

// List returns a page and how many match in all. *InvalidError names what is
// wrong with the filter.
func (s *Service) List(ctx context.Context, tenant string, f Filter) (page []Withdrawal, total int64, err error) {
	where, err := s.conditions(&f)
	if err != nil {
		return nil, 0, err
	}
	q := storage.Query{
		Table: Withdrawals.Table, Partition: storage.Tenant(tenant), Where: where,
		Order: []storage.Order{orders[f.Sort]}, Limit: f.Limit, Offset: f.Offset,
	}
	if total, err = s.count(ctx, &q, &f); err != nil {
		return nil, 0, err
	}
	rows, err := s.c.Store.Find(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	page = make([]Withdrawal, len(rows))
	for i, r := range rows {
		page[i] = Withdrawals.Value(r)
		page[i].ID = r.ID
	}
	return page, total, nil
}

// count says how many withdrawals match, and finds the place of a deep page of the newest.
// Where no counters hold yet, and for a custom id, it counts rows.
func (s *Service) count(ctx context.Context, q *storage.Query, f *Filter) (total int64, err error) {
	if f.CustomID != "" {
		return s.c.Store.Count(ctx, *q)
	}
	network := f.Blockchain
	if n, err := s.c.Registry.Network(f.Blockchain); err == nil {
		network = string(n.Code)
	}
	match := tally.Match{tally.Is(string(f.Status)), tally.Is(f.Currency), tally.Is(network), tally.Is(f.Token)}
	rows, created := *q, tally.Range{From: f.From, Before: f.Before}
	rows.Where, _ = s.conditions(&Filter{Status: f.Status, Currency: f.Currency, Blockchain: f.Blockchain, Token: f.Token}) // checked before
	total, counted, err := Tally.Between(ctx, s.c.Store, created, s.now(), match, rows)
	if err == nil && !counted {
		return s.c.Store.Count(ctx, *q)
	}
	if err == nil && f.Sort == CreatedDesc {
		*q, err = tally.Page(ctx, s.c.Store, *q, rows, created, tally.Side{Tally: Tally, Match: match})
	}
	return total, err
}

// CheckFilter says what is wrong with a filter: *InvalidError.
func (s *Service) CheckFilter(f Filter) error {
	_, err := s.conditions(&f)
	return err
}

// conditions checks the filter and fills in its defaults.
func (s *Service) conditions(f *Filter) ([]storage.Cond, error) {
	bad := &InvalidError{}
	or(&f.Sort, CreatedDesc)
	or(&f.Limit, DefaultLimit)
	bad.AddPage(f.Limit, f.Offset)
	if _, ok := orders[f.Sort]; !ok {
		bad.Add("sort", "must be created_desc, created_asc, amount_desc or amount_asc")
	}
	if f.Status != "" && !slices.Contains(Statuses(), f.Status) {
		bad.Add("status", "is not a status of withdrawals")
	}
	var where []storage.Cond
	is := func(column, value string) {
		if value != "" {
			where = append(where, storage.Cond{Column: column, Op: storage.Eq, Value: value})
		}
	}
	if f.Status != "" {
		where = append(where, storage.Cond{Column: "status", Op: storage.Eq, Value: f.Status})
	}
	if f.Currency != "" {
		if _, err := s.c.Registry.Currency(f.Currency); err != nil {
			bad.Add("currency", "is not supported")
		}
	}
	is("currency", f.Currency)
	if f.Blockchain != "" {
		n, err := s.c.Registry.Network(f.Blockchain)
		if err != nil {
			bad.Add("blockchain", "is not supported")
		}
		is("network", string(n.Code))
	}
	if f.Token != "" && !s.knownToken(f.Token) {
		bad.Add("token", "is not supported")
	}
	is("token", f.Token)
	is("custom_id", f.CustomID)
	if !f.From.IsZero() {
		where = append(where, storage.Cond{Column: "created_at", Op: storage.Ge, Value: f.From})
	}
	if !f.Before.IsZero() {
		where = append(where, storage.Cond{Column: "created_at", Op: storage.Lt, Value: f.Before})
	}
	return where, bad.Err()
}

func (s *Service) knownToken(token string) bool {
	return slices.ContainsFunc(s.c.Registry.Codes(), func(code string) bool {
		c, err := s.c.Registry.Currency(code)
		return err == nil && c.Token == token
	})
}

// DateRange reads the dates of a list's filter, both inclusive as merchants mean
// them, as the half-open range From ≤ t < Before. A bare date is its whole day,
// UTC; a datetime is RFC 3339, UTC where it names no zone, and as an end takes in its whole millisecond,
// which is as fine as times are shown. "" = open. *InvalidError names start_date
// or end_date.
func DateRange(start, end string) (from, before time.Time, err error) {
	bad := &InvalidError{}
	if start != "" {
		if from, _, err = dates(start); err != nil {
			bad.Add("start_date", "must be a date or a datetime")
		}
	}
	if end != "" {
		var width time.Duration
		if before, width, err = dates(end); err != nil {
			bad.Add("end_date", "must be a date or a datetime")
		}
		before = before.Add(width)
	}
	return from, before, bad.Err()
}

// dates reads one of them, of the years 1 to 9999: others cannot be told again in
// RFC 3339.
func dates(s string) (t time.Time, width time.Duration, err error) {
	width = 24 * time.Hour
	if t, err = time.Parse(time.DateOnly, s); err != nil {
		width = time.Millisecond
		if t, err = time.Parse(time.RFC3339, s); err != nil {
			t, err = time.Parse("2006-01-02T15:04:05", s) // without a zone: UTC
		}
		t = t.UTC().Truncate(time.Millisecond)
	}
	if y := t.Year(); err == nil && (y < 1 || y > 9999) {
		err = fmt.Errorf("withdrawal: the year %d is not one of RFC 3339", y)
	}
	return t, width, err
}
