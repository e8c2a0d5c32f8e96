package seal

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Proof is what Prove found. It is whole once the iterator has come to its end.
type Proof struct {
	Seals    int64 // read
	Entries  int64 // that they cover
	Findings []Finding
	More     int64 // findings beyond those listed
}

// maxFindings is how many a Proof lists.
const maxFindings = 100

// Finding is one thing that is not as it was sealed. Fields that do not apply are
// zero.
type Finding struct {
	Fault   Fault
	Seal    int64 // its number
	Account ledger.Account
	Asset   ledger.Asset
	Seq     int64
	Tx      string // as it is now
}

// Fault is the kind of a Finding.
type Fault string

// What can be wrong.
const (
	FaultEntry   Fault = "entry"   // the first entry of the seal that was changed since
	FaultGone    Fault = "gone"    // the first entry of the seal that is not there
	FaultSeal    Fault = "seal"    // the seal's row was changed, or does not follow from the one before
	FaultMissing Fault = "missing" // there is no seal of this number
	FaultRange   Fault = "range"   // the seal does not begin where the account's last one ended
	FaultKey     Fault = "key"     // the seal was not made with this key
	FaultHeight  Fault = "height"  // the account was sealed up to Seq, and the seals end elsewhere
)

// String tells the finding on one line, for a log or a terminal.
func (f Finding) String() string {
	s := "seal: " + string(f.Fault)
	if f.Seal != 0 {
		s += fmt.Sprintf(" seal=%d", f.Seal)
	}
	if f.Account != "" {
		s += fmt.Sprintf(" account=%q asset=%q seq=%d", f.Account, f.Asset, f.Seq)
	}
	if f.Tx != "" {
		s += fmt.Sprintf(" tx=%q", f.Tx)
	}
	return s
}

// Prove reads all entries of a partition, holds them against its seals, and passes
// them on: every one up to its balance once, oldest first within an account and
// asset, as ledger.Books wants them. What it finds goes to proof. Without keys
// seals are proved, and not who made them. Postings may go on meanwhile. A seal, or a
// height, that cannot be read counts as one that is not there: an error behind all entries
// joins their *storage.RowErrors.
//
// Memory grows with the number of accounts, not of entries or seals.
func Prove(ctx context.Context, s storage.Store, p storage.Partition, balances []ledger.Balance, keys [][]byte, proof *Proof) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		w := &walk{
			s: s, p: p, keys: keys, proof: proof, yield: yield, lines: map[line]*cursor{},
			page: min(MaxEntries, max(8, budget/int64(max(1, len(balances))))),
		}
		if err := w.run(ctx, balances); err != nil && !w.over {
			w.yield(ledger.Entry{}, err)
		}
	}
}

// budget is about how many entries are in memory for all accounts together.
const budget = 1 << 16

// walk follows the chain of seals, and each account's history behind it.
type walk struct {
	s     storage.Store
	p     storage.Partition
	keys  [][]byte // any of which may have signed a seal
	proof *Proof
	yield func(ledger.Entry, error) bool
	over  bool // whoever reads has enough
	lines map[line]*cursor
	page  int64
	last  Seal
}

// cursor is where one account's history is.
type cursor struct {
	page   []ledger.Entry // read and not yet passed on
	next   int64          // the number to read from
	sealed int64          // the last number that a seal covers
}

func (w *walk) run(ctx context.Context, balances []ledger.Balance) error {
	newest, heights, err := w.moment(ctx)
	var unread storage.RowErrors
	if err = unread.Take(err); err != nil {
		return err
	}
	err = each(ctx, w.s, Seals.Table, w.p, func(r storage.Row) error {
		if w.over || r.ID > newest {
			return nil
		}
		return w.seal(ctx, r)
	})
	if err = unread.Take(err); err != nil {
		return err
	}
	for i := range balances {
		if err := w.pass(ctx, lineOf(&balances[i]), balances[i].Seq, func(ledger.Entry) {}); err != nil {
			return err
		}
	}
	if !w.over { // else the seals were not all read, and end elsewhere
		w.heights(heights)
	}
	return unread.With(nil)
}

// moment reads the heights that belong to a newest seal.
func (w *walk) moment(ctx context.Context) (newest string, heights map[line]height, err error) {
	for range moments {
		before, err := newestID(ctx, w.s, w.p)
		if err != nil {
			return "", nil, err
		}
		var unread storage.RowErrors
		heights, err = readHeights(ctx, w.s, w.p)
		if err = unread.Take(err); err != nil {
			return "", nil, err
		}
		if newest, err = newestID(ctx, w.s, w.p); err != nil || newest == before {
			return newest, heights, unread.With(err)
		}
	}
	return "", nil, fmt.Errorf("seal: %s is being sealed all the time: prove it later", w.p)
}

// moments is how often a moment is looked for: seals are rare.
const moments = 20

func (w *walk) find(f Finding) {
	if len(w.proof.Findings) >= maxFindings {
		w.proof.More++
		return
	}
	w.proof.Findings = append(w.proof.Findings, f)
}

// seal proves one of them.
func (w *walk) seal(ctx context.Context, row storage.Row) error {
	s := Seals.Value(row)
	for n := w.last.Number + 1; n < s.Number && w.proof.More == 0; n++ {
		w.find(Finding{Fault: FaultMissing, Seal: n})
	}
	if row.ID != rowID(s.Number) || s.Number <= w.last.Number {
		w.find(Finding{Fault: FaultSeal, Seal: s.Number})
	}
	have, sound := begin(w.p, &s, w.last.Hash), true
	for _, r := range s.Ranges {
		found, err := w.covered(ctx, &s, r, have)
		if err != nil || w.over {
			return err
		}
		if found.Fault != "" && sound {
			w.find(found)
			sound = false
		}
	}
	if sound && (!bytes.Equal(have.end(), s.Hash) || !bytes.Equal(have.marks, s.Marks)) {
		w.find(Finding{Fault: FaultSeal, Seal: s.Number})
	}
	if len(w.keys) > 0 && (len(s.MAC) == 0 || !s.SignedWith(w.keys...)) {
		w.find(Finding{Fault: FaultKey, Seal: s.Number})
	}
	w.proof.Seals++
	w.last = s
	return nil
}

// covered adds a range's entries to the hash, as they are now, and says which is
// the first that is not what the seal marks, if any.
func (w *walk) covered(ctx context.Context, s *Seal, r Range, have *sum) (Finding, error) {
	l := line{r.Account, r.Asset}
	c, f := w.line(l), Finding{Seal: s.Number, Account: r.Account, Asset: r.Asset, Seq: r.From}
	follows := r.From == c.sealed+1 && r.From <= r.To && r.To-r.From < MaxEntries
	c.sealed = max(c.sealed, r.To)
	if !follows {
		f.Fault = FaultRange
		return f, nil
	}
	var entries []ledger.Entry
	err := w.pass(ctx, l, r.To, func(e ledger.Entry) {
		if e.Seq >= r.From {
			entries = append(entries, e)
		}
	})
	if err != nil {
		return f, err
	}
	from := len(have.marks)
	have.add(r, entries)
	w.proof.Entries += int64(len(entries))
	marked := s.Marks[min(from, len(s.Marks)):]
	for i := range int(r.To - r.From + 1) {
		f.Seq = r.From + int64(i)
		if i >= len(entries) || entries[i].Seq != f.Seq {
			f.Fault = FaultGone
			return f, nil
		}
		if at := i * markBytes; !bytes.HasPrefix(marked[min(at, len(marked)):], have.marks[from+at:from+at+markBytes]) {
			f.Fault, f.Tx = FaultEntry, entries[i].Tx
			return f, nil
		}
	}
	return f, nil
}

func (w *walk) line(l line) *cursor {
	if w.lines[l] == nil {
		w.lines[l] = &cursor{next: 1}
	}
	return w.lines[l]
}

// pass passes on what a history has up to a number, to f too.
func (w *walk) pass(ctx context.Context, l line, upTo int64, f func(ledger.Entry)) error {
	for c := w.line(l); !w.over; c.page = c.page[1:] {
		if len(c.page) == 0 {
			if c.next > upTo {
				return nil
			}
			if err := w.read(ctx, l, c, upTo); err != nil {
				return err
			}
			if len(c.page) == 0 {
				return nil
			}
		}
		if c.page[0].Seq > upTo {
			return nil
		}
		f(c.page[0])
		w.over = !w.yield(c.page[0], nil)
	}
	return nil
}

// read reads a history on. Where a whole page of it is gone, what comes after is
// no longer read whole: the fault is certain, and numbers may be anything.
func (w *walk) read(ctx context.Context, l line, c *cursor, upTo int64) error {
	for _, before := range [...]int64{c.next + w.page, max(c.next+w.page, upTo+1)} {
		got, err := w.s.Entries(ctx, w.p, l.account, l.asset, before, int(w.page))
		if err != nil {
			return err
		}
		c.page = slices.DeleteFunc(got, func(e ledger.Entry) bool { return e.Seq < c.next })
		if slices.Reverse(c.page); len(c.page) > 0 {
			c.next = before
			return nil
		}
	}
	c.next = max(c.next, upTo+1)
	return nil
}

// heights compares up to where is sealed with what the seals cover: the last ones of
// a chain can go without leaving a gap in it.
func (w *walk) heights(list map[line]height) {
	for l := range list {
		w.line(l)
	}
	var found []Finding
	for l, c := range w.lines {
		if seq := list[l].seq; seq != c.sealed {
			found = append(found, Finding{Fault: FaultHeight, Account: l.account, Asset: l.asset, Seq: seq})
		}
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Asset, b.Asset))
	})
	for _, f := range found {
		w.find(f)
	}
}
