package evm

import (
	"math/big"

	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// walk reads answers in place, with the notations of Ethereum's JSON-RPC.
type walk struct{ *transport.Walk }

func newWalk(b []byte) walk { return walk{transport.NewWalk(b)} }

// str reads a string, or nil for null.
func (w walk) str() []byte {
	if w.Peek() == 'n' {
		w.Skip()
		return nil
	}
	return w.Text()
}

// fixed reads 0x and exactly len(dst) bytes.
func (w walk) fixed(dst []byte) {
	s := w.Text()
	if len(s) < 2 || s[0] != '0' || s[1] != 'x' || !transport.Unhex(dst, s[2:]) {
		w.Fail()
	}
}

// number reads a quantity that fits 63 bits.
func (w walk) number() int64 {
	n, ok := parseNumber(w.Text())
	if !ok {
		w.Fail()
	}
	return n
}

func parseNumber(s []byte) (int64, bool) {
	if len(s) < 3 || len(s) > 18 || s[0] != '0' || s[1] != 'x' {
		return 0, false
	}
	var n uint64
	for _, d := range s[2:] {
		v := transport.Nibble(d)
		if v > 15 {
			return 0, false
		}
		n = n<<4 | uint64(v)
	}
	return int64(n), n < 1<<63
}

// big reads a quantity of at most 256 bits.
func (w walk) big() *big.Int {
	n, ok := parseBig(w.Text())
	if !ok {
		w.Fail()
		return new(big.Int)
	}
	return n
}

func parseBig(s []byte) (*big.Int, bool) {
	if len(s) < 3 || len(s) > 66 || s[0] != '0' || s[1] != 'x' || s[2] == '-' || s[2] == '+' {
		return nil, false
	}
	for _, d := range s[2:] {
		if transport.Nibble(d) > 15 {
			return nil, false
		}
	}
	return new(big.Int).SetString(string(s[2:]), 16)
}
