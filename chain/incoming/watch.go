package incoming

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Watched is the set of one network's addresses that are in the directory. It
// says yes to each of them; to one that is not there it says yes with a chance
// of about n in 2^64. Contains never waits, not even for a Sync. It needs some
// 11 bytes per address, and where balances are compared 60 more for each that is
// still watched. All methods may be called concurrently.
//
// Addresses are kept as 64-bit hashes: all but the newest in one of two sorted
// lists, a large one and one of what came since it was made, and the newest few
// thousand in a hash table. Before them stands a Bloom filter, which answers
// nearly all misses with a single read of memory.
type Watched struct {
	store storage.Store
	part  storage.Partition

	mu    sync.Mutex // Sync and add
	end   int64      // highest sequence read
	keeps bool
	list  []chain.Address // what was read, where keeps is set
	// accounts are those of the addresses that were read. tagger tells them; nil where addresses
	// share none.
	tagger   chain.Tagger
	accounts map[chain.Address]bool
	held     atomic.Pointer[held]
}

// held is one generation of the set.
type held struct {
	filter     *filter
	old, young []uint64 // sorted, without doubles
	recent     *table
}

func (s *held) contains(h uint64) bool {
	if !s.filter.contains(h) {
		return false
	}
	if s.recent.contains(h) {
		return true
	}
	_, ok := slices.BinarySearch(s.old, h)
	if !ok {
		_, ok = slices.BinarySearch(s.young, h)
	}
	return ok
}

func (s *held) len() int { return len(s.old) + len(s.young) + s.recent.n }

// sorted is a new list of all these hashes.
func sorted(lists ...[]uint64) []uint64 {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Clip(slices.Compact(all))
}

// NewWatched makes the empty set of a network; the first Sync reads all.
func NewWatched(store storage.Store, network chain.Network) *Watched {
	w := &Watched{store: store, part: storage.Network(string(network))}
	w.held.Store(&held{filter: newFilter(0), recent: newTable(maxRecent)})
	return w
}

// Contains reports whether a is watched.
func (w *Watched) Contains(a chain.Address) bool {
	return w.held.Load().contains(hashAddress(string(a)))
}

// keep has Sync keep the addresses themselves, too, some 60 bytes each.
func (w *Watched) keep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.keeps {
		w.keeps, w.end = true, 0 // what was read already is read once more
	}
}

// addresses lists all that were read, but for those that dropEnded left out.
func (w *Watched) addresses() []chain.Address {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clip(w.list)
}

// dropEnded leaves out of the list what is no longer watched at a time.
func (w *Watched) dropEnded(ctx context.Context, at time.Time) error {
	list := w.addresses()
	var still []chain.Address
	for part := range slices.Chunk(list, readChunk) {
		ids := make([]string, len(part))
		for i, a := range part {
			ids[i] = string(a)
		}
		rows, err := w.store.Rows(ctx, Addresses.Table, storage.Keys(w.part, ids...)...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if !ended(Addresses.Value(r), at) {
				still = append(still, chain.Address(r.ID))
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(still, w.list[len(list):]...)
	return nil
}

// Len is the number of addresses read so far.
func (w *Watched) Len() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end
}

// syncPage is how many addresses one query reads.
const syncPage = 5000

// Sync reads the addresses that were added to the directory since the last one,
// by whichever process.
func (w *Watched) Sync(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var hashes []uint64
	many := w.end == 0 // the first time reads all, later ones what is new
	for {
		page, more, err := w.page(ctx, w.end+int64(len(hashes)), many)
		hashes = append(hashes, page...)
		if more && err == nil {
			continue
		}
		w.add(hashes)
		w.end += int64(len(hashes))
		if err != nil {
			return fmt.Errorf("incoming: reading new addresses: %w", err)
		}
		return nil
	}
}

// page reads the addresses behind a sequence: where many are expected their ids alone,
// as long as a page is whole. Sequences are unique, so a whole page lacks none of them. Of
// another page the sequences are read, too: an address that is missing there is an error,
// and those before it are returned.
func (w *Watched) page(ctx context.Context, at int64, many bool) (hashes []uint64, more bool, err error) {
	q := storage.Query{
		Table: Addresses.Table, Partition: w.part, Limit: syncPage, IDs: many,
		Where: []storage.Cond{{Column: "seq", Op: storage.Gt, Value: at}, {Column: "seq", Op: storage.Le, Value: at + syncPage}},
		Order: []storage.Order{{Column: "seq"}},
	}
	var rows []storage.Row
	if many {
		rows, err = w.store.Find(ctx, q)
	}
	if err == nil && len(rows) < syncPage {
		q.IDs, q.Where = false, q.Where[:1]
		rows, err = w.store.Find(ctx, q)
	}
	more = len(rows) == syncPage
	for i, r := range rows {
		if want := at + 1 + int64(i); !q.IDs && Addresses.Value(r).Seq != want {
			return hashes, false, fmt.Errorf("the address directory %s lacks sequence %d: restore the row before scanning on", w.part, want)
		}
		hashes = append(hashes, hashAddress(r.ID))
		if w.keeps {
			w.list = append(w.list, chain.Address(r.ID))
		}
		w.noted(chain.Address(r.ID))
	}
	return hashes, more, err
}

// How many addresses the younger lists hold before they are sorted into the
// next one.
const (
	maxRecent = 4096
	minYoung  = 1 << 17
)

// add puts hashes in. The caller holds mu.
func (w *Watched) add(hashes []uint64) {
	s := w.held.Load()
	if s.recent.n+len(hashes) <= maxRecent && s.len()+len(hashes) <= s.filter.room {
		for _, h := range hashes {
			s.filter.add(h) // first: who finds it in the table must find it here
			s.recent.add(h)
		}
		return
	}
	next := &held{filter: s.filter, old: s.old, recent: newTable(maxRecent)}
	recent := s.recent.hashes()
	if len(recent)+len(hashes)+len(s.young) > max(minYoung, len(s.old)/32) {
		next.old = sorted(s.old, s.young, recent, hashes)
	} else {
		next.young = sorted(s.young, recent, hashes)
	}
	news := [][]uint64{hashes}
	if n := next.len(); n > s.filter.room {
		next.filter = newFilter(n)
		news = [][]uint64{next.old, next.young}
	}
	for _, list := range news {
		for _, h := range list {
			next.filter.add(h)
		}
	}
	w.held.Store(next)
}

// filter is a Bloom filter whose bits of one hash are in one word: a miss costs
// one read. With four hashes to a word, its most, it lets four strangers in a
// thousand pass. One goroutine fills it while any number read.
type filter struct {
	words []atomic.Uint64
	room  int // hashes
}

// newFilter has room for n hashes, and for a quarter more.
func newFilter(n int) *filter {
	room := n + n/4 + maxRecent
	return &filter{words: make([]atomic.Uint64, room/4), room: room}
}

// spot is the word of a hash, by its highest bits, and five bits in it, by
// others.
func (f *filter) spot(h uint64) (at, bit uint64) {
	at, _ = bits.Mul64(h, uint64(len(f.words)))
	return at, 1<<(h>>8&63) | 1<<(h>>14&63) | 1<<(h>>20&63) | 1<<(h>>26&63) | 1<<(h>>32&63)
}

func (f *filter) contains(h uint64) bool {
	at, bit := f.spot(h)
	return f.words[at].Load()&bit == bit
}

func (f *filter) add(h uint64) {
	at, bit := f.spot(h)
	f.words[at].Or(bit)
}

// table is a set of hashes in open addressing that one goroutine fills while
// any number read. 0 is an empty slot.
type table struct {
	slots []atomic.Uint64 // a power of two
	shift int             // of a hash, to its place
	n     int             // known to the filler only
}

// newTable has room for size hashes at a quarter of its slots.
func newTable(size int) *table {
	bit := bits.Len(uint(4*size - 1))
	return &table{slots: make([]atomic.Uint64, 1<<bit), shift: 64 - bit}
}

func (t *table) contains(h uint64) bool {
	mask := uint64(len(t.slots) - 1)
	for i := h >> t.shift; ; i = (i + 1) & mask {
		switch t.slots[i].Load() {
		case h:
			return true
		case 0:
			return false
		}
	}
}

func (t *table) add(h uint64) {
	mask := uint64(len(t.slots) - 1)
	for i := h >> t.shift; ; i = (i + 1) & mask {
		switch t.slots[i].Load() {
		case h:
			return
		case 0:
			t.slots[i].Store(h)
			t.n++
			return
		}
	}
}

func (t *table) hashes() []uint64 {
	out := make([]uint64, 0, t.n)
	for i := range t.slots {
		if h := t.slots[i].Load(); h != 0 {
			out = append(out, h)
		}
	}
	return out
}

// seed is this process's: hashes are not kept.
var seed = maphash.MakeSeed()

// hashAddress is never 0.
func hashAddress(s string) uint64 { return maphash.String(seed, s) | 1 }
