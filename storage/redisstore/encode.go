package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Scalars are stored so that comparing bytes compares values, and so that one
// ends where the next begins: an integer as eight bytes, a text with a NUL after
// it (it holds none itself), bytes with each 0 as 0 255 and 0 0 after them.

func encodeScalar(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return append(append(b, v...), 0)
	case int64:
		return binary.BigEndian.AppendUint64(b, uint64(v)^1<<63)
	case []byte:
		for _, c := range v {
			if b = append(b, c); c == 0 {
				b = append(b, 0xff)
			}
		}
		return append(b, 0, 0)
	}
	return b
}

var errForeign = errors.New("redisstore: what is stored was not written by this package")

func decodeScalar(s string, k storage.Kind) (any, error) {
	switch k {
	case storage.Text, storage.Decimal, storage.JSON:
		if text, ok := strings.CutSuffix(s, "\x00"); ok {
			return text, nil
		}
	case storage.Bytes:
		if body, ok := strings.CutSuffix(s, "\x00\x00"); ok {
			return []byte(strings.ReplaceAll(body, "\x00\xff", "\x00")), nil
		}
	default:
		if len(s) == 8 {
			return int64(binary.BigEndian.Uint64([]byte(s)) ^ 1<<63), nil
		}
	}
	return nil, errForeign
}

// packer writes MessagePack, as far as the scripts need it.
type packer struct{ b []byte }

func (p *packer) array(n int) {
	if n < 16 {
		p.b = append(p.b, 0x90|byte(n))
		return
	}
	p.b = binary.BigEndian.AppendUint32(append(p.b, 0xdd), uint32(n))
}

func (p *packer) none() { p.b = append(p.b, 0xc2) } // false

func (p *packer) head(n int) {
	switch {
	case n < 32:
		p.b = append(p.b, 0xa0|byte(n))
	case n <= math.MaxUint8:
		p.b = append(p.b, 0xd9, byte(n))
	case n <= math.MaxUint16:
		p.b = binary.BigEndian.AppendUint16(append(p.b, 0xda), uint16(n))
	default:
		p.b = binary.BigEndian.AppendUint32(append(p.b, 0xdb), uint32(n))
	}
}

func (p *packer) str(s string) {
	p.head(len(s))
	p.b = append(p.b, s...)
}

func (p *packer) bytes(s []byte) {
	p.head(len(s))
	p.b = append(p.b, s...)
}

// decimal writes an integer as text: nothing larger than 2^53 is a number in Lua.
func (p *packer) decimal(n int64) {
	var digits [20]byte
	p.bytes(strconv.AppendInt(digits[:0], n, 10))
}

func (p *packer) int(n int64) {
	switch {
	case n >= 0 && n < 128 || n < 0 && n >= -32:
		p.b = append(p.b, byte(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		p.b = binary.BigEndian.AppendUint32(append(p.b, 0xd2), uint32(int32(n)))
	default:
		p.b = binary.BigEndian.AppendUint64(append(p.b, 0xd3), uint64(n))
	}
}

// halves writes an amount as the two numbers that the script reckons with:
// high·10⁹ + low, 0 ≤ low < 10⁹.
func (p *packer) halves(n int64) {
	const e9 = 1_000_000_000
	high, low := n/e9, n%e9
	if low < 0 {
		high, low = high-1, low+e9
	}
	p.int(high)
	p.int(low)
}

// Rows are stored as a MessagePack array of texts: version, change, due in µs,
// then each column encoded.

func packRow(r *storage.Stored) []byte {
	p := packer{b: make([]byte, 0, 64+24*len(r.Scalars))}
	p.array(3 + len(r.Scalars))
	p.decimal(r.Version)
	p.str(r.Change)
	p.decimal(r.Due)
	var buf []byte
	for _, v := range r.Scalars {
		buf = encodeScalar(buf[:0], v)
		p.bytes(buf)
	}
	return p.b
}

// unpackRow is the inverse of packRow. Its errors are *storage.RowErrors.
func unpackRow(t *storage.Table, p storage.Partition, id, packed string) (*storage.Stored, error) {
	foreign := func(column string) error {
		return &storage.RowError{Table: t.Name, Partition: p, ID: id, Err: fmt.Errorf("%w: %s", errForeign, column)}
	}
	parts, err := unpackTexts(packed)
	if err != nil || len(parts) != 3+len(t.Columns) {
		return nil, foreign("the row")
	}
	r := &storage.Stored{Partition: p, ID: id, Change: parts[1], Scalars: make([]any, len(t.Columns))}
	if r.Version, err = strconv.ParseInt(parts[0], 10, 64); err != nil {
		return nil, foreign("its version")
	}
	if r.Due, err = strconv.ParseInt(parts[2], 10, 64); err != nil {
		return nil, foreign("its due time")
	}
	for i := range t.Columns {
		if r.Scalars[i], err = decodeScalar(parts[3+i], t.Columns[i].Kind); err != nil {
			return nil, foreign("column " + t.Columns[i].Name)
		}
	}
	return r, nil
}

// unpackTexts reads a MessagePack array of texts.
func unpackTexts(s string) ([]string, error) {
	size := func(n int) (int, bool) { // reads n bytes of length
		if len(s) < 1+n {
			return 0, false
		}
		v := 0
		for _, c := range []byte(s[1 : 1+n]) {
			v = v<<8 | int(c)
		}
		s = s[1+n:]
		return v, true
	}
	if s == "" {
		return nil, errForeign
	}
	count, ok := 0, true
	switch c := s[0]; {
	case c&0xf0 == 0x90:
		count, s = int(c&0x0f), s[1:]
	case c == 0xdc:
		count, ok = size(2)
	case c == 0xdd:
		count, ok = size(4)
	default:
		ok = false
	}
	if !ok || count > len(s) {
		return nil, errForeign
	}
	out := make([]string, count)
	for i := range out {
		if s == "" {
			return nil, errForeign
		}
		n := 0
		switch c := s[0]; {
		case c&0xe0 == 0xa0:
			n, s = int(c&0x1f), s[1:]
		case c == 0xd9:
			n, ok = size(1)
		case c == 0xda:
			n, ok = size(2)
		case c == 0xdb:
			n, ok = size(4)
		default:
			ok = false
		}
		if !ok || n > len(s) {
			return nil, errForeign
		}
		out[i], s = s[:n], s[n:]
	}
	return out, nil
}

// prefix is what a row's member begins with in an index.
func (x *index) prefix(scalars []any) []byte {
	var b []byte
	for _, at := range x.cols {
		b = encodeScalar(b, scalars[at])
	}
	return b
}
