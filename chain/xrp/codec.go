package xrp

import (
	"bytes"
	"crypto/sha512"
	"encoding/binary"
	"errors"
)

// A transaction is fields in the order of their type and number, each under a
// code of both: what is signed is that, without the signature, behind a prefix.

// What transactions that we make are.
const (
	typePayment    = 0
	typeAccountSet = 3 // with nothing to set: it uses a Sequence up
)

// flagCanonical is tfFullyCanonicalSig, which nodes demand or ignore.
const flagCanonical = 0x80000000

// Field codes.
const (
	codeType       = 0x12
	codeNetworkID  = 0x21
	codeFlags      = 0x22
	codeSequence   = 0x24
	codeTag        = 0x2e
	codeLastLedger = 0x201b
	codeAmount     = 0x61
	codeFee        = 0x68
	codeKey        = 0x73
	codeSignature  = 0x74
	codeAccount    = 0x81
	codeDest       = 0x83
)

var (
	prefixSign = []byte("STX\x00")
	prefixID   = []byte("TXN\x00")
)

// body is a Payment of XRP, or an empty AccountSet: all that we sign.
type body struct {
	kind       uint16
	networkID  uint32 // 0: not there
	flags      uint32 // 0: not there
	sequence   uint32
	tag        *uint32
	lastLedger uint32 // 0: not there
	amount     uint64 // drops
	fee        uint64 // drops
	key        []byte // 33 bytes
	signature  []byte // nil: unsigned
	account    account
	dest       account
}

// nativeBit marks an amount of XRP that is not negative.
const nativeBit = 1 << 62

func (b *body) encode() []byte {
	out := binary.BigEndian.AppendUint16([]byte{codeType}, b.kind)
	number := func(code int, n uint32) {
		if code > 0xff {
			out = append(out, byte(code>>8))
		}
		out = binary.BigEndian.AppendUint32(append(out, byte(code)), n)
	}
	for _, f := range []struct {
		code int
		n    uint32
		is   bool
	}{
		{codeNetworkID, b.networkID, b.networkID > 0},
		{codeFlags, b.flags, b.flags > 0},
		{codeSequence, b.sequence, true},
		{codeTag, b.tagged(), b.tag != nil},
		{codeLastLedger, b.lastLedger, b.lastLedger > 0},
	} {
		if f.is {
			number(f.code, f.n)
		}
	}
	if b.kind == typePayment {
		out = binary.BigEndian.AppendUint64(append(out, codeAmount), b.amount|nativeBit)
	}
	out = binary.BigEndian.AppendUint64(append(out, codeFee), b.fee|nativeBit)
	out = append(append(out, codeKey, byte(len(b.key))), b.key...)
	if b.signature != nil {
		out = append(append(out, codeSignature, byte(len(b.signature))), b.signature...)
	}
	out = append(append(out, codeAccount, byte(len(b.account))), b.account[:]...)
	if b.kind == typePayment {
		out = append(append(out, codeDest, byte(len(b.dest))), b.dest[:]...)
	}
	return out
}

func (b *body) tagged() uint32 {
	if b.tag == nil {
		return 0
	}
	return *b.tag
}

var errForm = errors.New("xrp: not a plain payment of XRP in its canonical form")

// decode reads what encode writes, and nothing else: no other field, no other
// order, no issued currency.
func decode(raw []byte) (*body, error) {
	b, r := &body{}, reader{b: raw}
	if r.code() != codeType {
		return nil, errForm
	}
	b.kind = uint16(r.uint(2)) //nolint:gosec // of two bytes
	for !r.bad && len(r.b) > 0 {
		switch r.code() {
		case codeNetworkID:
			b.networkID = r.uint32()
		case codeFlags:
			b.flags = r.uint32()
		case codeSequence:
			b.sequence = r.uint32()
		case codeTag:
			n := r.uint32()
			b.tag = &n
		case codeLastLedger:
			b.lastLedger = r.uint32()
		case codeAmount:
			b.amount = r.drops()
		case codeFee:
			b.fee = r.drops()
		case codeKey:
			b.key = r.bytes()
		case codeSignature:
			b.signature = r.bytes()
		case codeAccount:
			b.account = r.account()
		case codeDest:
			b.dest = r.account()
		default:
			return nil, errForm
		}
	}
	if r.bad || b.kind != typePayment && b.kind != typeAccountSet || len(b.key) != 33 || !bytes.Equal(b.encode(), raw) {
		return nil, errForm
	}
	return b, nil
}

// reader takes a serialisation apart; bad once something is not there.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if len(r.b) < n {
		r.bad, r.b = true, nil
		return make([]byte, n)
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// code reads a field's type and number. Of the two-byte forms only LastLedger's
// is known.
func (r *reader) code() int {
	c := int(r.take(1)[0])
	if c == codeLastLedger>>8 {
		c = c<<8 | int(r.take(1)[0])
	}
	return c
}

func (r *reader) uint(size int) (n uint64) {
	for _, c := range r.take(size) {
		n = n<<8 | uint64(c)
	}
	return n
}

func (r *reader) uint32() uint32 { return uint32(r.uint(4)) } //nolint:gosec // of four bytes

func (r *reader) drops() uint64 {
	n := r.uint(8)
	if n&^(nativeBit-1) != nativeBit || n^nativeBit > maxDrops {
		r.bad = true
		return 0
	}
	return n ^ nativeBit
}

// bytes reads a short variable-length value.
func (r *reader) bytes() []byte {
	n := int(r.take(1)[0])
	if n > 192 {
		r.bad = true
		return nil
	}
	return append([]byte{}, r.take(n)...)
}

func (r *reader) account() (a account) {
	if r.take(1)[0] != byte(len(a)) {
		r.bad = true
	}
	copy(a[:], r.take(len(a)))
	return a
}

// half is the first half of SHA-512, the ledger's hash.
func half(parts ...[]byte) (out [32]byte) {
	h := sha512.New()
	for _, p := range parts {
		h.Write(p)
	}
	copy(out[:], h.Sum(nil))
	return out
}
