package reconcile

import (
	"context"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Figures say how far the books of one network were held against it.
type Figures struct {
	// Looked is the share of addresses that were looked at in the last day, from 0 to 1; 1 where
	// there are none.
	Looked float64
	// Oldest is when the address was looked at whose look is the longest ago; zero = there is none.
	Oldest time.Time
	// Waiting are addresses that could not be looked at to the end, by the reason.
	Waiting map[string]Waiting
	// Differences is how many stand.
	Differences int64
}

// Waiting is how many addresses wait, and since when the first of them does.
type Waiting struct {
	Count int64
	Since time.Time
}

// Reasons lists for what a look may wait.
func Reasons() []string { return []string{string(InFlight), WaitsConfirm, WaitsNode, WaitsUnsupported} }

// Figures reads them. It reads a few rows along indexes, and counts rows only where some were not
// looked at for more than a day.
func (s *Service) Figures(ctx context.Context) (Figures, error) {
	f, now := Figures{Looked: 1, Waiting: map[string]Waiting{}}, s.cfg.Now()
	oldest := func(where ...storage.Cond) (time.Time, error) {
		q := storage.Query{Table: Looks.Table, Partition: s.part, Limit: 1, Where: where, Order: []storage.Order{{Column: "looked_at"}}}
		if len(where) > 0 {
			q.Order[0].Column = "waits_since"
		}
		rows, err := s.cfg.Store.Find(ctx, q)
		if err != nil || len(rows) == 0 {
			return time.Time{}, err
		}
		if v := Looks.Value(rows[0]); len(where) > 0 {
			return v.Since, nil
		}
		return Looks.Value(rows[0]).Looked, nil
	}
	count := func(t *storage.Table, where ...storage.Cond) (int64, error) {
		return s.cfg.Store.Count(ctx, storage.Query{Table: t, Partition: s.part, Where: where})
	}
	var err error
	if f.Oldest, err = oldest(); err != nil {
		return f, err
	}
	if day := now.Add(-24 * time.Hour); f.Oldest.Before(day) && !f.Oldest.IsZero() {
		all, err := count(Looks.Table)
		if err != nil {
			return f, err
		}
		behind, err := count(Looks.Table, storage.Cond{Column: "looked_at", Op: storage.Lt, Value: day})
		if err != nil {
			return f, err
		}
		f.Looked = 1 - float64(behind)/float64(max(all, 1))
	}
	for _, reason := range Reasons() {
		is := storage.Cond{Column: "waits", Op: storage.Eq, Value: reason}
		since, err := oldest(is)
		if err != nil {
			return f, err
		}
		if since.IsZero() {
			continue
		}
		n, err := count(Looks.Table, is)
		if err != nil {
			return f, err
		}
		f.Waiting[reason] = Waiting{n, since}
	}
	f.Differences, err = count(Differences.Table)
	return f, err
}

// Differences lists what stands, the oldest first: at most 1000.
func (s *Service) Differences(ctx context.Context) ([]DifferenceRow, error) {
	rows, err := s.cfg.Store.Find(ctx, storage.Query{Table: Differences.Table, Partition: s.part, Limit: 1000})
	out := make([]DifferenceRow, 0, len(rows))
	for _, r := range rows {
		out = append(out, Differences.Value(r))
	}
	return out, err
}
