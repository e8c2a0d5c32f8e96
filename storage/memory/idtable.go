package memory

import "math/bits"

// idTable finds places by hash, in open addressing over 8-byte slots: half of
// the hash, and the place + 1; 0 is empty. The hash's highest bits say where to
// look first, so that a larger table is filled from a smaller one in order,
// from the slots alone.
type idTable struct {
	slots []uint64
	shift uint8 // of half a hash, to its slot
	n     int
}

const minBits = 4

func (t *idTable) find(h uint64, id string, log *txLog) (place, bool) {
	if t.n == 0 {
		return 0, false
	}
	half, mask := h>>32, len(t.slots)-1
	for i := int(half >> t.shift); ; i++ {
		s := t.slots[i&mask]
		if s == 0 {
			return 0, false
		}
		if s>>32 == half {
			if p := place(s) - 1; string(idOf(log.from(p))) == id {
				return p, true
			}
		}
	}
}

// add holds h at p, which it does not hold yet.
func (t *idTable) add(h uint64, p place) {
	if t.n >= len(t.slots)/2 {
		t.grow()
	}
	t.n++
	t.set(h>>32<<32 | uint64(p+1))
}

func (t *idTable) set(slot uint64) {
	mask := len(t.slots) - 1
	i := int(slot >> 32 >> t.shift)
	for t.slots[i&mask] != 0 {
		i++
	}
	t.slots[i&mask] = slot
}

func (t *idTable) grow() {
	old := t.slots
	t.slots = make([]uint64, max(1<<minBits, 2*len(old)))
	t.shift = uint8(33 - bits.Len(uint(len(t.slots))))
	for _, s := range old {
		if s != 0 {
			t.set(s)
		}
	}
}
