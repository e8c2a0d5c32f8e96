package stellar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

// Numbers of the unions that we write.
const (
	envelopeTx    = 2
	memoNone      = 0
	memoText      = 1
	memoID        = 2
	opCreate      = 0
	opPayment     = 1
	opBump        = 11 // BumpSequence, to where the transaction itself leads: it does nothing
	keyEd25519    = 0
	preconditions = 1 // of time alone
	maxMemoText   = 28
)

// body is a transaction of one operation: a payment of lumens, the making of an
// account with them, or nothing.
type body struct {
	source   account
	fee      uint32 // stroops, the most
	sequence int64
	until    uint64 // Unix seconds
	memoKind uint32
	text     string
	id       uint64
	op       uint32
	to       account
	amount   int64 // stroops; of opBump the sequence
}

func u32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }
func u64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// encode writes XDR (RFC 4506): everything in multiples of four bytes.
func (b *body) encode() []byte {
	out := append(u32(nil, keyEd25519), b.source[:]...)
	out = u32(out, b.fee)
	out = u64(out, uint64(b.sequence)) //nolint:gosec // two's complement
	out = u64(u64(u32(out, preconditions), 0), b.until)
	out = u32(out, b.memoKind)
	switch b.memoKind {
	case memoText:
		out = append(u32(out, uint32(len(b.text))), b.text...) //nolint:gosec // at most 28
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	case memoID:
		out = u64(out, b.id)
	}
	out = u32(u32(u32(out, 1), 0), b.op) // one operation, of the source's
	switch b.op {
	case opCreate, opPayment:
		out = append(u32(out, keyEd25519), b.to[:]...)
		if b.op == opPayment {
			out = u32(out, 0) // the native asset
		}
	}
	out = u64(out, uint64(b.amount)) //nolint:gosec // two's complement
	return u32(out, 0)               // no extension
}

var errForm = errors.New("stellar: not a plain payment of lumens in its canonical form")

// decode reads what encode writes, and nothing else.
func decode(raw []byte) (*body, error) {
	b, r := &body{}, reader{b: raw}
	r.expect(keyEd25519)
	copy(b.source[:], r.take(32))
	b.fee = r.u32()
	b.sequence = int64(r.u64()) //nolint:gosec // two's complement
	r.expect(preconditions)
	if r.u64() != 0 {
		r.bad = true
	}
	b.until = r.u64()
	switch b.memoKind = r.u32(); b.memoKind {
	case memoNone:
	case memoText:
		n := int(r.u32())
		if n > maxMemoText {
			return nil, errForm
		}
		b.text = string(r.take(n))
		r.take((4 - n%4) % 4)
	case memoID:
		b.id = r.u64()
	default:
		return nil, errForm
	}
	r.expect(1)
	r.expect(0)
	switch b.op = r.u32(); b.op {
	case opCreate, opPayment:
		r.expect(keyEd25519)
		copy(b.to[:], r.take(32))
		if b.op == opPayment {
			r.expect(0)
		}
	case opBump:
	default:
		return nil, errForm
	}
	b.amount = int64(r.u64()) //nolint:gosec // two's complement
	r.expect(0)
	if r.bad || len(r.b) > 0 || !utf8.ValidString(b.text) || !bytes.Equal(b.encode(), raw) {
		return nil, errForm
	}
	return b, nil
}

// reader takes XDR apart; bad once something is not there.
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

func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }

func (r *reader) expect(v uint32) {
	if r.u32() != v {
		r.bad = true
	}
}

// An envelope is the transaction and its one signature, behind the last four bytes
// of the key.

func seal(payload []byte, key account, signature []byte) []byte {
	out := append(u32(nil, envelopeTx), payload...)
	out = append(u32(out, 1), key[28:]...)
	return append(u32(out, uint32(len(signature))), signature...) //nolint:gosec // 64
}

const sealSize = 4 + 4 + 4 + 64 // behind the payload

// unseal is the payload and the signature; ok is false for whatever seal does not
// write.
func unseal(raw []byte) (payload, signature []byte, ok bool) {
	if len(raw) < 4+sealSize {
		return nil, nil, false
	}
	payload, signature = raw[4:len(raw)-sealSize], raw[len(raw)-64:]
	b, err := decode(payload)
	return payload, signature, err == nil && bytes.Equal(seal(payload, b.source, signature), raw)
}
