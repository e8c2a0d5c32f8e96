package transport

import (
	"bytes"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Walk reads JSON in place, without copying or allocating: decoding, not
// matching, is what a block costs, and of a block few fields are used. It is
// strict about structure and bounded in depth; what it does not understand is
// an error. Strings are returned as they stand between the quotes: what clients
// read is hex and names, where an escape is an error anyway.
type Walk struct {
	Bad bool // what was met is not what was asked for

	b []byte
	i int
}

// NewWalk reads a text from its beginning.
func NewWalk(b []byte) *Walk { return &Walk{b: b} }

// MaxDepth bounds nesting. EVM calls nest at most 1024 deep, each an object in
// an array.
const MaxDepth = 2100

// Fail ends the reading: End then is an error.
func (w *Walk) Fail() { w.Bad, w.i = true, len(w.b) }

// Peek is the next byte that is no space, 0 at the end.
func (w *Walk) Peek() byte {
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

// Take passes over one byte, where it is the next.
func (w *Walk) Take(c byte) bool {
	if w.Peek() != c {
		return false
	}
	w.i++
	return true
}

// Text reads a string.
func (w *Walk) Text() []byte {
	if !w.Take('"') {
		w.Fail()
		return nil
	}
	start := w.i
	for {
		n := bytes.IndexByte(w.b[w.i:], '"')
		if n < 0 {
			w.Fail()
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

// More steps to the next key of an object; first before the first one.
func (w *Walk) More(first bool) bool {
	switch {
	case w.Bad:
	case first:
		if w.Take('{') {
			return !w.Take('}')
		}
		w.Fail()
	case w.Take(','):
		return true
	case !w.Take('}'):
		w.Fail()
	}
	return false
}

// Key reads a key and its colon.
func (w *Walk) Key() []byte {
	k := w.Text()
	if !w.Take(':') {
		w.Fail()
	}
	return k
}

// Object calls f for each key; f must read or skip the value.
func (w *Walk) Object(f func(key []byte)) {
	for first := true; w.More(first); first = false {
		if k := w.Key(); !w.Bad {
			f(k)
		}
	}
}

// Array calls f before each element; f must read or skip it. null is empty.
func (w *Walk) Array(f func()) {
	if w.Peek() == 'n' {
		w.Skip()
		return
	}
	if !w.Take('[') {
		w.Fail()
		return
	}
	if w.Take(']') {
		return
	}
	for !w.Bad {
		f()
		if w.Take(',') {
			continue
		}
		if !w.Take(']') {
			w.Fail()
		}
		return
	}
}

// Skip passes over any value.
func (w *Walk) Skip() { w.skip(0) }

func (w *Walk) skip(depth int) {
	switch c := w.Peek(); {
	case depth > MaxDepth || c == 0:
		w.Fail()
	case c == '"':
		w.Text()
	case c == '{':
		w.Object(func([]byte) { w.skip(depth + 1) })
	case c == '[':
		w.Array(func() { w.skip(depth + 1) })
	default:
		w.Literal()
	}
}

// Literal reads a number, true, false or null.
func (w *Walk) Literal() []byte {
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
		w.Fail()
	case s[0] == '-' || s[0] >= '0' && s[0] <= '9':
	case string(s) == "null" || string(s) == "true" || string(s) == "false":
	default:
		w.Fail()
	}
	return w.b[start:w.i]
}

// Raw is the text of any value.
func (w *Walk) Raw() []byte {
	w.Peek()
	start := w.i
	w.Skip()
	if w.Bad {
		return nil
	}
	return w.b[start:w.i]
}

// End reports whether the whole input was one well-formed value.
func (w *Walk) End() error {
	if w.Bad || w.Peek() != 0 || w.i != len(w.b) {
		return fmt.Errorf("%w: its answer is not the JSON expected", chain.ErrNode)
	}
	return nil
}

// Null reports whether a raw value is null, or none.
func Null(b []byte) bool { return string(bytes.TrimSpace(b)) == "null" || len(b) == 0 }

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

// Nibble is the value of a hex digit, above 15 where it is none.
func Nibble(c byte) byte { return nibbles[c] }

// Unhex fills dst from exactly twice as many hex digits.
func Unhex(dst, src []byte) bool {
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
