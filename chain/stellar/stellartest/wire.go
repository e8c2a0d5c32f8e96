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
		c.bytes(4)
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
	default:
		panic(errWire)
	}
}

// submit judges a transaction as stellar-core does before a ledger has it.
func (n *Node) submit(raw []byte) (hash, status string) {
	m, err := read(raw, n.passphrase)
	if err != nil {
		return "", "MALFORMED"
	}
	t := n.transaction(m)
	key, _ := address.StellarKey(address.StellarAccount([32]byte{}))
	if k, ok := address.StellarKey(chainAddress(m.source)); ok {
		key = k
	}
	if len(m.signatures) != 1 || !ed25519.Verify(key[:], m.hash[:], m.signatures[0]) {
		return t.hash, "ERROR"
	}
	head := n.head()
	from, there := head.after[m.source]
	for i, p := range n.pool {
		switch {
		case p.hash == t.hash:
			return t.hash, "DUPLICATE"
		case p.source == t.source && p.sequence == t.sequence && m.fee < 10*p.fee:
			return t.hash, "TRY_AGAIN_LATER"
		case p.source == t.source && p.sequence == t.sequence:
			n.pool[i] = t
			return t.hash, "PENDING"
		case p.source == t.source:
			return t.hash, "TRY_AGAIN_LATER" // one of an account waits at a time
		}
	}
	switch {
	case !there, m.fee < BaseFee, m.sequence != from.Sequence+1, from.Stroops < m.fee,
		m.max > 0 && m.max <= head.closed.Unix(), m.kind != 11 && m.amount <= 0:
		return t.hash, "ERROR"
	}
	if n.fault.Took != nil {
		n.fault.Took(raw)
	}
	if !n.fault.Swallow {
		n.pool = append(n.pool, t)
	}
	return t.hash, "PENDING"
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
