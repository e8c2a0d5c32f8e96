package stellartest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain/address"
)

var errWire = errors.New("stellartest: not a transaction")

// cursor reads XDR, and panics with errWire at its end.
type cursor struct{ b []byte }

func (c *cursor) bytes(n int) []byte {
	if n < 0 || len(c.b) < n {
		panic(errWire)
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) u32() uint32 { return binary.BigEndian.Uint32(c.bytes(4)) }
func (c *cursor) i64() int64  { return int64(binary.BigEndian.Uint64(c.bytes(8))) }

// opaque is a variable-length value with its padding.
func (c *cursor) opaque() []byte {
	n := int(c.u32())
	out := c.bytes(n)
	for _, pad := range c.bytes((4 - n%4) % 4) {
		if pad != 0 {
			panic(errWire)
		}
	}
	return out
}

// accountID reads a key, or a muxed account's.
func (c *cursor) accountID() string {
	switch c.u32() {
	case 0:
	case 0x100:
		c.i64() // its id
	default:
		panic(errWire)
	}
	return string(address.StellarAccount([32]byte(c.bytes(32))))
}

// message is a transaction's content.
type message struct {
	source     string
	fee        int64
	sequence   int64
	min, max   int64
	memoType   string
	memo       string
	kind       uint32
	to         string
	amount     int64
	hash       [32]byte
	hints      [][]byte
	signatures [][]byte
}

// read takes an envelope apart.
func read(raw []byte, passphrase string) (m *message, err error) {
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, errWire
		}
	}()
	c := &cursor{raw}
	m = &message{}
	if c.u32() != 2 {
		return nil, errWire
	}
	body := c.b
	m.source = c.accountID()
	m.fee = int64(c.u32())
	m.sequence = c.i64()
	switch c.u32() {
	case 0:
	case 1:
		m.min, m.max = c.i64(), c.i64()
	default:
		return nil, errWire
	}
	m.readMemo(c)
	if c.u32() != 1 || c.u32() != 0 {
		return nil, errWire
	}
	switch m.kind = c.u32(); m.kind {
	case 0:
		m.to = c.accountID()
	case 1:
		m.to = c.accountID()
		if c.u32() != 0 {
			return nil, errWire
		}
	case 11:
	default:
		return nil, errWire
	}
	m.amount = c.i64()
	if c.u32() != 0 {
		return nil, errWire
	}
	id := sha256.Sum256([]byte(passphrase))
	signed := append(append(id[:], 0, 0, 0, 2), body[:len(body)-len(c.b)]...)
	m.hash = sha256.Sum256(signed)
	for range c.u32() {
		m.hints = append(m.hints, c.bytes(4))
		m.signatures = append(m.signatures, c.opaque())
	}
	if len(c.b) > 0 {
		return nil, errWire
	}
	return m, nil
}

func (m *message) readMemo(c *cursor) {
	switch c.u32() {
	case 0:
		m.memoType = "none"
	case 1:
		m.memoType, m.memo = "text", string(c.opaque())
	case 2:
		m.memoType, m.memo = "id", fmt.Sprint(uint64(c.i64()))
	case 3:
		m.memoType, m.memo = "hash", base64.StdEncoding.EncodeToString(c.bytes(32))
	case 4:
		m.memoType, m.memo = "return", base64.StdEncoding.EncodeToString(c.bytes(32))
	default:
		panic(errWire)
	}
}

// Codes of a transaction's result (TransactionResultCode of the protocol).
const (
	txFailed      = -1
	txTooEarly    = -2
	txTooLate     = -3
	txBadSeq      = -5
	txBadAuth     = -6
	txNoBalance   = -7
	txNoAccount   = -8
	txTooCheap    = -9
	txExtraSigned = -10
)

// malformed is no status of stellar-core's: Horizon does not ask it then.
const malformed = "MALFORMED"

// verdict is what stellar-core says of a transaction, and why it refuses it.
type verdict struct {
	status    string
	code, fee int32
	kind      uint32 // of the operation that failed
}

// result is the XDR that Horizon passes on: an operation's own code is there where the
// transaction failed by it, and is -1 for each kind that is read here.
func (v verdict) result() string {
	out := binary.BigEndian.AppendUint64(nil, uint64(v.fee))
	out = binary.BigEndian.AppendUint32(out, uint32(v.code))
	if v.code == txFailed {
		for _, x := range []int32{1, 0, int32(v.kind), -1} {
			out = binary.BigEndian.AppendUint32(out, uint32(x))
		}
	}
	return base64.StdEncoding.EncodeToString(append(out, 0, 0, 0, 0))
}

// submit judges a transaction as stellar-core does before a ledger has it.
func (n *Node) submit(raw []byte) (hash string, v verdict) {
	m, err := read(raw, n.passphrase)
	if err != nil {
		return "", verdict{status: malformed}
	}
	t := n.transaction(m)
	t.raw = raw
	if v := n.queued(t); v.status != "" {
		return t.hash, v
	}
	if code := n.judged(m); code != 0 {
		return t.hash, verdict{status: "ERROR", code: code, fee: BaseFee, kind: m.kind}
	}
	if n.fault.Took != nil {
		n.fault.Took(raw)
	}
	if !n.fault.Swallow {
		n.pool = append(n.pool, t)
	}
	return t.hash, verdict{status: "PENDING"}
}

// queued is what the queue says before anything else is looked at. One transaction of an
// account waits at a time. Another, whatever it pays, has to wait until that is in a
// ledger or was dropped: only a fee bump replaces one that waits.
func (n *Node) queued(t *tx) verdict {
	if n.banned[t.hash] >= n.head().index {
		return verdict{status: "TRY_AGAIN_LATER"}
	}
	for _, p := range n.pool {
		switch {
		case p.source != t.source || p.sequence == 0:
		case p.hash == t.hash:
			return verdict{status: "DUPLICATE"}
		case t.sequence < p.sequence:
			return verdict{status: "ERROR", code: txBadSeq}
		default:
			return verdict{status: "TRY_AGAIN_LATER"}
		}
	}
	return verdict{}
}

// judged is the code of what is wrong with a transaction, in the order in which
// stellar-core looks; 0 = nothing. It takes none that would be too late for the ledger
// after the next.
func (n *Node) judged(m *message) int32 {
	head := n.head()
	from, there := head.after[m.source]
	key, _ := address.StellarKey(chainAddress(m.source))
	good := 0
	for i, s := range m.signatures {
		if string(m.hints[i]) == string(key[28:]) && ed25519.Verify(key[:], m.hash[:], s) {
			good++
		}
	}
	switch {
	case m.min > head.closed.Unix():
		return txTooEarly
	case m.max > 0 && m.max < head.closed.Add(2*closeTime).Unix():
		return txTooLate
	case m.fee < BaseFee:
		return txTooCheap
	case !there:
		return txNoAccount
	case m.sequence != from.Sequence+1:
		return txBadSeq
	case good == 0:
		return txBadAuth
	case from.Stroops-(2+from.Entries)*BaseReserve-from.Selling < m.fee:
		return txNoBalance
	case m.kind == 1 && m.amount <= 0, m.kind != 1 && m.amount < 0, m.kind == 0 && m.to == m.source:
		return txFailed
	case len(m.signatures) > 1:
		return txExtraSigned
	}
	return 0
}

func (n *Node) transaction(m *message) *tx {
	memo := object{"memo_type": m.memoType}
	if m.memoType != "none" {
		memo["memo"] = m.memo
	}
	return &tx{
		hash: hex.EncodeToString(m.hash[:]), source: m.source, sequence: m.sequence, fee: m.fee, until: m.max, json: memo,
		run: m.apply,
	}
}

// apply runs a transaction of which the fee was taken.
func (m *message) apply(s map[string]Account, at int64) ([]op, bool) {
	if m.kind == 11 {
		return []op{{json: object{"type": "bump_sequence", "bump_to": fmt.Sprint(m.amount)}, from: m.source}}, true
	}
	from, to := s[m.source], s[m.to]
	there := to.Sequence > 0
	o := op{from: m.source, to: m.to, json: object{"type": "payment", "asset_type": "native", "from": m.source, "to": m.to, "amount": coins(m.amount)}}
	if m.kind == 0 {
		o.json = object{"type": "create_account", "funder": m.source, "account": m.to, "starting_balance": coins(m.amount)}
	}
	if there != (m.kind == 1) || !there && m.amount < 2*BaseReserve || from.Stroops-from.Selling-m.amount < (2+from.Entries)*BaseReserve {
		return []op{o}, false
	}
	if !there {
		to.Sequence = at << 32
	}
	from.Stroops -= m.amount
	to.Stroops += m.amount
	s[m.source], s[m.to] = from, to
	return []op{o}, true
}
