// Package journal writes a tenant's ledger for accountants: as CSV with running balances, and
// as text for hledger and Beancount, whose own checks then prove it again.
//
// It promises:
//
//   - Every entry of the ledger stands in the journal once, oldest first, with the transaction
//     that it is of. Amounts are exact.
//   - Each transaction is balanced per asset, and the balance that the store keeps of each
//     account stands at the end as an assertion: hledger check and bean-check fail if the
//     entries do not come to it.
//   - A journal shows one moment: what is posted while it is read is not in it.
//
// Amounts have the signs of double entry: assets and costs are positive, what is owed to
// merchants and what was earned is negative. That is the ledger's own sign turned round.
package journal

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Source is what a journal is written of.
type Source struct {
	Store  storage.Store
	Tenant string
	// Scale is how many decimal places a unit of an asset has. App.Scale is one.
	Scale func(asset string) (uint8, error)
	// Until leaves out what was posted at this time or later; zero leaves out nothing.
	Until time.Time
}

// Tx is one transaction with its entries, ordered by account and asset.
type Tx struct {
	ID      string
	At      time.Time // UTC
	Kind    ledger.Kind
	Ref     string // the payment, withdrawal or transfer that it is of
	Entries []ledger.Entry
}

// Transactions reads the ledger, oldest first. It keeps about 65,000 entries in memory. An
// error ends it.
func (s Source) Transactions(ctx context.Context) iter.Seq2[Tx, error] {
	return func(yield func(Tx, error) bool) {
		r := reading{s: s, open: map[string]*Tx{}}
		if err := r.run(ctx, func(t Tx) bool { return yield(t, nil) }); err != nil {
			yield(Tx{}, err)
		}
	}
}

// budget is about how many entries are in memory for all accounts together.
const budget = 1 << 16

// line is one account's history of one asset, and where it was read to.
type line struct {
	account ledger.Account
	asset   ledger.Asset
	last    int64 // the number of the newest entry when reading began
	next    int64
	page    []ledger.Entry
}

// reading merges the accounts' histories by time. A transaction's entries stand in several of
// them; it is complete when it is balanced and the time has gone on. Where the clocks of two
// processes differ, the times of one account go back, and a transaction is complete later.
type reading struct {
	s        Source
	balances []ledger.Balance
	size     int
	lines    lines
	open     map[string]*Tx
	order    []string // of the open ones, as they were begun
}

func (r *reading) run(ctx context.Context, pass func(Tx) bool) error {
	var err error
	r.balances, err = r.s.Store.Balances(ctx, storage.Tenant(r.s.Tenant))
	if err != nil {
		return err
	}
	r.size = max(8, min(1_000, budget/max(1, len(r.balances))))
	for _, b := range r.balances {
		l := &line{account: b.Account, asset: b.Asset, last: b.Seq, next: 1}
		if err := r.fill(ctx, l); err != nil {
			return err
		}
		if len(l.page) > 0 {
			r.lines = append(r.lines, l)
		}
	}
	heap.Init(&r.lines)
	var now time.Time
	for len(r.lines) > 0 {
		l := r.lines[0]
		e := l.page[0]
		if e.At.After(now) {
			if ok, err := r.complete(pass); err != nil || !ok {
				return err
			}
			now = e.At
		}
		if r.s.Until.IsZero() || e.At.Before(r.s.Until) {
			r.add(e)
		}
		if l.page = l.page[1:]; len(l.page) == 0 {
			if err := r.fill(ctx, l); err != nil {
				return err
			}
		}
		if len(l.page) == 0 {
			heap.Pop(&r.lines)
			continue
		}
		heap.Fix(&r.lines, 0)
	}
	if ok, err := r.complete(pass); err != nil || !ok {
		return err
	}
	for _, id := range r.order {
		return fmt.Errorf("journal: the entries of %s do not come to nothing: read it again, and if it is still so App.Verify says what is wrong", id)
	}
	return nil
}

// fill reads the next entries of a line; none is left where the line is at its end.
func (r *reading) fill(ctx context.Context, l *line) error {
	if l.next > l.last {
		return nil
	}
	before := min(l.next+int64(r.size), l.last+1)
	got, err := r.s.Store.Entries(ctx, storage.Tenant(r.s.Tenant), l.account, l.asset, before, r.size)
	if err != nil {
		return err
	}
	slices.Reverse(got)
	if int64(len(got)) != before-l.next || got[0].Seq != l.next || got[len(got)-1].Seq != before-1 {
		return fmt.Errorf("journal: %s has no entries %d to %d of %s: App.Verify says what is wrong", l.account, l.next, before-1, l.asset)
	}
	l.page, l.next = got, before
	return nil
}

func (r *reading) add(e ledger.Entry) {
	t := r.open[e.Tx]
	if t == nil {
		t = &Tx{ID: e.Tx, At: e.At.UTC(), Kind: e.Kind, Ref: e.Ref}
		r.open[e.Tx], r.order = t, append(r.order, e.Tx)
	}
	t.Entries = append(t.Entries, e)
}

// complete passes on the open transactions that are balanced.
func (r *reading) complete(pass func(Tx) bool) (more bool, err error) {
	var left []string
	for i, id := range r.order {
		t := r.open[id]
		ok, err := t.balanced()
		if err != nil {
			return false, err
		}
		if !ok {
			left = append(left, id)
			continue
		}
		delete(r.open, id)
		slices.SortFunc(t.Entries, func(a, b ledger.Entry) int {
			return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Asset, b.Asset), cmp.Compare(a.Seq, b.Seq))
		})
		if !pass(*t) {
			r.order = append(left, r.order[i+1:]...)
			return false, nil
		}
	}
	r.order = left
	return true, nil
}

func (t *Tx) balanced() (bool, error) {
	sums := map[ledger.Asset]ledger.Amount{}
	for _, e := range t.Entries {
		sum, err := sums[e.Asset].Add(e.Delta)
		if err != nil {
			return false, fmt.Errorf("journal: %s: %w", t.ID, err)
		}
		sums[e.Asset] = sum
	}
	for _, sum := range sums {
		if sum != 0 {
			return false, nil
		}
	}
	return true, nil
}

// lines is a heap of lines by the time of their next entry, then by its transaction.
type lines []*line

func (l lines) Len() int      { return len(l) }
func (l lines) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *lines) Push(x any)   { *l = append(*l, x.(*line)) }

func (l lines) Less(i, j int) bool {
	a, b := &l[i].page[0], &l[j].page[0]
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Tx, b.Tx), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Asset, b.Asset)) < 0
}

func (l *lines) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
