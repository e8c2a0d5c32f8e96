package storagetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/cputime"
	"github.com/cryptopay-go/cryptopay/storage"
)

// BenchDue measures the timers of this library, which are due rows of a store:
// adding them, claiming those that are due, and asking while none is. Adding
// and claiming take many rows a call, as workers do; ns/row is the figure.
// waiting is how many rows that are not due lie beside.
func BenchDue(b *testing.B, h Harness, waiting int) {
	later := epoch.Add(time.Hour)
	b.Run("add 100 a call", func(b *testing.B) {
		s := dueStore(b, h, waiting, later)
		n, before := 0, cputime.Used()
		for b.Loop() {
			addDue(b, s, "new", n, 100, later)
			n += 100
		}
		perRow(b, n, before)
	})
	b.Run("claim 500 a call", func(b *testing.B) {
		s := dueStore(b, h, waiting, later)
		const most = 500
		addDue(b, s, "due", 0, 4*most, epoch)
		c := storage.Claim{Table: Notes.Table, Now: epoch, Max: most}
		n, before := 0, cputime.Used()
		for b.Loop() {
			// A lease ends where the next round begins: the same rows are due again.
			c.Until = c.Now.Add(time.Second)
			for range 4 {
				rows, err := s.Claim(context.Background(), c)
				if err != nil || len(rows) != most {
					b.Fatal(len(rows), err)
				}
			}
			n += 4 * most
			c.Now = c.Until
		}
		perRow(b, n, before)
	})
	b.Run("empty poll", func(b *testing.B) {
		s := dueStore(b, h, waiting, later)
		c := storage.Claim{Table: Notes.Table, Now: epoch, Until: later, Max: 500}
		for b.Loop() {
			if rows, err := s.Claim(context.Background(), c); err != nil || len(rows) != 0 {
				b.Fatal(len(rows), err)
			}
		}
	})
}

func perRow(b *testing.B, rows int, cpuBefore time.Duration) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
	b.ReportMetric(float64((cputime.Used()-cpuBefore).Nanoseconds())/float64(rows), "cpu-ns/row")
}

func dueStore(b *testing.B, h Harness, waiting int, later time.Time) storage.Store {
	b.Helper()
	s := h.Open(b)
	if err := s.Open(context.Background(), Tables()...); err != nil {
		b.Fatal(err)
	}
	for n := 0; n < waiting; n += 1000 {
		addDue(b, s, "waiting", n, 1000, later)
	}
	return s
}

func addDue(b *testing.B, s storage.Store, name string, from, n int, due time.Time) {
	b.Helper()
	changes := make([]storage.Change, n)
	for i := range changes {
		id := fmt.Sprintf("%s-%09d", name, from+i)
		changes[i] = storage.Change{ID: id, Partition: here, Put: []storage.Row{
			Notes.Row(id, 0, due, Note{Text: id, N: int64(i)}),
		}}
	}
	for _, err := range s.Commit(context.Background(), changes...) {
		if err != nil {
			b.Fatal(err)
		}
	}
}
