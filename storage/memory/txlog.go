package memory

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"slices"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// txLog keeps the transactions of a partition with their entries, in the order
// they came, as bytes without pointers: writing goes on at one place, and the
// collector passes them over, however many there are. Each entry leads to the
// one before it on its account.
//
// Ids are found in two ways. One that is greater than all before it, or than
// all but the last few, stands in order in a run, where it costs a comparison
// and four bytes: so do ids that grow with time (UUIDv7), also from many
// callers at once. Any other is a stray, found by its hash. There is a run for
// each first byte, so that ids of several makers do not disturb each other.
type txLog struct {
	chunks [][]byte
	runs   []run
	which  [256]uint8 // first byte of an id → its place in runs + 1
	strays idTable
}

// place is where a record or an entry starts: chunk and offset, in units of 8
// bytes.
type place uint32

const (
	unit      = 8
	chunkBits = 15
	inChunk   = 1<<chunkBits - 1
	chunkSize = unit << chunkBits         // 256 KiB
	maxChunks = 1<<(32-chunkBits) - 1<<10 // less what one long record may need
)

// errFull ends a partition of 32 GiB of transactions, or 2^31 strays.
var errFull = errors.New("memory: this partition holds all that it can: use a store on disk")

// A record is its time, the lengths of its four texts, the number of its
// entries, the entries, and the texts. Where the Change has the same id as its
// transaction, the length of its text is 0. An entry is the balance after it,
// the place of the one before it (0: none) and its distance to its record.
const (
	lengths   = 8
	entries   = 12
	headSize  = 16
	entrySize = 16

	before = 8 // in an entry
	back   = 12
)

// tx is one record, decoded.
type tx struct {
	id, change, ref string
	kind            ledger.Kind
	at              int64 // µs
}

func (x *txLog) full() bool { return len(x.chunks) >= maxChunks || int64(x.strays.n) > 1<<31 }

// end is where a record of so many bytes will stand, or one that is not known yet:
// behind a chunk that is full to the brim it is the next one that begins.
func (x *txLog) end(size int) place {
	n := len(x.chunks)
	if n == 0 || len(x.chunks[n-1])+max(size, unit) > chunkSize {
		return place(n) << chunkBits
	}
	return place(n-1)<<chunkBits | place(len(x.chunks[n-1])/unit)
}

// write appends a record with room for n entries; see enter. Its id is not
// found before add, and cut takes it back.
func (x *txLog) write(t *ledger.Tx, change string, at int64, n int) place {
	if change == t.ID {
		change = ""
	}
	size := headSize + n*entrySize + len(t.ID) + len(change) + len(t.Kind) + len(t.Ref)
	size = (size + unit - 1) &^ (unit - 1)
	p := x.end(size)
	r := x.extend(p, size)
	binary.LittleEndian.PutUint64(r, uint64(at))
	r[lengths], r[lengths+1], r[lengths+2], r[lengths+3] = byte(len(t.ID)), byte(len(change)), byte(len(t.Kind)), byte(len(t.Ref))
	binary.LittleEndian.PutUint32(r[entries:], uint32(n))
	r = r[headSize+n*entrySize:]
	r = r[copy(r, t.ID):]
	r = r[copy(r, change):]
	r = r[copy(r, t.Kind):]
	copy(r, t.Ref)
	return p
}

// extend makes room for size bytes at p, which is the end. What is longer than
// a chunk starts one, and is seen through the following ones, too.
func (x *txLog) extend(p place, size int) []byte {
	n := int(p >> chunkBits)
	if n == len(x.chunks) {
		var c []byte
		if n > 0 { // the first one grows
			c = make([]byte, 0, max(size, chunkSize))
		}
		x.chunks = append(x.chunks, c)
	}
	from := len(x.chunks[n])
	c := slices.Grow(x.chunks[n], size)[:from+size]
	x.chunks[n] = c
	for rest := c; len(rest) > chunkSize; {
		rest = rest[chunkSize:]
		x.chunks = append(x.chunks, rest)
	}
	return c[from:]
}

// enter fills in the i-th entry of the record at p and says where it stands.
func (x *txLog) enter(p place, i int, after ledger.Amount, older place) place {
	far := place(headSize+i*entrySize) / unit
	r := x.from(p + far)
	binary.LittleEndian.PutUint64(r, uint64(after))
	binary.LittleEndian.PutUint32(r[before:], uint32(older))
	binary.LittleEndian.PutUint32(r[back:], uint32(far))
	return p + far
}

// entry reads what enter wrote: the balance after it, the entry before it, and
// its record.
func (x *txLog) entry(p place) (after ledger.Amount, older, record place) {
	if p == 0 {
		return 0, 0, 0
	}
	r := x.from(p)
	return ledger.Amount(binary.LittleEndian.Uint64(r)), place(binary.LittleEndian.Uint32(r[before:])), p - place(binary.LittleEndian.Uint32(r[back:]))
}

// cut takes back what was written from p on.
func (x *txLog) cut(p place) {
	x.chunks = x.chunks[:min(len(x.chunks), int(p>>chunkBits)+1)]
	if n := int(p >> chunkBits); n < len(x.chunks) {
		x.chunks[n] = x.chunks[n][:p&inChunk*unit]
	}
}

// from is the bytes from p on.
func (x *txLog) from(p place) []byte { return x.chunks[p>>chunkBits][p&inChunk*unit:] }

// idOf is the id in a record.
func idOf(r []byte) []byte {
	from := headSize + int(binary.LittleEndian.Uint32(r[entries:]))*entrySize
	return r[from : from+int(r[lengths])]
}

func (x *txLog) at(p place) tx {
	r := x.from(p)
	id, change, kind, ref := int(r[lengths]), int(r[lengths+1]), int(r[lengths+2]), int(r[lengths+3])
	from := headSize + int(binary.LittleEndian.Uint32(r[entries:]))*entrySize
	all := string(r[from : from+id+change+kind+ref])
	t := tx{at: int64(binary.LittleEndian.Uint64(r))}
	t.id, all = all[:id], all[id:]
	t.change, all = all[:change], all[change:]
	t.kind, t.ref = ledger.Kind(all[:kind]), all[kind:]
	if change == 0 {
		t.change = t.id
	}
	return t
}

var seed = maphash.MakeSeed()

func hashOf(s string) uint64 { return maphash.String(seed, s) }

// find is where the transaction id stands.
func (x *txLog) find(id string) (place, bool) {
	n := x.which[id[0]]
	if n == 0 {
		return 0, false
	}
	if r := &x.runs[n-1]; !r.over {
		at, ok := r.search(id, x)
		if ok {
			return r.places[at], true
		}
		if at == len(r.places) || x.strays.n == 0 { // a stray is less than the greatest
			return 0, false
		}
	}
	return x.strays.find(hashOf(id), id, x)
}

// add makes the record at p, of this id, findable.
func (x *txLog) add(id string, p place) {
	n := x.which[id[0]]
	if n == 0 {
		x.runs = append(x.runs, run{})
		n = uint8(len(x.runs)) // no text begins with a NUL: 255 at most
		x.which[id[0]] = n
	}
	r := &x.runs[n-1]
	if !r.over {
		if at, _ := r.search(id, x); len(r.places)-at <= maxDisorder {
			r.places = slices.Insert(r.places, at, p)
			return
		}
	}
	x.strays.add(hashOf(id), p)
	if r.late++; r.late > 8*maxDisorder && r.late > 4*len(r.places) && !r.over {
		for _, p := range r.places {
			x.strays.add(hashOf(string(idOf(x.from(p)))), p)
		}
		r.places, r.over = nil, true
	}
}

// run is the records whose ids have one first byte, in the order of ids. Where
// most come late, as random ids do, it is given up and all are strays.
type run struct {
	places []place
	late   int
	over   bool
}

// maxDisorder is by how many places an id may come late and still join its run.
const maxDisorder = 128

// search is where id stands in the run, or would stand. Looking starts at the
// end and goes back in steps that double.
func (r *run) search(id string, log *txLog) (at int, found bool) {
	var from int
	to := len(r.places) // the ids from there on are greater
	for step := 1; ; step *= 2 {
		if from = max(0, to-step); from == to {
			return to, false
		}
		if c := log.compare(id, r.places[from]); c == 0 {
			return from, true
		} else if c > 0 {
			break
		}
		to = from
	}
	at, found = slices.BinarySearchFunc(r.places[from+1:to], id, func(p place, id string) int { return -log.compare(id, p) })
	return from + 1 + at, found
}

// compare orders id and that of the record at p.
func (x *txLog) compare(id string, p place) int {
	other := idOf(x.from(p))
	switch { // not by a function: it would take a copy of other
	case id > string(other):
		return 1
	case id == string(other):
		return 0
	}
	return -1
}
