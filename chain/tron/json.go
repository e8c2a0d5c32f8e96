package tron

import (
	"bytes"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
)

// walk reads JSON in place, without copying: decoding is what a block costs, and
// of a block few fields are used. It is strict about structure and bounded in
// depth; what it does not understand is an error. Strings are returned as they
// stand between the quotes: what is read is hex and names, where an escape is an
// error anyway.
type walk struct {
	b   []byte
	i   int
	bad bool
}

// maxDepth bounds nesting: a block's JSON is about ten deep.
const maxDepth = 200

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

// more steps to the next key of an object; first before the first one.
func (w *walk) more(first bool) bool {
	switch {
	case w.bad:
	case first:
		if w.take('{') {
			return !w.take('}')
		}
		w.fail()
	case w.take(','):
		return true
	case !w.take('}'):
		w.fail()
	}
	return false
}

func (w *walk) key() []byte {
	k := w.text()
	if !w.take(':') {
		w.fail()
	}
	return k
}

// object calls f for each key; f must read or skip the value.
func (w *walk) object(f func(key []byte)) {
	for first := true; w.more(first); first = false {
		if k := w.key(); !w.bad {
			f(k)
		}
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

func (w *walk) literal() []byte {
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
	return w.b[start:w.i]
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

// number reads a whole number from 0 to 2^63−1.
func (w *walk) number() int64 {
	w.peek()
	s := w.literal()
	var n uint64
	for _, d := range s {
		if d < '0' || d > '9' || n > (1<<63-1-9)/10 {
			w.fail()
			return 0
		}
		n = n*10 + uint64(d-'0')
	}
	return int64(n)
}

func (w *walk) truth() bool { return string(w.raw()) == "true" }

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

// fixed reads exactly len(dst) bytes of hex.
func (w *walk) fixed(dst []byte) {
	if !unhex(dst, w.text()) {
		w.fail()
	}
}
