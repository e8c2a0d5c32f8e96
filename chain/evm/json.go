package evm

import (
	"bytes"
	"fmt"
	"math/big"

	"github.com/cryptopay-go/cryptopay/chain"
)

// walk reads JSON in place, without copying or allocating: decoding, not
// matching, is what a block costs, and of a block we use few fields. It is
// strict about structure and bounded in depth; what it does not understand is
// an error. Strings are returned as they stand between the quotes: all that we
// read is hex, where an escape is an error anyway.
type walk struct {
	b   []byte
	i   int
	bad bool
}

// maxDepth bounds nesting. Calls nest at most 1024 deep, each an object in an array.
const maxDepth = 2100

func (w *walk) fail() { w.bad, w.i = true, len(w.b) }

func (w *walk) peek() byte {
	for w.i < len(w.b) {
		switch c := w.b[w.i]; c {
		case ' ', '\n', '\t', '\r':
			w.i++
		default:
			return c
		}
	}
	return 0
}

func (w *walk) take(c byte) bool {
	if w.peek() != c {
		return false
	}
	w.i++
	return true
}

// text reads a string.
func (w *walk) text() []byte {
	if !w.take('"') {
		w.fail()
		return nil
	}
	start := w.i
	for {
		n := bytes.IndexByte(w.b[w.i:], '"')
		if n < 0 {
			w.fail()
			return nil
		}
		w.i += n + 1
		slashes := 0
		for j := w.i - 2; j >= start && w.b[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return w.b[start : w.i-1]
		}
	}
}

// str reads a string, or nil for null.
func (w *walk) str() []byte {
	if w.peek() == 'n' {
		w.skip(0)
		return nil
	}
	return w.text()
}

// object calls f for each key; f must read or skip the value.
func (w *walk) object(f func(key []byte)) {
	if !w.take('{') {
		w.fail()
		return
	}
	if w.take('}') {
		return
	}
	for !w.bad {
		key := w.text()
		if w.bad || !w.take(':') {
			w.fail()
			return
		}
		f(key)
		if w.take(',') {
			continue
		}
		if !w.take('}') {
			w.fail()
		}
		return
	}
}

// array calls f before each element; f must read or skip it. null is empty.
func (w *walk) array(f func()) {
	if w.peek() == 'n' {
		w.skip(0)
		return
	}
	if !w.take('[') {
		w.fail()
		return
	}
	if w.take(']') {
		return
	}
	for !w.bad {
		f()
		if w.take(',') {
			continue
		}
		if !w.take(']') {
			w.fail()
		}
		return
	}
}

// skip passes over any value.
func (w *walk) skip(depth int) {
	switch c := w.peek(); {
	case depth > maxDepth || c == 0:
		w.fail()
	case c == '"':
		w.text()
	case c == '{':
		w.object(func([]byte) { w.skip(depth + 1) })
	case c == '[':
		w.array(func() { w.skip(depth + 1) })
	default:
		w.literal()
	}
}

func (w *walk) literal() {
	start := w.i
	for w.i < len(w.b) {
		switch c := w.b[w.i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '-', c == '+', c == '.', c == 'E':
			w.i++
			continue
		}
		break
	}
	switch s := w.b[start:w.i]; {
	case len(s) == 0:
		w.fail()
	case s[0] == '-' || s[0] >= '0' && s[0] <= '9':
	case string(s) == "null" || string(s) == "true" || string(s) == "false":
	default:
		w.fail()
	}
}

// raw is the text of any value.
func (w *walk) raw() []byte {
	w.peek()
	start := w.i
	w.skip(0)
	if w.bad {
		return nil
	}
	return w.b[start:w.i]
}

// end reports whether the whole input was one well-formed value.
func (w *walk) end() error {
	if w.bad || w.peek() != 0 || w.i != len(w.b) {
		return fmt.Errorf("%w: its answer is not the JSON expected", chain.ErrNode)
	}
	return nil
}

func isNull(b []byte) bool { return string(bytes.TrimSpace(b)) == "null" || len(b) == 0 }

var nibbles = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i := range 10 {
		t['0'+i] = byte(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = byte(10+i), byte(10+i)
	}
	return t
}()

// unhex fills dst from exactly twice as many hex digits.
func unhex(dst, src []byte) bool {
	if len(src) != 2*len(dst) {
		return false
	}
	for i := range dst {
		hi, lo := nibbles[src[2*i]], nibbles[src[2*i+1]]
		if hi|lo > 15 {
			return false
		}
		dst[i] = hi<<4 | lo
	}
	return true
}

// fixed reads 0x and exactly len(dst) bytes.
func (w *walk) fixed(dst []byte) {
	s := w.text()
	if len(s) < 2 || s[0] != '0' || s[1] != 'x' || !unhex(dst, s[2:]) {
		w.fail()
	}
}

// number reads a quantity that fits 63 bits.
func (w *walk) number() int64 {
	n, ok := parseNumber(w.text())
	if !ok {
		w.fail()
	}
	return n
}

func parseNumber(s []byte) (int64, bool) {
	if len(s) < 3 || len(s) > 18 || s[0] != '0' || s[1] != 'x' {
		return 0, false
	}
	var n uint64
	for _, d := range s[2:] {
		v := nibbles[d]
		if v > 15 {
			return 0, false
		}
		n = n<<4 | uint64(v)
	}
	return int64(n), n < 1<<63
}

// big reads a quantity of at most 256 bits.
func (w *walk) big() *big.Int {
	n, ok := parseBig(w.text())
	if !ok {
		w.fail()
		return new(big.Int)
	}
	return n
}

func parseBig(s []byte) (*big.Int, bool) {
	if len(s) < 3 || len(s) > 66 || s[0] != '0' || s[1] != 'x' || s[2] == '-' || s[2] == '+' {
		return nil, false
	}
	for _, d := range s[2:] {
		if nibbles[d] > 15 {
			return nil, false
		}
	}
	return new(big.Int).SetString(string(s[2:]), 16)
}
