package incoming

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/FastFilter/xorfilter"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Watched is the set of one network's addresses that are in the directory. It
// says yes to each of them; to one that is not there it says yes with a chance
// of about n in 2^64. Contains never waits, not even for a Sync. It needs some
// 10 bytes per address. All methods may be called concurrently.
//
// Most of it is a binary fuse filter over sorted 64-bit hashes: a miss costs
// three reads in 1.1 bytes per address, and a hit of the filter is looked up in
// the hashes. What came since the filter was built is in a small hash table.
type Watched struct {
	store storage.Store
	part  storage.Partition

	mu   sync.Mutex // Sync and add
	end  int64      // highest sequence read
	held atomic.Pointer[held]
}

// held is one generation of the set: a fixed base and what came since.
type held struct {
	filter *xorfilter.BinaryFuse[uint8] // nil while the base is empty
	base   []uint64                     // sorted, without doubles
	recent atomic.Pointer[table]
}

// NewWatched makes the empty set of a network; the first Sync reads all.
func NewWatched(store storage.Store, network chain.Network) *Watched {
	w := &Watched{store: store, part: storage.Network(string(network))}
	w.hold(nil)
	return w
}

// Contains reports whether a is watched.
func (w *Watched) Contains(a chain.Address) bool {
	return w.contains(hashAddress(string(a)))
}

func (w *Watched) contains(h uint64) bool {
	s := w.held.Load()
	if s.filter != nil && s.filter.Contains(h) {
		if _, ok := slices.BinarySearch(s.base, h); ok {
			return true
		}
	}
	return s.recent.Load().contains(h)
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
	for {
		rows, err := w.store.Find(ctx, storage.Query{
			Table: Addresses.Table, Partition: w.part, Limit: syncPage,
			Where: []storage.Cond{{Column: "seq", Op: storage.Gt, Value: w.end}},
			Order: []storage.Order{{Column: "seq"}},
		})
		if err != nil {
			return fmt.Errorf("incoming: reading new addresses: %w", err)
		}
		hashes := make([]uint64, 0, len(rows))
		for i, r := range rows {
			if seq := Addresses.Value(r).Seq; seq != w.end+1+int64(i) {
				return fmt.Errorf("incoming: the address directory %s lacks sequence %d: restore the row before scanning on", w.part, w.end+1+int64(i))
			}
			hashes = append(hashes, hashAddress(r.ID))
		}
		w.add(hashes)
		w.end += int64(len(rows))
		if len(rows) < syncPage {
			return nil
		}
	}
}

// add puts hashes in, and builds the filter anew once an eighth of all is
// outside it: so the cost per address stays the same however many there are.
func (w *Watched) add(hashes []uint64) {
	s := w.held.Load()
	recent := s.recent.Load()
	if grown := recent.grownFor(len(hashes)); grown != recent {
		recent = grown
		s.recent.Store(recent)
	}
	for _, h := range hashes {
		recent.add(h)
	}
	if recent.n < 4096 || recent.n < len(s.base)/8 {
		return
	}
	all := slices.Grow(recent.hashes(), len(s.base))
	all = append(all, s.base...)
	slices.Sort(all)
	w.hold(slices.Clip(slices.Compact(all)))
}

// hold publishes a new generation with an empty table of recent ones.
func (w *Watched) hold(base []uint64) {
	s := &held{base: base}
	if len(base) > 0 {
		f, err := xorfilter.NewBinaryFuse[uint8](slices.Clone(base))
		if err != nil { // cannot be: the hashes are distinct. The table alone is right, too.
			old := w.held.Load()
			s.base, s.filter = old.base, old.filter
			s.recent.Store(old.recent.Load())
			w.held.Store(s)
			return
		}
		s.filter = f
	}
	s.recent.Store(newTable(1024))
	w.held.Store(s)
}

// table is a set of hashes in open addressing that one goroutine fills while
// any number read. 0 is an empty slot.
type table struct {
	slots []atomic.Uint64 // a power of two
	n     int             // written by the filler only
}

func newTable(size int) *table {
	return &table{slots: make([]atomic.Uint64, 1<<bits.Len(uint(max(size, 16)-1)))}
}

func (t *table) contains(h uint64) bool {
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
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
	for i := h & mask; ; i = (i + 1) & mask {
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

// grownFor is t, or a larger copy where more would fill it above one half.
func (t *table) grownFor(more int) *table {
	if 2*(t.n+more) <= len(t.slots) {
		return t
	}
	g := newTable(4 * (t.n + more))
	for _, h := range t.hashes() {
		g.add(h)
	}
	return g
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

// hashAddress mixes the bytes of an address, 16 at a time, to 64 bits; never 0.
// It need not resist an attacker: addresses that are watched are derived by us,
// and one that collides with them only costs a look-up.
func hashAddress(s string) uint64 {
	const k0, k1 = 0xa0761d6478bd642f, 0xe7037ed1a0b428db
	h := uint64(len(s)) ^ k0
	for len(s) >= 16 {
		h = mix(word(s)^k1, word(s[8:])^h)
		s = s[16:]
	}
	if len(s) >= 8 {
		h = mix(word(s)^k1, h)
		s = s[8:]
	}
	var tail [8]byte
	copy(tail[:], s)
	h = mix(binary.LittleEndian.Uint64(tail[:])^k1, h^k0)
	return h | 1
}

func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
