package move

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// What a Summary counts beside tables.
const (
	SumBalances = "ledger balances"
	SumEntries  = "ledger entries"
	SumLevels   = "levels"
)

// Summary is what a store holds, in figures that two equal stores have in common.
type Summary struct {
	Sums []Sum `json:"sums"` // of every table, in the order given, then the ledger's and the levels'
}

// Sum is one table. Hash is over every row with all that it has, in no order: the
// sum of the rows' SHA-256 modulo 2^256.
type Sum struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	Hash  string `json:"hash"`
}

// Difference is one table whose figures are not equal at both ends.
type Difference struct{ Source, Target Sum }

func (d Difference) String() string {
	return fmt.Sprintf("%s: %d in the source, %d in the target, hashes %.8s and %.8s", d.Source.Name, d.Source.Count, d.Target.Count, d.Source.Hash, d.Target.Hash)
}

// Compare lists what is not equal; nothing where all is.
func (s Summary) Compare(target Summary) []Difference {
	var out []Difference
	have := map[string]Sum{}
	for _, t := range target.Sums {
		have[t.Name] = t
	}
	for _, t := range s.Sums {
		if have[t.Name] != t {
			out = append(out, Difference{t, have[t.Name]})
		}
		delete(have, t.Name)
	}
	for _, t := range target.Sums {
		if _, left := have[t.Name]; left && t.Count > 0 {
			out = append(out, Difference{Sum{Name: t.Name}, t})
		}
	}
	return out
}

// Records is how many there are in all.
func (s Summary) Records() int64 {
	var n int64
	for _, t := range s.Sums {
		n += t.Count
	}
	return n
}

// read is how many of them a walk counts.
func (s Summary) read() int64 {
	n := s.Records()
	for _, t := range s.Sums {
		if t.Name == SumBalances {
			n -= t.Count
		}
	}
	return n
}

// sums adds up what a walk comes by.
type sums struct {
	tables   []*storage.Table
	byTable  map[*storage.Table]*sum
	balances sum
	entries  sum
	levels   sum
}

// sum is a count and a hash that does not depend on any order.
type sum struct {
	n int64
	h [4]uint64
}

func newSums(tables []*storage.Table) *sums {
	s := &sums{tables: tables, byTable: map[*storage.Table]*sum{}}
	for _, t := range tables {
		s.byTable[t] = &sum{}
	}
	return s
}

// add takes one thing of a partition in.
func (s *sum) add(p storage.Partition, text []byte) {
	h := sha256.New()
	_, _ = h.Write(append([]byte(p), 0))
	_, _ = h.Write(text)
	var d [32]byte
	h.Sum(d[:0])
	s.n++
	var carry uint64
	for i := range s.h {
		s.h[i], carry = bits.Add64(s.h[i], binary.LittleEndian.Uint64(d[8*i:]), carry)
	}
}

func (s *sum) sum(name string) Sum {
	return Sum{name, s.n, fmt.Sprintf("%016x%016x%016x%016x", s.h[3], s.h[2], s.h[1], s.h[0])}
}

func (s *sums) entry(p storage.Partition, e *ledger.Entry) {
	s.entries.add(p, fmt.Appendf(nil, "%q %q %d %q %q %q %d %d %d",
		e.Account, e.Asset, e.Seq, e.Tx, e.Kind, e.Ref, e.Delta, e.After, storage.Micros(e.At)))
}

func (s *sums) balance(p storage.Partition, b *ledger.Balance) {
	s.balances.add(p, fmt.Appendf(nil, "%q %q %d %d %d", b.Account, b.Asset, b.Posted, b.Held, b.Seq))
}

func (s *sums) summary() Summary {
	var out Summary
	for _, t := range s.tables {
		out.Sums = append(out.Sums, s.byTable[t].sum(t.Name))
	}
	out.Sums = append(out.Sums, s.balances.sum(SumBalances), s.entries.sum(SumEntries), s.levels.sum(SumLevels))
	return out
}

// summarize reads all of a store. findings are those of ledger.Verify over every
// partition: among them may be what is wrong at the source as well.
func summarize(ctx context.Context, e End, o Options, phase string, total int64) (s Summary, findings []Finding, err error) {
	w := newWalk(e, o, phase)
	w.total = total
	w.ledger = func(ctx context.Context, p storage.Partition, list []ledger.Balance) error {
		r, err := ledger.Verify(w.books(ctx, p, list))
		for _, f := range r.Findings {
			findings = append(findings, Finding{p, f})
		}
		return err
	}
	err = w.run(ctx)
	return w.sums.summary(), findings, err
}

// Finding is something wrong in one partition's books.
type Finding struct {
	Partition storage.Partition
	ledger.Finding
}

// books lays a partition's ledger open, and sums it up meanwhile.
func (w *walk) books(ctx context.Context, p storage.Partition, list []ledger.Balance) ledger.Books {
	return ledger.Books{
		Balances: func(yield func(ledger.Balance, error) bool) {
			for _, b := range list {
				if !yield(b, nil) {
					return
				}
			}
		},
		Entries: w.history(ctx, p, list),
	}
}

func (w *walk) history(ctx context.Context, p storage.Partition, list []ledger.Balance) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for i := range list {
			for from := int64(1); from <= list[i].Seq; {
				got, err := entries(ctx, w.end.Store, p, &list[i], from, page)
				if err != nil {
					yield(ledger.Entry{}, err)
					return
				}
				for k := range got {
					w.entry(p, &got[k])
					if !yield(got[k], nil) {
						return
					}
				}
				from += int64(len(got))
			}
		}
	}
}
