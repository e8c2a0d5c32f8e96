package solana

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// transaction is what we read of a transaction's bytes.
type transaction struct {
	signatures [][]byte
	message    []byte
	message_
}

// message_ is what is signed.
type message_ struct {
	version    int // −1 for the form without versions
	config     config
	signers    int
	readSigned int // signers that cannot be written, the last ones
	readOnly   int // of the others, the last ones
	keys       []key
	blockhash  key
	calls      []call
	lookups    int // addresses taken from tables
}

// call is one instruction: indexes into the accounts, and its data.
type call struct {
	program  int
	accounts []byte
	data     []byte
}

var errWire = errors.New("solana: not a transaction")

// errVersion is of bytes in a form that is newer than this reader.
var errVersion = errors.New("solana: a transaction of a version that is not known here")

// wire reads the binary form. Lengths must be in their shortest writing.
type wire struct {
	b   []byte
	bad bool
}

func (w *wire) take(n int) []byte {
	if w.bad || n > len(w.b) {
		w.bad = true
		return nil
	}
	out := w.b[:n:n]
	w.b = w.b[n:]
	return out
}

func (w *wire) byte() int {
	if b := w.take(1); b != nil {
		return int(b[0])
	}
	return 0
}

// length is a compact-u16.
func (w *wire) length() int {
	n := 0
	for i := range 3 {
		b := w.byte()
		n |= b & 0x7f << (7 * i)
		if b < 0x80 {
			if i > 0 && b == 0 || n > 0xffff {
				w.bad = true
			}
			return n
		}
	}
	w.bad = true
	return 0
}

func (w *wire) key() (k key) {
	copy(k[:], w.take(len(k)))
	return k
}

// readTransaction takes a signed transaction apart. Nothing may follow it. The error is
// errVersion where the form may be a newer one; the forms without versions and of
// version 0 are closed, so what does not fit them is errWire.
func readTransaction(raw []byte) (*transaction, error) {
	if len(raw) > 0 && raw[0] >= versioned {
		return readSigned(raw)
	}
	w := &wire{b: raw}
	t := &transaction{}
	n := w.length()
	for range n {
		t.signatures = append(t.signatures, w.take(64))
		if w.bad {
			return nil, errWire
		}
	}
	t.message = w.b
	if w.bad || !t.read(w) || n == 0 || n != t.signers {
		return nil, errWire
	}
	return t, nil
}

// readMessage takes a message apart. Nothing may follow it.
func readMessage(b []byte) (*message_, error) {
	m, w := &message_{}, &wire{b: b}
	if len(b) > 0 && b[0] == version1 {
		if !m.read1(w) || len(w.b) > 0 {
			return nil, errWire
		}
		return m, nil
	}
	if !m.read(w) {
		return nil, errWire
	}
	return m, nil
}

// read reads the forms without versions and of version 0, to the end.
func (m *message_) read(w *wire) bool {
	m.version = -1
	if len(w.b) > 0 && w.b[0] >= versioned {
		if m.version = w.byte() & 0x7f; m.version != 0 {
			return false
		}
	}
	m.signers, m.readSigned, m.readOnly = w.byte(), w.byte(), w.byte()
	n := w.length()
	if w.bad || n*len(key{}) > len(w.b) {
		return false
	}
	m.keys = make([]key, n)
	for i := range m.keys {
		m.keys[i] = w.key()
	}
	m.blockhash = w.key()
	n = w.length()
	if w.bad || 3*n > len(w.b) {
		return false
	}
	m.calls = make([]call, n)
	for i := range m.calls {
		m.calls[i] = call{program: w.byte(), accounts: w.take(w.length()), data: w.take(w.length())}
	}
	if m.version == 0 {
		for range w.length() {
			w.key()
			for range 2 {
				n := w.length()
				w.take(n)
				m.lookups += n
			}
			if w.bad {
				return false
			}
		}
	}
	return !w.bad && len(w.b) == 0 && m.whole()
}

// whole checks that what the message says of itself fits together.
func (m *message_) whole() bool {
	if m.signers == 0 || m.signers > len(m.keys) || m.readSigned >= m.signers || m.readOnly > len(m.keys)-m.signers {
		return false
	}
	all := len(m.keys) + m.lookups
	for i := range m.calls {
		if m.calls[i].program >= len(m.keys) {
			return false
		}
		for _, a := range m.calls[i].accounts {
			if int(a) >= all {
				return false
			}
		}
	}
	return true
}

// spend names the transaction itself by what is signed: it takes nothing else of its
// sender's that another could take before it. Attempts never share one.
func spend(message []byte) string {
	sum := sha256.Sum256(message)
	return "tx/" + hex.EncodeToString(sum[:])
}
