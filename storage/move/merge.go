package move

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// merge puts the histories of a partition's accounts together again into the
// transactions that they are of, in an order in which they can have been posted:
// each one when it is next on every account that it moves. How many those are is
// counted first, since some of the legs may well sum to zero without the others.
type merge struct {
	w    *walk
	p    storage.Partition
	legs map[[16]byte]uint32
	at   []cursor
	page int64

	next  map[string][]int // transaction → accounts that it is next on
	ready []string
}

// cursor is where one account's history is.
type cursor struct {
	b    *ledger.Balance
	page []ledger.Entry
	seq  int64 // read so far
}

// budget is about how many entries are in memory for all accounts together.
const budget = 1 << 16

func key(tx string) (k [16]byte) {
	h := sha256.Sum256([]byte(tx))
	copy(k[:], h[:])
	return k
}

// transactions passes on what brings a ledger to where this one is: its
// transactions, then its holds.
func (w *walk) transactions(ctx context.Context, p storage.Partition, list []ledger.Balance) error {
	m := &merge{
		w: w, p: p, legs: map[[16]byte]uint32{}, at: make([]cursor, len(list)), next: map[string][]int{},
		page: min(page, max(8, budget/int64(len(list)))),
	}
	for i := range list {
		m.at[i].b = &list[i]
		for from := int64(1); from <= list[i].Seq; {
			got, err := entries(ctx, w.end.Store, p, &list[i], from, page)
			if err != nil {
				return err
			}
			for k := range got {
				m.legs[key(got[k].Tx)]++
			}
			from += int64(len(got))
		}
	}
	for i := range m.at {
		if err := m.advance(ctx, i); err != nil {
			return err
		}
	}
	for len(m.ready) > 0 {
		id := m.ready[0]
		m.ready = m.ready[1:]
		if err := m.post(ctx, id); err != nil {
			return err
		}
	}
	for id := range m.next {
		return fmt.Errorf("%w: transaction %s in %s is not on all its accounts in one order", ErrBooks, id, p)
	}
	return m.holds(list)
}

// advance makes the account's next entry known.
func (m *merge) advance(ctx context.Context, i int) error {
	c := &m.at[i]
	if len(c.page) == 0 {
		got, err := entries(ctx, m.w.end.Store, m.p, c.b, c.seq+1, m.page)
		if err != nil || len(got) == 0 {
			return err
		}
		c.page, c.seq = got, c.seq+int64(len(got))
	}
	id := c.page[0].Tx
	m.next[id] = append(m.next[id], i)
	if len(m.next[id]) == int(m.legs[key(id)]) {
		m.ready = append(m.ready, id)
	}
	return nil
}

// post passes a transaction on that is next everywhere.
func (m *merge) post(ctx context.Context, id string) error {
	accounts := m.next[id]
	delete(m.next, id)
	delete(m.legs, key(id))
	var r record
	for k, i := range accounts {
		e := &m.at[i].page[0]
		if k == 0 {
			r = record{Kind: kindTx, ID: id, Shown: e.Kind, Ref: e.Ref, At: storage.Micros(e.At)}
		}
		r.Legs = append(r.Legs, leg{Account: e.Account, Asset: e.Asset, Delta: e.Delta})
		m.w.entry(m.p, e)
		m.at[i].page = m.at[i].page[1:]
	}
	text, err := r.text()
	if err != nil {
		return err
	}
	if err := m.w.record(r, text); err != nil {
		return err
	}
	for _, i := range accounts {
		if err := m.advance(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// holds passes on what is held now: histories do not show it.
func (m *merge) holds(list []ledger.Balance) error {
	for i := range list {
		b := &list[i]
		if b.Held == 0 {
			continue
		}
		r := record{Kind: kindHeld, Legs: []leg{{Account: b.Account, Asset: b.Asset, Held: b.Held}}}
		text, err := r.text()
		if err != nil {
			return err
		}
		if err := m.w.record(r, text); err != nil {
			return err
		}
	}
	return nil
}
