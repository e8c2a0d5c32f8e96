package utxo

import "bytes"

// walk finds the parts of a JSON text in place: an answer is mostly one very long
// string of hex, which is not copied to be found. It is strict about structure
// and bounded in depth.
type walk struct {
	b   []byte
	i   int
	bad bool
}

const maxDepth = 32

func (w *walk) fail() { w.bad, w.i = true, len(w.b) }

// peek is the next byte that is no space, 0 at the end.
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

// object calls f for each key; f must read the value.
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
		if !w.take(':') {
			w.fail()
			return
		}
		if f(key); w.take('}') {
			return
		}
		if !w.take(',') {
			w.fail()
		}
	}
}

// array calls f for each element; f must read it.
func (w *walk) array(f func()) {
	if !w.take('[') {
		w.fail()
		return
	}
	if w.take(']') {
		return
	}
	for !w.bad {
		if f(); w.take(']') {
			return
		}
		if !w.take(',') {
			w.fail()
		}
	}
}

// text reads a string as it stands between the quotes.
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
		end := w.i - 1
		slashes := 0
		for p := end - 1; p >= start && w.b[p] == '\\'; p-- {
			slashes++
		}
		if slashes%2 == 0 {
			return w.b[start:end]
		}
	}
}

// value reads any value and returns it as it stands.
func (w *walk) value() []byte {
	w.peek()
	start := w.i
	w.skip(0)
	if w.bad {
		return nil
	}
	return w.b[start:w.i]
}

func (w *walk) skip(depth int) {
	if depth > maxDepth {
		w.fail()
		return
	}
	switch w.peek() {
	case '{':
		w.object(func([]byte) { w.skip(depth + 1) })
	case '[':
		w.array(func() { w.skip(depth + 1) })
	case '"':
		w.text()
	default:
		start := w.i
		for w.i < len(w.b) && bytes.IndexByte([]byte(",]}: \n\t\r"), w.b[w.i]) < 0 {
			w.i++
		}
		if w.i == start {
			w.fail()
		}
	}
}
