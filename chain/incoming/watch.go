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
// It has three layers: all but the newest are in one of two binary fuse filters
// over sorted 64-bit hashes, a large one and one of what came since it was
// built, and the newest few thousand in a hash table. A miss in a filter costs
// three reads in 1.1 bytes per address; a hit is looked up in the hashes.
type Watched struct {
	store storage.Store
	part  storage.Partition

	mu   sync.Mutex // Sync and add
	end  int64      // highest sequence read
	held atomic.Pointer[held]
}

// held is one generation of the set.
type held struct {
	old, young layer
	recent     *table
}

// layer is a set that does not change.
type layer struct {
	filter *xorfilter.BinaryFuse[uint8] // nil while empty
	sorted []uint64                     // without doubles
}

func (l *layer) contains(h uint64) bool {
	if l.filter == nil || !l.filter.Contains(h) {
		return false
	}
	_, ok := slices.BinarySearch(l.sorted, h)
	return ok
}

// with is a new layer that holds more hashes, too.
func (l *layer) with(more ...[]uint64) (layer, error) {
	sorted := slices.Concat(append(more, l.sorted)...)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	f, err := xorfilter.NewBinaryFuse[uint8](slices.Clone(sorted))
	return layer{filter: f, sorted: sorted}, err
}

// NewWatched makes the empty set of a network; the first Sync reads all.
func NewWatched(store storage.Store, network chain.Network) *Watched {
	w := &Watched{store: store, part: storage.Network(string(network))}
	w.held.Store(&held{recent: newTable(maxRecent)})
	return w
}

// Contains reports whether a is watched.
func (w *Watched) Contains(a chain.Address) bool {
	return w.contains(hashAddress(string(a)))
}

func (w *Watched) contains(h uint64) bool {
	s := w.held.Load()
	return s.old.contains(h) || s.recent.contains(h) || s.young.contains(h)
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
	for {
		at := w.end + int64(len(hashes))
		rows, err := w.store.Find(ctx, storage.Query{
			Table: Addresses.Table, Partition: w.part, Limit: syncPage,
			Where: []storage.Cond{{Column: "seq", Op: storage.Gt, Value: at}},
			Order: []storage.Order{{Column: "seq"}},
		})
		for i, r := range rows {
			if seq := Addresses.Value(r).Seq; seq != at+1+int64(i) {
				err = fmt.Errorf("incoming: the address directory %s lacks sequence %d: restore the row before scanning on", w.part, at+1+int64(i))
				break
			}
			hashes = append(hashes, hashAddress(r.ID))
		}
		if err == nil && len(rows) == syncPage {
			continue
		}
		if aerr := w.add(hashes); aerr != nil {
			return fmt.Errorf("incoming: indexing addresses of %s: %w", w.part, aerr)
		}
		w.end += int64(len(hashes))
		if err != nil {
			return fmt.Errorf("incoming: reading new addresses: %w", err)
		}
		return nil
	}
}

// How many addresses the younger layers hold before they are built into the
// next one. Building costs some 100 ns per address of the layer.
const (
	maxRecent = 4096
	minYoung  = 1 << 17
)

// add puts hashes in. The caller holds mu.
func (w *Watched) add(hashes []uint64) error {
	s := w.held.Load()
	if s.recent.n+len(hashes) <= maxRecent {
		for _, h := range hashes {
			s.recent.add(h)
		}
		return nil
	}
	next := &held{old: s.old, young: s.young, recent: newTable(maxRecent)}
	recent := s.recent.hashes()
	var err error
	if len(recent)+len(hashes)+len(s.young.sorted) > max(minYoung, len(s.old.sorted)/32) {
		next.young = layer{}
		next.old, err = s.old.with(recent, hashes, s.young.sorted)
	} else {
		next.young, err = s.young.with(recent, hashes)
	}
	if err == nil {
		w.held.Store(next)
	}
	return err
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
