package solana

import (
	"encoding/binary"
	"math/bits"
)

// Version 1 of transactions, as SIMD-0385 describes it: the message comes first and the
// signatures last, counts are single bytes, and settings stand in the message instead
// of instructions of the budget. It has no lookup tables.

// The first bytes of messages: above versioned, the version is added to it.
const (
	versioned = 0x80
	version1  = versioned | 1
)

// config are the settings of a message of version 1: a mask of which there are, and four
// bytes for each of its bits.
type config struct {
	mask  uint32
	words []byte
}

// The settings that Build makes: all that there are but the size of the heap.
const (
	configPriority = 0b11 // the whole priority fee in lamports, 8 bytes
	configUnits    = 0b100
	configSize     = 0b1000 // of the accounts that are loaded
	configOurs     = configPriority | configUnits | configSize
)

// configOf are the settings of a transaction of ours.
func configOf(priority int64, units, size uint32) config {
	words := binary.LittleEndian.AppendUint64(nil, uint64(priority))
	words = binary.LittleEndian.AppendUint32(words, units)
	return config{configOurs, binary.LittleEndian.AppendUint32(words, size)}
}

// ours reads the settings back; false where they are others.
func (c config) ours() (priority uint64, units, size uint32, ok bool) {
	if c.mask != configOurs {
		return 0, 0, 0, false
	}
	le := binary.LittleEndian
	return le.Uint64(c.words), le.Uint32(c.words[8:]), le.Uint32(c.words[12:]), true
}

// readSigned takes a signed transaction of version 1 apart. Nothing may follow it.
func readSigned(raw []byte) (*transaction, error) {
	w := &wire{b: raw}
	t := &transaction{}
	if raw[0] != version1 || !t.read1(w) || len(w.b) != t.signers*64 {
		return nil, errVersion
	}
	t.message = raw[: len(raw)-len(w.b) : len(raw)-len(w.b)]
	for range t.signers {
		t.signatures = append(t.signatures, w.take(64))
	}
	return t, nil
}

// read1 reads a message of version 1; what follows it is left. Settings that are newer
// than this reader are passed over: they change what a transaction may use, not what
// it does.
func (m *message_) read1(w *wire) bool {
	m.version = w.byte() & 0x7f
	m.signers, m.readSigned, m.readOnly = w.byte(), w.byte(), w.byte()
	if mask := w.take(4); mask != nil {
		m.config.mask = binary.LittleEndian.Uint32(mask)
	}
	m.blockhash = w.key()
	calls, keys := w.byte(), w.byte()
	if w.bad || keys*len(key{}) > len(w.b) {
		return false
	}
	m.keys = make([]key, keys)
	for i := range m.keys {
		m.keys[i] = w.key()
	}
	m.config.words = w.take(4 * bits.OnesCount32(m.config.mask))
	heads := w.take(4 * calls)
	if w.bad {
		return false
	}
	m.calls = make([]call, calls)
	for i := range m.calls {
		head := heads[4*i:]
		m.calls[i] = call{program: int(head[0]), accounts: w.take(int(head[1])), data: w.take(int(binary.LittleEndian.Uint16(head[2:])))}
	}
	return !w.bad && m.whole()
}

// write1 is the message as bytes of version 1, to be signed.
func (m *message_) write1() []byte {
	out := []byte{version1, byte(m.signers), byte(m.readSigned), byte(m.readOnly)}
	out = binary.LittleEndian.AppendUint32(out, m.config.mask)
	out = append(out, m.blockhash[:]...)
	out = append(out, byte(len(m.calls)), byte(len(m.keys)))
	for _, k := range m.keys {
		out = append(out, k[:]...)
	}
	out = append(out, m.config.words...)
	for _, x := range m.calls {
		out = append(out, byte(x.program), byte(len(x.accounts)))
		out = binary.LittleEndian.AppendUint16(out, uint16(len(x.data)))
	}
	for _, x := range m.calls {
		out = append(append(out, x.accounts...), x.data...)
	}
	return out
}
