package utxo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
)

// cursor reads a serialised block or transaction in place. What runs over the
// end is bad, and reads as zeros.
type cursor struct {
	b   []byte
	i   int
	bad bool
}

func (r *cursor) skip(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)-r.i) {
		r.bad = true
		return nil
	}
	start := r.i
	r.i += int(n)
	return r.b[start:r.i:r.i]
}

func (r *cursor) byte() byte {
	if b := r.skip(1); b != nil {
		return b[0]
	}
	return 0
}

// varint reads a compact size in its shortest form; others are bad.
func (r *cursor) varint() uint64 {
	switch first := r.byte(); first {
	case 0xfd:
		if b := r.skip(2); b != nil && binary.LittleEndian.Uint16(b) >= 0xfd {
			return uint64(binary.LittleEndian.Uint16(b))
		}
	case 0xfe:
		if b := r.skip(4); b != nil && binary.LittleEndian.Uint32(b) > 0xffff {
			return uint64(binary.LittleEndian.Uint32(b))
		}
	case 0xff:
		if b := r.skip(8); b != nil && binary.LittleEndian.Uint64(b) > 0xffffffff {
			return binary.LittleEndian.Uint64(b)
		}
	default:
		return uint64(first)
	}
	r.bad = true
	return 0
}

// tx is a transaction as it lies in its bytes.
type tx struct {
	id      [32]byte
	head    []byte // version
	body    []byte // inputs and outputs with their counts
	tail    []byte // lock time
	ins     []byte // inputs without the count
	outs    []byte // outputs without the count
	nIn     int
	nOut    int
	pegs    bool // pays what leaves an MWEB extension block
	witness bool // signatures are apart
}

// hasher makes double SHA-256 hashes without allocating.
type hasher struct{ buf []byte }

func newHasher() *hasher { return &hasher{} }

// parts hashes what lies in three places.
func (h *hasher) parts(a, b, c []byte) [32]byte {
	h.buf = append(append(append(h.buf[:0], a...), b...), c...)
	return twice(h.buf)
}

// pair hashes two hashes.
func (h *hasher) pair(a, b [32]byte) [32]byte {
	h.buf = append(append(h.buf[:0], a[:]...), b[:]...)
	return twice(h.buf)
}

// twice is the hash of these networks, SHA-256 of SHA-256.
func twice(b []byte) [32]byte {
	once := sha256.Sum256(b)
	return sha256.Sum256(once[:])
}

// tx reads one transaction. last says that it is all that is left, which lets
// one with an MWEB part be read.
func (r *cursor) tx(h *hasher, mweb, last bool) (t tx) {
	start := r.i
	t.head = r.skip(4)
	flags := byte(0)
	if r.i+1 < len(r.b) && r.b[r.i] == 0 && r.b[r.i+1] != 0 {
		r.byte()
		flags = r.byte()
		t.witness = true
	}
	from := r.i
	n := r.varint()
	at := r.i
	for range n {
		r.skip(36)
		r.skip(r.varint())
		if r.skip(4); r.bad {
			return t
		}
	}
	t.nIn, t.ins = int(n), r.b[at:r.i]
	n = r.varint()
	at = r.i
	for range n {
		r.skip(8)
		if r.skip(r.varint()); r.bad {
			return t
		}
	}
	t.nOut, t.outs = int(n), r.b[at:r.i]
	t.body = r.b[from:r.i]
	if flags&1 != 0 {
		for range t.nIn {
			for range r.varint() {
				if r.skip(r.varint()); r.bad {
					return t
				}
			}
		}
	}
	if flags&8 != 0 && mweb {
		switch has := r.byte(); {
		case has == 0:
			t.pegs = true
		case last && len(r.b)-r.i >= 4:
			r.i = len(r.b) - 4
		default:
			r.bad = true
		}
	}
	known := byte(1)
	if mweb {
		known |= 8
	}
	if flags&^known != 0 {
		r.bad = true
	}
	if t.tail = r.skip(4); r.bad {
		return t
	}
	if t.witness {
		t.id = h.parts(t.head, t.body, t.tail)
	} else {
		t.id = twice(r.b[start:r.i])
	}
	return t
}

var errTx = errors.New("not a transaction")

// readTx reads bytes that must be one transaction and nothing else.
func readTx(raw []byte, mweb bool) (tx, error) {
	r := &cursor{b: raw}
	t := r.tx(newHasher(), mweb, true)
	if r.bad || r.i != len(raw) || t.nIn == 0 && !t.witness {
		return tx{}, errTx
	}
	return t, nil
}

// stripped is the transaction without what is not part of its id.
func (t *tx) stripped() []byte { return slices.Concat(t.head, t.body, t.tail) }

// coinbase reports whether it makes new coins.
func (t *tx) coinbase() bool {
	return t.nIn == 1 && len(t.ins) >= 36 && [32]byte(t.ins[:32]) == [32]byte{} && binary.LittleEndian.Uint32(t.ins[32:36]) == 0xffffffff
}

// inputs calls f with the outpoint of each input, 36 bytes as they are on the
// wire, until it returns false.
func (t *tx) inputs(f func(outpoint []byte) bool) {
	r := &cursor{b: t.ins}
	for range t.nIn {
		o := r.skip(36)
		r.skip(r.varint())
		if r.skip(4); r.bad || !f(o) {
			return
		}
	}
}

// spends lists the outpoints; nil for a coinbase.
func (t *tx) spends() []string {
	if t.coinbase() {
		return nil
	}
	out := make([]string, 0, t.nIn)
	t.inputs(func(o []byte) bool {
		out = append(out, outpoint(o))
		return true
	})
	return out
}

// effect is what a transaction does, without what its signatures are: equal for
// all signings of one.
func (t *tx) effect() []byte {
	out := slices.Clone(t.head)
	r := &cursor{b: t.ins}
	for range t.nIn {
		out = append(out, r.skip(36)...)
		r.skip(r.varint())
		out = append(out, r.skip(4)...)
	}
	return append(append(out, t.outs...), t.tail...)
}

// output reads one output.
func (r *cursor) output() (value int64, script []byte) {
	if b := r.skip(8); b != nil {
		value = int64(binary.LittleEndian.Uint64(b))
	}
	return value, r.skip(r.varint())
}

// outpoint is the text of 36 bytes.
func outpoint(o []byte) string {
	return fmt.Sprintf("%s:%d", hexHash([32]byte(o[:32])), binary.LittleEndian.Uint32(o[32:36]))
}

// hexHash is a hash as people and nodes write it: the bytes turned round.
func hexHash(h [32]byte) string {
	slices.Reverse(h[:])
	return hex.EncodeToString(h[:])
}

// parseHash reads what hexHash wrote.
func parseHash(s string) (h [32]byte, ok bool) {
	if !isHash(s) {
		return h, false
	}
	_, err := hex.Decode(h[:], []byte(s))
	slices.Reverse(h[:])
	return h, err == nil
}

const headerSize = 80

// header reads the header of a block whose hash is known, from the beginning of
// its bytes.
func header(raw []byte, hash string, height int64) (chain.Block, error) {
	if len(raw) < headerSize {
		return chain.Block{}, fmt.Errorf("%w: block %d is cut off", chain.ErrNode, height)
	}
	if got := hexHash(twice(raw[:headerSize])); got != hash {
		return chain.Block{}, fmt.Errorf("%w: asked for block %s, got %s", chain.ErrNode, hash, got)
	}
	b := chain.Block{
		Height: height, Hash: hash,
		Time: time.Unix(int64(binary.LittleEndian.Uint32(raw[68:72])), 0).UTC(),
	}
	if prev := [32]byte(raw[4:36]); prev != ([32]byte{}) {
		b.Parent = hexHash(prev)
	}
	return b, nil
}

// block is a block with its transactions.
type block struct {
	chain.Block
	txs []tx
}

// At is the block itself.
func (b block) At() chain.Block { return b.Block }

// readBlock reads a block of which the hash is known, and proves that it is
// whole: its transactions hash to the Merkle root.
func (p *Params) readBlock(raw []byte, hash string, height int64) (block, error) {
	top, err := header(raw, hash, height)
	if err != nil {
		return block{}, err
	}
	b := block{Block: top}
	h := newHasher()
	r := &cursor{b: raw, i: headerSize}
	if p.AuxPoW && binary.LittleEndian.Uint32(raw)&0x100 != 0 {
		r.auxpow(h)
	}
	n := r.varint()
	if n == 0 || n > uint64(len(raw)-r.i)/10 {
		r.bad = true
	} else {
		b.txs = make([]tx, 0, n)
	}
	for range n {
		if r.bad {
			break
		}
		b.txs = append(b.txs, r.tx(h, p.MWEB, false))
	}
	// An extension block follows the transaction that pays out of it.
	if ends := r.i == len(raw) || len(b.txs) > 1 && b.txs[len(b.txs)-1].pegs; r.bad || !ends {
		return block{}, fmt.Errorf("%w: block %s is not understood, or cut off", chain.ErrNode, hash)
	}
	root, whole := b.merkle(h)
	if !whole || !bytes.Equal(root[:], raw[36:68]) {
		return block{}, fmt.Errorf("%w: the transactions of block %s are not those of its header", chain.ErrNode, hash)
	}
	return b, nil
}

// auxpow reads past the proof of work of another chain: its coinbase, the branch
// to its header, the branch to ours, and its header.
func (r *cursor) auxpow(h *hasher) {
	r.tx(h, false, false)
	r.skip(32)
	for range 2 {
		if n := r.varint(); n <= 64 {
			r.skip(32*n + 4)
		} else {
			r.bad = true
		}
	}
	r.skip(headerSize)
}

// merkle is the root of the transactions' ids. It is not whole where two equal
// ones stand side by side: such a list has the root of a shorter one
// (CVE-2012-2459).
func (b *block) merkle(h *hasher) (root [32]byte, whole bool) {
	level := make([][32]byte, len(b.txs))
	for i := range b.txs {
		level[i] = b.txs[i].id
	}
	for len(level) > 1 {
		next := level[:(len(level)+1)/2]
		for i := range next {
			left, right := level[2*i], level[2*i]
			if 2*i+1 < len(level) {
				if right = level[2*i+1]; left == right {
					return root, false
				}
			}
			next[i] = h.pair(left, right)
		}
		level = next
	}
	return level[0], true
}
