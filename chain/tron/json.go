package tron

import "github.com/cryptopay-go/cryptopay/chain/internal/transport"

// walk reads answers in place, with the notations of Tron's HTTP API.
type walk struct{ *transport.Walk }

func newWalk(b []byte) walk { return walk{transport.NewWalk(b)} }

// number reads a whole number from 0 to 2^63−1.
func (w walk) number() int64 {
	w.Peek()
	s := w.Literal()
	var n uint64
	for _, d := range s {
		if d < '0' || d > '9' || n > (1<<63-1-9)/10 {
			w.Fail()
			return 0
		}
		n = n*10 + uint64(d-'0')
	}
	return int64(n)
}

func (w walk) truth() bool { return string(w.Raw()) == "true" }

// fixed reads exactly len(dst) bytes of hex.
func (w walk) fixed(dst []byte) {
	if !transport.Unhex(dst, w.Text()) {
		w.Fail()
	}
}
